"""Syntax errors inside formulas and conditions, with the mended text where it can be told.

Each function returns what it has to say of a place, or None where its case does not apply.
"""

from __future__ import annotations

from celc.errors import Diagnostic, Fix, error
from celc.reading.around import (
    declared,
    formula_range,
    in_parentheses,
    labelled,
    labels,
    usual_value,
)
from celc.reading.missing_errors import example_formula
from celc.reading.place import CLAUSES, SIGNS, Place, described
from celc.reading.tables import END
from celc.reading.token_errors import offered, shortened
from celc.reading.tokens import keyword_of, name_text
from celc.source import Span

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
        help=[f"a formula says which events make a match, such as: {example_formula(place)}"],
        fixes=_formula_there(place),
    )


def _formula_there(place: Place) -> list[Fix]:
    if not declared(place).types:
        return []
    at = place.previous.end
    space = " " if place.before == "WHERE" else ""
    return [Fix(Span(at, at), space + example_formula(place))]


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
    span = place.span(start, place.index)
    if in_brackets and kinds == ["INTEGER"]:
        message = f"'{value}' in brackets does not choose an event of the label"
        hints, mended = ["functions do: FIRST(x.a), LAST(x.a), PREV(x.a)"], []
    elif kinds == ["NAME"]:
        message = f"'{value}' is not a condition"
        attribute = _some_attribute(place, name_text(place.previous))
        compared = f"{value}.{attribute} {usual_value(place, attribute)}"
        hints, mended = _joined_formulas(place, keyword), [compared]
        hints = hints or [f"compare an attribute: {compared}"]
    elif kinds[-1:] == ["ATTRIBUTE"]:
        message = f"'{value}' is a value, not a condition"
        known = declared(place).of_type(name_text(place.previous))
        usual = usual_value(place, name_text(place.previous)) if known else "= TRUE"
        mended = [f"{value} {usual}"]
        hints = [f"compare it: {mended[0]}"]
    elif kinds in (["TRUE"], ["FALSE"], ["NULL"]):
        message = f"'{value}' is a value, not a condition"
        hints = ["compare something with it (x.a = TRUE, x.a IS NULL), or leave it out"]
        mended = []
    else:
        message = f"'{value}' is a value, not a condition"
        hints, mended = [f"compare it: {value} > 0"], [f"{value} > 0"]
    fixes = [Fix(span, text) for text in mended if "…" not in text]
    return error("bare-condition", span, message, help=hints, fixes=fixes)


def _some_attribute(place: Place, label: str) -> str:
    """An attribute of the events of a label, `a` where none is known."""
    event_type = labels(place).get(label) or label
    return next(iter(declared(place).types.get(event_type, {})), "a")


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
    raw_left, raw_tail = place.raw(start, index), place.raw(index, end)
    fixes = [Fix(place.span(start, end), f"({raw_left}){space}{raw_tail}")]
    hints = [f"put parentheses around what {keyword.type} ends: ({left}){space}{tail}"]
    if keyword.type == "UNLESS":
        right = f"{place.text(start, last + 1)} ({place.text(last + 1, end)})"
        hints.append(f"or around all that follows UNLESS: {right}")
        right = f"{place.raw(start, last + 1)} ({place.raw(last + 1, end)})"
        fixes.append(Fix(place.span(start, end), right))
    elif operator.type == "FILTER":
        condition = place.text(index + 1, end)
        hints.append(f"or join the conditions with AND: {left} AND {condition}")
        fixes.append(Fix(operator.span, "AND"))
    return error(
        "operator-after-filter",
        operator.span,
        f"{described(operator)} cannot follow {keyword.type}, which ends its formula",
        help=hints,
        fixes=fixes,
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
    raw = f"AND {place.raw(first + 1, place.index)} {place.found.text}"
    return error(
        "chained-comparison",
        place.found.span,
        "comparisons do not chain",
        help=[f"write {mended}"],
        fixes=[Fix(place.found.span, raw)],
    )


def brackets(place: Place) -> Diagnostic | None:
    """What cannot stand in the brackets of `x[p]` in FILTER, or of `φ[x -> y]`."""
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
            help=hints,
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
        help=[
            *mended,
            "a renaming is written (…)[old -> new], a second one follows: (…)[a -> b][c -> d]",
            *([] if mended else ["a condition follows FILTER: (A AS x) FILTER x.price > 100"]),
        ],
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
        token.type in _COMPARISONS for token in place.tokens[opener + 1 : closer]
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
    elif found == "SEMICOLON" and place.accepts(END):
        hints, mended = "statements need nothing at their end: leave the ; out", ""
    elif found == "SEMICOLON" and place.wants_formula:
        message = "an event is missing before ';'"
        hints, mended = "leave the ; out, or write an event type before it", ""
    elif place.at_end and before == "SEMICOLON":
        message = "an event is missing after ';'"
        hints, mended = "statements need nothing at their end: leave the ; out", ""
        span = place.previous.span
    fixes = [] if mended is None else [Fix(span, mended)]
    if not hints:
        return None
    return error("misplaced-sign", place.found.span, message, help=[hints], fixes=fixes)


def _other_parentheses(place: Place) -> Diagnostic:
    closer = place.closer(place.index)
    assert closer is not None
    mended = f"({place.raw(place.index + 1, closer)})"
    return error(
        "misplaced-sign",
        place.found.span,
        f"{described(place.found)} cannot stand here: a formula is put in parentheses",
        help=[f"write {offered(mended)}"],
        fixes=[Fix(place.span(place.index, closer + 1), mended)],
    )


def _negated(place: Place) -> Diagnostic:
    """`NOT B` where an event should stand: in a sequence it is `!B`, elsewhere UNLESS."""
    at = place.index - 1
    after = place.index + (place.found.text.upper() == "EXISTS")
    message = f"'{place.text(at, after)}' cannot stand here without parentheses"
    keyword = place.tokens[at].span
    other = "NOT(B) is one event of another type than B"
    general = "for no B in between write A ; !B ; C, for none inside a match (A ; C) UNLESS B"
    left, operand = place.tokens[at - 1].type, place.tokens[min(after, len(place.tokens) - 1)]
    end = (place.closer(after) or after) + 1 if operand.type == "LPAR" else after + 1
    span, written = place.span(at, end), place.raw(after, end)
    right = place.tokens[min(end, len(place.tokens) - 1)].type
    if left == "SEMICOLON" == right:
        mended, hint = f"!{written}", f"for none in between write !{shortened(written)}"
    elif left in ("AND", "SEMICOLON") and operand.type in ("NAME", "LPAR"):
        start = place.formula_start()
        before = in_parentheses(place, start, at - 1)
        mended = f"{before} UNLESS {written}"
        span = place.span(start, end)
        hint = f"for none inside the match write {offered(mended)}"
        if place.last("UNLESS", "FILTER") or keyword_of(place.tokens[end]) == "FILTER":
            return error("misplaced-sign", keyword, message, help=[general])
    else:
        return error("misplaced-sign", keyword, message, help=[general, other])
    hints, fixes = [hint, general, other], [Fix(span, mended)]
    return error("misplaced-sign", keyword, message, help=hints, fixes=fixes)


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
        return error("unknown-selector", place.previous.span, message, help=hints, fixes=fixes)
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
    join = "join them with ; (then), : (directly then), AND, ALL or OR"
    label = _label_help(place, left)
    fixes = [Fix(place.found.span, f"; {place.found.text}")]
    hints = [join, *label]
    is_type = name_text(place.found) in declared(place).types
    if place.found.type == "NAME" and label and declared(place).types and not is_type:
        hints = [*label, join]
        is_selector = keyword_of(place.previous) in _SELECTORS
        fixes = [] if is_selector else [Fix(place.found.span, f"AS {place.found.text}")]
    return error(
        "missing-operator",
        place.found.span,
        f"there is no operator between '{left}' and '{right}'",
        help=hints,
        fixes=fixes,
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
            help=_filter_help(place),
        )
    in_conditions = {"DOT", "MINUS", "SLASH", "PERCENT", "BETWEEN", "LIKE", "RLIKE", "IS", "NOT"}
    if not place.after_operand or found.type not in in_conditions.union(_COMPARISONS):
        return None
    if place.previous.text in declared(place).streams and found.type == "DOT":
        return _stream_with_dot(place)
    if found.type == "EQUAL" and name_text(place.following) in declared(place).types:
        label, event = place.previous.text, place.following.text
        return error(
            "missing-filter",
            found.span,
            "a label stands after its event, with AS",
            help=[f"write {event} AS {label}"],
            fixes=[Fix(place.span(place.index - 1, place.index + 2), f"{event} AS {label}")],
        )
    hints, fixes = _with_filter(place)
    return error(
        "missing-filter",
        found.span,
        f"{described(found)} belongs to a condition, and conditions stand after FILTER",
        help=hints or ["a formula comes first, then its condition: A AS x FILTER x.price > 100"],
        fixes=fixes,
    )


def _filter_help(place: Place) -> list[str]:
    bounds = formula_range(place)
    where = None if bounds is None else bounds[0] - 1
    if bounds is None or where is None or keyword_of(place.tokens[where]) != "WHERE":
        return ["FILTER follows a formula: WHERE A AS x FILTER x.price > 100"]
    formula, condition = in_parentheses(place, *bounds), labelled(place, place.index + 1, where)
    if condition is None:
        return ["FILTER follows a formula: WHERE A AS x FILTER x.price > 100"]
    return [f"FILTER follows a formula: WHERE {shortened(formula)} FILTER {shortened(condition)}"]


def compared_type(place: Place) -> Diagnostic | None:
    """`WHERE price > 3`, which was read as the type `3` of the stream `price`."""
    if place.before != "GREATER" or place.accepted != {"NAME"} or place.is_reserved():
        return None
    hints, fixes = _with_filter(place)
    return error(
        "missing-filter",
        place.previous.span,
        "'>' belongs to a condition, and conditions stand after FILTER",
        help=hints or ["a formula comes first, then its condition: A AS x FILTER x.price > 100"],
        fixes=fixes,
    )


def _stream_with_dot(place: Place) -> Diagnostic:
    """`Shop.View`."""
    stream, bounds = place.previous.text, formula_range(place)
    start, end = bounds or (place.index - 1, place.index + 2)
    dots = {
        index: ">"
        for index in range(start, end)
        if place.tokens[index].type == "DOT" and place.tokens[index - 1].text == stream
    }
    span = place.span(place.index - 1, place.index + 2)
    mended = place.changed(start, end, dots)
    return error(
        "missing-filter",
        span,
        f"the event types of a stream do not follow a '.': '{place.source.slice(span)}'",
        help=[f"write {offered(mended)}; the stream can be left out unless types share a name"],
        fixes=[Fix(place.span(start, end), mended)],
    )


def _with_filter(place: Place) -> tuple[list[str], list[Fix]]:
    """Help for `WHERE v.price > 3` and `WHERE A AS v AND v.price > 3`."""
    bounds, types = formula_range(place), declared(place).types
    if bounds is None or place.opener is not None or place.last("FILTER", "UNLESS") is not None:
        return [], []
    start, end = bounds
    begin = place.last("AND", "OR", "ALL", "SEMICOLON", "COLON", "WHERE")
    joined = begin is not None and place.tokens[begin].type in ("AND", "OR", "ALL")
    if joined and begin is not None and begin > start:
        condition = labelled(place, begin + 1, end)
        mended = f"{in_parentheses(place, start, begin)} FILTER {condition}"
    else:
        first, attribute = place.tokens[start], place.tokens[start + 2]
        is_labelled = place.tokens[start + 1].type == "DOT"
        name = name_text(attribute if is_labelled else first)
        event = next((one for one, attributes in types.items() if name in attributes), None)
        if event is None or (begin is not None and begin >= start):
            return [], []
        label = first.text if is_labelled and first.text != event else event
        condition = labelled(place, start, end, {label: event})
        named = event if label == event else f"{event} AS {label}"
        mended = f"{named} FILTER {condition}"
    if condition is None:
        return [], []
    hint = f"a formula comes first, then its condition: WHERE {offered(mended)}"
    return [hint], [Fix(place.span(start, end), mended)]


def odd_number(place: Place) -> Diagnostic | None:
    """`.5`, `1.` and `x.1`."""
    found, before = place.found, place.before
    if found.type == "DOT" and before == "INTEGER":
        number = place.previous.text
        span = place.previous.span.to(found.span)
        hints, fixes = f"write {number}.0", [Fix(span, f"{number}.0")]
        message = f"'{number}.' is not a number"
        return error("bad-number", span, message, help=[hints], fixes=fixes)
    if found.type == "DOT" and place.following.type == "INTEGER" and place.wants_value:
        number = place.following.text
        span = found.span.to(place.following.span)
        message, fixes = f"'.{number}' is not a number", [Fix(span, f"0.{number}")]
        return error("bad-number", span, message, help=[f"write 0.{number}"], fixes=fixes)
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
                fixes=[Fix(Span(place.previous.end, place.found.start), _gap(place, sign))],
            )
    return None


def _gap(place: Place, sign: str) -> str:
    """A sign with the space that lies between two tokens anyhow."""
    gap = place.source.text[place.previous.end : place.found.start]
    return sign if sign == "." else sign + (gap if gap.isspace() else " ")


def _with_sign(place: Place, sign: str) -> str:
    before = place.text(place.index - 1, place.index)
    glue = "" if sign == "." else " "
    return f"{before}{sign}{glue}{place.text(place.index, place.index + 1)}"
