"""The expressions in a predicate, and the labels that conditions name."""

from celc.core import formula as core
from celc.core.formula import Clause, Expression, Predicate
from celc.core.traversal import (
    Leaf,
    formulas_in,
    nodes_of,
    operands_of,
    predicates_of,
    written_operands_of,
)


def nodes_named_in(predicate: Predicate) -> list[Expression]:
    """All expressions within a predicate, outer before inner, left before right."""
    return [node for operand in operands_of(predicate) for node in nodes_of(operand)]


def nodes_written_in(predicate: Predicate) -> list[Expression]:
    """All expressions within a predicate, then those of the comparison that it was written out
    from."""
    return [node for operand in written_operands_of(predicate) for node in nodes_of(operand)]


def labels_named(predicate: Predicate) -> frozenset[str]:
    """The labels that a predicate names, also inside functions."""
    return frozenset(node.label for node in nodes_named_in(predicate) if isinstance(node, Leaf))


def labels_chosen_from(predicate: Predicate) -> tuple[str, ...]:
    """The labels that a predicate names outside functions of a whole label, in order of first
    appearance, without those of its own SOME and EVERY. A position is chosen for each of them."""
    if isinstance(predicate, core.Quantified):
        inside = map(labels_chosen_from, predicates_of(predicate.condition))
        named = dict.fromkeys(label for labels in inside for label in labels)
        return tuple(label for label in named if label not in predicate.labels)
    return tuple(
        dict.fromkeys(
            node.label
            for node in nodes_written_in(predicate)
            if isinstance(node, core.AttributeValue | core.Previous)
            or (isinstance(node, core.Aggregate) and node.prior)
        )
    )


def quantified_labels(predicate: Predicate) -> frozenset[str]:
    """The labels of which a predicate, or what stands in it, asks SOME or EVERY."""
    if not isinstance(predicate, core.Quantified):
        return frozenset()
    inside = map(quantified_labels, predicates_of(predicate.condition))
    return frozenset(predicate.labels).union(*inside)


def labels_of_clause(clause: Clause) -> frozenset[str]:
    """The labels that a clause names, also inside functions."""
    return frozenset(clause.labels).union(*map(labels_named, clause.predicates))


def labels_in_order(clause: Clause) -> tuple[str, ...]:
    """The labels of a clause: those chosen from, then those in functions alone."""
    return (*clause.labels, *sorted(labels_of_clause(clause) - {*clause.labels}))


def labels_asked(formula: core.Formula, *, back: bool = False) -> frozenset[str]:
    """The labels that conditions anywhere in a formula name; with `back` those of which they take
    PREV or PRIOR, in SOME and EVERY too."""
    found: set[str] = set()
    for part in formulas_in(formula):
        for clause in part.clauses if isinstance(part, core.Filter) else ():
            for predicate in clause.predicates:
                found.update(
                    node.label
                    for node in nodes_written_in(predicate)
                    if isinstance(node, Leaf) and (not back or _looks_back(node))
                )
    return frozenset(found)


def _looks_back(node: Leaf) -> bool:
    return isinstance(node, core.Previous) or (isinstance(node, core.Aggregate) and node.prior)


def looks_back(predicate: Predicate) -> bool:
    """Whether a predicate asks with PREV or PRIOR for positions before another one."""
    return bool(labels_looked_back_at(predicate))


def labels_looked_back_at(predicate: Predicate) -> set[str]:
    """The labels of which a predicate takes PREV or PRIOR.

    If it is a part of a comparison, those of the whole comparison count, because that is TRUE where
    there are fewer positions before.
    """
    return {*distances_looked_back(predicate)}


def distances_looked_back(predicate: Predicate) -> dict[str, int]:
    """The same labels, with how many positions must come before the chosen one."""
    found: dict[str, int] = {}
    if isinstance(predicate, core.Quantified):
        return found  # what stands in it is judged there
    for node in nodes_written_in(predicate):
        if isinstance(node, core.Previous):
            found[node.label] = max(node.distance, found.get(node.label, 0))
        elif isinstance(node, core.Aggregate) and node.prior:
            found[node.label] = max(1, found.get(node.label, 0))
    return found


def type_tested(predicate: Predicate) -> str | None:
    """The label whose event type a predicate asks for; None: it asks for something else."""
    match predicate:
        case core.Membership(operand=core.AttributeValue(label=label, attribute=core.TYPE)):
            return label
        case _:
            return None


def joined_texts(text: Expression) -> tuple[Expression, ...]:
    """The texts that `a || b || c` joins, in order; the text itself where it joins none."""
    if isinstance(text, core.Call) and text.function == "CONCAT":
        return tuple(piece for one in text.operands for piece in joined_texts(one))
    return (text,)


def constants_of(predicate: Predicate) -> tuple[core.Value, ...]:
    """The constants that a predicate compares with, without NULL."""
    match predicate:
        case core.Comparison(left=core.Constant(value=value)):
            return () if value is None else (value,)
        case core.Comparison(right=core.Constant(value=value)):
            return () if value is None else (value,)
        case core.Membership():
            return predicate.values
        case _:
            return ()
