"""Totals of all matches that end at an event, without listing any of them.

The automaton is I/O-deterministic: each match is one run. So the number of matches is the number of
runs, and an event is a matrix over the states: its entry at (p, q) counts the ways from p to q (a
marked move, or the unmarked one). The matches that end at an event are the sum, over the events at
which they begin, of products of these matrices. In place of numbers the matrices hold elements of a
commutative semiring: of each set of partial matches the count, and for each function its total over
them. If an event adds w to a sum, it takes (n, s) to (n, s + n·w), and two parts with (n, s) and
(m, t) are together (n·m, n·t + m·s): pairs as in automatic differentiation.

Without a window one vector is enough: the totals of the partial matches in each state. A window
forgets the matches that begin before it, and subtraction does not do that (MIN has none, and
rounded sums lose digits). So the window is kept on two stacks, as for any associative operation (a
queue made of two stacks; for sliding windows Tangwongsan, Hirzel and Schneider, VLDB 2015). The
events up to a *cut* are the front: for each event there that begins matches, `front` holds the
vector of the matches from it and all later ones on, as they were at the cut. Behind the cut lie the
matches that begin there, in the vector `back`, and `since`, the product of all matrices since the
cut. The totals at an event are front · since + back. When the window has left the front behind, the
cut moves to the event at hand, and the front is made anew by one pass over the events since the
last cut, from the newest one back. So each event is looked at twice; it changes few rows of a
matrix, and costs O(moves × states), whatever the window.

Rejected: to sum over the nodes of the arena below each event that ends matches. It costs the same
where few nodes are in the window, and grows with the window where they are many.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.engine.batch import window_floor
from celc_runtime.engine.wide_numbers import (
    add_wide,
    add_wrapping,
    multiply_wide,
    multiply_wrapping,
    product_of_words,
)
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.transitions import EVENTS, FLOORS, KEYS, NO_WINDOW, TransitionArrays

NOTHING = np.int64(2**63 - 1)
"""The least of no values: greater than all, or equal to the greatest one."""

_KERNEL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_PART: dict[str, Any] = {**_KERNEL, "inline": "always"}
"""Options of the parts of kernels: to pass all these arrays took longer than an event."""


class Elements(NamedTuple):
    """Elements of the semiring, as rows.

    words: uint64[rows, 2 + 4 · whole]: the count (high, low), then for each whole sum the signed
    sum and the sum of absolute values. reals: float64[rows, 1 + real], or of no columns where
    nothing asks for them: the count, and each real sum; in one scale for all rows, 2 to the power
    of `scale`. least: int64[rows, ordered].
    """

    words: np.ndarray
    reals: np.ndarray
    least: np.ndarray


class Measures(NamedTuple):
    """What each event of a batch adds, for each function; belongs: bool[functions, kinds], whether
    an event of a kind counts for it.

    whole: int64[whole, rows]; real: float64[real, rows]; ordered: int64[ordered, rows], NOTHING for
    NULL. NULLs add 0.
    """

    whole: np.ndarray
    whole_belongs: np.ndarray
    real: np.ndarray
    real_belongs: np.ndarray
    ordered: np.ndarray
    ordered_belongs: np.ndarray


class Changes(NamedTuple):
    """The states whose matches an event does not leave as they are, by symbol.

    first: int64[symbols + 1] into states and skips: int64, such a state, and where its matches go
    unmarked (−1: nowhere). move_first: int64[states listed + 1] into moves: int64[…, 3], as those
    of the tables. begins: bool[symbols], whether a match can begin that does not end at once.
    """

    first: np.ndarray
    states: np.ndarray
    skips: np.ndarray
    move_first: np.ndarray
    moves: np.ndarray
    begins: np.ndarray


def changes_of(tables: TransitionArrays) -> Changes:
    """What each symbol changes."""
    symbols = len(tables.idle)
    first, states, skips, move_first, moves = [0], [], [], [0], []
    for symbol in range(symbols):
        for state, row in enumerate(tables.skip):
            place = state * symbols + symbol
            found = tables.moves[tables.move_first[place] : tables.move_first[place + 1]]
            if len(found) or row[symbol] != state:
                states.append(state)
                skips.append(int(row[symbol]))
                moves += found.tolist()
                move_first.append(len(moves))
        first.append(len(states))
    offsets = tables.start_first
    goes_on = [
        bool((tables.start_moves[offsets[symbol] : offsets[symbol + 1], 2] >= 0).any())
        for symbol in range(symbols)
    ]
    return Changes(
        np.array(first, np.int64),
        np.array(states, np.int64),
        np.array(skips, np.int64),
        np.array(move_first, np.int64),
        np.array(moves, np.int64).reshape(-1, 3),
        np.array(goes_on, np.bool_),
    )


class Shape(NamedTuple):
    """How many functions there are: whole sums, real sums (−1: not even the count is wanted as a
    real number) and least values."""

    whole: int
    real: int
    ordered: int


class Stacks(NamedTuple):
    """The window of one partition on two stacks, and the numbers of a run.

    numbers: int64[NUMBERS]. keys, symbols: int64[room], a ring with the events since the cut, as
    the window and the tables know them; whole: int64[whole, room], real: float64[real, room],
    ordered: int64[ordered, room], what they add. front: [room × states], front_keys and
    front_scales: int64[room], of the events before the cut that begin matches, the oldest one on
    top. back: [(1 + states) × states], the vector of the matches that begin since the cut, and
    behind it the product since the cut; suffix, scratch: [states × states]; scales: int64[3], of
    the vector, the product and `suffix`. total: [2], for the event at hand.
    """

    numbers: np.ndarray
    keys: np.ndarray
    symbols: np.ndarray
    whole: np.ndarray
    real: np.ndarray
    ordered: np.ndarray
    front: Elements
    front_keys: np.ndarray
    front_scales: np.ndarray
    back: Elements
    suffix: Elements
    scratch: Elements
    scales: np.ndarray
    total: Elements


ROW = 0  # the next row of the batch
PART = 1  # the next partition of the batch
SHIFT = 2  # the row at which the partition at hand begins
FIRST = 3  # the first event of the ring
END = 4  # one behind the last event of the ring; both only grow
TOP = 5  # how many vectors are in front
OLDEST = 6  # the key of the first event since the cut that begins matches
CONTEXT = 7  # what the past makes of the next event
STEPS = 8  # events until reals are scaled again
NUMBERS = 9

_NEVER = 2**62
_STEPS = 64
_LARGE = 2.0**200
_SCALE = 200


def new_elements(rows: int, shape: Shape) -> Elements:
    """Rows of 0: of no match."""
    return Elements(
        np.zeros((rows, 2 + 4 * shape.whole), np.uint64),
        np.zeros((rows, 1 + shape.real), np.float64),
        np.full((rows, shape.ordered), NOTHING, np.int64),
    )


def new_stacks(states: int, shape: Shape, *, room: int = 64) -> Stacks:
    """Empty stacks; room: a power of two, of events since the cut."""
    states = max(states, 1)
    numbers = np.zeros(NUMBERS, np.int64)
    numbers[OLDEST] = _NEVER
    square = states * states
    return Stacks(
        numbers,
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros((shape.whole, room), np.int64),
        np.zeros((max(shape.real, 0), room), np.float64),
        np.zeros((shape.ordered, room), np.int64),
        new_elements(room * states, shape),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        new_elements(states + square, shape),
        new_elements(square, shape),
        new_elements(square, shape),
        np.zeros(3, np.int64),
        new_elements(2, shape),
    )


def with_longer_window(stacks: Stacks) -> Stacks:
    """The same stacks with twice the room for events."""
    room = len(stacks.keys)
    ids = np.arange(stacks.numbers[FIRST], stacks.numbers[END])
    old, new = ids & (room - 1), ids & (2 * room - 1)

    def ring(values: np.ndarray) -> np.ndarray:
        wider = np.zeros((*values.shape[:-1], 2 * room), values.dtype)
        wider[..., new] = values[..., old]
        return wider

    def twice(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values, np.zeros_like(values)])

    return stacks._replace(
        keys=ring(stacks.keys),
        symbols=ring(stacks.symbols),
        whole=ring(stacks.whole),
        real=ring(stacks.real),
        ordered=ring(stacks.ordered),
        front=Elements(*map(twice, stacks.front)),
        front_keys=twice(stacks.front_keys),
        front_scales=twice(stacks.front_scales),
    )


class Found(NamedTuple):
    """The events at which matches end, emptied by the caller when full.

    rows: int64[room], the rows of the batch; totals: [room], and scales: int64[room], those of the
    reals. used: int64[1].
    """

    rows: np.ndarray
    totals: Elements
    scales: np.ndarray
    used: np.ndarray


def new_found(room: int, shape: Shape) -> Found:
    """Empty buffers for the totals at so many events."""
    return Found(
        np.zeros(room, np.int64),
        new_elements(room, shape),
        np.zeros(room, np.int64),
        np.zeros(1, np.int64),
    )


# --- elements -------------------------------------------------------------------------------------


@njit(**_PART)
def _clear(to, row):  # type: ignore[no-untyped-def]
    for word in range(to.words.shape[1]):
        to.words[row, word] = np.uint64(0)
    for number in range(to.reals.shape[1]):
        to.reals[row, number] = 0.0
    for number in range(to.least.shape[1]):
        to.least[row, number] = NOTHING


@njit(**_PART)
def _set_one(to, row):  # type: ignore[no-untyped-def]
    """One match without events."""
    to.words[row, 1] = np.uint64(1)
    if to.reals.shape[1] > 0:
        to.reals[row, 0] = 1.0


@njit(**_PART)
def _copy(to, row, source, place):  # type: ignore[no-untyped-def]
    for word in range(to.words.shape[1]):
        to.words[row, word] = source.words[place, word]
    for number in range(to.reals.shape[1]):
        to.reals[row, number] = source.reals[place, number]
    for number in range(to.least.shape[1]):
        to.least[row, number] = source.least[place, number]


@njit(**_PART)
def _add_count(words, row, high, low):  # type: ignore[no-untyped-def]
    words[row, 0], words[row, 1] = add_wide(words[row, 0], words[row, 1], high, low)


@njit(**_KERNEL)
def _add_rest(words, reals, least, row, more_words, more_reals, more_least, place):  # type: ignore[no-untyped-def]
    """Add the totals of another element, but for the count."""
    for word in range(2, words.shape[1], 4):
        words[row, word], words[row, word + 1] = add_wrapping(
            words[row, word],
            words[row, word + 1],
            more_words[place, word],
            more_words[place, word + 1],
        )
        words[row, word + 2], words[row, word + 3] = add_wide(
            words[row, word + 2],
            words[row, word + 3],
            more_words[place, word + 2],
            more_words[place, word + 3],
        )
    for number in range(reals.shape[1]):
        reals[row, number] += more_reals[place, number]
    for number in range(least.shape[1]):
        least[row, number] = min(least[row, number], more_least[place, number])


@njit(**_KERNEL)
def _add_times(words, reals, least, row, high, low, real, at, kind, measures):  # type: ignore[no-untyped-def]
    """Add what an event adds to so many matches: (high, low), and `real`."""
    for number in range(measures.whole.shape[0]):
        value = measures.whole[number, at]
        if value == 0 or not measures.whole_belongs[number, kind]:
            continue
        word = 2 + 4 * number
        size = np.uint64(-value) if value < 0 else np.uint64(value)
        top, rest = multiply_wide(high, low, np.uint64(0), size)
        words[row, word + 2], words[row, word + 3] = add_wide(
            words[row, word + 2], words[row, word + 3], top, rest
        )
        top, rest = product_of_words(low, size)
        top += high * size
        if value < 0:
            top, rest = ~top + np.uint64(rest == 0), ~rest + np.uint64(1)
        words[row, word], words[row, word + 1] = add_wrapping(
            words[row, word], words[row, word + 1], top, rest
        )
    for number in range(measures.real.shape[0]):
        if measures.real_belongs[number, kind] and real != 0.0:
            reals[row, 1 + number] += real * measures.real[number, at]
    for number in range(measures.ordered.shape[0]):
        if measures.ordered_belongs[number, kind]:
            least[row, number] = min(least[row, number], measures.ordered[number, at])


@njit(**_KERNEL)
def _multiply_rest(to, row, first, place, second, other):  # type: ignore[no-untyped-def]
    """Add the totals of the matches that are put together of two parts, but for the count."""
    words, one, two = to.words, first.words, second.words
    high, low = one[place, 0], one[place, 1]
    other_high, other_low = two[other, 0], two[other, 1]
    for word in range(2, words.shape[1], 4):
        top, rest = multiply_wrapping(high, low, two[other, word], two[other, word + 1])
        more, most = multiply_wrapping(
            other_high, other_low, one[place, word], one[place, word + 1]
        )
        top, rest = add_wrapping(top, rest, more, most)
        words[row, word], words[row, word + 1] = add_wrapping(
            words[row, word], words[row, word + 1], top, rest
        )
        top, rest = multiply_wide(high, low, two[other, word + 2], two[other, word + 3])
        more, most = multiply_wide(
            other_high, other_low, one[place, word + 2], one[place, word + 3]
        )
        top, rest = add_wide(top, rest, more, most)
        words[row, word + 2], words[row, word + 3] = add_wide(
            words[row, word + 2], words[row, word + 3], top, rest
        )
    if to.reals.shape[1] > 0:
        real, other_real = first.reals[place, 0], second.reals[other, 0]
        to.reals[row, 0] += real * other_real
        for number in range(1, to.reals.shape[1]):
            value, other_value = first.reals[place, number], second.reals[other, number]
            # An infinite sum times a count that is below the scale would be no number.
            if value != 0.0 and other_real != 0.0:
                to.reals[row, number] += value * other_real
            if other_value != 0.0 and real != 0.0:
                to.reals[row, number] += real * other_value
    for number in range(to.least.shape[1]):
        least = min(first.least[place, number], second.least[other, number])
        to.least[row, number] = min(to.least[row, number], least)


@njit(**_KERNEL)
def _scale(reals, first, end, scales, which):  # type: ignore[no-untyped-def]
    """Scale reals down where one is large."""
    large = False
    for row in range(first, end):
        for number in range(reals.shape[1]):
            large |= abs(reals[row, number]) > _LARGE
    if large:
        for row in range(first, end):
            for number in range(reals.shape[1]):
                reals[row, number] *= 1.0 / _LARGE
        scales[which] += _SCALE


@njit(**_KERNEL)
def _power(scale):  # type: ignore[no-untyped-def]
    """2 to the power of −scale; 0 where that is below all numbers."""
    return 0.0 if scale > 1000 else 2.0**-scale


@cache
def parts_of_totals(plain: bool) -> tuple[Callable[..., Any], ...]:
    """The parts of an update for elements that hold a count alone (`plain`), or more."""

    @njit(**_PART)
    def add(to, row, source, place):  # type: ignore[no-untyped-def]
        """Add the matches of another element, in the same scale."""
        _add_count(to.words, row, source.words[place, 0], source.words[place, 1])
        if not plain:
            _add_rest(
                to.words, to.reals, to.least, row, source.words, source.reals, source.least, place
            )

    @njit(**_PART)
    def move(to, row, source, place, at, kind, measures):  # type: ignore[no-untyped-def]
        """Add the matches of an element, each with one event more."""
        high, low = source.words[place, 0], source.words[place, 1]
        if high | low:
            _add_count(to.words, row, high, low)
            if not plain:
                _add_rest(
                    to.words, to.reals, to.least, row,
                    source.words, source.reals, source.least, place,
                )  # fmt: skip
                real = source.reals[place, 0] if source.reals.shape[1] > 0 else 0.0
                _add_times(to.words, to.reals, to.least, row, high, low, real, at, kind, measures)

    @njit(**_PART)
    def begin(to, row, scale, at, kind, measures):  # type: ignore[no-untyped-def]
        """Add a match that begins with an event."""
        one = np.uint64(1)
        _add_count(to.words, row, np.uint64(0), one)
        if not plain:
            real = 0.0
            if to.reals.shape[1] > 0:
                real = _power(scale)
                to.reals[row, 0] += real
            _add_times(
                to.words, to.reals, to.least, row, np.uint64(0), one, real, at, kind, measures
            )

    @njit(**_PART)
    def add_product(to, row, first, place, second, other):  # type: ignore[no-untyped-def]
        """Add the matches that are put together of two parts."""
        high, low = first.words[place, 0], first.words[place, 1]
        other_high, other_low = second.words[other, 0], second.words[other, 1]
        if (high | low) and (other_high | other_low):
            high, low = multiply_wide(high, low, other_high, other_low)
            _add_count(to.words, row, high, low)
            if not plain:
                _multiply_rest(to, row, first, place, second, other)

    return add, move, begin, add_product


# --- the window -----------------------------------------------------------------------------------


@cache
def _cutting(plain: bool) -> Callable[..., None]:
    """The kernel that moves the cut to the event at hand."""
    _, move, _, _ = parts_of_totals(plain)

    def cut(tables, changes, stacks, logged, floor_value):  # type: ignore[no-untyped-def]
        """The front is made of the events since the last cut, from the newest one back."""
        numbers, states = stacks.numbers, tables.skip.shape[0]
        suffix, front, scales, scratch = stacks.suffix, stacks.front, stacks.scales, stacks.scratch
        mask = stacks.keys.shape[0] - 1
        for row in range(states):
            _clear(stacks.back, row)
        for row in range(states * states):
            _clear(suffix, row)
            _clear(stacks.back, states + row)
        for state in range(states):
            _set_one(suffix, state * states + state)
            _set_one(stacks.back, states + state * states + state)
        scales[0] = scales[1] = scales[2] = 0
        top, steps = 0, _STEPS
        event = numbers[END] - 1
        while event >= numbers[FIRST] and stacks.keys[event & mask] >= floor_value:
            at = event & mask
            symbol = stacks.symbols[at]
            if changes.begins[symbol]:
                # All matches that begin with this event or a later one.
                first = top * states
                scale = scales[2]
                stacks.front_keys[top], stacks.front_scales[top] = stacks.keys[at], scale
                for state in range(states):
                    if top == 0:
                        _clear(front, state)
                    else:
                        _copy(front, first + state, front, first + state - states)
                        for number in range(front.reals.shape[1]):
                            front.reals[first + state, number] *= _power(
                                scale - stacks.front_scales[top - 1]
                            )
                for index in range(tables.start_first[symbol], tables.start_first[symbol + 1]):
                    kind, target = tables.start_moves[index, 0], tables.start_moves[index, 2]
                    if target >= 0:
                        for state in range(states):
                            move(
                                front, first + state, suffix, target * states + state,
                                at, kind, logged,
                            )  # fmt: skip
                top += 1
            # suffix = matrix of the event · suffix
            begun, ended = changes.first[symbol], changes.first[symbol + 1]
            for index in range(begun, ended):
                row, skip = changes.states[index] * states, changes.skips[index]
                for other in range(states):
                    if skip >= 0:
                        _copy(scratch, row + other, suffix, skip * states + other)
                    else:
                        _clear(scratch, row + other)
                for step in range(changes.move_first[index], changes.move_first[index + 1]):
                    kind, target = changes.moves[step, 0], changes.moves[step, 2]
                    if target >= 0:
                        for other in range(states):
                            move(
                                scratch, row + other, suffix, target * states + other,
                                at, kind, logged,
                            )  # fmt: skip
            for index in range(begun, ended):
                row = changes.states[index] * states
                for other in range(states):
                    _copy(suffix, row + other, scratch, row + other)
            steps -= 1
            if steps == 0 and not plain:
                steps = _STEPS
                _scale(suffix.reals, 0, states * states, scales, 2)
            event -= 1
        numbers[TOP], numbers[FIRST], numbers[OLDEST] = top, numbers[END], _NEVER

    compiled: Callable[..., None] = njit(**_KERNEL)(cut)
    return compiled


# --- the update -----------------------------------------------------------------------------------

DONE = 0  # the batch is read
FOUND_FULL = 1  # take what was found, then read on
WINDOW_FULL = 2  # the window needs more room, then read on


@cache
def totals_update(plain: bool) -> Callable[..., int]:
    """The kernel (batch, tables, changes, measures, stacks, found) that reads the events of a batch
    from `numbers[ROW]` on; it returns a status. `plain`: only matches are counted."""
    # Longer than 60 lines: calls with all these arrays took longer than an event.
    add, move, begin, add_product = parts_of_totals(plain)
    cut = _cutting(plain)

    def update(batch, tables, changes, measures, stacks, found):  # type: ignore[no-untyped-def]
        symbols, numbers, scales = batch.symbols, stacks.numbers, stacks.scales
        window, size, consumes = tables.settings[0], tables.settings[1], tables.settings[2]
        states, rows, mask = tables.skip.shape[0], symbols.shape[0], stacks.keys.shape[0] - 1
        back, scratch, total = stacks.back, stacks.scratch, stacks.total
        has_contexts = tables.following.shape[0] > 0
        # The measures of past events, as those of the batch.
        logged = Measures(
            stacks.whole,
            measures.whole_belongs,
            stacks.real,
            measures.real_belongs,
            stacks.ordered,
            measures.ordered_belongs,
        )
        row = numbers[ROW]
        while row < rows:
            if row >= batch.part_starts[numbers[PART]]:
                while row >= batch.part_starts[numbers[PART] + 1]:
                    numbers[PART] += 1
                numbers[SHIFT] = batch.part_starts[numbers[PART]]
                numbers[PART] += 1
                _forget(back, states, numbers, scales)
                if batch.contexts.shape[0] > 0:
                    numbers[CONTEXT] = batch.contexts[numbers[PART] - 1]
            symbol = np.int64(symbols[row])
            before = numbers[CONTEXT]
            if has_contexts:
                numbers[CONTEXT] = tables.following[before, symbol]
                symbol = tables.letters[before, symbol]
            if tables.idle[symbol]:
                row += 1
                continue
            key, floor_value = row - numbers[SHIFT], np.int64(-_NEVER)
            if window == EVENTS:
                floor_value = key - size
            elif window == KEYS:
                key = batch.keys[row]
                floor_value = window_floor(key, size)
            elif window == FLOORS:
                key = batch.keys[row]
                floor_value = batch.floors[row]
            if found.used[0] == found.rows.shape[0]:
                numbers[ROW], numbers[CONTEXT] = row, before
                return FOUND_FULL
            if window != NO_WINDOW and numbers[END] - numbers[FIRST] > mask:
                # Events that the window has left behind give way.
                first = numbers[FIRST]
                while first < numbers[END] and stacks.keys[first & mask] < floor_value:
                    first += 1
                numbers[FIRST] = first
                if 2 * (numbers[END] - first) > mask:
                    numbers[ROW], numbers[CONTEXT] = row, before
                    return WINDOW_FULL
            top = numbers[TOP]
            while top > 0 and stacks.front_keys[top - 1] < floor_value:
                top -= 1
            numbers[TOP] = top
            if top == 0 and numbers[OLDEST] < floor_value:
                cut(tables, changes, stacks, logged, floor_value)
                top = numbers[TOP]
            starts = tables.start_first[symbol], tables.start_first[symbol + 1]
            if key < floor_value:  # a window of less than nothing
                starts = starts[0], starts[0]
            begun, ended = changes.first[symbol], changes.first[symbol + 1]

            # The matches that end here.
            fresh = True
            for index in range(starts[0], starts[1]):
                if tables.start_moves[index, 1]:
                    if fresh:
                        _clear(total, 0)
                        _clear(total, 1)
                        fresh = False
                    begin(total, 0, scales[0], row, tables.start_moves[index, 0], measures)
            for index in range(begun, ended):
                state = changes.states[index]
                for step in range(changes.move_first[index], changes.move_first[index + 1]):
                    if changes.moves[step, 1]:
                        if fresh:
                            _clear(total, 0)
                            _clear(total, 1)
                            fresh = False
                        kind = changes.moves[step, 0]
                        move(total, 0, back, state, row, kind, measures)
                        if top > 0:
                            _clear(scratch, 0)
                            for other in range(states):
                                add_product(
                                    scratch, 0, stacks.front, (top - 1) * states + other,
                                    back, states + other * states + state,
                                )  # fmt: skip
                            move(total, 1, scratch, 0, row, kind, measures)
            if not fresh:
                of_front = total.words[1, 0] | total.words[1, 1]
                if of_front | total.words[0, 0] | total.words[0, 1]:
                    scale = scales[0]
                    if not plain and of_front:
                        other = stacks.front_scales[top - 1] + scales[1]
                        for number in range(total.reals.shape[1]):
                            total.reals[0, number] *= _power(max(other - scale, np.int64(0)))
                            total.reals[1, number] *= _power(max(scale - other, np.int64(0)))
                        scale = max(scale, other)
                    add(total, 0, total, 1)
                    place = found.used[0]
                    found.rows[place], found.scales[place] = row, scale
                    _copy(found.totals, place, total, 0)
                    found.used[0] = place + 1
                    if consumes:
                        _forget(back, states, numbers, scales)
                        row += 1
                        continue

            # The vector, and each row of the product, times the matrix of the event.
            vectors = 1 + states if top > 0 else 1
            if begun < ended:
                for vector in range(vectors):
                    first = vector * states
                    for index in range(begun, ended):
                        state = first + changes.states[index]
                        _copy(scratch, index - begun, back, state)
                        if changes.skips[index] != changes.states[index]:
                            _clear(back, state)
                    for index in range(begun, ended):
                        place = index - begun
                        if not scratch.words[place, 0] | scratch.words[place, 1]:
                            continue
                        target = changes.skips[index]
                        if target >= 0 and target != changes.states[index]:
                            add(back, first + target, scratch, place)
                        for step in range(changes.move_first[index], changes.move_first[index + 1]):
                            target = changes.moves[step, 2]
                            if target >= 0:
                                kind = changes.moves[step, 0]
                                move(back, first + target, scratch, place, row, kind, measures)
            for index in range(starts[0], starts[1]):
                target = tables.start_moves[index, 2]
                if target >= 0:
                    kind = tables.start_moves[index, 0]
                    begin(back, target, scales[0], row, kind, measures)
                    numbers[OLDEST] = min(numbers[OLDEST], key)
            if not plain:
                numbers[STEPS] -= 1
                if numbers[STEPS] <= 0:
                    numbers[STEPS] = _STEPS
                    _scale(back.reals, 0, states, scales, 0)
                    _scale(back.reals, states, vectors * states, scales, 1)
            if window != NO_WINDOW:
                at = numbers[END] & mask
                stacks.keys[at], stacks.symbols[at] = key, symbol
                for number in range(measures.whole.shape[0]):
                    stacks.whole[number, at] = measures.whole[number, row]
                for number in range(measures.real.shape[0]):
                    stacks.real[number, at] = measures.real[number, row]
                for number in range(measures.ordered.shape[0]):
                    stacks.ordered[number, at] = measures.ordered[number, row]
                numbers[END] += 1
            row += 1
        numbers[ROW] = row
        return DONE

    compiled: Callable[..., int] = njit(**_KERNEL)(update)
    return compiled


@njit(**_KERNEL)
def _forget(back, states, numbers, scales):  # type: ignore[no-untyped-def]
    """Begin with no partial match."""
    for state in range(states):
        _clear(back, state)
    numbers[FIRST], numbers[TOP], numbers[OLDEST] = numbers[END], 0, _NEVER
    numbers[CONTEXT] = scales[0] = 0
