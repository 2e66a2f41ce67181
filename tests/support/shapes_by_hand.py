"""The shapes of docs/how-do-i-say.md in plain Python: every match, by trying out positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise

MINUTE = 60


@dataclass(frozen=True)
class Event:
    position: int
    type: str
    v: int
    key: str | None
    parent: str | None
    second: int


@dataclass(frozen=True)
class Match:
    start: int
    end: int
    labels: dict[str, tuple[int, ...]]


Events = Sequence[Event]


@dataclass(frozen=True)
class ByHand:
    """`types`, `gap` (seconds) and `most` say which random events have matches of this shape."""

    find: Callable[[Events], Iterable[Match]]
    types: str = "ABCN"
    gap: int = 1
    most: int = 10


def match(*events: Event, **names: str) -> Match:
    """A match of some events, each labelled by its type, or by the name that is given for it."""
    labels: dict[str, tuple[int, ...]] = {}
    for one in events:
        name = names.get(one.type, one.type)
        labels[name] = (*labels.get(name, ()), one.position)
    positions = [one.position for one in events]
    return Match(min(positions), max(positions), labels)


def of(events: Events, types: str) -> list[Event]:
    return [one for one in events if one.type in types]


def behind(events: Events, one: Event) -> list[Event]:
    return [other for other in events if other.position > one.position]


def between(events: Events, one: Event, two: Event) -> list[Event]:
    return [other for other in events if one.position < other.position < two.position]


def first(events: Events, types: str, one: Event) -> list[Event]:
    """The first event of some types behind another one, if there is one."""
    return of(behind(events, one), types)[:1]


def parts(events: Events) -> list[list[Event]]:
    """The events of each key, numbered anew."""
    found = []
    for key in dict.fromkeys(one.key for one in events):
        mine = [one for one in events if one.key == key]
        found.append([Event(k, o.type, o.v, o.key, o.parent, o.second) for k, o in enumerate(mine)])
    return found


def in_parts(find: Callable[[Events], Iterable[Match]]) -> Callable[[Events], Iterator[Match]]:
    return lambda events: chain.from_iterable(map(find, parts(events)))


# --- then -----------------------------------------------------------------------------------------


def a_then_b(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in first(events, "B", a):
            yield match(a, b)


def a_then_b_of_its_key(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in first([b for b in events if b.key == a.key], "B", a):
            yield match(a, b)


def children(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in first([b for b in events if b.parent == a.key], "B", a):
            for c in first([c for c in events if c.parent == a.key], "C", b):
                yield match(a, b, c)


def lineage(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in first([b for b in events if b.parent == a.key], "B", a):
            for c in first([c for c in events if c.parent == b.key], "C", b):
                yield match(a, b, c)


def any_later(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in of(behind(events, a), "B"):
            yield match(a, b)


def directly(events: Events) -> Iterator[Match]:
    for a, b in pairwise(events):
        if a.type + b.type == "AB":
            yield match(a, b)


def without(absent: str) -> Callable[[Events], Iterator[Match]]:
    def find(events: Events) -> Iterator[Match]:
        for a in of(events, "A"):
            for b in first(events, "B", a):
                if not of(between(events, a, b), absent):
                    yield match(a, b)

    return find


def not_directly(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for c in first(events, "C", a):
            if events[a.position + 1].type != "N":
                yield match(a, c)


def any_order(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in of(events, "B"):
            for c in first(events, "C", max(a, b, key=lambda one: one.position)):
                yield match(a, b, c)


def either(events: Events) -> Iterator[Match]:
    for one in of(events, "AB"):
        for c in first(events, "C", one):
            yield match(one, c)


# --- several times --------------------------------------------------------------------------------


def rounds(events: Events, begin: Event, least: int | None = None) -> Iterator[list[Event]]:
    """The first B behind an event, then the next one, …: every number of them. With `least` each
    has a value above the last one, and the first one above `least`."""
    taken: list[Event] = []
    while True:
        fit = events if least is None else [b for b in events if b.v > least]
        found = first(fit, "B", taken[-1] if taken else begin)
        if not found:
            return
        taken = [*taken, *found]
        yield taken
        if least is not None:
            least = taken[-1].v


def then_c(events: Events, a: Event, bs: Sequence[Event]) -> Iterator[Match]:
    for c in first(events, "C", bs[-1] if bs else a):
        yield match(a, *bs, c)


def chains(least: int, most: int) -> Callable[[Events], Iterator[Match]]:
    def find(events: Events) -> Iterator[Match]:
        for a in of(events, "A"):
            for bs in rounds(events, a):
                if least <= len(bs) <= most:
                    yield from then_c(events, a, bs)

    return find


def runs(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for bs in rounds(events, a):
            if bs[-1].position - bs[0].position == len(bs) - 1:
                yield from then_c(events, a, bs)


def choices(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        bs = of(behind(events, a), "B")
        for size in range(1, len(bs) + 1):
            for chosen in combinations(bs, size):
                yield from then_c(events, a, chosen)


def until(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for bs in rounds(events, a):
            if not of(between(events, a, bs[-1]), "U"):
                yield match(a, *bs)


def greedy(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in first(events, "B", a):
            for c in first(events, "C", b):
                yield match(a, *of(between(events, a, c), "B"), c)


def maybe(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        yield from then_c(events, a, [])
        for b in first(events, "B", a):
            yield from then_c(events, a, [b])


def two_maybes(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for bs in ([], *([b] for b in first(events, "B", a))):
            for cs in ([], *([c] for c in first(events, "C", (bs or [a])[-1]))):
                for d in first(events, "D", (cs or bs or [a])[-1]):
                    yield match(a, *bs, *cs, d)


def pairs(events: Events, begin: Event | None, next_only: bool) -> Iterator[tuple[Event, ...]]:
    """Groups of an A and the first B after it; with `next_only` those that end first."""
    found = [
        (a, b)
        for a in of(events if begin is None else behind(events, begin), "A")
        for b in first(events, "B", a)
    ]
    ends = [b.position for _, b in found]
    return ((a, b) for a, b in found if not next_only or b.position == min(ends))


def groups(next_only: bool) -> Callable[[Events], Iterator[Match]]:
    def find(events: Events) -> Iterator[Match]:
        waiting = list(pairs(events, None, False))
        while waiting:
            taken = waiting.pop()
            for c in first(events, "C", taken[-1]):
                yield match(*taken, c)
            waiting += [(*taken, *more) for more in pairs(events, taken[-1], next_only)]

    return find


def above(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in first([b for b in events if b.v > a.v], "B", a):
            yield match(a, b)


def rising(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for bs in rounds(events, a, -1):
            yield match(a, *bs)


def rising_from_a(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for bs in rounds(events, a, a.v):
            yield match(a, *bs, A="x", B="x")


def second_b(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for bs in rounds(events, a):
            if len(bs) == 2:
                yield match(a, bs[1], B="b")


# --- absences and times ---------------------------------------------------------------------------


def silence_after(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        over = events[-1].second > a.second + 5 * MINUTE
        later = of(behind(events, a), "B")
        if over and all(b.second > a.second + 5 * MINUTE for b in later):
            yield match(a)


def silence_between(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        late = [c for c in events if c.second > a.second + 5 * MINUTE]
        for c in first(late, "C", a):
            bs = of(between(events, a, c), "B")
            if all(b.second > a.second + 5 * MINUTE for b in bs):
                yield match(a, c)


def silence_before(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        if all(a.second - b.second > 10 * MINUTE for b in of(events[: a.position], "B")):
            yield match(a)


def gaps(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        for b in first(events, "B", a):
            for c in first(events, "C", b):
                if b.second - a.second <= 5 and c.second - b.second <= MINUTE:
                    yield match(a, b, c)


# --- how often ------------------------------------------------------------------------------------


def once(events: Events) -> list[Match]:
    return sorted(any_later(events), key=lambda one: (one.end, one.start))[:1]


def disjoint(found: Iterable[Match]) -> Iterator[Match]:
    end = -1
    for one in sorted(found, key=lambda one: one.start):
        if one.start > end:
            yield one
            end = one.end


def bursts(events: Events) -> Iterator[Match]:
    for a in of(events, "A"):
        failures = [a, *of(behind(events, a), "A")][:5]
        for b in first(events, "B", failures[-1]):
            if len(failures) == 5 and b.second - a.second <= 10 * MINUTE:
                yield match(*failures, b)


def hourly(events: Events) -> Iterator[Match]:
    last = None
    for one in sorted(a_then_b(events), key=lambda one: (one.end, one.start)):
        second = events[one.end].second
        if last is None or second - last >= 60 * MINUTE:
            yield one
            last = second


def three_of_four(events: Events) -> Iterator[Match]:
    for one in of(events, "ABCD"):
        later = of(behind(events, one), "ABCD")
        found = [
            (three, two)
            for two, three in combinations(later, 2)
            if len({one.type, two.type, three.type}) == 3
            and three.second - one.second <= 60 * MINUTE
        ]
        for three, two in sorted(found, key=lambda pair: [one.position for one in pair])[:1]:
            yield match(one, two, three)


def many_values(events: Events) -> Iterator[Match]:
    for one in events:
        later = [one, *behind(events, one)]
        for size in range(len(later)):
            taken = later[: size + 1]
            if len({other.v for other in taken}) > 10:
                if taken[-1].second - one.second <= MINUTE:
                    yield match(*taken)
                break


def sums(events: Events) -> Iterator[Match]:
    for c in of(events, "C"):
        taken: list[Event] = []
        for one in behind(events, c):
            if one.type == "C":
                break
            if one.type == "A":
                taken.append(one)
                if sum(a.v for a in taken) > 100:
                    yield match(c, *taken)
                    break


SHAPES: dict[int, list[ByHand]] = {
    1: [ByHand(in_parts(a_then_b)), ByHand(a_then_b_of_its_key)],
    2: [ByHand(children, "ABC"), ByHand(lineage, "ABC")],
    3: [ByHand(any_later)],
    4: [ByHand(directly)],
    5: [ByHand(without("N"))],
    6: [ByHand(not_directly)],
    7: [ByHand(chains(1, 100))],
    8: [ByHand(runs)],
    9: [ByHand(choices)],
    10: [ByHand(until, "ABNU"), ByHand(without("U"), "ABNU")],
    11: [ByHand(chains(2, 4), "ABBC")],
    12: [ByHand(greedy, "ABBC")],
    13: [ByHand(maybe), ByHand(two_maybes, "ABCD")],
    14: [ByHand(groups(True), "ABC"), ByHand(groups(False), "ABC")],
    15: [ByHand(above, "ABN"), ByHand(rising, "ABN"), ByHand(rising_from_a, "ABN")],
    16: [ByHand(silence_after, "ABN", 100)],
    17: [ByHand(silence_between, "ABC", 100)],
    18: [ByHand(silence_before, "ABN", 200)],
    19: [ByHand(any_order)],
    20: [ByHand(either)],
    21: [
        ByHand(once),
        ByHand(in_parts(once)),
        ByHand(lambda events: disjoint(a_then_b(events))),
    ],
    22: [ByHand(lambda events: disjoint(bursts(events)), "AAAAB", 60, 20)],
    23: [ByHand(hourly, "ABN", 1200)],
    24: [ByHand(three_of_four, "ABCDN", 900)],
    25: [ByHand(in_parts(many_values), "A", 2, 60)],
    26: [ByHand(gaps, "ABC", 3, 20)],
    27: [ByHand(second_b)],
    28: [ByHand(sums, "AAAC", 1, 20)],
}
