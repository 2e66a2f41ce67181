"""The working memory of a search: the walk through partial matches where conditions can fail.

The notes of a search are valid for one last event only. So the number of the search
(`numbers[NUMBER]`) stands beside every note, and nothing is cleared between two events.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NUMBER = 0  # the number of events searched so far, the present one included
OPEN = 1  # how many events of the path have been entered and not left
BARREN = 2  # the first event of the path below which no match was found
FAILURES = 3  # how many failures of this event are noted
CONSUMED = 4  # the last entry that a match has consumed
READY = 5  # of the matches collected for an event, the next to be returned; −1: not all are known
INSTANT = 6  # of the event for which matches are collected, if those of one instant are together
NUMBERS = 7

# What is kept about different values with each event of a path (`varieties`).
COUNT = 0  # how many different values there are
NEWEST = 1  # the place of the newest event whose value no event after it has
ASKED = 2  # whether a condition counts the values of a match with this event
KEPT = 3

MOST_KEPT = 256  # different values kept for each node


class Search(NamedTuple):
    """Arrays of one run. `depth` is the room for events of a path."""

    numbers: np.ndarray  # int64[NUMBERS]
    state: np.ndarray  # int64[states, depth], for the generated conditions
    entered: np.ndarray  # int64[depth], the nodes of the path
    failures: np.ndarray  # int64[slots, fails_by + 2], see `failures`
    sums: np.ndarray
    """float64[2 * bounds, depth], sums up to an event, and those of absolute values."""
    best: np.ndarray  # float64[rows, 2 * bounds + 1], for each row of the arena, see `sum_bounds`
    known: np.ndarray  # int64[rows], likewise
    waiting: np.ndarray  # int64[rows], the stack of `visits_below`
    tops: np.ndarray  # int64[depth, room], the nodes that can follow an event of the path
    counts: np.ndarray  # int64[depth], their number
    begins: np.ndarray  # bool[depth], whether a match can begin with the event
    bars: np.ndarray  # int64[depth, room], nodes that need not be tried after an event of the path
    barred: np.ndarray  # int64[depth], their number
    fruitful: np.ndarray  # bool[depth], whether the path before this event has led to a match
    varied: np.ndarray  # int64[varieties, KEPT, depth], see `varieties`; so are the next five
    held: np.ndarray  # int64[rows], the node whose values and starts are known
    latest: np.ndarray  # int64[rows]
    values: np.ndarray  # int64[varieties, rows + 1, kept]
    starts: np.ndarray  # int64[varieties, rows + 1, kept]
    sizes: np.ndarray  # int64[varieties, rows + 1]
    answered: np.ndarray
    """int64[ANSWERED or 0], starts whose first match is known (for FIRST), each at the index of its
    last bits. A later start may have replaced it."""


class Given(NamedTuple):
    """What a walk with conditions needs besides the arguments of one without."""

    past: tuple[np.ndarray, ...]  # for the generated functions (see `plan.strategy.Checked`)
    first: int  # likewise
    most_work: int  # the most steps of a listing
    consumes: bool  # whether matches consume their events
    search: Search


ANSWERED = 1 << 16

_FIRST_SLOTS = 64
_FIRST_TOPS = 4


def new_search(states: int, fails_by: int, bounds: int, leasts: Sequence[int] = ()) -> Search:
    """Memory for the conditions of a query.

    states: numbers kept with each event. fails_by: how many of these decide about the matches
    below. bounds: sums that are bounded. leasts: for each COUNT(DISTINCT), the number of values it
    asks for.
    """
    kept = min(max(leasts, default=0), MOST_KEPT)
    numbers = np.zeros(NUMBERS, np.int64)
    numbers[CONSUMED] = numbers[READY] = -1
    return Search(
        numbers,
        np.zeros((states, 0), np.int64),
        np.zeros(0, np.int64),
        np.zeros((_FIRST_SLOTS, fails_by + 2), np.int64),
        np.zeros((2 * bounds, 0), np.float64),
        np.zeros((0, 2 * bounds + 1), np.float64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((0, _FIRST_TOPS), np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.bool_),
        np.zeros((0, _FIRST_TOPS), np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.bool_),
        np.zeros((len(leasts), KEPT, 0), np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((len(leasts), 1, kept), np.int64),
        np.zeros((len(leasts), 1, kept), np.int64),
        np.zeros((len(leasts), 1), np.int64),
        np.zeros(0, np.int64),
    )


def fitted(search: Search, depth: int, rows: int) -> Search:
    """The same search for paths of `depth` events and an arena of `rows` rows. Notes on the path
    stay."""
    if len(search.entered) < depth:
        search = search._replace(
            state=_wider(search.state, depth),
            entered=_wider(search.entered[None], depth)[0],
            sums=_wider(search.sums, depth),
            tops=np.zeros((depth, search.tops.shape[1]), np.int64),
            counts=np.zeros(depth, np.int64),
            begins=np.zeros(depth, np.bool_),
            bars=np.zeros((depth, search.bars.shape[1]), np.int64),
            barred=np.zeros(depth, np.int64),
            fruitful=np.zeros(depth, np.bool_),
            varied=_wider(search.varied, depth),
        )
    if len(search.sums) and len(search.known) != rows:
        search = search._replace(
            best=np.zeros((rows, search.best.shape[1]), np.float64),
            known=np.zeros(rows, np.int64),
            waiting=np.zeros(rows, np.int64),
        )
    if len(search.varied) and len(search.held) != rows:
        bounds, _, kept = search.values.shape
        search = search._replace(
            waiting=np.zeros(rows, np.int64),
            held=np.zeros(rows, np.int64),
            latest=np.zeros(rows, np.int64),
            values=np.zeros((bounds, rows + 1, kept), np.int64),
            starts=np.zeros((bounds, rows + 1, kept), np.int64),
            sizes=np.zeros((bounds, rows + 1), np.int64),
        )
    return search


def that_notes_starts(search: Search) -> Search:
    """The same search, which lists the matches of a start only up to their first end."""
    return search._replace(answered=np.full(ANSWERED, -1, np.int64))


def with_more_slots(search: Search) -> Search:
    """Twice the room for failures. The noted ones are dropped; finding them again costs as much."""
    search.numbers[FAILURES] = 0
    slots, width = search.failures.shape
    return search._replace(failures=np.zeros((2 * slots, width), np.int64))


def with_more_tops(search: Search) -> Search:
    depth, room = search.tops.shape
    more = np.zeros((depth, 2 * room), np.int64)
    return search._replace(tops=more, bars=more.copy())


def _wider(rows: np.ndarray, depth: int) -> np.ndarray:
    wider = np.zeros((*rows.shape[:-1], depth), rows.dtype)
    wider[..., : rows.shape[-1]] = rows
    return wider
