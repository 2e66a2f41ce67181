"""Types as people write them → types of the language.

A type has one name in the language, that of Spark. The words of other systems are read as what they
mean there.
"""

from celc_runtime.values.types import MOST_DIGITS, array_of, decimal_of, map_of, struct_of

from celc.core.formula import ATTRIBUTE_TYPES, DataType
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import declared_types as messages
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.parse.types import type_word

# CORE's type of the attribute that orders a stream and measures its windows.
PRIMARY_TIME = "PRIMARY_TIME"
_SIMPLE = {data_type.value: data_type for data_type in ATTRIBUTE_TYPES}
_FORMS = {
    "DECIMAL": "DECIMAL(10, 2)",
    "ARRAY": "ARRAY<STRING>",
    "STRUCT": "STRUCT<name: STRING, size: INT>",
    "MAP": "MAP<STRING, INT>",
}
"""The types that have parts, each with an example."""
PARAMETER_TYPES = (*_SIMPLE, *_FORMS)
"""The words of the language for types."""
TYPE_NAMES = (*PARAMETER_TYPES, PRIMARY_TIME)
"""The words of the language for types of attributes of events."""

_SIZED = frozenset({"STRING", "BINARY", "TIMESTAMP", "TIMESTAMP_NTZ"})
"""The types that other systems write with a length, which has no meaning here: `VARCHAR(20)`."""


def type_of_written(node: syntax.WrittenType, found: Diagnostics) -> DataType | None:
    """The type that is written; None where there is no such type, which is reported."""
    name = type_word(node.name.text)
    if name not in (*_SIMPLE, *_FORMS):
        found.add(messages.unknown_type(node.name.text, TYPE_NAMES, node.name.span))
        return None
    if name == "DECIMAL":
        return _decimal(node, found)
    if name in _SIMPLE:
        is_whole = not node.parts and (not node.sizes or (name in _SIZED and len(node.sizes) == 1))
        if not is_whole:
            found.add(messages.parts_of_type(name, None, node.span))
        return _SIMPLE[name] if is_whole else None
    fields = [part for part in node.parts if isinstance(part, syntax.TypeField)]
    inner = [part for part in node.parts if isinstance(part, syntax.WrittenType)]
    wanted = {"ARRAY": (1, 0), "MAP": (2, 0)}.get(name, (0, max(1, len(fields))))
    if (len(inner), len(fields)) != wanted:
        found.add(messages.parts_of_type(name, _FORMS[name], node.span))
        return None
    types = [type_of_written(one, found) for one in inner]
    named = _fields(fields, found)
    if any(one is None for one in types) or named is None:
        return None
    *keys, element = (one for one in (*types, *named.values()) if one is not None)
    if name == "STRUCT":
        return struct_of(tuple(named.items()))
    if name == "ARRAY":
        return array_of(element)
    if keys[0] is not DataType.STRING:
        found.add(messages.keys_of_map(keys[0].value, inner[0].span))
        return None
    return map_of(element)


def _fields(nodes: list[syntax.TypeField], found: Diagnostics) -> dict[str, DataType] | None:
    """The fields of a STRUCT; None where one is wrong."""
    places: dict[str, Span] = {}
    types: dict[str, DataType] = {}
    for node in nodes:
        name = node.name.text
        if name.casefold() in places:
            found.add(messages.duplicate_field(name, node.name.span, places[name.casefold()]))
            continue
        places[name.casefold()] = node.name.span
        data_type = type_of_written(node.type, found)
        if data_type is not None:
            types[name] = data_type
    return types if len(types) == len(nodes) else None


def _decimal(node: syntax.WrittenType, found: Diagnostics) -> DataType | None:
    if node.parts or len(node.sizes) > 2:
        found.add(messages.parts_of_type("DECIMAL", _FORMS["DECIMAL"], node.span))
        return None
    precision, scale = (*node.sizes, 0)[:2] if node.sizes else (10, 0)
    if not node.sizes:
        found.add(messages.bare_decimal(node.name.text, node.span))
    if not 1 <= precision <= MOST_DIGITS or scale > precision:
        found.add(messages.digits_of_decimal(precision, scale, MOST_DIGITS, node.span))
        return None
    return decimal_of(precision, scale)


def is_primary_time(node: syntax.WrittenType) -> bool:
    """Whether it is PRIMARY_TIME, a TIMESTAMP that orders its stream."""
    return type_word(node.name.text) == PRIMARY_TIME and not node.sizes and not node.parts
