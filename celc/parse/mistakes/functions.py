"""Syntax errors in calls of functions, as others write them. Each function returns its message
about a place, or None where its case does not apply."""

import re

from celc_runtime.values.functions import FUNCTIONS as OF_EVENTS

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.messages.functions import (
    advice_on,
    is_function,
    is_of_event,
    number_of_arguments,
)
from celc.diagnostics.source import Span
from celc.parse.mistakes.place import Place
from celc.parse.mistakes.surroundings import labels
from celc.parse.mistakes.tokens import offered, shortened
from celc.parse.tokens import Token, keyword_of, word_of


def attribute_of_call(place: Place) -> Diagnostic | None:
    """`FIRST v.price`."""
    found, tokens = place.found, place.tokens
    if found.type == "NAME" and place.before == "NAME" and is_function(place.previous.text):
        if place.following.type != "DOT" or place.after_operand:
            return None
        mended = f"{place.previous.text}({found.text}.{tokens[place.index + 2].text})"
        span = place.span(place.index - 1, place.index + 3)
        message = f"{place.previous.text} takes its argument in parentheses"
        help = [f"write {offered(mended)}"]
        return error("missing-sign", span, message, *help, fixes=[Fix(span, mended)])
    return None


def indexed_label(place: Place) -> Diagnostic | None:
    """`v[0].price`, `v[-1].price`, `v[last].price`."""
    opener = place.opener
    if opener is None or not opener or place.tokens[opener].type != "LSQB":
        return None
    if place.tokens[opener - 1].type not in ("NAME", "ATTRIBUTE"):
        return None
    closer = place.closer(opener)
    if closer is None or place.tokens[closer + 1].type != "DOT" or closer + 2 >= len(place.tokens):
        return None
    index = "".join(place.raw(opener + 1, closer).split()).lower()
    if not re.fullmatch(r"-?\d{1,9}|first|last", index):
        return None
    label, attribute = place.tokens[opener - 1].text, place.tokens[closer + 2].text
    choices = [_nth(f"{label}.{attribute}", index)]
    span = place.span(opener - 1, closer + 3)
    shown = place.text(opener, closer + 1)
    message = f"'{shown}' does not choose an event of the label"
    hint = f"functions do: write {choices[0]}"
    if choices[0].startswith("NTH"):
        hint += ", which counts from 1, or from -1 at the end"
    fixes = [Fix(span, choice) for choice in choices]
    return error("bare-condition", place.span(opener + 1, closer), message, hint, fixes=fixes)


def _nth(value: str, index: str) -> str:
    """The value at a place that is counted from 0, or from the end."""
    if index in ("0", "first"):
        return f"FIRST({value})"
    if index in ("-1", "last"):
        return f"LAST({value})"
    place = int(index)
    return f"NTH({value}, {place + (place > 0)})"


def misplaced_call(place: Place) -> Diagnostic | None:
    """`COUNT(*)`, `COUNT()`, `NOW()`, `F(a, b)`, `CAST(a AS INT)` and `COUNT(DISTINCT a)`."""
    if place.opener is None or place.tokens[place.opener].type != "LPAR" or place.opener == 0:
        return None
    function = place.tokens[place.opener - 1]
    if function.type not in ("NAME", "PREV", "ATTRIBUTE") or keyword_of(function) in ("IN",):
        return None
    closer = place.closer(place.opener)
    if closer is None or place.tokens[closer].type != "RPAR" or place.after_operand:
        return None
    in_value = place.accepts("PLUS") or place.wants_value
    span = place.span(place.opener - 1, closer + 1)
    arguments = arguments_of(place, place.opener, closer)
    if is_of_event(function.text):
        empty = place.before == "LPAR" and place.found.type == "RPAR"
        return number_of_arguments(OF_EVENTS[function.text.upper()], span) if empty else None
    if not is_function(function.text) and in_value:
        hints, mended = advice_on(function.text, arguments)
        fixes = [Fix(span, mended)] if mended else []
        message = f"there is no function '{shortened(function.text)}'"
        return error("unknown-function", function.span, message, *hints, fixes=fixes)
    wants_argument = place.before == "LPAR" and place.wants_value
    surplus = place.found.type == "COMMA" and place.accepts("RPAR", "PLUS")
    distinct = place.before == "NAME" and word_of(place.previous) == "DISTINCT"
    if not (surplus or distinct or (wants_argument and place.found.type in ("STAR", "RPAR"))):
        return None
    if distinct and place.tokens[place.index - 2].type == "PRIOR":
        return _distinct_after_prior(place, closer)
    return _wrong_arguments(place, function, arguments, span)


def _distinct_after_prior(place: Place, closer: int) -> Diagnostic:
    """`COUNT(PRIOR DISTINCT x.a)`."""
    words = place.span(place.index - 2, place.index)
    rest = place.text(place.index, closer)
    message = "DISTINCT stands before PRIOR"
    hint = f"write DISTINCT PRIOR {rest}"
    return error("call-arguments", words, message, hint, fixes=[Fix(words, "DISTINCT PRIOR")])


def arguments_of(place: Place, opener: int, closer: int) -> list[str]:
    """The texts between two parentheses, cut at their commas."""
    start, found, depth = opener + 1, list[str](), 0
    for index in range(opener + 1, closer + 1):
        kind = place.tokens[index].type
        depth += (kind in ("LPAR", "LSQB")) - (kind in ("RPAR", "RSQB"))
        if index == closer or (kind == "COMMA" and not depth):
            found.append(place.raw(start, index))
            start = index + 1
    return [argument for argument in found if argument]


def _wrong_arguments(place: Place, function: Token, arguments: list[str], span: Span) -> Diagnostic:
    name = function.text
    bound = list(labels(place))
    hints = ["functions take an attribute, such as MAX(x.price); COUNT takes a label: COUNT(x)"]
    choices = []
    if name.upper() == "COUNT":
        used = [a.split(".")[0].split()[-1] for a in arguments if a != "*"]
        choices = [f"{name}({label})" for label in [one for one in used if one in bound] or bound]
        choices = choices[:1]
        hints = ["COUNT takes a label, and counts its events"]
    elif arguments:
        choices = [f"{name}({arguments[0]})"]
    # `SUM(DISTINCT DISTINCT x.a)` would be offered again.
    choices = [one for one in choices if one != place.source.text[span.start : span.end]]
    if choices:
        hints.append(f"write {choices[0]}")
    message = f"{shortened(name)} takes one argument"
    fixes = [Fix(span, choice) for choice in choices]
    return error("call-arguments", place.found.span, message, *hints, fixes=fixes)
