"""The matches of partitions that no later row can change, and no others.

*Definition*: a match is decided when it is a match of the partition whatever rows come, also when
none comes. Nothing is assumed of later rows but their order: each of them may make any condition
true or not.

*Argument*. The batch goes backwards, and finds for each row the states from which the pattern can
still end; forwards from a start it follows the first move, in order of preference, into such a
state (`passes`). Behind the last row of a partition that is over, these are the states that accept
at the end. On a stream rows may come, so they are all states from which any rows lead to an end
(`open_moves`). Nothing else is changed. Then:

- A start without such a state has no match, whatever comes: it is dead.
- The first move into such a state is the best way that any later rows could make a match of. A way
  that is preferred to it is closed for ever.
- If this way ends before it has taken the last row, nothing later is asked, so the match is
  decided. If it has taken the last row, and is in a state that accepts and has no move on, it is
  decided too. In any other state, some rows lead it to an end, and then it is the match; if no row
  comes, the match is another one, or there is none. So it is not decided.

The search for conditions on the path (`search`) is the same one, depth first: all that it has left
behind has failed, so the first way that reaches the border is the best one that is alive.

*WITHIN* closes a start once the watermark has reached its time plus the duration: it can take no
row that comes later. States need one row more than there are then, which `passes.earliest_ends` and
the window of the start keep apart. A way that only `$` can end stays open as long as rows may come,
also if another way has the same rows and variables without it.

*NEXT in DEFINE*. A condition that reads rows which have not come counts as true where the best way
is looked for, unless what it asks of the others is false already; a match that took such a row is
not decided. *NEXT in MEASURES*: a match
is held until the rows that its measures read are there.

*Which starts count* depends on the matches before them. With PAST LAST ROW, the best way of a
start that is not decided has taken all rows, so nothing behind it is decided. With TO NEXT ROW
every row is a start, and each is decided by itself, unless numbers of matches are read. With TO
FIRST and TO LAST, starts behind one that is not decided wait for it: later than need be, if all
its ways lead to one row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import whole_numbers
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.expressions import NumberOfMatch, RowIsThere, ValueOfRow, nodes_in
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.row_pattern import passes
from celc_runtime.row_pattern.passes import (
    COVERED,
    DONE,
    FIRST_LABEL,
    FULL,
    KERNEL,
    LABELS,
    LENGTH,
    MATCH_NUMBER,
    MATCHES,
    NEVER,
    NO_MATCH,
    NUMBER,
    PART,
    PARTITION,
    ROW,
    START,
    TARGET_FIRST,
    TARGET_MISSING,
    TO_NEXT_ROW,
    Moves,
    after_match,
    rows_behind,
)
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.run import TableRun
from celc_runtime.row_pattern.search import is_compiled, step_by_search

OPEN_FROM_NOW = np.iinfo(np.int64).min


class Since(NamedTuple):
    """Where partitions go on: by partition, int64, the first row that is a start, the matches
    before it, and the row behind those that they cover."""

    rows: np.ndarray
    numbers: np.ndarray
    covered: np.ndarray


class Reads(NamedTuple):
    """The rows behind a match that measures read: for each such navigation its variables (bool),
    and whether FIRST, the offset, the shift and whether FINAL."""

    variables: np.ndarray  # bool[navigations, variables]
    places: np.ndarray  # int64[navigations, 4]


def open_moves(moves: Moves) -> tuple[Moves, np.ndarray]:
    """The moves of a partition to which rows may come, and by state whether any move of it can lead
    to an end."""
    reaches = moves.border < NEVER
    reaches |= moves.accepts
    goes_on = np.zeros(len(reaches), np.bool_)
    counts = np.diff(moves.begin)
    while True:
        ways = np.concatenate([[0], np.cumsum(reaches[moves.target])])
        goes_on = (ways[moves.begin[1:]] > ways[moves.begin[:-1]]) & (counts > 0)
        if not (goes_on & ~reaches).any():
            break
        reaches |= goes_on
    border = np.where(moves.border < NEVER, moves.border, np.where(goes_on, 1, NEVER))
    return moves._replace(border=border.astype(np.int32)), goes_on


def reads_behind(plan: RowPlan) -> Reads:
    """The navigations to rows behind a match in the measures of a plan."""
    found = sorted(
        {
            int(node.row)
            for tree in plan.trees
            for node in nodes_in(tree)
            if isinstance(node, ValueOfRow | RowIsThere)
            and node.row is not None
            and plan.navigations[node.row].shift > 0
        }
    )
    one_row = plan.rows == "ONE ROW"
    variables = np.ones((len(found), len(plan.variables)), np.bool_)
    places = np.zeros((len(found), 4), np.int64)
    for number, navigation in enumerate(found):
        to = plan.navigations[navigation]
        if to.variables is not None:
            variables[number] = False
            variables[number, list(to.variables)] = True
        places[number] = to.first, to.offset, to.shift, to.final or one_row
    return Reads(variables, places)


@njit(**KERNEL)
def last_row_read(reads, moves, excluded, labels, at, row, length):  # type: ignore[no-untyped-def]
    """The last row that measures of a match read."""
    variables, places = reads
    last, shown = -1, length
    while shown > 0 and excluded[labels[at + shown - 1]]:
        shown -= 1
    for number in range(places.shape[0]):
        until = length if places[number, 3] else shown
        total = 0
        for place in range(until):
            total += variables[number, moves.variable[labels[at + place]]]
        wanted = places[number, 1] if places[number, 0] else total - 1 - places[number, 1]
        if wanted < 0 or wanted >= total:
            continue
        seen = 0
        for place in range(until):
            if variables[number, moves.variable[labels[at + place]]]:
                if seen == wanted:
                    last = max(last, row + place + places[number, 2])
                seen += 1
    return last


# Long: one loop, which is compiled as a whole.
def deciding_loop_of(
    step: Callable[..., tuple[int, int]], *, compiled: bool = True
) -> Callable[..., int]:
    """The loop over partitions around a step, which finds the first possible match from a start
    on."""

    def own(kernel: Any) -> Any:
        return kernel if compiled else getattr(kernel, "py_func", kernel)

    after, behind, read_until = own(after_match), own(rows_behind), own(last_row_read)

    # Long: as above.
    def decide(  # type: ignore[no-untyped-def]
        data, room, ends, asked, reads, excluded, since, going, cursor, matches, labels
    ):
        """Find decided matches until the buffers are full; returns a status as `find` does.

        room: the first arguments of `rows_behind`. ends: where partitions begin, and by state
        whether it accepts, and whether it goes on. asked: the skip, its targets by move, whether
        unmatched rows are answers, whether a match depends on which starts before it have one, the
        most rows ahead that conditions read. going: int64[partitions, 4], where partitions go on,
        as `Since` has it in columns (−1: not known yet), and whether a start is not decided.
        """
        times, spare, open_from = room
        offsets, accepts, goes_on = ends
        skip, targets, unmatched, counts, most_ahead = asked
        moves = data.moves
        part, row, number = cursor[PART], cursor[ROW], cursor[NUMBER]
        covered, count, at = cursor[COVERED], cursor[MATCHES], cursor[LABELS]
        status = DONE
        while part < offsets.shape[0] - 1 and status == DONE:
            begin, end = offsets[part], offsets[part + 1]
            if row < 0:
                row, number, covered = since[0][part], since[1][part], since[2][part]
            while row < end:
                start, length = step(data, begin, end, row, number + 1, labels, at)
                if length < NO_MATCH:
                    status = length
                    break
                if unmatched and going[part, 3] == 0:
                    row = max(row, min(covered, start))
                    while row < start and count < matches.shape[0]:
                        matches[count, START], matches[count, LENGTH] = row, -1
                        matches[count, MATCH_NUMBER], matches[count, FIRST_LABEL] = 0, at
                        matches[count, PARTITION] = part
                        count += 1
                        row += 1
                    if row < start:
                        status = FULL
                        break
                row = start
                if length == NO_MATCH:
                    break
                sure, shown = True, True
                if spare > 0 and length > 0:
                    if row + length == end:
                        state = moves.target[labels[at + length - 1]]
                        more = goes_on[state] and behind(times, spare, open_from, row) > 0
                        sure = accepts[state] and not more
                    for place in range(max(length - most_ahead, 0), length):
                        ahead = moves.ahead[labels[at + place]]
                        sure = sure and row + place + ahead < end
                    if sure and reads[1].shape[0] > 0:
                        until = read_until(reads, moves, excluded, labels, at, row, length)
                        shown = until < end
                if not (sure and shown) and going[part, 0] < 0:
                    going[part, 0], going[part, 1], going[part, 2] = row, number, covered
                if not sure:
                    going[part, 3] = 1
                    if skip != TO_NEXT_ROW or counts:
                        break
                    row += 1
                    continue
                if count == matches.shape[0]:
                    status = FULL
                    break
                following = row + 1
                if length > 0:
                    covered = max(covered, row + length)
                    following = after(skip, targets, labels, at, row, length)
                    if following < 0:
                        status = TARGET_MISSING
                        break
                    if following == row:
                        status = TARGET_FIRST
                        break
                number += 1
                if shown:
                    matches[count, START], matches[count, LENGTH] = row, length
                    matches[count, MATCH_NUMBER], matches[count, FIRST_LABEL] = number, at
                    matches[count, PARTITION] = part
                    count += 1
                    at += length
                row = following
            if status == DONE:
                if going[part, 0] < 0:
                    going[part, 0], going[part, 1], going[part, 2] = row, number, covered
                part += 1
                row = -1
        cursor[PART], cursor[ROW], cursor[NUMBER] = part, row, number
        cursor[COVERED], cursor[MATCHES], cursor[LABELS] = covered, count, at
        return status

    return decide


def _deciding(step: Callable[..., tuple[int, int]]) -> Callable[..., int]:
    found: Callable[..., int] = njit(**KERNEL)(deciding_loop_of(step))
    return found


decide_numbered: Any = _deciding(passes.walk_numbered)
decide_earliest: Any = _deciding(passes.walk_earliest)


@cache
def _deciding_by_search(step: Callable[..., tuple[int, int]]) -> Callable[..., int]:
    return _deciding(step) if is_compiled(step) else deciding_loop_of(step, compiled=False)


class DecidingRun(TableRun):
    """Partitions to which rows may come, behind the watermark (microseconds; None: they are over).

    columns, offsets: as of `TableRun`. since: where the partitions go on. Rows before that are
    there because conditions and measures read them.
    """

    def __init__(
        self,
        program: RowProgram,
        columns: dict[int, pa.Array],
        offsets: np.ndarray,
        since: Since,
        watermark: int | None,
    ) -> None:
        super().__init__(program, columns, offsets)
        self._since = since
        self._accepts = self._moves.accepts
        self._going = np.full((len(offsets) - 1, 4), -1, np.int64)
        self._going[:, 3] = 0
        opened, self._goes_on = open_moves(self._moves)
        if watermark is not None:
            self._moves = opened
            self.spare = 1
            self.open_from = OPEN_FROM_NOW
            if self._plan.within is not None:
                self.open_from = max(watermark, OPEN_FROM_NOW + self._plan.within)
                self.open_from += 1 - self._plan.within

    @property
    def going_on(self) -> Since:
        """Where partitions go on, once all matches have been found: at the first start that is not
        decided, or whose match is held."""
        return Since(*self._going.T[:3])

    def found(self) -> np.ndarray:
        """The local conditions of each row, as bits; those that read rows which have not come are
        true."""
        found = super().found()
        if not self.spare or self._program.possible is None:
            return found
        possible = np.zeros(self._rows, found.dtype)
        self._program.possible(*self._code, self.offsets, possible)
        plan, ends = self._plan, self.offsets[1:]
        for back in range(1, most_ahead(plan) + 1):
            bits = 0
            for one in plan.conditions:
                bits |= (1 << one.local) if one.local >= 0 and one.ahead >= back else 0
            rows = (ends - back)[ends - back >= self.offsets[:-1]]
            found[rows] |= possible[rows] & found.dtype.type(bits)
        return found

    def finder(self) -> tuple[Any, Any]:
        """The loop for the query, and what it reads."""
        plan = self._plan
        find, data = super().finder()
        decide = {passes.find_numbered: decide_numbered, passes.find_earliest: decide_earliest}.get(
            find
        )
        if decide is None:
            assert self._program.advance is not None
            assert self._program.holds is not None
            step = step_by_search(self._program.advance, self._program.holds)
            decide = _deciding_by_search(step)
        times = np.zeros(0, np.int64)
        if plan.within is not None:
            times = whole_numbers(self._columns[plan.order_by[0].column])
        room = times, self.spare, self.open_from
        ends = self.offsets, self._accepts, self._goes_on
        counts, ahead = reads_numbers(plan), most_ahead(plan)
        reads = reads_behind(plan)

        def decided(data, offsets, skip, targets, unmatched, cursor, matches, labels):  # type: ignore[no-untyped-def]
            asked = skip, targets, unmatched, counts, ahead
            given = data, room, ends, asked, reads, self._excluded, self._since, self._going
            return decide(*given, cursor, matches, labels)

        return decided, data

    def _place(self, part: int, row: int) -> str:
        """Where a row is, in words: a stream knows its time, and not its number."""
        order = self._plan.order_by[0].column
        told = super()._place(part, row)
        _, _, partition = told.partition(" of the partition")
        name, time = self._plan.columns[order].name, self._columns[order][row].as_py()
        return f"at {name}={time}" + (f" of the partition{partition}" if partition else "")


def most_ahead(plan: RowPlan) -> int:
    """How many rows after their own conditions read."""
    return max((one.ahead for one in plan.conditions), default=0)


def reads_numbers(plan: RowPlan) -> bool:
    """Whether anything depends on MATCH_NUMBER()."""
    return plan.numbered or any(
        isinstance(node, NumberOfMatch) for tree in plan.trees for node in nodes_in(tree)
    )


def rows_before(plan: RowPlan) -> int:
    """How many rows before the first start that is not decided a partition keeps: those that
    conditions and measures read, and one, if it matters whether it is the first row."""
    shifts = [-one.shift for one in plan.navigations]
    return max(plan.before, int(plan.first != plan.start), *shifts, 0)


def is_closed_by_within(plan: RowPlan) -> bool:
    """Whether no row is read any more once WITHIN has closed its start: nothing reads rows before a
    match or behind its own, and no match waits for the end of its partition."""
    waits = any(one.accepts_at_end and not one.accepts for one in plan.states)
    reads = rows_before(plan) or most_ahead(plan) or len(reads_behind(plan).places)
    return plan.within is not None and not waits and not reads
