"""Conditions on one event decide as Spark's own filter decides, with ANSI mode off and in UTC.

Random conditions over nasty values are put to Spark, to queries (their generated code run as plain
Python, which is a hundred times cheaper than compiling it) and to the generated expressions alone,
compiled by Numba. Every disagreement that was found is a named case.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime.arrow.arrays import numbers
from engines import interpreted, only_query
from spark_conditions import (
    COLUMNS,
    DECLARATION,
    IN_PARQUET,
    PLAIN,
    SPARK_SCHEMA,
    Condition,
    Generator,
    queries,
    table_of_values,
)

import celc
from celc.codegen.expressions.conditions import ConditionCode
from celc.codegen.text.imports import Imports
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.normal.normal_form import Event
from celc.options import Options

NUMBERS_ONLY = {"number": 6, "moment": 2, "duration": 2, "boolean": 1}
"""Families of operands that generated code compares itself; texts are the runtime's business."""


@pytest.fixture(autouse=True)
def each_part_on_its_own(spark: Any) -> Iterator[None]:
    """Spark would compute a part that two conditions share outside of the `try_…` around it."""
    name = "spark.sql.subexpressionElimination.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    yield
    spark.conf.set(name, before)


# --- three ways to decide -------------------------------------------------------------------------


def decided_by_spark(
    spark: Any, conditions: Sequence[Condition], table: pa.Table, folder: Path
) -> np.ndarray:
    """bool[conditions, rows]: where Spark says TRUE, in one job."""
    events = _in_spark(spark, table, folder)
    found = events.selectExpr(
        "row", *(f"coalesce(({c.sql}), false) AS c{k}" for k, c in enumerate(conditions))
    ).toArrow()
    found = found.sort_by("row").drop_columns("row")
    return np.array([column.to_numpy() for column in found.columns], np.bool_)


def filtered_by_spark(
    spark: Any, conditions: Sequence[Condition], table: pa.Table, folder: Path
) -> np.ndarray:
    """The same by `df.filter`, all filters in one job."""
    events = _in_spark(spark, table, folder)
    parts = [
        events.filter(condition.sql).selectExpr(f"{number} AS condition", "row")
        for number, condition in enumerate(conditions)
    ]
    union = parts[0]
    for part in parts[1:]:
        union = union.unionAll(part)
    found = union.toArrow()
    truth = np.zeros((len(conditions), len(table)), np.bool_)
    truth[found["condition"].to_numpy(), found["row"].to_numpy()] = True
    return truth


def _in_spark(spark: Any, table: pa.Table, folder: Path) -> Any:
    # A file, because Spark computes with a table from Python before it generates any code.
    path = folder / "events.parquet"
    table = table.cast(pa.schema(list(IN_PARQUET.items())))
    pq.write_table(table.append_column("row", pa.array(range(len(table)), pa.int64())), path)
    return spark.read.schema(SPARK_SCHEMA).parquet(str(path))


def decided_by_queries(conditions: Sequence[Condition], table: pa.Table) -> np.ndarray:
    """The same by queries, each with its own condition, whose matches are single events."""
    truth = np.zeros((len(conditions), len(table)), np.bool_)
    for number, condition in enumerate(conditions):
        with interpreted():
            query = only_query(celc.compile(queries([condition])))
        with np.errstate(all="ignore"):
            matches = query.match_table(table)
        truth[number, matches["start_pos"].to_numpy()] = True
    return truth


def decided_by_compiled_code(conditions: Sequence[Condition], table: pa.Table) -> np.ndarray:
    """The same by the expressions of generated code, all in one function that Numba compiles."""
    code = ConditionCode(1, Imports())
    lines = [f"out[{k}, row] = {_expression(code, c)}" for k, c in enumerate(conditions)]
    text = "\n".join(
        [
            "import numpy as np",
            "from numba import njit",
            *code.imports.lines(),
            *(f"{name}_1 = np.array({v!r}, np.{t})" for name, (v, t) in code.members.items()),
            "@njit(nogil=True, error_model='numpy')",
            "def decide(columns, out):",
            *(f"    columns_{k}, valids_{k} = columns[{k}]" for k in range(len(code.attributes))),
            "    for row in range(out.shape[1]):",
            *(
                f"        column_{k}, valid_{k} = columns_{k}[row], valids_{k}[row]"
                for k in range(len(code.attributes))
            ),
            *("        " + line for line in lines),
        ]
    )
    module: dict[str, Any] = {}
    exec(compile(text, "<conditions>", "exec"), module)
    (batch,) = table.combine_chunks().to_batches()
    truth = np.zeros((len(conditions), len(table)), np.bool_)
    module["decide"](tuple(numbers(batch.column(name)) for name in code.attributes), truth)
    return truth


def _expression(code: ConditionCode, condition: Condition) -> str:
    (stages,) = compile_source(Source("query.cel", queries([condition])), Options()).queries
    form = stages.normal_form
    if not isinstance(form, Event):
        return "False"
    return " & ".join(map(code.clause, form.clauses)) or "True"


def assert_same(
    conditions: Sequence[Condition], table: pa.Table, ours: np.ndarray, spark: np.ndarray
) -> None:
    """Fails with each condition that is decided differently, and the values of one such row."""
    told = []
    for number, condition in enumerate(conditions):
        rows = np.flatnonzero(ours[number] != spark[number])
        if len(rows):
            row = int(rows[0])
            values = {name: _value(table[name][row]) for name in COLUMNS if name in condition.sql}
            told.append(
                f"{condition.cel}\n  of {values}: Spark says {spark[number, row]} "
                f"(and differs in {len(rows)} rows)"
            )
    assert not told, "\n".join(told)


def _value(scalar: pa.Scalar) -> Any:
    # Times as numbers: Python has none beyond the year 9999.
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


# --- random conditions ----------------------------------------------------------------------------


def test_random_conditions(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(1)
    generator = Generator(rng)
    conditions = [generator.condition() for _ in range(80)]
    table = table_of_values(rng, 200)
    expected = decided_by_spark(spark, conditions, table, tmp_path)
    # Or else nothing would be compared.
    assert 0.3 < expected.mean() < 0.7
    assert (expected.any(axis=1) & ~expected.all(axis=1)).mean() > 0.6
    assert_same(conditions, table, decided_by_queries(conditions, table), expected)


@pytest.mark.long
def test_random_conditions_compiled(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(2)
    generator = Generator(rng, NUMBERS_ONLY, attributes=0.8)
    conditions = [generator.condition() for _ in range(80)]
    table = table_of_values(rng, 200)
    expected = decided_by_spark(spark, conditions, table, tmp_path)
    assert_same(conditions, table, decided_by_compiled_code(conditions, table), expected)


def test_random_filters(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(3)
    generator = Generator(rng)
    conditions = [generator.condition() for _ in range(40)]
    table = table_of_values(rng, 200)
    expected = filtered_by_spark(spark, conditions, table, tmp_path)
    assert_same(conditions, table, decided_by_queries(conditions, table), expected)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_conditions(seed: int, spark: Any, tmp_path: Path) -> None:
    rng = random.Random(seed)
    families: list[dict[str, int]] = [{}, {"number": 1}, {"text": 1}, {"moment": 1, "duration": 2}]
    for attributes in (0.65, 0.9):
        for chosen in families:
            generator = Generator(rng, chosen or NUMBERS_ONLY | {"text": 4}, attributes)
            conditions = [generator.condition(depth=rng.choice((0, 2, 3))) for _ in range(250)]
            table = table_of_values(rng, 200)
            expected = decided_by_spark(spark, conditions, table, tmp_path)
            assert_same(conditions, table, decided_by_queries(conditions, table), expected)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200, 210))
def test_many_random_conditions_compiled(seed: int, spark: Any, tmp_path: Path) -> None:
    rng = random.Random(seed)
    generator = Generator(rng, NUMBERS_ONLY, attributes=0.8)
    for _ in range(4):
        conditions = [generator.condition() for _ in range(100)]
        table = table_of_values(rng, 300)
        expected = decided_by_spark(spark, conditions, table, tmp_path)
        assert_same(conditions, table, decided_by_compiled_code(conditions, table), expected)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300, 305))
def test_many_random_filters(seed: int, spark: Any, tmp_path: Path) -> None:
    rng = random.Random(seed)
    generator = Generator(rng)
    conditions = [generator.condition() for _ in range(60)]
    table = table_of_values(rng, 200)
    expected = filtered_by_spark(spark, conditions, table, tmp_path)
    assert_same(conditions, table, decided_by_queries(conditions, table), expected)


# --- named cases ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A condition, an event that it is asked of, and whether it is TRUE.

    `sql` is the condition in Spark's words, where leaving out the label is not enough. Attributes
    that `event` lacks are NULL.
    """

    name: str
    cel: str
    event: dict[str, Any]
    expected: bool
    sql: str = ""

    @property
    def condition(self) -> Condition:
        return Condition(self.cel, self.sql or self.cel.replace("x.", ""))


NAN, INF = float("nan"), float("inf")
MIN_INT, MAX_INT, MIN_LONG, MAX_LONG = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1
DAY = 86_400_000_000

CASES = [
    # Disagreements of the past.
    Case("null-in-arithmetic", "x.i1 + NULL > 3", {"i1": 7}, False),
    Case("not-null-in-arithmetic", "NOT (x.i1 + NULL > 3)", {"i1": 7}, False),
    Case("is-null-of-null-in-arithmetic", "x.i1 + NULL IS NULL", {"i1": 7}, True),
    Case("is-not-null-of-null-in-arithmetic", "x.i1 * -NULL IS NOT NULL", {"i1": 7}, False),
    Case("in-null-arithmetic", "x.d1 % NULL NOT IN (1, 2)", {"d1": 7.0}, False),
    Case("long-list", f"x.l1 IN ({', '.join(map(str, range(0, 90, 3)))})", {"l1": 45}, True),
    Case("not-in-long-list", f"x.l1 NOT IN ({', '.join(map(str, range(30)))})", {"l1": 30}, True),
    Case("long-list-of-floats", f"x.f1 IN ({', '.join(map(str, range(30)))})", {"f1": -0.0}, True),
    Case("long-constant-to-float", "x.f1 = 1152921573326323713", {"f1": 2.0**60 + 2.0**37}, True),
    Case("less-than-a-rounded-long", "x.f1 < -1152921573326323713", {"f1": -(2.0**60)}, False),
    Case("long-to-float", "x.l1 = x.f1", {"l1": 2**60 + 2**36 + 1, "f1": 2.0**60 + 2.0**37}, True),
    Case("long-sum-wraps", "x.l1 + 1 < x.l1", {"l1": MAX_LONG}, True),
    Case("long-sum-of-constants", "65536 - (x.l1 + 1073741825) > -3", {"l1": MAX_LONG - 512}, True),
    Case("long-difference-wraps", "x.l1 - x.l2 > 0", {"l1": MIN_LONG, "l2": 1}, True),
    Case("long-product-wraps", "x.l1 * 2 / 2 = x.l1", {"l1": 2**62}, False),
    Case("negated-smallest-long", "-(x.l1) < 0", {"l1": MIN_LONG}, True),
    Case("abs-of-smallest-long", "ABS(x.l1) < 0", {"l1": MIN_LONG}, True),
    Case(
        "abs-of-smallest-long-in-between", "ABS(x.l1) BETWEEN x.l1 AND -1", {"l1": MIN_LONG}, True
    ),
    Case("negated-literal-in-parentheses", "ABS(-(2147483648)) > x.i1", {"i1": 0}, True),
    Case("negative-literal", "ABS(-2147483648) > x.i1", {"i1": 0}, False),
    # Whole numbers.
    Case("int-sum-wraps", "x.i1 + 1 < x.i1", {"i1": MAX_INT}, True),
    Case("int-product-wraps", "x.i1 * x.i1 < 0", {"i1": 46341}, True),
    Case("int-meets-long", "x.i1 + x.l1 > x.i1", {"i1": MAX_INT, "l1": 1}, True),
    Case("int-literal-beyond-32-bits", "x.i1 + 2147483648 > 0", {"i1": MIN_INT}, False),
    Case("negated-smallest-int", "-x.i1 = x.i1", {"i1": MIN_INT}, True),
    Case("abs-of-smallest-int", "ABS(x.i1) = x.i1", {"i1": MIN_INT}, True),
    Case("remainder-has-the-sign-of-the-dividend", "x.i1 % 3 = -1", {"i1": -7}, True),
    Case("remainder-by-a-negative", "x.i1 % -3 = 1", {"i1": 7}, True),
    Case("remainder-of-the-smallest", "x.i1 % -1 = 0", {"i1": MIN_INT}, True),
    Case("remainder-of-the-smallest-long", "x.l1 % -1 = 0", {"l1": MIN_LONG}, True),
    Case("remainder-by-zero", "x.i1 % x.i2 IS NULL", {"i1": 1, "i2": 0}, True),
    Case("quotient-of-whole-numbers", "x.i1 / 2 > 3", {"i1": 7}, True),
    Case("quotient-by-zero", "x.i1 / x.i2 > 0 OR x.i1 / x.i2 <= 0", {"i1": 1, "i2": 0}, False),
    Case("quotient-by-constant-zero", "x.i1 / (1 - 1) IS NULL", {"i1": 1}, True),
    Case("int-to-float-rounds", "x.i1 = x.f1", {"i1": 2**24 + 1, "f1": 2.0**24}, True),
    Case("long-to-double-rounds", "x.l1 = x.d1", {"l1": 2**53 + 1, "d1": 2.0**53}, True),
    # FLOAT and DOUBLE.
    Case("nan-equals-nan", "x.d1 = x.d2", {"d1": NAN, "d2": NAN}, True),
    Case("nan-is-largest", "x.d1 > x.d2", {"d1": NAN, "d2": INF}, True),
    Case("nan-is-larger-than-a-constant", "x.f1 >= 3", {"f1": NAN}, True),
    Case("a-constant-is-less-than-nan", "3.5 < x.d1", {"d1": NAN}, True, "3.5D < d1"),
    Case(
        "nan-is-not-less", "x.d1 < x.d2 OR x.d1 <= 0.5", {"d1": NAN}, False, "d1 < d2 OR d1 <= 0.5D"
    ),
    Case("nan-is-in-no-list-of-constants", "x.d1 NOT IN (1, 2)", {"d1": NAN}, True),
    Case("nan-is-in-a-list-with-nan", "x.d1 IN (1, x.d2)", {"d1": NAN, "d2": NAN}, True),
    Case("nan-that-is-computed", "x.d1 - x.d1 > x.d1", {"d1": INF}, True),
    Case("zeros-are-equal", "x.d1 = x.d2", {"d1": 0.0, "d2": -0.0}, True),
    Case("zeros-are-not-in-order", "x.d1 < 0.0", {"d1": -0.0}, False, "d1 < 0.0D"),
    Case("zero-in-a-list", "x.d1 IN (0, 1)", {"d1": -0.0}, True),
    Case("division-by-negative-zero", "x.d1 / x.d2 IS NULL", {"d1": 1.0, "d2": -0.0}, True),
    Case("infinite-quotient", "x.d1 / x.d2 = x.d1 * 2", {"d1": INF, "d2": 1e-300}, True),
    Case("remainder-of-infinity", "x.d1 % 2 = x.d2", {"d1": INF, "d2": NAN}, True),
    Case("remainder-by-infinity", "x.d1 % x.d2 = -1", {"d1": -1.0, "d2": INF}, True),
    Case("float-arithmetic", "x.f1 + 1 = 16777216", {"f1": 2.0**24}, True),
    Case(
        "float-meets-double-arithmetic",
        "x.f1 + 1.0 > 16777216",
        {"f1": 2.0**24},
        True,
        "f1 + 1.0D > 16777216",
    ),
    Case("float-product-overflows", "x.f1 * x.f1 > 1e300", {"f1": 1e30}, True, "f1 * f1 > 1e300D"),
    Case("float-is-no-decimal", "x.f1 = 0.1", {"f1": 0.1}, False, "f1 = 0.1D"),
    Case("float-in-doubles", "x.f1 IN (0.1, 0.5)", {"f1": 0.5}, True, "f1 IN (0.1D, 0.5D)"),
    Case(
        "float-not-in-doubles",
        "x.f1 NOT IN (0.1, 0.5)",
        {"f1": 0.1},
        True,
        "f1 NOT IN (0.1D, 0.5D)",
    ),
    Case("quotient-of-floats-is-double", "x.f1 / 3 = 1 / 3", {"f1": 1.0}, True),
    Case("int-in-doubles", "x.i1 IN (1.5, 2.0, NULL)", {"i1": 2}, True, "i1 IN (1.5D, 2.0D, NULL)"),
    # Three-valued logic.
    Case("null-is-not-different", "x.i1 != 3", {}, False),
    Case("not-of-null", "NOT (x.i1 = 3 OR x.i2 = 4)", {"i2": 5}, False),
    Case("or-with-null", "x.i1 = 3 OR x.i2 = 5", {"i2": 5}, True),
    Case("not-of-and-with-null", "NOT (x.i1 = 3 AND x.i2 = 4)", {"i2": 5}, True),
    Case("between-with-a-null-bound", "x.i1 BETWEEN 1 AND x.i2", {"i1": 3}, False),
    Case("not-between-with-a-null-bound", "x.i1 NOT BETWEEN 5 AND x.i2", {"i1": 3}, True),
    Case("not-in-with-null", "x.i1 NOT IN (1, NULL)", {"i1": 3}, False),
    Case("in-with-null", "x.i1 IN (3, NULL)", {"i1": 3}, True),
    Case("not-in-with-a-null-attribute", "x.i1 NOT IN (1, x.i2)", {"i1": 3}, False),
    Case("null-in-nothing", "x.i1 IN (1, 2) OR x.i1 NOT IN (1, 2)", {}, False),
    Case("like-of-null", "x.s1 LIKE '%' OR x.s1 NOT LIKE '%'", {}, False),
    Case("rlike-of-null", "x.s1 RLIKE '' OR x.s1 NOT RLIKE ''", {}, False),
    # Texts.
    Case("empty-text-is-first", "x.s1 < 'a' AND x.s1 IS NOT NULL", {"s1": ""}, True),
    Case("texts-by-bytes", "x.s1 > x.s2", {"s1": "\U00010000", "s2": "\uffff"}, True),
    Case("text-constant-by-bytes", "'\uffff' < x.s1", {"s1": "\U00010000"}, True),
    Case("blanks-count", "x.s1 = 'a'", {"s1": "a "}, False),
    Case("accents-are-not-normalised", "x.s1 = 'é'", {"s1": "e\u0301"}, False),
    Case("nul-ends-no-text", "x.s1 > x.s2", {"s1": "a\x00b", "s2": "a"}, True),
    Case("like-percent-is-escaped", "x.s1 LIKE 'a\\%'", {"s1": "a%"}, True, r"s1 LIKE 'a\\%'"),
    Case("like-escaped-percent", "x.s1 LIKE 'a\\%'", {"s1": "ab"}, False, r"s1 LIKE 'a\\%'"),
    Case("like-escaped-underscore", "x.s1 LIKE '\\_'", {"s1": "b"}, False, r"s1 LIKE '\\_'"),
    Case("like-escaped-backslash", "x.s1 LIKE '\\\\_'", {"s1": "\\b"}, True, r"s1 LIKE '\\\\_'"),
    Case("like-across-lines", "x.s1 LIKE 'a%b'", {"s1": "a\nb"}, True),
    Case("like-one-line-end", "x.s1 LIKE 'a_b'", {"s1": "a\nb"}, True),
    Case("like-does-not-ignore-a-last-line-end", "x.s1 LIKE 'ab'", {"s1": "ab\n"}, False),
    Case("like-one-code-point", "x.s1 LIKE '_'", {"s1": "😀"}, True),
    Case("like-two-code-points", "x.s1 LIKE '_'", {"s1": "e\u0301"}, False),
    Case("like-everything-else-is-ordinary", "x.s1 LIKE '.+[a]'", {"s1": "aaa"}, False),
    Case("like-of-the-empty-text", "x.s1 LIKE ''", {"s1": ""}, True),
    Case("like-all-of-the-empty-text", "x.s1 LIKE '%'", {"s1": ""}, True),
    # BOOLEAN, DATE, TIMESTAMP.
    Case("false-is-less", "x.b1 < x.b2", {"b1": False, "b2": True}, True),
    Case("boolean-in-list", "x.b1 NOT IN (TRUE)", {"b1": False}, True),
    Case("date-begins-at-midnight", "x.e1 = x.t1", {"e1": -1, "t1": -DAY}, True),
    Case("date-is-before-noon", "x.e1 < x.t1", {"e1": 1, "t1": DAY + 1}, True),
    Case("date-attribute-and-time", "x.e1 <= TIMESTAMP '1970-01-02 00:00:00'", {"e1": 1}, True),
    Case("timestamp-and-date", "x.t1 > DATE '1969-12-31'", {"t1": -DAY}, False),
    Case("date-among-times", "x.e1 IN (TIMESTAMP '1970-01-02 00:00:01')", {"e1": 1}, False),
    Case("times-with-zones", "x.t1 = TIMESTAMP '1970-01-01 02:00:00+02:00'", {"t1": 0}, True),
    Case("times-before-1970", "x.t1 < x.t2", {"t1": MIN_LONG, "t2": -1}, True),
]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Whether each case's condition is TRUE of its event, in three ways."""

    spark: dict[str, bool]
    query: dict[str, bool]
    compiled: dict[str, bool]


@pytest.fixture(scope="module")
def verdicts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    table = _table(case.event for case in CASES)
    conditions = [case.condition for case in CASES]
    # Texts reach generated code as columns of truth that the runtime has made.
    coded = [case for case in CASES if "s1" not in case.cel]
    compiled = decided_by_compiled_code(
        [c.condition for c in coded], _table(c.event for c in coded)
    )
    folder = tmp_path_factory.mktemp("cases")
    names = [case.name for case in CASES]
    return Verdicts(
        dict(
            zip(names, decided_by_spark(spark, conditions, table, folder).diagonal(), strict=True)
        ),
        dict(zip(names, decided_by_queries(conditions, table).diagonal(), strict=True)),
        dict(zip((case.name for case in coded), compiled.diagonal(), strict=True)),
    )


def _table(events: Iterable[dict[str, Any]]) -> pa.Table:
    rows = list(events)
    return pa.table(
        {
            name: pa.array([row.get(name) for row in rows], PLAIN[name]).cast(data_type)
            for name, data_type in COLUMNS.items()
        }
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, verdicts: Verdicts) -> None:
    assert verdicts.spark[case.name] == case.expected, "this is what Spark itself says"
    assert verdicts.query[case.name] == case.expected
    assert verdicts.compiled.get(case.name, case.expected) == case.expected


def test_case_names_are_distinct() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_attributes_that_a_type_lacks_are_null_in_arithmetic() -> None:
    declaration = "CREATE STREAM S { EVENT A { a: INT, b: INT }, EVENT B { a: INT } }\n"
    events = pa.table(
        {
            "type": ["A", "B", "A", "B"],
            "a": pa.array([1, 1, 2, 2], pa.int32()),
            "b": pa.array([3] * 4, pa.int32()),
        }
    )
    for condition, expected in (
        ("x.a + x.b > 4", [2]),
        ("x.a + x.b IS NULL", [1, 3]),
        ("NOT (x.a + x.b > 4)", [0]),
        ("x.a / x.b IN (1, 2) OR x.a = 1", [0, 1]),
    ):
        with interpreted():
            matcher = celc.compile(
                f"{declaration}SELECT NONE WHERE (A OR B) AS x FILTER {condition}"
            )
        found = only_query(matcher).match_table(events)
        assert found["start_pos"].to_pylist() == expected, condition


def test_days_beyond_all_times() -> None:
    """Spark fails where a DATE is compared with a TIMESTAMP and begins before or after all of them;
    here such a day is before or after them."""
    last = (2**63 - 1) // DAY
    events = [
        {"e1": day, "t1": time}
        for day in (-(2**31), -last - 1, last + 1, 2**31 - 1)
        for time in (-(2**62), 2**62)
    ]
    conditions = [Condition("x.e1 < x.t1", ""), Condition("x.e1 > x.t1", "")]
    table = _table(events)
    for decide in (decided_by_queries, decided_by_compiled_code):
        less, more = decide(conditions, table)
        assert less.tolist() == [True] * 4 + [False] * 4
        assert more.tolist() == [False] * 4 + [True] * 4


def test_long_lists_in_every_query_of_a_file() -> None:
    lists = ["2, 3, 5, 7, 11, 13, 17, 19, 23, 29", "4, 6, 8, 9, 10, 12, 14, 15, 16, 18, 20"]
    text = DECLARATION + "\n".join(
        f"QUERY q{k}: SELECT NONE FROM S WHERE E AS x FILTER x.i1 IN ({listed})"
        for k, listed in enumerate(lists)
    )
    table = _table({"i1": number} for number in range(30))
    with interpreted():
        matcher = celc.compile(text)
    for query, listed in zip(matcher.queries.values(), lists, strict=True):
        found = query.match_table(table)["start_pos"].to_pylist()
        assert found == [int(number) for number in listed.split(", ")]
