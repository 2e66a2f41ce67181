"""Syntax of MATCH_RECOGNIZE: what the text says, before any name is looked up."""

from __future__ import annotations

from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span
from celc.parse.syntax import TextLiteral, WrittenType


@frozen
class Name:
    """A name as it is written, without backquotes. Names are compared by `key`."""

    text: str
    span: Span

    @property
    def key(self) -> str:
        """The name as it is compared: case does not count."""
        return self.text.casefold()


# --- expressions ----------------------------------------------------------------------------------


@frozen
class Constant:
    """A number, a text, TRUE, FALSE or NULL. A whole number is an int, any other a float."""

    value: int | float | str | bool | None
    span: Span


@frozen
class Time:
    """`TIMESTAMP '…'` or `DATE '…'`."""

    kind: Literal["TIMESTAMP", "DATE"]
    text: Constant
    span: Span


@frozen
class Interval:
    """`INTERVAL '90' SECOND`: the number as it is written, and its unit."""

    amount: str
    unit: Name
    span: Span


@frozen
class Column:
    """`v.x` or `x`."""

    variable: Name | None
    name: Name
    span: Span


@frozen
class Star:
    """`*` or `v.*`, the argument of COUNT."""

    variable: Name | None
    span: Span


@frozen
class Call:
    """`f(…)`, with RUNNING or FINAL before it, or DISTINCT in it, where these are written. `zone`
    is that of AT TIME ZONE behind an argument. `a || b` is CONCAT(a, b). `kept`: the condition of
    FILTER (WHERE …); `order`: that of ORDER BY behind the arguments."""

    function: Name
    arguments: tuple[Expression | Star, ...]
    semantics: Name | None
    distinct: Span | None
    zone: TextLiteral | None
    span: Span
    kept: Expression | None = None
    order: tuple[Sorted, ...] = ()


@frozen
class Sorted:
    """`e [ASC | DESC] [NULLS FIRST | NULLS LAST]` in an aggregate; `nulls_first` None: not said."""

    expression: Expression
    descending: bool
    nulls_first: bool | None
    span: Span


@frozen
class Lambda:
    """`lambda x, y: e`, `x -> e` or `(x, y) -> e`: an argument of a function of the host."""

    parameters: tuple[Name, ...]
    body: Expression
    span: Span


@frozen
class Cast:
    """`CAST(e [AT TIME ZONE '…'] AS T)`; `tried`: TRY_CAST."""

    operand: Expression
    type: WrittenType
    zone: TextLiteral | None
    tried: bool
    span: Span


@frozen
class Field:
    """`e.f`; `c.f` where c is no variable is a `Column`, like `v.c`."""

    operand: Expression
    name: Name
    span: Span


@frozen
class Element:
    """`e[i]`, of an ARRAY, or `e['k']`, of a MAP or STRUCT."""

    operand: Expression
    index: Expression
    span: Span


@frozen
class JsonValue:
    """`e:b.c[0]`, of a text of JSON; `path` are the names and numbers."""

    operand: Expression
    path: tuple[str | int, ...]
    span: Span


@frozen
class Unary:
    """`-e` or `NOT e`."""

    operator: Literal["-", "NOT"]
    operand: Expression
    span: Span


@frozen
class Binary:
    """Arithmetic, a comparison, AND or OR."""

    operator: str
    left: Expression
    right: Expression
    span: Span


@frozen
class NullTest:
    """`e IS [NOT] NULL`."""

    operand: Expression
    negated: bool
    span: Span


@frozen
class DistinctTest:
    """`a IS [NOT] DISTINCT FROM b`."""

    left: Expression
    right: Expression
    negated: bool
    span: Span


@frozen
class Between:
    """`e [NOT] BETWEEN low AND high`."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@frozen
class In:
    """`e [NOT] IN (e, …)`."""

    operand: Expression
    values: tuple[Expression, ...]
    negated: bool
    span: Span


@frozen
class Like:
    """`e [NOT] LIKE '…'` or RLIKE."""

    operator: Literal["LIKE", "RLIKE"]
    operand: Expression
    pattern: Expression
    negated: bool
    span: Span


@frozen
class Case:
    """`CASE [e] WHEN … THEN … [ELSE …] END`."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    span: Span


Expression: TypeAlias = (
    Constant
    | Time
    | Interval
    | Column
    | Call
    | Lambda
    | Cast
    | Field
    | Element
    | JsonValue
    | Unary
    | Binary
    | NullTest
    | DistinctTest
    | Between
    | In
    | Like
    | Case
)

# --- patterns -------------------------------------------------------------------------------------


@frozen
class Variable:
    """`v`: one row."""

    name: Name
    span: Span


@frozen
class Nothing:
    """`()`: no row."""

    span: Span


@frozen
class Anchor:
    """`^` or `$`."""

    sign: Literal["^", "$"]
    span: Span


@frozen
class Concatenation:
    """`p q …`."""

    parts: tuple[Pattern, ...]
    span: Span


@frozen
class Alternation:
    """`p | q | …`, the preferred one first."""

    parts: tuple[Pattern, ...]
    span: Span


@frozen
class Permutation:
    """`PERMUTE(p, …)`."""

    parts: tuple[Pattern, ...]
    span: Span


@frozen
class Exclusion:
    """`{- p -}`."""

    part: Pattern
    span: Span


@frozen
class Repetition:
    """`p*`, `p{n,m}` and so on; `most` None: without end. `bounds`: the place of the quantifier."""

    part: Pattern
    least: int
    most: int | None
    reluctant: bool
    bounds: Span
    span: Span


Pattern: TypeAlias = (
    Variable | Nothing | Anchor | Concatenation | Alternation | Permutation | Exclusion | Repetition
)

# --- clauses --------------------------------------------------------------------------------------


@frozen
class ColumnDeclaration:
    """`x INT` in CREATE TABLE."""

    name: Name
    type: WrittenType


@frozen
class Table:
    """`CREATE TABLE t (…)`."""

    name: Name
    columns: tuple[ColumnDeclaration, ...]
    span: Span


@frozen
class Selected:
    """`[m.]x [AS name]` in SELECT."""

    table: Name | None
    column: Name
    alias: Name | None


@frozen
class Key:
    """`e [AS name]` in PARTITION BY or ORDER BY. A column is called by its own name, another
    expression by its text: `called`."""

    expression: Expression
    name: Name | None
    called: Name

    @property
    def column(self) -> Name | None:
        """The column that it is; None: another expression, or a column with another name."""
        is_bare = isinstance(self.expression, Column) and self.expression.variable is None
        return self.called if is_bare and self.name is None else None


@frozen
class Ordered:
    """`e [AS name] [ASC | DESC] [NULLS FIRST | NULLS LAST]` in ORDER BY; `nulls_first` None: not
    said."""

    key: Key
    descending: bool
    nulls_first: bool | None


@frozen
class Measure:
    """`e AS name` in MEASURES."""

    expression: Expression
    name: Name


RowsShown: TypeAlias = Literal["ONE ROW", "SHOW EMPTY", "OMIT EMPTY", "WITH UNMATCHED"]


@frozen
class Skip:
    """AFTER MATCH SKIP; `target` is the variable of `TO [FIRST | LAST] v`."""

    mode: Literal["PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST"]
    target: Name | None
    span: Span


@frozen
class Subset:
    """`u = (v, …)`."""

    name: Name
    members: tuple[Name, ...]


@frozen
class Definition:
    """`v AS condition`."""

    name: Name
    condition: Expression


@frozen
class Query:
    """A whole text. `selected` None: `*`, which stands at `star_span`. `rows_span` and `match_span`
    are the places of the rows clause (or of PATTERN, where there is none) and of MATCH_RECOGNIZE.
    """

    table: Table | None
    selected: tuple[Selected, ...] | None
    star_span: Span | None
    source: Name
    partition_by: tuple[Key, ...]
    order_by: tuple[Ordered, ...]
    measures: tuple[Measure, ...]
    rows: RowsShown
    rows_span: Span
    skip: Skip
    pattern: Pattern
    within: Interval | None
    subsets: tuple[Subset, ...]
    definitions: tuple[Definition, ...]
    alias: Name | None
    match_span: Span
    span: Span
