"""SELECT TOTAL: the matches of each group are listed, and what is asked of all of them is computed.

Whole numbers are Python's, sums of DOUBLEs are fractions: both are exact until a row shows them.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from . import decimals
from .clauses import Match, Part, Stream, open_stream, pick_query
from .decimals import DecimalKind
from .nodes import (
    Binary,
    Call,
    Case,
    Choice,
    Expression,
    ExpressionItem,
    Literal,
    Total,
    Unary,
    parts,
)
from .own_aggregates import Variables, holds, of_values
from .own_aggregates import value as value_of_variables
from .parameters import check_parameters, rows_of, shown_values
from .parser import parse
from .values import (
    WHOLE_NUMBERS,
    CelError,
    Datum,
    Kind,
    absolute,
    aggregate,
    arithmetic,
    convert,
    microseconds,
    moment,
    negate,
    number_kind,
    wrap,
)

_WHOLE = (*WHOLE_NUMBERS, Kind.DECIMAL)
_ROOM = {
    Kind.BYTE: 1 << 7,
    Kind.SHORT: 1 << 15,
    Kind.INT: 1 << 31,
    Kind.LONG: 1 << 63,
    Kind.DECIMAL: 10**38,
}


class RunError(CelError):
    """A value that leaves its type: the run ends at the event `end_pos`."""

    def __init__(self, end_pos: int, what: str) -> None:
        super().__init__(f"{what}, at the event {end_pos}; APPROX_COUNT(*) has no limit")
        self.end_pos = end_pos


class _Overflow(Exception):
    """A value that leaves its type."""


def evaluate_totals(
    text: str,
    events: Sequence[Mapping[str, Any]],
    *,
    query: str | None = None,
    order_by: str | Sequence[str] | None = None,
    ties: str | None = None,
    work_limit: int | None = None,
    at_end: str = "open",
    clock: Any = None,
    parameters: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> list[dict[str, Any]]:
    """The rows of a query with TOTAL, column → value, a DECIMAL as Decimal; the arguments are those
    of `evaluate`. RunError where a value leaves its type."""
    file = parse(text)
    asked = pick_query(file, query)
    check_parameters(asked, file)
    name, found = asked.for_each, []
    kinds = {} if name is None else file.parameters[name]
    rows = [{}] if name is None else rows_of(file, name, (parameters or {})[name])
    for row in rows or [dict.fromkeys(kinds)]:
        stream = open_stream(
            text,
            events,
            query=query,
            order_by=order_by,
            ties=ties,
            work_limit=work_limit,
            at_end=at_end,
            clock=clock,
            row=row,
        )
        shown = {} if name is None else {name: dict(shown_values(asked, kinds, row))}
        answer = _rows_of(stream, shown)
        found += answer if rows else []
    return found


def _rows_of(stream: Stream, shown_of_row: Mapping[str, Any]) -> list[dict[str, Any]]:
    if stream.query.per is None:
        raise CelError("the query has no TOTAL")
    if isinstance(stream.query.per, int):
        _check_spans(stream)
    # Of no matches at all: types that do not go together are found where no event matches, too.
    of_none = _Group(stream, Part(()), [])
    holds_having(stream, of_none.items())
    rows: list[dict[str, Any]] = []
    for (_, place), (part, matches) in _groups(stream).items():
        try:
            items = _Group(stream, part, matches).items()
            is_kept = holds_having(stream, items)
        except _Overflow as overflow:
            raise RunError(max(match.end for match in matches), str(overflow)) from None
        if is_kept:
            shown = {name: _shown(datum) for name, datum in items.items()}
            places = _place_columns(stream, part, place)
            if stream.times is not None and "end_time" in places:
                places["end_time"] = max(match.times[1] for match in matches if match.times)
            rows.append({**dict(part.partition), **shown_of_row, **places, **shown})
    return rows


def holds_having(stream: Stream, items: Variables) -> bool:
    """Whether HAVING, where there is one, is TRUE of a row."""
    having = stream.query.having
    return having is None or holds(having, items, _calculated) is True


# --- groups ---------------------------------------------------------------------------------------


def _groups(stream: Stream) -> dict[tuple[int, int], tuple[Part, list[Match]]]:
    """The matches by part and, in it, by end, by number of span, or all together."""
    found: dict[tuple[int, int], tuple[Part, list[Match]]] = {}
    for part, match in stream.answer():
        place = 0
        if stream.query.per == "END":
            place = match.end
        elif isinstance(stream.query.per, int):
            place = _end_in_microseconds(stream, part, match) // stream.query.per
        found.setdefault((id(part), place), (part, []))[1].append(match)
    return found


def _check_spans(stream: Stream) -> None:
    kind = None if stream.order_by is None else stream.schema.kinds[stream.order_by]
    if kind not in (Kind.TIMESTAMP, Kind.DATE):
        raise CelError("PER a duration needs a TIMESTAMP or DATE as first order column")


def _end_in_microseconds(stream: Stream, part: Part, match: Match) -> int:
    assert stream.order_by is not None, "checked"
    found = microseconds(part.rows[match.end].values[stream.order_by])
    if found is None:
        raise CelError("the time of an event is NULL")
    return found


def _place_columns(stream: Stream, part: Part, place: int) -> dict[str, Any]:
    per = stream.query.per
    if isinstance(per, int):
        return {"span_start": moment(place * per), "span_end": moment((place + 1) * per)}
    if per == "PARTITION":
        return {}
    if stream.order_by is None:
        return {"end_pos": place}
    return {"end_pos": place, "end_time": part.rows[place].values[stream.order_by].value}


# --- items ----------------------------------------------------------------------------------------


class _Group:
    """The matches of one row."""

    def __init__(self, stream: Stream, part: Part, matches: Sequence[Match]) -> None:
        self.stream = stream
        self.part = part
        self.matches = matches

    def items(self) -> dict[str, Datum]:
        """The value of each item, by its name."""
        return {
            item.name: _as_count(self._value(item.expression))
            for item in self.stream.query.items or ()
            if isinstance(item, ExpressionItem)
        }

    def _value(self, expression: Expression) -> Datum:
        if isinstance(expression, Total):
            return self._total(expression)
        totals = {
            id(part): self._total(part) for part in parts(expression) if isinstance(part, Total)
        }
        return _calculated(expression, totals)

    def _total(self, total: Total) -> Datum:
        return _as_count(self._of_matches(total))

    def _of_matches(self, total: Total) -> Datum:
        if total.label is None:
            confidences = [match.confidence for match in self.matches]
            if self.stream.times is not None:
                return Datum(Kind.DOUBLE, math.fsum(one or 0.0 for one in confidences))
            if total.function == "APPROX_COUNT":
                return Datum(Kind.DOUBLE, _double(Fraction(len(self.matches))))
            return _whole(Kind.DECIMAL, len(self.matches))
        places = [place for one in self.matches for place in dict(one.labels)[total.label]]
        if total.name is None:
            return _whole(Kind.DECIMAL, len(places))
        kind = self.stream.schema.kinds[total.name]
        data = [self.part.rows[place].values.get(total.name) for place in places]
        known = [datum for datum in data if datum is not None and datum.value is not None]
        if total.function in ("MIN", "MAX"):
            return aggregate(total.function, kind, known)
        values = [datum.value for datum in known]
        return _sum(kind, values) if total.function == "SUM" else _mean(kind, values)


def _as_count(datum: Datum) -> Datum:
    """A DECIMAL(38, 0), the type of counts, as one: `HAVING n > 1.5` is not rounded."""
    if datum.kind != DecimalKind(38, 0):
        return datum
    return Datum(Kind.DECIMAL, None if datum.value is None else int(datum.value))


def _sum(kind: Any, values: Sequence[Any]) -> Datum:
    if kind is Kind.INTERVAL:
        found = sum(values)
        if wrap(found, 64) != found:
            raise _Overflow("a sum of durations leaves 64 bits")
        return Datum(kind, found if values else None)
    if isinstance(kind, DecimalKind):
        found_kind = DecimalKind(38, kind.scale)
        size = decimals.total_of(value.copy_abs() for value in values)
        if decimals.fitted(size, found_kind) is None:
            raise _Overflow("a sum leaves 38 digits")
        return Datum(found_kind, decimals.total_of(values) if values else None)
    if number_kind(Datum(kind, None)) in _WHOLE:
        _whole(Kind.DECIMAL, sum(map(abs, values)))
        return Datum(Kind.DECIMAL, sum(values) if values else None)
    return Datum(Kind.DOUBLE, _exact_sum(values, 1) if values else None)


def _mean(kind: Any, values: Sequence[Any]) -> Datum:
    if kind is Kind.INTERVAL:
        found = math.trunc(Fraction(sum(values), len(values))) if values else None
        return Datum(kind, found)
    if isinstance(kind, DecimalKind):
        mean = decimals.mean_over_matches(list(values), kind.scale)
        if values and mean is None:
            raise _Overflow("a mean leaves 38 digits")
        return Datum(DecimalKind(38, min(kind.scale + 4, 38)), mean)
    number_kind(Datum(kind, None))
    return Datum(Kind.DOUBLE, _exact_sum(values, len(values)) if values else None)


def _exact_sum(values: Sequence[float], divisor: int) -> float:
    """The sum over the divisor; where some are no numbers or infinite, that of these alone."""
    special = [float(value) for value in values if not math.isfinite(value)]
    if special:
        return sum(special)
    return _double(sum(map(Fraction, values), Fraction(0)) / divisor)


def _double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _whole(kind: Kind, value: int) -> Datum:
    """A whole number of a kind; an error where it does not fit."""
    room = _ROOM[kind]
    # Two's complement has one number more on the negative side.
    if not -room < value < room and (kind is Kind.DECIMAL or value != -room):
        raise _Overflow("a value leaves 38 digits" if kind is Kind.DECIMAL else "a value overflows")
    return Datum(kind, value)


# --- arithmetic -----------------------------------------------------------------------------------


def _calculated(expression: Expression, totals: Mapping[Any, Datum]) -> Datum:
    """Arithmetic between totals (by their identity) or between items (by their names); what leaves
    its type is an error."""
    match expression:
        case Total():
            return totals[id(expression)]
        case Binary():
            left = _calculated(expression.left, totals)
            return _combined(expression.operator, left, _calculated(expression.right, totals))
        case Unary():
            operand = _calculated(expression.operand, totals)
            if operand.value is None or operand.kind not in (*_WHOLE, Kind.INTERVAL):
                return negate(operand) if expression.operator == "-" else absolute(operand)
            changed = -operand.value if expression.operator == "-" else abs(operand.value)
            return _fitting(operand.kind, changed)
        case Literal():
            return expression.datum
        case Call():
            return _as_count(of_values(expression, totals, _as_decimal))
        case Choice() | Case():
            return _as_count(of_values(expression, totals, _calculated))
        case _:
            return value_of_variables(expression, totals)


def _as_decimal(expression: Expression, totals: Mapping[Any, Datum]) -> Datum:
    """An operand of a function, for which counts are DECIMALs like others."""
    datum = _calculated(expression, totals)
    if datum.kind is not Kind.DECIMAL:
        return datum
    return Datum(DecimalKind(38, 0), None if datum.value is None else Decimal(datum.value))


def _combined(operator: str, left: Datum, right: Datum) -> Datum:
    # Says whether the kinds go together, and what comes of NULL.
    found = arithmetic(operator, left, right)
    if left.value is None or right.value is None:
        return found
    if found.kind in _WHOLE and operator in ("+", "-", "*"):
        a, b = convert(left, found.kind), convert(right, found.kind)
        return _whole(found.kind, a + b if operator == "+" else a - b if operator == "-" else a * b)
    by_zero = operator in ("/", "%") and right.value == 0
    if found.value is None and not by_zero:
        raise _Overflow("a DECIMAL or a time leaves its type")
    return found


def _fitting(kind: Kind, value: int) -> Datum:
    if kind in _WHOLE:
        return _whole(kind, value)
    if wrap(value, 64) != value:
        raise _Overflow("a duration leaves 64 bits")
    return Datum(kind, value)


# --- rows -----------------------------------------------------------------------------------------


def _shown(datum: Datum) -> Any:
    is_decimal = datum.kind is Kind.DECIMAL and datum.value is not None
    return Decimal(datum.value) if is_decimal else datum.value


def totals_difference(
    answer: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]
) -> str:
    """What tells two answers apart, whatever their order; the empty text where they are equal.

    DECIMALs may be text, DOUBLEs differ by a relative 10⁻⁹.
    """
    missing = list(expected)
    too_many: list[Mapping[str, Any]] = []
    for row in answer:
        same = next((one for one in missing if _same_row(row, one)), None)
        if same is None:
            too_many.append(row)
        else:
            missing.remove(same)
    lines = [f"missing: {dict(row)}" for row in missing]
    return "\n".join(lines + [f"too many: {dict(row)}" for row in too_many])


def _same_row(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        both_nan = left != left and right != right
        return both_nan or math.isclose(left, right, rel_tol=1e-9)
    return bool(_plain(left) == _plain(right))


def _plain(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?|0E-\d+", value):
        return Decimal(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    return value
