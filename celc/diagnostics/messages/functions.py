"""Functions of other systems, and the expressions with the same meaning in a query."""

from collections.abc import Collection, Mapping, Sequence

from celc_runtime.values.functions import FUNCTIONS as OF_EVENTS
from celc_runtime.values.functions import Function

from celc.diagnostics.errors import Diagnostic, error
from celc.diagnostics.messages.wording import available, counted, guess, guesses, unknown
from celc.diagnostics.source import Span

FUNCTIONS = (
    *("FIRST", "LAST", "MIN", "MAX", "SUM", "AVG", "COUNT", "VARIANCE", "STDDEV", "MEDIAN"),
    *("COLLECT", "PREV", "ABS", "NTH"),
)

OF_POSITIONS = tuple(name for name in FUNCTIONS if name != "ABS")
"""Those of the positions of a label."""

_SAME = {
    "AVERAGE": "AVG",
    "MEAN": "AVG",
    "TOTAL": "SUM",
    "VAR_SAMP": "VARIANCE",
    "VAR": "VARIANCE",
    "STDDEV_SAMP": "STDDEV",
    "STD": "STDDEV",
    "MINIMUM": "MIN",
    "MAXIMUM": "MAX",
    "FIRST_VALUE": "FIRST",
    "LAST_VALUE": "LAST",
    "PREVIOUS": "PREV",
    "LAG": "PREV",
    "ARRAY_AGG": "COLLECT",
    "COLLECT_LIST": "COLLECT",
    "LIST": "COLLECT",
    "IS_NAN": "ISNAN",
    "POW": "POWER",
    "CEILING": "CEIL",
    "LOG": "LN",
    "SIGNUM": "SIGN",
    "LCASE": "LOWER",
    "UCASE": "UPPER",
    "LEN": "LENGTH",
    "CHAR_LENGTH": "LENGTH",
    "SUBSTRING": "SUBSTR",
    "CHARINDEX": "POSITION",
    "LOCATE": "POSITION",
    "NVL": "COALESCE",
    "IFNULL": "COALESCE",
    "DAYOFMONTH": "DAY",
    "ARRAY_CONTAINS": "CONTAINS",
    "CARDINALITY": "SIZE",
    "ARRAY_LENGTH": "SIZE",
}
NOW = frozenset(
    {"NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "SYSDATE", "GETDATE", "TODAY"}
)
NO_PRESENT = (
    "a query does not know the present time: compare with a fixed one, "
    "TIMESTAMP '2024-01-31 12:00:00', or with the time of another event"
)
_ROUNDED = frozenset({"ROUND", "FLOOR", "CEIL", "CEILING", "TRUNC"})
_CONVERTED = frozenset({"CAST", "TRY_CAST", "CONVERT", "TO_NUMBER", "INT", "DOUBLE", "FLOAT"})
_BETWEEN_TIMES = frozenset({"DATEDIFF", "TIMESTAMPDIFF", "DATE_ADD", "DATEADD", "TIMESTAMPADD"})


def is_function(name: str) -> bool:
    """Whether there is a function of positions of that name, or ABS."""
    return name.upper() in FUNCTIONS


def is_of_event(name: str) -> bool:
    """Whether there is a function of the values of one event of that name."""
    return name.upper() in OF_EVENTS


def advice_on(
    name: str, arguments: Sequence[str], functions: Collection[str] = (*FUNCTIONS, *OF_EVENTS)
) -> tuple[tuple[str, ...], str | None]:
    """Help lines for a call of an unknown function, and the corrected call where there is one.
    `arguments` are as written; `v.price AS INT` of a CAST is one."""
    # In DATE_TRUNC('day', x.ts) the text is not the value that is truncated.
    values = [one for one in arguments if not one.startswith("'")]
    word, first = name.upper(), (values or arguments or ["x.a"])[0]
    if word in _SAME and _SAME[word] in functions:
        taken = arguments if is_of_event(_SAME[word]) else [first]
        mended = f"{_SAME[word]}({', '.join(taken or [first])})"
        return (f"write {mended}",), mended
    of_one_event = "UPPER" in functions
    if word == "DATE" and of_one_event:
        mended = f"CAST({first} AS DATE)"
        return (f"write {mended}",), mended
    if word in _CONVERTED and len(arguments) == 1 and " AS " in f"{first.upper()} AS ":
        end = first.upper().rfind(" AS ")
        mended = first if end < 0 else first[:end].rstrip()
        return (
            "leave it out: numbers are compared whatever their types",
            f"write {mended}",
        ), mended
    told = _told(word)
    if told is None and not of_one_event:
        told = _told_of_totals(word, first, arguments)
    if told:
        return (told,), None
    listed = available("functions here", functions)
    if not (close := guesses(name, functions)):
        return listed, None
    alike = f"{close[0]}({', '.join(arguments)})"
    return (f"did you mean {alike}?", *listed), alike


def _told(word: str) -> str | None:
    """What to write instead of a function without a counterpart."""
    if word in NOW:
        return NO_PRESENT
    if word in ("SOME", "EVERY", "EXISTS", "FORALL", "ANY"):
        asked = "SOME" if word in ("SOME", "EXISTS", "ANY") else "EVERY"
        return f"{asked} names its labels first: {asked} x: x.a > 3"
    if word in _BETWEEN_TIMES:
        return "times are subtracted and added: y.ts - x.ts > 5 MINUTES, y.ts > x.ts + 5 MINUTES"
    return None


def _told_of_totals(word: str, first: str, arguments: Sequence[str]) -> str | None:
    """The same where no functions of one event are: in totals, and in a file's aggregates."""
    if word in ("POWER", "POW", "EXP"):
        return "there are no powers here: multiply, as in x.a * x.a"
    if word in ("SQRT", "LOG", "LN"):
        return f"compare {first} itself with a number: {first} > 9 for SQRT({first}) > 3"
    if word in _ROUNDED:
        return f"use {first} as it is: round in the answer, or compare with BETWEEN 2.5 AND 3.5"
    if word in ("GREATEST", "LEAST"):
        one, two = (*arguments, "y.a")[:2] if arguments else ("x.a", "y.a")
        join = "OR" if word == "GREATEST" else "AND"
        return f"compare each with the number: {one} > 3 {join} {two} > 3"
    return None


# --- calls of functions of values -----------------------------------------------------------------


def number_of_arguments(function: Function, span: Span) -> Diagnostic:
    """`SQRT(x.a, 2)`."""
    least, most = function.arguments
    wanted = counted(least, "argument") if least == most else f"{least} to {most} arguments"
    if most is None:
        wanted = f"{counted(least, 'argument')} or more"
    message = f"{function.name} takes {wanted}"
    return error("function-arguments", span, message, f"as in {function.example[0]}")


_PLAIN = "a text, a number, a BOOLEAN or a time"
_KINDS = {
    "DOUBLE": "a number",
    "NUMBER": "a number",
    "ROUNDED": "a number",
    "INT": "a whole number of the type INT",
    "TIME": "a TIMESTAMP or a DATE",
    "TEXT": _PLAIN,
    "HASHED": _PLAIN,
}


def wrong_argument(function: Function, kind: str, found: str, span: Span) -> Diagnostic:
    """`SQRT(x.name)`."""
    message = f"{function.name} takes {_KINDS[kind]} here, and this is {found}"
    return error("function-argument", span, message, f"as in {function.example[0]}")


def not_a_literal(function: Function, span: Span) -> Diagnostic:
    """`ROUND(x.a, x.b)`."""
    message = f"{function.name} takes a literal here, the same for all events"
    return error("needs-literal", span, message, f"as in {function.example[0]}")


def between_events(function: str, span: Span) -> Diagnostic:
    """`UPPER(x.a)` joined with another event's value in a condition."""
    message = f"{function} is computed of one event, and these arguments are of several"
    hint = f"compare values of one event each, as in {function}(x.a) = {function}(y.a)"
    return error("between-events", span, message, hint)


def no_zone_here(function: str, span: Span) -> Diagnostic:
    """`SQRT(x.a AT TIME ZONE 'UTC')`."""
    message = f"AT TIME ZONE cannot stand in {function}"
    hint = "it goes with the parts of a time, as in HOUR(x.ts AT TIME ZONE 'Europe/Berlin')"
    return error("misplaced-zone", span, message, hint)


def zone_of_clock(function: str, span: Span) -> Diagnostic:
    """`HOUR(x.at AT TIME ZONE 'Europe/Berlin')` of a TIMESTAMP_NTZ."""
    message = "AT TIME ZONE takes a TIMESTAMP, and a TIMESTAMP_NTZ is of no zone"
    hint = f"CAST reads it as UTC: {function}(CAST(x.a AS TIMESTAMP) AT TIME ZONE 'Europe/Berlin')"
    return error("zone-of-clock", span, message, hint)


def unknown_zone(name: str, zones: Sequence[str], span: Span) -> Diagnostic:
    """`HOUR(x.ts AT TIME ZONE 'CET+1')`."""
    message = f"there is no time zone {name!r}"
    hint = "zones have the names of IANA, such as 'Europe/Berlin', 'America/New_York' or 'UTC'"
    return error("unknown-zone", span, message, *guess(name, zones), hint)


def unknown_unit(units: Mapping[str, str], span: Span) -> Diagnostic:
    """`DATE_TRUNC('FORTNIGHT', x.ts)`."""
    message = "DATE_TRUNC takes the name of a unit of time first"
    hint = f"units are {', '.join(map(repr, dict.fromkeys(units.values())))}"
    return error("unit-of-time", span, message, hint)


def no_cast(found: str, wanted: str, span: Span) -> Diagnostic:
    """`CAST(x.ok AS DATE)`."""
    message = f"a value of the type {found} cannot become {wanted}"
    return error("no-cast", span, message)


# --- expressions of one event ---------------------------------------------------------------------


def label_in_event(label: str, names: Collection[str], span: Span) -> Diagnostic:
    """`EVENT A { id: INT, hour: INT = HOUR(x.ts) }`."""
    message = f"{label!r} cannot be a label here: this is computed of each event alone"
    return error(
        "label-in-event", span, message, "write the name alone", *available("attributes", names)
    )


def unknown_in_event(name: str, names: Collection[str], span: Span) -> Diagnostic:
    """`EVENT A { ts: TIMESTAMP, hour: INT = HOUR(t) }`."""
    message = f"the event has no attribute {name!r}"
    return unknown("unknown-in-event", span, message, name, "attributes", names)


def not_of_one_event(name: str, names: Collection[str], span: Span) -> Diagnostic:
    """`EVENT A { v: INT, s: LONG = SUM(v) }`."""
    message = f"{name!r} is no function of one event"
    return unknown("function-of-event", span, message, name, "functions here", names)


def derived_type(text: str, found: str, wanted: str, span: Span) -> Diagnostic:
    """`EVENT A { ts: TIMESTAMP, hour: STRING = HOUR(ts) }`."""
    message = f"the attribute is declared as {wanted}, and its value is {found}"
    hint = f"declare it as {found}, or write CAST({text} AS {wanted})"
    return error("derived-type", span, message, hint)


def derived_of_itself(name: str, span: Span) -> Diagnostic:
    """`EVENT A { n: INT = n + 1 }`."""
    message = f"attribute {name!r} would be computed of itself"
    hint = "give the column of the input a name of its own, and compute of that"
    return error("derived-of-itself", span, message, hint)
