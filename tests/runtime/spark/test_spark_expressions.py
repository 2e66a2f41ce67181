"""Expressions in SELECT on Spark: by its routes, and against what Spark SQL computes itself."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest
from engines import Row, engines, interpreted, only_query
from spark_routes import has_table_functions

import celc

NAN = math.nan
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


_OF_SETS = ("variance", "stddev", "median")
_IN_SPARK = ("var_samp", "stddev_samp", "median")


def _functions(call: str, of_sets: tuple[str, ...] = _OF_SETS) -> dict[str, str]:
    """MIN, MAX, SUM, AVG and the functions of sets of all columns that have them, by the names of
    their values."""
    ordered = [f"{f}_{c}" for f in ("min", "max") for c in _COLUMNS if c != "s"]
    summed = [f"{f}_{c}" for f in ("sum", "avg") for c in ("i", "l", "f", "d")]
    calls = {name: call.format(*name.split("_")) for name in (*ordered, *summed)}
    calls |= {
        f"{name}_{c}": call.format(function, c)
        for name, function in zip(_OF_SETS, of_sets, strict=True)
        for c in ("i", "l", "f", "d")
    }
    calls |= {
        f"different_{c}": call.format("COUNT", c).replace("(", "(DISTINCT ") for c in _COLUMNS
    }
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
    wanted = _functions("{0}({1})", _IN_SPARK)
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
    declared = dict(
        part.strip().replace("`", "").split(" ") for part in compiled.output_ddl.split(",")
    )
    problems = []
    # Beside DISTINCT, Spark takes the rows of the other functions in another order.
    distinct = {name: text for name, text in wanted.items() if "DISTINCT" in text}
    for asked in (distinct, {name: wanted[name] for name in wanted if name not in distinct}):
        columns = ", ".join(f"{text} AS {name}" for name, text in asked.items())
        computed = spark.sql(f"SELECT id, {columns} FROM events GROUP BY id")
        types = {name: type.upper() for name, type in computed.dtypes}
        problems += [
            f"{name}: {types[name]} in Spark, {declared[name]} here"
            for name in asked
            if types[name] != declared[name]
        ]
        for row in computed.toArrow().to_pylist():
            here = found[row["id"]]
            problems += [
                f"part {row['id']}, {asked[name]}: {row[name]} in Spark, {here[name]} here"
                for name in asked
                if not _same(row[name], here[name])
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


_OWN = """AGGREGATE longest(s: STRING, a: INT): INT
  STATE most: INT = NULL
  STEP most = IF(s LIKE '_%' AND s < 'z', GREATEST(most, a), most)
  RESULT most
AGGREGATE swings(a: FLOAT): FLOAT STATE x: FLOAT = 0 STEP x = a - 2 * x RESULT x
AGGREGATE wraps(a: LONG): LONG STATE x: LONG = 9223372036854775807 STEP x = x + a RESULT x
AGGREGATE all_of(a: BOOLEAN): BOOLEAN STATE x: BOOLEAN = TRUE STEP x = LEAST(x, a) RESULT x
AGGREGATE latest(a: DATE): DATE STATE x: DATE = NULL STEP x = GREATEST(x, a) RESULT x
AGGREGATE later(a: TIMESTAMP): TIMESTAMP STATE x: TIMESTAMP = NULL STEP x = a + 1 DAY RESULT x
AGGREGATE since(a: TIMESTAMP, b: DATE): INTERVAL STATE x: INTERVAL = NULL STEP x = a - b RESULT x
"""
_OWN_VALUES = (
    "longest(x.s, x.i) AS own_i, wraps(x.l) AS own_l, all_of(x.b) AS own_b, latest(x.day) AS "
    "own_day, later(x.t) AS own_t, since(x.t, x.day) AS own_v, swings(x.i) AS own_f, "
    "VARIANCE(x.i) AS variance, STDDEV(x.l) AS deviation, MEDIAN(x.l) AS middle, "
    "COUNT(DISTINCT x.s) AS texts"
)


@pytest.mark.usefixtures("compiling_workers")
def test_routes(spark: Any) -> None:
    """All give what `match_table` gives, compiled in Spark's workers; in pandas NaN is NULL."""
    select = f"COUNT(x) AS events, {_EVERYTHING}, SUM(x.l) AS total, x[i], AVG(x.i) AS mean"
    text = f"{DECLARATION}{_OWN}SELECT {select}, {_OWN_VALUES} WHERE STRICT((A AS x)+)"
    condition = "FILTER longest(x.s, x.i) > 0 OR COUNT(x) < 9"
    matcher: Any = celc.compile(f"{text} {condition} PARTITION BY id", order_by="n", positions=True)
    # Spark hands a LONG with a NULL to pandas as DOUBLE, so large ones arrive as others.
    given = [{**event, "l": event.get("l") and event["l"] % 1000} for event in _events()]
    events = pa.Table.from_pylist(given, matcher.INPUT_SCHEMA)
    wanted = _sorted(matcher.match_table(events).to_pylist())
    frame = spark.createDataFrame(events)
    assert _sorted(frame.transform(matcher.match).toArrow().to_pylist()) == wanted
    ordered = frame.coalesce(1).sortWithinPartitions("id", "n")
    arrow = ordered.mapInArrow(matcher.match_arrow, matcher.OUTPUT_DDL)
    assert _sorted(arrow.toArrow().to_pylist()) == wanted
    if has_table_functions():
        frame.createOrReplaceTempView("parts")
        matcher.register(spark, name="totals")
        sql = spark.sql("SELECT * FROM totals(TABLE(parts) PARTITION BY id ORDER BY n)")
        assert _sorted(sql.toArrow().to_pylist()) == wanted
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
