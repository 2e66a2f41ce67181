"""The arguments of `celc diff` and `celc example`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_comparisons(
    command: Callable[..., argparse.ArgumentParser],
    add_forms: Callable[[argparse.ArgumentParser], Any],
    seconds: Callable[[str], float],
) -> None:
    """Add both commands. `command` makes one, `add_forms` adds how events are read, and `seconds`
    reads a time."""
    diff = command("diff", "say what a change of a query changes")
    diff.add_argument(
        "new", type=Path, nargs="?", metavar="new.cel", help="the file after the change"
    )
    diff.add_argument(
        "--state",
        metavar="CHECKPOINT",
        help="the checkpoint of a stream in place of a file before the change: whether the query "
        "goes on with it, and from when a new checkpoint has to begin if not (needs PySpark)",
    )
    diff.add_argument("--query", help="which query of both files (default: all, by their names)")
    diff.add_argument(
        "--format", choices=["text", "json"], default="text", help="json: an object for each query"
    )
    _add_search(diff, seconds)
    diff.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="EVENTS",
        help="files as `celc run` reads them: which rows of the answers came and went there",
    )
    diff.add_argument(
        "--parameters",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="with --on, the rows of a parameter set (FOR EACH NAME)",
    )
    add_forms(diff)

    example = command(
        "example", "show a smallest stream with a match, and one with a near miss of each part"
    )
    example.add_argument("--query", help="which query of the file (default: all)")
    example.add_argument(
        "--format", choices=["text", "json"], default="text", help="json: an object a stream"
    )
    _add_search(example, seconds)


def _add_search(command: argparse.ArgumentParser, seconds: Callable[[str], float]) -> None:
    command.add_argument(
        "--seconds",
        type=seconds,
        default=20.0,
        metavar="N",
        help="end the search of a query after so long (default 20)",
    )
