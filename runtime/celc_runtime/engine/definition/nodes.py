"""Matches by the definitions: a formula as a tree of nodes, and the matches of each node.

This runs where nothing faster can: for conditions between events in long absent patterns, below
nested selectors and AND, and for conditions on the label sets of one round of an iteration. The
matches of a formula are built from the matches of its parts, as the definition of the language
says. A condition may name labels of an enclosing scope. It then stays an open question
(`open_questions`). So a part does not depend on what is around it, and its matches are kept for
each end event.

*Cost*: that of the definitions, exponential in the number of events for iterations. The automaton
of the relaxed formula decides at which events matches are searched at all.

Long: a class for each kind of node, and they call each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from celc_runtime.engine.definition.instants import ALONE, FIRST, LAST
from celc_runtime.engine.definition.open_questions import (
    ANSWERED,
    Condition,
    Found,
    Labels,
    NoneInGap,
    NoneOf,
    Open,
    Questions,
    Stretch,
)
from celc_runtime.engine.definition.preferences import Support, cases_against


class Node(ABC):
    """A part of a formula."""

    def ending(self, stretch: Stretch, end: int) -> list[Found]:
        """The matches of this node that begin in the stretch and end at `end`, each once."""
        key = (id(self), end)
        stretch.budget.spend()
        known = stretch.memo.get(key)
        if known is None:
            found: dict[Found, None] = {}
            for match in self._find(stretch, end):
                stretch.budget.spend()
                found[match] = None
            known = stretch.memo[key] = list(found)
        return known

    @abstractmethod
    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        """As `ending`, but some matches may come twice."""


@dataclass(eq=False, slots=True)
class OneEvent(Node):
    """An event with one of the symbols. Its match covers the whole instant of the event."""

    symbols: tuple[int, ...]
    labels: tuple[str, ...]

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        start = first_of_instant(stretch, end)
        if start is None:
            return
        for event in range(start, end + 1):
            if stretch.symbols[event] in self.symbols:
                marked = ((event, frozenset(self.labels)),) if self.labels else ()
                if not stretch.begins:
                    yield Found(start, end, marked, ANSWERED)
                    continue
                begin = stretch.begins[event]
                reaches = bisect_left(stretch.times, begin)
                yield Found(reaches, end, marked, ANSWERED, (begin, start, event))


@dataclass(eq=False, slots=True)
class Alternatives(Node):
    """OR."""

    parts: tuple[Node, ...]

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        for part in self.parts:
            yield from part.ending(stretch, end)


@dataclass(eq=False, slots=True)
class Then(Node):
    """`;`, or `:` where `contiguous`."""

    left: Node
    right: Node
    contiguous: bool

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        for right in self.right.ending(stretch, end):
            for before in ends_before(stretch, right, self.contiguous):
                for left in self.left.ending(stretch, before):
                    yield joined(left, right)


@dataclass(eq=False, slots=True)
class Rounds(Node):
    """`+`, or `:+` where `contiguous`; from `least` to `most` rounds (None: no limit)."""

    part: Node
    contiguous: bool
    least: int = 1
    most: int | None = None
    _chains: list[_Chain] = field(init=False)

    def __post_init__(self) -> None:
        chain, self._chains = None, []
        written_out = self.least if self.most is None else self.most
        for number in range(1, written_out + 1):
            begins = self.least - (written_out - number) <= 1
            chain = _Chain(self.part, self.contiguous, chain, begins)
            if number == 1 and self.most is None:
                chain.before = chain
            self._chains.append(chain)

    def ending(self, stretch: Stretch, end: int) -> list[Found]:
        """As for every node. A single chain counts its steps and keeps its matches itself."""
        if len(self._chains) == 1:
            return self._chains[0].ending(stretch, end)
        return Node.ending(self, stretch, end)

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        # Shorter chains first. So no chain has to ask all others at once.
        for chain in self._chains[:-1]:
            for earlier in range(stretch.first, end):
                chain.ending(stretch, earlier)
        return self._chains[-1].ending(stretch, end)


@dataclass(eq=False, slots=True)
class _Chain(Node):
    """One more round after those of `before`. `begins`: it can also be the first round."""

    part: Node
    contiguous: bool
    before: _Chain | None
    begins: bool

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        for last in self.part.ending(stretch, end):
            if self.begins:
                yield last
            if self.before is None:
                continue
            for previous in ends_before(stretch, last, self.contiguous):
                for rounds in self.before.ending(stretch, previous):
                    yield joined(rounds, last)


@dataclass(eq=False, slots=True)
class SameOfBoth(Node):
    """AND."""

    left: Node
    right: Node

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        rights: dict[tuple[object, ...], list[Found]] = {}
        for right in self.right.ending(stretch, end):
            rights.setdefault((right[:3], right.begin[:2]), []).append(right)
        for left in self.left.ending(stretch, end):
            for right in rights.get((left[:3], left.begin[:2]), ()):
                yield left._replace(questions=left.questions | right.questions)


@dataclass(eq=False, slots=True)
class UnionOfBoth(Node):
    """ALL."""

    left: Node
    right: Node

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        pairs: list[tuple[Found, Found]] = []
        for latest, earlier in ((self.left, self.right), (self.right, self.left)):
            for at_end in latest.ending(stretch, end):
                for before in range(stretch.first, end + 1):
                    pairs += [(at_end, match) for match in earlier.ending(stretch, before)]
        for one, other in pairs:
            labels = dict(one.labels)
            for event, carried in other.labels:
                labels[event] = labels.get(event, frozenset()) | carried
            marked = tuple(sorted(labels.items(), key=lambda item: item[0]))
            questions = one.questions | other.questions
            start, first = min(one.start, other.start), min(one.begin[1], other.begin[1])
            begin, _, event = min(one.begin, other.begin)
            yield Found(start, end, marked, questions, (begin, first, event))


@dataclass(eq=False, slots=True)
class Without(Node):
    """UNLESS: no match of `right` inside. Its conditions see the labels in `sees`."""

    left: Node
    right: Node
    sees: tuple[str, ...]

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        for match in self.left.ending(stretch, end):
            inside = range(match.start, end + 1)
            # Events with a duration: one may start before the match and end before its other
            # events.
            yield from _unless(
                stretch, match, self.right, inside, frozenset(self.sees), match.begin[0]
            )


@dataclass(eq=False, slots=True)
class NotBetween(Node):
    """`; ! ;`: no match of `middle` strictly between `left` and `right`."""

    left: Node
    middle: Node
    right: Node
    sees: tuple[str, ...]

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        for right in self.right.ending(stretch, end):
            for before in range(stretch.first, right.start):
                for left in self.left.ending(stretch, before):
                    match = joined(left, right)
                    inside = range(before + 1, right.start)
                    yield from _unless(stretch, match, self.middle, inside, frozenset(self.sees))


@dataclass(eq=False, slots=True)
class ThenFirst(Node):
    """`left ; (!absent ; FIRST part){least,most}`: in each round the matches of the part, behind
    what was taken before, that end first. `gap` is absent before the first round.

    Conditions in the part see the labels in `sees` as they are in what was taken before, and those
    in `around` as an enclosing scope binds them further to the left.
    """

    left: Node
    part: Node
    least: int
    most: int | None
    absent: Node | None
    gap: Node | None
    sees: tuple[str, ...]
    around: tuple[str, ...]
    own: tuple[str, ...]  # labels of the part that conditions in `absent` see
    gap_sees: tuple[str, ...]
    """Labels that conditions in `gap` see, and that the left side or the only round binds."""
    gap_rounds: tuple[str, ...]  # those that several rounds bind, all of which count
    _rounds: list[_Round] = field(init=False)

    def __post_init__(self) -> None:
        written_out = self.least if self.most is None else self.most
        before: list[Node] = [self.left]
        self._rounds = []
        for number in range(1, written_out + 1):
            this = _Round(self, before, is_first=number == 1)
            self._rounds.append(this)
            before = [this]
        if self.most is None:
            last = _Round(self, before, is_first=False)
            last.before.append(last)
            self._rounds.append(last)

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        # Earlier ends first. So no round has to ask all others at once.
        for earlier in range(stretch.first, end):
            for one in self._rounds:
                one.ending(stretch, earlier)
        rounds = frozenset(self.gap_rounds)
        for one in self._rounds[self.least - 1 :]:
            for match in one.ending(stretch, end):
                asked = frozenset(q for q in match.questions if isinstance(q, NoneInGap))
                rest = stretch.answered(asked, rounds, match)
                if rest is not None:
                    yield match._replace(questions=(match.questions - asked) | rest)

    def soonest(self, stretch: Stretch, before: Found, end: int) -> Iterable[Found]:
        """The matches of the part that end at an event and are the first ones behind a match, with
        the questions of which that depends."""
        here = [m for m in self._behind(stretch, before, end) if m.start > before.end]
        if not here:
            return
        cases: set[Questions] = set()
        for earlier in range(before.end + 1, end):
            for other in self._behind(stretch, before, earlier):
                if other.start > before.end:
                    if other.questions == ANSWERED:
                        return
                    cases.add(other.questions)
        for match in here:
            if cases:
                match = match._replace(questions=match.questions | {NoneOf(frozenset(cases))})
            if self.absent is not None:
                yield from self._without(stretch, before, match)
            else:
                yield match

    def _behind(self, stretch: Stretch, before: Found, end: int) -> Iterable[Found]:
        """The matches of the part at an end, with what the match before answers; without those
        of which a condition is not TRUE."""
        for match in self.part.ending(stretch, end):
            questions = self._seen(stretch, match.questions, before)
            if questions is not None:
                yield match._replace(questions=questions)

    def _seen(self, stretch: Stretch, questions: Questions, before: Found) -> Questions | None:
        if not questions:
            return questions
        around = frozenset(self.around)
        left = frozenset(one.to_the_left(around, before.end) for one in questions)
        return stretch.answered(left, frozenset(self.sees), before)

    def _without(self, stretch: Stretch, before: Found, match: Found) -> Iterable[Found]:
        """The match, unless what must be absent is between it and the match before."""
        assert self.absent is not None
        cases = set()
        for end in range(before.end + 1, match.start):
            for other in self.absent.ending(stretch, end):
                if other.start <= before.end:
                    continue
                own = stretch.answered(other.questions, frozenset(self.own), match)
                questions = None if own is None else self._seen(stretch, own, before)
                if questions == ANSWERED:
                    return
                if questions is not None:
                    cases.add(questions)
        if cases:
            match = match._replace(questions=match.questions | {NoneOf(frozenset(cases))})
        yield match


@dataclass(eq=False, slots=True)
class _Round(Node):
    """A round of a FIRST, behind the matches of some nodes."""

    whole: ThenFirst
    before: list[Node]
    is_first: bool

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        gap = self.whole.gap if self.is_first else None
        sees = frozenset(self.whole.gap_sees)
        for earlier in range(stretch.first, end):
            for node in self.before:
                for left in node.ending(stretch, earlier):
                    for match in self.whole.soonest(stretch, left, end):
                        found = joined(left, match)
                        if gap is None:
                            yield found
                            continue
                        inside = range(earlier + 1, match.start)
                        for one in _unless(stretch, found, gap, inside, sees):
                            new = one.questions - found.questions
                            later = {NoneInGap(q.cases) for q in new if isinstance(q, NoneOf)}
                            yield found._replace(questions=found.questions | later)


@dataclass(eq=False, slots=True)
class NotBefore(Node):
    """`!ψ FOR d ; φ`: no match of `absent` ends before `part` and begins within d of its start."""

    part: Node
    absent: Node
    length: int  # the number of d among the windows of the plan
    sees: tuple[str, ...]  # the labels that conditions in `absent` see

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        keys, floors = stretch.window(self.length)
        whole = stretch.whole or stretch  # events before the window count too
        for match in self.part.ending(stretch, end):
            events = range(whole.first, match.start)
            if stretch.begins:
                # What is absent may start at any time; its end is near enough to the start.
                floor = floors[stretch.entries[match.begin[2]] - stretch.base]
                inside = events[bisect_left(events, floor, key=stretch.times.__getitem__) :]
                yield from _unless(whole, match, self.absent, inside, frozenset(self.sees), None, 0)
                continue
            floor = floors[stretch.entries[match.start] - stretch.base]
            outside = bisect_left(
                events, floor, key=lambda event: keys[stretch.entries[event] - stretch.base]
            )
            inside = events[outside:]
            before = whole.beginning_at(inside.start)
            yield from _unless(before, match, self.absent, inside, frozenset(self.sees))


@dataclass(eq=False, slots=True)
class NotAfter(Node):
    """`φ ; !ψ FOR d`: no match of `absent` begins after `part` and ends within d of it."""

    part: Node
    absent: Node
    length: int  # the number of d among the windows of the plan
    from_start: bool  # d counts from the first event of φ
    sees: tuple[str, ...]  # the labels that conditions in `absent` see

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        keys, floors = stretch.window(self.length)
        for match in self.part.ending(stretch, end):
            place = match.start if self.from_start else match.end
            key = keys[stretch.entries[place] - stretch.base]
            if self.from_start and stretch.begins:
                key = match.begin[0]
            events = range(match.end + 1, len(stretch.entries))
            fitting = bisect_right(
                events, key, key=lambda event: floors[stretch.entries[event] - stretch.base]
            )
            inside = events[:fitting]
            # A selector in the absent part reads the stream from its beginning.
            behind = (stretch.whole or stretch).beginning_at(inside.start)
            yield from _unless(behind, match, self.absent, inside, frozenset(self.sees))


def _unless(
    stretch: Stretch,
    match: Found,
    absent: Node,
    inside: range,
    sees: Labels,
    begin: int | None = None,
    first: int | None = None,
) -> Iterable[Found]:
    """The match, unless a match of `absent` lies inside a range of events.

    For events with a duration: begin, the earliest time at which such a match can start; first, the
    event to look from in place of the first one of the range.
    """
    cases = set()
    first = inside.start if first is None else first
    for end in inside:
        for other in absent.ending(stretch, end):
            if other.start >= first and (begin is None or other.begin[0] >= begin):
                questions = stretch.answered(other.questions, sees, match)
                if questions == ANSWERED:
                    return
                if questions is not None:
                    cases.add(questions)
    yield match._replace(questions=match.questions | {NoneOf(frozenset(cases))}) if cases else match


@dataclass(eq=False, slots=True)
class Satisfying(Node):
    """FILTER: the matches for which the conditions hold. They see the labels in `own` as of
    here."""

    part: Node
    conditions: tuple[Condition, ...]
    own: tuple[str, ...]

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        asked: Questions = frozenset(Open(condition, ()) for condition in self.conditions)
        own = frozenset(self.own)
        for match in self.part.ending(stretch, end):
            questions = stretch.answered(asked, own, match)
            if questions is not None:
                yield match._replace(questions=match.questions | questions)


@dataclass(eq=False, slots=True)
class Fitting(Node):
    """`WITHIN[w](φ)`; `window` is the number of w among the windows of the plan."""

    part: Node
    window: int

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        if stretch.world:
            least = stretch.world[end] - stretch.lengths[self.window]
            first = max(stretch.first, bisect_left(stretch.world, least))
            yield from self.part.ending(stretch.beginning_at(first), end)
            return
        keys, floors = stretch.window(self.window)
        floor = floors[stretch.entries[end] - stretch.base]
        if stretch.begins:
            yield from (m for m in self.part.ending(stretch, end) if m.begin[0] >= floor)
            return
        # Keys never fall. So matches that begin before the window need no search.
        events = range(stretch.first, end + 1)
        outside = bisect_left(
            events, floor, key=lambda event: keys[stretch.entries[event] - stretch.base]
        )
        if outside < len(events):
            yield from self.part.ending(stretch.beginning_at(events[outside]), end)


@dataclass(eq=False, slots=True)
class InScope(Node):
    """A scope. It answers open questions inside about the labels that it binds."""

    part: Node
    labels: tuple[str, ...]

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        labels = frozenset(self.labels)
        for match in self.part.ending(stretch, end):
            questions = stretch.answered(match.questions, labels, match)
            if questions is not None:
                yield match._replace(questions=questions)


@dataclass(eq=False, slots=True)
class ChosenBy(Node):
    """A selector."""

    strategy: str  # as in the query; NXT_OF_ENDS is NXT among matches with the same start and end
    part: Node
    in_window: bool  # it compares only the matches of this stretch, as SELECT does

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        seen = stretch if self.in_window or stretch.whole is None else stretch.whole
        if seen is not stretch:
            found = self.ending(seen, end)
            yield from (one for one in found if first_event(stretch, one) >= stretch.first)
            return
        matches = self.part.ending(stretch, end)
        if self.strategy != "NXT_OF_ENDS":
            yield from self._chosen(stretch, matches)
            return
        by_start: dict[tuple[int, int], list[Found]] = {}
        for match in matches:
            time = match.begin[0] if stretch.begins else 0
            by_start.setdefault((time, first_event(stretch, match)), []).append(match)
        for group in by_start.values():
            yield from self._chosen(stretch, group)

    def _chosen(self, stretch: Stretch, matches: Sequence[Found]) -> Iterable[Found]:
        """The matches that the selector chooses among these. All end at one event."""
        supports = [tuple(event for event, _ in match.labels) for match in matches]
        if self.strategy == "STRICT":
            for match, support in zip(matches, supports, strict=True):
                if not support or span_of(stretch, support) == len(support) - 1:
                    yield match
            return
        rivals: dict[Support, set[Questions]] = {}
        for match, support in zip(matches, supports, strict=True):
            rivals.setdefault(support, set()).add(match.questions)
        cases_of = cases_against(self.strategy, rivals, stretch.budget)
        for match, support in zip(matches, supports, strict=True):
            cases = cases_of[support]
            if not cases:
                yield match
            elif ANSWERED not in cases:
                yield match._replace(questions=match.questions | {NoneOf(cases)})


def first_event(stretch: Stretch, match: Found) -> int:
    """The first event of the instant in which the first event of a match ends."""
    return match.begin[1] if stretch.begins else match.start


def span_of(stretch: Stretch, support: Sequence[int]) -> int:
    """The position of a support's last event minus that of its first."""
    return stretch.positions[support[-1]] - stretch.positions[support[0]]


@dataclass(eq=False, slots=True)
class Relabelled(Node):
    """Changes the labels of each event: (`add`, x), (`rename`, x, y) or (`keep`, x, …)."""

    part: Node
    changes: tuple[tuple[str, ...], ...]

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        for match in self.part.ending(stretch, end):
            yield match._replace(labels=self.relabelled(match.labels))

    def relabelled(self, labels: tuple[tuple[int, Labels], ...]) -> tuple[tuple[int, Labels], ...]:
        marked = ((event, self._changed(carried)) for event, carried in labels)
        return tuple(item for item in marked if item[1])

    def _changed(self, labels: Labels) -> Labels:
        for kind, *names in self.changes:
            if kind == "keep":
                labels = labels & frozenset(names)
            elif kind == "add":
                labels = labels | frozenset(names) if labels else labels
            elif names[0] in labels:
                labels = (labels - {names[0]}) | {names[1]}
        return labels


Fact: TypeAlias = tuple[Any, ...]
"""A fact about a label's events: (`some`, x, symbols, holds), (`first` or `last`, x, symbols),
(`count`, x, truths), (`not`, fact) or (`any`, facts…)."""


@dataclass(eq=False, slots=True)
class WhereFact(Node):
    """The matches for which a fact is true."""

    part: Node
    fact: Fact

    def _find(self, stretch: Stretch, end: int) -> Iterable[Found]:
        return (m for m in self.part.ending(stretch, end) if _is_true(self.fact, stretch, m))


def _is_true(fact: Fact, stretch: Stretch, match: Found) -> bool:
    kind, *rest = fact
    if kind == "not":
        return not _is_true(rest[0], stretch, match)
    if kind == "any":
        return any(_is_true(one, stretch, match) for one in rest)
    events = stretch.events_of(rest[0], match)
    if kind == "count":
        return bool(rest[1][min(len(events), len(rest[1]) - 1)])
    satisfy = [stretch.symbols[event] in rest[1] for event in events]
    if kind == "some":
        return rest[2] in satisfy
    return bool(satisfy) and satisfy[0 if kind == "first" else -1]


def first_of_instant(stretch: Stretch, end: int) -> int | None:
    """The first event of the instant that `end` completes; None: it completes none."""
    if stretch.places[end] == ALONE:
        return end
    if stretch.places[end] != LAST:
        return None
    start = end
    while stretch.places[start] != FIRST:
        start -= 1
    return start


def joined(left: Found, right: Found) -> Found:
    labels = left.labels + right.labels
    return Found(left.start, right.end, labels, left.questions | right.questions, left.begin)


def ends_before(stretch: Stretch, match: Found, contiguous: bool) -> Iterable[int]:
    """The events at which a match that comes before another can end.

    If events last, the one before a contiguous match ends in the instant before the end of this
    match, and before its start.
    """
    if not contiguous:
        return range(stretch.first, match.start)
    start = match.start
    if stretch.begins:
        begin = first_of_instant(stretch, match.end)
        if begin is None or start < begin:
            return ()
        start = begin
    if start > stretch.first and stretch.positions[start - 1] == stretch.positions[start] - 1:
        return (start - 1,)
    return ()


def first_in(keys: Sequence[int], floor: int, first: int) -> int:
    """The first index from `first` on whose key is not below `floor`. Keys ascend."""
    return bisect_left(keys, floor, lo=min(first, len(keys)))
