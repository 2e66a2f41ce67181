"""Random queries that cross three features of any areas of the language, on all routes.

`crossings` has the features, the streams and the routes. By hand:

    python tests/test_crossings.py 17                 # seed 17: what differs, as small as it gets
    python tests/test_crossings.py 0 500              # seeds 0 to 499, and the counts
    python tests/test_crossings.py 17 --numba         # as users run it
    python tests/test_crossings.py 0 500 --go-on      # all differences of these seeds
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from crossings.check import (
    FEATURES,
    DifferenceError,
    Drawn,
    Tally,
    check,
    check_drawn,
    compiled,
    drawn,
    shrunk,
)
from crossings.events import events_for
from crossings.pairs import covering, pairs_of
from crossings.routes import table_for
from engines import plain_totals
from other_processes import EVENTS, run
from shares import share

from celc.driver.standalone import standalone

_ROUTES = {
    *("match_table", "match_arrow", "with_options", "match_compact", "match_all"),
    *("stream", "stream with late events"),
}


def compared(seeds: range, *, by_numba: bool = False) -> Tally:
    """The counts of these seeds, none of which may differ."""
    tally = Tally()
    wavering = None if seeds.start % 200 else random.Random(seeds.start)
    with contextlib.nullcontext() if by_numba else plain_totals(wavering):
        for seed in seeds:
            check(seed, tally, by_numba=by_numba)
    return tally


def test_crossed_features() -> None:
    tally = compared(range(60, 74))
    assert tally.queries >= 0.6 * tally.drawn, tally
    assert tally.pairs_with_rows >= 0.25 * tally.pairs, tally
    assert not _ROUTES - set(tally.routes), tally


@pytest.mark.each(4)
@pytest.mark.parametrize("seed", [7028, 100499, 100732, 100756, 106852, 107023, 202007, 207125])
def test_seeds_that_differed(seed: int) -> None:
    """Functions below a reader on a stream, two streams there, COLLAPSED of events that last,
    choices at a clock that comes late, and LONGEST where an instant began before its match."""
    assert compared(range(seed, seed + 1)).pairs >= 1


# --- each two features ----------------------------------------------------------------------------

_PARTS = 16

_ONE_PLACE = (
    {"selector outside", "FIRST and LONGEST", "ANY", "TOTAL", "COLLAPSED"},
    {one.name for one in FEATURES if one.name.startswith("PARTITION BY")},
    {"is read", "many queries"},
)
"""A draft has one of these."""

_APART = {
    # What the language refuses, or has no text for.
    *(("?", "FIRST"), ("?", "rounds of FIRST")),
    *(("?", "absence between"), ("S>R", "reader"), ("two streams", "reader")),
    *(("TOTAL", "is read"), ("COLLAPSED", "is read")),
    *(("TOTAL", "match_id"), ("COLLAPSED", "match_id")),
    *(("LIMIT", "LIMIT PER"), ("ANY", "LIMIT PER")),
    ("is read", "FOR EACH"),
    *(("reader", "without order"), ("is read", "without order"), ("many queries", "without order")),
    *(("simultaneous", "without order"), ("simultaneous", "uncertain time")),
    *(("simultaneous", "events that last"), ("without order", "events that last")),
    ("uncertain time", "events that last"),
}
"""No draft has two of these."""


def _pairs_compared(queries: Sequence[tuple[int, Drawn]], *, streams: int) -> Tally:
    tally = Tally()
    with plain_totals():
        for seed, one in queries:
            if check_drawn(seed, one, tally, streams=streams, every_route=True):
                continue
            for alone in pairs_of(seed, one):
                check_drawn(*alone, tally, streams=streams, every_route=True)
    return tally


@pytest.mark.parametrize("part", share(range(_PARTS), _PARTS))
def test_each_two_features(part: int) -> None:
    """In one stream, with the update that the compiler chooses."""
    queries, _ = covering()
    tally = _pairs_compared(queries[part::_PARTS], streams=1)
    assert tally.queries >= 30, tally


def test_only_what_has_one_place_or_is_refused_is_in_no_query_together() -> None:
    _, unfit = covering()
    assert {pair for pair in unfit if not any({*pair} <= one for one in _ONE_PLACE)} == _APART


@pytest.mark.long
@pytest.mark.parametrize("part", range(_PARTS))
def test_each_two_features_with_every_update(part: int) -> None:
    """In four streams, by queries of other seeds."""
    queries, _ = covering(500_000)
    tally = _pairs_compared(queries[part::_PARTS], streams=4)
    assert tally.queries >= 30, tally


# --- the long run ---------------------------------------------------------------------------------

_SLICES = range(100_000, 112_000, 100)


class LongRun:
    """What the slices of the long run have counted together."""

    def __init__(self) -> None:
        self.all = Tally()
        self.slices: list[int] = []


@pytest.fixture(scope="module")
def long_run(request: pytest.FixtureRequest) -> Iterator[LongRun]:
    """Counts what the tests that use it compare, and says it in the end."""
    found = LongRun()
    yield found
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\ncrossings of {len(found.slices)} slices: {found.all}")
    if found.slices == [*_SLICES]:
        assert found.all.queries >= 10_000, found.all
        assert found.all.pairs >= 60_000, found.all
        assert {one.name for one in FEATURES} == set(found.all.features), found.all.features


@pytest.mark.long
@pytest.mark.parametrize("first", _SLICES)
def test_many_crossed_features(first: int, long_run: LongRun) -> None:
    """A hundred seeds; together 10,000 queries on six streams each."""
    tally = compared(range(first, first + 100))
    long_run.slices.append(first)
    long_run.all.add(tally)
    assert tally.queries >= 60, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(200_000, 200_100, 10))
def test_many_crossed_features_by_numba(first: int) -> None:
    """Ten seeds, with the generated code compiled."""
    assert compared(range(first, first + 10), by_numba=True).queries >= 5


@pytest.mark.long
def test_crossed_features_in_standalone_modules(tmp_path: Path) -> None:
    """Where celc is not installed, in one process."""
    wanted: dict[str, list[str]] = {}
    for seed in range(400_000, 400_040):
        one, rng = drawn(seed), random.Random(seed)
        matcher = compiled(seed, one)
        if matcher is None or one.draft.for_each:
            continue
        (tmp_path / f"q{seed}.py").write_text(standalone(matcher.source))
        for name in one.draft.asked:
            query = matcher.queries[name]
            table = table_for(query, events_for(one.draft, rng))
            with pa.ipc.new_file(tmp_path / f"q{seed}.{name}", table.schema) as file:
                file.write_table(table)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted[f"q{seed}.{name}"] = list(map(repr, query.match_table(table).to_pylist()))
    script = """
import warnings
warnings.simplefilter("ignore")
found = {}
for path in sorted(Path(sys.argv[1]).glob("*.py")):
    module = by_path(str(path), path.stem)
    for table in path.parent.glob(path.stem + ".*"):
        if table.suffix != ".py":
            events = pa.ipc.open_file(table).read_all()
            rows = module.QUERIES[table.suffix[1:]].match_table(events).to_pylist()
            found[table.name] = [*map(repr, rows)]
print(json.dumps(found))
"""
    assert run(EVENTS + script, tmp_path, alone=True, NUMBA_DISABLE_JIT="1") == wanted
    assert len(wanted) >= 25


# --- by hand --------------------------------------------------------------------------------------


def main() -> None:
    """Run seeds, and print the first difference, or all of them."""
    parser = argparse.ArgumentParser(description="compare random queries of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int, nargs="?")
    parser.add_argument("--numba", action="store_true")
    parser.add_argument("--go-on", action="store_true", help="do not stop at a difference")
    asked = parser.parse_args()
    tally, differences = Tally(), 0
    with contextlib.nullcontext() if asked.numba else plain_totals():
        for seed in range(asked.first, asked.end or asked.first + 1):
            try:
                check(seed, tally, by_numba=asked.numba)
            except DifferenceError as problem:
                differences += 1
                print(shrunk(problem), "\n", flush=True)
                if not asked.go_on:
                    break
    print(f"{tally}\n{differences} differences, {time.process_time():.0f} s of CPU time")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
