"""Queries whose longest matches are runs of events: `SELECT LONGEST … WHERE (A AS x)+ FILTER …`.

The longest match from an event takes all events after it, up to the first that is not linked with
the one before it or lies outside the window. This holds where an event that is added between two
linked ones leaves both pairs linked:

* under `:+` no event can be added;
* under `+` without conditions across events all are linked;
* under `+` where each condition bounds how much the order column has grown since the event before
  (`x.ts - PREV(x.ts) <= 5 SECONDS`): the column never falls, so it grows less over a part.

Sums in such conditions are left out: whole numbers that wrap and times that leave their range would
break the rule. For the same reason order columns of whole numbers are left out.

The caller checks conditions on the whole run. Where further events keep one TRUE (`growing`), the
longest run satisfies it if any match from its start does.
"""

from dataclasses import replace

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.terms import distances_looked_back, nodes_named_in
from celc.normal import normal_form as lp
from celc.normal.normal_form import NormalForm

_NEVER_WRAP = (
    core.DataType.TIMESTAMP,
    core.DataType.DATE,
    core.DataType.DOUBLE,
    core.DataType.FLOAT,
)


@frozen
class RunOfEvents:
    """A longest match is a run of at least `least` events."""

    least: int
    contiguous: bool  # no other events lie between them
    ordered_by: str | None = None  # the column on whose order this relies; None: on none


def run_of_events(query: core.Query, form: NormalForm) -> RunOfEvents | None:
    """The shape of the longest matches, where they are runs. The caller checks conditions between
    neighbours."""
    if query.per_start is None or query.per_start.end != "LONGEST":
        return None
    match form:
        case lp.Relabel(operand=lp.Selected(operand=operand)):
            return _run(query, operand)
        case _:
            return None


def _run(query: core.Query, form: NormalForm) -> RunOfEvents | None:
    match form:
        case lp.Scope():
            return _run(query, form.operand)
        case lp.Where(fact=lp.CountOf(label=label, truths=truths)):
            found = _run(query, form.operand)
            if found is None or not _all_carry(form.operand, label):
                return None
            if list(truths) != sorted(truths) or not truths[-1]:
                return None  # it is no lower bound
            return replace(found, least=max(found.least, truths.index(True)))
        case lp.Correlated():
            found = _run(query, form.operand)
            predicates = [
                predicate
                for clause in form.clauses
                if not any(map(_is_of_whole_run, clause.predicates))
                for predicate in clause.predicates
            ]
            if found is None or not all(map(_looks_at_neighbour, predicates)):
                return None
            if found.contiguous:
                return found
            if not all(_bounds_difference(predicate, query) for predicate in predicates):
                return None
            if not predicates:
                return found
            return replace(found, ordered_by=query.order_by[0].name)
        case lp.Iteration(most=None) if _events(form.operand):
            return RunOfEvents(form.least, form.contiguous)
        case _:
            return None


def _events(form: NormalForm) -> tuple[lp.Event, ...]:
    """The events of which a match of the form has one; empty where it can have more than one."""
    match form:
        case lp.Event():
            return (form,)
        case lp.Scope():
            return _events(form.operand)
        case lp.Disjunction():
            found = [_events(operand) for operand in form.operands]
            return tuple(event for events in found for event in events) if all(found) else ()
        case _:
            return ()


def _all_carry(form: NormalForm, label: str) -> bool:
    match form:
        case lp.Iteration():
            return all(label in event.labels for event in _events(form.operand))
        case lp.Scope() | lp.Correlated() | lp.Where():
            return _all_carry(form.operand, label)
        case _:
            return False


def _looks_at_neighbour(predicate: core.Predicate) -> bool:
    """Whether it asks for nothing further back than the position before."""
    return all(distance == 1 for distance in distances_looked_back(predicate).values())


def _is_of_whole_run(predicate: core.Predicate) -> bool:
    """Whether it asks for functions of all events. The caller knows whether further events help."""
    return any(
        isinstance(node, core.Aggregate) and not node.prior for node in nodes_named_in(predicate)
    )


def _bounds_difference(predicate: core.Predicate, query: core.Query) -> bool:
    """Whether it is `x.t - PREV(x.t) <= c` for the order column t, or the same with its sides
    exchanged."""
    match predicate:
        case core.Comparison(
            operator="<" | "<=", left=core.Arithmetic() as side, right=core.Constant() as bound
        ):
            pass
        case core.Comparison(
            operator=">" | ">=", left=core.Constant() as bound, right=core.Arithmetic() as side
        ):
            pass
        case _:
            return False
    match side:
        case core.Arithmetic(
            operator="-", left=core.AttributeValue() as now, right=core.Previous() as before
        ):
            pass
        case _:
            return False
    is_infinite = isinstance(bound.value, float) and abs(bound.value) == float("inf")
    return (
        bool(query.order_by)
        and now.attribute == before.attribute == query.order_by[0].name
        and now.label == before.label
        and query.order_by[0].type in _NEVER_WRAP
        and not is_infinite
    )
