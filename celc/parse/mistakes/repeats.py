"""How often an operand comes: mistakes in `A{m,n}` and at `A?`, and `A*` of other languages.

The functions of the first two parts are about trees that the grammar accepts and the language
refuses. Those of the third return their message about a place, or None where their case does not
apply.
"""

import math
import re
from collections.abc import Sequence
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import Diagnostic, Fix, Related, error
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.mistakes.place import Place
from celc.parse.mistakes.tokens import offered, shortened
from celc.parse.tokens import keyword_of

# --- `A{m,n}` -------------------------------------------------------------------------------------

MAX_ROUNDS = 10_000  # rounds; each is a part of the automaton

Number: TypeAlias = syntax.IntegerLiteral | syntax.DoubleLiteral


@frozen
class Bounds:
    """`{least,most}` as written; `{n}` has the same number twice."""

    least: Number | None
    most: Number | None


def wrong_bounds(bounds: Bounds, contiguous: bool, span: Span) -> Diagnostic | None:
    """What is wrong with numbers of rounds, `{…}` or `:{…}` at a place; None: nothing."""
    numbers = [bound for bound in (bounds.least, bounds.most) if bound is not None]
    opener = ":{" if contiguous else "{"
    fractions = [bound for bound in numbers if isinstance(bound, syntax.DoubleLiteral)]
    if fractions:
        return _fraction(bounds, fractions[0].span, opener, span)
    least = None if bounds.least is None else int(bounds.least.value)
    most = None if bounds.most is None else int(bounds.most.value)
    if least == 0 or most == 0:
        return _no_round(most if least == 0 else 0, contiguous, span)
    if least is not None and most is not None and least > most:
        mended = f"{opener}{most},{least}}}"
        return _wrong(span, "the least number of rounds is above the greatest", mended)
    if max(least or 0, most or 0) > MAX_ROUNDS:
        message = f"a formula can have at most {MAX_ROUNDS:,} rounds"
        if least is not None and least <= MAX_ROUNDS:
            return _wrong(span, message, f"{opener}{least},}}", "for that many or more write")
        return _wrong(
            span, message, ":+" if contiguous else "+", "ask for fewer, or for any number:"
        )
    return None


def _wrong(span: Span, message: str, mended: str, why: str = "write") -> Diagnostic:
    return error("round-count", span, message, f"{why} {mended}", fixes=[Fix(span, mended)])


def _fraction(bounds: Bounds, place: Span, opener: str, span: Span) -> Diagnostic:
    """`A{1.5}`."""
    low = None if bounds.least is None else max(1, math.floor(min(bounds.least.value, MAX_ROUNDS)))
    high = None if bounds.most is None else max(1, math.ceil(min(bounds.most.value, MAX_ROUNDS)))
    inner = str(low) if low == high else f"{low or ''},{high or ''}"
    mended = f"{opener}{inner}}}"
    message = "a number of rounds is a whole number"
    return error("round-count", place, message, f"write {mended}", fixes=[Fix(span, mended)])


def _no_round(most: int | None, contiguous: bool, span: Span) -> Diagnostic:
    """`A{0,3}`, `A{0,}` and `A{0}`."""
    message = "a formula has at least one round"
    if most == 0:
        hint = "leave the part out; for no such event in between write A ; !B ; C"
        return error("round-count", span, message, hint)
    colon = ":" if contiguous else ""
    mended = f"{colon}+?" if most is None else f"{colon}{{1,{most}}}?"
    return _wrong(span, message, mended, "for an operand of a sequence that may be missing write")


# --- `A?` -----------------------------------------------------------------------------------------

_POSTFIX = re.compile(r"\s*(:?\+|:?\{[\d\s,]*\}|(?:AS|IN)\s+\w+)", re.IGNORECASE)
_NEXT = re.compile(r"\s*(\)|;|:(?![+{])|AND\b|ALL\b)?", re.IGNORECASE)
_BEFORE = re.compile(r"(\(|;|:|\bAND|\bALL)?\s*\Z", re.IGNORECASE)
_NEAR = 60


def lone_optional(source: Source, operand: Span, sign: Span) -> Diagnostic:
    """`A?` that is no operand of a sequence: alone, under OR, in parentheses before a postfix."""
    text = source.slice(operand)
    message = "'?' stands only after an operand of a sequence"
    span, before, after = operand.to(sign), *_beside(source, operand.to(sign))
    while (before, after) == ("(", ")"):
        start = source.text.rindex("(", 0, span.start)
        span = Span(start, source.text.index(")", span.end) + 1)
        before, after = _beside(source, span)
    is_enclosed = span.start < operand.start
    postfix = _POSTFIX.match(source.text, span.end) if is_enclosed else None
    if postfix is not None:
        glue = " " if postfix[1][0].isalpha() else ""
        mended = f"{text}{glue}{postfix[1]}?"
        hint = f"it is the last sign of its operand: write {offered(mended)}"
        span = Span(span.start, postfix.end())
    elif is_enclosed and {before, after} & {";", ":"}:
        mended = f"{text}?"
        hint = f"without parentheses it is an operand: write {offered(mended)}"
    elif {before, after} & {"(", ")", "AND", "ALL"} or _is_inside(source, span.start):
        outside = _outside(source, operand, sign)
        if outside is not None:
            hint = f"in a sequence put it behind the parentheses: {offered(outside.text)}"
            return error("misplaced-optional", sign, message, hint, fixes=[outside])
        hints = [
            "say both with OR: A? AND B is written (A AND B) OR B",
            "in a sequence put it behind the parentheses: (A? OR B) ; C is written (A OR B)? ; C",
        ]
        return error("misplaced-optional", sign, message, *hints)
    else:
        mended, span = text, operand.to(sign)
        hint = f"a match has at least one event; leave the ? out: {shortened(text)}"
    hints = [hint]
    if mended == text:
        hints.append("for more or less than that say both with OR: (A ; B) OR B")
    return error("misplaced-optional", sign, message, *hints, fixes=[Fix(span, mended)])


_ALTERNATIVE = re.compile(r"\s*OR\b(?:(?!\b(?:AND|ALL|FILTER|UNLESS)\b)[\w\s])*\)", re.IGNORECASE)
_OPENED = re.compile(r"(?:\bWHERE|[;:(])\s*(\()\s*\Z", re.IGNORECASE)


def _outside(source: Source, operand: Span, sign: Span) -> Fix | None:
    """`(A OR B)?` for `(A? OR B)` at one end of a sequence, as far as the text near it tells."""
    text = source.text
    opened = _OPENED.search(text[max(0, operand.start - _NEAR) : operand.start])
    rest = _ALTERNATIVE.match(text, sign.end)
    if opened is None or rest is None:
        return None
    start = max(0, operand.start - _NEAR) + opened.start(1)
    if not {*_beside(source, Span(start, rest.end()))} & {";", ":"}:
        return None
    mended = f"({source.slice(operand)}{rest[0]}?"
    return Fix(Span(start, rest.end()), mended)


def _beside(source: Source, span: Span) -> tuple[str, str]:
    """The sign or word before a place and the one after it, if it joins or encloses formulas."""
    text = source.text
    before = _BEFORE.search(text[max(0, span.start - _NEAR) : span.start])
    after = _NEXT.match(text, span.end)
    assert before is not None
    assert after is not None
    return (before[1] or "").upper(), (after[1] or "").upper()


def _is_inside(source: Source, offset: int) -> bool:
    """Whether a parenthesis is open at a place, as far as the text near it tells."""
    near = max(0, offset - 10 * _NEAR), offset
    return source.text.count("(", *near) > source.text.count(")", *near)


def all_optional(sign: Span) -> Diagnostic:
    """`A? ; B?`."""
    return error(
        "misplaced-optional",
        sign,
        "a '?' stands after each operand of this sequence, but one must stay",
        "a match has at least one event: leave one ? out",
        "for one of the two or both write A OR B OR (A ; B)",
        fixes=[Fix(sign, "")],
    )


def optional_absence(sign: Span) -> Diagnostic:
    """`A ; !B? ; C`."""
    message = "'?' cannot stand after what must be absent"
    hint = "leave the ? out; without the part no event need be absent: A ; C"
    return error("misplaced-optional", sign, message, hint, fixes=[Fix(sign, "")])


def optional_beside_absence(sign: Span, place: Span, ways: tuple[str, str] | None) -> Diagnostic:
    """`A ; !B ; C? ; D`: without C, it is not said between which events there is no B.

    `ways`: the sequence at a place with the operand and without it, where it can be without.
    """
    message = "'?' cannot stand beside a '!' between two events"
    if ways is None:
        hint = "a '!' stands between two events: leave the ? out"
        fixes = [Fix(sign, "")]
    else:
        mended = f"(({ways[0]}) OR ({ways[1]}))"
        hint, fixes = f"say both with OR: {offered(mended)}", [Fix(place, mended)]
    return error("misplaced-optional", sign, message, hint, fixes=fixes)


def mixed_joints(
    sign: Span, after: Span, operands: Sequence[str], signs: tuple[str, str]
) -> Diagnostic:
    """`A ; B? : C`; `after` is the place of the second joint."""
    left, middle, right = map(shortened, operands)
    one, other = signs
    both = f"({left} {one} {middle} {other} {right})"
    return error(
        "misplaced-optional",
        sign,
        f"an operand with '?' has the same sign on both sides, and not '{one}' and '{other}'",
        f"write {left} {one} {middle}? {one} {right}",
        f"or say both with OR: {both} OR ({left} {other} {right})",
        fixes=[Fix(after, one)],
        related=[Related(after, f"this '{other}'")],
    )


# --- places ---------------------------------------------------------------------------------------

_BRACES = ("LBRACE", "COLON_LBRACE")
_SIGNS_OF_RANGES = frozenset({"TWO_DOTS", "MINUS", "COLON", "SEMICOLON", "NAME"})


def bounds(place: Place) -> Diagnostic | None:
    """`A{2..3}`, `A{2-3}`, `A{}` and `A{,}`: braces after a formula without bounds in them."""
    opener = place.opener
    if opener is None or place.tokens[opener].type not in _BRACES or place.wants_comparison:
        return None
    rounds = place.before in (*_BRACES, "COMMA", "INTEGER", "DOUBLE")
    if not rounds or not place.accepted <= {"INTEGER", "DOUBLE", "COMMA", "RBRACE"}:
        return None
    message = f"'{place.text(opener, place.index + 1)}' is no number of rounds"
    known = "rounds are written {2}, {2,4}, {2,} or {,4}"
    closer = place.closer(opener)
    numbers = [] if closer is None else place.tokens[opener + 1 : closer]
    written = [token.text for token in numbers if token.type == "INTEGER"]
    span = place.found.span if closer is None else place.span(opener, closer + 1)
    sign = place.tokens[opener].text
    if closer is not None and place.found.type in _SIGNS_OF_RANGES and len(written) == 2:
        mended = f"{sign}{written[0]},{written[1]}}}"
    elif closer is not None and not written and place.found.type == "RBRACE":
        mended = ":+" if sign == ":{" else "+"
        known = "one or more rounds are +, and a number of rounds stands in braces: {2} or {2,4}"
    elif closer is not None and place.before in _BRACES and place.found.type == "NAME":
        mended = ":+" if sign == ":{" else "+"
        known = f"that is any number of rounds; a fixed number is written as {sign}2}}"
    else:
        return error("round-count", place.found.span, message, known)
    fixes = [Fix(span, mended)]
    return error("round-count", place.found.span, message, f"write {mended}", known, fixes=fixes)


def not_after_formula(place: Place) -> Diagnostic | None:
    """`A ; {2}`, `A : {2}` and `A FILTER x.a > 3 {2}`: a number of rounds without its formula."""
    closer = place.closer(place.index) if place.found.type in _BRACES else None
    if closer is None or place.after_operand or closer == place.index + 1:
        return None
    inner = place.tokens[place.index + 1 : closer]
    if any(token.type not in ("INTEGER", "COMMA") for token in inner):
        return None
    braces = place.raw(place.index, closer + 1)
    message = f"'{shortened(braces)}' has no formula before it"
    if place.before == "COLON" and place.wants_formula:
        span = place.previous.span.to(place.tokens[closer].span)
        mended = f":{braces}"
        hint = f"contiguous rounds are written {mended} without a space"
        return error("round-count", span, message, hint, fixes=[Fix(span, mended)])
    if place.wants_formula:
        hint = "a number of rounds follows its formula: A{2}, or (A ; B){2}"
        fixes = []
        if place.before == "SEMICOLON":
            left = place.text(place.index - 2, place.index - 1)
            hint = f"a number of rounds follows its formula: {left}{braces}, or (A ; B){braces}"
            span = place.previous.span.to(place.tokens[closer].span)
            gap = Span(place.tokens[place.index - 2].end, span.end)
            fixes = [Fix(gap, braces)]
        return error("round-count", place.found.span, message, hint, fixes=fixes)
    if place.accepts("AND", "OR") and place.last("FILTER") is not None:
        start = place.formula_start()
        mended = f"({place.raw(start, place.index)}){braces}"
        span = place.span(start, closer + 1)
        return error(
            "round-count",
            place.found.span,
            f"'{shortened(braces)}' follows a condition, and not a formula",
            f"put the formula with its condition in parentheses: {offered(mended)}",
            fixes=[Fix(span, mended)],
        )
    return None


def postfix_after_optional(place: Place) -> Diagnostic | None:
    """`B? AS y`, `B?+` and `B??`, and the `?` of `A UNLESS B?`."""
    if place.found.type == "QUESTION":
        if place.before != "QUESTION" and not place.after_operand:
            return None
        message = "'?' stands only after an operand of a sequence"
        hint, fixes = "leave it out", [Fix(place.found.span, "")]
        return error("misplaced-optional", place.found.span, message, hint, fixes=fixes)
    if place.before != "QUESTION":
        return None
    end: int | None = None
    if place.found.type in ("PLUS", "COLON_PLUS"):
        end = place.index + 1
    elif place.found.type in ("AS", "IN") and place.following.type == "NAME":
        end = place.index + 2
    elif place.found.type in (*_BRACES, "LSQB"):
        closer = place.closer(place.index)
        end = None if closer is None else closer + 1
    if end is None:
        return None
    moved = place.raw(place.index, end)
    glue = " " if moved[0].isalpha() else ""
    return error(
        "misplaced-optional",
        place.previous.span,
        "'?' is the last sign of its operand",
        f"write it after the others: {offered(f'{glue}{moved}?'.strip())}",
        fixes=[Fix(place.span(place.index - 1, end), f"{glue}{moved}?")],
    )


def none_or_more(place: Place) -> Diagnostic | None:
    """`A ; B* ; C`."""
    if place.found.text != "*" or not place.after_operand:
        return None
    joints = {"SEMICOLON", "COLON"}
    before = next(
        (place.tokens[i].type for i in place.backwards() if place.tokens[i].type in _ENDS_OPERAND),
        "",
    )
    after = place.following.type if keyword_of(place.following) is None else ""
    beside = {before, after} & joints
    sign, hint = "+?", "none or more of an operand of a sequence is written +?, as in A ; B+? ; C"
    if not beside:
        sign, hint = "+", "a match has at least one event; one or more is written +"
    fixes = [Fix(place.found.span, sign)] if len(beside) < 2 else []
    if not fixes:
        hint = "say both with OR: (A ; B+ : C) OR (A ; C)"
    message = "'*' is not an operator of CEL"
    return error("misplaced-sign", place.found.span, message, hint, fixes=fixes)


_ENDS_OPERAND = frozenset(
    {"SEMICOLON", "COLON", "AND", "ALL", "OR", "FILTER", "UNLESS", "WHERE", "BANG"}
)
