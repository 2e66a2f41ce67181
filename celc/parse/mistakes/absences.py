"""Mistakes with `!`, FOR and FIRST that the grammar accepts and the language refuses."""

from celc.diagnostics.errors import Diagnostic, Fix, Related, error
from celc.diagnostics.source import Span
from celc.parse.mistakes.tokens import offered, shortened

_UNLESS = "for no B anywhere inside a match: (A ; C) UNLESS B"


def lone_negation(bang: Span, absence: str | None) -> Diagnostic:
    """`!B` that is no part of a sequence; `absence` is `!B FOR 5 MINUTES` as written."""
    if absence is not None:
        message = "nothing follows the absence, and a match needs an event"
        hint = f"write what it stands before: {shortened(absence)} ; …"
        return error("negation-at-end", bang, message, hint)
    return error(
        "negation-at-end",
        bang,
        "'!' stands only between two ';', or with FOR at the start or the end of a sequence",
        "say between which events there is no B: A ; !B ; C",
        "or for how long before an event: !B FOR 10 MINUTES ; A",
        "or for how long after one: A ; !B FOR 10 MINUTES",
        _UNLESS,
    )


def without_length(
    bang: Span, operand: str, neighbour: str, other: str | None, span: Span
) -> Diagnostic:
    """`!B ; C`; `other` is an event type that could stand before it, `span` that of both."""
    mended = " ; ".join((other or "…", f"!{operand}", neighbour))
    length = f"!{operand} FOR 10 MINUTES ; {neighbour}"
    return error(
        "negation-at-end",
        bang,
        "'!' at the start of a sequence needs FOR, which says for how long there is none before it",
        f"say for how long: {shortened(length)}",
        f"or put an event before it: {shortened(mended)}",
        _UNLESS,
        fixes=[Fix(span, mended)] if other else [],
    )


def nothing_between(bang: Span, before: Span, first: str) -> Diagnostic:
    """`!A FOR 5 MINUTES ; !B FOR 5 MINUTES`."""
    message = "no event stands between the two absences, and a match needs one"
    hint = f"put an event between them: {shortened(first)} ; … ; !…"
    return error("negation-twice", bang, message, hint, related=[Related(before, "the one before")])


def contiguous_before(bang: Span, operator: Span) -> Diagnostic:
    """`A : !B FOR 5 MINUTES`."""
    message = "a ';' stands before an absence at the end of a sequence, and no ':'"
    hint = "write ; in place of this ':'"
    fixes = [Fix(operator, ";")]
    related = [Related(operator, "this ':'")]
    return error("negation-contiguous", bang, message, hint, fixes=fixes, related=related)


def contiguous_after(bang: Span, operator: Span) -> Diagnostic:
    """`!B FOR 5 MINUTES : A`."""
    message = "a ';' follows an absence at the start of a sequence, and no ':'"
    hint = "write ; in place of this ':'"
    fixes = [Fix(operator, ";")]
    related = [Related(operator, "this ':'")]
    return error("negation-contiguous", bang, message, hint, fixes=fixes, related=related)


def length_between(
    bang: Span,
    length: Span,
    absence: str,
    sides: tuple[str, str, str],
    span: Span,
    mended: str | None,
    *,
    counts: bool,
) -> Diagnostic:
    """`A ; !B FOR 5 MINUTES ; C`; `absence` is the middle as written, `sides` all without FOR.

    `mended`: the sequence at `span` with conditions on the times of the three, where it is known.
    `counts`: the length is one of EVENTS.
    """
    before, _middle, after = sides
    hints = [
        f"for no B in that time after {shortened(before)} compare the times: "
        "A AS a ; !(B AS b FILTER b.ts - a.ts <= 5 MINUTES) ; C AS c FILTER c.ts - a.ts > 5 MINUTES"
    ]
    if mended is not None:
        hints = [f"compare the times: {offered(mended)}"]
    elif counts:
        hints = []
    return error(
        "misplaced-for",
        length,
        "FOR stands only with an absence at the start or the end of a sequence: between two "
        "events their times are the limits",
        *hints,
        f"for none before {shortened(after)}, even before {shortened(before)}: "
        f"{shortened(before)} ; ({shortened(absence)} ; {shortened(after)})",
        f"for none between the two, however long that is, leave FOR out: "
        f"{shortened(' ; '.join(sides))}",
        fixes=[] if mended is None else [Fix(span, mended)],
        related=[Related(bang, "this '!' stands between two events")],
    )


def negation_contiguous(bang: Span, operator: Span, parts: tuple[str, str, str]) -> Diagnostic:
    """`A : !B ; C`."""
    message = "'!' stands only between two ';': next to ':' there is no room for another event"
    hint = f"write ; on both sides: {' ; '.join(shortened(part) for part in parts)}"
    fixes = [Fix(operator, ";")]
    related = [Related(operator, "this ':'")]
    return error("negation-contiguous", bang, message, hint, fixes=fixes, related=related)


def negation_twice(bang: Span, before: Span, operands: tuple[str, str]) -> Diagnostic:
    """`A ; !B ; !C ; D`."""
    mended = f"!({shortened(operands[0])} OR {shortened(operands[1])})"
    message = "'!' cannot stand twice in a row"
    hint = f"for neither of the two: {mended}"
    return error("negation-twice", bang, message, hint, related=[Related(before, "the one before")])


def lengths_in_a_row(bang: Span, before: Span, first: str, rest: str, span: Span) -> Diagnostic:
    """`!B FOR 5 MINUTES ; !C FOR 9 MINUTES ; A`; `rest` is all from the second one, at `span`."""
    return error(
        "negation-twice",
        bang,
        "'!' cannot stand twice in a row",
        f"put the second one in parentheses: {shortened(first)} ; ({shortened(rest)})",
        "absences of one length can be joined with OR: !(B OR C) FOR 10 MINUTES ; A",
        fixes=[Fix(span, f"({rest})")],
        related=[Related(before, "the one before")],
    )


def doubled_bang(span: Span) -> Diagnostic:
    """`!!B`."""
    message = "'!' cannot stand twice in a row"
    return error("negation-twice", span, message, "write one ! for no B, none for B")


def first_of_absence(place: Span) -> Diagnostic:
    """`A ; FIRST !B ; C`."""
    return error(
        "misplaced-first",
        place,
        "FIRST chooses a match, so it cannot stand before '!'",
        "for the first C if no B is before it write: A ; !B ; FIRST C",
        "for the first C and no B between the two only in a round: A ; (!B ; FIRST C)+",
    )


def optional_in_first(word: Span, sign: Span, operand: str) -> Diagnostic:
    """`A ; FIRST B? ; C`."""
    mended = f"(FIRST {operand})?"
    return error(
        "misplaced-optional",
        sign,
        "'?' stands after the parentheses around FIRST",
        f"write {offered(mended)}",
        fixes=[Fix(word.to(sign), mended)],
    )


def doubled_first(word: Span) -> Diagnostic:
    """`A ; FIRST FIRST B`."""
    message = "FIRST stands twice before one operand"
    return error("misplaced-first", word, message, "leave one out", fixes=[Fix(word, "")])


def after_first(sign: Span, operand: str, postfix: str) -> Diagnostic:
    """`(FIRST B):+`, `(FIRST B) AS x`, `(FIRST B)+{2}`."""
    if postfix.startswith(":"):
        hints = [f"rounds of FIRST choose among all that follows: (FIRST {shortened(operand)})+"]
    elif postfix[0] in "+{":
        hints = ["one number of rounds is enough: (FIRST B)+ or (FIRST B){2,3}"]
    else:
        glue = "" if postfix.startswith("[") else " "
        hints = [f"write it inside: FIRST ({shortened(operand)}{glue}{postfix})"]
    message = f"'{shortened(postfix)}' cannot stand after (FIRST …): only +, {{m,n}} and ? can"
    return error("misplaced-first", sign, message, *hints)
