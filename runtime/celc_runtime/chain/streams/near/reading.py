"""Near misses on a stream: which events are kept for them, and for how long.

A bent query is the query with one part changed. Whether a near miss starts at the time s is known
when three spans have passed:

- the longest window of the bent queries: until then a near miss that starts at s has ended;
- the window of the query: a near miss shares no event with a match, and a match that shares one
  with it ends at most this window later;
- the longest FOR of an absence at the end, which decides such a match.

A bent window can be twice as long, so this is three windows and the longest FOR. Events before s
matter too: those of matches that end at s or later, and those that absences of these matches look
back on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from celc_runtime.chain.streams.units import Unit
from celc_runtime.many.near.query import NearRuns
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import MATCHES, NearPlan
from celc_runtime.plan.plan import Answer, Choice, Matching, Plan, Window
from celc_runtime.program import Program
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.one_bucket.known_keys import window_length


@frozen
class Lengths:
    """Spans around the start of a near miss, in microseconds."""

    known_after: int  # after the start: then it is known whether there is a near miss
    before: int  # before the start: events in this span matter


@dataclass(frozen=True, eq=False, kw_only=True)
class NearUnit(Unit):
    """The near misses of a query, as a unit of an operator. Its `query` is made by `reading_of`."""

    near: NearRuns
    given: Program  # the query that has the columns of a match, with its parameters

    def formats(self, options: StreamOptions) -> StreamFormats:
        """The formats of its events and states."""
        values = ("position", "frontier", "first")
        return StreamFormats(self.query, options, values=values, most_kept=0)


def lengths_of(near: NearRuns) -> Lengths:
    """How long events matter. Raises EventError for a query for which no span of time says that."""
    plain, *bent = [query.program for query in _run(near)]
    for one in (plain, *bent):
        _check(near.plan, one)
    window = max(_window(one) for one in bent) if bent else 0
    decided = max(_decided_after(one.plan) for one in (plain, *bent))
    before = _window(plain) + max(_looked_back(one.plan) for one in (plain, *bent))
    return Lengths(window + _window(plain) + decided, before)


def reading_of(near: NearRuns) -> Program:
    """A program that describes which events are read and kept. It is never run."""
    reading, lengths = near.reading, lengths_of(near)
    source = replace(reading.plan.source, relevant=None, parameters=None, type_column=True)
    source = replace(source, stream_column=len(source.streams) > 1 or source.stream_column)
    plan = Plan(
        name=f"near misses of {near.plan.query}",
        source=source,
        matching=Matching(
            window=Window("MICROSECONDS", lengths.known_after + lengths.before, source.order_by[0])
        ),
        choice=Choice(),
        answer=Answer(positions=near.plan.positions),
    )
    nothing: Any = None
    return Program(plan, nothing, nothing, nothing, near.answer.module)


def _run(near: NearRuns) -> Iterator[Any]:
    """The query whose matches count, and those with one part bent."""
    yield near.queries[MATCHES]
    for one in near.plan.bent:
        yield near.queries[one.name]


def _window(program: Program) -> int:
    window = program.plan.matching.window
    return 0 if window is None else int(window.size)  # None: matches of one event


def _decided_after(plan: Plan) -> int:
    """How long after its window a match can wait for its absences at the end, in microseconds."""
    size = 0 if plan.matching.window is None else int(plan.matching.window.size)
    lengths = [
        int(plan.matching.local_windows[one.window].size) - (size if one.from_start else 0)
        for one in plan.choice.deadlines
    ]
    # 1 more, because a match is still undecided while the clock equals its deadline.
    return 1 + max(0, *lengths) if lengths else 0


def _looked_back(plan: Plan) -> int:
    """How long before a match its absences look back, in microseconds."""
    whole = plan.whole_window
    assert whole is not None
    return int(whole.size) - (0 if plan.matching.window is None else int(plan.matching.window.size))


def _check(near: NearPlan, program: Program) -> None:
    """Raises EventError for a query whose near misses are not settled after any span of time."""
    plan, shown = program.plan, near.place
    window = plan.matching.window
    if window is None and not plan.matching.one_event:
        why = "it has no WITHIN, so that any later event can make a match of what a near miss has"
        instead = "give it a window of time on the order column"
    elif window is not None and (
        window.unit == "EVENTS" or window.attribute not in (None, plan.source.order_by[0])
    ):
        shown = near.window_place
        why = "its WITHIN is no time on the order column, so that no watermark says when it is over"
        instead = f"measure it on {plan.source.order_by[0]!r}"
    elif program.sees_all or len(program.contexts) or plan.matching.nested_selectors:
        why = "a selector inside its formula depends on events long before the window"
        instead = "leave it out"
    elif window_length(program) is None:
        why = "an absence in it is no time on the order column"
        instead = f"measure it on {plan.source.order_by[0]!r}"
    else:
        return
    raise refused(near, f"{why}: {instead}, or", shown)


def refused(near: NearPlan, why: str, place: str) -> EventError:
    """A query without near misses on a stream; `place` as in `NearPlan`, empty in a module that
    does not have it."""
    at, _, line = place.partition("\n")
    told = f"query {near.query!r} has no near misses on a stream: {why} use near_misses on the "
    return EventError(
        f"{at}: {told}events as a table\n{line}" if at else f"{told}events as a table"
    )
