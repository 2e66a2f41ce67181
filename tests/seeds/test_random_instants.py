"""Random queries on streams with many simultaneous events: compiled answers and the reference's.
In half of them events last, and are simultaneous where they end at one time.

python tests/seeds/test_random_instants.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from engines import answers, engines, interpreted, only_query
from reference import WorkLimitError, check_answer, evaluate
from seeds import compare_seeds
from strategies import EVERYTHING, OF_ROUNDS, SHORTER, Feature, random_query, random_stream
from test_random import TOO_LARGE, Tally, cramped
from test_random_compact import answers_differ

from celc import CelError
from celc.core.limits import SIMULTANEOUS
from celc.options import Options

pytestmark = pytest.mark.filterwarnings("ignore:.*undecided")  # tests/runtime/run has its tests

# Selectors, LIMIT and CONSUME BY choose by the order of events.
_NEED_ORDER = {
    Feature.SELECTOR,
    Feature.TOP_SELECTOR,
    Feature.ANY,
    Feature.WITHIN_EVENTS,
    Feature.CONSUME_BY,
    Feature.LIMIT,
}
SELECTORS = r"(NXT|LAST|MAX|STRICT)\("
"""Formulas of rounds have some of their own."""
_SHAPES = (EVERYTHING - _NEED_ORDER, (EVERYTHING | SHORTER) - _NEED_ORDER, OF_ROUNDS - _NEED_ORDER)
_WITH_FIRST = EVERYTHING | SHORTER | {Feature.THEN_FIRST, Feature.LOCAL_WINDOW, Feature.NOT_BEFORE}
_WITH_ENDS = EVERYTHING | {Feature.NOT_BEFORE, Feature.NOT_AFTER}
BY_START = tuple(one - _NEED_ORDER | {Feature.PER_START} for one in (*_SHAPES, _WITH_ENDS))
"""The features of queries with SELECT FIRST and LONGEST."""
_NEED_NEXT = {Feature.WITHIN_EVENTS, Feature.CONSUME_BY}
"""What asks for the event after one, where events last and have an order."""
LASTING_SHAPES = tuple(
    one - _NEED_NEXT
    for one in (
        *(EVERYTHING, EVERYTHING | SHORTER, OF_ROUNDS, _WITH_FIRST, _WITH_ENDS),
        *(EVERYTHING | {Feature.PER_START}, _WITH_ENDS | {Feature.PER_START}),
    )
)


def simultaneous_stream(rng: random.Random, length: int) -> list[dict[str, Any]]:
    """Events in the order of `ts` and `half`, most of them with others of the same time."""
    events = random_stream(rng, length, nulls=rng.choice((0, 0.1)), strangers=rng.choice((0, 0.2)))
    steps, ts = rng.choice(((0, 0, 1), (0, 1, 1, 2), (0, 0, 0, 0, 3))), 0
    for number, event in enumerate(events):
        ts += rng.choice(steps)
        event |= {"ts": ts, "half": rng.randint(0, 1), "row": number}
        event |= {"number": number % 3, "ratio": None, "code": None, "flag": None, "day": None}
        event["id"] = rng.choice((1, 1, 1, 2)) if rng.random() < 0.5 else event["id"]
    return sorted(events, key=lambda event: (event["ts"], event["half"]))


def order_free_query(
    rng: random.Random, depth: int, shapes: Sequence[frozenset[Feature]] = _SHAPES
) -> str:
    """A query that simultaneous events have an answer to, mostly."""
    text = random_query(rng, rng.choice(shapes), depth).replace("ts: LONG", "ts: LONG, half: INT")
    return re.sub(r"(\d+) EVENTS", r"\1 [ts]", text)  # windows inside the formula


def lasting(rng: random.Random, text: str) -> str:
    """The query over events that last from `begin` to `ts`; at times those of C and D are a stream
    of their own, and last from `half` or have no length."""
    text = text.replace("half: INT", "half: LONG, begin: LONG")
    starts = iter(("begin", rng.choice(("begin", "half", ""))))
    if rng.random() < 0.5:
        text = text.replace(",\n  EVENT C", "\n}\nCREATE STREAM T {\n  EVENT C")
        text = re.sub(r"FROM S\b", "FROM S, T", re.sub(r"\bS>([CD])", r"T>\1", text))

    def declared(found: re.Match[str]) -> str:
        start = next(starts)
        return f"{found[1]} LASTING [{start}, ts] {{" if start else found[0]

    return re.sub(r"(CREATE STREAM \w+) {", declared, text)


def with_starts(rng: random.Random, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events with two starts at or before their ends."""
    for event in events:
        event["begin"] = event["ts"] - rng.choice((0, 0, 1, 2, 5))
        event["half"] = event["ts"] - rng.choice((0, 1, 3))
    return events


def check(seed: int, tally: Tally, *, depth: int = 2, length: int = 8) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    lasts = seed % 2 == 1
    shapes = LASTING_SHAPES if lasts else BY_START if seed % 4 == 0 else _SHAPES
    text = order_free_query(rng, depth, shapes)
    order_by: tuple[str, ...] | None = rng.choice((("ts",), ("ts",), ("ts", "half")))
    ties: str | None = SIMULTANEOUS
    if lasts:
        text, order_by, ties = lasting(rng, text), None, None
    at_end = "closed" if rng.random() < 0.3 else "open"
    tally.drawn += 1
    try:
        with interpreted():
            matchers = engines(text, Options(order_by, ties=ties, at_end=at_end))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        known = set(TOO_LARGE)
        known |= {"simultaneous-order"} if re.search(SELECTORS, text) and not lasts else set()
        if not codes <= known:
            raise AssertionError(text) from problem
        tally.too_large += 1
        return
    for _ in range(4):
        events = simultaneous_stream(rng, rng.randint(0, length))
        events = with_starts(rng, events) if lasts else events
        try:
            wanted = evaluate(
                text,
                events,
                order_by=order_by,
                ties=ties,
                at_end=at_end,
                times=lasts,
                work_limit=100_000,
            )
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng):
                told = answers_differ(only_query(matcher), events, rng)
                assert not told, f"seed {seed}: {engine} engine, compact: {told}\n{text}{events}"
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        raise AssertionError(
                            f"seed {seed}: {engine} engine, {route}, order {order_by}: {problem}\n"
                            f"{text}{events}"
                        ) from None


@pytest.mark.parametrize("seeds", [5, pytest.param(26, marks=pytest.mark.long)])
def test_simultaneous_events(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check(seed, tally)
    assert tally.pairs_with_matches >= 16 * seeds // 26, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 5000, 250))
def test_many_simultaneous_events(first: int) -> None:
    for seed in range(first, first + 250):
        check(seed, Tally(), depth=3, length=9)


if __name__ == "__main__":
    compare_seeds(check)
