"""The two passes over partitions: which states can still reach an end, and the first way to one.

Backwards over the rows, a deterministic automaton gives each row the set of states from which the
pattern can still end; forwards from a start, the first move into such a state is followed, and
never fails. Sets are numbered as they are met, so a row costs one look-up each way. Where there are
too many sets, and where WITHIN cuts matches by their start, each row and state keeps the earliest
end instead.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit
from celc_runtime.plan.row_pattern import RowPlan

NO_MATCH, NO_ROOM, TOO_MUCH_WORK, NO_STACK, NO_MEMORY, PAUSED = -1, -2, -3, -4, -5, -6
"""A step returns one of these if it returns no number of rows."""

DONE, FULL, TARGET_MISSING, TARGET_FIRST = 0, 1, 2, 3
"""`find` returns one of these, or of the numbers above."""

PAST_LAST_ROW, TO_NEXT_ROW, TO_FIRST, TO_LAST = 0, 1, 2, 3
SKIPS = {
    "PAST LAST ROW": PAST_LAST_ROW,
    "TO NEXT ROW": TO_NEXT_ROW,
    "TO FIRST": TO_FIRST,
    "TO LAST": TO_LAST,
}

PART, ROW, NUMBER, COVERED, MATCHES, LABELS, CURSOR = 0, 1, 2, 3, 4, 5, 6
"""Places of the cursor of `find`: the partition, the next start (−1: the partition's first row),
the matches of the partition so far, the row behind the last match, what the buffers hold."""

START, LENGTH, MATCH_NUMBER, FIRST_LABEL, PARTITION, MATCH_COLUMNS = 0, 1, 2, 3, 4, 5
"""The columns of a match; a length of −1 is an unmatched row."""

UNKNOWN, ACCEPT = -2, -1
NEVER = np.int32(2**31 - 1)
MOST_SETS = 4096
MANY_STATES = 1 << 10  # with more there may be more sets, if earliest ends would take much memory
MOST_ENDS = 1 << 24  # rows of a partition × states: earliest ends take four bytes for each
MOST_BYTES = 1 << 28  # of all sets then
MOST_CHOICES = 1 << 22

KERNEL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""Options of kernels that make no arrays: to count references to the arrays that a walk reads took
longer than its rows."""


class Moves(NamedTuple):
    """The automaton as arrays: the moves of a state are those from `begin[state]` up to
    `begin[state + 1]`, in order of preference.

    `ahead` are the rows that the condition of a move reads after its row. `border` says how many
    rows it takes, by state, to end a match from behind the last row: 0; 1, where rows may come
    later (`open_moves`); NEVER.
    """

    begin: np.ndarray
    variable: np.ndarray
    bit: np.ndarray
    path: np.ndarray
    target: np.ndarray
    accepts: np.ndarray
    border: np.ndarray
    ahead: np.ndarray
    first: int
    start: int


def moves_of(plan: RowPlan) -> tuple[Moves, np.ndarray]:
    """The automaton of a plan, and bool[moves]: whether a move's row is excluded."""
    all_moves = [move for state in plan.states for move in state.moves]
    counts = [len(state.moves) for state in plan.states]
    asked = [None if m.condition < 0 else plan.conditions[m.condition] for m in all_moves]
    paths = [
        move.condition if condition is not None and condition.path else -1
        for move, condition in zip(all_moves, asked, strict=True)
    ]
    made = Moves(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        np.array([move.variable for move in all_moves], np.int32),
        np.array([-1 if one is None else one.local for one in asked], np.int32),
        np.array(paths, np.int32),
        np.array([move.target for move in all_moves], np.int32),
        np.array([state.accepts for state in plan.states]),
        np.array([0 if one.accepts_at_end else NEVER for one in plan.states], np.int32),
        np.array([0 if one is None else one.ahead for one in asked], np.int32),
        plan.first,
        plan.start,
    )
    return made, np.array([move.excluded for move in all_moves], np.bool_)


# --- backwards ------------------------------------------------------------------------------------


@njit(**KERNEL)
def number_backwards(symbols, offsets, following, cursor, edges):  # type: ignore[no-untyped-def]
    """Write for each row the set behind it and the row's symbol, as set × symbols + symbol.

    `following[set, symbol]` is the set before the row; −1: not known yet. cursor: the partition and
    row to go on at, and the set behind it. Returns whether all rows are done.
    """
    count = following.shape[1]
    part, row, behind = cursor[0], cursor[1], cursor[2]
    while part >= 0:
        begin = offsets[part]
        while row >= begin:
            symbol = symbols[row]
            before = following[behind, symbol]
            if before < 0:
                cursor[0], cursor[1], cursor[2] = part, row, behind
                return False
            edges[row] = behind * count + symbol
            behind = before
            row -= 1
        part -= 1
        behind = 0
    return True


class Sets:
    """The sets of states that can still reach an end, numbered as they are met; 0 is the one at the
    end of a partition. `viable` are the sets as bits: uint8[sets, states / 8]."""

    def __init__(self, moves: Moves, bits: np.ndarray, most: int) -> None:
        self._moves, self._bits, self._most = moves, bits.astype(np.int64), most
        self._shifts = np.maximum(moves.bit, 0).astype(np.int64)
        self._states = len(moves.accepts)
        last = np.packbits(moves.border < NEVER, bitorder="little")
        self._numbers = {last.tobytes(): 0}
        self.viable = last[np.newaxis]
        self.following = np.full((1, len(bits)), -1, np.int32)

    def find(self, behind: int, symbol: int) -> bool:
        """Find the set before a row; False where there are too many sets."""
        moves = self._moves
        later = np.unpackbits(self.viable[behind], count=self._states, bitorder="little") > 0
        holds = (moves.bit < 0) | (self._bits[symbol] >> self._shifts & 1 > 0)
        ways = np.concatenate([[0], np.cumsum(holds & later[moves.target])])
        reaches = moves.accepts | (ways[moves.begin[1:]] > ways[moves.begin[:-1]])
        found = np.packbits(reaches, bitorder="little")
        number = self._numbers.setdefault(found.tobytes(), len(self._numbers))
        if number >= self._most:
            return False
        if number == len(self.viable):
            self.viable = np.concatenate([self.viable, np.zeros_like(self.viable)])
            more = np.full_like(self.following, -1)
            self.following = np.concatenate([self.following, more])
        self.viable[number] = found
        self.following[behind, symbol] = number
        return True


def backwards(
    plan: RowPlan, moves: Moves, symbols: np.ndarray, bits: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, Sets] | None:
    """The edge of each row, and the sets; None if there are too many sets.

    symbols: uint8 or int64 by row; bits: the conditions that hold, by symbol. Few states have few
    sets, or else earliest ends, which take a step for each row and move, are cheaper.
    """
    states, longest = len(plan.states), int(np.max(np.diff(offsets), initial=0))
    most = MOST_SETS
    if states > MANY_STATES and longest * states > MOST_ENDS:
        most = max(most, MOST_BYTES // (states // 8 + 1 + 4 * len(bits)))
    sets = Sets(moves, bits, most)
    edges = np.empty(len(symbols), np.int32)
    cursor = np.array([len(offsets) - 2, len(symbols) - 1, 0])
    while not number_backwards(symbols, offsets, sets.following, cursor, edges):
        if not sets.find(int(cursor[2]), int(symbols[cursor[1]])):
            return None
    return edges, sets


@njit(**KERNEL)
def earliest_ends(found, begin, end, moves, earliest):  # type: ignore[no-untyped-def]
    """Write for each row and state of a partition the earliest end that can be reached, as the
    number of rows before it; NEVER for none."""
    states = moves.accepts.shape[0]
    rows = end - begin
    for state in range(states):
        border = moves.border[state]
        earliest[rows, state] = rows + border if border < NEVER else NEVER
    for row in range(rows - 1, -1, -1):
        bits = np.int64(found[begin + row])
        for state in range(states):
            best = np.int32(NEVER)
            if moves.accepts[state]:
                best = np.int32(row)
            else:
                for move in range(moves.begin[state], moves.begin[state + 1]):
                    bit = moves.bit[move]
                    if bit < 0 or (bits >> bit) & 1:
                        best = min(best, earliest[row + 1, moves.target[move]])
            earliest[row, state] = best


# --- forwards -------------------------------------------------------------------------------------


class Numbered(NamedTuple):
    """What `walk_numbered` reads. `choices` are moves by edge and state, with the state after them
    in the upper half, found as they are asked for; of no size where there are too many."""

    edges: np.ndarray
    following: np.ndarray
    viable: np.ndarray
    bits: np.ndarray
    choices: np.ndarray
    moves: Moves


@njit(**KERNEL)
def _choice(bits, viable, moves, state):  # type: ignore[no-untyped-def]
    """The first move of a state into one that can reach an end; ACCEPT: none, so it ends here."""
    for move in range(moves.begin[state], moves.begin[state + 1]):
        bit = moves.bit[move]
        target = moves.target[move]
        if (bit < 0 or (bits >> bit) & 1) and (viable[target >> 3] >> (target & 7)) & 1:
            return move
    return ACCEPT


@njit(**KERNEL, inline="always")
def walk_numbered(data, begin, end, start, number, labels, at):  # type: ignore[no-untyped-def]
    """The match of the first start that has one, from `start` on, by numbered sets.

    Writes its moves; returns the start and its rows, or the end and NO_MATCH.
    """
    edges, following, viable, bits = data.edges, data.following, data.viable, data.bits
    choices, moves = data.choices, data.moves
    targets, states, symbols = moves.target, moves.accepts.shape[0], bits.shape[0]
    known = choices.shape[0] > 0
    row, state = start, moves.first if start == begin else moves.start
    while row < end and not (viable[following[edges[row]], state >> 3] >> (state & 7)) & 1:
        row += 1
        state = moves.start
    first, length = row, NO_MATCH
    if row < end:
        ended = False
        while row < end and not ended:
            edge = np.int64(edges[row])
            choice = choices[edge * states + state] if known else UNKNOWN
            if choice == UNKNOWN:
                choice = _choice(bits[edge % symbols], viable[edge // symbols], moves, state)
                if choice != ACCEPT:
                    choice += np.int64(targets[choice]) << 32
                if known:
                    choices[edge * states + state] = choice
            if choice == ACCEPT:
                ended = True
            elif at >= labels.shape[0]:
                length, ended = NO_ROOM, True
            else:
                labels[at] = choice & 0xFFFFFFFF
                at += 1
                state = choice >> 32
                row += 1
        if length != NO_ROOM:
            length = row - first
    return first, length


class Earliest(NamedTuple):
    """What `walk_earliest` reads. `known`: the first row of the partition that `earliest` is of.
    `times` are empty, or those of the rows in microseconds; a match spans at most `within`.
    `spare`, `open_from`: as `rows_behind` takes them."""

    found: np.ndarray
    earliest: np.ndarray
    known: np.ndarray
    times: np.ndarray
    within: int
    moves: Moves
    spare: int
    open_from: int


@njit(**KERNEL)
def rows_behind(times, spare, open_from, start):  # type: ignore[no-untyped-def]
    """How many rows a match of a start may take behind the last one that is there: 0, or `spare`
    where rows may come later. `times` are as in `Earliest`; a start before `open_from` can take
    none of them, because of WITHIN."""
    return spare if times.shape[0] == 0 or times[start] >= open_from else 0


@njit(**KERNEL)
def last_row_within(times, within, start, end):  # type: ignore[no-untyped-def]
    """The row behind the last one that a match of a start can take."""
    if times.shape[0] == 0:
        return end
    low, high = start + 1, end
    while low < high:
        middle = (low + high) >> 1
        if times[middle] - times[start] <= within:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**KERNEL)
def walk_earliest(data, begin, end, start, number, labels, at):  # type: ignore[no-untyped-def]
    """The match of the first start that has one, by earliest ends; see `walk_numbered`."""
    moves = data.moves
    if data.known[0] != begin:
        earliest_ends(data.found, begin, end, moves, data.earliest)
        data.known[0] = begin
    last = np.int64(0)
    state = moves.first if start == begin else moves.start
    while start < end:
        last = last_row_within(data.times, data.within, start, end) - begin
        last += rows_behind(data.times, data.spare, data.open_from, start)
        if data.earliest[start - begin, state] <= last:
            break
        start += 1
        state = moves.start
    if start == end:
        return start, NO_MATCH
    row = start
    while row < end:
        bits = np.int64(data.found[row])
        taken = ACCEPT
        for move in range(moves.begin[state], moves.begin[state + 1]):
            bit = moves.bit[move]
            if bit >= 0 and not (bits >> bit) & 1:
                continue
            if data.earliest[row + 1 - begin, moves.target[move]] <= last:
                taken = move
                break
        if taken == ACCEPT:
            return start, row - start
        if at >= labels.shape[0]:
            return start, NO_ROOM
        labels[at] = taken
        at += 1
        state = moves.target[taken]
        row += 1
    return start, row - start


@njit(**KERNEL)
def after_match(skip, targets, labels, at, row, length):  # type: ignore[no-untyped-def]
    """The next start after a match that has rows; −1: it has no row to go to."""
    if skip == PAST_LAST_ROW:
        return row + length
    if skip == TO_NEXT_ROW:
        return row + 1
    following = -1
    for place in range(length):
        if targets[labels[at + place]]:
            following = row + place
            if skip == TO_FIRST:
                break
    return following


def loop_of(step: Callable[..., tuple[int, int]]) -> Callable[..., int]:
    """The loop over partitions around a step, which finds the first match from a start on."""

    def find(data, offsets, skip, targets, unmatched, cursor, matches, labels):  # type: ignore[no-untyped-def]
        """Find matches until the buffers are full; returns a status. `targets`: for each move,
        whether the skip goes to its row. `unmatched`: whether unmatched rows are answers too."""
        part, row, number = cursor[PART], cursor[ROW], cursor[NUMBER]
        covered, count, at = cursor[COVERED], cursor[MATCHES], cursor[LABELS]
        status = DONE
        while part < offsets.shape[0] - 1 and status == DONE:
            begin, end = offsets[part], offsets[part + 1]
            if row < 0:
                row, number, covered = begin, 0, begin
            while row < end:
                start, length = step(data, begin, end, row, number + 1, labels, at)
                if unmatched:
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
                if length < NO_MATCH:
                    status = length
                    break
                if count == matches.shape[0]:
                    status = FULL
                    break
                following = row + 1
                if length > 0:
                    covered = max(covered, row + length)
                    following = after_match(skip, targets, labels, at, row, length)
                    if following < 0:
                        status = TARGET_MISSING
                        break
                    if following == row:
                        status = TARGET_FIRST
                        break
                number += 1
                matches[count, START], matches[count, LENGTH] = row, length
                matches[count, MATCH_NUMBER], matches[count, FIRST_LABEL] = number, at
                matches[count, PARTITION] = part
                count += 1
                at += length
                row = following
            if status == DONE:
                part += 1
                row = -1
        cursor[PART], cursor[ROW], cursor[NUMBER] = part, row, number
        cursor[COVERED], cursor[MATCHES], cursor[LABELS] = covered, count, at
        return status

    return find


def finder(step: Callable[..., tuple[int, int]]) -> Callable[..., int]:
    """The loop over all partitions, `loop_of`, as machine code."""
    found: Callable[..., int] = njit(**KERNEL)(loop_of(step))
    return found


find_numbered: Any = finder(walk_numbered)
find_earliest: Any = finder(walk_earliest)
