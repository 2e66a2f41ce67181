"""Aggregates and functions that a file declares, and arguments of functions of a label's set."""

from collections.abc import Collection, Sequence

from celc.diagnostics.errors import Diagnostic, Fix, Related, error
from celc.diagnostics.messages.functions import FUNCTIONS, advice_on, is_foreign
from celc.diagnostics.messages.wording import available, quote, quoted, unknown
from celc.diagnostics.source import Span

# --- declarations ---------------------------------------------------------------------------------


def taken_name(name: str, span: Span, first: Span | None) -> Diagnostic:
    """`AGGREGATE sum(…)`; `first`: where another aggregate of the name is declared, None where a
    function has it."""
    if first is None:
        message = f"there is a function {name.upper()} already"
    else:
        message = f"the aggregate {quote(name)} is declared twice"
    hint = f"give the aggregate another name, such as {quote('my_' + name)}"
    related = () if first is None else (Related(first, "it is declared here first"),)
    return error("aggregate-name", span, message, hint, related=related)


def taken_variable(name: str, span: Span, first: Span) -> Diagnostic:
    """`AGGREGATE f(a: INT): INT STATE a: INT = 0 …`."""
    message = f"{quote(name)} is declared twice in this aggregate"
    hint = "give each parameter and each variable of STATE a name of its own"
    related = (Related(first, "it is declared here first"),)
    return error("duplicate-variable", span, message, hint, related=related)


def unknown_variable(name: str, what: str, names: Collection[str], span: Span) -> Diagnostic:
    """`STEP n = m + 1`; `what` is STATE, STEP or RESULT, `names` can be named there."""
    message = f"nothing is called {quote(name)} in {what}"
    return unknown("unknown-variable", span, message, name, f"names in {what}", names)


def no_parameter_here(name: str, what: str, span: Span) -> Diagnostic:
    """`RESULT a`, and `STEP a = 1`; `what` is STATE, STEP or RESULT."""
    reasons = {
        "STATE": "its values are those before the first position",
        "STEP": "it gives new values to the variables of STATE alone",
        "RESULT": "it is computed after the last position, from STATE alone",
    }
    message = f"{quote(name)} is a parameter, and {what} is not about one position: {reasons[what]}"
    hint = f"keep it in STATE: STATE last_{name}: … = NULL STEP last_{name} = {name}"
    return error("misplaced-parameter", span, message, hint)


def state_before(name: str, span: Span) -> Diagnostic:
    """`STATE n: INT = 0, m: INT = n`."""
    return error(
        "constant-state",
        span,
        f"{quote(name)} cannot stand in STATE: a variable begins with a value that is written out",
        "write a number, NULL, or another literal",
    )


def repeated_step(name: str, span: Span, first: Span) -> Diagnostic:
    """`STEP n = n + 1, n = 0`."""
    message = f"STEP gives {quote(name)} two new values"
    hint = "write one new value for each variable, with IF(condition, a, b) if it depends"
    related = (Related(first, "the first one is here"),)
    return error("repeated-step", span, message, hint, related=related)


def value_type(what: str, found: str, wanted: str, text: str, span: Span) -> Diagnostic:
    """`STEP n = n / 2` of an INT; `what` is what has the type `wanted`, `text` is the value."""
    return error(
        "value-type",
        span,
        f"{what} is {wanted}, which does not hold the values of {text}: that is {found}",
        (
            f"declare it as {found}"
            if found != "STRING"
            else "an aggregate computes with numbers, texts, truths, times and durations"
        ),
    )


def type_in_aggregate(type: str, span: Span) -> Diagnostic:
    """`AGGREGATE f(tags: ARRAY<INT>)`."""
    message = f"aggregates do not compute with values of the type {type}"
    hint = "they compute with INT, LONG, FLOAT, DOUBLE, BOOLEAN, STRING, times and durations"
    return error("type-in-aggregate", span, message, hint)


def function_in_aggregate(name: str, aggregate: str, span: Span) -> Diagnostic:
    """`STEP s = SUM(a)`, and a call of another aggregate or of itself; `name` as it is written."""
    reason = "an aggregate sees one position at a time"
    hints = ("keep what STEP needs of earlier positions in STATE: STEP total = total + a",)
    if name == aggregate:
        reason = "an aggregate does not call itself: STEP is computed at each position anyway"
        hints = ("the values after the position before are in STATE: STEP total = total + a",)
    elif name.upper() not in FUNCTIONS:
        hints = (f"write the STATE and the STEP of {quote(name)} here as well",)
    message = f"{name} cannot be called in the declaration of an aggregate: {reason}"
    return error("function-in-aggregate", span, message, *hints)


def not_in_aggregate(word: str, span: Span) -> Diagnostic:
    """`STEP s = s + CAST((a):n AS INT)`."""
    message = f"{word} cannot stand in the declaration of an aggregate"
    hint = "compute it before: EVENT A { a: STRING, n: INT = LENGTH(a) }"
    return error("value-in-aggregate", span, message, hint)


def not_calculated(text: str, aggregate: str, span: Span) -> Diagnostic:
    """`STEP s = UPPER(a)`: `text` is the call, as it is written."""
    return error(
        "uncalculated-in-aggregate",
        span,
        f"{quote(text)} cannot stand in the declaration of an aggregate: it calculates with "
        "numbers, times in UTC, and texts by ||, LENGTH, SUBSTR, REPLACE, TRIM, STARTSWITH, "
        "ENDSWITH, POSITION and CAST of whole numbers",
        f"compute it of one event, where {aggregate} is called: {aggregate}(UPPER(x.a)); or return "
        "what a caller puts together in SELECT",
    )


def regex_of_made(aggregate: str, span: Span) -> Diagnostic:
    """`IF(joined RLIKE '^a', …)` in a declaration that makes texts."""
    return error(
        "regex-of-made-text",
        span,
        f"RLIKE cannot ask for a text that {aggregate} makes: regular expressions are answered for "
        "the texts of events, before a match is known",
        "ask with LIKE, STARTSWITH, ENDSWITH or POSITION; or ask the argument of the aggregate",
    )


def label_in_aggregate(label: str, names: Collection[str], span: Span) -> Diagnostic:
    """`STEP total = total + x.value`."""
    return error(
        "label-in-aggregate",
        span,
        f"{quote(label)} cannot be a label here: an aggregate is declared for all labels",
        "declare a parameter, and give it the attribute where the aggregate is called",
        *available("names here", names),
    )


# --- calls ----------------------------------------------------------------------------------------


def unknown_function(
    name: str,
    functions: Collection[str],
    span: Span,
    arguments: Sequence[str] = (),
    call: Span | None = None,
    declaration: str | None = None,
) -> Diagnostic:
    """`MEAN(x.price)`; `arguments` are those of the call, as they are written, `call` its place.
    `declaration`: of a function of one's own, where it takes attributes of several labels."""
    hints, mended = advice_on(name, arguments, functions)
    if declaration is not None and not is_foreign(name):
        hints = (f"a function of your own is declared before the query: {declaration}", *hints)
    message = f"there is no function {quote(name)}"
    fixes = () if mended is None or call is None else (Fix(call, mended),)
    return error("unknown-function", span, message, *hints, fixes=fixes)


def one_argument(function: str, arguments: Sequence[str], second: Span, call: Span) -> Diagnostic:
    """`MAX(x.price, 3)`; `arguments` as they are written."""
    if function.upper() == "COUNT":
        label = arguments[0].split(".")[0].split()[-1]
        mended, hint = f"{function}({label})", "COUNT takes a label, and counts its events"
    else:
        mended = f"{function}({arguments[0]})"
        hint = "functions take an attribute, such as MAX(x.price); COUNT takes a label: COUNT(x)"
    message = f"{function} takes one argument"
    fixes = (Fix(call, mended),)
    return error("call-arguments", second, message, hint, f"write {mended}", fixes=fixes)


def number_of_arguments(name: str, wanted: str, form: str, span: Span) -> Diagnostic:
    """`slope(x.ts)`, and `LEAST(a)` in the declaration of an aggregate; `wanted` is such as `two
    arguments`, `form` a call that is right."""
    return error("number-of-arguments", span, f"{name} takes {wanted}", f"as in {form}")


def several_labels(name: str, labels: tuple[str, str], span: Span) -> Diagnostic:
    """`slope(x.ts, y.value)`."""
    return error(
        "several-labels",
        span,
        f"{quote(name)} goes through the positions of one label, but its arguments name "
        f"{quote(labels[0])} and {quote(labels[1])}",
        f"give it attributes of {quote(labels[0])} alone",
    )


def argument_type(name: str, parameter: str, wanted: str, found: str, span: Span) -> Diagnostic:
    """`spread(x.name)`."""
    message = f"{name} cannot be taken of {found}: its parameter {quote(parameter)} is {wanted}"
    hint = f"give it an attribute of the type {wanted}, or declare the parameter as {found}"
    if found.startswith("DECIMAL"):
        hint = "aggregates of your own do not compute with DECIMALs: SUM, AVG, MIN and MAX do"
    return error("argument-type", span, message, hint)


def misplaced_distinct(function: str, argument: str | None, call: Span) -> Diagnostic:
    """`SUM(DISTINCT x.a)`; `argument` is `x.a`, None where COUNT cannot stand either."""
    mended = f"COUNT(DISTINCT {argument or 'x.a'})"
    message = f"DISTINCT cannot stand in {function}"
    hint = f"DISTINCT goes with COUNT: {mended}"
    fixes = () if argument is None else (Fix(call, mended),)
    return error("misplaced-distinct", call, message, hint, fixes=fixes)


# --- functions of one's own -----------------------------------------------------------------------


def taken_function_name(
    name: str, span: Span, first: Span | None, is_aggregate: bool
) -> Diagnostic:
    """`FUNCTION sum(DOUBLE[]): DOUBLE`; `first`: where another function of the name is declared,
    None where an aggregate of the file has it (`is_aggregate`), or the language."""
    message = f"there is a function {name.upper()} already"
    if first is not None:
        message = f"the function {quote(name)} is declared twice"
    elif is_aggregate:
        message = f"there is an aggregate {quote(name)} already"
    hint = f"give the function another name, such as {quote('my_' + name)}"
    related = () if first is None else (Related(first, "it is declared here first"),)
    return error("function-name", span, message, hint, related=related)


def type_in_function(type: str, allowed: Collection[str], span: Span) -> Diagnostic:
    """`FUNCTION f(STRING[]): BOOLEAN`."""
    message = f"functions of one's own do not compute with values of the type {type}"
    hints = [f"types: {', '.join(allowed)}"]
    if type.startswith("DECIMAL"):
        hints.append(
            "declare a derived attribute, and give it that: real: DOUBLE = CAST(px AS DOUBLE)"
        )
    if type == "DATE":
        hints.append("declare TIMESTAMP[]: a DATE is its midnight in UTC there")
    return error("type-in-function", span, message, *hints)


def prior_of_labels(name: str, labels: Sequence[str], span: Span) -> Diagnostic:
    """`close(PRIOR x.value, y.value)`."""
    return error(
        "prior-of-labels",
        span,
        f"PRIOR means the positions of one label before another of its positions, but the "
        f"arguments of {quote(name)} name {quoted(labels)}",
        f"leave out PRIOR, or give {quote(name)} attributes of {quote(labels[0])} alone",
    )


def array_type(
    name: str, wanted: str, found: str, text: str, span: Span, allowed: Collection[str]
) -> Diagnostic:
    """`close(x.name, y.value)`; `allowed` are the types of arrays."""
    message = f"{text} is {found}, and {quote(name)} takes an array of {wanted} there"
    hint = f"give it an attribute of the type {wanted}"
    if found in allowed:
        hint += f", or declare {found}[]"
    if found.startswith("DECIMAL"):
        hint += ", such as a derived one: real: DOUBLE = CAST(px AS DOUBLE)"
    return error("array-type", span, message, hint)
