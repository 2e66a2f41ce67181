"""LIMIT … PER on streams: in micro-batches of a few rows, by hand."""

from __future__ import annotations

import random
import re
import warnings

import celc_runtime
import pytest
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.stream.formats import StreamOptions
from engines import engines, interpreted, only_query, table_of
from strategies import random_stream
from strategies_across import wide_stream
from strategies_limits import limited_query
from streams_by_hand import EVENT_TIME, in_milliseconds, instant, streamed

import celc
from celc.options import Options


def _check(seed: int) -> int:
    """Compare a stream with the same events as a table; returns the number of matches."""
    rng = random.Random(seed)
    text = limited_query(rng)
    wide = "flag: " in text
    text = re.sub(r"(LIMIT \d PER [\d.]+)\n", r"\1 MILLISECONDS\n", in_milliseconds(text))
    try:
        with interpreted():
            matchers = engines(text, Options((EVENT_TIME,), ("row",)))
    except celc.CelError:
        return 0
    query = only_query(rng.choice([*matchers.values()]))
    if rng.random() < 0.3:
        query = query.with_options(positions=False)
    if why_not(query.program, Route.UNBOUNDED) is not None:
        return 0
    stream = wide_stream(rng, 14, types=("A", "B", "C")) if wide else random_stream(rng, 14)
    events = [
        {**event, "row": row, EVENT_TIME: instant(10 + int(event["ts"]))}
        for row, event in enumerate(stream)
    ]
    options = StreamOptions({"row": "LONG"}, buckets=rng.choice((1, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", celc_runtime.EventWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        closed = query.with_options(at_end="closed")
        wanted = closed.match_table(table_of(query.plan, events)).to_pylist()
        found = streamed(query, events, rng, options=options, largest=rng.choice((1, 3, 9)))
    told = f"seed {seed}\n{text}{events}"
    assert sorted(map(repr, found)) == sorted(map(repr, wanted)), told
    return len(wanted)


@pytest.mark.parametrize("seeds", [20, pytest.param(60, marks=pytest.mark.long)])
def test_streams_have_the_rows_of_tables(seeds: int) -> None:
    assert sum(map(_check, range(seeds))) >= 60 * seeds // 60


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 4000, 500))
def test_many_streams_have_the_rows_of_tables(first: int) -> None:
    for seed in range(first, first + 500):
        _check(seed)


def test_a_choice_that_a_later_event_changes_is_refused() -> None:
    """The row of the second D is known at 23: the A at 28 undoes the match that waits until 29. By
    then a stream would have given the row of the first D, which is known at 26."""
    declaration = " ".join(f"EVENT {one} {{ {EVENT_TIME}: TIMESTAMP }}" for one in "AD")
    late = f"D AS x ; !A FOR 6 MILLISECONDS [{EVENT_TIME}]"
    at_once = f"(D AS w)? ; D AS x ; !A FOR 0 MILLISECONDS [{EVENT_TIME}]"
    head = f"CREATE STREAM S {{ {declaration.replace('} E', '}, E')} }} SELECT NXT D FROM S WHERE "
    limit = "LIMIT 1 PER 2.5 MILLISECONDS"
    types, times = "DDAD", (20, 23, 28, 31)
    events = [{"type": t, EVENT_TIME: instant(at)} for t, at in zip(types, times, strict=True)]
    with interpreted():
        chosen, alike = (
            only_query(celc.compile(head + formula + limit, order_by=EVENT_TIME, at_end="closed"))
            for formula in (f"({at_once}) OR ({late}) WITHIN 3 EVENTS ", f"{late} ")
        )
    rows = chosen.match_table(table_of(chosen.plan, events)).to_pylist()
    assert [row["end_time"] for row in rows] == [instant(at) for at in (20, 23, 31)]
    stream = chosen.with_options(at_end="open").program
    reason = why_not(stream, Route.STREAM)
    assert reason is not None
    assert reason.code == "limit-per-and-choice"
    assert why_not(alike.with_options(at_end="open").program, Route.STREAM) is None
