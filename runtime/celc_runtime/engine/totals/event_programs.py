"""Events as short programs over places: what each symbol does to the contents of the states.

An event is a sparse matrix over the states. A program says the same as steps from place to place.
The order of its steps makes sure that nothing is overwritten before it is read. So an event copies
only what two steps need. `engine/totals/kernel.py` runs these programs over totals of partial
matches: on the vector of the totals in each state, and on products of the matrices of many events.
An entry of a product has a place only if some events lead from the one state to the other. All
other entries are 0, and programs have no steps for them.

All steps over places are of one kind. The processor cannot predict the order of events, so a branch
on the kind of a step would cost more than the step.

Rejected: the matrices themselves, which cost (states)² for each event; a list of moves that reads
one vector and writes another, which copies all states for each event; one program for the vector
and for each row of a product, which also runs over entries that are 0.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from celc_runtime.plan.transitions import TransitionArrays

MOVE, ADD, COPY, CLEAR = 0, 1, 2, 3
"""Kinds of steps over states (step, source, target, kind). MOVE adds the matches of the source,
each with the event added. ADD adds them unchanged. COPY and CLEAR first empty the target."""

SOURCE, TARGET, KEEP, LABELS = (np.uint64(number) for number in range(4))
"""Columns of a step over places. It adds the matches of the source, each with the event added, to
the target. KEEP is 0 if the target is emptied first, else 1. The words from LABELS on say for which
measures the event counts (see `Changes`)."""

PAIRS, END_OF_PAIRS = TARGET, KEEP
"""Columns of a step that ends matches, instead of the last two: a range of `Changes.pairs`."""

PRODUCT, VECTOR, STARTS, BEHIND = (np.uint64(number) for number in range(4))
"""Parts of a symbol's program: steps over the product, over the vector, and those that begin
matches."""

PLACES, LATER_PLACES, GROWTH = 0, 1, 2
"""Places in `Changes.sizes`: the numbers of places of both kinds, and the most bits by which a
number grows at one event."""


class Changes(NamedTuple):
    """What an event changes, as one program for each symbol.

    `forward` programs work on these places: the states of the vector, the *start* (one match
    without events), the *zero* (no match), copies of states, the entries of the product, and copies
    of these. `backward` programs work on: the states of a vector of the matches that begin, the
    zero, the entries of the product of all that follows, and copies of these.

    All numbers are uint64, because machine code reads those without a test for negative ones. All
    arrays have one axis, because machine code then finds an element without the array's shape.
    """

    forward: np.ndarray  # steps over places
    forward_first: np.ndarray  # [symbols × 4], where the parts of a symbol's program begin
    backward: np.ndarray  # steps over places
    backward_first: np.ndarray  # [symbols × 2], where a symbol's program begins and ends
    ends: np.ndarray
    """How a symbol ends matches: steps from a place of the vector, each with a range of `pairs`.
    Bit b of the word LABELS + w of any step says whether the event counts for the measure 64·w + b;
    whole measures come first, then real, then ordered ones."""
    pairs: np.ndarray  # the ways from states of the front: (a state, the place of an entry)
    ends_first: np.ndarray  # [symbols × 2], where a symbol's steps begin and end
    begins: np.ndarray  # bool[symbols], whether a match can begin that does not end at once
    ones: np.ndarray  # [states], the place of the entry from a state to itself
    later_ones: np.ndarray  # [states], likewise for `backward`
    sizes: np.ndarray  # [3], by PLACES, LATER_PLACES and GROWTH


Step = tuple[int, int, int, int]
Ways = dict[int, tuple[int, list[tuple[int, int]]]]
"""For each state that a symbol changes: where its matches go unmarked (−1: nowhere), and its marked
moves (kind, next state)."""


# --- programs over places -------------------------------------------------------------------------


# Long: a list of the programs.
def changes_of(tables: TransitionArrays, labels: np.ndarray) -> Changes:
    """The programs of an automaton.

    labels: uint64[kinds + 1, words], the measures for which an event of each kind counts. The last
    kind stands for no event.
    """
    symbols, states, unmarked = len(tables.idle), len(tables.skip), len(labels) - 1
    ways = [_ways_of(tables, symbol) for symbol in range(symbols)]
    starts = [
        _moves_in(tables.start_moves, tables.start_first, symbol) for symbol in range(symbols)
    ]
    reached = _reached(ways, states)
    reaching = [[state for state in range(states) if to in reached[state]] for to in range(states)]
    start, zero = states, states + 1

    places = _Places([*((_VECTOR, state) for state in range(states)), _START, _ZERO])
    of_vector = [
        [*_in_lane(forward_steps(one, states), range(states), _VECTOR, places, zero, unmarked)]
        for one in ways
    ]
    ones = [places.of(state, state) for state in range(states)]
    parts: list[list[Step]] = []
    for one, vector, some in zip(ways, of_vector, starts, strict=True):
        steps = forward_steps(one, states)
        rows = [_in_lane(steps, reached[row], row, places, zero, unmarked) for row in range(states)]
        begun = [(start, target, 1, kind) for kind, _, target in some if target >= 0]
        parts += [[step for row in rows for step in row], vector, begun]

    later = _Places([*((_VECTOR, state) for state in range(states)), _ZERO])
    later_ones = [later.of(state, state) for state in range(states)]
    backward: list[list[Step]] = []
    for one, some in zip(ways, starts, strict=True):
        # What follows a match that begins here is what follows after the event.
        program = [
            (later.of(column, target), column, 1, kind)
            for kind, _, target in some
            if target >= 0
            for column in reached[target]
        ]
        steps = backward_steps(one, states)
        for column in range(states):
            program += _in_lane(steps, reaching[column], column, later, states, unmarked)
        backward.append(program)

    ends: list[list[Step]] = []
    pairs: list[tuple[int, int]] = []
    for symbol, some in enumerate(starts):
        found = [(start, 0, 0, kind) for kind, accepts, _ in some if accepts]
        for state in range(states):
            moves = _moves_in(tables.moves, tables.move_first, state * symbols + symbol)
            for kind in (kind for kind, accepts, _ in moves if accepts):
                first = len(pairs)
                pairs += [(row, places.of(row, state)) for row in reaching[state]]
                found.append((state, 2 * first, 2 * len(pairs), kind))
        ends.append(found)
    most = max(map(len, [*parts, *backward]), default=0)
    step = LABELS + np.uint64(labels.shape[1])
    return Changes(
        _with_labels(parts, labels),
        step * _borders(parts, 3),
        _with_labels(backward, labels),
        step * _borders(backward, 1),
        _with_labels(ends, labels),
        np.array(pairs, np.uint64).reshape(-1),
        step * _borders(ends, 1),
        np.array([any(target >= 0 for _, _, target in some) for some in starts], np.bool_),
        np.array(ones, np.uint64),
        np.array(later_ones, np.uint64),
        np.array([len(places), len(later), (most + 1).bit_length()], np.uint64),
    )


def _moves_in(moves: np.ndarray, first: np.ndarray, place: int) -> list[list[int]]:
    found: list[list[int]] = moves[first[place] : first[place + 1]].tolist()
    return found


def _ways_of(tables: TransitionArrays, symbol: int) -> Ways:
    found: Ways = {}
    for state, row in enumerate(tables.skip):
        moves = _moves_in(tables.moves, tables.move_first, state * len(tables.idle) + symbol)
        some = [(kind, target) for kind, _, target in moves if target >= 0]
        if some or row[symbol] != state:
            found[state] = int(row[symbol]), some
    return found


def _reached(all_ways: Sequence[Ways], states: int) -> list[list[int]]:
    """For each state the states that can be reached from it, itself included."""
    found = []
    for state in range(states):
        reached, new = {state}, [state]
        while new:
            ways = [one[new[-1]] for one in all_ways if new[-1] in one]
            new.pop()
            for skip, some in ways:
                more = {skip, *(target for _, target in some)} - reached - {-1}
                reached |= more
                new += sorted(more)
        found.append(sorted(reached))
    return found


_VECTOR, _START, _ZERO = -1, (-2, 0), (-2, 1)
"""The lane of the vector, and the two places outside of lanes."""


class _Places:
    """Numbers of places, in the order in which they are first asked for.

    A place is a lane (the vector, or a row or column of a product) and a state or its copy.
    """

    def __init__(self, first: Iterable[tuple[int, int]]) -> None:
        self._numbers = {place: number for number, place in enumerate(first)}

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, lane: int, state: int) -> int:
        """The number of a place."""
        return self._numbers.setdefault((lane, state), len(self._numbers))


def _in_lane(
    steps: Iterable[Step],
    used: Collection[int],
    lane: int,
    places: _Places,
    zero: int,
    unmarked: int,
) -> Iterator[Step]:
    """Steps over states as steps over the places of a lane. Only the states in `used` hold
    matches."""
    holding, cleared = set(used), set[int]()
    for step, source, target, kind in steps:
        if step in (COPY, CLEAR) and target in holding:
            holding.remove(target)
            cleared.add(target)
        if step == CLEAR or source not in holding:
            continue
        keep = int(target in holding)
        kind = kind if step == MOVE else unmarked
        yield places.of(lane, source), places.of(lane, target), keep, kind
        holding.add(target)
        cleared.discard(target)
    for state in sorted(cleared.intersection(used)):
        yield zero, places.of(lane, state), 0, unmarked


def _with_labels(programs: Iterable[Iterable[Step]], labels: np.ndarray) -> np.ndarray:
    """Programs as numbers. Labels replace the kinds."""
    steps = np.array([step for program in programs for step in program], np.uint64).reshape(-1, 4)
    numbers: np.ndarray = np.concatenate(
        [steps[:, :3], labels[steps[:, 3].astype(np.int64)]], axis=1
    )
    return numbers.reshape(-1)


def _borders(programs: Sequence[Sequence[Step]], parts: int) -> np.ndarray:
    """uint64[symbols × (parts + 1)]: where the parts of each symbol's program begin and end."""
    firsts = np.concatenate([[0], np.cumsum([len(program) for program in programs])])
    symbols = len(programs) // parts
    places = parts * np.arange(symbols)[:, None] + np.arange(parts + 1)
    found: np.ndarray = firsts[places].astype(np.uint64).reshape(-1)
    return found


# --- steps over states ----------------------------------------------------------------------------


def _read_after(ways: Ways) -> tuple[list[int], bool]:
    """The states, each after all states that its matches go to; and whether there is a cycle."""
    order: list[int] = []
    open_ones: list[int] = []
    is_circle = False

    def visit(state: int) -> None:
        nonlocal is_circle
        if state in open_ones:
            is_circle = True
        if state in order or state in open_ones:
            return
        open_ones.append(state)
        skip, some = ways[state]
        for target in (skip, *(target for _, target in some)):
            if target != state and target in ways:
                visit(target)
        open_ones.remove(state)
        order.append(state)

    for state in ways:
        visit(state)
    return order, is_circle


def _kept_apart(ways: Ways, *, is_circle: bool) -> set[int]:
    """The states whose old content is needed after they have changed."""
    if is_circle:
        return set(ways)
    found = set()
    for state, (skip, some) in ways.items():
        own = sum(target == state for _, target in some)
        if own > 1 or (own == 1 and skip != state):
            found.add(state)
    return found


def forward_steps(ways: Ways, states: int) -> list[Step]:
    """The steps from what each state holds before the event to what it holds after it.

    The matches of a state are passed on before others are added to it. So nothing is copied, except
    in a cycle: there, the copy of a state has the state's number + `states`.
    """
    order, is_circle = _read_after(ways)
    apart = _kept_apart(ways, is_circle=is_circle)
    steps: list[Step] = []
    if is_circle:
        steps += [(COPY, state, states + state, 0) for state in order]
        steps += [(CLEAR, 0, state, 0) for state in order if ways[state][0] != state]
    for state in order:
        skip, some = ways[state]
        source = states + state if state in apart else state
        if not is_circle and state in apart:
            steps.append((COPY, state, source, 0))
            steps += [(CLEAR, 0, state, 0)] if skip != state else []
        steps += [(MOVE, source, target, kind) for kind, target in some if target != state]
        steps += [(ADD, source, skip, 0)] if skip not in (-1, state) else []
        steps += [(MOVE, source, state, kind) for kind, target in some if target == state]
        if state not in apart and skip != state:
            steps.append((CLEAR, 0, state, 0))
    return steps


def backward_steps(ways: Ways, states: int) -> list[Step]:
    """The steps from what follows each state after the event to what follows it before the event.

    A state is changed before the states that it leads to.
    """
    order, is_circle = _read_after(ways)
    apart = _kept_apart(ways, is_circle=is_circle)
    steps: list[Step] = []
    if is_circle:
        steps += [(COPY, state, states + state, 0) for state in order]
    for state in reversed(order):
        skip, some = ways[state]
        if not is_circle and state in apart:
            steps.append((COPY, state, states + state, 0))
        places = {
            target: (
                states + target if target in apart and (is_circle or target == state) else target
            )
            for target in (state, skip, *(target for _, target in some))
        }
        if skip == -1:
            steps.append((CLEAR, 0, state, 0))
        elif skip != state:
            steps.append((COPY, places[skip], state, 0))
        own = [kind for kind, target in some if target == state]
        steps += [(MOVE, places[state], state, kind) for kind in own]
        others = [way for way in some if way[1] != state]
        steps += [(MOVE, places[target], state, kind) for kind, target in others]
    return steps
