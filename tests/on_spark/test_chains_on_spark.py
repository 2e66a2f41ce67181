"""Queries over queries on Spark: both plans against one machine, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from celc_runtime import EventError
from conftest import ON_SPARK
from engines import as_on_spark
from parameters import rows_table
from places import CASES
from pyspark.sql import functions
from queries_over_queries import rows_of_answer, source_table
from reference import difference

import celc
from celc import Matcher

_DECLARED = """CREATE STREAM S {
  EVENT A { id: LONG, v: DOUBLE, ts: TIMESTAMP },
  EVENT B { id: LONG, v: DOUBLE, ts: TIMESTAMP }
}
"""
_CHAIN = """
QUERY rises: SELECT x.v AS low, y.v AS high FROM S
WHERE (A AS x ; A AS y) FILTER x.v < y.v KEY WITHIN 5 SECONDS [ts]
QUERY pairs: SELECT r, s, r.low AS low, COUNT(r) AS n FROM rises
WHERE (rises AS r ; rises AS s) FILTER r.high < s.low KEY2 WITHIN 20 SECONDS [ts]
QUERY ends: SELECT * FROM pairs, S
WHERE (pairs AS p ; !rise ; B AS b) FILTER b.v > p.low KEY2 WITHIN 40 SECONDS [ts]
"""


def _module(first: str, then: str) -> Matcher:
    text = (
        _CHAIN.replace("KEY2", then)
        .replace("KEY", first)
        .replace("!rise ;", "!(A FILTER A.v > 8) ;")
    )
    return celc.compile(_DECLARED + text, order_by="ts")


def _events(rows: int) -> pa.Table:
    rng = random.Random(5)
    return pa.table(
        {
            "type": [rng.choice("AAB") for _ in range(rows)],
            "id": [rng.randrange(7) for _ in range(rows)],
            "v": [float(rng.randrange(10)) for _ in range(rows)],
            "ts": pa.array([n * 1_000_000 for n in range(rows)], pa.timestamp("us", tz="UTC")),
        }
    )


def _sorted(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ("PARTITION BY id", "PARTITION BY id", "one stage"),
        ("", "", "level by level: there is no PARTITION BY"),
        ("PARTITION BY id", "", "level by level: the queries have different PARTITION BY"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_both_plans_are_one_machine(spark: Any, first: str, then: str, words: str) -> None:
    module, events = _module(first, then), _events(260)
    frame = spark.createDataFrame(events.to_pandas()).repartition(3)
    query = module.queries["ends"]  # which reads the rows of the others
    found = query.match(frame)
    wanted = as_on_spark(query).match_table(events)
    assert found.columns == wanted.column_names
    assert len(wanted) > 3
    assert _sorted(found.toArrow()) == _sorted(wanted)
    assert words in query.explain_plan(frame)
    everything = module.match_all(frame).toArrow()
    for name, query in module.queries.items():
        wanted = as_on_spark(query).match_table(events)
        assert _sorted(module.rows(everything, name)) == _sorted(wanted), name


_LATE = """
QUERY alone: SELECT x.v AS v FROM S WHERE A AS x ; !(B FILTER B.v > 4) FOR 3 SECONDS KEY
QUERY calm: SELECT p, COUNT(p) AS n FROM alone, S WHERE alone AS p ; !alone FOR 2 SECONDS KEY2
"""


@pytest.mark.each(2)
@pytest.mark.parametrize("at_end", ["open", "closed"])
@pytest.mark.parametrize("then", ["PARTITION BY id", ""])
@pytest.mark.filterwarnings("ignore")
def test_absences_after_rows_are_decided_as_on_one_machine(
    spark: Any, then: str, at_end: str
) -> None:
    text = _LATE.replace("KEY2", then).replace("KEY", "PARTITION BY id")
    module = celc.compile(_DECLARED + text, order_by="ts", at_end=at_end)
    query, events = module.queries["calm"], _events(80)
    wanted = as_on_spark(query).match_table(events)
    assert len(wanted)
    frame = spark.createDataFrame(events)
    assert _sorted(query.match(frame).toArrow()) == _sorted(wanted)
    everything = module.match_all(frame).toArrow()
    assert _sorted(module.rows(everything, "calm")) == _sorted(wanted)


_CHOSEN = """
QUERY pairs: SELECT x.v AS v, y.v AS w FROM S WHERE A AS x ; A AS y KEY WITHIN 3 SECONDS [ts]
QUERY chosen: SELECT WORD p[w], MAX(p.w) AS w FROM pairs, S WHERE pairs AS p ; B AS b KEY2
WITHIN 9 SECONDS [ts] HOW
"""
_CHOICES = (
    *(("NXT", ""), ("LAST", ""), ("MAX", ""), ("STRICT", ""), ("FIRST", ""), ("LONGEST", "")),
    *(("FIRST DISJOINT", ""), ("", "LIMIT 2 PER 5 SECONDS"), ("LAST", "LIMIT 3 PER PARTITION")),
)


@pytest.mark.parametrize("each", [9, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("then", ["PARTITION BY id", ""])
@pytest.mark.filterwarnings("ignore")
def test_choices_are_those_of_one_machine(spark: Any, then: str, each: int) -> None:
    """Rows of one time are told apart by their attributes, which the reader does not all read.

    In the suite each second by `match_all`; and each n-th in a job of its own.
    """
    rows = 90
    events = _events(rows).set_column(
        3, "ts", pa.array([n // 3 * 1_000_000 for n in range(rows)], pa.timestamp("us", tz="UTC"))
    )
    frame = spark.createDataFrame(events).repartition(3)
    text = _CHOSEN.replace("KEY2", then).replace("KEY", "PARTITION BY id")
    files = [
        text.replace("QUERY ", f"QUERY n{n}_")
        .replace("FROM pairs, S WHERE pairs", f"FROM n{n}_pairs, S WHERE n{n}_pairs")
        .replace("WORD", word)
        .replace("HOW", how)
        for n, (word, how) in enumerate(_CHOICES)
    ]
    chosen = range(0, len(_CHOICES), 2 if each > 1 else 1)
    text = "".join(files[n] for n in chosen)
    module = celc.compile(_DECLARED + text, order_by="ts", tiebreak="v")
    everything = module.match_all(frame).toArrow()
    for n in chosen:
        query = module.queries[f"n{n}_chosen"]
        wanted = _sorted(as_on_spark(query).match_table(events))
        assert wanted
        if n % each == (4 if then else 0) % each:
            assert _sorted(query.match(frame).toArrow()) == wanted, _CHOICES[n]
        assert _sorted(module.rows(everything, f"n{n}_chosen")) == wanted, _CHOICES[n]


def _scans(frame: Any) -> int:
    return str(frame._jdf.queryExecution().executedPlan()).count("Scan")


@pytest.mark.filterwarnings("ignore")
def test_one_scan_for_chains_beside_other_queries(spark: Any) -> None:
    text = """QUERY alone: SELECT * FROM S
WHERE (A AS x ; B AS y) FILTER x.v = y.v WITHIN 5 SECONDS [ts]
"""
    keyed = _CHAIN.replace("KEY2", "PARTITION BY id").replace("KEY", "PARTITION BY id")
    keyed = keyed.replace("!rise ;", "!(A FILTER A.v > 8) ;")
    module, events = celc.compile(_DECLARED + keyed + text, order_by="ts"), _events(260)
    found = module.match_all(spark.createDataFrame(events.to_pandas()))
    if ON_SPARK == "classic":
        assert _scans(found) == 1
    everything = found.toArrow()
    for name, query in module.queries.items():
        wanted = as_on_spark(query).match_table(events)
        assert len(wanted)
        assert _sorted(module.rows(everything, name)) == _sorted(wanted), name


@pytest.mark.parametrize("key", ["PARTITION BY id", ""])
def test_functions_that_bring_what_they_read_along(spark: Any, key: str) -> None:
    module, events = _module("PARTITION BY id", key), _events(260)
    query = module.queries["pairs"]
    wanted = _sorted(as_on_spark(query).match_table(events))
    assert wanted
    frame = spark.createDataFrame(events)
    frame.createOrReplaceTempView("stream")
    if key:
        bound = as_on_spark(query)
        frames = frame.groupBy("id").applyInPandas(bound.match_pandas, bound.output_ddl)
        assert frames.count() == len(wanted)
    if not hasattr(functions, "arrow_udtf"):
        return
    spread = "PARTITION BY (id)" if key else "WITH SINGLE PARTITION"
    query.register(spark, "pairs_of_rises")
    found = spark.sql(f"SELECT * FROM pairs_of_rises(TABLE(stream) {spread} ORDER BY (ts))")
    assert _sorted(found.toArrow()) == wanted
    query.register(spark, "sorted_pairs", sorts=True)
    spread = "(SELECT * FROM stream DISTRIBUTE BY id)" if key else "(stream) WITH SINGLE PARTITION"
    found = spark.sql(f"SELECT * FROM sorted_pairs(TABLE{spread})")
    assert _sorted(found.toArrow()) == wanted
    if not key:
        called = "TABLE(stream) PARTITION BY (id) ORDER BY (ts)"
        with pytest.raises(Exception, match="WITH SINGLE PARTITION"):
            spark.sql(f"SELECT * FROM pairs_of_rises({called})").toArrow()


_EACH = """
QUERY rises: SELECT x.v AS low, y.v AS high FROM S
WHERE (A AS x ; A AS y) FILTER x.v < y.v KEY WITHIN 5 SECONDS [ts]
QUERY ruled: SELECT p, b, rule[nr] FROM rises, S FOR EACH rule
WHERE (rises AS p ; B AS b) FILTER p.low > rule.low AND b.v > rule.high KEY2 WITHIN 20 SECONDS [ts]
"""


@pytest.mark.parametrize("key", ["PARTITION BY id", ""])
@pytest.mark.filterwarnings("ignore")
def test_readers_for_each_row_of_a_table(spark: Any, key: str) -> None:
    text = _EACH.replace("KEY2", key).replace("KEY", "PARTITION BY id")
    declared = "PARAMETERS rule { nr: INT, low: DOUBLE, high: DOUBLE }\n" + _DECLARED
    module, events = celc.compile(declared + text, order_by="ts"), _events(200)
    rules = {"nr": [1, 2, 3], "low": [2.0, 5.0, 9.0], "high": [4.0, 7.0, 1.0]}
    query = module.queries["ruled"]
    bound = as_on_spark(query).with_parameters(rule=rules)
    wanted = _sorted(bound.match_table(events))
    assert len(wanted) > 3
    frame = spark.createDataFrame(events).repartition(3)
    assert _sorted(query.match(frame, rule=rules).toArrow()) == wanted
    everything = module.match_all(frame, rule=rules).toArrow()
    assert _sorted(module.rows(everything, "ruled")) == wanted
    if key:
        frames = frame.groupBy("id").applyInPandas(bound.match_pandas, bound.output_ddl)
        assert frames.count() == len(wanted)
    with pytest.raises(EventError, match="FOR EACH rule over the rows of rises"):
        query.match_stream(spark.readStream.format("rate").load(), rule=rules)
    if hasattr(functions, "arrow_udtf"):
        frame.createOrReplaceTempView("each_stream")
        query.register(spark, "ruled_rises", rule=rules)
        spread = "PARTITION BY (id)" if key else "WITH SINGLE PARTITION"
        found = spark.sql(f"SELECT * FROM ruled_rises(TABLE(each_stream) {spread} ORDER BY (ts))")
        assert _sorted(found.toArrow()) == wanted


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", load_cases(folder=CASES / "queries"), ids=lambda one: one.name)
def test_cases(spark: Any, case: Case) -> None:
    module = celc.compile(case.query, order_by=case.order_by, at_end=case.at_end)
    query = module.queries[case.query_name or next(iter(module.queries))]
    events = source_table(query, case.events)
    events = events.append_column("row", pa.array(range(len(events)), pa.int64()))
    given = {name: rows_table(query, rows) for name, rows in case.parameters.items()}
    query = query.with_options(tiebreak="row", positions=True)
    found = query.match(spark.createDataFrame(events), **given)
    assert not difference(rows_of_answer(query, found.toArrow().to_pylist()), case.expected)
