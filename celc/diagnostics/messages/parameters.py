"""Messages about parameter sets, and about queries FOR EACH of their rows.

Each docstring shows what causes the message; `rule` is a parameter set.
"""

from collections.abc import Collection

from celc.diagnostics.errors import Diagnostic, Related, error
from celc.diagnostics.messages.wording import available, guess, guessed, quote, unknown, written
from celc.diagnostics.source import Span

# --- declarations ---------------------------------------------------------------------------------


def duplicate_set(name: str, span: Span, first: Span) -> Diagnostic:
    """`PARAMETERS rule { … }` twice."""
    message = f"parameter set {quote(name)} is declared twice"
    hint = "give each parameter set its own name"
    related = (Related(first, "first declared here"),)
    return error("duplicate-parameters", span, message, hint, related=related)


def duplicate_parameter(name: str, owner: str, span: Span, first: Span) -> Diagnostic:
    """`PARAMETERS rule { id: INT, id: LONG }`."""
    message = f"attribute {quote(name)} is declared twice in parameter set {quote(owner)}"
    hint = "declare each attribute once"
    related = (Related(first, "first declared here"),)
    return error("duplicate-parameter", span, message, hint, related=related)


def event_type_and_set(name: str, span: Span, declared: Span) -> Diagnostic:
    """`EVENT rule { … }` beside `PARAMETERS rule { … }`."""
    message = f"{quote(name)} is an event type as well, and its events have that label"
    hint = "give the parameter set another name"
    related = (Related(declared, "the event type"),)
    return error("called-like-parameters", span, message, hint, related=related)


def two_times(span: Span) -> Diagnostic:
    """`VALID [since]` and `VALID [since, since]`."""
    message = "VALID needs two attributes: from when a row counts, and until when"
    return error("valid-times", span, message, "write VALID [since, until]")


def types_of_times(since: str, until: str, span: Span) -> Diagnostic:
    """`VALID [since, until]` where since is a LONG and until a TIMESTAMP, or both are STRING."""
    return error(
        "valid-type",
        span,
        f"the two times are {since} and {until}; they must be of one type, a number or a time",
        "declare both with the type of the order column: TIMESTAMP, DATE or a type of numbers",
    )


def type_of_valid(
    since: tuple[str, str], order: tuple[str, str], span: Span, declared: Span
) -> Diagnostic:
    """VALID of two DATEs in a query whose events are ordered by a TIMESTAMP."""
    (name, type), (column, other) = since, order
    return error(
        "valid-order",
        span,
        f"VALID is of type {type}, and the events of this query are ordered by {quote(column)}, "
        f"which is {other}",
        f"declare {written(name)} and the attribute beside it as {other}",
        related=(Related(declared, "VALID is declared here"),),
    )


def valid_without_order(type: str, span: Span, declared: Span) -> Diagnostic:
    """VALID in a query whose events have no order column."""
    return error(
        "valid-without-order",
        span,
        "VALID compares a row with the time of events, and nothing says which attribute orders "
        "the events of this query",
        f"name an attribute of type {type}: --order-by ts, order_by='ts' in Python, or WITHIN … "
        "[ts]",
        related=(Related(declared, "VALID is declared here"),),
    )


def valid_of_uncertain(span: Span, declared: Span) -> Diagnostic:
    """VALID in a query over events of uncertain time."""
    return error(
        "valid-uncertain",
        span,
        "VALID compares a row with the time of events, and that of this query's events is "
        "uncertain",
        "compare the earliest or the latest time with an attribute of the set in a condition",
        related=(Related(declared, "VALID is declared here"),),
    )


# --- FOR EACH -------------------------------------------------------------------------------------


def unknown_set(name: str, declared: Collection[str], span: Span) -> Diagnostic:
    """`FOR EACH rules`."""
    hints = [*guess(name, declared), *available("parameter sets", declared)]
    if not declared:
        hints = [f"declare one beside the streams: PARAMETERS {written(name)} {{ id: LONG }}"]
    message = f"no parameter set is called {quote(name)}"
    return error("unknown-parameters", span, message, *hints, fixes=guessed(name, declared, span))


def label_and_set(name: str, span: Span, clause: Span) -> Diagnostic:
    """`A AS rule` in a query FOR EACH rule."""
    return error(
        "label-and-parameters",
        span,
        f"a label cannot be called {quote(name)} here: {written(name)}.… is a value of the "
        "parameter set",
        "give the label another name",
        related=(Related(clause, "the parameter set of this query"),),
    )


def not_for_each(name: str, span: Span) -> Diagnostic:
    """`A FILTER A.id = rule.id` in a query without FOR EACH rule."""
    message = f"{quote(name)} is a parameter set, and this query does not name it"
    hint = f"write FOR EACH {written(name)} before WHERE"
    return error("parameters-without-for-each", span, message, hint)


def other_set(name: str, named: str, span: Span, clause: Span) -> Diagnostic:
    """`other.id` in a query FOR EACH rule."""
    message = f"{quote(name)} is a parameter set, but this query is FOR EACH {written(named)}"
    hint = "a query has one parameter set: declare all that it needs in one"
    related = (Related(clause, "the parameter set of this query"),)
    return error("several-parameters", span, message, hint, related=related)


# --- values of a set ------------------------------------------------------------------------------


def unknown_parameter(name: str, owner: str, offered: Collection[str], span: Span) -> Diagnostic:
    """`rule.z`."""
    message = f"parameter set {quote(owner)} has no attribute {quote(name)}"
    return unknown("unknown-parameter", span, message, name, "attributes", offered)


def set_as_label(name: str, span: Span) -> Diagnostic:
    """`rule[a > 1]`, `rule IS R` and `SUM(rule.a)` in a condition."""
    message = f"{quote(name)} is a parameter set, and has no events"
    return error("parameters-as-label", span, message, f"compare its values: {written(name)}.a > 1")


def pattern_of_label(operator: str, text: str, span: Span) -> Diagnostic:
    """`x.name LIKE y.name`."""
    message = f"the pattern of {operator} cannot be {text}, the attribute of an event"
    hint = "expected a text such as 'a%', or an attribute of a parameter set"
    return error("pattern-of-label", span, message, hint)


def pattern_of_computed(operator: str, span: Span) -> Diagnostic:
    """`x.a || y.b LIKE rule.pattern` and `'abc' LIKE rule.pattern`."""
    return error(
        "computed-pattern",
        span,
        f"{operator} with a pattern of a parameter set is asked of the texts of events, and this "
        "text is of none",
        "write x.a, or PREV, FIRST, LAST or NTH of it, before it",
    )


def function_of_set(text: str, span: Span) -> Diagnostic:
    """`LOWER(rule.name) = x.name`."""
    message = "this is computed from one event, and it reads a parameter set"
    hint = f"give the set an attribute of its own that holds {text}, and compare with that"
    return error("function-of-set", span, message, hint)


def pattern_type(operator: str, type: str, span: Span) -> Diagnostic:
    """`x.name LIKE rule.id` where id is a number."""
    message = f"the pattern of {operator} must be a STRING, and this attribute is {type}"
    return error("pattern-type", span, message, "declare it as STRING")


def no_event_to_judge(text: str, span: Span) -> Diagnostic:
    """`PROJECT[NONE…]` around all labels: `COUNT(x) > rule.n` where the part binds no label."""
    return error(
        "parameter-without-event",
        span,
        f"{text} compares a function with a parameter where the formula before FILTER may bind no "
        "label, which cannot be compiled yet",
        "keep a label of an event that is in every match",
    )
