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
    """The figures of the newest record, in the order of its runs.

    Where two runs have measured the same, the later figure stands in the place of the earlier one.
    """
    lines = max(RECORDS.glob("peers-*.jsonl")).read_text("utf-8").splitlines()
    figures = (figure for line in lines for figure in json.loads(line)["figures"])
    return list({(one["peer"], one["task"], one["rows"]): one for one in figures}.values())


def table(figures: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of the Markdown table of one peer, with bold words where celc is slower.

    A peer whose reading is known has a column for it: the part of its time before that one.
    """
    read = "read_seconds" in figures[0]
    columns = ["task", "rows", "matches", f"{way(figures[0]['peer'])}, s"]
    columns += ["of it reading, s"] * read + ["celc, s", "celc is"]
    yield f"| {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * (len(columns) - 1)}"
    for figure in figures:
        cells = [figure["task"], f"{figure['rows']:,}", f"{figure['matches']:,}"]
        seconds = ["peer_seconds", *["read_seconds"] * read, "celc_seconds"]
        cells += [f"{figure[name]:.3f}" for name in seconds]
        yield f"| {' | '.join(cells)} | {verdict(figure['times'])} |"


def way(peer: str) -> str:
    """What a peer, given with its version, is asked in: SQL, or its own name."""
    name = peer.split()[0]
    return name if name == "FlinkCEP" else "SQL"


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
