"""Selection strategies on automata (Theorem 4 of the CEL paper, appendix C.3).

A strategy chooses among the *supports* of the matches that end at one event; all labellings of a
chosen support stay. So a match runs together with a *tracker*, which follows all its competitors at
once and only looks at whether events are marked. The tracker is deterministic. It reads each event
of the match, and whether the match marks it. It knows two sets of states: those of the competitors
that are equally good so far, and those of the better ones:

======== ======================================== ==============================================
strategy as good                                  better
======== ======================================== ==============================================
NXT      marked exactly the same                  at the first difference, marked
LAST     not better                               at the last difference, marked
MAX      marked exactly the same                  marked the same and more
======== ======================================== ==============================================

Competitors that can never become better are forgotten (NXT: unmarked at the first difference; MAX:
unmarked where the match is marked). A match ends where no better competitor ends at the same event.

Deviations from the paper. Its constructions put the order of the competitors into states that begin
at the first event of the stream: a total preorder of states for NXT and LAST, the pair of sets (T,
U) for MAX. Here a match begins at its own first event. The *context* of that event (`letters`)
stands for the stream before it: it is the tracker of a match that has marked nothing so far. A
match is given up at once where a better competitor is in the same state, because the competitor can
do all that the match can, and stays better. The preorder says the same. This keeps the sets small:
the remaining states of NXT and LAST are exactly the orders of appendix C.3.

A competitor is also forgotten where it can never matter again: where no continuation ends both it
and the match (for MAX: with the match's marks among its own). For LAST it counts as not better
where no continuation marks both alike, because the last difference is then still to come. Both are
properties of pairs of states, computed beforehand (`pairs_ending`). Without them, LAST of n events
of different types would track 2ⁿ sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from celc_runtime.plan.frozen import frozen

from celc.automata.graphs import (
    FINAL,
    INITIAL,
    Budget,
    Edge,
    Graph,
    Marks,
    Moves,
    explore,
    reduced,
    trimmed,
)
from celc.automata.letters import Letters, Mask, partition
from celc.core.bits import bits_of
from celc.diagnostics.deadline import look
from celc.normal.normal_form import Strategy, shown

_BEFORE, _IN, _AFTER = 0, 1, 2


def strict(graph: Graph, budget: Budget) -> Graph:
    """STRICT: the matches whose events with labels are neighbours (or none), C.3.1."""

    def moves(key: tuple[int, int]) -> Moves[tuple[int, int]]:
        for edge in graph.edges[key[0]]:
            phase = (
                _IN if shown(frozenset(edge.marks)) else (_BEFORE if key[1] == _BEFORE else _AFTER)
            )
            if not (key[1] == _AFTER and phase == _IN):
                target = None if edge.target == FINAL else (edge.target, phase)
                yield edge.mask, edge.marks, target, edge.names

    return explore(graph.version, (INITIAL, _BEFORE), moves, budget)


@frozen
class Selection:
    """The matches that a strategy chooses, by the state of a tracker before their first event."""

    tracker: tuple[tuple[tuple[Mask, int], ...], ...]
    """`[state]`: disjoint masks, each with the next state while no event is marked; it begins in
    state 0."""
    starts: tuple[tuple[Edge, ...], ...]  # `[state]`: the edges that begin a match
    graph: Graph  # the states after those edges; its initial state has no edges
    rejects: bool  # whether any match is ever rejected


@frozen
class Block:
    """Letters that all edges read in the same way."""

    mask: Mask
    reached: tuple[tuple[int, ...], tuple[int, ...]]
    """`[marked][state]`: the states after the event, as a bit set."""

    def after(self, states: int, marked: bool) -> int:
        """The states that a set of states reaches by marking the event, or by not marking it."""
        found = 0
        for state in bits_of(states):
            found |= self.reached[marked][state]
        return found


_Tracked = tuple[int, int]
"""Bit sets of states: the competitors that are equally good so far, and the better ones."""


def select(strategy: Strategy, graph: Graph, everything: Mask, budget: Budget) -> Selection:
    """The choice of NXT, LAST or MAX among the matches of a graph."""
    exploration = _Exploration(graph, _competition(strategy, graph, everything), budget)
    return exploration.selection()


@frozen
class _Competition:
    """The rules by which a strategy compares a match with its competitors. Both fields have bit
    sets of competitors' states, for each state of a match."""

    strategy: Strategy
    blocks: tuple[Block, ...]
    matter: tuple[int, ...]  # the competitors that can still matter
    decided: tuple[int, ...]  # the competitors that are better once they lead

    def after(self, tracked: _Tracked, block: Block, marked: bool) -> _Tracked:
        """The competitors after one more event, which the match marks or does not mark."""
        equal, better = tracked
        match self.strategy, marked:
            case "NXT", True:
                ahead = block.after(better, True) | block.after(better, False)
                even = block.after(equal, True)
            case "LAST", True:
                ahead = block.after(better, True)
                even = block.after(equal, True) | block.after(equal | better, False)
            case "LAST", False:
                ahead = block.after(equal | better, True) | block.after(better, False)
                even = block.after(equal, False)
            case "MAX", True:
                ahead, even = block.after(better, True), block.after(equal, True)
            case _:  # NXT and MAX, where the match does not mark the event
                ahead = block.after(better, True) | block.after(better, False)
                ahead |= block.after(equal, True)
                even = block.after(equal, False)
        return even & ~ahead, ahead

    def relevant(self, state: int, tracked: _Tracked) -> _Tracked:
        """The competitors that still matter to a match in a state, without those that end here."""
        even, ahead = tracked
        matter = self.matter[state] & ~(1 << FINAL)
        undecided = ahead & ~self.decided[state]
        return (even | undecided) & matter, ahead & ~undecided & matter


def _competition(strategy: Strategy, graph: Graph, everything: Mask) -> _Competition:
    if strategy == "MAX":
        matter = pairs_ending(graph, everything, lambda match, other: match <= other)
    else:
        matter = pairs_ending(graph, everything, lambda match, other: True)
    decided = matter
    if strategy == "LAST":
        decided = pairs_ending(graph, everything, lambda match, other: match == other)
    return _Competition(strategy, blocks_of(graph, everything), tuple(matter), tuple(decided))


class _Exploration:
    """The states of a selection, explored from the tracker of a match at the first event on."""

    def __init__(self, graph: Graph, competition: _Competition, budget: Budget) -> None:
        self._graph = graph
        self._competition = competition
        self._budget = budget
        self._rejects = False
        # The states inside matches: a state of the graph, with the competitors.
        self._numbers: dict[tuple[int, _Tracked], int] = {}
        self._inside: list[tuple[int, _Tracked]] = []

    def selection(self) -> Selection:
        """The whole selection."""
        competition = self._competition
        # The trackers of matches that have marked nothing, by the events before the match.
        contexts: dict[_Tracked, int] = {(1 << INITIAL, 0): 0}
        order = list(contexts)
        tracker: list[list[tuple[Mask, int]]] = []
        starts: list[list[Edge]] = []
        for tracked in order:
            look()
            moves = []
            for block in competition.blocks:
                following = competition.relevant(INITIAL, self._after(tracked, block, False))
                if following not in contexts:
                    contexts[following] = len(order)
                    order.append(following)
                moves.append((block.mask, contexts[following]))
            tracker.append(moves)
            starts.append(self._edges_from(INITIAL, tracked))
        edges: list[list[Edge]] = [[], []]
        for state, tracked in self._inside:
            look()
            edges.append(self._edges_from(state, tracked))
        return _reduced(tracker, starts, edges, self._graph.version, self._rejects)

    def _after(self, tracked: _Tracked, block: Block, marked: bool) -> _Tracked:
        self._budget.spend()
        return self._competition.after(tracked, block, marked)

    def _edges_from(self, state: int, tracked: _Tracked) -> list[Edge]:
        """The edges of a match that no better competitor rejects."""
        found = []
        for edge in self._graph.edges[state]:
            for block in self._competition.blocks:
                if not edge.mask & block.mask:
                    continue
                after = self._after(tracked, block, bool(edge.marks))
                if after[1] >> edge.target & 1:
                    self._rejects = True
                    continue
                target = FINAL
                if edge.target != FINAL:
                    target = self._number(edge.target, after)
                found.append(Edge(edge.mask & block.mask, edge.marks, target, edge.names))
        return found

    def _number(self, state: int, after: _Tracked) -> int:
        key = state, self._competition.relevant(state, after)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 2
            self._inside.append(key)
        return self._numbers[key]


_MAX_PAIRS = 300_000  # pairs of edges; with more, `pairs_ending` is not worth its time


def pairs_ending(
    graph: Graph, everything: Mask, allowed: Callable[[bool, bool], bool]
) -> list[int]:
    """For each state of a match, the states of competitors that a common continuation can end.

    `allowed(marked, other)` tells whether the match and the competitor may mark one event in this
    way. Returns all pairs where the computation would take too long: fewer pairs only save work.
    """
    edges = [
        *((state, edge) for state, row in enumerate(graph.edges) for edge in row),
        # Either may begin at a later event.
        (INITIAL, Edge(everything, (), INITIAL, ())),
    ]
    if len(edges) ** 2 > _MAX_PAIRS:
        return [(1 << graph.states) - 1] * graph.states
    before: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for state, one in edges:
        for other_state, other in edges:
            if one.mask & other.mask and allowed(bool(one.marks), bool(other.marks)):
                before.setdefault((one.target, other.target), []).append((state, other_state))
    found = [0] * graph.states
    found[FINAL] = 1 << FINAL
    waiting = [(FINAL, FINAL)]
    while waiting:
        for state, other_state in before.get(waiting.pop(), ()):
            if not found[state] >> other_state & 1:
                found[state] |= 1 << other_state
                waiting.append((state, other_state))
    return found


def blocks_of(graph: Graph, everything: Mask, *, waits: bool = True) -> tuple[Block, ...]:
    """The blocks of letters of a graph. With `waits`, a competitor may begin at any later event."""
    masks = [edge.mask for edges in graph.edges for edge in edges]
    blocks = []
    for mask in partition(masks, everything):
        reached = [[0] * graph.states, [0] * graph.states]
        for state, edges in enumerate(graph.edges):
            for edge in edges:
                if edge.mask & mask:
                    reached[bool(edge.marks)][state] |= 1 << edge.target
        if waits:
            reached[False][INITIAL] |= 1 << INITIAL
        blocks.append(Block(mask, (tuple(reached[False]), tuple(reached[True]))))
    return tuple(blocks)


def _reduced(
    tracker: Sequence[Sequence[tuple[Mask, int]]],
    starts: Sequence[Sequence[Edge]],
    edges: Sequence[Sequence[Edge]],
    version: int,
    rejects: bool,
) -> Selection:
    """The selection without states that lead nowhere, and with equivalent states merged.

    For that, the starts of each tracker state become a state with its own mark, which the graph
    operations keep.
    """
    count = len(edges)
    entry = [Edge(1, (f"\0{state}",), count + state, ()) for state in range(len(starts))]
    graph = Graph(version, (tuple(entry), *map(tuple, edges[1:]), *map(tuple, starts)))
    graph = reduced(trimmed(graph))
    entered = {edge.marks[0]: edge.target for edge in graph.edges[INITIAL]}
    starts_of = [
        graph.edges[entered[f"\0{state}"]] if f"\0{state}" in entered else ()
        for state in range(len(starts))
    ]
    block = _merged_trackers(tracker, starts_of)
    number: dict[int, int] = {}
    for of_state in block:
        number.setdefault(of_state, len(number))
    small: list[tuple[tuple[Mask, int], ...]] = []
    small_starts = []
    for representative in [block.index(b) for b in number]:
        moves: dict[int, Mask] = {}
        for mask, following in tracker[representative]:
            target = number[block[following]]
            moves[target] = moves.get(target, 0) | mask
        small.append(tuple((mask, target) for target, mask in moves.items()))
        small_starts.append(tuple(starts_of[representative]))
    # The states of the entries stay in the graph, unreached. `trimmed` drops them later.
    return Selection(
        tuple(small), tuple(small_starts), Graph(version, ((), *graph.edges[1:])), rejects
    )


def _merged_trackers(
    tracker: Sequence[Sequence[tuple[Mask, int]]], starts: Sequence[Sequence[Edge]]
) -> list[int]:
    """The class of each tracker state; no later event separates its members (Moore's
    refinement)."""

    def begins(edges: Sequence[Edge]) -> frozenset[tuple[tuple[Marks, int], Mask]]:
        ways: dict[tuple[Marks, int], Mask] = {}
        for edge in edges:
            way = edge.marks, edge.target
            ways[way] = ways.get(way, 0) | edge.mask
        return frozenset(ways.items())

    numbers: dict[object, int] = {}
    block = [numbers.setdefault(begins(edges), len(numbers)) for edges in starts]
    while True:
        numbers = {}
        refined = []
        for state, moves in enumerate(tracker):
            ways: dict[int, Mask] = {}
            for mask, following in moves:
                ways[block[following]] = ways.get(block[following], 0) | mask
            signature = block[state], frozenset(ways.items())
            refined.append(numbers.setdefault(signature, len(numbers)))
        if len(numbers) == len(set(block)):
            return refined
        block = refined


def in_context(selection: Selection, letters: Letters) -> Graph:
    """The selection as a graph of its own, with its tracker as part of the context. `letters` are
    refined; the graph is of the new version."""
    version, symbols = letters.version, letters.symbols
    contexts_of = letters.refine(selection.tracker)
    row = (1 << symbols) - 1
    entry = []
    for state, edges in enumerate(selection.starts):
        for edge in edges:
            mask = 0
            for below, context in enumerate(contexts_of[state]):
                if context >= 0:
                    mask |= (edge.mask >> below * symbols & row) << context * symbols
            if mask:
                entry.append(edge._replace(mask=mask))
    lifted = tuple(
        tuple(e._replace(mask=letters.lift(e.mask, version)) for e in edges)
        for edges in selection.graph.edges[1:]
    )
    return reduced(trimmed(Graph(letters.version, (tuple(entry), *lifted))))
