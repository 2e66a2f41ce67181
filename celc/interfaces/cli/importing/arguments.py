"""The arguments of `celc import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def add_import(commands: Any) -> None:
    """Add the command."""
    help = "write rules of EQL as queries of CEL"
    command = commands.add_parser("import", help=help, description=help)
    command.add_argument("language", choices=["eql"], help="the language of the rules")
    command.add_argument(
        "rules",
        type=Path,
        nargs="+",
        metavar="RULES",
        help="files with one query each, or rules of Elastic's as .toml; or folders of such files",
    )
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="a file, or for several rules a folder, instead of standard output",
    )
    command.add_argument("--force", action="store_true", help="overwrite files")
    command.add_argument(
        "--time-column",
        default="@timestamp",
        metavar="NAME",
        help="the column with the time of an event (default: @timestamp)",
    )
    command.add_argument(
        "--category-column",
        default="event.category",
        metavar="NAME",
        help="the column with the category of an event (default: event.category)",
    )
