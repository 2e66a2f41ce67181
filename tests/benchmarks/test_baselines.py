"""The baselines of `benchmarks/baselines` find what the reference finds, of random queries."""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from places import ROOT
from reference import evaluate

sys.path.append(str(ROOT / "benchmarks"))

from baselines import merged, runs
from baselines.merged import Merged, Rule, Step
from baselines.postponed import found_by_postponing
from baselines.runs import Events, Part, Pattern, found_by_runs, stream_of

_SUITE, _LONG = 25, 500
_TYPES = "ABC"


def _drawn_part(rng: random.Random, kind: str, several: bool, against: list[int]) -> Part:
    low = rng.choice([-math.inf, -math.inf, 1.0, 2.0])
    high = rng.choice([math.inf, math.inf, 3.0, 4.0])
    chosen = rng.choice([runs.NOTHING, runs.NOTHING, *against])
    return Part(kind, several, low, high, chosen, rng.random() < 0.5)


def _drawn_pattern(rng: random.Random) -> Pattern:
    strategy = rng.choice([runs.STRICT, runs.NEXT, runs.ANY])
    parts: list[Part] = []
    seen = False
    for number in range(rng.randint(1, 4)):
        several = rng.random() < 0.4 and (strategy != runs.NEXT or number > 0)
        against = [runs.FIRST] if number else []
        against += [runs.BEFORE] if number or several else []
        against += [runs.MOST, runs.MEAN] if several or seen else []
        parts.append(_drawn_part(rng, rng.choice(_TYPES), several, against))
        seen = seen or several
    window = rng.choice([3, 6, 20])
    return Pattern(tuple(parts), window, strategy, rng.random() < 0.3, rng.random() < 0.15)


def _drawn_events(rng: random.Random, count: int) -> Events:
    return Events(
        np.array([rng.choice(_TYPES) for _ in range(count)]),
        np.array([float(rng.randint(0, 5)) for _ in range(count)]),
        np.cumsum([rng.randint(0, 2) for _ in range(count)]),
        np.array([rng.randint(0, 1) for _ in range(count)]),
    )


def _by_reference(pattern: Pattern, events: Events) -> list[runs.Match]:
    rows = [
        {"type": kind, "v": value, "ts": time, "id": key}
        for kind, value, time, key in zip(*(column.tolist() for column in events), strict=True)
    ]
    places = defaultdict(list)  # of each part of the stream: the row of a position
    for row, event in enumerate(rows):
        places[event["id"] if pattern.keyed else 0].append(row)
    return sorted(
        tuple(
            tuple(places[dict(match.partition).get("id", 0)][pos] for pos in positions)
            for _, positions in match.labels
        )
        for match in evaluate(stream_of(_TYPES) + runs.query_of(pattern), rows)
    )


def _check_runs(seeds: range) -> int:
    """How many queries were compared: of some a loop of FIRST does not say the same."""
    compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        pattern, events = _drawn_pattern(rng), _drawn_events(rng, 11)
        try:
            expected = _by_reference(pattern, events)
        except ValueError:
            continue
        found = found_by_runs(pattern, events, by_numba=False, keep=True)
        assert sorted(found.matches) == expected, (seed, pattern)
        assert found.counts.matches == len(expected)
        compared += 1
    return compared


def test_runs_find_what_the_reference_finds() -> None:
    assert _check_runs(range(_SUITE)) >= 20


@pytest.mark.long
def test_runs_find_it_of_five_hundred_queries() -> None:
    assert _check_runs(range(_LONG + 100)) >= _LONG


def _check_postponing(seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        before = [runs.FIRST, runs.BEFORE, runs.MOST, runs.MEAN]
        against = ([], before, before)
        parts = (
            _drawn_part(rng, kind, kind == "B", asked)
            for kind, asked in zip(_TYPES, against, strict=True)
        )
        pattern, events = Pattern(tuple(parts), rng.choice([4, 8, 20])), _drawn_events(rng, 12)
        expected = _by_reference(pattern, events)
        for early in (False, True):
            counts, found = found_by_postponing(
                pattern, events, early=early, by_numba=False, keep=2_000
            )
            assert sorted(found) == expected, (seed, early, pattern)
            assert counts.matches == len(expected)


def test_postponing_finds_what_the_reference_finds() -> None:
    _check_postponing(range(_SUITE))


@pytest.mark.long
def test_postponing_finds_it_of_five_hundred_queries() -> None:
    _check_postponing(range(_LONG))


_DECLARED = "CREATE STREAM S { EVENT E { tick: LONG, d1: INT, d2: INT, c: DOUBLE } }\n"


def _drawn_rule(rng: random.Random, number: int) -> Rule:
    primary = rng.choice(["d1", "d2"]), rng.randint(0, 1)
    other = "d2" if primary[0] == "d1" else "d1"
    steps = []
    for place in range(rng.randint(1, 3)):
        equals = [primary] if rng.random() < 0.6 else []
        equals += [(other, rng.randint(0, 1))] if rng.random() < 0.3 else []
        low = float(rng.randint(0, 4))
        ranges = (("c", low, low + rng.randint(0, 3)),) if rng.random() < 0.4 else ()
        against = (("c", rng.choice([0.5, 1.0])),) if place and rng.random() < 0.3 else ()
        steps.append(Step(tuple(equals), ranges, against))
    kind = rng.choice([merged.LINEAR, merged.FILTER, merged.ANY])
    named = None if rng.random() < 0.1 else primary
    return Rule(number, tuple(steps), kind, rng.choice([2, 4, 8]), named)


def _check_merged(seeds: range) -> None:
    """Three rules at a time, and one that begins as the first of them does."""
    for seed in seeds:
        rng = random.Random(seed)
        first, *more = (_drawn_rule(rng, number) for number in range(3))
        alike = Rule(
            3,
            (*first.steps[:-1], Step((("d1", 1),))),
            first.kind,
            first.window,
            first.primary,
        )
        rules = [first, *more, alike]
        events = _ticking_events(rng)
        expected = sorted(
            (rule.id, tuple(positions[0] for _, positions in match.labels))
            for rule in rules
            for match in evaluate(_DECLARED + merged.query_of(rule), events)
        )
        for merges, indexes in ((True, True), (False, True), (False, False)):
            run = Merged(rules, merges=merges, indexes=indexes)
            found = [match for event in events for match in run.push(event["tick"], event)]
            assert sorted(tuple(match) for match in found) == expected, (seed, merges, indexes)


def _ticking_events(rng: random.Random) -> list[dict[str, Any]]:
    events, tick = [], 0
    for _ in range(12):
        values = {"d1": rng.randint(0, 1), "d2": rng.randint(0, 1), "c": float(rng.randint(0, 5))}
        events.append({"type": "E", "tick": tick, **values})
        tick += rng.randint(0, 2)
    return events


def test_merged_rules_find_what_the_reference_finds() -> None:
    _check_merged(range(_SUITE // 3))


@pytest.mark.long
def test_merged_rules_find_it_of_five_hundred_queries() -> None:
    _check_merged(range(_LONG))


def test_a_pattern_that_compares_with_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="before the first"):
        Pattern((Part("A", against=runs.BEFORE),), 3)
    with pytest.raises(ValueError, match="several events"):
        Pattern((Part("A"), Part("B", against=runs.MOST)), 3)
    with pytest.raises(ValueError, match="at most two"):
        Merged([Rule(0, (Step((("d1", 1), ("d2", 1), ("d3", 1))),), merged.LINEAR)])


def test_the_paper_of_sase_counts_fifteen_runs() -> None:
    """Section 5.1, figure 3: an A, three B's and a C are 15 runs, or one and seven choices."""
    types = np.array(list("ABBBC"))
    events = Events(types, np.zeros(5), np.arange(5), np.zeros(5, np.int64))
    pattern = Pattern((Part("A"), Part("B", several=True), Part("C")), 10)
    counts = found_by_runs(pattern, events, by_numba=False).counts
    assert (counts.runs, counts.matches) == (15, 7)
    postponed, _ = found_by_postponing(pattern, events, early=False, by_numba=False)
    assert (postponed.runs, postponed.intermediate, postponed.matches) == (1, 1, 7)
