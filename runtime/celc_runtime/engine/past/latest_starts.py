"""The latest start of an absent part, among its matches that fit the window around it.

`!(WITHIN[w](φ))` forbids every match of φ in the window between two events. Among the matches of φ
that end at one event, the one with the latest start is the shortest: if any fits the window, it
does. Among the matches that end at an event or before, the one with the latest start lies behind a
given event if any does. So one number for each event decides the absence in constant time. Finding
it takes a step for each pair of positions of φ (`WatchedPart`).

`!φ FOR d ; ψ` forbids matches of φ that end before the first event of ψ and begin within d of it.
The latest start before each event decides that in the same way.
"""

import numpy as np

from celc_runtime.engine.arena.nodes import ALWAYS
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import WatchedPart

NONE = -1


def positions_of(part: WatchedPart) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The positions of a part in its automaton, as four arrays.

    bool[symbols, positions]: at which positions an event can be. bool[positions, positions]: which
    position follows which. bool[positions]: where the part begins. bool[positions]: where it ends.
    """
    count = len(part.symbols)
    # An event whose conditions contradict each other has no symbol.
    most = max((symbol for symbols in part.symbols for symbol in symbols), default=0)
    of_symbol = np.zeros((most + 1, count), np.bool_)
    for position, symbols in enumerate(part.symbols):
        of_symbol[list(symbols), position] = True
    before = np.zeros((count, count), np.bool_)
    for position, earlier in enumerate(part.before):
        before[position, list(earlier)] = True
    places = np.arange(count)
    return of_symbol, before, np.isin(places, part.begins), np.isin(places, part.ends)


class LatestStarts:
    """The latest starts of one absent part along the events of a run, partition by partition."""

    def __init__(self, part: WatchedPart) -> None:
        count = len(part.symbols)
        self._tables = positions_of(part)
        # For each position, and last for the whole part: the latest start, its key on the window,
        # and its key on the length.
        self._starts = np.full((3, count + 1), NONE, np.int64)

    def of(
        self,
        entry: int,
        symbols: np.ndarray,
        window: tuple[np.ndarray, np.ndarray] | None,
        length: tuple[np.ndarray, np.ndarray] | None,
        anew: np.ndarray,
    ) -> np.ndarray:
        """int64[events]: the latest start (an entry) of a match so far; `NONE`: there is none.

        With a length, bool[events] instead: whether a match has ended before the event and began
        within the length. entry: the number of the first event. symbols: int64[events]. window,
        length: two int64[events] each, the key and the floor of each event; None: there is no such
        limit. anew: bool[events], where a partition begins. The next call continues behind these
        events.
        """
        rows = len(symbols)
        anywhere = np.zeros(rows, np.int64), np.full(rows, ALWAYS)
        keys, floors = window or anywhere
        length_keys, length_floors = length or anywhere
        latest, preceded = np.empty(rows, np.int64), np.empty(rows, np.bool_)
        limits = (keys, floors, length_keys, length_floors)
        _follow(entry, symbols, *limits, anew, *self._tables, self._starts, latest, preceded)
        return latest if length is None else preceded


@njit(nogil=True, cache=True)
def _follow(  # type: ignore[no-untyped-def]
    entry,
    symbols,
    keys,
    floors,
    length_keys,
    length_floors,
    anew,
    of_symbol,
    before,
    begins,
    ends,
    starts,
    latest,
    preceded,
):
    """Write `latest` and `preceded`, and bring `starts` up to date.

    The four tables are those of `positions_of`. An event at a position takes the latest start among
    the positions before, or is a start itself.
    """
    count = begins.shape[0]
    new = np.empty((3, count), np.int64)
    for row in range(symbols.shape[0]):
        if anew[row]:
            starts[:] = NONE
        preceded[row] = starts[0, count] != NONE and starts[2, count] >= length_floors[row]
        symbol = symbols[row]
        if symbol < of_symbol.shape[0]:
            new[:] = NONE
            for position in range(count):
                if not of_symbol[symbol, position]:
                    continue
                if begins[position]:
                    new[0, position], new[1, position] = entry + row, keys[row]
                    new[2, position] = length_keys[row]
                    continue  # an earlier start is not later than this one
                for earlier in range(count):
                    if before[position, earlier] and starts[0, earlier] > new[0, position]:
                        for part in range(3):
                            new[part, position] = starts[part, earlier]
            for position in range(count):
                start = new[0, position]
                fits = ends[position] and start != NONE and new[1, position] >= floors[row]
                if start > starts[0, position]:
                    for part in range(3):
                        starts[part, position] = new[part, position]
                if fits and start > starts[0, count]:
                    for part in range(3):
                        starts[part, count] = new[part, position]
        latest[row] = starts[0, count]
