"""Warnings of events that tie, and of NULL in PARTITION BY, on one machine."""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import EventWarning
from celc_runtime.run.source import odd_events
from engines import interpreted

import celc

STREAM = """\
CREATE STREAM S {
  EVENT A { id: LONG, v: LONG, at: TIMESTAMP },
  EVENT B { id: LONG, v: LONG, at: TIMESTAMP },
  EVENT C { id: LONG, v: LONG, at: TIMESTAMP }
}
"""
PAIR = f"""{STREAM}
QUERY pair:
SELECT a, b FROM S WHERE (A AS a ; B AS b) FILTER a.v > 2 PARTITION BY id WITHIN 1 MINUTE [at]
"""


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    start = datetime(2026, 7, 1)
    columns = {
        "type": pa.array([row[0] for row in rows], pa.string()),
        "id": pa.array([row[1] for row in rows], pa.int64()),
        "v": pa.array([row[2] for row in rows], pa.int64()),
        "at": pa.array([start + timedelta(seconds=row[3]) for row in rows], pa.timestamp("us")),
        "n": pa.array(range(len(rows)), pa.int64()),
    }
    return pa.table(columns)


def drawn(draw: random.Random) -> pa.Table:
    """Rows in the order of their parts and times, many of which tie."""
    rows = [
        (draw.choice("ABC"), draw.choice([1, 2, None]), draw.randrange(6), draw.randrange(12))
        for _ in range(draw.randrange(1, 40))
    ]
    return table_of(rows).sort_by([("id", "ascending"), ("at", "ascending")])


def expected(table: pa.Table) -> tuple[int, int]:
    """(events that tie with an earlier one, events with NULL in `id`), of those that can matter."""
    rows = [one for one in table.to_pylist() if can_matter(one)]
    groups = Counter((one["id"], one["at"]) for one in rows)
    return sum(groups.values()) - len(groups), sum(one["id"] is None for one in rows)


def can_matter(row: dict[str, Any]) -> bool:
    return row["type"] == "B" or (row["type"] == "A" and row["v"] > 2)


def told_of(run: Callable[[], Any]) -> tuple[int, int]:
    """The same, as the warnings of a run say it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    texts = [str(one.message) for one in caught if one.category is EventWarning]
    ties, nulls = (
        [text for text in texts if re.search(words, text)] for words in ("equal in at", "NULL in")
    )
    assert len(ties) <= 1, texts
    assert len(nulls) <= 1, texts
    numbers = [re.search(r": (\d+) events? ", text) for text in (*ties, *nulls)]
    found = [int(number[1]) for number in numbers if number is not None]
    return (found.pop(0) if ties else 0), (found.pop(0) if nulls else 0)


@pytest.mark.each(4)
@pytest.mark.parametrize("seed", range(60))
def test_both_are_counted_once_on_each_route(seed: int) -> None:
    draw = random.Random(seed)
    table = drawn(draw)
    with interpreted():
        query = celc.compile(PAIR)
        several = celc.compile(f"{PAIR}\nQUERY other:\nSELECT c FROM S WHERE C AS c")
    cuts = sorted(draw.randrange(len(table) + 1) for _ in range(draw.randrange(4)))
    bounds = [0, *cuts, len(table)]
    batches = [
        batch
        for begin, end in itertools.pairwise(bounds)
        for batch in table.slice(begin, end - begin).to_batches()
    ]
    shuffled = table.take(pa.array(draw.sample(range(len(table)), len(table))))
    wanted = expected(table)
    assert told_of(lambda: query.match_table(table)) == wanted
    assert told_of(lambda: query.match_table(shuffled)) == wanted
    assert told_of(lambda: list(query.match_arrow(batches))) == wanted
    assert told_of(lambda: query.match_pandas(table.to_pandas())) == wanted
    assert told_of(lambda: several.match_all_table(table)) == wanted


def test_the_first_tie_is_named() -> None:
    with interpreted():
        query = celc.compile(PAIR)
    rows = [("A", 1, 3, 0), ("A", 1, 1, 5), ("B", 1, 0, 5), ("A", 1, 4, 5), ("B", 2, 0, 5)]
    with pytest.warns(EventWarning, match=r"1 event is equal in at .* \(the first is row 3 "):
        query.match_table(table_of(rows))


SILENT = {
    "a tiebreak": (PAIR, {"tiebreak": ["n"]}),
    "simultaneous events": (PAIR, {"ties": "simultaneous"}),
    "matches of one event": (
        f"{STREAM}SELECT a FROM S WHERE A AS a PARTITION BY id",
        {"order_by": "at"},
    ),
    "no order": (f"{STREAM}SELECT a, b FROM S WHERE A AS a ; B AS b", {}),
}


@pytest.mark.parametrize("why", SILENT)
def test_no_tie_is_told_where_the_order_is_known_or_means_nothing(why: str) -> None:
    text, options = SILENT[why]
    with interpreted():
        query = celc.compile(text).with_options(**options)
    rows = [("A", 1, 3, 0), ("A", 1, 3, 0), ("B", 1, 0, 0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", EventWarning)
        query.match_table(table_of(rows))


def test_ties_of_a_query_for_each_row() -> None:
    text = """
CREATE STREAM S {
  EVENT A { id: LONG, v: LONG, at: TIMESTAMP },
  EVENT B { id: LONG, v: LONG, at: TIMESTAMP }
}
PARAMETERS R { id: LONG }
SELECT a, b FROM S FOR EACH R
WHERE (A AS a ; B AS b) FILTER a.id = R.id AND b.id = R.id PARTITION BY id WITHIN 1 MINUTE [at]
"""
    with interpreted():
        query = celc.compile(text)
    rows = [("A", 1, 3, 0), ("A", 1, 3, 0), ("B", 1, 0, 0), ("A", 7, 0, 3), ("B", 7, 0, 3)]
    rules = pa.table({"id": pa.array([1, 2], pa.int64())})
    assert told_of(lambda: query.match_table(table_of(rows), R=rules)) == (2, 0)


def test_a_query_over_queries_tells_of_the_declared_events_alone() -> None:
    text = f"""{STREAM}
QUERY one:
SELECT a FROM S WHERE (A AS a ; B AS b) FILTER a.v > 2 PARTITION BY id WITHIN 1 MINUTE [at]
QUERY two:
SELECT x FROM one WHERE one AS x ; one AS y PARTITION BY id WITHIN 1 MINUTE
"""
    with interpreted():
        query = celc.compile(text).queries["two"]
    rows = [("A", 1, 3, 0), ("A", 1, 3, 0), ("B", 1, 0, 1), ("B", 1, 0, 2)]
    assert told_of(lambda: query.match_table(table_of(rows))) == (1, 0)


def test_ties_and_the_first_of_them_are_those_of_a_walk() -> None:
    for seed in range(300):
        draw = np.random.default_rng(seed)
        rows = int(draw.integers(1, 60))
        matters = draw.integers(0, 3, rows).astype(np.uint8) * (draw.random(rows) < draw.random())
        tied, goes_on = draw.random(rows) < draw.random(), bool(draw.integers(2))
        found, open_before = [], goes_on
        for row in range(rows):
            open_before = open_before and bool(tied[row])
            if matters[row]:
                if open_before:
                    found.append(row)
                open_before = True
        assert odd_events.ties_of(matters, tied, goes_on) == (len(found), open_before)
        if found:
            assert odd_events.first_tie(matters, tied, goes_on) == found[0]
