"""When the rows of an answer are known, and so which of them a slice of time has.

A row is known at a time of its own columns, and a length after it that the query alone decides:
that of the absences and windows for which somebody who sees the events up to then must wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from . import nodes as n
from .clauses import pick_query
from .ends import alternatives, passes
from .lasting import read_by
from .parser import parse


def known_time(
    text: str, row: Mapping[str, Any], *, query: str | None = None, spans: str = "span_end"
) -> Any:
    """When a row is known, of a query that has slices; `spans`: the column of the ends of spans."""
    file = parse(text)
    asked = pick_query(file, query)
    lags = _lags(asked, file)
    if isinstance(asked.per, int):
        column, own = spans, _after_end(asked)
    elif asked.per is not None or asked.collapsed:
        column, own = "end_time", _after_end(asked)
    elif _waits(asked):
        column, own = "start_time", _after_end(asked)
    elif not _absences(asked):
        column, own = "end_time", [[]]
    elif asked.selector != "ALL" or asked.limit is not None:
        column, own = "end_time", _after_end(asked)
    else:
        column, own = "decided_time", [[]]
    return max(
        reduce(passes, (*one, *lag), row[column]) for one in own or [[]] for lag in lags or [[]]
    )


def _lags(query: n.Query, file: n.File) -> list[list[n.Window]]:
    """By which lengths, one after the other, the rows that a query reads are known later."""
    return [
        [*own, *below]
        for one in read_by(query, file)
        for own in _after_end(one)
        for below in _lags(one, file) or [[]]
    ]


def _after_end(query: n.Query) -> list[list[n.Window]]:
    """The lengths, any of which may have to pass from the end (start) of a match on."""
    absences: Sequence[list[n.Window]] = [[one] for one in _absences(query)] or [[]]
    if not _waits(query):
        return [*absences]
    windows = [*([] if query.window is None else [query.window]), *_around(query.formula)]
    window = min((one for one in windows if one.unit != "EVENTS"), key=lambda one: one.size)
    return [[window, *one] for one in absences]


def _around(formula: n.Formula) -> list[n.Window]:
    """The windows `WITHIN[…]` in which the whole formula is: a match fits all of them."""
    match formula:
        case n.Within():
            return [formula.window, *_around(formula.body)]
        case n.As() | n.Rename() | n.Project() | n.Filter() | n.NotBefore() | n.NotAfter():
            return _around(formula.body)
        case n.Selector(kind="STRICT"):
            return _around(formula.body)
        case n.Unless():
            return _around(formula.left)
        case n.And():
            return [*_around(formula.left), *_around(formula.right)]
        case _:
            return []


def _waits(query: n.Query) -> bool:
    is_late = query.per_start == "FIRST" and bool(_absences(query))
    return query.per_start == "LONGEST" or query.disjoint or is_late


def _absences(query: n.Query) -> list[n.Window]:
    ways = alternatives(query.formula, query.window)
    return [one.length for one in ways if one.length is not None]
