"""A table in parts, which threads read side by side, and their answers put together.

A part has whole partitions, or a time range of one partition that is large, or of the only one
(`ranges`). Parts stand one after another in the order in which one run would read the table, so
their answers, one after another, are the answer. There are more parts than threads where some may
take longer than others, and where that costs little. Each part gathers its rows, has a run of its
own, and writes into its own arrays alone.

An error is that of one run over the whole table: where a part meets one, the table is read again by
one run. So a message names the first mistake, and a warning counts all of them, for any number of
threads.

Rejected: parts by a hash of the key. They could be cut before rows are sorted, but their answers
would have to be merged by their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import (
    in_one_piece,
    not_a_number,
    numbers,
    plain,
    whole_column,
)
from celc_runtime.arrow.events.conforming import conforming_column
from celc_runtime.arrow.events.digits import Workers
from celc_runtime.arrow.events.event_types import declared_rows
from celc_runtime.arrow.events.row_names import row_text
from celc_runtime.arrow.events.sorting import Sorted
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Program
from celc_runtime.run.choice.deadlines import latest_time
from celc_runtime.run.feeding import ReadsParts, with_positions
from celc_runtime.run.ranges import (
    GRID,
    OrderLine,
    Sample,
    TimeRange,
    cuts_for,
    is_line,
    why_not_split,
    worthwhile,
)
from celc_runtime.run.run_of import run_of
from celc_runtime.run.seen import Seen
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.threads import side_by_side, threads_for, workers_of

LEAST_ROWS = 1 << 16  # of a part: to make a run takes as long as to read some ten thousand rows

_ROWS_OF_A_PART = 1 << 19
"""A thread with more rows reads them in several parts, so that another thread can take some of
them. To make and to end a run is then a hundredth of the time."""

_MOST_PARTS_OF_A_THREAD = 4

_FEW_OF_A_THREAD = 8  # partitions

ROWS_THAT_PAY = 1 << 19
"""All cores read a table with at least this number of rows, if no number of threads is given. To
make two runs and to start a thread takes two milliseconds, so two threads pay where one would need
more than four. The cheapest queries, with 12 nanoseconds a row, reach that at about this number
(`benchmarks/threads.py --only predicted`)."""

MOST_AT_ONCE = 1 << 22  # rows of a batch


class Part(NamedTuple):
    """Rows of a table in order, which one run reads.

    It reads the rows from `first` to before `end`; those from `start` to before `later` are its
    own. position: of the first row in its partition. continues: whether that partition began
    before.
    """

    first: int
    start: int
    later: int
    end: int
    position: int = 0
    continues: bool = False


def why_one_scan(plan: Plan) -> str:
    """Why a table is read by one run, for any number of threads; empty where it need not be."""
    if plan.interleaves:
        return "with CONSUME BY ANY a match depends on those of all partitions"
    if plan.source.key_columns:
        return ""
    return _why_not_cut(plan)


WHOLE_PARTITIONS = "threads: each reads whole partitions of a table"
ONE_PARTITION = "threads: one reads a table, because the query has no PARTITION BY"
"""What is said of a query in MATCH_RECOGNIZE, whose matches depend on those before them."""


def threads_line(plan: Plan) -> str:
    """What threads read side by side, and why not more, in words."""
    if why := why_one_scan(plan):
        return f"threads: one reads a table, because {why}"
    if not plan.source.key_columns:
        return "threads: each reads time ranges of a table"
    why = _why_not_cut(plan)
    large = f"a large one is not cut into time ranges, because {why}"
    return f"{WHOLE_PARTITIONS}; {large if why else 'large ones are cut into time ranges'}"


def _why_not_cut(plan: Plan) -> str:
    """Why neither a stream nor a partition is cut into time ranges; empty where it can be."""
    if plan.source.parameters is not None:
        return "all its events are paired with the rows of a table together (FOR EACH)"
    if not plan.source.order_by:
        return "no order column is named, by whose values events could be cut"
    if why := why_not_split(plan):
        return why
    first = plan.source.order_by[0]
    type = plan.source.type_of(first)
    return "" if is_line(type) else f"the first order column {first!r} is a {type}"


def parts_of(program: Program, rows: Sorted, threads: int) -> list[Part]:
    """The parts of a table; none where one run should read it: by the meaning of the query, since
    it is small, or since something in it is wrong, which that run says."""
    count = rows.size
    # Of rows that can matter, a few take as long as many of all rows: with a half of them in one
    # key two threads took 0.99 of one in parts of the same size, and 0.70 in these.
    least = LEAST_ROWS if rows.positions is None else max(1, LEAST_ROWS // 4)
    wanted, most = number_of_parts(count, threads), _most_parts(count, threads, least)
    if most < 2 or why_one_scan(program.plan):
        return []
    plan = program.plan
    cut = None if _why_not_cut(plan) else partial(_ranges, plan, rows, workers_of(threads))
    try:
        if plan.source.key_columns:
            begins = rows.begins(plan)
            largest = int(np.diff(begins, append=count).max())
            # Where there are few, parts are uneven, and a large one takes longer than its rows say.
            if _FEW_OF_A_THREAD * threads * largest >= count:
                wanted = most
            found = of_partitions(begins, count, wanted, cut)
        else:
            assert cut is not None
            found = cut(0, count, wanted)
    except EventError:
        return []
    return found if len(found) > 1 else []


def threads_of(rows: int, given: int | None, pay: int = 0) -> int:
    """The number of threads that read this number of rows.

    given: the number that the caller asks for; None: as many as there are cores, if there are at
    least `pay` rows. Few rows are one part, and have one thread. The limits of a container are
    asked for last, since that takes as long as to read some rows.
    """
    if rows < 2 * LEAST_ROWS or (given is None and rows < pay):
        return 1
    return threads_for(given)


def number_of_parts(rows: int, threads: int) -> int:
    """The number of parts into which this number of rows is cut, if the query allows it."""
    if threads < 2:
        return 1
    of_a_thread = min(max(1, rows // (threads * _ROWS_OF_A_PART)), _MOST_PARTS_OF_A_THREAD)
    return min(threads * of_a_thread, rows // LEAST_ROWS)


def _most_parts(rows: int, threads: int, least: int) -> int:
    return 1 if threads < 2 else min(threads * _MOST_PARTS_OF_A_THREAD, rows // least)


def of_partitions(
    begins: np.ndarray,
    rows: int,
    wanted: int,
    cut: Callable[[int, int, int], list[Part]] | None = None,
) -> list[Part]:
    """Parts of about the same size, made of whole partitions.

    begins: int64[partitions], their first rows. wanted: the number of parts. cut: cuts a large
    partition, given its first row, the row behind it, and the number of parts; None: partitions
    stay whole.
    """
    ends = np.append(begins[1:], rows)
    numbers_of_parts = begins * wanted // rows
    is_large = (ends - begins) * wanted >= 2 * rows if cut else np.zeros(len(begins), np.bool_)
    is_first = np.append(True, numbers_of_parts[1:] != numbers_of_parts[:-1]) | is_large
    is_first[1:] |= is_large[:-1]
    firsts = np.flatnonzero(is_first)
    found: list[Part] = []
    for first, behind in pairwise([*firsts.tolist(), len(begins)]):
        start, end = int(begins[first]), int(ends[behind - 1])
        if is_large[first] and cut is not None:
            found += cut(start, end, -(-(end - start) * wanted // rows))
        else:
            found.append(Part(start, start, end, end))
    return found


def _ranges(
    plan: Plan, rows: Sorted, workers: Workers, begin: int, behind: int, wanted: int
) -> list[Part]:
    """Time ranges of the rows of one partition. Raises EventError where the column is wrong."""
    whole = [Part(begin, begin, behind, behind)]
    values = _values(plan, rows, begin, behind)
    if values is None:
        return whole
    before = _declared_before(plan, rows, workers, begin, behind)
    size = len(values)
    grid = tuple(dict.fromkeys(values[[size * place // GRID for place in range(1, GRID)]].tolist()))
    window = plan.whole_window
    assert window is not None
    line = OrderLine(plan.source.type_of(plan.source.order_by[0]))
    cuts = cuts_for(Sample(before(size), grid), line, window, wanted, plan.farthest_deadline)
    if not cuts.seams:
        return whole
    borders = [*map(before, np.searchsorted(values, cuts.borders).tolist())]
    counts = np.diff(borders, prepend=0, append=before(size)).tolist()

    def row(border: int | float | None, none: int) -> int:
        return none if border is None else begin + int(np.searchsorted(values, border))

    def part(one: TimeRange) -> Part:
        end = row(one.end, behind)
        continues = bool(plan.source.key_columns) and one.low is not None
        return Part(
            row(one.low, begin),
            row(one.start, begin),
            row(one.later, end),
            end,
            one.first_position,
            continues,
        )

    return [part(one) for one in worthwhile(cuts, counts, window)]


def _values(plan: Plan, rows: Sorted, begin: int, behind: int) -> np.ndarray | None:
    """The first order column of some rows in order, as numbers of the declared type; None: one is
    NULL or NaN."""
    name = plan.source.order_by[0]
    given = _column(rows, name, begin, behind)
    if given is None or given.null_count:
        return None
    column = plain(in_one_piece(given))
    field = pa.field(name, arrow_type(plan.source.type_of(name)))
    table = rows.table
    row_of = partial(row_text, table, rows_seen=0, numbered=None)
    column = conforming_column(plan, field, column, row_of)
    return None if not_a_number(column).any() else numbers(column)[0]


def _column(rows: Sorted, name: str, begin: int, behind: int) -> pa.ChunkedArray | None:
    """A column of some rows in order; None: there is no such column, or it is there twice."""
    if rows.table.column_names.count(name) != 1:
        return None
    column, moved = rows.table.column(name), rows.moved_column(name)
    if moved is not None:
        return pa.chunked_array([moved.slice(begin, behind - begin)])
    if rows.order is None:
        return column.slice(begin, behind - begin)
    return column.take(whole_column(rows.order[begin:behind], pa.int64()))


def _declared_before(
    plan: Plan, rows: Sorted, workers: Workers, begin: int, behind: int
) -> Callable[[int], int]:
    """How many of some rows in order have a declared type, of those before one of them: its
    position."""
    names = [plan.source.type_name, *(["stream"] if plan.source.stream_column else [])]
    columns = {name: _column(rows, name, begin, behind) for name in names}
    if any(column is None for column in columns.values()):
        return int
    # Chunk by chunk: types that are coded stay so, each chunk by its own codes.
    batches = pa.table(columns).to_batches()
    found = [declared_rows(plan, one, workers) for one in batches]
    if all(one is None for one in found):
        return int
    before = np.zeros(behind - begin + 1, np.int64)
    known = [
        np.ones(len(batch), np.bool_) if one is None else one
        for batch, one in zip(batches, found, strict=True)
    ]
    np.cumsum(np.concatenate(known), out=before[1:])
    return lambda row: int(before[row])


NewRun: TypeAlias = Callable[[Program, RunOptions], ReadsParts]


# --- the answer -----------------------------------------------------------------------------------


class Answer(NamedTuple):
    """The matches of some rows, and what their runs warn of at their end."""

    batches: list[pa.RecordBatch]
    seen: Seen


def answer_of_parts(
    program: Program,
    rows: Sorted,
    parts: Sequence[Part],
    options: RunOptions,
    threads: int,
    new: NewRun = run_of,
) -> Answer | None:
    """The rows of the answer, in the order in which one run gives them, and what it would warn of;
    None: one run has to say what is wrong with an event. new: makes a run."""
    plan, options = program.plan, replace(options, numbered=rows.numbered)
    try:
        if plan.asks_for_clock and options.clock is None and plan.choice.clock is None:
            options = replace(options, clock=_clock(program, rows, parts, threads))
        calls = [partial(answer_of_part, program, rows, part, options, new) for part in parts]
        answers = side_by_side(calls, threads)
    except EventError:
        return None
    seen = reduce(Seen.and_later, (one.seen for one in answers))
    return Answer([batch for one in answers for batch in one.batches], seen)


def _clock(program: Program, rows: Sorted, parts: Sequence[Part], threads: int) -> int | None:
    """The key of the greatest time in the table."""
    if rows.positions is not None:
        return latest_of(program.plan, rows)

    def latest(part: Part) -> int | None:
        return latest_time(program.plan, rows.batches(part.start, part.later, MOST_AT_ONCE))

    found = side_by_side([partial(latest, part) for part in parts], threads)
    return max((one for one in found if one is not None), default=None)


def latest_of(plan: Plan, rows: Sorted) -> int | None:
    """The key of the greatest time of a table of which rows were left out: it stands in the order
    of time."""
    return latest_time(plan, rows.table.slice(len(rows.table) - 1).to_batches())


def answer_of_part(
    program: Program, rows: Sorted, part: Part, options: RunOptions, new: NewRun = run_of
) -> Answer:
    """What a run over a part answers."""
    of_pairs = program.plan.source.parameters is not None
    arranged = None if of_pairs else rows.arranged
    if arranged is not None:
        arranged = arranged.of_slice(part.first, part.end, continues=part.continues)
    options = replace(
        options,
        arranged=arranged,
        first_position=part.position,
        continues=part.continues,
        rows_before=part.first,
        rows=None if of_pairs else part.end - part.first,
    )
    run = new(program, options)
    found: list[pa.RecordBatch] = []
    for is_own, (first, end) in zip(
        (False, True, False), pairwise((part.first, part.start, part.later, part.end)), strict=True
    ):
        if first < end:
            found += run.turn(is_own=is_own)
            batches = rows.batches(first, end, MOST_AT_ONCE)
            for batch, positions in with_positions(batches, rows.positions, first):
                found += run.push(batch, positions)
    found += run.rest()
    return Answer(found, run.seen)
