"""The command line: the only place that reads and writes files.

`command` takes the words of the command line apart and ends with an exit code, `run` is the command
that reads events. `events` and its neighbours read, `writing` gives matches their form, `output`
puts bytes where they belong.
"""

from celc.cli.command import main

__all__ = ["main"]
