"""Labels of formulas as they are written: which a formula binds, and the event types under each."""

from collections.abc import Iterator, Mapping
from typing import Any

from celc.core import formula as core
from celc.core.traversal import matched_parts_of
from celc.parse import syntax
from celc.parse.trees import nodes_of


def bound(formula: syntax.Formula) -> frozenset[str]:
    """The labels that a formula binds at its own level."""
    match formula:
        case syntax.EventAtom():
            return frozenset({formula.type.text})
        case syntax.As():
            return bound(formula.operand) | {formula.label.text}
        case syntax.Rename():
            return (bound(formula.operand) - {formula.old.text}) | {formula.new.text}
        case syntax.Project():
            return frozenset(name.text for name in formula.labels)
        case syntax.OtherEvent():
            return frozenset()
    return frozenset[str]().union(*map(bound, matched(formula)))


def matched(formula: syntax.Formula) -> Iterator[syntax.Formula]:
    """The operands that make up a match, without what is forbidden."""
    match formula:
        case syntax.Sequence():
            yield formula.first
            yield from (link.operand for link in formula.links if not link.negated)
        case syntax.Conjunction():
            yield formula.first
            yield from (joint.operand for joint in formula.joints)
        case syntax.Disjunction():
            yield from formula.operands
        case syntax.Unless():
            yield formula.left
        case syntax.EventAtom() | syntax.OtherEvent():
            return
        case _:
            yield formula.operand


def types_of(formula: core.Formula) -> dict[str, dict[core.EventType, None]]:
    """The event types that stand under each label of a formula."""
    return {
        label: {type: None for atom in atoms.values() for type in atom.types}
        for label, atoms in atoms_of(formula).items()
    }


def atoms_of(formula: core.Formula) -> dict[str, dict[int, core.Atom]]:
    """The atoms that stand under each label of a formula, by their identity."""
    found: dict[str, dict[int, core.Atom]] = {}

    def add(label: str, atoms: Mapping[int, core.Atom]) -> None:
        found.setdefault(label, {}).update(atoms)

    match formula:
        case core.Atom():
            add(formula.label, {id(formula): formula})
            return found
        case core.As() | core.Rename():
            inside = atoms_of(formula.operand)
            for label, atoms in inside.items():
                if not (isinstance(formula, core.Rename) and label == formula.old):
                    add(label, atoms)
            if isinstance(formula, core.As):
                for atoms in inside.values():
                    add(formula.label, atoms)
            else:
                add(formula.new, inside.get(formula.old, {}))
            return found
        case core.Project():
            inside = atoms_of(formula.operand)
            return {label: inside[label] for label in formula.labels}
    for part in matched_parts_of(formula):
        for label, atoms in atoms_of(part).items():
            add(label, atoms)
    return found


def named(tree: Any, sets: Mapping[str, Any] | frozenset[str], owner: str | None) -> set[str]:
    """The labels that a condition or an expression names; `sets` are no labels, and `owner` is the
    label of bare names in `x[…]`."""
    found = set()
    for node in nodes_of(tree):
        match node:
            case syntax.Attribute(label=None):
                if owner is not None:
                    found.add(owner)
                else:
                    found.add(node.attribute.text)
            case syntax.Attribute(label=syntax.Name(text=text)):
                found.add(text)
            case syntax.TypeTest() | syntax.EventCondition():
                found.add(node.label.text)
    return {one for one in found if one not in sets}
