"""The working memory of a search: the walk through partial matches where conditions can fail.

What a search notes for an event at which matches end is good for that event only. So a number of
the search (`numbers[NUMBER]`) stands beside every note, and nothing is cleared between two events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NUMBER = 0  # how many events have been searched so far, the one at hand included
OPEN = 1  # how many events of the path have been entered, and not been left
BARREN = 2  # the first event of the path behind which no match has been found
FAILURES = 3  # how many failures of this event are noted
CONSUMED = 4  # the last entry that a match has consumed
READY = 5  # of matches collected for an event, the next one to hand out; −1: not all are known
NUMBERS = 6

# What is kept of different values with each event of a path (`varieties`).
COUNT = 0  # how many there are
NEWEST = 1  # the place of the newest event with a value that no event behind it has
ASKED = 2  # whether the number of values is asked of a match with this event
KEPT = 3

MOST_KEPT = 256
"""The most different values that are kept of a node."""


class Search(NamedTuple):
    """Arrays of one run; depth: room for so many events of a path.

    numbers: int64[NUMBERS]. state: int64[states, depth], for the generated conditions. entered:
    int64[depth], the nodes of the path. failures: int64[slots, fails_by + 2], see `failures`. sums:
    float64[2 * bounds, depth], the sums of the path up to an event, and of absolute values. best:
    float64[rows, 2 * bounds + 1], and known: int64[rows], for each row of the arena, see
    `sum_bounds`; waiting: int64[rows]. tops: int64[depth, room], the nodes that can be next
    behind an event of a path; counts: int64[depth], how many; begins: bool[depth], whether a
    match can begin with the event. bars: int64[depth, room], nodes that need not be tried behind an
    event of a path, and barred: int64[depth], how many; fruitful: bool[depth], whether some match
    has been found with the events of the path before this one. varied: int64[varieties, KEPT,
    depth]. held: int64[rows], the node of which values and starts are known in a row of the arena:
    values, starts: int64[varieties, rows + 1, kept], sizes: int64[varieties, rows + 1], latest:
    int64[rows], see `varieties`. answered: int64[ANSWERED or 0], starts whose first match is known
    (FIRST), each in the place of its last bits; a later one may have taken the place.
    """

    numbers: np.ndarray
    state: np.ndarray
    entered: np.ndarray
    failures: np.ndarray
    sums: np.ndarray
    best: np.ndarray
    known: np.ndarray
    waiting: np.ndarray
    tops: np.ndarray
    counts: np.ndarray
    begins: np.ndarray
    bars: np.ndarray
    barred: np.ndarray
    fruitful: np.ndarray
    varied: np.ndarray
    held: np.ndarray
    latest: np.ndarray
    values: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    answered: np.ndarray


class Given(NamedTuple):
    """What a walk with conditions takes beside those without.

    past, first: for the generated functions (see `plan.strategy.Checked`). most_work: the steps of
    a listing at most. consumes: whether matches consume their events.
    """

    past: tuple[np.ndarray, ...]
    first: int
    most_work: int
    consumes: bool
    search: Search


ANSWERED = 1 << 16

_FIRST_SLOTS = 64
_FIRST_TOPS = 4


def new_search(states: int, fails_by: int, bounds: int, leasts: Sequence[int] = ()) -> Search:
    """Memory for conditions that keep `states` numbers with an event, of which `fails_by` decide
    about the matches below it, `bounds` sums, and `leasts` numbers of different values."""
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
    """The same search for paths of `depth` events, in an arena of `rows` rows; what is noted of the
    path stays."""
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
    """The same search, which lists matches of starts only up to the first end of each."""
    return search._replace(answered=np.full(ANSWERED, -1, np.int64))


def with_more_slots(search: Search) -> Search:
    """Twice the room for failures. Those noted are forgotten, which costs at most as much again as
    finding them did."""
    search.numbers[FAILURES] = 0
    slots, width = search.failures.shape
    return search._replace(failures=np.zeros((2 * slots, width), np.int64))


def with_more_tops(search: Search) -> Search:
    """Twice the room for the nodes that can be next."""
    depth, room = search.tops.shape
    more = np.zeros((depth, 2 * room), np.int64)
    return search._replace(tops=more, bars=more.copy())


def _wider(rows: np.ndarray, depth: int) -> np.ndarray:
    wider = np.zeros((*rows.shape[:-1], depth), rows.dtype)
    wider[..., : rows.shape[-1]] = rows
    return wider
