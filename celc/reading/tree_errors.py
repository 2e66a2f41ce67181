"""What is said of trees that the grammar lets pass but the language does not."""

from __future__ import annotations

from collections.abc import Sequence

from celc import syntax
from celc.errors import Diagnostic, Related, error
from celc.reading.token_errors import shortened
from celc.source import Span


def quoted(name: str) -> str:
    """A name as it is written in a query: in backquotes where it is no plain word."""
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


# --- files ----------------------------------------------------------------------------------------


def no_query(streams: Sequence[syntax.StreamDeclaration], end: Span) -> Diagnostic:
    """A file without any query."""
    if not streams:
        return error(
            "no-query",
            end,
            "the file is empty: there is no query",
            help=["the smallest file is a formula, such as: A ; B"],
        )
    stream = streams[-1]
    event = stream.events[0].name.text
    example = f"SELECT * FROM {quoted(stream.name.text)} WHERE {quoted(event)}"
    return error(
        "no-query",
        end,
        "the file declares streams but has no query",
        help=[f"add a query, such as: {shortened(example)}"],
    )


def unnamed_query(span: Span) -> Diagnostic:
    """One of several queries, without a name."""
    return error(
        "unnamed-query",
        Span(span.start, span.start + len("SELECT")),
        "a file of several queries needs a name for each",
        help=["write QUERY name: before SELECT"],
    )


def too_deep(span: Span, limit: int) -> Diagnostic:
    """Operators nested beyond all use."""
    return error(
        "too-deep",
        Span(span.start, span.start + 1),
        f"operators are nested more than {limit} levels deep here",
        help=[
            "chains of one operator (A ; B ; …, A OR B OR …) count as one level; arithmetic, NOT "
            "and postfix operators count one level each"
        ],
    )


def unknown_unit(unit: str, span: Span) -> Diagnostic:
    """`WITHIN 10 APPLES`."""
    return error(
        "unknown-unit",
        span,
        f"'{shortened(unit)}' is not a unit of time",
        help=[
            *([f"write {_OTHER_UNITS[unit.upper()]}"] if unit.upper() in _OTHER_UNITS else []),
            "units are MILLISECONDS, SECONDS, MINUTES, HOURS and DAYS",
            "a number of events is written WITHIN 10 EVENTS, a distance in an attribute's values "
            "WITHIN 10 [attribute]",
        ],
    )


_OTHER_UNITS = {
    "MS": "MILLISECONDS",
    "MILLIS": "MILLISECONDS",
    "S": "SECONDS",
    "SEC": "SECONDS",
    "SECS": "SECONDS",
    "M": "MINUTES",
    "MIN": "MINUTES",
    "MINS": "MINUTES",
    "H": "HOURS",
    "HR": "HOURS",
    "HRS": "HOURS",
    "D": "DAYS",
    "WEEK": "7 DAYS for each",
    "WEEKS": "7 DAYS for each",
    "EVENT": "EVENTS",
    "ROW": "EVENTS",
    "ROWS": "EVENTS",
}


def label_renamed_in_select(label: syntax.Name, name: syntax.Name) -> Diagnostic:
    """`SELECT x AS y`."""
    old, new = quoted(label.text), quoted(name.text)
    return error(
        "label-renamed",
        label.span.to(name.span),
        "AS in SELECT names an expression; a label keeps its name",
        help=[f"rename the label in the formula: (…)[{old} -> {new}]"],
    )


# --- `!` ------------------------------------------------------------------------------------------


def lone_negation(bang: Span) -> Diagnostic:
    """`!B` that is no part of a sequence."""
    return error(
        "negation-at-end",
        bang,
        "'!' stands only between two ';'",
        help=["say between which events there is no B: A ; !B ; C", _UNLESS],
    )


_UNLESS = "for no B anywhere inside a match: (A ; C) UNLESS B"


def negation_at_end(bang: Span, operand: str, neighbour: str, *, first: bool) -> Diagnostic:
    """`!B ; C` or `A ; !B`."""
    parts = ("…", f"!{operand}", neighbour) if first else (neighbour, f"!{operand}", "…")
    mended = " ; ".join(parts)
    return error(
        "negation-at-end",
        bang,
        f"'!' cannot stand at the {'start' if first else 'end'} of a sequence: "
        f"a match {'starts' if first else 'ends'} with an event",
        help=[f"put an event {'before' if first else 'after'} it: {shortened(mended)}", _UNLESS],
    )


def negation_contiguous(bang: Span, operator: Span, parts: tuple[str, str, str]) -> Diagnostic:
    """`A : !B ; C`."""
    return error(
        "negation-contiguous",
        bang,
        "'!' stands only between two ';': next to ':' there is no room for another event",
        help=[f"write ; on both sides: {' ; '.join(shortened(part) for part in parts)}"],
        related=[Related(operator, "this ':'")],
    )


def negation_twice(bang: Span, before: Span, operands: tuple[str, str]) -> Diagnostic:
    """`A ; !B ; !C ; D`."""
    mended = f"!({shortened(operands[0])} OR {shortened(operands[1])})"
    return error(
        "negation-twice",
        bang,
        "'!' cannot stand twice in a row",
        help=[f"for neither of the two: {mended}"],
        related=[Related(before, "the one before")],
    )


def doubled_bang(span: Span) -> Diagnostic:
    """`!!B`."""
    return error(
        "negation-twice",
        span,
        "'!' cannot stand twice in a row",
        help=["write one ! for no B, none for B"],
    )


# --- attributes and `x[p]` ------------------------------------------------------------------------


def bare_attribute(name: syntax.Name, label: str | None) -> Diagnostic:
    """`price > 10` outside brackets."""
    attribute = quoted(name.text)
    mended = f"{label or 'x'}.{attribute}"
    return error(
        "bare-attribute",
        name.span,
        f"it is not said whose {shortened(attribute)} is meant",
        help=[f"write the label before it, such as {shortened(mended)}"],
    )


def label_in_brackets(attribute: str, span: Span) -> Diagnostic:
    """`x[y.a > 1]`."""
    return error(
        "label-in-brackets",
        span,
        "no label can stand inside x[…], where all attributes are x's own",
        help=[
            f"for an attribute of x write {shortened(attribute)}",
            "to compare with another label write the condition without brackets: x.a > y.a",
        ],
    )


def function_in_brackets(function: str, span: Span) -> Diagnostic:
    """`x[MAX(a) > 1]`."""
    return error(
        "function-in-brackets",
        span,
        "no function but ABS can stand inside x[…]",
        help=[f"write the condition without brackets: {shortened(function)}(x.a) > …"],
    )


def nested_brackets(label: str, span: Span) -> Diagnostic:
    """`x[y[a > 1]]`."""
    return error(
        "label-in-brackets",
        span,
        "no other label can stand inside x[…]",
        help=[f"join the two with AND: x[…] AND {shortened(label)}[…]"],
    )
