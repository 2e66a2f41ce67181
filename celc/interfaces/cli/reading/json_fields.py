"""JSON lines: attributes that are fields of objects, and the keys of a file.

Arrow parses only the columns that it is asked for. So it is asked for every place where an
attribute can be: `a.b` is the key `a.b`, or the key `b` of the object `a`. In each row the place
with the longest key counts, as
`celc_runtime.arrow.events.paths` decides for the columns of a table.

A query may read an object as a whole and a field of it by a name with a dot (`s: STRUCT<a: INT>`
beside `` `s.a`: INT ``). Arrow is asked once for an object with all these fields.
"""

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.reading.text_rows import refuse_misread

Place = tuple[str, ...]

_MOST_DOTS = 8
_MOST_KEYS = 10_000
_PEEK = 1 << 20


def places_of(name: str) -> Iterator[Place]:
    """Where the attribute of a name can be; the place that counts first comes first. They are
    `a.b.c`, then `c` of `a.b`, then `b.c` of `a`, then `c` of `b` of `a`."""
    yield (name,)
    for dot in range(len(name) - 2, 0, -1):
        if name[dot] == ".":
            for rest in places_of(name[dot + 1 :]):
                yield (name[:dot], *rest)


class Fields:
    """The columns to ask Arrow for, from which one column is made for each attribute."""

    def __init__(self, file: str, types: Mapping[str, pa.DataType], stream: io.RawIOBase) -> None:
        for name in types:
            if name.count(".") > _MOST_DOTS:
                raise CommandProblem(
                    f"{file}: {name!r} can stand for too many fields of objects: a name can "
                    f"have {_MOST_DOTS} dots at most in JSON"
                )
        inside = any("." in name for name in types)
        plain = _plain_places(stream, types) if inside else set()
        self._file = file
        self._types = types
        self._tree: dict[str, Any] = {}
        self.places: dict[str, list[Place]] = {}
        asked = [(place, name) for name in types for place in places_of(name)]
        # A key cannot be a value and an object at once; its own value comes first.
        for place, name in sorted(asked, key=lambda one: len(one[0])):
            if not any(place[:length] in plain for length in range(1, len(place))):
                self._ask(place, name, types[name])
        for name, places in self.places.items():
            places.sort(key=list(places_of(name)).index)

    def _ask(self, place: Place, name: str, type: pa.DataType) -> None:
        node = self._tree
        for key in place[:-1]:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                return
        if not _added(node, place[-1], type):
            raise CommandProblem(
                f"{self._file}: {name!r} is also a field of {'.'.join(place[:-1])!r}, which is "
                "declared as an object with another type there. JSON has one value for both: "
                "declare one type, or read the field from the object"
            )
        self.places.setdefault(name, []).append(place)

    @property
    def schema(self) -> pa.Schema:
        """The columns to ask Arrow for."""
        return pa.schema([pa.field(key, _type_of(node)) for key, node in self._tree.items()])

    def column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """The values of an attribute, each from the first of its places that has one. Raises
        ArrowInvalid for what `refuse_misread` finds."""
        found = [_as(_at(batch, place), self._types[name]) for place in self.places[name]]
        column = found[0] if len(found) == 1 else pc.coalesce(*found)
        refuse_misread(name, column)
        return column


def _type_of(node: Any) -> pa.DataType:
    if isinstance(node, dict):
        return pa.struct([pa.field(key, _type_of(below)) for key, below in node.items()])
    return node


def _added(node: dict[str, Any], key: str, type: pa.DataType) -> bool:
    """Add a key to a tree of columns, where an object has the fields of all that read it; whether
    it can have this type beside those that it has."""
    if not pa.types.is_struct(type):
        return bool(node.setdefault(key, type) == type)
    below = node.setdefault(key, {})
    return isinstance(below, dict) and all(_added(below, one.name, one.type) for one in type)


def _as(column: pa.Array, type: pa.DataType) -> pa.Array:
    """A column without the fields of objects that only other attributes read."""
    if not pa.types.is_struct(type) or column.type == type:
        return column
    fields = [_as(pc.struct_field(column, [field.name]), field.type) for field in type]
    return pa.StructArray.from_arrays(fields, fields=list(type), mask=column.is_null())


def _at(batch: pa.RecordBatch, place: Place) -> pa.Array:
    column = batch.column(place[0])
    for key in place[1:]:
        column = pc.struct_field(column, [key])
    return column


def _plain_places(stream: io.RawIOBase, types: Mapping[str, pa.DataType]) -> set[Place]:
    """The places where the first rows have plain values instead of objects."""
    possible = {
        place[:length]
        for name in types
        for place in places_of(name)
        for length in range(1, len(place))
    }
    plain = set()
    for row in _rows(io.BufferedReader(stream).read(_PEEK).splitlines()):
        for place in possible:
            value: Any = row
            for key in place:
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None and not isinstance(value, dict):
                plain.add(place)
    return plain


def _rows(lines: Any) -> Iterator[dict[str, Any]]:
    """The objects among lines. Arrow reports the other lines."""
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def keys_of(stream: io.RawIOBase, depth: int) -> list[str]:
    """The keys of a file's rows in order of appearance; keys inside objects are paths with dots.
    There are at most 10,000, so that memory is bounded."""
    found: dict[str, None] = {}

    def note(row: dict[str, Any], before: str, depth: int) -> None:
        for key, value in row.items():
            if len(found) < _MOST_KEYS:
                found[before + key] = None
            if depth and isinstance(value, dict):
                note(value, f"{before}{key}.", depth - 1)

    for row in _rows(io.BufferedReader(stream)):
        note(row, "", depth)
    return list(found)
