"""Streams on which two representations are compared: all short ones over classes of events, and
longer ones that follow the formula.

A class is a way in which an event can answer the conditions of a query. The values of its
attributes lie at the constants of the conditions and beside them. For conditions between events
each attribute has a few values, NULL among them, and each of these is a class of its own. Where
conditions or windows measure time, the distance of an event from the one before is a part of its
class.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import product
from typing import Any, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.formula import DataType
from celc.verify.prove.expressions import UNKNOWN, Meaning, fitted, parts_of
from celc.verify.prove.verdict import NotUnderstoodError

Event: TypeAlias = dict[str, Any]

MOST_CLASSES = 48  # of events, for each query; of more some are drawn
_MOST_TRIED = 3000  # combinations of values of which classes are made
_EXHAUSTIVE = 12_000  # streams that are tried of all classes
_FOLLOWING = 400  # longer streams
_DAY = 86_400_000_000  # microseconds
_LONGEST = 8  # events of a longer stream, where the formula does not ask for more


@frozen
class Classes:
    """The classes of events of a query."""

    events: tuple[Event, ...]  # one event of each class; `core.TYPE` is its type
    gaps: tuple[dict[str, Any], ...]
    """How much the attributes that never fall grow from the event before; one choice for each."""
    rising: frozenset[str]
    is_whole: bool  # whether there are no more classes
    _made: dict[Any, Event] = field(default_factory=dict)

    def streams(self, most: int = _EXHAUSTIVE) -> tuple[int, int]:
        """The greatest length of which all streams are tried, and how many these are."""
        ways = len(self.events) * len(self.gaps)
        length, number, last = 0, 0, 1
        while number + last * ways <= most or length < 1:
            last *= ways
            number += last
            length += 1
            if length == 12:
                break
        return length, number

    def event(self, number: int, gap: int, before: Event | None) -> Event:
        """An event of a class behind another one. Equal ones are one object, so what is known of
        an event is known of it in every stream."""
        if not self.rising:
            return self.events[number]
        steps = self.gaps[gap]
        risen = tuple([steps[n] if before is None else before[n] + steps[n] for n in self.rising])
        made = self._made.get((number, risen))
        if made is None:
            made = {**self.events[number], **dict(zip(self.rising, risen, strict=True))}
            self._made[number, risen] = made
        return made

    def of_type(self, text: str) -> list[int]:
        """The classes of a type."""
        return [n for n, event in enumerate(self.events) if event[core.TYPE] == text]


# --- what the conditions ask ----------------------------------------------------------------------


_COUNTED = (*core.NUMBERS, *core.TIMES, DataType.TIMESTAMP_NTZ, DataType.INTERVAL)
_PREDICATES = core.Comparison | core.Membership | core.PatternMatch | core.NullTest


def _predicates(formula: core.Formula) -> list[core.Predicate]:
    return [one for one in parts_of(formula) if isinstance(one, _PREDICATES)]


def _attributes(part: Any) -> dict[str, DataType]:
    found: dict[str, DataType] = {}
    for node in parts_of(part):
        if isinstance(node, core.AttributeValue | core.Previous):
            found[node.attribute] = node.type
        elif isinstance(node, core.Aggregate):
            for name in node.attributes:
                found.setdefault(name, node.type)
    return found


def _is_of_one_event(predicate: core.Predicate) -> bool:
    leaves = [
        one
        for one in parts_of(predicate)
        if isinstance(one, core.AttributeValue | core.Previous | core.Aggregate)
    ]
    single = all(isinstance(one, core.AttributeValue) for one in leaves)
    return single and len({one.label for one in leaves}) <= 1


def _constants(predicate: core.Predicate) -> list[Any]:
    found: list[Any] = []
    for node in parts_of(predicate):
        if isinstance(node, core.Constant) and node.value is not None:
            found.append(node.value)
        elif isinstance(node, core.Membership):
            found += node.values[:4]
        elif isinstance(node, core.PatternMatch):
            plain = node.pattern.replace("\\", "")
            found += [plain.replace("%", "").replace("_", "q"), plain.replace("%", "zz")]
    return found


# --- values ---------------------------------------------------------------------------------------


def _values(type_: DataType, constants: Sequence[Any], *, several: bool) -> list[Any]:
    """Values of an attribute, those first that matter most; `several`: it is compared with that of
    other events, and each value is a class."""
    if type_ is DataType.BOOLEAN:
        return [True, False, None]
    if type_ is DataType.STRING:
        texts = [one for one in constants if isinstance(one, str)]
        found: list[Any] = [*texts, *(one + "!" for one in texts[:3]), "p", "q", None]
        return list(dict.fromkeys(found))[: 4 if several else 12]
    numbers = [one for one in constants if not isinstance(one, str | bool)]
    numbers = [one for one in numbers if one == one and abs(one) != float("inf")]
    step = 1
    found = [one + by for one in dict.fromkeys(numbers) for by in (0, step, -step)]
    if several or not found:
        found = [*found[:2], None, *found[2:3], 1, 2, 3]
    found.append(None)
    if type_ in (DataType.FLOAT, DataType.DOUBLE):
        found.append(float("nan"))
    if isinstance(type_, core.DecimalType):
        known_ones = [one if one is None else int(one) for one in found]
        most = 10**type_.precision  # what is not below it is no value of the type
        kept = [one for one in known_ones if one is None or abs(one) < most]
    else:
        kept = [one if one is None else _fit(one, type_) for one in found]
    known: dict[str, Any] = {}
    for one in kept:
        known.setdefault(repr(one), one)
    return list(known.values())[: 5 if several else 14]


def _fit(value: Any, type_: DataType) -> Any:
    if type_ is DataType.DATE and abs(value) > _DAY // 2:
        value = int(value) // _DAY  # a duration beside it, in days
    if type_ in (DataType.FLOAT, DataType.DOUBLE):
        return fitted(value, type_)
    return None if value != value else fitted(int(value), type_)


# --- classes --------------------------------------------------------------------------------------


def classes_of(
    query: core.Query, windows: Iterable[core.Window], more: Sequence[Any] = ()
) -> Classes:
    """The classes of the events of a query. Raises NotUnderstoodError for values that no class has.

    `windows`: those that the comparison reads; `more`: other representations with conditions.
    """
    found_in = (query.formula, *more)
    predicates = list(dict.fromkeys(one for part in found_in for one in _predicates(part)))
    asked: dict[str, DataType] = {}
    constants: dict[str, list[Any]] = {}
    several: set[str] = set()
    for predicate in predicates:
        here = _attributes(predicate)
        asked |= here
        for name in here:
            constants.setdefault(name, []).extend(_constants(predicate))
            if not _is_of_one_event(predicate):
                several.add(name)
    asked.pop(core.TYPE, None)
    order = query.order_by[0] if query.order_by else None
    rising = {one.name: one.type for one in query.order_by if one.type in _COUNTED}
    texts = [one.name for one in query.order_by if one.name not in rising]
    sizes: dict[str, list[Any]] = {}
    for window in windows:
        attribute = order if window.attribute is None else window.attribute
        if window.unit is not core.WindowUnit.EVENTS and attribute is not None:
            rising[attribute.name] = attribute.type
            day = _DAY if attribute.type is DataType.DATE else 1
            is_time = window.unit is core.WindowUnit.MICROSECONDS
            sizes.setdefault(attribute.name, []).append(
                int(window.size) // day if is_time else window.size
            )
    gaps = _gaps(query, rising, sizes, constants)
    free = {n: type_ for n, type_ in asked.items() if n not in rising and n not in texts}
    events, is_whole = _events(query, free, constants, several, predicates)
    for event in events:
        event.update(dict.fromkeys(texts, "p"))
    return Classes(tuple(events), gaps, frozenset(rising), is_whole)


def _gaps(
    query: core.Query,
    rising: dict[str, DataType],
    sizes: dict[str, list[Any]],
    constants: dict[str, list[Any]],
) -> tuple[dict[str, Any], ...]:
    made: dict[str, list[Any]] = {}
    for name in rising:
        limits = [one for one in sizes.get(name, []) if one > 0]
        known = [one for one in constants.get(name, ()) if not isinstance(one, str | bool)]
        limits += [abs(one) for one in known if one == one and 0 < abs(one) < 1 << 50]
        if rising[name] is DataType.DATE:
            limits = [max(1, one // _DAY) if one > _DAY // 2 else one for one in limits]
        limits = list(dict.fromkeys(limits))[:2]
        ways = [0] if query.simultaneous else []
        ways += [1, *(one + by for one in limits for by in (0, 1))]
        made[name] = list(dict.fromkeys(ways))
    most = max(map(len, made.values()), default=1)
    return tuple(
        {name: ways[min(number, len(ways) - 1)] for name, ways in made.items()}
        for number in range(most)
    )


def _events(
    query: core.Query,
    asked: dict[str, DataType],
    constants: dict[str, list[Any]],
    several: set[str],
    predicates: Sequence[core.Predicate],
) -> tuple[list[Event], bool]:
    types: dict[str, core.EventType] = {}
    for node in parts_of(query.formula):
        if isinstance(node, core.Atom):
            types.update({f"{one.stream}>{one.name}": one for one in node.types})
    single = [one for one in predicates if _is_of_one_event(one)]
    draw = random.Random(len(predicates))
    found: dict[Any, Event] = {}
    is_whole = True
    for text, event_type in types.items():
        declared = {one.name: one.type for one in event_type.attributes}
        domains = {
            name: _values(declared[name], constants.get(name, ()), several=name in several)
            for name in asked
            if name in declared
        }
        combined = 1
        for values in domains.values():
            combined *= len(values)
        if combined <= _MOST_TRIED:
            ways: Iterable[tuple[Any, ...]] = product(*domains.values())
        else:
            is_whole = False
            ways = [tuple(map(draw.choice, domains.values())) for _ in range(_MOST_TRIED)]
        for way in ways:
            event = {core.TYPE: text, **dict(zip(domains, way, strict=True))}
            key = (text, _answers(event, single), tuple(repr(event.get(n)) for n in several))
            found.setdefault(key, event)
    kept = list(found.values())
    if len(kept) > MOST_CLASSES:
        is_whole = False
        kept = draw.sample(kept, MOST_CLASSES)
    declared_types = [one for stream in query.streams for one in stream.event_types]
    texts = [f"{one.stream}>{one.name}" for one in declared_types if not one.is_rest]
    others = [text for text in texts if text not in types]
    return [*kept, *({core.TYPE: text} for text in others[:1])], is_whole


def _answers(event: Event, predicates: Sequence[core.Predicate]) -> tuple[bool, ...]:
    meaning = Meaning(lambda leaf: event.get(leaf.attribute))  # type: ignore[arg-type]
    return tuple(bool(meaning.truth(one)) for one in predicates)


# --- longer streams -------------------------------------------------------------------------------


def following(
    query: core.Query, classes: Classes, number: int = _FOLLOWING
) -> Iterator[list[Event]]:
    """Streams that follow the formula: the events of some way to match it, most of which satisfy
    the conditions on them alone, with others between them. The same ones in each run."""
    draw = random.Random(len(classes.events))
    wanted = _Wanted(query.formula, classes)
    for _ in range(number):
        picked = _way(query.formula, frozenset(), wanted, draw)
        stream: list[Event] = []
        for choices in picked[:12]:
            while draw.random() < 0.18 and len(stream) < 12:
                _add(stream, draw.randrange(len(classes.events)), classes, draw)
            good = draw.choice(choices) if choices else draw.randrange(len(classes.events))
            other = draw.random() < 0.08
            _add(stream, draw.randrange(len(classes.events)) if other else good, classes, draw)
        while draw.random() < 0.4 and len(stream) < _LONGEST:
            _add(stream, draw.randrange(len(classes.events)), classes, draw)
        yield stream


def _add(stream: list[Event], number: int, classes: Classes, draw: random.Random) -> None:
    gaps = len(classes.gaps)
    gap = 0 if draw.random() < 0.5 else draw.randrange(gaps)
    stream.append(classes.event(number, gap, stream[-1] if stream else None))


class _Wanted:
    """The classes that satisfy the conditions on one event, by the labels of the event."""

    def __init__(self, formula: core.Formula, classes: Classes) -> None:
        self._classes = classes
        self._clauses: dict[str, list[core.Clause]] = {}
        for node in parts_of(formula):
            if not isinstance(node, core.Clause) or len(node.labels) != 1:
                continue
            if all(map(_is_of_one_event, node.predicates)):
                self._clauses.setdefault(node.labels[0], []).append(node)
        self._known: dict[Any, list[int]] = {}

    def of(self, atom: core.Atom, labels: frozenset[str]) -> list[int]:
        key = (atom.label, labels)
        if key not in self._known:
            texts = [f"{one.stream}>{one.name}" for one in atom.types]
            numbers = [n for text in texts for n in self._classes.of_type(text)]
            asked = [c for label in {atom.label, *labels} for c in self._clauses.get(label, ())]
            good = [n for n in numbers if all(self._satisfies(n, one) for one in asked)]
            self._known[key] = good or numbers
        return self._known[key]

    def _satisfies(self, number: int, clause: core.Clause) -> bool:
        event = self._classes.events[number]

        def read(leaf: Any) -> Any:
            return UNKNOWN if leaf.attribute in self._classes.rising else event.get(leaf.attribute)

        meaning = Meaning(read)
        return any(meaning.truth(one) is not False for one in clause.predicates)


def _way(
    formula: core.Formula, labels: frozenset[str], wanted: _Wanted, draw: random.Random
) -> list[list[int]]:
    """For each event of a way to match a formula the classes that it may have; sometimes with what
    must be absent."""

    def of(part: core.Formula, more: frozenset[str] = frozenset()) -> list[list[int]]:
        return _way(part, labels | more, wanted, draw)

    def seldom(part: core.Formula | None) -> list[list[int]]:
        return of(part) if part is not None and draw.random() < 0.3 else []

    match formula:
        case core.Atom():
            return [wanted.of(formula, labels)]
        case core.As(operand=operand, label=label):
            return of(operand, frozenset({label}))
        case core.Rename(operand=operand, new=new):
            return of(operand, frozenset({new}))
        case core.Sequence(operands=operands):
            return [one for part in operands for one in of(part)]
        case core.Disjunction(operands=operands):
            return of(draw.choice(operands))
        case core.Iteration(least=least, most=most):
            number = least + draw.choice((0, 0, 1, 2))
            number = number if most is None else min(number, most)
            return [one for _ in range(min(number, 10)) for one in of(formula.operand)]
        case core.Conjunction(left=left, right=right):
            return of(draw.choice((left, right)))
        case core.All(left=left, right=right):
            sides = [left, right]
            draw.shuffle(sides)
            return [*of(sides[0]), *of(sides[1])]
        case core.Unless(left=left, right=right):
            return (
                [*of(left), *seldom(right)] if draw.random() < 0.5 else [*seldom(right), *of(left)]
            )
        case core.Absence(left=left, middle=middle, right=right):
            return [*of(left), *seldom(middle), *of(right)]
        case core.AbsenceBefore(operand=operand, absent=absent):
            return [*seldom(absent), *of(operand)]
        case core.AbsenceAfter(operand=operand, absent=absent):
            return [*of(operand), *seldom(absent)]
        case core.ThenFirst():
            rounds = [one for _ in range(formula.least) for one in of(formula.operand)]
            return [*of(formula.left), *seldom(formula.gap), *seldom(formula.absent), *rounds]
        case _:
            return of(formula.operand)


def check_understood(query: core.Query) -> None:
    """Raises NotUnderstoodError for a query whose streams have a meaning of their own."""
    if query.lasting:
        raise NotUnderstoodError("events that last, and queries over queries")
