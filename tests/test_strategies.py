"""Generated queries are valid, stay within their features, and match something often enough.

In the long run: they are tests of what draws queries, and find no fault of celc.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from reference import Match, WorkLimitError, evaluate, parse
from reference import nodes as n
from strategies import (
    EVERYTHING,
    REGULAR,
    TYPES,
    Feature,
    queries,
    random_query,
    random_stream,
    streams,
)

pytestmark = pytest.mark.long

WORK_LIMIT = 100_000

# The formulas that stand for a feature; what none of these says is a matter of conditions.
_NODES: dict[Feature, type[n.Formula]] = {
    Feature.AS: n.As,
    Feature.THEN: n.Then,
    Feature.CONTIGUOUS: n.Next,
    Feature.OR: n.Or,
    Feature.RENAME: n.Rename,
    Feature.PROJECT: n.Project,
    Feature.FILTER: n.Filter,
    Feature.AND: n.And,
    Feature.ALL: n.All,
    Feature.UNLESS: n.Unless,
    Feature.NOT_BETWEEN: n.NotBetween,
    Feature.SELECTOR: n.Selector,
    Feature.LOCAL_WINDOW: n.Within,
    Feature.NOT_BEFORE: n.NotBefore,
    Feature.NOT_AFTER: n.NotAfter,
}


def _answer(query: str, events: list[dict[str, Any]]) -> list[Match]:
    try:
        return evaluate(query, events, work_limit=WORK_LIMIT)
    except WorkLimitError:
        return []


def _formulas(formula: n.Formula) -> Iterator[n.Formula]:
    yield formula
    for child in vars(formula).copy().values():
        if isinstance(child, n.Formula):
            yield from _formulas(child)


def _features(query: str) -> set[Feature]:
    """The features that the query uses, as far as its syntax tree tells."""
    asked = parse(query).queries[0]
    used: set[Feature] = set()
    for formula in _formulas(asked.formula):
        used |= {feature for feature, node in _NODES.items() if type(formula) is node}
        if isinstance(formula, n.Repeat):
            used.add(Feature.REPEAT_CONTIGUOUS if formula.contiguous else Feature.REPEAT)
        if isinstance(formula, n.Atom) and formula.stream is not None:
            used.add(Feature.STREAM_ATOM)
        if isinstance(formula, n.Filter):
            used |= _condition_features(formula)
    if asked.items is not None:
        used.add(Feature.SELECT_LABELS if asked.items else Feature.SELECT_NONE)
        if any(isinstance(item, n.ExpressionItem) for item in asked.items):
            used = used - {Feature.SELECT_LABELS} | {Feature.SELECT_EXPRESSIONS}
    if asked.selector != "ALL":
        used.add(Feature.ANY if asked.selector == "ANY" else Feature.TOP_SELECTOR)
    if asked.window is not None:
        by_events = asked.window.unit == "EVENTS"
        used.add(Feature.WITHIN_EVENTS if by_events else Feature.WITHIN_ATTRIBUTE)
    used |= {Feature.PARTITION_BY} if asked.partition_by else set()
    used |= {Feature.CONSUME_BY} if asked.consume_by != "NONE" else set()
    used |= {Feature.LIMIT} if asked.limit is not None else set()
    return used


def _condition_features(formula: n.Filter) -> set[Feature]:
    used: set[Feature] = set()
    if n.mentioned(formula.condition) - formula.labels:
        used.add(Feature.OUTER)
    for comparison in n.comparisons(formula.condition):
        inside = [part for operand in comparison.operands for part in n.parts(operand)]
        for part in inside:
            if isinstance(part, n.Previous):
                used.add(Feature.PREV)
            if isinstance(part, n.Aggregate):
                used.add(Feature.PRIOR if part.prior else Feature.AGGREGATE)
        if len(n.mentioned(comparison)) > 1 and Feature.OUTER not in used:
            used.add(Feature.CORRELATION)
    for clause in formula.clauses:
        labels = [n.mentioned(comparison) for comparison in clause]
        if len(frozenset().union(*labels)) > max(len(one) for one in labels):
            used.add(Feature.OR_ACROSS)
    return used


@given(query=queries(REGULAR), events=streams(max_length=8))
def test_regular_queries_evaluate(query: str, events: list[dict[str, Any]]) -> None:
    for match in _answer(query, events):
        assert 0 <= match.start <= match.end < len(events)


@given(query=queries(EVERYTHING), events=streams(max_length=8, strangers=0.1))
def test_all_queries_evaluate(query: str, events: list[dict[str, Any]]) -> None:
    for match in _answer(query, events):
        for _, positions in match.labels:
            assert all(match.start <= position <= match.end for position in positions)


@pytest.mark.parametrize(
    "features", [REGULAR, EVERYTHING, frozenset({Feature.THEN, Feature.AS}), frozenset()]
)
def test_queries_use_their_features_and_no_others(features: frozenset[Feature]) -> None:
    used: set[Feature] = set()
    for seed in range(400):
        used |= _features(random_query(random.Random(seed), features))
    assert used == set(features)


@pytest.mark.parametrize("features", [REGULAR, EVERYTHING])
def test_enough_queries_match_something(features: frozenset[Feature]) -> None:
    matching = 0
    for seed in range(300):
        rng = random.Random(seed)
        query = random_query(rng, features)
        matching += bool(_answer(query, random_stream(rng, 8)))
    assert matching >= 100


def test_one_seed_gives_one_query_and_stream() -> None:
    for seed in range(20):
        first, second = random.Random(seed), random.Random(seed)
        assert random_query(first, EVERYTHING) == random_query(second, EVERYTHING)
        assert random_stream(first, 6) == random_stream(second, 6)


def test_streams_stand_still_and_hold_nulls() -> None:
    events = random_stream(random.Random(0), 300, strangers=0.05)
    times = [event["ts"] for event in events]
    assert times == sorted(times)
    assert len(set(times)) < len(times)
    assert {event["type"] for event in events} == {*TYPES, "Stranger"}
    for attribute in ("id", "value", "name"):
        assert None in [event[attribute] for event in events]
