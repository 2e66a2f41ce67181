"""What the columns of a compact answer mean, as a text in its schema.

So compact answers can be expanded without the query, also from a file or in another process. The
text is JSON, because anybody can read it. An expression of SELECT is an object with the name of its
class and its fields. An aggregate of the query's own file is code, so it cannot be written.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import fields
from typing import Any

import pyarrow as pa

from celc_runtime.plan.expressions import (
    Absolute,
    Aggregate,
    Arithmetic,
    Call,
    Cast,
    Chosen,
    Compared,
    Computed,
    Conditional,
    Constant,
    DecimalArithmetic,
    Every,
    IsNull,
    Matches,
    Negation,
    OneOf,
    OwnAggregate,
    OwnCall,
    ParameterValue,
    Some,
    attributes_of,
    nodes_in,
)
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.plan.schemas import arrow_type, event_schema, output_schema
from celc_runtime.values.types import ddl_of

_VERSION = 1
_VERSION_OF_STARTS = 2
_CLASSES = {
    one.__name__: one
    for one in (
        *(Absolute, Aggregate, Arithmetic, Call, Cast, Chosen, Computed, Conditional, Constant),
        *(DecimalArithmetic, ParameterValue),
        *(Negation, Compared, OneOf, IsNull, Matches, Every, Some),
    )
}

NODE = pa.struct([(name, pa.int32()) for name in ("event", "mark", "child", "next")])
"""A node of a graph; see `arrow.matches.compact`."""


@frozen
class ShownLabel:
    """A label column."""

    label: int  # the number of the label
    fields: tuple[int, ...]  # the fields of an event that it shows, as indices into its struct


@frozen
class CompactForm:
    """The meaning of compact answers."""

    columns: tuple[str, ...]
    """Names: the keys, the parameter set of FOR EACH, `end_pos`, `end_time` (if shown), events,
    nodes."""
    event: pa.Schema  # the fields of an event
    output: pa.Schema  # the columns of a match
    ddl: tuple[tuple[str, str], ...]  # the same in Spark SQL
    keys: int  # the number of columns before the place of a match: partition, parameter set
    positions: bool  # whether the answer shows positions; `pos` is then the first field of an event
    time: int  # the first order column among the fields of an event, −1: there is none
    labels: tuple[str, ...]  # the names of all labels
    items: tuple[ShownLabel | Computed, ...]  # the columns of SELECT
    marks: tuple[tuple[bool, tuple[int, ...]], ...]  # for each: does it begin a match? its labels
    row: pa.Schema | None = None
    """The attributes of the parameter set in the last of the keys, which can be more than a match
    shows; None: the query is not FOR EACH."""
    read: tuple[tuple[str, str], ...] = ()
    """(Column, attribute): the attributes under the names by which expressions read them."""
    starts: bool = False
    """Whether the first event of each match is its start alone, without labels, and has the last
    mark. Such events stand before all others of a row, in any order."""

    @property
    def key_types(self) -> list[pa.DataType]:
        """The types of the keys in a compact answer."""
        types: list[pa.DataType] = list(self.output.types[: self.keys])
        return types if self.row is None else [*types[:-1], pa.struct(list(self.row))]

    def to_text(self) -> str:
        return json.dumps(
            {
                "version": _VERSION_OF_STARTS if self.starts else _VERSION,
                "columns": self.columns,
                "event": _written_schema(self.event),
                "output": _written_schema(self.output),
                "ddl": self.ddl,
                "keys": self.keys,
                "positions": self.positions,
                "time": self.time,
                "labels": self.labels,
                "items": [
                    (
                        {"label": item.label, "fields": item.fields}
                        if isinstance(item, ShownLabel)
                        else {"expression": _written(item)}
                    )
                    for item in self.items
                ],
                "marks": [{"begins": begins, "labels": labels} for begins, labels in self.marks],
                "row": None if self.row is None else _written_schema(self.row),
                "read": self.read,
            }
        )

    @classmethod
    def of_text(cls, text: str) -> CompactForm:
        """The form that `to_text` wrote.

        Raises ValueError for another version, and for numbers that are out of range.
        """
        said = json.loads(text)
        if said["version"] not in (_VERSION, _VERSION_OF_STARTS):
            raise ValueError(f"version {said['version']} and not {_VERSION_OF_STARTS}")
        found = cls(
            tuple(said["columns"]),
            _read_schema(said["event"]),
            _read_schema(said["output"]),
            tuple((name, type) for name, type in said["ddl"]),
            said["keys"],
            said["positions"],
            said["time"],
            tuple(said["labels"]),
            tuple(
                (
                    _read(item["expression"])
                    if "expression" in item
                    else ShownLabel(item["label"], tuple(item["fields"]))
                )
                for item in said["items"]
            ),
            tuple((mark["begins"], tuple(mark["labels"])) for mark in said["marks"]),
            None if said["row"] is None else _read_schema(said["row"]),
            tuple((column, attribute) for column, attribute in said["read"]),
            said["version"] == _VERSION_OF_STARTS,
        )
        found._check()
        return found

    def _check(self) -> None:
        """Raises ValueError if parts of the form contradict each other."""
        whole = [self.keys, self.time]
        whole += [n for _, labels in self.marks for n in labels]
        for item in self.items:
            whole += (item.label, *item.fields) if isinstance(item, ShownLabel) else [item.place]
        flags = [self.positions, *(begins for begins, _ in self.marks)]
        _require("numbers", all(type(one) is int for one in whole))
        _require("flags", all(type(one) is bool for one in flags))
        _require("'time'", -1 <= self.time < len(self.event))
        _require("'positions'", not self.positions or self.event.names[:1] == ["pos"])
        pairs = 2 * (self.positions + (self.time >= 0))
        _require("'columns'", len(self.columns) == self.keys + pairs // 2 + 2)
        _require("'keys'", 0 <= self.keys == len(self.output) - pairs - len(self.items))
        _require("'ddl'", [name for name, _ in self.ddl] == self.output.names)
        if self.time >= 0:
            of_time = self.output.types[self.keys + pairs - 2 : self.keys + pairs]
            _require("'time'", of_time == 2 * [self.event.types[self.time]])
        if self.row is not None:
            shown: Any = self.output.types[self.keys - 1] if self.keys else None
            fields = list(shown) if pa.types.is_struct(shown) else [None]
            _require("'row'", all(one in list(self.row) for one in fields))
        attributes = [] if self.row is None else self.row.names
        _require("'read'", all(attribute in attributes for _, attribute in self.read))
        known = range(len(self.labels))
        _require("'marks'", all(n in known for _, labels in self.marks for n in labels))
        for item, column in zip(self.items, self.output.types[self.keys + pairs :], strict=True):
            _require("'items'", self._is_item(item, column))

    def _is_item(self, item: ShownLabel | Computed, type: pa.DataType) -> bool:
        """Whether the labels and fields that a column of SELECT shows exist."""
        if isinstance(item, Computed):
            named = {one for one in nodes_in(item.value) if isinstance(one, Aggregate)}
            fields = {None, *self.event.names}
            of_row = {n.column for n in nodes_in(item.value) if isinstance(n, ParameterValue)}
            if of_row - {column for column, _ in self.read}:
                return False
            return all(one.label in self.labels and one.attribute in fields for one in named)
        if item.label not in range(len(self.labels)) or not pa.types.is_list(type):
            return False
        if any(n not in range(len(self.event)) for n in item.fields):
            return False
        return [one.type for one in type.value_type] == [self.event.types[n] for n in item.fields]


def compact_form(plan: Plan, *, listed: bool) -> CompactForm:
    """The form of a query's compact answers.

    listed: graphs are made of listed matches. The kind of an event then does not say whether it
    begins a match, so each kind has two marks.
    """
    attributes = event_attributes(plan)
    places = {name: number + plan.answer.positions for number, name in enumerate(attributes)}
    of_label = {label.name: number for number, label in enumerate(plan.answer.labels)}
    items: list[ShownLabel | Computed] = []
    for item in plan.answer.items:
        if isinstance(item, Computed):
            items.append(item)
        else:
            shown = tuple(places[name] for name in item.attributes)
            shown = (0, *shown) if plan.answer.positions else shown
            items.append(ShownLabel(of_label[item.name], shown))
    marks = [(kind.starts, kind.columns) for kind in plan.matching.kinds]
    if listed:
        marks = [(begins, kind.columns) for kind in plan.matching.kinds for begins in (False, True)]
    if has_starts(plan):
        # An event that is the start alone, in both marks of a kind of its own.
        marks += [(False, ()), (True, ())]
    schema = compact_schema(plan)
    event = schema.field(len(schema) - 2).type.value_type
    return CompactForm(
        tuple(schema.names),
        pa.schema(list(event)),
        output_schema(plan),
        tuple(plan.ddl_columns()),
        _keys(plan),
        plan.answer.positions,
        places[plan.source.order_by[0]] if plan.source.order_by else -1,
        plan.answer.label_names,
        tuple(items),
        tuple(marks),
        pa.schema(_row_fields(plan)) if _shows_row(plan) else None,
        _read_of_row(plan),
        has_starts(plan),
    )


def has_starts(plan: Plan) -> bool:
    """Whether each match has a start beside its events: where events are simultaneous or last, it
    can be the place and the time of none of them."""
    return plan.source.ties is not None


def event_attributes(plan: Plan) -> tuple[str, ...]:
    """The attributes of an event of a graph. Its own order value stands in place of the start of an
    event that lasts, which is in the start of matches."""
    names = plan.stored_attributes
    if not has_starts(plan) or plan.source.begin is None:
        return names
    shown = {name for label in plan.answer.labels for name in label.attributes}
    shown |= {*attributes_of(plan.answer.expressions)}
    hidden = {plan.source.begin} - shown
    return tuple(dict.fromkeys((*(n for n in names if n not in hidden), plan.source.order_by[0])))


def _require(what: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"its {what} do not go with the rest")


def own_aggregate(plan: Plan) -> str | None:
    """The first column of SELECT that calls an aggregate or a function of the query's own file."""
    return next(
        (
            item.name
            for item in plan.answer.expressions
            if any(isinstance(node, OwnAggregate | OwnCall) for node in nodes_in(item.value))
        ),
        None,
    )


def _written_schema(schema: pa.Schema) -> str:
    return b64encode(schema.serialize().to_pybytes()).decode()


def _read_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(b64decode(text)))


def _written(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_written, value))
    name = type(value).__name__
    if name not in _CLASSES:
        return value
    return {"is": name} | {f.name: _written(getattr(value, f.name)) for f in fields(value)}


def _read(said: Any) -> Any:
    if isinstance(said, list):
        return tuple(map(_read, said))
    if not isinstance(said, dict):
        return said
    return _CLASSES[said["is"]](**{k: _read(v) for k, v in said.items() if k != "is"})


# --- columns --------------------------------------------------------------------------------------


def compact_schema(plan: Plan) -> pa.Schema:
    """The columns of a compact answer, without their meaning."""
    output = output_schema(plan)
    header = [output.field(place) for place in range(_keys(plan))]
    if _shows_row(plan):
        header[-1] = header[-1].with_type(pa.struct(_row_fields(plan)))
    header += [output.field(_place_of(output, plan, name)) for name in _ends(plan)]
    types = event_schema(plan)
    event = [pa.field("pos", pa.int64())] if plan.answer.positions else []
    event += [pa.field(name, types.field(name).type) for name in event_attributes(plan)]
    events, nodes = _names(plan)
    return pa.schema(
        [
            *header,
            pa.field(events, pa.list_(pa.struct(event))),
            pa.field(nodes, pa.list_(NODE)),
        ]
    )


def compact_ddl(plan: Plan) -> list[tuple[str, str]]:
    """The names of these columns, and their types as Spark SQL spells them."""
    output, known = output_schema(plan), plan.ddl_columns()
    places = [*range(_keys(plan))]
    places += [_place_of(output, plan, name) for name in _ends(plan)]
    event = [("pos", "BIGINT")] if plan.answer.positions else []
    for name in event_attributes(plan):
        type = plan.source.type_of(name)
        event.append((name, ddl_of(type)))
    node = [(field.name, "INT") for field in NODE]
    header = [known[place] for place in places]
    if _shows_row(plan):
        assert plan.source.parameters is not None
        names = tuple(field.name for field in _row_fields(plan))
        header[_keys(plan) - 1] = plan.source.parameters.name, plan.row_ddl(names)
    return header + [
        (name, f"ARRAY<STRUCT<{', '.join(f'{quoted(n)}: {t}' for n, t in parts)}>>")
        for name, parts in zip(_names(plan), (event, node), strict=True)
    ]


def _row_fields(plan: Plan) -> list[pa.Field]:
    """The attributes of the parameter set that matches show, and those that expressions read."""
    parameters = plan.source.parameters
    if parameters is None:
        return []
    names = dict.fromkeys((*parameters.shown, *(name for _, name in _read_of_row(plan))))
    return [pa.field(name, arrow_type(parameters.type_of(name))) for name in names]


def _read_of_row(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The attributes of the parameter set that expressions read, by their columns."""
    if plan.source.parameters is None:
        return ()
    nodes = (node for item in plan.answer.expressions for node in nodes_in(item.value))
    columns = {node.column for node in nodes if isinstance(node, ParameterValue)}
    return tuple(one for one in plan.source.parameters.columns if one[0] in columns)


def _keys(plan: Plan) -> int:
    return len(plan.source.key_columns) + _shows_row(plan)


def _shows_row(plan: Plan) -> bool:
    return plan.source.parameters is not None and not plan.source.parameters.hidden


def _ends(plan: Plan) -> list[str]:
    found = ["end_pos"] if plan.answer.positions else []
    return [*found, "end_time"] if plan.source.order_by else found


def _place_of(output: pa.Schema, plan: Plan, name: str) -> int:
    """The index of a column after the keys; a key can have the same name."""
    names: list[str] = output.names
    return names.index(name, _keys(plan))


def _names(plan: Plan) -> tuple[str, str]:
    taken = [*plan.source.partition_by, "end_pos", "end_time"]
    if plan.source.parameters is not None:
        taken.append(plan.source.parameters.name)
    return unused_name("events", taken), unused_name("nodes", taken)
