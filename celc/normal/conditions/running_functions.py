"""Conditions on whole matches that a few numbers decide, which are kept as a match grows.

The listing puts a match together from its last event backwards. A condition such as SUM(x.a) = 10
or FIRST(x.a) < LAST(x.a) depends on the events of x only through one number for each function: the
sum so far, or the event with the value. So below an event, two partial matches with the same
numbers have the same matches, and what failed once is not tried again (`failures` in the runtime).
Sums of small whole numbers have few values. Then a search takes (events × values) steps, and not a
step for each subset. This is the known solution of the subset sum problem.

A number is kept only if it does not depend on the order in which events are added. Sums of DOUBLE
do, and so do averages.
"""

from celc.core import formula as core
from celc.core.formula import DataType
from celc.core.terms import nodes_written_in
from celc.normal.flat_form import RoleClause

_WHOLE = frozenset({DataType.INT, DataType.LONG})
_ORDERED = _WHOLE | {DataType.FLOAT, DataType.DOUBLE}


def running_functions_of(clause: RoleClause) -> tuple[core.Aggregate, ...]:
    """The functions whose numbers decide a condition on a whole match; empty: they do not decide
    it."""
    if clause.when != "complete" or clause.clause.labels:
        return ()
    found = []
    for predicate in clause.clause.predicates:
        for node in nodes_written_in(predicate):
            if isinstance(node, core.Aggregate) and is_kept(node):
                found.append(node)
            elif isinstance(node, core.Aggregate | core.AttributeValue | core.Previous):
                return ()
    return tuple(found)


def is_kept(node: core.Aggregate) -> bool:
    """Whether a function depends on the events of its label through one number."""
    if node.prior:
        return False
    match node.function:
        case "COUNT" | "FIRST" | "LAST":
            return True
        case "SUM":
            return node.type in _WHOLE
        case "MIN" | "MAX":
            return node.type in _ORDERED
        case _:
            return False
