"""How a query is run, as data that a generated module holds.

An update is the kernel that reads events, with the memory it needs. A listing is the way in which
the matches that end at an event are found. Both are closed unions; `celc` chooses, and `Run` has a
class for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.plan.transitions import EarliestArrays, SelectorArrays, TransitionArrays

# --- updates --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class BranchFree:
    """Code over `piles` piles in which every symbol takes the same steps, with other numbers."""

    kernel: Callable[..., int]
    piles: int


@dataclass(frozen=True, slots=True, eq=False)
class StraightLine:
    """Code over `piles` piles with a branch for each symbol."""

    kernel: Callable[..., int]
    piles: int


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """What an event brings as (a part of) a key: an attribute, as `type` (a wider one, perhaps)."""

    attribute: str
    type: str


@dataclass(frozen=True, slots=True)
class KeyTable:
    """A table of keys: whether each part of its keys is a text, and its number of piles."""

    texts: tuple[bool, ...]
    piles: int


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """The same, with the piles of some states in tables, a row for each key: the terms of the keys,
    and the tables."""

    kernel: Callable[..., int]
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


@dataclass(frozen=True, slots=True)
class InRuns:
    """All matches, which have one shape: the kinds of their events, place by place. `leaf_pile` is
    the pile of the events in the first place."""

    kinds: tuple[int, ...]
    leaf_pile: int


@dataclass(frozen=True, slots=True)
class Remembers:
    """The columns of past events to remember, in the order in which conditions take them.

    columns: attributes, each with whether it is not NULL; texts: conditions on the texts of one
    event, as their truth; codes: text attributes, as numbers (−1: NULL); ranks: those of them
    whose order is asked for, as their place in the order of all texts here. symbols: whether the
    events' symbols come last.
    """

    columns: tuple[str, ...] = ()
    texts: tuple[TextCondition | TextComparison, ...] = ()
    codes: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    symbols: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """The matches that generated conditions admit, checked event by event while they are listed.

    admits: the function (past, first, path, depth, state) that says whether the event at
    path[depth] satisfies all conditions with those before it in the path; `first` is the entry at
    index 0 of the remembered columns. completes: the same for a whole match, whose first event is
    path[depth], and the conditions on its label sets. Neither may make an array (see `checked`).
    states: how many rows they need of `state`, which is as wide as a path may be long: what is kept
    with each of its events, or the events of a role. supports: for each kind, whether such an
    event counts for a selector. selector: NXT, LAST or MAX, else nothing is chosen; distinct:
    whether matches that look alike can come more than once.
    """

    admits: Callable[..., bool]
    completes: Callable[..., bool]
    remembers: Remembers
    states: int
    supports: tuple[bool, ...]
    selector: str
    distinct: bool


@dataclass(frozen=True, slots=True, eq=False)
class InWindow:
    """What the automaton of a selector chooses, run over the events of each window. `all_events`:
    it has to be shown all events, not those with a symbol alone."""

    selector: SelectorArrays
    all_events: bool


@dataclass(frozen=True, slots=True, eq=False)
class EarliestInWindow:
    """What takes the earliest events in each window that still lead to the end at hand.
    `all_events` as in `InWindow`."""

    selector: EarliestArrays
    all_events: bool


@dataclass(frozen=True, slots=True)
class Latest:
    """The match of the latest events, found from its end back on the piles."""


class Formula(Protocol):
    """A formula as the definitions read it (see `definition`)."""

    def ending(self, stretch: Any, end: int) -> list[Any]:
        """Its matches that end at an event of a stretch."""


@dataclass(frozen=True, slots=True, eq=False)
class ByDefinition:
    """What the definition of a formula finds among remembered events. `sees_all`: some nested
    selector with conditions across events looks at the stream without the window, from its
    beginning."""

    formula: Formula
    remembers: Remembers
    sees_all: bool


Listing: TypeAlias = All | InRuns | Checked | InWindow | EarliestInWindow | Latest | ByDefinition
