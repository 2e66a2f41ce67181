"""Syntax errors in conditions and expressions: comparisons and values as others write them. Each
function returns its message about a place, or None where its case does not apply."""

import re

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.mistakes.functions import arguments_of
from celc.parse.mistakes.place import COMPARISONS, Place
from celc.parse.mistakes.tokens import bad_character, offered
from celc.parse.tokens import keyword_of, word_of


def _wrong(code: str, span: Span, message: str, mended: str, why: str = "write") -> Diagnostic:
    """A diagnostic at a place whose help is a text for that place."""
    return error(code, span, message, f"{why} {offered(mended)}", fixes=[Fix(span, mended)])


# --- NULL, IS and lists ---------------------------------------------------------------------------

_IS = "IS asks whether a value is NULL, or for the event type of a label, and nothing else"


def null_test(place: Place) -> Diagnostic | None:
    """`x.a NOT NULL`, `x.a NOTNULL`, `x.a ISNULL`."""
    word = word_of(place.found)
    if place.found.type == "NULL" and place.before == "NOT":
        start, mended = place.index - 1, "IS NOT NULL"
    elif place.wants_comparison and word in ("NOTNULL", "ISNULL"):
        start, mended = place.index, "IS NOT NULL" if word == "NOTNULL" else "IS NULL"
    else:
        return None
    span = place.span(start, place.index + 1)
    text = place.raw(start, place.index + 1).upper()
    return _wrong("foreign-operator", span, f"'{text}' is not an operator of CEL", mended)


def is_value(place: Place) -> Diagnostic | None:
    """`x.a IS 3`, `x.a IS NOT 3`, `(x.a > 3) IS TRUE`."""
    is_truth = keyword_of(place.following) in ("TRUE", "FALSE") and place.accepts("AND")
    if place.found.type == "IS" and is_truth and not place.wants_comparison:
        span = place.span(place.index, place.index + 2)
        hints = ["leave IS TRUE out; for IS FALSE write NOT before the condition"]
        is_true = keyword_of(place.following) == "TRUE"
        fixes = [Fix(span, "")] if is_true else []
        return error("misplaced-is", span, _IS, *hints, fixes=fixes)
    # Of `x.a IS y.b`, `y` could be an event type.
    end = place.index - (place.found.type == "DOT" and place.before == "NAME")
    negated = place.tokens[end - 1].type == "NOT" and place.tokens[end - 2].type == "IS"
    if place.tokens[end - 1].type != "IS" and not negated:
        return None
    mended = "!=" if negated else "="
    span = place.span(end - 1 - negated, end)
    return _wrong("misplaced-is", span, _IS, mended)


def between(place: Place) -> Diagnostic | None:
    """`BETWEEN 1, 2`, `BETWEEN 1 TO 2` and `BETWEEN (1, 2)`."""
    found = place.found
    if found.type != "COMMA" and word_of(found) not in ("TO",):
        return None
    message = "BETWEEN takes its two limits with AND between them"
    if place.accepts("AND") and place.last("BETWEEN") is not None and not place.accepts("OR"):
        space = "" if place.source.text[found.start - 1].isspace() else " "
        fixes = [Fix(found.span, f"{space}AND")]
        return error("misplaced-sign", found.span, message, "write AND", fixes=fixes)
    if place.opener is None or place.tokens[place.opener - 1].type != "BETWEEN":
        return None
    closer = place.closer(place.opener)
    if closer is None:
        return None
    low = place.raw(place.opener + 1, place.index)
    mended = f"{low} AND {place.raw(place.index + 1, closer)}"
    span = place.span(place.opener, closer + 1)
    return _wrong("misplaced-sign", span, message, mended, "write BETWEEN")


def list_of_values(place: Place) -> Diagnostic | None:
    """`IN [1, 2]`, `IN 1, 2`, `IN ()` and `IN (SELECT …)`."""
    found, tokens = place.found, place.tokens
    if place.before == "IN" and place.accepts("LPAR", "LBRACE"):
        message = "the values of IN stand in parentheses"
        if found.type == "LSQB" and (closer := place.closer(place.index)):
            mended = f"({place.raw(place.index + 1, closer)})"
            span = place.span(place.index, closer + 1)
            return _wrong("misplaced-sign", span, message, mended, "write IN")
        values = ("INTEGER", "DOUBLE", "TEXT")
        if found.type in values:
            end = place.index + 1
            while tokens[end].type == "COMMA" and tokens[end + 1].type in values:
                end += 2
            span, mended = place.span(place.index, end), f"({place.raw(place.index, end)})"
            return _wrong("misplaced-sign", span, message, mended, "write IN")
    if place.before == "IN" or found.type == "TWO_DOTS":
        return _range(place)
    if place.before in ("LPAR", "LBRACE") and place.tokens[place.index - 2].type == "IN":
        if found.type in ("RPAR", "RBRACE"):
            hints = ["write the values into it, such as IN (1, 2)"]
            return error("empty-list", found.span, "the list of IN has no values", *hints)
        if keyword_of(found) == "SELECT":
            hints = [
                "write the values into the list, such as IN (1, 2)",
                "events of one match are compared with each other: x.item = y.item",
            ]
            closer = place.closer(place.index - 1)
            span = place.span(place.index, closer) if closer else found.span
            return error("foreign-word", span, "a query cannot stand in a query", *hints)
    return None


def subquery(place: Place) -> Diagnostic | None:
    """`x.a > (SELECT AVG(a) FROM S)` and `FROM (SELECT * FROM S)`."""
    if place.before == "FROM" and place.found.type == "LPAR":
        if keyword_of(place.following) != "SELECT":
            return None
        closer = place.closer(place.index)
        return error(
            "foreign-word",
            place.span(place.index, closer + 1) if closer else place.found.span,
            "FROM names what is read, and a query cannot stand in a query",
            "a query before it has a name, by which its rows are read: QUERY q: SELECT …, FROM q",
        )
    if keyword_of(place.found) != "SELECT" or place.before != "LPAR" or not place.wants_value:
        return None
    closer = place.closer(place.index - 1)
    return error(
        "foreign-word",
        place.span(place.index, closer) if closer else place.found.span,
        "a query cannot stand in a query",
        "events of one match are compared with each other: x.item = y.item",
        "values that come with the rows of another table are parameters: FOR EACH",
    )


def _range(place: Place) -> Diagnostic | None:
    """`IN (3..9)` and `IN RANGE (3, 9)`."""
    found, tokens = place.found, place.tokens
    in_parentheses = place.opener is not None and place.tokens[place.opener].type == "LPAR"
    if found.type == "TWO_DOTS" and in_parentheses and place.opener is not None:
        closer = place.closer(place.opener)
        if closer is not None and tokens[place.opener - 1].type == "IN":
            mended = f"{{{place.raw(place.opener + 1, closer)}}}"
            span = place.span(place.opener, closer + 1)
            message = "a range stands in braces"
            return _wrong("misplaced-sign", span, message, mended, "write IN")
    if place.before == "IN" and place.accepts("LPAR") and word_of(found) == "RANGE":
        closer = place.closer(place.index + 1)
        limits = [] if closer is None else arguments_of(place, place.index + 1, closer)
        if closer is not None and len(limits) == 2:
            mended = f"{{{limits[0]}..{limits[1]}}}"
            span = place.span(place.index, closer + 1)
            message = "a range is written with two dots"
            return _wrong("misplaced-sign", span, message, mended, "write IN")
    return None


# --- comparisons ----------------------------------------------------------------------------------

_WORDS = {"EQUALS": "=", "EQ": "=", "NE": "!=", "GT": ">", "LT": "<", "GE": ">=", "LE": "<="}
_REGEXES = ("REGEXP", "REGEX", "MATCHES", "SIMILAR", "REGEXP_LIKE", "GLOB")


def condition_compared(place: Place) -> Diagnostic | None:
    """`(x.a > 3) = TRUE`."""
    if place.found.type != "EQUAL" or place.before != "RPAR" or place.wants_comparison:
        return None
    if word_of(place.following) not in ("TRUE", "FALSE") or not place.accepts("AND"):
        return None
    word, span = place.following.text.upper(), place.span(place.index, place.index + 2)
    openers = (i for i in range(place.index - 1, -1, -1) if place.tokens[i].type == "LPAR")
    opener = next(i for i in openers if place.closer(i) == place.index - 1)
    condition = place.raw(opener, place.index)
    hint, fix = "leave it out: the condition says the same", Fix(span, "")
    if word == "FALSE":
        whole = place.span(opener, place.index + 2)
        fix = Fix(whole, f"(NOT {condition})")
        hint = f"write {offered(fix.text)}"
    message = f"a condition is not compared with {word}"
    return error("misplaced-sign", span, message, hint, fixes=[fix])


def comparison(place: Place) -> Diagnostic | None:
    """`x.a EQUALS 3`, `> =`, `===`, `:=`, `~=`, and matching with other words than LIKE."""
    found, before = place.found, place.before
    if found.type == "BAD" and found.text == "~" and before == "EQUAL":
        span = place.span(place.index - 1, place.index + 1)
        return _wrong("foreign-operator", span, "'=~' is not an operator of CEL", "RLIKE")
    if found.type in COMPARISONS and before in COMPARISONS:
        return _two_signs(place)
    if found.type in COMPARISONS and before in ("AND", "OR"):
        return _without_left(place)
    if before == "COLON" and found.type == "EQUAL":
        span = place.span(place.index - 1, place.index + 1)
        message = f"'{place.source.slice(span)}' is not an operator of CEL"
        of_value = place.accepts("LSQB")
        return _wrong("foreign-operator", span, message, "=") if of_value else None
    if not place.wants_comparison:
        return None
    word = word_of(found)
    if word == "MOD" and place.accepts("STAR"):
        return _sign(place, 1, "%")
    if word == "DIV" and place.accepts("STAR"):
        message = f"'{found.text}' is not an operator of CEL"
        hint = "FLOOR(x.a / 2) is the whole number of times"
        return error("foreign-operator", found.span, message, hint)
    if found.text == "~" and place.following.type == "EQUAL":
        return _sign(place, 2, "!=")
    if found.text == "~":
        return _sign(place, 1, "RLIKE")
    if word in _WORDS:
        return _sign(place, 1, _WORDS[word])
    if word in _REGEXES:
        more = word_of(place.following) == "TO"
        pattern = place.token(place.index + 1 + more).text
        return _sign(place, 1 + more, "LIKE" if more and "%" in pattern else "RLIKE")
    return _like(place, word)


def _sign(place: Place, length: int, mended: str) -> Diagnostic:
    span = place.span(place.index, place.index + length)
    text = place.raw(place.index, place.index + length)
    return _wrong("foreign-operator", span, f"'{text}' is not an operator of CEL", mended)


def _without_left(place: Place) -> Diagnostic | None:
    """`x.a > 1 AND < 3`."""
    sign = place.last(*COMPARISONS)
    start = place.last("FILTER", "NOT", "WHEN")
    if sign is None or not place.wants_value:
        return None
    joints = [i for i in (place.last("FILTER"), start) if i is not None and i < sign]
    left = place.raw(max(joints, default=sign - 4) + 1, sign)
    if not left or any(word in left.upper().split() for word in ("AND", "OR")):
        return None
    mended = f"{left} {place.found.text}"
    message = "a comparison has a value on either side"
    return _wrong("missing-sign", place.found.span, message, mended)


def _two_signs(place: Place) -> Diagnostic:
    span = place.span(place.index - 1, place.index + 1)
    written = place.source.slice(span)
    joined = "".join(written.split())
    known = {">=": ">=", "<=": "<=", "!=": "!=", "<>": "!=", "===": "=", "==": "=", "!==": "!="}
    mended = known.get(joined, place.previous.text)
    return _wrong("foreign-operator", span, f"'{written}' is not an operator of CEL", mended)


def _like(place: Place, word: str) -> Diagnostic | None:
    """`ILIKE 'a%'`, `CONTAINS 'a'`, `STARTS WITH 'a'`."""
    first = place.index
    last = first + 1 + (word_of(place.following) in ("WITH", "TEXT"))
    pattern = place.token(last)
    if pattern.type != "TEXT":
        return None
    inner = pattern.text[1:-1]
    escaped = re.sub(r"([%_\\])", r"\\\1", inner)
    match word:
        case "ILIKE":
            regex = re.escape(inner.replace("''", "'")).replace("'", "''")
            mended = f"RLIKE '(?is)^{regex.replace('%', '.*').replace('_', '.')}$'"
        case "CONTAINS" | "INCLUDES" | "HAS":
            mended = f"LIKE '%{escaped}%'"
        case "STARTS" | "STARTSWITH" | "STARTS_WITH" | "BEGINS":
            mended = f"LIKE '{escaped}%'"
        case "ENDS" | "ENDSWITH" | "ENDS_WITH":
            mended = f"LIKE '%{escaped}'"
        case _:
            return None
    return _wrong(
        "foreign-operator",
        place.span(first, last + 1),
        f"'{place.text(first, last)}' is not an operator of CEL",
        mended,
    )


# --- SOME and EVERY ------------------------------------------------------------------------------

_OTHERS = {"ANY": "SOME", "EXISTS": "SOME", "ALL": "EVERY", "FORALL": "EVERY", "EACH": "EVERY"}
_AFTER_LABEL = ("COLON", "COMMA")


def label_of_quantifier(place: Place) -> Diagnostic | None:
    """`SOME x.price > 3`, `SOME x (x.price > 3)` and `EXISTS x: x.price > 3`."""
    found, before = place.found, place.before
    word = place.tokens[place.index - 2] if place.index - 1 > place.start else None
    if word is not None and before == "NAME" and word.type in ("SOME", "EVERY"):
        label = place.previous
        asked = word.type
        if found.type == "DOT":
            mended, at = f"{label.text}: ", Span(label.start, label.start)
        elif found.type in ("LPAR", "NOT", "LSQB") or found.type == "NAME":
            mended, at = ":", Span(label.end, label.end)
        else:
            return None
        text = f"{asked} {label.text}: {label.text}.a > 3"
        message = f"{asked} names its labels first, then ':' and the condition"
        hint = f"write it as in {offered(text)}"
        return error("missing-label", found.span, message, hint, fixes=[Fix(at, mended)])
    # ALL is reserved, so it is found at the place itself.
    where = place.index if found.type == "ALL" else place.index - 1
    other = _OTHERS.get(place.tokens[where].text.upper())
    is_named = place.token(where + 1).type == "NAME" and place.token(where + 2).type in _AFTER_LABEL
    wanted = place.wants_value if found.type == "ALL" else place.wants_comparison
    if other is None or not is_named or not wanted:
        return None
    span, text = place.tokens[where].span, place.tokens[where].text.upper()
    message = f"'{text}' is not a word of conditions"
    return error("foreign-word", span, message, f"write {other}", fixes=[Fix(span, other)])


# --- values ---------------------------------------------------------------------------------------


def value(place: Place) -> Diagnostic | None:
    """`x->a`, `x.a ^ 2`, `x.a ** 2` and `3,5`."""
    found, before, following = place.found, place.before, place.following
    after = place.index + 1
    if found.type == "ARROW" and before == "NAME" and place.wants_comparison:
        message = "an attribute stands after a '.'"
        mended = f"{place.previous.text}.{following.text}"
        span = place.span(place.index - 1, after + 1)
        return _wrong("misplaced-sign", span, message, mended)
    power = found.text == "^" and place.accepts("STAR")
    if power or (found.type == "STAR" and before == "STAR"):
        return _power(place, place.index - (not power))
    is_decimal = found.type == "COMMA" and before == "INTEGER" == following.type
    glued = is_decimal and found.start == place.previous.end and found.end == following.start
    if glued and place.accepts("AND", "OR"):
        mended = f"{place.previous.text}.{following.text}"
        span = place.span(place.index - 1, after + 1)
        message = f"'{place.source.slice(span)}' is not a number"
        return _wrong("bad-number", span, message, mended)
    return None


def zone(place: Place) -> Diagnostic | None:
    """`x.ts AT TIME ZONE 'UTC' > …`, which is no value by itself."""
    if word_of(place.found) != "AT" or word_of(place.following) != "TIME":
        return None
    value = place.text(place.index - 3, place.index) if place.before == "ATTRIBUTE" else "x.ts"
    name = place.token(place.index + 3)
    named = name.text if name.type == "TEXT" else "'Europe/Berlin'"
    message = "AT TIME ZONE stands in a function that takes a part of the time"
    hint = f"as in HOUR({value} AT TIME ZONE {named})"
    return error("misplaced-zone", place.found.span, message, hint)


def percent(place: Place) -> Diagnostic | None:
    """`x.a > 5%`."""
    if place.before != "PERCENT" or not place.wants_value or not place.at_end:
        return None
    number = place.tokens[place.index - 2]
    if number.type not in ("INTEGER", "DOUBLE"):
        return None
    span = number.span.to(place.previous.span)
    part = f"{float(number.text) / 100:g}" if float(number.text) < 1e6 else number.text
    message = f"'{place.source.slice(span)}' is not a number: % is the rest of a division"
    hint = f"write {number.text}, or {part} for a part of 1"
    fixes = [Fix(span, number.text), *([Fix(span, part)] if "e" not in part else [])]
    return error("bad-number", span, message, hint, fixes=fixes)


def _power(place: Place, operator: int) -> Diagnostic:
    exponent = place.tokens[place.index + 1]
    base = place.index - 1 if operator == place.index else operator - 1
    start = base - 2 if place.tokens[base - 1].type == "DOT" else base
    text = place.raw(start, operator)
    span = place.span(operator, place.index + 1)
    fixes, hints = [], ["a function is for powers: POWER(x.a, 3)"]
    if exponent.type in ("INTEGER", "DOUBLE") and place.tokens[base].type in (
        "ATTRIBUTE",
        "INTEGER",
    ):
        mended = f"POWER({text}, {exponent.text})"
        if exponent.text in ("2", "3", "4"):
            mended = " * ".join([text] * int(exponent.text))
        hints = [f"write {offered(mended)}"]
        fixes = [Fix(place.span(start, place.index + 2), mended)]
    sign = place.raw(operator, place.index + 1)
    message = f"'{sign}' is not an operator of CEL"
    return error("foreign-operator", span, message, *hints, fixes=fixes)


def unknown_sign(place: Place) -> Diagnostic | None:
    """A sign without a message of its own."""
    found = place.found
    if found.type != "BAD":
        return None
    return bad_character(found.text, found.start, found.text)
