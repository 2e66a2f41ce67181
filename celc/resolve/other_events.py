"""CEQL's `NOT(R)`, expressed with the operators of the language.

CORE reads it as one event that does not satisfy R. The event belongs to the match and has no label.
So it is `PROJECT[]((A OR B OR …) UNLESS R)` over all event types of FROM. For a plain R the other
types are enough, and the automaton has nothing to watch.
"""

from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.schema import Schema

STANDS_FOR = "NOT(…) is annotated as the formula that it stands for"


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
