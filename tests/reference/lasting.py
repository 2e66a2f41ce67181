"""Events that last from their start to their end: those of LASTING streams, and of queries that
read queries.

The axis of such a part are the times at which something starts or ends. A match lies between two
*places* of this axis. A place is the number of its time, and within one time a position: that of
the first event for a start, the greatest one for an end. So a match that ends at a time is before
one that starts at a later time, and every line of the table reads as for events without length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import nodes as n
from .conditions import Row
from .instants import instants_of
from .values import CelError, Datum
from .windows import number_of

BEGIN = "the start of the event"
"""Among a row's values, the time at which the event starts."""


@dataclass(frozen=True)
class Axis:
    """`times`: those at which something starts or ends, ascending; `places`: for each row the
    places of its start and of its end; `width`: the places of one time."""

    times: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    width: int

    def time(self, place: int) -> Any:
        """The time of a place."""
        return self.times[place // self.width]

    def span(self, start: int, end: int) -> Any:
        """How long a match lasts, which a window is compared with; times in microseconds."""
        return measure(self.time(end)) - measure(self.time(start))

    def is_next(self, end: int, other: int, ends: Sequence[int]) -> bool:
        """Whether nothing ends between these ends of two matches; `ends`: those of all events."""
        return not any(end // self.width < one // self.width < other // self.width for one in ends)

    def first_position(self, start: int) -> int:
        """The first position of the instant in which the first event of a match ends."""
        return start % self.width

    def union(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        """The places of a match of ALL: the least and the greatest."""
        starts, width = (one[0], other[0]), self.width
        time = min(start // width for start in starts)
        return time * width + min(start % width for start in starts), max(one[1], other[1])

    def is_inside(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether a match starts and ends inside another."""
        return other[0] // self.width <= one[0] // self.width and one[1] <= other[1]


def axis_of(rows: Sequence[Row], order: str) -> Axis:
    """The axis of a part whose rows come in the order of their ends."""
    ends = [row.values[order].value for row in rows]
    starts = [row.values[BEGIN].value for row in rows]
    times = sorted({*ends, *starts})
    number = {time: place for place, time in enumerate(times)}
    width = len(rows) + 1
    firsts = [first for first, _ in instants_of(rows, (order,))]
    places = tuple(
        (number[start] * width + first, number[end] * width + width - 1)
        for start, end, first in zip(starts, ends, firsts, strict=True)
    )
    return Axis(tuple(times), places, width)


def no_axis(instants: Sequence[tuple[int, int]]) -> Axis:
    """The axis of events without length: its places are positions."""
    return Axis((), tuple(instants), 1)


def measure(value: Any) -> Any:
    """The number of a value; for times, microseconds."""
    return number_of(value)


def lasting_streams(
    query: n.Query, file: n.File, order_by: tuple[str, ...], reads: Sequence[n.Query]
) -> dict[str, str]:
    """The attributes of the starts of the events of a query's LASTING streams, and for its other
    declared streams that of their ends, which are starts as well. Empty without such a stream; the
    end is that of each type of all streams. CelError where the declaration has no meaning."""
    read = {one.name for one in reads}
    names = [one for one in query.streams or file.streams if one not in read]
    found = {name: file.lasting[name] for name in names if name in file.lasting}
    if not found:
        return {}
    if order_by:
        raise CelError("order_by where events last")
    if any(name in file.uncertain for name in names):
        raise CelError("uncertain time beside events that last")
    ends = {end for _, end in found.values()}
    if len(ends) > 1:
        raise CelError("streams whose events last, with different ends")
    (end,) = ends
    starts = {name: found[name][0] if name in found else end for name in names}
    kinds = set()
    for one in file.types:
        if one.stream in starts:
            kinds |= {one.attributes.get(end), one.attributes.get(starts[one.stream])}
    if None in kinds or len(kinds) > 1 or any(start == end for start, _ in found.values()):
        raise CelError("an event type without a start, or an end, or of another type")
    return starts


def end_of(file: n.File, starts: dict[str, str]) -> str:
    """The order column where events last."""
    return next(file.lasting[name][1] for name in starts if name in file.lasting)


def check_event(start: Any, end: Any) -> None:
    """Raise CelError for an event without a start or an end, or that ends before it starts."""
    if start is None or end is None or end < start:
        raise CelError("an event that does not last from its start to its end")


def check_reader(query: n.Query, file: n.File, order_by: tuple[str, ...]) -> None:
    """Raise CelError where a query that reads queries has no meaning."""
    check_lasting(order_by)
    for one in read_by(query, file):
        if one.per is not None or one.collapsed or one.for_each is not None:
            raise CelError(f"{one.name} has no rows that can be read")


def check_lasting(order_by: tuple[str, ...]) -> None:
    """Raise CelError where a query over events that last has no meaning."""
    if len(order_by) != 1:
        raise CelError("a query over events that last has one order column")


def read_by(query: n.Query, file: n.File) -> list[n.Query]:
    """The queries that a query names in FROM, in the order of the file. CelError for a name that
    means nothing, or two things."""
    names = [one.name for one in file.queries]
    types = {one.name for one in file.types}
    for name in filter(None, names):
        is_read = any(name in (one.streams or ()) for one in file.queries)
        if is_read and (name in file.streams or name in types):
            raise CelError(f"{name} is a query, and a stream or an event type")
    if query.streams is None:
        return []
    found = []
    for one in file.queries:
        if one is query or one.name == query.name:
            break
        if one.name in query.streams:
            found.append(one)
    return found


def attributes_of_rows(query: n.Query, order: str) -> list[str]:
    """The attributes of the rows of a query, as events: no attribute has a type of arrays, so
    COLLECT gives none. CelError where two have one name."""
    names = [key[0] for key in query.partition_by]
    names += [
        item.name
        for item in query.items or ()
        if isinstance(item, n.ExpressionItem) and not _is_array(item.expression)
    ]
    names += [order, "start_time"]
    if len({name.lower() for name in names}) < len(names):
        raise CelError(f"the rows of {query.name} have an attribute twice")
    return names


def _is_array(expression: n.Expression) -> bool:
    return isinstance(expression, n.Aggregate) and expression.function == "COLLECT"


def order_among_rows(values: Sequence[Datum]) -> tuple[tuple[bool, Any], ...]:
    """What puts rows of one query and one end in order: NULL first, NaN last."""

    def key(value: Any) -> tuple[bool, Any]:
        if value is None:
            return False, 0
        return True, (1, 0.0) if value != value else (0, value)

    return tuple(key(one.value) for one in values)
