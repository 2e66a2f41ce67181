"""Mistakes in trees that the grammar accepts and the language refuses."""

import re
from collections.abc import Collection, Sequence

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.messages.functions import NO_PRESENT
from celc.diagnostics.messages.wording import written
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.durations import in_units, is_calendar
from celc.parse.mistakes.tokens import offered, shortened

# --- files ----------------------------------------------------------------------------------------


def no_query(
    streams: Sequence[syntax.StreamDeclaration], end: Span, *, declared: str = ""
) -> Diagnostic:
    """A file without any query; `declared`: what it declares besides streams, as `aggregates`."""
    if not streams and declared:
        message = f"the file declares {declared} but has no query"
        return error("no-query", end, message, "add streams and a query, such as: SELECT * WHERE A")
    if not streams:
        message = "the file is empty: there is no query"
        return error("no-query", end, message, "the smallest file is a formula, such as: A ; B")
    stream = streams[-1]
    event = stream.events[0].name.text
    example = f"SELECT * FROM {written(stream.name.text)} WHERE {written(event)}"
    message = "the file declares streams but has no query"
    hint = f"add a query, such as: {shortened(example)}"
    return error("no-query", end, message, hint, fixes=[Fix(end, f"\n{example}\n")])


def unnamed_query(span: Span) -> Diagnostic:
    """One of several queries, without a name."""
    message = "a file of several queries needs a name for each"
    hint = "write QUERY name: before SELECT"
    return error("unnamed-query", Span(span.start, span.start + len("SELECT")), message, hint)


def too_deep(span: Span, limit: int) -> Diagnostic:
    """Operators nested too deep."""
    return error(
        "too-deep",
        Span(span.start, span.start + 1),
        f"operators are nested more than {limit} levels deep here",
        "chains of one operator (A ; B ; …, A OR B OR …) count as one level; arithmetic, NOT "
        "and postfix operators count one level each",
    )


def unknown_unit(number: str, unit: str, span: Span) -> Diagnostic:
    """`WITHIN 10 APPLES`; `span` is that of the number and the unit."""
    mended = in_units(number, unit)
    hints = []
    if mended == f"{number} {unit.upper()}":
        # `WITHIN 5 MINUTES 3 EVENTS`
        mended, hints = None, ["a window is a time or a number of events, and not both"]
    if mended is not None and is_calendar(unit):
        hints = [f"{unit.lower()} differ in length; in days: {mended}"]
    elif mended is not None:
        hints = [f"write {mended}"]
    return error(
        "unknown-unit",
        Span(span.end - len(unit), span.end),
        f"'{shortened(unit)}' is not a unit of time",
        *hints,
        "units are MILLISECONDS, SECONDS, MINUTES, HOURS and DAYS",
        "a number of events is written WITHIN 10 EVENTS, a distance in an attribute's values "
        "WITHIN 10 [attribute]",
        fixes=[Fix(span, mended)] if mended else [],
    )


def label_renamed_in_select(label: syntax.Name, name: syntax.Name) -> Diagnostic:
    """`SELECT x AS y`."""
    old, new = written(label.text), written(name.text)
    span = label.span.to(name.span)
    return error(
        "label-renamed",
        span,
        "AS in SELECT names an expression; a label keeps its name",
        f"write SELECT {old}, or select an attribute: {old}.a AS {new}",
        f"for another name rename the label in the formula: (…)[{old} -> {new}]",
        fixes=[Fix(span, old)],
    )


# --- NOT ------------------------------------------------------------------------------------------


def not_of_several(keyword: Span, operand: str) -> Diagnostic:
    """`NOT(A ; B)`, where one event is negated."""
    return error(
        "not-of-several",
        keyword,
        "NOT(…) is one event of another kind, so an event type stands in it",
        f"for no match in between write !({shortened(operand)})",
        "an event type can have conditions: NOT(A FILTER A.price > 100)",
    )


# --- attributes and `x[p]` ------------------------------------------------------------------------


@frozen
class Compared:
    """`x.a = name`, or `x.a != name` (`negated`), with the place of all of it."""

    value: str
    negated: bool
    span: Span
    text: str | None = None
    """What a text says that the name is compared with, as in `name = 'text'`."""


def bare_attribute(
    name: syntax.Name,
    label: str | None,
    *,
    is_text: bool = False,
    is_number: bool = False,
    types: Collection[str] = (),
    compared: Compared | None = None,
) -> Diagnostic:
    """`price > 10` outside brackets; `is_text` where no event type has such an attribute,
    `is_number` where it is compared with a number; `types` are the event types; `compared`: an
    attribute or a text equals it, or not."""
    attribute = written(name.text)
    mended = f"{written(label) if label else 'x'}.{attribute}"
    hints = [f"write the label before it, such as {shortened(mended)}"]
    fixes = [Fix(name.span, mended)] if label else []
    if is_text:
        text = "'" + name.text.replace("'", "''") + "'"
        hints = [
            f"a text stands in quotes: {shortened(text)}",
            "an attribute stands after its label and a dot; no event type has one of this name",
        ]
        fixes = [Fix(name.span, text)]
    if is_text and is_number:
        hints, fixes = hints[1:], []
    if is_text and name.text.upper() in ("NONE", "NIL", "UNDEFINED", "NA"):
        hints, fixes = ["for a missing value write IS NULL"], []
        if compared is not None and compared.value:
            mended = f"{compared.value} IS {'NOT ' if compared.negated else ''}NULL"
            hints, fixes = [f"write {mended}"], [Fix(compared.span, mended)]
    if is_text and name.text.upper() == "TYPE":
        hints, fixes = ["a condition asks for the type of an event with x IS A"], []
        if compared is not None and compared.text in types and label:
            assert compared.text is not None
            test = "IS NOT" if compared.negated else "IS"
            asked = f"{written(label)} {test} {written(compared.text)}"
            hints, fixes = [f"write {asked}"], [Fix(compared.span, asked)]
    if is_text and name.text.upper() == "NAN":
        hints, fixes = ["a function asks for it: ISNAN(x.a)"], []
        if compared is not None and compared.value:
            value = compared.value
            mended = f"ISNAN({value})"
            if compared.negated:
                mended = f"({value} IS NOT NULL AND NOT ISNAN({value}))"
            hints = [f"a function asks for it: write {mended}"]
            fixes = [Fix(compared.span, mended)]
    message = f"no label says whose {shortened(attribute)} is meant"
    return error("bare-attribute", name.span, message, *hints, fixes=fixes)


def present_time(name: syntax.Name) -> Diagnostic:
    """`x.ts > CURRENT_TIMESTAMP`."""
    message = f"there is no function '{name.text}'"
    return error("unknown-function", name.span, message, NO_PRESENT)


def function_in_brackets(function: str, span: Span) -> Diagnostic:
    """`x[MAX(a) > 1]`."""
    message = f"{shortened(function)} is of all events of a label, and this is of one event"
    hint = f"in a condition write it without brackets: {shortened(function)}(x.a) > …"
    return error("function-in-brackets", span, message, hint)


def nested_brackets(label: str, span: Span) -> Diagnostic:
    """`x[y[a > 1]]`."""
    message = "no other label can stand inside x[…]"
    hint = f"join the two with AND: x[…] AND {shortened(label)}[…]"
    return error("label-in-brackets", span, message, hint)


def attribute_after_function(function: str, label: str, attribute: str, span: Span) -> Diagnostic:
    """`FIRST(v).price`."""
    mended = f"{function}({written(label)}.{written(attribute)})"
    message = "the attribute of a function's label stands inside the parentheses"
    fixes = [Fix(span, mended)]
    return error("attribute-after-function", span, message, f"write {offered(mended)}", fixes=fixes)


def json_step(span: Span, index: str) -> Diagnostic:
    """`x.a:b[x.i]`."""
    message = "a path into a text of JSON has numbers and texts in its brackets"
    hint = f"write the place or the name itself, as in [0] or ['name'], not {shortened(index)}"
    return error("json-path", span, message, hint)


# --- IS and PREV ----------------------------------------------------------------------------------


def type_test_in_brackets(source: Source, span: Span, test: str) -> Diagnostic:
    """`x[a IS R]`; `test` is `IS R` as written."""
    message = "IS cannot ask for the type of an event inside x[…]"
    before = re.search(r"(\w+)\s*\[\s*$", source.text[: span.start])
    after = re.match(r"\s*\]", source.text[span.end :])
    if before is None or after is None:
        hint = f"ask beside the brackets: x {shortened(test)} AND x[…]"
        return error("misplaced-is", span, message, hint)
    mended = f"{before[1]} {shortened(test)}"
    fixes = [Fix(Span(before.start(), span.end + after.end()), mended)]
    return error("misplaced-is", span, message, f"write {mended}", fixes=fixes)


def type_test_of_value(span: Span, test: str, of: syntax.Name | None) -> Diagnostic:
    """`x.a IS R`; `test` is `IS R` as written, `of` the label x."""
    hints = ["IS NULL asks whether a value is missing; to compare values write = or !="]
    label = written(of.text) if of else "x"
    mended = f"{label} {shortened(test)}"
    if test.split()[-1].upper() == "NAN":
        hint = "NaN has a function: ISNAN(x.a), or x.a IS NOT NULL AND NOT ISNAN(x.a)"
        return error("misplaced-is", span, "IS asks for NULL, and not for NaN", hint)
    message = "IS with an event type asks for the type of a label's event, not of a value"
    fixes = [Fix(span, mended)] if of else []
    return error("misplaced-is", span, message, f"write {mended}", *hints, fixes=fixes)


def late_prior(prior: Span, first: int) -> Diagnostic:
    """`slope(x.ts, PRIOR x.value)`; `first` is where the first argument begins."""
    message = "PRIOR is about all arguments, so it stands before the first one"
    hint = "write PRIOR before the first argument"
    return error("misplaced-prior", prior, message, hint, fixes=[Fix(Span(first, first), "PRIOR ")])


def distance(place: Span, call: Span, value: str, distance: str) -> Diagnostic:
    """`PREV(x.a, 0)`, `PREV(x.a, -1)` and `PREV(x.a, y.n)`; `place` is that of the distance."""
    digits = distance.removeprefix("-").strip()
    message = "PREV looks back by a whole number of events, which is written out"
    if digits.isdecimal() and not int(digits):
        return error(
            "call-arguments",
            place,
            "PREV looks back by at least one event",
            f"for the value of the event itself write {shortened(value)}",
            fixes=[Fix(call, value)],
        )
    mended = f"PREV({value}, {digits if digits.isdecimal() else 1})"
    hint = f"such as {shortened(mended)}"
    return error("call-arguments", place, message, hint, fixes=[Fix(call, mended)])
