"""Queries with FOR EACH: for each row of the parameter table, the query with the row's values.

The answer is the union over the rows, each match with its row. Equal rows count once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from .nodes import (
    As,
    Atom,
    Attribute,
    ExpressionItem,
    File,
    Formula,
    LabelItem,
    Literal,
    OtherEvent,
    Project,
    Query,
    Rename,
    Unless,
    parts_of,
)
from .values import CelError, Kind, datum_of

Row = Mapping[str, Any]

_TIMES = "(times)"
"""What a row has beside its values where the set has VALID."""


def check_parameters(query: Query, file: File) -> None:
    """Raise CelError where the parameter set of a query, or a name in it, has no meaning."""
    name = query.for_each
    if name is None:
        return
    if name not in file.parameters:
        raise CelError(f"no parameter set is called {name}")
    if name in {one.name for one in file.types}:
        raise CelError(f"{name} is an event type and a parameter set")
    for part in parts_of(query.formula):
        made = part.label if isinstance(part, As) else part.new if isinstance(part, Rename) else ""
        if made == name:
            raise CelError(f"a label cannot be called like the parameter set {name}")
    columns = [key[0] for key in query.partition_by]
    columns += [one.name for one in query.items or () if isinstance(one, ExpressionItem)]
    if name.lower() in {column.lower() for column in columns}:
        raise CelError(f"two columns of the output would be called {name}")
    known = file.parameters[name]
    for item in shown(query):
        for attribute in item.attributes or ():
            if attribute not in known:
                raise CelError(f"{name} has no attribute {attribute}")
    for one in _attributes_in(query):
        if one.label == name and one.name not in known:
            raise CelError(f"{name} has no attribute {one.name}")


def shown(query: Query) -> list[LabelItem]:
    """The items of SELECT that are the parameter set."""
    return [
        one
        for one in query.items or ()
        if isinstance(one, LabelItem) and one.label == query.for_each
    ]


def _attributes_in(node: Any) -> Iterator[Attribute]:
    if isinstance(node, Attribute):
        yield node
    elif isinstance(node, tuple):
        for one in node:
            yield from _attributes_in(one)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _attributes_in(getattr(node, field.name))


def with_row(query: Query, kinds: Mapping[str, Kind], row: Row) -> Query:
    """The query with each attribute of its set replaced by the value of the row."""
    name = query.for_each
    assert name is not None
    literals = {
        attribute: Literal(datum_of(kind, row.get(attribute))) for attribute, kind in kinds.items()
    }

    def changed(node: Any) -> Any:
        if isinstance(node, Attribute) and node.label == name:
            return literals[node.name]
        if isinstance(node, tuple):
            # Windows and own aggregates hold nothing of the set; named tuples are none of these.
            return tuple(map(changed, node)) if type(node) is tuple else node
        if not is_dataclass(node):
            return node
        values = {field.name: changed(getattr(node, field.name)) for field in fields(node)}
        return type(node)(**values)

    hidden = shown(query)
    items = query.items
    if items is not None:
        items = tuple(changed(one) for one in items if one not in hidden)
    formula: Formula = changed(query.formula)
    if _TIMES in row:
        formula = _valid(formula, row[_TIMES], None)
    having = changed(query.having)
    return replace(query, formula=formula, items=items, having=having, for_each=None)


def _valid(formula: Formula, times: Any, kept: frozenset[str] | None) -> Formula:
    """The formula with times of its events, where one of their labels is in `kept` at the end
    (None: all are). What is absent has none."""
    match formula:
        case Atom():
            is_labelled = kept is None or formula.type in kept
            return replace(formula, times=times) if is_labelled else formula
        case As():
            body = formula.body
            return replace(formula, body=_valid(body, times, _kept_around(formula.label, kept)))
        case Rename():
            inner = kept
            if kept is not None:
                old = {formula.old} if formula.new in kept else set()
                inner = (kept - {formula.old}) | old
            return replace(formula, body=_valid(formula.body, times, inner))
        case Project():
            names = frozenset(formula.labels)
            inner = names if kept is None else names & kept
            return replace(formula, body=_valid(formula.body, times, inner))
        case OtherEvent():
            return formula
        case Unless():
            return replace(formula, left=_valid(formula.left, times, kept))
        case _:
            matched = [name for name in ("left", "right", "body") if hasattr(formula, name)]
            return replace(
                formula, **{name: _valid(getattr(formula, name), times, kept) for name in matched}
            )


def _kept_around(label: str, kept: frozenset[str] | None) -> frozenset[str] | None:
    return None if kept is None or label in kept else kept


def shown_values(query: Query, kinds: Mapping[str, Kind], row: Row) -> tuple[tuple[str, Any], ...]:
    """The values of a row that the column of the set shows."""
    asked = [one.attributes for one in shown(query) if one.attributes is not None]
    names = asked[0] if asked else tuple(kinds)
    return tuple((name, datum_of(kinds[name], row.get(name)).value) for name in names)


def rows_of(file: File, name: str, rows: Sequence[Row]) -> list[Row]:
    """The rows of a table that differ, with their times where the set has VALID: of versions with
    one key each ends where the next begins. CelError where they go wrong."""
    kinds = file.parameters[name]
    found = distinct(rows, kinds)
    if name not in file.valid:
        return found
    since, until = file.valid[name]
    key = next(iter(kinds))

    def value(row: Row, attribute: str) -> Any:
        return datum_of(kinds[attribute], row.get(attribute)).value

    made: list[Row] = []
    for row in found:
        begin, end = value(row, since), value(row, until)
        if begin is not None and end is not None and end < begin:
            raise CelError(f"{row} ends before it begins")
        others = [one for one in found if one is not row]
        of_key = [one for one in others if _same(value(one, key), value(row, key))]
        begins = [value(one, since) for one in of_key]
        if begin in begins:
            raise CelError(f"two versions begin at {begin}")
        later = [one for one in begins if one is not None and (begin is None or one > begin)]
        end = min([*later, *([] if end is None else [end])], default=None)
        made.append({**row, _TIMES: (begin, end)})
    return made


def _same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def distinct(rows: Sequence[Row], kinds: Mapping[str, Kind]) -> list[Row]:
    """The rows that differ, each once: NULL equals NULL, NaN equals NaN, and -0.0 is 0.0, which
    they show."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        values = [datum_of(kind, row.get(name)).value for name, kind in kinds.items()]
        key = tuple(
            "NaN" if isinstance(one, float) and one != one else (type(one).__name__, one)
            for one in values
        )
        found.setdefault(key, {name: _unsigned(value) for name, value in row.items()})
    return list(found.values())


def _unsigned(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value
