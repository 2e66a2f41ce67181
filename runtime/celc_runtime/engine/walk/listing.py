"""Buffers for matches, and listing all matches that the arena holds."""

from __future__ import annotations

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
    """The kinds of cells as arrays. A kind is a label set, and whether a cell can begin a match.

    starts: bool[kinds]. belongs: uint64[columns, kinds], 1 where events of a kind go to an output
    column, else 0. bits: int64[1], how many low bits of a tag hold the kind. runs: int64[4], for
    matches of one shape (see `runs`): their number of events, the pile of the cells that begin a
    match, 1 if there are no partitions, and 1 if a run of matches is listed as one.
    """

    starts: np.ndarray
    belongs: np.ndarray
    bits: np.ndarray
    runs: np.ndarray


class Output(NamedTuple):
    """Buffers for matches, emptied by the caller when full.

    rows: int64[matches], the batch's row of each match's last event. tags: int64[room], the events
    of one match after another, each match in stream order; the last PADDING elements are never
    read. ends: int64[matches], where the tags of each match end. used: int64[2]: matches and tags
    so far. limit: int64[1], matches per row at most.
    """

    rows: np.ndarray
    ends: np.ndarray
    tags: np.ndarray
    used: np.ndarray
    limit: np.ndarray


def new_output(*, matches: int, room: int, limit: int | None) -> Output:
    """Empty buffers for `matches` matches of `room` events in all."""
    return Output(
        np.empty(matches, np.int64),
        np.empty(matches, np.int64),
        np.empty(room + PADDING, np.int64),
        np.zeros(2, np.int64),
        np.array([2**62 if limit is None else limit], np.int64),
    )


def with_more_room(output: Output, room: int) -> Output:
    """Buffers with room for at least `room` events, for a match longer than the buffers."""
    return output._replace(tags=np.empty(max(room, 2 * len(output.tags)), np.int64))


@njit(nogil=True, cache=True)
def list_fired(memory, output, kinds):  # type: ignore[no-untyped-def]
    """List the matches of all events that fired, from where it stopped; DONE, OUTPUT_FULL or
    STACK_FULL. CHOOSE, and nothing listed, where not all matches are wanted.

    Updates only note the events that fired, and call this before they overwrite a node that was
    live then: a call for every such event would cost more than the update itself. A limit of 0
    lists nothing, which shows the cost of an update without its output.
    """
    counters = memory.counters
    if counters[DEFERS] and counters[FIRED] > 0:
        return CHOOSE
    return _list(memory, output, kinds, ())


@njit(nogil=True, cache=True)
def fire_alone(memory, root, row):  # type: ignore[no-untyped-def]
    """Let the matches below `root` be listed next, as those of the event at `row`; all nodes count.

    For scratch memory: nothing else may wait in it.
    """
    fire = memory.fires[0]
    fire[0], fire[1], fire[2], fire[3] = root, row, 1, ALWAYS
    memory.counters[FIRED] = 1
    memory.counters[LISTED] = memory.counters[STACK_SIZE] = 0


@njit(nogil=True, cache=True)
def label_columns(output, kinds, offsets, entries, starts, ends):  # type: ignore[no-untyped-def]
    """Sort the events of the listed matches into label columns.

    Writes offsets: int32[columns, matches + 1] and entries: int64[columns, tags so far + 1], label
    column c of match m being entries[c, offsets[c, m]:offsets[c, m + 1]]; and starts and ends:
    int64[matches], the first and the last event of each match.

    A pass for each column writes every event, and overwrites an event of another column by the next
    one: three times as fast as going to each event's own column, which cannot be predicted.
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
