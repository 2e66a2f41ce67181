"""Event types that a query names, `R` or `S>R`, looked up in the streams that it reads.

CEQL's `NOT(R)` is expressed with the operators of the language. CORE reads it as one event that
does not satisfy R. The event belongs to the match and has no label. So it is
`PROJECT[]((A OR B OR …) UNLESS R)` over all event types of FROM. For a plain R the other types are
enough, and the automaton has nothing to watch.
"""

from celc.diagnostics.errors import Diagnostics, Fix
from celc.diagnostics.messages import names, warnings
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.schema import Schema

STANDS_FOR = "NOT(…) is annotated as the formula that it stands for"


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
            found.add(names.unknown_stream(owner, list(declared), (), stream.span))
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


def without(node: syntax.OtherEvent, schema: Schema) -> syntax.Formula:
    """A formula of the same meaning without NOT; its parts have the place of the NOT."""
    operand, span = node.operand, node.span
    names = [(one.stream, one.name) for one in schema.event_types]
    if isinstance(operand, syntax.EventAtom):
        stream = None if operand.stream is None else operand.stream.text
        rest = [one for one in names if one[1] != operand.type.text or one[0] != (stream or one[0])]
        if rest and len(rest) < len(names):
            return syntax.Project((), _any_of(rest, schema, span), span)
    every = syntax.Unless(_any_of(names, schema, span), operand, span) if names else operand
    return syntax.Project((), every, span)


def _any_of(names: list[tuple[str, str]], schema: Schema, span: Span) -> syntax.Formula:
    atoms = tuple(
        syntax.EventAtom(
            syntax.Name(stream, span) if schema.masks[name].bit_count() > 1 else None,
            syntax.Name(name, span),
            span,
        )
        for stream, name in names
    )
    return atoms[0] if len(atoms) == 1 else syntax.Disjunction(atoms, span)
