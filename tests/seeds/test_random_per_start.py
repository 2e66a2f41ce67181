"""Random queries with SELECT FIRST and LONGEST: the compiled answers against the reference's.

python tests/seeds/test_random_per_start.py 0 500     # seeds 0 to 499 of both kinds, and the counts

Half of the queries are left to automata alone, half have conditions across events.
"""

from __future__ import annotations

import random
import warnings

import pytest
from celc_runtime import EventWarning
from celc_runtime.plan.strategy import AdjoiningRuns, LongestRuns
from celc_runtime.run.choice import per_start
from engines import answers, engines, interpreted, only_query
from reference import WorkLimitError, check_answer, evaluate
from seeds import compare_seeds
from strategies import (
    DECLARATION,
    EVERYTHING,
    SHORTER,
    Feature,
    random_query,
    random_stream,
)
from strategies_runs import adjoining_query, run_query
from test_random import TOO_LARGE, WORK_LIMIT, Tally, cramped

from celc import CelError, Matcher
from celc.options import Options

_FEATURES = EVERYTHING | SHORTER | {Feature.PER_START, Feature.LOCAL_WINDOW}
_ACROSS = {
    *(Feature.CORRELATION, Feature.PREV, Feature.PRIOR, Feature.OUTER, Feature.AGGREGATE),
    *(Feature.LOCAL_WINDOW, Feature.DISTANCE),
}


def check(seed: int, tally: Tally) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    features = _FEATURES if rng.random() < 0.5 else _FEATURES - _ACROSS
    text = random_query(rng, features, depth=rng.choice((1, 2, 3)))
    tally.drawn += 1
    try:
        with interpreted():
            matchers = engines(text)
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"{codes}: {text}"
        tally.too_large += 1
        return
    _compare(seed, rng, text, None, matchers, tally)


def check_runs(seed: int, tally: Tally) -> None:
    """The same of a query whose longest matches are runs of events, mostly."""
    rng = random.Random(seed)
    text = DECLARATION.replace("ts: LONG", "ts: DOUBLE") + run_query(rng)
    tally.drawn += 1
    with interpreted():
        matchers = engines(text, Options(("ts",)))
    last = only_query([*matchers.values()][-1])
    if isinstance(last.program.listing, LongestRuns):
        tally.with_features.add(text)
    _compare(seed, rng, text, "ts", matchers, tally)


def check_adjoining(seed: int, tally: Tally) -> None:
    """The same of a query whose matches are runs of neighbours that adjoin, mostly."""
    rng = random.Random(seed)
    text = DECLARATION + adjoining_query(rng)
    tally.drawn += 1
    try:
        with interpreted():
            matchers = engines(text, Options(("ts",)))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"{codes}: {text}"
        tally.too_large += 1
        return
    last = only_query([*matchers.values()][-1])
    if isinstance(last.program.listing, AdjoiningRuns):
        tally.with_features.add(text)
    _compare(seed, rng, text, "ts", matchers, tally)


def _compare(
    seed: int,
    rng: random.Random,
    text: str,
    order_by: str | None,
    matchers: dict[str, Matcher],
    tally: Tally,
) -> None:
    for _ in range(4):
        # The reference tries all choices of a `+`.
        length = rng.randint(4, 14 if order_by is None else 10)
        events = random_stream(rng, length, nulls=rng.choice((0, 0.1)))
        for event in events:
            event["id"] = rng.choice((1, 1, 1, 2))
            if order_by is not None:
                event["type"] = rng.choice("AAAB")
        try:
            wanted = evaluate(text, events, order_by=order_by, work_limit=WORK_LIMIT)
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            with cramped(rng), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                patch.setattr(per_start, "_ROWS_PER_BATCH", rng.choice((1, 2, 1 << 16)))
                found = answers(only_query(matcher), events, rng)
                try:
                    for answer in found.values():
                        check_answer(text, wanted, answer)
                    _check_order(found["match_table"])
                    by_part = [sorted(answer, key=_part) for answer in found.values()]
                    assert by_part[0] == by_part[1], "the order of rows depends on batches"
                except AssertionError as problem:
                    raise AssertionError(
                        f"seed {seed}: {engine}: {problem}\n{text}{events}"
                    ) from None


def _part(row: dict[str, object]) -> str:
    return repr(row["partition"])


def _check_order(rows: list[dict[str, object]]) -> None:
    """Within a part, rows come in the order of their ends."""
    last: dict[str, int] = {}
    for row in rows:
        part, end = _part(row), row["end"]
        assert isinstance(end, int)
        assert last.get(part, 0) <= end, "rows are not in the order of ends"
        last[part] = end


@pytest.mark.parametrize("seeds", [12, pytest.param(25, marks=pytest.mark.long)])
def test_one_match_for_each_start(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check(seed, tally)
    assert tally.pairs_with_matches >= 30 * seeds // 25, tally
    assert tally.too_large <= 3, tally


@pytest.mark.parametrize("seeds", [7, pytest.param(18, marks=pytest.mark.long)])
def test_longest_runs_of_events(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check_runs(seed, tally)
    assert len(tally.with_features) >= 10 * seeds // 18, tally
    assert tally.pairs_with_matches >= 25 * seeds // 18, tally


@pytest.mark.parametrize("seeds", [6, pytest.param(14, marks=pytest.mark.long)])
def test_runs_that_adjoin(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check_adjoining(seed, tally)
    assert len(tally.with_features) >= 4 * seeds // 14, tally
    assert tally.pairs_with_matches >= 15 * seeds // 14, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_runs_that_adjoin_of_many_queries(first: int) -> None:
    for seed in range(first, first + 500):
        check_adjoining(seed, Tally())


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_longest_runs_of_events_of_many_queries(first: int) -> None:
    for seed in range(first, first + 500):
        check_runs(seed, Tally())


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_one_match_for_each_start_of_many_queries(first: int) -> None:
    for seed in range(first, first + 500):
        check(seed, Tally())


if __name__ == "__main__":
    compare_seeds(
        lambda seed, tally: (
            check(seed, tally),
            check_runs(seed, tally),
            check_adjoining(seed, tally),
        )
    )
