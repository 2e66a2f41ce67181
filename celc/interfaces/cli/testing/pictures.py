"""A difference as a picture in text: the events, with the labels of what is missing and of what is
too much beside them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa
from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.arrow.short_floats import shown_rows
from celc_runtime.plan.frozen import frozen
from celc_runtime.query import CompiledQuery
from celc_runtime.rules.inner import over_events

from celc.diagnostics.messages.wording import counted
from celc.diagnostics.source import visible
from celc.interfaces.cli.testing.expected import POSITION, toml_of
from celc.interfaces.cli.testing.files import Row
from celc.interfaces.cli.testing.running import Asked, Found, Outcome

_MOST_EVENTS = 40
"""Rows of a picture; of more events those that are marked, with their neighbours."""

_MOST_ROWS = 10
"""Rows of each kind that are told."""

_MOST_MARKS = 5
"""Matches that are marked in a picture."""


@frozen
class Marked:
    """A match beside the events: what it is and its number, its partition as far as it is known,
    and the labels at positions."""

    kind: str
    number: int
    text: str
    partition: Mapping[str, Any]
    labels: Mapping[int, str]

    @property
    def title(self) -> str:
        return f"{self.kind} {self.number}"


def picture(outcome: Outcome) -> str:
    """What a case has shown beside what it expects; lines without an indent."""
    marked = list(_marked(outcome))
    lines = [*_summary(outcome), *_events(outcome.asked, marked[:_MOST_MARKS])]
    for title in dict.fromkeys(one.kind for one in marked):
        rows = [visible(f"{one.title}: {one.text}") for one in marked if one.kind == title]
        lines += rows[:_MOST_ROWS]
        lines += [f"… {len(rows) - _MOST_ROWS:,} more {title}"] if len(rows) > _MOST_ROWS else []
    lines += [f"note: {visible(note)}" for note in outcome.notes]
    return "\n".join(lines)


def _summary(outcome: Outcome) -> Iterator[str]:
    found = counted(len(outcome.rows), "row")
    if outcome.expected is not None:
        yield f"expected {counted(outcome.expected, 'row')}, found {found}"
        return
    if outcome.case.expected is None:
        yield f"nothing is expected so far, found {found}; celc test --write records them"
        return
    expected = len(outcome.rows) - len(outcome.extra) + len(outcome.missing)
    yield (
        f"expected {counted(expected, 'row')}, found {found}: {len(outcome.missing)} missing, "
        f"{len(outcome.extra)} too much"
    )


def _marked(outcome: Outcome) -> Iterator[Marked]:
    for number, row in enumerate(outcome.missing, start=1):
        yield _of_said("missing", number, row, outcome.asked)
    title, rows = "too much", outcome.extra
    if outcome.expected is not None:
        title, rows = "found", outcome.rows
    for number, found in enumerate(rows, start=1):
        yield _of_found(title, number, found, outcome.asked)


def _of_said(kind: str, number: int, row: Row, asked: Asked) -> Marked:
    keys = keys_of(asked)
    partition = {name: asked.columns.typed(name, row.values[name]) for name in keys & {*row.values}}
    labels: dict[int, str] = {}
    for name in row.values.keys() & asked.columns.labels:
        for one in asked.columns.typed(name, row.values[name]) or ():
            at = one if isinstance(one, int) else one.get(POSITION)
            if at is not None:
                labels[at] = _with(labels.get(at), name)
    return Marked(kind, number, toml_of(row.values), partition, labels)


def _of_found(kind: str, number: int, row: Found, asked: Asked) -> Marked:
    partition = {name: row[name] for name in keys_of(asked)}
    labels: dict[int, str] = {}
    for name in asked.columns.schema.names:
        for event in row[name] if name in asked.columns.labels else ():
            if POSITION in event:
                labels[event[POSITION]] = _with(labels.get(event[POSITION]), name)
    return Marked(kind, number, asked.columns.described(row), partition, labels)


def _with(before: str | None, name: str) -> str:
    return name if before is None else f"{before},{name}"


def keys_of(asked: Asked) -> frozenset[str]:
    """The columns of PARTITION BY that a query's answer and its events have."""
    if not isinstance(asked.query, CompiledQuery):
        return frozenset()
    keys = asked.query.plan.source.key_columns
    return frozenset(keys) & {*asked.events.column_names} & {*asked.columns.schema.names}


def _events(asked: Asked, marked: Sequence[Marked]) -> Iterator[str]:
    """The events in the order of the query, with their positions where these can be told."""
    table, positions = _numbered(asked)
    rows = [*chain.from_iterable(map(shown_rows, table.to_batches()))]
    if not rows:
        yield "there are no events"
        return
    if positions is None:
        marked = ()
    marks = [
        [
            (
                one.labels.get(at, "")
                if all(row[name] == value for name, value in one.partition.items())
                else ""
            )
            for one in marked
        ]
        for row, at in zip(rows, positions or [0] * len(rows), strict=True)
    ]
    names = [name for name in table.column_names if table[name].null_count < len(table)]
    head = [*(["#"] if positions is not None else []), *names, *(one.title for one in marked)]
    cells = [head]
    for number, values in enumerate(rows):
        place = [str(positions[number])] if positions is not None else []
        cells.append([*place, *(_cell(values[name]) for name in names), *marks[number]])
    shown = _shown(marks)
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    last = 0
    for number, row in enumerate(cells):
        if number and number - 1 not in shown:
            continue
        if number and number - 1 > last:
            yield "…"
        last = number
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield line.rstrip()
    if last < len(rows):
        yield "…"


def _shown(marks: Sequence[Sequence[str]]) -> frozenset[int]:
    if len(marks) <= _MOST_EVENTS:
        return frozenset(range(len(marks)))
    marked = [number for number, row in enumerate(marks) if any(row)][:_MOST_EVENTS]
    if not marked:
        return frozenset(range(_MOST_EVENTS))
    return frozenset(
        near for one in marked for near in (one - 1, one, one + 1) if 0 <= near < len(marks)
    )


def _numbered(asked: Asked) -> tuple[pa.Table, list[int] | None]:
    """The events in the order of the query with the positions in their partitions; None: positions
    are not those of events, or a key is made of several columns."""
    query, table = asked.query, asked.events
    if not isinstance(query, CompiledQuery) or query.plan.source.reads:
        return table, None
    source = query.plan.source
    if not {*source.key_columns} <= {*table.column_names}:
        return table, None
    plan = query.plan if source.parameters is None else over_events(query.plan)
    table, numbered = sorted_for(plan, table)
    if numbered is not None:
        table = table.drop_columns([numbered])
    keys = [table[name].to_pylist() for name in source.key_columns]
    count: dict[Any, int] = {}
    positions = []
    for key in zip(*keys, strict=True) if keys else [()] * len(table):
        at = count.get(repr(key), 0)
        positions.append(at)
        count[repr(key)] = at + 1
    return table, positions


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, dt.datetime):
        return str(value.replace(tzinfo=None))
    if isinstance(value, Decimal):
        return f"{value:f}"
    return visible(str(value))
