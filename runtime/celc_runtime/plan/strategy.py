"""How a query is run, as data that a generated module holds.

An *update* is the kernel that reads events, with the memory that it needs. A *listing* is the way
in which the matches that end at an event are found. Both are closed unions: the compiler chooses a
variant, and `run` has a class for each variant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from celc_runtime.plan.conditions import TextComparison, TextCondition

if TYPE_CHECKING:
    # The compiler makes these values, and numpy takes longer to import than a query to compile.
    from celc_runtime.plan.transitions import EarliestArrays, SelectorArrays, TransitionArrays

# --- updates --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class BranchFree:
    """Code over `piles` piles in which every symbol takes the same steps; the steps' numbers
    depend on the symbol."""

    kernel: Callable[..., int]
    _: KW_ONLY
    piles: int


@dataclass(frozen=True, slots=True, eq=False)
class StraightLine:
    """Code over `piles` piles with a branch for each symbol. bounds: so many numbers are those of
    its piles (`engine.update.pile_bounds`); where there are any, the listing remembers past events.
    """

    kernel: Callable[..., int]
    _: KW_ONLY
    piles: int
    bounds: int = 0


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """A part of a key that an event has: an attribute, as a value of `type`, which may be wider."""

    attribute: str
    type: str


@dataclass(frozen=True, slots=True)
class KeyTable:
    """A table of keys: for each part of its keys whether it is a text, and its number of piles."""

    texts: tuple[bool, ...]
    _: KW_ONLY
    piles: int


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Straight-line code over `piles` piles, and more piles in tables, which have a row for each
    key. `terms`: the parts of the keys."""

    kernel: Callable[..., int]
    _: KW_ONLY
    piles: int
    terms: tuple[KeyTerm, ...]
    tables: tuple[KeyTable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class UnionLists:
    """The general engine, which follows the tables of the automaton."""

    tables: TransitionArrays


Update: TypeAlias = BranchFree | StraightLine | Keyed | UnionLists

# --- listings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class All:
    """Each match that the update finds, up to LIMIT, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InRuns:
    """All matches, which have one shape: `kinds` are the kinds of their events, place by place.
    `leaf_pile` is the pile of the events in the first place."""

    kinds: tuple[int, ...]
    leaf_pile: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPart:
    """A part of the formula, of which the latest start must be known.

    window: the number of the one around it among those of the plan, None: there is none. length:
    the number of the one within which it must not lie before an event, or `after` one, where it
    must not. For each position of the part, symbols: those of its events, and before: the positions
    from which it goes on. begins, ends: the positions at which the part begins and ends. key: the
    terms of a key that all events of a match of the part have in common, empty: they have none.
    of_key: what must be known is the latest start among the matches with the key of an event.
    """

    window: int | None
    symbols: tuple[tuple[int, ...], ...]
    before: tuple[tuple[int, ...], ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    length: int | None = None
    after: bool = False
    key: tuple[KeyTerm, ...] = ()
    of_key: bool = False


@dataclass(frozen=True, slots=True)
class NearestEvent:
    """For each event the nearest one before it, or `after` it, that has one of the symbols and the
    key that the event asks for, in its partition; a key with NULL is no key.

    key: the terms of the nearest event; asking: those of the event that asks, one for each. ever:
    whether there is one counts also when it has been forgotten.
    """

    symbols: tuple[int, ...]
    _: KW_ONLY
    key: tuple[KeyTerm, ...]
    asking: tuple[KeyTerm, ...]
    after: bool = False
    ever: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembers:
    """The columns of past events to remember, beside those of the windows inside the formula
    (`Matching.local_windows`); their order is that of `plan.past_columns`.

    columns: attributes. texts: conditions on the texts of one event, as their truth values. codes:
    text attributes, as numbers (−1: NULL). ranks: text attributes in `codes` that are compared by
    order, as places in the order of all texts remembered. symbols: whether the events' symbols are
    remembered. parts: for each the latest start so far, or with a length whether it lies before, or
    with `after` the ceiling (`engine.past.ceilings`). begins: whether the entry is remembered at
    which an event's partition begins. nearest: entries.
    """

    columns: tuple[str, ...] = ()
    texts: tuple[TextCondition | TextComparison, ...] = ()
    codes: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    symbols: bool = False
    parts: tuple[WatchedPart, ...] = ()
    begins: bool = False
    nearest: tuple[NearestEvent, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """The matches that generated conditions admit, checked event by event while they are listed.

    admits: the function (past, first, path, depth, state) that says whether the event at
    path[depth] satisfies all conditions with the events before it in the path; `first` is the entry
    at index 0 of the remembered columns. completes: the same for a whole match, whose first event
    is path[depth], and for the conditions on its label sets. Neither may make an array (see
    `run/checked`). states: how many rows of `state` they need; a row has room for one number for
    each event of a path, which is kept with the event or tells an event of a role. supports: for
    each kind, whether such an event counts for a selector. selector: NXT, LAST, MAX or NXT_OF_ENDS
    (NXT among the matches with one start and one end), or empty. distinct: whether matches that
    look alike can come more than once. in_order: whether a search from the latest events back finds
    the choice of LAST first. fails_by: of the rows of `state` the first ones, if the matches below
    the newest event of a path depend on nothing else; 0: they depend on more. weigh: for conditions
    on sums the function (past, first, tag, number), see `engine.walk.sum_bounds`; limits: those of
    the sums. holds, same: for conditions on numbers of different values, the functions (past,
    first, tag, number) and (past, one, other, number), see `engine.walk.varieties`; varieties: for
    each of them the least and the most number, and whether every match is asked. greatest: whether
    the matches are wanted that no event enlarges of a kind which absorbs; absorbs: for each kind,
    whether one more such event between two others leaves all conditions TRUE; looks: for each kind,
    a number for its marks. rounds: for each kind, whether it is of the `+` of whose events sets are
    counted (`engine.walk.counted_sets`), empty: each match that is listed is one. sees_all: some
    condition asks for events before the window, however far back.
    """

    admits: Callable[..., bool]
    completes: Callable[..., bool]
    remembers: Remembers
    _: KW_ONLY
    states: int
    supports: tuple[bool, ...]
    selector: str
    distinct: bool
    in_order: bool = False
    fails_by: int = 0
    weigh: Callable[..., tuple[float, float]] | None = None
    limits: tuple[float, ...] = ()
    holds: Callable[..., int] | None = None
    same: Callable[..., bool] | None = None
    varieties: tuple[tuple[int, int, bool], ...] = ()
    greatest: bool = False
    absorbs: tuple[bool, ...] = ()
    looks: tuple[int, ...] = ()
    rounds: tuple[bool, ...] = ()
    sees_all: bool = False

    @property
    def compiles(self) -> bool:
        """Whether the functions are compiled by Numba, and not interpreted for debugging."""
        return hasattr(self.admits, "py_func")


@dataclass(frozen=True, slots=True, eq=False)
class InWindow:
    """The matches that a selector chooses: its automaton runs over the events of each window.
    `all_events`: it has to read all events, and not only events with a symbol."""

    selector: SelectorArrays
    all_events: bool


@dataclass(frozen=True, slots=True, eq=False)
class EarliestInWindow:
    """The match of the earliest events in each window that still lead to the end at hand.
    `all_events`: as in `InWindow`."""

    selector: EarliestArrays
    all_events: bool


@dataclass(frozen=True, slots=True)
class Latest:
    """The match of the latest events, found from its end back on the piles."""


@dataclass(frozen=True, slots=True)
class United:
    """The union of all matches that the update finds at an event, from the nodes below it; weighs:
    with the number of matches that each event is in."""

    weighs: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """No match is listed: totals of the matches that end at each event are found by `tables`."""

    tables: TransitionArrays


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LongestRuns:
    """The longest matches, which are runs of events, read off the events; the update does not run.

    kinds: for each symbol the kind of an event of a run; symbol 0 is of none. least: so many events
    at least. contiguous: without other events between them. ordered_by: the column on whose order
    the choice relies, None: on none. checks: the conditions between two neighbours. judges: there
    are conditions on whole runs.
    """

    kinds: tuple[int, ...]
    least: int
    contiguous: bool
    ordered_by: str | None = None
    checks: Checked | None = None
    judges: bool = False


class Formula(Protocol):
    """A formula as the definitions read it (see `definition`)."""

    def ending(self, stretch: Any, end: int) -> list[Any]:
        """Its matches that end at an event of a stretch."""


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A formula, and the number of the deadline of its matches among those of the plan; None: they
    are decided when they end."""

    formula: Formula
    deadline: int | None


@dataclass(frozen=True, slots=True, eq=False)
class ByDefinition:
    """The matches that the definition of a formula finds among remembered events. `sees_all`: some
    nested selector with conditions across events reads the stream from its beginning, without the
    window. `ways`: the formulas of which it is the OR, before the selector of SELECT, where matches
    are decided later than they end; `chooses`: there is such a selector; `joins_ends`: the rows of
    matches with one end depend on all of these, so that they are decided together. `growth`: how
    the time grows with the events, in words."""

    formula: Formula
    remembers: Remembers
    _: KW_ONLY
    sees_all: bool
    ways: tuple[Way, ...] = ()
    chooses: bool = False
    joins_ends: bool = False
    growth: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class InWorlds:
    """The matches in the possible worlds of events whose time is uncertain.

    The tables are those of the update, which does not run. one_order: the events of a match come in
    one order only. definition: decides each candidate that the tables admit; checks: conditions on
    pairs of its events, in whatever order; None both: the tables decide.
    """

    one_order: bool
    definition: ByDefinition | None = None
    checks: Checked | None = None


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
