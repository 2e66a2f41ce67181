"""Matches of one shape that end at one event travel from Python to Spark as one row.

Where every match has the same places (`engine.walk.runs`), the matches of a last event are runs: in
a run only the first event changes, and the first events of all runs are stretches of one list. So a
row holds the columns of the last event, that list, and for each run its other columns and the first
and last place of its stretch. Spark takes the runs and the stretches apart (`inline`, `explode`).
Databases call such a row a factorised representation (Olteanu and Závodný, Size Bounds for
Factorised Representations of Query Results, ACM TODS 40(1), 2015).

Python then writes each event once, and not once for each of its matches; Spark reads no column that
the job does not ask for, and fuses the matches with the job's own projections and aggregates.

Measured with nine columns, in CPU time of the JVM: 5,000 matches of an event took 52 ns each in
place of 121, twelve took 122 in place of 138, and one took 325 in place of 170, which is little
beside the events that it takes to have it.

Rejected: an array for each column in place of arrays of structs, which took up to 1.8 times as much
where events have few matches; and one DataFrame in which some matches travel as columns and others
together, where those as columns took 1.7 times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.nodes import LEAF_BASE, PADDING, Memory
from celc_runtime.engine.walk.listing import Output, new_output
from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Label, Plan
from celc_runtime.plan.strategy import InRuns
from celc_runtime.program import Program
from celc_runtime.run.answer.answers import MatchRows
from celc_runtime.run.run import Run
from celc_runtime.run.run_of import run_of
from celc_runtime.run.source.run_options import PLAIN, RunOptions
from celc_runtime.run.walk.listed import Listed
from celc_runtime.run.walk.walks import RunsWalk
from celc_runtime.spark.answers.single_labels import (
    sent_name,
    wire_columns,
    with_lists,
    with_single_fields,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIRSTS, _RUNS, _PLACE = "firsts", "runs", "place"
_BOUNDS = ("first_place", "last_place")

_MOST_MATCHES = 1 << 12
"""The most matches of a row: Spark holds all of them at once."""

_LISTED_EVENTS = 3 << 18
"""The most events of matches that travel in a batch."""

_LISTED_RUNS = 1 << 15
"""The most runs that are listed at a time. With eight times as many, a stream with 250 million
matches took 1.3 times as long in Python; half as many made no difference."""


class Factors(NamedTuple):
    """What the columns that travel (`single_labels`) depend on, by their places: on the last event
    alone, on events between, or on the first event alone. `places`: how many events a match has;
    `types`: those of the columns, as Spark's SQL spells them."""

    of_last: tuple[int, ...]
    of_run: tuple[int, ...]
    of_first: tuple[int, ...]
    places: int
    types: tuple[str, ...]

    @property
    def has_runs(self) -> bool:
        """Whether a row can have more than one run: between first and last there are events."""
        return self.places > 2


def factors_of(program: Program) -> Factors | None:
    """How the matches of a program can travel together; None: they do not."""
    plan, listing = program.plan, program.listing
    if not isinstance(listing, InRuns) or len(listing.kinds) < 2 or not _are_listed(plan):
        return None
    depends: dict[str, list[int]] = {"last": [], "run": [], "first": []}
    columns = wire_columns(plan)
    for place, (at, _, _) in enumerate(columns):
        found = _dependence(plan, listing, at)
        if found is None:
            return None
        depends[found].append(place)
    types = tuple(type for _, _, type in columns)
    last, run, first = (tuple(places) for places in depends.values())
    return Factors(last, run, first, len(listing.kinds), types)


def _are_listed(plan: Plan) -> bool:
    """Whether the answer has a row for each listed match, those of a partition are listed one after
    another, and no column is of a whole match."""
    is_whole = (
        plan.is_of_matches and plan.choice.per_start is None and plan.source.parameters is None
    )
    is_whole = is_whole and plan.answer.match_id is None
    is_whole = is_whole and plan.choice.rate is None
    return is_whole and not plan.choice.deadlines and not plan.interleaves


def _dependence(plan: Plan, listing: InRuns, at: int) -> str | None:
    """What a column of the answer depends on; None: on the first event and others."""
    name = plan.ddl_columns()[at][0]
    header = len(plan.ddl_columns()) - len(plan.answer.items)
    if at < header:
        is_of_start = at >= plan.first_place and name in ("start_pos", "start_time")
        return "first" if is_of_start else "last"
    item = plan.answer.items[at - header]
    if isinstance(item, Computed):
        return None
    places = _places(plan, listing, item)
    if 0 in places:
        return "first" if places == [0] else None
    # A label of an alternative that never occurs is always empty: it depends on nothing.
    return "last" if places in ([], [len(listing.kinds) - 1]) else "run"


def _places(plan: Plan, listing: InRuns, label: Label) -> list[int]:
    column = plan.answer.label_names.index(label.name)
    kinds = (plan.matching.kinds[kind] for kind in listing.kinds)
    return [place for place, kind in enumerate(kinds) if column in kind.columns]


# --- what travels ---------------------------------------------------------------------------------


def factorised_ddl(factors: Factors) -> str:
    """The columns of the rows that travel, in Spark's notation."""
    columns = [f"{sent_name(place)} {factors.types[place]}" for place in factors.of_last]
    columns.append(f"{_FIRSTS} {_list_ddl(factors, factors.of_first)}")
    if factors.has_runs:
        columns.append(f"{_RUNS} {_list_ddl(factors, factors.of_run, _BOUNDS)}")
    return ", ".join(columns)


def _list_ddl(factors: Factors, places: Sequence[int], numbers: Sequence[str] = ()) -> str:
    fields = [f"{sent_name(place)}: {factors.types[place]}" for place in places]
    return f"ARRAY<STRUCT<{', '.join([*fields, *(f'{name}: INT' for name in numbers)])}>>"


def taken_apart(plan: Plan, factors: Factors, rows: DataFrame) -> DataFrame:
    """The DataFrame of matches, with the columns of the answer, from one of `factorised_ddl`."""
    last, run = ([*map(sent_name, places)] for places in (factors.of_last, factors.of_run))
    if not factors.has_runs:
        return with_lists(plan, rows.selectExpr(*last, f"inline({_FIRSTS})"))
    runs = rows.selectExpr(*last, _FIRSTS, f"inline({_RUNS})")
    places = f"explode(sequence({', '.join(_BOUNDS)})) AS {_PLACE}"
    matches = runs.selectExpr(*last, *run, _FIRSTS, places)
    of_first = map(sent_name, factors.of_first)
    texts = [f"{_FIRSTS}[{_PLACE}].{name}" for name in of_first]
    return with_lists(plan, matches, dict(zip(factors.of_first, texts, strict=True)))


def factorised_run(program: Program, options: RunOptions = PLAIN) -> Run:
    """A run that hands out the rows of `factorised_ddl`, for a program that has factors."""
    assert isinstance(program.listing, InRuns)
    walk = _WholeRuns(program.listing, program.plan)
    return run_of(program, options, walk=walk, answer=_FactorisedRows(program))


class _FactorisedRows(MatchRows):
    """Hands out the matches of an event together."""

    def __init__(self, program: Program) -> None:
        # Code over piles does not know instants.
        super().__init__(program, in_instants=program.plan.source.ties is not None)
        factors = factors_of(program)
        assert factors is not None
        self._factors = factors

    def rows(self, listed: Listed) -> Iterator[pa.RecordBatch]:
        places = self._factors.places
        for rows in _rows_of(_Listed.of(listed.output, listed.memory), places):
            events = replace(listed, output=rows.events(listed.output, places))
            shown = with_single_fields(self._plan, self.of(events))
            yield rows.batch(self._factors, shown)


class _WholeRuns(RunsWalk):
    """Lists a run of matches as one."""

    lists_runs = True

    buffers_grow = False

    def buffers(self, limit: int | None) -> Output:
        runs = _LISTED_RUNS + PADDING
        return new_output(matches=runs, room=runs * self.places, limit=limit)

    def matches_in(self, output: Output, first: int) -> int:
        some = slice(first, output.used[0])
        return int((output.ends[some] - output.tags[some] + 1).sum())


class _Listed(NamedTuple):
    """What a listing of runs has left in the buffers.

    rows: int64[runs], the batch's rows of their last events. newest, oldest: int64[runs], the first
    events of a run's first and last match, as places among `leaves`: int64, first events from the
    oldest on.
    """

    rows: np.ndarray
    newest: np.ndarray
    oldest: np.ndarray
    leaves: np.ndarray

    @classmethod
    def of(cls, output: Output, memory: Memory) -> _Listed:
        """Read it from the buffers, and from the memory with which they were filled."""
        runs, base = int(output.used[0]), memory.counters[LEAF_BASE]
        newest, oldest = output.ends[:runs] - base, output.tags[:runs] - base
        return cls(output.rows[:runs], newest, oldest, memory.leaves[PADDING:])


class _Rows(NamedTuple):
    """Matches as rows that travel. All arrays are int64."""

    runs: np.ndarray
    """For each run, the listed run that it is, or is a part of."""
    starts: np.ndarray
    """For each run, the first event of its first match."""
    rows: np.ndarray
    """For each row, its first run."""
    firsts: np.ndarray | None
    """The first events of all matches, newest first; None: each run has one match, which `starts`
    tells."""
    begins: np.ndarray
    """For each run, the place among the first events of that of its first match."""
    ends: np.ndarray
    """For each run, the place among the first events of that of its last match."""

    def stretches(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[rows]: the first and the last place of the first events of each row; all between
        them are the row's as well."""
        begins, ends = self.begins, self.ends
        return np.minimum.reduceat(begins, self.rows), np.maximum.reduceat(ends, self.rows)

    def events(self, listed: Output, places: int) -> Output:
        """The matches of which columns are made: the first of each run, and behind these one with
        each of the first events, where the columns that others give mean nothing."""
        chosen, starts = self.runs, self.starts
        if self.firsts is not None:
            # No other run: its events may be older than all that are looked up here.
            chosen = np.append(chosen, np.full(len(self.firsts), self.runs[0]))
            starts = np.concatenate([starts, self.firsts])
        stride = len(listed.rows)
        tags = listed.tags[: places * stride].reshape(places, stride)[:, chosen]
        tags[0] = starts
        used = np.array([len(chosen), tags.size])
        return listed._replace(rows=listed.rows[chosen], tags=tags.ravel(), used=used)

    def batch(self, factors: Factors, shown: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that travel; shown: the columns of `events`."""
        runs = len(self.runs)
        of_runs = shown.slice(0, runs)
        of_rows = pa.array(self.rows)
        low, high = self.stretches()
        sizes = high - low + 1
        offsets = np.append(0, np.cumsum(sizes))
        of_last = [of_runs.column(place).take(of_rows) for place in factors.of_last]
        of_first = [shown.column(place) for place in factors.of_first]
        if self.firsts is not None:
            places = pa.array(np.arange(offsets[-1]) + np.repeat(low - offsets[:-1], sizes))
            of_first = [column.slice(runs).take(places) for column in of_first]
        columns = [*of_last, _lists(offsets, of_first, factors.of_first)]
        names = [*map(sent_name, factors.of_last), _FIRSTS]
        if factors.has_runs:
            edges = np.append(self.rows, runs)
            before = np.repeat(low, np.diff(edges))
            of_run = [of_runs.column(place) for place in factors.of_run]
            of_run += [pa.array(at - before, pa.int32()) for at in (self.begins, self.ends)]
            columns.append(_lists(edges, of_run, factors.of_run, _BOUNDS))
            names.append(_RUNS)
        return pa.RecordBatch.from_arrays(columns, names)


def _lists(
    edges: np.ndarray, fields: list[pa.Array], places: Sequence[int], others: Sequence[str] = ()
) -> pa.ListArray:
    """Lists of structs, from one edge to the next; the fields are named as columns that travel, and
    others behind them."""
    structs = pa.StructArray.from_arrays(fields, [*map(sent_name, places), *others])
    return pa.ListArray.from_arrays(pa.array(edges, pa.int32()), structs)


def _rows_of(listed: _Listed, places: int) -> Iterator[_Rows]:
    """The matches as rows, each of at most `_MOST_MATCHES`, and as many rows at a time as have
    `_LISTED_EVENTS` events in their matches.

    A row is whole runs, or a part of one: between such a part and another run lie first events that
    are in neither.
    """
    before = np.append(0, np.cumsum(listed.newest - listed.oldest + 1))
    matches = int(before[-1])
    cuts = np.arange(_MOST_MATCHES, matches, _MOST_MATCHES)
    places_of_cuts = np.searchsorted(before, cuts, side="right") - 1
    in_parts = places_of_cuts[before[places_of_cuts] != cuts]
    starts = np.union1d(before[:-1], cuts) if len(in_parts) else before[:-1]
    runs = np.searchsorted(before, starts, side="right") - 1
    newest = listed.newest[runs] - (starts - before[runs])
    oldest = newest - np.diff(np.append(starts, matches)) + 1
    begins_row = np.ones(len(starts), np.bool_)
    rows = listed.rows[runs]
    np.not_equal(rows[1:], rows[:-1], out=begins_row[1:])
    edges = np.concatenate([cuts, before[in_parts], before[in_parts + 1]])
    begins_row[np.searchsorted(starts, edges[edges < matches])] = True
    at_once = max(1, _LISTED_EVENTS // places // _MOST_MATCHES) * _MOST_MATCHES
    borders = np.searchsorted(starts, np.arange(0, matches, at_once))
    for some in map(slice, borders, [*borders[1:], len(starts)]):
        first_runs = np.flatnonzero(begins_row[some])
        yield _rows_with(listed.leaves, runs[some], first_runs, newest[some], oldest[some])


def _rows_with(
    leaves: np.ndarray, runs: np.ndarray, rows: np.ndarray, newest: np.ndarray, oldest: np.ndarray
) -> _Rows:
    if (newest == oldest).all():
        own = np.arange(len(runs))
        return _Rows(runs, leaves[newest], rows, None, own, own)
    low, high = int(oldest.min()), int(newest.max())
    # How many runs a leaf is in.
    steps = np.bincount(oldest - low, minlength=high - low + 2)
    steps -= np.bincount(newest - low + 1, minlength=high - low + 2)
    used = np.flatnonzero(np.cumsum(steps[:-1]))[::-1] + low
    places = np.empty(high - low + 1, np.int64)
    places[used - low] = np.arange(len(used))
    begins, ends = places[newest - low], places[oldest - low]
    return _Rows(runs, leaves[newest], rows, leaves[used], begins, ends)
