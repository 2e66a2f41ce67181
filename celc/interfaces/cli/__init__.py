"""The command line: the only place that writes files.

`arguments` has the words of the command line. `command` runs a command and ends with an exit code;
`run` is the command that reads events, by `reading/`. `match_formats` and `table` give matches
their form. `output` writes bytes.
"""

from celc.interfaces.cli.command import main

__all__ = ["main"]
