"""Selection strategies on automata (Theorem 4 of the CEL paper, appendix C.3).

A strategy chooses among the *supports* of the matches that end at one event; all labellings of a
chosen support stay. So a match is run together with a *tracker*, which follows all its competitors
at once, on marked or not alone: it is deterministic, reads what the match reads and whether the
match marks it, and knows the set of states of the competitors that are as good so far, and of those
that are better:

======== ======================================== ==============================================
strategy as good                                  better
======== ======================================== ==============================================
NXT      marked exactly the same                  at the first difference, marked
LAST     not better                               at the last difference, marked
MAX      marked exactly the same                  marked the same and more
======== ======================================== ==============================================

Competitors that can never become better are forgotten (NXT: unmarked at the first difference; MAX:
unmarked where the match is marked). A match ends where no better competitor ends at the same event.

Deviations from the paper. Its constructions put the order of the competitors (a total preorder of
states for NXT and LAST, the pair of sets (T, U) for MAX) into states that begin at the first event
of the stream. Here a match begins at its own first event, and what came before is the *context* of
that event (`letters`): the tracker of a match that has marked nothing so far. And a match in a
state that a better competitor is in as well is given up at once: whatever it can still do, the
other does too, and stays better. That is what the preorder says, and it keeps the sets small: the
states of NXT and LAST that are left are exactly the orders of appendix C.3.

Besides, a competitor is forgotten where it can never again matter: where no continuation ends both
it and the match (for MAX: with the match's marks among its own). For LAST it counts as not better
where no continuation marks both alike, because the last difference is then still to come. Both are
properties of pairs of states, worked out beforehand (`_pairs`); without them LAST of n events of
different types would track 2ⁿ sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Selection:
    """The matches that a strategy chooses, given the state of a tracker before their first event.

    `tracker[state]` are disjoint masks with the state that follows while nothing is marked; it
    begins in state 0. `starts[state]` are the edges that begin a match. `graph` holds the states
    after that, its initial state has no edges. `rejects`: whether any match is ever turned down.
    """

    tracker: tuple[tuple[tuple[Mask, int], ...], ...]
    starts: tuple[tuple[Edge, ...], ...]
    graph: Graph
    rejects: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """What the competitors do with one block of letters: `reached[marked][state]` is a bit set."""

    mask: Mask
    reached: tuple[tuple[int, ...], tuple[int, ...]]

    def of(self, states: int, marked: bool) -> int:
        """The states reached from a set of states by marking the event, or not."""
        found = 0
        for state in bits_of(states):
            found |= self.reached[marked][state]
        return found


_Tracked = tuple[int, int]
"""Bit sets of states: competitors that are as good so far, and better ones."""


def select(strategy: Strategy, graph: Graph, everything: Mask, budget: Budget) -> Selection:
    """What NXT, LAST or MAX chooses among the matches of a graph."""
    steps = _steps(graph, everything)
    blocks = [step.mask for step in steps]
    rejects = False
    if strategy == "MAX":
        kept = _pairs(graph, everything, lambda match, other: match <= other)
    else:
        kept = _pairs(graph, everything, lambda match, other: True)
    if strategy == "LAST":
        compared = _pairs(graph, everything, lambda match, other: match == other)
    else:
        compared = kept

    def after(tracked: _Tracked, step: _Step, marked: bool) -> _Tracked:
        budget.spend()
        equal, better = tracked
        if strategy == "NXT":
            ahead = step.of(better, True) | step.of(better, False)
            if not marked:
                ahead |= step.of(equal, True)
            even = step.of(equal, marked)
        elif strategy == "LAST":
            if marked:
                ahead = step.of(better, True)
                even = step.of(equal, True) | step.of(equal | better, False)
            else:
                ahead = step.of(equal | better, True) | step.of(better, False)
                even = step.of(equal, False)
        elif marked:
            ahead, even = step.of(better, True), step.of(equal, True)
        else:
            ahead = step.of(better, True) | step.of(better, False) | step.of(equal, True)
            even = step.of(equal, False)
        return even & ~ahead, ahead

    def that_matter(state: int, even: int, ahead: int) -> _Tracked:
        """The competitors of a match in a state; what ends here is of no concern any more."""
        relevant = kept[state] & ~(1 << FINAL)
        undecided = ahead & ~compared[state]
        return (even | undecided) & relevant, ahead & ~undecided & relevant

    # The trackers of matches that have marked nothing, by what is read before them.
    contexts: dict[_Tracked, int] = {(1 << INITIAL, 0): 0}
    order = list(contexts)
    tracker: list[list[tuple[Mask, int]]] = []
    starts: list[list[Edge]] = []
    numbers: dict[tuple[int, _Tracked], int] = {}
    inside: list[tuple[int, _Tracked]] = []

    def edges_from(state: int, tracked: _Tracked) -> list[Edge]:
        nonlocal rejects
        found = []
        for edge in graph.edges[state]:
            for step, block in zip(steps, blocks, strict=True):
                if not edge.mask & block:
                    continue
                even, ahead = after(tracked, step, bool(edge.marks))
                if ahead >> edge.target & 1:
                    rejects = True
                    continue
                target = FINAL
                if edge.target != FINAL:
                    key = edge.target, that_matter(edge.target, even, ahead)
                    if key not in numbers:
                        numbers[key] = len(numbers) + 2
                        inside.append(key)
                    target = numbers[key]
                found.append(Edge(edge.mask & block, edge.marks, target, edge.names))
        return found

    for tracked in order:
        look()
        moves = []
        for step in steps:
            following = that_matter(INITIAL, *after(tracked, step, False))
            if following not in contexts:
                contexts[following] = len(order)
                order.append(following)
            moves.append((step.mask, contexts[following]))
        tracker.append(moves)
        starts.append(edges_from(INITIAL, tracked))
    edges: list[list[Edge]] = [[], []]
    for state, tracked in inside:
        look()
        edges.append(edges_from(state, tracked))
    return _reduced(tracker, starts, edges, graph.version, rejects)


_MAX_PAIRS = 300_000
"""Pairs of edges up to which `_pairs` is worth its time."""


def _pairs(graph: Graph, everything: Mask, allowed: Callable[[bool, bool], bool]) -> list[int]:
    """For each state of a match, the states of competitors that some continuation ends together.

    `allowed(marked, other)`: whether the match and the competitor may mark an event so. Where that
    takes too long, all pairs are returned: it only saves work.
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


def _steps(graph: Graph, everything: Mask) -> list[_Step]:
    masks = [edge.mask for edges in graph.edges for edge in edges]
    steps = []
    for block in partition(masks, everything):
        reached = [[0] * graph.states, [0] * graph.states]
        for state, edges in enumerate(graph.edges):
            for edge in edges:
                if edge.mask & block:
                    reached[bool(edge.marks)][state] |= 1 << edge.target
        # A competitor may begin at any later event as well.
        reached[False][INITIAL] |= 1 << INITIAL
        steps.append(_Step(block, (tuple(reached[False]), tuple(reached[True]))))
    return steps


def _reduced(
    tracker: Sequence[Sequence[tuple[Mask, int]]],
    starts: Sequence[Sequence[Edge]],
    edges: Sequence[Sequence[Edge]],
    version: int,
    rejects: bool,
) -> Selection:
    """The selection without states that lead nowhere, and with like ones merged.

    For that, each tracker state's starts become a state with a mark of its own, so that the graph
    operations keep it.
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
    # The entries' own states stay in the graph, unreached; `trimmed` drops them where it is used.
    return Selection(
        tuple(small), tuple(small_starts), Graph(version, ((), *graph.edges[1:])), rejects
    )


def _merged_trackers(
    tracker: Sequence[Sequence[tuple[Mask, int]]], starts: Sequence[Sequence[Edge]]
) -> list[int]:
    """Tracker states that nothing read later tells apart (Moore's refinement)."""

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
    """The selection as a graph of its own, its tracker made part of the context.

    `letters` are refined; the graph is of the new version.
    """
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
