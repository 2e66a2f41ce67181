"""What generated code calls in an update, over plain Python numbers: a model of the runtime.

Each function does what the docstring of the runtime's function says, and nothing more. Nodes are
kept in a table without end. So a model of an update says what the code does to piles, apart from
how the runtime finds room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

NEVER = -(2**63)
ALWAYS = NEVER + 1
MERGE = -1
NO_BARRIER = 2**62
NO_BOUND = 2**63 - 1
LEAST_KEY = -(2**63) + 2

COUNTERS = (
    *("NEXT_NODE", "USABLE", "LOWEST", "ROW", "PART", "SHIFT", "ENTRY", "EARLIEST", "FIRED"),
    *("LAST", "BARRIER", "INSTANT"),
)
STATUSES = ("DONE", "ARENA_FULL", "KEYS_FULL")


class Column(list[Any]):
    """A flat array."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def ravel(self) -> Column:
        return self

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return Column(super().__getitem__(at))
        return super().__getitem__(at)

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, slice) and not isinstance(value, list):
            value = [value] * len(range(*at.indices(len(self))))
        super().__setitem__(at, value)


class Grid:
    """An array of rows and columns, which shares its numbers with its flat form."""

    def __init__(self, rows: int, columns: int, value: int = 0) -> None:
        self.shape = rows, columns
        self.flat = Column([value] * (rows * columns))

    def ravel(self) -> Column:
        return self.flat

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, tuple):
            return self.flat[at[0] * self.shape[1] + at[1]]
        return _Row(self.flat, at * self.shape[1])

    def __setitem__(self, at: tuple[int, int], value: int) -> None:
        self.flat[at[0] * self.shape[1] + at[1]] = value


class _Row:
    def __init__(self, flat: Column, start: int) -> None:
        self._flat, self._start = flat, start

    def __getitem__(self, at: int) -> Any:
        return self._flat[self._start + at]

    def __setitem__(self, at: int, value: int) -> None:
        self._flat[self._start + at] = value


@dataclass(slots=True)
class Nodes:
    """The arena: `rows[id]` is (tag, child, next, since)."""

    rows: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)

    def ravel(self) -> Nodes:
        return self


@dataclass(slots=True)
class Calls:
    """What an update called besides: its listings and the room that it asked for."""

    listed: int = 0  # how often it listed what had fired
    rooms: list[tuple[int, ...]] = field(default_factory=list)
    """(next node, nodes asked for, lowest, floor, latest key) of each call for room, and whether
    events that had fired were still waiting."""
    fires: list[tuple[int, int, int, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """What a call was given against its contract."""


def names_of_model(calls: Calls, takes: Callable[[int], bool] | None = None) -> dict[str, Any]:
    """The names that an update takes from the runtime and from NumPy. `takes` decides by its id
    whether an event takes a cell."""
    places = {name: place for place, name in enumerate(COUNTERS)}
    statuses = {name: number for number, name in enumerate(STATUSES)}
    fired = places["FIRED"]

    def list_fired(memory: Any, output: Any, kinds: Any) -> int:
        count = memory.counters[fired]
        flat = memory.fires.flat
        calls.fires += [tuple(flat[4 * n : 4 * n + 4]) for n in range(count)]
        memory.counters[fired] = 0
        calls.listed += 1
        return statuses["DONE"]

    def reserve(memory: Any, *numbers: int) -> int:
        calls.rooms.append((*numbers, memory.counters[fired]))
        return numbers[0] + 1_000_000

    return {
        **places,
        **statuses,
        **_ARENA,
        **_KEYS,
        "union": _union(calls),
        "union_flat": _union(calls),
        "list_fired": list_fired,
        "list_runs": list_fired,
        "reserve": reserve,
        "taken_from": _taken_from(takes or (lambda _: True)),
        "np": SimpleNamespace(int64=int, uint64=int, array=lambda rows, _=None: [*rows]),
    }


def _put(nodes: Any, node: int, tag: int, child: int, following: int, since: int) -> None:
    if isinstance(nodes, Nodes):
        nodes.rows[node] = (tag, child, following, since)
    else:  # the table of what fired, as a flat array
        nodes[4 * node : 4 * node + 4] = [tag, child, following, since]


def _union(calls: Calls) -> Callable[..., tuple[int, int, int]]:
    def union(
        nodes: Nodes,
        next_node: int,
        floor: int,
        first: int,
        first_since: int,
        second: int,
        second_since: int,
    ) -> tuple[int, int, int]:
        for node, since in ((first, first_since), (second, second_since)):
            row = nodes.rows.get(node)
            if since >= floor and (row is None or row[3] != since):
                calls.wrong.append("two lists are joined, one with a start that is not its own")
        if second_since < floor:
            return first, first_since, next_node
        if first_since < floor:
            return second, second_since, next_node
        if first_since >= second_since:
            nodes.rows[next_node] = (MERGE, first, second, first_since)
            return next_node, first_since, next_node + 1
        nodes.rows[next_node] = (MERGE, second, first, second_since)
        return next_node, second_since, next_node + 1

    return union


def _seen_of_key(
    nodes: Nodes, head: int, barrier: int, next_node: int, lowest: int
) -> tuple[int, int]:
    while head >= barrier:
        head = nodes.rows[head][2]
    if head < max(lowest, 1):
        return 0, NEVER
    return head, nodes.rows[head][3]


def _seen(
    memory: Any, pile: int, head: int, barrier: int, next_node: int, lowest: int
) -> tuple[int, int]:
    return _seen_of_key(memory.nodes, head, barrier, next_node, lowest)


def _taken_from(takes: Callable[[int], bool]) -> Callable[..., tuple[int, int, int, int]]:
    def taken_from(
        nodes: Nodes,
        next_node: int,
        lowest: int,
        earliest: int,
        holds: Any,
        past: Any,
        here: int,
        first: int,
        kind_bits: int,
        head: int,
    ) -> tuple[int, int, int, int]:
        lists: dict[bool, list[int]] = {True: [], False: []}
        while head >= max(lowest, 1) and nodes.rows[head][3] >= earliest:
            lists[takes(head)].append(head)
            head = nodes.rows[head][2]
        found: list[int] = []
        for one in (lists[True], lists[False]):
            for at, node in enumerate(one):
                tag, child, _, since = nodes.rows[node]
                nodes.rows[node] = (tag, child, one[at + 1] if at + 1 < len(one) else 0, since)
            found += [one[0], nodes.rows[one[0]][3]] if one else [0, NEVER]
        return found[0], found[1], found[2], found[3]

    return taken_from


def _write_relevant_rows(
    words: Any, symbols: Sequence[int], row: int, end: int, index: Column
) -> int:
    found = [at for at in range(row, end) if symbols[at] != 0]
    index[: len(found)] = found
    return len(found)


def _next_relevant_row(words: Any, symbols: Sequence[int], row: int, rows: int) -> int:
    return next((at for at in range(row, rows) if symbols[at] != 0), rows)


def _window_floor(key: int, size: int) -> int:
    return key - size if key >= ALWAYS + size else ALWAYS


def _row_of(table: Grid, *key: int) -> int:
    columns = range(1, 1 + len(key))
    for row in range(table.shape[0]):
        if not table[row, 0] or all(
            table[row, n] == one for n, one in zip(columns, key, strict=True)
        ):
            return row
    raise AssertionError("the table of the model has room for the keys of one event")


def _pile_at(table: Grid, row: int, column: int, lowest: int) -> tuple[int, int]:
    head = table[row, column]
    return head, table[row, column + 1] if head >= lowest else NEVER


_ARENA: dict[str, Any] = {
    "NEVER": NEVER,
    "ALWAYS": ALWAYS,
    "MERGE": MERGE,
    "NO_BARRIER": NO_BARRIER,
    "NO_BOUND": NO_BOUND,
    "LEAST_KEY": LEAST_KEY,
    "BLOCK": 2048,
    "AHEAD": 16,
    "put": _put,
    "put_flat": _put,
    "seen": _seen,
    "seen_of_key": _seen_of_key,
    "select_by_mask": lambda mask, first, second: (first & mask) | (second & ~mask),
    "seal": lambda memory, next_node, count: None,
    "room_for_rows": lambda memory, entry: memory.relevant,
    "write_relevant_rows": _write_relevant_rows,
    "next_relevant_row": _next_relevant_row,
    "window_floor": _window_floor,
}

_KEYS: dict[str, Any] = {
    "row_of": _row_of,
    "row_of_two": _row_of,
    "row_of_three": _row_of,
    "hash_of": lambda *_: 0,
    "hash_of_two": lambda *_: 0,
    "hash_of_three": lambda *_: 0,
    "fetch_ahead": lambda *_: None,
    "pile_at": _pile_at,
}
