"""MATCH_RECOGNIZE with its names resolved and its expressions typed.

An expression reads rows of the table. The row that it reads is part of each leaf: an offset from
the first or the last of a variable's rows, the row of an aggregate's argument, or, after
`celc.row_pattern.positions`, an offset from the row at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from celc.core.formula import ComparisonOperator, Constant, DataType
from celc.diagnostics.source import Span
from celc.row_pattern.syntax import RowsShown

Variables: TypeAlias = frozenset[int]
"""The numbers of variables, in the order in which PATTERN first writes them."""


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Navigation:
    """`PREV(FIRST(v.x, offset), k)`: `shift` rows after (before: negative) the row that is `offset`
    rows from the first or last of the visible rows of `variables`; None: of all variables. `final`:
    all rows of the match are visible, else those up to the current one."""

    variables: Variables | None
    first: bool
    offset: int
    shift: int
    final: bool


@dataclass(frozen=True, slots=True)
class Argument:
    """Each row that an aggregate is taken over."""


@dataclass(frozen=True, slots=True)
class Here:
    """`shift` rows after the row at hand, in the partition."""

    shift: int


@dataclass(frozen=True, slots=True)
class NoRow:
    """A row that no match has."""


Row: TypeAlias = Navigation | Argument | Here | NoRow

# --- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnAt:
    """The value of a column, given by its number in the table, at a row; NULL where there is no
    such row."""

    column: int
    row: Row
    type: DataType


@dataclass(frozen=True, slots=True)
class LabelAt:
    """CLASSIFIER: the variable that a row is mapped to; NULL where there is no such row, and where
    the row is not mapped."""

    row: Row
    type: DataType = DataType.STRING


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """`MATCH_NUMBER()`."""

    type: DataType = DataType.LONG


AggregateFunction: TypeAlias = Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG"]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of the visible rows of `variables` (None: of all). `argument` reads the row
    `Argument`; None: COUNT of rows. `type` of ARRAY_AGG is that of its elements."""

    function: AggregateFunction
    variables: Variables | None
    argument: Expression | None
    final: bool
    type: DataType


@dataclass(frozen=True, slots=True)
class Existing:
    """An expression over one row; NULL where there is no such row, whatever the expression is."""

    row: Row
    operand: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right`; types as in `celc.core.formula.Arithmetic`."""

    operator: Literal["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class Negation:
    """`-e`."""

    operand: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class Absolute:
    """`ABS(e)`."""

    operand: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class Cast:
    """An implicit widening."""

    operand: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class TimeDifference:
    """`TIMESTAMPDIFF(unit, start, end)` of two TIMESTAMPs; `unit` in microseconds."""

    unit: int
    start: Expression
    end: Expression
    type: DataType = DataType.LONG


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`, operands of one type."""

    operator: ComparisonOperator
    left: Expression
    right: Expression
    type: DataType = DataType.BOOLEAN


@dataclass(frozen=True, slots=True)
class Logic:
    """AND or OR of two or more, in SQL's three-valued logic."""

    operator: Literal["AND", "OR"]
    parts: tuple[Expression, ...]
    type: DataType = DataType.BOOLEAN


@dataclass(frozen=True, slots=True)
class Not:
    """`NOT e`."""

    operand: Expression
    type: DataType = DataType.BOOLEAN


@dataclass(frozen=True, slots=True)
class IsNull:
    """`e IS NULL`."""

    operand: Expression
    type: DataType = DataType.BOOLEAN


@dataclass(frozen=True, slots=True)
class TextMatch:
    """`e LIKE '…'` or RLIKE, as a regular expression of RE2 that is found anywhere."""

    operand: Expression
    regex: str
    type: DataType = DataType.BOOLEAN


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is TRUE."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first value that is not NULL."""

    parts: tuple[Expression, ...]
    type: DataType


Expression: TypeAlias = (
    Constant
    | ColumnAt
    | LabelAt
    | MatchNumber
    | Aggregate
    | Existing
    | Arithmetic
    | Negation
    | Absolute
    | Cast
    | TimeDifference
    | Comparison
    | Logic
    | Not
    | IsNull
    | TextMatch
    | Case
    | Coalesce
)

# --- patterns -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OneRow:
    """One row of a variable; `excluded`: it stands in `{- … -}`."""

    variable: int
    excluded: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """No row, and only before the first row of the partition, or after its last."""

    first: bool


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after another; of no parts: no row."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several, the preferred one first."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """From `least` to `most` rounds, None: without end."""

    part: Pattern
    least: int
    most: int | None
    reluctant: bool


Pattern: TypeAlias = OneRow | Anchor | Concatenation | Alternation | Repetition

# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Ordered:
    """A column of ORDER BY; `nulls_first` None: NULL is an error."""

    column: int
    descending: bool
    nulls_first: bool | None


@dataclass(frozen=True, slots=True)
class Measure:
    """A column that MEASURES computes."""

    name: str
    expression: Expression

    @property
    def is_list(self) -> bool:
        """Whether its values are arrays."""
        return isinstance(self.expression, Aggregate) and self.expression.function == "ARRAY_AGG"


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result: a column of the table or a measure, by its number there."""

    name: str
    kind: Literal["column", "measure"]
    number: int


@dataclass(frozen=True, slots=True)
class Skip:
    """Where the search goes on after a match; `targets` are the variables of TO FIRST or LAST."""

    mode: Literal["PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST"]
    targets: Variables
    target: str


@dataclass(frozen=True, slots=True)
class Query:
    """A resolved query.

    `conditions` are those of the variables by their numbers, None: every row; `condition_spans` are
    their places. `within` is in
    microseconds, measured on the first column of `order_by`.
    """

    name: str
    columns: tuple[Column, ...]
    partition_by: tuple[int, ...]
    order_by: tuple[Ordered, ...]
    measures: tuple[Measure, ...]
    rows: RowsShown
    skip: Skip
    pattern: Pattern
    variables: tuple[str, ...]
    conditions: tuple[Expression | None, ...]
    within: int | None
    outputs: tuple[Output, ...]
    pattern_span: Span
    condition_spans: tuple[Span, ...]
