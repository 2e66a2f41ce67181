"""The syntax trees of CEL: declarations, queries, formulas, conditions and expressions.

Every formula knows its `labels` (those that its matches can bind at their top level) and its
`outside` labels (those that its filters look up in the environment that it is evaluated in). Nodes
compare by identity, so that they can serve as keys of a memo.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any

from .values import Datum, Kind

Labels = frozenset[str]
Place = tuple[int, int]
"""Where something stands in the text: from the first place to before the second."""


# --- expressions and conditions -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Literal:
    """A constant."""

    datum: Datum


@dataclass(frozen=True, eq=False)
class Attribute:
    """`x.a`: the attribute at the chosen position of x."""

    label: str
    name: str


@dataclass(frozen=True, eq=False)
class Previous:
    """`PREV(x.a, k)`: the attribute at the k-th position of x before the chosen one."""

    label: str
    name: str
    distance: int = 1


@dataclass(frozen=True, eq=False)
class HasType:
    """`x IS R` or `x IS S>R` as a value: whether the event at the chosen position of x is one."""

    label: str
    stream: str | None
    type: str


@dataclass(frozen=True, eq=False)
class Aggregate:
    """`SUM(x.a)` and the like; with `prior` only over the positions before the chosen one.

    `name` is None for COUNT, which counts positions. COUNT(DISTINCT x.a) has the function DISTINCT.
    An aggregate of one's own is `own`, and `more` are its further attributes.
    """

    function: str
    label: str
    name: str | None
    prior: bool
    own: OwnAggregate | None = None
    more: tuple[str, ...] = ()
    place: int = 0  # the k of NTH(x.a, k)


@dataclass(frozen=True, eq=False)
class OwnFunction:
    """`FUNCTION name(kind[], …): kind`."""

    name: str
    parameters: tuple[Kind, ...]
    kind: Kind


@dataclass(frozen=True, eq=False)
class OwnCall:
    """`close(x.a, y.b)`: a function of one's own, of lists of values. Its arguments are aggregates
    that nothing evaluates by themselves."""

    function: OwnFunction
    arguments: tuple[Aggregate, ...]


@dataclass(frozen=True, eq=False)
class Total:
    """`COUNT(*)`, `APPROX_COUNT(*)`, `COUNT(x)`, `SUM(x.a)` and others, of all matches of a group.

    `label` is None where `*` stands, `name` where no attribute does.
    """

    function: str
    label: str | None
    name: str | None


@dataclass(frozen=True, eq=False)
class Unary:
    """`-e` or `ABS(e)`; `operator` is `-` or `ABS`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, eq=False)
class Binary:
    """`e + e` and the other arithmetic."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False)
class Variable:
    """A parameter or a variable of STATE, in an aggregate of one's own; an item, in HAVING."""

    name: str


@dataclass(frozen=True, eq=False)
class Choice:
    """`LEAST(e, …)`, `GREATEST(e, …)` or `COALESCE(e, …)`."""

    function: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """`CASE WHEN p THEN e … ELSE e END`, and `IF(p, e, e)`."""

    branches: tuple[tuple[Condition, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True, eq=False)
class Call:
    """A function of values; `kind` is what CAST and TRY_CAST make."""

    function: str
    operands: tuple[Expression, ...]
    zone: str = "UTC"
    kind: Kind | None = None


@dataclass(frozen=True, eq=False)
class OwnAggregate:
    """`AGGREGATE name(…): kind STATE … STEP … RESULT …`.

    `state`: the variables with their kinds and first values; `steps`: the variables that STEP gives
    a new value.
    """

    name: str
    parameters: tuple[tuple[str, Kind], ...]
    kind: Kind
    state: tuple[tuple[str, Kind, Expression], ...]
    steps: tuple[tuple[str, Expression], ...]
    result: Expression


Expression = (
    Literal
    | Attribute
    | Previous
    | HasType
    | Aggregate
    | OwnCall
    | Total
    | Unary
    | Binary
    | Variable
    | Choice
    | Case
    | Call
)


@dataclass(frozen=True)
class Bend:
    """How far a value of a comparison may move for a near miss: `side` is the operand of the
    comparison (0 left, 1 right; of BETWEEN one for each side) that moves, by at most `room`, or
    where that is None by `share` of its absolute value; a `whole` one moves by one."""

    side: int
    share: float
    room: float | None = None
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Comparison:
    """One comparison, `negated` where a NOT has been pushed to it (or stands in it: NOT IN).

    `operator` is one of `= <> < <= > >= BETWEEN IN LIKE RLIKE ISNULL DISTINCT`; the first operand
    is the tested one.
    """

    operator: str
    operands: tuple[Expression, ...]
    negated: bool = False
    place: Place | None = None
    bends: tuple[Bend | None, ...] = ()
    limit: float = 1.0  # of what its bends allow


@dataclass(frozen=True, eq=False)
class Not:
    """NOT p."""

    body: Condition


@dataclass(frozen=True, eq=False)
class Both:
    """p AND q, between conditions."""

    left: Condition
    right: Condition


@dataclass(frozen=True, eq=False)
class Either:
    """p OR q, between conditions."""

    left: Condition
    right: Condition


@dataclass(frozen=True, eq=False)
class Quantified:
    """`SOME x, y: p`, or `EVERY x, y: p`; `negated` where a NOT has been pushed to it."""

    labels: tuple[str, ...]
    every: bool
    body: Condition
    negated: bool = False


Condition = Comparison | Not | Both | Either | Quantified


def parts(expression: Expression) -> list[Expression]:
    """The expression and everything inside it."""
    if isinstance(expression, Unary):
        return [expression, *parts(expression.operand)]
    if isinstance(expression, Binary):
        return [expression, *parts(expression.left), *parts(expression.right)]
    inside: list[Expression] = []
    if isinstance(expression, Choice | Call):
        inside = [*expression.operands]
    if isinstance(expression, OwnCall):
        inside = [*expression.arguments]
    if isinstance(expression, Case):
        asked = [one for condition, _ in expression.branches for one in comparisons(condition)]
        inside = [operand for one in asked for operand in one.operands]
        inside += [*(value for _, value in expression.branches), expression.otherwise]
    return [expression, *(part for one in inside for part in parts(one))]


def comparisons(condition: Condition) -> list[Comparison]:
    """The comparisons of a condition, from left to right."""
    if isinstance(condition, Comparison):
        return [condition]
    if isinstance(condition, Not | Quantified):
        return comparisons(condition.body)
    return comparisons(condition.left) + comparisons(condition.right)


def named(condition: Condition) -> Labels:
    """The labels that the condition names outside aggregates, without those of its own SOME and
    EVERY."""
    if isinstance(condition, Quantified):
        return named(condition.body) - {*condition.labels}
    if isinstance(condition, Not):
        return named(condition.body)
    if isinstance(condition, Both | Either):
        return named(condition.left) | named(condition.right)
    return frozenset(
        part.label
        for operand in condition.operands
        for part in parts(operand)
        if isinstance(part, Attribute | Previous | HasType)
        or (isinstance(part, Aggregate) and part.prior)
    )


def mentioned(condition: Condition) -> Labels:
    """Every label that the condition mentions, in aggregates too."""
    return frozenset(
        part.label
        for comparison in comparisons(condition)
        for operand in comparison.operands
        for part in parts(operand)
        if isinstance(part, Attribute | Previous | HasType | Aggregate)
    )


def looked_back(condition: Condition) -> Labels:
    """The labels of which the condition takes PREV or PRIOR."""
    return frozenset(
        part.label
        for comparison in comparisons(condition)
        for operand in comparison.operands
        for part in parts(operand)
        if isinstance(part, Previous) or (isinstance(part, Aggregate) and part.prior)
    )


# --- formulas -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula; `labels` and `outside` as the module says."""

    @cached_property
    def labels(self) -> Labels:
        """The labels that a match of the formula can bind at its top level."""
        raise NotImplementedError

    @cached_property
    def outside(self) -> Labels:
        """The labels that filters in the formula look up in its environment."""
        raise NotImplementedError

    @cached_property
    def scope_outside(self) -> Labels:
        """`outside` of the formula as a scope: what it binds itself, it does not look up. Labels of
        the scopes around are not reduced to what is to the left of a FIRST in it."""
        around = plain(self.outside) | seen_to_the_left(self.outside)
        return (around - self.labels) | {before(label) for label in seen_before(self.outside)}


_LEFT, _BEFORE = "left of here: ", "before: "


def left_of(label: str) -> str:
    """The name under which an environment has the positions of a label to the left of a FIRST."""
    return _LEFT + label


def before(label: str) -> str:
    """The name under which an environment has the positions that PREV and PRIOR of a label, bound
    in the operand of a FIRST, look back over beyond its own."""
    return _BEFORE + label


def seen_to_the_left(names: Labels) -> Labels:
    """The labels among the names of `left_of`."""
    return frozenset(name.removeprefix(_LEFT) for name in names if name.startswith(_LEFT))


def seen_before(names: Labels) -> Labels:
    """The labels among the names of `before`."""
    return frozenset(name.removeprefix(_BEFORE) for name in names if name.startswith(_BEFORE))


def plain(names: Labels) -> Labels:
    """The names that are labels themselves."""
    return frozenset(name for name in names if not name.startswith((_LEFT, _BEFORE)))


@dataclass(frozen=True, eq=False)
class Atom(Formula):
    """`R` or `S>R`; `place` is where it stands in the text. `times`: of a query FOR EACH a row with
    VALID, since and until, None where there is no bound."""

    stream: str | None
    type: str
    place: int
    times: tuple[Any, Any] | None = None

    @cached_property
    def labels(self) -> Labels:
        return frozenset([self.type])

    @cached_property
    def outside(self) -> Labels:
        return frozenset()


@dataclass(frozen=True, eq=False)
class As(Formula):
    """`φ AS x`; `place` is where x stands in the text."""

    body: Formula
    label: str
    place: int

    @cached_property
    def labels(self) -> Labels:
        return self.body.labels | {self.label}

    @cached_property
    def outside(self) -> Labels:
        return self.body.outside


@dataclass(frozen=True, eq=False)
class _Pair(Formula):
    left: Formula
    right: Formula

    @cached_property
    def labels(self) -> Labels:
        return self.left.labels | self.right.labels

    @cached_property
    def outside(self) -> Labels:
        return self.left.outside | self.right.outside


class Then(_Pair):
    """`φ ; φ`."""


@dataclass(frozen=True, eq=False)
class Next(_Pair):
    """`φ : φ`; `sign` is where the `:` stands. With `gap` one event may stand between."""

    sign: Place | None = None
    gap: bool = False


class Or(_Pair):
    """`φ OR φ`."""


class And(_Pair):
    """`φ AND φ`."""


class All(_Pair):
    """`φ ALL φ`."""


@dataclass(frozen=True, eq=False)
class First(Formula):
    """`left ; FIRST body`, or `left ; (FIRST body){least,most}`, most None: as many as there are.

    `absent`: χ of `(!χ ; FIRST body)+`, absent before each round; `gap`: that of `left ; !gap ;
    FIRST body`, absent before the first one.
    """

    left: Formula
    body: Formula
    least: int = 1
    most: int | None = 1
    absent: Formula | None = None
    gap: Formula | None = None
    place: Place | None = None  # of the gap

    @cached_property
    def labels(self) -> Labels:
        return self.left.labels | self.body.labels

    @cached_property
    def outside(self) -> Labels:
        chosen = self.body.scope_outside
        if self.absent is not None:
            chosen |= self.absent.scope_outside - self.body.labels
        around = seen_before(chosen)
        found = {left_of(label) for label in plain(chosen) | around}
        found |= {before(label) for label in around}
        gap = frozenset[str]() if self.gap is None else self.gap.scope_outside - self.labels
        return self.left.outside | found | gap


@dataclass(frozen=True, eq=False)
class NotBetween(Formula):
    """`φ ; !φ ; φ`; `absent` is the negated one."""

    left: Formula
    absent: Formula
    right: Formula
    place: Place | None = None

    @cached_property
    def labels(self) -> Labels:
        return self.left.labels | self.right.labels

    @cached_property
    def outside(self) -> Labels:
        sides = self.left.outside | self.right.outside
        return sides | (self.absent.scope_outside - self.labels)


@dataclass(frozen=True, eq=False)
class NotBefore(Formula):
    """`!φ FOR d ; φ`; `absent` is the negated one, `window` is d."""

    absent: Formula
    body: Formula
    window: Window
    place: Place | None = None

    @cached_property
    def labels(self) -> Labels:
        return self.body.labels

    @cached_property
    def outside(self) -> Labels:
        return self.body.outside | (self.absent.scope_outside - self.labels)


@dataclass(frozen=True, eq=False)
class NotAfter(Formula):
    """`φ ; !φ FOR d`; `window` None: no FOR, the window of the query from the start."""

    body: Formula
    absent: Formula
    window: Window | None
    place: Place | None = None

    @cached_property
    def labels(self) -> Labels:
        return self.body.labels

    @cached_property
    def outside(self) -> Labels:
        return self.body.outside | (self.absent.scope_outside - self.labels)


@dataclass(frozen=True, eq=False)
class Unless(Formula):
    """`φ UNLESS φ`."""

    left: Formula
    right: Formula
    place: Place | None = None

    @cached_property
    def labels(self) -> Labels:
        return self.left.labels

    @cached_property
    def outside(self) -> Labels:
        return self.left.outside | (self.right.scope_outside - self.labels)


@dataclass(frozen=True, eq=False)
class Filter(Formula):
    """`φ FILTER p`; `clauses` is p in conjunctive normal form, each clause an OR."""

    body: Formula
    condition: Condition
    clauses: tuple[tuple[Comparison | Quantified, ...], ...]

    @cached_property
    def labels(self) -> Labels:
        return self.body.labels

    @cached_property
    def outside(self) -> Labels:
        back = {before(label) for label in looked_back(self.condition) & self.labels}
        return self.body.outside | (mentioned(self.condition) - self.labels) | back


@dataclass(frozen=True)
class Window:
    """The size of a window: `unit` is EVENTS, VALUE (a plain number) or TIME (`size` in
    microseconds). It may be longer by `bent` of its size."""

    size: int | float
    unit: str
    attribute: str | None
    place: Place | None = field(default=None, compare=False)
    bent: float = 0.0


@dataclass(frozen=True, eq=False)
class Within(Formula):
    """`WITHIN[w](φ)`, which is no scope."""

    body: Formula
    window: Window

    @cached_property
    def labels(self) -> Labels:
        return self.body.labels

    @cached_property
    def outside(self) -> Labels:
        return self.body.outside


@dataclass(frozen=True, eq=False)
class _Scope(Formula):
    body: Formula

    @cached_property
    def labels(self) -> Labels:
        return self.body.labels

    @cached_property
    def outside(self) -> Labels:
        return self.body.scope_outside


@dataclass(frozen=True, eq=False)
class Repeat(_Scope):
    """`φ+`, or `φ:+` where `contiguous`; `φ{least,most}`, most None: as many as there are."""

    contiguous: bool
    least: int = 1
    most: int | None = None
    place: Place | None = None  # of the braces


@dataclass(frozen=True, eq=False)
class Selector(_Scope):
    """`STRICT(φ)` and the others; `kind` is STRICT, NXT, LAST or MAX."""

    kind: str


@dataclass(frozen=True, eq=False)
class Project(_Scope):
    """`PROJECT[x, y](φ)`: the kept labels, each with its place in the text."""

    kept: tuple[tuple[str, int], ...]

    @cached_property
    def labels(self) -> Labels:
        return self.body.labels & {label for label, _ in self.kept}


@dataclass(frozen=True, eq=False)
class OtherEvent(_Scope):
    """`NOT(φ)`: one event at which φ has no match; it binds no label."""

    @cached_property
    def labels(self) -> Labels:
        return frozenset()


@dataclass(frozen=True, eq=False)
class Rename(_Scope):
    """`φ[old -> new]`; `place` is where `new` stands in the text."""

    old: str
    new: str
    place: int

    @cached_property
    def labels(self) -> Labels:
        return (self.body.labels - {self.old}) | {self.new}


def parts_of(formula: Formula) -> list[Formula]:
    """A formula and all formulas inside it, in the order of the text."""
    inside = [getattr(formula, field.name) for field in fields(formula)]
    operands = [part for part in inside if isinstance(part, Formula)]
    return [formula, *(part for operand in operands for part in parts_of(operand))]


def windows_in(formula: Formula) -> list[Window]:
    """The windows in the formula and the lengths of its absences, in the order of the text."""
    found = [
        part.window for part in parts_of(formula) if isinstance(part, Within | NotBefore | NotAfter)
    ]
    return [window for window in found if window is not None]


# --- files --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventType:
    """One declared event type of one stream; `derived` are values made of other attributes."""

    stream: str
    name: str
    attributes: dict[str, Kind]
    derived: dict[str, Expression] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelItem:
    """An item `x` or `x[a, b]` of SELECT; `attributes` is None where all are meant."""

    label: str
    attributes: tuple[str, ...] | None


@dataclass(frozen=True)
class ExpressionItem:
    """An item `expression AS name` of SELECT."""

    expression: Expression
    name: str


@dataclass(frozen=True)
class Confidence:
    """WITH CONFIDENCE: at least so much, or more than it where `strict`."""

    least: Fraction
    strict: bool


@dataclass(frozen=True)
class Uncertain:
    """Uncertain time: the attributes of the least and the greatest time, the step between two
    times, a whole number (of microseconds), and the attribute with the weights of its times."""

    low: str
    high: str
    step: int
    weights: str | None = None


@dataclass(frozen=True)
class Rate:
    """`LIMIT count PER length`; without a length PER PARTITION."""

    count: int
    length: Window | None


@dataclass(frozen=True)
class Query:
    """One query; `items` is None for `*` and empty for NONE, `streams` None without FROM.

    A key of `partition_by` holds the attributes of which an event's type has one. `per_start` is
    FIRST or LONGEST, which compare matches with one start, or empty; `disjoint`: of these, each
    that starts after the end of the one before. `collapsed`: one row for each end. `per`: TOTAL
    with one row for each END, each PARTITION or each span of so many microseconds; None: no
    TOTAL. `for_each`: the name of the parameter set. `rate`: how many rows a part has in a time.
    `key_values`: what keys are that are no attributes. `bent_window`: that of a near miss, while
    absences keep the window.
    """

    name: str | None
    selector: str
    items: tuple[LabelItem | ExpressionItem, ...] | None
    streams: tuple[str, ...] | None
    formula: Formula
    partition_by: tuple[tuple[str, ...], ...] = ()
    window: Window | None = None
    consume_by: str = "NONE"
    limit: int | None = None
    per_start: str = ""
    disjoint: bool = False
    collapsed: bool = False
    per: str | int | None = None
    having: Condition | None = None
    for_each: str | None = None
    confidence: Confidence | None = None
    rate: Rate | None = None
    key_values: tuple[tuple[str, Expression], ...] = ()
    bent_window: Window | None = None


@dataclass(frozen=True)
class File:
    """A `.cel` file: the event types of all its streams, its queries, its parameter sets with
    their attributes, the streams whose time is uncertain, those whose events last: stream → the
    attributes of start and end, what formulas that are sequences are made of, and the attributes of
    VALID by parameter set."""

    streams: tuple[str, ...]
    types: tuple[EventType, ...]
    queries: tuple[Query, ...]
    parameters: dict[str, dict[str, Kind]] = field(default_factory=dict)
    uncertain: dict[str, Uncertain] = field(default_factory=dict)
    lasting: dict[str, tuple[str, str]] = field(default_factory=dict)
    sequences: dict[Formula, Any] = field(default_factory=dict)
    valid: dict[str, tuple[str, str]] = field(default_factory=dict)
