"""The meaning of conditions: clauses that hold for every choice of positions.

A condition is brought into conjunctive normal form once, when it is parsed. A clause, an OR of
comparisons, must be TRUE for every choice of one position for each label that it names outside
aggregates.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from .bending import how_far
from .nodes import (
    Aggregate,
    Attribute,
    Binary,
    Call,
    Case,
    Choice,
    Comparison,
    Condition,
    Either,
    Expression,
    HasType,
    Literal,
    Not,
    OwnCall,
    Previous,
    Quantified,
    Unary,
    before,
    mentioned,
    named,
    parts,
)
from .own_aggregates import of_values, own_value, truth_of
from .own_functions import own_call
from .values import (
    CelError,
    Datum,
    Kind,
    absolute,
    aggregate,
    arithmetic,
    negate,
)

Clause = tuple[Comparison | Quantified, ...]
Positions = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One event that has a position: its stream, its type and its attributes."""

    stream: str
    type: str
    values: Mapping[str, Datum]


def conjunctive_normal_form(condition: Condition, negated: bool = False) -> tuple[Clause, ...]:
    """The clauses of the condition (of its negation, where `negated`): an AND of ORs.

    NOT is pushed to the comparisons by De Morgan's laws, then OR is distributed over AND.
    """
    if isinstance(condition, Comparison):
        turned = condition.negated != negated
        return ((replace(condition, negated=turned),),)
    if isinstance(condition, Quantified):
        # One comparison of its clause. What stands in it is never brought into this form.
        return ((replace(condition, negated=condition.negated != negated),),)
    if isinstance(condition, Not):
        return conjunctive_normal_form(condition.body, not negated)
    left = conjunctive_normal_form(condition.left, negated)
    right = conjunctive_normal_form(condition.right, negated)
    if isinstance(condition, Either) == negated:
        return left + right
    return tuple(one + other for one in left for other in right)


def labels_in(clause: Clause) -> frozenset[str]:
    """Every label that the clause mentions, in aggregates too."""
    return frozenset[str]().union(*map(mentioned, clause))


def named_by(clause: Clause) -> frozenset[str]:
    """The labels that the clause names outside aggregates: it holds for every choice of these."""
    return frozenset[str]().union(*map(named, clause))


def looking_back(comparison: Comparison) -> list[tuple[str, int]]:
    """The labels of which the comparison takes PREV or PRIOR, and how far it looks back."""
    return [
        (part.label, part.distance if isinstance(part, Previous) else 1)
        for operand in comparison.operands
        for part in parts(operand)
        if isinstance(part, Previous) or (isinstance(part, Aggregate) and part.prior)
    ]


def _history(positions: Mapping[str, Positions], label: str) -> Positions:
    """The positions that PREV and PRIOR look back over: those of the label, and in the operand of a
    FIRST those to its left before them."""
    return positions.get(before(label), ()) + positions[label]


def _before(positions: Mapping[str, Positions], labels: Sequence[str]) -> tuple[Positions, ...]:
    return tuple(positions.get(before(label), ()) for label in labels)


class ConditionChecker:
    """Says which clauses hold over one stream; remembers what it has found out.

    `kinds` gives the declared kind of every attribute of the stream's types.
    """

    def __init__(self, rows: Sequence[Row], kinds: Mapping[str, Kind]) -> None:
        self.rows = rows
        self.kinds = kinds
        self.amounts: set[float] = set()
        """How far bent comparisons had to bend, for any choice."""
        self._known: dict[tuple[Clause, tuple[Positions, ...], tuple[Positions, ...]], bool] = {}

    def holds(self, clause: Clause, positions: Mapping[str, Positions]) -> bool:
        """Whether the clause is TRUE for every choice; `positions` gives each label's set."""
        labels = sorted(labels_in(clause))
        key = (clause, tuple(positions[label] for label in labels), _before(positions, labels))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._holds(clause, positions)
        return known

    def _holds(self, clause: Clause, positions: Mapping[str, Positions]) -> bool:
        named = sorted(named_by(clause))
        # A label without positions leaves no choice at all: the clause holds vacuously.
        return all(
            any(
                self._is_true(one, positions, dict(zip(named, choice, strict=True)))
                for one in clause
            )
            for choice in itertools.product(*(positions[label] for label in named))
        )

    def _is_true(
        self,
        comparison: Comparison | Quantified,
        positions: Mapping[str, Positions],
        chosen: Mapping[str, int],
        before_the_first: bool = True,
    ) -> bool:
        if isinstance(comparison, Quantified):
            return self._quantified(comparison, positions, chosen) != comparison.negated
        # Where there are fewer positions before, the comparison counts as TRUE, NOT or not.
        back = looking_back(comparison)
        if any(_history(positions, label).index(chosen[label]) < far for label, far in back):
            return before_the_first
        truth = self._truth(comparison, positions, chosen)
        return truth is not None and truth != comparison.negated

    def _quantified(
        self, node: Quantified, positions: Mapping[str, Positions], chosen: Mapping[str, int]
    ) -> bool:
        """Whether p is TRUE for some choice of positions (for every one) of the labels."""
        judge = all if node.every else any
        return judge(
            self._body(
                node.body,
                False,
                positions,
                {**chosen, **dict(zip(node.labels, choice, strict=True))},
                node.every,
            )
            for choice in itertools.product(*(positions[label] for label in node.labels))
        )

    def _body(
        self,
        condition: Condition,
        negated: bool,
        positions: Mapping[str, Positions],
        chosen: Mapping[str, int],
        every: bool,
    ) -> bool:
        """Whether the condition (its negation, where `negated`) is TRUE for one choice. Where there
        is nothing before, a comparison is TRUE in EVERY and not TRUE in SOME, NOT or not."""
        if isinstance(condition, Comparison | Quantified):
            turned = replace(condition, negated=condition.negated != negated)
            return self._is_true(turned, positions, chosen, before_the_first=every)
        if isinstance(condition, Not):
            return self._body(condition.body, not negated, positions, chosen, every)
        sides = [
            self._body(side, negated, positions, chosen, every)
            for side in (condition.left, condition.right)
        ]
        return any(sides) if isinstance(condition, Either) != negated else all(sides)

    def _truth(
        self, comparison: Comparison, positions: Mapping[str, Positions], chosen: Mapping[str, int]
    ) -> bool | None:
        """The comparison without its NOT; None is SQL's unknown."""
        value = partial(self.value, positions=positions, chosen=chosen)
        data = [value(operand) for operand in comparison.operands]
        if comparison.bends:
            far = how_far(comparison, data)
            if far is not None:
                self.amounts.add(far)
            return far is not None and far <= comparison.limit
        return truth_of(comparison.operator, data)

    def value(
        self,
        expression: Expression,
        positions: Mapping[str, Positions],
        chosen: Mapping[str, int],
    ) -> Datum:
        """The value of the expression for the chosen position of each label outside aggregates."""
        if isinstance(expression, Literal):
            return expression.datum
        if isinstance(expression, Attribute):
            if expression.label not in chosen:
                raise CelError(f"{expression.label} has not one position in each match")
            return self._attribute(chosen[expression.label], expression.name)
        if isinstance(expression, Previous):
            places = _history(positions, expression.label)
            earlier = places[places.index(chosen[expression.label]) - expression.distance]
            return self._attribute(earlier, expression.name)
        if isinstance(expression, HasType):
            row = self.rows[chosen[expression.label]]
            is_one = row.type == expression.type and expression.stream in (None, row.stream)
            return Datum(Kind.BOOLEAN, is_one)
        if isinstance(expression, Aggregate):
            places = positions[expression.label]
            if expression.prior:
                places = _history(positions, expression.label)
                places = places[: places.index(chosen[expression.label])]
            if expression.name is None:
                return Datum(Kind.LONG, len(places))
            data = [self._attribute(place, expression.name) for place in places]
            if expression.own is not None:
                others = [
                    [self._attribute(place, name) for place in places] for name in expression.more
                ]
                return own_value(expression.own, list(zip(data, *others, strict=True)))
            if expression.place:
                place = expression.place - (expression.place > 0)
                is_there = -len(data) <= place < len(data)
                return data[place] if is_there else Datum(self.kinds[expression.name], None)
            return aggregate(expression.function, self.kinds[expression.name], data)
        if isinstance(expression, OwnCall):
            return self._called(expression, positions, chosen)
        if isinstance(expression, Binary):
            left = self.value(expression.left, positions, chosen)
            return arithmetic(
                expression.operator, left, self.value(expression.right, positions, chosen)
            )
        if isinstance(expression, Choice | Case | Call):
            return of_values(expression, None, lambda one, _: self.value(one, positions, chosen))
        if not isinstance(expression, Unary):
            raise CelError("a name without a label")
        operand = self.value(expression.operand, positions, chosen)
        return negate(operand) if expression.operator == "-" else absolute(operand)

    def _called(
        self, call: OwnCall, positions: Mapping[str, Positions], chosen: Mapping[str, int]
    ) -> Datum:
        rows: dict[str, list[tuple[Datum, ...]]] = {}
        for argument in call.arguments:
            label = argument.label
            places = positions[label]
            if argument.prior:
                places = places[: places.index(chosen[label])]
            names = [str(one.name) for one in call.arguments if one.label == label]
            rows[label] = [tuple(self._attribute(p, name) for name in names) for p in places]
        return own_call(call.function, rows, [argument.label for argument in call.arguments])

    def _attribute(self, position: int, name: str) -> Datum:
        if name not in self.kinds:
            raise CelError(f"no event type has the attribute {name}")
        return self.rows[position].values.get(name, Datum(self.kinds[name], None))
