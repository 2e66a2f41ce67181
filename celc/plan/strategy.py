"""The choice of a strategy: how the update runs, and how matches are listed.

Both are closed unions, and each choice has a reason. `choose` alone decides. Code generation, `celc
explain` and the generated module read the decision.

Long: a reader finds everything that decides how a query runs in one place.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias, assert_never

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.automata.determinize import DeterministicAutomaton, looks_alike
from celc.automata.letters import ContextMachine
from celc.automata.predicates import Alphabet
from celc.core.formula import Aggregate, Query
from celc.diagnostics.deadline import look
from celc.normal.conditions.growing import (
    VarietyBound,
    free_rounds,
    keeps,
    never_negative,
    takes_all,
    variety_bound_of,
)
from celc.normal.conditions.running_functions import running_functions_of
from celc.normal.conditions.sum_bounds import SumBound, sum_bounds_of
from celc.normal.divide import (
    Definitions,
    Exact,
    Roles,
    asks_for_worlds,
    interleaves,
    looks_between,
    rules_out_alone,
)
from celc.normal.flat_form import (
    AbsentEvent,
    AbsentPart,
    EventAfter,
    EventBefore,
    FirstWithKey,
    FlatForm,
    PartAfter,
    PartBefore,
    RoleClause,
    RoleWindow,
)
from celc.normal.normal_form import NormalForm, shown
from celc.normal.runs_of_events import RunOfEvents
from celc.plan.adjoining.runs import adjoining_runs
from celc.plan.adjoining.spots import AdjoiningRuns
from celc.plan.carried import Carried, NotCarriedError, carried
from celc.plan.earliest import EarliestTables, choose_the_same, earliest_tables, is_quiet
from celc.plan.key_removals import with_removals
from celc.plan.keys import KeyPlan, plan_keys
from celc.plan.orders import has_one_order, labels_tell_roles
from celc.plan.straight_line.pile_bounds import PileBounds, pile_bounds
from celc.plan.straight_line.piles import MAX_PILES, MAX_WRITES, PilePlan, plan_piles
from celc.plan.straight_line.shapes import fixed_shape
from celc.plan.straight_line.takes import Take, takes_of
from celc.plan.tables import (
    Kind,
    SelectionTables,
    Tables,
    kinds_of_symbols,
    tabulate,
    with_starts_apart,
)
from celc.plan.window_selector import WindowSelector

# --- how the update runs --------------------------------------------------------------------------


@frozen
class BranchFree:
    """Code over piles in which all symbols take the same steps, each with its own numbers."""

    piles: PilePlan
    reason: str


@frozen
class StraightLine:
    """Code over piles with a branch for each symbol."""

    piles: PilePlan
    reason: str
    bounds: PileBounds | None = None  # the bounds of its piles; None: there are none


@frozen
class Keyed:
    """`StraightLine`, where some states have piles for each value of a key that equalities name."""

    piles: PilePlan
    keys: KeyPlan
    reason: str


@frozen
class UnionLists:
    """The general engine, which follows tables and can run any query."""

    reason: str


Update: TypeAlias = BranchFree | StraightLine | Keyed | UnionLists

EVERY_UPDATE: Final = frozenset({BranchFree, StraightLine, Keyed, UnionLists})
GENERAL_ENGINE: Final = frozenset({UnionLists})
"""Sets of updates to choose from. Each contains `UnionLists`, which runs every query. `BranchFree`
and `Keyed` are forms of `StraightLine`, and are chosen only together with it."""

# --- how matches are listed -----------------------------------------------------------------------


@frozen
class Checked:
    """All matches that satisfy conditions, which cut branches of the walk."""

    clauses: tuple[RoleClause, ...]  # conditions that no key decides
    absent: tuple[AbsentEvent, ...]  # events that must not lie inside a match
    first: tuple[FirstWithKey, ...]  # events that must be the first ones with their keys
    windows: tuple[RoleWindow, ...]  # windows of parts of the formula
    absent_parts: tuple[AbsentPart, ...]  # parts in windows that must not lie inside a match
    events_before: tuple[EventBefore, ...]  # events that must not lie before a match
    parts_before: tuple[PartBefore, ...]  # parts that must not lie before a match
    after: tuple[EventAfter | PartAfter, ...]  # events or parts that must not lie after a match
    selector: str  # NXT, LAST or MAX of SELECT, NXT_OF_ENDS, or empty
    distinct: bool  # some matches look alike, because they differ in events that are not shown
    max_work: int  # the most steps for one event
    in_order: bool = False
    """A search that takes the latest events first finds the choice of LAST first."""
    greatest: bool = False
    """If matches differ only in events which only help, the greatest of them is wanted
    (`absorbs`)."""
    summed: frozenset[tuple[str, str]] = frozenset()  # see `never_negative`
    takes_all: bool = False  # one match can hold all events that only help
    rounds: str = ""
    """The role whose events make a match in each set with enough different values, with the same
    events around. Then the greatest matches tell how many there are. Empty: they do not."""
    carried: Carried | None = None
    """What the nodes of a graph know of the events after them; None: no graph holds the matches."""
    apart: str = ""  # a condition for which they would have to know more, as "because" needs it
    unites: bool = False  # whether the matches of an end are united in a graph, and not listed

    @property
    def fails_alike(self) -> bool:
        """Whether the matches below an event depend only on numbers that are kept with it."""
        if self.looks_outside or self._is_one_sum:
            return False
        kept = all(
            clause.when in ("neighbours", "witness") or bool(running_functions_of(clause))
            for clause in self.clauses
        )
        return kept and bool(self.clauses or self.windows)

    @property
    def running_functions(self) -> tuple[Aggregate, ...]:
        """The functions of label sets whose numbers are kept with each event, so that failures are
        remembered. Empty where failures are not remembered."""
        if not self.fails_alike:
            return ()
        found = [node for clause in self.clauses for node in running_functions_of(clause)]
        return tuple({(node.function, node.label, node.attribute): node for node in found}.values())

    @property
    def is_brief(self) -> bool:
        """Whether the steps before each match are a polynomial in the events of the window."""
        if self.takes_all and (self.greatest or self.in_order or not self.distinct):
            return True
        if self.distinct or (self.selector and not self.in_order):
            return False  # all matches are collected first
        adds = any(node.function == "SUM" for node in self.running_functions)
        return (self.fails_alike and not adds) or self._is_one_sum

    @property
    def _is_one_sum(self) -> bool:
        """Whether one sum must reach one limit and nothing else is asked. Then bounds alone
        decide."""
        alone = not (self.windows or self.looks_outside)
        return alone and len(self.clauses) == len(self.sum_bounds) == 1

    @property
    def looks_outside(self) -> bool:
        before = self.events_before or self.parts_before
        inside = self.absent or self.first or self.absent_parts
        return bool(inside or before or self.after)

    @property
    def sum_bounds(self) -> tuple[SumBound, ...]:
        return tuple(bound for clause in self.clauses for bound in sum_bounds_of(clause))

    @property
    def variety_bounds(self) -> tuple[VarietyBound, ...]:
        found = map(variety_bound_of, self.clauses)
        return tuple(bound for bound in found if bound is not None)

    def absorbs(self, kinds: Sequence[Kind]) -> tuple[bool, ...]:
        """For each kind, whether a match may take one more such event between two others. It may if
        it still satisfies all conditions, and the selector prefers it."""
        if self.looks_outside or self.windows:
            return (False,) * len(kinds)
        return tuple(
            bool(not self.selector or shown(frozenset(kind.marks)))
            and all(keeps(clause, frozenset(kind.marks), self.summed) for clause in self.clauses)
            for kind in kinds
        )

    @property
    def sees_all(self) -> bool:
        """Whether conditions ask for events any distance before the window."""
        return bool(self.first)

    @property
    def asks(self) -> bool:
        """Whether the walk has conditions to check."""
        return bool(self.clauses or self.windows or self.looks_outside)


@frozen
class InWindow:
    """The choice of a selector's automaton, which runs over the events of each window."""

    tables: SelectionTables
    all_events: bool  # it also reads events that the query does not ask about


@frozen
class EarliestInWindow:
    """The earliest events in each window that still lead to the end."""

    tables: EarliestTables
    all_events: bool  # it also reads events that the query does not ask about


@frozen
class Counted:
    """No matches: the tables find the totals of the matches that end at each event."""


@frozen
class LongestRuns:
    """The longest matches, which are runs of events, or runs that adjoin. They are read off the
    events without an update."""

    run: RunOfEvents | AdjoiningRuns
    kinds: tuple[int, ...]
    """`[symbol]`: the kind of such an event; an event of symbol 0 is in no run. Adjoining runs have
    their own."""
    checks: Checked | None
    """Conditions between neighbours of a run, and conditions on a whole run that further events
    keep TRUE. Of adjoining runs what must not lie before them. None: there are no conditions."""


@frozen
class ByDefinition:
    """The matches that the definition of the formula finds among remembered events."""

    form: NormalForm
    sees_all: bool  # the definition looks at events before the window
    max_work: int  # the most steps for one event


@frozen
class InWorlds:
    """The matches in the possible worlds of events whose time is uncertain, with their
    confidences."""

    form: NormalForm | None
    """The definition that decides each candidate; None: the automaton decides."""
    checks: Checked | None
    """Conditions between its events, checked while it is listed; None: there are none."""
    ordered: bool  # they go by the order of the events, so that each order is listed
    by_world: bool  # the definition decides in each world, because the order is not enough
    outside: bool  # events that are not in a match can rule it out there
    alone: bool  # each of these does so by itself
    one_order: bool  # the events of a match have one order only
    max_work: int  # the most steps for one row


Listing: TypeAlias = (
    All
    | InRuns
    | Checked
    | InWindow
    | EarliestInWindow
    | Latest
    | United
    | Counted
    | LongestRuns
    | ByDefinition
    | InWorlds
)


# --- the choice -----------------------------------------------------------------------------------


@frozen
class ChoiceInput:
    """Everything that the choice depends on."""

    query: Query
    minimal: DeterministicAutomaton  # the automaton of which the tables were made
    machine: ContextMachine  # its letters
    tables: Tables
    alphabet: Alphabet  # the classes of events that they are made of
    rest: Exact | WindowSelector | Roles | Definitions
    """The conditions that are left to the listing."""
    max_work: int
    run: RunOfEvents | None = None
    """The shape of the longest matches, where they are runs of events."""


@frozen
class Strategy:
    """The choice, the tables that the update follows, and why matches are listed in this way."""

    tables: Tables
    update: Update
    listing: Listing
    listed_because: str


def choose(given: ChoiceInput, updates: frozenset[type[Update]] = EVERY_UPDATE) -> Strategy:
    """The strategy of a query, with one of the given `updates`. Raises CelError where a selector's
    automaton has too many states."""
    query, tables = given.query, given.tables
    if tables.as_met:
        update = UnionLists("it has too many states to make them before they are met")
        found = _strategy(tables, update, *_all_or_in_runs(query, update))
        return _united(found, weighs=False) if query.collapsed else found
    if query.uncertain is not None:
        return _in_worlds(given)
    if query.total is not None and StraightLine in updates and why_not_counted(given) is None:
        update = UnionLists("totals are found by the tables alone")
        reason = "the automaton has one run for each match, and its runs are added up"
        return _strategy(tables, update, Counted(), reason)
    if query.collapsed or query.total is not None:
        return _united(_chosen(given, updates), weighs=query.total is not None)
    return _chosen(given, updates)


def _in_worlds(given: ChoiceInput) -> Strategy:
    """The strategy of a query over events whose time is uncertain."""
    update = UnionLists("the listing follows the tables in every order in which events can come")
    form: NormalForm | None = None
    checks: Checked | None = None
    ordered = by_world = outside = alone = False
    reason = "the automaton tells the orders in which events of uncertain time are a match"
    one_order = has_one_order(given.tables)
    match given.rest:
        case Definitions(form=whole):
            form = whole
            by_world, outside = asks_for_worlds(form), looks_between(form)
            alone = rules_out_alone(form)
            where = "in each world" if by_world else "about each of them"
            reason += f", and the definition decides {where}"
        case Roles(flat=flat):
            checks = _checks_between(flat, given.max_work)
            pairs = all(one.when == "pairs" and not one.shared_iterations() for one in flat.clauses)
            # Orders of matches that look alike are told apart by their labels.
            ordered = not (pairs and labels_tell_roles(given.tables))
        case rest:
            assert isinstance(rest, Exact)  # selectors were refused before
    listing = InWorlds(form, checks, ordered, by_world, outside, alone, one_order, given.max_work)
    return _strategy(given.tables, update, listing, reason)


def _checks_between(flat: FlatForm, max_work: int) -> Checked:
    """A check for a form whose only conditions are between events of a match."""
    assert not flat.windows
    assert not flat.looks_outside
    return Checked(flat.clauses, (), (), (), (), (), (), (), "", False, max_work)


def _united(found: Strategy, *, weighs: bool) -> Strategy:
    """The strategy for all matches of an end together. They need no list where each run of the
    update is a match."""
    match found.listing:
        case All() | InRuns():
            reason = "the events of all of them are those of the nodes below their end"
            if weighs:
                reason = "the nodes below their end tell in how many of them each event is"
            return Strategy(found.tables, found.update, United(weighs), reason)
        case _:
            return found


def _chosen(given: ChoiceInput, updates: frozenset[type[Update]]) -> Strategy:
    query, tables = given.query, given.tables
    if StraightLine in updates:  # so that the general engine can be demanded
        runs = _longest_runs(given) or _adjoining_runs(given)
        if runs is not None:
            return runs
    piles = _piles(query, tables, updates)
    match given.rest:
        case Exact():
            return _listing_all(query, tables, piles, updates)
        case Roles() as roles:
            return _checked(given, roles, piles, updates)
        case WindowSelector() as selector:
            return _in_window(given, selector, piles, updates)
        case Definitions(form, sees_all):
            reason = "the events of a match alone do not decide its conditions"
            listing = ByDefinition(form, sees_all, given.max_work)
            return _strategy(tables, _update(piles, updates, forgets=False), listing, reason)
        case _:
            assert_never(given.rest)


def why_not_counted(given: ChoiceInput) -> str | None:
    """Why totals need a list of all matches; None where the automaton alone gives them."""
    if given.query.simultaneous:
        return "simultaneous events are read up to the end of their instant"
    if interleaves(given.query):
        return "CONSUME BY ANY reads all partitions in one order"
    if given.tables.contexts is not None:
        return "a selector inside the formula compares matches, and a stream keeps what it saw"
    match given.rest:
        case Exact():
            return None
        case Roles(flat=flat):
            if flat.clauses or flat.absent or flat.first:
                return "conditions compare the events of a match"
            if flat.windows or flat.absent_parts:
                return "windows hold for parts of a match"
            if flat.looks_outside:
                return "events before or after a match can rule it out"
            return "matches can look alike" if looks_alike(given.minimal) else None
        case WindowSelector():
            return "a selector compares matches"
        case Definitions():
            return "the events of a match alone do not decide its conditions"
        case _:
            assert_never(given.rest)


def _longest_runs(given: ChoiceInput) -> Strategy | None:
    """The strategy of a query whose longest matches are runs; None where they are not."""
    kinds = kinds_of_symbols(with_starts_apart(given.tables))
    if given.run is None or kinds is None:
        return None
    reason = "the longest match from an event takes all events of its run"
    checks = None
    match given.rest:
        case Exact():
            pass
        case Roles(flat=flat):
            conditions = [*flat.windows, *((flat,) if flat.looks_outside else ())]
            summed, kinds_of = never_negative(flat.form), given.tables.kinds
            fitting = (
                (
                    not clause.clause.labels
                    and all(keeps(clause, frozenset(kind.marks), summed) for kind in kinds_of)
                    if clause.when == "complete"
                    else clause.when == "neighbours" and clause.iterations == ((),)
                )
                for clause in flat.clauses
            )
            if conditions or not all(fitting):
                return None
            checks = _checks_between(flat, given.max_work)
        case _:
            return None
    return _strategy(given.tables, _NO_UPDATE, LongestRuns(given.run, kinds, checks), reason)


_NO_UPDATE = UnionLists("the listing reads the events itself, and runs no update")


def _adjoining_runs(given: ChoiceInput) -> Strategy | None:
    """The strategy of a query whose longest matches are adjoining runs; None where they are not."""
    query, tables = given.query, given.tables
    if query.per_start is None or query.per_start.end != "LONGEST":
        return None
    if query.simultaneous or query.lasting or query.consume_by != "NONE":
        return None
    if tables.contexts is not None or tables.instants is not None:
        return None
    if query.collapsed or query.total is not None:
        return None  # each asks for all matches of an end
    flat: FlatForm | None = None
    checks: Checked | None = None
    match given.rest:
        case Exact():
            pass
        case Roles() as roles:
            flat = roles.flat
            before = flat.events_before, flat.parts_before
            checks = Checked((), (), (), (), (), *before, (), roles.selector, False, given.max_work)
        case _:
            return None
    runs = adjoining_runs(with_starts_apart(tables), flat)
    if runs is None:
        return None
    reason = "matches are runs of neighbours that adjoin, and conditions compare two neighbours"
    return _strategy(tables, _NO_UPDATE, LongestRuns(runs, (), checks), reason)


def _piles(query: Query, tables: Tables, updates: frozenset[type[Update]]) -> PilePlan | UnionLists:
    """The piles of the update, or the general engine where piles are impossible or not allowed."""
    if query.simultaneous:
        return UnionLists("simultaneous events are read up to the end of their instant")
    piles = plan_piles(tables)
    if isinstance(piles, str):
        return UnionLists(piles)
    if interleaves(query):
        return UnionLists("CONSUME BY ANY reads all partitions in one order")
    if StraightLine not in updates:
        return UnionLists("no other update is allowed")
    return piles


def _strategy(tables: Tables, update: Update, listing: Listing, because: str) -> Strategy:
    general = isinstance(update, UnionLists)
    return Strategy(with_starts_apart(tables) if general else tables, update, listing, because)


def _update(
    piles: PilePlan | UnionLists,
    updates: frozenset[type[Update]],
    keys: KeyPlan | None = None,
    *,
    forgets: bool,
) -> Update:
    """The form of the update. `forgets`: a match makes it forget all partial matches (CONSUME)."""
    match piles, keys:
        case UnionLists(), _:
            return piles
        case PilePlan(), KeyPlan():
            why = "equalities keep partial matches apart by key"
            if keys.removals:
                why += ", of which an absent event takes away those with its own"
            return Keyed(piles, keys, f"{_why_piles(piles)}; {why}")
        case PilePlan(), None:
            branches = _why_branches(piles, forgets=forgets)
            if branches is None and BranchFree in updates:
                return BranchFree(piles, _why_piles(piles))
            why = "" if branches is None else f"; each symbol has a branch, because {branches}"
            return StraightLine(piles, f"{_why_piles(piles)}{why}")
        case _:
            assert_never(piles)


# nodes of one event, over all symbols, in branch-free code; measured: of two cells made from two
# piles each, the second is rare, and making it in vain costs as much as branches
MAX_NODES = 4

# piles that one event may empty in branch-free code, where all events would empty them
MAX_REMOVALS = 4


def _why_branches(piles: PilePlan, *, forgets: bool) -> str | None:
    if not piles.piles:
        return "a match has one event"
    if piles.fleeting:
        return "some matches must go on at the next event"
    if forgets:
        return "a match consumes the events before it"
    if piles.moves:
        return "some events move matches from one state to another"
    if piles.most_removals > MAX_REMOVALS:
        return f"an event can empty {piles.most_removals} piles, more than {MAX_REMOVALS}"
    nodes = piles.most_cells * max(1, piles.most_reads)
    return f"an event can make {nodes} nodes, more than {MAX_NODES}" if nodes > MAX_NODES else None


def _why_piles(piles: PilePlan) -> str:
    writes = sum(map(len, piles.writes))
    kept = "leaves every match as it is"
    if piles.fleeting or piles.most_removals:
        kept = "leaves a match as it is or loses it"
    if piles.moves:
        kept = "leaves all matches of a state as they are, loses them, or moves them to another"
    return (
        f"an unmarked event {kept}, and the code uses {writes} of at most {MAX_WRITES} moves and "
        f"{len(piles.piles)} of at most {MAX_PILES} piles"
    )


def _listing_all(
    query: Query,
    tables: Tables,
    piles: PilePlan | UnionLists,
    updates: frozenset[type[Update]],
    keys: KeyPlan | None = None,
) -> Strategy:
    update = _update(piles, updates, keys, forgets=query.consume_by != "NONE")
    return _strategy(tables, update, *_all_or_in_runs(query, update))


def _all_or_in_runs(query: Query, update: Update) -> tuple[All | InRuns, str]:
    if query.strategy == "ANY":
        return All(), "SELECT ANY wants one match at each end"
    if query.limit is not None:
        return All(), f"LIMIT wants at most {query.limit} matches at each end"
    if query.per_start is not None and str(query.per_start) != "FIRST":
        return All(), f"SELECT {query.per_start} chooses among them by their starts"
    match update:
        case BranchFree(piles=plan):
            shape = fixed_shape(plan)
            if shape is None:
                return All(), "matches have more than one shape"
            return shape, f"every match has the same {len(shape.kinds)} places"
        case StraightLine() | Keyed() | UnionLists():
            return All(), "the update finds exactly the matches of the query"
        case _:
            assert_never(update)


def _checked(
    given: ChoiceInput, roles: Roles, piles: PilePlan | UnionLists, updates: frozenset[type[Update]]
) -> Strategy:
    """Keys decide as many conditions as they can; the listing checks the rest."""
    flat = roles.flat
    keys, left, absent = _keys(given, flat, piles, updates)
    takes, absent = _takes(given, roles, piles, keys, left, absent)
    distinct = looks_alike(given.minimal)
    reasons = [
        "conditions compare the events of a match" if left or absent or flat.first else "",
        "windows hold for parts of a match" if flat.windows or flat.absent_parts else "",
        "events before a match can rule it out" if flat.events_before or flat.parts_before else "",
        "events after a match can rule it out" if flat.after else "",
        "matches can look alike" if distinct else "",
        (
            f"SELECT {given.query.per_start or roles.selector} compares matches"
            if roles.selector
            else ""
        ),
    ]
    reason = ", and ".join(filter(None, reasons))
    if not reason:
        return _listing_all(given.query, given.tables, piles, updates, keys)
    listing = Checked(
        left,
        absent,
        flat.first,
        flat.windows,
        flat.absent_parts,
        flat.events_before,
        flat.parts_before,
        flat.after,
        roles.selector,
        distinct,
        given.max_work,
        in_order=roles.selector == "LAST" and _finds_latest_first(given, piles),
        summed=never_negative(flat.form),
    )
    listing = _in_graph(given, listing)
    absorbs = listing.absorbs(given.tables.kinds)
    rounds = (
        step.kind for row in given.tables.steps for step in row if step.target in step.sources
    )
    # Where events last, the matches of an end are found below several events.
    one_end = not given.query.lasting and (given.query.strategy == "ANY" or roles.selector)
    if any(absorbs[kind] for kind in rounds) and one_end:
        listing = replace(listing, greatest=not listing.in_order)
    if all(absorbs) and takes_all(flat.form):
        bounded = len(listing.variety_bounds) + len(listing.sum_bounds)
        listing = replace(listing, takes_all=bounded == len(left) > 0)
        if not listing.unites:
            listing = _counting(given, listing, flat)
    if listing.unites:
        reason = "the ways through a graph of them satisfy the conditions between their events"
    if listing.rounds:
        reason = "the greatest matches have all events, and sets of their events are counted"
    update = _update(piles, updates, keys, forgets=False)
    if StraightLine in updates and not listing.in_order:
        update = _bounded(given, left, update, takes)
    return _strategy(given.tables, update, listing, reason)


def _bounded(
    given: ChoiceInput, clauses: tuple[RoleClause, ...], update: Update, takes: tuple[Take, ...]
) -> Update:
    """The update, with bounds of its piles if conditions give some."""
    if not isinstance(update, BranchFree | StraightLine):
        return update
    bounds = pile_bounds(given.query, clauses, update.piles, given.tables.kinds, takes)
    if bounds is None:
        return update
    why = "bounds of its piles leave out what no condition admits"
    if takes:
        why = "events take the partial matches for which they are the first"
    return StraightLine(update.piles, f"{_why_piles(update.piles)}; {why}", bounds)


def starts_apart(query: Query) -> bool:
    """Whether a graph of the matches does not tell when they start.

    The first of several events that last need not be the one that starts first, and of
    simultaneous events the graph knows instants.
    """
    return query.lasting and (query.simultaneous or query.collapsed)


def _in_graph(given: ChoiceInput, listing: Checked) -> Checked:
    """The listing, and whether a graph can hold its matches."""
    if listing.looks_outside or listing.distinct:
        return listing
    try:
        kept = carried(listing.clauses, given.tables)
    except NotCarriedError as error:
        return replace(listing, apart=str(error))
    all_of_end = given.query.collapsed or given.query.total is not None
    # Bounds of sums cut a search early. A graph has a node for each sum.
    unites = all_of_end and not (
        listing.selector or listing.sum_bounds or starts_apart(given.query)
    )
    return replace(listing, carried=kept, unites=unites)


def _keys(
    given: ChoiceInput,
    flat: FlatForm,
    piles: PilePlan | UnionLists,
    updates: frozenset[type[Update]],
) -> tuple[KeyPlan | None, tuple[RoleClause, ...], tuple[AbsentEvent, ...]]:
    """The keys of states, and the clauses and absences that they do not decide."""
    keys = None
    if isinstance(piles, PilePlan) and Keyed in updates and not piles.most_removals:
        keys = plan_keys(given.tables, flat.clauses)
    if keys is None:
        return None, flat.clauses, flat.absent
    keys, absent = with_removals(given.tables, keys, given.alphabet, flat.absent)
    return keys, tuple(one for one in flat.clauses if one not in keys.decided), absent


def _takes(
    given: ChoiceInput,
    roles: Roles,
    piles: PilePlan | UnionLists,
    keys: KeyPlan | None,
    clauses: tuple[RoleClause, ...],
    absent: tuple[AbsentEvent, ...],
) -> tuple[tuple[Take, ...], tuple[AbsentEvent, ...]]:
    """The takes of the update, and the absences that they do not decide."""
    if isinstance(piles, UnionLists) or piles.most_removals or piles.fleeting:
        return (), absent
    if keys is not None or given.query.simultaneous or roles.selector == "LAST":
        return (), absent
    return takes_of(piles, given.alphabet, clauses, absent)


def _counting(given: ChoiceInput, listing: Checked, flat: FlatForm) -> Checked:
    """The listing for COLLAPSED where the greatest matches tell how many matches there are. The
    only condition is that the events of one `+` have a number of different values or more."""
    query = given.query
    plain = not (query.simultaneous or query.lasting or query.consume_by != "NONE")
    if not (query.collapsed and plain and listing.takes_all) or listing.distinct:
        return listing
    if len(listing.clauses) != len(listing.variety_bounds) or len(listing.clauses) != 1:
        return listing
    (bound,) = listing.variety_bounds
    shows_all = all(shown(frozenset(kind.marks)) for kind in given.tables.kinds)
    if bound.asked is not None or bound.least < 1 or not shows_all:
        return listing
    if bound.role not in free_rounds(flat.form):
        return listing
    return replace(listing, greatest=True, rounds=bound.role)


def _finds_latest_first(given: ChoiceInput, piles: PilePlan | UnionLists) -> bool:
    """Whether the walk finds the latest events first, and the events of a match decide how each is
    marked. All of these events must count for a selector. Matches of events that last are found
    below several events."""
    tables = given.tables
    if isinstance(piles, UnionLists) or piles.moves or given.query.lasting:
        return False
    if not all(shown(frozenset(kind.marks)) for kind in tables.kinds):
        return False
    return all(len({tables.kinds[step.kind].marks for step in row}) < 2 for row in tables.steps)


def _in_window(
    given: ChoiceInput,
    selector: WindowSelector,
    piles: PilePlan | UnionLists,
    updates: frozenset[type[Update]],
) -> Strategy:
    """The cheapest way to choose in each window. A separate automaton is the last resort."""
    query, tables = given.query, given.tables
    forgets = query.consume_by != "NONE"
    assert selector.letters.machine == given.machine, "both read the same letters"
    look(query.formula.span, f"finding how to choose for SELECT {query.strategy}")
    on_piles = isinstance(piles, PilePlan) and not piles.moves
    if query.strategy == "LAST" and on_piles and _all_marked(tables):
        update = _update(piles, updates, forgets=forgets)
        reason = "every event of a match is marked, and a pile shows its latest event first"
        return _strategy(tables, update, Latest(), reason)
    earliest = _earliest(query, tables, selector)
    if earliest is not None:
        shown_all = tables.contexts is not None or not is_quiet(earliest, 0)
        reason = "each event can be marked in one way only, so the marked events decide the match"
        choice = EarliestInWindow(earliest, shown_all)
        return _strategy(tables, _update(piles, updates, forgets=forgets), choice, reason)
    tables, selected = tabulate(given.minimal, given.machine, selector.automaton())
    assert selected is not None
    # The letters are finer now, so the piles may differ.
    piles = _piles(query, tables, updates)
    shown_all = tables.contexts is not None or not selected.is_quiet(0)
    reason = f"SELECT {query.strategy} compares the matches of each window anew"
    update = _update(piles, updates, forgets=forgets)
    return _strategy(tables, update, InWindow(selected, shown_all), reason)


def _earliest(query: Query, tables: Tables, selector: WindowSelector) -> EarliestTables | None:
    """The tables of a selector that takes the earliest events; None for any other selector."""
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
