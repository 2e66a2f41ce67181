"""What CORE writes in CEQL and nobody else: `NOT(R)`, ranges in braces, `primary_time`, `[a, b]`.

Answers are compared with the reference on random streams; a few are worked out by hand.
"""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
from engines import answers, engines, interpreted, only_query
from reference import difference, evaluate

import celc

DECLARATION = """CREATE STREAM S {
  EVENT A { id: int, value: double, ts: long },
  EVENT B { id: int, value: double, ts: long },
  EVENT C { id: int, value: double, ts: long }
}
"""


def events_of(types: str) -> list[dict[str, Any]]:
    """Events of these types, one letter each; ids and values go round."""
    return [
        {"type": kind, "id": k % 2, "value": float(k * 5 % 7), "ts": k}
        for k, kind in enumerate(types)
    ]


def answer(query: str, events: list[dict[str, Any]]) -> list[tuple[int, int, dict[str, list[int]]]]:
    """(start, end, labels) of each match."""
    matcher = celc.compile(DECLARATION + query)
    table = only_query(matcher)
    rng = random.Random(0)
    rows = answers(table, events, rng)["match_table"]
    return [(row["start"], row["end"], row["labels"]) for row in rows]


@pytest.mark.parametrize(
    "formula",
    [
        "NOT(A)",
        "NOT (A) ; B",
        "A : NOT(B) : C",
        "A ; NOT(A) ; C",
        "(A : NOT(A):+ : A)",
        "NOT(A OR B) : A",
        "NOT(A FILTER A.value > 2) : B",
        "(A AS x ; NOT(B FILTER B.value > x.value) ; C)",
        "A UNLESS NOT(A)",
        "A ; !NOT(B) ; C",
        "(A AS x ; (B AS y)+) FILTER x[value IN {2..4}] AND y[id IN {0..}]",
        "A AS x FILTER x.value NOT IN {2..4} OR x.value IN {..1}",
        "A AS x FILTER NOT x.value IN {3..} AND x[value NOT IN {..1}]",
        "A AS x FILTER x.value IN {1, 5}",
    ],
)
def test_the_reference_agrees(formula: str) -> None:
    query = f"{DECLARATION}SELECT * FROM S WHERE {formula}"
    with interpreted():
        compiled = engines(query)
        rng = random.Random(formula)
        for _ in range(12):
            stream = events_of("".join(rng.choices("ABC", k=rng.randint(0, 8))))
            for event in stream:
                event["value"] = rng.choice([None, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
            expected = [
                {
                    "partition": dict(found.partition),
                    "start": found.start,
                    "end": found.end,
                    "labels": {label: list(places) for label, places in found.labels},
                }
                for found in evaluate(query, stream)
            ]
            for matcher in compiled.values():
                for found in answers(only_query(matcher), stream, rng).values():
                    assert not difference(evaluate(query, stream), found)
                    assert len(found) == len(expected)


def test_not_is_one_event_of_another_type_without_a_label() -> None:
    found = answer("SELECT * FROM S WHERE NOT(A) ; B ; A", events_of("ABBA"))
    assert found == [(1, 3, {"B": [2], "A": [3]})]


def test_not_of_a_condition_is_an_event_that_does_not_meet_it() -> None:
    query = "SELECT NONE FROM S WHERE NOT(A FILTER A[value > 2])"
    assert [found[0] for found in answer(query, events_of("AAAB"))] == [0, 3]


def test_labels_inside_not_are_bound_nowhere() -> None:
    text = DECLARATION + "SELECT * FROM S WHERE (A ; NOT(B AS x)) FILTER x.id = 1"
    (found,) = celc.check(text)
    assert (found.code, found.message) == (
        "unbound-label",
        "label 'x' is used in this filter but nothing binds it",
    )


def test_not_of_several_events_is_refused() -> None:
    (found,) = celc.check(DECLARATION + "SELECT * FROM S WHERE A ; NOT(B ; B) ; C")
    assert found.code == "not-of-several"


def test_limits_of_a_range_belong_to_it() -> None:
    query = "SELECT x FROM S WHERE A AS x FILTER x[value IN {3..5}]"
    assert [found[0] for found in answer(query, events_of("AAAAA"))] == [1, 2]


def test_brackets_of_one_attribute_are_that_attribute() -> None:
    for keys in ("[id]", "[id], [ts]"):
        text = f"SELECT * FROM S WHERE A ; B PARTITION BY {keys}"
        plain = only_query(celc.compile(DECLARATION + text)).plan.partition_by
        assert plain == tuple(keys.replace("[", "").replace("]", "").split(", "))


def test_brackets_are_one_key() -> None:
    text = "SELECT * FROM S WHERE A ; B PARTITION BY [id, ts]"
    (found,) = celc.check(DECLARATION + text)
    assert found.code == "ambiguous-partition-key"
    mended = {fix.text for fix in found.fixes}
    assert mended == {"id, ts", "id", "ts"}


TIMES = """CREATE STREAM S {
  EVENT A { id: int, time: primary_time },
  EVENT B { id: int, time: primary_time }
}
"""


def test_primary_time_orders_the_stream_and_measures_windows() -> None:
    matcher = celc.compile(TIMES + "SELECT * FROM S WHERE A ; B WITHIN 10 SECONDS")
    query = only_query(matcher)
    assert query.plan.order_by == ("time",)
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    events = [
        {"type": kind, "id": 1, "time": start + dt.timedelta(seconds=seconds)}
        for kind, seconds in (("B", 10), ("A", 0), ("B", 11))
    ]
    import pyarrow as pa

    table = pa.Table.from_pylist(events, query.input_schema)
    rows = query.match_table(table).to_pylist()
    assert [(row["start_time"], row["end_time"]) for row in rows] == [
        (start, start + dt.timedelta(seconds=10))
    ]


def test_primary_time_gives_way_to_what_is_said() -> None:
    text = TIMES + "SELECT * FROM S WHERE A ; B WITHIN 10 [id]"
    assert only_query(celc.compile(text)).plan.order_by == ("id",)
    named = celc.compile(TIMES + "SELECT * FROM S WHERE A ; B", order_by="id")
    assert only_query(named).plan.order_by == ("id",)


def test_primary_times_of_different_names_order_nothing() -> None:
    text = TIMES.replace("EVENT B { id: int, time", "EVENT B { id: int, other")
    assert only_query(celc.compile(text + "SELECT * FROM S WHERE A ; B")).plan.order_by == ()
