"""Absences at the end of a formula, `φ ; !ψ FOR d`: where they can stand, and with which clauses.

A match with such an absence is known only some time after its last event. So the absence must stand
where no other part of the formula needs the match: at the end of the whole formula, or of an
operand of OR at that end. AS, renaming, PROJECT, FILTER and windows keep the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import absences
from celc.diagnostics.source import Source
from celc.parse import syntax
from celc.parse.mistakes.tokens import shortened


def absences_at_ends(node: syntax.Formula) -> list[syntax.AbsenceAfter]:
    """All absences at an end in a formula, in the order of the text."""
    return [part for part in _parts(node) if isinstance(part, syntax.AbsenceAfter)]


def lengths_of_absences(node: syntax.Formula) -> list[syntax.Window]:
    """The d of all `!ψ FOR d` in a formula, in the order of the text."""
    absences = [
        part
        for part in _parts(node)
        if isinstance(part, syntax.AbsenceBefore | syntax.AbsenceAfter)
    ]
    return [part.length for part in absences if part.length is not None]


def check_ends(
    node: syntax.Query, event_types: Sequence[str], source: Source, found: Diagnostics
) -> None:
    """Report absences at an end that stand elsewhere, or lack what they need. `event_types` are the
    names of the query's event types."""
    all_of_them = absences_at_ends(node.formula)
    allowed = {part.bang for part in _at_the_end(node.formula)}
    for part in all_of_them:
        operand, absent = (shortened(source.slice(one.span)) for one in (part.operand, part.absent))
        if part.bang not in allowed:
            found.add(absences.not_at_the_end(part.bang, operand, absent))
        elif part.length is None and node.window is None:
            other = next((name for name in event_types if name not in (operand, absent)), None)
            found.add(absences.without_length(part.bang, operand, absent, other, part.span))
    if all_of_them and node.consume is not None and node.consume.policy != "NONE":
        bang = all_of_them[0].bang
        found.add(absences.consumed(node.consume.policy, node.consume.span, bang))


def _at_the_end(node: syntax.Formula) -> Iterator[syntax.AbsenceAfter]:
    match node:
        case syntax.AbsenceAfter():
            yield node
        case syntax.Disjunction():
            for operand in node.operands:
                yield from _at_the_end(operand)
        case syntax.As() | syntax.Rename() | syntax.Project() | syntax.Filter() | syntax.Within():
            yield from _at_the_end(node.operand)
        case _:
            return


def _parts(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        for item in node:
            yield from _parts(item)
    elif isinstance(node, _FORMULAS):
        for field in fields(node):
            yield from _parts(getattr(node, field.name))
        yield node


_FORMULAS = (*syntax.Formula.__args__, syntax.Link, syntax.Joint)
