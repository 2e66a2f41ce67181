"""Absent events with a key → moves of the update, which take partial matches away by key.

In `A ; !C ; B` with `c.id = a.id` a C takes away the partial matches with its own id, and no
others. Where the state between A and B has exactly that key, these are one row of its table. So
the update empties the row, and no condition is left for the listing. `A ; FIRST (B … b.id = a.id)`
is the same: a B ends the matches of its row, and takes them away. So each start is taken once,
whatever waits in other rows.

A state *waits* without an absent event while it lies between the event with the role `first` and
the event with the role `last`. The update can decide the absence where

- every state waits for all of its partial matches, or for none of them
- the equalities of the absent event and the key of each state that waits are the same
- an event that can be the absent one never goes on in a state that waits

Otherwise the listing looks for the event.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from celc.automata.determinize import START, DetState
from celc.automata.predicates import Alphabet
from celc.core.formula import Expression
from celc.normal.equalities import Term, equality_of
from celc.normal.flat_form import ABSENT, AbsentEvent
from celc.plan.keys import KeyPlan, KeyRemoval, Tie
from celc.plan.tables import Tables, symbols_of


def with_removals(
    tables: Tables, keys: KeyPlan, alphabet: Alphabet, absent: Iterable[AbsentEvent]
) -> tuple[KeyPlan, tuple[AbsentEvent, ...]]:
    """The keys with the removals that decide absences, and the absences that they do not decide."""
    removals: list[KeyRemoval] = []
    left: list[AbsentEvent] = []
    for one in absent:
        symbols = frozenset(symbols_of(one.events, alphabet, tables))
        found = _removals(tables, keys, one, symbols)
        if found is None:
            left.append(one)
        else:
            removals += found
    return replace(keys, removals=tuple(removals)), tuple(left)


def _removals(
    tables: Tables, keys: KeyPlan, absent: AbsentEvent, symbols: frozenset[int]
) -> list[KeyRemoval] | None:
    if absent.inclusive or absent.part is not None:
        return None
    pairs = _equal_terms(absent)
    waiting = None if pairs is None else waiting_states(tables, absent)
    if pairs is None or not waiting or goes_on(tables, waiting, symbols):
        return None
    found = []
    for state in sorted(waiting):
        terms = _terms_of_key(tables, keys, state, pairs)
        if terms is None:
            return None
        found.append(KeyRemoval(state, symbols, terms))
    return found


def _equal_terms(absent: AbsentEvent) -> list[tuple[Term, Expression]] | None:
    """The terms of the match to which the absent event's terms are equal; None where it has other
    conditions with the match."""
    pairs = []
    for clause in absent.clauses:
        sides = equality_of(clause.clause)
        if sides is None:
            return None
        own, other = sides if sides[0][0] == ABSENT else sides[::-1]
        if own[0] != ABSENT:
            return None
        pairs.append((other, own[1]))
    return pairs


def waiting_states(tables: Tables, absent: AbsentEvent) -> set[DetState] | None:
    """The states between the two roles; None where one also has matches that are not."""
    waits: dict[DetState, set[bool]] = {START: {False}}
    order = [(START, False)]
    for state, before in order:
        reached = [(target, before) for target in tables.skip[state] if target is not None]
        for steps in tables.steps:
            for step in steps:
                if state in step.sources and step.target is not None:
                    marks = tables.kinds[step.kind].marks
                    after = absent.first in marks or (before and absent.last not in marks)
                    reached.append((step.target, after))
        for target, after in reached:
            known = waits.setdefault(target, set())
            if after not in known:
                known.add(after)
                order.append((target, after))
    if any(len(known) > 1 for known in waits.values()):
        return None
    return {state for state, known in waits.items() if known == {True}}


def goes_on(tables: Tables, waiting: set[DetState], symbols: Iterable[int]) -> bool:
    """Whether an event with one of the symbols takes a match from a waiting state to another one.
    It lies inside the match, and would have to take it away."""
    return any(
        step.target in waiting and waiting.intersection(step.sources)
        for symbol in symbols
        for step in tables.steps[symbol]
    )


def _terms_of_key(
    tables: Tables, keys: KeyPlan, state: DetState, pairs: Sequence[tuple[Term, Expression]]
) -> tuple[Expression, ...] | None:
    """The absent event's term for each tie of a state's key; None where its equalities ask for
    anything else."""
    found: dict[int, Expression] = {}
    for other, own in pairs:
        ties = [n for n in keys.key(state) if _is_in(tables, keys.ties[n], other)]
        if len(ties) != 1 or found.setdefault(ties[0], own) != own:
            return None
    if found.keys() != {*keys.key(state)}:
        return None
    return tuple(found[tie] for tie in keys.key(state))


def _is_in(tables: Tables, tie: Tie, term: Term) -> bool:
    """Whether a tie has a term, of the same role or of another one that the same events have."""
    if tie.round_mark is not None:
        return False
    asked, value = term
    return any(
        own == value and all((role in kind.marks) == (asked in kind.marks) for kind in tables.kinds)
        for role, own in tie.terms
    )
