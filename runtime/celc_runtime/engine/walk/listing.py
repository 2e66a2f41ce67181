"""Listing the matches that end at an event, newest first, at constant delay.

A depth-first walk from the cell of the last event back to the first. Nothing dead is entered, so
every step leads to an output:

* the left side of a merge starts as late as the merge, so it is live where the merge is; the right
  side is tested before it is entered; the number of merges one below the other on a left path is
  bounded by the automaton, not by the stream;
* the cells for one place in a match are on a pile, each no earlier than the next, so a dead cell
  ends the search; or merges hold them, as above;
* a live cell has a match through it: it starts one itself, or its child is live.

So between two outputs lie at most (length of a match) × (a number fixed by the query) steps,
however long the stream and however many dead nodes the arena holds.

The walk stops where an output buffer is full and goes on from there (`list_fired`): a node whose
match does not fit goes back on the stack untouched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import (
    ALWAYS,
    CHILD,
    CHOOSE,
    DEFERS,
    DONE,
    FIRED,
    LISTED,
    MATCHES_LEFT,
    MERGE,
    NEXT,
    NEXT_NODE,
    OUTPUT_FULL,
    PADDING,
    SINCE,
    STACK_FULL,
    STACK_SIZE,
    TAG,
    lowest_id,
)
from celc_runtime.jit.kernels import njit


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
    while True:
        if counters[STACK_SIZE] == 0:
            if counters[LISTED] == counters[FIRED] or output.limit[0] == 0:
                counters[LISTED] = counters[FIRED] = 0
                return DONE
            memory.stack[0, 0] = memory.fires[counters[LISTED], 0]
            memory.stack[0, 1] = 0
            counters[STACK_SIZE] = 1
            counters[LISTED] += 1
            counters[MATCHES_LEFT] = output.limit[0]
        status = _walk(memory, output, kinds)
        if status != DONE:
            return status


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
def _walk(memory, output, kinds):  # type: ignore[no-untyped-def]
    """List the matches below the nodes on the stack; DONE, OUTPUT_FULL or STACK_FULL."""
    nodes, counters, stack, trail = memory.nodes, memory.counters, memory.stack, memory.trail
    mask = nodes.shape[0] - 1
    fire = memory.fires[counters[LISTED] - 1]
    row, floor_value = fire[1], fire[3]
    lowest = lowest_id(nodes, counters[NEXT_NODE], fire[2])
    left = counters[MATCHES_LEFT]
    kind_mask = (np.int64(1) << kinds.bits[0]) - 1
    starts, rows, ends, tags = kinds.starts, output.rows, output.ends, output.tags
    matches, used = output.used[0], output.used[1]
    most, room = rows.shape[0], tags.shape[0] - PADDING
    bottom, deepest = trail.shape[0] - PADDING - 1, stack.shape[0] - 2
    waiting, status = counters[STACK_SIZE], DONE
    while waiting > 0 and status == DONE:
        waiting -= 1
        node, depth = stack[waiting, 0], stack[waiting, 1]
        while True:
            at = node & mask
            tag, following = nodes[at, TAG], nodes[at, NEXT]
            begins = tag != MERGE and starts[tag & kind_mask]
            if waiting > deepest or depth >= bottom:
                status = STACK_FULL
            elif begins and (matches == most or used + depth >= room):
                status = OUTPUT_FULL
            if status != DONE:
                # The node goes back untouched; the path above it stays where it is.
                stack[waiting, 0], stack[waiting, 1] = node, depth
                waiting += 1
                break
            goes_on = following >= lowest and nodes[following & mask, SINCE] >= floor_value
            if tag == MERGE:
                if goes_on:
                    stack[waiting, 0], stack[waiting, 1] = following, depth
                    waiting += 1
                node = nodes[at, CHILD]
                continue
            trail[bottom - depth] = tag
            if begins:
                copy_padded(tags, used, trail, bottom - depth, depth + 1)
                used += depth + 1
                rows[matches], ends[matches] = row, used
                matches += 1
                left -= 1
                if left == 0:
                    waiting = 0
                    break
            child = nodes[at, CHILD]
            if child >= lowest and nodes[child & mask, SINCE] >= floor_value:
                if goes_on:
                    stack[waiting, 0], stack[waiting, 1] = following, depth
                    waiting += 1
                node = child
                depth += 1
            elif goes_on:
                node = following
            else:
                break
    counters[STACK_SIZE], counters[MATCHES_LEFT] = waiting, left
    output.used[0], output.used[1] = matches, used
    return status


@njit(nogil=True, cache=True)
def copy_padded(target, start, source, first, count):  # type: ignore[no-untyped-def]
    """Copy `count` elements, PADDING at a time: the next copy overwrites the surplus.

    Indices are unsigned: a signed one could count from the end, and the check for that keeps LLVM
    from copying several elements by one instruction.
    """
    place, end, at = np.uint64(start), np.uint64(start + count), np.uint64(first)
    while place < end:
        for step in range(PADDING):
            target[place + np.uint64(step)] = source[at + np.uint64(step)]
        place += np.uint64(PADDING)
        at += np.uint64(PADDING)


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
