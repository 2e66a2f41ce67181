"""Random queries with conditions across events in AND, nested selectors and absent patterns: the
compiled answers against the reference's.

python tests/seeds/test_random_correlated.py 0 500 --kind and     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import argparse
import random
import re
import warnings
from dataclasses import dataclass, field

import pytest
from celc_runtime import EventError, EventWarning
from engines import answer_of, answers, engines, interpreted, only_query
from reference import WorkLimitError, check_answer, evaluate
from strategies_across import wide_stream
from strategies_correlated import KINDS, correlated_query
from streams_by_hand import EVENT_TIME, instant, streamed, timed
from test_random import TOO_LARGE, Tally, cramped

import celc
from celc import CelError
from celc.options import Options

_WORK_LIMIT = 300_000


@dataclass
class Counts(Tally):
    """What has been compared."""

    by_definition: set[str] = field(default_factory=set)
    """The queries that are evaluated by definition."""

    def __str__(self) -> str:
        return f"{super().__str__()}, {len(self.by_definition)} queries by definition"


def check(
    seed: int, tally: Counts, kind: str, *, by_numba: bool = False, streams: int = 10
) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    text = correlated_query(rng, kind)
    tally.drawn += 1
    needs_order = re.search(
        r"SELECT [^*]| EVENTS|CONSUME|NXT\(|LAST\(|MAX\(|PREV\(|PRIOR|STRICT", text
    )
    ties = "simultaneous" if not needs_order and rng.random() < 0.25 else None
    order_by = "ts" if ties else None
    try:
        if by_numba:
            matchers = {"chosen": celc.compile(text, order_by=order_by, ties=ties)}
        else:
            with interpreted():
                matchers = engines(text, Options(("ts",) if ties else None, ties=ties))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"seed {seed}: {codes}: {text}"
        tally.too_large += 1
        return
    if any("ByDefinition(" in matcher.source for matcher in matchers.values()):
        tally.by_definition.add(text)
    for _ in range(streams):
        events = wide_stream(rng, rng.randint(7, 14), types=("A", "B", "C"), nulls=0.05)
        try:
            wanted = evaluate(text, events, order_by=order_by, ties=ties, work_limit=_WORK_LIMIT)
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng), warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        raise AssertionError(
                            f"seed {seed}: {engine} engine, {route}, {ties}: {problem}\n"
                            f"{text}{events}"
                        ) from None


def check_as_stream(seed: int, tally: Counts, kind: str) -> None:
    """Compare what a stream of some micro-batches answers, in which events come out of order."""
    rng = random.Random(seed)
    text = timed(correlated_query(rng, kind))
    tally.drawn += 1
    with interpreted():
        matchers = engines(text, Options((EVENT_TIME,)))
    for _ in range(3):
        events = wide_stream(rng, rng.randint(7, 14), types=("A", "B", "C"), nulls=0.05)
        for number, event in enumerate(events):
            event[EVENT_TIME] = instant(1 + number)
        try:
            wanted = evaluate(text, events, order_by=EVENT_TIME, work_limit=_WORK_LIMIT)
            for engine, matcher in matchers.items():
                query = only_query(matcher)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    answer = answer_of(query, streamed(query, events, rng), events)
                try:
                    check_answer(text, wanted, answer)
                except AssertionError as problem:
                    raise AssertionError(
                        f"seed {seed}: {engine} engine: {problem}\n{text}{events}"
                    ) from None
        except (WorkLimitError, EventError):
            continue  # such a stream is refused
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)


_SLICES = {"and": range(5), "nested": range(5), "absent": range(5)}
_BY_NUMBA = {"and": range(900, 902), "nested": range(900, 902), "absent": range(900, 902)}


@pytest.mark.each(3)
@pytest.mark.parametrize("kind", KINDS)
def test_random_queries(kind: str) -> None:
    tally = Counts()
    for seed in _SLICES[kind]:
        check(seed, tally, kind, streams=5)
    assert tally.pairs_with_matches >= tally.pairs // 7, tally
    assert len(tally.by_definition) <= 2 * len(tally.texts) // 3, tally


@pytest.mark.each(3, values=False)
@pytest.mark.parametrize("seeds", [3, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_random_queries_as_streams(kind: str, seeds: int) -> None:
    tally = Counts()
    for seed in range(seeds):
        check_as_stream(seed, tally, kind)
    assert tally.pairs_with_matches >= seeds // 2, tally


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_random_queries_by_machine_code(kind: str) -> None:
    """The suite has the cases of the same conditions."""
    tally = Counts()
    for seed in _BY_NUMBA[kind]:
        check(seed, tally, kind, by_numba=True)
    assert tally.pairs_with_matches >= 3, tally


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [0, *range(1000, 6000, 500)])
def test_many_random_queries(kind: str, first: int) -> None:
    tally = Counts()
    for seed in range(first, first + 500):
        check(seed, tally, kind)
    assert tally.pairs_with_matches >= tally.pairs // 4, tally


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_queries_by_machine_code(kind: str) -> None:
    tally = Counts()
    for seed in range(10_000, 10_050):
        check(seed, tally, kind, by_numba=True)
    assert tally.pairs_with_matches, tally


def main() -> None:
    """Run seeds; the first difference ends it."""
    parser = argparse.ArgumentParser(description="compare random queries of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0])
    parser.add_argument("--numba", action="store_true")
    parser.add_argument("--stream", action="store_true")
    asked = parser.parse_args()
    tally = Counts()
    for seed in range(asked.first, asked.end):
        if asked.stream:
            check_as_stream(seed, tally, asked.kind)
        else:
            check(seed, tally, asked.kind, by_numba=asked.numba)
    print(tally)


if __name__ == "__main__":
    main()
