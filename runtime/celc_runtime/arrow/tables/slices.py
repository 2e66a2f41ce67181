"""Slices of an answer: the rows that become known in a stretch of time, `after` … `until`.

A slice has two parts on every route. It restricts the events, to those of the order column up to
`until`, and back from `after` as far as a row of the slice can ask (`known_times`). And it filters
the rows by the time at which they are known. That no event up to `until` is missing is what
`at_end='closed'` says; rows that events behind `until` could undo are known later.
"""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.events.conforming import conforming_column
from celc_runtime.arrow.events.row_names import row_text
from celc_runtime.arrow.tables.known_times import (
    NUMBERS,
    Known,
    Number,
    known_of,
    order_type,
    reach_of,
)
from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.errors import PlanWarning
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.values.warned import warn

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True)
class Stretch:
    """Values of a column of numbers or times: those above `low` and up to `high` (None: without a
    bound)."""

    column: str
    type: str  # as the language names it
    low: Number | None = None
    high: Number | None = None

    def text(self) -> str:
        """The bounds in words."""
        parts = [] if self.low is None else [f"after {shown_bound(self.low, self.type)}"]
        if self.high is not None:
            parts.append(f"up to {shown_bound(self.high, self.type)}")
        return " ".join(parts)

    @property
    def is_all(self) -> bool:
        return self.low is None and self.high is None

    def holds(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Where the values of a column of this type are in it; NULL where they are NULL."""
        values = column
        if self.type not in NUMBERS:
            values = column.cast(pa.int32() if self.type == "DATE" else pa.int64())
        found = None
        for bound, compare in ((self.low, pc.greater), (self.high, pc.less_equal)):
            if bound is not None:
                is_inside = compare(values, _scalar(bound, values.type))
                found = is_inside if found is None else pc.and_(found, is_inside)
        assert found is not None, "there is a bound"
        return found

    def of_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch whose value is in it."""
        return batch.filter(self.holds(batch.column(self.column)))

    def of_events(self, plan: Plan, events: pa.Table, rows_seen: int = 0) -> pa.Table:
        """The events whose order is in it, and those without any, which the run refuses.

        Raises EventError where the column has another type than is declared.
        """
        mask = self.mask(plan, events, rows_seen)
        return events if mask is None else events.filter(mask)

    def mask(self, plan: Plan, events: pa.Table, rows_seen: int = 0) -> pa.ChunkedArray | None:
        """Which events these are; None: all, or the run says what is wrong with the column."""
        if self.is_all or events.column_names.count(self.column) != 1:
            return None
        field = pa.field(self.column, arrow_type(self.type))
        row_of = partial(row_text, events, rows_seen=rows_seen, numbered=None)
        column = events.column(self.column)
        chunks = [conforming_column(plan, field, chunk, row_of) for chunk in column.chunks]
        inside = self.holds(pa.chunked_array(chunks, field.type))
        return pc.fill_null(inside, True)

    def condition(self, type: pa.DataType) -> pc.Expression | None:
        """The events as a filter of a dataset whose column has this type. None: it is all of
        them, or a bound is no value of the type."""
        bounds = []
        for bound, compare in ((self.low, pc.greater), (self.high, pc.less_equal)):
            if bound is not None:
                if (value := _bound_in(bound, self.type, type)) is None:
                    return None
                bounds.append(compare(pc.field(self.column), value))
        if not bounds:
            return None
        inside = bounds[0] if len(bounds) == 1 else bounds[0] & bounds[1]
        return inside | pc.field(self.column).is_null()

    def excludes(self, least: Any, greatest: Any) -> bool:
        """Whether no value between two of the column, as Python has them, is in it."""
        try:
            first, last = as_bound(self.type, least), as_bound(self.type, greatest)
        except (ValueError, TypeError):
            return False
        below = self.low is not None and last <= self.low
        return below or (self.high is not None and first > self.high)


@dataclass(frozen=True)
class EventsBetween:
    """Events in any form that `match_table` takes, of which only those in a stretch are read."""

    events: Any
    stretch: Stretch


@dataclass(frozen=True)
class Slice:
    """The rows of a program that become known after a time and up to another."""

    program: Program  # as it is run for them
    known: Known
    after: Number | None
    until: Number | None

    @cached_property
    def _reach(self) -> tuple[Number | None, str]:
        return reach_of(self.program)

    @property
    def _order(self) -> str:
        return self.program.plan.source.order_by[0]

    @cached_property
    def read(self) -> Stretch:
        """The events that are read."""
        type, reach = order_type(self.program.plan), self._reach[0]
        low = None
        if self.after is not None and reach is not None:
            low = earlier(self.after, reach, type)
        return Stretch(self._order, type, low, self.until)

    @cached_property
    def rows(self) -> Stretch:
        """The rows of the answer, by the column that tells when they are known."""
        plan = self.program.plan
        type = order_type(plan)
        bounds = [
            None if one is None else one - self.known.later for one in (self.after, self.until)
        ]
        if self.known.column == "span_end":
            days = MICROSECONDS_PER_DAY if type == "DATE" else 1
            bounds = [None if one is None else one * days for one in bounds]
            type = "TIMESTAMP"
        return Stretch(self.known.column, type, *bounds)

    def line(self) -> str:
        """What is read and why, for a plan."""
        reach, why = self._reach
        read = self.read
        if read.is_all:
            events = "all events are read"
        else:
            events = f"events of {read.column!r} {read.text()} are read"
        if self.after is None:
            reason = "nothing of the past is left out, because `after` is"
        elif reach is None:
            reason = f"everything before is read, because {why}"
        else:
            reason = f"so far before `after` a row asks: {why}"
        later = "" if not self.known.later else f" by {_shown_length(self.known.later, read.type)}"
        of = f"{'later than ' if later else 'at '}their {self.known.column!r}{later}"
        return f"slice: {events} ({reason}); rows are known {of}"

    def tell(self) -> None:
        """Warn where everything is read though `after` is given."""
        reach, why = self._reach
        if self.after is not None and reach is None:
            bound = "" if self.until is None else " up to `until`"
            warn(
                f"query {self.program.name!r}: all events{bound} are read, also those long before "
                f"`after`, because {why}",
                PlanWarning,
            )

    def keeps(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the slice among rows of the answer."""
        for batch in batches:
            yield self.rows.of_rows(batch)


def slice_of(
    program: Program, after: object, until: object, *, goes_on: bool = False
) -> Slice | None:
    """The slice of a program; None: neither bound is given. goes_on: the input is a stream, which
    `until` does not end.

    Its answer has no positions, which would be those of the events that are read. Raises EventError
    where the rows of the query have no such times or depend on events long before them, TypeError
    and ValueError for what is no value of the first order column, or for `after` later than
    `until`.
    """
    if after is None and until is None:
        return None
    for bound, route in ((after, Route.AFTER), (until, Route.UNTIL)):
        if bound is not None:
            check(program, route)
    since, last = _bounds(program.plan, after, until)
    is_over = last is not None and not goes_on
    changed = program.with_options(positions=False, at_end="closed" if is_over else None)
    return Slice(changed, known_of(changed), since, last)


def _bounds(plan: Plan, after: object, until: object) -> tuple[Number | None, Number | None]:
    type, name = order_type(plan), plan.source.order_by[0]
    found = [
        None if value is None else bound_of(word, name, type, value)
        for word, value in (("after", after), ("until", until))
    ]
    since, last = found
    if since is not None and last is not None and since > last:
        raise ValueError(
            f"after={shown_bound(since, type)} is later than until={shown_bound(last, type)}: "
            "the rows of a slice become known after the one and up to the other"
        )
    return since, last


def common_stretch(slices: Iterable[Slice]) -> Stretch:
    """The events that several slices read together.

    Raises ValueError for queries of other order columns.
    """
    reads = [one.read for one in slices]
    first = reads[0]
    for one in reads:
        if (one.column, one.type) != (first.column, first.type):
            raise ValueError(
                f"the queries are ordered by {first.column!r} and by {one.column!r}, and after and "
                "until are values of one column: run the queries of each order by themselves"
            )
    lows = [one.low for one in reads]
    known = [one for one in lows if one is not None]
    low = min(known) if len(known) == len(lows) else None
    return Stretch(first.column, first.type, low, first.high)


# --- bounds ---------------------------------------------------------------------------------------


def bound_of(word: str, column: str, type: str, value: object) -> Number:
    """A bound that a call gives; raises TypeError or ValueError for no value of the column."""
    try:
        return as_bound(type, value)
    except (TypeError, ValueError, OverflowError) as problem:
        kind = ValueError if isinstance(problem, OverflowError) else problem.__class__
        raise kind(
            f"{word}={value!r}: {problem}; the first order column is {column!r}, a {type}"
        ) from None


def bound_of_text(plan: Plan, word: str, text: str, zone: str = "UTC") -> object:
    """A bound that a command line gives, as a call takes it: a number, or the text of a time, in
    `zone` where it names none. Raises ValueError for what is no such text."""
    if not plan.source.order_by:
        return text  # there is no column, which is refused with other words
    type, name = order_type(plan), plan.source.order_by[0]
    option = f"--{word} {text}"
    if type in NUMBERS:
        try:
            number = float(text) if type in ("FLOAT", "DOUBLE") else int(text)
        except ValueError:
            raise ValueError(
                f"{option}: this text is no number; the first order column is {name!r}, a {type}"
            ) from None
        return number
    if type not in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
        return text
    try:
        as_bound(type, text)
    except ValueError as problem:
        raise ValueError(
            f"{option}: {problem}; the first order column is {name!r}, a {type}"
        ) from None
    if type != "TIMESTAMP":
        return text
    found = dt.datetime.fromisoformat(text.strip())
    return found if found.tzinfo is not None else found.replace(tzinfo=ZoneInfo(zone))


def as_bound(type: str, value: object) -> Number:
    """A value of a type as a number: TIMESTAMP in microseconds, DATE in days since 1970."""
    match type:
        case "DATE":
            return _day(value)
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            return _instant(value, has_zone=type == "TIMESTAMP")
        case _:
            return _number(value, whole=type not in ("FLOAT", "DOUBLE"))


def _number(value: object, *, whole: bool) -> Number:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError("give a number")
    if isinstance(value, numbers.Integral):
        return int(value)
    if whole:
        raise TypeError("give a whole number")
    if not math.isfinite(value):
        raise ValueError("give a finite number")
    return float(value)


def _day(value: object) -> int:
    if isinstance(value, str):
        try:
            value = dt.date.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("this text is no day: write it as in '2026-07-01'") from None
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise TypeError("give a date, or its text as in '2026-07-01'")
    return (value - _EPOCH.date()).days


def _instant(value: object, *, has_zone: bool) -> int:
    if isinstance(value, str):
        value = _time_of_text(value, has_zone=has_zone)
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
        value = value.replace(tzinfo=dt.UTC) if has_zone else value
    if not isinstance(value, dt.datetime):
        raise TypeError("give a datetime, or the text of a time as in '2026-07-01 12:00:00'")
    if has_zone and value.tzinfo is None:
        raise ValueError(
            "this time has no zone: give one that has, as in datetime(2026, 7, 1, tzinfo=UTC)"
        )
    if not has_zone and value.tzinfo is not None:
        raise ValueError("this time has a zone, and those of the column have none: leave it out")
    plain = value.astimezone(dt.UTC).replace(tzinfo=None) if has_zone else value
    return (plain.replace(fold=0) - _EPOCH) // _MICROSECOND


def _time_of_text(text: str, *, has_zone: bool) -> dt.datetime:
    """A time as the language writes it: without a zone it is in UTC."""
    try:
        found = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            "this text is no time: write it as in '2026-07-01' or '2026-07-01 12:00:00'"
        ) from None
    return found.replace(tzinfo=dt.UTC) if has_zone and found.tzinfo is None else found


def earlier(bound: Number, length: Number, type: str) -> Number:
    """A value that is not above `bound` less the length, also where floating numbers round."""
    if type not in ("FLOAT", "DOUBLE"):
        return bound - length
    low = bound - length * (1 + 2**-50)
    return math.nextafter(math.nextafter(low, -math.inf), -math.inf)


def shown_bound(bound: Number, type: str) -> str:
    """A bound as messages write it."""
    try:
        if type == "DATE":
            return str(_EPOCH.date() + dt.timedelta(days=int(bound)))
        if type in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            zone = "+00:00" if type == "TIMESTAMP" else ""
            return f"{_EPOCH + int(bound) * _MICROSECOND}{zone}"
    except OverflowError:
        pass
    return str(bound)


def _shown_length(length: Number, type: str) -> str:
    if type in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return str(dt.timedelta(microseconds=int(length)))
    return f"{length} days" if type == "DATE" else str(length)


def _scalar(bound: Number, type: pa.DataType) -> pa.Scalar:
    """A bound to compare a column with; beyond 64 bits, the nearest number."""
    if pa.types.is_floating(type):
        return pa.scalar(float(bound), pa.float64())
    return pa.scalar(min(max(int(bound), -(2**63)), 2**63 - 1), pa.int64())


def _bound_in(bound: Number, type: str, found: pa.DataType) -> pa.Scalar | None:
    """A bound as a value of a column's type; None: there is none."""
    try:
        value = pa.scalar(bound, pa.float64() if isinstance(bound, float) else pa.int64())
        if type == "DATE":
            return value.cast(pa.int32()).cast(pa.date32()) if found == pa.date32() else None
        if type in NUMBERS:
            return value
        if not pa.types.is_timestamp(found):
            return None
        return value.cast(pa.timestamp("us", tz=found.tz)).cast(found)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
