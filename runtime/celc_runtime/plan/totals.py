"""SELECT TOTAL as data: the functions of all matches of a group, the items made of them, and
HAVING.

`arrow/matches/total_rows` evaluates them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import TypeAlias

from celc_runtime.plan.expressions import Constant, ParameterValue, Tree
from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import is_wide, type_of


@frozen
class TotalOf:
    """A function of all matches of a group."""

    function: str  # COUNT, APPROX_COUNT, SUM, AVG, MIN or MAX
    label: str | None = None  # None: `*`, the matches themselves
    attribute: str | None = None  # None: a count
    _: KW_ONLY
    type: str = "DECIMAL(38, 0)"  # of its value
    read: str | None = None  # the type of the attribute

    @property
    def of_decimals(self) -> bool:
        """Whether the attribute is a DECIMAL."""
        return self.read is not None and self.read.startswith("DECIMAL")

    @property
    def of_wide(self) -> bool:
        """Whether the attribute is a DECIMAL that 64 bits do not hold."""
        return self.read is not None and is_wide(type_of(self.read))


@frozen
class ItemValue:
    """The value of an item, in HAVING."""

    name: str


@frozen
class ItemCast:
    """A number in another type, or a DATE as the TIMESTAMP of its midnight in UTC."""

    operand: TotalTree
    type: str
    scale: int | None = None  # the decimals of the operand, where one of both has decimals


@frozen
class ItemNegation:
    """`-e`. It is an error if the result leaves the type."""

    operand: TotalTree
    type: str


@frozen
class ItemAbsolute:
    """`ABS(e)`. It is an error if the result leaves the type."""

    operand: TotalTree
    type: str


@frozen
class ItemArithmetic:
    """`left operator right` for + - * / %, with the type of the result.

    It is an error if whole numbers or times leave this type. Division by zero is NULL.
    """

    operator: str
    left: TotalTree
    right: TotalTree
    type: str
    sides: tuple[str, str] | None = None  # the types of both sides, where all are DECIMALs


@frozen
class ItemColumn:
    """A value of each group that a function reads as a column."""

    name: str
    value: TotalTree
    type: str


@frozen
class ItemMade:
    """A function of values of groups, as in `ROUND(SUM(x.a), 2)`, CASE and CAST."""

    tree: Tree  # its leaves are `Column`s of these names
    columns: tuple[ItemColumn, ...]
    type: str


@frozen
class TotalItem:
    """A column of totals."""

    name: str
    type: str  # as the language names it
    value: TotalTree  # has `TotalOf` in it


@frozen
class ItemCompared:
    """`left operator right`; both sides have the same type."""

    operator: str
    left: TotalTree
    right: TotalTree


@frozen
class ItemOneOf:
    """`operand [NOT] IN values`."""

    operand: TotalTree
    values: tuple[int | float | str | bool, ...]
    has_null: bool = False  # whether the list contains NULL too
    negated: bool = False


@frozen
class ItemIsNull:
    """`operand IS [NOT] NULL`."""

    operand: TotalTree
    negated: bool = False


@frozen
class ItemHolds:
    """A condition on texts."""

    asked: ItemMade  # a BOOLEAN


@frozen
class EveryOfItems:
    """An AND."""

    parts: tuple[Having, ...]


@frozen
class SomeOfItems:
    """An OR."""

    parts: tuple[Having, ...]


TotalTree: TypeAlias = (
    Constant
    | TotalOf
    | ItemValue
    | ParameterValue
    | ItemCast
    | ItemNegation
    | ItemAbsolute
    | ItemArithmetic
    | ItemMade
)

Having: TypeAlias = ItemCompared | ItemOneOf | ItemIsNull | ItemHolds | EveryOfItems | SomeOfItems


@frozen
class Totals:
    """The rows of a query with TOTAL."""

    items: tuple[TotalItem, ...]
    per: str | int = "END"
    """END, PARTITION, or the length of a span in microseconds; RUNNING: the matches of a partition
    up to each end, as a stream tells them."""
    having: Having | None = None  # keeps the rows for which it is TRUE; None: all

    @property
    def of_partitions(self) -> bool:
        """Whether a row is about the matches of a whole partition. A stream keeps such sums for
        ever."""
        return self.per in ("PARTITION", "RUNNING")

    @property
    def functions(self) -> tuple[TotalOf, ...]:
        """The functions in the items, each once."""
        nodes = (node for item in self.items for node in _nodes_of(item.value))
        return tuple(dict.fromkeys(node for node in nodes if isinstance(node, TotalOf)))

    @property
    def row_columns(self) -> tuple[str, ...]:
        """The columns of the parameter set that items and HAVING read, each once."""
        trees = [item.value for item in self.items]
        if self.having is not None:
            trees += _trees_of(self.having)
        nodes = (node for tree in trees for node in _nodes_of(tree))
        return tuple(
            dict.fromkeys(node.column for node in nodes if isinstance(node, ParameterValue))
        )


def _nodes_of(tree: TotalTree) -> Iterator[TotalTree]:
    yield tree
    match tree:
        case ItemArithmetic():
            yield from _nodes_of(tree.left)
            yield from _nodes_of(tree.right)
        case ItemCast() | ItemNegation() | ItemAbsolute():
            yield from _nodes_of(tree.operand)
        case ItemMade():
            for column in tree.columns:
                yield from _nodes_of(column.value)
        case Constant() | ItemValue() | ParameterValue() | TotalOf():
            pass


def _trees_of(having: Having) -> Iterator[TotalTree]:
    match having:
        case EveryOfItems() | SomeOfItems():
            for part in having.parts:
                yield from _trees_of(part)
        case ItemCompared():
            yield having.left
            yield having.right
        case ItemOneOf() | ItemIsNull():
            yield having.operand
        case ItemHolds():
            yield having.asked
