"""Operands of a sequence where they cannot be, or mean little: FIRST, and absences at the end of a
formula (`φ ; !ψ FOR d`)."""

from celc.diagnostics.errors import Diagnostic, Fix, Related, error, warning
from celc.diagnostics.messages.wording import quote
from celc.diagnostics.source import Span


def not_at_the_end(bang: Span, operand: str, absent: str) -> Diagnostic:
    """`(A ; !B FOR 5 MINUTES) ; C`, `(A ; !B FOR 5 MINUTES)+`."""
    return error(
        "misplaced-absence",
        bang,
        "an absence at an end can only stand at the end of the whole formula, or of an operand of "
        "OR there: a match with it is known only later",
        "between two events write it without FOR: A ; !B ; C",
        f"to forbid it inside a match, write ({operand}) UNLESS {absent}",
        "AS, renaming, PROJECT, FILTER and WITHIN[…] may stand around it",
    )


def without_length(
    bang: Span, operand: str, absent: str, other: str | None, span: Span
) -> Diagnostic:
    """`A ; !B` in a query without WITHIN; `other` is an event type that could stand after it,
    `span` that of both."""
    written = f"{operand} ; !{absent}"
    mended = f"{written} ; {other or '…'}"
    return error(
        "negation-at-end",
        bang,
        "'!' at the end of a sequence needs FOR, which says for how long there is none after it, "
        "or a WITHIN clause",
        f"say for how long after the last event: {written} FOR 10 MINUTES",
        "or from the first event on: … WITHIN 10 MINUTES",
        f"or put an event after it: {mended}",
        "for no B anywhere inside a match: (A ; C) UNLESS B",
        fixes=[Fix(span, mended)] if other else [],
    )


def consumed(policy: str, span: Span, bang: Span) -> Diagnostic:
    """`A ; !B FOR 5 MINUTES … CONSUME BY ANY`."""
    return error(
        "consumed-absence",
        span,
        f"CONSUME BY {policy} lets the stream begin anew at a match, and a match with an absence "
        "at its end is known only later",
        "leave CONSUME BY out",
        related=(Related(bang, "this absence stands at the end"),),
    )


def misplaced_first(place: Span, *, contiguous: bool = False, missing: bool = False) -> Diagnostic:
    """`FIRST B` that does not stand after `;`. `contiguous`: it stands after ':'; `missing`: all
    before it is optional, as in `A? ; FIRST B`."""
    if contiguous:
        message = "FIRST stands after ';' only: after ':' there is nothing to choose from"
        hints = ["leave FIRST out, or write ; in place of the ':'"]
    elif missing:
        message = "nothing stands before this FIRST where the optional operands are missing"
        hints = ["say both with OR: (A ; FIRST B) OR B"]
    else:
        message = "FIRST chooses from what follows a part of the formula, so it stands after ';'"
        hints = [
            "write the part before it: A ; FIRST B",
            "for the first match of each start write SELECT FIRST",
        ]
    return error("misplaced-first", place, message, *hints)


def sees_the_left(label: str, span: Span, left: Span) -> Diagnostic:
    """`A AS y ; FIRST (B FILTER B.id = y.id) ; C AS y`."""
    return warning(
        "first-sees-left",
        span,
        f"label {quote(label)} is bound on both sides of this FIRST, which sees only the left part",
        "give the part to the right a label of its own, if that is meant as well",
        related=(Related(left, "bound here"),),
    )


def of_one_round(span: Span) -> Diagnostic:
    """`A ; FIRST B+`."""
    return warning(
        "first-of-rounds",
        span,
        "of several rounds only one can end first, so the operand of FIRST has one round",
        "for the first one, then the first one after it, and so on write: (FIRST B)+",
    )


def selector_inside(span: Span) -> Diagnostic:
    """`A ; FIRST (NXT(B ; C))`."""
    return warning(
        "selector-in-first",
        span,
        "this selector chooses among all matches of the stream, also those that begin before what "
        "is to the left of FIRST",
        "to choose among the matches behind it alone, put the selector around the whole sequence",
    )


def first_instead(instead: str, span: Span, *, repeated: bool) -> Diagnostic:
    """`A ; !B ; B`; `instead` is its FIRST. `repeated`: a condition around the sequence says again
    what stands in the absence."""
    return warning(
        "first-instead",
        span,
        "this absence only makes the event after it the first one, which FIRST says by itself",
        f"write {instead}",
        *(["a condition outside that says the same can go"] if repeated else []),
        fixes=[Fix(span, instead)],
    )
