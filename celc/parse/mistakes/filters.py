"""Syntax errors around FILTER: conditions without it, operators after it, lone values.

Each function returns its message about a place, or None where its case does not apply.
"""

from dataclasses import replace
from itertools import pairwise

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.messages.functions import is_function
from celc.diagnostics.messages.wording import written
from celc.diagnostics.source import Span
from celc.parse.mistakes.place import CLAUSES, COMPARISONS, Place, described
from celc.parse.mistakes.surroundings import (
    NUMBERS,
    declared,
    formula_range,
    in_parentheses,
    labelled,
    labels,
    usual_value,
)
from celc.parse.mistakes.tokens import offered, shortened
from celc.parse.tables import END
from celc.parse.tokens import keyword_of, name_text, word_of

JOINING = frozenset({"SEMICOLON", "COLON", "AND", "ALL", "OR", "FILTER", "UNLESS"})
_POSTFIX = frozenset({"PLUS", "COLON_PLUS", "AS", "IN", "LSQB"})


def bare_condition(place: Place) -> Diagnostic | None:
    """A value without a comparison: `x.flag AND …`."""
    found = place.found.type
    ends = place.at_end or found in JOINING | {"RPAR", "RSQB", "COLON_PLUS", "AS"}
    if not place.wants_comparison or not ends:
        return None
    keyword = place.last("FILTER", "HAVING", "AND", "OR", "NOT")
    in_having = place.last("HAVING") is not None
    start = place.innermost_start if keyword is None else keyword + 1
    value = place.text(start, place.index)
    kinds = [token.type for token in place.tokens[start : place.index]]
    in_brackets = place.opener is not None and place.tokens[place.opener].type == "LSQB"
    span = place.span(start, place.index)
    mended: list[str] = []
    if in_brackets and kinds == ["INTEGER"]:
        message = f"'{value}' in brackets does not choose an event of the label"
        hints = ["functions do: FIRST(x.a), LAST(x.a), PREV(x.a)"]
    elif found in ("AS", "FILTER"):
        return _formula_after_filter(place, value, span)
    elif kinds == ["NAME"] and not in_having:
        message = f"'{value}' is not a condition"
        attribute = _some_attribute(place, name_text(place.previous))
        compared = f"{value}.{attribute} {usual_value(place, attribute)}"
        hints, mended = _joined_formulas(place, keyword), [compared]
        hints = hints or [f"compare an attribute: {compared}"]
    elif kinds == ["NAME"] or _is_compared(place, start):
        message = f"'{value}' is a value, not a condition"
        mended = [f"{value} {_usual_comparison(place, start)}"]
        hints = [f"compare it: {mended[0]}"]
    else:
        message = f"'{value}' is a value, not a condition"
        hints = ["compare something with it (x.a = TRUE, x.a IS NULL), or leave it out"]
    fixes = [Fix(span, text) for text in mended if "…" not in text]
    return error("bare-condition", span, message, *hints, fixes=fixes)


def _formula_after_filter(place: Place, value: str, span: Span) -> Diagnostic:
    """`A FILTER p OR (B AS x) FILTER q`, as the first paper writes it."""
    message = f"'{value}' begins a formula, and after FILTER stands a condition"
    apart = _apart(place)
    if apart is None:
        hint = "put a formula that has a condition in parentheses: (A FILTER p) OR B"
        return error("operator-after-filter", span, message, hint)
    hint = f"put each formula that has a condition in parentheses: {offered(apart.text)}"
    return error("operator-after-filter", span, message, hint, fixes=[apart])


def _apart(place: Place) -> Fix | None:
    """`(A FILTER p) OR (B AS x FILTER q)` for `A FILTER p OR (B AS x) FILTER q`; None where it is
    not sure what is joined."""
    first = place.index - 1
    while first > 0 and place.tokens[first - 1].type == "LPAR":
        first -= 1
    joint = place.tokens[first - 1]
    if first < 2 or joint.type not in ("OR", "AND"):
        return None
    before = replace(place, index=first - 1)
    kinds = [place.tokens[i].type for i in before.backwards()]
    start, end = before.formula_start(), before.formula_end()
    rest = [keyword_of(token) for token in place.tokens[first:end]]
    if kinds.count("FILTER") != 1 or {*kinds, *rest} & {"OR", "UNLESS"}:
        return None
    sides = in_parentheses(place, start, first - 1), in_parentheses(place, first, end)
    text = f" {joint.type} ".join(sides)
    return Fix(place.span(start, end), text)


_COUNTS = ("COUNT", "VARIANCE", "STDDEV", "AVG")


def _is_compared(place: Place, start: int) -> bool:
    """Whether a value can be compared: it is not the same for all events, and calls nothing that
    there is not."""
    tokens = place.tokens[start : place.index]
    calls = [
        name_text(one)
        for one, after in pairwise(tokens)
        if one.type == "NAME" and after.type == "LPAR"
    ]
    declaring = ("AGGREGATE", "FUNCTION")
    own = {name_text(after) for one, after in pairwise(place.tokens) if one.type in declaring}
    types = {
        declared(place).of_type(name_text(one)) for one in tokens if one.type == "ATTRIBUTE"
    } - {None}
    for name in calls:
        of_numbers = name.upper() in ("SUM", "AVG", "MEDIAN", "VARIANCE", "STDDEV", "ABS")
        is_known = name in own or (is_function(name) and name.upper() != "COLLECT")
        if not is_known or (of_numbers and not types <= {*NUMBERS, "INTERVAL"}):
            return False
        if name.upper() in ("MIN", "MAX") and "STRING" in types:
            return False
    return any(one.type in ("ATTRIBUTE", "NAME") for one in tokens)


def _usual_comparison(place: Place, start: int) -> str:
    """A comparison that a value allows, as far as its type is seen: `> 0` of a number."""
    tokens = place.tokens[start : place.index]
    names = [name_text(one) for one in tokens if one.type == "ATTRIBUTE"]
    types = {declared(place).of_type(name) for name in names}
    if word_of(tokens[0]) in _COUNTS and place.closer(start + 1) == place.index - 1:
        return "> 0"
    if len(names) == 1 and types == {None} and len(tokens) < 4:
        return "= TRUE"
    if len(names) == 1 and not any(one.type in ("UNIT", "TEXT") for one in tokens):
        return usual_value(place, names[0])
    return "> 0" if types <= {None, *NUMBERS} else "IS NOT NULL"


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
    message = f"{described(operator)} cannot follow {keyword.type}, which ends its formula"
    return error("operator-after-filter", operator.span, message, *hints, fixes=fixes)


def _joins(place: Place) -> bool:
    return place.found.type in JOINING | _POSTFIX


def missing_filter(place: Place) -> Diagnostic | None:
    """`A.x > 3` in place of a formula, and FILTER without one."""
    found = place.found
    if found.type == "FILTER" and place.accepts("WHERE"):
        message = "there is no formula before FILTER"
        return error("missing-where", found.span, message, *_filter_help(place))
    in_conditions = {"DOT", "MINUS", "SLASH", "PERCENT", "BETWEEN", "LIKE", "RLIKE", "IS", "NOT"}
    if not place.after_operand or found.type not in in_conditions.union(COMPARISONS):
        return None
    if place.previous.text in declared(place).streams and found.type == "DOT":
        return _stream_with_dot(place)
    if found.type == "EQUAL" and name_text(place.following) in declared(place).types:
        label, event = place.previous.text, place.following.text
        return error(
            "missing-filter",
            found.span,
            "a label stands after its event, with AS",
            f"write {event} AS {label}",
            fixes=[Fix(place.span(place.index - 1, place.index + 2), f"{event} AS {label}")],
        )
    if found.type == "EQUAL" and word_of(place.previous) == "TYPE":
        return _compared_type(place)
    hints, fixes = _with_filter(place)
    return error(
        "missing-filter",
        found.span,
        f"{described(found)} belongs to a condition, and conditions stand after FILTER",
        *(hints or ["a formula comes first, then its condition: A AS x FILTER x.price > 100"]),
        fixes=fixes,
    )


def _compared_type(place: Place) -> Diagnostic:
    """`WHERE type = 'View'`."""
    text, name = place.following, place.following.text[1:-1]
    is_type = text.type == "TEXT" and name in declared(place).types
    mended = written(name) if is_type else "A"
    message = "an event of some type is written as the name of the type"
    hint = f"write {mended}" if is_type else "for type = 'A' write A"
    span = place.span(place.index - 1, place.index + 2)
    fixes = [Fix(span, mended)] if is_type else []
    return error("missing-filter", place.found.span, message, hint, fixes=fixes)


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
        *(hints or ["a formula comes first, then its condition: A AS x FILTER x.price > 100"]),
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
    message = f"the event types of a stream do not follow a '.': '{place.source.slice(span)}'"
    hint = f"write {offered(mended)}; the stream can be left out unless types share a name"
    return error("missing-filter", span, message, hint, fixes=[Fix(place.span(start, end), mended)])


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
        first, *after = place.tokens[start : start + 3]  # the file can end before
        is_labelled = len(after) == 2 and after[0].type == "DOT"
        name = name_text(after[1] if is_labelled else first)
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
