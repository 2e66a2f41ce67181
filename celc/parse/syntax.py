"""The syntax tree: faithful to the text, every node with its span, nothing resolved yet.

Chains of one operator level are flat tuples, so a sequence of thousands of events is not a tree of
thousands of levels. Parentheses leave no node; they only widen the span of their content.

Long: the nodes are one tree, which a reader of the parser looks for in one place.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias, TypeGuard

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span


def _span() -> Span:
    return field(compare=False, repr=False)  # type: ignore[no-any-return]


@frozen
class Name:
    """An identifier as written; `text` is without backquotes."""

    text: str
    span: Span = _span()


# --- formulas -------------------------------------------------------------------------------------


@frozen
class EventAtom:
    """`R` or `S>R`."""

    stream: Name | None
    type: Name
    span: Span = _span()


@frozen
class As:
    """`φ AS x` (or IN)."""

    operand: Formula
    label: Name
    span: Span = _span()


@frozen
class Rename:
    """`φ[x -> y]`."""

    operand: Formula
    old: Name
    new: Name
    span: Span = _span()


@frozen
class Iteration:
    """`φ +`, or `φ :+` where `contiguous`; `φ{least,most}` and `φ:{…}`, most None: no limit."""

    operand: Formula
    contiguous: bool
    span: Span = _span()
    least: int = 1
    most: int | None = None


@frozen
class Link:
    """One step of a sequence: its operator (`;`, or `:` where `contiguous`), `!`, and operand.

    `optional`: a `?` follows the operand.
    """

    contiguous: bool
    negated: bool
    operand: Formula
    operator_span: Span = _span()
    optional: bool = False


@frozen
class Sequence:
    """`φ ; φ : φ? : φ ; !φ ; φ …`, left to right, at least one link. An optional operand has the
    same operator on both sides, and no `!` beside it. Not all operands are optional."""

    first: Formula
    links: tuple[Link, ...]
    span: Span = _span()
    first_is_optional: bool = False


@frozen
class First:
    """`FIRST ψ`, `(FIRST ψ){least,most}` or `(!χ ; FIRST ψ)+`: an operand of a sequence after `;`.

    `absent` is χ. `most` None: there is no limit. Elsewhere in a formula it has no meaning.
    """

    operand: Formula
    span: Span = _span()
    absent: Formula | None = None
    least: int = 1
    most: int | None = 1


@frozen
class Joint:
    """One step of a chain of AND and ALL."""

    operator: Literal["AND", "ALL"]
    operand: Formula
    operator_span: Span = _span()


@frozen
class Conjunction:
    """`φ AND φ ALL φ …`, left to right, at least one joint."""

    first: Formula
    joints: tuple[Joint, ...]
    span: Span = _span()


@frozen
class Disjunction:
    """`φ OR φ OR …`, at least two operands."""

    operands: tuple[Formula, ...]
    span: Span = _span()


@frozen
class Unless:
    """`φ UNLESS φ`."""

    left: Formula
    right: Formula
    span: Span = _span()


@frozen
class Filter:
    """`φ FILTER p`."""

    operand: Formula
    condition: Condition
    span: Span = _span()


Strategy = Literal["ALL", "ANY", "STRICT", "NXT", "LAST", "MAX"]


@frozen
class Selector:
    """`STRICT(φ)`, `NXT(φ)`, `LAST(φ)`, `MAX(φ)`."""

    strategy: Literal["STRICT", "NXT", "LAST", "MAX"]
    operand: Formula
    span: Span = _span()


@frozen
class Project:
    """`PROJECT[x, y](φ)`; the list may be empty."""

    labels: tuple[Name, ...]
    operand: Formula
    span: Span = _span()


@frozen
class Within:
    """`WITHIN[w](φ)`."""

    window: Window
    operand: Formula
    span: Span = _span()


@frozen
class AbsenceBefore:
    """`!ψ FOR d ; φ`: `absent` is ψ, `length` is d, and φ the rest of the sequence."""

    absent: Formula
    length: Window
    operand: Formula
    span: Span = _span()


@frozen
class AbsenceAfter:
    """`φ ; !ψ FOR d`: `operand` is φ, the rest of the sequence; `absent` is ψ; `length` is d, None
    without FOR. `bang` is the place of `!`."""

    operand: Formula
    absent: Formula
    length: Window | None
    bang: Span
    span: Span = _span()


@frozen
class OtherEvent:
    """CEQL's `NOT(R)`, one event that is not one of R's; R may have conditions."""

    operand: Formula
    span: Span = _span()


Formula: TypeAlias = (
    EventAtom
    | As
    | Rename
    | Iteration
    | First
    | Sequence
    | Conjunction
    | Disjunction
    | Unless
    | Filter
    | Selector
    | Project
    | Within
    | AbsenceBefore
    | AbsenceAfter
    | OtherEvent
)

# --- conditions -----------------------------------------------------------------------------------


@frozen
class NotCondition:
    """`NOT p`."""

    operand: Condition
    span: Span = _span()


@frozen
class AndCondition:
    """`p AND p AND …`, at least two operands."""

    operands: tuple[Condition, ...]
    span: Span = _span()


@frozen
class OrCondition:
    """`p OR p OR …`, at least two operands."""

    operands: tuple[Condition, ...]
    span: Span = _span()


ComparisonOperator = Literal["=", "!=", "<", "<=", ">", ">="]


@frozen
class Comparison:
    """`e op e`; `==` is written `=` here and `<>` is written `!=`."""

    operator: ComparisonOperator
    left: Expression
    right: Expression
    span: Span = _span()


@frozen
class Between:
    """`e [NOT] BETWEEN e AND e`."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span = _span()


@frozen
class InList:
    """`e [NOT] IN (e, …)`, also with CEQL's braces; at least one item."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool
    span: Span = _span()


@frozen
class PatternMatch:
    """`e [NOT] LIKE 'text'` or `e [NOT] RLIKE 'text'`; the pattern can be a parameter `rule.a`."""

    operator: Literal["LIKE", "RLIKE"]
    operand: Expression
    pattern: TextLiteral | Attribute
    negated: bool
    span: Span = _span()


@frozen
class NullTest:
    """`e IS [NOT] NULL`."""

    operand: Expression
    negated: bool
    span: Span = _span()


@frozen
class Holds:
    """`e`: a value that is the condition, TRUE or FALSE."""

    value: Expression
    span: Span = _span()


@frozen
class DistinctTest:
    """`e IS [NOT] DISTINCT FROM e`."""

    left: Expression
    right: Expression
    negated: bool
    span: Span = _span()


@frozen
class TypeTest:
    """`x IS R`, `x IS NOT S>R`: the type of the event of a label."""

    label: Name
    stream: Name | None
    type: Name
    negated: bool
    span: Span = _span()


@frozen
class Quantified:
    """`SOME x, y: p`, or `EVERY x, y: p` where `every`."""

    labels: tuple[Name, ...]
    every: bool
    condition: Condition
    span: Span = _span()


@frozen
class EventCondition:
    """CEQL's `x[p]`, where a bare attribute in p is x's."""

    label: Name
    condition: Condition
    span: Span = _span()


Condition: TypeAlias = (
    NotCondition
    | AndCondition
    | OrCondition
    | Comparison
    | Between
    | InList
    | PatternMatch
    | NullTest
    | Holds
    | DistinctTest
    | TypeTest
    | EventCondition
    | Quantified
)

# --- expressions ----------------------------------------------------------------------------------


@frozen
class IntegerLiteral:
    """A whole number. The parser accepts any size."""

    value: int
    span: Span = _span()


@frozen
class DoubleLiteral:
    """`1.5` or `1e-3`."""

    value: float
    span: Span = _span()


@frozen
class TextLiteral:
    """`'text'`, with doubled quotes undone."""

    value: str
    span: Span = _span()


@frozen
class BooleanLiteral:
    """TRUE or FALSE."""

    value: bool
    span: Span = _span()


@frozen
class NullLiteral:
    """NULL."""

    span: Span = _span()


@frozen
class TimeLiteral:
    """`TIMESTAMP 'text'` or `DATE 'text'`; the text is not read yet."""

    kind: Literal["TIMESTAMP", "DATE"]
    text: TextLiteral
    span: Span = _span()


@frozen
class DurationPart:
    """`10 MINUTES`; the unit is upper-case, singular or plural as written."""

    amount: IntegerLiteral | DoubleLiteral
    unit: Name
    span: Span = _span()


@frozen
class DurationLiteral:
    """`1 HOUR 30 MINUTES` in an expression."""

    parts: tuple[DurationPart, ...]
    span: Span = _span()


@frozen
class Attribute:
    """`x.a`, or a bare `a` (label None) inside CEQL's `x[…]`."""

    label: Name | None
    attribute: Name
    span: Span = _span()


@frozen
class Arithmetic:
    """`e op e`, one operator; chains lean to the left."""

    operator: Literal["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression
    span: Span = _span()


@frozen
class Negation:
    """`-e` (and `+e` leaves no node)."""

    operand: Expression
    span: Span = _span()


@frozen
class Call:
    """`F(e)`, `F(x)`, `F(PRIOR e)` or `F(DISTINCT e)`. The parser does not check the function's
    name. A bare identifier as argument (`COUNT(x)`) is an `Attribute` without label."""

    function: Name
    argument: Expression
    prior: bool
    span: Span = _span()
    distance: int = 1  # the second argument of `PREV(e, k)`
    more: tuple[Expression, ...] = ()  # the further arguments of other functions
    distinct: bool = False
    zone: TextLiteral | None = None  # of `F(…, e AT TIME ZONE 'z')`


@frozen
class CallOfAll:
    """`F(*)`. The parser does not check the function's name."""

    function: Name
    span: Span = _span()


@frozen
class Conditional:
    """`CASE WHEN p THEN e … ELSE e END`, of one branch also `IF(p, e, e)`; without ELSE None.
    `CASE a WHEN b …` has the conditions `a = b`."""

    branches: tuple[tuple[Condition, Expression], ...]
    otherwise: Expression | None
    span: Span = _span()


@frozen
class Cast:
    """`CAST(e AS T)`, or, if `tried`, TRY_CAST; `zone` of `e AT TIME ZONE 'z'`."""

    operand: Expression
    type: WrittenType
    zone: TextLiteral | None
    tried: bool
    span: Span = _span()


@frozen
class Field:
    """`e.b`: a field of a STRUCT."""

    operand: Expression
    name: Name
    span: Span = _span()


@frozen
class Element:
    """`e[i]`: an element of an ARRAY, or the value of a MAP at a key."""

    operand: Expression
    index: Expression
    span: Span = _span()


@frozen
class JsonValue:
    """`e:b.c[0]`: what a text of JSON holds at a path of names and places, at least one."""

    operand: Expression
    path: tuple[str | int, ...]
    span: Span = _span()


Part: TypeAlias = Field | Element | JsonValue

OfSite: TypeAlias = Attribute | Call | CallOfAll | Conditional | Cast | Part
"""The expressions whose meaning depends on the place where they stand."""

Expression: TypeAlias = (
    IntegerLiteral
    | DoubleLiteral
    | TextLiteral
    | BooleanLiteral
    | NullLiteral
    | TimeLiteral
    | DurationLiteral
    | Attribute
    | Arithmetic
    | Negation
    | Call
    | CallOfAll
    | Conditional
    | Cast
    | Part
)


def word_of(node: Conditional | Cast | Part) -> str:
    """What an expression that is no call is called in messages."""
    match node:
        case Conditional():
            return "CASE"
        case Cast():
            return "CAST"
        case Field():
            return f".{node.name.text}"
        case Element():
            return "[…]"
        case JsonValue():
            return ":"


def is_bare_name(node: Expression) -> TypeGuard[Attribute]:
    """Whether it is a name without a dot, which stands for a label as an argument."""
    return isinstance(node, Attribute) and node.label is None


# --- declarations, clauses, files -----------------------------------------------------------------


@frozen
class WrittenType:
    """`INT`, `DECIMAL(10, 2)`, `ARRAY<INT>` or `STRUCT<a: INT>`.

    The words of `TIMESTAMP WITHOUT TIME ZONE` are one name. Which parts a type has is known later.
    """

    name: Name
    sizes: tuple[int, ...]
    parts: tuple[WrittenType | TypeField, ...]
    span: Span = _span()


@frozen
class TypeField:
    """`name: TYPE` inside a type."""

    name: Name
    type: WrittenType
    span: Span = _span()


@frozen
class AttributeDeclaration:
    """`name: TYPE`."""

    name: Name
    type: WrittenType
    span: Span = _span()
    value: Expression | None = None  # of `name: TYPE = e`


@frozen
class EventDeclaration:
    """`EVENT R { … }`."""

    name: Name
    attributes: tuple[AttributeDeclaration, ...]
    span: Span = _span()

    @property
    def is_rest(self) -> bool:
        """Whether it is `EVENT OTHER { }`: any type of the table that is not declared."""
        return self.name.text == "OTHER" and not self.attributes


@frozen
class ValidClause:
    """`VALID [since, until]`; other numbers of names are errors later."""

    names: tuple[Name, ...]
    span: Span = _span()


@frozen
class ParametersDeclaration:
    """`PARAMETERS rule { … } VALID [since, until]`."""

    name: Name
    attributes: tuple[AttributeDeclaration, ...]
    span: Span = _span()
    valid: ValidClause | None = None


@frozen
class UncertainClause:
    """`UNCERTAIN [low, high] BY 1 SECOND WEIGHTED w`; other numbers of names are errors later."""

    names: tuple[Name, ...]
    step: IntegerLiteral | DoubleLiteral | DurationWindow
    weights: Name | None
    span: Span = _span()


@frozen
class LastingClause:
    """`LASTING [start, end]`; other numbers of names are errors later."""

    names: tuple[Name, ...]
    span: Span = _span()


@frozen
class StreamDeclaration:
    """`CREATE STREAM S { … }`."""

    name: Name
    events: tuple[EventDeclaration, ...]
    span: Span = _span()
    times: UncertainClause | LastingClause | None = None


@frozen
class StateDeclaration:
    """`name: TYPE = e` in an aggregate's STATE."""

    declared: AttributeDeclaration
    value: Expression
    span: Span = _span()


@frozen
class StepDeclaration:
    """`name = e` in an aggregate's STEP."""

    name: Name
    value: Expression
    span: Span = _span()


@frozen
class AggregateDeclaration:
    """`AGGREGATE name(a: TYPE, …): TYPE STATE … STEP … RESULT e`."""

    name: Name
    parameters: tuple[AttributeDeclaration, ...]
    type: WrittenType
    state: tuple[StateDeclaration, ...]
    steps: tuple[StepDeclaration, ...]
    result: Expression
    span: Span = _span()


@frozen
class FunctionDeclaration:
    """`FUNCTION name(TYPE[], …): TYPE`; `parameters` are the types of the elements."""

    name: Name
    parameters: tuple[WrittenType, ...]
    type: WrittenType
    span: Span = _span()


@frozen
class AllItems:
    """`SELECT *`."""

    span: Span = _span()


@frozen
class NoItems:
    """`SELECT NONE`."""

    span: Span = _span()


@frozen
class LabelItem:
    """`x` or `x[a, b]` in SELECT; `attributes` is None without brackets."""

    label: Name
    attributes: tuple[Name, ...] | None
    span: Span = _span()


@frozen
class ExpressionItem:
    """`expression AS name` in SELECT; `name` is None where the AS is missing (an error later)."""

    expression: Expression
    name: Name | None
    span: Span = _span()


SelectItem: TypeAlias = LabelItem | ExpressionItem


@frozen
class PerStart:
    """FIRST or LONGEST after SELECT, perhaps with DISJOINT."""

    end: Literal["FIRST", "LONGEST"]
    disjoint: bool
    span: Span = _span()


@frozen
class Together:
    """TOTAL or COLLAPSED after SELECT: rows of many matches."""

    kind: Literal["TOTAL", "COLLAPSED"]
    span: Span = _span()


@frozen
class SelectClause:
    """`SELECT [strategy] [FLAT] items`; `strategy` None means ALL. `per_start` and `together`
    replace a strategy. Something beside `together` in that place is an error later."""

    strategy: Strategy | None
    strategy_span: Span | None
    items: AllItems | NoItems | tuple[SelectItem, ...]
    span: Span = _span()
    per_start: PerStart | None = None
    together: Together | None = None
    flat: bool = False  # FLAT: a column for each attribute of a label


@frozen
class EventsWindow:
    """`WITHIN n EVENTS`."""

    size: IntegerLiteral | DoubleLiteral
    span: Span = _span()


@frozen
class DurationWindow:
    """`WITHIN 1 HOUR 30 MINUTES [ts]`."""

    parts: tuple[DurationPart, ...]
    attribute: Name | None
    span: Span = _span()


@frozen
class ValueWindow:
    """`WITHIN n [attribute]`."""

    size: IntegerLiteral | DoubleLiteral
    attribute: Name
    span: Span = _span()


Window: TypeAlias = EventsWindow | DurationWindow | ValueWindow


@frozen
class ConsumeClause:
    """`CONSUME BY …`."""

    policy: Literal["NONE", "ANY", "PARTITION"]
    span: Span = _span()


@frozen
class PerClause:
    """`PER END`, `PER PARTITION` or `PER 1 HOUR`; other windows are errors later."""

    group: Literal["END", "PARTITION"] | Window
    span: Span = _span()


@frozen
class HavingClause:
    """`HAVING p`; names in p are `Attribute`s without label."""

    condition: Condition
    span: Span = _span()


@frozen
class ConfidenceClause:
    """`WITH CONFIDENCE >= 0.8`; other comparisons than `>=` and `>` are errors later."""

    operator: ComparisonOperator
    bound: IntegerLiteral | DoubleLiteral
    span: Span = _span()


@frozen
class LimitClause:
    """`LIMIT n`, `LIMIT n PER PARTITION` or `LIMIT n PER 1 HOUR`, or a number for the length; other
    windows, and END, are errors later."""

    count: IntegerLiteral | DoubleLiteral
    span: Span = _span()
    per: PerClause | IntegerLiteral | DoubleLiteral | None = None


@frozen
class Alternatives:
    """CEQL's `[a, b]` in PARTITION BY: one key, the first of these that an event's type has."""

    names: tuple[Name, ...]
    span: Span


@frozen
class KeyExpression:
    """`UPPER(a)` in PARTITION BY; names in it are attributes of each event."""

    value: Expression
    span: Span = _span()


Key: TypeAlias = Name | Alternatives | KeyExpression


@frozen
class Query:
    """One query. A bare formula is a query whose `select` is None (meaning `SELECT *`).

    `streams` is None without FROM. `span` covers the query from `QUERY` or `SELECT` to its end.
    `per` and `having` come only after TOTAL.
    """

    name: Name | None
    select: SelectClause | None
    streams: tuple[Name, ...] | None
    formula: Formula
    partition_by: tuple[Key, ...] | None
    window: Window | None
    consume: ConsumeClause | None
    limit: LimitClause | None
    span: Span = _span()
    per: PerClause | None = None
    having: HavingClause | None = None
    for_each: Name | None = None
    confidence: ConfidenceClause | None = None


@frozen
class File:
    """A whole `.cel` file: declarations, then at least one query.

    Streams, aggregates, functions and parameter sets are declared in any order.
    """

    streams: tuple[StreamDeclaration, ...]
    queries: tuple[Query, ...]
    span: Span = _span()
    aggregates: tuple[AggregateDeclaration, ...] = ()
    parameters: tuple[ParametersDeclaration, ...] = ()
    functions: tuple[FunctionDeclaration, ...] = ()
