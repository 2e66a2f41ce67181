"""What resolving makes of SELECT TOTAL and SELECT COLLAPSED, and that offered changes are right."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from cases_io import load_cases, load_refused
from places import CASES, TESTS

from celc import verify
from celc.core import formula as core
from celc.core.formula import MAX_FORMULA_DEPTH, DataType
from celc.diagnostics.errors import CelError, Diagnostic
from celc.diagnostics.source import Source, Span
from celc.interfaces.explain.stages import query_lines
from celc.normal.normalize import output_labels
from celc.parse.parser import parse
from celc.resolve.resolver import resolve
from celc.verify import texts

FOLDER = CASES / "totals"
NOWHERE = Span(0, 0)
STREAM = """CREATE STREAM S {
  EVENT A {
    i: INT, l: LONG, f: FLOAT, d: DOUBLE, s: STRING, b: BOOLEAN, t: TIMESTAMP, y: DATE, v: INTERVAL
  },
  EVENT B { t: TIMESTAMP, y: DATE }
}
"""


def query_of(text: str, **options: Any) -> core.Query:
    source = Source("q.cel", STREAM + text)
    (query,), _ = resolve(parse(source), source, **options)
    assert not list(verify.core_query(query, MAX_FORMULA_DEPTH))
    return query


def total_of(rest: str, **options: Any) -> core.Total:
    total = query_of(f"SELECT TOTAL {rest}", **options).total
    assert total is not None
    return total


def errors_of(text: str, **options: Any) -> tuple[Diagnostic, ...]:
    source = Source("q.cel", text)
    try:
        resolve(parse(source), source, **options)
    except CelError as refusal:
        return tuple(one for one in refusal.diagnostics if one.severity == "error")
    return ()


# --- the cases ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", ["28-totals", "29-collapsed"])
def test_cases(stem: str) -> None:
    for case in load_cases(stem, FOLDER):
        source = Source("q.cel", case.query)
        (query,), _ = resolve(parse(source), source, order_by=case.order_by)
        assert (query.total is not None, query.collapsed) == (stem[0:2] == "28", stem[0:2] == "29")
        assert not list(verify.core_query(query, MAX_FORMULA_DEPTH))


def test_cases_that_are_errors() -> None:
    for case in load_refused(FOLDER):
        found = errors_of(case.query, order_by=case.order_by)
        assert len(found) == 1, case.name
        assert found[0].help, case.name


# --- items ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "data_type"),
    [
        ("COUNT(*)", core.COUNTS),
        ("count(x)", core.COUNTS),
        ("APPROX_COUNT(*)", DataType.DOUBLE),
        ("SUM(x.i)", core.COUNTS),
        ("SUM(x.l)", core.COUNTS),
        ("SUM(x.f)", DataType.DOUBLE),
        ("SUM(x.d)", DataType.DOUBLE),
        ("SUM(x.v)", DataType.INTERVAL),
        ("AVG(x.i)", DataType.DOUBLE),
        ("AVG(x.v)", DataType.INTERVAL),
        ("MIN(x.i)", DataType.INT),
        ("MAX(x.f)", DataType.FLOAT),
        ("MAX(x.b)", DataType.BOOLEAN),
        ("MIN(x.t)", DataType.TIMESTAMP),
        ("MIN(x.y)", DataType.DATE),
        ("COUNT(*) + 1", core.COUNTS),
        ("2 * COUNT(x) - SUM(x.i) % 3", core.COUNTS),
        ("-COUNT(*)", core.COUNTS),
        ("COUNT(*) + NULL", core.COUNTS),
        ("COUNT(x) / COUNT(*)", DataType.DOUBLE),
        ("COUNT(x) + 0.5", DataType.DOUBLE),
        ("COUNT(x) * MAX(x.f)", DataType.DOUBLE),
        ("MAX(x.i) + MIN(x.l)", DataType.LONG),
        ("MAX(x.f) + MIN(x.l)", DataType.FLOAT),
        ("MAX(x.t) - MIN(x.t)", DataType.INTERVAL),
        ("SUM(x.v) * COUNT(*)", DataType.INTERVAL),
        ("2 * SUM(x.v) + 5 MINUTES", DataType.INTERVAL),
    ],
)
def test_types(item: str, data_type: DataType) -> None:
    total = total_of(f"{item} AS n WHERE A AS x ; B")
    assert [(one.name, one.text, one.value.type) for one in total.items] == [("n", item, data_type)]


def test_casts_are_explicit() -> None:
    (item,) = total_of("COUNT(x) / 2 + SUM(x.i) AS n WHERE A AS x").items
    count = core.TotalOf("COUNT", "x", None, core.COUNTS, NOWHERE)
    sum_of = core.TotalOf("SUM", "x", "i", core.COUNTS, NOWHERE, DataType.INT)
    double = DataType.DOUBLE
    quotient = core.Arithmetic(
        "/",
        core.Cast(count, double, NOWHERE),
        core.Constant(2.0, double, NOWHERE),
        double,
        NOWHERE,
    )
    assert item.value == core.Arithmetic(
        "+", quotient, core.Cast(sum_of, double, NOWHERE), double, NOWHERE
    )


def test_totals_are_of_all_labels() -> None:
    query = query_of("SELECT TOTAL COUNT(*) AS n WHERE (A AS x ; B)[x -> z] ; PROJECT[y](A AS y)")
    assert query.output == ()
    assert output_labels(query) == ("A", "B", "y", "z")


def test_labels_are_no_columns() -> None:
    assert total_of("COUNT(end_pos) AS n WHERE A AS end_pos").items


# --- groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "per"),
    [
        ("", core.PerEnd(NOWHERE)),
        ("PER END", core.PerEnd(NOWHERE)),
        ("PER PARTITION", core.PerPartition(NOWHERE)),
        ("WITHIN 1 DAY [t] PER 1 HOUR", core.PerSpan(3_600_000_000, NOWHERE)),
        ("WITHIN 1 DAY [y] PER 1 DAY 0.5 SECONDS", core.PerSpan(86_400_500_000, NOWHERE)),
    ],
)
def test_groups(rest: str, per: core.Per) -> None:
    assert total_of(f"COUNT(*) AS n WHERE A {rest}").per == per


def test_spans_are_of_the_order_column_of_the_call() -> None:
    per = total_of("COUNT(*) AS n WHERE A PER 2 DAYS", order_by=("y",)).per
    assert per == core.PerSpan(172_800_000_000, NOWHERE)


@pytest.mark.parametrize("name", ["span_start", "SPAN_END"])
def test_columns_of_spans_are_taken_by_spans_alone(name: str) -> None:
    assert total_of(f"COUNT(*) AS {name} WHERE A PER PARTITION").items
    text = f"{STREAM} SELECT TOTAL COUNT(*) AS {name} WHERE A PER 1 DAY"
    assert [one.code for one in errors_of(text, order_by=("t",))] == ["duplicate-column"]


@pytest.mark.parametrize("items", ["TOTAL COUNT(*) AS decided_time", "COLLAPSED decided_time"])
def test_the_time_of_decisions_is_taken_after_absences(items: str) -> None:
    text = f"{STREAM} SELECT {items} WHERE A AS decided_time ; !B FOR 5 SECONDS"
    assert [one.code for one in errors_of(text, order_by=("t",))] == ["duplicate-column"]


# --- HAVING ---------------------------------------------------------------------------------------


def test_having_names_items() -> None:
    having = total_of("COUNT(*) AS n, AVG(x.d) AS m WHERE A AS x HAVING n > m AND NOT n = 3").having
    n = core.Variable("n", core.COUNTS, NOWHERE)
    assert having == core.Every(
        (
            core.Comparison(
                ">",
                core.Cast(n, DataType.DOUBLE, NOWHERE),
                core.Variable("m", DataType.DOUBLE, NOWHERE),
                NOWHERE,
            ),
            core.Comparison("!=", n, core.Constant(3, core.COUNTS, NOWHERE), NOWHERE),
        ),
        NOWHERE,
    )


@pytest.mark.parametrize(
    "having",
    [
        "n BETWEEN 2 AND 2.5",
        "n IN (1, 2, NULL)",
        "n IS NOT NULL OR d > 5 MINUTES",
        "ABS(n - 5) * 2 % 3 = 4",
        "d * n < 1 DAY",
        "flag = TRUE",
        "last >= TIMESTAMP '2026-01-01 00:00:00'",
    ],
)
def test_conditions_of_having(having: str) -> None:
    items = "COUNT(*) AS n, SUM(x.v) AS d, MAX(x.b) AS flag, MAX(x.t) AS last"
    assert total_of(f"{items} WHERE A AS x HAVING {having}").having is not None


def test_items_may_be_called_like_labels() -> None:
    assert total_of("COUNT(*) AS x, COUNT(x) AS A WHERE A AS x HAVING x > A").having is not None


# --- COLLAPSED ------------------------------------------------------------------------------------


def test_collapsed() -> None:
    query = query_of("SELECT COLLAPSED x[i], B WHERE (A AS x)+ ; B")
    assert (query.collapsed, query.total, query.strategy) == (True, None, "ALL")
    assert [item.label for item in query.output if isinstance(item, core.OutputLabel)] == ["x", "B"]
    assert query_of("SELECT COLLAPSED NONE WHERE A ; B").output == ()


# --- warnings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("items", ["TOTAL COUNT(*) AS n", "COLLAPSED *"])
def test_no_warning_of_many_matches(items: str) -> None:
    source = Source("q.cel", f"{STREAM} SELECT {items} WHERE (A AS x)+ ; B")
    _, found = resolve(parse(source), source, order_by=("t",))
    assert not found


# --- offered changes ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((TESTS / "errors" / "totals").glob("*.cel")), ids=str)
def test_each_offered_change_mends_its_mistake(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    order = ("ts",) if "order-by: ts" in text else None
    found = errors_of(text, order_by=order)
    for one in found:
        for fix in one.fixes:
            changed = text[: fix.span.start] + fix.text + text[fix.span.end :]
            assert len(errors_of(changed, order_by=order)) < len(found), fix
            assert fix.text in "\n".join(one.help), fix


# --- explain and verify ---------------------------------------------------------------------------


def test_lines_of_totals() -> None:
    query = query_of(
        "QUERY q: SELECT TOTAL COUNT(*) AS n, SUM(x.d) / COUNT(*) AS m FROM S WHERE A AS x ; B "
        "WITHIN 1 DAY [t] PER 10 SECONDS HAVING n > 1 OR m IS NULL"
    )
    assert query_lines(query) == [
        "query q",
        "streams: S",
        "total: COUNT(*) AS n DECIMAL(38, 0), SUM(x.d) / COUNT(*) AS m DOUBLE",
        "per: 10000000 microseconds",
        "having: n > 1 OR m IS NULL",
        "window: 1 DAY on t TIMESTAMP",
        "order: t TIMESTAMP",
    ]


def test_lines_of_collapsed_matches() -> None:
    query = query_of("QUERY q: SELECT COLLAPSED x[i] WHERE A AS x ; B")
    assert "output: x[i], matches collapsed" in query_lines(query)


def _broken(**changes: Any) -> core.Query:
    query = query_of("SELECT TOTAL COUNT(x) AS n, SUM(x.i) AS s WHERE A AS x HAVING n > 1")
    assert query.total is not None
    return dataclasses.replace(query, total=dataclasses.replace(query.total, **changes))


def _item(value: core.Expression) -> tuple[core.TotalItem, ...]:
    return (core.TotalItem("n", "", value, NOWHERE),)


@pytest.mark.parametrize(
    ("query", "invariant"),
    [
        (
            _broken(items=_item(core.TotalOf("COUNT", "z", None, core.COUNTS, NOWHERE))),
            texts.OUTPUT_BOUND,
        ),
        (
            _broken(items=_item(core.TotalOf("SUM", "x", "z", core.COUNTS, NOWHERE, DataType.INT))),
            texts.TYPES_DECLARED,
        ),
        (
            _broken(items=_item(core.Variable("n", core.COUNTS, NOWHERE))),
            texts.TYPED,
        ),
        (_broken(items=()), texts.ITEMS_NAMED),
        (
            dataclasses.replace(query_of("SELECT COLLAPSED * WHERE A"), limit=1),
            texts.ALL_MATCHES,
        ),
    ],
)
def test_broken_queries(query: core.Query, invariant: str) -> None:
    found = {one.invariant for one in verify.core_query(query, MAX_FORMULA_DEPTH)}
    assert invariant in found
