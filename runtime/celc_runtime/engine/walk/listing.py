"""Buffers for matches, and listing all matches that the arena holds."""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import (
    ALWAYS,
    CHOOSE,
    DEFERS,
    FIRED,
    LISTED,
    PADDING,
    STACK_SIZE,
)
from celc_runtime.engine.walk.walk import listing_kernel
from celc_runtime.jit.kernels import njit

_list = listing_kernel(None)


class Kinds(NamedTuple):
    """The kinds of cells. A kind is a label set, and whether a cell can begin a match."""

    starts: np.ndarray  # bool[kinds], whether a cell can begin a match
    belongs: np.ndarray  # uint64[columns, kinds], 1 where events of a kind go to an output column
    bits: np.ndarray  # int64[1], the number of low bits of a tag that hold the kind
    runs: np.ndarray
    """int64[4], for matches of one shape (see `runs`): their number of events, the pile of the
    cells that begin a match, 1 if there are no partitions, 1 if a run of matches is listed as
    one."""


class Output(NamedTuple):
    """Buffers for matches. The caller empties them when they are full."""

    rows: np.ndarray  # int64[matches], the row of each match's last event in the batch
    ends: np.ndarray  # int64[matches], where the tags of each match end
    tags: np.ndarray
    """int64[room], the events of one match after another, each match in stream order. The last
    PADDING elements are never read."""
    used: np.ndarray  # int64[2], the number of matches and of tags so far
    limit: np.ndarray  # int64[1], the most matches for each row


def new_output(*, matches: int, room: int, limit: int | None) -> Output:
    """Empty buffers for `matches` matches with `room` events in all."""
    return Output(
        np.empty(matches, np.int64),
        np.empty(matches, np.int64),
        np.empty(room + PADDING, np.int64),
        np.zeros(2, np.int64),
        np.array([2**62 if limit is None else limit], np.int64),
    )


def with_more_room(output: Output, room: int) -> Output:
    """Buffers for at least `room` events, for a match that did not fit."""
    return output._replace(tags=np.empty(max(room, 2 * len(output.tags)), np.int64))


@njit(nogil=True, cache=True)
def list_fired(memory, output, kinds):  # type: ignore[no-untyped-def]
    """List the matches of all events that fired, from where the last call stopped.

    Returns DONE, OUTPUT_FULL or STACK_FULL; or CHOOSE, with nothing listed, if not all matches are
    wanted. Updates only note the events that fired, and call this before they overwrite a node that
    was live then. A call for every such event would cost more than the update. A limit of 0 lists
    nothing, which shows the cost of an update without output.
    """
    counters = memory.counters
    if counters[DEFERS] and counters[FIRED] > 0:
        return CHOOSE
    return _list(memory, output, kinds, ())


@njit(nogil=True, cache=True)
def fire_alone(memory, root, row):  # type: ignore[no-untyped-def]
    """Make the matches below `root` the next ones to be listed, as those of the event at `row`.

    For scratch memory only: no other event may wait in it, and all nodes count as live.
    """
    fire = memory.fires[0]
    fire[0], fire[1], fire[2], fire[3] = root, row, 1, ALWAYS
    memory.counters[FIRED] = 1
    memory.counters[LISTED] = memory.counters[STACK_SIZE] = 0


@njit(nogil=True, cache=True)
def label_columns(output, kinds, offsets, entries, starts, ends):  # type: ignore[no-untyped-def]
    """Sort the events of the listed matches into label columns.

    Writes offsets: int32[columns, matches + 1] and entries: int64[columns, tags so far + 1]. Column
    c of match m is entries[c, offsets[c, m]:offsets[c, m + 1]]. Also writes starts and ends:
    int64[matches], the first and the last event of each match.

    There is one pass for each column. It writes every event, and the next event overwrites it if it
    belongs to another column. That is three times as fast as a jump to each event's column, which
    cannot be predicted.
    """
    bits, tags, matches = kinds.bits[0], output.tags, output.used[0]
    kind_mask = (np.int64(1) << bits) - 1
    place = np.uint64(0)
    for match in range(matches):
        starts[match] = tags[place] >> bits
        place = np.uint64(output.ends[match])
        ends[match] = tags[place - np.uint64(1)] >> bits
    for column in range(offsets.shape[0]):
        belongs, found = kinds.belongs[column], entries[column]
        place = free = np.uint64(0)
        offsets[column, 0] = 0
        for match in range(matches):
            end = np.uint64(output.ends[match])
            while place < end:
                tag = tags[place]
                found[free] = tag >> bits
                free += belongs[np.uint64(tag & kind_mask)]
                place += np.uint64(1)
            offsets[column, match + 1] = np.int32(free)


def label_columns_by_numpy(
    output: Output,
    kinds: Kinds,
    offsets: np.ndarray,
    entries: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> None:
    """`label_columns` by NumPy, in several passes over all tags."""
    bits, (matches, used) = int(kinds.bits[0]), output.used[:2].tolist()
    tags, behind = output.tags[:used], output.ends[:matches]
    events, of_kinds = tags >> bits, tags & ((1 << bits) - 1)
    ends[:] = events[behind - 1]
    starts[:1], starts[1:] = events[:1], events[behind[:-1]]
    offsets[:, 0] = 0
    for column in range(len(offsets)):
        is_one = kinds.belongs[column][of_kinds].astype(np.bool_)
        offsets[column, 1:] = np.cumsum(is_one)[behind - 1]
        found = events[is_one]
        entries[column, : len(found)] = found
