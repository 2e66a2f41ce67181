"""The choice of a selector among supports, while some matches still have open questions."""

import math
from collections.abc import Mapping, Set
from typing import TypeAlias

from celc_runtime.engine.definition.open_questions import ANSWERED, Budget, Questions

Support: TypeAlias = tuple[int, ...]
"""The events of a match, ascending."""


def cases_against(
    strategy: str, rivals: Mapping[Support, Set[Questions]], budget: Budget
) -> dict[Support, frozenset[Questions]]:
    """For each support, the open questions of the matches that the selector prefers to it.

    A preferred match without an open question rules the support out, and other matches do not
    matter. NXT and LAST put all supports into one order. MAX compares each support with the larger
    ones.
    """
    found: dict[Support, frozenset[Questions]] = {}
    if strategy == "MAX":
        sets = {support: frozenset(support) for support in sorted(rivals, key=len, reverse=True)}
        for support, mine in sets.items():
            cases: set[Questions] = set()
            for other, theirs in sets.items():
                if len(theirs) <= len(mine) or ANSWERED in cases:
                    break
                budget.spend(len(mine) + 1)
                if mine < theirs:
                    cases |= rivals[other]
            found[support] = frozenset(cases)
        return found
    # NXT looks at the smallest event that is in only one of two supports, LAST at the largest.
    if strategy in ("NXT", "NXT_OF_ENDS"):
        order = sorted(rivals, key=lambda support: (*support, math.inf))
    else:
        order = sorted(rivals, key=lambda support: support[::-1], reverse=True)
    before: set[Questions] = set()
    for support in order:
        found[support] = frozenset(before)
        if ANSWERED not in before:
            before |= rivals[support]
    return found
