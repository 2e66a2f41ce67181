"""How often an event comes, as other languages write it: `A{3}`, `A{2,4}`, `A*` and `A?`.

Each function returns what it has to say of a place, or None where its case does not apply.
"""

from __future__ import annotations

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.parse.mistakes.place import CLAUSES, CLOSERS, Place
from celc.parse.mistakes.tokens import offered, shortened
from celc.parse.tokens import keyword_of

_ENDS_OPERAND = frozenset(
    {"SEMICOLON", "COLON", "AND", "ALL", "OR", "FILTER", "UNLESS", "WHERE", "BANG"}
)
_JOINTS = frozenset({"SEMICOLON", "COLON"})
# The most rounds that are written out one by one.
_MOST_WRITTEN = 6


def counted(place: Place) -> Diagnostic | None:
    """`A{3}`, `A{2,4}`, `A{2,}`, `A{,2}`, and the same with `:{`."""
    contiguous = place.before == "COLON" and place.wants_formula
    if place.found.type != "LBRACE" or not (place.after_operand or contiguous):
        return None
    end = place.closer(place.index)
    bounds = None if end is None else _bounds(place, end)
    if end is None or bounds is None:
        return None
    last = place.index - contiguous
    start = _operand_start(place, last)
    joint = ":" if contiguous else ";"
    mended = _rounds(place, start, last, bounds, joint)
    before, after = place.tokens[start - 1].type, place.tokens[end + 1].type
    plain = bounds[0] == bounds[1] and joint == ";" and "FILTER" not in mended
    if not plain or before in ("COLON", "BANG") or after in ("COLON", "COLON_PLUS", "PLUS", "NAME"):
        mended = f"({mended})" if start < last else mended
    return error(
        "foreign-operator",
        place.span(place.index, end + 1),
        f"'{place.text(place.index, end + 1)}' is not an operator of CEL",
        help=[f"write {offered(mended)}"],
        fixes=[Fix(place.span(start, end + 1), mended)],
    )


def _operand_start(place: Place, last: int) -> int:
    start = place.innermost_start
    for index in place.backwards():
        if index < last and place.tokens[index].type in _ENDS_OPERAND:
            return index + 1
    return start


def _bounds(place: Place, end: int) -> tuple[int, int | None] | None:
    words = [token.text for token in place.tokens[place.index + 1 : end]]
    numbers = [int(word) if word.isdecimal() else word for word in words]
    match numbers:
        case [int(n)] if n > 0:
            return n, n
        case [int(m), ","] if m > 0:
            return m, None
        case [",", int(n)] if n > 0:
            return 1, n
        case [int(m), ",", int(n)] if 0 < m <= n:
            return m, n
    return None


def _rounds(place: Place, start: int, last: int, bounds: tuple[int, int | None], joint: str) -> str:
    least, most = bounds
    one, label = place.raw(start, last), _label(place, start, last)
    if last - start > 1 and place.tokens[start].type != "LPAR":
        one = f"({one})"
    plus = "+" if joint == ";" else ":+"
    few = (most or least) <= _MOST_WRITTEN
    is_labelled = label is not None and last - start > 1
    if label is not None and (is_labelled or not few):
        if most is None:
            return f"{one}{plus} FILTER COUNT({label}) >= {least}"
        if least == most:
            return f"{one}{plus} FILTER COUNT({label}) = {least}"
        return f"{one}{plus} FILTER COUNT({label}) BETWEEN {least} AND {most}"
    join = f" {joint} "
    if most is None:
        return join.join([*[one] * (least - 1), f"{one}{plus}"])
    most = min(most, least + _MOST_WRITTEN)
    written = [join.join([one] * n) for n in range(least, most + 1)]
    return written[0] if len(written) == 1 else " OR ".join(written)


def _label(place: Place, start: int, last: int) -> str | None:
    """The label of an operand that is a single event, `A`, `A AS x` or `(A AS x)`."""
    texts = [token.text for token in place.tokens[start:last] if token.type not in ("LPAR", "RPAR")]
    kinds = [token.type for token in place.tokens[start:last] if token.type not in CLOSERS]
    if "SEMICOLON" in kinds or "COLON" in kinds or "OR" in kinds or "FILTER" in kinds:
        return None
    if len(texts) == 1:
        return texts[0]
    return texts[2] if len(texts) == 3 and texts[1].upper() in ("AS", "IN") else None


# --- there or not ---------------------------------------------------------------------------------


def optional(place: Place) -> Diagnostic | None:
    """`A ; B? ; C` and `A ; B* ; C`."""
    sign = place.found.text
    if sign not in ("?", "*") or not place.after_operand:
        return None
    start = _operand_start(place, place.index)
    operand = place.raw(start, place.index)
    if sign == "*":
        simple = place.index - start == 1 or place.before == "RPAR"
        operand = f"{operand}+" if simple else f"({operand})+"
    first, end = _sequence(place, start)
    left = place.raw(first, start - 1) if start > first else ""
    right = place.raw(place.index + 2, end) if end > place.index + 1 else ""
    wrong = "?" in right or "*" in right or not _joined_alike(place, start, first, end)
    message = f"'{sign}' is not an operator of CEL"
    code = "misplaced-sign" if sign == "*" else "foreign-operator"
    if not left and not right:
        meant = "+ is one or more" if sign == "*" else "leave the ? out"
        hint = f"a match has at least one event; {meant}: {shortened(operand)}"
        fixes = [Fix(place.span(start, place.index + 1), operand)]
        return error(code, place.found.span, message, help=[hint], fixes=fixes)
    if wrong:
        hint = "say both with OR: (A ; B ; C) OR (A ; C)"
        return error(code, place.found.span, message, help=[hint])
    joint = place.tokens[start - 1].text if left else place.tokens[place.index + 1].text
    join = f" {joint} "
    both = join.join(part for part in (left, operand, right) if part)
    without = join.join(part for part in (left, right) if part)
    without = f"({without})" if (left and right) or joint in without else without
    mended = f"({both}) OR {without}"
    if not _is_whole(place, first, end):
        mended = f"({mended})"
    what = "none or more" if sign == "*" else "there or not"
    hints = [f"{what} is said with OR: {offered(mended)}"]
    return error(
        code,
        place.found.span,
        message,
        help=hints,
        fixes=[Fix(place.span(first, end), mended)],
    )


def _sequence(place: Place, start: int) -> tuple[int, int]:
    """The tokens of the sequence around an operand, at this level of brackets."""
    first = place.innermost_start
    for index in place.backwards():
        kind = place.tokens[index].type
        if index < start and kind in _ENDS_OPERAND - _JOINTS - {"BANG"}:
            first = index + 1
            break
    depth, end = 0, place.statement_end()
    for index in range(place.index + 1, end):
        token = place.tokens[index]
        depth += (token.type in CLOSERS) - (token.type in CLOSERS.values())
        word = keyword_of(token)
        if depth < 0 or (not depth and word in (*CLAUSES, "AND", "ALL", "OR", "FILTER", "UNLESS")):
            return first, index
    return first, end


def _joined_alike(place: Place, start: int, first: int, end: int) -> bool:
    """Whether the signs on both sides of an operand are the same, or there is one only."""
    before = place.tokens[start - 1].type if start > first else None
    after = place.tokens[place.index + 1].type if end > place.index + 1 else None
    if {before, after} - {None} > _JOINTS or not {before, after} - {None} <= _JOINTS:
        return False
    return before is None or after is None or before == after


def _is_whole(place: Place, first: int, end: int) -> bool:
    before = place.tokens[first - 1].type if first > place.start else "WHERE"
    after = place.tokens[end]
    return before in ("WHERE", "LPAR") and keyword_of(after) not in (
        *("AND", "ALL", "FILTER", "UNLESS"),
    )
