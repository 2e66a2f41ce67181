"""Expressions and conditions that cannot be computed: types, functions, literals, size.

Long: one catalogue, a function for each message.
"""

import re
from collections.abc import Collection, Sequence
from fractions import Fraction

from celc.diagnostics.errors import Diagnostic, Fix, error, warning
from celc.diagnostics.messages.functions import seconds_between
from celc.diagnostics.messages.wording import counted, parts_offered, quote, written
from celc.diagnostics.source import Span

# --- operators ------------------------------------------------------------------------------------


def compared_types(
    left: str,
    right: str,
    span: Span,
    text: tuple[str, Span] | None = None,
    duration: str | None = None,
) -> Diagnostic:
    """`x.name > 40`; `text` is a literal on one side, as it is written, and its place, `duration`
    what it would be as a duration."""
    if text is not None and "INTERVAL" in (left, right) and re.fullmatch(r"\d+(\.\d+)?", text[0]):
        return _number_for_duration(left, right, span, text)
    mended = None if text is None else _literal(text[0], {left, right})
    if "INTERVAL" in (left, right):
        mended = duration if text is None or text[0].startswith("'") else None
        counted = re.fullmatch(r"(\d+(?:\.\d+)?)\s+(\w+)", "" if text is None else text[0])
        if counted and {"INT", "LONG", "FLOAT", "DOUBLE"} & {left, right}:
            return _duration_for_number(left, right, span, text, counted)
    return error(
        "compared-types",
        span,
        f"{left} and {right} cannot be compared",
        *(_how_to_compare({left, right}) if mended is None else (f"write {mended}",)),
        fixes=() if mended is None or text is None else (Fix(text[1], mended),),
    )


def not_a_condition(text: str, type: str, span: Span) -> Diagnostic:
    """`FILTER x.price`."""
    usual = {"STRING": "= 'text'", "TIMESTAMP": "IS NOT NULL", "DATE": "IS NOT NULL"}
    usual["INTERVAL"] = "IS NOT NULL"
    mended = f"{text} {usual.get(type, '> 0')}"
    message = f"{quote(text)} is a value of type {type}, not a condition"
    hints = [f"compare it: {mended}"]
    return error("bare-condition", span, message, *hints, fixes=[Fix(span, mended)])


def joined_conditions(span: Span, *, is_text: bool) -> Diagnostic:
    """`a.ok || b.ok`; `is_text`: compared with a text, as in `a.name = 'x' || b.ok`."""
    message = "'||' joins texts, and a BOOLEAN beside it is a condition"
    hints, fixes = ["write OR"], [Fix(span, "OR")]
    if not is_text:
        return error("joined-conditions", span, message, *hints, fixes=fixes)
    message = "'||' joins a BOOLEAN here as the text 'true' or 'false'"
    hints = ["for a condition write OR", "for a text write CAST(… AS STRING) around the BOOLEAN"]
    return warning("joined-boolean", span, message, *hints, fixes=fixes)


def _number_for_duration(left: str, right: str, span: Span, text: tuple[str, Span]) -> Diagnostic:
    """`y.ts - x.ts > 5`, which does not say of what unit it has five."""
    plural = "" if text[0] == "1" else "S"
    choices = [f"{text[0]} {unit}{plural}" for unit in ("SECOND", "MILLISECOND", "MINUTE")]
    message = f"{left} and {right} cannot be compared: no unit says what {text[0]} counts"
    hint = f"write {' or '.join(choices)}"
    fixes = tuple(Fix(text[1], choice) for choice in choices)
    return error("compared-types", span, message, hint, fixes=fixes)


def _duration_for_number(
    left: str, right: str, span: Span, text: tuple[str, Span] | None, counted: re.Match[str]
) -> Diagnostic:
    """`x.seconds > 5 SECONDS`."""
    number, unit = counted.groups()
    message = f"{left} and {right} cannot be compared"
    hint = f"write {number}, if the number that it is compared with counts {unit.upper()}"
    fixes = () if text is None else (Fix(text[1], number),)
    return error("compared-types", span, message, hint, fixes=fixes)


def _literal(text: str, types: Collection[str]) -> str | None:
    """A literal as the other side of a comparison needs it: `'3'` as 3, `2024-01-31` as a DATE."""
    inner = text.strip("'")
    is_text = text.startswith("'")
    if {"TIMESTAMP", "DATE"} & set(types):
        day = re.fullmatch(r"(\d{4})-(\d\d?)-(\d\d?)", inner.replace(" ", ""))
        if day:
            return f"DATE '{day[1]}-{day[2]:0>2}-{day[3]:0>2}'"
        time = re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?", inner)
        return f"TIMESTAMP '{inner.replace('T', ' ')}'" if time and is_text else None
    if is_text and "BOOLEAN" in types:
        return inner.upper() if inner.upper() in ("TRUE", "FALSE") else None
    if "BOOLEAN" in types and text in ("0", "1"):
        return "TRUE" if text == "1" else "FALSE"
    if is_text:
        return inner if re.fullmatch(r"\d{1,18}(?:\.\d{1,9})?", inner) else None
    number = re.fullmatch(r"\d+(?:\.\d+)?", text)
    return f"'{text}'" if number and "STRING" in types else None


def list_types(operand: str, item: str, number: int, span: Span) -> Diagnostic:
    """`x.id IN (1, 'two')`; items are numbered from 1."""
    message = f"item {number:,} of this list is {item}, but what it is compared with is {operand}"
    return error("list-types", span, message, *_how_to_compare({operand, item}))


def _how_to_compare(types: Collection[str]) -> tuple[str, ...]:
    if types == {"TIMESTAMP", "TIMESTAMP_NTZ"}:
        return (
            "declare both as TIMESTAMP_NTZ or both as TIMESTAMP: an attribute that is declared "
            "TIMESTAMP reads a column without a zone as UTC",
            "CAST(x.a AS TIMESTAMP) reads it as UTC too, and CAST(TIMESTAMP '2024-01-31 12:00:00' "
            "AS TIMESTAMP_NTZ) is a time without a zone",
        )
    if "BINARY" in types:
        return ("a BINARY is compared with another one, by =, <> and IS DISTINCT FROM",)
    for type in sorted(types):
        if offered := parts_offered(type):
            return (offered,)
    if "INTERVAL" in types and {"TIMESTAMP", "DATE"} & set(types):
        return (
            "a duration is compared with the time between two events: y.ts - x.ts > 5 MINUTES",
            "a time is compared with another one: y.ts > x.ts + 5 MINUTES",
        )
    if "INTERVAL" in types:
        return (
            "a duration is compared with a duration, such as 5 SECONDS or y.ts - x.ts",
            "a number of seconds becomes one with * 1 SECOND: x.a * 1 SECOND",
        )
    if "STRING" in types and "TIMESTAMP" in types:
        return ("a point in time is written TIMESTAMP '2024-01-31 12:00:00'",)
    if "STRING" in types and "DATE" in types:
        return ("a day is written DATE '2024-01-31'",)
    return ("numbers compare with numbers, STRING, BOOLEAN and times each with their own kind",)


def two_nulls(span: Span) -> Diagnostic:
    """`NULL = NULL`."""
    message = "this has nothing but NULL in it, so it has no type and would never be TRUE"
    return error("two-nulls", span, message, "to ask whether a value is missing, write x.a IS NULL")


def arithmetic_type(operator: str, type: str, span: Span, plus: Span | None = None) -> Diagnostic:
    """`x.name + 1`; `plus` is the place of a + that was to join texts."""
    message, fixes = f"{quote(operator)} works on numbers, but this is {type}", tuple[Fix, ...]()
    hint = "numbers are BYTE, SHORT, INT, LONG, FLOAT, DOUBLE and DECIMAL"
    if type in ("TIMESTAMP", "DATE"):
        hint = "the time between two events is their difference: y.ts - x.ts"
    if plus is not None:
        message = "'+' adds numbers, and texts are joined by another sign"
        hint, span, fixes = "write ||", plus, (Fix(plus, "||"),)
    return error("arithmetic-type", span, message, hint, fixes=fixes)


def time_arithmetic(
    operator: str,
    types: tuple[str, str],
    texts: tuple[str, str],
    times: tuple[str, str] | None,
    span: Span,
) -> Diagnostic:
    """`y.ts + x.ts`; `texts` are the two sides as they are written, `times` the two TIMESTAMPs
    whose difference one of them is."""
    left, right = types
    mended = _other_arithmetic(operator, types, texts, times)
    return error(
        "time-arithmetic",
        span,
        f"there is no {left} {operator} {right}",
        *([f"write {mended}"] if mended else ()),
        *_how_to_calculate(operator, types, texts, times),
        fixes=(Fix(span, mended),) if mended else (),
    )


def _other_arithmetic(
    operator: str,
    types: tuple[str, str],
    texts: tuple[str, str],
    times: tuple[str, str] | None,
) -> str | None:
    """What is meant by arithmetic with a time or duration, where that is clear."""
    (left, right), (one, other) = types, texts
    if operator in "/%" and times is not None and left != right:
        seconds = seconds_between(*times)
        sides = (seconds, other) if left == "INTERVAL" else (one, seconds)
        return f"{sides[0]} {operator} {sides[1]}"
    moments = ("TIMESTAMP", "DATE")
    if operator == "+" and left in moments and right in moments:
        return f"{one} - {other}"
    if operator in "+-" and right in ("INT", "LONG"):
        return f"{one} {operator} {_as_seconds(other)}"
    if operator in "+-" and left in ("INT", "LONG") and (operator == "+" or right == "INTERVAL"):
        return f"{_as_seconds(one)} {operator} {other}"
    if operator == "-" and left == "INTERVAL" and right in moments:
        return f"{other} - {one}"
    return None


def _as_seconds(text: str) -> str:
    """A whole number, as it is written, as that many seconds."""
    if not re.fullmatch(r"\d+", text):
        return f"{text} * 1 SECOND"
    return f"{text} SECOND" if text == "1" else f"{text} SECONDS"


def _how_to_calculate(
    operator: str,
    types: tuple[str, str],
    texts: tuple[str, str],
    times: tuple[str, str] | None,
) -> tuple[str, ...]:
    if "INTERVAL" in types and operator == "*":
        if set(types) == {"INTERVAL"}:
            return ("a duration is multiplied by a whole number: 2 * 5 MINUTES",)
        factor = next((t for t in texts if re.fullmatch(r"\d{1,9}\.\d{1,9}", t)), "1.5")
        share = Fraction(factor)
        return (
            f"durations are multiplied by whole numbers: for {factor} times a duration multiply "
            f"it by {share.numerator:,} and what it is compared with by {share.denominator:,}",
        )
    if "INTERVAL" in types and operator in "/%":
        if times is not None and set(types) != {"INTERVAL"}:
            return ("a duration is not divided, but the number of its seconds is",)
        whole = f"a number of seconds is {seconds_between('y.ts', 'x.ts')}"
        return ("durations are not divided: in a comparison multiply the other side", whole)
    return (
        "times and durations are calculated as in y.ts - x.ts, x.ts + 5 MINUTES and "
        "2 * (y.ts - x.ts)",
    )


def not_a_string(operator: str, type: str, span: Span) -> Diagnostic:
    """`x.id LIKE '1%'`."""
    message = f"{operator} works on STRING, but this is {type}"
    return error("not-a-string", span, message, "compare other types with = < > or BETWEEN")


# --- functions ------------------------------------------------------------------------------------


def needs_attribute(
    function: str,
    span: Span,
    choices: Sequence[str],
    call: Span,
    example: str,
) -> Diagnostic:
    """`SUM(x)`, `SUM(a)`, `SUM(x.a * y.b)`; `choices` are what would do for the whole `call`,
    `example` is `SUM(x.a)`."""
    advice = f"write {example}, and compute with values of other labels outside the parentheses"
    taken = "an attribute of a label, or what is computed from one label's event"
    message = f"{function} takes {taken}"
    hint = f"write {' or '.join(choices)}" if choices else advice
    fixes = tuple(Fix(call, choice) for choice in choices)
    return error("needs-attribute", span, message, hint, fixes=fixes)


def needs_number(function: str, label: str, span: Span) -> Diagnostic:
    """`ABS(x)`."""
    message = f"{function} takes a number, but {quote(label)} alone is a label"
    hint = f"write {function}({written(label)}.a) with one of its attributes"
    return error("needs-number", span, message, hint)


def nth_place(text: str, span: Span) -> Diagnostic:
    """`NTH(x.a)`, `NTH(x.a, 0)`, `NTH(x.a, y.n)`."""
    message = "NTH takes an attribute and a number: 1 is the first position, -1 the last"
    hints = [
        f"write NTH({text}, 2) for the second one, or NTH({text}, -2) for the one before the last"
    ]
    return error("nth-place", span, message, *hints)


def needs_label(function: str, span: Span, label: str | None = None) -> Diagnostic:
    """`COUNT(x.a)`; `label` is the one that its argument names."""
    message = f"{function} takes a label, not an attribute or a value: it counts positions"
    hint = f"write {function}({label or 'x'})"
    fixes = () if label is None else (Fix(span, label),)
    return error("needs-label", span, message, hint, fixes=fixes)


def aggregate_type(
    function: str, type: str, allowed: Collection[str], argument: str, span: Span
) -> Diagnostic:
    """`SUM(x.name)`; `allowed` are the types that it can be taken of, `argument` is `x.name`."""
    between = f"the time from the first event to the last is LAST({argument}) - FIRST({argument})"
    return error(
        "aggregate-type",
        span,
        f"{function} cannot be taken of {type}",
        *((between,) if type in ("TIMESTAMP", "DATE") else ()),
        f"{function} works on {', '.join(allowed)}",
    )


def distinct_type(type: str, argument: str, span: Span) -> Diagnostic:
    """`COUNT(DISTINCT x.tags)`."""
    message = f"values of the type {type} cannot be compared, so different ones cannot be counted"
    return error("distinct-type", span, message, f"COLLECT({argument}) AS name gives them all")


def misplaced_prior(function: str, functions: Collection[str], span: Span) -> Diagnostic:
    """`ABS(PRIOR x.a)`; `functions` are those that PRIOR goes with."""
    message = f"PRIOR cannot stand in {function}"
    return error("misplaced-prior", span, message, f"PRIOR goes with {', '.join(functions)}")


def previous_in_select(what: str, span: Span) -> Diagnostic:
    """`SELECT PREV(x.a) AS p`; `what` is PREV or PRIOR."""
    message = f"{what} cannot stand in SELECT: it speaks of one position of a label, not of a match"
    hint = "use FIRST, LAST, MIN, MAX, SUM, AVG, COUNT or COLLECT"
    return error("previous-in-select", span, message, hint)


def collect_in_filter(span: Span) -> Diagnostic:
    """`FILTER COLLECT(x.a) = 1`."""
    message = "COLLECT makes an array, which no condition can compare"
    hint = "use FIRST, LAST, MIN, MAX, SUM, AVG or COUNT; COLLECT stands in SELECT"
    return error("collect-in-filter", span, message, hint)


def collect_in_expression(span: Span) -> Diagnostic:
    """`SELECT COLLECT(x.a) + 1 AS c`."""
    message = "COLLECT makes an array, which cannot be computed with"
    hint = "select it as an item of its own: COLLECT(x.a) AS name"
    return error("collect-in-expression", span, message, hint)


def many_positions(label: str, attribute: str, unbound: bool, span: Span) -> Diagnostic:
    """`SELECT x.a AS v` where x has no position in some match (`unbound`), or several."""
    if unbound:
        reason = f"in some matches {quote(label)} is not bound"
    else:
        reason = f"{quote(label)} can have several positions"
    call = f"{written(label)}.{written(attribute)}"
    message = f"{call} needs exactly one position of {quote(label)} in every match, but {reason}"
    hint = f"write FIRST({call}), LAST({call}) or, for all values, COLLECT({call})"
    fixes = (Fix(span, f"FIRST({call})"), Fix(span, f"LAST({call})"))
    return error("many-positions", span, message, hint, fixes=fixes)


def type_of_many(text: str, label: str, unbound: bool, span: Span) -> Diagnostic:
    """`SELECT CASE WHEN x IS A THEN 1 END AS n` where x has no position in some match (`unbound`),
    or several."""
    reason = "it is not bound in some matches" if unbound else "it can have several positions"
    message = (
        f"{text} asks for the type of one event, and {quote(label)} is no single one: {reason}"
    )
    hint = "give each event type a label of its own, and ask for it with COUNT"
    return error("type-of-many", span, message, hint)


def flat_label(label: str, attribute: str | None, unbound: bool, span: Span) -> Diagnostic:
    """`SELECT FLAT x` where x has no event in some match (`unbound`), or several, or no
    attribute."""
    reason = "can have no event in a match" if unbound else "can have several events in a match"
    reason = "has no attributes" if attribute is None else reason
    call = "" if attribute is None else f"{written(label)}.{written(attribute)}"
    calls = f"COUNT({written(label)})"
    if attribute is not None:
        calls += f", FIRST({call}), LAST({call}) or COLLECT({call})"
    return error(
        "flat-label",
        span,
        f"SELECT FLAT has a column for each attribute of one event, but {quote(label)} {reason}",
        f"select a value of it in its place, each with AS and a name: {calls}",
    )


def unnamed_expression(text: str, name: str, span: Span) -> Diagnostic:
    """`SELECT SUM(x.a)`; `name` is one that nothing else has."""
    message = "an expression in SELECT needs a name for its column"
    hint = f"write {text} AS {name}"
    return error("unnamed-expression", span, message, hint, fixes=(Fix(span, f"{text} AS {name}"),))


# --- literals -------------------------------------------------------------------------------------


def integer_range(span: Span) -> Diagnostic:
    """`9223372036854775808`."""
    return error(
        "integer-range",
        span,
        "this whole number is outside the range of LONG",
        "LONG holds -9223372036854775808 to 9223372036854775807; with a decimal point the "
        "number is a DOUBLE",
    )


def interval_range(span: Span) -> Diagnostic:
    """`200000000 DAYS`."""
    message = "this duration is too large for INTERVAL"
    hint = "INTERVAL holds 64 bits of microseconds, which are 106,751,991 days"
    return error("interval-range", span, message, hint)


def double_range(span: Span) -> Diagnostic:
    """`1e999`."""
    message = "this number is too large for DOUBLE"
    return error("double-range", span, message, "the largest DOUBLE is about 1.8e308")


def invalid_time(kind: str, reason: str, span: Span) -> Diagnostic:
    """`DATE '31.1.2024'`."""
    if kind == "DATE":
        form = "write DATE 'YYYY-MM-DD', such as DATE '2024-01-31'"
    else:
        form = (
            "write TIMESTAMP 'YYYY-MM-DD HH:MM:SS', with up to six decimals, and Z or +01:00 for "
            "a zone (UTC without)"
        )
    return error(f"invalid-{kind.lower()}", span, f"this is not a {kind}: {reason}", form)


def like_escape(following: str | None, span: Span) -> Diagnostic:
    """`LIKE 'C:\\dir'`; `following` is None at the end of the pattern."""
    if following is None:
        message = "a LIKE pattern cannot end in a lone '\\'"
    else:
        message = f"in a LIKE pattern '\\' cannot stand before {quote(following)}"
    hint = "write \\% and \\_ for the characters % and _, and \\\\ for one backslash"
    return error("like-escape", span, message, hint)


def invalid_regex(reason: str, span: Span) -> Diagnostic:
    """`RLIKE '(a'`, `REGEXP_EXTRACT(x.s, '(a')`; `reason` is RE2's."""
    message = f"this regular expression is refused: {reason}"
    hint = "write it in RE2's syntax, which has no look-around and no back references"
    return error("invalid-regex", span, message, hint)


# --- conditions -----------------------------------------------------------------------------------


def condition_too_large(clauses: int, size: int, limit: int, span: Span) -> Diagnostic:
    """`(a AND b) OR (c AND d) OR …`, too many times; `size` counts comparisons."""
    return error(
        "condition-too-large",
        span,
        f"as an AND of ORs this condition has {counted(clauses, 'clause')} with "
        f"{counted(size, 'comparison')}, more than the limit of {counted(limit, 'clause')}",
        "each OR over ANDs multiplies the clauses: write the condition as an AND of ORs, use "
        "IN for several values of one attribute, or split it over filters on smaller parts",
    )
