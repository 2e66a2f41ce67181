"""Totals of all matches that end at an event, without listing any of them.

The automaton is I/O-deterministic, so each match is one run, and the number of matches is the
number of runs. An event is a matrix over the states. Its entry (p, q) counts the moves from p to q,
marked or not. The matches that end at an event are a sum of products of these matrices, one product
for each event at which matches begin. The entries are not numbers but elements of a commutative
semiring. An element has the count of a set of partial matches, and for each function its total. If
an event adds w to a sum, it maps (n, s) to (n, s + n·w). Two parts (n, s) and (m, t) together give
(n·m, n·t + m·s), as in automatic differentiation.

Without a window, one vector is enough: the totals of the partial matches in each state. With a
window, the matches that begin before it must go. Subtraction cannot do that, because MIN has no
inverse and rounded sums lose digits. So the window is kept on two stacks, as for every associative
operation (a queue made of two stacks; for sliding windows Tangwongsan, Hirzel and Schneider, VLDB
2015). The events up to a *cut* are the front. For each event of the front that begins matches,
`front` holds a vector at the time of the cut: the matches that begin there or later. The vector
`back` holds the matches that begin after the cut. `since` is the product of all matrices after the
cut. The totals at an event are front · since + back. When the window has passed the whole front,
the cut moves to the present event, and one pass over the events since the last cut, from the newest
back, makes a new front. So each event is read twice. It changes few rows of a matrix, and costs
O(moves × states) for any window.

Rejected: a sum over the nodes of the arena below each event that ends matches. That costs the same
where the window has few nodes, and grows with the window where it has many.

Long: mostly one kernel.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.engine.arena.batch import window_floor
from celc_runtime.engine.totals.bounded_elements import (
    bounded_numbers,
    new_bounded_elements,
    parts_of_bounded_totals,
    reals_without_bounds,
)
from celc_runtime.engine.totals.event_programs import (
    BEHIND,
    END_OF_PAIRS,
    GROWTH,
    KEEP,
    LABELS,
    LATER_PLACES,
    PAIRS,
    PLACES,
    PRODUCT,
    SOURCE,
    STARTS,
    TARGET,
    VECTOR,
    Changes,
)
from celc_runtime.engine.totals.total_elements import (
    KERNEL,
    Elements,
    Measures,
    Shape,
    new_elements,
    parts_of_totals,
    steps_between,
)
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.transitions import EVENTS, FLOORS, KEYS, NO_WINDOW


class Stacks(NamedTuple):
    """The window of one partition on two stacks, and the numbers of a run."""

    numbers: np.ndarray  # int64[NUMBERS]
    keys: np.ndarray  # int64[room], a ring: the events since the cut, as the window measures them
    symbols: np.ndarray  # int64[room], likewise: their symbols
    whole: np.ndarray  # what they add, as in `Measures`; so are the next three
    known: np.ndarray
    real: np.ndarray
    ordered: np.ndarray
    front: Elements
    """[room × states], of the events up to the cut that begin matches; oldest on top."""
    front_keys: np.ndarray  # int64[room], the keys of these events
    back: Elements  # [places], the matches that begin since the cut, then the product since the cut
    later: Elements  # [later places], what follows after an event
    total: Elements  # [2], of the present event


ROW = 0  # the next row of the batch
PART = 1  # the next partition of the batch
SHIFT = 2  # the row at which the present partition begins
FIRST = 3  # the first event of the ring
END = 4  # one behind the last event of the ring; FIRST and END only grow
TOP = 5  # how many vectors are in front
OLDEST = 6  # the key of the first event since the cut that begins matches
CONTEXT = 7  # the context of the next event
STEPS = 8  # events until real numbers are settled again
UNTIL = 9  # the row before which elements stay without bounds
NUMBERS = 10

_NEVER = 2**62


def new_stacks(changes: Changes, shape: Shape, *, room: int = 64) -> Stacks:
    """Empty stacks of bounded elements. room: events since the cut, a power of two."""
    numbers = np.zeros(NUMBERS, np.int64)
    numbers[OLDEST] = _NEVER
    return Stacks(
        numbers,
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room * shape.whole, np.int64),
        np.zeros(room * shape.known_words, np.uint64),
        np.zeros(room * 2 * max(shape.real, 0), np.float64),
        np.zeros(room * shape.ordered, np.int64),
        *_no_matches(changes, shape, room),
    )


def _no_matches(changes: Changes, shape: Shape, room: int) -> tuple[Any, ...]:
    """The last fields of stacks without a partial match, as bounded elements."""
    states = len(changes.ones)
    back = new_bounded_elements(int(changes.sizes[PLACES]), shape)
    back.words[states * shape.words + 1] = 1
    back.reals[states * bounded_numbers(shape) :][:1] = 1.0
    return (
        new_bounded_elements(room * states, shape),
        np.zeros(room, np.int64),
        back,
        new_bounded_elements(int(changes.sizes[LATER_PLACES]), shape),
        new_bounded_elements(2, shape),
    )


def stacks_without_bounds(stacks: Stacks, changes: Changes, shape: Shape) -> Stacks:
    """The same stacks as elements without bounds."""
    states, front = len(changes.ones), stacks.front
    used = int(stacks.numbers[TOP]) * states
    length = 2 * shape.numbers
    reals = np.empty(len(stacks.keys) * states * length)
    reals[: used * length] = reals_without_bounds(front.reals, shape, used)
    back = stacks.back
    places = int(changes.sizes[PLACES])
    stacks.numbers[STEPS] = 0
    return stacks._replace(
        front=front._replace(reals=reals),
        back=back._replace(reals=reals_without_bounds(back.reals, shape, places)),
        later=new_elements(int(changes.sizes[LATER_PLACES]), shape),
        total=new_elements(2, shape),
    )


def stacks_with_bounds(stacks: Stacks, changes: Changes, shape: Shape) -> Stacks:
    """The same stacks as bounded elements. The next step must be a cut or a new partition."""
    front, front_keys, back, later, total = _no_matches(changes, shape, len(stacks.keys))
    return stacks._replace(front=front, front_keys=front_keys, back=back, later=later, total=total)


def measured_in_window(stacks: Stacks) -> tuple[np.ndarray, np.ndarray]:
    """What the events since the cut add to whole and to real sums, as in `Measures`."""
    room = len(stacks.keys)
    places = np.arange(stacks.numbers[FIRST], stacks.numbers[END]) & (room - 1)
    return (
        stacks.whole.reshape(room, -1)[places].reshape(-1),
        stacks.real.reshape(room, -1)[places].reshape(-1),
    )


def with_longer_window(stacks: Stacks) -> Stacks:
    room, used = len(stacks.keys), int(stacks.numbers[TOP])
    ids = np.arange(stacks.numbers[FIRST], stacks.numbers[END])
    old, new = ids & (room - 1), ids & (2 * room - 1)

    # Memory that nothing is written to costs nothing. So unused rows are not copied.
    def ring(values: np.ndarray) -> np.ndarray:
        wider = np.empty((2 * room, len(values) // room), values.dtype)
        wider[new] = values.reshape(room, -1)[old]
        return wider.reshape(-1)

    def twice(values: np.ndarray) -> np.ndarray:
        wider = np.empty(2 * len(values), values.dtype)
        kept = used * (len(values) // room)
        wider[:kept] = values[:kept]
        return wider

    return stacks._replace(
        keys=ring(stacks.keys),
        symbols=ring(stacks.symbols),
        whole=ring(stacks.whole),
        known=ring(stacks.known),
        real=ring(stacks.real),
        ordered=ring(stacks.ordered),
        front=Elements(*map(twice, stacks.front)),
        front_keys=twice(stacks.front_keys),
    )


class Found(NamedTuple):
    """The totals of events at which matches end. The caller empties it when it is full."""

    rows: np.ndarray  # int64[room], the rows of the batch
    totals: Elements  # [room]
    used: np.ndarray  # int64[1]


def new_found(room: int, shape: Shape, *, bounded: bool) -> Found:
    return Found(
        np.zeros(room, np.int64),
        new_bounded_elements(room, shape) if bounded else new_elements(room, shape),
        np.zeros(1, np.int64),
    )


# --- the window -----------------------------------------------------------------------------------


def _parts_of(shape: Shape, bounded: bool) -> tuple[Callable[..., Any], ...]:
    return parts_of_bounded_totals(*shape) if bounded else parts_of_totals(*shape)


@cache
def _cutting(shape: Shape, bounded: bool) -> Callable[..., bool]:
    """The kernel that moves the cut to the present event.

    It returns False, and leaves the cut where it was, if a number leaves its bounds.
    """
    clear, set_one, copy, move, _, settle = _parts_of(shape, bounded)
    step_length = LABELS + np.uint64(shape.label_words)
    settles = not bounded and shape.numbers > 0

    def cut(changes, stacks, logged, floor_value):  # type: ignore[no-untyped-def]
        """Make the front of the events since the last cut, from the newest back."""
        numbers, back, later = stacks.numbers, stacks.back, stacks.later
        states, places = changes.ones.shape[0], changes.sizes[PLACES]
        later_places = changes.sizes[LATER_PLACES]
        front, steps = stacks.front, steps_between(changes.sizes[GROWTH])
        limit = _LIMIT >> changes.sizes[GROWTH]
        mask = stacks.keys.shape[0] - 1
        for place in range(places):
            clear(back, place)
        for place in range(later_places):
            clear(later, place)
        for state in range(states):
            set_one(back, changes.ones[state])
            set_one(later, changes.later_ones[state])
        set_one(back, states)
        top, count = np.int64(0), steps
        event = numbers[END] - 1
        while event >= numbers[FIRST] and stacks.keys[event & mask] >= floor_value:
            at = event & mask
            symbol = np.uint64(stacks.symbols[at])
            seen = _NONE
            step = changes.backward_first[_2 * symbol]
            end = changes.backward_first[_2 * symbol + _1]
            while step < end:
                source, target = changes.backward[step + SOURCE], changes.backward[step + TARGET]
                keep, labels = changes.backward[step + KEEP], step + LABELS
                step += step_length
                seen |= move(
                    later, target, later, source, keep, changes.backward, labels, at, logged
                )
            if seen >= limit:
                return False
            # All matches that begin at this event (if it begins any) or later.
            stacks.front_keys[top] = stacks.keys[at]
            for state in range(states):
                copy(front, top * states + state, later, state)
            top += np.int64(changes.begins[symbol])
            if settles:
                count -= 1
                if count == 0:
                    count = steps
                    settle(later, 0, later_places)
            event -= 1
        numbers[TOP], numbers[FIRST], numbers[OLDEST] = top, numbers[END], _NEVER
        return True

    compiled: Callable[..., bool] = njit(**KERNEL)(cut)
    return compiled


# --- the update -----------------------------------------------------------------------------------

DONE = 0  # the batch is read
FOUND_FULL = 1  # empty `found`, then read on
WINDOW_FULL = 2  # enlarge the window, then read on
OUTGROWN = 3  # empty `found`, then read on with elements without bounds
WITHIN_BOUNDS = 4  # empty `found`, then try bounded elements

_NONE = np.uint64(0)
_1, _2, _3, _4 = (np.uint64(number) for number in (1, 2, 3, 4))
_LIMIT = np.uint64(1 << 62)
"""High words below this have room. Before an event they must be smaller still, by the bits that a
number can grow at the event."""


@cache
def totals_update(shape: Shape, bounded: bool) -> Callable[..., int]:
    """The kernel (batch, tables, changes, measures, stacks, found) → status, for one shape.

    It reads the events of a batch from `numbers[ROW]` on.
    """
    # Longer than 60 lines: a call with all these arrays took longer than an event.
    clear, set_one, copy, move, add_product, settle = _parts_of(shape, bounded)
    cut = _cutting(shape, bounded)
    whole, real, ordered, known_words = shape.whole, shape.real, shape.ordered, shape.known_words
    step_length = LABELS + np.uint64(shape.label_words)
    settles = not bounded and shape.numbers > 0

    def update(batch, tables, changes, measures, stacks, found):  # type: ignore[no-untyped-def]
        symbols, numbers = batch.symbols, stacks.numbers
        window, size, consumes = tables.settings[0], tables.settings[1], tables.settings[2]
        states, rows, mask = changes.ones.shape[0], symbols.shape[0], stacks.keys.shape[0] - 1
        back, total = stacks.back, stacks.total
        places, steps = changes.sizes[PLACES], steps_between(changes.sizes[GROWTH])
        limit = _LIMIT >> changes.sizes[GROWTH]
        start = np.uint64(states)
        has_contexts = tables.following.shape[0] > 0
        # The measures of past events, in the form of those of the batch.
        logged = Measures(stacks.whole, stacks.known, stacks.real, stacks.ordered)
        row = numbers[ROW]
        while row < rows:
            if row >= batch.part_starts[numbers[PART]]:
                if not bounded and row >= numbers[UNTIL]:
                    numbers[ROW] = row
                    return WITHIN_BOUNDS
                while row >= batch.part_starts[numbers[PART] + 1]:
                    numbers[PART] += 1
                numbers[SHIFT] = batch.part_starts[numbers[PART]]
                numbers[PART] += 1
                for state in range(states):
                    clear(back, state)
                _forget(numbers)
                clear(back, states)
                set_one(back, states)
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
                # Remove the events that the window has passed.
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
                if not bounded and row >= numbers[UNTIL]:
                    numbers[ROW], numbers[CONTEXT] = row, before
                    return WITHIN_BOUNDS
                if not cut(changes, stacks, logged, floor_value):
                    numbers[ROW], numbers[CONTEXT] = row, before
                    return OUTGROWN
                top = numbers[TOP]
            can_begin = key >= floor_value  # False in a window of negative length
            place = np.uint64(symbol)
            end, last = changes.ends_first[_2 * place], changes.ends_first[_2 * place + _1]
            if end < last:
                # The matches that end here: those that begin after the cut, and those of the front.
                seen = some = _NONE
                while end < last:
                    source, labels = changes.ends[end + SOURCE], end + LABELS
                    pair = changes.ends[end + PAIRS]
                    last_pair = changes.ends[end + END_OF_PAIRS]
                    end += step_length
                    if source != start or can_begin:
                        seen |= move(
                            total, 0, back, source, some, changes.ends, labels, row, measures
                        )
                        some = _1
                    if top > 0 and source != start:
                        more = _NONE
                        while pair < last_pair:
                            of_front = np.uint64((top - 1) * states) + changes.pairs[pair]
                            entry = changes.pairs[pair + _1]
                            pair += _2
                            seen |= add_product(total, 1, more, stacks.front, of_front, back, entry)
                            more = _1
                        if more == _1:
                            seen |= move(
                                total, 0, total, 1, some, changes.ends, labels, row, measures
                            )
                            some = _1
                if some == _NONE:
                    clear(total, 0)
                if seen >= limit:
                    numbers[ROW], numbers[CONTEXT] = row, before
                    return OUTGROWN
                if total.words[0] | total.words[1]:
                    used = found.used[0]
                    found.rows[used] = row
                    copy(found.totals, used, total, 0)
                    found.used[0] = used + 1
                    if consumes:
                        for state in range(states):
                            clear(back, state)
                        _forget(numbers)
                        clear(back, states)
                        set_one(back, states)
                        row += 1
                        continue
            # Multiply the product and the vector by the event's matrix; add matches that begin.
            step = changes.forward_first[_4 * place + (PRODUCT if top > 0 else VECTOR)]
            end = changes.forward_first[_4 * place + (BEHIND if can_begin else STARTS)]
            seen = _NONE
            while step < end:
                source, target = changes.forward[step + SOURCE], changes.forward[step + TARGET]
                keep, labels = changes.forward[step + KEEP], step + LABELS
                step += step_length
                seen |= move(
                    back, target, back, source, keep, changes.forward, labels, row, measures
                )
            # No branch: nothing predicts which events begin matches.
            begun = key if can_begin & changes.begins[symbol] else np.int64(_NEVER)
            numbers[OLDEST] = min(numbers[OLDEST], begun)
            if settles:
                numbers[STEPS] -= 1
                if numbers[STEPS] <= 0:
                    numbers[STEPS] = steps
                    settle(back, np.uint64(0), places)
            if window != NO_WINDOW:
                at = numbers[END] & mask
                stacks.keys[at], stacks.symbols[at] = key, symbol
                for number in range(whole):
                    stacks.whole[at * whole + number] = measures.whole[row * whole + number]
                for word in range(known_words):
                    stacks.known[at * known_words + word] = measures.known[row * known_words + word]
                for number in range(2 * real):
                    stacks.real[2 * real * at + number] = measures.real[2 * real * row + number]
                for number in range(ordered):
                    stacks.ordered[at * ordered + number] = measures.ordered[row * ordered + number]
                numbers[END] += 1
            row += 1
            if seen >= limit:
                numbers[ROW] = row
                return OUTGROWN
        numbers[ROW] = row
        return DONE

    compiled: Callable[..., int] = njit(**KERNEL)(update)
    return compiled


@njit(**KERNEL)
def _forget(numbers):  # type: ignore[no-untyped-def]
    """Start again without partial matches."""
    numbers[FIRST], numbers[TOP], numbers[OLDEST] = numbers[END], 0, _NEVER
    numbers[CONTEXT] = 0
