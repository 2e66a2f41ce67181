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
    "query",
    [
        "SELECT * WHERE A ; B LIMIT 2",
        "SELECT LAST * WHERE A ; B WITHIN 9 EVENTS",
        "SELECT COUNT(a) AS n WHERE A+ AS a ; B",
        "SELECT * WHERE (A AS a ; B AS b) FILTER a.id < b.id",
    ],
)
def test_what_no_graph_can_say_is_an_error_that_says_why(query: str) -> None:
    matcher = celc.compile(_STREAM + query, order_by="ts")
    with pytest.raises(EventError, match=r"has no compact answer: .*; use match_table"):
        matcher.match_compact(_events("AB"))


def test_expand_refuses_a_table_that_is_no_compact_answer() -> None:
    with pytest.raises(EventError, match="expand takes what match_compact gave"):
        expand(_events("AB"))
