"""Automata over letters, and the operations that cannot be built on formulas.

Union and sequence are built on the formula (`construct`). Intersection, complement and the other
operations need the letters that two transitions share. So here a transition reads a set of letters.
A graph is nondeterministic. State 0 is initial, state 1 final. No edge enters the initial state or
leaves the final one, so a path is one match with its first and last event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar, assert_never

from celc_runtime.plan.frozen import frozen

from celc.automata.letters import Mask, partition
from celc.diagnostics.deadline import look
from celc.normal import normal_form as lp

INITIAL, FINAL = 0, 1

Marks: TypeAlias = tuple[str, ...]
_State = TypeVar("_State")


class Edge(NamedTuple):
    """Read an event with one of these letters, mark it, go to `target`."""

    mask: Mask
    marks: Marks
    target: int
    names: tuple[str, ...]  # the atoms, as written, that the event stands for


@frozen
class Graph:
    """A nondeterministic automaton over letters. All masks are of one version of the letters."""

    version: int
    edges: tuple[tuple[Edge, ...], ...]  # `[state]`: the transitions that leave it

    @property
    def states(self) -> int:
        return len(self.edges)


class TooLargeError(Exception):
    """An operation takes more steps than its budget."""


class Budget:
    """A limit on the work of a construction, so that it is refused within seconds."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int = 1) -> None:
        """Count some steps. Raises TooLargeError when none are left."""
        look()
        self._left -= steps
        if self._left < 0:
            raise TooLargeError


_Key = TypeVar("_Key")
Moves: TypeAlias = Iterable[tuple[Mask, Marks, "_Key | None", tuple[str, ...]]]
"""The edges out of a state: letters, marks, the state reached (None: final), names."""


def explore(
    version: int, initial: _Key, moves: Callable[[_Key], Moves[_Key]], budget: Budget
) -> Graph:
    """The graph whose states are the keys reached from `initial`; the key None is final."""
    order: list[_Key | None] = [initial, None]
    number: dict[_Key | None, int] = {initial: INITIAL, None: FINAL}
    edges: list[tuple[Edge, ...]] = []
    at = 0
    while at < len(order):
        key = order[at]
        at += 1
        found: dict[tuple[Marks, int], tuple[Mask, dict[str, None]]] = {}
        for mask, marks, target, names in moves(key) if key is not None else ():
            budget.spend()
            if target not in number:
                number[target] = len(order)
                order.append(target)
            place = marks, number[target]
            before, known = found.get(place, (0, {}))
            found[place] = before | mask, known | dict.fromkeys(names)
        edges.append(
            tuple(
                Edge(mask, marks, target, tuple(known))
                for (marks, target), (mask, known) in found.items()
            )
        )
    return reduced(trimmed(Graph(version, tuple(edges))))


def trimmed(graph: Graph) -> Graph:
    moves = [(state, edge.target) for state, edges in enumerate(graph.edges) for edge in edges]
    number = numbers_between(INITIAL, FINAL, moves)
    return Graph(
        graph.version,
        tuple(
            tuple(e._replace(target=number[e.target]) for e in graph.edges[s] if e.target in number)
            for s in number
        ),
    )


def numbers_between(initial: int, final: int, moves: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The states on some path from the initial to the final one, and these two, with new numbers
    from 0 on. `moves` are pairs of a state and its successor."""
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for source, target in moves:
        after.setdefault(source, []).append(target)
        before.setdefault(target, []).append(source)
    behind, ahead = reached(initial, after), reached(final, before)
    between = behind & ahead
    return {state: index for index, state in enumerate(sorted(between | {initial, final}))}


def reached(start: _State, steps: Mapping[_State, Iterable[_State]]) -> set[_State]:
    """The states that a path leads to from a state, that one included. steps: the next states."""
    found, waiting = {start}, [start]
    while waiting:
        for state in steps.get(waiting.pop(), ()):
            if state not in found:
                found.add(state)
                waiting.append(state)
    return found


def reduced(graph: Graph) -> Graph:
    """The graph with equivalent states merged (forward bisimulation, by refinement)."""
    block = _alike(graph)
    number: dict[int, int] = {}
    for of_state in block:
        number.setdefault(of_state, len(number))
    merged: dict[int, dict[tuple[Marks, int], tuple[Mask, dict[str, None]]]] = {}
    for state in range(graph.states):
        row = merged.setdefault(number[block[state]], {})
        for edge in graph.edges[state]:
            place = edge.marks, number[block[edge.target]]
            mask, names = row.get(place, (0, {}))
            row[place] = mask | edge.mask, names | dict.fromkeys(edge.names)
    return Graph(
        graph.version,
        tuple(
            tuple(
                Edge(mask, marks, target, tuple(names))
                for (marks, target), (mask, names) in merged[state].items()
            )
            for state in range(len(number))
        ),
    )


_Ways: TypeAlias = frozenset[tuple[tuple[Marks, int], Mask]]


def _alike(graph: Graph) -> list[int]:
    """The class of each state.

    Only predecessors of a state whose class has changed are looked at again. The largest part of a
    class keeps its number. So a long chain takes as many rounds as it has states.
    """
    block = [0 if s == INITIAL else 1 if s == FINAL else 2 for s in range(graph.states)]
    members = [{s for s in range(graph.states) if block[s] == b} for b in range(3)]
    # The outgoing edges that all members of a class share and that are not looked at again.
    ways_of: list[_Ways] = [frozenset()] * 3
    before: list[set[int]] = [set() for _ in range(graph.states)]
    for state, edges in enumerate(graph.edges):
        for edge in edges:
            before[edge.target].add(state)
    waiting = set(range(graph.states))
    while waiting:
        found: dict[int, dict[_Ways, set[int]]] = {}
        for state in waiting:
            look()
            ways: dict[tuple[Marks, int], Mask] = {}
            for edge in graph.edges[state]:
                way = edge.marks, block[edge.target]
                ways[way] = ways.get(way, 0) | edge.mask
            found.setdefault(block[state], {}).setdefault(frozenset(ways.items()), set()).add(state)
        waiting = set()
        for number, parts in found.items():
            left = members[number].difference(*parts.values())
            if left:
                parts.setdefault(ways_of[number], set()).update(left)
            kept, *new = sorted(parts, key=lambda ways: -len(parts[ways]))
            ways_of[number] = kept
            members[number] = parts[kept]
            for ways_on in new:
                for state in parts[ways_on]:
                    block[state] = len(members)
                    waiting |= before[state]
                members.append(parts[ways_on])
                ways_of.append(ways_on)
    return block


def _joined(*names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))


def intersected(left: Graph, right: Graph, budget: Budget) -> Graph:
    """AND: matches of both, with the same labels (appendix C.1 of the CEL paper). Roles may differ.
    Each side has its own, and a match has those of both."""
    known: dict[Marks, frozenset[str]] = {}

    def labels(marks: Marks) -> frozenset[str]:
        if marks not in known:
            known[marks] = lp.shown(frozenset(marks))
        return known[marks]

    def moves(key: tuple[int, int]) -> Moves[tuple[int, int]]:
        for one in left.edges[key[0]]:
            for other in right.edges[key[1]]:
                mask = one.mask & other.mask
                if (
                    mask
                    and ((one.target == FINAL) == (other.target == FINAL))
                    and labels(one.marks) == labels(other.marks)
                ):
                    target = None if one.target == FINAL else (one.target, other.target)
                    marks = one.marks
                    if marks != other.marks:
                        marks = tuple(sorted({*marks, *other.marks}))
                    yield mask, marks, target, _joined(one.names, other.names)

    return explore(left.version, (INITIAL, INITIAL), moves, budget)


def placed_anyhow(left: Graph, right: Graph, everything: Mask, budget: Budget) -> Graph:
    """ALL: two matches side by side. One may not have begun yet, or may be over already."""

    def steps(graph: Graph, state: int) -> list[Edge]:
        waits = [Edge(everything, (), state, ())] if state in (INITIAL, FINAL) else []
        return [*graph.edges[state], *waits]

    def moves(key: tuple[int, int]) -> Moves[tuple[int, int]]:
        for one in steps(left, key[0]):
            for other in steps(right, key[1]):
                target = one.target, other.target
                mask = one.mask & other.mask
                # An event before the first event of both is not part of the match.
                if mask and target != (INITIAL, INITIAL):
                    marks = tuple(sorted({*one.marks, *other.marks}))
                    ends = target == (FINAL, FINAL)
                    yield mask, marks, None if ends else target, _joined(one.names, other.names)

    return explore(left.version, (INITIAL, INITIAL), moves, budget)


def relabelled(graph: Graph, changes: Sequence[lp.LabelChange]) -> Graph:
    known: dict[Marks, Marks] = {}
    for edges in graph.edges:
        for edge in edges:
            if edge.marks not in known:
                known[edge.marks] = lp.changed(edge.marks, changes)
    return Graph(
        graph.version,
        tuple(tuple(e._replace(marks=known[e.marks]) for e in edges) for edges in graph.edges),
    )


def with_marked_ends(graph: Graph, first: Marks, last: Marks) -> Graph:
    """The graph with additional marks on the first and the last event of each match."""

    def marked(state: int, edge: Edge) -> Edge:
        more = {*(first if state == INITIAL else ()), *(last if edge.target == FINAL else ())}
        return edge._replace(marks=tuple(sorted({*edge.marks, *more}))) if more else edge

    return Graph(
        graph.version,
        tuple(
            tuple(marked(state, edge) for edge in edges) for state, edges in enumerate(graph.edges)
        ),
    )


# --- absence --------------------------------------------------------------------------------------


class Watch:
    """A deterministic machine that watches for any match of a graph, begun at any event.

    Its states are sets of the graph's states, as bit sets: those of the matches that are under way.
    0: none is.
    """

    def __init__(self, graph: Graph, everything: Mask) -> None:
        self._graph = graph
        self._everything = everything
        self._known: dict[int, tuple[tuple[Mask, int], ...]] = {}

    def steps(self, state: int, budget: Budget) -> tuple[tuple[Mask, int], ...]:
        """The moves on letters that complete no match: disjoint masks, each with the next state."""
        if state not in self._known:
            under_way = [
                edge
                for index in range(self._graph.states)
                if index == INITIAL or state >> index & 1
                for edge in self._graph.edges[index]
            ]
            steps: dict[int, Mask] = {}
            for block in partition((edge.mask for edge in under_way), self._everything):
                budget.spend(len(under_way))
                reached = 0
                for edge in under_way:
                    if edge.mask & block:
                        reached |= 1 << edge.target
                if not reached >> FINAL & 1:
                    steps[reached] = steps.get(reached, 0) | block
            self._known[state] = tuple((mask, reached) for reached, mask in steps.items())
        return self._known[state]


def without(graph: Graph, watch: Watch, budget: Budget) -> Graph:
    """UNLESS: the matches of a graph without a match of the watch inside them."""

    def moves(key: tuple[int, int]) -> Moves[tuple[int, int]]:
        for mask, watched in watch.steps(key[1], budget):
            for edge in graph.edges[key[0]]:
                if edge.mask & mask:
                    target = None if edge.target == FINAL else (edge.target, watched)
                    yield edge.mask & mask, edge.marks, target, edge.names

    return explore(graph.version, (INITIAL, 0), moves, budget)


_START, _WAITING = -1, -2


def soonest(
    graph: Graph, watch: Watch, absent: Sequence[Watch], everything: Mask, budget: Budget
) -> Graph:
    """FIRST, with what is skipped before it: the matches of a graph, begun at any event, that end
    first of all. `watch` is that of the graph. Those of `absent` have no match before it begins."""

    def waits(watched: tuple[int, ...]) -> list[tuple[Mask, tuple[int, ...]]]:
        """The letters that complete no match of what must be absent, with the next states."""
        found: list[tuple[Mask, tuple[int, ...]]] = [(everything, ())]
        for one, state in zip(absent, watched, strict=True):
            steps = one.steps(state, budget)
            found = [
                (mask & other, (*states, after))
                for mask, states in found
                for other, after in steps
                if mask & other
            ]
        return found

    def moves(
        key: tuple[int, int, tuple[int, ...]],
    ) -> Moves[tuple[int, int, tuple[int, ...]]]:
        run, watched, others = key
        steps = watch.steps(watched, budget)
        for edge in graph.edges[INITIAL if run < 0 else run]:
            if edge.target == FINAL:
                yield edge.mask, edge.marks, None, edge.names
                continue
            for mask, after in steps:
                if edge.mask & mask:
                    yield edge.mask & mask, edge.marks, (edge.target, after, ()), edge.names
        for other, states in waits(others) if run < 0 else ():
            for mask, after in steps:
                if mask & other:
                    yield mask & other, (), (_WAITING, after, states), ()

    return explore(graph.version, (_START, 0, (0,) * len(absent)), moves, budget)


# --- facts ----------------------------------------------------------------------------------------

_NOTHING, _YES, _NO = 0, 1, 2


def satisfying(
    graph: Graph, fact: lp.Fact, masks: Mapping[lp.SimpleFact, Mask], budget: Budget
) -> Graph:
    """The matches for which a fact is true.

    `masks[simple]`: the letters of events that satisfy the clause of a simple fact.
    """
    simple = lp.simple_facts(fact)

    def moves(key: tuple[int, tuple[int, ...]]) -> Moves[tuple[int, tuple[int, ...]]]:
        for edge in graph.edges[key[0]]:
            asked = [masks[s] for s in simple if s in masks and s.label in edge.marks]
            for mask in partition(asked, edge.mask):
                known = tuple(
                    (
                        _after(s, state, s in masks and bool(mask & masks[s]))
                        if s.label in edge.marks
                        else state
                    )
                    for s, state in zip(simple, key[1], strict=True)
                )
                if edge.target != FINAL:
                    yield mask, edge.marks, (edge.target, known), edge.names
                elif _is_true(fact, dict(zip(simple, known, strict=True))):
                    yield mask, edge.marks, None, edge.names

    return explore(graph.version, (INITIAL, (0,) * len(simple)), moves, budget)


def _after(fact: lp.SimpleFact, state: int, satisfied: bool) -> int:
    """The knowledge of a fact after one more event with its label."""
    match fact:
        case lp.SomeEvent():
            return _YES if satisfied == fact.holds else state
        case lp.EndEvent():
            if fact.end == "FIRST" and state != _NOTHING:
                return state
            return _YES if satisfied else _NO
        case lp.CountOf():
            return min(state + 1, len(fact.truths) - 1)
        case _:
            assert_never(fact)


def _is_true(fact: lp.Fact, known: Mapping[lp.SimpleFact, int]) -> bool:
    match fact:
        case lp.Not():
            return not _is_true(fact.fact, known)
        case lp.AnyOf():
            return any(_is_true(part, known) for part in fact.facts)
        case lp.CountOf():
            return fact.truths[known[fact]]
        case lp.SomeEvent() | lp.EndEvent():
            return known[fact] == _YES
        case _:
            assert_never(fact)
