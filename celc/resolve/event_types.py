"""Event types that a query names, `R` or `S>R`, looked up in the streams that it reads."""

from celc.diagnostics.errors import Diagnostics, Fix
from celc.diagnostics.messages import names, warnings
from celc.parse import syntax
from celc.resolve.schema import Schema


def types_called(
    stream: syntax.Name | None,
    event_type: syntax.Name,
    schema: Schema,
    found: Diagnostics,
    meant: Fix | None = None,
) -> int:
    """The mask of the event types of a name; 0 after an error, and where no stream is declared.
    `meant` is the change that the error about an unknown name offers first."""
    if stream is not None:
        return _type_of_stream(stream, event_type, schema, found)
    name, declared = event_type.text, schema.declarations.streams
    mask = schema.masks.get(name, 0)
    if mask or not declared:
        return mask
    owners = [s.name for s in declared.values() if any(t.name == name for t in s.event_types)]
    if owners:
        read = [one.name for one in schema.streams]
        place = schema.declarations.places[owners[0], name]
        found.add(names.event_type_not_in_from(name, owners, read, event_type.span, place))
    else:
        where, known = "this query's streams", list(schema.masks)
        found.add(names.unknown_event_type(name, known, where, event_type.span, meant))
    return 0


def _type_of_stream(
    stream: syntax.Name, event_type: syntax.Name, schema: Schema, found: Diagnostics
) -> int:
    declared = schema.declarations.streams
    read = [one.name for one in schema.streams]
    name, owner = event_type.text, stream.text
    if owner not in declared:
        if declared:
            found.add(names.unknown_stream(owner, list(declared), stream.span))
        return 0
    if owner not in read:
        found.add(names.stream_not_in_from(owner, read, stream.span))
        return 0
    for k, one in enumerate(schema.event_types):
        if (one.stream, one.name) == (owner, name):
            if len(read) == 1:
                span = stream.span.to(event_type.span)
                found.add(warnings.stream_not_read(owner, name, span))
            return 1 << k
    offered = [one.name for one in declared[owner].event_types]
    found.add(names.unknown_event_type(name, offered, f"stream '{owner}'", event_type.span))
    return 0
