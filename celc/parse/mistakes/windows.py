"""Syntax errors in WITHIN, LIMIT and FOR. Each function returns its message about a place, or None
where its case does not apply."""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.durations import spelled, unit_of
from celc.parse.mistakes.place import CLAUSES, Place, described
from celc.parse.mistakes.surroundings import declared
from celc.parse.mistakes.tokens import offered
from celc.parse.tables import END
from celc.parse.tokens import keyword_of


def size(place: Place) -> Diagnostic | None:
    """No number, or no unit, where WITHIN, FOR and LIMIT need one."""
    found = place.found
    if place.accepts("EVENTS"):
        return _missing_unit(place)
    if place.before == "LIMIT":
        return _limit(place)
    if place.before not in ("WITHIN", "FOR") or place.accepts("LSQB"):
        return None
    mended: str | None
    word = place.before
    span, message = found.span, f"{word} needs a number, not {described(found)}"
    if found.type in ("MINUS", "PLUS") and place.following.type in ("INTEGER", "DOUBLE"):
        span = found.span.to(place.following.span)
        message = f"{word} needs a number without a sign, not '{place.source.slice(span)}'"
        end = _clause_end(place)
        mended = place.raw(place.index + 1, end)
    else:
        end = _clause_end(place)
        mended = _rewritten(place, end)
        if place.at_end:
            message = f"{word} needs a number after it"
    if found.type == "NAME" and place.following.type == "DOT":
        return _of_parameters(place)
    if mended is None:
        example = f"{word} 10 EVENTS or {word} 10 MINUTES{_measure(place)}"
        return error("bad-size", span, message, f"write it as in {example}")
    hint = f"write {word} {offered(mended)}"
    return error("bad-size", span, message, hint, fixes=[Fix(place.span(place.index, end), mended)])


def _of_parameters(place: Place) -> Diagnostic:
    """`WITHIN rule.minutes MINUTES`."""
    named = place.source.slice(place.span(place.index, place.index + 3))
    message = f"{place.before} needs a number in the text, and cannot depend on {named}"
    hint = f"compare times in FILTER: y.ts - x.ts <= {place.found.text}.span"
    return error("parameter-in-window", place.span(place.index, place.index + 3), message, hint)


def _measure(place: Place) -> str:
    """` [ts]`, if there is an attribute that all events have and that holds a time."""
    name = declared(place).time_attribute()
    return f" [{name}]" if name else ""


def _clause_end(place: Place) -> int:
    end = place.statement_end()
    following = range(place.index, end)
    if place.before == "FOR":  # the length of an absence ends with its `;`
        ends = (i for i in following if place.tokens[i].type in ("SEMICOLON", "COLON", "RPAR"))
        end = next(ends, end)
        following = range(place.index, end)
    return next((i for i in following if keyword_of(place.tokens[i]) in CLAUSES), end)


def _rewritten(place: Place, end: int) -> str | None:
    """The text from here to `end` as a window of the language; None if unclear."""
    tokens = list(place.tokens[place.index : end])
    measure = ""
    opened = next((i for i, token in enumerate(tokens) if token.type == "LSQB"), None)
    if opened is not None and opened + 2 < len(tokens) and tokens[opened + 2].type == "RSQB":
        measure = f" [{tokens[opened + 1].text}]"
        del tokens[opened : opened + 3]
    words = [
        token.text.strip("'")
        for token in tokens
        if token.type != "EQUAL" and token.text.upper() not in ("INTERVAL", "OF")
    ]
    duration = spelled(" ".join(words))
    if duration is None and len(words) == 1 and unit_of(words[0].upper()):
        duration = spelled(f"1 {words[0]}")  # WITHIN MINUTE
    if duration is None or duration.endswith("EVENTS"):
        return duration
    return duration + (measure or _measure(place))


def _missing_unit(place: Place) -> Diagnostic:
    number = place.previous
    measure = _measure(place)
    clock, after = clock_time(place)
    if clock is not None:
        choices, span = [clock + measure], Span(number.start, place.tokens[after - 1].end)
        if measure and place.tokens[after].type == "LSQB":
            choices = [clock]
    else:
        span = number.span
        choices = [f"{number.text} EVENTS"] if number.type == "INTEGER" else []
        choices.append(f"{number.text} MINUTES{measure}")
        if place.found.type == "LSQB":
            choices = [f"{number.text} MINUTES"]
    return error(
        "missing-unit",
        number.span,
        f"no unit says what {_word(place)} {number.text} counts",
        f"write {' or '.join(_window(place, choice) for choice in choices)}",
        "a distance in the values of an attribute is written "
        f"{_window(place, '10 [attribute]')}",
        fixes=[Fix(span, choice) for choice in choices],
    )


def _window(place: Place, size: str) -> str:
    """A size as a window of the kind that stands at the place."""
    return f"WITHIN[{size}]" if _in_brackets(place) else f"{_word(place)} {size}"


def _word(place: Place) -> str:
    """The keyword before a size: WITHIN or FOR."""
    return "FOR" if place.tokens[max(0, place.index - 2)].type == "FOR" else "WITHIN"


def _in_brackets(place: Place) -> bool:
    """Whether the place is inside the brackets of a window in a formula."""
    opener = place.opener
    return opener is not None and opener > 0 and place.tokens[opener - 1].type == "WITHIN"


def clock_time(place: Place) -> tuple[str | None, int]:
    """A duration that is written `00:05:00`, and the index after it."""
    start = after = place.index - 1
    while place.tokens[after].type in ("INTEGER", "COLON"):
        after += 1
    return (spelled(place.raw(start, after)), after) if after > start + 1 else (None, after)


def _limit(place: Place) -> Diagnostic:
    found, following = place.found, place.following
    if found.type in ("MINUS", "PLUS") and following.type in ("INTEGER", "DOUBLE"):
        span = found.span.to(following.span)
        message = f"LIMIT needs a number without a sign, not '{place.source.slice(span)}'"
        fixes = [Fix(span, following.text)]
        return error("bad-size", span, message, f"write LIMIT {following.text}", fixes=fixes)
    if found.text.upper() in ("ALL", "NONE"):
        return error(
            "bad-size",
            found.span,
            f"LIMIT needs a number, not {described(found)}",
            "leave LIMIT out for all matches",
            fixes=[Fix(place.span(place.index - 1, place.index + 1), "")],
        )
    message = f"LIMIT needs a number, not {described(found)}"
    if found.type == END:
        message = "LIMIT needs a number after it"
    return error("bad-size", found.span, message, "write it as in LIMIT 10")


# --- windows of a part of the formula -------------------------------------------------------------


def local_window(place: Place) -> Diagnostic | None:
    """`WITHIN 5 MINUTES (A)`, `WITHIN[](A)`, `WITHIN[5 MINUTES ts](A)`, `WITHIN[3 EVENTS] A`."""
    if place.before == "WITHIN" and place.accepts("LSQB"):
        return _without_brackets(place)
    if place.before == "LSQB" and _in_brackets(place) and place.accepts("INTEGER"):
        return _size_in_brackets(place)
    if place.before == "ATTRIBUTE" and _in_brackets(place) and place.found.type == "NAME":
        message = "the attribute that measures a window stands in brackets"
        hint = f"write [{place.found.text}]"
        fixes = [Fix(place.found.span, f"[{place.found.text}]")]
        return error("missing-brackets", place.found.span, message, hint, fixes=fixes)
    if place.before == "RSQB" and place.accepted == {"LPAR"}:
        return _without_parentheses(place)
    return None


def _without_brackets(place: Place) -> Diagnostic:
    tokens, end = place.tokens, place.statement_end()
    opener = next((i for i in range(place.index, end) if tokens[i].type == "LPAR"), place.index)
    mended = _rewritten(place, opener) if opener > place.index else None
    example = f"WITHIN[10 EVENTS](…) or WITHIN[10 MINUTES{_measure(place)}](…)"
    return error(
        "missing-brackets",
        place.previous.span,
        "WITHIN of a part of a formula needs its window in brackets, and the part in parentheses",
        f"write WITHIN[{mended}](…)" if mended else f"write it as in {example}",
        fixes=[Fix(place.span(place.index, opener), f"[{mended}]")] if mended else [],
    )


def _size_in_brackets(place: Place) -> Diagnostic:
    """No number after `WITHIN[`."""
    tokens, end = place.tokens, place.statement_end()
    ends = (i for i in range(place.index, end - 1) if tokens[i].type == "RSQB")
    close = next((i for i in ends if tokens[i + 1].type != "RSQB"), place.index)
    signed = place.found.type in ("MINUS", "PLUS") and place.following.type == "INTEGER"
    mended = place.raw(place.index + 1, close) if signed else _rewritten(place, close)
    message = f"WITHIN[…] needs a number, not {described(place.found)}"
    hint = f"write WITHIN[{mended}]" if mended else "write it as in WITHIN[10 EVENTS]"
    fixes = [Fix(place.span(place.index, close), mended)] if mended else []
    return error("bad-size", place.found.span, message, hint, fixes=fixes)


def _without_parentheses(place: Place) -> Diagnostic | None:
    """`WITHIN[3 EVENTS] A ; B`."""
    opened, depth = place.index - 1, 0
    while opened > place.statement_start:
        depth += {"RSQB": 1, "LSQB": -1}.get(place.tokens[opened].type, 0)
        if not depth:
            break
        opened -= 1
    if place.tokens[opened - 1].type != "WITHIN":
        return None
    window = place.text(opened - 1, place.index)
    following = place.found
    is_name = following.type == "NAME"
    part = following.text if is_name else "…"
    message = "the part of the formula that a window holds for stands in parentheses"
    hint = f"write {window}({part})"
    fixes = [Fix(following.span, f"({part})")] if is_name else []
    return error("missing-parentheses", place.previous.span, message, hint, fixes=fixes)


# --- after the size -------------------------------------------------------------------------------


def rest_of_window(place: Place) -> Diagnostic | None:
    """`WITHIN 5 MINUTES ts`, `… (ts)`, `… ON ts`, and parts joined with a comma or AND."""
    within = place.last("WITHIN")
    if within is None or place.before not in ("ATTRIBUTE", "EVENTS") or not place.accepts("LIMIT"):
        return None
    found, tokens = place.found, place.tokens
    if found.type in ("COMMA", "AND") and place.following.type in ("INTEGER", "DOUBLE"):
        message = f"{described(found)} cannot stand in a duration"
        hint = f"leave it out: {place.text(within, place.index)} {place.following.text} …"
        return error("misplaced-sign", found.span, message, hint, fixes=[Fix(found.span, "")])
    if place.before != "ATTRIBUTE" or found.type not in ("NAME", "LPAR"):
        return None
    end, name = place.index + 1, found
    if found.type == "LPAR" or found.text.upper() in ("ON", "OF", "BY"):
        name, end = place.following, place.index + 2
        end += found.type == "LPAR" and place.token(end).type == "RPAR"
    is_attribute = name.type == "NAME" and declared(place).of_type(name.text)
    if not is_attribute and (found.type != "LPAR" or tokens[end - 1].type != "RPAR"):
        return None
    message = "the attribute that measures a window stands in brackets"
    hint = f"write {place.text(within, place.index)} [{name.text}]"
    fixes = [Fix(place.span(place.index, end), f"[{name.text}]")]
    return error("missing-brackets", place.span(place.index, end), message, hint, fixes=fixes)


def limit_of_two(place: Place) -> Diagnostic | None:
    """`LIMIT 5, 10`."""
    if place.found.type != "COMMA" or place.tokens[max(0, place.index - 2)].type != "LIMIT":
        return None
    number = place.following.text
    message = "LIMIT takes one number: the most matches for each end position"
    hint = f"write LIMIT {number}"
    fixes = [Fix(place.span(place.index - 1, place.index + 2), number)]
    return error("misplaced-sign", place.found.span, message, hint, fixes=fixes)
