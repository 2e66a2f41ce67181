"""Syntax errors inside formulas and conditions, with the corrected text where it can be found. Each
function returns its message about a place, or None where its case does not apply."""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.messages.wording import written
from celc.diagnostics.source import Span
from celc.parse.mistakes.filters import JOINING
from celc.parse.mistakes.missing import example_formula
from celc.parse.mistakes.place import COMPARISONS, SIGNS, Place, described
from celc.parse.mistakes.surroundings import (
    declared,
    labelled,
    without,
)
from celc.parse.mistakes.tokens import offered, shortened
from celc.parse.tables import END, grammar
from celc.parse.tokens import keyword_of, name_text

_SELECTORS = frozenset({"STRICT", "NXT", "NEXT", "LAST", "MAX"})
_ALL_SELECTORS = "selectors are STRICT(…), NXT(…), LAST(…), MAX(…) and PROJECT[x, y](…)"


def missing_formula(place: Place) -> Diagnostic | None:
    """Nothing where a whole formula should stand."""
    if not place.wants_formula:
        return None
    after_where = place.before == "WHERE" and place.at_end
    in_parentheses = place.before == "LPAR" and place.found.type == "RPAR"
    if not (after_where or in_parentheses):
        return None
    return error(
        "missing-formula",
        place.found.span,
        "there is no formula" + (" after WHERE" if after_where else " between the parentheses"),
        f"a formula says which events make a match, such as: {example_formula(place)}",
        fixes=_formula_there(place),
    )


def text_for_type(place: Place) -> Diagnostic | None:
    """`WHERE 'View' ; 'Cart'`."""
    if not place.wants_formula or place.found.type != "TEXT":
        return None
    name = place.found.text[1:-1].replace("''", "'")
    fixes = [Fix(place.found.span, written(name))] if name in declared(place).types else []
    message = "an event type is a name, not a text"
    hint = f"write {written(name)}"
    return error("text-for-type", place.found.span, message, hint, fixes=fixes)


def _formula_there(place: Place) -> list[Fix]:
    if not declared(place).types:
        return []
    at = place.previous.end
    space = " " if place.before == "WHERE" else ""
    return [Fix(Span(at, at), space + example_formula(place))]


def chained_comparison(place: Place) -> Diagnostic | None:
    """`1 < x.a < 3`."""
    if place.found.type not in COMPARISONS or not place.accepts("AND", "MINUS"):
        return None
    first = place.last(*COMPARISONS)
    if first is None or place.wants_comparison:
        return None
    keyword = place.last("FILTER", "AND", "OR", "NOT")
    start = place.innermost_start if keyword is None else keyword + 1
    middle = place.text(first + 1, place.index)
    mended = f"{place.text(start, place.index)} AND {middle} {place.found.text} …"
    raw = f"AND {place.raw(first + 1, place.index)} {place.found.text}"
    message = "comparisons do not chain"
    hint = f"write {mended}"
    fixes = [Fix(place.found.span, raw)]
    return error("chained-comparison", place.found.span, message, hint, fixes=fixes)


def brackets(place: Place) -> Diagnostic | None:
    """Mistakes in the brackets of `x[p]` in FILTER, or of `φ[x -> y]`."""
    if place.opener is None or place.tokens[place.opener].type != "LSQB":
        return None
    if place.found.type == END:
        return None
    if place.accepts("AND", "OR") or place.wants_comparison or place.wants_value:
        hints = ["attributes of x are compared there: x[price > 100 AND name = 'A']"]
        fixes = []
        if place.found.type == "COMMA":
            hints.append("conditions are joined with AND; a list of attributes belongs to SELECT")
            fixes = [Fix(place.found.span, " AND")]
        return error(
            "brackets-in-filter",
            place.found.span,
            f"{described(place.found)} cannot stand here: brackets in FILTER hold a condition",
            *hints,
            fixes=fixes if place.accepts("AND") else [],
        )
    is_label = place.tokens[place.opener - 1].type not in ("PROJECT", "INTEGER", "DOUBLE", "BY")
    wants_rename = is_label and (
        place.accepted == {"ARROW"} or (place.before in ("LSQB", "ARROW") and place.accepts("NAME"))
    )
    if not (wants_rename or (place.last("ARROW") and place.accepted == {"RSQB"})):
        return None
    mended, fixes = _filtered_event(place, place.opener)
    return error(
        "brackets-in-formula",
        place.found.span,
        f"{described(place.found)} cannot stand here: brackets after a formula rename one label",
        *mended,
        "a renaming is written (…)[old -> new], a second one follows: (…)[a -> b][c -> d]",
        *([] if mended else ["a condition follows FILTER: (A AS x) FILTER x.price > 100"]),
        fixes=fixes,
    )


def _filtered_event(place: Place, opener: int) -> tuple[list[str], list[Fix]]:
    """Help for `A[price > 3]` and `A(price > 3)`."""
    closer, event = place.closer(opener), place.tokens[opener - 1]
    if closer is None or event.type != "NAME":
        return [], []
    known = {name_text(event): name_text(event)}
    condition = labelled(place, opener + 1, closer, known)
    if condition is None or not any(
        token.type in COMPARISONS for token in place.tokens[opener + 1 : closer]
    ):
        return [], []
    mended = f"({event.text} FILTER {condition})"
    fix = Fix(place.span(opener - 1, closer + 1), mended)
    return [f"a condition follows FILTER: {offered(mended)}"], [fix]


def misplaced_sign(place: Place) -> Diagnostic | None:
    """Signs that mean something in other languages."""
    found, before = place.found.type, place.before
    message, hints, mended = f"{described(place.found)} cannot stand here", "", None
    span = place.found.span
    if before == "NOT" and place.accepted == {"LPAR"}:
        return _negated(place)
    if found == "BANG" and place.wants_value:
        hints, mended = "in a condition write NOT", "NOT "
    elif found == "BANG" and before == "UNLESS":
        hints, mended = "UNLESS says 'not' already: leave the ! out", ""
    elif found == "PLUS" and before == "COLON" and place.wants_formula:
        hints, mended = "one or more, contiguous, is written :+ without a space", ":+"
        span = place.previous.span.to(span)
    elif found == "PLUS" and place.wants_formula and place.following.type == "NAME":
        hints = f"+ follows its event: {place.following.text}+"
        span, mended = span.to(place.following.span), f"{place.following.text}+"
    elif found == "ARROW" and place.after_operand:
        hints = "-> only renames labels: write A ; B for 'then', A : B for 'directly then'"
        mended = ";"
    elif found == "COMMA" and place.after_operand:
        hints = "events are joined with ; (then), : (directly then), AND, ALL or OR"
        mended = " ;"
    elif found == "COMMA" and place.accepts("AND", "OR"):
        hints, mended = "conditions are joined with AND", " AND"
    elif found in ("LBRACE", "LSQB") and place.wants_formula and place.closer(place.index):
        return _other_parentheses(place)
    elif found == "SEMICOLON" or before == "SEMICOLON":
        return _lone_semicolon(place)
    fixes = [] if mended is None else [Fix(span, mended)]
    if not hints:
        return None
    return error("misplaced-sign", place.found.span, message, hints, fixes=fixes)


def _lone_semicolon(place: Place) -> Diagnostic | None:
    """A `;` at the end of a statement, at the start of a formula, or twice."""
    message, hint = f"{described(place.found)} cannot stand here", "leave the ; out"
    span = place.found.span
    at_end = "statements need nothing at their end: leave the ; out"
    if place.found.type == "SEMICOLON" and place.accepts(END):
        hint = at_end
    elif place.found.type == "SEMICOLON" and place.wants_formula:
        message = "an event is missing before ';'"
        hint = "leave the ; out, or write an event type before it"
    elif place.at_end and place.before == "SEMICOLON":
        message, hint, span = "an event is missing after ';'", at_end, place.previous.span
    else:
        return None
    fixes = [Fix(span, "")]
    return error("misplaced-sign", place.found.span, message, hint, fixes=fixes)


def _other_parentheses(place: Place) -> Diagnostic:
    closer = place.closer(place.index)
    assert closer is not None
    mended = f"({place.raw(place.index + 1, closer)})"
    message = f"{described(place.found)} cannot stand here: a formula is put in parentheses"
    hint = f"write {offered(mended)}"
    fixes = [Fix(place.span(place.index, closer + 1), mended)]
    return error("misplaced-sign", place.found.span, message, hint, fixes=fixes)


def _negated(place: Place) -> Diagnostic:
    """`NOT B` where an event should stand: in a sequence it is `!B`, elsewhere UNLESS."""
    at = place.index - 1
    after = place.index + (place.found.text.upper() == "EXISTS")
    message = f"'{place.text(at, after)}' cannot stand here without parentheses"
    keyword = place.tokens[at].span
    other = "NOT(B) is one event of another type than B"
    general = "for no B in between write A ; !B ; C, for none inside a match (A ; C) UNLESS B"
    left, operand = place.tokens[at - 1].type, place.token(after)
    end = (place.closer(after) or after) + 1 if operand.type == "LPAR" else after + 1
    span, written = place.span(at, end), place.raw(after, end)
    right = place.token(end).type
    if left == "SEMICOLON" == right:
        mended, hint = f"!{written}", f"for none in between write !{shortened(written)}"
    elif left in ("AND", "SEMICOLON") and operand.type in ("NAME", "LPAR"):
        start = place.formula_start()
        mended, says = without(place, start, at - 1, written)
        span = place.span(start, end)
        hint = f"{says} {offered(mended)}"
        if place.last("UNLESS", "FILTER") or keyword_of(place.tokens[end]) == "FILTER":
            return error("misplaced-sign", keyword, message, general)
    else:
        return error("misplaced-sign", keyword, message, general, other)
    hints, fixes = [hint, general, other], [Fix(span, mended)]
    return error("misplaced-sign", keyword, message, *hints, fixes=fixes)


def unknown_selector(place: Place) -> Diagnostic | None:
    """`SEQ(A, B)`: a function where only selectors are called."""
    if place.found.type != "LPAR" or place.before != "NAME" or not place.after_operand:
        return None
    name = place.previous.text
    hints = [_ALL_SELECTORS]
    if name.upper() == "PROJECT":
        hints = ["the labels to keep stand in brackets: PROJECT[x, y](…)"]
    elif _filtered_event(place, place.index)[0]:
        hints, fixes = _filtered_event(place, place.index)
        message = f"the conditions of '{name}' do not stand in parentheses after it"
        return error("unknown-selector", place.previous.span, message, *hints, fixes=fixes)
    elif name.upper() in ("NOT", "NEG"):
        hints = ["for no B in between write A ; !B ; C, for none inside a match (A ; C) UNLESS B"]
    elif name.upper() in ("ANY", "ALL", "OR", "AND"):
        hints = ["write A OR B, A AND B or A ALL B"]
    return error(
        "unknown-selector",
        place.previous.span,
        f"'{place.text(place.index - 1, place.index)}' is not a selector",
        *hints,
        "if it is an event type, an operator is missing after it",
    )


def missing_operator(place: Place) -> Diagnostic | None:
    """`A B`: operands side by side."""
    begins = {"NAME", "LPAR", "BANG", "STRICT", "NXT", "NEXT", "LAST", "MAX", "PROJECT"}
    if not place.after_operand or place.found.type not in begins:
        return None
    left = place.text(_operand_start(place), place.index)
    right = place.text(place.index, place.index + 1)
    join = "join them with ; (then), : (directly then), AND, ALL or OR"
    label = _label_help(place, left)
    fixes = [Fix(place.found.span, f"; {place.found.text}")]
    hints = [join, *label]
    is_type = name_text(place.found) in declared(place).types
    if place.found.type == "NAME" and label and declared(place).types and not is_type:
        hints = [*label, join]
        is_selector = keyword_of(place.previous) in _SELECTORS
        fixes = [] if is_selector else [Fix(place.found.span, f"AS {place.found.text}")]
    message = f"there is no operator between '{left}' and '{right}'"
    return error("missing-operator", place.found.span, message, *hints, fixes=fixes)


def missing_join(place: Place) -> Diagnostic | None:
    """Conditions side by side."""
    found, following = place.found.type, place.following.type
    begins = found in ("NOT", "LPAR") or following in ("DOT", "LSQB", "LPAR")
    if not place.accepts("AND", "OR") or place.after_operand or not begins:
        return None
    message = f"there is no operator before {described(place.found)}"
    hint = "conditions are joined with AND or OR"
    return error("missing-operator", place.found.span, message, hint)


def _label_help(place: Place, left: str) -> list[str]:
    """Help for `A x`, where x was meant as a label, and for `NXT A`."""
    if place.before == "NAME" and keyword_of(place.previous) in _SELECTORS:
        return [f"a selector takes its formula in parentheses: {place.previous.text}(…)"]
    if place.found.type == "NAME" and place.before in ("NAME", "RPAR"):
        return [f"a label is given with AS: {left} AS {place.found.text}"]
    return []


def _operand_start(place: Place) -> int:
    for index in place.backwards():
        if place.tokens[index].type in JOINING | {"WHERE"}:
            return index + 1
    return place.innermost_start


def odd_number(place: Place) -> Diagnostic | None:
    """`.5`, `1.` and `x.1`."""
    found, before = place.found, place.before
    if found.type == "DOT" and before == "INTEGER":
        number = place.previous.text
        span = place.previous.span.to(found.span)
        hints, fixes = f"write {number}.0", [Fix(span, f"{number}.0")]
        message = f"'{number}.' is not a number"
        return error("bad-number", span, message, hints, fixes=fixes)
    if found.type == "DOT" and place.following.type == "INTEGER" and place.wants_value:
        number = place.following.text
        span = found.span.to(place.following.span)
        message, fixes = f"'.{number}' is not a number", [Fix(span, f"0.{number}")]
        return error("bad-number", span, message, f"write 0.{number}", fixes=fixes)
    return None


def missing_sign(place: Place) -> Diagnostic | None:
    """A sign that was left out: with it, the found token could stand."""
    if place.after_operand or place.accepts("DOUBLE_COLON"):
        # A `:` could stand between any two, and a `.` behind any value.
        return None
    if place.before == "ATTRIBUTE" and keyword_of(place.previous) in grammar().reserved:
        return None  # the clause was meant
    in_from = place.accepts("WHERE") and place.accepts("COMMA")
    if in_from and place.found.text not in declared(place).streams:
        return None
    for terminal in ("COMMA", "COLON", "DOT"):
        is_call = terminal == "DOT" and place.following.type == "DOT"  # MAX x.a
        if place.accepts(terminal) and place.fits_after(terminal) and not is_call:
            sign = SIGNS[terminal]
            found = described(place.found)
            message = f"'{sign}' is missing before {found}"
            hint = f"write {_with_sign(place, sign)}"
            fixes = [Fix(Span(place.previous.end, place.found.start), _gap(place, sign))]
            return error("missing-sign", place.found.span, message, hint, fixes=fixes)
    return None


def _gap(place: Place, sign: str) -> str:
    """A sign with the space that lies between two tokens anyhow."""
    gap = place.source.text[place.previous.end : place.found.start]
    return sign if sign == "." else sign + (gap if gap.isspace() else " ")


def _with_sign(place: Place, sign: str) -> str:
    before = place.text(place.index - 1, place.index)
    glue = "" if sign == "." else " "
    return f"{before}{sign}{glue}{place.text(place.index, place.index + 1)}"
