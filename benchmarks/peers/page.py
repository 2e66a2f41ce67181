"""The tables of docs/comparison.md, of the newest record.

python benchmarks/peers/page.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).resolve().parent.parent / "records"


def newest() -> list[dict[str, Any]]:
    """The figures of the newest record: those of all its runs, the later ones last."""
    lines = max(RECORDS.glob("peers-*.jsonl")).read_text("utf-8").splitlines()
    return [figure for line in lines for figure in json.loads(line)["figures"]]


def table(figures: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of a Markdown table, with bold words where celc is slower."""
    yield "| task | rows | matches | SQL, s | celc, s | celc is |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for figure in figures:
        yield (
            f"| {figure['task']} | {figure['rows']:,} | {figure['matches']:,} "
            f"| {figure['sql_seconds']:.3f} | {figure['celc_seconds']:.3f} "
            f"| {verdict(figure['times'])} |"
        )


def verdict(times: float) -> str:
    """How many times faster or slower celc is, in words."""
    return f"{times:.1f} × faster" if times >= 1 else f"**{1 / times:.1f} × slower**"


def tables() -> dict[str, list[str]]:
    """The table of each peer, by its name."""
    figures = newest()
    peers = dict.fromkeys(figure["peer"] for figure in figures)
    return {peer: list(table([one for one in figures if one["peer"] == peer])) for peer in peers}


if __name__ == "__main__":
    for peer, lines in tables().items():
        print(f"{peer}\n", *lines, "", sep="\n")
