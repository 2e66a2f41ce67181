"""The arguments of `celc prove`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def add_prove(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes one."""
    prove = command(
        "prove", "check each pass of a compilation, and say what is proved", several=True
    )
    prove.add_argument(
        "--check",
        action="store_true",
        help="of a module and its report instead: whether the module is the one that was proved",
    )
    prove.add_argument("--query", help="which query of the file (default: all)")
    prove.add_argument(
        "--format", choices=["text", "json"], default="text", help="json: the report as it is kept"
    )
    prove.add_argument("-o", "--output", type=Path, help="write the report as JSON to this file")
    prove.add_argument("--force", action="store_true", help="overwrite the output file")
