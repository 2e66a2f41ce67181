"""The matches of partitions that no later row can change, and no others.

*Definition*: a match is decided when it is a match of the partition whatever rows come, also when
none comes. Of later rows nothing is assumed but their order, and which conditions one row can
fulfil together (`RowPlan.realisable`).

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
  decided too.
- If a move leads on, some rows lead it to an end, and then it is the match; if no row comes, the
  match is another one, or there is none. So it is not decided.
- Else it ends if no row comes, and only then (`$`). So it is decided if it is also what the same
  argument finds where rows are sure to come: the same rows, variables and rows shown.

The search for conditions on the path (`search`) is the same one, depth first: all that it has left
behind has failed, so the first way that reaches the border is the best one that is alive.

*WITHIN* closes a start once the watermark has reached its time plus the duration: it can take no
row that comes later. States need one row more than there are then, which `passes.earliest_ends` and
the window of the start keep apart.

*NEXT in DEFINE*. A condition that reads rows which have not come counts as true where the best way
is looked for, unless what it asks of the others is false already; a match that took such a row is
not decided, unless what it asks of the others is enough. *NEXT in MEASURES*: a match is held until
the rows that its measures read are there.

*Which starts count* depends on the matches before them. With PAST LAST ROW, the best way of a
start that is not decided has taken all rows, so nothing behind it is decided. With TO NEXT ROW
every row is a start, and each is decided by itself, unless numbers of matches are read. With these,
and with TO FIRST and TO LAST, all that can become of a start that is not decided is followed, and a
start counts if each of these futures comes to it (`futures`).

*What comes later than need be*. A condition on the path counts as possible for ever, and starts
behind one that waits for it wait, too. So do starts behind one that waits for rows which NEXT in
DEFINE reads, under TO FIRST and TO LAST. Conditions that exclude each other only between one row
and the next are waited for, as is a row that has to be followed by one before `$`. Of a match that
may yet become another one, no row comes, also if it is the same in both.
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
from celc_runtime.row_pattern.passes import KERNEL, NEVER, Moves
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.run import TableRun
from celc_runtime.row_pattern.search import is_compiled, step_by_search
from celc_runtime.row_pattern.streams.futures import MOST_FOLLOWED, NO_FUTURES, futures_of
from celc_runtime.row_pattern.streams.loop import Reads, deciding_loop_of

_OF_MOVES = ("moves", "edges", "following", "viable", "choices", "earliest", "known")
"""What `step` reads that depends on which states can end behind the last row."""

OPEN_FROM_NOW = np.iinfo(np.int64).min


class Since(NamedTuple):
    """Where partitions go on: by partition, int64, the first row that is a start, the matches
    before it, and the row behind those that they cover."""

    rows: np.ndarray
    numbers: np.ndarray
    covered: np.ndarray


def open_moves(plan: RowPlan, moves: Moves) -> tuple[Moves, Moves, np.ndarray]:
    """The moves of a partition to which rows may come, the same where some are sure to come, and by
    state whether any move of it can lead to an end, by rows that there can be."""
    usable = np.ones(len(moves.bit), np.bool_)
    if plan.realisable:
        met = np.bitwise_or.reduce(np.array(plan.realisable, np.int64))
        usable = (moves.bit < 0) | (met >> np.maximum(moves.bit, 0) & 1 > 0)
    reaches = moves.border < NEVER
    reaches |= moves.accepts
    goes_on = np.zeros(len(reaches), np.bool_)
    while True:
        ways = np.concatenate([[0], np.cumsum(usable & reaches[moves.target])])
        goes_on = ways[moves.begin[1:]] > ways[moves.begin[:-1]]
        if not (goes_on & ~reaches).any():
            break
        reaches |= goes_on
    behind = np.where(goes_on, 1, NEVER)
    now = np.where(moves.border < NEVER, moves.border, behind).astype(np.int32)
    later = np.where(moves.accepts, 0, behind).astype(np.int32)
    return moves._replace(border=now), moves._replace(border=later), goes_on


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
    there because conditions and measures read them. found: the local conditions of each row as
    bits, where they have been found before (`early`).
    """

    def __init__(
        self,
        program: RowProgram,
        columns: dict[int, pa.Array],
        offsets: np.ndarray,
        since: Since,
        watermark: int | None,
        found: np.ndarray | None = None,
    ) -> None:
        super().__init__(program, columns, offsets)
        self._since = since
        self._accepts = self._moves.accepts
        self._going = np.full((len(offsets) - 1, 4), -1, np.int64)
        self._going[:, 3] = 0
        # Empty where no condition reads later rows.
        self._unsure = np.zeros(self._rows if most_ahead(self._plan) else 0, np.int64)
        opened, self._later, self._goes_on = open_moves(self._plan, self._moves)
        if watermark is not None:
            self._moves = opened
            self.spare = 1
            self.open_from = OPEN_FROM_NOW
            if self._plan.within is not None:
                self.open_from = max(watermark, OPEN_FROM_NOW + self._plan.within)
                self.open_from += 1 - self._plan.within
        self._found = self._conditions() if found is None else found

    @property
    def going_on(self) -> Since:
        """Where partitions go on, once all matches have been found: at the first start that is not
        decided, or whose match is held."""
        return Since(*self._going.T[:3])

    def found(self) -> np.ndarray:
        """The local conditions of each row, as bits; those that later rows decide are true."""
        return self._found

    def _conditions(self) -> np.ndarray:
        found = super().found()
        if not self.spare or self._program.possible is None:
            return found
        possible, certain = np.zeros_like(found), np.zeros_like(found)
        self._program.possible(*self._code, self.offsets, possible, certain)
        self._unsure = (possible & ~certain).astype(np.int64)
        found |= possible
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
        later = self._read_later(data)
        times = np.zeros(0, np.int64)
        if plan.within is not None:
            times = whole_numbers(self._columns[plan.order_by[0].column])
        room = times, self.spare, self.open_from, plan.within or 0
        ends = self.offsets, self._accepts, self._goes_on
        counts, ahead = reads_numbers(plan), most_ahead(plan)
        reads = reads_behind(plan)
        asks = plan.skip in ("TO FIRST", "TO LAST") or (plan.skip == "TO NEXT ROW" and counts)
        known = futures_of(plan) if asks and self.spare else NO_FUTURES
        states = len(plan.states)
        futures = (
            *(known, np.zeros((MOST_FOLLOWED, 3), np.int64), np.full(1, -1, np.int64)),
            *(np.zeros((2, states + 1, 3), np.int64), np.zeros(states, np.int64)),
        )
        of_rows = self._found, self._unsure

        def decided(data, offsets, skip, targets, unmatched, cursor, matches, labels):  # type: ignore[no-untyped-def]
            asked = skip, targets, unmatched, counts, ahead
            both = data, data._replace(**later)
            given = both, of_rows, room, ends, asked, reads, self._excluded, self._since
            return decide(*given, self._going, futures, cursor, matches, labels)

        return decided, data

    def _read_later(self, data: Any) -> dict[str, Any]:
        """What the loop reads otherwise where rows are sure to come; nothing where this is the
        same, because no state ends a match only at the end."""
        if not self.spare or np.array_equal(self._later.border, self._moves.border):
            return {}
        now, self._moves = self._moves, self._later
        _, other = super().finder()
        self._moves = now
        return {name: getattr(other, name) for name in _OF_MOVES if name in data._fields}

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
