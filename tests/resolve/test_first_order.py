"""`--first-order`: what is refused, how formulas are rewritten, that it is the paper's reading.

Goldens under tests/errors/first_order hold all messages of a query that is read with the flag.
"""

from __future__ import annotations

import inspect
import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

import pytest
from places import TESTS
from reference import evaluate

import celc
from celc.core import formula as core
from celc.core.formula import MAX_FORMULA_DEPTH
from celc.core.terms import nodes_written_in
from celc.diagnostics.errors import CelError, Diagnostic, render_all
from celc.diagnostics.messages import first_order as messages
from celc.diagnostics.source import Source, Span
from celc.driver.pipeline import compile_source
from celc.interfaces.cli import main
from celc.options import Options
from celc.parse.parser import parse
from celc.resolve.first_order.reader import MAX_EVENTS, read_first_order
from celc.resolve.resolver import resolve

FOLDER = TESTS / "errors" / "first_order"
QUERIES = sorted(FOLDER.glob("*.cel"))
STREAM = """CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT }, EVENT C { v: INT } }
"""


NOTHING = core.Disjunction((), Span(0, 0))


def read(
    text: str, *, max_events: int = MAX_EVENTS
) -> tuple[tuple[core.Query, ...], tuple[Diagnostic, ...]]:
    source = Source("q.cel", STREAM + text)
    queries, warnings = resolve(parse(source), source)
    return read_first_order(queries, warnings, source, max_events=max_events)


def rewritten(text: str) -> core.Formula:
    (query,), _ = read(text)
    return query.formula


def as_written(text: str) -> core.Formula:
    source = Source("q.cel", STREAM + text)
    (query,), _ = resolve(parse(source), source)
    return query.formula


def codes(text: str) -> list[str]:
    try:
        _, found = read(text)
    except CelError as refusal:
        found = refusal.diagnostics
    return [item.code for item in found]


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_messages(path: Path, request: pytest.FixtureRequest) -> None:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    queries, warnings = resolve(parse(source), source)
    try:
        _, found = read_first_order(queries, warnings, source)
    except CelError as refusal:
        found = refusal.diagnostics
    rendered = render_all(source, found) + "\n"
    golden = path.with_suffix(".expected")
    if request.config.getoption("--update-golden"):
        golden.write_text(rendered, encoding="utf-8")
    assert golden.exists(), f"{golden.name} is missing: run pytest --update-golden and review it"
    assert rendered == golden.read_text(encoding="utf-8")


def test_every_golden_belongs_to_a_query() -> None:
    assert set(FOLDER.glob("*.expected")) == {path.with_suffix(".expected") for path in QUERIES}


def test_every_message_has_a_golden() -> None:
    shown = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.expected"))
    made = re.findall(r"(?:error|warning)\(\s*\"([a-z-]+)\"", inspect.getsource(messages))
    assert made
    assert all(f"[{code}]: " in shown for code in made)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(A ; B) AS x", ["as-on-composite"]),
        ("A+ AS x", ["as-on-composite", "exponential-output"]),
        ("(A OR B) AS x", ["as-on-composite"]),
        ("(A FILTER A.v > 1) AS x", ["as-on-composite"]),
        ("A AS x AS y", []),
        ("A[A -> x]", []),
        ("(A ; A)[A -> x]", ["rename-on-composite"]),
        ("((A AS x):+ : B) FILTER x.v > 1", ["label-iterated"]),
        ("((A AS x):+ : B) FILTER COUNT(x) > 1", ["label-iterated"]),
        ("(A AS x OR B) FILTER x.v > 1", ["label-not-everywhere"]),
        ("(A AS x OR B AS x) FILTER x.v > 1", []),
        # The sibling binds it on every branch.
        ("((A AS x OR B) FILTER x.v > 1) ; C AS x", ["unsafe-branches"]),
        ("(A FILTER x.v > 1) ; (B AS x OR C)", ["label-not-everywhere"]),
        ("A AS x ; (B FILTER B.v > x.v)+", ["exponential-output", "exponential-search"]),
        ("A AS x ; (B FILTER B.v > x.v):+", []),
        # A round that binds x on one branch only does not reach for the x outside.
        ("A AS x ; ((B AS x OR C) FILTER x.v > 1):+", ["label-not-everywhere"]),
        ("A AS x ; !(B FILTER B.v > x.v) ; C", []),
        ("(A AS x OR C) ; !(B FILTER B.v > x.v) ; C", ["label-not-everywhere"]),
        ("(A AS x ; B) UNLESS (C FILTER C.v > x.v)", []),
        # Event types keep their sets.
        ("(A ; A) FILTER A.v > 1", []),
        ("(A OR B) FILTER A.v > 1", ["maybe-unbound"]),
        ("A:+ FILTER A.v > 1", []),
    ],
)
def test_codes(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


# --- rewriting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What is safe stays as it is.
        ("(A AS x ; B AS y) FILTER x.v > y.v", "(A AS x ; B AS y) FILTER x.v > y.v"),
        ("(A AS x OR B) ; C", "(A AS x OR B) ; C"),
        ("(A AS x)+ ; (B AS x)+", "(A AS x)+ ; (B AS x)+"),
        ("A AS x ; (B AS x)+", "A AS x ; (B AS x)+"),
        ("A AS x AND A AS x", "A AS x AND A AS x"),
        ("PROJECT[y](A AS x ; B AS y) ; C AS x", "PROJECT[y](A AS x ; B AS y) ; C AS x"),
        # Theorem 1.
        ("(A AS x ; B AS x) OR C", "C"),
        ("(A AS x OR B) ; C AS x", "B ; C AS x"),
        ("(A AS x OR B) : (A AS x OR C)", "(A AS x : C) OR (B : A AS x) OR (B : C)"),
        ("(A AS x OR B AS y) ; (A AS x OR B AS y)", "(A AS x ; B AS y) OR (B AS y ; A AS x)"),
        ("((A AS x OR B) ; C) ; A AS x", "(B ; C) ; A AS x"),
        ("((A AS x OR B) FILTER x.v > 1) ; C AS x", "(B FILTER x.v > 1) ; C AS x"),
        ("((A AS x ; B AS x) OR C)+ ; A", "C+ ; A"),
        ("(A AS x OR B) ; !C ; A AS x", "B ; !C ; A AS x"),
        ("STRICT(A AS x OR B) ; C AS x", "STRICT(B) ; C AS x"),
        ("((A AS x OR B) UNLESS C) ; C AS x", "(B UNLESS C) ; C AS x"),
        ("PROJECT[x](A AS x OR B AS y) ; C AS x", "PROJECT[B](B AS y) ; C AS x"),
        # What can match nothing forbids nothing.
        ("A ; !(B AS x ; C AS x) ; B", "A ; B"),
        ("A UNLESS (B AS x ; C AS x)", "A"),
        # Labels under + that a filter, a selector or AND could take for those outside.
        (
            "(A AS x ; (B AS x)+) FILTER x.v > 1",
            "((A AS x ; (B AS x)+[x -> `x+`]) FILTER x.v > 1)[`x+` -> x]",
        ),
        (
            "A AS x ; ((B AS x)+ ; (C FILTER C.v > x.v))+",
            "(A AS x ; ((B AS x)+[x -> `x+`] ; (C FILTER C.v > x.v))+)[`x+` -> x]",
        ),
        (
            "(A AS x ; (B AS x)+[x -> y]) FILTER x.v > 1",
            "(A AS x ; (B AS x)+[x -> y]) FILTER x.v > 1",
        ),
        # ALL shares the valuation; renaming joins labels of one event.
        ("A AS x ALL (A AS x ; B)", "(A AS x ALL (A AS x ; B)) FILTER COUNT(x) <= 1"),
        ("(A AS x AS y)[x -> y]", "(A AS x AS y)[x -> y] FILTER COUNT(y) <= 1"),
        ("((A AS x ; B AS y)[x -> y]) OR C", "C"),
        # A selector is asked first, and its choice judged afterwards.
        ("NXT(A AS x ; B) ; C AS y", "NXT(A AS x ; B) ; C AS y"),
    ],
)
def test_rewriting(text: str, expected: str) -> None:
    wanted = as_written(expected)
    if text.startswith("PROJECT[x]"):
        # The language has no PROJECT to no label, which is what is left.
        assert isinstance(wanted, core.Sequence)
        project, *rest = wanted.operands
        assert isinstance(project, core.Project)
        empty = core.Project(project.operand, (), project.span)
        wanted = core.Sequence((empty, *rest), wanted.contiguous, wanted.span)
    assert rewritten(text) == wanted


def test_choices_of_a_selector_are_judged_afterwards() -> None:
    text = "NXT(A AS x OR B AS y) ; C AS x"
    expected = "PROJECT[A, B, y](NXT(A AS x OR B AS y) FILTER COUNT(x) = 0) ; C AS x"
    assert rewritten(text) == as_written(expected)


@pytest.mark.parametrize(
    "text",
    [
        "A AS x ; B AS x",
        "A AS x : B : C AS x",
        "((A AS x ; B AS x):+ ; C) FILTER C.v > 1",
        "(A AS x OR B AS y) ; (A AS x ; B AS y)",
        "(A AS x ; B AS y)[x -> y]",
        "NXT(A AS x ; B AS x)",
        "(A AS x ; B AS x) AND C",
        "(A AS x ; B AS x) ALL C",
        "(A AS x ; B AS x) UNLESS C",
        "A AS x ; !B ; C AS x",
    ],
)
def test_formulas_without_a_match(text: str) -> None:
    (query,), found = read(text)
    assert query.formula == NOTHING
    assert "never-matches" in [item.code for item in found]


def test_names_apart_are_new() -> None:
    text = "(A AS x ; (B AS x)+ ; C AS `x+`) FILTER x.v > 1"
    expected = "((A AS x ; (B AS x)+[x -> `x++`] ; C AS `x+`) FILTER x.v > 1)[`x++` -> x]"
    assert rewritten(text) == as_written(expected)


def test_growth_is_refused() -> None:
    part = " ; ".join(["(A AS x OR B AS y OR C AS z OR A)"] * 5)
    with pytest.raises(CelError) as caught:
        read(part, max_events=100)
    assert [item.code for item in caught.value.diagnostics if item.severity == "error"] == [
        "first-order-too-large"
    ]


def test_deep_formulas() -> None:
    deep = "A AS y"
    for _ in range(90):
        deep = f"(({deep}) OR B) ; C"
    assert rewritten(deep) == as_written(deep)
    chain = " ; !B ; ".join(["A"] * (MAX_FORMULA_DEPTH - 2))
    assert rewritten(chain) == as_written(chain)
    # What is written by cases can be deeper than what was there.
    steps = "A AS y"
    for _ in range(60):
        steps = f"NXT(({steps}) OR B AS x)"
    assert codes(f"{steps} ; C AS x").count("formula-too-deep") == 0
    assert codes(" ; !B ; ".join(["(A OR B AS x)"] * (MAX_FORMULA_DEPTH - 2))).count(
        "formula-too-deep"
    )


# --- the paper's semantics ------------------------------------------------------------------------

Valuation = Mapping[str, int]
Positions = frozenset[int]


def outside(formula: core.Formula) -> frozenset[str]:
    """vdef₊(φ): the variables that are defined outside `+`."""
    match formula:
        case core.Atom() | core.Iteration():
            return frozenset()
        case core.As():
            return outside(formula.operand) | {formula.label}
        case core.Filter() | core.Selector():
            return outside(formula.operand)
        case core.Sequence() | core.Disjunction():
            return frozenset[str]().union(*map(outside, formula.operands))
        case core.All() | core.Absence():
            return outside(formula.left) | outside(formula.right)
        case core.Unless():
            return outside(formula.left)
        case _:
            raise AssertionError(formula)


def valuations(
    formula: core.Formula, events: Sequence[Mapping[str, Any]], around: Valuation
) -> Iterator[Valuation]:
    """ν[ν'/U] for every ν'."""
    labels = sorted(outside(formula))
    for places in itertools.product(range(len(events)), repeat=len(labels)):
        yield {**around, **dict(zip(labels, places, strict=True))}


def some(
    formula: core.Formula, events: Sequence[Mapping[str, Any]], around: Valuation
) -> set[Positions]:
    return {
        match
        for valuation in valuations(formula, events, around)
        for match in matches(formula, events, valuation)
    }


def concatenated(left: set[Positions], right: set[Positions], contiguous: bool) -> set[Positions]:
    return {
        one | other
        for one in left
        for other in right
        if max(one) < min(other) and (not contiguous or max(one) + 1 == min(other))
    }


def matches(
    formula: core.Formula, events: Sequence[Mapping[str, Any]], nu: Valuation
) -> set[Positions]:
    """⟦φ⟧(S, ν) as section 3 of the paper defines it, with the decisions on what it lacks."""
    match formula:
        case core.Atom():
            return {frozenset({k}) for k, e in enumerate(events) if e["type"] == formula.label}
        case core.As():
            return {c for c in matches(formula.operand, events, nu) if c == {nu[formula.label]}}
        case core.Filter():
            if not all(holds(clause, events, nu) for clause in formula.clauses):
                return set()
            return matches(formula.operand, events, nu)
        case core.Disjunction():
            return set[Positions]().union(*(matches(o, events, nu) for o in formula.operands))
        case core.Sequence():
            found = matches(formula.operands[0], events, nu)
            for operand, gap in zip(formula.operands[1:], formula.contiguous, strict=True):
                found = concatenated(found, matches(operand, events, nu), gap)
            return found
        case core.Iteration():
            rounds = some(formula.operand, events, nu)
            found, longer = set(rounds), set(rounds)
            while longer:
                longer = concatenated(longer, rounds, formula.contiguous) - found
                found |= longer
            return found
        case core.All():
            left, right = matches(formula.left, events, nu), matches(formula.right, events, nu)
            return {one | other for one in left for other in right}
        case core.Unless():
            bad = some(formula.right, events, nu)
            return {
                c
                for c in matches(formula.left, events, nu)
                if not any(min(c) <= min(b) and max(b) <= max(c) for b in bad)
            }
        case core.Absence():
            bad = some(formula.middle, events, nu)
            return {
                one | other
                for one in matches(formula.left, events, nu)
                for other in matches(formula.right, events, nu)
                if max(one) < min(other)
                and not any(max(one) < min(b) and max(b) < min(other) for b in bad)
            }
        case _:
            raise AssertionError(formula)


def holds(clause: core.Clause, events: Sequence[Mapping[str, Any]], nu: Valuation) -> bool:
    """A clause of the formulas below: one comparison by `>` of attributes v and numbers."""
    (predicate,) = clause.predicates
    assert isinstance(predicate, core.Comparison)
    values = []
    for part in nodes_written_in(predicate):
        match part:
            case core.AttributeValue():
                values.append(events[nu[part.label]]["v"])
            case core.Constant():
                values.append(part.value)
            case _:
                raise AssertionError(part)
    return bool(values[0] > values[1])


# --- core formulas as text, for the reference evaluator -------------------------------------------


def written(formula: core.Formula) -> str:
    match formula:
        case core.Atom():
            return formula.label
        case core.As():
            return f"({written(formula.operand)} AS `{formula.label}`)"
        case core.Rename():
            return f"({written(formula.operand)}[`{formula.old}` -> `{formula.new}`])"
        case core.Project():
            labels = ", ".join(f"`{label}`" for label in formula.labels)
            return f"PROJECT[{labels}]({written(formula.operand)})"
        case core.Iteration():
            return f"({written(formula.operand)}{':+' if formula.contiguous else '+'})"
        case core.Sequence():
            text = written(formula.operands[0])
            for operand, gap in zip(formula.operands[1:], formula.contiguous, strict=True):
                text += f" {':' if gap else ';'} {written(operand)}"
            return f"({text})"
        case core.Disjunction():
            return f"({' OR '.join(map(written, formula.operands))})"
        case core.Conjunction():
            return f"({written(formula.left)} AND {written(formula.right)})"
        case core.All():
            return f"({written(formula.left)} ALL {written(formula.right)})"
        case core.Unless():
            return f"({written(formula.left)} UNLESS {written(formula.right)})"
        case core.Absence():
            parts = [written(part) for part in (formula.left, formula.middle, formula.right)]
            return f"({parts[0]} ; !{parts[1]} ; {parts[2]})"
        case core.Selector():
            return f"{formula.strategy}({written(formula.operand)})"
        case core.Filter():
            clauses = " AND ".join(map(clause_written, formula.clauses))
            return f"({written(formula.operand)} FILTER {clauses})"
        case _:
            assert_never(formula)


def clause_written(clause: core.Clause) -> str:
    (predicate,) = clause.predicates
    assert isinstance(predicate, core.Comparison)
    left, right = map(value_written, (predicate.left, predicate.right))
    return f"{left} {predicate.operator} {right}"


def value_written(value: core.Expression) -> str:
    match value:
        case core.AttributeValue():
            return f"`{value.label}`.{value.attribute}"
        case core.Aggregate():
            return f"{value.function}(`{value.label}`)"
        case core.Constant():
            return str(value.value)
        case _:
            raise AssertionError(value)


def supports(formula: core.Formula, events: Sequence[Mapping[str, Any]]) -> set[Positions]:
    if formula == NOTHING:
        return set()
    found = evaluate(f"{STREAM}SELECT * WHERE {written(formula)}", events)
    return {frozenset(p for _, places in match.labels for p in places) for match in found}


def random_formula(rng: random.Random, depth: int) -> str:
    event = rng.choice("ABC")
    if depth == 0 or rng.random() < 0.15:
        return event if rng.random() < 0.35 else f"{event} AS {rng.choice('xy')}"

    def part() -> str:
        return f"({random_formula(rng, depth - 1)})"

    match rng.randrange(9):
        case 0:
            return f"{part()} ; {part()}"
        case 1:
            return f"{part()} : {part()}"
        case 2 | 3:
            return f"{part()} OR {part()}"
        case 4:
            return f"{part()}{rng.choice(['+', ':+'])}"
        case 5:
            return f"{part()} ALL {part()}"
        case 6:
            return f"{part()} UNLESS {part()}"
        case 7:
            return f"{part()} ; !{part()} ; {part()}"
        case _:
            other = rng.choice(["0", "1", "y.v"])
            return f"{part()} FILTER x.v > {other}"


@pytest.mark.each(3)
@pytest.mark.parametrize(
    "text",
    [
        "(A AS x ; (B AS x)+) FILTER x.v > 0",
        "((B AS x)+ FILTER x.v > 0) ; A AS x",
        "A AS x ; ((B AS x)+ ; (C AS z FILTER x.v > z.v))+",
        "((A AS x ; (B AS x)+) FILTER x.v > 0)+ ; C",
        "(A AS x ALL (A AS x ; (A AS x)+)) FILTER x.v > 0",
        "((A AS x OR B AS y) FILTER y.v > 0) ; B AS y",
        "((A AS x OR B) FILTER x.v > 0) ALL (A AS x ; C)",
        "((A AS x OR B) UNLESS (C AS z FILTER x.v > z.v)) ; A AS x",
        "(A AS x OR B) ; !(C AS z FILTER x.v > z.v) ; A AS x",
        "((A AS x OR B) ; (A AS x OR B AS y))+ ; C AS x",
    ],
)
def test_it_is_the_papers_reading(text: str) -> None:
    rng = random.Random(text)
    (query,), _ = read(text)
    matching = 0
    for _ in range(60):
        events = [{"type": rng.choice("AABBC"), "v": rng.randrange(3)} for _ in range(5)]
        expected = some(as_written(text), events, {})
        assert supports(query.formula, events) == expected, events
        matching += bool(expected)
    assert matching > 5


@pytest.mark.parametrize(
    ("seed", "formulas"),
    [(7, 500), *(pytest.param(seed, 1500, marks=pytest.mark.long) for seed in (7, 8, 9, 10))],
)
def test_random_formulas_are_read_as_in_the_paper(seed: int, formulas: int) -> None:
    rng = random.Random(seed)
    read_well = changed = matching = 0
    for _ in range(formulas):
        text = random_formula(rng, rng.choice([2, 3, 3]))
        if len(text) > 110:
            continue
        try:
            (query,), _ = read(text)
        except CelError:
            continue
        formula = as_written(text)
        if formula == query.formula and rng.random() < 0.8:
            continue
        events = [
            {"type": rng.choice("ABC"), "v": rng.randrange(3)} for _ in range(rng.randint(2, 5))
        ]
        expected = some(formula, events, {})
        assert supports(query.formula, events) == expected, (text, events)
        read_well += 1
        changed += formula != query.formula
        matching += bool(expected)
    assert min(read_well, changed, matching) > formulas // 15


# --- end to end -----------------------------------------------------------------------------------


def run(text: str, events: Sequence[tuple[str, int]], **options: Any) -> list[dict[str, Any]]:
    import pyarrow as pa

    table = pa.table(
        {
            "type": [event for event, _ in events],
            "v": pa.array([value for _, value in events], pa.int32()),
        }
    )
    matcher = celc.compile(STREAM + text, **options)
    return list(matcher.match_table(table).to_pylist())


EVENTS = [("A", 1), ("B", 5), ("A", 7), ("C", 0)]


def test_a_formula_without_a_match_compiles_and_matches_nothing() -> None:
    text = "A AS x ; B AS x"
    assert len(run(text, EVENTS)) == 1
    assert run(text, EVENTS, first_order=True) == []
    (warning,) = celc.check(STREAM + text, first_order=True)
    assert warning.code == "never-matches"


def test_labels_under_iteration_are_shown_and_not_judged() -> None:
    text = "SELECT x WHERE (B AS x : (A AS x):+) FILTER x.v < 6"
    assert run(text, EVENTS) == []
    (match,) = run(text, EVENTS, first_order=True)
    assert [event["pos"] for event in match["x"]] == [1, 2]


def test_aggregates_of_the_file_judge_labels_with_one_position() -> None:
    """As every function of a label does; those under a `+` are refused."""
    declared = "AGGREGATE last_of(a: INT): INT STATE s: INT = NULL STEP s = a RESULT s\n"
    query = "SELECT last_of(x.v) AS v WHERE (A AS x ; B AS y) FILTER last_of(y.v) > last_of(x.v)"
    (match,) = run(declared + query, EVENTS, first_order=True)
    assert match["v"] == 1
    text = declared + "((A AS x):+ : B) FILTER last_of(x.v) > 1"
    assert "label-iterated" in codes(text)


def test_options_reach_the_stage() -> None:
    source = Source("q.cel", STREAM + "(A AS x OR B) FILTER x.v > 1")
    compile_source(source, Options())
    with pytest.raises(CelError):
        compile_source(source, Options(first_order=True))


def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    query = tmp_path / "q.cel"
    query.write_text(STREAM + "A AS x ; B AS x", encoding="utf-8")
    events = tmp_path / "e.csv"
    events.write_text("type,v\nA,1\nB,2\n", encoding="utf-8")
    assert main(["check", "q.cel", "--first-order"]) == 0
    assert main(["compile", "q.cel", "--first-order"]) == 0
    text = (tmp_path / "q_udf.py").read_text(encoding="utf-8")
    assert "celc compile q.cel -o q_udf.py --first-order" in text.partition("import")[0]
    assert main(["explain", "q.cel", "--first-order", "--stage", "code"]) == 0
    assert "celc compile q.cel -o q_udf.py --first-order" in capsys.readouterr().out
    assert main(["run", "q.cel", "e.csv", "--first-order", "--format", "json"]) == 0
    assert capsys.readouterr().out == ""
    query.write_text(STREAM + "(A AS x)+ FILTER x.v > 1", encoding="utf-8")
    assert main(["check", "q.cel", "--first-order"]) == 1
