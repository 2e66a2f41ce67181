"""Uncertain time on Spark: the cases by every way to run them, and many keys."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from celc_runtime import EventError
from conftest import long_over_connect
from engines import interpreted, only_query, table_of
from places import TESTS
from reference import difference
from spark_routes import Way, answers

import celc

_CASES = load_cases(folder=TESTS / "cases_uncertain")
_STREAM = """CREATE STREAM Readings UNCERTAIN [low, high] BY 1 {
  EVENT A { id: INT, value: DOUBLE, low: LONG, high: LONG },
  EVENT B { id: INT, value: DOUBLE, low: LONG, high: LONG }
}
"""


def _item(case: Case, spark: Any) -> tuple[Any, Any]:
    with interpreted():
        query = only_query(celc.compile(case.query, tiebreak="row"))
    rows = [{**event, "row": row} for row, event in enumerate(case.events)]
    return query, spark.createDataFrame(table_of(query.plan, rows))


def _problems(way: Way, cases: list[Case], spark: Any) -> list[str]:
    found = answers(way, [_item(case, spark) for case in cases])
    told = [(c.name, difference(one, c.expected)) for c, one in zip(cases, found, strict=True)]
    return [f"{name}: {wrong}" for name, wrong in told if wrong]


def test_a_choice_of_cases(spark: Any) -> None:
    chosen = [case for case in _CASES if case.expected][::9]
    assert len(chosen) >= 7
    assert not _problems("match", chosen, spark)


@long_over_connect
@pytest.mark.parametrize("way", ["sql", "arrow"])
def test_some_cases_by_every_way(way: str, spark: Any) -> None:
    assert not _problems(way, [case for case in _CASES if case.expected][4::20], spark)


@pytest.mark.long
@pytest.mark.parametrize("way", ["match", "sql", "arrow"])
def test_all_cases(way: str, spark: Any) -> None:
    for at in range(0, len(_CASES), 22):
        assert not _problems(way, _CASES[at : at + 22], spark)


def _readings(rng: random.Random, keys: int, events: int) -> pa.Table:
    low = [rng.randint(0, 4 * events // keys) for _ in range(events)]
    return pa.table(
        {
            "type": [rng.choice("AB") for _ in range(events)],
            "id": pa.array([rng.randint(1, keys) for _ in range(events)], pa.int32()),
            "value": [float(rng.randint(0, 3)) for _ in range(events)],
            "low": low,
            "high": [time + rng.randint(0, 3) for time in low],
            "row": range(events),
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A ; B PARTITION BY id WITHIN 8 [low] WITH CONFIDENCE > 0.4",
        "SELECT * WHERE A+ ; B PARTITION BY id WITHIN 5 [low]",
        "SELECT x, y, x.value + y.value AS s WHERE (A AS x ; B AS y) FILTER x.value < y.value "
        "WITHIN 3 [low]",
    ],
)
def test_many_keys_give_the_rows_of_a_table(text: str, spark: Any) -> None:
    query = only_query(celc.compile(_STREAM + text, tiebreak="row"))
    events = _readings(random.Random(7), 9, 180)
    wanted = query.match_table(events).to_pylist()
    assert wanted
    frame = spark.createDataFrame(events)
    found = query.match(frame).toArrow()
    assert found.schema.names == query.output_schema.names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted))
    whole = "the time of events is uncertain" in query.explain_plan(frame)
    assert whole or query.plan.partition_by


def test_a_stream_is_refused(spark: Any) -> None:
    query = only_query(celc.compile(_STREAM + "SELECT * WHERE A ; B WITHIN 8 [low]"))
    stream = spark.readStream.format("rate").load()
    with pytest.raises(EventError, match="uncertain"):
        query.match_stream(stream)


def test_a_wrong_row_is_named(spark: Any) -> None:
    query = only_query(celc.compile(_STREAM + "SELECT * WHERE A ; B"))
    events = pa.table(
        {"type": ["A"], "id": pa.array([1], pa.int32()), "value": [1.0], "low": [3], "high": [2]}
    )
    with pytest.raises(Exception, match="low 3 is after high 2 in row 0"):
        query.match(spark.createDataFrame(events)).collect()
