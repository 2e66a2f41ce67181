"""Expressions of SELECT as trees, as a generated module's plan writes them.

Data only: the schemas follow from their types and attributes. `arrow/values` evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from celc_runtime.plan.conditions import TextComparison, TextCondition


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of a type of the language; TIMESTAMP in microseconds, DATE in days since 1970,
    INTERVAL in microseconds."""

    value: int | float | str | bool | None
    type: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of a label's events: FIRST, LAST, MIN, MAX, SUM, AVG, COUNT, VARIANCE, STDDEV,
    MEDIAN, DISTINCT (COUNT(DISTINCT …)) or COLLECT.

    COUNT alone has no attribute. COLLECT stands at the top of an expression only.
    """

    function: str
    label: str
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class OwnAggregate:
    """An aggregate that the query's file declares, of a label's events.

    `function` takes a value and a truth (not NULL) for each of `columns`, attributes of the events
    of all matches, the truths of `texts`, then where the events of each match begin and end, and
    the arrays that it writes: the value for each match, and whether it is not NULL.
    """

    function: Callable[..., None]
    label: str
    columns: tuple[str, ...]
    texts: tuple[TextCondition | TextComparison, ...]
    type: str


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """An attribute of the parameter set: the value of `column` at the last event of a match."""

    column: str
    type: str


@dataclass(frozen=True, slots=True)
class Cast:
    """A number, converted to another type of numbers; of a DATE, the days since 1970 as a LONG, or
    midnight in UTC as a TIMESTAMP, NULL where it is none."""

    operand: Tree
    type: str


@dataclass(frozen=True, slots=True)
class Negation:
    """`-e`, wrapping for whole numbers, unless `checked`: then NULL for the smallest one."""

    operand: Tree
    checked: bool = False


@dataclass(frozen=True, slots=True)
class Absolute:
    """`ABS(e)`; the smallest whole number stays itself, or is NULL if `checked`."""

    operand: Tree
    checked: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left operator right` for + - * / %; both sides have one type, DOUBLE for `/`.

    `checked`: both sides are 64-bit numbers, microseconds of times and durations among them, and a
    result with more bits is NULL.
    """

    operator: str
    left: Tree
    right: Tree
    checked: bool = False


Tree: TypeAlias = (
    Constant | Aggregate | OwnAggregate | ParameterValue | Cast | Negation | Absolute | Arithmetic
)


@dataclass(frozen=True, slots=True)
class Computed:
    """An expression's column in the output.

    `place`: its number among the items of SELECT. `type`: as the language names it, or `ARRAY<…>`.
    """

    place: int
    name: str
    type: str
    value: Tree

    @property
    def is_array(self) -> bool:
        """Whether its values are arrays."""
        return self.type.startswith("ARRAY<")

    @property
    def element_type(self) -> str:
        """Its type; of an array, the type of the elements."""
        return self.type.removeprefix("ARRAY<").removesuffix(">")


def attributes_of(expressions: Iterable[Computed]) -> Iterator[str]:
    """The attributes that expressions read; an attribute may come more than once."""
    for item in expressions:
        for node in nodes_in(item.value):
            match node:
                case Aggregate(attribute=str() as attribute):
                    yield attribute
                case OwnAggregate():
                    yield from node.columns
                    for text in node.texts:
                        yield from text.attributes


def nodes_in(tree: Tree) -> Iterator[Tree]:
    """A tree and the trees in it, from the left."""
    yield tree
    match tree:
        case Arithmetic():
            yield from nodes_in(tree.left)
            yield from nodes_in(tree.right)
        case Cast() | Negation() | Absolute():
            yield from nodes_in(tree.operand)
