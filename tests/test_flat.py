"""SELECT FLAT: a label becomes a column for each attribute of its only event, as written out."""

from __future__ import annotations

import random
from typing import Any

import pytest
from celc_runtime import CompiledQuery
from engines import interpreted, only_query, table_of
from strategies import random_stream
from streams_by_hand import EVENT_TIME, instant, streamed, timed

import celc

_DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, name: STRING, ts: LONG },
  EVENT B { id: INT, value: DOUBLE, name: STRING, ts: LONG },
  EVENT C { id: INT, ts: LONG }
}
"""

_X = "x.id AS x_id, x.value AS x_value, x.name AS x_name, x.ts AS x_ts"
_C = "C.id AS C_id, C.ts AS C_ts"

_QUERIES = (
    ("FLAT *", f"{_X}, {_C}", "WHERE A AS x ; C"),
    ("FLAT x", _X, "WHERE A AS x ; C ; B"),
    ("NXT FLAT x[ts, id], C", f"x.ts AS x_ts, x.id AS x_id, {_C}", "WHERE A AS x ; C ; B"),
    ("FIRST FLAT C, x.value * 2 AS twice", f"{_C}, x.value * 2 AS twice", "WHERE A AS x ; C"),
    ("FLAT COUNT(B) AS n, x", f"COUNT(B) AS n, {_X}", "WHERE A AS x ; B+ ; C WITHIN 6 EVENTS"),
    ("ANY FLAT x", _X, "WHERE (A OR B) AS x ; C PARTITION BY id"),
    ("FLAT *", f"{_X}, {_C}", "WHERE A AS x ; C LIMIT 1 PER PARTITION"),
    ("FLAT NONE", "NONE", "WHERE A ; C"),
)


def _query(items: str, rest: str) -> CompiledQuery:
    text = timed(_DECLARATION) + f"SELECT {items} FROM S {rest}"
    with interpreted():
        return only_query(celc.compile(text, order_by=EVENT_TIME))


@pytest.mark.parametrize("number", range(len(_QUERIES)))
def test_columns_are_those_of_attributes(number: int) -> None:
    flat, items, rest = _QUERIES[number]
    choice = flat.split("FLAT")[0]
    query, other = _query(flat, rest), _query(f"{choice}{_with_time(flat, items)}", rest)
    events = _events(random.Random(number))
    table = table_of(query.plan, events)
    assert query.output_schema == other.output_schema
    wanted = other.match_table(table).to_pylist()
    assert wanted
    assert query.match_table(table).to_pylist() == wanted
    found: list[dict[str, Any]] = streamed(query, events, random.Random(number))
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def _with_time(flat: str, items: str) -> str:
    """The written items with the event time of each label that has all its attributes."""
    for label in ("x", "C"):
        if f"{label}[" not in flat:
            items = items.replace(
                f"{label}.ts AS {label}_ts",
                f"{label}.ts AS {label}_ts, {label}.{EVENT_TIME} AS {label}_{EVENT_TIME}",
            )
    return items


def _events(rng: random.Random) -> list[dict[str, Any]]:
    events = [one for one in random_stream(rng, 30, nulls=0) if one["type"] != "D"]
    return [{**event, EVENT_TIME: instant(10 + row)} for row, event in enumerate(events)]


def test_flat_is_a_name_elsewhere() -> None:
    query = _query("flat", "WHERE A AS flat ; C")
    assert [label.name for label in query.plan.answer.labels] == ["flat"]
