"""Uncertain time on Spark: the cases by every way to run them, and many keys."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from celc_runtime import CompiledQuery, EventError
from conftest import long_over_connect
from engines import as_on_spark, interpreted, only_query, table_of
from places import CASES
from reference import difference
from spark_routes import Way, answers, expected_form, told
from stream_routes import SETTINGS, files, run, settings, together, write_files
from streams_by_hand import instant
from uncertain_answers import FIRST, UNTIL, has_absence, in_numbers, on_a_clock, rows_on_a_clock

import celc

_ALL = load_cases(folder=CASES / "uncertain")
_CASES = [case for case in _ALL if not case.run_error]
_STREAM = """CREATE STREAM Readings UNCERTAIN [low, high] BY 1 {
  EVENT A { id: INT, value: DOUBLE, low: LONG, high: LONG },
  EVENT B { id: INT, value: DOUBLE, low: LONG, high: LONG }
}
"""


def _item(case: Case, spark: Any) -> tuple[Any, Any]:
    with interpreted():
        query = only_query(celc.compile(case.query, tiebreak="row"))
    return query, spark.createDataFrame(_table(query, case))


def _table(query: CompiledQuery, case: Case) -> pa.Table:
    rows = [{**event, "row": row} for row, event in enumerate(case.events)]
    return table_of(query.plan, rows)


def _problems(way: Way, cases: list[Case], spark: Any) -> list[str]:
    items = [_item(case, spark) for case in cases]
    found = answers(way, items)
    return [
        f"{case.name}: {wrong}"
        for case, (query, _), rows in zip(cases, items, found, strict=True)
        if (wrong := told(query, _table(query, case), rows, case.expected))
    ]


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
    wanted = as_on_spark(query).match_table(events)
    assert len(wanted)
    frame = spark.createDataFrame(events)
    found = query.match(frame).toArrow()
    assert found.column_names == wanted.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
    whole = "the time of events is uncertain" in query.explain_plan(frame)
    assert whole or query.plan.source.partition_by


# --- streams --------------------------------------------------------------------------------------

_SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "id": pa.int32(),
        "value": pa.float64(),
        "name": pa.string(),
        "w": pa.list_(pa.float64()),
        "low": pa.int64(),
        "high": pa.int64(),
        FIRST: pa.timestamp("us", "UTC"),
        UNTIL: pa.timestamp("us", "UTC"),
        "row": pa.int64(),
        "asked": pa.int32(),
    }
)
_DELAY = 1000
"""Milliseconds: all least times of the cases are nearer to one another."""


def _file(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in _SCHEMA})


def _problems_of_streams(cases: list[Case], spark: Any, folder: Path, *, pieces: int) -> list[str]:
    """What is wrong with the answers of cases as streams, which are one of Spark's.

    pieces: the files that their events are dealt into; each is a micro-batch.
    """
    queries = [on_a_clock(case.query, f"q{number}") for number, case in enumerate(cases)]
    # The numbers of the cases come out of them as positions and times alone.
    queries = [query.with_options(positions=True) for query in queries]
    rng = random.Random(len(cases))
    dealt: list[list[dict[str, Any]]] = [[] for _ in range(pieces)]
    for number, case in enumerate(cases):
        for row in rows_on_a_clock(case.events, ("low", "high")):
            rng.choice(dealt).append({**row, "asked": number})
    # The watermark follows the last event, and passes all others.
    end = {"type": "A", FIRST: instant(10**9), UNTIL: instant(10**9), "row": -1, "w": [1.0]}
    write_files(folder / "in", [_file(rows) for rows in [*dealt, [end]] if rows])
    with settings(spark, SETTINGS):
        frame = files(spark, folder / "in")
        streams = {
            str(number): query.match_stream(
                frame.where(f"asked = {number} OR asked IS NULL"),
                watermark=f"{_DELAY} milliseconds",
                allow_unbounded_state=True,
            )
            for number, query in enumerate(queries)
        }
        run(together(streams), folder)
    answers: dict[int, list[dict[str, Any]]] = {}
    for row in spark.read.parquet(str(folder / "out")).collect():
        number = int(row.stream)
        found = expected_form(queries[number], json.loads(row.json))
        answers.setdefault(number, []).append(in_numbers(found))
    told = [
        (case.name, difference(answers.get(number, []), case.expected))
        for number, case in enumerate(cases)
    ]
    return [f"{name}: {wrong}" for name, wrong in told if wrong]


def _cases_of_streams() -> list[Case]:
    return [
        case for case in _CASES if ": TIMESTAMP" not in case.query and not has_absence(case.query)
    ]


@pytest.mark.long
def test_some_cases_as_streams(spark: Any, tmp_path: Path) -> None:
    chosen = [case for case in _cases_of_streams() if case.expected][::56]
    assert chosen
    assert not _problems_of_streams(chosen, spark, tmp_path, pieces=2)


@pytest.mark.long
def test_all_cases_as_streams(spark: Any, tmp_path: Path) -> None:
    cases = _cases_of_streams()
    for at in range(0, len(cases), 10):
        problems = _problems_of_streams(cases[at : at + 10], spark, tmp_path / str(at), pieces=4)
        assert not problems


def test_whole_numbers_are_no_time_of_a_stream(spark: Any) -> None:
    query = only_query(celc.compile(_STREAM + "SELECT * WHERE A ; B WITHIN 8 [low]"))
    stream = (
        spark.readStream.format("rate")
        .load()
        .selectExpr("'A' AS type", "1 AS id", "1.0D AS value", "value AS low", "value AS high")
    )
    with pytest.raises(EventError, match=r"'low'.* LONG: a watermark needs a TIMESTAMP"):
        query.match_stream(stream, watermark="1 second")


def test_a_wrong_row_is_named(spark: Any) -> None:
    query = only_query(celc.compile(_STREAM + "SELECT * WHERE A ; B"))
    events = pa.table(
        {"type": ["A"], "id": pa.array([1], pa.int32()), "value": [1.0], "low": [3], "high": [2]}
    )
    with pytest.raises(Exception, match="low 3 is after high 2 in row 0"):
        query.match(spark.createDataFrame(events)).collect()


def test_wrong_weights_are_named(spark: Any) -> None:
    case = next(case for case in _ALL if case.run_error)
    query, frame = _item(case, spark)
    with pytest.raises(Exception, match=r"'w' has 1 weights, .* in row 0"):
        query.match(frame).collect()


def test_an_absence_is_refused_on_a_stream(spark: Any) -> None:
    query = on_a_clock(_STREAM + "SELECT * WHERE A ; !B ; A WITHIN 8 [low]")
    stream = (
        spark.readStream.format("rate")
        .load()
        .selectExpr(
            *("'A' AS type", "1 AS id", "1.0D AS value", "value AS low", "value AS high"),
            *("value AS row", f"timestamp AS {FIRST}", f"timestamp AS {UNTIL}"),
        )
    )
    with pytest.raises(
        EventError, match="an event that comes later can be one that must be absent"
    ):
        query.match_stream(stream, watermark="1 second")
