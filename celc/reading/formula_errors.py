"""Syntax errors inside formulas and conditions, with the mended text where it can be told.

Each function returns what it has to say of a place, or None where its case does not apply.
"""

from __future__ import annotations

from celc.errors import Diagnostic, error
from celc.reading.place import CLAUSES, SIGNS, Place, described
from celc.reading.tables import END
from celc.reading.tokens import keyword_of

_COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
_JOINING = frozenset({"SEMICOLON", "COLON", "AND", "ALL", "OR", "FILTER", "UNLESS"})
_POSTFIX = frozenset({"PLUS", "COLON_PLUS", "AS", "IN", "LSQB"})
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
        help=["a formula says which events make a match, such as: A ; B"],
    )


def bare_condition(place: Place) -> Diagnostic | None:
    """A value that nothing is compared with: `x.flag AND …`."""
    found = place.found.type
    ends = place.at_end or found in _JOINING | {"RPAR", "RSQB", "COLON_PLUS", "AS"}
    if not place.wants_comparison or not ends:
        return None
    keyword = place.last("FILTER", "AND", "OR", "NOT")
    start = place.innermost_start if keyword is None else keyword + 1
    value = place.text(start, place.index)
    kinds = [token.type for token in place.tokens[start : place.index]]
    in_brackets = place.opener is not None and place.tokens[place.opener].type == "LSQB"
    if in_brackets and kinds == ["INTEGER"]:
        message = f"'{value}' in brackets does not choose an event of the label"
        hints = ["functions do: FIRST(x.a), LAST(x.a), PREV(x.a)"]
    elif kinds == ["NAME"]:
        message = f"'{value}' is not a condition"
        hints = _joined_formulas(place, keyword) or [f"compare an attribute: {value}.a = 1"]
    elif kinds[-1:] == ["ATTRIBUTE"]:
        message = f"'{value}' is a value, not a condition"
        hints = [f"compare it: {value} = TRUE"]
    elif kinds in (["TRUE"], ["FALSE"], ["NULL"]):
        message = f"'{value}' is a value, not a condition"
        hints = ["compare something with it (x.a = TRUE, x.a IS NULL), or leave it out"]
    else:
        message = f"'{value}' is a value, not a condition"
        hints = [f"compare it: {value} > 0"]
    return error("bare-condition", place.span(start, place.index), message, help=hints)


def _joined_formulas(place: Place, keyword: int | None) -> list[str]:
    """Help for `A FILTER p AND B`, where B was meant as a formula."""
    start = place.formula_start()
    filters = [i for i in place.backwards() if place.tokens[i].type == "FILTER"]
    if keyword is None or not filters or place.tokens[keyword].type not in ("AND", "OR"):
        return []
    mended = f"({place.text(start, keyword)}) {place.text(keyword, place.index)}"
    return [f"after FILTER, AND and OR go on with the condition; to join formulas: {mended}"]


def operator_after_filter(place: Place) -> Diagnostic | None:
    """An operator after FILTER or UNLESS, which end their formula."""
    index = place.index
    if place.wants_value and place.before == "PLUS" and (place.at_end or _joins(place)):
        index -= 1  # the + was to repeat the formula
    elif not _joins(place) or not (place.accepts(END) or place.accepts("RPAR")):
        return None
    last = place.last("FILTER", "UNLESS", *CLAUSES)
    if last is None or place.tokens[last].type in CLAUSES or place.is_trailing:
        return None
    keyword, operator = place.tokens[last], place.tokens[index]
    start, end = place.formula_start(), place.formula_end()
    left, tail = place.text(start, index), place.text(index, end)
    space = "" if operator.type in ("PLUS", "COLON_PLUS", "LSQB") else " "
    hints = [f"put parentheses around what {keyword.type} ends: ({left}){space}{tail}"]
    if keyword.type == "UNLESS":
        right = f"{place.text(start, last + 1)} ({place.text(last + 1, end)})"
        hints.append(f"or around all that follows UNLESS: {right}")
    elif operator.type == "FILTER":
        condition = place.text(index + 1, end)
        hints.append(f"or join the conditions with AND: {left} AND {condition}")
    return error(
        "operator-after-filter",
        operator.span,
        f"{described(operator)} cannot follow {keyword.type}, which ends its formula",
        help=hints,
    )


def _joins(place: Place) -> bool:
    return place.found.type in _JOINING | _POSTFIX


def chained_comparison(place: Place) -> Diagnostic | None:
    """`1 < x.a < 3`."""
    if place.found.type not in _COMPARISONS or not place.accepts("AND", "MINUS"):
        return None
    first = place.last(*_COMPARISONS)
    if first is None or place.wants_comparison:
        return None
    keyword = place.last("FILTER", "AND", "OR", "NOT")
    start = place.innermost_start if keyword is None else keyword + 1
    middle = place.text(first + 1, place.index)
    mended = f"{place.text(start, place.index)} AND {middle} {place.found.text} …"
    return error(
        "chained-comparison",
        place.found.span,
        "comparisons do not chain",
        help=[f"write {mended}"],
    )


def brackets(place: Place) -> Diagnostic | None:
    """What cannot stand in the brackets of `x[p]` in FILTER, or of `φ[x -> y]`."""
    if place.opener is None or place.tokens[place.opener].type != "LSQB":
        return None
    if place.found.type == END:
        return None
    if place.accepts("AND", "OR") or place.wants_comparison or place.wants_value:
        hints = ["attributes of x are compared there: x[price > 100 AND name = 'A']"]
        if place.found.type == "COMMA":
            hints.append("conditions are joined with AND; a list of attributes belongs to SELECT")
        return error(
            "brackets-in-filter",
            place.found.span,
            f"{described(place.found)} cannot stand here: brackets in FILTER hold a condition",
            help=hints,
        )
    is_label = place.tokens[place.opener - 1].type not in ("PROJECT", "INTEGER", "DOUBLE", "BY")
    wants_rename = is_label and (
        place.accepted == {"ARROW"} or (place.before in ("LSQB", "ARROW") and place.accepts("NAME"))
    )
    if not (wants_rename or (place.last("ARROW") and place.accepted == {"RSQB"})):
        return None
    return error(
        "brackets-in-formula",
        place.found.span,
        f"{described(place.found)} cannot stand here: brackets after a formula rename one label",
        help=[
            "a renaming is written (…)[old -> new], a second one follows: (…)[a -> b][c -> d]",
            "a condition follows FILTER: (A AS x) FILTER x.price > 100",
        ],
    )


def misplaced_sign(place: Place) -> Diagnostic | None:
    """Signs that mean something in other languages."""
    found, before = place.found.type, place.before
    message, hints = f"{described(place.found)} cannot stand here", ""
    if found == "BANG" and place.wants_value:
        hints = "in a condition write NOT"
    elif found == "BANG" and before == "UNLESS":
        hints = "UNLESS says 'not' already: leave the ! out"
    elif found == "NOT" and place.wants_formula:
        hints = "for no B in between write A ; !B ; C, for none inside a match (A ; C) UNLESS B"
    elif found == "PLUS" and before == "COLON" and place.wants_formula:
        hints = "one or more, contiguous, is written :+ without a space"
    elif found == "ARROW" and place.after_operand:
        hints = "-> only renames labels: write A ; B for 'then', A : B for 'directly then'"
    elif found == "COMMA" and place.after_operand:
        hints = "events are joined with ; (then), : (directly then), AND, ALL or OR"
    elif found == "COMMA" and place.accepts("AND", "OR"):
        hints = "conditions are joined with AND"
    elif found == "STAR" and place.after_operand:
        hints = "+ is one or more; for none or more say both: A ; C OR A ; B+ ; C"
    elif found == "LSQB" and before == "IN":
        hints = "a list stands in parentheses: IN (1, 2)"
    elif found == "SEMICOLON" and place.accepts(END):
        hints = "statements need nothing at their end: leave the ; out"
    elif place.at_end and before == "SEMICOLON":
        message = "an event is missing after ';'"
        hints = "statements need nothing at their end: leave the ; out"
    return error("misplaced-sign", place.found.span, message, help=[hints]) if hints else None


def unknown_selector(place: Place) -> Diagnostic | None:
    """`SEQ(A, B)`: a function where only selectors are called."""
    if place.found.type != "LPAR" or place.before != "NAME" or not place.after_operand:
        return None
    name = place.previous.text
    hints = [_ALL_SELECTORS]
    if name.upper() == "PROJECT":
        hints = ["the labels to keep stand in brackets: PROJECT[x, y](…)"]
    elif name.upper() in ("SEQ", "SEQUENCE", "THEN"):
        hints = ["a sequence is written A ; B"]
    elif name.upper() in ("NOT", "NEG"):
        hints = ["for no B in between write A ; !B ; C, for none inside a match (A ; C) UNLESS B"]
    elif name.upper() in ("ANY", "ALL", "OR", "AND"):
        hints = ["write A OR B, A AND B or A ALL B"]
    return error(
        "unknown-selector",
        place.previous.span,
        f"'{place.text(place.index - 1, place.index)}' is not a selector",
        help=[*hints, "if it is an event type, an operator is missing after it"],
    )


def missing_operator(place: Place) -> Diagnostic | None:
    """`A B`: operands side by side."""
    begins = {"NAME", "LPAR", "BANG", "STRICT", "NXT", "NEXT", "LAST", "MAX", "PROJECT"}
    if not place.after_operand or place.found.type not in begins:
        return None
    left = place.text(_operand_start(place), place.index)
    right = place.text(place.index, place.index + 1)
    return error(
        "missing-operator",
        place.found.span,
        f"there is no operator between '{left}' and '{right}'",
        help=[
            "join them with ; (then), : (directly then), AND, ALL or OR",
            *_label_help(place, left),
        ],
    )


def missing_join(place: Place) -> Diagnostic | None:
    """Conditions side by side."""
    found, following = place.found.type, place.following.type
    begins = found in ("NOT", "LPAR") or following in ("DOT", "LSQB", "LPAR")
    if not place.accepts("AND", "OR") or place.after_operand or not begins:
        return None
    return error(
        "missing-operator",
        place.found.span,
        f"there is no operator before {described(place.found)}",
        help=["conditions are joined with AND or OR"],
    )


def _label_help(place: Place, left: str) -> list[str]:
    """Help for `A x`, where x was meant as a label, and for `NXT A`."""
    if place.before == "NAME" and keyword_of(place.previous) in _SELECTORS:
        return [f"a selector takes its formula in parentheses: {place.previous.text}(…)"]
    if place.found.type == "NAME" and place.before in ("NAME", "RPAR"):
        return [f"a label is given with AS: {left} AS {place.found.text}"]
    return []


def _operand_start(place: Place) -> int:
    for index in place.backwards():
        if place.tokens[index].type in _JOINING | {"WHERE"}:
            return index + 1
    return place.innermost_start


def missing_filter(place: Place) -> Diagnostic | None:
    """`A.x > 3` in place of a formula, and FILTER without one."""
    found = place.found
    if found.type == "FILTER" and place.accepts("WHERE"):
        return error(
            "missing-where",
            found.span,
            "there is no formula before FILTER",
            help=["FILTER follows a formula: WHERE A AS x FILTER x.price > 100"],
        )
    in_conditions = {"DOT", "MINUS", "SLASH", "PERCENT", "BETWEEN", "LIKE", "RLIKE", "IS", "NOT"}
    if not place.after_operand or found.type not in in_conditions.union(_COMPARISONS):
        return None
    return error(
        "missing-filter",
        found.span,
        f"{described(found)} belongs to a condition, and conditions stand after FILTER",
        help=["a formula comes first, then its condition: A AS x FILTER x.price > 100"],
    )


def odd_number(place: Place) -> Diagnostic | None:
    """`.5`, `1.` and `x.1`."""
    found, before = place.found, place.before
    if found.type == "DOT" and before == "INTEGER":
        number = place.previous.text
        span = place.previous.span.to(found.span)
        hints = f"write {number}.0"
        return error("bad-number", span, f"'{number}.' is not a number", help=[hints])
    if found.type == "DOT" and place.following.type == "INTEGER" and place.wants_value:
        number = place.following.text
        span = found.span.to(place.following.span)
        return error("bad-number", span, f"'.{number}' is not a number", help=[f"write 0.{number}"])
    return None


def missing_sign(place: Place) -> Diagnostic | None:
    """A sign that was left out: with it, the found token could stand."""
    if place.after_operand:  # a `:` could stand between any two
        return None
    for terminal in ("COMMA", "COLON", "DOT"):
        is_call = terminal == "DOT" and place.following.type == "DOT"  # MAX x.a
        if place.accepts(terminal) and place.fits_after(terminal) and not is_call:
            sign = SIGNS[terminal]
            found = described(place.found)
            return error(
                "missing-sign",
                place.found.span,
                f"'{sign}' is missing before {found}",
                help=[f"write {_with_sign(place, sign)}"],
            )
    return None


def _with_sign(place: Place, sign: str) -> str:
    before = place.text(place.index - 1, place.index)
    glue = "" if sign == "." else " "
    return f"{before}{sign}{glue}{place.text(place.index, place.index + 1)}"


def misplaced_call(place: Place) -> Diagnostic | None:
    """`COUNT(*)`, `COUNT()` and `F(a, b)`."""
    if place.opener is None or place.tokens[place.opener].type != "LPAR" or place.opener == 0:
        return None
    function = place.tokens[place.opener - 1]
    if function.type not in ("NAME", "ATTRIBUTE") or keyword_of(function) in ("IN",):
        return None
    wants_argument = place.before == "LPAR" and place.wants_value
    surplus = place.found.type == "COMMA" and place.accepts("RPAR", "PLUS")
    if not (surplus or (wants_argument and place.found.type in ("STAR", "RPAR"))):
        return None
    name = place.text(place.opener - 1, place.opener)
    return error(
        "call-arguments",
        place.found.span,
        f"{name} takes one argument",
        help=["functions take an attribute, such as MAX(x.price); COUNT takes a label: COUNT(x)"],
    )
