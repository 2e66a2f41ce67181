"""A warning about `X ; !Y ; Y`, which `X ; FIRST Y` says with each condition written once.

The two mean the same if Y is one event and events have no duration, also if several events share an
instant. If Y is a pattern of several events, they differ: FIRST takes the match of Y that ends
first, and the absence forbids every match of Y that lies between. They differ likewise for events
with a duration. With uncertain time FIRST is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.terms import labels_of_clause, nodes_written_in
from celc.core.traversal import formulas_in, map_leaves, matched_parts_of
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import absences
from celc.diagnostics.source import Source, Span

_ITSELF = ""  # stands for the labels of an event in its own conditions


@frozen
class _Event:
    """A part of a formula that matches one event, as in `(A OR B) AS x FILTER x.v > 1`."""

    base: Span  # of the event types, as `A OR B`
    types: frozenset[core.EventType]
    labels: tuple[str, ...]  # of the base, then those made with AS; all are of this one event
    named: tuple[str, ...]  # those made with AS
    filters: tuple[core.Filter, ...]  # around the base, the innermost first

    @property
    def clauses(self) -> frozenset[core.Clause]:
        """The conditions on the event, each with `_ITSELF` in place of its labels."""
        return frozenset(
            _of_itself(clause, self.labels) for one in self.filters for clause in one.clauses
        )


def check_absences(formula: core.Formula, found: Diagnostics) -> None:
    """Warn of each absence that does no more than make the event after it the first one.

    The caller has made sure that events have no duration.
    """
    bound = [*_bindings(formula)]
    for absence, around in _absences(formula, ()):
        absent, then = _event(absence.middle), _event(absence.right)
        if absent is None or then is None or absent.types != then.types:
            continue
        if not _sees_the_left(absent, absence, bound):
            continue
        asked, inside = absent.clauses, then.clauses
        alone = [one for one in then.labels if _is_bound_there(one, absence, bound)]
        outside = {_of_itself(clause, alone) for clause in around}
        if not inside <= asked <= inside | outside:
            continue
        instead = _instead(absent, then, found.source)
        place = _place(absence, found.source)
        if instead is not None and place is not None:
            found.add(absences.first_instead(instead, place, repeated=not asked <= inside))


def _absences(
    formula: core.Formula, around: tuple[core.Clause, ...]
) -> Iterator[tuple[core.Absence, tuple[core.Clause, ...]]]:
    """The absences between two parts, each with clauses that every match with it satisfies.

    They are those of the FILTERs around it with only AS, `;`, FIRST, `!` and WITHIN between.
    """
    match formula:
        case core.Filter():
            around = (*around, *formula.clauses)
        case core.Absence():
            yield formula, around
        case core.As() | core.Sequence() | core.Within() | core.ThenFirst():
            pass
        case core.AbsenceBefore() | core.AbsenceAfter():
            pass
        case _:
            around = ()
    for part in matched_parts_of(formula):
        yield from _absences(part, around)


def _event(formula: core.Formula) -> _Event | None:
    """A part as one event; None if it can match several, or if a label can be of another event."""
    match formula:
        case core.Atom():
            types = frozenset(formula.types)
            return _Event(formula.span, types, (formula.label,), (), ())
        case core.Disjunction(operands=operands):
            atoms = [one for one in operands if isinstance(one, core.Atom)]
            types = frozenset(one for atom in atoms for one in atom.types)
            return _Event(formula.span, types, (), (), ()) if len(atoms) == len(operands) else None
        case core.As():
            event = _event(formula.operand)
            if event is None:
                return None
            labels, named = (*event.labels, formula.label), (*event.named, formula.label)
            return replace(event, labels=labels, named=named)
        case core.Filter():
            event = _event(formula.operand)
            if event is None or not all(_is_plain(clause) for clause in formula.clauses):
                return None
            return replace(event, filters=(*event.filters, formula))
        case _:
            return None


def _is_plain(clause: core.Clause) -> bool:
    """Whether a clause compares attributes only. Inside a FIRST, PREV and functions of a label
    can see other events."""
    return not any(
        isinstance(predicate, core.Quantified)
        or any(
            isinstance(node, core.Previous | core.Aggregate | core.OwnCall)
            for node in nodes_written_in(predicate)
        )
        for predicate in clause.predicates
    )


def _of_itself(clause: core.Clause, labels: Sequence[str]) -> core.Clause:
    """A clause with `_ITSELF` for the labels of an event, and each comparison in one order of its
    sides. So two clauses that mean the same are equal."""

    def renamed(leaf: core.Expression) -> core.Expression:
        assert isinstance(leaf, core.AttributeValue | core.Aggregate | core.Previous)
        return replace(leaf, label=_ITSELF) if leaf.label in labels else leaf

    predicates = sorted({_ordered(map_leaves(p, renamed)) for p in clause.predicates}, key=repr)
    named = tuple(sorted({_ITSELF if one in labels else one for one in clause.labels}))
    return core.Clause(tuple(predicates), named, clause.span)


def _ordered(predicate: core.Predicate) -> core.Predicate:
    if isinstance(predicate, core.Comparison) and repr(predicate.right) < repr(predicate.left):
        operator = core.MIRRORED[predicate.operator]
        return replace(
            predicate, operator=operator, left=predicate.right, right=predicate.left, beside=()
        )
    return replace(predicate, beside=()) if isinstance(predicate, core.Comparison) else predicate


# --- where labels are bound -----------------------------------------------------------------------


def _bindings(formula: core.Formula) -> Iterator[tuple[str, Span]]:
    for part in formulas_in(formula):
        match part:
            case core.Atom() | core.As():
                yield part.label, part.span
            case core.Rename():
                yield part.new, part.span
            case _:
                pass


def _sees_the_left(
    absent: _Event, absence: core.Absence, bound: Sequence[tuple[str, Span]]
) -> bool:
    """Whether the absent event is compared only with events to its left. Conditions in a FIRST see
    no others."""
    clauses = [clause for one in absent.filters for clause in one.clauses]
    asked = frozenset[str]().union(*map(labels_of_clause, clauses)) - {*absent.labels}
    return all(place.end <= absence.middle.span.start for label, place in bound if label in asked)


def _is_bound_there(label: str, absence: core.Absence, bound: Sequence[tuple[str, Span]]) -> bool:
    """Whether a label is bound only in the part after the absence, the absent part left out.

    If so, a condition on it in a FILTER around is about that event alone.
    """
    there, absent = absence.right.span, absence.middle.span
    return all(
        there.start <= place.start and place.end <= there.end
        for other, place in bound
        if other == label and not (absent.start <= place.start and place.end <= absent.end)
    )


# --- what to write --------------------------------------------------------------------------------


def _instead(absent: _Event, then: _Event, source: Source) -> str | None:
    """The text `FIRST Y`, with the labels of the event and the conditions of the absence.

    None if the text of the conditions cannot be copied.
    """
    conditions = []
    name = then.labels[-1] if then.labels else ""
    for one in absent.filters:
        start, end = one.operand.span.end, one.span.end
        head = re.match(r"[\s)]*FILTER\s+", source.text[start:end], re.IGNORECASE)
        if head is None:
            return None
        # The span of a part in parentheses includes the parentheses.
        for _ in range(source.text[one.span.start : one.operand.span.start].count("(")):
            end = source.text.rindex(")", start, end)
        written = _with_label(Span(start + head.end(), end), one, absent.labels, name, source)
        if written is None:
            return None
        conditions.append(written.strip())
    base = source.slice(then.base) + "".join(f" AS {one}" for one in then.named)
    if conditions and not then.labels:
        return None
    if conditions:
        joined = " AND ".join(
            conditions if len(conditions) == 1 else map("({})".format, conditions)
        )
        base = f"{base} FILTER {joined}"
    is_bare = not conditions and not then.named
    return f"FIRST {base}" if is_bare else f"FIRST ({base})"


def _with_label(
    span: Span, filtered: core.Filter, labels: Sequence[str], name: str, source: Source
) -> str | None:
    """The text of a condition, with `name` in place of other labels of the same event.

    None if a label does not stand before a dot.
    """
    text, end = "", span.start
    leaves = {
        node.span: node.label
        for clause in filtered.clauses
        for predicate in clause.predicates
        for node in nodes_written_in(predicate)
        if isinstance(node, core.AttributeValue) and node.label in labels
    }
    for place, label in sorted(leaves.items()):
        if label == name:
            continue
        if not source.slice(place).startswith(f"{label}."):
            return None
        text += source.text[end : place.start] + name
        end = place.start + len(label)
    return text + source.text[end : span.end]


def _place(absence: core.Absence, source: Source) -> Span | None:
    """The span from the `!` to the end of the event after it, parentheses included.

    None if more than `;`, `!` and parentheses stands between the parts.
    """
    before = source.text[absence.left.span.end : absence.middle.span.start]
    between = source.text[absence.middle.span.end : absence.right.span.start]
    if not re.fullmatch(r"[\s)]*;\s*![\s(]*", before) or not re.fullmatch(r"[\s);(]*", between):
        return None
    end = absence.right.span.end
    for _ in range(between.count("(")):
        closed = source.text.find(")", end)
        if closed < 0 or source.text[end:closed].strip():
            return None
        end = closed + 1
    return Span(absence.left.span.end + before.index("!"), end)
