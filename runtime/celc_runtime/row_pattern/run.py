"""A table of rows → the rows of the result: sorted, cut into partitions, matched, measured.

A run of the loop for CEL asks five things, and so does this one. Its source are whole partitions in
order (`arranged`), it has no update, its walk is two passes (`passes`) or a search (`search`), it
chooses one match for each start, and its answer are measures. It is fed as other runs are
(`Reads`), and has a loop of its own: matches are found forwards from their starts in rows that are
all there, so the arena, and all that belongs to ends that fire, would stand empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers, taken, whole_numbers
from celc_runtime.jit.kernels import STEPS_IN_PYTHON, compiling
from celc_runtime.plan.errors import EventError, WorkLimitError
from celc_runtime.plan.row_pattern import LETTERS
from celc_runtime.row_pattern import passes
from celc_runtime.row_pattern.arranged import Arranged, arranged
from celc_runtime.row_pattern.match_ids import ids_of_rows
from celc_runtime.row_pattern.measured import Listed
from celc_runtime.row_pattern.measures import result_rows
from celc_runtime.row_pattern.passes import (
    CURSOR,
    DONE,
    FULL,
    LABELS,
    MATCH_COLUMNS,
    MATCHES,
    NO_MEMORY,
    NO_ROOM,
    NO_STACK,
    PAUSED,
    ROW,
    START,
    TARGET_FIRST,
    TARGET_MISSING,
    Earliest,
    Numbered,
    backwards,
    moves_of,
)
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.schemas import output_schema
from celc_runtime.row_pattern.search import NO_LIMIT, Searched, find_by_search
from celc_runtime.row_pattern.tables import conforming_table, last_border
from celc_runtime.row_pattern.texts import Texts
from celc_runtime.run.parts import Part, number_of_parts, of_partitions
from celc_runtime.run.threads import side_by_side, workers_of

_ROWS = 1 << 18
"""Rows that are matched at a time. A partition with more is matched as a whole."""

_MATCHES = 1 << 15
_LABELS = 1 << 17
_BITS_BY_TABLE = 8
_STACK = 1 << 10
_FAILURES = 1 << 12


class RowRun:
    """Feeds rows to a query, and hands out its result, partition by partition.

    in_parts: partitions come one after another, and rows within them in any order, so that some
    partitions can be matched before the last one has come. derived: whether the rows have the
    columns that are made of others, as on Spark. threads: how many match partitions side by side.
    Raises EventError where rows do not fit the query, for NULL in the order and where AFTER MATCH
    SKIP finds no row, and WorkLimitError for too much work.
    """

    def __init__(
        self, program: RowProgram, *, in_parts: bool, derived: bool = False, threads: int = 1
    ) -> None:
        self._program = program
        self._threads = threads
        self._in_parts = in_parts and bool(program.plan.partition_by)
        self._derived = derived
        self._waiting: list[pa.Table] = []
        self._rows, self._most = 0, _ROWS

    def push(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Read a batch of rows; yields the result for partitions that are over."""
        plan = self._program.plan
        table = pa.Table.from_batches([rows])
        self._waiting.append(conforming_table(plan, table, derived=self._derived))
        self._rows += len(rows)
        if not self._in_parts or self._rows < self._most:
            return
        gathered = pa.concat_tables(self._waiting)
        cut = last_border(plan, gathered)
        self._waiting, self._rows = [gathered.slice(cut)], len(gathered) - cut
        self._most = max(_ROWS, 2 * self._rows)  # a long partition is looked through a few times
        yield from self._matched(gathered.slice(0, cut))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The result for the partitions that wait."""
        if self._waiting:
            yield from self._matched(pa.concat_tables(self._waiting))
        self._waiting = []

    def finish(self) -> None:
        """Nothing: there are no warnings."""

    def _matched(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        if len(table):
            rows = arranged(self._program.plan, table, workers_of(self._threads), able=True)
            if len(rows.offsets) > 1:
                yield from self._of_parts(rows)

    def _of_parts(self, rows: Arranged) -> Iterator[pa.RecordBatch]:
        """The result for partitions, some of which each thread matches at a time."""
        program, offsets = self._program, rows.offsets
        count = int(offsets[-1])
        wanted = number_of_parts(count, self._threads)
        parts = of_partitions(offsets[:-1], count, wanted) if wanted > 1 else []
        if len(parts) < 2:
            yield from run_of(program, rows.rows(0, count), offsets).batches()
            return

        def matched(part: Part) -> list[pa.RecordBatch]:
            start, end = part.start, part.end
            first, behind = np.searchsorted(offsets, (start, end))
            run = run_of(program, rows.rows(start, end), offsets[first : behind + 1] - start)
            return list(run.batches())

        # The first part with an error has the first error of all.
        calls = [partial(matched, part) for part in parts]
        yield from chain.from_iterable(side_by_side(calls, self._threads))


def run_of(program: RowProgram, columns: dict[int, pa.Array], offsets: np.ndarray) -> TableRun:
    """The run of a query over ordered columns."""
    return TableRun(program, columns, offsets)


# --- one table ------------------------------------------------------------------------------------


class TableRun:
    """The partitions of one table: its columns, by their numbers, in the order of the query, and
    where partitions begin, int64[partitions + 1]."""

    def __init__(
        self, program: RowProgram, columns: dict[int, pa.Array], offsets: np.ndarray
    ) -> None:
        self._program = program
        self._plan = program.plan
        self._columns = columns
        self.offsets = offsets
        self._rows = int(offsets[-1])
        self._moves, excluded = moves_of(self._plan)
        self._excluded = excluded
        # All rows are there (`passes.rows_behind`).
        self.spare = self.open_from = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The result, some matches at a time."""
        for matches, moves in self.matches():
            batch = self.result(matches, moves)
            if len(batch):
                yield batch

    def matches_and_result(self) -> Iterator[tuple[np.ndarray, np.ndarray, pa.RecordBatch]]:
        """The result with the matches that give it, as `passes.MATCH_COLUMNS` of rows in order,
        and the variables of their rows, from `passes.FIRST_LABEL` on."""
        for matches, moves in self.matches():
            variables = self._moves.variable[moves] if len(moves) else np.zeros(0, np.int32)
            yield matches.copy(), variables, self.result(matches, moves)

    def matches(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some matches at a time, and the moves of their rows; the next ones overwrite both."""
        plan = self._plan
        find, data = self.finder()
        if isinstance(data, Searched):
            data = data._replace(most_steps=STEPS_IN_PYTHON)
        cursor = np.zeros(CURSOR, np.int64)
        cursor[ROW] = -1
        # As small as the input, so that the kernel knows a small one (`kernels.MOST_ROWS`).
        matches = np.empty((min(_MATCHES, self._rows), MATCH_COLUMNS), np.int64)
        labels = np.empty(min(_LABELS, self._rows), np.int32)
        targets = np.zeros(max(len(self._moves.variable), 1), np.bool_)
        targets[: len(self._moves.variable)] = np.isin(self._moves.variable, plan.targets)
        skip = passes.SKIPS[plan.skip]
        unmatched = plan.rows == "WITH UNMATCHED"
        while True:
            given = data, self.offsets, skip, targets, unmatched, cursor, matches, labels
            compiles = compiling() if self._is_long(data) else nullcontext()
            with compiles, np.errstate(over="ignore"):  # plain Python would tell of hashing
                status = find(*given)
            if status == NO_ROOM and cursor[MATCHES] == 0:
                labels = np.empty(2 * len(labels), np.int32)
                continue
            if status in (NO_STACK, NO_MEMORY, PAUSED):
                data = larger(data, status)
                continue
            if status not in (DONE, FULL, NO_ROOM):
                raise self.error(status, cursor)
            if cursor[MATCHES]:
                yield matches[: cursor[MATCHES]], labels[: cursor[LABELS]]
            if status == DONE:
                return
            cursor[MATCHES] = cursor[LABELS] = 0
            if len(matches) < _MATCHES:
                matches = np.empty((2 * len(matches), MATCH_COLUMNS), np.int64)
            if len(labels) < _LABELS:
                labels = np.empty(2 * len(labels), np.int32)

    def _is_long(self, data: Any) -> bool:
        """Whether `find` takes more steps than Python should, though the rows may be few."""
        if isinstance(data, Earliest):
            return self._rows * len(self._moves.target) > STEPS_IN_PYTHON
        return isinstance(data, Searched) and data.most_steps > STEPS_IN_PYTHON

    # --- columns for the kernels ------------------------------------------------------------------

    @cached_property
    def _texts(self) -> Texts:
        plan = self._plan
        texts = {
            number: self._columns[number]
            for number in plan.read
            if number != LETTERS and plan.columns[number].type == "STRING"
        }
        return Texts(texts, plan.texts, plan.variables, plan.regexes)

    def _numbers(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """The values of a column as numbers, and where they are not NULL."""
        if column == LETTERS:
            letters, stops = self._texts.letters
            return _frozen(letters), _frozen(stops)
        array = self._columns[column]
        if column in self._texts.codes:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            return _frozen(self._texts.codes[column]), _frozen(valid)
        values, valid = numbers(array)
        return _frozen(values), _frozen(valid)

    @cached_property
    def _code(self) -> tuple[Any, ...]:
        """The first arguments of the functions of the module."""
        columns: list[np.ndarray] = []
        for column in self._plan.read:
            columns += self._numbers(column)
        texts = self._texts
        return tuple(columns), texts.constants, texts.truths, texts.names

    # --- finding ----------------------------------------------------------------------------------

    def found(self) -> np.ndarray:
        """The local conditions of each row, as bits."""
        count = self._plan.local_conditions
        found = np.zeros(self._rows, np.uint8 if count <= _BITS_BY_TABLE else np.int64)
        if self._program.conditions is not None:
            self._program.conditions(*self._code, self.offsets, found)
        return found

    def finder(self) -> tuple[Any, Any]:
        """The loop for the query, and what it reads."""
        plan, moves = self._plan, self._moves
        found = self.found()
        if found.dtype == np.uint8:
            symbols, bits = found, np.arange(1 << plan.local_conditions, dtype=np.int64)
        else:
            bits, inverse = np.unique(found, return_inverse=True)
            symbols = inverse.astype(np.int64)
        times = np.zeros(0, np.int64)
        if plan.within is not None:
            times = whole_numbers(self._columns[plan.order_by[0].column])
        numbered = None
        if plan.within is None or plan.searches:
            numbered = backwards(plan, moves, symbols, bits, self.offsets)
        if plan.searches:
            return self._search(found, numbered, times)
        if numbered is None:
            longest = int(np.max(np.diff(self.offsets)))
            earliest = np.empty((longest + 1, len(plan.states)), np.int32)
            known = np.full(1, -1, np.int64)
            within = plan.within or 0
            return passes.find_earliest, Earliest(
                *(found, earliest, known, times, within, moves, self.spare, self.open_from)
            )
        edges, sets = numbered
        viable, following = sets.viable, sets.following.ravel()
        size = len(viable) * len(bits) * len(plan.states)
        kept = size if size <= passes.MOST_CHOICES else 0
        choices = np.full(kept, passes.UNKNOWN, np.int64)
        return passes.find_numbered, Numbered(edges, following, viable, bits, choices, moves)

    def _search(self, found: np.ndarray, numbered: Any, times: np.ndarray) -> tuple[Any, Any]:
        plan = self._plan
        if numbered is None:
            # Too many sets to number them: no start is left out beforehand.
            edges = np.zeros(self._rows, np.int32)
            following = np.zeros(1, np.int32)
            viable = np.full((1, len(plan.states) // 8 + 1), 255, np.uint8)
        else:
            edges, sets = numbered
            following, viable = sets.following.ravel(), sets.viable
        live = [register for one in plan.live for register in one]
        sizes = [len(one) for one in plan.live]
        registers = np.zeros((_STACK, max(len(plan.registers), 1)), np.int64)
        registers[0, : len(plan.registers)] = plan.registers
        assert self._program.advance is not None
        assert self._program.holds is not None
        data = Searched(
            found=found,
            edges=edges,
            following=following,
            viable=viable,
            moves=self._moves,
            code=self._code,
            states=np.zeros(_STACK, np.int32),
            pointers=np.zeros(_STACK, np.int32),
            path=np.zeros(_STACK, np.int32),
            registers=registers,
            reals=registers.view(np.float64),
            live_begin=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
            live=np.array(live, np.int32),
            failures=np.zeros((_FAILURES, 2 + max(sizes, default=0)), np.int64),
            stamps=np.full(_FAILURES, -1, np.int64),
            counters=np.zeros(3, np.int64),
            times=times,
            within=plan.within or 0,
            remembers=plan.remembers,
            max_work=plan.max_work,
            most_steps=NO_LIMIT,
            spare=self.spare,
            open_from=self.open_from,
        )
        return find_by_search(self._program.advance, self._program.holds), data

    def error(self, status: int, cursor: np.ndarray) -> EventError:
        """What a status of `find` tells at the cursor, in words."""
        plan, row = self._plan, int(cursor[ROW])
        place = self._place(int(cursor[0]), row)
        if status == TARGET_MISSING:
            return EventError(
                f"query {plan.name!r}: the match that begins {place} has no row of "
                f"{plan.target!r} that AFTER MATCH SKIP could go to"
            )
        if status == TARGET_FIRST:
            return EventError(
                f"query {plan.name!r}: the match that begins {place} begins with the row of "
                f"{plan.target!r} that AFTER MATCH SKIP goes to, so it would be found again for "
                "ever: skip TO NEXT ROW, or to another variable"
            )
        return WorkLimitError(
            f"query {plan.name!r}: the search for the match that begins {place} took more than "
            f"max_work={plan.max_work:,} steps: make conditions read less of the match, or allow "
            "more with with_options(max_work=…)"
        )

    def _place(self, part: int, row: int) -> str:
        """Where a row is, in words."""
        plan = self._plan
        told = f"at row {row - int(self.offsets[part])}"
        if plan.partition_by:
            shown = ", ".join(
                f"{plan.columns[column].name}={self._columns[column][row].as_py()!r}"
                for column in plan.partition_by
            )
            told += f" of the partition {shown}"
        return told

    # --- the result -------------------------------------------------------------------------------

    def result(self, matches: np.ndarray, moves: np.ndarray) -> pa.RecordBatch:
        """The rows of the result for matches and the moves of their rows."""
        plan = self._plan
        variables = self._moves.variable[moves] if len(moves) else np.zeros(0, np.int32)
        all_rows = plan.rows != "ONE ROW"
        excluded = self._excluded[moves] if all_rows and len(moves) else np.zeros(0, np.bool_)
        shown = np.empty((len(matches) + all_rows * len(moves), 2), np.int64)
        count = result_rows(matches, excluded, all_rows, plan.rows != "OMIT EMPTY", shown)
        shown = shown[:count]
        listed = Listed(plan, self._columns, self.offsets, matches, variables, shown)
        starts = matches[shown[:, 0], START]
        rows = starts + np.maximum(shown[:, 1], 0)
        arrays = []
        if plan.match_id:
            arrays.append(ids_of_rows(plan, self._columns, matches, variables, shown[:, 0]))
        measured: dict[int, pa.Array] = {}
        for output in plan.outputs:
            if output.measure:
                if output.number not in measured:
                    measured[output.number] = listed.measure(plan.measures[output.number])
                arrays.append(measured[output.number])
            else:
                arrays.append(taken(self._columns[output.number], rows))
        return pa.RecordBatch.from_arrays(arrays, schema=output_schema(plan))


def _frozen(values: np.ndarray) -> np.ndarray:
    """Read-only, so that kernels are compiled for one kind of array."""
    if values.flags.writeable:
        values = values.view()
        values.flags.writeable = False
    return values


def larger(data: Searched, status: int) -> Searched:
    """The data of a search that stopped with a status, with more room for the stack or for
    failures, or without a limit of steps."""
    if status == PAUSED:
        return data._replace(most_steps=NO_LIMIT)
    if status == NO_STACK:
        size = 2 * len(data.states)
        registers = np.zeros((size, data.registers.shape[1]), np.int64)
        registers[0] = data.registers[0]
        return data._replace(
            states=np.zeros(size, np.int32),
            pointers=np.zeros(size, np.int32),
            path=np.zeros(size, np.int32),
            registers=registers,
            reals=registers.view(np.float64),
        )
    size = 2 * len(data.stamps)
    return data._replace(
        failures=np.zeros((size, data.failures.shape[1]), np.int64),
        stamps=np.full(size, -1, np.int64),
    )
