"""Near misses of streams by hand: those of the batch, whatever the micro-batches and restarts."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.rules.any_query import matches_of_table
from near_answers import TYPES, by_reference, near_cases, rows_of
from near_streams import (
    Row,
    at_time,
    in_time,
    near_of,
    of_batch,
    streamed,
    table_in_time,
    with_window,
)
from strategies_near import near_query_text, near_stream
from streams_by_hand import same_rows

from celc import CelError

_SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "id": pa.int32(),
        "value": pa.float64(),
        "price": pa.decimal128(8, 2),
        "name": pa.string(),
        "ts": pa.timestamp("us", "UTC"),
        "row": pa.int64(),
    }
)


def _agrees(seed: int) -> int:
    """How many near misses a random query has on a stream; they are those of the batch, and its
    matches are those of the query."""
    rng = random.Random(seed)
    text = with_window(in_time(near_query_text(rng)), rng.randint(1, 5))
    events = near_stream(rng, rng.randint(10, 45))
    for number, event in enumerate(events):
        price = event["price"]
        event["price"] = None if price is None else Decimal(str(price))
        event["ts"], event["row"] = at_time(event["ts"]), number
    table = pa.Table.from_pylist(events, _SCHEMA)
    parameters = {}
    if "FOR EACH" in text:
        ids = pa.array([rng.choice((1, 2)) for _ in range(2)], pa.int32())
        parameters = {"rule": pa.table({"id": ids, "v": [rng.choice((1.5, 2.0)) for _ in ids]})}
    near = near_of(text, near=rng.choice((0.1, 0.3, 0.5)), all_parts=rng.random() < 0.1)
    found = streamed(near, table, rng, parameters)
    wanted = of_batch(near, table, parameters)
    told = same_rows([row for row in found if row["kind"] == "near"], wanted)
    assert not told, (seed, text, told)
    if not parameters:
        program = near.queries[near.plan.query].program.with_options(at_end="closed")
        matches = matches_of_table(program, table, FirstMatches(None)).to_pylist()
        names = program.output_schema.names
        of_query = [{name: row[name] for name in names} for row in found if row["kind"] == "match"]
        told = same_rows(of_query, matches)
        assert not told, (seed, text, told)
    return len(wanted)


def test_random_queries() -> None:
    assert sum(map(_agrees, (1002, 1005, 1011))) > 0


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_random_queries(part: int) -> None:
    assert sum(map(_agrees, range(3000 + 60 * part, 3060 + 60 * part))) > 5


@pytest.mark.long
def test_cases() -> None:
    """All cases as streams; a query without a window gets one that outlasts the events."""
    ran = 0
    for case in near_cases():
        if "error" in case:
            continue
        text, events = with_window(in_time(case["query"]), 1000), case["events"]
        for event in events:
            if isinstance(event.get("ts"), int | float):
                event["ts"] = at_time(event["ts"])
        options = case["options"]
        asked: dict[str, Any] = {
            "near": options.get("near", 0.1),
            "all_parts": options.get("parts") == "all",
        }
        given = case.get("parameters")
        expected = by_reference(
            text, events, order_by=("ts",), at_end="closed", parameters=given, **asked
        )
        near = near_of(text, **asked)
        parameters = _parameters(near, given)
        rng = random.Random(case["name"])
        found = streamed(near, table_in_time(near, events), rng, parameters)
        rows = rows_of(near, [row for row in found if row["kind"] == "near"])
        assert rows == expected, case["name"]
        ran += 1
    assert ran == 81


def _parameters(near: Any, given: dict[str, list[Row]] | None) -> dict[str, pa.Table]:
    plan = near.answer.plan.source.parameters
    found = {}
    for name, rows in (given or {}).items():
        schema = pa.schema([(one.name, TYPES[one.type]) for one in plan.attributes])
        found[name] = pa.Table.from_pylist(rows, schema)
    return found


# --- words ----------------------------------------------------------------------------------------

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, n: LONG, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, n: LONG, ts: TIMESTAMP }
}
"""


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("", r"query.cel:5:1: .* it has no WITHIN, so that any later event"),
        (
            " WITHIN 5 EVENTS",
            r"query.cel:5:51: .* its WITHIN is no time on the order (?s:.*) \^{15}$",
        ),
        (" WITHIN 5 [n]", r"query.cel:5:51: .* its WITHIN is no time on the order (?s:.*) \^{12}$"),
    ],
)
def test_what_has_no_near_misses_on_a_stream(rest: str, why: str) -> None:
    near = near_of(f"{_DECLARED}SELECT * FROM S WHERE (A AS a ; B) FILTER a.v > 3{rest}")
    table = pa.table({"ts": [at_time(0)]})
    with pytest.raises(EventError, match=why):
        streamed(near, table, random.Random(1), {})


def test_a_selector_inside_is_refused() -> None:
    text = (
        f"{_DECLARED}SELECT * FROM S WHERE (NXT(A AS a ; B)) FILTER a.v > 3 WITHIN 5 SECONDS [ts]"
    )
    with pytest.raises(EventError, match="a selector inside its formula"):
        streamed(near_of(text), pa.table({"ts": [at_time(0)]}), random.Random(1), {})


@pytest.mark.parametrize("key", ["part", "amount"])
def test_columns_that_near_misses_have(key: str) -> None:
    with pytest.raises(CelError, match=f"the query has a column {key}"):
        near_of(f"{_DECLARED}SELECT a.v AS {key} FROM S WHERE A AS a FILTER a.v > 3")
