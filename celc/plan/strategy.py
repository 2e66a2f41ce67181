"""The choice of a strategy: how the update runs, and how matches are listed where they end.

Both are closed unions, and every variant says why it was chosen. `choose` is the only place that
decides; code generation, `celc explain` and the generated module read the decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from celc.automata.determinize import DeterministicAutomaton, looks_alike
from celc.automata.letters import ContextMachine
from celc.core.formula import Query
from celc.diagnostics.deadline import look
from celc.normal.divide import Definitions, Exact, Roles, interleaves
from celc.normal.flat_form import AbsentEvent, RoleClause
from celc.normal.normal_form import NormalForm
from celc.plan.earliest import EarliestTables, choose_the_same, earliest_tables, is_quiet
from celc.plan.joins import Joins, plan_joins
from celc.plan.piles import MAX_PILES, MAX_WRITES, PilePlan, plan_piles, why_not_straight_line
from celc.plan.shapes import Shape, fixed_shape
from celc.plan.tables import SelectionTables, Tables, tabulate, with_starts_apart
from celc.plan.window_selector import WindowSelector

# --- how the update runs --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BranchFree:
    """Code over piles in which every symbol takes the same steps, with other numbers."""

    piles: PilePlan
    reason: str


@dataclass(frozen=True, slots=True)
class StraightLine:
    """Code over piles with a branch for each symbol."""

    piles: PilePlan
    reason: str


@dataclass(frozen=True, slots=True)
class Keyed:
    """The same, with the piles of some states kept apart by the keys that equalities ask for."""

    piles: PilePlan
    keys: Joins
    reason: str


@dataclass(frozen=True, slots=True)
class UnionLists:
    """The general engine, which follows tables and can run any query."""

    reason: str


Update: TypeAlias = BranchFree | StraightLine | Keyed | UnionLists

EVERY_UPDATE: Final = frozenset({BranchFree, StraightLine, Keyed, UnionLists})
GENERAL_ENGINE: Final = frozenset({UnionLists})
"""Sets of updates to choose from. `UnionLists` is in each, as it runs every query; `BranchFree` and
`Keyed` are forms of `StraightLine`, and are chosen only beside it."""

# --- how matches are listed -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class All:
    """Each match that the update finds, up to LIMIT, by a walk from its last event back."""

    reason: str


@dataclass(frozen=True, slots=True)
class InRuns:
    """All matches, which have one shape, place by place."""

    shape: Shape
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """All matches that satisfy conditions, which cut branches of the walk.

    `clauses` are those that no key decides, `absent` the events that must not lie inside a match;
    `selector` is NXT, LAST or MAX of SELECT, or empty; `distinct`: some matches look alike, because
    they differ in events that are not shown. `max_work`: the steps that one event may take.
    """

    clauses: tuple[RoleClause, ...]
    absent: tuple[AbsentEvent, ...]
    selector: str
    distinct: bool
    max_work: int
    reason: str


@dataclass(frozen=True, slots=True)
class InWindow:
    """What a selector's automaton chooses, run over the events of each window.

    `all_events`: it has to be shown the events that the query does not ask about as well.
    """

    tables: SelectionTables
    all_events: bool
    reason: str


@dataclass(frozen=True, slots=True)
class EarliestInWindow:
    """What takes the earliest events in each window that still lead to the end at hand."""

    tables: EarliestTables
    all_events: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Latest:
    """The match of the latest events, found from its end back on the piles."""

    reason: str


@dataclass(frozen=True, slots=True)
class ByDefinition:
    """What the definition of the formula finds among remembered events.

    `sees_all`: it looks at events before the window. `max_work`: as in `Checked`.
    """

    form: NormalForm
    sees_all: bool
    max_work: int
    reason: str


Listing: TypeAlias = All | InRuns | Checked | InWindow | EarliestInWindow | Latest | ByDefinition

# --- the choice -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """All that the choice depends on: the tables of a query, and what is left to the listing.

    `minimal` and `machine` are the automaton and the letters that the tables were made of.
    """

    query: Query
    minimal: DeterministicAutomaton
    machine: ContextMachine
    tables: Tables
    rest: Exact | WindowSelector | Roles | Definitions
    max_work: int


@dataclass(frozen=True, slots=True)
class Strategy:
    """The choice, and the tables that the update follows."""

    tables: Tables
    update: Update
    listing: Listing


def choose(found: Found, updates: frozenset[type[Update]] = EVERY_UPDATE) -> Strategy:
    """How a query is run; `updates` are those to choose from.

    Raises CelError where a selector's automaton has too many states.
    """
    query, tables = found.query, found.tables
    piles = _piles(query, tables, updates)
    match found.rest:
        case Exact():
            return _listing_all(query, tables, piles, updates)
        case Definitions(form, sees_all):
            reason = "its conditions cannot be read off the events of a match"
            listing = ByDefinition(form, sees_all, found.max_work, reason)
            return _strategy(tables, _update(piles, updates, forgets=False), listing)
        case Roles():
            return _checked(found, found.rest, piles, updates)
        case WindowSelector():
            return _in_window(found, found.rest, piles, updates)
        case _:
            assert_never(found.rest)


def _piles(query: Query, tables: Tables, updates: frozenset[type[Update]]) -> PilePlan | UnionLists:
    """The piles of the update, or the general engine where it cannot or must not have any."""
    why = why_not_straight_line(tables)
    if why is None and interleaves(query):
        why = "partitions interleave"
    if why is None and StraightLine not in updates:
        why = "no other update is allowed"
    if why is not None:
        return UnionLists(why)
    piles = plan_piles(tables)
    assert piles is not None
    return piles


def _strategy(tables: Tables, update: Update, listing: Listing) -> Strategy:
    general = isinstance(update, UnionLists)
    return Strategy(with_starts_apart(tables) if general else tables, update, listing)


def _update(
    piles: PilePlan | UnionLists,
    updates: frozenset[type[Update]],
    keys: Joins | None = None,
    *,
    forgets: bool,
) -> Update:
    """The form of the update; `forgets`: it forgets all partial matches where a match consumes."""
    match piles, keys:
        case UnionLists(), _:
            return piles
        case PilePlan(), Joins():
            return Keyed(piles, keys, f"{_why_piles(piles)}; equalities keep matches apart by key")
        case PilePlan(), None:
            why = _why_branches(piles, forgets=forgets)
            if why is None and BranchFree in updates:
                return BranchFree(piles, _why_piles(piles))
            return StraightLine(piles, _why_piles(piles) + (f"; {why}" if why else ""))
        case _:
            assert_never(piles)


MAX_NODES = 4
"""The most nodes that all symbols together may make at one event in code without branches: of two
cells, each made from two piles, the second is rare, and doing it for nothing costs as much as the
branches. Measured."""


def _why_branches(piles: PilePlan, *, forgets: bool) -> str | None:
    """Why an update branches on the symbol; None where it need not."""
    if not piles.piles:
        return "a match has one event"
    if piles.fleeting:
        return "some matches must go on at the next event"
    if forgets:
        return "a match consumes the events before it"
    nodes = piles.most_cells * max(1, piles.most_reads)
    return f"an event can make {nodes} nodes" if nodes > MAX_NODES else None


def _why_piles(piles: PilePlan) -> str:
    """Why a query is run by code of its own: what it takes, and what it may take at most."""
    writes = sum(map(len, piles.writes))
    kept = "as they are or lose them" if piles.fleeting else "as they are"
    return (
        f"events that pass unmarked leave matches {kept}, "
        f"and it takes {writes} of {MAX_WRITES} moves, {len(piles.piles)} of {MAX_PILES} piles"
    )


def _listing_all(
    query: Query,
    tables: Tables,
    piles: PilePlan | UnionLists,
    updates: frozenset[type[Update]],
    keys: Joins | None = None,
) -> Strategy:
    """The strategy of a query whose matches are all that the update finds."""
    update = _update(piles, updates, keys, forgets=query.consume_by != "NONE")
    if query.strategy == "ANY" or query.limit is not None:
        most = 1 if query.strategy == "ANY" else query.limit
        return _strategy(tables, update, All(f"the first {most} that the walk meets are wanted"))
    match update:
        case BranchFree(piles=plan):
            shape = fixed_shape(plan)
            if shape is not None:
                places = len(shape.kinds)
                return _strategy(
                    tables, update, InRuns(shape, f"every match has the same {places} places")
                )
            reason = "matches have more than one shape"
        case StraightLine() | Keyed() | UnionLists():
            reason = "the update finds the matches of the query and no others"
    return _strategy(tables, update, All(reason))


def _checked(
    found: Found, roles: Roles, piles: PilePlan | UnionLists, updates: frozenset[type[Update]]
) -> Strategy:
    """Keys decide what they can, the rest is checked while matches are listed."""
    flat = roles.flat
    keys = None
    if isinstance(piles, PilePlan) and Keyed in updates:
        keys = plan_joins(found.tables, flat.clauses)
    decided = () if keys is None else keys.decided
    left = tuple(clause for clause in flat.clauses if clause not in decided)
    distinct = looks_alike(found.minimal)
    reasons = [
        "conditions compare the events of a match" if left or flat.absent else "",
        "matches can look alike" if distinct else "",
        f"SELECT {roles.selector} compares matches" if roles.selector else "",
    ]
    reason = ", ".join(filter(None, reasons))
    if not reason:
        return _listing_all(found.query, found.tables, piles, updates, keys)
    listing = Checked(left, flat.absent, roles.selector, distinct, found.max_work, reason)
    return _strategy(found.tables, _update(piles, updates, keys, forgets=False), listing)


def _in_window(
    found: Found,
    selector: WindowSelector,
    piles: PilePlan | UnionLists,
    updates: frozenset[type[Update]],
) -> Strategy:
    """The cheapest way to choose in each window; an automaton of its own is the last resort."""
    query, tables = found.query, found.tables
    forgets = query.consume_by != "NONE"
    assert selector.letters.machine == found.machine, "both read the same letters"
    look(query.formula.span, f"finding how to choose for SELECT {query.strategy}")
    if query.strategy == "LAST" and isinstance(piles, PilePlan) and _all_marked(tables):
        listing = Latest("every event of a match is marked, and piles show the latest first")
        return _strategy(tables, _update(piles, updates, forgets=forgets), listing)
    earliest = _earliest(query, tables, selector)
    if earliest is not None:
        shown_all = tables.contexts is not None or not is_quiet(earliest, 0)
        reason = "an event can be marked in one way, so the marked events decide the match"
        choice = EarliestInWindow(earliest, shown_all, reason)
        return _strategy(tables, _update(piles, updates, forgets=forgets), choice)
    tables, selected = tabulate(found.minimal, found.machine, selector.automaton())
    assert selected is not None
    # The letters are finer now, so there may be other piles.
    piles = _piles(query, tables, updates)
    shown_all = tables.contexts is not None or not selected.is_quiet(0)
    reason = f"SELECT {query.strategy} compares the matches of each window anew"
    return _strategy(
        tables, _update(piles, updates, forgets=forgets), InWindow(selected, shown_all, reason)
    )


def _earliest(query: Query, tables: Tables, selector: WindowSelector) -> EarliestTables | None:
    """The tables that choose by taking the earliest events, if that is what the selector does."""
    if query.strategy not in ("NXT", "MAX") or interleaves(query):
        return None
    earliest = earliest_tables(tables)
    if earliest is None or query.strategy == "NXT":
        return earliest
    same = choose_the_same(selector.automaton(), selector.automaton_of("NXT"))
    return earliest if same else None


def _all_marked(tables: Tables) -> bool:
    """Whether every event of a match is in its support, so that the latest ones decide."""
    return all(kind.marks for kind in tables.kinds)
