"""How a query is run, as data that a generated module holds.

An *update* is the kernel that reads events, with the memory that it needs. A *listing* is how the
matches that end at an event are found. Both are closed unions: the compiler chooses a variant, and
`run` has a class for each variant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import is_wide, type_of

if TYPE_CHECKING:
    # The compiler makes these values. Importing NumPy takes longer than compiling a query.
    from celc_runtime.plan.transitions import EarliestArrays, SelectorArrays, TransitionArrays

# --- updates --------------------------------------------------------------------------------------


@frozen(eq=False)
class BranchFree:
    """Code over `piles` piles. Every symbol takes the same steps, with other numbers in them."""

    kernel: Callable[..., int]
    _: KW_ONLY
    piles: int


@frozen(eq=False)
class StraightLine:
    """Code over `piles` piles with a branch for each symbol."""

    kernel: Callable[..., int]
    _: KW_ONLY
    piles: int
    bounds: int | None = None
    """The number of bounds of its piles (`engine.update.pile_bounds`); None: it reads no past
    events. Otherwise the listing remembers them."""


@frozen
class KeyTerm:
    """A part of a key."""

    attribute: str
    type: str  # the type of the value, which may be wider than the attribute's

    @property
    def is_text(self) -> bool:
        """Whether numbers stand for the values: texts, and DECIMALs that 64 bits do not hold."""
        return self.type == "STRING" or is_wide(type_of(self.type))


@frozen
class KeyTable:
    """A hash table of keys."""

    texts: tuple[bool, ...]  # for each part of its keys, whether numbers stand for its values
    _: KW_ONLY
    piles: int


@frozen(eq=False)
class Keyed:
    """Straight-line code over `piles` piles, and further piles in tables with a row for each
    key."""

    kernel: Callable[..., int]
    _: KW_ONLY
    piles: int
    terms: tuple[KeyTerm, ...]  # the parts of the keys
    tables: tuple[KeyTable, ...]


@frozen(eq=False)
class UnionLists:
    """The general engine, which follows the tables of the automaton."""

    tables: TransitionArrays
    _: KW_ONLY
    as_met: int | None = None
    """If a run makes sets of the states of the tables as it meets them, and follows the tables of
    these (`engine.update.states_as_met`): the kind of moves on events that are passed, −1 where
    there are none."""


Update: TypeAlias = BranchFree | StraightLine | Keyed | UnionLists

# --- listings -------------------------------------------------------------------------------------


@frozen
class All:
    """Each match that the update finds, up to LIMIT, newest first."""


@frozen(kw_only=True)
class InRuns:
    """All matches, which have one shape."""

    kinds: tuple[int, ...]  # the kinds of their events, place by place
    leaf_pile: int  # the pile of the events in the first place


@frozen(kw_only=True)
class WatchedPart:
    """An absent part of the formula, whose latest start must be known."""

    window: int | None
    """The number of the window around it among those of the plan; None: no window."""
    symbols: tuple[tuple[int, ...], ...]  # for each position of the part, the symbols of its events
    before: tuple[tuple[int, ...], ...]  # for each position, the positions before it
    begins: tuple[int, ...]  # the positions at which the part begins
    ends: tuple[int, ...]  # the positions at which it ends
    length: int | None = None
    """The number of the window in which the part must not lie before an event, or `after` one."""
    after: bool = False
    key: tuple[KeyTerm, ...] = ()  # the key that all events of a match of the part share
    of_key: bool = False  # whether only matches with the key of the asking event count


@frozen
class NearestEvent:
    """For each event the nearest event in its partition with the key that it asks for.

    A key with NULL does not count.
    """

    symbols: tuple[int, ...]  # the symbols of the nearest event
    _: KW_ONLY
    key: tuple[KeyTerm, ...]  # the key of the nearest event
    asking: tuple[KeyTerm, ...]  # the key of the event that asks, a term for each of `key`
    after: bool = False  # whether the nearest event comes after, not before
    ever: bool = False  # whether an event that has been dropped still counts as there


@frozen(kw_only=True)
class Remembers:
    """The columns of past events to remember, besides those of the windows inside the formula.

    The order is that of `plan.past_columns`; the windows are `Matching.local_windows`.
    """

    columns: tuple[str, ...] = ()  # attributes
    texts: tuple[TextCondition | TextComparison, ...] = ()  # as booleans
    codes: tuple[str, ...] = ()  # text attributes, as numbers (−1: NULL)
    ranks: tuple[str, ...] = ()  # those of `codes` that are compared by order, as ranks
    spelled: tuple[str, ...] = ()  # text attributes that are joined with texts of other events
    spellings: tuple[str, ...] = ()  # the query's own texts beside them, by number
    symbols: bool = False  # whether symbols are remembered
    parts: tuple[WatchedPart, ...] = ()
    """For each the latest start so far; with a length, whether it lies before; with `after`, the
    ceiling (`engine.past.ceilings`)."""
    begins: bool = False  # whether the entry is remembered at which an event's partition begins
    nearest: tuple[NearestEvent, ...] = ()  # as entries


@frozen(eq=False)
class Checked:
    """The matches that generated conditions admit, checked event by event while they are listed.

    The generated functions may not make arrays (see `run/walk/checked`).
    """

    admits: Callable[..., bool]
    """(past, first, path, depth, state) → whether the event at path[depth] satisfies all conditions
    with the events before it in the path. `first` is the entry at index 0 of the columns `past`."""
    completes: Callable[..., bool]
    """(past, first, path, depth, state) → whether a whole match, whose first event is path[depth],
    satisfies the conditions on its label sets."""
    remembers: Remembers
    _: KW_ONLY
    states: int
    """The number of rows of `state` that they need. A row holds one number for each event of a
    path: a value, or an event of a role."""
    supports: tuple[bool, ...]  # for each kind, whether the event counts for a selector
    selector: str
    """NXT, LAST, MAX, NXT_OF_ENDS (NXT among matches with the same start and end), or empty."""
    distinct: bool  # whether matches that look alike can come more than once
    in_order: bool = False  # whether a search from the latest events finds the choice of LAST first
    fails_by: int = 0
    """The matches below the newest event of a path depend only on this many rows of `state`, the
    first ones; 0: they depend on more."""
    weigh: Callable[..., tuple[float, float]] | None = None
    """For conditions on sums: (past, first, tag, number), see `engine.walk.sum_bounds`."""
    limits: tuple[float, ...] = ()  # the limits of these sums
    holds: Callable[..., int] | None = None
    """For COUNT(DISTINCT …): (past, first, tag, number), see `engine.walk.varieties`."""
    same: Callable[..., bool] | None = None  # likewise: (past, one, other, number)
    varieties: tuple[tuple[int, int, bool], ...] = ()
    """For each of these: the least and the most values, whether it applies to every match."""
    greatest: bool = False
    """Whether only matches are wanted that no further event of an absorbing kind enlarges."""
    absorbs: tuple[bool, ...] = ()
    """For each kind, whether another such event between two events leaves all conditions TRUE."""
    looks: tuple[int, ...] = ()  # for each kind, a number for its marks
    rounds: tuple[bool, ...] = ()
    """For each kind, whether it is under the `+` whose subsets are counted
    (`engine.walk.counted_sets`); empty: each listed match is one match."""
    sees_all: bool = False  # whether a condition reads events arbitrarily far before the window
    carries: int | None = None
    """In a graph the matches below the newest event of a path depend only on this many rows of
    `state`, the first ones. None: they depend on more, so that no graph holds them."""
    steps: Callable[..., bool] | None = None
    """As `admits`, by these numbers; None: `admits` writes them."""
    ends: Callable[..., bool] | None = None  # as `completes`, by the same numbers
    apart: str = ""  # a condition for which a graph would have to know more, in words
    outside: bool = False  # whether events that are not in a match can rule it out
    unites: bool = False  # whether the matches of an end are united in a graph, and not listed

    @property
    def compiles(self) -> bool:
        """Whether the functions are compiled by Numba, and not interpreted for debugging."""
        return hasattr(self.admits, "py_func")


@frozen(eq=False)
class InWindow:
    """The matches that a selector chooses: its automaton runs over the events of each window."""

    selector: SelectorArrays
    all_events: bool  # whether it reads all events, not only those with a symbol


@frozen(eq=False)
class EarliestInWindow:
    """The match of the earliest events in each window that still lead to the present end."""

    selector: EarliestArrays
    all_events: bool  # as in `InWindow`


@frozen
class Latest:
    """The match of the latest events, found from its end back on the piles."""


@frozen
class United:
    """The union of all matches that the update finds at an event, from the nodes below it."""

    weighs: bool = False  # with the number of matches that contain each event


@frozen(eq=False)
class Counted:
    """No match is listed. `tables` give the totals of the matches that end at each event."""

    tables: TransitionArrays


@frozen(eq=False, kw_only=True)
class LongestRuns:
    """The longest matches are runs of events, read from the events; the update does not run."""

    kinds: tuple[int, ...]  # for each symbol the kind of an event of a run; symbol 0 has none
    least: int  # events: the shortest run
    contiguous: bool  # whether no other events may be between
    ordered_by: str | None = None  # the column on whose order the choice relies, if any
    checks: Checked | None = None  # the conditions between two neighbours
    judges: bool = False  # whether there are conditions on whole runs


@frozen(eq=False, kw_only=True)
class AdjoiningRuns:
    """The longest matches are runs of neighbouring events that adjoin, read from the events; the
    update does not run.

    The events of a match go from spot to spot. Two neighbours allow some steps between spots, which
    are the bits of a number.
    """

    kinds: tuple[int, ...]  # for each spot the kind of its events, −1: an event without a mark
    ends: int  # the spots in which a match is complete, as bits
    steps: tuple[tuple[int, int], ...]  # (from a spot, to a spot); from −1: a match begins
    by_symbol: tuple[int, ...]  # for each symbol the steps that its events can take
    links: Callable[..., int] | None = None
    """(past, before, here) → the steps whose conditions hold between two neighbours, by their
    places in the columns `past`. None: there are no conditions."""
    checks: Checked | None = None  # remembers these columns; None: nothing is remembered
    looks_before: bool = False  # whether `checks` says what must not lie before a match


class Formula(Protocol):
    """A formula as the definitions read it (see `definition`)."""

    def ending(self, stretch: Any, end: int) -> list[Any]:
        """Its matches that end at an event of a stretch."""


@frozen(eq=False)
class Way:
    """A formula whose matches have the same deadline."""

    formula: Formula
    deadline: int | None  # its number in the plan; None: matches are decided when they end


@frozen(eq=False)
class ByDefinition:
    """The matches that the definition of a formula finds among remembered events."""

    formula: Formula
    remembers: Remembers
    _: KW_ONLY
    sees_all: bool
    """Whether a nested selector with conditions between events reads the stream from its beginning,
    without the window."""
    ways: tuple[Way, ...] = ()
    """If matches are decided after their end: the formulas whose OR it is, before SELECT's
    selector."""
    chooses: bool = False  # whether there is such a selector
    joins_ends: bool = False
    """Whether the rows of matches with the same end depend on all of these, so that they are
    decided together."""
    growth: str = ""  # how the time grows with the events, in words


@frozen(eq=False, kw_only=True)
class InWorlds:
    """The matches in the possible worlds of events of uncertain time.

    The tables are those of the update, which does not run. They decide alone without `definition`
    and `checks`.
    """

    one_order: bool  # whether the events of a match come in one order only
    definition: ByDefinition | None = None  # decides each candidate that the tables admit
    checks: Checked | None = None  # conditions between its events
    ordered: bool = False
    """Whether these go by the order of its events, so that each order is listed."""
    by_world: bool = False  # whether the definition decides each candidate in each world
    outside: bool = False  # whether events can rule out a match there that are not in it
    alone: bool = False  # whether each of these does so by itself


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
    | AdjoiningRuns
    | ByDefinition
    | InWorlds
)


def are_united(listing: Listing) -> bool:
    """Whether the matches of an end are united, and not listed."""
    return isinstance(listing, United) or (isinstance(listing, Checked) and listing.unites)
