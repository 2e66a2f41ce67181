"""Queries with conditions across labels: each kind of them is drawn often enough.

In the long run: they are tests of what draws queries, and find no fault of celc.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import pytest
from reference import WorkLimitError, evaluate, parse
from reference import nodes as n
from strategies import ACROSS, LOOKING_BACK, Feature, random_query
from strategies_across import wide_stream

import celc

pytestmark = pytest.mark.long

DRAWS = 600
WORK_LIMIT = 100_000

# In how many of the queries each kind must be found.
ACROSS_KINDS = {
    "n-ary": 400,
    "=": 300,
    "another order": 150,
    "arithmetic": 60,
    "OR": 60,
    "NOT": 40,
    "IN or BETWEEN": 15,
    "texts": 80,
    "different types": 60,
    "several clauses": 150,
    "three labels in a clause": 25,
    "with a fact": 20,
    "looks outside": 100,
    "under + looks outside": 50,
    "in a selector": 60,
    "in a selector looks outside": 20,
    "in PROJECT": 20,
    "in PROJECT looks outside": 5,
    "in [x -> y]": 15,
    "in [x -> y] looks outside": 5,
    "after ! looks outside": 40,
    "right of UNLESS looks outside": 15,
    "a hidden label": 15,
    "a label of both sides": 30,
    "two labels on an event": 60,
    "one key": 80,
    "one key for three labels": 40,
    "keys in a chain": 25,
    "one key, no window": 40,
    "one key, a window": 20,
    "WITHIN EVENTS": 40,
    "WITHIN [ts]": 40,
    "PARTITION BY": 80,
    "CONSUME BY ANY": 20,
    "CONSUME BY PARTITION": 5,
    "SELECT NXT": 40,
    "SELECT LAST": 30,
    "SELECT MAX": 30,
    "SELECT STRICT": 30,
}
LOOKING_BACK_KINDS = {
    "PREV": 100,
    "PRIOR": 80,
    "SUM": 30,
    "AVG": 15,
    "COUNT against COUNT": 15,
    "an aggregate against an attribute": 80,
    "looks back at another label": 40,
    "looks back, in OR": 40,
    "looks back from inside": 20,
}
_TYPE_OF = {"id": "INT", "ts": "LONG", "number": "LONG", "value": "DOUBLE", "ratio": "FLOAT"}


# --- what a query has -----------------------------------------------------------------------------


def _kinds(text: str) -> set[str]:
    query = parse(text).queries[0]
    found = set()
    for place, formula in _formulas(query.formula, ()):
        found |= _formula_kinds(formula)
        if isinstance(formula, n.Filter):
            found |= _filter_kinds(formula, place)
    if "n-ary" in found:
        words = ("PARTITION BY", "CONSUME BY ANY", "CONSUME BY PARTITION")
        found |= {word for word in words if word in text}
        found.add(f"SELECT {query.selector}")
        if query.window is not None:
            found.add("WITHIN EVENTS" if query.window.unit == "EVENTS" else "WITHIN [ts]")
    if "one key" in found:
        found.add("one key, no window" if query.window is None else "one key, a window")
    return found


def _formulas(
    formula: n.Formula, place: tuple[n.Formula, ...]
) -> Iterator[tuple[tuple[n.Formula, ...], n.Formula]]:
    """Every sub-formula, with the formulas around it."""
    yield place, formula
    for child in vars(formula).copy().values():
        if isinstance(child, n.Formula):
            yield from _formulas(child, (*place, formula))


def _formula_kinds(formula: n.Formula) -> set[str]:
    found = set()
    if isinstance(formula, n.As) and not isinstance(formula.body, n.Atom):
        found.add("two labels on an event")
    if isinstance(formula, n.Then | n.Next | n.All):
        both = formula.left.labels & formula.right.labels
        found |= {"a label of both sides"} if any(map(str.islower, both)) else set()
    return found


def _filter_kinds(formula: n.Filter, place: tuple[n.Formula, ...]) -> set[str]:
    found: set[str] = set()
    for clause in formula.clauses:
        found |= _clause_kinds(clause)
    if "n-ary" not in found:
        return found & set(LOOKING_BACK_KINDS)
    across = [clause for clause in formula.clauses if "n-ary" in _clause_kinds(clause)]
    found |= {"several clauses"} if len(across) > 1 else set()
    found |= {"NOT"} if isinstance(formula.condition, n.Not) else set()
    found |= _key_kinds(formula)
    outside = bool(n.mentioned(formula.condition) - formula.labels)
    found |= {"looks outside"} if outside else set()
    if outside and found & {"PREV", "PRIOR"}:
        found.add("looks back from inside")
    for outer, inner in pairwise((*place, formula)):
        kind = {
            n.Repeat: "under +",
            n.Selector: "in a selector",
            n.Project: "in PROJECT",
            n.Rename: "in [x -> y]",
        }.get(type(outer))
        if isinstance(outer, n.NotBetween) and inner is outer.absent:
            kind = "after !"
        if isinstance(outer, n.Unless) and inner is outer.right:
            kind = "right of UNLESS"
        if kind is not None:
            found |= {kind, f"{kind} looks outside"} if inner.outside - inner.labels else {kind}
            around = place[0].labels - {"A", "B", "C", "D"}
            if inner is not place[0] and inner.labels & around & n.mentioned(formula.condition):
                # What is inside a scope is in the labels around it too, unless after ! or UNLESS.
                hides = kind in ("after !", "right of UNLESS")
                found |= {"a hidden label"} if hides or _twice(outer, place, inner) else set()
    return found


def _twice(scope: n.Formula, place: tuple[n.Formula, ...], inner: n.Formula) -> bool:
    """Whether a label that a scope binds is bound beside the scope as well."""
    for outer, below in pairwise((*place, inner)):
        if below is scope and isinstance(outer, n.Then | n.Next | n.All):
            other = outer.left if outer.right is below else outer.right
            return any(label.islower() for label in other.labels & scope.labels)
    return False


def _clause_kinds(clause: tuple[n.Comparison, ...]) -> set[str]:
    found: set[str] = set()
    labels = [n.mentioned(comparison) for comparison in clause]
    together = frozenset().union(*labels)
    for comparison in clause:
        found |= _comparison_kinds(comparison)
        if found & {"PREV", "PRIOR", "SUM", "AVG"} and len(clause) > 1:
            found.add("looks back, in OR")
    if any(len(one) > 1 for one in labels):
        found.add("n-ary")
        found |= {"OR"} if len(clause) > 1 else set()
        found |= {"NOT"} if any(comparison.negated for comparison in clause) else set()
        found |= {"three labels in a clause"} if len(together) > 2 else set()
    return found


def _comparison_kinds(comparison: n.Comparison) -> set[str]:
    inside = [part for operand in comparison.operands for part in n.parts(operand)]
    aggregates = [part for part in inside if isinstance(part, n.Aggregate)]
    attributes = [part for part in inside if isinstance(part, n.Attribute)]
    found = {part.function for part in aggregates if not part.prior}
    found |= {"PREV"} if any(isinstance(part, n.Previous) for part in inside) else set()
    found |= {"PRIOR"} if any(part.prior for part in aggregates) else set()
    if found & {"PREV", "PRIOR"} and len(n.mentioned(comparison)) > 1:
        found.add("looks back at another label")
    if [part.function for part in aggregates] == ["COUNT", "COUNT"]:
        found.add("COUNT against COUNT")
    if aggregates and attributes:
        found.add("an aggregate against an attribute")
    if aggregates and all(isinstance(part, n.Aggregate | n.Literal) for part in inside):
        found.add("with a fact")
    if len(n.mentioned(comparison)) < 2:
        return found
    operator = comparison.operator
    found |= {"="} if operator == "=" else set()
    found |= {"another order"} if operator in ("<", "<=", ">", ">=", "<>") else set()
    found |= {"IN or BETWEEN"} if operator in ("IN", "BETWEEN") else set()
    found |= {"arithmetic"} if any(isinstance(part, n.Binary) for part in inside) else set()
    names = {part.name for part in attributes}
    found |= {"texts"} if names & {"name", "code"} else set()
    kinds = {_TYPE_OF[name] for name in names if name in _TYPE_OF}
    found |= {"different types"} if len(kinds) > 1 else set()
    return found


def _key_kinds(formula: n.Filter) -> set[str]:
    """Whether equalities of attributes tie all made labels of the filtered formula."""
    made = {label for label in formula.labels if label.islower()}
    edges: dict[str, set[frozenset[str]]] = defaultdict(set)
    for clause in formula.clauses:
        comparison = clause[0]
        sides = [part for part in comparison.operands if isinstance(part, n.Attribute)]
        if len(clause) > 1 or comparison.operator != "=" or comparison.negated:
            continue
        if len(sides) == 2 and sides[0].name == sides[1].name:
            edges[sides[0].name].add(frozenset(side.label for side in sides))
    found = set()
    if len(made) > 1 and any(_tied(made, pairs) for pairs in edges.values()):
        found |= {"one key", "one key for three labels"} if len(made) > 2 else {"one key"}
    elif len(made) > 2 and _tied(made, set().union(*edges.values())):
        found.add("keys in a chain")
    return found


def _tied(labels: set[str], pairs: set[frozenset[str]]) -> bool:
    reached = {min(labels)}
    for _ in labels:
        reached |= {label for pair in pairs if pair & reached for label in pair}
    return reached >= labels


# --- tests ----------------------------------------------------------------------------------------


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("features", "wanted"),
    [(ACROSS, ACROSS_KINDS), (LOOKING_BACK, LOOKING_BACK_KINDS)],
    ids=["across", "look back"],
)
def test_each_kind_is_drawn_often_enough(
    features: frozenset[Feature], wanted: dict[str, int]
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(DRAWS):
        counts.update(_kinds(random_query(random.Random(seed), features)))
    assert not {kind: counts[kind] for kind, least in wanted.items() if counts[kind] < least}


def test_nothing_looks_back_unless_asked_to() -> None:
    """COUNT, MIN, MAX, FIRST and LAST are compared with constants only."""
    for seed in range(DRAWS):
        text = random_query(random.Random(seed), ACROSS)
        assert not any(word in text for word in ("PREV(", "PRIOR ", "SUM(", "AVG(")), text


@pytest.mark.each(2)
@pytest.mark.parametrize("features", [ACROSS, LOOKING_BACK], ids=["across", "look back"])
def test_queries_are_valid_and_match_often_enough(features: frozenset[Feature]) -> None:
    """The compiler finds no mistake in them, and the reference finds matches for many."""
    matching = 0
    for seed in range(150):
        rng = random.Random(seed)
        text = random_query(rng, features)
        assert not [found for found in celc.check(text) if found.severity == "error"], text
        try:
            matching += bool(evaluate(text, wide_stream(rng, 9), work_limit=WORK_LIMIT))
        except WorkLimitError:
            continue
    assert matching >= 22


def test_one_seed_gives_one_query_and_stream() -> None:
    for seed in range(20):
        first, second = random.Random(seed), random.Random(seed)
        assert random_query(first, LOOKING_BACK) == random_query(second, LOOKING_BACK)
        assert repr(wide_stream(first, 6)) == repr(wide_stream(second, 6))


def test_streams_hold_odd_values() -> None:
    """-0.0, NaN, NULL, and whole numbers that DOUBLE and FLOAT cannot tell apart."""
    rng = random.Random(0)
    events = [event for _ in range(60) for event in wide_stream(rng, 20)]
    values = [event["value"] for event in events if event["value"] is not None]
    assert any(math.isnan(value) for value in values)
    assert any(value == 0 and math.copysign(1, value) < 0 for value in values)
    assert {2**53, 2**53 + 1, 2**63 - 1, -(2**63), None} <= {event["number"] for event in events}
    assert float(2**53) in values
    assert {2**24 + 1, None} <= {event["id"] for event in events}
    assert 2.0**24 in {event["ratio"] for event in events}
