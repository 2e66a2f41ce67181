"""Why the totals or the union of all matches need a list of these matches.

They need no list where the automaton has one run for each match, alone or with keys, or where a
graph of the matches carries their conditions (`carried`). The reasons here say why it does not. How
the list is then made is another question, with its own reason beside the listing.
"""

from collections.abc import Iterator

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.strategy import United

from celc.normal.conditions.sum_bounds import sum_bounds_of
from celc.normal.divide import Definitions
from celc.normal.show import show_clause
from celc.plan.carried import why_not_carried
from celc.plan.strategy import (
    ByDefinition,
    Checked,
    ChoiceInput,
    Counted,
    InWorlds,
    Strategy,
    starts_apart,
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
        case Checked(unites=True):
            return ()
        case Checked(rounds=role) if role:
            return ()  # the greatest matches are listed, and tell how many there are
        case InWorlds():
            return ()  # no query over uncertain times has another way
        case Checked() as listing:
            return tuple(dict.fromkeys(_left_to_a_walk(given, listing)))
        case ByDefinition():
            assert isinstance(given.rest, Definitions)
            return (Cause(given.rest.why.reason),)
        case listing:
            raise AssertionError(f"{type(listing).__name__} lists no totals")


def _left_to_a_walk(given: ChoiceInput, listing: Checked) -> Iterator[Cause]:
    uncarried = why_not_carried(listing.clauses, given.tables)
    yield from map(Cause, uncarried.values())
    for clause in listing.clauses:
        if clause not in uncarried and sum_bounds_of(clause):
            yield Cause(f"'{show_clause(clause.written)}' adds up the events of each match")
    if listing.absent or listing.absent_parts or listing.first:
        yield Cause("each match is searched for events that must not be in it")
    if listing.events_before or listing.parts_before:
        yield Cause("events before a match can rule it out")
    if listing.after:
        yield Cause("events after a match can rule it out")
    if starts_apart(given.query):
        yield Cause("a graph of matches does not tell where an event that lasts starts")
    if listing.distinct:
        yield Cause(
            "matches that differ only in events without a shown label count once",
            "a label for each event tells such matches apart, and then each of them counts",
        )
