"""`celc completion`: a script with which a shell completes commands, options and files.

shtab makes it from the parser of the command line, so both always agree. celc does not run while a
shell completes.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")

# What is a file, and is read as a text because it can be something else as well.
_FILES = ("EVENTS", "DATA", "skip|error|FILE")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of SHELLS."""
    import shtab

    for action in _actions(parser):
        if action.type is Path or action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    made: str = shtab.complete(parser, shell)
    return made


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
