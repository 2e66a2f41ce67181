"""What resolving makes of correct queries: streams, types, conditions, scopes, SELECT, clauses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

import pytest
from cases_io import load_cases
from counting import calls_of
from hypothesis import given
from hypothesis import strategies as st

from celc.core import formula as core
from celc.core.formula import (
    MAX_FORMULA_DEPTH,
    Aggregate,
    Arithmetic,
    AttributeValue,
    Cast,
    Clause,
    Comparison,
    Constant,
    DataType,
    Filter,
    Membership,
    Negation,
    NullTest,
    PatternMatch,
    Predicate,
    Previous,
)
from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.parser import parse
from celc.resolve.labels import Annotator
from celc.resolve.resolver import resolve
from celc.resolve.schema import declare, schema_of

NOWHERE = Span(0, 0)
STREAM = """
CREATE STREAM S {
  EVENT A { i: INT, l: LONG, f: FLOAT, d: DOUBLE, s: STRING, b: BOOLEAN, t: TIMESTAMP, day: DATE },
  EVENT B { i: INT, d: DOUBLE, t: TIMESTAMP },
  EVENT C { i: INT }
}
"""


def resolved(text: str, **options: Any) -> tuple[core.Query, tuple[Diagnostic, ...]]:
    source = Source("q.cel", text)
    (query,), warnings = resolve(parse(source), source, **options)
    return query, warnings


def query_of(text: str, **options: Any) -> core.Query:
    return resolved(STREAM + text, **options)[0]


def codes(text: str) -> list[str]:
    """The codes of all messages about a query, in the order of their places."""
    try:
        return [warning.code for warning in resolved(STREAM + text)[1]]
    except CelError as refusal:
        return [diagnostic.code for diagnostic in refusal.diagnostics]


def clauses_of(condition: str, formula: str = "A AS x") -> tuple[Clause, ...]:
    filtered = query_of(f"SELECT * WHERE ({formula}) FILTER {condition}").formula
    assert isinstance(filtered, Filter)
    return filtered.clauses


def predicate_of(condition: str, formula: str = "A AS x") -> Predicate:
    (clause,) = clauses_of(condition, formula)
    (predicate,) = clause.predicates
    return predicate


def sketch(formula: core.Formula) -> str:
    """A formula in short, to compare shapes."""
    match formula:
        case core.Atom():
            return formula.label
        case core.As():
            return f"{sketch(formula.operand)}@{formula.label}"
        case core.Rename():
            return f"{sketch(formula.operand)}[{formula.old}->{formula.new}]"
        case core.Project():
            return f"P[{','.join(formula.labels)}]({sketch(formula.operand)})"
        case core.Sequence():
            gaps = [":" if contiguous else ";" for contiguous in formula.contiguous]
            parts = [sketch(operand) for operand in formula.operands]
            return f"({''.join(p + g for p, g in zip(parts, [*gaps, ''], strict=True))})"
        case core.Absence():
            left, middle, right = map(sketch, (formula.left, formula.middle, formula.right))
            return f"({left};!{middle};{right})"
        case core.Iteration():
            return f"{sketch(formula.operand)}{':' if formula.contiguous else ''}+"
        case core.Disjunction():
            return f"({'|'.join(map(sketch, formula.operands))})"
        case core.Conjunction():
            return f"({sketch(formula.left)}&{sketch(formula.right)})"
        case core.All():
            return f"({sketch(formula.left)}*{sketch(formula.right)})"
        case core.Unless():
            return f"({sketch(formula.left)}-{sketch(formula.right)})"
        case core.Filter():
            return f"{sketch(formula.operand)}?{len(formula.clauses)}"
        case core.Selector():
            return f"{formula.strategy}({sketch(formula.operand)})"
        case _:
            assert_never(formula)


# --- declarations and FROM ------------------------------------------------------------------------

TWO_STREAMS = """
CREATE STREAM S { EVENT A { i: INT }, EVENT B { j: bigint } }
CREATE STREAM T { EVENT A { j: Long, i: int } }
"""


def test_declared_types_take_any_case_and_bigint() -> None:
    query, _ = resolved(TWO_STREAMS + "SELECT * FROM S, T WHERE B")
    attributes = [a for s in query.streams for e in s.event_types for a in e.attributes]
    assert [a.type for a in attributes] == [
        DataType.INT,
        DataType.LONG,
        DataType.LONG,
        DataType.INT,
    ]


@pytest.mark.parametrize(
    ("text", "streams", "type_column", "stream_column"),
    [
        ("SELECT * FROM S WHERE A", ["S"], True, False),
        ("SELECT * FROM T WHERE A", ["T"], False, False),
        ("SELECT * FROM T, S WHERE A", ["T", "S"], True, True),
        ("SELECT * WHERE A", ["S", "T"], True, True),
        ("A", ["S", "T"], True, True),
    ],
)
def test_from(text: str, streams: list[str], type_column: bool, stream_column: bool) -> None:
    query, _ = resolved(TWO_STREAMS + text)
    assert [stream.name for stream in query.streams] == streams
    assert (query.needs_type_column, query.needs_stream_column) == (type_column, stream_column)


def test_two_streams_with_different_types_need_the_type_column_only() -> None:
    query, _ = resolved("CREATE STREAM S { EVENT A {} } CREATE STREAM T { EVENT B {} } A ; B")
    assert (query.needs_type_column, query.needs_stream_column) == (True, False)


@pytest.mark.parametrize(
    ("text", "owners"),
    [
        ("SELECT * FROM S, T WHERE A", ["S", "T"]),
        ("SELECT * FROM T, S WHERE A", ["T", "S"]),
        ("SELECT * FROM S, T WHERE T>A", ["T"]),
    ],
)
def test_the_types_of_an_atom_stand_in_the_order_of_from(text: str, owners: list[str]) -> None:
    atom = resolved(TWO_STREAMS + text)[0].formula
    assert isinstance(atom, core.Atom)
    assert (atom.label, [event_type.stream for event_type in atom.types]) == ("A", owners)


def test_names_of_queries() -> None:
    assert query_of("SELECT * WHERE A").name == "q"
    assert query_of("QUERY `of mine`: SELECT * WHERE A").name == "of mine"


# --- coercions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "left", "right"),
    [
        ("x.i = 1", "i", 1),
        ("x.i = 3000000000", "LONG(i)", 3_000_000_000),
        ("x.i = 1.5", "DOUBLE(i)", 1.5),
        ("x.l = 1", "l", 1),
        ("x.d = 1", "d", 1.0),
        ("x.f = 1", "f", 1.0),
        ("x.f = 16777217", "f", 16777216.0),
        ("x.f = 0.1", "DOUBLE(f)", 0.1),
        ("x.i = x.l", "LONG(i)", "l"),
        ("x.l = x.f", "FLOAT(l)", "f"),
        ("x.d = x.f", "d", "DOUBLE(f)"),
        ("x.t = x.day", "t", "TIMESTAMP(day)"),
        ("x.day < TIMESTAMP '1970-01-02'", "TIMESTAMP(day)", 86_400_000_000),
        ("x.t < DATE '1970-01-02'", "t", 86_400_000_000),
        ("x.s = 'a'", "s", "'a'"),
        ("x.b < TRUE", "b", True),
        ("x.s = NULL", "s", None),
        ("NULL = x.t", None, "t"),
        ("x.i + 1 = 2", "(i + 1)INT", 2),
        ("x.i + x.l = 2", "(LONG(i) + l)LONG", 2),
        ("x.l * x.f = 2", "(FLOAT(l) * f)FLOAT", 2.0),
        ("x.d % 2 = 1", "(d % 2.0)DOUBLE", 1.0),
        ("x.i / x.l > 1", "(DOUBLE(i) / DOUBLE(l))DOUBLE", 1.0),
        ("x.i - NULL = 1", "(i - None)INT", 1),
        ("-x.f > 1", "-f", 1.0),
        ("ABS(x.i) > 1", "ABS(i)", 1),
        ("x.i = -2147483648", "i", -2147483648),
        ("x.i = - -2147483648", "i", -2147483648),
        ("x.i = 2147483648", "LONG(i)", 2147483648),
        ("x.l = -9223372036854775808", "l", -(2**63)),
        ("x.d = -1.5", "d", -1.5),
        ("SUM(x.i) = 1", "SUM(i)LONG", 1),
        ("SUM(x.f) = 1", "SUM(f)DOUBLE", 1.0),
        ("AVG(x.l) = 1", "AVG(l)DOUBLE", 1.0),
        ("MAX(x.f) = 1", "MAX(f)FLOAT", 1.0),
        ("first(x.s) = 'a'", "FIRST(s)STRING", "'a'"),
        ("COUNT(x) = 1.5", "DOUBLE(COUNT(None)LONG)", 1.5),
        ("MIN(PRIOR x.i) = x.i", "MIN(PRIOR i)INT", "i"),
        ("PREV(x.day) = x.t", "TIMESTAMP(PREV(day))", "t"),
    ],
)
def test_both_sides_of_a_comparison_get_the_common_type(
    condition: str, left: object, right: object
) -> None:
    predicate = predicate_of(condition)
    assert isinstance(predicate, Comparison)
    assert predicate.left.type is predicate.right.type
    assert (written(predicate.left), written(predicate.right)) == (left, right)


def written(expression: core.Expression) -> object:
    """An expression with its casts and types; of a literal its value, text in quotes."""
    match expression:
        case Constant(value=str() as text):
            return f"'{text}'"
        case Constant():
            return expression.value
        case AttributeValue():
            return expression.attribute
        case Cast():
            return f"{expression.type.value}({written(expression.operand)})"
        case Arithmetic():
            left, right = written(expression.left), written(expression.right)
            return f"({left} {expression.operator} {right}){expression.type.value}"
        case Negation():
            return f"-{written(expression.operand)}"
        case core.Absolute():
            return f"ABS({written(expression.operand)})"
        case Aggregate():
            prior = "PRIOR " if expression.prior else ""
            call = f"{expression.function}({prior}{expression.attribute})"
            return call + expression.type.value
        case Previous():
            return f"PREV({expression.attribute})"
        case _:
            assert_never(expression)


def test_a_literal_has_the_type_of_the_comparison() -> None:
    predicate = predicate_of("x.d = 1")
    assert isinstance(predicate, Comparison)
    assert predicate.right == Constant(1.0, DataType.DOUBLE, NOWHERE)
    assert type(predicate.right.value) is float


@pytest.mark.parametrize(
    ("literal", "microseconds"),
    [
        ("1970-01-01", 0),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T00:00:00.5", 500_000),
        ("1970-01-01 00:00:00.000001Z", 1),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1969-12-31 18:30:00-05:30", 0),
        ("1969-12-31 23:59:59.999999", -1),
        ("0001-01-01", -62_135_596_800_000_000),
        ("9999-12-31 23:59:59.999999", 253_402_300_799_999_999),
    ],
)
def test_timestamps(literal: str, microseconds: int) -> None:
    predicate = predicate_of(f"x.t = TIMESTAMP '{literal}'")
    assert isinstance(predicate, Comparison)
    assert predicate.right == Constant(microseconds, DataType.TIMESTAMP, NOWHERE)


@pytest.mark.parametrize(
    "literal",
    [
        "",
        "1970-1-1",
        "70-01-01",
        "1970-01-01 00:00",
        "1970-01-01  00:00:00",
        "1970-01-01 24:00:00",
        "1970-01-01 00:00:60",
        "1970-01-01 00:00:00.",
        "1970-01-01 00:00:00.0000001",
        "1970-01-01 00:00:00 UTC",
        "1970-01-01 00:00:00+1:00",
        "1970-01-01 00:00:00+18:01",
        "1970-01-01Z",
        "1970-02-29",
        "0000-01-01",
        " 1970-01-01",
        "1970-01-01\n",
        "١٩٧٠-01-01",
    ],
)
def test_what_is_no_timestamp(literal: str) -> None:
    assert codes(f"SELECT * WHERE A AS x FILTER x.t = TIMESTAMP '{literal}'") == [
        "invalid-timestamp"
    ]


def test_dates_count_days() -> None:
    predicate = predicate_of("x.day = DATE '1969-12-31'")
    assert isinstance(predicate, Comparison)
    assert predicate.right == Constant(-1, DataType.DATE, NOWHERE)


# --- predicates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "values", "has_null", "negated", "data_type"),
    [
        ("x.i IN (3, 1, 3)", (3, 1), False, False, DataType.INT),
        ("x.i NOT IN (1, 2.5)", (1.0, 2.5), False, True, DataType.DOUBLE),
        ("x.l IN (1, NULL)", (1,), True, False, DataType.LONG),
        ("x.s IN {'a', 'b'}", ("a", "b"), False, False, DataType.STRING),
        ("x.d IN (0.0, -0.0)", (0.0,), False, False, DataType.DOUBLE),
        ("x.day IN (TIMESTAMP '1970-01-01')", (0,), False, False, DataType.TIMESTAMP),
        ("NULL IN (1, 2)", (1, 2), False, False, DataType.INT),
        ("x.i IN (NULL)", (), True, False, DataType.INT),
        ("NOT x.i IN (1)", (1,), False, True, DataType.INT),
        ("x[i IN (1)]", (1,), False, False, DataType.INT),
    ],
)
def test_in_lists(
    condition: str, values: tuple[object, ...], has_null: bool, negated: bool, data_type: DataType
) -> None:
    predicate = predicate_of(condition)
    assert isinstance(predicate, Membership)
    assert (predicate.values, predicate.has_null, predicate.negated) == (values, has_null, negated)
    assert predicate.operand.type is data_type
    assert [type(value) for value in predicate.values] == [type(value) for value in values]


def test_expressions_in_lists_become_comparisons() -> None:
    (clause,) = clauses_of("x.i IN (1, x.l, 2)")
    membership, comparison = clause.predicates
    assert isinstance(membership, Membership)
    assert membership.values == (1, 2)
    assert isinstance(comparison, Comparison)
    assert (comparison.operator, written(comparison.left)) == ("=", "LONG(i)")
    negated = clauses_of("x.i NOT IN (1, x.l, 2)")
    assert [
        predicate.operator
        for c in negated
        for predicate in c.predicates[:1]
        if isinstance(predicate, Comparison)
    ] == ["!="]
    assert len(negated) == 2


def test_patterns() -> None:
    predicate = predicate_of(r"NOT x.s LIKE 'a\%_\_\\%'")
    text = AttributeValue("x", "s", DataType.STRING, NOWHERE)
    assert predicate == PatternMatch("LIKE", text, r"a\%_\_\\%", True, NOWHERE)
    predicate = predicate_of(r"x.s NOT RLIKE '^\d+$'")
    assert predicate == PatternMatch("RLIKE", text, r"^\d+$", True, NOWHERE)


# --- normal form of conditions --------------------------------------------------------------------


def rows(condition: str, formula: str = "A AS x", **options: Any) -> list[list[str]]:
    """The clauses of a condition as lists of predicates in short."""
    text = f"SELECT * WHERE ({formula}) FILTER {condition}"
    filtered = query_of(text, **options).formula
    assert isinstance(filtered, Filter)
    return [[short(predicate) for predicate in clause.predicates] for clause in filtered.clauses]


def short(predicate: Predicate) -> str:
    match predicate:
        case Comparison():
            return f"{written(predicate.left)}{predicate.operator}{written(predicate.right)}"
        case Membership():
            return f"{written(predicate.operand)}{'!' if predicate.negated else '~'}"
        case NullTest():
            return f"{written(predicate.operand)}{'!?' if predicate.negated else '?'}"
        case PatternMatch():
            return f"{written(predicate.operand)}{'!%' if predicate.negated else '%'}"
        case _:
            assert_never(predicate)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x.i = 1 AND x.i = 2", [["i=1"], ["i=2"]]),
        ("x.i = 1 OR x.i = 2", [["i=1", "i=2"]]),
        ("NOT x.i < 1", [["i>=1"]]),
        ("NOT (x.i = 1 AND x.i >= 2)", [["i!=1", "i<2"]]),
        ("NOT (x.i <> 1 OR x.i <= 2)", [["i=1"], ["i>2"]]),
        ("NOT NOT x.i > 1", [["i>1"]]),
        ("NOT x.i IS NULL", [["i!?"]]),
        ("x.i BETWEEN 1 AND 2", [["i>=1"], ["i<=2"]]),
        ("x.i NOT BETWEEN 1 AND 2", [["i<1", "i>2"]]),
        ("NOT x.i NOT BETWEEN 1 AND 2", [["i>=1"], ["i<=2"]]),
        ("NOT x[i = 1 OR d IS NULL]", [["i!=1"], ["d!?"]]),
        ("x.i = 1 AND x.d = 2 OR x.i = 3", [["i=1", "i=3"], ["d=2.0", "i=3"]]),
        (
            "(x.i = 1 AND x.i = 2) OR (x.i = 3 AND x.i = 4)",
            [["i=1", "i=3"], ["i=1", "i=4"], ["i=2", "i=3"], ["i=2", "i=4"]],
        ),
        ("x.i = 1 AND x.i = 1", [["i=1"]]),
        ("x.i = 1 OR x.i = 1", [["i=1"]]),
        ("(x.i = 1 OR x.i = 2) AND (x.i = 2 OR x.i = 1)", [["i=1", "i=2"]]),
        ("(x.i = 1 AND x.i = 2) OR x.i = 1", [["i=1"], ["i=2", "i=1"]]),
    ],
)
def test_conjunctive_normal_form(condition: str, expected: list[list[str]]) -> None:
    assert rows(condition) == expected


def test_the_place_of_a_clause_is_the_or_it_comes_from() -> None:
    text = STREAM + "SELECT * WHERE A AS x FILTER x.i = 1 AND (x.i = 2 OR (x.i = 3 AND x.i = 4))"
    formula = resolved(text)[0].formula
    assert isinstance(formula, Filter)
    assert [text[clause.span.start : clause.span.end] for clause in formula.clauses] == [
        "x.i = 1",
        "(x.i = 2 OR (x.i = 3 AND x.i = 4))",
        "(x.i = 2 OR (x.i = 3 AND x.i = 4))",
    ]


def test_the_labels_of_a_clause_stand_outside_aggregates() -> None:
    (clause,) = clauses_of(
        "y.i = 1 OR SUM(z.i) > 2 OR x.i < PREV(w.i) OR MAX(PRIOR z.i) > y.d",
        "A AS x ; B AS y ; (C AS z)+ ; (C AS w)+",
    )
    assert clause.labels == ("y", "x", "w", "z")


def power(n: int) -> str:
    return " OR ".join(f"(x.i = {k} AND x.d = {k})" for k in range(n))


def test_the_limit_on_clauses() -> None:
    assert len(rows(power(3), max_clauses=8)) == 8
    with pytest.raises(CelError, match="8 clauses with 24 comparisons") as refusal:
        rows(power(3), max_clauses=7)
    assert [diagnostic.code for diagnostic in refusal.value.diagnostics] == ["condition-too-large"]


def test_what_is_written_out_is_never_too_large() -> None:
    both = " AND ".join(f"(x.i != {k} OR x.d != {k})" for k in range(20))
    assert len(rows(both, max_clauses=5)) == 20


def test_a_count_beyond_all_numbers_is_refused_before_anything_is_built() -> None:
    with pytest.raises(CelError, match=r"about 10\^602 clauses"):
        rows(power(2_000))


def test_few_clauses_can_be_too_large_together() -> None:
    long = " OR ".join(f"x.d > {k}" for k in range(1500))
    with pytest.raises(CelError, match="condition-too-large"):
        rows(f"({' AND '.join(f'x.i != {k}' for k in range(200))}) OR {long}")


# Conditions over three attributes, evaluated by SQL's three-valued logic as written.
_leaf = st.one_of(
    st.builds(
        lambda operator, name, value: syntax.Comparison(
            operator,
            syntax.Attribute(syntax.Name("x", NOWHERE), syntax.Name(name, NOWHERE), NOWHERE),
            syntax.IntegerLiteral(value, NOWHERE),
            NOWHERE,
        ),
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        st.sampled_from("ijk"),
        st.integers(0, 2),
    ),
    st.builds(
        lambda name, values, negated: syntax.InList(
            syntax.Attribute(syntax.Name("x", NOWHERE), syntax.Name(name, NOWHERE), NOWHERE),
            tuple(
                (
                    syntax.NullLiteral(NOWHERE)
                    if value is None
                    else syntax.IntegerLiteral(value, NOWHERE)
                )
                for value in values
            ),
            negated,
            NOWHERE,
        ),
        st.sampled_from("ijk"),
        st.lists(st.integers(0, 2) | st.none(), min_size=1, max_size=3).filter(any),
        st.booleans(),
    ),
)
_conditions = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds(lambda operand: syntax.NotCondition(operand, NOWHERE), inner),
        st.builds(
            lambda kind, operands: kind(tuple(operands), NOWHERE),
            st.sampled_from([syntax.AndCondition, syntax.OrCondition]),
            st.lists(inner, min_size=2, max_size=3),
        ),
    ),
    max_leaves=8,
)
_values = st.fixed_dictionaries({name: st.integers(0, 2) | st.none() for name in "ijk"})


def truth(condition: syntax.Condition, event: dict[str, int | None]) -> bool | None:
    match condition:
        case syntax.NotCondition():
            inner = truth(condition.operand, event)
            return None if inner is None else not inner
        case syntax.AndCondition():
            parts = [truth(operand, event) for operand in condition.operands]
            return False if False in parts else None if None in parts else True
        case syntax.OrCondition():
            parts = [truth(operand, event) for operand in condition.operands]
            return True if True in parts else None if None in parts else False
        case syntax.Comparison(
            left=syntax.Attribute() as left, right=syntax.IntegerLiteral() as right
        ):
            return compared(condition.operator, event[left.attribute.text], right.value)
        case syntax.InList(operand=syntax.Attribute() as operand):
            value = event[operand.attribute.text]
            items = [getattr(item, "value", None) for item in condition.items]
            equal = [compared("=", value, item) for item in items]
            found = True if True in equal else None if None in equal else False
            return found if found is None or not condition.negated else not found
        case _:
            raise AssertionError(condition)


def compared(operator: str, left: int | None, right: int | None) -> bool | None:
    if left is None or right is None:
        return None
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def holds(predicate: Predicate, event: dict[str, int | None]) -> bool:
    if isinstance(predicate, Membership):
        assert isinstance(predicate.operand, AttributeValue)
        value = event[predicate.operand.attribute]
        if value is None or (predicate.negated and predicate.has_null):
            return False
        return (value in predicate.values) != predicate.negated
    assert isinstance(predicate, Comparison)
    assert isinstance(predicate.left, AttributeValue)
    assert isinstance(predicate.right, Constant)
    assert isinstance(predicate.right.value, int)
    return bool(
        compared(predicate.operator, event[predicate.left.attribute], predicate.right.value)
    )


@given(_conditions, _values)
def test_the_normal_form_is_true_where_the_condition_is(
    condition: syntax.Condition, event: dict[str, int | None]
) -> None:
    source = Source("q.cel", "CREATE STREAM S { EVENT A { i: INT, j: INT, k: INT } } A AS x")
    file = parse(source)
    (query,) = file.queries
    filtered = syntax.Filter(query.formula, condition, NOWHERE)
    changed = syntax.Query(None, None, None, filtered, None, None, None, None, NOWHERE)
    (result,), _ = resolve(syntax.File(file.streams, (changed,), NOWHERE), source)
    assert isinstance(result.formula, Filter)
    as_clauses = all(
        any(holds(predicate, event) for predicate in clause.predicates)
        for clause in result.formula.clauses
    )
    assert as_clauses == (truth(condition, event) is True)


# --- formulas and scopes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("A ; B : C", "(A;B:C)"),
        ("(A ; B) ; C", "((A;B);C)"),
        ("A ; !B ; C", "(A;!B;C)"),
        ("A ; B ; !C ; A : B", "(((A;B);!C;A):B)"),
        ("A ; !B ; C ; !A ; B", "((A;!B;C);!A;B)"),
        ("A AND B AND C", "((A&B)&C)"),
        ("A AND B ALL C ALL A", "(((A&B)*C)*A)"),
        ("A ALL B AND C", "((A*B)&C)"),
        ("A OR B OR C", "(A|B|C)"),
        ("(A ; B) UNLESS C", "((A;B)-C)"),
        ("NXT(A AS x)[x -> y]+ :+", "NXT(A@x)[x->y]+:+"),
        ("PROJECT[y, x](A AS x ; B AS y)", "P[y,x]((A@x;B@y))"),
        ("PROJECT[](A)", "P[](A)"),
    ],
)
def test_formulas(text: str, shape: str) -> None:
    assert sketch(query_of(f"SELECT NONE WHERE {text}").formula) == shape


def test_long_runs_of_and_make_shallow_trees() -> None:
    formula = query_of(f"SELECT NONE WHERE {' AND '.join(['A'] * 1000)}").formula
    deepest = 0
    waiting = [(formula, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, core.Conjunction):
            waiting += [(node.left, depth + 1), (node.right, depth + 1)]
    assert deepest == 11


@pytest.mark.parametrize(
    "text",
    [
        "A AS x ; (B FILTER B.d > x.d)+ ; C",
        "(B FILTER B.d > x.d) ; A AS x",
        "A ; (B AS y FILTER A.i = y.i)",
        "(A AS x ; C) UNLESS (B FILTER B.i = x.i)",
        "A AS x ; !(B FILTER B.i = x.i) ; C",
        "A ; !(B FILTER B.i = x.i) ; C AS x",
        "A ; !(B FILTER B.i = x.i) ; C ; A AS x",
        "NXT(A AS x ; (B FILTER B.i = x.i)+)",
        "PROJECT[x](A AS x ; (B FILTER B.i = x.i))",
        "((A FILTER A.i = m.i) ; B) AS m",
        "((A FILTER A.i = m.i)+ ; B) AS m",
        "((A AS x ; B)[x -> y] ; C) FILTER y.i = C.i",
    ],
)
def test_labels_that_a_filter_sees(text: str) -> None:
    assert "maybe-unbound" not in codes(f"SELECT NONE WHERE {text}")
    query_of(f"SELECT NONE WHERE {text}")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("A ; (B FILTER B.i = z.i)", "unbound-label"),
        ("A FILTER B.i = 1", "unbound-label"),
        ("((A AS x ; B)[x -> y] ; C) FILTER x.i = C.i", "label-renamed"),
        ("(A AS x)[x -> y] ; (B FILTER x.i = 1)", "label-renamed"),
        ("PROJECT[x](A AS x ; B AS y) ; (C FILTER y.i = 1)", "label-projected"),
        ("A ; !(B AS y) ; (C FILTER y.i = 1)", "label-negated"),
        ("((A ; C) UNLESS (B AS y)) ; (C FILTER y.i = 1)", "label-unless"),
        ("(A ; (C FILTER y.i = 1)) UNLESS (B AS y)", "label-unless"),
    ],
)
def test_labels_that_a_filter_does_not_see(text: str, code: str) -> None:
    assert codes(f"SELECT NONE WHERE {text}") == [code]


def test_a_label_of_an_inner_scope_hides_the_same_label_outside() -> None:
    # Inside the +, x is a C, which has no d; outside it can be an A.
    assert codes("SELECT NONE WHERE A AS x ; (C AS x FILTER x.d > 1)+") == [
        "unsafe-label",
        "unknown-attribute",
    ]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("(A AS x OR B AS y) FILTER x.i = 1", "x"),
        ("A AS x OR (B AS y FILTER y.i = x.i)", "x"),
        ("(A AS x OR B) ; (C AS y FILTER y.i = x.i)+", "x"),
        ("(A AS x OR B)+ FILTER x.i = 1", "x"),
        ("PROJECT[x](A AS x OR B) AS m ; (C FILTER m.i = 1)", "m"),
        ("(A AS x OR B) ; !(C FILTER C.i = x.i) ; C", "x"),
    ],
)
def test_labels_that_may_be_unbound(text: str, label: str) -> None:
    _, warnings = resolved(f"{STREAM}SELECT NONE WHERE {text}")
    found = [warning.message for warning in warnings if warning.code == "maybe-unbound"]
    assert len(found) == 1
    assert f"'{label}'" in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "(A AS x OR B AS x) FILTER x.i = 1",
        "(A AS x OR B AS y) FILTER COUNT(x) > 0 AND MAX(y.i) > 2",
        "A AS x OR (A AS x ; (B AS y FILTER y.i = x.i))",
        "PROJECT[x, y](A AS x OR B AS y) AS m ; (C FILTER m.i = 1)",
        "((A OR B) AS m) FILTER m.i = 1",
        "(A AS x OR B) ; (A AS x ; B)[x -> z] FILTER z.i = 1",
    ],
)
def test_labels_that_are_always_bound(text: str) -> None:
    assert "maybe-unbound" not in codes(f"SELECT NONE WHERE {text}")


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("A AS x ; (B AS y FILTER PREV(x.i) = y.i)+", True),
        ("(A AS x FILTER x.i > MAX(PRIOR x.i))+", True),
        ("A AS x FILTER COUNT(x) > 1", True),
        ("A AS x FILTER 2 = COUNT(x)", True),
        ("A AS x FILTER COUNT(x) >= 1.5", True),
        ("A AS x FILTER COUNT(x) >= 1", False),
        ("A AS x FILTER COUNT(x) < 2", False),
        ("(A AS x)+ FILTER COUNT(x) >= 2 AND PREV(x.i) = x.i", False),
        ("(A AS x ; B AS x) FILTER COUNT(x) >= 2 AND PREV(x.i) = x.i", False),
        ("(A AS x ALL B AS x) FILTER COUNT(x) >= 2", False),
        ("(A AS x OR B AS x) FILTER COUNT(x) >= 2", True),
        ("(A AS x)[A -> x] FILTER COUNT(x) >= 2", True),
        ("PROJECT[x](A AS x ; B) AS m ; (C FILTER COUNT(m) >= 2)", True),
    ],
)
def test_single_positions(text: str, warned: bool) -> None:
    assert ("single-position" in codes(f"SELECT NONE WHERE {text}")) == warned


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("A AS x ; B AS x", True),
        ("A AS x : B AS x", True),
        ("A AS x ALL B AS x", True),
        ("A AS x AND A AS x ALL A AS x", True),
        ("A AS x AND A AS x", False),
        ("A AS x OR B AS x", False),
        ("A ; A", False),
        ("(A AS x)+", False),
        ("A AS x ; !(B AS x) ; C", False),
        ("A AS x ; PROJECT[](B AS x)", False),
    ],
)
def test_unsafe_labels(text: str, warned: bool) -> None:
    assert ("unsafe-label" in codes(f"SELECT NONE WHERE {text}")) == warned


# --- formulas that can match nothing --------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "(A ; C) UNLESS A",
        "(A ; C) UNLESS (A OR (B FILTER B.i = 1))",
        "(A+ ; C) UNLESS (A ; C)",
        "((A OR B) ; C) UNLESS ((A OR B OR C) AS x)",
        "(A ; B ; C) UNLESS (A+ ; C)",
        "A UNLESS NXT(A)",
        "A AND B",
        "(A ; A) AND A",
        "A AS x FILTER x.i > 1 AND x.i < 2",
        "A AS x FILTER x.d > 1 AND x.d <= 1",
        "A AS x FILTER x.i = 1 AND x.i = 2",
        "A AS x FILTER x.i IN (1, 2) AND x.i IN (3, 4)",
        "A AS x FILTER x.i IN (1, 2) AND x.i > 2",
        "A AS x FILTER x.i > 2 AND x.i IN (1, 2)",
        "A AS x FILTER x.i IN (1, 2) AND x.i != 1 AND x.i != 2",
        "A AS x FILTER x.i NOT IN (1, 2) AND x.i = 2",
        "A AS x FILTER x.i IS NULL AND x.i = 2",
        "A AS x FILTER x.i IS NULL AND x.i IS NOT NULL",
        "A AS x FILTER x.i >= 2 AND x.i <= 2 AND x.i != 2",
        "A AS x FILTER x.i > 2 AND 1 > x.i",
        "A AS x FILTER x.i > 2.5 AND x.i < 2",
        "A AS x FILTER x.s > 'b' AND x.s < 'a'",
        "A AS x FILTER x.b = TRUE AND x.b = FALSE",
        "A AS x FILTER x.i + 1 > 2 AND x.i + 1 < 2",
        "A AS x FILTER x.i = NULL",
        "A AS x FILTER x.i NOT IN (1, NULL)",
        "A AS x FILTER 1 > 2 OR 'a' = 'b'",
        "(A AS x)+ FILTER MAX(x.i) < 3 AND MAX(x.i) > 3",
        "(A AS x)+ FILTER COUNT(x) < 0",
        "(A AS x ; B) FILTER COUNT(x) = 0",
        "A ; B ; C WITHIN 1 EVENTS",
        "(A OR (B ; C)) : A WITHIN 0 EVENTS",
    ],
)
def test_formulas_that_can_match_nothing(text: str) -> None:
    assert "never-matches" in codes(f"SELECT NONE WHERE {text}")


@pytest.mark.parametrize(
    "text",
    [
        "(A ; C) UNLESS B",
        "(A ; C) UNLESS (A FILTER A.i = 1)",
        "(A ; C) UNLESS (A : C)",
        "(A ; C) UNLESS (C ; A)",
        "(A ; C) UNLESS (A AND A)",
        "((A OR B) ; C) UNLESS A",
        "(A ; C) UNLESS NXT(A OR (B ; A))",
        "A ; !A ; A",
        "A AND A",
        "(A OR B) AND (B OR C)",
        "(A+) AND (A ; A)",
        "(A AS x OR B) AND (A AS x OR B)",
        "A AS x FILTER x.i > 1 AND x.i < 3",
        "A AS x FILTER x.d > 1 AND x.d < 2",
        "A AS x FILTER x.i > 1 OR x.i < 0",
        "A AS x FILTER x.i != 1 AND x.i != 2",
        "A AS x FILTER x.i >= 1 AND x.i <= 1",
        "A AS x FILTER x.i IS NULL AND x.d = 1",
        "A AS x FILTER x.i = NULL OR x.i = 1",
        "A AS x FILTER x.i IN (1, NULL)",
        "(A AS x OR B) FILTER x.i > 1 AND x.i < 0",
        "(A AS x)+ FILTER PREV(x.i) > 1 AND PREV(x.i) < 0",
        "(A AS x)+ FILTER COUNT(x) > 0 AND COUNT(x) < 2",
        "(A AS x ; B AS y) FILTER x.i > 1 AND y.i < 0",
        "A ; B ; C WITHIN 2 EVENTS",
        "(A ALL B) ; C WITHIN 1 EVENTS",
        "(A ; B) OR C WITHIN 0 EVENTS",
    ],
)
def test_formulas_that_can_match(text: str) -> None:
    assert "never-matches" not in codes(f"SELECT NONE WHERE {text}")


# --- growth and cost ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("SELECT * WHERE A+", True),
        ("SELECT ANY * WHERE A+", False),
        ("SELECT NXT * WHERE A+", False),
        ("SELECT * WHERE A+ WITHIN 3 EVENTS", False),
        ("SELECT * WHERE A+ LIMIT 3", False),
        ("SELECT * WHERE A:+", False),
        ("SELECT * WHERE (A ; B):+", True),
        ("SELECT * WHERE NXT(A+) ; B", False),
        ("SELECT NONE WHERE A+ ; B", False),
        ("SELECT B WHERE A+ ; B", False),
        ("SELECT m WHERE (A+ ; B) AS m", True),
        ("SELECT SUM(x.i) AS n WHERE (A AS x)+", True),
        ("SELECT * WHERE PROJECT[B](A+ ; B)", False),
        ("SELECT y WHERE (A AS x)+[x -> y]", True),
        ("SELECT * WHERE A ; !(B+) ; C", False),
        ("SELECT * WHERE (A ; C) UNLESS (B+)", False),
    ],
)
def test_exponential_output(text: str, warned: bool) -> None:
    assert ("exponential-output" in codes(text)) == warned


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("(A AS x)+ FILTER SUM(x.i) > 3", True),
        ("(A AS x)+ FILTER AVG(PRIOR x.i) > 3", True),
        ("(A AS x)+ FILTER PREV(x.i) < x.i", True),
        ("((A AS x)+ ; B AS y) FILTER x.i < y.i", True),
        ("((A AS x ; B AS y) FILTER x.i = y.i)+", True),
        ("((A AS x)+ ; B AS y) FILTER x.i < 3 OR y.i < 3", False),
        ("(A AS x)+ FILTER COUNT(x) > 3 AND MAX(x.i) < 3 AND FIRST(x.i) = 1", False),
        ("(A AS x ; B AS y) FILTER x.i = y.i", False),
        ("STRICT((A AS x)+ FILTER SUM(x.i) > 3)", False),
        ("(A AS x)+ FILTER SUM(x.i) > 3 WITHIN 3 EVENTS", False),
    ],
)
def test_exponential_search(text: str, warned: bool) -> None:
    assert ("exponential-search" in codes(f"SELECT NXT NONE WHERE {text}")) == warned


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("SELECT NXT * WHERE A ; B", False),
        ("SELECT * WHERE A ; LAST(B ; C)", True),
        ("SELECT * WHERE (A ; B) UNLESS MAX(C)", True),
        ("SELECT * WHERE STRICT(A ; B)", False),
        ("SELECT * WHERE A CONSUME BY ANY", True),
        ("SELECT * WHERE A CONSUME BY NONE", False),
    ],
)
def test_one_ordered_scan(text: str, warned: bool) -> None:
    assert ("one-ordered-scan" in codes(text)) == warned


# --- SELECT ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "labels"),
    [
        ("A ; B", "A B"),
        ("B ; A ; B", "B A"),
        ("A AS x ; B", "x B"),
        ("(A ; B) AS m ; C", "m C"),
        ("(A AS x ; B) AS m", "x m"),
        ("A AS x ; A", "x A"),
        ("(A AS x ; B)[B -> z] ; C", "x z C"),
        ("(A AS y ; B AS x)[y -> z]", "x z"),
        ("(A AS x ; B AS y)[x -> y]", "y"),
        ("B[B -> x] AS m", "x m"),
        ("PROJECT[A](A AS x)", "A"),
        ("PROJECT[A](A AS x) AS m", "A m"),
        ("PROJECT[y, x](A AS x ; B AS y)", "y x"),
        ("(A OR B) AS x ; PROJECT[z](C AS z ; A)", "x z"),
        ("PROJECT[](A) ; A AS x", "x"),
        ("A AS x ; !A ; C", "x C"),
        ("(A AS x ; C) UNLESS (A ; B AS b)", "x C"),
        ("(A AS x OR B)+ ; C", "x B C"),
        ("(A+ FILTER A.i = 1) ALL (B AS z)", "A z"),
    ],
)
def test_select_star(formula: str, labels: str) -> None:
    for select in (f"SELECT * WHERE {formula}", formula):
        output = query_of(select).output
        assert [item.label for item in output if isinstance(item, core.OutputLabel)] == (
            labels.split()
        )


def columns(text: str) -> dict[str, str]:
    return {
        item.label: " ".join(attribute.name for attribute in item.attributes)
        for item in query_of(text).output
        if isinstance(item, core.OutputLabel)
    }


def test_attributes_of_labels() -> None:
    text = "SELECT y, x[d, i], z, A WHERE A AS x ; (C OR B) AS y ; C AS z"
    assert columns(text) == {"y": "i d t", "x": "d i", "z": "i", "A": "i l f d s b t day"}


def test_attributes_stand_in_order_of_declaration_whatever_from_says() -> None:
    query, _ = resolved(TWO_STREAMS + "SELECT x FROM T, S WHERE (T>A OR B) AS x")
    (column,) = query.output
    assert isinstance(column, core.OutputLabel)
    assert [attribute.name for attribute in column.attributes] == ["j", "i"]


def test_expressions_keep_name_and_text() -> None:
    query = query_of(
        "SELECT x, SUM(x.d) / COUNT(x) AS mean, y.i AS last, COLLECT(x.s) AS texts "
        "WHERE (A AS x)+ ; B AS y WITHIN 3 EVENTS"
    )
    expressions = [item for item in query.output if isinstance(item, core.OutputExpression)]
    assert [(item.name, item.text) for item in expressions] == [
        ("mean", "SUM(x.d) / COUNT(x)"),
        ("last", "y.i"),
        ("texts", "COLLECT(x.s)"),
    ]


@pytest.mark.parametrize(
    ("formula", "fine"),
    [
        ("A AS x ; B", True),
        ("A AS x OR B AS x", True),
        ("(A AS x)+", False),
        ("A AS x OR B", False),
        ("A AS x ; B AS x", False),
        ("A AS x ALL B AS x", False),
        ("A AS x AND A AS x", True),
        ("PROJECT[y, z](A AS y OR B AS z) AS x", True),
        ("PROJECT[y](A AS y OR B AS z) AS x", False),
        ("(A AS x)[A -> x]", True),
        ("(A AS y ; B AS z)[y -> x][z -> x]", False),
    ],
)
def test_bare_attributes_in_select_need_exactly_one_position(formula: str, fine: bool) -> None:
    found = codes(f"SELECT x.i AS v WHERE {formula} WITHIN 3 EVENTS")
    assert ("many-positions" not in found) == fine


def test_select_none_and_strategies() -> None:
    query = query_of("SELECT LAST NONE WHERE A")
    assert (query.output, query.strategy) == ((), "LAST")
    assert query.strategy_span is not None
    assert query_of("A").strategy == "ALL"


# --- windows, order, and the other clauses --------------------------------------------------------

TIMED = "CREATE STREAM S { EVENT A { i: INT, d: DOUBLE, t: TIMESTAMP, day: DATE, n: STRING } }\n"


@pytest.mark.parametrize(
    ("window", "unit", "size"),
    [
        ("0 EVENTS", core.WindowUnit.EVENTS, 0),
        ("4611686018427387904 EVENTS", core.WindowUnit.EVENTS, 2**62),
        ("10 SECONDS [t]", core.WindowUnit.MICROSECONDS, 10_000_000),
        ("1.5 hours [t]", core.WindowUnit.MICROSECONDS, 5_400_000_000),
        ("1 HOUR 30 MINUTES [t]", core.WindowUnit.MICROSECONDS, 5_400_000_000),
        ("0.001 MILLISECOND [t]", core.WindowUnit.MICROSECONDS, 1),
        ("0.1 SECONDS 0.2 SECONDS [t]", core.WindowUnit.MICROSECONDS, 300_000),
        ("53375995 DAYS [t]", core.WindowUnit.MICROSECONDS, 53_375_995 * 86_400_000_000),
        ("2 DAYS [day]", core.WindowUnit.MICROSECONDS, 2 * 86_400_000_000),
        ("0.0000005 SECONDS 0.0000005 SECONDS [t]", core.WindowUnit.MICROSECONDS, 1),
        ("3 [i]", core.WindowUnit.VALUE, 3),
        ("2.5 [d]", core.WindowUnit.VALUE, 2.5),
    ],
)
def test_windows(window: str, unit: core.WindowUnit, size: float) -> None:
    query, _ = resolved(f"{TIMED}SELECT * WHERE A WITHIN {window}")
    assert query.window is not None
    assert (query.window.unit, query.window.size) == (unit, size)
    assert type(query.window.size) is type(size)
    named = query.window.attribute
    assert (f"[{named.name}]" if named else "EVENTS") in window


@pytest.mark.parametrize(
    ("window", "order_by", "expected"),
    [
        ("", None, ()),
        ("WITHIN 3 EVENTS", None, ()),
        ("WITHIN 3 SECONDS [t]", None, ("t",)),
        ("WITHIN 3 [i]", None, ("i",)),
        ("WITHIN 3 [i]", (), ()),
        ("WITHIN 3 [i]", ("t", "n"), ("t", "n")),
        ("WITHIN 3 SECONDS", ("t", "n"), ("t", "n")),
        ("WITHIN 3 SECONDS", ("day",), ("day",)),
    ],
)
def test_order_columns(
    window: str, order_by: tuple[str, ...] | None, expected: tuple[str, ...]
) -> None:
    query, _ = resolved(f"{TIMED}SELECT * WHERE A {window}", order_by=order_by)
    assert tuple(column.name for column in query.order_by) == expected


@pytest.mark.parametrize(
    ("query", "order_by", "expected"),
    [
        ("A ; !A FOR 3 SECONDS [t]", None, ("t",)),
        ("!A FOR 3 [i] ; A", None, ("i",)),
        ("(A ; !A FOR 3 [i]) OR (A ; !A FOR 4 [i])", None, ("i",)),
        ("(A ; !A FOR 3 [i]) OR (A ; !A FOR 3 EVENTS)", None, ("i",)),
        ("(A ; !A FOR 3 [i]) OR (A ; !A FOR 3 SECONDS [t])", None, ()),
        ("(A ; !A FOR 3 [i]) OR (A ; !A FOR 3 SECONDS [t]) WITHIN 1 SECOND [t]", None, ("t",)),
        ("A ; !A FOR 3 SECONDS [t] WITHIN 5 SECONDS", None, ("t",)),
        ("A ; !A FOR 3 [i] WITHIN 5 SECONDS [t]", None, ("t",)),
        ("A ; !A FOR 3 [i]", ("t",), ("t",)),
        ("A ; !A FOR 3 [i]", (), ()),
        ("WITHIN[3 [i]](A ; A)", None, ()),
    ],
)
def test_the_length_of_an_absence_names_an_order(
    query: str, order_by: tuple[str, ...] | None, expected: tuple[str, ...]
) -> None:
    found, warnings = resolved(f"{TIMED}SELECT * WHERE {query}", order_by=order_by)
    assert tuple(column.name for column in found.order_by) == expected
    unordered = [one.code for one in warnings if one.code == "no-order"]
    assert bool(unordered) == (order_by is None and not expected)


def test_events_with_a_time_and_no_order_are_warned_of() -> None:
    """And what is advised instead is not."""

    def codes(clauses: str, order_by: tuple[str, ...] | None = None) -> list[str]:
        stream = "CREATE STREAM S { EVENT A { n: INT, `a t`: DATE } }"
        text = f"{stream} SELECT x WHERE A AS x{clauses}"
        return [one.code for one in resolved(text, order_by=order_by)[1]]

    assert codes("") == codes(" WITHIN 3 EVENTS") == ["no-order"]
    assert codes(" WITHIN 1 HOUR [`a t`]") == []
    for order_by in (("a t",), ("n",), ()):
        assert codes("", order_by) == codes(" WITHIN 3 EVENTS", order_by) == []
    assert codes(" WITHIN 3 [n]") == []


@pytest.mark.parametrize("window", ["", " WITHIN 3 EVENTS"])
def test_a_primary_time_is_an_order(window: str) -> None:
    stream = "CREATE STREAM S { EVENT A { n: INT, at: TIMESTAMP, ts: PRIMARY_TIME } }"
    query, warnings = resolved(f"{stream} SELECT x WHERE A AS x{window}")
    assert [column.name for column in query.order_by] == ["ts"]
    assert not warnings


@pytest.mark.parametrize("order_by", [(), ("i",), ("n", "t"), None])
def test_durations_need_a_time_to_be_measured_on(order_by: tuple[str, ...] | None) -> None:
    with pytest.raises(CelError, match=r"error\[unmeasured-window\][^@]*--order-by t"):
        resolved(f"{TIMED}SELECT * WHERE A WITHIN 3 SECONDS", order_by=order_by)


def test_a_refused_order_column_is_the_only_error() -> None:
    with pytest.raises(CelError) as refusal:
        resolved(f"{TIMED}SELECT * FROM S WHERE A WITHIN 3 SECONDS", order_by=("nope",))
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "unknown-order-column"
    assert refusal.value.source.slice(diagnostic.span) == "S"


def test_other_clauses() -> None:
    query, _ = resolved(
        f"{TIMED}SELECT * WHERE A PARTITION BY n, i CONSUME BY PARTITION LIMIT 4611686018427387904"
    )
    assert [attribute.name for attribute in query.partition_by] == ["n", "i"]
    assert (query.consume_by, query.limit) == ("PARTITION", 2**62)


# --- all errors at once, and size -----------------------------------------------------------------


def test_all_problems_of_all_queries_are_reported_at_once() -> None:
    assert codes(
        "QUERY a: SELECT y FROM S WHERE A AS x FILTER x.i = 'a' AND x.z = 1\n"
        "QUERY b: SELECT * FROM R WHERE Q WITHIN 1.5 EVENTS LIMIT 0\n"
        "QUERY c: SELECT * FROM S WHERE A+"
    ) == [
        "unbound-in-select",
        "compared-types",
        "unknown-attribute",
        "unknown-stream",
        "unknown-event-type",
        "whole-window",
        "limit-range",
        "exponential-output",
    ]


def _each(text: str, count: int, joined: str = ",") -> str:
    return joined.join(text.format(k=k, next=(k + 1) % count) for k in range(count))


LINEAR = 2.2
"""How many times the calls of half the size are linear; quadratic are four times."""

LONG: dict[str, Callable[[int], str]] = {
    "in": lambda n: f"A AS x FILTER x.i IN ({_each('{k}', 5 * n)})",
    "not in": lambda n: f"A AS x FILTER x.i NOT IN ({_each('x.i + {k}', n)})",
    "conditions, or": lambda n: f"A AS x FILTER {_each('x.i = {k}', n, ' OR ')}",
    "conditions, and": lambda n: f"A AS x FILTER {_each('x.i != {k}', n, ' AND ')}",
    "conditions, not or": lambda n: (
        f"A AS x FILTER NOT ({_each('x.i = {k} AND x.d = {k}', n // 2, ' OR ')})"
    ),
    "sequence": lambda n: _each("(A AS x{k} FILTER x{k}.i = x{next}.i)", n // 2, " ; "),
    "or": lambda n: _each("A AS x{k}", n // 2, " OR "),
    "all": lambda n: _each("A AS x{k}", n // 2, " ALL "),
}
"""Queries with n of something, or a part of n."""


@pytest.mark.each(4)
@pytest.mark.parametrize("name", LONG)
def test_long_queries_are_resolved_in_linear_work(name: str) -> None:
    """Guards against passes of quadratic cost: for twice the size twice the calls, and no more."""
    calls = []
    for n in (500, 1_000):
        source = Source("q.cel", f"{STREAM}SELECT * FROM S WHERE {LONG[name](n)}")
        file = parse(source)
        calls.append(calls_of(lambda file=file, source=source: resolve(file, source)))
    assert calls[1] <= LINEAR * calls[0], calls


DEEP = 195


@pytest.mark.parametrize(
    "text",
    [
        "A" + "+" * DEEP,
        "(" * DEEP + "A AS x" + " FILTER x.i > 1)" * DEEP,
        "PROJECT[A](" * DEEP + "A" + ")" * DEEP,
        "(A OR (B ; " * (DEEP // 2) + "C" + "))" * (DEEP // 2),
        "A AS x FILTER " + "NOT " * DEEP + "x.i = 1",
        "A AS x FILTER " + "- " * DEEP + "x.i = 1",
        "A AS x FILTER x.i" + " + x.i" * DEEP + " = 1",
        "A AS x FILTER " + "(x.i>3 AND (x.d<5 OR " * (DEEP // 2) + "x.i=1" + "))" * (DEEP // 2),
    ],
)
def test_depth_that_the_parser_lets_pass_is_resolved(text: str) -> None:
    assert query_of(f"SELECT NONE WHERE {text}").name == "q"


def test_chains_that_nest_too_deep_are_refused() -> None:
    def chain(n: int) -> str:
        return f"SELECT NONE WHERE A{' ; !B ; A' * n}"

    assert codes(chain(MAX_FORMULA_DEPTH - 2)) == []
    assert codes(chain(MAX_FORMULA_DEPTH)) == ["formula-too-deep"]


# --- the conformance cases ------------------------------------------------------------------------


_OF_SOME_CASES = pytest.mark.parametrize("each", [5, pytest.param(1, marks=pytest.mark.long)])


@_OF_SOME_CASES
def test_the_conformance_cases_have_the_labels_that_are_resolved(each: int) -> None:
    resolved_queries: dict[str, core.Query] = {}
    for case in load_cases()[::each]:
        if case.query not in resolved_queries:
            resolved_queries[case.query] = resolved(case.query, order_by=case.order_by)[0]
        query = resolved_queries[case.query]
        labels = {item.label for item in query.output if isinstance(item, core.OutputLabel)}
        for match in case.expected:
            assert set(match["labels"]) == labels, case.name


@_OF_SOME_CASES
def test_what_is_said_of_all_matches_is_true_of_the_conformance_cases(each: int) -> None:
    judged = 0
    for case in load_cases()[::each]:
        if not case.expected or "PARTITION" in case.query:
            continue
        source = Source("q.cel", case.query)
        file = parse(source)
        found = Diagnostics(source)
        schema = schema_of(file.queries[0], declare(file.streams, found), found)
        simultaneous = case.ties is not None or case.lasts
        scoped = Annotator(schema, found).annotate(file.queries[0].formula)
        for match in case.expected:
            length = match["end"] - match["start"] + 1
            assert simultaneous or length >= scoped.length, case.name
            for label, positions in match["labels"].items():
                extent = scoped.labels[label].extent
                types = set(schema.names_of(extent.types))
                assert min(len(positions), 2) in range(extent.least, extent.most + 1), case.name
                assert {case.in_order[position]["type"] for position in positions} <= types
                judged += 1
        _, warnings = resolve(file, source, order_by=case.order_by, ties=case.ties)
        assert "never-matches" not in {warning.code for warning in warnings}, case.name
    assert judged > 1000 // each
