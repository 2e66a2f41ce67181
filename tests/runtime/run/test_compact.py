"""Compact answers: graphs that hold all matches of an end, and the rows that they stand for."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from celc_runtime import EventError, expand

import celc

_STREAM = "CREATE STREAM S {{ {} }}\n".format(
    ", ".join(f"EVENT {name} {{ id: INT, ts: LONG }}" for name in "ABC")
)


_OWN = """AGGREGATE own(a: INT): INT
  STATE most: INT = NULL
  STEP most = GREATEST(most, a)
  RESULT most
"""


def _events(types: str, seed: int = 1) -> pa.Table:
    rng = random.Random(seed)
    ids = pa.array([rng.randrange(2) for _ in types], pa.int32())
    return pa.table({"type": list(types), "id": ids, "ts": list(range(len(types)))})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE A ; B ; C WITHIN 20 EVENTS",
        "SELECT * WHERE (A AS x)+ ; B AS y WITHIN 9 EVENTS",
        "SELECT * WHERE (A OR B)+ ; !C ; C PARTITION BY [id] WITHIN 12 EVENTS",
        "SELECT a[id] WHERE (A AS a ; B+ ; C) WITHIN 8 EVENTS CONSUME BY ANY",
        "SELECT COUNT(a) AS n, SUM(a.id) / 2 AS s, b WHERE A+ AS a ; B AS b WITHIN 6 EVENTS",
        "SELECT * WHERE A ; B WITHIN 9 EVENTS LIMIT 2",
        "SELECT LAST * WHERE A ; B WITHIN 9 EVENTS",
        "SELECT MAX * WHERE A+ ; B WITHIN 9 EVENTS",
        "SELECT * WHERE (A AS x OR A AS y)+ ; (B AS b OR B AS c) WITHIN 9 EVENTS LIMIT 7",
    ],
)
def test_an_expanded_answer_is_the_answer(query: str) -> None:
    matcher = celc.compile(_STREAM + query, order_by="ts")
    events = _events("".join(random.Random(3).choices("ABC", k=60)))
    wanted = matcher.match_table(events)
    compact = matcher.match_compact(events)
    assert wanted.num_rows
    assert compact["end_pos"].to_pylist() == sorted(set(compact["end_pos"].to_pylist())) or (
        "PARTITION" in query
    )
    assert expand(compact).read_all().equals(wanted)
    assert expand(compact, limit=3).read_all().equals(wanted.slice(0, 3))


def test_a_graph_grows_with_the_events_and_not_with_the_matches() -> None:
    matcher = celc.compile(_STREAM + "SELECT * WHERE A+ ; B", order_by="ts")
    sizes = []
    for count in (20, 40, 80):
        (row,) = matcher.match_compact(_events("A" * count + "B")).to_pylist()
        assert len(row["events"]) == count + 1
        sizes.append(len(row["nodes"]))
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * WHERE (A AS a ; B AS b) FILTER a.id < b.id", "conditions across events"),
        ("SELECT * WHERE A ; !B FOR 5 EVENTS", "an absence at its end"),
        ("SELECT LONGEST * WHERE A ; B", "matches that end at different events"),
        ("SELECT TOTAL COUNT(*) AS n WHERE A ; B", "one row for many matches already"),
        ("SELECT COLLAPSED * WHERE A ; B", "one row for many matches already"),
        (f"{_OWN}SELECT own(a.id) AS n WHERE A+ AS a ; B", "whose code no table holds"),
    ],
)
def test_what_no_graph_can_say_is_an_error_that_says_why(query: str, why: str) -> None:
    matcher = celc.compile(_STREAM + query, order_by="ts")
    for match in (matcher.match_compact, lambda events: list(matcher.match_compact_arrow(events))):
        with pytest.raises(EventError, match=rf"has no compact answer: .*{why}.*; use match_table"):
            match(_events("AB"))


def test_the_first_matches_cost_nothing_of_the_others() -> None:
    """An event of a window of 60 ends 2⁶⁰ matches: no pass over them would ever end."""
    matcher = celc.compile(_STREAM + "SELECT * WHERE A+ ; B", order_by="ts")
    compact = matcher.match_compact(_events("A" * 60 + "B"))
    assert len(compact) == 1
    assert expand(compact, limit=10).read_all().num_rows == 10
    assert len(expand(compact).read_next_batch()) > 1000


def test_expand_refuses_a_table_that_is_no_compact_answer() -> None:
    with pytest.raises(EventError, match="expand takes what match_compact gave"):
        expand(_events("AB"))
