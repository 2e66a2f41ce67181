"""What a graph of matches has to know of the events after a node, so that conditions hold on every
way through it.

The listing puts a match together from its last event backwards, and checks each event with those
after it. The matches below a node depend on these through few numbers for most conditions:

* PREV, a witness, a window, and functions such as COUNT keep their numbers in the listing already;
* a comparison of two events needs the later one. Where a label has several, the most demanding one
  decides: an event before all of them that satisfies it satisfies all;
* an equality needs one of them too. Where two of them differ, no event satisfies it;
* a comparison with COUNT(PRIOR x) says how many events of x may come before. Where several say so,
  the narrowest bounds decide, and each further event of x lowers them by one.

Then a node and these numbers, instead of a node alone, stand for the matches below
(`engine.graph.checked_graph` in the runtime). Conditions that need more are named with a reason.

Rejected: to keep all events that a condition compares. The graph could have as many nodes as there
are sets of these events, and then it is no smaller than the list of matches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, assert_never

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import DetState
from celc.core import formula as core
from celc.core.bits import bits_of
from celc.core.formula import ROLE, Aggregate, Expression
from celc.core.terms import labels_named, nodes_written_in
from celc.core.traversal import nodes_of
from celc.normal.conditions.running_functions import is_kept, running_functions_of
from celc.normal.flat_form import RoleClause
from celc.normal.show import show_clause
from celc.plan.tables import Tables

_IN_ORDER = (core.DataType.LONG, core.DataType.FLOAT, core.DataType.DOUBLE)

How: TypeAlias = Literal["event", "least", "greatest", "equal", "there", "unseen", "before"]


@frozen
class Kept:
    """The event of a role that is kept until the events before it have been compared with it.

    `how` says which one, where the role has several:

    * `event`: it has one only;
    * `least`, `greatest`: the one with the least or the greatest `side`;
    * `equal`: any, and that no other event satisfies the condition if two differ in `side`;
    * `there`: that there is one (with a `side` that is not NULL, if there is a side);
    * `unseen`: how many came after the last one with a `side` that is not NULL, up to two;
    * `before`: no event, but how many of the role may come before, as three numbers: the least and
      the greatest number that is not 0, and whether there may be none.
    """

    clause: RoleClause
    role: str
    how: How
    side: Expression | None = None  # what the condition takes of the event, read from `role` alone
    nulls_pass: bool = False  # whether an event whose `side` is NULL satisfies the condition
    round_mark: str | None = None  # the mark of the rounds in which the events are compared
    until: tuple[str, ...] = ()  # the roles after whose event it is not needed any more


@frozen
class Carried:
    """All that is kept for some clauses, besides what the listing keeps."""

    kept: tuple[Kept, ...]
    functions: tuple[Aggregate, ...]  # functions whose numbers are kept


class NotCarriedError(Exception):
    """A condition needs more than a few numbers; its text is the reason, as "because" needs it."""


def carried(clauses: Sequence[RoleClause], tables: Tables) -> Carried:
    """What is kept for clauses. Raises NotCarriedError if that is not enough for one of them."""
    later = roles_later(tables)
    found = [_of_clause(clause, clauses, tables, later) for clause in clauses]
    kept = dict.fromkeys(kept for one in found for kept in one.kept)
    functions = dict.fromkeys(function for one in found for function in one.functions)
    return Carried(tuple(kept), tuple(functions))


def why_not_carried(clauses: Sequence[RoleClause], tables: Tables) -> dict[RoleClause, str]:
    """The clauses for which nothing that is kept is enough, with the reason."""
    later, found = roles_later(tables), {}
    for clause in clauses:
        try:
            _of_clause(clause, clauses, tables, later)
        except NotCarriedError as error:
            found[clause] = str(error)
    return found


def _of_clause(
    clause: RoleClause,
    clauses: Sequence[RoleClause],
    tables: Tables,
    later: dict[str, frozenset[str]],
) -> Carried:
    match clause.when:
        case "neighbours" | "witness":
            return Carried((), ())
        case "earlier":
            return Carried((_of_earlier(clause),), ())
        case "pairs":
            return Carried(tuple(_of_pairs(clause, tables, later)), ())
        case "complete":
            return _of_complete(clause, clauses, tables, later)
        case _:
            assert_never(clause.when)


def _of_earlier(clause: RoleClause) -> Kept:
    """PREV stands for any event before: the event kept is the one that asks most of it."""
    (role,) = clause.clause.labels
    sides = _sides(clause)
    for side, other, how in () if sides is None else sides:
        if _reads(side) == {(role, False)} and _reads(other) == {(role, True)}:
            return Kept(clause, role, how, side, False, clause.round_mark)
    raise NotCarriedError(_more(clause))


def _of_pairs(
    clause: RoleClause, tables: Tables, later: dict[str, frozenset[str]]
) -> Iterable[Kept]:
    roles = clause.clause.labels
    if len(roles) < 2:
        return
    marks = {clause.round_of(*pair) for pair in itertools.combinations(range(len(roles)), 2)}
    (mark,) = marks if len(marks) == 1 else (None,)
    named = frozenset[str]().union(*map(labels_named, clause.clause.predicates))
    sides = _sides(clause)
    for role in roles:
        others = [one for one in roles if one != role]
        if not any(role in later.get(one, ()) for one in others):
            continue  # no event of the other roles comes before one of this
        repeats = _repeats(tables, role, mark)
        if len(marks) > 1 and repeats:
            raise NotCarriedError(_more(clause))
        until = () if any(_repeats(tables, one, mark) for one in others) else tuple(others)
        until = until if len(until) == 1 and len(marks) == 1 else ()
        if role not in named:
            yield Kept(clause, role, "there", round_mark=mark, until=until)
            continue
        if not repeats:
            yield Kept(clause, role, "event", round_mark=mark, until=until)
            continue
        for side, other, how in () if sides is None or len(named) > 2 else sides:
            if _reads(side) == {(role, False)} and role not in {one for one, _ in _reads(other)}:
                passes = _passes_null(clause, side)
                yield Kept(clause, role, how, side, passes, mark, until)
                break
        else:
            raise NotCarriedError(_more(clause))


def _of_complete(
    clause: RoleClause,
    clauses: Sequence[RoleClause],
    tables: Tables,
    later: dict[str, frozenset[str]],
) -> Carried:
    """A condition on functions needs their numbers, and the events that it compares with them."""
    if running := running_functions_of(clause):
        return Carried((), running)
    if beside := _beside_single_events(clause, clauses):
        return Carried(beside, ())
    if before := count_before_of(clause):
        return Carried(tuple(_of_count_before(clause, before.label, tables, later)), ())
    functions, kept = [], []
    for predicate in clause.clause.predicates:
        if isinstance(predicate, core.Quantified):
            raise NotCarriedError(_whole(clause))
        for node in nodes_written_in(predicate):
            if isinstance(node, core.Previous):
                raise NotCarriedError(_more(clause))
            if isinstance(node, Aggregate):
                if not is_kept(node):
                    raise NotCarriedError(_whole(clause))
                functions.append(node)
    named = frozenset[str]().union(*map(labels_named, clause.clause.predicates))
    for role in clause.clause.labels:
        if role not in named:
            kept.append(Kept(clause, role, "there"))
        elif _repeats(tables, role, None):
            raise NotCarriedError(_more(clause))
        else:
            kept.append(Kept(clause, role, "event"))
    return Carried(tuple(kept), tuple(functions))


def count_before_of(clause: RoleClause) -> Aggregate | None:
    """COUNT(PRIOR x) in a clause of which one predicate compares it with something about chosen
    events, so that the numbers for which it is TRUE have bounds; None: it is something else."""
    counts = [
        node
        for predicate in clause.clause.predicates
        for node in nodes_written_in(predicate)
        if isinstance(node, Aggregate | core.Previous)
    ]
    if any(isinstance(one, core.Quantified) for one in clause.clause.predicates):
        return None
    if len(counts) != 1 or compared_with_count(clause) is None:
        return None
    (count,) = counts
    assert isinstance(count, Aggregate)
    return count if count.label in clause.clause.labels else None


def compared_with_count(clause: RoleClause) -> tuple[core.Comparison, bool] | None:
    """The comparison of a clause with COUNT(PRIOR x), and whether this is its left side; None:
    there is none, or none that bounds it."""
    for predicate in clause.clause.predicates:
        if not isinstance(predicate, core.Comparison) or predicate.operator == "!=":
            continue
        for side in (predicate.left, predicate.right):
            # A number beside a DOUBLE is converted, which keeps the order.
            wide = isinstance(side, core.Cast) and side.type in _IN_ORDER
            count = side.operand if isinstance(side, core.Cast) and wide else side
            if isinstance(count, Aggregate) and count.prior and count.function == "COUNT":
                return predicate, side is predicate.left
    return None


def _of_count_before(
    clause: RoleClause, role: str, tables: Tables, later: dict[str, frozenset[str]]
) -> Iterable[Kept]:
    named = frozenset[str]().union(*map(labels_named, clause.clause.predicates))
    for one in clause.clause.labels:
        if one == role:
            continue
        if _repeats(tables, one, None) or role in later.get(one, ()):
            raise NotCarriedError(_more(clause))  # it is not known when the events are counted
        yield Kept(clause, one, "event" if one in named else "there")
    yield Kept(clause, role, "before")


def _beside_single_events(clause: RoleClause, clauses: Sequence[RoleClause]) -> tuple[Kept, ...]:
    """What a comparison with MAX or MIN needs besides those with each value (`necessary`): that one
    of the values is not NULL. Empty: single events do not decide it."""
    early = [one for one in clauses if one.when in ("earlier", "pairs")]
    if not any(one.written == clause.written for one in early):
        return ()
    nodes = [node for one in clause.clause.predicates for node in nodes_written_in(one)]
    (extreme,) = (node for node in nodes if isinstance(node, Aggregate))
    assert extreme.attribute is not None
    value = core.AttributeValue(extreme.label, extreme.attribute, extreme.type, extreme.span)
    if extreme.prior:
        return (Kept(clause, extreme.label, "unseen", value),)
    chosen = (Kept(clause, role, "there") for role in clause.clause.labels)
    return (*chosen, Kept(clause, extreme.label, "there", value))


def _sides(clause: RoleClause) -> list[tuple[Expression, Expression, How]] | None:
    """The sides of a clause that is one comparison, each with the other, and which events decide if
    there are several. None: the clause is something else."""
    first, *rest = clause.clause.predicates
    if not isinstance(first, core.Comparison) or first.beside:
        return None
    sides = (first.left, first.right)
    if any(
        not isinstance(one, core.NullTest) or one.negated or one.operand not in sides
        for one in rest
    ):
        return None
    if first.operator == "!=":
        return None
    hows: tuple[How, How] = ("equal", "equal")
    if first.operator[0] == "<":  # the greatest left side asks most
        hows = ("greatest", "least")
    elif first.operator[0] == ">":
        hows = ("least", "greatest")
    return [(first.left, first.right, hows[0]), (first.right, first.left, hows[1])]


def _passes_null(clause: RoleClause, side: Expression) -> bool:
    """Whether a clause is TRUE if this side of its comparison is NULL."""
    rest = clause.clause.predicates[1:]
    return any(isinstance(one, core.NullTest) and one.operand == side for one in rest)


def _reads(expression: Expression) -> set[tuple[str, bool]]:
    """The roles whose events an expression reads, and whether it reads those before them."""
    return {
        (node.label, isinstance(node, core.Previous))
        for node in nodes_of(expression)
        if isinstance(node, core.AttributeValue | core.Previous)
    }


def _more(clause: RoleClause) -> str:
    return f"'{show_clause(clause.written)}' compares events with several others"


def _whole(clause: RoleClause) -> str:
    return f"'{show_clause(clause.written)}' is decided by all events of a match together"


# --- the order of roles ---------------------------------------------------------------------------


def _repeats(tables: Tables, role: str, mark: str | None) -> bool:
    """Whether two events of a match can have a role, in one round if there is a mark of rounds."""
    moves = _moves(tables)
    reached = {target for _, marks, target in moves if role in marks and target is not None}
    waiting = [*reached]
    of_state: dict[DetState, list[tuple[frozenset[str], DetState | None]]] = {}
    for source, marks, target in moves:
        of_state.setdefault(source, []).append((marks, target))
    while waiting:
        for marks, target in of_state.get(waiting.pop(), ()):
            if mark is not None and mark in marks:
                continue  # this event begins a later round
            if role in marks:
                return True
            if target is not None and target not in reached:
                reached.add(target)
                waiting.append(target)
    return False


def roles_later(tables: Tables) -> dict[str, frozenset[str]]:
    """For each role the roles that the same event of a match, or a later one, can have."""
    moves = [
        (source, frozenset(filter(is_role, marks)), target)
        for source, marks, target in _moves(tables)
    ]
    names = sorted({role for _, roles, _ in moves for role in roles})
    bit = {role: 1 << number for number, role in enumerate(names)}
    into: dict[int, list[int]] = {}
    ahead = [0] * tables.states
    for source, roles, target in moves:
        ahead[source] |= sum(bit[role] for role in roles)
        if target is not None:
            into.setdefault(target, []).append(source)
    # The last state comes first, because most moves lead to a state with a higher number.
    waiting = list(range(tables.states))
    while waiting:
        state = waiting.pop()
        for before in into.get(state, ()):
            if ahead[state] & ~ahead[before]:
                ahead[before] |= ahead[state]
                waiting.append(before)
    later = dict.fromkeys(names, 0)
    for _, roles, target in moves:
        seen = sum(bit[role] for role in roles) | (0 if target is None else ahead[target])
        for role in roles:
            later[role] |= seen
    return {role: frozenset(names[k] for k in bits_of(mask)) for role, mask in later.items()}


def _moves(tables: Tables) -> list[tuple[DetState, frozenset[str], DetState | None]]:
    """The moves from a state to another one (None: a match ends), with their marks."""
    moves: list[tuple[DetState, frozenset[str], DetState | None]] = [
        (source, frozenset(tables.kinds[step.kind].marks), step.target)
        for steps in tables.steps
        for step in steps
        for source in step.sources
    ]
    moves += [
        (DetState(state), frozenset(), target)
        for state in range(1, tables.states)
        for target in {t for t in tables.skip[state] if t is not None}
    ]
    return moves


def is_role(mark: str) -> bool:
    """Whether a mark is a role or the mark of a round."""
    return mark.startswith(ROLE)
