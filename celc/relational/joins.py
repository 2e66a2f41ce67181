"""A resolved query → what its module holds of it as joins."""

from __future__ import annotations

from dataclasses import dataclass

from celc.core.formula import Query, WindowUnit
from celc.core.traversal import windows_in
from celc.diagnostics.source import Span
from celc.relational.expressions import Dialect
from celc.relational.relate import relate
from celc.relational.relations import NotRelational, Relations
from celc.relational.select import columns_of, select_text


@dataclass(frozen=True, slots=True)
class Joined:
    """A query as joins: the fields are those of `celc_runtime.plan.joins.Joins`."""

    numbered: str
    plain: str
    place: str
    time: str
    measure: str
    keys: tuple[str, ...]
    unit: str
    attributes: tuple[str, ...]
    counts: bool


@dataclass(frozen=True, slots=True)
class NotJoined:
    """Why a query is none of joins, in words, and the part of the text that says so."""

    what: str
    span: Span


def joins_of(query: Query, dialect: Dialect = "spark") -> Joined | NotJoined:
    """The query as joins, or why it is not."""
    try:
        relations = relate(query)
        return _joined(relations, dialect)
    except NotRelational as problem:
        return NotJoined(problem.what, problem.span)


def _joined(relations: Relations, dialect: Dialect) -> Joined:
    query = relations.query
    columns = columns_of(relations, numbered=False)
    windows = [*windows_in(query.formula), *([] if query.window is None else [query.window])]
    timed = [window for window in windows if window.unit is not WindowUnit.EVENTS]
    named = (window.attribute.name for window in timed if window.attribute is not None)
    return Joined(
        select_text(relations, dialect, positions=True),
        select_text(relations, dialect, positions=False),
        columns.place,
        columns.time,
        columns.measure,
        columns.keys,
        timed[0].unit.name if timed else "",
        tuple(dict.fromkeys(named)),
        relations.numbered,
    )
