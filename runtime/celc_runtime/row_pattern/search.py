"""Conditions that read the match so far: depth first, in order of preference, remembering failures.

Take all paths from one start to one row and one state. They lead to the same matches unless
conditions can still read how the path got there. What they read is in registers, which generated
code writes. So a failure is remembered by row, state and registers.

If conditions read only the start of the match, registers do not tell paths apart, and a start costs
at most rows × states. If they read the path, the search can be exponential all the same. So steps
are counted, and too many of them stop the run.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit
from celc_runtime.row_pattern.passes import (
    KERNEL,
    NO_MATCH,
    NO_MEMORY,
    NO_ROOM,
    NO_STACK,
    PAUSED,
    TOO_MUCH_WORK,
    Moves,
    finder,
    last_row_within,
    loop_of,
    rows_behind,
)


class Searched(NamedTuple):
    """What a search reads and writes.

    `found`: the local conditions of each row, as bits. `edges`, `following`, `viable`: the pass
    backwards over these. `code`: the first arguments of generated functions. `states`, `pointers`,
    `path`: the stack. `registers` and `reals` are one memory, by depth, as whole numbers and as
    DOUBLEs. `live_begin`, `live`: the registers that tell paths apart, by state. `failures`: row,
    state and registers that lead nowhere, with the start in `stamps`. A start takes at most
    `max_work` steps; after `most_steps` of all starts the search pauses. `spare`, `open_from`: as
    `passes.rows_behind` takes them.
    """

    found: np.ndarray
    edges: np.ndarray
    following: np.ndarray
    viable: np.ndarray
    moves: Moves
    code: Any
    states: np.ndarray
    pointers: np.ndarray
    path: np.ndarray
    registers: np.ndarray
    reals: np.ndarray
    live_begin: np.ndarray
    live: np.ndarray
    failures: np.ndarray
    stamps: np.ndarray
    counters: np.ndarray
    times: np.ndarray
    within: int
    remembers: bool
    max_work: int
    most_steps: int
    spare: int
    open_from: int


STAMP, FAILED, STEPS = 0, 1, 2
"""Places of `counters`: the stamp of the start, its failures, and the steps of all starts."""

NO_LIMIT = 1 << 62  # in place of `most_steps`


@njit(**KERNEL)
def _slot(data, row, state, depth):  # type: ignore[no-untyped-def]
    """The place of a row, state and memory among the failures, or that where it would be."""
    mask = data.stamps.shape[0] - 1
    begin, end = data.live_begin[state], data.live_begin[state + 1]
    mixed = np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(state)
    for place in range(begin, end):
        mixed ^= mixed >> np.uint64(29)
        mixed = mixed * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(
            data.registers[depth, data.live[place]]
        )
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x94D049BB133111EB)
    slot = np.int64(mixed >> np.uint64(20)) & mask
    while data.stamps[slot] == data.counters[STAMP]:
        same = data.failures[slot, 0] == row and data.failures[slot, 1] == state
        for place in range(begin, end):
            if not same:
                break
            same = data.failures[slot, 2 + place - begin] == data.registers[depth, data.live[place]]
        if same:
            return slot, True
        slot = (slot + 1) & mask
    return slot, False


def find_by_search(advance: Callable[..., None], holds: Callable[..., bool]) -> Callable[..., int]:
    """The loop that finds matches by search, with the functions of a generated module."""
    return _finder(step_by_search(advance, holds))


@cache
def _finder(step: Callable[..., tuple[int, int]]) -> Callable[..., int]:
    return finder(step) if is_compiled(step) else loop_of(step)


def is_compiled(function: Callable[..., Any]) -> bool:
    """Whether it is a kernel, and no plain Python, as in tests."""
    return hasattr(function, "py_func")


@cache
def step_by_search(
    advance: Callable[..., None], holds: Callable[..., bool]
) -> Callable[..., tuple[int, int]]:
    """The step of the loop; where the functions of the module are plain Python, so is the step."""
    compiled = is_compiled(advance)
    place_of = _slot if compiled else getattr(_slot, "py_func", _slot)
    last_row = last_row_within if compiled else getattr(last_row_within, "py_func", last_row_within)
    behind = rows_behind if compiled else getattr(rows_behind, "py_func", rows_behind)

    def search_from(data, begin, end, start, number, labels, at):  # type: ignore[no-untyped-def]
        """The match of a start: writes its moves, returns its rows or NO_MATCH."""
        moves, code = data.moves, data.code
        state = moves.first if start == begin else moves.start
        if not (data.viable[data.following[data.edges[start]], state >> 3] >> (state & 7)) & 1:
            return NO_MATCH
        data.counters[STAMP] += 1
        data.counters[FAILED] = 0
        last = last_row(data.times, data.within, start, end)
        spare = behind(data.times, data.spare, data.open_from, start)
        work, depth = 0, 0
        most = min(data.max_work, data.most_steps - data.counters[STEPS])
        data.states[0], data.pointers[0] = state, moves.begin[state]
        while True:
            row, state = start + depth, data.states[depth]
            taken = False
            if row < last:
                bits = np.int64(data.found[row])
                for move in range(data.pointers[depth], moves.begin[state + 1]):
                    target, bit = moves.target[move], moves.bit[move]
                    if bit >= 0 and not (bits >> bit) & 1:
                        continue
                    if row + 1 == end:
                        if moves.border[target] > spare:
                            continue
                    else:
                        viable = data.viable[data.following[data.edges[row + 1]], target >> 3]
                        if not (viable >> (target & 7)) & 1:
                            continue
                    work += 1
                    if work > most:
                        return TOO_MUCH_WORK if work > data.max_work else PAUSED
                    if depth + 2 > data.states.shape[0]:
                        return NO_STACK
                    label = moves.variable[move]
                    data.path[depth] = label
                    advance(
                        code[0],
                        code[1],
                        code[2],
                        code[3],
                        label,
                        row,
                        data.registers[depth],
                        data.registers[depth + 1],
                        data.reals[depth],
                        data.reals[depth + 1],
                    )
                    path = moves.path[move]
                    if data.spare > 0 and row + moves.ahead[move] >= end:
                        path = -1  # a later row may make it true
                    if path >= 0 and not holds(
                        code[0],
                        code[1],
                        code[2],
                        code[3],
                        path,
                        row,
                        start,
                        begin,
                        end,
                        number,
                        data.path,
                        data.registers[depth + 1],
                        data.reals[depth + 1],
                    ):
                        continue
                    if data.remembers:
                        _, failed = place_of(data, row + 1, target, depth + 1)
                        if failed:
                            continue
                    if at + depth >= labels.shape[0]:
                        return NO_ROOM
                    labels[at + depth] = move
                    data.pointers[depth] = move + 1
                    depth += 1
                    data.states[depth], data.pointers[depth] = target, moves.begin[target]
                    taken = True
                    break
            if taken:
                continue
            if moves.border[state] <= spare if row == end else moves.accepts[state]:
                data.counters[STEPS] += work
                return depth
            if depth == 0:
                data.counters[STEPS] += work
                return NO_MATCH
            if data.remembers:
                slot, known = place_of(data, row, state, depth)
                if not known:
                    if 2 * data.counters[FAILED] > data.stamps.shape[0]:
                        return NO_MEMORY
                    data.counters[FAILED] += 1
                    data.stamps[slot] = data.counters[STAMP]
                    data.failures[slot, 0], data.failures[slot, 1] = row, state
                    begin_live = data.live_begin[state]
                    for place in range(begin_live, data.live_begin[state + 1]):
                        data.failures[slot, 2 + place - begin_live] = data.registers[
                            depth, data.live[place]
                        ]
            depth -= 1

    search = njit(**KERNEL)(search_from) if compiled else search_from

    def step(data, begin, end, start, number, labels, at):  # type: ignore[no-untyped-def]
        """The match of the first start that has one; see `passes.walk_numbered`."""
        length = NO_MATCH
        while start < end and length == NO_MATCH:
            length = search(data, begin, end, start, number, labels, at)
            if length == NO_MATCH:
                start += 1
        return start, length

    return njit(**KERNEL)(step) if compiled else step
