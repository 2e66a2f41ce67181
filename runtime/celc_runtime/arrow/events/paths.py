"""The column of an attribute: the column of its name, or the field of a struct at that path.

An attribute called `` `sensor.value` `` is the column of that name. If there is none, it is the
field `value` of the column `sensor`. Case matters, wherever events come from. Spark ignores case
(`TS` is `ts`), which would make the answer depend on the route.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.plan.errors import EventError

Fields = Sequence[tuple[str, Any]]
"""Names and types of columns, or of a struct's fields."""


def path_of(name: str, fields: Fields, inside: Callable[[Any], Fields]) -> tuple[int, ...] | None:
    """The index of the column that a name leads to, then those of fields in it; None: no such
    column.

    inside: gives the fields of a type. The column with the longest name wins: for `a.b.c` the
    column `a.b` comes before `a`. Raises LookupError if two columns have that name.
    """
    names = [known for known, _ in fields]
    for split in _splits(name):
        first, rest = name[:split], name[split + 1 :]
        if first not in names:
            continue
        if names.count(first) > 1:
            raise LookupError(first)
        place = names.index(first)
        if not rest:
            return (place,)
        below = path_of(rest, inside(fields[place][1]), inside)
        if below is not None:
            return (place, *below)
    return None


def _splits(name: str) -> Iterable[int]:
    """Where a column's name can end in an attribute's name: its end, then its dots, the last
    first."""
    yield len(name)
    for place in range(len(name) - 2, 0, -1):
        if name[place] == ".":
            yield place


def arrow_fields(type: pa.DataType | pa.Schema) -> Fields:
    """The fields of a schema or a struct; empty for any other type."""
    if isinstance(type, pa.Schema) or pa.types.is_struct(type):
        return [(field.name, field.type) for field in type]
    return ()


_WIRE = "celc:"
_NOT_SENT = frozenset(".`\0")
"""Spark reads a name as a path, and sends it only up to the character NUL."""


def wire_name(name: str) -> str:
    """The name of a column on its way to a worker: its own name, if Spark can find it by that.

    No two columns share a name on the way: a column whose own name begins like a wire name is
    renamed too.
    """
    if not _NOT_SENT.isdisjoint(name) or name.startswith(_WIRE):
        return _WIRE + name.encode().hex()
    return name


def received(events: pa.RecordBatch) -> pa.RecordBatch:
    """A batch that was sent under `wire_name`s, with its original names."""
    names = events.schema.names
    if not any(name.startswith(_WIRE) for name in names):
        return events
    return events.rename_columns(list(map(_name_of, names)))


def _name_of(sent: str) -> str:
    try:
        name = bytes.fromhex(sent.removeprefix(_WIRE)).decode()
    except ValueError:
        return sent  # not sent by celc: a user applies a function to columns of their own
    return name if wire_name(name) == sent else sent


def with_fields(events: Any, names: Iterable[str]) -> Any:
    """Events with a column for each name that leads to a field of a struct."""
    known = events.schema.names
    for name in dict.fromkeys(names):
        if "." not in name or name in known:
            continue
        try:
            path = path_of(name, arrow_fields(events.schema), arrow_fields)
        except LookupError:
            continue  # a column that occurs twice is reported with the others
        if path is not None:
            column = events.column(path[0])
            for place in path[1:]:
                column = pc.struct_field(column, place)
            events = events.append_column(name, column)
    return events


def missing_error(
    query: str, names: Sequence[str], known: Sequence[str], type_name: str
) -> EventError:
    """The error for columns that a query reads and a table does not have; `type_name`: the column
    of the event types."""
    near = {name.lower(): name for name in known}
    renamed = [f"{near[n.lower()]!r} to {n!r}" for n in names if n.lower() in near]
    remedy = f"rename {', '.join(renamed)}" if renamed else "add them, or rename those that hold it"
    case = "upper and lower case must agree"
    if type_name in names:
        case += "; with_options(type_column=…) names another column of the event types"
    return EventError(
        f"query {query!r} reads columns that the DataFrame lacks: "
        f"{', '.join(map(repr, names))}; its columns are: "
        f"{', '.join(map(repr, known)) or 'none'} ({remedy}; {case})"
    )
