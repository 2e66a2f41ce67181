"""FOR EACH on Spark: tables of rules in all forms, and every plan that `match` makes."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cases_io import Case, load_cases
from cases_on_spark import matcher
from celc_runtime import CompiledQuery, EventError, finish
from celc_runtime.plan.errors import StateError
from celc_runtime.plan.relevance import AttributeTest, Relevant
from celc_runtime.spark.input import parameters as parameters_on_spark
from celc_runtime.spark.input.pushdown import can_matter
from conftest import ON_SPARK, long_over_connect
from engines import as_on_spark, only_query
from parameters import answer_for_each, rows_table
from places import CASES
from reference import difference
from shares import share
from spark_routes import json_rows, table
from stream_routes import SETTINGS, START, files, run, settings, write_files

import celc

_STREAM = """CREATE STREAM Quotes {
  EVENT Q { ts: LONG, symbol: STRING, price: DOUBLE, venue: INT }
}
PARAMETERS rule { id: LONG, symbol: STRING, low: DOUBLE, factor: DOUBLE }
"""
_RISES = (
    "SELECT a, b FROM Quotes FOR EACH rule WHERE (Q AS a ; Q AS b) FILTER a.symbol = rule.symbol "
    "AND b.symbol = rule.symbol AND b.price > rule.factor * a.price AND a.price >= rule.low"
)


def _quotes(count: int = 240) -> pa.Table:
    numbers = range(count)
    return pa.table(
        {
            "ts": pa.array(numbers, pa.int64()),
            "symbol": pa.array([f"S{number * 7 % 11 % 5}" for number in numbers]),
            "price": pa.array([float(number * 13 % 17) for number in numbers]),
            "venue": pa.array([number % 3 for number in numbers], pa.int32()),
        }
    )


def _rules() -> pa.Table:
    return pa.table(
        {
            "id": pa.array([0, 1, 2, 3, 1, 4], pa.int64()),
            "symbol": pa.array(["S0", "S1", None, "S3", "S1", "S9"]),
            "low": pa.array([0.0, 5.0, 0.0, 2.0, 5.0, 0.0]),
            "factor": pa.array([2.0, 1.5, 1.0, None, 1.5, 1.0]),
        }
    )


def _query(text: str, **options: Any) -> CompiledQuery:
    return only_query(celc.compile(_STREAM + text, order_by="ts", **options))


def _rows(frame: Any) -> list[str]:
    return sorted(map(repr, frame.toArrow().to_pylist()))


def _wanted(query: CompiledQuery, rules: Any) -> list[str]:
    found = as_on_spark(query).match_table(_quotes(), rule=rules).to_pylist()
    assert found
    return sorted(map(repr, found))


_PLANS = [
    f"{_RISES} WITHIN 20 [ts]",
    f"{_RISES} WITHIN 15 EVENTS",
    f"{_RISES} PARTITION BY venue WITHIN 30 [ts]",
    f"{_RISES} PARTITION BY venue WITHIN 30 [ts] CONSUME BY ANY",
    f"{_RISES} WITHIN 20 [ts] CONSUME BY PARTITION",
    f"{_RISES.replace('SELECT', 'SELECT LAST')} PARTITION BY symbol WITHIN 50 [ts]",
    "SELECT TOTAL COUNT(*) AS n, SUM(a.price) * rule.factor AS s FROM Quotes FOR EACH rule "
    f"{_RISES[_RISES.index('WHERE'):]} PARTITION BY venue WITHIN 30 [ts] HAVING n > rule.id",
    "SELECT COLLAPSED * FROM Quotes FOR EACH rule "
    f"{_RISES[_RISES.index('WHERE'):]} WITHIN 20 [ts]",
]


@pytest.mark.parametrize("text", share(_PLANS, 3 if ON_SPARK == "classic" else len(_PLANS)))
def test_every_plan_gives_the_rows_of_a_table(text: str, spark: Any) -> None:
    query, rules = _query(text), _rules()
    wanted = _wanted(query, rules)
    frame = spark.createDataFrame(_quotes())
    assert _rows(query.match(frame, rule=rules)) == wanted
    # Time ranges, where the query can be cut, and hot keys.
    assert _rows(query.match(frame, rule=rules, ranges=3)) == wanted


@long_over_connect
def test_ranges_and_positions_are_explained(spark: Any) -> None:
    query = _query(f"{_RISES} WITHIN 20 [ts]")
    frame = spark.createDataFrame(_quotes())
    shown = query.explain_plan(frame, rule=_rules(), ranges=3)
    assert "3 time ranges" in shown
    assert "parameters: 5 rows of 'rule' are sent to each task" in shown
    asked = query.with_options(positions=True)
    assert "3 time ranges" in asked.explain_plan(frame, rule=_rules(), ranges=3)
    assert _rows(asked.match(frame, rule=_rules(), ranges=3)) == _wanted(asked, _rules())


@long_over_connect
@pytest.mark.parametrize("text", share(_PLANS, 4))
def test_rows_of_no_rule_stay_in_spark(text: str, spark: Any) -> None:
    """Without positions they are filtered before the shuffle, but for windows of EVENTS."""
    query, rules = _query(text), _rules()
    frame = spark.createDataFrame(_quotes())
    assert _rows(query.match(frame, rule=rules)) == _wanted(query, rules)
    assert not _rows(query.match(frame, rule=rules.slice(0, 0)))
    filtered = "rows: those that can change nothing are filtered before they are moved"
    assert (filtered in query.explain_plan(frame, rule=rules)) == ("EVENTS" not in text)


@long_over_connect
def test_rows_of_no_rule_are_numbered_and_left_out(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, rules = _query(f"{_RISES} WITHIN 20 [ts]", positions=True), _rules()
    frame = spark.createDataFrame(_quotes())
    numbered = "numbers the sorted rows, and keeps those that can matter"
    assert numbered in query.explain_plan(frame, rule=rules)
    monkeypatch.setattr(parameters_on_spark, "MOST_VALUES", 2)
    assert numbered not in query.explain_plan(frame, rule=rules)
    assert _rows(query.match(frame, rule=rules)) == _wanted(query, rules)


@long_over_connect
def test_many_values_are_asked_for_before_rows_are_moved(spark: Any) -> None:
    """In one text of SQL, but for values that settings of a session could read differently."""
    query = _query(f"{_RISES} WITHIN 20 [ts]")
    odd = ["it's", "back\\slash", "two\nlines", "ü – 株", "", "\\u0041", "r'x'", "${env:HOME}", "$"]
    symbols = [f"symbol {number}" for number in range(3000)] + odd
    rules = pa.table(
        {
            "id": pa.array(range(len(symbols)), pa.int64()),
            "symbol": pa.array(symbols),
            "low": pa.array([0.0] * len(symbols)),
            "factor": pa.array([1.0] * len(symbols)),
        }
    )
    rules = pa.concat_tables([rules, _rules()])
    quotes = _quotes()
    names = pa.array(
        [
            odd[row % len(odd)] if row % 3 else one
            for row, one in enumerate(quotes["symbol"].to_pylist())
        ]
    )
    quotes = quotes.set_column(quotes.schema.get_field_index("symbol"), "symbol", names)
    wanted = as_on_spark(query).match_table(quotes, rule=rules).to_pylist()
    wanted = sorted(map(repr, wanted))
    assert len(wanted) > 20
    frame = spark.createDataFrame(quotes)
    filtered = "rows: those that can change nothing are filtered before they are moved"
    assert filtered in query.explain_plan(frame, rule=rules)
    found = query.match(frame, rule=rules).toArrow().to_pylist()
    assert sorted(map(repr, found)) == wanted


@pytest.mark.parametrize("type", share(["STRING", "LONG", "INT"], 3, first=1))
@long_over_connect
def test_very_many_values_are_looked_up_by_their_hashes(type: str, spark: Any) -> None:
    arrow = {"STRING": pa.string(), "LONG": pa.int64(), "INT": pa.int32()}[type]
    text = (
        f"CREATE STREAM S {{ EVENT A {{ key: {type}, ts: LONG }}, "
        f"EVENT B {{ key: {type}, ts: LONG }} }} PARAMETERS rule {{ key: {type} }} "
        "SELECT a, b FROM S FOR EACH rule WHERE (A AS a ; B AS b) "
        "FILTER a.key = rule.key AND b.key = rule.key WITHIN 50 [ts]"
    )
    query = only_query(celc.compile(text, order_by="ts"))
    rng = np.random.default_rng(5)

    def values(numbers: Any) -> pa.Array:
        return pa.array([f"'é${n}" for n in numbers] if type == "STRING" else numbers, arrow)

    rules = pa.table({"key": values([-1, *range(0, 60_000, 2)])})
    keys = rng.choice([-1, 0, 1, 2, 3, 59_998, 59_999, 70_000, 70_001], 300)
    events = pa.table(
        {"type": rng.choice(["A", "B"], 300), "key": values(keys), "ts": np.arange(300)}
    )
    events = events.set_column(
        1, "key", pc.if_else(pa.array(rng.random(300) < 0.1), None, events["key"])
    )
    wanted = as_on_spark(query).match_table(events, rule=rules).to_pylist()
    wanted = sorted(map(repr, wanted))
    assert len(wanted) > 100
    frame = spark.createDataFrame(events)
    filtered = "rows: those that can change nothing are filtered before they are moved"
    assert filtered in query.explain_plan(frame, rule=rules)
    found = query.match(frame, rule=rules)
    assert sorted(map(repr, found.toArrow().to_pylist())) == wanted
    # Of other keys a part passes, of those of the rules all.
    probably = AttributeTest("in", "key", type, tuple(rules["key"].to_pylist()))
    schema = frame.schema
    relevant = Relevant("S", "A", (((probably,),),))
    plan = replace(
        query.plan,
        source=replace(query.plan.source, relevant=(relevant, replace(relevant, type="B"))),
    )
    many = spark.createDataFrame(
        pa.table({"type": ["A"] * 9000, "key": values(range(60_001, 69_001)), "ts": range(9000)})
    )
    passing = many.where(can_matter(plan, schema)).count()
    assert 0 < passing < 0.45 * 9000


def test_a_table_of_parameters_has_any_form(spark: Any) -> None:
    query = _query(f"{_RISES} PARTITION BY venue WITHIN 30 [ts]")
    wanted = _wanted(query, _rules())
    frame = spark.createDataFrame(_quotes())
    for rules in (spark.createDataFrame(_rules()), _rules().to_pandas()):
        assert _rows(query.match(frame, rule=rules)) == wanted
    assert not _rows(query.match(frame, rule=spark.createDataFrame(_rules()).limit(0)))


def test_large_tables_are_sent(spark: Any) -> None:
    query = _query(f"{_RISES} WITHIN 20 [ts]")
    count = 60_000
    rules = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "symbol": pa.array([f"other symbol {number}" for number in range(count)]),
            "low": pa.array([0.0] * count),
            "factor": pa.array([1.0] * count),
        }
    )
    assert rules.nbytes > 2 << 20
    rules = pa.concat_tables([rules, _rules()])
    wanted = _wanted(query, _rules())
    assert _rows(query.match(spark.createDataFrame(_quotes()), rule=rules)) == wanted


@pytest.mark.long
def test_a_stream_gives_the_rows_of_a_table(spark: Any, tmp_path: Path) -> None:
    stream = _STREAM.replace("ts: LONG", "ts: TIMESTAMP")
    text = f"{_RISES} PARTITION BY venue WITHIN 30 SECONDS"
    query = only_query(celc.compile(stream + text, order_by="ts"))
    seconds = [START + dt.timedelta(seconds=number) for number in range(240)]
    quotes = _quotes().set_column(0, "ts", pa.array(seconds, pa.timestamp("us", "UTC")))
    # Larger than what Spark sends with a function: it becomes a broadcast.
    count = 40_000
    others = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "symbol": [f"other symbol {number}" for number in range(count)],
            "low": [0.0] * count,
            "factor": [1.0] * count,
        }
    )
    rules = pa.concat_tables([others, _rules()])
    assert rules.nbytes > 1 << 20
    wanted = as_on_spark(query).match_table(quotes, rule=_rules())
    assert len(wanted) > 20
    write_files(tmp_path / "in", [quotes.slice(at, 80) for at in range(0, 240, 80)])
    with settings(spark, SETTINGS):
        frame = files(spark, tmp_path / "in")
        assert "buckets: 4 of rows of 'rule' and the keys of venue" in query.explain_plan(
            frame, rule=rules
        )
        found = query.match_stream(frame, watermark="1 second", rule=rules)
        run(found, tmp_path)
        rest: list[Any] = []
        finish(
            spark, str(tmp_path / "checkpoint"), found, lambda rows, _: rest.append(rows.toArrow())
        )
        there = spark.read.parquet(str(tmp_path / "out")).toArrow()
        both = spark.createDataFrame(pa.concat_tables([there, *rest]))
        assert _rows(both) == _rows(spark.createDataFrame(wanted))
        with pytest.raises(StateError, match=r"ended by finish|another table"):
            query.match_stream(frame, checkpoint=str(tmp_path / "checkpoint"), rule=rules.slice(1))


def test_what_does_not_fit_is_an_error(spark: Any) -> None:
    query = _query(f"{_RISES} WITHIN 20 [ts]")
    frame, rules = spark.createDataFrame(_quotes(5)), spark.createDataFrame(_rules())
    with pytest.raises(TypeError, match=r"is FOR EACH rule: give a table of its rows"):
        query.match(frame)
    with pytest.raises(TypeError, match=r"takes no argument 'rules': its parameter set is 'rule'"):
        query.match(frame, rules=rules)
    with pytest.raises(EventError, match=r"parameters 'rule': .*'factor'"):
        query.match(frame, rule=rules.drop("factor"))
    with pytest.raises(EventError, match=r"parameters 'rule': .*'low' as DOUBLE"):
        query.match(frame, rule=rules.withColumn("low", rules.symbol))
    with pytest.raises(EventError, match="a stream, but its rows are fixed"):
        query.match(frame, rule=spark.readStream.format("rate").load())
    plain = _query("SELECT * FROM Quotes WHERE Q")
    with pytest.raises(TypeError, match="takes no argument 'rule': it has no parameter set"):
        plain.match(frame, rule=rules)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(TypeError, match=r"is FOR EACH rule: give a table of its rows"):
        query.match_stream(stream)
    with pytest.raises((TypeError, RuntimeError), match=r"FOR EACH rule|PySpark 4\.1"):
        query.register(spark)


@long_over_connect
def test_cases(spark: Any) -> None:
    """Cases in one job."""
    step = 4 if ON_SPARK == "classic" else 8
    cases = [case for case in load_cases(folder=CASES / "parameters") if _has_ts(case)][::step]
    queries = [only_query(matcher(case.query, case.ties, case.at_end)) for case in cases]
    queries = [query.with_options(positions=True) for query in queries]
    found = json_rows(
        [
            query.match(
                spark.createDataFrame(table(case.events)),
                rule=rows_table(query, case.parameters["rule"]),
            )
            for case, query in zip(cases, queries, strict=True)
        ]
    )
    problems = []
    for case, query, rows in zip(cases, queries, found, strict=True):
        answer = answer_for_each(query, rows, case.in_order)
        told = difference(answer, case.expected)
        problems += [f"{case.name}: {told}"] if told else []
    assert not problems, "\n".join(problems)
    assert sum(map(len, found)) >= 20


def _has_ts(case: Case) -> bool:
    names = {"type", "id", "value", "name", "ts", "src", "dst", "mileage"}
    plain = all(isinstance(event.get("ts"), int) for event in case.events)
    plain = plain and not {key for e in case.events for key in e} - names
    return case.lasts or (bool(case.events) and plain)
