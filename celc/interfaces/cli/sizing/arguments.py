"""The arguments of `celc size`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from celc.interfaces.cli.sizing.amounts import count_of, length_of, rate_of, rows_of, share_of


def add_size(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes one."""
    size = command("size", "predict what a query costs on a cluster, from measured runs of others")
    size.add_argument("--query", help="which query of the file (default: all)")
    of = size.add_argument_group("how much there is")
    of.add_argument(
        "--rows",
        type=rows_of,
        required=True,
        metavar="N[/UNIT]",
        help="rows of a batch job, or rows that come each second, minute, hour or day: 5e9/day",
    )
    of.add_argument(
        "--keys",
        type=count_of,
        metavar="N",
        help="different values of PARTITION BY; of a query that has one it must be said",
    )
    of.add_argument(
        "--match-rate",
        type=rate_of,
        required=True,
        metavar="X",
        help="matches for each row, as a run on a sample shows: 0.001",
    )
    of.add_argument(
        "--relevant",
        type=share_of,
        default=1.0,
        metavar="SHARE",
        help="the part of the rows whose type and values can matter to the query (default: 1, all)",
    )
    of.add_argument(
        "--text-bytes",
        type=count_of,
        default=10.0,
        metavar="N",
        help="the length of a text, where the query reads texts (default: 10)",
    )
    on = size.add_argument_group("what it runs on")
    asked = on.add_mutually_exclusive_group()
    asked.add_argument("--executors", type=count_of, metavar="N", help="says how long a job takes")
    asked.add_argument(
        "--hours", type=length_of, metavar="N", help="says how many executors it takes"
    )
    on.add_argument(
        "--cores", type=count_of, default=4.0, metavar="N", help="of an executor (default: 4)"
    )
    on.add_argument(
        "--trigger",
        type=length_of,
        default=60.0,
        metavar="SECONDS",
        help="between two micro-batches of a stream (default: 60)",
    )
    on.add_argument(
        "--calibrate",
        action="store_true",
        help="time a short run on this machine, and predict for machines like it",
    )
    size.add_argument("--json", action="store_true", help="print the prediction as JSON")
