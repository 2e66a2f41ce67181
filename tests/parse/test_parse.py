"""The syntax tree of every construct, and what binds tighter than what."""

from __future__ import annotations

from typing import Any

import pytest
from cases_io import case_stems, load_cases
from trees import (
    X1,
    XA,
    YB,
    A,
    B,
    C,
    D,
    S,
    attribute,
    called,
    compared,
    computed,
    condition,
    either,
    event,
    formula,
    integer,
    joined,
    labelled,
    name,
    names,
    parsed,
    query,
    repeated,
    sequence,
    text_literal,
    value,
)

from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.parser import parse

# --- formulas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A", A),
        ("S>A", event("A", "S")),
        ("S > A AS x", labelled(event("A", "S"), "x")),
        ("A AS x", labelled(A, "x")),
        ("A IN x", labelled(A, "x")),
        ("A+", repeated(A)),
        ("A:+", repeated(A, contiguous=True)),
        ("A :+", repeated(A, contiguous=True)),
        ("A[x -> y]", syntax.Rename(A, name("x"), name("y"), S)),
        ("A ; B", sequence(A, (";", B))),
        ("A : B", sequence(A, (":", B))),
        ("A ; B : C ; D", sequence(A, (";", B), (":", C), (";", D))),
        ("A ; !B ; C", sequence(A, (";!", B), (";", C))),
        ("A ; !B ; C ; !D ; A", sequence(A, (";!", B), (";", C), (";!", D), (";", A))),
        ("A AND B ALL C", joined(A, ("AND", B), ("ALL", C))),
        ("A OR B OR C", either(A, B, C)),
        ("A UNLESS B", syntax.Unless(A, B, S)),
        ("A FILTER x.a = 1", syntax.Filter(A, X1, S)),
        ("STRICT(A)", syntax.Selector("STRICT", A, S)),
        ("NXT(A)", syntax.Selector("NXT", A, S)),
        ("NEXT(A)", syntax.Selector("NXT", A, S)),
        ("LAST (A)", syntax.Selector("LAST", A, S)),
        ("max(A)", syntax.Selector("MAX", A, S)),
        ("PROJECT[x, y](A)", syntax.Project(names("x", "y"), A, S)),
        ("PROJECT[](A)", syntax.Project((), A, S)),
        ("((A))", A),
    ],
)
def test_each_formula(text: str, tree: syntax.Formula) -> None:
    assert formula(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        # postfix operators first, left to right
        ("A+ AS x", labelled(repeated(A), "x")),
        ("A AS x + :+", repeated(repeated(labelled(A, "x")), contiguous=True)),
        ("A AS x[x -> y]+", repeated(syntax.Rename(labelled(A, "x"), name("x"), name("y"), S))),
        ("A ; B+", sequence(A, (";", repeated(B)))),
        ("A ; B AS x", sequence(A, (";", labelled(B, "x")))),
        ("A ; !B+ ; C", sequence(A, (";!", repeated(B)), (";", C))),
        # then ; and :, then AND and ALL, then OR
        ("A AND B ; C", joined(A, ("AND", sequence(B, (";", C))))),
        ("A ; B ALL C", joined(sequence(A, (";", B)), ("ALL", C))),
        ("A OR B AND C", either(A, joined(B, ("AND", C)))),
        ("A AND B OR C", either(joined(A, ("AND", B)), C)),
        ("A OR B ; C OR D", either(A, sequence(B, (";", C)), D)),
        # then UNLESS or FILTER
        ("A ; B UNLESS C AS x", syntax.Unless(sequence(A, (";", B)), labelled(C, "x"), S)),
        ("A OR B FILTER x.a = 1", syntax.Filter(either(A, B), X1, S)),
        ("A FILTER x.a = 1 AND x.a = 1", syntax.Filter(A, syntax.AndCondition((X1, X1), S), S)),
        # parentheses separate chains of the same operator
        ("A ; (B ; C)", sequence(A, (";", sequence(B, (";", C))))),
        ("(A ; B) ; C", sequence(sequence(A, (";", B)), (";", C))),
        ("(A OR B) OR C", either(either(A, B), C)),
        ("(A ALL B) ALL C", joined(joined(A, ("ALL", B)), ("ALL", C))),
        ("A ; (B FILTER x.a = 1)", sequence(A, (";", syntax.Filter(B, X1, S)))),
        ("(A UNLESS B) UNLESS C", syntax.Unless(syntax.Unless(A, B, S), C, S)),
        ("A UNLESS (B ; C)", syntax.Unless(A, sequence(B, (";", C)), S)),
    ],
)
def test_binding_of_formulas(text: str, tree: syntax.Formula) -> None:
    assert formula(text) == tree


# --- conditions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x.a = 1", compared(XA, "=", integer(1))),
        ("x.a == 1", compared(XA, "=", integer(1))),
        ("x.a != 1", compared(XA, "!=", integer(1))),
        ("x.a <> 1", compared(XA, "!=", integer(1))),
        ("x.a < 1", compared(XA, "<", integer(1))),
        ("x.a <= 1", compared(XA, "<=", integer(1))),
        ("x.a>1", compared(XA, ">", integer(1))),
        ("1>=x.a", compared(integer(1), ">=", XA)),
        ("x.a BETWEEN 1 AND 2", syntax.Between(XA, integer(1), integer(2), False, S)),
        ("x.a NOT BETWEEN 1 AND 2", syntax.Between(XA, integer(1), integer(2), True, S)),
        ("x.a IN (1, 2)", syntax.InList(XA, (integer(1), integer(2)), False, S)),
        ("x.a NOT IN (y.b)", syntax.InList(XA, (YB,), True, S)),
        ("x.a IN {1, 2}", syntax.InList(XA, (integer(1), integer(2)), False, S)),
        ("x.a LIKE 'p%'", syntax.PatternMatch("LIKE", XA, text_literal("p%"), False, S)),
        ("x.a NOT LIKE 'p'", syntax.PatternMatch("LIKE", XA, text_literal("p"), True, S)),
        ("x.a RLIKE '^p'", syntax.PatternMatch("RLIKE", XA, text_literal("^p"), False, S)),
        ("x.a NOT RLIKE 'p'", syntax.PatternMatch("RLIKE", XA, text_literal("p"), True, S)),
        ("x.a IS NULL", syntax.NullTest(XA, False, S)),
        ("x.a IS NOT NULL", syntax.NullTest(XA, True, S)),
        (
            "x[a = 1]",
            syntax.EventCondition(name("x"), compared(attribute(None, "a"), "=", integer(1)), S),
        ),
        ("((x.a = 1))", X1),
        # NOT, then AND, then OR
        ("NOT x.a = 1 AND x.a = 1", syntax.AndCondition((syntax.NotCondition(X1, S), X1), S)),
        ("NOT NOT x.a = 1", syntax.NotCondition(syntax.NotCondition(X1, S), S)),
        ("NOT (x.a = 1 OR x.a = 1)", syntax.NotCondition(syntax.OrCondition((X1, X1), S), S)),
        (
            "x.a = 1 OR x.a = 1 AND x.a = 1",
            syntax.OrCondition((X1, syntax.AndCondition((X1, X1), S)), S),
        ),
        (
            "x.a BETWEEN 1 AND 2 AND x.a = 1",
            syntax.AndCondition((syntax.Between(XA, integer(1), integer(2), False, S), X1), S),
        ),
        (
            "(x.a = 1 AND x.a = 1) AND x.a = 1",
            syntax.AndCondition((syntax.AndCondition((X1, X1), S), X1), S),
        ),
    ],
)
def test_each_condition(text: str, tree: syntax.Condition) -> None:
    assert condition(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("007", integer(7)),
        ("1.5", syntax.DoubleLiteral(1.5, S)),
        ("1e-3", syntax.DoubleLiteral(0.001, S)),
        ("1.5E+2", syntax.DoubleLiteral(150.0, S)),
        ("'it''s'", text_literal("it's")),
        ("''", text_literal("")),
        ("'two\nlines -- /* '", text_literal("two\nlines -- /* ")),
        ("TRUE", syntax.BooleanLiteral(True, S)),
        ("false", syntax.BooleanLiteral(False, S)),
        ("NULL", syntax.NullLiteral(S)),
        ("TIMESTAMP '2024-01-31'", syntax.TimeLiteral("TIMESTAMP", text_literal("2024-01-31"), S)),
        ("date'x'", syntax.TimeLiteral("DATE", text_literal("x"), S)),
        ("x . a", XA),
        ("-x.a", syntax.Negation(XA, S)),
        ("+x.a", XA),
        ("- -1", syntax.Negation(syntax.Negation(integer(1), S), S)),
        ("x.a - -1", computed(XA, "-", syntax.Negation(integer(1), S))),
        ("x.a+y.b*1", computed(XA, "+", computed(YB, "*", integer(1)))),
        ("(x.a + y.b) * 1", computed(computed(XA, "+", YB), "*", integer(1))),
        ("x.a - 1 - 2", computed(computed(XA, "-", integer(1)), "-", integer(2))),
        ("x.a / 1 % 2", computed(computed(XA, "/", integer(1)), "%", integer(2))),
        ("-x.a * 2", computed(syntax.Negation(XA, S), "*", integer(2))),
        ("COUNT(x)", called("COUNT", attribute(None, "x"))),
        ("first(x.a)", called("first", XA)),
        ("LAST(x.a)", called("LAST", XA)),
        ("MAX(PRIOR x.a)", called("MAX", XA, prior=True)),
        ("MAX(prior.a)", called("MAX", attribute("prior", "a"))),
        ("NoSuchFunction(1 + 2)", called("NoSuchFunction", computed(integer(1), "+", integer(2)))),
    ],
)
def test_each_value(text: str, tree: syntax.Expression) -> None:
    assert value(text) == tree


# --- clauses and declarations ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("*", syntax.AllItems(S)),
        ("NONE", syntax.NoItems(S)),
        ("x", (syntax.LabelItem(name("x"), None, S),)),
        (
            "x, y[a, b]",
            (
                syntax.LabelItem(name("x"), None, S),
                syntax.LabelItem(name("y"), names("a", "b"), S),
            ),
        ),
        ("x.a + 1 AS b", (syntax.ExpressionItem(computed(XA, "+", integer(1)), name("b"), S),)),
        ("LAST(x.a) AS b", (syntax.ExpressionItem(called("LAST", XA), name("b"), S),)),
        ("MAX(x.a) AS max", (syntax.ExpressionItem(called("MAX", XA), name("max"), S),)),
        ("x.a", (syntax.ExpressionItem(XA, None, S),)),
    ],
)
def test_items(text: str, items: object) -> None:
    select = query(f"SELECT {text} WHERE A").select
    assert select is not None
    assert select.strategy is None
    assert select.items == items


@pytest.mark.parametrize("word", ["ALL", "ANY", "STRICT", "NXT", "NEXT", "LAST", "MAX"])
def test_strategies(word: str) -> None:
    for spelling in (word, word.lower()):
        select = query(f"SELECT {spelling} * WHERE A").select
        assert select is not None
        assert select.strategy == ("NXT" if word == "NEXT" else word)
        assert select.strategy_span == Span(7, 7 + len(word))
        assert select.items == syntax.AllItems(S)


def test_strategy_before_function_of_the_same_name() -> None:
    select = query("SELECT LAST LAST(x.a) AS b, last WHERE A").select
    assert select is not None
    assert select.strategy == "LAST"
    assert select.items == (
        syntax.ExpressionItem(called("LAST", XA), name("b"), S),
        syntax.LabelItem(name("last"), None, S),
    )


def test_clauses() -> None:
    tree = query(
        "query q1: select x from S, T where A ; B partition by a, b within 10 events "
        "consume by partition limit 3"
    )
    assert tree.name == name("q1")
    assert tree.streams == names("S", "T")
    assert tree.formula == sequence(A, (";", B))
    assert tree.partition_by == names("a", "b")
    assert tree.window == syntax.EventsWindow(integer(10), S)
    assert tree.consume == syntax.ConsumeClause("PARTITION", S)
    assert tree.limit == syntax.LimitClause(integer(3), S)


def test_absent_clauses() -> None:
    tree = query("SELECT * WHERE A")
    assert (tree.name, tree.streams, tree.partition_by) == (None, None, None)
    assert (tree.window, tree.consume, tree.limit) == (None, None, None)


def test_bare_formula() -> None:
    tree = query("A ; B")
    assert tree.select is None
    assert tree.formula == sequence(A, (";", B))


def part(amount: int, unit: str) -> syntax.DurationPart:
    return syntax.DurationPart(integer(amount), name(unit), S)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("0 EVENTS", syntax.EventsWindow(integer(0), S)),
        ("1.5 events", syntax.EventsWindow(syntax.DoubleLiteral(1.5, S), S)),
        ("4 [ts]", syntax.ValueWindow(integer(4), name("ts"), S)),
        ("10 MINUTES", syntax.DurationWindow((part(10, "MINUTES"),), None, S)),
        (
            "1 hour 30 minutes",
            syntax.DurationWindow((part(1, "HOUR"), part(30, "MINUTES")), None, S),
        ),
        ("1 DAY [ts]", syntax.DurationWindow((part(1, "DAY"),), name("ts"), S)),
        ("5 MILLISECONDS", syntax.DurationWindow((part(5, "MILLISECONDS"),), None, S)),
    ],
)
def test_windows(text: str, window: syntax.Window) -> None:
    assert query(f"SELECT * WHERE A WITHIN {text}").window == window


@pytest.mark.parametrize("policy", ["NONE", "ANY", "PARTITION"])
def test_consumption(policy: Any) -> None:
    tree = query(f"SELECT * WHERE A CONSUME BY {policy}")
    assert tree.consume == syntax.ConsumeClause(policy, S)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DECIMAL(10, 2)", ("DECIMAL", (10, 2), ())),
        ("Timestamp Without Time Zone", ("Timestamp WITHOUT TIME ZONE", (), ())),
        ("DOUBLE precision", ("DOUBLE PRECISION", (), ())),
        ("ARRAY<ARRAY<INT>>", ("ARRAY", (), [("ARRAY", (), [("INT", (), ())])])),
        (
            "MAP<STRING, STRUCT<a: INT, time: DECIMAL(5)>>",
            (
                *("MAP", ()),
                [
                    ("STRING", (), ()),
                    ("STRUCT", (), [("a", ("INT", (), ())), ("time", ("DECIMAL", (5,), ()))]),
                ],
            ),
        ),
    ],
)
def test_types(text: str, expected: Any) -> None:
    file = f"CREATE STREAM S {{ EVENT A {{ time: {text}, zone: INT }} }} SELECT * FROM S WHERE A"
    time, zone = parsed(file).streams[0].events[0].attributes
    assert (time.name.text, zone.name.text) == ("time", "zone")
    assert _shape(time.type) == expected


def _shape(node: syntax.WrittenType | syntax.TypeField) -> Any:
    if isinstance(node, syntax.TypeField):
        return node.name.text, _shape(node.type)
    return node.name.text, node.sizes, [*map(_shape, node.parts)] or ()


def test_partition_in_brackets() -> None:
    keys = query("SELECT * WHERE A PARTITION BY [a, b], c, [d]").partition_by
    assert keys is not None
    first, second, third = keys
    assert isinstance(first, syntax.Alternatives)
    assert isinstance(third, syntax.Alternatives)
    assert (first.names, (second,), third.names) == (names("a", "b"), names("c"), names("d"))


def test_declarations() -> None:
    file = parsed(
        "CREATE STREAM S { EVENT A { id: INT, v: double }, EVENT B {} }\n"
        "create stream T { event C { `odd name`: STRING } }\n"
        "SELECT * WHERE A"
    )
    declared = syntax.AttributeDeclaration

    def written(word: str) -> syntax.WrittenType:
        return syntax.WrittenType(name(word), (), (), S)

    first = (declared(name("id"), written("INT"), S), declared(name("v"), written("double"), S))
    second = (declared(name("odd name"), written("STRING"), S),)
    events = syntax.EventDeclaration
    assert file.streams == (
        syntax.StreamDeclaration(
            name("S"), (events(name("A"), first, S), events(name("B"), (), S)), S
        ),
        syntax.StreamDeclaration(name("T"), (events(name("C"), second, S),), S),
    )


def test_several_queries() -> None:
    file = parsed("QUERY a: SELECT * WHERE A\nQUERY b: SELECT * WHERE B LIMIT 1\n")
    assert [tree.name for tree in file.queries] == [name("a"), name("b")]
    assert [tree.formula for tree in file.queries] == [A, B]


# --- spans ----------------------------------------------------------------------------------------


def test_spans() -> None:
    source = Source(
        "q.cel", "QUERY q: SELECT x WHERE ( A AS x ; B+ )\n FILTER x.a = -1\nWITHIN 3 EVENTS\n"
    )
    tree = parse(source).queries[0]
    assert isinstance(tree.formula, syntax.Filter)
    inner, comparison = tree.formula.operand, tree.formula.condition
    assert isinstance(inner, syntax.Sequence)
    assert isinstance(comparison, syntax.Comparison)
    assert tree.window is not None
    written = {
        "QUERY q: SELECT x WHERE ( A AS x ; B+ )\n FILTER x.a = -1\nWITHIN 3 EVENTS": tree.span,
        "( A AS x ; B+ )\n FILTER x.a = -1": tree.formula.span,
        "( A AS x ; B+ )": inner.span,
        "A AS x": inner.first.span,
        ";": inner.links[0].operator_span,
        "B+": inner.links[0].operand.span,
        "x.a = -1": comparison.span,
        "-1": comparison.right.span,
        "WITHIN 3 EVENTS": tree.window.span,
    }
    assert {source.slice(span): span for span in written.values()} == written


def test_span_of_a_file() -> None:
    assert parsed(" A \n").span == Span(0, 4)


# --- the conformance cases ------------------------------------------------------------------------


@pytest.mark.parametrize("stem", case_stems())
def test_conformance_queries_parse(stem: str) -> None:
    queries = {case.query for case in load_cases(stem)}
    assert queries
    for text in sorted(queries):
        assert len(parsed(text).queries) == 1
