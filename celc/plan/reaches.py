"""How far before a match there are events that decide whether it is one.

An absence before a match looks back from its first event. An absence inside what is absent looks
back farther from there. So the events that matter are found in hops: from an event to the first one
within a length, from there to the first one within the next length.
"""

from celc.core import formula as core
from celc.core.traversal import parts_of

Hops = tuple[core.Window, ...]


def reaches_of(formula: core.Formula) -> tuple[Hops, ...]:
    """The lengths of the hops, one after another from the start of a match.

    There is an entry for each absence that looks farther back than those around it. Empty: there is
    no absence before a match.
    """
    found = dict.fromkeys(_reaches(formula))
    return tuple(
        hops
        for hops in found
        if not any(hops != other and hops == other[: len(hops)] for other in found)
    )


def _reaches(formula: core.Formula) -> list[Hops]:
    # Not recursive over all parts, because formulas may nest deep.
    found: list[Hops] = []
    waiting: list[tuple[core.Formula, Hops]] = [(formula, ())]
    while waiting:
        part, hops = waiting.pop()
        if isinstance(part, core.AbsenceBefore):
            farther = (*hops, part.length)
            found.append(farther)
            waiting += [(part.operand, hops), (part.absent, farther)]
        else:
            # Every part of a match begins at the match's start or later.
            waiting += [(one, hops) for one in parts_of(part)]
    return found
