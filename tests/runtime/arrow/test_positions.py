"""Answers without positions: where they are, and that the matches are the same on every route."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from engines import interpreted, only_query

import celc

DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, ts: LONG }, EVENT B { id: INT, value: DOUBLE, ts: LONG }
}
"""
EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B", "B"],
        "id": pa.array([1, 1, 2, 2, 1], pa.int32()),
        "value": [1.0, 2.0, 3.0, None, 5.0],
        "ts": [1, 2, 3, 4, 5],
    }
)
TEXT = "SELECT A[value], COUNT(B) AS n, B FROM S WHERE A ; B+ PARTITION BY id WITHIN 4 [ts]"


def _compiled(text: str, declaration: str = DECLARATION, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(declaration + text, **options))


def _without(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the output without its positions."""
    kept = {name: value for name, value in row.items() if name not in ("start_pos", "end_pos")}
    for name, value in kept.items():
        if isinstance(value, list):
            kept[name] = [{k: v for k, v in event.items() if k != "pos"} for event in value]
    return kept


def test_every_route_leaves_them_out() -> None:
    query = _compiled(TEXT)
    short = query.with_options(positions=False)
    wanted = [_without(row) for row in query.match_table(EVENTS).to_pylist()]
    assert len(wanted) == 4
    assert short.output_schema.names == ["id", "start_time", "end_time", "A", "n", "B"]
    assert short.output_ddl == (
        "`id` INT, `start_time` BIGINT, `end_time` BIGINT, `A` ARRAY<STRUCT<`value`: DOUBLE>>, "
        "`n` BIGINT, `B` ARRAY<STRUCT<`id`: INT, `value`: DOUBLE, `ts`: BIGINT>>"
    )
    found = short.match_table(EVENTS)
    assert found.schema == short.output_schema
    assert found.to_pylist() == wanted
    ordered = EVENTS.sort_by([("id", "ascending"), ("ts", "ascending")])
    batches = list(short.match_arrow(ordered.to_batches(max_chunksize=2)))
    assert [row for batch in batches for row in batch.to_pylist()] == wanted
    frame = short.match_pandas(EVENTS.to_pandas())
    assert list(frame.columns) == short.output_schema.names
    assert frame["n"].tolist() == [row["n"] for row in wanted]


def test_the_choice_travels_and_can_be_taken_back() -> None:
    query = _compiled(TEXT)
    short = query.with_options(positions=False, tiebreak="value")
    assert pickle.loads(pickle.dumps(short)).plan == short.plan
    assert short.with_options(order_by="ts").plan.answer.positions is False
    assert short.with_options(positions=True, tiebreak=()).plan == query.plan
    travelled = pickle.loads(pickle.dumps(query))
    assert travelled.plan.answer.positions is True
    assert travelled.program.on_spark.plan.answer.positions is False


def test_a_label_that_shows_nothing_else_is_left_out() -> None:
    """A struct without fields is no type of Spark's DDL, and no column of a Parquet file."""
    bare = "CREATE STREAM S { EVENT A { ts: LONG }, EVENT B {} }\n"
    text = "SELECT A, B, COUNT(B) AS n FROM S WHERE A ; B+"
    query = _compiled(text, bare)
    short = query.with_options(positions=False)
    events = pa.table({"type": ["A", "B", "B"], "ts": [1, None, None]})
    assert query.output_schema.names == ["start_pos", "end_pos", "A", "B", "n"]
    assert short.output_schema.names == ["A", "n"]
    assert short.match_table(events).to_pylist() == [{"A": [{"ts": 1}], "n": n} for n in (1, 1, 2)]


def test_no_column_at_all_is_refused() -> None:
    query = _compiled("SELECT NONE FROM S WHERE A ; B")
    with pytest.raises(ValueError, match="would have no column without positions: select an"):
        query.with_options(positions=False)
    short = query.with_options(positions=False, order_by="ts")
    assert short.output_schema.names == ["start_time", "end_time"]
    with pytest.raises(ValueError, match="would have no column"):
        short.with_options(order_by=())
    with pytest.raises(ValueError, match="positions must be True or False, not 0"):
        query.with_options(positions=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "filtered"),
    [
        ("SELECT * FROM S WHERE A FILTER A.value > 1", True),
        ("SELECT * FROM S WHERE A ; !B ; A WITHIN 3 [ts]", True),
        ("SELECT NXT * FROM S WHERE A+ ; B WITHIN 3 [ts]", True),
        ("SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.value < y.value", True),
        ("SELECT * FROM S WHERE A ; B CONSUME BY ANY", True),
        ("SELECT * FROM S WHERE A : B", False),
        ("SELECT * FROM S WHERE (A :+) ; B", False),
        ("SELECT * FROM S WHERE STRICT(A+) ; B", False),
        ("SELECT STRICT * FROM S WHERE A ; B", False),
        ("SELECT * FROM S WHERE NXT(A ; B) ; A", False),
        ("SELECT NXT * FROM S WHERE A ; B", False),
        ("SELECT * FROM S WHERE A ; B WITHIN 3 EVENTS", False),
    ],
)
def test_which_queries_can_do_without_some_events(text: str, filtered: bool) -> None:
    assert (_compiled(text, order_by="ts").plan.source.relevant is not None) is filtered


# --- on Spark -------------------------------------------------------------------------------------

_ROWS = "PARAMETERS rule { id: INT }\nSELECT * FROM S FOR EACH rule WHERE (A ; B)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TEXT, False),
        ("SELECT * FROM S WHERE A : B", False),
        ("SELECT * FROM S WHERE NXT(A ; B) ; A", False),
        ("SELECT COLLAPSED * FROM S WHERE A ; B WITHIN 3 [ts]", False),
        ("SELECT TOTAL COUNT(*) AS n FROM S WHERE A ; B WITHIN 3 [ts]", False),
        ("SELECT * FROM S WHERE A ; B WITHIN 3 EVENTS", True),
        ("SELECT * FROM S WHERE WITHIN[3 EVENTS] (A ; B) ; A", True),
        ("SELECT * FROM S WHERE !A FOR 3 EVENTS ; B", True),
        ("SELECT * FROM S WHERE A ; !B FOR 3 EVENTS", True),
        (f"{_ROWS} FILTER A.id = rule.id WITHIN 3 [ts]", False),
        (f"{_ROWS} FILTER A.id = rule.id WITHIN 3 EVENTS", True),
    ],
)
def test_spark_shows_them_where_the_query_counts_events(text: str, shown: bool) -> None:
    query = _compiled(text, order_by="ts")
    assert query.plan.answer.positions
    assert query.program.on_spark.plan.answer.positions is shown
    for wanted in (True, False):
        chosen = query.with_options(positions=wanted)
        assert chosen.program.on_spark.plan.answer.positions is wanted
        assert chosen.program.on_spark.output_schema == chosen.output_schema


def test_without_an_order_nothing_is_left_out() -> None:
    """Without positions the row would have no column; no route of Spark runs such a query."""
    query = _compiled("SELECT NONE FROM S WHERE A ; B")
    assert query.program.on_spark.output_schema.names == ["start_pos", "end_pos"]


def test_a_module_can_ask_for_them() -> None:
    with interpreted():
        asked = celc.compile(DECLARATION + TEXT, positions=True)
        plain = celc.compile(DECLARATION + TEXT)
    assert "positions=True,\n    )" in asked.source
    assert "positions" not in plain.source
    assert (
        pickle.loads(pickle.dumps(only_query(asked))).program.on_spark.plan.answer.positions is True
    )
    changed = asked.with_options(positions=False)
    assert pickle.loads(pickle.dumps(changed)).program.on_spark.plan.answer.positions is False


def test_nobody_sees_the_positions_of_queries_that_are_read() -> None:
    text = """QUERY low: SELECT x.id AS id FROM S WHERE A AS x WITHIN 3 EVENTS
QUERY high: SELECT * FROM low, S WHERE low AS x ; B AS y WITHIN 3 [ts]"""
    with interpreted():
        query = celc.compile(DECLARATION + text, order_by="ts").queries["high"]
    assert query.plan.answer.positions
    assert [level.plan.answer.positions for level in query.program.levels] == [False]
    assert query.match_table(EVENTS).column("start_pos").to_pylist()
