"""Cayuga's way: the automata of many rules as one graph, and indexes that find what an event moves.

Source: A. Demers, J. Gehrke, M. Hong, M. Riedewald, W. White, *A General Algebra and Implementation
for Monitoring Event Streams* (Cornell University, 2005), section 4. A rule is a sequence of steps.
Each step asks for values of some attributes and ranges of others (*static*), and may compare the
event with the first one of the match (*dynamic*). Rules are added one by one; those that begin
alike share their states. Four kinds say which events may be between two steps:

- `LINEAR`: none;
- `FILTER`: those without the value of the rule's primary attribute, for some time (`;θ`);
- `ANY`: all, for some time (`μ`); an event of a later step has the primary value as well.

The indexes are those of the paper:

- FR, of the edges, by the static part of their conditions: a hash of the two values that a step
  asks for. The ranges of what it finds are tested;
- AN, of the states that have instances, by the primary value that their filter edge names. An event
  without it moves nothing there. LINEAR has no filter: each event asks every active state;
- AI, of the instances of a state, by the dynamic part of the filter. No rule here has one, so it is
  a list.

Two switches turn things off, as section 5.2.1 does: without `merges` rules share nothing but the
start; without `indexes` an event asks every active state of every rule, and FR alone is left.

Instances end when their time has passed. Python is fast enough, as an event moves few of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LINEAR, FILTER, ANY = range(3)
_START = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What an event must be: values by attribute, [low, high] by attribute; at most two values.

    `against`: an attribute and a factor. The event's value must be at least the factor times that
    of the first event.
    """

    equals: tuple[tuple[str, int], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()
    against: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Steps of one kind. `primary`: an attribute and its value; LINEAR does not need it."""

    id: int
    steps: tuple[Step, ...]
    kind: int
    window: int = 0
    primary: tuple[str, int] | None = None


class Match(NamedTuple):
    """A rule, and the numbers of the events of its steps."""

    rule: int
    events: tuple[int, ...]


@dataclass
class Counts:
    """The work of a pass. `nodes`: states by level, the start aside. `found`: edges whose static
    part an event satisfies. `asked`: states that AN finds, or all active ones; `visited`: instances
    at these that were looked at. `active`: states with instances, summed over the events.
    `instances`: that were made. `matches`.
    """

    nodes: list[int] = field(default_factory=list)
    tested: int = 0
    found: int = 0
    asked: int = 0
    visited: int = 0
    active: int = 0
    instances: int = 0
    matches: int = 0


@dataclass(slots=True)
class _Edge:
    source: int
    target: int
    step: Step
    rules: list[int]


@dataclass(slots=True)
class _Node:
    kind: int
    window: int
    primary: tuple[str, int] | None
    instances: dict[int, _Instance] = field(default_factory=dict)


class _Instance(NamedTuple):
    begun: int
    first: dict[str, float]
    events: tuple[int, ...]


class Merged:
    """The automata of rules, and a run over events, which `push` gives to it one by one.

    Raises ValueError for a rule whose step asks for more than two values.
    """

    def __init__(self, rules: Iterable[Rule], *, merges: bool = True, indexes: bool = True) -> None:
        self.counts = Counts()
        self._merges, self._indexes = merges, indexes
        self._nodes = [_Node(LINEAR, 0, None)]
        self._edges: dict[tuple[object, ...], _Edge] = {}
        self._fr: dict[tuple[tuple[str, int], ...], list[_Edge]] = defaultdict(list)
        self._an: dict[tuple[str, int] | None, set[int]] = defaultdict(set)
        self._ends: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._tick: int | None = None
        self._number = 0
        self._names: set[str] = set()
        for rule in rules:
            self._add(rule)
        self._values = sorted(self._names)

    def _add(self, rule: Rule) -> None:
        node = _START
        if rule.primary is not None:
            self._names.add(rule.primary[0])
        for level, step in enumerate(rule.steps):
            if len(step.equals) > 2:
                raise ValueError("a step asks for at most two values")
            self._names.update(name for name, _ in step.equals)
            # What leaves a state is part of what it is: its filter edge.
            last = level + 1 == len(rule.steps)
            leaves = () if last else (rule.kind, rule.window, rule.primary)
            own = () if self._merges else (rule.id,)
            key = (node, step, leaves, last, *own)
            edge = self._edges.get(key)
            if edge is None:
                self._nodes.append(_Node(rule.kind, rule.window, rule.primary))
                edge = _Edge(node, len(self._nodes) - 1, step, [])
                self._edges[key] = edge
                self._fr[tuple(sorted(step.equals))].append(edge)
                if len(self.counts.nodes) <= level:
                    self.counts.nodes.append(0)
                self.counts.nodes[level] += 1
            if last:
                edge.rules.append(rule.id)
            node = edge.target

    def push(self, tick: int, event: dict[str, float]) -> list[Match]:
        """Read the next event; returns the matches that it ends."""
        if tick != self._tick:
            self._expire(tick)
            self._tick = tick
        edges = self._satisfied(event)
        self.counts.active += sum(map(len, self._an.values()))
        made: list[tuple[int, _Instance]] = []
        found: list[Match] = []
        number = self._number
        self._number += 1
        start = _Instance(tick, event, ())
        for edge in edges.get(_START, ()):
            self._move(edge, start, event, made, found, number)
        for node in self._relevant(event):
            self._at(node, tick, event, edges.get(node, ()), made, found, number)
        for target, instance in made:
            self._install(target, instance)
        self.counts.matches += len(found)
        return found

    def _satisfied(self, event: dict[str, float]) -> dict[int, list[_Edge]]:
        """By source the edges whose static part an event satisfies."""
        here: dict[int, list[_Edge]] = {}
        values = [(name, int(event[name])) for name in self._values]
        pairs = ((one, other) for n, one in enumerate(values) for other in values[n + 1 :])
        for key in ((), *((one,) for one in values), *pairs):
            for edge in self._fr.get(key, ()):
                self.counts.tested += 1
                if all(low <= event[name] <= high for name, low, high in edge.step.ranges):
                    here.setdefault(edge.source, []).append(edge)
                    self.counts.found += 1
        return here

    def _relevant(self, event: dict[str, float]) -> list[int]:
        if not self._indexes:
            return [node for nodes in self._an.values() for node in nodes]
        keys = (None, *((name, int(event[name])) for name in self._values))
        return [node for key in keys for node in self._an.get(key, ())]

    def _at(
        self,
        node: int,
        tick: int,
        event: dict[str, float],
        edges: Sequence[_Edge],
        made: list[tuple[int, _Instance]],
        found: list[Match],
        number: int,
    ) -> None:
        """What an event does to the instances of a state: they move, stay or end."""
        self.counts.asked += 1
        here = self._nodes[node]
        if here.kind != LINEAR and here.primary is not None:
            name, value = here.primary
            if event[name] != value:
                return  # the filter edge: only without the index does such an event come here
        if here.kind == ANY and not edges:
            return
        for instance in list(here.instances.values()):
            self.counts.visited += 1
            for edge in edges:
                self._move(edge, instance, event, made, found, number)
        if here.kind != ANY:
            here.instances.clear()
            self._an[self._key(here)].discard(node)

    def _move(
        self,
        edge: _Edge,
        instance: _Instance,
        event: dict[str, float],
        made: list[tuple[int, _Instance]],
        found: list[Match],
        number: int,
    ) -> None:
        first = instance.first
        if any(event[name] < factor * first[name] for name, factor in edge.step.against):
            return
        events = (*instance.events, number)
        found.extend(Match(rule, events) for rule in edge.rules)
        if not edge.rules:
            made.append((edge.target, _Instance(instance.begun, first, events)))

    def _install(self, target: int, instance: _Instance) -> None:
        node = self._nodes[target]
        serial = self.counts.instances
        self.counts.instances += 1
        node.instances[serial] = instance
        self._an[self._key(node)].add(target)
        if node.kind != LINEAR:
            self._ends[instance.begun + node.window].append((target, serial))

    def _key(self, node: _Node) -> tuple[str, int] | None:
        return node.primary if node.kind != LINEAR else None

    def _expire(self, tick: int) -> None:
        """End the instances whose time has passed."""
        for end in [end for end in self._ends if end < tick]:
            for target, serial in self._ends.pop(end):
                node = self._nodes[target]
                node.instances.pop(serial, None)
                if not node.instances:
                    self._an[self._key(node)].discard(target)


# --- the same rule in CEL -------------------------------------------------------------------------


def query_of(rule: Rule, stream: str = "E") -> str:
    """The query of a rule over a stream S of events with a `tick`; its labels are s0, s1, …"""
    text = f"{stream} AS s0"
    for number in range(1, len(rule.steps)):
        event = f"{stream} AS s{number}"
        if rule.kind != LINEAR and rule.primary is not None:
            event = f"({event} FILTER s{number}.{rule.primary[0]} = {rule.primary[1]})"
        between = {LINEAR: ":", FILTER: "; FIRST", ANY: ";"}[rule.kind]
        text = f"({text} {between} {event})"
    conditions = [
        condition
        for number, step in enumerate(rule.steps)
        for condition in (
            *(f"s{number}.{name} = {value}" for name, value in step.equals),
            *(f"s{number}.{name} BETWEEN {low} AND {high}" for name, low, high in step.ranges),
            *(f"s{number}.{name} >= {factor} * s0.{name}" for name, factor in step.against),
        )
    ]
    where = f"({text})" + (f" FILTER {' AND '.join(conditions)}" if conditions else "")
    within = "" if rule.kind == LINEAR else f" WITHIN {rule.window} [tick]"
    return (
        f"SELECT {', '.join(f's{n}' for n in range(len(rule.steps)))} FROM S WHERE {where}{within}"
    )
