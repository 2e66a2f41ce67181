"""A query of MATCH_RECOGNIZE with its names resolved: its pattern, and what its clauses say.

Its expressions are those of `celc.core.formula`. The row that one reads is part of each leaf: an
offset from the first or the last of a variable's rows, the row of an aggregate's argument, or,
after `celc.row_pattern.positions`, an offset from the row at hand.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core.formula import AggregateOfRows, DataType, Derived, Expression, Truth, Variables
from celc.diagnostics.source import Span
from celc.row_pattern.syntax import RowsShown

# --- patterns -------------------------------------------------------------------------------------


@frozen
class OneRow:
    """One row of a variable; `excluded`: it stands in `{- … -}`."""

    variable: int
    excluded: bool


@frozen
class Anchor:
    """`^` or `$`: matches no row, only before the first row of a partition, or after its last."""

    first: bool


@frozen
class Concatenation:
    """Its parts, one after another. Without parts, it matches no row."""

    parts: tuple[Pattern, ...]


@frozen
class Alternation:
    """One of several, the preferred one first."""

    parts: tuple[Pattern, ...]


@frozen
class Repetition:
    """From `least` to `most` rounds, None: without end."""

    part: Pattern
    least: int
    most: int | None
    reluctant: bool


Pattern: TypeAlias = OneRow | Anchor | Concatenation | Alternation | Repetition

# --- queries --------------------------------------------------------------------------------------


@frozen
class Column:
    """A column of the table, or one that is made of those of a row. One with a `clock` is a
    TIMESTAMP_NTZ outside the query; inside, its values are read as those of UTC."""

    name: str
    type: DataType
    clock: bool = False

    @property
    def outside(self) -> DataType:
        """The type of the column outside the query."""
        return DataType.TIMESTAMP_NTZ if self.clock else self.type


@frozen
class Ordered:
    """A column of ORDER BY; `nulls_first` None: NULL is an error."""

    column: int
    descending: bool
    nulls_first: bool | None


@frozen
class Measure:
    """A column that MEASURES computes; `clock` as of a `Column`."""

    name: str
    expression: Expression
    clock: bool = False

    @property
    def is_list(self) -> bool:
        """Whether its values are arrays."""
        return (
            isinstance(self.expression, AggregateOfRows) and self.expression.function == "ARRAY_AGG"
        )


@frozen
class Output:
    """A column of the result: a column of the table or a measure, by its number there."""

    name: str
    kind: Literal["column", "measure"]
    number: int


@frozen
class Skip:
    """AFTER MATCH SKIP: where the search for the next match begins. `targets` are the variables of
    TO FIRST or TO LAST."""

    mode: Literal["PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST"]
    targets: Variables
    target: str


@frozen
class Query:
    """A resolved query.

    `columns` are those of the table, then the `derived` ones, which are made of those of a row.
    `conditions` are those of the variables by their numbers, None: every row; `condition_spans` are
    their places. `within` is in
    microseconds, measured on the first column of `order_by`.
    """

    name: str
    columns: tuple[Column, ...]
    derived: tuple[Derived, ...]
    partition_by: tuple[int, ...]
    order_by: tuple[Ordered, ...]
    measures: tuple[Measure, ...]
    rows: RowsShown
    skip: Skip
    pattern: Pattern
    variables: tuple[str, ...]
    conditions: tuple[Truth | None, ...]
    within: int | None
    outputs: tuple[Output, ...]
    pattern_span: Span
    condition_spans: tuple[Span, ...]
