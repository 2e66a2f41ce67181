"""The loop around a step of the batch that finds decided matches; `decided` says which they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit
from celc_runtime.row_pattern.passes import (
    COVERED,
    DONE,
    FIRST_LABEL,
    FULL,
    KERNEL,
    LABELS,
    LENGTH,
    MATCH_NUMBER,
    MATCHES,
    NO_MATCH,
    NUMBER,
    PART,
    PARTITION,
    PAST_LAST_ROW,
    ROW,
    START,
    TARGET_FIRST,
    TARGET_MISSING,
    TO_NEXT_ROW,
    after_match,
    last_row_within,
    rows_behind,
)
from celc_runtime.row_pattern.streams.futures import (
    COUNT,
    NOT_SURE,
    NOWHERE,
    begin_following,
    go_on,
    nearest,
    pass_over,
    ways_of,
)


class Reads(NamedTuple):
    """The rows behind a match that measures read: for each such navigation its variables (bool),
    and whether FIRST, the offset, the shift and whether FINAL."""

    variables: np.ndarray  # bool[navigations, variables]
    places: np.ndarray  # int64[navigations, 4]


@njit(**KERNEL)
def last_row_read(reads, moves, excluded, labels, at, row, length):  # type: ignore[no-untyped-def]
    """The last row that measures of a match read."""
    variables, places = reads
    last, shown = -1, length
    while shown > 0 and excluded[labels[at + shown - 1]]:
        shown -= 1
    for number in range(places.shape[0]):
        until = length if places[number, 3] else shown
        total = 0
        for place in range(until):
            total += variables[number, moves.variable[labels[at + place]]]
        wanted = places[number, 1] if places[number, 0] else total - 1 - places[number, 1]
        if wanted < 0 or wanted >= total:
            continue
        seen = 0
        for place in range(until):
            if variables[number, moves.variable[labels[at + place]]]:
                if seen == wanted:
                    last = max(last, row + place + places[number, 2])
                seen += 1
    return last


@njit(**KERNEL)
def is_same_match(moves, excluded, labels, at, other, length):  # type: ignore[no-untyped-def]
    """Whether two matches of one start with as many rows have the same variables, and show the same
    rows; their moves begin at `at` and `other`."""
    for place in range(length):
        one, two = labels[at + place], labels[other + place]
        if moves.variable[one] != moves.variable[two] or excluded[one] != excluded[two]:
            return False
    return True


# Long: one loop, which is compiled as a whole.
def deciding_loop_of(
    step: Callable[..., tuple[int, int]], *, compiled: bool = True
) -> Callable[..., int]:
    """The loop over partitions around a step, which finds the first possible match from a start
    on."""

    def own(kernel: Any) -> Any:
        return kernel if compiled else getattr(kernel, "py_func", kernel)

    after, behind, read_until = own(after_match), own(rows_behind), own(last_row_read)
    same, last_row, ways_from = own(is_same_match), own(last_row_within), own(ways_of)
    begin_all, step_all, next_of = own(begin_following), own(go_on), own(nearest)
    pass_all = own(pass_over)

    # Long: as above.
    def decide(  # type: ignore[no-untyped-def]
        data, of_rows, room, ends, asked, reads, excluded, since, going, futures, cursor, matches,
        labels,
    ):  # fmt: skip
        """Find decided matches until the buffers are full; returns a status as `find` does.

        data: what `step` reads where rows may come, and where they are sure to come. of_rows: the
        local conditions of each row, and those that later rows decide. room: the first arguments of
        `rows_behind`, and `within`. ends: where partitions begin, and by state whether it accepts,
        and whether it goes on. asked: the skip, its targets
        by move, whether unmatched rows are answers, whether a match depends on which starts before
        it have one, the most rows ahead that conditions read. going: int64[partitions, 4], where
        partitions go on, as `Since` has it in columns (−1: not known yet), and whether a start is
        not decided. futures: all of them, those that are followed (`FUTURE`, `PLACE`, `COUNT`), and
        how many in an array of one; −1: they have not been met in the partition.
        """
        now, later = data
        found, unsure = of_rows
        times, spare, open_from, within = room
        offsets, accepts, goes_on = ends
        skip, targets, unmatched, counts, most_ahead = asked
        known, followed, followers, ways, marks = futures
        moves = now.moves
        part, row, number = cursor[PART], cursor[ROW], cursor[NUMBER]
        covered, count, at = cursor[COVERED], cursor[MATCHES], cursor[LABELS]
        status = DONE
        while part < offsets.shape[0] - 1 and status == DONE:
            begin, end = offsets[part], offsets[part + 1]
            if row < 0:
                row, number, covered = since[0][part], since[1][part], since[2][part]
                followers[0] = -1
            while row < end:
                start, length = step(now, begin, end, row, number + 1, labels, at)
                if length < NO_MATCH:
                    status = length
                    break
                if unmatched and going[part, 3] == 0:
                    row = max(row, min(covered, start))
                    while row < start and count < matches.shape[0]:
                        matches[count, START], matches[count, LENGTH] = row, -1
                        matches[count, MATCH_NUMBER], matches[count, FIRST_LABEL] = 0, at
                        matches[count, PARTITION] = part
                        count += 1
                        row += 1
                    if row < start:
                        status = FULL
                        break
                if length == NO_MATCH:
                    row = start
                    break
                shared, numbered = True, True
                if followers[0] >= 0:
                    pass_all(followed, followers[0], row, start, start, 0)
                    place, shared, numbered = next_of(followed, followers[0])
                    if place > start:
                        row = min(place, end)
                        continue
                row = start
                sure, shown, more = True, True, False
                if spare > 0 and length > 0:
                    for place in range(max(length - most_ahead, 0), length):
                        label = labels[at + place]
                        bit = moves.bit[label]
                        if bit >= 0 and (unsure[row + place] >> bit) & 1:
                            sure = False
                        if moves.path[label] >= 0 and row + place + moves.ahead[label] >= end:
                            sure = False
                    if row + length == end:
                        state = moves.target[labels[at + length - 1]]
                        more = behind(times, spare, open_from, row) > 0
                        if goes_on[state] and more:
                            sure = False
                        elif not accepts[state]:
                            # The end alone decides for it: is there the same without the end?
                            other, found_rows = step(
                                later, begin, end, row, number + 1, labels, at + length
                            )
                            if found_rows < NO_MATCH:
                                status = found_rows
                                break
                            sure = sure and other == row and found_rows == length
                            if sure:
                                state = moves.target[labels[at + 2 * length - 1]]
                                sure = accepts[state] and not (goes_on[state] and more)
                                sure = sure and same(
                                    moves, excluded, labels, at, at + length, length
                                )
                    if sure and reads[1].shape[0] > 0:
                        until = read_until(reads, moves, excluded, labels, at, row, length)
                        shown = until < end
                if not (sure and shown) and going[part, 0] < 0:
                    going[part, 0], going[part, 1], going[part, 2] = row, number, covered
                if not sure:
                    going[part, 3] = 1
                    if skip == PAST_LAST_ROW:
                        break
                    if skip == TO_NEXT_ROW and not counts:
                        row += 1
                        continue
                    if followers[0] < 0:
                        followers[0] = begin_all(known, followed, row, number)
                    if followers[0] == 0:
                        break
                    last = last_row(times, within, row, end)
                    first = moves.first if row == begin else moves.start
                    several = ways_from(
                        found, unsure, moves, targets, row, last, first, ways, marks
                    )
                    if several == NOT_SURE:
                        break
                    closed = behind(times, spare, open_from, row) == 0
                    followers[0] = step_all(
                        known, followed, followers[0], ways, several, closed, skip, row
                    )
                    if followers[0] < 0:
                        break
                    row += 1
                    continue
                if count == matches.shape[0]:
                    status = FULL
                    break
                following = row + 1
                if length > 0:
                    covered = max(covered, row + length)
                    following = after(skip, targets, labels, at, row, length)
                    if following <= row:
                        if shared:
                            status = TARGET_MISSING if following < 0 else TARGET_FIRST
                            break
                        following = NOWHERE
                number += 1
                if shown and shared and (numbered or not counts):
                    matches[count, START], matches[count, LENGTH] = row, length
                    matches[count, MATCH_NUMBER], matches[count, FIRST_LABEL] = number, at
                    if followers[0] >= 0:
                        matches[count, MATCH_NUMBER] = followed[0, COUNT] + 1
                    matches[count, PARTITION] = part
                    count += 1
                    at += length
                if followers[0] >= 0:
                    pass_all(followed, followers[0], row, row + 1, following, 1)
                    following = row + 1
                row = following
            if status == DONE:
                if going[part, 0] < 0:
                    going[part, 0], going[part, 1], going[part, 2] = row, number, covered
                part += 1
                row = -1
        cursor[PART], cursor[ROW], cursor[NUMBER] = part, row, number
        cursor[COVERED], cursor[MATCHES], cursor[LABELS] = covered, count, at
        return status

    return decide
