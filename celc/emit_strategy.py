"""The strategy of a query → the constructor calls of its module that say how it is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from celc.escape import tuple_text
from celc.strategy import (
    All,
    BranchFree,
    ByDefinition,
    Checked,
    EarliestInWindow,
    InRuns,
    InWindow,
    Keyed,
    Latest,
    Listing,
    StraightLine,
    UnionLists,
    Update,
)


@dataclass(frozen=True, slots=True)
class Call:
    """An expression of the generated module, with the names that it needs of the runtime's modules
    `strategy` and `transitions`, here or where the module defines what it mentions."""

    text: str
    of_strategy: frozenset[str]
    of_transitions: frozenset[str] = frozenset()


def update_call(
    number: int, update: Update, window_mode: str, joins: dict[str, Any] | None
) -> Call:
    """The update of query `number`; `joins` is the view of its keys, where it has any."""
    kernel = f"update_{number}"
    match update:
        case BranchFree(piles=plan):
            name = "BranchFree"
        case StraightLine(piles=plan):
            name = "StraightLine"
        case Keyed(piles=plan):
            assert joins is not None
            terms = tuple_text(joins["terms"])
            tables = tuple_text(
                f"KeyTable({table['texts']}, piles={table['piles']})" for table in joins["tables"]
            )
            return Call(
                f"Keyed({kernel}, piles={len(plan.piles)}, terms={terms}, tables={tables})",
                frozenset({"Keyed", "KeyTable", "KeyTerm"}),
            )
        case UnionLists():
            return Call(
                f"UnionLists(TABLES_{number})",
                frozenset({"UnionLists"}),
                frozenset({window_mode, "tables"}),
            )
        case _:
            assert_never(update)
    return Call(f"{name}({kernel}, piles={len(plan.piles)})", frozenset({name}))


def listing_call(number: int, listing: Listing) -> Call:
    """The listing of query `number`."""
    match listing:
        case All():
            return Call("All()", frozenset({"All"}))
        case InRuns(shape=shape):
            kinds = tuple_text(map(str, shape.kinds))
            text = f"InRuns(kinds={kinds}, leaf_pile={shape.leaf_pile})"
            return Call(text, frozenset({"InRuns"}))
        case Checked():
            return Call(f"CHECKS_{number}", frozenset({"Checked", "Remembers"}))
        case InWindow(all_events=all_events):
            text = f"InWindow(SELECTION_{number}, all_events={all_events})"
            return Call(text, frozenset({"InWindow"}), frozenset({"selection"}))
        case EarliestInWindow(all_events=all_events):
            text = f"EarliestInWindow(SELECTION_{number}, all_events={all_events})"
            return Call(text, frozenset({"EarliestInWindow"}), frozenset({"earliest"}))
        case Latest():
            return Call("Latest()", frozenset({"Latest"}))
        case ByDefinition():
            return Call(f"DEFINITION_{number}", frozenset({"ByDefinition", "Remembers"}))
        case _:
            assert_never(listing)
