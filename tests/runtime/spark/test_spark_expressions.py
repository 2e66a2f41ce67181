"""Expressions in SELECT on Spark: by its routes, and against what Spark SQL computes itself."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest
from engines import Row, engines, interpreted, only_query

import celc

NAN, INF = math.nan, math.inf
LEAST_INT, MOST_INT, LEAST, MOST = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1

DECLARATION = """CREATE STREAM S { EVENT A {
  id: INT, n: INT, i: INT, l: LONG, f: FLOAT, d: DOUBLE,
  s: STRING, b: BOOLEAN, t: TIMESTAMP, day: DATE
} }
"""
_COLUMNS = {
    "i": [LEAST_INT, MOST_INT, None, -7, 3],
    "l": [MOST, 2, None, LEAST, 2**53 + 1],
    "f": [0.5, NAN, None, 16777216.0, -2.75],
    "d": [1e308, 1e308, None, NAN, -0.5],
    "s": ["b", "", None, "ä", "𝔸"],
    "b": [True, None, False, False, True],
    "t": [dt.datetime(2026, 1, 1, 12, microsecond=5, tzinfo=dt.UTC), None, None, None, None],
    "day": [dt.date(1960, 2, 29), None, dt.date(2026, 1, 1), None, dt.date(1, 1, 1)],
}


def _events() -> list[Row]:
    """Parts 0 to 5 with events whose columns are drawn from all values in different ways."""
    events = [
        {
            "id": part,
            "n": place,
            **{name: given[(place * (part + 1)) % len(given)] for name, given in _COLUMNS.items()},
        }
        for part in range(5)
        for place in range(1 + part)
    ]
    return [*events, {"id": 5, "n": 0}]


def _functions(call: str) -> dict[str, str]:
    """MIN, MAX, SUM and AVG of all columns that have them, by the names of their values."""
    ordered = [f"{f}_{c}" for f in ("min", "max") for c in _COLUMNS if c != "s"]
    summed = [f"{f}_{c}" for f in ("sum", "avg") for c in ("i", "l", "f", "d")]
    calls = {name: call.format(*name.split("_")) for name in (*ordered, *summed)}
    return {**calls, "count": call.format("count", "").replace("x.", "x").replace("()", "(1)")}


_ARITHMETIC = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}", "-{0}", "ABS({0})"),
    *("({0} + 1) % -3", "{0} * 2.5e0 - 7", "{0} / 0", "{0} % 0", "-ABS({0}) / {1}"),
)
_PAIRS = (("i", "i"), ("i", "l"), ("l", "l"), ("l", "f"), ("f", "f"), ("f", "d"), ("d", "i"))


def _same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right)


def _table(plan_schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(_events(), plan_schema)


def test_functions_and_arithmetic_are_those_of_spark(spark: Any) -> None:
    """Whole parts as matches: the values are those of GROUP BY, with the same types."""
    wanted = _functions("{0}({1})")
    own = _functions("{0}(x.{1})")
    formulas = {
        f"v{number}_{place}": (text, pair)
        for number, text in enumerate(_ARITHMETIC)
        for place, pair in enumerate(_PAIRS)
    }
    for name, (text, pair) in formulas.items():
        wanted[name] = text.format(*(f"first({column})" for column in pair))
        own[name] = text.format(*(f"FIRST(x.{column})" for column in pair))
    select = ", ".join(f"{text} AS {name}" for name, text in own.items())
    query = f"{DECLARATION}SELECT {select} WHERE (A AS x):+ FILTER FIRST(x.n) = 0 PARTITION BY id"
    with interpreted():
        compiled = only_query(engines(query)["general"])
    events = _table(compiled.input_schema)
    found = {row["id"]: row for row in _longest(compiled.match_table(events).to_pylist())}
    frame = spark.createDataFrame(events).coalesce(1).sortWithinPartitions("id", "n")
    frame.createOrReplaceTempView("events")
    columns = ", ".join(f"{text} AS {name}" for name, text in wanted.items())
    computed = spark.sql(f"SELECT id, {columns} FROM events GROUP BY id")
    types = {name: type.upper() for name, type in computed.dtypes}
    declared = dict(
        part.strip().replace("`", "").split(" ") for part in compiled.output_ddl.split(",")
    )
    problems = [
        f"{name}: {types[name]} in Spark, {declared[name]} here"
        for name in wanted
        if types[name] != declared[name]
    ]
    for row in computed.toArrow().to_pylist():
        problems += [
            f"part {row['id']}, {wanted[name]}: {row[name]} in Spark, {found[row['id']][name]} here"
            for name in wanted
            if not _same(row[name], found[row["id"]][name])
        ]
    assert not problems, "\n".join(problems[:40])


def _longest(rows: list[Row]) -> list[Row]:
    best: dict[int, Row] = {}
    for row in rows:
        if row["start_pos"] == 0:
            best[row["id"]] = row
    return [*best.values()]


_EVERYTHING = ", ".join(
    f"{function}(x.{column}) AS {function}_{column}"
    for column in _COLUMNS
    for function in ("FIRST", "LAST", "COLLECT")
)


@pytest.mark.usefixtures("compiling_workers")
def test_routes(spark: Any) -> None:
    """All give what `match_table` gives, compiled in Spark's workers; in pandas NaN is NULL."""
    select = f"COUNT(x) AS events, {_EVERYTHING}, SUM(x.l) AS total, x[i], AVG(x.i) AS mean"
    matcher: Any = celc.compile(
        f"{DECLARATION}SELECT {select} WHERE STRICT((A AS x)+) PARTITION BY id", order_by="n"
    )
    # Spark hands a LONG with a NULL to pandas as DOUBLE, so large ones arrive as others.
    given = [{**event, "l": event.get("l") and event["l"] % 1000} for event in _events()]
    events = pa.Table.from_pylist(given, matcher.INPUT_SCHEMA)
    wanted = _sorted(matcher.match_table(events).to_pylist())
    frame = spark.createDataFrame(events)
    assert _sorted(frame.transform(matcher.match).toArrow().to_pylist()) == wanted
    ordered = frame.coalesce(1).sortWithinPartitions("id", "n")
    arrow = ordered.mapInArrow(matcher.match_arrow, matcher.OUTPUT_DDL)
    assert _sorted(arrow.toArrow().to_pylist()) == wanted
    pandas = frame.groupBy("id").applyInPandas(matcher.match_pandas, matcher.OUTPUT_DDL)
    found = _sorted(pandas.toArrow().to_pylist())
    assert [text.replace("nan", "None") for text in found] == [
        text.replace("nan", "None") for text in wanted
    ]

    # Sent by value, as workers cannot import this file.
    def compiles(batches: Any) -> Any:
        from numba import config

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"compiles": [not config.DISABLE_JIT] * len(batch)})

    told = spark.range(1).mapInArrow(compiles, "compiles BOOLEAN").collect()
    assert [row.compiles for row in told] == [True]


def _sorted(rows: list[Row]) -> list[str]:
    by_place = sorted(rows, key=lambda row: (row["id"], row["end_pos"], row["start_pos"]))
    return list(map(repr, by_place))
