"""Matches of one shape that end at one event travel from Python to Spark as one row.

Where every match has the same places (`engine.runs`), the matches of a last event are runs: in a
run only the first event changes, and the first events of all runs are stretches of one list. So a
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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.columns import Prepared
from celc_runtime.engine.arena import PADDING
from celc_runtime.engine.listing import Output, new_output
from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Label, Plan
from celc_runtime.plan.strategy import InRuns
from celc_runtime.program import Program
from celc_runtime.run.listings import ListingOfRun, RunsListing
from celc_runtime.run.run import Run
from celc_runtime.spark.single_labels import (
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
"""The most events of matches that are listed at a time."""

_SPARSE = 8
"""Events that lie farther apart are sorted, and not marked in an array of all between them."""


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
    """Whether the answer has a row for each listed match, and those of a partition are listed one
    after another."""
    is_whole = plan.is_of_matches and plan.per_start is None and plan.parameters is None
    return is_whole and not plan.deadlines and not plan.interleaves


def _dependence(plan: Plan, listing: InRuns, at: int) -> str | None:
    """What a column of the answer depends on; None: on the first event and others."""
    name = plan.ddl_columns()[at][0]
    header = len(plan.ddl_columns()) - len(plan.items)
    if at < header:
        is_of_start = at >= len(plan.partition_by) and name in ("start_pos", "start_time")
        return "first" if is_of_start else "last"
    item = plan.items[at - header]
    if isinstance(item, Computed):
        return None
    places = _places(plan, listing, item)
    if 0 in places:
        return "first" if places == [0] else None
    # Of alternatives that can never be, labels are always empty.
    return "last" if places in ([], [len(listing.kinds) - 1]) else "run"


def _places(plan: Plan, listing: InRuns, label: Label) -> list[int]:
    column = plan.label_names.index(label.name)
    kinds = (plan.kinds[kind] for kind in listing.kinds)
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


class FactorisedRun(Run):
    """A run that hands out the rows of `factorised_ddl`, for a program that has factors."""

    def __init__(self, program: Program, **options: Any) -> None:
        super().__init__(program, **options)
        factors = factors_of(program)
        assert factors is not None
        self._factors = factors

    def _new_listing(self, program: Program) -> ListingOfRun:
        assert isinstance(program.listing, InRuns)
        return _LongRuns(program.listing, program.plan)

    def _take(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        rows = _rows_of(self._output, self._factors.places)
        events = rows.events(self._output, self._factors.places)
        shown = with_single_fields(self._plan, self._matches(events, prepared))
        self._output.used[:] = 0
        yield rows.batch(self._factors, shown)


class _LongRuns(RunsListing):
    """Lists more matches at a time, because fewer rows come out of them."""

    def buffers(self, limit: int | None) -> Output:
        matches = max(1, _LISTED_EVENTS // self.places) + PADDING
        return new_output(matches=matches, room=matches * self.places, limit=limit)


class _Rows(NamedTuple):
    """The matches in the buffers as rows.

    runs: int64, the first match of each run; rows: int64, the first run of each row. firsts: int64,
    the first events of all matches, newest first; None: those of the runs, which have one match
    each. begins, ends: int64[runs], the places among these of the first events of a run's first and
    last match.
    """

    runs: np.ndarray
    rows: np.ndarray
    firsts: np.ndarray | None
    begins: np.ndarray
    ends: np.ndarray

    def stretches(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[rows]: the first and the last place of the first events of each row; all between
        them are the row's as well."""
        begins, ends = self.begins, self.ends
        return np.minimum.reduceat(begins, self.rows), np.maximum.reduceat(ends, self.rows)

    def events(self, matches: Output, places: int) -> Output:
        """The matches of which columns are made: the first of each run, and behind these one with
        each of the first events, where the columns that others give mean nothing."""
        chosen = self.runs
        if self.firsts is not None:
            chosen = np.concatenate([chosen, np.zeros(len(self.firsts), np.int64)])
        stride = len(matches.rows)
        tags = matches.tags[: places * stride].reshape(places, stride)[:, chosen]
        if self.firsts is not None:
            tags[0, len(self.runs) :] = self.firsts
        used = np.array([len(chosen), tags.size])
        return matches._replace(rows=matches.rows[chosen], tags=tags.ravel(), used=used)

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


def _rows_of(output: Output, places: int) -> _Rows:
    """The matches in the buffers as rows, each of at most `_MOST_MATCHES`."""
    matches, stride = int(output.used[0]), len(output.rows)
    ends_at = output.rows[:matches]
    begins_row, begins_run = np.ones((2, matches), np.bool_)
    np.not_equal(ends_at[1:], ends_at[:-1], out=begins_row[1:])
    begins_run[:] = begins_row
    for place in range(1, places - 1):
        events = output.tags[place * stride : place * stride + matches]
        begins_run[1:] |= events[1:] != events[:-1]
    # A row is whole runs, or a part of one: between such a part and another run lie first events
    # that are in neither. What the buffers begin and end with may be parts.
    whole = np.append(np.flatnonzero(begins_run), matches)
    cuts = np.arange(0, matches, _MOST_MATCHES)
    in_parts = np.append(np.searchsorted(whole, cuts, side="right") - 1, len(whole) - 2)
    begins_row[cuts] = begins_run[cuts] = True
    behind = whole[in_parts + 1]
    begins_row[whole[in_parts]] = True
    begins_row[behind[behind < matches]] = True
    runs = np.flatnonzero(begins_run)
    rows = np.flatnonzero(begins_row[runs])
    lasts = np.append(runs[1:], matches) - 1
    if len(runs) == matches:
        return _Rows(runs, rows, None, runs, runs)
    starts = output.tags[:matches]
    firsts = _different(starts)
    places_of = [len(firsts) - 1 - np.searchsorted(firsts, starts[at]) for at in (runs, lasts)]
    found = _Rows(runs, rows, firsts[::-1], *places_of)
    if (found.ends - found.begins != lasts - runs).any():
        raise AssertionError("the first events of a run are not a stretch of all first events")
    return found


def _different(events: np.ndarray) -> np.ndarray:
    """int64: the different events, oldest first."""
    low = int(events.min())
    span = int(events.max()) - low + 1
    if span > _SPARSE * len(events):
        return np.unique(events)
    is_there = np.zeros(span, np.bool_)
    is_there[events - low] = True
    return np.flatnonzero(is_there) + low
