"""The working memory of a search: the walk through partial matches where conditions can fail.

What a search notes for an event at which matches end is good for that event only. So a number of
the search (`numbers[NUMBER]`) stands beside every note, and nothing is cleared between two events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NUMBER = 0  # how many events have been searched so far, the one at hand included
OPEN = 1  # how many events of the path have been entered, and not been left
BARREN = 2  # the first event of the path behind which no match has been found
FAILURES = 3  # how many failures of this event are noted
CONSUMED = 4  # the last entry that a match has consumed
READY = 5  # of matches collected for an event, the next one to hand out; −1: not all are known
NUMBERS = 6


class Search(NamedTuple):
    """Arrays of one run; depth: room for so many events of a path.

    numbers: int64[NUMBERS]. state: int64[states, depth], for the generated conditions. entered:
    int64[depth], the nodes of the path. failures: int64[slots, fails_by + 2], see `failures`. sums:
    float64[2 * bounds, depth], the sums of the path up to an event, and of absolute values. best:
    float64[rows, 2 * bounds + 1], and known: int64[rows], for each row of the arena, see
    `sum_bounds`; waiting: int64[rows]. tops: int64[depth, room], the nodes that can be next
    behind an event of a path; counts: int64[depth], how many; begins: bool[depth], whether a
    match can begin with the event.
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


_FIRST_SLOTS = 64
_FIRST_TOPS = 4


def new_search(states: int, fails_by: int, bounds: int) -> Search:
    """Memory for conditions that keep `states` numbers with an event, of which `fails_by` decide
    about the matches below it, and `bounds` sums."""
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
        )
    if len(search.sums) and len(search.known) != rows:
        search = search._replace(
            best=np.zeros((rows, search.best.shape[1]), np.float64),
            known=np.zeros(rows, np.int64),
            waiting=np.zeros(rows, np.int64),
        )
    return search


def with_more_slots(search: Search) -> Search:
    """Twice the room for failures. Those noted are forgotten, which costs at most as much again as
    finding them did."""
    search.numbers[FAILURES] = 0
    slots, width = search.failures.shape
    return search._replace(failures=np.zeros((2 * slots, width), np.int64))


def with_more_tops(search: Search) -> Search:
    """Twice the room for the nodes that can be next."""
    depth, room = search.tops.shape
    return search._replace(tops=np.zeros((depth, 2 * room), np.int64))


def _wider(rows: np.ndarray, depth: int) -> np.ndarray:
    wider = np.zeros((len(rows), depth), rows.dtype)
    wider[:, : rows.shape[1]] = rows
    return wider
