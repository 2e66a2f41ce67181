"""Matches that travel to Spark together, and come out of their rows again as they were listed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventWarning
from celc_runtime.program import Program
from celc_runtime.run.run import Run
from celc_runtime.run.run_of import run_of
from celc_runtime.run.walk import many_matches
from celc_runtime.spark.answers import factorised
from celc_runtime.spark.answers.factorised import (
    factorised_run,
    factors_of,
)
from celc_runtime.spark.answers.single_labels import with_single_fields
from engines import interpreted, only_query, table_of

import celc

_STREAM = (
    "CREATE STREAM S { EVENT A { id: LONG, ts: LONG }, EVENT B { id: LONG, ts: LONG }, "
    "EVENT C { id: LONG, ts: LONG } } "
)

_FIXED = (
    "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 9 [ts]",
    "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 20 [ts]",
    "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c ; B AS d WITHIN 12 [ts]",
    "SELECT * FROM S WHERE A AS a ; !B ; A AS b ; C AS c WITHIN 20 [ts]",
    "SELECT a, x FROM S WHERE A AS a ; (B AS b ; C AS c) AS x ; A AS d WITHIN 20 [ts]",
    "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c PARTITION BY id WITHIN 30 [ts]",
    "SELECT FIRST * FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 20 [ts]",
    "SELECT * FROM S WHERE A AS a ; (B AS b OR C AS c FILTER c.id = 1 AND c.id = 2) ; "
    "C AS d WITHIN 20 [ts]",
    "SELECT * FROM S WHERE (A AS a OR C AS c FILTER c.id = 1 AND c.id = 2) ; B AS b WITHIN 9 [ts]",
    "SELECT * FROM S WHERE A AS a ; (B AS b){2} ; C AS x ; A AS x WITHIN 20 [ts]",
    "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c FILTER b.id > 1 WITHIN 40 EVENTS",
)

_ONE_BY_ONE = {
    "a first event in a longer list": "SELECT * FROM S WHERE (A AS a){2} ; B AS b WITHIN 9 [ts]",
    "an expression": "SELECT a, COUNT(b) AS n FROM S WHERE A AS a ; B AS b WITHIN 9 [ts]",
    "more than one shape": "SELECT * FROM S WHERE A AS a ; (B AS b)+ WITHIN 9 [ts]",
    "a label that is left out": "SELECT a, c FROM S WHERE A AS a ; B ; C AS c WITHIN 9 [ts]",
    "one event": "SELECT * FROM S WHERE A AS a",
    "a limit": "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 9 [ts] LIMIT 2",
    "a choice by starts": "SELECT LONGEST * FROM S WHERE A AS a ; B AS b WITHIN 9 [ts]",
    "an absence at the end": "SELECT * FROM S WHERE A AS a ; B AS b ; !C WITHIN 9 [ts]",
    "totals": "SELECT TOTAL COUNT(*) AS n FROM S WHERE A AS a ; B AS b WITHIN 9 [ts]",
    "one row for all": "SELECT COLLAPSED * FROM S WHERE A AS a ; B AS b WITHIN 9 [ts]",
}


def _query(text: str) -> Any:
    with interpreted():
        return only_query(celc.compile(_STREAM + text, order_by="ts"))


def _listed(run: Run, events: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    for batch in events.to_batches(max_chunksize=size):
        yield from run.push(batch)
    yield from run.rest()


def _taken_apart(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The matches of a row, as Spark makes them by inline and explode."""
    firsts = row["firsts"]
    shown = {name: value for name, value in row.items() if name.startswith("column_")}
    for run in row.get("runs", [{"first_place": 0, "last_place": len(firsts) - 1}]):
        of_run = {name: value for name, value in run.items() if name.startswith("column_")}
        assert 0 <= run["first_place"] <= run["last_place"] < len(firsts)
        for first in firsts[run["first_place"] : run["last_place"] + 1]:
            yield {**shown, **of_run, **first}


def _both(program: Program, events: pa.Table, size: int) -> tuple[list[Any], list[Any], list[Any]]:
    """The matches as a run lists them, those out of the rows, and the rows."""
    listed = [
        match
        for batch in _listed(run_of(program), events, size)
        for match in with_single_fields(program.plan, batch).to_pylist()
    ]
    rows = [
        row for batch in _listed(factorised_run(program), events, size) for row in batch.to_pylist()
    ]
    return listed, [match for row in rows for match in _taken_apart(row)], rows


def _events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    kinds = [rng.choice("ABC") for _ in range(count)]
    return [{"type": kind, "id": rng.randrange(3), "ts": ts} for ts, kind in enumerate(kinds)]


@pytest.mark.each(8, values=False)
@pytest.mark.parametrize("text", _FIXED)
@pytest.mark.parametrize("most", [1, 3, 4096])
def test_matches_come_out_of_their_rows_as_they_were_listed(
    text: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factorised, "_MOST_MATCHES", most)
    monkeypatch.setattr(factorised, "_LISTED_EVENTS", 7 * most)
    monkeypatch.setattr(factorised, "_LISTED_RUNS", 2 * most)
    query, rng = _query(text), random.Random(text + str(most))
    events = _events(rng, 90)
    if query.plan.source.partition_by:
        events.sort(key=lambda event: (event["id"], event["ts"]))
    for size in (17, 90):
        program = query.program
        listed, found, rows = _both(program, table_of(query.plan, events), size)
        assert len(listed) > 20
        assert found == listed
        assert max(len(list(_taken_apart(row))) for row in rows) <= most


@pytest.mark.each(3)
@pytest.mark.parametrize("text", _FIXED[:6])
def test_first_events_move_when_listed_runs_are_taken(text: str) -> None:
    """More of them than there is room for at first, in one batch; the rows have them all."""
    query, rng = _query(text), random.Random(4)
    events = _events(rng, 9_000)
    if query.plan.source.partition_by:
        events.sort(key=lambda event: (event["id"], event["ts"]))
    listed, found, _ = _both(query.program, table_of(query.plan, events), len(events))
    assert len(listed) > 3_000
    assert found == listed


def test_matches_of_runs_are_counted_before_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_matches, "MOST_MATCHES", 50)
    query = _query(_FIXED[1].replace("20 [ts]", "900 [ts]"))
    for count, warns in ((10, False), (11, True)):  # 5 × 10 and 5 × 11 matches of one event
        kinds = "A" * 5 + "B" * count + "C"
        events = [{"type": kind, "id": 0, "ts": ts} for ts, kind in enumerate(kinds)]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            list(_listed(factorised_run(query.program), table_of(query.plan, events), 99))
        assert [type(one.message) for one in told] == [EventWarning] * warns


@pytest.mark.parametrize("text", _ONE_BY_ONE.values(), ids=_ONE_BY_ONE.keys())
def test_which_matches_travel_one_by_one(text: str) -> None:
    assert factors_of(_query(text).program) is None


def _chain(rng: random.Random) -> str:
    """A query whose matches have one shape: events one after another, with conditions, absences,
    and labels for some of them together."""
    parts, labels = [], "abcd"[: rng.randrange(2, 5)]
    for label in labels:
        part = f"{rng.choice('ABC')} AS {label}"
        if rng.random() < 0.3:
            part = f"({part} FILTER {label}.id {rng.choice(['> 0', '< 2', '= 1'])})"
        parts.append(part)
        if rng.random() < 0.2 and label != labels[-1]:
            parts.append(f"!{rng.choice('ABC')}")
    if len(parts) > 2 and rng.random() < 0.3 and "!" not in parts[-2]:
        parts[-2:] = [f"({parts[-2]} ; {parts[-1]}) AS x"]
    key = rng.choice(["", "PARTITION BY id "])
    window = rng.choice(["12 [ts]", "30 [ts]", "9 EVENTS"])
    return f"SELECT * FROM S WHERE {' ; '.join(parts)} {key}WITHIN {window}"


@pytest.mark.each(3)
@pytest.mark.parametrize("seed", range(3))
def test_random_chains(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, together, matches = random.Random(seed), 0, 0
    for _ in range(25):
        query = _query(_chain(rng))
        if factors_of(query.program) is None:
            continue
        monkeypatch.setattr(factorised, "_MOST_MATCHES", rng.choice([2, 5, 4096]))
        monkeypatch.setattr(factorised, "_LISTED_EVENTS", rng.choice([9, 60, 3 << 18]))
        monkeypatch.setattr(factorised, "_LISTED_RUNS", rng.choice([1, 7, 1 << 15]))
        events = _events(rng, 60)
        if query.plan.source.partition_by:
            events.sort(key=lambda event: (event["id"], event["ts"]))
        listed, found, rows = _both(
            query.program, table_of(query.plan, events), rng.choice([7, 60])
        )
        assert found == listed, query.text
        assert sum(len(row["firsts"]) for row in rows) <= len(listed), query.text
        together, matches = together + 1, matches + len(listed)
    assert together > 15
    assert matches > 500


_FIELDS = "k: STRING, t: TIMESTAMP, d: DATE, w: INTERVAL, f: FLOAT, v: INT"
_TYPED = f"CREATE STREAM S {{ {', '.join(f'EVENT {kind} {{ {_FIELDS} }}' for kind in 'ABC')} }} "


def _typed_events(spark: Any, count: int) -> Any:
    """Events of all types of columns, with NULLs: as many A, then as many B, and two C, each
    minute one."""
    return spark.range(2 * count + 2).selectExpr(
        f"CASE WHEN id < {count} THEN 'A' WHEN id < {2 * count} THEN 'B' ELSE 'C' END AS type",
        "CAST(id % 2 AS STRING) AS k",
        "timestamp_seconds(60 * id) AS t",
        "IF(id % 5 = 0, NULL, date_from_unix_date(CAST(id AS INT))) AS d",
        "IF(id % 7 = 0, NULL, make_dt_interval(0, 0, 0, id)) AS w",
        "IF(id % 3 = 0, NULL, CAST(id / 3 AS FLOAT)) AS f",
        "IF(id % 4 = 0, NULL, CAST(id AS INT)) AS v",
    )


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("formula", "key", "positions"),
    [
        ("A AS a ; C AS c", "", True),
        ("A AS a ; C AS c", "PARTITION BY k ", False),
        ("A AS a ; B AS b ; C AS c", "", False),
        ("A AS a ; B AS b ; C AS c", "PARTITION BY k ", True),
    ],
)
def test_spark_makes_the_matches_of_their_rows(
    formula: str, key: str, positions: bool, spark: Any
) -> None:
    """Thousands of matches of one event, of every type of columns."""
    text = f"SELECT * FROM S WHERE {formula} {key}WITHIN 9 HOURS [t]"
    with interpreted():
        query = only_query(celc.compile(_TYPED + text, order_by="t"))
    query = query.with_options(positions=positions)
    frame = _typed_events(spark, 70)
    found = query.match(frame)
    expected = query.match_table(frame.toArrow())
    assert factors_of(query.program) is not None
    assert len(expected) >= (35 if key else 70) * (70 if "B" in formula else 1)
    assert found.schema == spark.createDataFrame([], query.output_ddl).schema

    def rows(table: pa.Table) -> list[dict[str, Any]]:
        return sorted(table.to_pylist(), key=repr)

    assert rows(found.toArrow()) == rows(expected.cast(found.toArrow().schema))
    assert found.limit(7).count() == 7
    assert found.where("c[0].v IS NULL").count() + found.where("c[0].v > 0").count() == len(
        expected
    )
    counts = dict(found.groupBy("end_time").count().collect())
    assert sum(counts.values()) == len(expected)
