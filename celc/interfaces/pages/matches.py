"""The data of a report: which matches and events are shown, and how."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.plan.near.queries import TOLD

from celc.interfaces.pages.bars import Bars, Lanes, bars_of, coordinate_of_ends, lanes_of
from celc.interfaces.pages.gathered import Counts, Gathered
from celc.interfaces.pages.marks import Marks, coordinates
from celc.interfaces.pages.page import Page, page_of
from celc.interfaces.pages.sample import lowest, ranks, with_others
from celc.interfaces.pages.values import column_of

MOST_MARKS = 100_000  # events drawn

SCRIPTS = ("report_values", "report_drawing", "report_moving", "report_list")
MOST_BARS = 10_000  # matches drawn and listed


@dataclass(frozen=True)
class Limits:
    """How many events and matches a page shows."""

    events: int = MOST_MARKS
    matches: int = MOST_BARS

    def __post_init__(self) -> None:
        """Raises ValueError where a limit is not a number of events or matches."""
        for name, most in (("max_events", self.events), ("max_matches", self.matches)):
            if type(most) is not int or most < 0:
                raise ValueError(f"{name} must be a whole number from 0, not {most!r}")


@dataclass(frozen=True)
class Words:
    """What a page says of its query: a title, the text and whether it has colours, the words for
    its rows, and notes."""

    title: str
    text: str = ""
    one: str = "match"
    many: str = "matches"
    notes: tuple[str, ...] = field(default=())
    is_cel: bool = False


def gathering(
    marks: Marks, schema: pa.Schema, limits: Limits, low_high: tuple[float, float] | None = None
) -> Gathered:
    """An object that takes the matches in these events.

    `low_high` are the ends of the axis where there are no events.
    """
    low, high = low_high or _span(_axis(marks)[0])
    _, last = _span(marks.positions.astype(np.float64))
    return Gathered(schema, limits.matches, Counts(low, high), Counts(0, last))


def _span(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def _axis(marks: Marks) -> tuple[np.ndarray, str]:
    """The coordinates of events, and the kind of the axis: time, number or position."""
    found = None if marks.order is None else coordinates(marks.order)
    if found is None:
        return marks.positions.astype(np.float64), "position"
    return found[0], "time" if found[1] else "number"


def matches_page(
    marks: Marks,
    gathered: Gathered,
    words: Words,
    limits: Limits,
    near: pa.Table | None = None,
) -> Page:
    """The page of matches and their events, and of near misses (None: nobody asked for them).
    Raises ValueError where these do not fit together."""
    matches = gathered.table()
    bent = {}
    if near is not None:
        bent = {"first": len(matches), "count": len(near), "columns": len(matches.schema)}
        matches = _with_near(matches, near, limits)
    lanes = lanes_of(marks, matches)
    bars = bars_of(marks, lanes, matches)
    drawn = np.flatnonzero(marks.types >= 0)
    shown = _shown(marks, bars, drawn, limits)
    x, axis = _axis(marks)
    data = {
        "title": words.title,
        "text": words.text,
        "words": [words.one, words.many],
        "notes": [*words.notes, *_notes(marks, drawn)],
        "axis": {"kind": axis, "name": marks.order_name if axis != "position" else None},
        "types": list(marks.type_names),
        "quiet": marks.quiet,
        "lanes": {
            "count": lanes.count,
            "keys": [
                column_of(name, keys)
                for name, keys in zip(marks.key_names, lanes.keys, strict=True)
            ],
        },
        "events": _events(marks, lanes, x, shown, len(drawn)),
        "matches": _matches(bars, lanes, matches, shown, gathered.count),
        "counts": [_counts(gathered.by_order), _counts(gathered.by_position)],
    }
    if bent:
        data["near"] = bent
    scripts = ("colours", *SCRIPTS) if words.is_cel else SCRIPTS
    return page_of("report", scripts, f"{words.title} · celc report", data)


def _with_near(matches: pa.Table, near: pa.Table, limits: Limits) -> pa.Table:
    """Matches, and behind them the near misses that are shown. Raises ValueError where `near` has
    not the columns of near misses of these matches."""
    wanted = [*matches.schema.names, *TOLD]
    if near.schema.names != wanted:
        raise ValueError(
            "near must be what near_misses returned for the query of these matches, with the "
            f"columns {', '.join(wanted)}; it has {', '.join(near.schema.names)}"
        )
    shown = near
    if len(near) > limits.matches:
        shown = near.take(pa.array(np.sort(lowest(ranks(0, len(near)), limits.matches))))
    return pa.concat_tables([matches, shown.cast(_types(matches, near))], promote_options="default")


def _types(matches: pa.Table, near: pa.Table) -> pa.Schema:
    """The columns of near misses in the types of the matches."""
    return pa.schema([*matches.schema, *list(near.schema)[len(matches.schema) :]])


def page_of_tables(
    marks: Marks,
    matches: pa.Table,
    words: Words,
    limits: Limits,
    near: pa.Table | None = None,
) -> Page:
    """The page of all matches in one table, and of near misses."""
    both = None
    if not len(marks):
        ends = coordinate_of_ends(matches, "end_time", "span_end", "end_pos")
        finite = ends[np.isfinite(ends)]
        both = (float(finite.min()), float(finite.max())) if len(finite) else None
    gathered = gathering(marks, matches.schema, limits, both)
    for batch in matches.to_batches():
        gathered.add(batch)
    return matches_page(marks, gathered, words, limits, near)


def _shown(marks: Marks, bars: Bars, drawn: np.ndarray, limits: Limits) -> np.ndarray:
    """The rows of the events that are drawn; the events of matches come first."""
    needed = np.unique(bars.rows)
    place = np.full(len(marks), -1, np.int64)
    place[drawn] = np.arange(len(drawn))
    of_drawn = place[needed]
    chosen: np.ndarray = drawn[with_others(of_drawn[of_drawn >= 0], len(drawn), limits.events)]
    return chosen


def _notes(marks: Marks, drawn: np.ndarray) -> list[str]:
    notes = []
    others = len(marks) - len(drawn)
    if others:
        notes.append(f"{others:,} events of types that the query does not name are not drawn.")
    if marks.undeclared:
        notes.append(
            f"{marks.undeclared:,} rows of types that the query's streams do not declare are left "
            "out."
        )
    return notes


def _numbers(values: np.ndarray) -> list[float | None]:
    """Numbers for JSON: whole numbers without a point, NaN as null."""
    return [
        None if value != value else int(value) if value == int(value) else value
        for value in values.tolist()
    ]


def _events(
    marks: Marks, lanes: Lanes, x: np.ndarray, shown: np.ndarray, count: int
) -> dict[str, Any]:
    table = marks.table.take(pa.array(shown, pa.int64()))
    return {
        "count": count,
        "lane": lanes.of_events[shown].tolist(),
        "x": _numbers(x[shown]),
        "pos": marks.positions[shown].tolist(),
        "type": marks.types[shown].tolist(),
        "columns": [column_of(name, table.column(name)) for name in table.column_names],
    }


def _matches(
    bars: Bars, lanes: Lanes, matches: pa.Table, shown: np.ndarray, count: int
) -> dict[str, Any]:
    places = np.searchsorted(shown, bars.rows)
    found = np.zeros(len(places), np.bool_)
    if len(shown):
        found = shown[np.minimum(places, len(shown) - 1)] == bars.rows
    before = np.concatenate([[0], np.cumsum(found)])
    return {
        "count": count,
        "lane": lanes.of_matches.tolist(),
        "start": _numbers(bars.starts),
        "end": _numbers(bars.ends),
        "startPos": bars.start_positions.tolist(),
        "endPos": bars.end_positions.tolist(),
        "labels": list(bars.label_names),
        "offsets": before[bars.offsets].tolist(),
        "events": places[found].tolist(),
        "labelOf": bars.labels[found].tolist(),
        "sizes": bars.counts.tolist(),
        "columns": [
            column_of(name, matches.column(place))
            for place, name in enumerate(matches.column_names)
        ],
    }


def _counts(counts: Counts) -> dict[str, Any]:
    return {"low": counts.low, "high": counts.high, "counts": counts.counts.tolist()}
