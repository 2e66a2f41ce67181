"""Conditions that exclude each other, found by the range that they leave to each value.

Only certain contradictions are found: between comparisons of one expression with constants, and
between clauses that no event can change.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.core.terms import nodes_written_in
from celc.core.traversal import operands_of
from celc.diagnostics.errors import Diagnostic, Diagnostics, Fix
from celc.diagnostics.messages.warnings import never_matches
from celc.diagnostics.source import Span
from celc.resolve.scopes import Frame, look_up
from celc.resolve.types.conversions import is_null

_DISCRETE = (
    core.DataType.INT,
    core.DataType.LONG,
    core.DataType.TIMESTAMP,
    core.DataType.DATE,
    core.DataType.INTERVAL,
)


@dataclass(slots=True)
class _Range:
    """The values that the conditions so far leave to one expression."""

    first: Span
    low: core.Value | None = None
    low_open: bool = False
    high: core.Value | None = None
    high_open: bool = False
    allowed: set[core.Value] | None = None
    banned: set[core.Value] = field(default_factory=set)
    must_be_null: bool = False
    must_have_value: bool = False

    def is_empty(self) -> bool:
        if self.must_be_null:
            return self.must_have_value
        if self.allowed is not None:
            return not self.allowed
        if self.low is None or self.high is None:
            return False
        if self.low == self.high:
            return self.low_open or self.high_open or self.low in self.banned
        return self.low > self.high  # type: ignore[operator]

    def ban(self, values: Iterable[core.Value]) -> None:
        self.banned.update(values)
        if self.allowed is not None:
            self.allowed.difference_update(self.banned)

    def allow(self, values: Iterable[core.Value]) -> None:
        wanted = {value for value in values if value not in self.banned and self._fits(value)}
        self.allowed = wanted if self.allowed is None else self.allowed & wanted

    def bound(self, operator: str, value: core.Value, discrete: bool) -> None:
        is_open = operator in ("<", ">")
        if is_open and discrete and isinstance(value, int):
            value, is_open = (value - 1 if operator == "<" else value + 1), False
        if operator in ("<", "<="):
            if self.high is None or (value, not is_open) < (self.high, not self.high_open):
                self.high, self.high_open = value, is_open
        elif self.low is None or (value, is_open) > (self.low, self.low_open):
            self.low, self.low_open = value, is_open
        if self.allowed is not None:
            self.allowed = {kept for kept in self.allowed if self._fits(kept)}

    def _fits(self, value: core.Value) -> bool:
        if self.low is not None and (value < self.low or (value == self.low and self.low_open)):  # type: ignore[operator]
            return False
        return self.high is None or not (
            value > self.high or (value == self.high and self.high_open)  # type: ignore[operator]
        )


def check_clauses(
    clauses: Iterable[core.Clause], frame: Frame, found: Diagnostics
) -> tuple[core.Predicate, ...]:
    """Warn where a filter's clauses cannot all be TRUE, whatever the events are.

    Only clauses are judged whose labels are all surely bound, because others may hold trivially.
    Returns what they ask of single events, to compare it with other filters (`excluding`); nothing
    where the clauses are impossible by themselves.
    """
    ranges: dict[core.Expression, _Range] = {}
    asked: list[core.Predicate] = []
    sound = True
    for clause in clauses:
        if any(
            isinstance(part, core.Previous) or (isinstance(part, core.Aggregate) and part.prior)
            for predicate in clause.predicates
            for part in nodes_written_in(predicate)
        ):
            continue
        if not all(_is_sure(frame, label) for label in clause.labels):
            continue
        if all(fold_predicate(predicate) is False for predicate in clause.predicates):
            found.add(_never_true(clause, found))
            sound = False
        elif len(clause.predicates) == 1:
            problem = _narrow(clause.predicates[0], ranges, frame)
            if problem is not None:
                found.add(problem)
                sound = False
            asked.append(clause.predicates[0])
    return tuple(filter(_asks_of_events, asked)) if sound else ()


def _asks_of_events(predicate: core.Predicate) -> bool:
    # The aggregates of a label differ where one filter sees fewer of its positions than another.
    return not any(isinstance(part, core.Aggregate) for part in nodes_written_in(predicate))


def by_subject(predicates: Iterable[core.Predicate]) -> dict[core.Expression, list[core.Predicate]]:
    """Predicates that compare something with constants, by what they compare."""
    gathered: dict[core.Expression, list[core.Predicate]] = {}
    for predicate in predicates:
        subject = _subject(predicate)
        if subject is not None:
            gathered.setdefault(subject, []).append(predicate)
    return gathered


def excluding(
    first: Iterable[core.Predicate], then: Mapping[core.Expression, Sequence[core.Predicate]]
) -> Diagnostic | None:
    """A warning where no event satisfies two filters that judge the same event.

    `then` is the second filter's part, by subject.
    """
    ranges: dict[core.Expression, _Range] = {}
    for predicate in first:
        _narrow(predicate, ranges, None)
    return _first_problem((p for subject in tuple(ranges) for p in then.get(subject, ())), ranges)


def exclusive(predicates: Iterable[core.Predicate]) -> Diagnostic | None:
    """A warning where several filters that judge the same events exclude each other."""
    return _first_problem(predicates, {})


def _first_problem(
    predicates: Iterable[core.Predicate], ranges: dict[core.Expression, _Range]
) -> Diagnostic | None:
    problems = (_narrow(predicate, ranges, None) for predicate in predicates)
    return next((problem for problem in problems if problem is not None), None)


def _is_sure(frame: Frame, label: str) -> bool:
    seen = look_up(frame, label)
    return seen is not None and seen[1]


def _never_true(clause: core.Clause, found: Diagnostics) -> Diagnostic:
    if any(is_null(side) for predicate in clause.predicates for side in operands_of(predicate)):
        reason, advice = "a comparison with NULL is never TRUE", "write IS NULL or IS NOT NULL"
        mended = _null_test(clause, found)
        if mended is not None:
            fixes = (Fix(clause.predicates[0].span, mended),)
            warning = never_matches(reason, f"write {mended}", clause.span)
            return replace(warning, fixes=fixes)
    else:
        reason, advice = "this condition is never TRUE", "leave the filter out, or mend it"
    return never_matches(reason, advice, clause.span)


def _null_test(clause: core.Clause, found: Diagnostics) -> str | None:
    """`x.a IS NULL` for `x.a = NULL`; None for anything else."""
    match clause.predicates:
        case (core.Comparison(operator=("=" | "!=") as operator) as only,):
            values = [side for side in (only.left, only.right) if not is_null(side)]
            if len(values) == 1 and _written_with(found.source.slice(only.span), operator):
                text = found.source.slice(values[0].span)
                return f"{text} IS {'' if operator == '=' else 'NOT '}NULL"
    return None


def _written_with(text: str, operator: str) -> bool:
    """Whether a comparison is written with this operator, and not under a NOT."""
    return any(sign in text for sign in (("!=", "<>") if operator == "!=" else ("=",))) and (
        operator == "!=" or not ("!=" in text or "<>" in text)
    )


def _narrow(
    predicate: core.Predicate, ranges: dict[core.Expression, _Range], frame: Frame | None
) -> Diagnostic | None:
    subject = _subject(predicate)
    if subject is None:
        return None
    allowed = ranges.get(subject)
    if allowed is None:
        allowed = ranges[subject] = _Range(predicate.span)
        if isinstance(subject, core.Aggregate) and subject.function == "COUNT":
            seen = look_up(frame, subject.label)
            allowed.low = seen[0].extent.least if seen is not None else 0
    elif allowed.is_empty():
        return None
    _apply(predicate, subject, allowed)
    if not allowed.is_empty():
        return None
    together = allowed.first != predicate.span
    reason = "these conditions exclude each other" if together else "this is never TRUE"
    advice = "a filter's conditions must all hold for every event of the label; OR admits either"
    return never_matches(reason, advice, predicate.span, allowed.first if together else None)


def _subject(predicate: core.Predicate) -> core.Expression | None:
    """The expression that a predicate compares with constants; None for other predicates."""
    match predicate:
        case core.Comparison():
            if isinstance(predicate.right, core.Constant):
                subject = predicate.left
            elif isinstance(predicate.left, core.Constant):
                subject = predicate.right
            else:
                return None
        case core.Membership() | core.NullTest():
            subject = predicate.operand
        case _:
            return None
    if isinstance(subject, core.Cast) and (subject.operand.type, subject.type) in core.EXACT_CASTS:
        return subject.operand
    return subject


def _apply(predicate: core.Predicate, subject: core.Expression, allowed: _Range) -> None:
    if isinstance(predicate, core.NullTest):
        if predicate.negated:
            allowed.must_have_value = True
        else:
            allowed.must_be_null = True
        return
    allowed.must_have_value = True
    if isinstance(predicate, core.Membership):
        (allowed.ban if predicate.negated else allowed.allow)(predicate.values)
        return
    assert isinstance(predicate, core.Comparison)
    operator, value = _with_constant(predicate)
    if operator == "!=":
        allowed.ban((value,))
    elif operator == "=":
        allowed.allow((value,))
    else:
        allowed.bound(operator, value, subject.type in _DISCRETE)


def _with_constant(predicate: core.Comparison) -> tuple[str, core.Value]:
    if isinstance(predicate.right, core.Constant):
        operator, constant = predicate.operator, predicate.right
    else:
        assert isinstance(predicate.left, core.Constant)
        operator, constant = core.MIRRORED[predicate.operator], predicate.left
    # A NULL here makes the predicate fold to FALSE, which was reported before.
    assert constant.value is not None
    return operator, constant.value
