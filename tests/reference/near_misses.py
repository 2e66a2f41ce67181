"""Near misses: matches of a query with one part bent that share no event with its matches.

Each part is bent in the tree, and the bent query is answered by the definitions. CONSUME, LIMIT,
selectors after SELECT and DISJOINT are left out.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from . import nodes as n
from .bending import sides_of
from .clauses import Match, Part, Stream, pick_query, stream_of
from .conditions import labels_in
from .lasting import lasting_streams, read_by
from .names import Schema, kept_labels
from .parameters import check_parameters, rows_of, shown_values, with_row
from .parser import parse
from .rates import preference
from .semantics import ComplexEvent, Evaluator, positions_of, support
from .tokens import line_of
from .values import CelError, Kind
from .windows import over

SHARE = 0.1


@dataclass(frozen=True)
class BentPart:
    """A part of a query that can bend: where it stands, the query with it bent at most so far (from
    0 to 1), and the amounts to try by what has evaluated it at 1."""

    place: n.Place
    at: Callable[[float], n.Query]
    amounts: Callable[[Evaluator], Iterable[float]]


@dataclass(frozen=True)
class NearMiss:
    """A near miss: its match, the text of the part that was bent, where that stands in the query
    (from 1), and how far it was bent."""

    match: Match
    part: str
    line: int
    column: int
    amount: float


def near_misses(
    text: str,
    events: Sequence[Mapping[str, Any]],
    *,
    query: str | None = None,
    near: float | Mapping[str, float] = SHARE,
    all_parts: bool = False,
    order_by: str | Sequence[str] | None = None,
    ties: str | None = None,
    at_end: str = "open",
    parameters: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    work_limit: int | None = None,
) -> list[NearMiss]:
    """The near misses of a query, of each start the nearest, by part of the stream and start.

    `near` is how far values may move: a share of their absolute value, or an amount for each
    attribute. With `all_parts` comparisons that cannot bend are taken away. The other arguments are
    those of `evaluate`.
    """
    file = parse(text)
    asked = pick_query(file, query)
    columns = (order_by,) if isinstance(order_by, str) else tuple(order_by or ())
    _check(asked, file, columns, ties)
    check_parameters(asked, file)
    asked = replace(
        asked,
        selector="ALL",
        per_start="",
        disjoint=False,
        consume_by="NONE",
        limit=None,
        rate=None,
    )
    bending = _Bending(text, file, asked, near, all_parts, columns)
    parts = list(bending.parts())
    if isinstance(near, Mapping) and (unknown := near.keys() - bending.kinds.keys()):
        # The page says that an attribute which no comparison has is an error; its cases answer it.
        raise CelError(f"no event has {', '.join(sorted(unknown))}")
    name = asked.for_each
    kinds = {} if name is None else file.parameters[name]
    rows = [{}] if name is None else rows_of(file, name, (parameters or {})[name])

    def opened(one: n.Query, *, row: Mapping[str, Any], end: str) -> Stream:
        made = one if name is None else with_row(one, kinds, row)
        return stream_of(made, file, events, columns, work_limit=work_limit, at_end=end)

    found: list[NearMiss] = []
    for row in rows:
        shown = () if name is None else ((name, shown_values(asked, kinds, row)),)
        original, ever = opened(asked, row=row, end=at_end), opened(asked, row=row, end="closed")
        for key, part in original.parts.items():
            _, matches = original.complex_events(part)
            touched = frozenset[int]().union(*(support(mu) for _, _, mu in matches))
            known = {*ever.complex_events(ever.parts[key])[1]}
            nearest: dict[int, tuple[Any, ...]] = {}
            of_row = partial(opened, row=row, end=at_end)
            for one in parts:
                for amount, match in _amounts(one, of_row, key):
                    start, end, mu = match
                    if match in known or support(mu) & touched:
                        continue
                    labels = positions_of(mu, kept_labels(asked))
                    listed = tuple(labels[label] for label in kept_labels(asked))
                    place = amount, end, preference(mu), one.place, listed
                    nearest[start] = min(place, nearest.get(start, place))
            found += [
                _row(text, asked, part, shown, start, nearest[start]) for start in sorted(nearest)
            ]
    return found


def _amounts(
    part: BentPart, opened: Callable[[n.Query], Stream], key: tuple[Any, ...]
) -> Iterator[tuple[float, ComplexEvent]]:
    """The matches of one part of the stream with a part of the query bent, each with the least
    amount with which it is one."""
    stream = opened(part.at(1.0))
    evaluator, left = stream.complex_events(stream.parts[key])
    for amount in sorted({*part.amounts(evaluator)}):
        stream = opened(part.at(amount))
        _, found = stream.complex_events(stream.parts[key])
        yield from ((amount, match) for match in {*found} & {*left})
        left = [match for match in left if match not in found]


def _row(
    text: str,
    query: n.Query,
    part: Part,
    shown: tuple[Any, ...],
    start: int,
    nearest: tuple[Any, ...],
) -> NearMiss:
    amount, end, _, place, listed = nearest
    labels = tuple(zip(kept_labels(query), listed, strict=True))
    begin = place[0]
    column = begin - text.rfind("\n", 0, begin)
    row = Match(part.partition, start, end, labels, parameters=shown)
    return NearMiss(row, text[begin : place[1]], line_of(text, begin), column, amount)


def _check(query: n.Query, file: n.File, columns: tuple[str, ...], ties: str | None) -> None:
    reads = read_by(query, file)
    refused = {
        "queries over queries": bool(reads),
        "events that last": bool(lasting_streams(query, file, columns, reads)),
        "uncertain time": bool(file.uncertain.keys() & {*(query.streams or file.streams)}),
        "simultaneous events": ties is not None,
        "totals": query.per is not None,
        "COLLAPSED": query.collapsed,
    }
    for what, is_so in refused.items():
        if is_so:
            raise CelError(f"near misses of {what}")


class _Bending:
    """The parts of one query that can bend."""

    def __init__(
        self,
        text: str,
        file: n.File,
        query: n.Query,
        near: float | Mapping[str, float],
        all_parts: bool,
        columns: tuple[str, ...],
    ) -> None:
        self.file, self.query = file, query
        self.near, self.all_parts = near, all_parts
        self.order_by = next(iter(columns), None)
        self.kinds = Schema(file, query.streams).kinds

    def parts(self) -> Iterator[BentPart]:
        """The parts, each once."""
        query = self.query
        seen: set[n.Place] = set()
        for one in (*self._inside(query.formula), *self._window(), *self._last_operand()):
            if one.place not in seen:
                seen.add(one.place)
                yield one

    def _bent(self, change: Callable[[Any], Any]) -> n.Query:
        formula: n.Formula = rebuilt(self.query.formula, change)
        return replace(self.query, formula=formula)

    def _whole(self, place: n.Place, change: Callable[[Any], Any]) -> BentPart:
        """A part of which there is no more and less."""
        bent = self._bent(change)
        return BentPart(place, lambda limit: bent, lambda evaluator: [1.0])

    def _inside(self, formula: n.Formula) -> Iterator[BentPart]:
        match formula:
            case n.Filter():
                yield from self._conditions(formula)
                yield from self._inside(formula.body)
            case n.Within():
                yield self._local_window(formula.window)
                yield from self._inside(formula.body)
            case n.Repeat():
                if formula.place is not None and not formula.contiguous and formula.least > 1:
                    yield self._whole(formula.place, _one_less(formula.place))
                yield from self._inside(formula.body)
            case n.Next():
                assert formula.sign is not None
                yield self._whole(formula.sign, _with_gap(formula.sign))
                yield from self._inside(formula.left)
                yield from self._inside(formula.right)
            case n.NotBetween() | n.NotBefore() | n.NotAfter() | n.Unless() | n.First():
                if formula.place is not None:
                    yield self._whole(formula.place, _without(formula.place))
                if not isinstance(formula, n.NotBefore | n.NotAfter):
                    yield from self._inside(formula.left)
                if isinstance(formula, n.NotBetween):
                    yield from self._inside(formula.right)
                if isinstance(formula, n.NotBefore | n.NotAfter):
                    yield from self._inside(formula.body)
            case n.Then() | n.Or() | n.And() | n.All():
                yield from self._inside(formula.left)
                yield from self._inside(formula.right)
            case n.As() | n.Project() | n.Rename():
                yield from self._inside(formula.body)

    # --- windows ---

    def _window(self) -> Iterator[BentPart]:
        window = self.query.window
        if window is not None:
            assert window.place is not None
            yield BentPart(
                window.place,
                lambda limit: replace(self.query, bent_window=replace(window, bent=limit)),
                self._lengths(window),
            )

    def _lengths(self, window: n.Window) -> Callable[[Evaluator], Iterable[float]]:
        """How much longer than a window something can take, at most twice as long."""

        def lengths(evaluator: Evaluator) -> Iterable[float]:
            pairs = itertools.combinations(range(len(evaluator.rows)), 2)
            found = (over(window, self.order_by, evaluator.rows, *pair) for pair in pairs)
            return {0.0, *(one for one in found if one <= 1)}

        return lengths

    def _local_window(self, window: n.Window) -> BentPart:
        place = window.place
        assert place is not None

        def at(limit: float) -> n.Query:
            def change(node: Any) -> Any:
                if isinstance(node, n.Within) and node.window.place == place:
                    return replace(node, window=replace(window, bent=limit))
                return node

            return self._bent(change)

        return BentPart(place, at, self._lengths(window))

    # --- conditions ---

    def _conditions(self, formula: n.Filter) -> Iterator[BentPart]:
        for comparison in _bendable(formula.condition):
            assert comparison.place is not None
            bends = self._bends(comparison)
            if any(bends):
                yield self._comparison(comparison.place, bends)
            elif self.all_parts and not self._is_count(comparison):
                yield self._whole(comparison.place, _without_clauses(comparison.place))

    def _is_count(self, comparison: n.Comparison) -> bool:
        """Whether it is a count that does not bend, and is no other comparison either."""
        return comparison.operator in ("<", "<=", ">", ">=") and any(
            map(_is_count, comparison.operands)
        )

    def _comparison(self, place: n.Place, bends: tuple[n.Bend | None, ...]) -> BentPart:
        def at(limit: float) -> n.Query:
            def change(node: Any) -> Any:
                if isinstance(node, n.Comparison) and node.place == place:
                    return replace(node, bends=bends, limit=limit)
                return node

            return self._bent(change)

        return BentPart(place, at, lambda evaluator: evaluator.checker.amounts)

    def _bends(self, comparison: n.Comparison) -> tuple[n.Bend | None, ...]:
        if comparison.negated or comparison.operator not in ("<", "<=", ">", ">=", "BETWEEN"):
            return ()
        return tuple(
            self._bend(sign, comparison.operands[left], comparison.operands[right])
            for sign, left, right in sides_of(comparison.operator)
        )

    def _bend(self, sign: str, left: n.Expression, right: n.Expression) -> n.Bend | None:
        count = self._count(sign, left, right)
        if count is not None:
            return count or None
        kinds = {self._kind(left), self._kind(right)}
        if kinds & {Kind.STRING, Kind.BOOLEAN, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE}:
            return None
        side = 1 if self._labels(left) else 0
        staying = left if side else right
        names = {
            name
            for part in n.parts(staying)
            if isinstance(part, n.Attribute | n.Previous | n.Aggregate)
            for name in (part.name, *(part.more if isinstance(part, n.Aggregate) else ()))
            if name is not None
        }
        if isinstance(self.near, Mapping):
            room = self.near.get(next(iter(names))) if len(names) == 1 else None
            return n.Bend(side, SHARE, room)
        return n.Bend(side, self.near)

    def _count(self, sign: str, left: n.Expression, right: n.Expression) -> n.Bend | bool | None:
        """How COUNT(x) beside a whole number bends, False where it does not; None: it is none."""
        if _is_count(right) and isinstance(left, n.Literal):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[sign]
            found = self._count(turned, right, left)
            return replace(found, side=0) if isinstance(found, n.Bend) else found
        if not (_is_count(left) and isinstance(right, n.Literal)):
            return None
        if not isinstance(right.datum.value, int):
            return None
        least = right.datum.value + (sign == ">")
        if sign in (">", ">=") and least < 2:
            return False
        return n.Bend(1, 0.0, whole=True)

    def _labels(self, expression: n.Expression) -> set[str]:
        return {
            part.label
            for part in n.parts(expression)
            if isinstance(part, n.Attribute | n.Previous | n.HasType | n.Aggregate)
        } - {self.query.for_each or ""}

    def _kind(self, expression: n.Expression) -> Any:
        """The kind of a value, as far as it tells what can bend."""
        match expression:
            case n.Literal():
                return expression.datum.kind
            case n.Attribute() if expression.label == self.query.for_each:
                return self.file.parameters[expression.label][expression.name]
            case n.Attribute() | n.Previous():
                return self.kinds[expression.name]
            case n.Aggregate(name=str(name), function=function):
                keeps = function in ("FIRST", "LAST", "MIN", "MAX", "NTH", "MEDIAN", "SUM", "AVG")
                return self.kinds[name] if keeps else Kind.DOUBLE
            case n.Binary():
                kinds = self._kind(expression.left), self._kind(expression.right)
                times = [one in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE) for one in kinds]
                return Kind.TIMESTAMP if sum(times) == 1 else Kind.DOUBLE
            case n.Unary():
                return self._kind(expression.operand)
            case n.Choice():
                return self._kind(expression.operands[0])
        return Kind.DOUBLE

    # --- the last operand ---

    def _last_operand(self) -> Iterator[BentPart]:
        formula = self.query.formula
        while formula not in self.file.sequences:
            match formula:
                case n.Filter() | n.As() | n.Within():
                    formula = formula.body
                case n.Unless():
                    formula = formula.left
                case n.NotBefore() | n.NotAfter():
                    # `(A ; B ; C) ; !D FOR d` is the sequence without its parentheses.
                    inside = formula.body
                    is_both = isinstance(formula, n.NotAfter) and isinstance(inside, n.NotBefore)
                    if is_both and inside not in self.file.sequences:
                        inside = inside.body
                    if inside not in self.file.sequences:
                        return
                    break
                case _:
                    return
        else:
            inside = formula
        sequence = self.file.sequences[inside]
        steps = sequence.steps
        if len(steps) < 3 or any(step.optional for step in steps):
            return
        rest = sequence._replace(steps=steps[:-1], after=None).formula()
        before = formula.body if isinstance(formula, n.NotAfter) else formula
        if before is not inside and isinstance(before, n.NotBefore):
            rest = replace(before, body=rest)
        gone = formula.labels - rest.labels

        def change(node: Any) -> Any:
            if node is formula:
                return rest
            if not isinstance(node, n.Filter):
                return node
            # In a scope of its own, a label of that name is another one.
            is_around = formula in n.parts_of(node)
            left = gone if is_around else gone - node.body.labels
            kept = [one for one in node.clauses if not labels_in(one) & left]
            return replace(node, body=rebuilt(node.body, change), clauses=tuple(kept))

        yield self._whole(steps[-1].place, change)


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """A tree with every node changed, a changed one not again. Conditions of filters are changed as
    clauses."""
    changed = change(node)
    if changed is not node:
        return changed
    if type(node) is tuple:
        inside = tuple(rebuilt(one, change) for one in node)
        return node if all(map(operator.is_, inside, node)) else inside
    if not isinstance(node, n.Formula | n.Quantified):
        return node
    values = {field.name: getattr(node, field.name) for field in fields(node)}
    made = {name: rebuilt(value, change) for name, value in values.items()}
    if isinstance(node, n.Filter):
        made["condition"] = node.condition
    same = all(made[name] is value for name, value in values.items())
    return node if same else type(node)(**made)


def _one_less(place: n.Place) -> Callable[[Any], Any]:
    """`{m}` with one round less."""

    def change(node: Any) -> Any:
        if isinstance(node, n.Repeat) and node.place == place:
            return replace(node, body=node.body, least=node.least - 1)
        return node

    return change


def _with_gap(place: n.Place) -> Callable[[Any], Any]:
    """`:` with one event between."""

    def change(node: Any) -> Any:
        is_it = isinstance(node, n.Next) and node.sign == place
        return replace(node, gap=True) if is_it else node

    return change


def _without(place: n.Place) -> Callable[[Any], Any]:
    """A formula without what must be absent."""

    def change(node: Any) -> Any:
        if getattr(node, "place", None) != place:
            return node
        match node:
            case n.NotBetween():
                return n.Then(node.left, node.right)
            case n.NotBefore() | n.NotAfter():
                return node.body
            case n.Unless():
                return node.left
            case n.First():
                return replace(node, gap=None, place=None)
        return node

    return change


def _without_clauses(place: n.Place) -> Callable[[Any], Any]:
    """A filter without the clauses with one comparison."""

    def change(node: Any) -> Any:
        if not isinstance(node, n.Filter):
            return node
        kept = tuple(
            clause for clause in node.clauses if place not in [one.place for one in clause]
        )
        return node if len(kept) == len(node.clauses) else replace(node, clauses=kept)

    return change


def _bendable(condition: n.Condition) -> Iterator[n.Comparison]:
    """The comparisons under no NOT, SOME or EVERY."""
    if isinstance(condition, n.Comparison):
        yield condition
    elif isinstance(condition, n.Both | n.Either):
        yield from _bendable(condition.left)
        yield from _bendable(condition.right)


def _is_count(expression: n.Expression) -> bool:
    is_plain = isinstance(expression, n.Aggregate) and expression.function == "COUNT"
    return is_plain and not expression.prior  # type: ignore[union-attr]
