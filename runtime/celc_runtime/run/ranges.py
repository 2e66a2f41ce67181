"""Time ranges: parts of a stream, or of the events of one key, that can be read side by side.

A match is found in every part of the stream that holds its first event and its last (theorem 1.1
of the CEP2ASP paper). So each range reads its own events, and before them the events to which a
window reaches back; it keeps the matches that end in its own events. Where events after a match
decide it, the range reads on, as far behind its own events as a deadline lies. The seams may be
anywhere. Ranges are cut between values of the first order column: events with one value stay
together, whatever orders them further.

Here is what holds for Spark's jobs (`spark/time_ranges`) and for threads (`run/parts`) alike.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Plan, Window
from celc_runtime.values.types import DataType, is_wide, type_of

Number = int | float
"""A value of an order column: TIMESTAMP in microseconds and DATE in days since 1970."""

_NO_LINE = (DataType.BOOLEAN, DataType.STRING, DataType.INTERVAL)

_LONGS = range(-(2**63), 2**63)

GRID = 256
"""A sample is described by its quantiles, one less than this number."""

_MOST_READ = 1.5
"""Times the number of rows. If all ranges together read more, fewer ranges are made."""
_LONGEST = 0.75
"""Share of the rows. If one range reads more, fewer ranges are made."""

_EVEN = 1.25
"""Times its share of the rows. Ranges are even if none has more."""


class TimeRange(NamedTuple):
    """A part of a stream, which reads more rows than its own: those with which its matches may
    begin, and those that decide them. Borders are values of the order column; None: no border."""

    low: Number | None
    """It reads rows from here on."""
    start: Number | None
    """Its own rows begin here."""
    end: Number | None
    """It reads rows before here."""
    first_position: int
    """The position of the first row that it reads."""
    rows: int
    """The number of rows that it reads."""
    later: Number | None = None
    """From here on, rows are not its own, but decide its matches; None: there are no such rows."""
    is_checked: bool = True
    """Whether a task fails if it reads another number of rows."""

    @property
    def shipped(self) -> tuple[Number | None, int, int | None, Number | None]:
        """The range for a worker, as plain values; no number of rows where it is not checked."""
        rows = self.rows if self.is_checked else None
        return self.start, self.first_position, rows, self.later


@frozen
class Sample:
    """`rows`: the estimated number of all rows. `grid`: the quantiles of the order column."""

    rows: int
    grid: tuple[Number, ...]

    def quantile(self, share: float) -> int:
        """The place in the grid that has the given share of the rows before it."""
        return min(len(self.grid) - 1, max(0, round(share * len(self.grid))))


def is_line(declared: str) -> bool:
    """Whether the values of an order column of this type are numbers of up to 64 bits, or times, so
    that ranges can be cut between them."""
    type = type_of(declared)
    return type not in _NO_LINE and not is_wide(type)


def why_not_split(plan: Plan) -> str:
    """Why matches cannot be found in parts of the stream; empty where they can be."""
    if plan.matching.window is None and not plan.matching.one_event:
        return "the query has no window (WITHIN), so a match may begin with the first event"
    if plan.source.uncertain is not None:
        return (
            "the time of events is uncertain, so that an event can come before one in front of it"
        )
    if plan.matching.consume_by != "NONE":
        return f"with CONSUME BY {plan.matching.consume_by} every match depends on those before it"
    if plan.choice.per_start is not None:
        return f"SELECT {plan.choice.per_start} compares matches that can end in different parts"
    if plan.choice.rate is not None:
        return "with LIMIT … PER every row depends on those before it"
    if plan.answer.totals is not None and plan.answer.totals.per != "END":
        return "a row of totals stands for matches that can end in different parts"
    if plan.matching.nested_selectors:
        return "a selector inside the formula compares matches over the whole stream"
    attribute = plan.window_attribute
    if attribute is not None and attribute != plan.source.order_by[0]:
        return (
            f"the window is measured on {attribute!r}, and not on the first order "
            f"column {plan.source.order_by[0]!r}"
        )
    if plan.choice.deadlines and plan.farthest_deadline is None:
        return (
            "an absence at the end of a match is measured in events, on another column than the "
            "first of the order, or on floating numbers"
        )
    if plan.whole_window is None:
        return (
            "an absence before a match is measured in another way than the window, or on floating "
            "numbers"
        )
    return ""


class OrderLine:
    """The values of the first order column as a line that ranges are cut from.

    declared: its type, as the language names it.
    """

    def __init__(self, declared: str) -> None:
        self.declared = declared

    def window_start(self, number: Number, window: Window) -> Number | None:
        """A value that is not after any event in the windows that end at `number` or later; None:
        there is none in 64 bits."""
        low: Number
        match self.declared:
            case "DATE":
                low = (number * MICROSECONDS_PER_DAY - math.ceil(window.size)) // (
                    MICROSECONDS_PER_DAY
                )
            case "FLOAT" | "DOUBLE":
                # `end - start <= size` rounds, and so does this: an ulp or two earlier is safe.
                low = number - window.size * (1 + 2**-50)
                low = math.nextafter(math.nextafter(low, -math.inf), -math.inf)
            case _:
                low = int(number) - math.ceil(window.size)
        if isinstance(low, float) and not math.isfinite(low):
            return None
        return None if isinstance(low, int) and low not in _LONGS else low

    def deadline_end(self, number: Number, deadline: Window) -> Number | None:
        """A value that is after all events which can decide a match that ends before `number`;
        None: there is none in 64 bits. Not for floating numbers."""
        later = math.ceil(deadline.size)
        if self.declared == "DATE":
            later = -(-later // MICROSECONDS_PER_DAY)
        end = int(number) + later
        return end if end in _LONGS else None


@frozen
class Cuts:
    """Where a stream may be cut into ranges."""

    seams: tuple[Number, ...]
    """The values at which one range ends and the next begins."""
    lows: tuple[tuple[Number, ...], ...]
    """For each seam, where the range behind it may begin to read, the best place last."""
    ends: tuple[Number | None, ...] = ()
    """For each seam, where the range before it may stop reading; None: after the last row. Empty:
    at the seams."""

    @property
    def borders(self) -> list[Number]:
        """All the values, ascending."""
        ends = (end for end in self.ends if end is not None)
        return sorted({*self.seams, *(low for lows in self.lows for low in lows), *ends})

    def fewer(self) -> Cuts:
        """Every second one of the cuts."""
        return Cuts(self.seams[1::2], self.lows[1::2], self.ends[1::2])


def cuts_for(
    sample: Sample, order: OrderLine, window: Window, ranges: int, deadline: Window | None = None
) -> Cuts:
    """Seams that cut the sample into equal shares, each with the lows that the window needs, and
    the ends that the farthest deadline does."""
    if not sample.grid:
        return Cuts((), ())
    places = dict.fromkeys(sample.quantile(number / ranges) for number in range(1, ranges))
    seams = sorted({sample.grid[place] for place in places} - {sample.grid[0]})
    lows = []
    for seam in seams:
        if window.unit == "EVENTS":
            lows.append(_early_enough(sample, seam, int(window.size)))
        else:
            low = order.window_start(seam, window)
            lows.append(() if low is None else (low,))
    ends = [] if deadline is None else [order.deadline_end(seam, deadline) for seam in seams]
    return Cuts(tuple(seams), tuple(lows), tuple(ends))


def _early_enough(sample: Sample, seam: Number, size: int) -> tuple[Number, ...]:
    """Values that may have `size` events between them and the seam; counting says which do."""
    at = bisect_left(sample.grid, seam)
    steps = 1 + math.ceil(1.25 * size * (len(sample.grid) + 1) / max(1, sample.rows))
    found = {sample.grid[at - step] for step in (4 * steps, 2 * steps, steps) if step <= at}
    return tuple(sorted(low for low in found if low < seam))


def ranges_of(cuts: Cuts, counts: Sequence[int], window: Window) -> list[TimeRange]:
    """The ranges between the seams; `counts` are the rows between the cuts' borders."""
    total = sum(counts)
    before: dict[Number | None, int] = dict(zip(cuts.borders, accumulate(counts[:-1]), strict=True))
    before[None] = 0
    ranges = []
    low: Number | None = None
    start: Number | None = None
    for number in range(len(cuts.seams) + 1):
        seam = cuts.seams[number] if number < len(cuts.seams) else None
        end, later = seam, None
        if seam is not None and cuts.ends:
            end, later = cuts.ends[number], seam
        rows = (total if end is None else before[end]) - before[low]
        ranges.append(TimeRange(low, start, end, before[low], rows, later))
        if seam is None:
            break
        start = seam
        for candidate in cuts.lows[number]:
            # A low that is early enough for one seam is so for the next; so lows never fall.
            enough = window.unit != "EVENTS" or before[seam] - before[candidate] >= window.size
            if enough and (low is None or candidate > low):
                low = candidate
    return ranges


def is_even(cuts: Cuts, counts: Sequence[int]) -> bool:
    """Whether no range has many more events of its own than another one."""
    before = dict(zip(cuts.borders, accumulate(counts[:-1]), strict=True))
    own = [to - start for start, to in pairwise((0, *(before[s] for s in cuts.seams), sum(counts)))]
    return max(own) * len(own) <= _EVEN * sum(counts)


def worthwhile(cuts: Cuts, counts: Sequence[int], window: Window) -> list[TimeRange]:
    """Ranges that do not read too many rows twice: between all seams, or between half of them, a
    quarter, and so on."""
    while True:
        ranges = ranges_of(cuts, counts, window)
        read, longest, rows = sum(r.rows for r in ranges), max(r.rows for r in ranges), sum(counts)
        if not cuts.seams or (read <= _MOST_READ * rows and longest <= _LONGEST * rows):
            return ranges
        fewer = cuts.fewer()
        counts = _merged(counts, cuts.borders, fewer.borders)
        cuts = fewer


def _merged(counts: Sequence[int], borders: Sequence[Number], fewer: Sequence[Number]) -> list[int]:
    """The counts between fewer borders."""
    merged = [0] * (len(fewer) + 1)
    place = 0
    for number, count in enumerate(counts):
        while place < len(fewer) and number > 0 and fewer[place] <= borders[number - 1]:
            place += 1
        merged[place] += count
    return merged
