"""Each invariant of trees and core CEL fails where it is broken, and holds on the original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from verified import invariants_of, source_of, value_of

from celc import verify
from celc.core import formula as core
from celc.core.formula import MAX_FORMULA_DEPTH, DataType
from celc.diagnostics.source import Span
from celc.parse.parser import parse
from celc.resolve.resolver import resolve
from celc.verify import texts


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda file: replace(file, span=Span(3, 5)), texts.SPANS_NEST),
        (lambda file: replace(file, streams=file.streams * 2), texts.IN_TEXT_ORDER),
        (lambda file: replace(file, queries=()), texts.QUERIES_NAMED),
        (lambda file: replace(file, queries=file.queries * 2), texts.QUERIES_NAMED),
    ],
)
def test_syntax_trees(broken: Callable[[Any], Any], invariant: str) -> None:
    source = source_of("* FROM S WHERE A ; (B AND C) FILTER B.id + 1 = C.id")
    file = parse(source)
    assert not invariants_of(verify.syntax_tree(file, source))
    assert invariant in invariants_of(verify.syntax_tree(broken(file), source))


def _query(body: str = "x FROM S WHERE (A AS x ; B AS y) FILTER x.id / 2 > y.id") -> core.Query:
    (query,), _ = resolve(parse(source_of(body)), source_of(body))
    return query


def _with_predicate(change: Callable[[core.Comparison], core.Predicate]) -> core.Query:
    query = _query()
    assert isinstance(query.formula, core.Filter)
    (clause,) = query.formula.clauses
    (predicate,) = clause.predicates
    assert isinstance(predicate, core.Comparison)
    changed = replace(clause, predicates=(change(predicate),))
    return replace(query, formula=replace(query.formula, clauses=(changed,)))


def _with_clause(**changes: Any) -> core.Query:
    query = _query()
    assert isinstance(query.formula, core.Filter)
    (clause,) = query.formula.clauses
    return replace(query, formula=replace(query.formula, clauses=(replace(clause, **changes),)))


@pytest.mark.parametrize(
    ("query", "invariant"),
    [
        (_with_predicate(lambda p: replace(p, right=value_of("z", "id", p.right.type))), "label"),
        (_with_clause(labels=("y", "x")), texts.CLAUSE_LABELS),
        (_with_clause(labels=()), texts.CLAUSE_LABELS),
        (_with_predicate(lambda p: replace(p, right=value_of("y", "id", DataType.INT))), "typed"),
        (
            _with_predicate(lambda p: replace(p, right=core.Cast(p.left, p.left.type, p.span))),
            "typed",
        ),
        (
            _with_predicate(lambda p: replace(p, left=core.Negation(p.left, DataType.INT, p.span))),
            "typed",
        ),
        (
            _with_predicate(lambda p: replace(p, right=core.Constant(1, DataType.DOUBLE, p.span))),
            texts.TYPED,
        ),
        (
            _with_predicate(lambda p: core.PatternMatch("LIKE", p.left, "%", False, p.span)),
            texts.TYPED,
        ),
        (
            _with_predicate(lambda p: replace(p, right=value_of("y", "ratio", DataType.DOUBLE))),
            texts.TYPES_DECLARED,
        ),
        (replace(_query(), streams=()), texts.TYPES_DECLARED),
        (
            replace(_query(), formula=core.Sequence((_query().formula,), (), Span(0, 1))),
            texts.GAPS,
        ),
        (replace(_query(), formula=_query("* FROM S WHERE B").formula), texts.OUTPUT_BOUND),
    ],
)
def test_core_queries(query: core.Query, invariant: str) -> None:
    named = {"label": texts.LABELS_RESOLVED, "typed": texts.TYPED}.get(invariant, invariant)
    assert not invariants_of(verify.core_query(_query(), MAX_FORMULA_DEPTH))
    assert named in invariants_of(verify.core_query(query, MAX_FORMULA_DEPTH))


def test_depth_of_core_formulas() -> None:
    assert invariants_of(verify.core_query(_query(), 2)) == {texts.DEPTH}


def test_labels_of_scopes_are_not_seen_outside() -> None:
    """The same condition is right inside the PROJECT and wrong outside."""
    inside = _query("B FROM S WHERE PROJECT[B]((A AS x ; B) FILTER x.id = 1)")
    assert isinstance(inside.formula, core.Project)
    assert isinstance(inside.formula.operand, core.Filter)
    filter_ = inside.formula.operand
    swapped = replace(filter_, operand=replace(inside.formula, operand=filter_.operand))
    assert not invariants_of(verify.core_query(inside, MAX_FORMULA_DEPTH))
    found = invariants_of(verify.core_query(replace(inside, formula=swapped), MAX_FORMULA_DEPTH))
    assert found == {texts.LABELS_RESOLVED}
