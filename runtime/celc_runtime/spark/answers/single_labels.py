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

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Label, Plan, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_BY_NAME: Mapping[int, str] = MappingProxyType({})


class _AnswerColumn(NamedTuple):
    """A column of the answer, and what it is made of: the columns at some places of those that
    travel. `fields`: their names in a struct, where the column is a list of one."""

    name: str
    type: str
    places: tuple[int, ...]
    fields: tuple[str, ...]


class WireColumn(NamedTuple):
    """A column that travels: its column of the answer, its place among the fields of that one's
    only event (None: it is the column itself), and its type as Spark's SQL spells it."""

    answer: int
    field: int | None
    type: str


class _Way(NamedTuple):
    """The columns of an answer, and the columns in which they travel."""

    answer: tuple[_AnswerColumn, ...]
    columns: tuple[WireColumn, ...]


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
        for at, field, _ in way.columns
    ]
    return pa.RecordBatch.from_arrays(columns, list(map(sent_name, range(len(columns)))))


def _only_events(column: pa.ListArray, name: str) -> pa.StructArray:
    events = column.flatten()
    if len(events) != len(column):
        raise AssertionError(f"{len(events)} events of {name!r} in {len(column)} matches")
    return events


def wire_columns(plan: Plan) -> tuple[WireColumn, ...]:
    """The columns of `with_single_fields`, named by their places."""
    return _way(plan).columns


def sent_name(place: int) -> str:
    """The name of the column at a place of those that travel."""
    return f"column_{place}"


def wire_ddl(plan: Plan) -> str:
    """The columns of `with_single_fields` in Spark's notation."""
    return ", ".join(f"{sent_name(place)} {c.type}" for place, c in enumerate(wire_columns(plan)))


def with_lists(plan: Plan, matches: DataFrame, texts: Mapping[int, str] = _BY_NAME) -> DataFrame:
    """The DataFrame of matches with the columns of the answer, from one with `wire_ddl`; texts:
    expressions in Spark's SQL that stand for columns at some places.

    As text: to make eight such columns by functions took 700 calls of the JVM.
    """
    return matches.selectExpr(*(_made(column, texts) for column in _way(plan).answer))


def _made(column: _AnswerColumn, texts: Mapping[int, str]) -> str:
    """A column of the answer in Spark's SQL."""
    found = [texts.get(place, sent_name(place)) for place in column.places]
    if not column.fields:
        return f"{found[0]} AS {quoted(column.name)}"
    fields = zip(found, column.fields, strict=True)
    event = ", ".join(f"{place} AS {quoted(field)}" for place, field in fields)
    # nvl2 makes the type nullable, as that of every column of an answer. The optimizer removes it.
    events = f"nvl2(TRUE, CAST(array(struct({event})) AS {column.type}), NULL)"
    return f"{events} AS {quoted(column.name)}"


def _way(plan: Plan) -> _Way:
    """How the answer travels: first the fields of single labels, then the other columns."""
    columns = plan.ddl_columns()
    header = len(columns) - len(plan.answer.items)
    sent: list[WireColumn] = []
    answer: dict[int, _AnswerColumn] = {}
    ends: dict[str, int] = {}
    for at, label in _single(plan, header):
        fields = plan.ddl_fields(label)
        places = tuple(range(len(sent), len(sent) + len(fields)))
        sent += [WireColumn(at, field, type) for field, (_, type) in enumerate(fields)]
        names = tuple(name for name, _ in fields)
        answer[at] = _AnswerColumn(*columns[at], places, names)
        ends |= _ends(plan, label, places)
    for at, (name, type) in enumerate(columns):
        if at in answer:
            continue
        if at < header and at >= plan.first_place and name in ends:
            answer[at] = _AnswerColumn(name, type, (ends[name],), ())
            continue
        answer[at] = _AnswerColumn(name, type, (len(sent),), ())
        sent.append(WireColumn(at, None, type))
    return _Way(tuple(answer[at] for at in range(len(columns))), tuple(sent))


def _single(plan: Plan, header: int) -> Iterator[tuple[int, Label]]:
    """The places of the labels that always hold one event among the columns of the answer."""
    if not plan.is_of_matches:
        return
    for at, item in enumerate(plan.answer.items, header):
        if not isinstance(item, Computed) and item.single:
            yield at, item


def _ends(plan: Plan, label: Label, places: tuple[int, ...]) -> dict[str, int]:
    """The columns for the start and the end of a match that a label's fields serve for, which
    travel at these places."""
    of_attribute = dict(zip(label.attributes, places[plan.answer.positions :], strict=True))
    time = plan.source.order_by[0] if plan.source.order_by else ""
    found: dict[str, int] = {}
    for end, is_there in (("start", label.first), ("end", label.last)):
        if is_there and plan.answer.positions:
            found[f"{end}_pos"] = places[0]
        if is_there and time in of_attribute:
            found[f"{end}_time"] = of_attribute[time]
    return found
