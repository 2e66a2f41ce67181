"""The times of the events of a small stream: steps that lengths of windows tell apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.compare.conditions import Asked
from celc.compare.values import DAY, NOON, SECOND
from celc.core.formula import TIMES, DataType

Pattern = tuple[int | float, ...]
"""The values of a clock at the events of a stream, from 0."""

_UNITS = (SECOND, SECOND // 10, SECOND // 100, SECOND // 1000, 1)
_STEPS = 10  # a unit is so small that this many of them fit into the least length
_MOST_PAIRS = 120  # patterns with two long steps, for one number of events


@frozen
class Clocks:
    """The attributes that do not decrease along a stream, each with its type, where it begins, its
    unit and the lengths that matter."""

    types: Mapping[str, DataType]
    begins: Mapping[str, tuple[Any, ...]]
    units: Mapping[str, int | float]
    lengths: Mapping[str, tuple[int | float, ...]]

    @property
    def driver(self) -> str | None:
        """The clock whose steps are chosen; the others go on by their units."""
        return max(self.types, key=lambda name: len(self.lengths[name]), default=None)


def clocks_of(asked: Asked) -> Clocks:
    """The clocks of queries."""
    begins: dict[str, tuple[Any, ...]] = {}
    units: dict[str, int | float] = {}
    lengths: dict[str, tuple[int | float, ...]] = {}
    for name, type in asked.clocks.items():
        constants = [value for value, of in asked.constants.get(name, {}) if of is type]
        if type in TIMES or type is DataType.TIMESTAMP_NTZ:
            long = sorted(one for one in asked.lengths if one)
            unit = next((one for one in _UNITS if not long or one * _STEPS <= long[0]), 1)
            begin: Any = NOON
            found: list[int | float] = list(long)
            if type is DataType.DATE:
                unit, begin = 1, NOON // DAY
                found = sorted({one // DAY for one in long})
        else:
            sizes = sorted(asked.sizes.get(name, {}))
            whole = type not in (DataType.FLOAT, DataType.DOUBLE)
            unit, begin = 1, 0
            found = sorted({math.floor(one) for one in sizes}) if whole else list(sizes)
        units[name], lengths[name] = unit, tuple(found)
        around = [one for value in constants for one in (value - unit, value)]  # type: ignore[operator]
        begins[name] = (begin, *around[:6])
    return Clocks(dict(asked.clocks), begins, units, lengths)


def patterns(count: int, unit: int | float, lengths: Sequence[int | float]) -> list[Pattern]:
    """The times of `count` events: small steps, with up to two that are as long as a length, or
    longer or shorter by a unit, or with no time between two events."""
    plain = tuple(place * unit for place in range(count))
    found: dict[Pattern, None] = {plain: None}
    sizes = [*lengths, *(one + unit for one in lengths), *(one - unit for one in lengths), 0]
    for size in sizes:
        for place in range(1, count):
            found.update(dict.fromkeys(_long_step(plain, place, size, unit)))
    pairs = product(combinations(range(1, count), 2), lengths, lengths)
    for number, ((first, second), one, other) in enumerate(pairs):
        if number >= _MOST_PAIRS:
            break
        for pattern in list(_long_step(plain, first, one, unit))[:1]:
            found.update(dict.fromkeys(_long_step(pattern, second, other, unit)))
    return [one for one in found if all(a <= b for a, b in pairwise(one))]


def _long_step(
    times: Pattern, place: int, size: int | float, unit: int | float
) -> Iterator[Pattern]:
    """Times with a long step before the event at `place`: one of a size, and one with which the
    time from the first event to the last has that size."""
    step = times[place] - times[place - 1]
    yield (*times[:place], *(one - step + size for one in times[place:]))
    last = len(times) - 1
    if place > 1 or last > place:
        rest = tuple(size - (last - later) * unit for later in range(place, last + 1))
        yield (*times[:place], *rest)
        # Events that end together: none of them is nearer to the first one.
        yield (*times[:place], *((size,) * len(rest)))
