"""Messages about calls of functions, and about parts of values (fields, elements, JSON).

Many users know functions of other SQL systems. For such a call, the first half of this file finds
the expression that means the same in a query, so that the help can offer it.

Long: the folder has as many files as it may, and these messages are read together.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from celc_runtime.values.functions import FUNCTIONS as OF_EVENTS
from celc_runtime.values.functions import Function
from celc_runtime.values.types import ArrayType, DataType, MapType, StructType

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.messages.wording import (
    available,
    counted,
    guess,
    guesses,
    quote,
    unknown,
    written,
)
from celc.diagnostics.source import Span

FUNCTIONS = (
    *("FIRST", "LAST", "MIN", "MAX", "SUM", "AVG", "COUNT", "VARIANCE", "STDDEV", "MEDIAN"),
    *("COLLECT", "PREV", "ABS", "NTH"),
)

OF_POSITIONS = tuple(name for name in FUNCTIONS if name != "ABS")
"""The functions that read the events of a label, and not a value of one event."""

# The function of a query that means the same as a function of another system.
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
    "MAP_CONTAINS_KEY": "CONTAINS",
    **dict.fromkeys(("CARDINALITY", "ARRAY_SIZE", "ARRAY_LENGTH"), "SIZE"),
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
    """(the help lines for a call of an unknown function; the corrected call, or None).

    arguments: the texts between the commas. That of a CAST is one text, `v.price AS INT`.
    functions: the names that may be called at this place.
    """
    # In DATE_TRUNC('day', x.ts) the text is not the value that is truncated.
    values = [one for one in arguments if not one.startswith("'")]
    word, first = name.upper(), (values or arguments or ["x.a"])[0]
    meant = _rewritten(word, arguments, functions)
    if meant is not None:
        return (f"write {meant}",), meant
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
    """The help for a function that no expression replaces; None: it is not known."""
    if word in NOW:
        return NO_PRESENT
    if word in ("SOME", "EVERY", "EXISTS", "FORALL", "ANY"):
        asked = "SOME" if word in ("SOME", "EXISTS", "ANY") else "EVERY"
        return f"{asked} names its labels first: {asked} x: x.a > 3"
    if word in _INSTEAD:
        return _INSTEAD[word]
    if word in _BETWEEN_TIMES:
        return "times are subtracted and added: y.ts - x.ts > 5 MINUTES, y.ts > x.ts + 5 MINUTES"
    return None


def is_foreign(name: str) -> bool:
    """Whether a function of that name is known from other systems, with no expression in place of
    its calls."""
    return _told(name.upper()) is not None


def _told_of_totals(word: str, first: str, arguments: Sequence[str]) -> str | None:
    """The help for a call in totals or in an aggregate that a file declares; None: there is none.
    Neither has functions of one event."""
    if word in ("POWER", "POW", "EXP"):
        return "there are no powers here: multiply, as in x.a * x.a"
    if word in ("SQRT", "LOG", "LN"):
        return f"compare {first} itself with a number: {first} > 9 for SQRT({first}) > 3"
    if word in _ROUNDED:
        return f"use {first} as it is: round in the answer, or compare with BETWEEN 2.5 AND 3.5"
    if word in ("GREATEST", "LEAST"):
        left, right = (*arguments, "y.a")[:2] if arguments else ("x.a", "y.a")
        join = "OR" if word == "GREATEST" else "AND"
        return f"compare each with the number: {left} > 3 {join} {right} > 3"
    return None


# --- calls of other systems ---------------------------------------------------------------------

_EXTRACTED = re.compile(r"(\w+)\s+FROM\s+(.+)", re.IGNORECASE | re.DOTALL)
_FROM_FOR = re.compile(r"(.+?)\s+FROM\s+(\d+)(?:\s+FOR\s+(\d+))?", re.IGNORECASE | re.DOTALL)
_NUMBERS = frozenset({"INT", "LONG", "FLOAT", "DOUBLE", "BIGINT", "STRING", "TO_NUMBER"})
_MATCHING = ("REGEXP_LIKE", "RLIKE", "REGEXP", "REGEXP_MATCHES", "REGEXP_CONTAINS")

_PARTS_OF_TIMES = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DAYOFWEEK")

_INSTEAD = {
    **dict.fromkeys(
        ("EXTRACT", "DATE_PART", "DATEPART"),
        "YEAR(x.ts), MONTH, DAY, HOUR, MINUTE, SECOND and DAYOFWEEK are the parts of a time",
    ),
    **dict.fromkeys(
        ("LEAD", "NEXT"),
        "what comes later is an event of its own: A AS x ; A AS y, and then y.a",
    ),
    **dict.fromkeys(
        ("STRING_AGG", "LISTAGG", "GROUP_CONCAT"), "COLLECT(x.a) AS name gives them all, as a list"
    ),
    **dict.fromkeys(
        ("MATCH_NUMBER", "CLASSIFIER"),
        "it belongs to MATCH_RECOGNIZE; match_id=True (--match-id) gives each match an id",
    ),
    **dict.fromkeys(
        ("RAND", "RANDOM", "UUID", "NEWID"),
        "a query has the same answer at every run: nothing in it is random",
    ),
    **dict.fromkeys(
        ("DATE_FORMAT", "STRFTIME", "TO_CHAR", "FORMAT_TIMESTAMP"),
        "CAST(x.ts AS STRING) writes a time; YEAR, MONTH, DAY, HOUR, … are its parts",
    ),
    **dict.fromkeys(
        ("PERCENTILE", "PERCENTILE_CONT", "QUANTILE", "APPROX_PERCENTILE"),
        "MEDIAN(x.a) is the one in the middle; for others declare an AGGREGATE",
    ),
    **dict.fromkeys(
        ("REGEXP_SUBSTR", "REGEXP_REPLACE", "REGEXP_EXTRACT_ALL"),
        "REGEXP_EXTRACT(x.a, 'a(b+)') takes a part out of a text; REPLACE replaces a text",
    ),
    "PI": "write the number: 3.141592653589793",
    "TO_JSON": "select the label itself: celc run --format rows writes its events as JSON",
    "TRUNC": "FLOOR(x.a) and CEIL(x.a) give whole numbers",
}
"""The help for functions that no expression replaces."""


def _rewritten(word: str, arguments: Sequence[str], functions: Collection[str]) -> str | None:
    """The expression of a query that means the same as a call of another system; None: there is
    none."""
    first, second, third = (*arguments, "", "", "")[:3]
    is_text = len(second) > 2 and second.startswith("'")
    found: str | None = None
    match word, len(arguments):
        case "EXTRACT", 1 if part := _EXTRACTED.fullmatch(first):
            found = _part_of_time(part[1].upper(), part[2])
        case ("DATE_PART" | "DATEPART"), 2:
            found = _part_of_time(first.strip(chr(39)).upper(), second)
        case ("SUBSTRING" | "SUBSTR"), 1 if part := _FROM_FOR.fullmatch(first):
            found = f"SUBSTR({', '.join(text for text in part.groups() if text)})"
        case "LEFT", 2:
            found = f"SUBSTR({first}, 1, {second})"
        case "RIGHT", 2:
            found = f"SUBSTR({first}, -{second})"
        case ("IIF" | "IFF"), 3:
            found = f"IF({first}, {second}, {third})"
        case ("ISNULL" | "ISNOTNULL"), 1:
            found = f"{first} IS {'NOT ' if word == 'ISNOTNULL' else ''}NULL"
        case "ISNULL", 2:
            found = f"COALESCE({first}, {second})"
        case "NVL2", 3:
            found = f"IF({first} IS NOT NULL, {second}, {third})"
        case ("MOD" | "REMAINDER"), 2:
            found = f"({first} % {second})"
        case "TAN", 1:
            found = f"(SIN({first}) / COS({first}))"
        case "LOG2", 1:
            found = f"(LN({first}) / LN(2))"
        case ("UNIX_TIMESTAMP" | "TO_UNIX_TIMESTAMP" | "EPOCH"), 1:
            found = f"CAST({first} AS LONG)"
        case ("APPROX_COUNT_DISTINCT" | "COUNT_DISTINCT"), 1:
            return f"COUNT(DISTINCT {first})" if "COUNT" in functions else None
        case "NTH_VALUE", 2:
            return f"NTH({first}, {second})" if "NTH" in functions else None
        case _, 2 if word in _MATCHING and is_text:
            found = f"{first} RLIKE {second}"
        case ("CONTAINS" | "INSTR"), 2 if is_text and not re.search(r"[%_\\]", second):
            found = f"{first} LIKE '%{second[1:-1]}%'"
        case _, 1 if word in _NUMBERS:
            found = f"CAST({first} AS {'DOUBLE' if word == 'TO_NUMBER' else word})"
    # Functions of one event are not everywhere: the others are in totals and aggregates.
    return found if "UPPER" in functions else None


def seconds_between(end: str, start: str) -> str:
    """An expression of the seconds from one TIMESTAMP to another, as a number."""
    return f"(CAST({end} AS DOUBLE) - CAST({start} AS DOUBLE))"


def _part_of_time(part: str, time: str) -> str | None:
    """What EXTRACT(part FROM time) of other systems is here; None: there is no such part."""
    if part == "EPOCH":
        if between := re.fullmatch(r"([\w.`]+) - ([\w.`]+)", time):
            return seconds_between(between[1], between[2])
        return f"CAST({time} AS DOUBLE)"
    return f"{part}({time})" if part in _PARTS_OF_TIMES else None


# --- calls of functions of values -----------------------------------------------------------------


def number_of_arguments(function: Function, span: Span) -> Diagnostic:
    """`SQRT(x.a, 2)`."""
    least, most = function.arguments
    wanted = counted(least, "argument") if least == most else f"{least} to {most} arguments"
    if most is None:
        wanted = f"{counted(least, 'argument')} or more"
    message, hints = f"{function.name} takes {wanted}", [f"as in {function.example[0]}"]
    return error("function-arguments", span, message, *hints)


_LETTERS = (
    "letters are yyyy or yy, MM or M, dd or d, HH or H, hh or h with a, mm or m, ss or s, and S to "
    "SSSSSSSSS; other letters stand in '…'"
)


FormatProblem = Literal["unknown", "again", "sign", "end", "empty", "hours"]


def format_of_time(problem: FormatProblem, format: str, part: str, span: Span) -> Diagnostic:
    """`TO_DATE(x.a, 'dd MMM yyyy')`, and what else is wrong with a `part` of a format."""
    match problem:
        case "unknown":
            message, hint = f"a format has no {part!r}", _LETTERS
        case "again":
            message, hint = f"the format names {part!r} again", _LETTERS
        case "sign":
            message = f"{part!r} cannot stand alone in a format"
            hint = "write '' for a quotation mark, and COALESCE of two where parts may be missing"
        case "end":
            message = f"nothing says where the digits before {part!r} end"
            hint = "write two letters, as in yyyyMMdd, and a sign before S"
        case "empty":
            message, hint = "a format has letters", _LETTERS
        case "hours":
            message = "h goes with a, which is AM or PM, and H without"
            hint = "as in 'hh:mm a', or in 'HH:mm'"
    return error("format-of-time", span, f"{message}: {format!r}", hint)


_PLAIN = "a text, a number, a BOOLEAN or a time"
_KINDS = {
    "DOUBLE": "a number",
    "NUMBER": "a number",
    "ROUNDED": "a number",
    "INT": "a whole number of the type INT",
    "TIME": "a TIMESTAMP or a DATE",
    "TEXT": _PLAIN,
    "HASHED": _PLAIN,
    "PARTS": "an ARRAY or a MAP",
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
    """`UPPER(x.a || y.a) = 'A'` in a condition."""
    message = f"{function} is computed from one event, and these arguments are of several"
    example = f"{function}(x.a) = {function}(y.a)" if function.isidentifier() else "x.a[0] = y.a[0]"
    if function in ("LIKE", "RLIKE"):
        example = f"x.a {function} 'a' AND y.a {function} 'b'"
    hint = f"compare values of one event each, as in {example}"
    if function == "CASE":
        hint = "write its ways as conditions: (p AND x.a = 'v') OR (q AND y.a = 'v')"
    known = "functions of numbers, of times in UTC, and || take values of several events"
    return error("between-events", span, message, hint, known)


def bytes_of_parameter(span: Span) -> Diagnostic:
    """`x.data = rule.data` of a BINARY."""
    message = "a BINARY of a parameter set is not compared: it is only shown"
    hint = "declare both as STRING, and give texts, such as the hexadecimal digits of the bytes"
    return error("bytes-of-parameter", span, message, hint)


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


def no_common_type(function: str, one: str, other: str, span: Span) -> Diagnostic:
    """`CASE WHEN x.a > 3 THEN 1 ELSE 'x' END`, `COALESCE(x.a, 'x')`."""
    message = f"the values of {function} have one type, and these are {one} and {other}"
    hint = f"make one of them a value of the other type, as in CAST(… AS {other})"
    return error("common-type", span, message, hint)


def no_cast(found: str, wanted: str, span: Span) -> Diagnostic:
    """`CAST(x.ok AS DATE)`."""
    message = f"a value of the type {found} cannot become {wanted}"
    hint = "numbers, times and texts become each other, as Spark's CAST has it; a TIMESTAMP a DATE"
    if found == "INTERVAL":
        hint = "for a number of seconds write CAST(y.ts AS LONG) - CAST(x.ts AS LONG)"
    return error("no-cast", span, message, hint)


def rlike_in_value(span: Span) -> Diagnostic:
    """`FILTER CASE WHEN x.s RLIKE '^a' THEN 1 ELSE 2 END = 1`."""
    return error(
        "rlike-in-value",
        span,
        "RLIKE cannot stand in IF or CASE here: Spark computes this value, and its regular "
        "expressions are others",
        "write LIKE, STARTSWITH or ENDSWITH, or make it a condition of its own: x.s RLIKE '^a'",
    )


# --- expressions of one event ---------------------------------------------------------------------


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
    message = f"attribute {name!r} would be computed from itself"
    hint = "give the column of the input a name of its own, and compute from that"
    return error("derived-of-itself", span, message, hint)


# --- parts of values ------------------------------------------------------------------------------


def no_fields(found: DataType, whole: str, name: str, span: Span) -> Diagnostic:
    """`x.name.b`; `whole` is what stands before the dot."""
    message = f"a value of the type {found.value} has no fields"
    fixes = [Fix(span, whole)] if found.is_compared else []
    match found:
        case ArrayType():
            hint = f"its elements are {whole}[0], {whole}[1] and so on"
        case MapType():
            hint = f"the value at a key is {whole}['{name}']"
        case DataType.STRING:
            hint = f"write {whole}; of a text of JSON, {whole}:{name}"
        case _:
            hint = f"write {whole}"
    return error("no-fields", span, message, hint, fixes=fixes)


def unknown_field(name: str, names: Collection[str], span: Span) -> Diagnostic:
    """`x.address.town` where the field is called city."""
    message = f"the STRUCT has no field {name!r}"
    return unknown("unknown-field", span, message, name, "fields", names)


def no_elements(found: DataType, whole: str, span: Span) -> Diagnostic:
    """`x.name[0]`; `whole` is what stands before the bracket."""
    message = f"a value of the type {found.value} has no elements"
    if isinstance(found, StructType):
        hint = f"its fields are {', '.join(f'{whole}.{name}' for name, _ in found.fields)}"
    elif found is DataType.STRING:
        hint = f"a part of a text is SUBSTR({whole}, 1, 1), what a text of JSON holds {whole}:[0]"
    else:
        hint = f"write {whole}"
    return error("no-elements", span, message, hint)


def wrong_index(found: DataType, index: str, span: Span) -> Diagnostic:
    """`x.list['a']`."""
    if isinstance(found, MapType):
        message, hint = f"a MAP has texts as keys, and this is {index}", "as in x.a['key']"
    else:
        message = f"elements of an ARRAY are counted by an INT, from 0, and this is {index}"
        hint = "as in x.a[0], or x.a[SIZE(x.a) - 1] for the last"
    return error("index-type", span, message, hint)


def not_contained(found: DataType, value: str, span: Span) -> Diagnostic:
    """`CONTAINS(x.list, 'a')` of numbers."""
    match found:
        case ArrayType(element=element) if not element.is_compared:
            message = f"elements of the type {element.value} are not compared"
            hint = "compare a part of an element, as in x.a[0].b = 5"
        case ArrayType(element=element):
            message = f"the elements are {element.value}, and this is {value}"
            hint = f"write CAST(… AS {element.value})"
        case MapType():
            message, hint = f"a MAP has texts as keys, and this is {value}", "as in x.a['key']"
        case _:
            message = f"CONTAINS takes a text, an ARRAY or a MAP first, and this is {found.value}"
            hint = "as in CONTAINS(x.tags, 'new')"
    return error("not-contained", span, message, hint)


def json_name(name: str, span: Span) -> Diagnostic:
    """`x.a:['*']`."""
    message = f"a path into a text of JSON cannot have the name {name!r}"
    hint = "such a name is not empty, no *, begins with no blank, and has no ' beside . or ["
    return error("json-name", span, message, hint)


def json_path(path: str, span: Span) -> Diagnostic:
    """`GET_JSON_OBJECT(x.a, 'b.*')`."""
    message = f"{path} is no path into a text of JSON"
    hint = "a path is $ and then names and places: '$.b.c', '$.b[0]', '$[''a name'']', without *"
    return error("json-path", span, message, hint)


_PARTS = {
    r"\b": "say which characters stand beside it: (?:^|[^0-9A-Za-z_])",
    r"\B": "say which characters stand beside it: [0-9A-Za-z_]",
    "[:": "write the characters: [A-Za-z] for [[:alpha:]]",
    r"\Q": "write a backslash before each sign: \\.",
    r"\p": "only general categories have one name in both: \\pL, \\p{Lu}",
    r"\S": "write what is meant without the ^: [^0-9\\s] for [^0-9] without blanks",
}


def regex_of_one_library(part: str, span: Span) -> Diagnostic:
    """`REGEXP_EXTRACT(x.s, '\bab')`."""
    message = f"{quote(part)} in a regular expression means something else to RE2 and to Spark"
    otherwise = "write letters in both cases: [Aa]" if part.startswith("(?") else ""
    if not otherwise and part[0] in "*+{":
        otherwise = "let the group that is repeated hold at least one character"
    hint = _PARTS.get(part, otherwise or "take it out: without it both read the expression alike")
    return error("regex-of-one-library", span, message, hint)


def no_such_group(groups: int, span: Span) -> Diagnostic:
    """`REGEXP_EXTRACT(x.s, 'ab')`."""
    has = f"has {groups} group{'s' * (groups != 1)}" if groups else "has no group"
    return error(
        "no-such-group",
        span,
        f"the regular expression {has}",
        "0 is the whole: REGEXP_EXTRACT(x.a, 'b+', 0)",
        "parentheses make a group: REGEXP_EXTRACT(x.a, '(b+)c')",
    )


def label_in_brackets(attribute: str, span: Span) -> Diagnostic:
    """`x[y.a > 1]`."""
    return error(
        "label-in-brackets",
        span,
        "no label can stand here, where all attributes are of one event",
        f"for its attribute write {written(attribute)}",
        "to compare with another label write the condition without brackets: x.a > y.a",
    )


def labelled_key(attribute: str, span: Span) -> Diagnostic:
    """`PARTITION BY x.a`."""
    name = written(attribute)
    message = "PARTITION BY takes attributes of all events, without labels"
    return error("misplaced-sign", span, message, f"write {name}", fixes=[Fix(span, name)])
