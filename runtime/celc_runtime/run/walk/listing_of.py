"""The listing of a program, and what its kernels need to know of kinds and instants."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from celc_runtime.engine.definition.instants import Instants, instants_of
from celc_runtime.engine.walk.listing import Kinds
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import (
    All,
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InRuns,
    InWindow,
    InWorlds,
    Latest,
    LongestRuns,
    UnionLists,
    United,
)
from celc_runtime.program import Program
from celc_runtime.run.walk.by_definition import DefinitionListing
from celc_runtime.run.walk.checked import CheckedListing
from celc_runtime.run.walk.latest import LatestListing
from celc_runtime.run.walk.listings import AllListing, CountedListing, ListingOfRun, RunsListing
from celc_runtime.run.walk.longest_runs import LongestRunsListing
from celc_runtime.run.walk.united import UnitedListing
from celc_runtime.run.walk.window_listings import EarliestListing, SelectorListing


def instants_of_program(program: Program) -> Instants | None:
    """How the update knows events by their places in instants; None where it does not."""
    match program.update:
        case UnionLists(tables=tables) if len(tables.instants):
            return instants_of(tables.instants)
        case _:
            return None


def listing_of(program: Program, instants: Instants | None, *, with_letters: bool) -> ListingOfRun:
    """The listing of a run; `with_letters`: the update writes the letters of events."""
    plan, listing = program.plan, program.listing
    match listing:
        case All():
            return AllListing()
        case InRuns():
            return RunsListing(listing, plan)
        case Checked():
            return CheckedListing(listing, plan, instants)
        case InWindow():
            return SelectorListing(listing, plan, with_letters=with_letters)
        case EarliestInWindow():
            return EarliestListing(listing, plan, with_letters=with_letters)
        case Latest():
            return LatestListing()
        case United(weighs=weighs):
            return UnitedListing(weighs=weighs)
        case Counted():
            return CountedListing()
        case LongestRuns():
            return LongestRunsListing(listing, plan)
        case ByDefinition():
            return DefinitionListing(listing, plan, instants)
        case InWorlds():
            return CountedListing()  # the run lists matches itself
        case _:
            assert_never(listing)


def kinds_of(plan: Plan, listing: ListingOfRun) -> Kinds:
    """The kinds of cells as arrays."""
    columns = range(len(plan.label_names))
    belongs = [[column in kind.columns for kind in plan.kinds] for column in columns]
    return Kinds(
        np.array([kind.starts for kind in plan.kinds] or [False], np.bool_),
        np.array(belongs, np.uint64).reshape(len(columns), len(plan.kinds)),
        np.array([plan.kind_bits], np.int64),
        np.array(
            [listing.places, listing.leaf_pile, not plan.partition_by, listing.lists_runs],
            np.int64,
        ),
    )
