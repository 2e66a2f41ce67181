"""Why the totals or the union of all matches need a list of these matches.

They need no list where the automaton has one run for each match, alone or with keys. The reasons
here say why it has not. How the list is then made is another question, with its own reason beside
the listing.
"""

from collections.abc import Iterator

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.strategy import United

from celc.normal.divide import Definitions, Roles, interleaves
from celc.normal.equalities import equality_of
from celc.normal.flat_form import RoleClause
from celc.normal.flatten import OVERLAPPING
from celc.normal.show import show_clause
from celc.plan.keys import UNTIED, why_no_key
from celc.plan.strategy import (
    ByDefinition,
    Checked,
    ChoiceInput,
    Counted,
    InWorlds,
    Strategy,
    UnionLists,
)


@frozen
class Cause:
    """A reason, and what can be written instead."""

    reason: str
    instead: str | None = None


def why_listed(given: ChoiceInput, chosen: Strategy) -> tuple[Cause, ...]:
    """The reasons of a query with TOTAL or COLLAPSED; empty where no match is listed."""
    query = given.query
    if not query.collapsed and query.total is None:
        return ()
    if not any(given.tables.steps):
        return ()  # there is no match
    match chosen.listing:
        case Counted() | United():
            return ()
        case Checked(rounds=role) if role:
            return ()  # the greatest matches are listed, and tell how many there are
        case InWorlds():
            return ()  # no query over uncertain times has another way
        case Checked() as listing:
            return tuple(dict.fromkeys(_left_to_a_walk(given, chosen, listing)))
        case ByDefinition():
            assert isinstance(given.rest, Definitions)
            return (Cause(given.rest.why.reason),)
        case listing:
            raise AssertionError(f"{type(listing).__name__} lists no totals")


def _left_to_a_walk(given: ChoiceInput, chosen: Strategy, listing: Checked) -> Iterator[Cause]:
    for clause in listing.clauses:
        yield _of_condition(given, chosen, listing, clause)
    if listing.windows:
        if given.query.lasting:
            yield Cause("the window is measured from where an event began, which lasts")
        else:
            yield Cause(
                "a WITHIN inside of the formula stands beside conditions that compare events"
            )
    if listing.absent or listing.absent_parts or listing.first:
        yield Cause("each match is searched for events that must not be in it")
    if listing.events_before or listing.parts_before:
        yield Cause("events before a match can rule it out")
    if listing.after:
        yield Cause("events after a match can rule it out")
    if listing.distinct:
        yield Cause(
            "matches that differ only in events without a shown label count once",
            "a label for each event tells such matches apart, and then each of them counts",
        )


def _of_condition(
    given: ChoiceInput, chosen: Strategy, listing: Checked, clause: RoleClause
) -> Cause:
    if given.query.lasting and clause.written.labels == OVERLAPPING:
        return Cause("the events of a match must not overlap, which is asked of each match")
    text = show_clause(clause.written)
    if clause.when in ("complete", "witness") or len(clause.clause.labels) == 1:
        return Cause(f"'{text}' is about several events of a label")
    if equality_of(clause.clause) is None:
        return Cause(f"'{text}' compares events and is no equality of two attributes")
    why, instead = _why_no_key(given, chosen, clause)
    return Cause(f"'{text}' is no key, because {why}", instead)


def _why_no_key(given: ChoiceInput, chosen: Strategy, clause: RoleClause) -> tuple[str, str | None]:
    """Why no key decides an equality, and what can be written instead."""
    if isinstance(chosen.update, UnionLists):
        instead = None
        if interleaves(given.query):
            instead = (
                "CONSUME BY PARTITION lets equalities be keys; it forgets the events of one "
                "partition alone"
            )
        return chosen.update.reason, instead
    piles = chosen.update.piles
    if piles.fleeting:
        return "some events must follow each other directly", None
    if piles.most_removals:
        return "an event between can take partial matches away", None
    assert isinstance(given.rest, Roles)
    why = why_no_key(given.tables, given.rest.flat.clauses, clause)
    if why != UNTIED:
        return why, None
    return why, (
        "if the events between have that value too, label them, and compare each with the one "
        "before it"
    )
