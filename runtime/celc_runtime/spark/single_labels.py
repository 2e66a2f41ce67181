"""Labels that hold exactly one event of every match travel from Python to Spark as plain columns.

The answer has a list of structs for each label. Spark copies what Python returns row by row, and to
copy a list of structs out of Arrow takes several times as long as to copy its fields. So where the
plan says that a label always holds one event, the fields of that event are columns on the way, and
an expression makes the list of them again. Where that event is the first or the last of every
match, the match's start and end are read from it and do not travel. Spark's optimizer knows the
parts of such expressions: of a job that asks for `a[0].pos` nothing is left but the column.

Measured: a job with a million rows and a million and a quarter matches of three labels took 4.0 s
of CPU with lists, and 2.2 s with columns out of which Spark made the lists.

Rejected: to send the matches that differ in one label only as one row with a list, which Spark
takes apart. Measured with 25 million rows of six columns: lists of 50 took 0.7 of the CPU, lists of
three as much, and lists of one, which are all that most queries have, 1.6 times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Label, Plan, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _AnswerColumn(NamedTuple):
    """A column of the answer, and what it is made of: the columns at some places of those that
    travel. `fields`: their names in a struct, where the column is a list of one."""

    name: str
    type: str
    places: tuple[int, ...]
    fields: tuple[str, ...]


class _Way(NamedTuple):
    """How the answer of a plan travels. `sources`: for each column that does, its column of the
    answer, and its place among the fields of the event there (None: it is the column itself)."""

    answer: tuple[_AnswerColumn, ...]
    sources: tuple[tuple[int, int | None], ...]
    types: tuple[str, ...]


def with_single_fields(plan: Plan, matches: pa.RecordBatch) -> pa.RecordBatch:
    """The matches as they travel, in columns that are named by their places. Nothing is copied.

    matches: of the plan's output schema.
    """
    way = _way(plan)
    events = {
        at: _only_events(column, matches.schema.names[at])
        for at, column in enumerate(matches.columns)
        if way.answer[at].fields
    }
    columns = [
        matches.column(at) if field is None else events[at].field(field)
        for at, field in way.sources
    ]
    return pa.RecordBatch.from_arrays(columns, list(map(_wire_name, range(len(columns)))))


def _only_events(column: pa.ListArray, name: str) -> pa.StructArray:
    events = column.flatten()
    if len(events) != len(column):
        raise AssertionError(f"{len(events)} events of {name!r} in {len(column)} matches")
    return events


def wire_ddl(plan: Plan) -> str:
    """The columns of `with_single_fields` in Spark's notation."""
    types = _way(plan).types
    return ", ".join(f"{_wire_name(place)} {type}" for place, type in enumerate(types))


def with_lists(plan: Plan, matches: DataFrame) -> DataFrame:
    """The DataFrame of matches with the columns of the answer, from one with `wire_ddl`.

    As text: to make eight such columns by functions took 700 calls of the JVM.
    """
    return matches.selectExpr(*map(_made, _way(plan).answer))


def _made(column: _AnswerColumn) -> str:
    """A column of the answer in Spark's SQL."""
    found = list(map(_wire_name, column.places))
    if not column.fields:
        return f"{found[0]} AS {quoted(column.name)}"
    fields = zip(found, column.fields, strict=True)
    event = ", ".join(f"{place} AS {quoted(field)}" for place, field in fields)
    # By their types the columns of an answer can be NULL. Spark's optimizer takes nvl2 out.
    events = f"nvl2(TRUE, CAST(array(struct({event})) AS {column.type}), NULL)"
    return f"{events} AS {quoted(column.name)}"


def _way(plan: Plan) -> _Way:
    """How the answer travels: first the fields of single labels, then the other columns."""
    columns = plan.ddl_columns()
    header = len(columns) - len(plan.items)
    sources: list[tuple[int, int | None]] = []
    types: list[str] = []
    answer: dict[int, _AnswerColumn] = {}
    ends: dict[str, int] = {}
    for at, label in _single(plan, header):
        fields = plan.ddl_fields(label)
        places = tuple(range(len(sources), len(sources) + len(fields)))
        sources += [(at, field) for field in range(len(fields))]
        types += [type for _, type in fields]
        names = tuple(name for name, _ in fields)
        answer[at] = _AnswerColumn(*columns[at], places, names)
        ends |= _ends(plan, label, places)
    for at, (name, type) in enumerate(columns):
        if at in answer:
            continue
        if at < header and at >= len(plan.partition_by) and name in ends:
            answer[at] = _AnswerColumn(name, type, (ends[name],), ())
            continue
        answer[at] = _AnswerColumn(name, type, (len(sources),), ())
        sources.append((at, None))
        types.append(type)
    return _Way(tuple(answer[at] for at in range(len(columns))), tuple(sources), tuple(types))


def _single(plan: Plan, header: int) -> Iterator[tuple[int, Label]]:
    """The places of the labels that always hold one event among the columns of the answer."""
    if not plan.is_of_matches:
        return
    for at, item in enumerate(plan.items, header):
        if not isinstance(item, Computed) and item.single:
            yield at, item


def _ends(plan: Plan, label: Label, places: tuple[int, ...]) -> dict[str, int]:
    """The columns for the start and the end of a match that a label's fields serve for, which
    travel at these places."""
    of_attribute = dict(zip(label.attributes, places[plan.positions :], strict=True))
    time = plan.order_by[0] if plan.order_by else ""
    found: dict[str, int] = {}
    for end, is_there in (("start", label.first), ("end", label.last)):
        if is_there and plan.positions:
            found[f"{end}_pos"] = places[0]
        if is_there and time in of_attribute:
            found[f"{end}_time"] = of_attribute[time]
    return found


def _wire_name(place: int) -> str:
    return f"column_{place}"
