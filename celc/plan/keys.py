"""Equalities between roles → keys of states, by which an update finds its partial matches.

Equalities tie roles together. In a match, all events of the roles of one *tie* have one value, the
key. If every move into a state and out of it carries the tie, the partial matches of the state can
be kept apart by key. Then an event finds the partial matches that it can extend in constant time.
`A ; B ; C` on one id is like one small automaton for each id; all share one kernel and the
positions of the stream. With other attributes from step to step it is a chain of indexed joins.

A tie is *live* between the first event of its roles and the last. The key of a state consists of
the live ties that all moves in and out of it carry. An equality needs no other check if every move
that carries its tie leaves a state with that key.

Inside an iteration a tie begins again with each round. It is live until the last event of its roles
in the round, so keys work there as well.

Other equalities are checked while matches are listed:

- some match does not bind one of the roles (then the condition holds, but ties nothing)
- a state can be reached with the tie and without it
- an event in between does not carry the tie
"""

from collections.abc import Callable, Sequence

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START, DetState
from celc.core import formula as core
from celc.core.formula import Expression
from celc.core.show import show_predicate
from celc.diagnostics.deadline import look
from celc.normal.equalities import MAX_KEY, Term, equality_of
from celc.normal.flat_form import ABSENT, RoleClause
from celc.plan.tables import Tables

# roles in one tie; the set of the roles met so far is followed through the automaton
_MAX_ROLES = 12


@frozen
class Tie:
    """Roles whose events have one value in every match, with the term for that value for each role.

    With `round_mark`, the events have one value in each round of the iteration with this mark.
    """

    terms: tuple[tuple[str, Expression], ...]
    round_mark: str | None
    text: str

    def of(self, marks: Sequence[str]) -> tuple[Expression, ...]:
        """The terms of an event with these marks, each once."""
        return tuple(dict.fromkeys(term for role, term in self.terms if role in marks))


@frozen
class KeyRemoval:
    """Events that take away the partial matches of a state with their own key."""

    state: DetState
    symbols: frozenset[int]
    terms: tuple[Expression, ...]
    """For each tie of the state's key, the term of the event."""


@frozen
class KeyPlan:
    """Ties, the keys of states (ascending numbers of ties), and the clauses that keys decide.

    `removals` decide absences (`celc.plan.key_removals`).
    """

    ties: tuple[Tie, ...]
    keys: tuple[tuple[int, ...], ...]
    decided: tuple[RoleClause, ...]
    removals: tuple[KeyRemoval, ...] = ()

    @property
    def attributes(self) -> set[str]:
        terms = [term for tie in self.ties for _, term in tie.terms]
        terms += [term for removal in self.removals for term in removal.terms]
        plain = [term.operand if isinstance(term, core.Cast) else term for term in terms]
        return {term.attribute for term in plain if isinstance(term, core.AttributeValue)}

    def key(self, state: DetState) -> tuple[int, ...]:
        return self.keys[state]


def plan_keys(tables: Tables, clauses: Sequence[RoleClause]) -> KeyPlan | None:
    """The keys of a query's states; None where no state has a key."""
    ties = [tie for tie in _ties(clauses) if _is_firm(tables, tie)]
    ties = [tie for tie in ties if _live_states(tables, tie) is not None]
    while True:
        look()
        live = [_live_states(tables, tie) or set[int]() for tie in ties]
        keys = _keys(tables, ties, live)
        if any(len(key) > MAX_KEY for key in keys):
            ties = ties[:-1]
            continue
        firm = [
            tie
            for number, tie in enumerate(ties)
            if _decides(tables, number, tie, live[number], keys)
        ]
        if firm == ties:
            break
        ties = firm
    if not any(keys):
        return None
    decided = tuple(
        c for c in clauses if any(_is_among(c, {*tie.terms}, tie.round_mark) for tie in ties)
    )
    return KeyPlan(tuple(ties), keys, decided)


# --- ties -----------------------------------------------------------------------------------------


def _ties(clauses: Sequence[RoleClause]) -> list[Tie]:
    """Equalities that share a role and its term are joined. A role with two terms is in two
    ties."""
    found: list[tuple[dict[Term, None], str | None]] = []
    for clause in clauses:
        look()
        sides = equality_of(clause.clause)
        if sides is None:
            continue
        joined = [
            tie for tie in found if tie[1] == clause.round_mark and any(s in tie[0] for s in sides)
        ]
        terms = {term: None for tie in joined for term in tie[0]} | dict.fromkeys(sides)
        found = [tie for tie in found if tie not in joined] + [(terms, clause.round_mark)]
    ties = [Tie(tuple(terms), mark, _text(clauses, {*terms}, mark)) for terms, mark in found]
    return [
        tie for tie in ties if len({role for role, _ in tie.terms}) == len(tie.terms) <= _MAX_ROLES
    ]


def _text(clauses: Sequence[RoleClause], terms: set[Term], mark: str | None) -> str:
    said = [clause for clause in clauses if _is_among(clause, terms, mark)]
    return " AND ".join(show_predicate(clause.written.predicates[0]) for clause in said)


def _is_among(clause: RoleClause, terms: set[Term], mark: str | None) -> bool:
    sides = equality_of(clause.clause)
    return sides is not None and mark == clause.round_mark and {*sides} <= terms


# --- events outside of a match ------------------------------------------------------------------


@frozen
class AbsentKey:
    """Equalities between an absent event and each event of one role of the match, in pairs.
    `absent` are the terms of the absent event, `asking` the terms of the role's events."""

    role: str
    absent: tuple[Expression, ...]
    asking: tuple[Expression, ...]


def absent_key(clauses: Sequence[RoleClause], can_ask: Callable[[str], bool]) -> AbsentKey | None:
    """The key that finds an absent event; None where it has none.

    It has the most equalities with one role, up to the size of a key. The other clauses are
    checked. `can_ask` tells whether the search can begin with the events of a role.
    """
    by_role: dict[str, dict[tuple[Expression, Expression], None]] = {}
    for clause in clauses:
        sides = equality_of(clause.clause)
        if sides is None or ABSENT not in (sides[0][0], sides[1][0]):
            continue
        (_, absent), (role, asking) = sides if sides[0][0] == ABSENT else sides[::-1]
        if can_ask(role):
            by_role.setdefault(role, {})[absent, asking] = None
    if not by_role:
        return None
    role = max(by_role, key=lambda role: len(by_role[role]))
    pairs = list(by_role[role])[:MAX_KEY]
    return AbsentKey(role, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))


def named_term(term: Expression) -> tuple[str, str]:
    """A term as its attribute and the type of its values in a key."""
    if isinstance(term, core.Cast):
        name, _ = named_term(term.operand)
        return name, term.type.value
    assert isinstance(term, core.AttributeValue)
    return term.attribute, term.type.value


# --- states ---------------------------------------------------------------------------------------


def _moves(tables: Tables) -> list[tuple[int, tuple[str, ...], int | None]]:
    """(source, marks, target) of each move that marks, begins or ends a match; target None: it
    ends."""
    return [
        (source, tables.kinds[step.kind].marks, step.target)
        for steps in tables.steps
        for step in steps
        for source in step.sources
    ]


def _is_firm(tables: Tables, tie: Tie) -> bool:
    """Whether every match (or round) has events of all roles of the tie, and no event has two terms
    of it."""
    if any(len(tie.of(marks)) > 1 for _, marks, _ in _moves(tables)):
        return False
    roles = [role for role, _ in tie.terms]
    everything = (1 << len(roles)) - 1
    before_rounds = -1 if tie.round_mark is not None else 0
    seen: set[tuple[int, int]] = {(START, before_rounds)}
    order = list(seen)
    moves = _moves(tables)
    for state, met in order:
        for source, marks, target in moves:
            if source != state:
                continue
            after = met
            if tie.round_mark is not None and tie.round_mark in marks:
                if met not in (before_rounds, everything):
                    return False
                after = 0
            here = sum(1 << number for number, role in enumerate(roles) if role in marks)
            if here:
                after = max(after, 0) | here
            if target is None:
                if after not in (before_rounds if tie.round_mark else everything, everything):
                    return False
            elif (target, after) not in seen:
                seen.add((target, after))
                order.append((target, after))
        for target in {t for t in tables.skip[state] if t is not None}:
            if (target, met) not in seen:
                seen.add((target, met))
                order.append((target, met))
    return True


def _live_states(tables: Tables, tie: Tie) -> set[int] | None:
    """The states between the first and the last event of a tie. None where some state can be
    reached both with the tie and without it."""
    carried: dict[int, set[bool]] = {START: {False}}
    needed: set[int] = set()
    moves = [
        (source, bool(tie.of(marks)), tie.round_mark in marks, target)
        for source, marks, target in _moves(tables)
    ]
    moves += [
        (state, False, False, target)
        for state in range(1, tables.states)
        for target in {t for t in tables.skip[state] if t is not None}
    ]
    changed = True
    while changed:
        changed = False
        for source, ties, begins, target in moves:
            if not begins and source not in needed and (ties or target in needed):
                needed.add(source)
                changed = True
            for before in (*carried.get(source, ()),):
                after = ties or (before and not begins)
                if target is not None and after not in carried.setdefault(target, set()):
                    carried[target].add(after)
                    changed = True
    if any(len(carried.get(state, ())) > 1 for state in needed):
        return None
    return {state for state in needed if carried.get(state) == {True}}


def _keys(
    tables: Tables, ties: Sequence[Tie], live: Sequence[set[int]]
) -> tuple[tuple[int, ...], ...]:
    keys = [{n for n in range(len(ties)) if state in live[n]} for state in range(tables.states)]
    for source, marks, target in _moves(tables):
        brought = {n for n, tie in enumerate(ties) if tie.of(marks)}
        # A round that begins here has its own key.
        keys[source] &= {n for n in brought if ties[n].round_mark not in marks}
        if target is not None:
            keys[target] &= brought
    for state in range(1, tables.states):
        if any(target != state for target in tables.skip[state]):
            keys[state] = set()
    return tuple(tuple(sorted(key)) for key in keys)


def _decides(
    tables: Tables, number: int, tie: Tie, live: set[int], keys: Sequence[tuple[int, ...]]
) -> bool:
    """Whether every event of a tie, except the first, finds its partial matches by the tie."""
    return all(
        source not in live or number in keys[source]
        for source, marks, _ in _moves(tables)
        if tie.of(marks) and tie.round_mark not in marks
    )
