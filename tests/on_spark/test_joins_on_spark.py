"""Queries as joins of Spark: cases of the class, by `plan="joins"` and by the printed statement."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from cases_on_spark import matcher, problems_of
from celc_runtime.plan.joins import NotJoined
from celc_runtime.spark import joins
from conftest import long_over_connect
from engines import interpreted, only_query
from joined import SIGNS, events_table, signs_events, signs_query
from pyspark.sql import functions
from reference import check_answer
from spark_routes import answers, expected_form
from test_joins import trials
from test_random import Tally

import celc
from celc.interfaces.cli import main

_CHOSEN = (
    # ALL; an absence that is compared; equalities in a chain; UNLESS; rounds; windows; times.
    *("12-all/009", "14-not-between/009", "15-correlation/005", "19-correlated-negation/001"),
    *("22-quantifiers/008", "08-within/001", "24-local-windows/001", "23-time-conditions/028"),
)

_JOB = 40
"""Streams in one Spark job."""

_PAIR = (
    "CREATE STREAM S { EVENT A { v: DOUBLE, ts: TIMESTAMP }, EVENT B { v: DOUBLE, ts: TIMESTAMP } }"
    " SELECT * FROM S WHERE (A AS x ; B AS y) FILTER ABS(x.v - y.v) < 0.5 WITHIN 1 MINUTE [ts]"
)


def _of_the_class() -> list[Case]:
    found = []
    for case in load_cases():
        if case.ties is None and case.order_by in (None, ("ts",)):
            query = only_query(matcher(case.query, case.ties, case.at_end))
            if not query.program.joins.why_not:
                found.append(case)
    return found


def _by_joins(query: Any, frame: Any) -> Any:
    return query.match(frame, plan="joins")


def _by_statement(query: Any, frame: Any) -> Any:
    """What the command line prints, over a view of its own: over Connect the text is read later."""
    view = f"events_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(view)
    options = ["--order-by", *query.plan.source.order_by]
    if query.plan.source.tiebreak:
        options += ["--tiebreak", *query.plan.source.tiebreak]
    with TemporaryDirectory() as folder:
        source, statement = Path(folder, "q.cel"), Path(folder, "q.sql")
        source.write_bytes(query.text.encode())
        if query.program.positions:
            options.append("--positions")
        options += ["--at-end", query.plan.choice.at_end]
        arguments = ["--to", "spark-sql", "--table", view, *options, "-o", str(statement)]
        assert main(["compile", str(source), *arguments]) == 0
        text = statement.read_bytes().decode()
        return frame.sparkSession.sql(text.rstrip().removesuffix(";"))


@pytest.mark.parametrize("way", [_by_joins, _by_statement])
def test_some_cases(way: Any, spark: Any) -> None:
    place = (_by_joins, _by_statement).index(way)
    cases = [case for case in load_cases() if case.name in _CHOSEN][place::2]
    assert len(cases) == len(_CHOSEN) // 2
    problems = problems_of(cases, way, spark.createDataFrame)
    assert not problems, "\n".join(problems)


@pytest.mark.long
@pytest.mark.parametrize("way", [_by_joins, _by_statement])
def test_all_cases_of_the_class(way: Any, spark: Any) -> None:
    cases = _of_the_class()
    assert len(cases) > 300
    problems = problems_of(cases, way, spark.createDataFrame)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(20_000, 20_002), id="some"),
        pytest.param(range(21_000, 21_100), id="more", marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_random_queries(seeds: range, spark: Any) -> None:
    """Against the reference: one stream by `plan="joins"`, the next by the printed statement."""
    tally = Tally()
    drawn = [trial for seed in seeds for trial in trials(seed, tally)]
    assert len(tally.texts) >= max(1, len(seeds) // 5), tally
    for at in range(0, len(drawn), _JOB):
        items = [
            (
                query.with_options(positions=True),
                spark.createDataFrame(events_table(query, joined, events)),
            )
            for _, (query, joined), events, _ in drawn[at : at + _JOB]
        ]
        for way, place in ((_by_joins, 0), (_by_statement, 1)):
            part = drawn[at + place : at + _JOB : 2]
            for (text, (query, _), events, wanted), rows in zip(
                part, answers(way, items[place::2]), strict=True
            ):
                found = [expected_form(query, row) for row in rows]
                try:
                    check_answer(text, wanted, found)
                except AssertionError as problem:
                    raise AssertionError(f"{way.__name__}: {problem}\n{text}\n{events}") from None


def _events(spark: Any) -> Any:
    """Pairs within the band and outside it, over the border of a window, and odd numbers."""
    values = [0.1, 0.4, 0.9, float("nan"), float("inf"), -0.0, 0.0, 1e300, None, 0.6, 2.0**60]
    times = [
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=5 * n) for n in range(66)
    ]
    table = {
        "type": ["AB"[n % 2] for n in range(66)],
        "v": pa.array([values[(n // 2 + n % 2) % 11] for n in range(66)], pa.float64()),
        "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
    }
    return spark.createDataFrame(pa.table(table))


@long_over_connect
@pytest.mark.parametrize("positions", [True, False])
def test_a_band_over_the_borders_of_buckets(positions: bool, spark: Any) -> None:
    """The rows, names and types of `match`, each row as many times."""
    with interpreted():
        query = celc.compile(_PAIR).with_options(positions=positions)
    events = _events(spark)
    kernel, joined = query.match(events, plan="kernel"), query.match(events, plan="joins")
    assert joined.schema.simpleString() == kernel.schema.simpleString()
    rows = sorted(map(repr, joined.collect()))
    assert rows == sorted(map(repr, kernel.collect()))
    assert len(rows) >= 6


@long_over_connect
def test_a_band_of_an_absent_event(spark: Any) -> None:
    absent = "; !(A AS z FILTER ABS(z.v - x.v) <= 0.3 AND z.v >= x.v) ;"
    with interpreted():
        query, all_pairs = celc.compile(_PAIR.replace(";", absent)), celc.compile(_PAIR)
    events = _events(spark)
    rows = sorted(map(repr, query.match(events, plan="joins").collect()))
    assert rows == sorted(map(repr, query.match(events, plan="kernel").collect()))
    assert 0 < len(rows) < all_pairs.match(events, plan="joins").count()
    assert "z.band_of_z = x.band_of_z" in only_query(query).program.joins.found


_LATE = (
    "A AS x ; B AS y ; !(B AS z FILTER z.v > x.v) FOR 11 SECONDS",
    "A AS x ; B AS y ; !(B AS z FILTER ABS(z.v - x.v) < 0.4) FOR 3 EVENTS",
    "(A AS x ; B AS y) OR (A AS x ; !B)",
)


@long_over_connect
def test_absences_behind_a_match(spark: Any) -> None:
    """The rows, names and types of `match`, by the clock of all events and by another one, and
    without more events."""
    events = _events(spark).withColumn("k", functions.expr("minute(ts) % 4"))
    declared = _PAIR.partition(" SELECT")[0].replace("v: DOUBLE", "v: DOUBLE, k: INT")
    clock, counts = dt.datetime(2024, 1, 1, 0, 3, tzinfo=dt.UTC), []
    for late in _LATE:
        with interpreted():
            text = f"{declared} SELECT * WHERE {late} PARTITION BY k WITHIN 12 SECONDS [ts]"
            query = celc.compile(text)
        others = query.with_options(at_end="closed"), query.with_options(clock=clock)
        for one in (query, *others) if late == _LATE[0] else (query,):
            kernel, joined = one.match(events, plan="kernel"), one.match(events, plan="joins")
            assert joined.schema.simpleString() == kernel.schema.simpleString()
            rows = sorted(map(repr, joined.collect()))
            assert rows == sorted(map(repr, kernel.collect())), text
            counts.append(len(rows))
    assert counts[:3] == [22, 24, 11]
    assert all(counts)


@long_over_connect
@pytest.mark.parametrize("named", ["".join(SIGNS), "\0"], ids=["signs", "NUL"])
def test_texts_and_names_stand_in_a_statement_as_they_are(named: str, spark: Any) -> None:
    """Spark puts the values of variables into a statement before it reads it."""
    variables = ["${env:HOME}", "${system:user.home}", "${spark.app.name}", "${unknown}"]
    texts = [
        *(f"{sign}a{sign}b" for sign in (*SIGNS, "\0")),
        *variables,
        *map("\\{}".format, variables),
    ]
    with interpreted():
        query = only_query(celc.compile(signs_query(texts, named), order_by=["ts"], positions=True))
    events = spark.createDataFrame(pa.Table.from_pylist(signs_events(texts, named)))
    wanted = [2 * number for number in range(len(texts))]
    for way in (_by_joins, _by_statement):
        assert sorted(row.start_pos for row in way(query, events).collect()) == wanted, way


@long_over_connect
def test_a_name_with_a_variable_is_refused(spark: Any) -> None:
    with interpreted():
        query = celc.compile(signs_query(["a"], "${env:HOME}"), order_by=["ts"])
        by_time = celc.compile(_PAIR).with_options(order_by=["ts"], tiebreak=["${env:HOME}"])
    events = spark.createDataFrame(pa.Table.from_pylist(signs_events(["a"], "${env:HOME}")))
    for one in (query, by_time):
        with pytest.raises(NotJoined, match="Spark puts variables in the place of"):
            one.match(events, plan="joins")


@long_over_connect
def test_columns_of_other_types_are_converted(spark: Any) -> None:
    """A time without a zone is one of UTC, whatever the zone of the session."""
    with interpreted():
        query = celc.compile(_PAIR).with_options(positions=False)
    events = _events(spark).selectExpr("type", "CAST(v AS FLOAT) AS v", "ts")
    wide = events.selectExpr("type", "CAST(v AS DOUBLE) AS v", "ts")
    utc = "CAST(to_utc_timestamp(ts, current_timezone()) AS TIMESTAMP_NTZ) AS ts"
    zoneless = events.selectExpr("type", "v", utc)
    wanted = sorted(map(repr, query.match(wide, plan="kernel").collect()))
    assert sorted(map(repr, query.match(zoneless, plan="joins").collect())) == wanted


@long_over_connect
def test_what_has_no_certain_order_is_an_error(spark: Any) -> None:
    with interpreted():
        query = celc.compile(_PAIR)
    events = _events(spark)
    with pytest.raises(Exception, match="equal in the order, so none comes before the other: ts"):
        query.match(events.unionAll(events.limit(1)), plan="joins").collect()
    first = "TIMESTAMP '2024-01-01 00:00:00Z'"
    timeless = events.selectExpr("type", "v", f"nullif(ts, {first}) AS ts")
    with pytest.raises(Exception, match="the order column ts is NULL"):
        query.match(timeless, plan="joins").collect()
    unknown = events.selectExpr(f"if(ts = {first}, NULL, type) AS type", "v", "ts")
    with pytest.raises(Exception, match="the column type of event types is NULL"):
        query.match(unknown, plan="joins").collect()


@long_over_connect
def test_the_choice_between_both_ways(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the condition, the keys, the source and the number of events in a window."""
    _events(spark).write.parquet(str(tmp_path / "events"))
    files = spark.read.parquet(str(tmp_path / "events"))
    with interpreted():
        query = celc.compile(_PAIR)
        either = celc.compile(_PAIR.replace(";", "ALL"))
        of_events = celc.compile(re.sub("WITHIN .*", "WITHIN 8 EVENTS", _PAIR), order_by="ts")
        no_band = celc.compile(_PAIR.replace("ABS(x.v - y.v) < 0.5", "x.v < y.v"))
        keyed = celc.compile(_PAIR.replace("FILTER", "FILTER x.v = y.v AND"))
        # The key ties x and w, and the band x and y.
        apart = celc.compile(
            _PAIR.replace("; B", "; B AS w ; B").replace(" WITHIN", " AND x.v = w.v WITHIN")
        )
    assert "its own code compares the pairs of hardly more than" in query.explain_plan(files)
    monkeypatch.setattr(joins, "_FEW_COMPARED", 1)
    few = query.explain_plan(files)
    # 33 events of either type in 325 seconds; with ALL, each with those of the minute after it too.
    assert "its own code compares about 201 pairs of 66 events, which are few" in few
    assert "about 402 pairs of 66 events" in either.explain_plan(files)
    assert "about 132 pairs of 66 events" in of_events.explain_plan(files)
    assert "keeps two events in a narrow band" in no_band.explain_plan(files)
    monkeypatch.setattr(joins, "_FEW_COMPARED", 100)
    monkeypatch.setattr(joins, "_FEW_FOR_EACH", 1)
    assert "plan: joins of Spark, without Python, because a condition" in query.explain_plan(files)
    assert "plan='kernel' was asked for" in query.explain_plan(files, plan="kernel")
    assert "equal keys tie the events in a narrow band" in keyed.explain_plan(files)
    assert "plan: joins of Spark" in apart.explain_plan(files)
    assert "ranges and presorted say how" in query.explain_plan(files, ranges=1)
    shuffled = query.explain_plan(files.repartition(2))
    assert "(to see how many events a window has)" in shuffled


def test_wrong_calls(spark: Any) -> None:
    events = _events(spark)
    with interpreted():
        query = celc.compile(_PAIR)
        rounds = celc.compile(_PAIR.replace("B AS y", "(B AS y)+"))
    with pytest.raises(NotJoined, match=r"matches of any number of events \(line 1\)"):
        rounds.match(events, plan="joins")
    with pytest.raises(ValueError, match="plan must be one of 'auto', 'kernel', 'joins'"):
        query.match(events, plan="hash")
    with pytest.raises(ValueError, match="leave out ranges and presorted"):
        query.match(events, plan="joins", ranges=2)
