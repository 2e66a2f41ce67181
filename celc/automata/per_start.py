"""The choice among the matches with one start, as an automaton (SELECT FIRST, LONGEST).

NXT compares the supports of matches with one start and one end. So all competitors of a match begin
with it, and no event before the match matters. Competitors are followed as in `select`: those that
have marked the same so far, and those that NXT prefers.

FIRST leaves out each match after an end of another match with its start. So it also follows the
competitors that are behind, and gives a match up where any competitor ends and the match does not.
A shorter match fits every window that a longer one fits. So FIRST is the same in all windows, and a
query with FIRST runs as one that lists all matches of this automaton.

Among simultaneous events nothing is chosen here: all matches with one start and one end stay, and
the run keeps those of the least end too.

LONGEST is known only after the match. The run keeps for each start the matches with the greatest
end (`celc_runtime.run.choice.per_start`).
"""

from __future__ import annotations

from celc.automata.graphs import FINAL, INITIAL, Budget, Graph, Moves, explore
from celc.automata.letters import Mask
from celc.automata.select import blocks_of, pairs_ending

_Key = tuple[int, int, int, int]
"""A state of the match, and bit sets of the states of its competitors: equally good so far,
preferred, others."""


def preferred_of_ends(graph: Graph, everything: Mask, budget: Budget, *, first: bool) -> Graph:
    """The matches that stay if one is chosen for each start and end: the one whose support NXT
    prefers. With `first`, a match also goes if another one with its start ends earlier."""
    blocks = blocks_of(graph, everything, waits=False)
    matter = pairs_ending(graph, everything, lambda match, other: True)

    def moves(key: _Key) -> Moves[_Key]:
        state, equal, better, behind = key
        for edge in graph.edges[state]:
            marked = bool(edge.marks)
            for block in blocks:
                mask = edge.mask & block.mask
                if not mask:
                    continue
                budget.spend()
                even = block.after(equal, marked)
                ahead = block.after(better, True) | block.after(better, False)
                rest = block.after(behind, True) | block.after(behind, False)
                if marked:
                    rest |= block.after(equal, False)
                else:
                    ahead |= block.after(equal, True)
                if ahead >> edge.target & 1:
                    continue  # a preferred match can still do all that this one can
                if edge.target == FINAL:
                    yield mask, edge.marks, None, edge.names
                    continue
                if first and (even | ahead | rest) >> FINAL & 1:
                    continue
                compared = matter[edge.target] & ~(1 << FINAL)
                rest = (even | ahead | rest) & ~(1 << FINAL) if first else 0
                even, ahead = even & ~ahead & compared, ahead & compared
                target = edge.target, even, ahead, rest & ~even & ~ahead
                yield mask, edge.marks, target, edge.names

    return explore(graph.version, (INITIAL, 1 << INITIAL, 0, 0), moves, budget)
