"""The arguments of `celc import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def add_import(commands: Any) -> None:
    """Add the command."""
    help = "write rules of EQL, FlinkCEP or Sigma as queries of CEL"
    command = commands.add_parser("import", help=help, description=help)
    command.add_argument(
        "language", choices=["eql", "flink", "sigma"], help="the language of the rules"
    )
    command.add_argument(
        "rules",
        type=Path,
        nargs="+",
        metavar="RULES",
        help="files: of EQL with one query each, or Elastic's rules as .toml; of FlinkCEP as "
        ".json; of Sigma as .yml; or folders of such files",
    )
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="a file, or for several files a folder, instead of standard output",
    )
    command.add_argument("--force", action="store_true", help="overwrite files")
    command.add_argument(
        "--time-column",
        metavar="NAME",
        help="the column with the time of an event (default: eql: @timestamp, flink: ts, sigma: "
        "timestamp)",
    )
    command.add_argument(
        "--kind-column",
        metavar="NAME",
        help="the column with the category of an event (default: event.category), or with its log "
        "source (sigma, default: logsource)",
    )
