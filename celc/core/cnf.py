"""Conjunctive normal form: an AND of clauses, each an OR of predicates.

A condition is defined by its clauses: each must be TRUE for every choice of positions for the
labels it names. So the form is not an optimisation that could be left out. Distribution can
explode, so the size is counted first.
"""

from collections.abc import Iterable
from itertools import chain, product
from math import prod

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.complement import complement
from celc.core.terms import labels_chosen_from
from celc.diagnostics.deadline import look
from celc.diagnostics.source import Span

# How many predicates the clauses may hold together, as a multiple of the limit on clauses.
_PREDICATES_PER_CLAUSE = 100


@frozen
class Size:
    """How large the normal form of a condition is before duplicates are removed."""

    clauses: int
    predicates: int  # in all clauses together
    written: int  # predicates of the condition itself

    def exceeds(self, max_clauses: int) -> bool:
        """Whether distribution made it too large. A form that is written out in the text never
        is."""
        return self.clauses > max(max_clauses, self.written) or self.predicates > max(
            max_clauses * _PREDICATES_PER_CLAUSE, self.written
        )


def size_of(tree: core.Truth) -> Size:
    """The size of the normal form of a condition, without building it."""
    match tree:
        case core.Every():
            sizes = list(map(size_of, tree.parts))
            return Size(
                sum(size.clauses for size in sizes),
                sum(size.predicates for size in sizes),
                sum(size.written for size in sizes),
            )
        case core.Some():
            sizes = list(map(size_of, tree.parts))
            clauses = prod(size.clauses for size in sizes)
            # Each clause of a part stands in as many products as the other parts have together.
            predicates = sum(size.predicates * (clauses // size.clauses) for size in sizes)
            return Size(clauses, predicates, sum(size.written for size in sizes))
        case core.Quantified() if is_for_all(tree):
            return size_of(asked_of_all(tree))
        case _:
            return Size(1, 1, 1)


def clauses_of(tree: core.Truth) -> tuple[core.Clause, ...]:
    """The clauses of a condition in the order of the text, without duplicates.

    The place of a clause is the smallest OR of the text that it comes from. A condition on every
    position of a label is a condition for every choice of one, as all clauses are: so EVERY, and
    NOT (SOME …), are written out, but where the clause names the label besides.
    """
    return tuple(one for clause in _clauses(tree) for one in _with_every(clause))


def is_for_all(predicate: core.Quantified) -> bool:
    """Whether a predicate asks the same of all positions: EVERY, and NOT (SOME …)."""
    return predicate.every != predicate.negated


def asked_of_all(predicate: core.Quantified) -> core.Truth:
    """What such a predicate asks."""
    return complement(predicate.condition) if predicate.negated else predicate.condition


def _with_every(clause: core.Clause) -> list[core.Clause]:
    for place, predicate in enumerate(clause.predicates):
        if not isinstance(predicate, core.Quantified) or not is_for_all(predicate):
            continue
        if {*clause.labels}.intersection(predicate.labels):
            continue
        others = (*clause.predicates[:place], *clause.predicates[place + 1 :])
        labels = (*clause.labels, *predicate.labels)
        found = []
        for part in clauses_of(asked_of_all(predicate)):
            members = tuple(dict.fromkeys((*others, *part.predicates)))
            look(part.span)
            span = clause.span if others else part.span
            named = (label for one in members for label in labels_chosen_from(one))
            ordered = tuple(dict.fromkeys((*named, *labels)))
            found += _with_every(core.Clause(members, ordered, span))
        return found
    return [clause]


def _clauses(tree: core.Truth) -> tuple[core.Clause, ...]:
    numbers: dict[core.Predicate, int] = {}
    rows = _rows(tree, numbers)
    predicates = tuple(numbers)
    labels = tuple(map(labels_chosen_from, predicates))
    clauses = []
    for row in rows:
        named = dict.fromkeys(label for k in row.numbers for label in labels[k])
        members = tuple([predicates[k] for k in row.numbers])
        clauses.append(core.Clause(members, tuple(named), row.span))
    return tuple(clauses)


@frozen
class _Row:
    """A clause under construction: its predicates by number, so that equal ones are the same."""

    numbers: tuple[int, ...]
    span: Span


def _rows(tree: core.Truth, numbers: dict[core.Predicate, int]) -> list[_Row]:
    match tree:
        case core.Every():
            return _distinct(chain.from_iterable(_rows(part, numbers) for part in tree.parts))
        case core.Some():
            parts = [_rows(part, numbers) for part in tree.parts]
            return _distinct(_joined(choice, tree.span) for choice in product(*parts))
        case _:
            return [_Row((numbers.setdefault(tree, len(numbers)),), tree.span)]


def _joined(rows: Iterable[_Row], span: Span) -> _Row:
    return _Row(tuple(dict.fromkeys(number for row in rows for number in row.numbers)), span)


def _distinct(rows: Iterable[_Row]) -> list[_Row]:
    distinct: dict[frozenset[int], _Row] = {}
    for row in rows:
        look(row.span)
        distinct.setdefault(frozenset(row.numbers), row)
    return list(distinct.values())
