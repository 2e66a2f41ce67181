"""Random queries on random streams: the compiled answers against the reference's.

Each query is run by the engine that the compiler chooses and by the general one, with buffers and
arenas so small that they fill up and grow all the time. What was once found here is kept in
`tests/cases/found`, in the form of the conformance cases.

Half of the queries are drawn from the whole language, half without comparisons across labels, PREV
and PRIOR: most of these are left to automata alone. `test_random_across` dwells on the others.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from cases_io import Case, case_stems, load_cases
from celc_runtime import EventWarning
from celc_runtime.engine.arena import nodes as arena
from celc_runtime.engine.update import union_lists as lists
from celc_runtime.run import run
from celc_runtime.run.past import history, key_memory
from celc_runtime.run.run_of import run_of
from celc_runtime.run.update import updates
from celc_runtime.run.walk import checked, latest, walks, window_walks
from engines import answer_of, answers, engines, interpreted, only_query, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from places import CASES
from reference import WorkLimitError, check_answer, difference, evaluate
from strategies import (
    DECLARATION,
    EVERYTHING,
    Feature,
    random_query,
    random_stream,
    with_alternatives,
    with_chosen_keys,
)
from strategies_keys import real_keys, with_real_keys

import celc
from celc import CelError, Matcher
from celc.options import Options

CASES_FOUND = CASES / "found"
# What is refused for its size instead of running for ever; it must stay rare.
TOO_LARGE = {
    "automaton-too-large",
    "too-many-states",
    "normal-form-too-large",
    "condition-too-large",
    "count-too-large",
    "formula-too-large",
}
WORK_LIMIT = 200_000


# --- what is drawn --------------------------------------------------------------------------------


def _declared(rng: random.Random, query: str) -> str:
    """The query over other declarations: other times, a second stream, an order column."""
    ts = rng.choice(("LONG", "LONG", "INT", "DOUBLE", "FLOAT"))
    declaration = DECLARATION.replace("ts: LONG", f"ts: {ts}, seq: LONG")
    body = query.removeprefix(DECLARATION)
    if "PARTITION BY" in body and rng.random() < 0.4:
        declaration, body = with_alternatives(rng, declaration, body)
    if rng.random() < 0.2:
        other = declaration.replace("STREAM S", "STREAM T")
        # A type of one name has another attribute in each stream.
        if "src" in other and rng.random() < 0.5:
            other = other.replace("src", "?").replace("dst", "src").replace("?", "dst")
        declaration += other
        body = body.replace("FROM S\n", rng.choice(("FROM S, T\n", "FROM T, S\n")))
        body = body.replace("S>", rng.choice(("S>", "T>")))
    return with_real_keys(declaration + body)


def _stream(rng: random.Random, matcher: Matcher, text: str) -> list[dict[str, Any]]:
    """Events for the query: with few keys, mostly, so that parts are long; with an order column."""
    plan = only_query(matcher).plan
    length = rng.randint(0, 20 if plan.matching.window else 10)
    events = random_stream(
        rng, length, nulls=rng.choice((0, 0.1)), strangers=rng.choice((0, 0, 0.2))
    )
    few = rng.random() < 0.5
    for number, event in enumerate(events):
        event["seq"] = number
        if few:
            event["id"] = rng.choice((1, 1, 1, 2))
        if plan.source.stream_column:
            event["stream"] = rng.choice(("S", "S", "T", "U"))
    for key in plan.source.chosen_keys:
        events = with_chosen_keys(rng, events, key.type)
    return real_keys(text, events)


@contextmanager
def cramped(rng: random.Random) -> Iterator[None]:
    """Runs made inside begin with next to no room, so that everything fills up and grows."""
    with pytest.MonkeyPatch.context() as patch:
        size, room = rng.choice((1, 2, 4, 16, 1024)), rng.choice((1, 2, 4))
        patch.setattr(run, "new_memory", partial(arena.new_memory, size=size))
        patch.setattr(updates, "new_lists", partial(lists.new_lists, room=room))
        for chooser in (latest, window_walks):
            patch.setattr(chooser, "new_memory", partial(arena.new_memory, size=size))
        patch.setattr(latest, "_CELLS_ROOM", room)
        patch.setattr(window_walks, "_EVENTS_ROOM", room)
        patch.setattr(checked, "_COLLECTED", room)
        patch.setattr(checked, "_COLLECTED_ENTRIES", room)
        patch.setattr(history, "_FIRST_ROOM", room)
        # An event may enter several keys, so there is a least size that is of use.
        patch.setattr(key_memory, "_FEWEST_ROWS", 64)
        patch.setattr(walks, "_MATCHES_PER_BATCH", rng.choice((1, 2, 3, 1 << 16)))
        patch.setattr(walks, "_ENTRIES_PER_BATCH", rng.choice((1, 2, 5, 1 << 18)))
        yield


# --- comparing ------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What has been drawn and compared."""

    drawn: int = 0
    too_large: int = 0
    pairs: int = 0
    """A query and a stream, compared."""
    pairs_with_matches: int = 0
    matches: int = 0
    texts: set[str] = field(default_factory=set)
    """The queries that have been compared with the reference on at least one stream."""
    with_features: set[str] = field(default_factory=set)

    def add(self, other: Tally) -> None:
        """Count what another one has counted."""
        self.drawn += other.drawn
        self.too_large += other.too_large
        self.pairs += other.pairs
        self.pairs_with_matches += other.pairs_with_matches
        self.matches += other.matches
        self.texts |= other.texts
        self.with_features |= other.with_features

    def __str__(self) -> str:
        return (
            f"{len(self.texts):,} queries, {self.pairs:,} pairs ({self.pairs_with_matches:,} with "
            f"a match), {self.matches:,} matches; of {self.drawn:,} drawn {self.too_large:,} too "
            "large"
        )


# Words that only a query with the feature has; all of them must have been met.
_WORDS = (
    *("NXT(", "LAST(", "MAX(", "STRICT("),
    *("SELECT NXT", "SELECT LAST", "SELECT MAX", "SELECT STRICT", "SELECT ANY"),
    *(" AND ", " ALL ", " UNLESS ", "; !", "COUNT(", "FIRST(", "MIN(", "PROJECT", ":+", "->"),
    *("PREV(", "(PRIOR ", "SUM("),
    *(
        "PARTITION BY",
        "[src, dst]",
        "EVENTS",
        "[ts]",
        "CONSUME BY ANY",
        "CONSUME BY PARTITION",
        "LIMIT",
    ),
)


def check(
    rng: random.Random,
    tally: Tally,
    *,
    depth: int,
    streams: int,
    compiled: bool = False,
    more: frozenset[Feature] = frozenset(),
) -> None:
    """Compare the answers of one random query on some streams, and count them.

    `more`: features that it may use besides. With `compiled` as users run it, by the engine that
    the compiler chooses, compiled by Numba.
    """
    text = _declared(rng, random_query(rng, (EVERYTHING - _left_out(rng)) | more, depth))
    order_by = rng.choice((None, None, "seq"))
    at_end = rng.choice(("open", "open", "closed")) if Feature.NOT_AFTER in more else "open"
    tally.drawn += 1
    try:
        if compiled:
            matchers = {"chosen": celc.compile(text, order_by=order_by, at_end=at_end)}
        else:
            with interpreted():
                options = Options(None if order_by is None else (order_by,), at_end=at_end)
                matchers = engines(text, options)
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        known = TOO_LARGE | ({"label-later"} if Feature.THEN_FIRST in more else set())
        assert codes <= known, f"{codes}: {text}"
        tally.too_large += 1
        return
    for _ in range(streams):
        events = _stream(rng, next(iter(matchers.values())), text)
        try:
            wanted = evaluate(text, events, order_by=order_by, at_end=at_end, work_limit=WORK_LIMIT)
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng), warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        raise AssertionError(
                            f"{engine} engine, {route}, order {order_by}, {at_end}: {problem}\n"
                            f"{text}{events}"
                        ) from None
    if text in tally.texts:
        tally.with_features |= {word for word in _WORDS if word in text}


def _left_out(rng: random.Random) -> frozenset[Feature]:
    """What brings in conditions across events, for half of the draws; for some of these more."""
    if rng.random() < 0.5:
        return frozenset()
    left_out = {Feature.CORRELATION, Feature.PREV, Feature.PRIOR}
    if rng.random() < 0.3:
        left_out.add(Feature.OUTER)
    if rng.random() < 0.2:
        left_out.add(Feature.AGGREGATE)
    return frozenset(left_out)


@pytest.mark.machine_code
@settings(max_examples=10, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_random_queries_drawn_by_hypothesis(rng: random.Random) -> None:
    check(rng, Tally(), depth=3, streams=4)


@pytest.mark.long
@settings(max_examples=200, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_more_random_queries_drawn_by_hypothesis(rng: random.Random) -> None:
    check(rng, Tally(), depth=3, streams=4)


@pytest.mark.machine_code
@pytest.mark.parametrize(
    ("first", "seeds"),
    [(0, 24), *(pytest.param(first, 110, marks=pytest.mark.long) for first in (0, 110))],
)
def test_random_queries_of_seeds(first: int, seeds: int) -> None:
    """As many again and more, less alike: hypothesis prefers small numbers."""
    tally = Tally()
    for seed in range(first, first + seeds):
        check(random.Random(seed), tally, depth=3 + seed % 2, streams=6)
    assert len(tally.texts) >= 65 * seeds // 110, tally
    assert tally.pairs >= 350 * seeds // 110, tally
    assert tally.pairs_with_matches >= 100 * seeds // 110, tally
    assert tally.too_large <= 1, tally
    if (first, seeds) == (0, 110):
        assert tally.with_features >= {*_WORDS}, {*_WORDS} - tally.with_features


# --- the long run ---------------------------------------------------------------------------------

_SLICES = range(100_000, 122_000, 1000)
_SLICES_BY_NUMBA = range(200_000, 231_000, 1000)


class LongRun:
    """What the slices of the long run have counted together."""

    def __init__(self) -> None:
        self.all = Tally()
        self.by_numba = Tally()
        self.slices: list[int] = []

    def slice(self, first: int, queries: int, *, compiled: bool) -> Tally:
        """Seeds from `first` on until so many queries have been compared on ten streams each."""
        tally = Tally()
        seed = first
        while len(tally.texts) < queries or tally.pairs < 10 * queries:
            assert seed < first + 1000, f"seeds {first} to {seed}: {tally}"
            depth = 2 + seed % 3
            check(random.Random(seed), tally, depth=depth, streams=10, compiled=compiled)
            seed += 1
        self.slices.append(first)
        self.all.add(tally)
        if compiled:
            self.by_numba.add(tally)
        return tally


@pytest.fixture(scope="module")
def long_run(request: pytest.FixtureRequest) -> Iterator[LongRun]:
    """Counts what the tests that use it compare, and says it in the end."""
    found = LongRun()
    yield found
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        slices = ", ".join(f"{first}…" for first in found.slices)
        print(f"\nrandom queries of seeds {slices}: {found.all}; by Numba: {found.by_numba}")
    if found.slices == [*_SLICES, *_SLICES_BY_NUMBA]:
        assert len(found.all.texts) >= 2_000, found.all
        assert found.all.pairs >= 20_000, found.all
        assert len(found.by_numba.texts) >= 300, found.by_numba
        assert 100 * found.all.too_large < found.all.drawn, found.all


@pytest.mark.long
@pytest.mark.parametrize("first", _SLICES)
def test_many_random_queries(first: int, long_run: LongRun) -> None:
    """A hundred queries, a thousand pairs."""
    tally = long_run.slice(first, 100, compiled=False)
    assert tally.pairs_with_matches > 200, f"seeds from {first}: {tally}"
    assert tally.too_large <= max(2, tally.drawn // 50), f"seeds from {first}: {tally}"


@pytest.mark.long
@pytest.mark.parametrize("first", _SLICES_BY_NUMBA)
def test_many_random_queries_by_numba(first: int, long_run: LongRun) -> None:
    """Ten queries, a hundred pairs, with the generated code compiled."""
    tally = long_run.slice(first, 10, compiled=True)
    assert tally.matches, f"seeds from {first}: {tally}"


# --- what was found -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1, 5), marks=pytest.mark.long)], ids=["few", "more"]
)
@pytest.mark.parametrize("stem", case_stems(CASES_FOUND))
def test_cases_found(stem: str, seeds: range) -> None:
    """The reference and both engines give the answer that was worked out when a case was found.

    The seeds decide how the events are cut, and how little room there is.
    """
    for case in load_cases(stem, CASES_FOUND):
        order = case.order_by
        found = evaluate(case.query, case.events, order_by=order[0] if order else None)
        assert not difference(found, case.expected), case.name
        with interpreted():
            compiled = engines(case.query, Options(order))
        for seed in seeds:
            rng = random.Random(seed)
            for engine, matcher in compiled.items():
                query = only_query(matcher)
                with cramped(rng), warnings.catch_warnings():
                    warnings.simplefilter("ignore", EventWarning)
                    for route, answer in answers(query, case.events, rng).items():
                        told = difference(answer, case.expected)
                        assert not told, f"{case.name} {engine} {route}: {told}"


def test_cases_found_are_named_after_their_files() -> None:
    cases: list[Case] = load_cases(folder=CASES_FOUND)
    assert all(case.name.split("/")[0] in case_stems(CASES_FOUND) for case in cases)


# --- what random streams are too short for --------------------------------------------------------

_OWN_CLOCKS = """CREATE STREAM S {
  EVENT A { id: INT, ts: LONG, seq: LONG }, EVENT B { id: INT, ts: LONG, seq: LONG }
}
SELECT * WHERE A ; B PARTITION BY id WITHIN 4 [ts] CONSUME BY ANY
"""


@pytest.mark.each(2)
@pytest.mark.parametrize("type_", ["LONG", "DOUBLE"])
def test_partitions_with_clocks_of_their_own(type_: str) -> None:
    """Partitions interleave by one column, and WITHIN is measured on another.

    So an event of one partition says nothing of what is dead in another; what is dead must leave
    the arena all the same.
    """
    with interpreted():
        matcher = engines(_OWN_CLOCKS.replace("ts: LONG", f"ts: {type_}"), Options(("seq",)))
    query = only_query(matcher["general"])
    # Early for partition 1, and long before what the others' windows reach back to.
    events = [{"type": "A", "id": 1, "ts": -20}]
    events += [{"type": "A", "id": 2 + n % 2, "ts": 50 + n // 2} for n in range(20_000)]
    events += [{"type": "B", "id": 1, "ts": -16}, {"type": "B", "id": 1, "ts": -16}]
    for seq, event in enumerate(events):
        event["seq"] = seq
    states = run_of(query.program)
    rows: list[dict[str, Any]] = []
    for batch in table_of(query.plan, events).to_batches(max_chunksize=1000):
        for found in states.push(batch):
            rows += found.to_pylist()
    told = difference(
        answer_of(query, rows, events),
        [{"partition": {"id": 1}, "start": 0, "end": 1, "labels": {"A": [0], "B": [1]}}],
    )
    assert not told
    assert states.arena_bytes < 1 << 20
