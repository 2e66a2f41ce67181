"""Random queries on random streams: the compiled answers against the reference's.

Each query is run by the engine that the compiler chooses and by the general one, with buffers and
arenas so small that they fill up and grow all the time. What was once found here is kept in
`cases_found`, in the form of the conformance cases.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cases_io import Case, case_stems, load_cases
from celc_runtime import EventWarning, run
from engines import answer_of, answers, engines, interpreted, only_query, table_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import WorkLimitError, check_answer, difference, evaluate
from strategies import DECLARATION, REGULAR, Feature, random_query, random_stream

from celc import CelError, Matcher
from celc.pipeline import Options

CASES_FOUND = Path(__file__).parent / "cases_found"
FEATURES = REGULAR | {Feature.LIMIT, Feature.ANY}
WORK_LIMIT = 200_000


# --- what is drawn --------------------------------------------------------------------------------


def _declared(rng: random.Random, query: str) -> str:
    """The query over other declarations: other times, a second stream, an order column."""
    ts = rng.choice(("LONG", "LONG", "INT", "DOUBLE", "FLOAT"))
    declaration = DECLARATION.replace("ts: LONG", f"ts: {ts}, seq: LONG")
    body = query.removeprefix(DECLARATION)
    if rng.random() < 0.2:
        declaration += declaration.replace("STREAM S", "STREAM T")
        body = body.replace("FROM S\n", rng.choice(("FROM S, T\n", "FROM T, S\n")))
        body = body.replace("S>", rng.choice(("S>", "T>")))
    return declaration + body


def _stream(rng: random.Random, matcher: Matcher) -> list[dict[str, Any]]:
    """Events for the query: with few keys, mostly, so that parts are long; with an order column."""
    plan = only_query(matcher).plan
    length = rng.randint(0, 20 if plan.window else 10)
    events = random_stream(
        rng, length, nulls=rng.choice((0, 0.1)), strangers=rng.choice((0, 0, 0.2))
    )
    few = rng.random() < 0.5
    for number, event in enumerate(events):
        event["seq"] = number
        if few:
            event["id"] = rng.choice((1, 1, 1, 2))
        if plan.stream_column:
            event["stream"] = rng.choice(("S", "S", "T", "U"))
    return events


@contextmanager
def cramped(rng: random.Random) -> Iterator[None]:
    """Runs made inside begin with next to no room, so that everything fills up and grows."""
    with pytest.MonkeyPatch.context() as patch:
        size, room = rng.choice((1, 2, 4, 16, 1024)), rng.choice((1, 2, 4))
        patch.setattr(run, "new_memory", partial(run.new_memory, size=size))
        patch.setattr(run, "new_lists", partial(run.new_lists, room=room))
        patch.setattr(run, "_MATCHES_PER_BATCH", rng.choice((1, 2, 3, 1 << 16)))
        patch.setattr(run, "_ENTRIES_PER_BATCH", rng.choice((1, 2, 5, 1 << 18)))
        yield


# --- comparing ------------------------------------------------------------------------------------


def check(rng: random.Random, depth: int, streams: int) -> tuple[int, int]:
    """Compare the answers of one query on some streams; (streams compared, those with a match)."""
    text = _declared(rng, random_query(rng, FEATURES, depth))
    order_by = rng.choice((None, None, "seq"))
    options = Options(None if order_by is None else (order_by,))
    try:
        with interpreted():
            compiled = engines(text, options)
    except CelError as problem:
        # Random filters can have too many cases, which is said instead of running for ever.
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes == {"too-large"}, f"{codes}: {text}"
        return 0, 0
    compared = matched = 0
    for _ in range(streams):
        events = _stream(rng, compiled["general"])
        try:
            wanted = evaluate(text, events, order_by=order_by, work_limit=WORK_LIMIT)
        except WorkLimitError:
            continue
        compared += 1
        matched += bool(wanted)
        for engine, matcher in compiled.items():
            with cramped(rng), warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        raise AssertionError(
                            f"{engine} engine, {route}, order {order_by}: {problem}\n{text}{events}"
                        ) from None
    return compared, matched


@settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.randoms(use_true_random=False))
def test_random_queries_drawn_by_hypothesis(rng: random.Random) -> None:
    check(rng, 3, streams=4)


def test_random_queries_of_seeds() -> None:
    """As many again, less alike: hypothesis prefers small numbers."""
    counts = [check(random.Random(seed), 3 + seed % 2, streams=8) for seed in range(150)]
    compared, matched = (sum(numbers) for numbers in zip(*counts, strict=True))
    assert compared > 1_000
    assert matched > 350


@pytest.mark.long
@pytest.mark.parametrize("first", range(100_000, 102_000, 100))
def test_many_random_queries(first: int) -> None:
    """20,000 streams over 2,000 queries."""
    counts = [
        check(random.Random(seed), 2 + seed % 3, streams=10) for seed in range(first, first + 100)
    ]
    assert sum(matched for _, matched in counts) > 200


# --- what was found -------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", case_stems(CASES_FOUND))
def test_cases_found(stem: str) -> None:
    """The reference and both engines give the answer that was worked out when a case was found."""
    for case in load_cases(stem, CASES_FOUND):
        assert not difference(evaluate(case.query, case.events), case.expected), case.name
        with interpreted():
            compiled = engines(case.query)
        for seed in range(5):
            rng = random.Random(seed)
            for engine, matcher in compiled.items():
                query = only_query(matcher)
                with cramped(rng):
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
    states = run.Run(query)
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
