"""Conditions on events → symbol classes: all that an automaton needs to know of an event.

Two events that satisfy the same conditions of the query are the same to it. A *symbol* is such a
class: a minterm (which conditions hold) over the conditions that can apply to one event type, never
over those of all types. Minterms that no event can have are dropped: comparisons of one attribute
with constants cut its values into finitely many pieces, so the truths that they can take together
are found exactly; conditions of any other shape are taken to be independent, which can leave a
class that no event falls into, and does no harm.

Symbol 0 is always the class of events that satisfy nothing the query asks about.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from operator import or_

from celc import formula as core
from celc.deadline import look
from celc.errors import CelError, Diagnostic, error
from celc.formula import DataType, EventType, Predicate
from celc.normal_form import Event, EventClause, NormalForm, operands_of
from celc.source import Source, Span


@dataclass(frozen=True, slots=True)
class TypeConditions:
    """What the atoms of one event type ask for, in order of appearance.

    A *group* are clauses that no atom asks for without each other: they are one condition, since
    it never matters which of them fails. `groups[k]` are the clauses of group k.
    """

    type: EventType
    groups: tuple[tuple[EventClause, ...], ...]

    def bits(self, some: Sequence[EventClause]) -> int:
        """Some of the clauses, whole groups, as a bit set: bit k is group k."""
        wanted = set(some)
        return sum(1 << k for k, group in enumerate(self.groups) if wanted.issuperset(group))


@dataclass(frozen=True, slots=True)
class Symbol:
    """A class of events: those of `type` that satisfy exactly the groups in `truth`.

    Bit k of `truth` is group k of the type's `TypeConditions`. The class of all other events has
    type None.
    """

    type: EventType | None
    truth: int


@dataclass(frozen=True, slots=True)
class Alphabet:
    """All symbols of a query; `symbols[0]` is the class of events that match no atom."""

    types: tuple[TypeConditions, ...]
    symbols: tuple[Symbol, ...]
    # By stream and name of the type: every event of a formula asks for its own.
    _conditions: dict[tuple[str, str], TypeConditions] = field(
        init=False, repr=False, compare=False
    )
    _numbers: dict[tuple[str, str], list[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        conditions = {(t.type.stream, t.type.name): t for t in self.types}
        numbers: dict[tuple[str, str], list[int]] = {key: [] for key in conditions}
        for number, symbol in enumerate(self.symbols):
            if symbol.type is not None:
                numbers[symbol.type.stream, symbol.type.name].append(number)
        object.__setattr__(self, "_conditions", conditions)
        object.__setattr__(self, "_numbers", numbers)

    def conditions_on(self, event_type: EventType) -> TypeConditions:
        """What the query asks of events of one of its types."""
        return self._conditions[event_type.stream, event_type.name]

    def numbered(self, event_type: EventType) -> tuple[tuple[int, Symbol], ...]:
        """The symbols of one of the types, with their numbers."""
        numbers = self._numbers[event_type.stream, event_type.name]
        return tuple((number, self.symbols[number]) for number in numbers)

    def matching(self, event_type: EventType, clauses: Sequence[EventClause]) -> tuple[int, ...]:
        """The symbols whose events are of the type and satisfy all of the clauses."""
        needed = self.conditions_on(event_type).bits(clauses)
        return tuple(
            number
            for number, symbol in self.numbered(event_type)
            if symbol.truth & needed == needed
        )


_MAX_GROUPS = 60
"""Conditions on one event type: the kernel keeps their truths in the bits of one number."""


def symbol_classes(
    form: NormalForm,
    facts: Iterable[tuple[EventType, EventClause]],
    source: Source,
    span: Span,
    *,
    max_symbols: int = 4000,
) -> Alphabet:
    """The alphabet of a formula in LP-normal form, and of `facts`: what else is asked of events.

    Raises CelError where one event type has too many conditions, or some with more than
    `max_symbols` possible combinations.
    """
    needs: dict[EventType, dict[tuple[EventClause, ...], None]] = {}
    for event in events_of(form):
        look(event.span)
        needs.setdefault(event.type, {}).setdefault(event.clauses)
    asked = {event_type: list(found) for event_type, found in needs.items()}
    for event_type, clause in facts:
        asked[event_type].append((clause,))
    types = tuple(TypeConditions(t, _groups(found)) for t, found in asked.items())
    symbols = [Symbol(None, 0)]
    for conditions in types:
        truths = None
        if len(conditions.groups) <= _MAX_GROUPS:
            truths = possible_truths(conditions.groups, limit=max_symbols)
        if truths is None:
            raise CelError(source, (_too_many_classes(conditions, span, max_symbols),))
        wanted = [conditions.bits(need) for need in needs[conditions.type]]
        symbols.extend(
            Symbol(conditions.type, truth)
            for truth in sorted(truths)
            if any(truth & need == need for need in wanted)
        )
    return Alphabet(types, tuple(symbols))


def _too_many_classes(conditions: TypeConditions, span: Span, max_symbols: int) -> Diagnostic:
    """At the first condition that is too much, if it has a place; `span` is the formula."""
    count = len(conditions.groups)
    asked = f"the {count} different conditions on events of type '{conditions.type.name}'"
    if count > _MAX_GROUPS:
        first, problem = _MAX_GROUPS, f"{asked} are more than the limit of {_MAX_GROUPS}"
        help_ = (
            "use fewer conditions on this type (IN for several values of one attribute is one "
            "condition), or split the query"
        )
    else:
        first = next(
            k
            for k in range(count)
            if possible_truths(conditions.groups[: k + 1], limit=max_symbols) is None
        )
        problem = f"{asked} can hold in more than {max_symbols:,} combinations"
        help_ = (
            "conditions on different attributes double the combinations, comparisons of one "
            "attribute with constants only add to them: use fewer of the former, or split the query"
        )
    predicates = conditions.groups[first][0].predicates
    place = predicates[0].span if predicates else span
    return error("too-many-classes", place, problem, help=(help_,))


def events_of(form: NormalForm) -> Iterable[Event]:
    """The events written in a form, from left to right."""
    if isinstance(form, Event):
        yield form
    for operand in operands_of(form):
        yield from events_of(operand)


def _groups(asked: Sequence[tuple[EventClause, ...]]) -> tuple[tuple[EventClause, ...], ...]:
    """The clauses that are asked for, those together that stand in the same of the lists."""
    places: dict[EventClause, list[int]] = {}
    for number, clauses in enumerate(asked):
        for clause in clauses:
            places.setdefault(clause, []).append(number)
    groups: dict[tuple[int, ...], list[EventClause]] = {}
    for clause, found in places.items():
        groups.setdefault(tuple(found), []).append(clause)
    return tuple(map(tuple, groups.values()))


def possible_truths(groups: Sequence[tuple[EventClause, ...]], *, limit: int) -> set[int] | None:
    """The combinations of groups that can hold together, as bit sets; None past the limit.

    Every predicate belongs to one *factor*: the comparisons of one attribute with constants
    together, each other predicate by itself. Factors are taken to be independent. A clause is an
    OR, so the truth of all clauses is the union of what each factor makes true. A group in which a
    clause has failed for good is as good as one without any truth: that keeps combinations few.
    """
    clauses = [clause for group in groups for clause in group]
    masks, start = [], 0
    for group in groups:
        masks.append((1 << len(group)) - 1 << start)
        start += len(group)
    factors: dict[object, dict[Predicate, int]] = {}
    for index, clause in enumerate(clauses):
        for predicate in clause.predicates:
            key: object = _attribute_compared(predicate) or predicate
            made = factors.setdefault(key, {})
            made[predicate] = made.get(predicate, 0) | 1 << index
    open_after: list[int] = [0]
    for made in reversed(factors.values()):
        open_after.append(reduce(or_, made.values(), open_after[-1]))
    everything = (1 << len(clauses)) - 1
    several = [mask for mask in masks if mask & mask - 1]
    reached = {0}
    for (key, made), still_open in zip(factors.items(), open_after[-2::-1], strict=True):
        outcomes = _outcomes(made) if isinstance(key, str) else (0, *made.values())
        closed = everything & ~still_open
        combined: set[int] = set()
        for outcome in _distinct(outcomes):
            look()
            for before in reached:
                truth = before | outcome
                for mask in several:
                    if truth & mask & closed != mask & closed:
                        truth &= ~mask
                combined.add(truth)
            if len(combined) > limit:
                return None
        reached = combined
    return {
        sum(1 << k for k, mask in enumerate(masks) if truth & mask == mask) for truth in reached
    }


def _distinct(items: Iterable[int]) -> Iterator[int]:
    seen: set[int] = set()
    for item in items:
        if item not in seen:
            seen.add(item)
            yield item


MOST_COMPARED = 200
"""Predicates up to which it is found out whether some event may satisfy them all."""


def can_hold_together(clauses: Sequence[EventClause]) -> bool:
    """Whether some event may satisfy all clauses; True where it would take long to find out."""
    predicates = [predicate for clause in clauses for predicate in clause.predicates]
    if len(predicates) > MOST_COMPARED or sum(len(_constants(p)) for p in predicates) > 2000:
        return True
    truths = possible_truths((tuple(clauses),), limit=1000)
    return truths is None or 1 in truths


def _attribute_compared(predicate: Predicate) -> str | None:
    """The attribute, where the predicate compares just it with constants (or tests it for NULL).

    Casts that lose nothing leave the order of values as it is, so they are looked through; INT or
    LONG to FLOAT and LONG to DOUBLE round, still monotonically, but are rare and left alone.
    """
    match predicate:
        case core.Comparison():
            if isinstance(predicate.right, core.Constant):
                return _plain_attribute(predicate.left)
            if isinstance(predicate.left, core.Constant):
                return _plain_attribute(predicate.right)
            return None
        case core.Membership() | core.NullTest():
            return _plain_attribute(predicate.operand)
        case _:
            return None


def _plain_attribute(expression: core.Expression) -> str | None:
    if isinstance(expression, core.Cast):
        pair = (expression.operand.type, expression.type)
        if pair not in (
            (DataType.INT, DataType.LONG),
            (DataType.INT, DataType.DOUBLE),
            (DataType.FLOAT, DataType.DOUBLE),
        ):
            return None
        expression = expression.operand
    return expression.attribute if isinstance(expression, core.AttributeValue) else None


_Value = int | float | str | bool


def _outcomes(made: dict[Predicate, int]) -> Iterator[int]:
    """What the predicates on one attribute make true together, over all values it can have."""
    points = {_rank(value) for predicate in made for value in _constants(predicate)}
    true_of = _Comparisons(made)
    yield true_of.null
    for sample in _samples(sorted(points)):
        yield true_of(sample)


def _constants(predicate: Predicate) -> tuple[_Value, ...]:
    """What a predicate compares with, NULL aside."""
    match predicate:
        case core.Comparison(left=core.Constant(value=value)):
            return () if value is None else (value,)
        case core.Comparison(right=core.Constant(value=value)):
            return () if value is None else (value,)
        case core.Membership():
            return predicate.values
        case _:
            return ()


_Rank = bytes | tuple[bool, int | float]
"""A value by which values of one type sort as Spark orders them: NaN last, text by its bytes."""


def _rank(value: _Value) -> _Rank:
    if isinstance(value, str):
        return value.encode()
    return (True, 0) if value != value else (False, value)


def _samples(points: list[_Rank]) -> Iterator[_Rank]:
    """A value from each piece into which the points cut the line, and the points themselves.

    Between two points lies a value as far as this knows, although there may be none in a type of
    whole numbers: that can only add a class that stays empty.
    """
    if points and isinstance(points[0], bytes):
        yield b""
        for point in points:
            assert isinstance(point, bytes)
            yield point
            yield point + b"\0"
        return
    numbers = [point[1] for point in points if isinstance(point, tuple) and not point[0]]
    if not numbers:
        yield False, 0
    else:
        yield False, _below(numbers[0])
    for number, after in zip(numbers, [*numbers[1:], None], strict=True) if numbers else ():
        yield False, number
        yield False, _above(number) if after is None else _between(number, after)
    yield True, 0


def _below(number: int | float) -> int | float:
    return number - 1 if isinstance(number, int) else math.nextafter(number, -math.inf)


def _above(number: int | float) -> int | float:
    return number + 1 if isinstance(number, int) else math.nextafter(number, math.inf)


def _between(low: int | float, high: int | float) -> int | float:
    if isinstance(low, int) and isinstance(high, int):
        return low + 1 if high - low > 1 else low
    above = math.nextafter(float(low), math.inf)
    return above if above < high else low


_REVERSED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _Comparisons:
    """Predicates on one attribute, looked up by its value: what they make true, as a bit set.

    Nothing here looks at each predicate for each value: conditions can have thousands of both.
    """

    def __init__(self, made: dict[Predicate, int]) -> None:
        self.null = 0
        self._always = 0
        equal: dict[_Rank, int] = {}
        ordered: dict[str, dict[_Rank, int]] = {o: {} for o in ("!=", "<", "<=", ">", ">=")}
        absent: dict[int, set[_Rank]] = {}
        for predicate, bits in made.items():
            ranks = [_rank(value) for value in _constants(predicate)]
            if isinstance(predicate, core.NullTest):
                if predicate.negated:
                    self._always |= bits
                else:
                    self.null |= bits
            elif isinstance(predicate, core.Membership) and predicate.negated:
                if not predicate.has_null:
                    # Two of them with the same bits fail together where both do.
                    absent[bits] = absent[bits] & set(ranks) if bits in absent else set(ranks)
            elif isinstance(predicate, core.Membership):
                for rank in ranks:
                    equal[rank] = equal.get(rank, 0) | bits
            else:
                assert isinstance(predicate, core.Comparison)
                operator: str = predicate.operator
                if not isinstance(predicate.right, core.Constant):
                    operator = _REVERSED[operator]
                found = equal if operator == "=" else ordered[operator]
                for rank in ranks:
                    found[rank] = found.get(rank, 0) | bits
        self._equal = equal
        self._absent = absent
        self._sides = [
            (operator, sorted(found), *_unions([found[rank] for rank in sorted(found)]))
            for operator, found in ordered.items()
            if found
        ]

    def __call__(self, rank: _Rank) -> int:
        truth = self._always | self._equal.get(rank, 0)
        for bits, values in self._absent.items():
            if rank not in values:
                truth |= bits
        for operator, ranks, up_to, beyond in self._sides:
            smaller, through = bisect_left(ranks, rank), bisect_right(ranks, rank)
            if operator in ("!=", ">", ">="):
                truth |= up_to[through if operator == ">=" else smaller]
            if operator in ("!=", "<", "<="):
                truth |= beyond[smaller if operator == "<=" else through]
        return truth


def _unions(parts: list[int]) -> tuple[list[int], list[int]]:
    """The union of the first k bit sets, and of those from k on, for each k."""
    up_to = list(accumulate(parts, or_, initial=0))
    beyond = list(accumulate(reversed(parts), or_, initial=0))[::-1]
    return up_to, beyond
