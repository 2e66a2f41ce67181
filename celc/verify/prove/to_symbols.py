"""Conditions → symbols: each event has one symbol, and the symbol says what the query asks of it.

For each event type it is asked whether some event has a combination of truths that no symbol has,
although some atom takes it. An SMT solver answers, over conditions with NULL, NaN and wrapping
arithmetic. Texts are points of an order, and what is calculated by functions or patterns is any
value, so "there is none" is a proof, and an example counts only if it is confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celc.automata.predicates import Alphabet, TypeConditions
from celc.core import formula as core
from celc.normal import normal_form as lp
from celc.verify.prove.expressions import Meaning, parts_of
from celc.verify.prove.representations import Representations
from celc.verify.prove.streams import Event, classes_of
from celc.verify.prove.verdict import NotUnderstoodError, Verdict

STEP = "conditions → symbols"
SECONDS = 5  # for the solver, for each event type


def to_symbols(given: Representations) -> Verdict:
    """Whether the symbols of each event type are disjoint, and all that its events can have."""
    alphabet = given.alphabet
    needs = _needs(given)
    problem = _of_shape(alphabet, needs)
    if problem is not None:
        return Verdict(STEP, "wrong", "symbols do not tell the conditions apart", problem)
    asked = [one for one in alphabet.types if one.groups]
    if not asked:
        what = "the query asks only for types of events, and each has one symbol"
        return Verdict(STEP, "exact", what)
    problem = _on_examples(given, needs)
    if problem is not None:
        return Verdict(STEP, "wrong", "an event that is asked for has no symbol", problem)
    try:
        from celc.verify.prove.solver import uncovered
    except ModuleNotFoundError as missing:
        if missing.name != "z3":
            raise
        what = "z3-solver is not installed: pip install 'celc[prove]'"
        return Verdict(STEP, "not decided", what)
    for conditions in asked:
        symbols = [one.truth for one in alphabet.symbols if one.type == conditions.type]
        wanted = [_bits(conditions, need) for need in needs[conditions.type]]
        found = uncovered(conditions.groups, symbols, wanted, SECONDS)
        name = conditions.type.name
        if found == "unknown":
            what = f"the solver had not enough time for the conditions on {name} ({SECONDS} s)"
            return Verdict(STEP, "not decided", what)
        if isinstance(found, dict):
            event = {core.TYPE: f"{conditions.type.stream}>{name}", **found}
            if _has_no_symbol(event, conditions, symbols, wanted):
                problem = f"the event {_told(event)} satisfies an atom, and no symbol is its own"
                return Verdict(STEP, "wrong", "an event that is asked for has no symbol", problem)
            what = f"the conditions on {name} ask for more than the solver can tell"
            return Verdict(STEP, "not decided", what)
    groups = sum(len(one.groups) for one in asked)
    what = (
        f"{len(alphabet.symbols)} symbols of {groups} conditions are disjoint, and every event "
        "that an atom takes has one, by SMT with NULL, NaN and wrapping numbers"
    )
    return Verdict(STEP, "exact", what)


def _needs(given: Representations) -> dict[core.EventType, list[tuple[lp.EventClause, ...]]]:
    """The clauses that each event of the form asks for, by type."""
    found: dict[core.EventType, list[tuple[lp.EventClause, ...]]] = {}
    for part in parts_of(given.division.asked):
        if isinstance(part, lp.Event):
            found.setdefault(part.type, []).append(part.clauses)
    return found


def _bits(conditions: TypeConditions, clauses: Sequence[lp.EventClause]) -> int:
    wanted = {*clauses}
    return sum(1 << bit for bit, group in enumerate(conditions.groups) if wanted >= {*group})


def _of_shape(
    alphabet: Alphabet, needs: dict[core.EventType, list[tuple[lp.EventClause, ...]]]
) -> str | None:
    """Why the symbols cannot tell what events ask for; None where they can."""
    if not alphabet.symbols or alphabet.symbols[0].type is not None:
        return "symbol 0 is not that of all other events"
    seen = set()
    for symbol in alphabet.symbols[1:]:
        key = symbol.type, symbol.truth
        if symbol.type is None or key in seen:
            return f"two symbols are the same: {symbol}"
        seen.add(key)
    known = {one.type: one for one in alphabet.types}
    for event_type, asked in needs.items():
        if event_type not in known:
            return f"events of type {event_type.name} have no symbols"
        for clauses in asked:
            bits = _bits(known[event_type], clauses)
            groups = known[event_type].groups
            told = {one for bit, group in enumerate(groups) if bits >> bit & 1 for one in group}
            if told != {*clauses}:
                return f"an atom of type {event_type.name} asks for a part of a group of conditions"
            if not any(
                one.type == event_type and one.truth & bits == bits for one in alphabet.symbols
            ):
                # Right only if no event satisfies it, which the solver tells.
                continue
    return None


def _on_examples(
    given: Representations, needs: dict[core.EventType, list[tuple[lp.EventClause, ...]]]
) -> str | None:
    """An event among the classes of the query that has no symbol."""
    try:
        classes = classes_of(given.query, ())
        for event in classes.events:
            for conditions in given.alphabet.types:
                if event[core.TYPE] != f"{conditions.type.stream}>{conditions.type.name}":
                    continue
                symbols = [s.truth for s in given.alphabet.symbols if s.type == conditions.type]
                wanted = [_bits(conditions, need) for need in needs.get(conditions.type, ())]
                if _has_no_symbol(event, conditions, symbols, wanted):
                    return f"the event {_told(event)} satisfies an atom, and no symbol is its own"
    except NotUnderstoodError:
        return None
    return None


def _has_no_symbol(
    event: Event, conditions: TypeConditions, symbols: Sequence[int], wanted: Sequence[int]
) -> bool:
    def read(leaf: Any) -> Any:
        return event.get(leaf.attribute)

    meaning = Meaning(read)
    truth = 0
    for bit, group in enumerate(conditions.groups):
        try:
            if all(any(meaning.truth(p) for p in clause.predicates) for clause in group):
                truth |= 1 << bit
        except NotUnderstoodError:
            return False
    return truth not in symbols and any(truth & need == need for need in wanted)


def _told(event: Event) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in event.items())
