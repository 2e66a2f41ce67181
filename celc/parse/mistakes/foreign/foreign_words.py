"""Clauses and words of other languages, and the text that says the same here.

Each function returns its message about a place, or None where its case does not apply.
"""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.mistakes.clauses import ORDER
from celc.parse.mistakes.place import CLAUSES, FULL_NAMES, Place, described
from celc.parse.mistakes.surroundings import declared, formula_range, in_parentheses, labelled
from celc.parse.mistakes.tokens import offered
from celc.parse.tables import END
from celc.parse.tokens import keyword_of, word_of

_DISTINCT = ("DISTINCT", "UNIQUE")


# --- SELECT ---------------------------------------------------------------------------------------


def select_modifier(place: Place) -> Diagnostic | None:
    """`SELECT DISTINCT …` and `SELECT TOP 5 …`."""
    select = place.statement_start
    if place.tokens[select].type == "QUERY":
        select += 3
    if place.tokens[min(select, place.index)].type != "SELECT" or place.index < select + 2:
        return None
    modifier = place.tokens[select + 1]
    word = word_of(modifier)
    first = select + 3 if word == "TOP" else select + 2
    if word not in (*_DISTINCT, "TOP") or place.index > first + 1:
        return None
    if place.token(first).type in ("COMMA", "FROM", "WHERE", "LSQB", "DOT"):
        return None
    span = place.span(select + 1, first)
    if word in _DISTINCT:
        message = f"there is no SELECT {word}: a match never comes twice"
        hint = f"leave {word} out"
        fixes = [Fix(Span(modifier.start, place.tokens[first].start), "")]
        return error("foreign-word", span, message, hint, fixes=fixes)
    count, end = place.tokens[select + 2].text, place.statement_end()
    mended = f"{place.raw(first, end)} LIMIT {count}"
    message = "there is no SELECT TOP"
    hint = f"LIMIT is the most matches for each end position: SELECT {offered(mended)}"
    fixes = [Fix(place.span(select + 1, end), mended)]
    return error("foreign-word", span, message, hint, fixes=fixes)


# --- FROM -----------------------------------------------------------------------------------------


# --- clauses of other languages -------------------------------------------------------------------


def foreign_clause(place: Place) -> Diagnostic | None:
    """ORDER BY, GROUP BY, HAVING and others, wherever a clause could stand."""
    word = word_of(place.found)
    if not word or not place.accepted & {"WHERE", "LIMIT", "SELECT", END}:
        return None
    by = keyword_of(place.following) == "BY"
    match word:
        case "ORDER" if by:
            return _order_by(place)
        case "GROUP" if by:
            return _group_by(place)
        case "HAVING":
            return condition_after_clause(place)
        case "OFFSET" | "FETCH":
            advice = "leave it out: LIMIT is the most matches for each end position"
            return _left_out(place, advice, place.index + 2)
        case "AFTER" if word_of(place.following) == "MATCH":
            return _after_match(place)
        case _:
            return None


def _unknown_clause(
    place: Place, hints: list[str], start: int, end: int, text: str | None
) -> Diagnostic:
    fixes = [] if text is None else [Fix(place.span(start, end), text)]
    message = f"there is no clause {described(place.found)}"
    return error("unknown-clause", place.found.span, message, *hints, fixes=fixes)


def _left_out(place: Place, advice: str, end: int) -> Diagnostic:
    return _unknown_clause(place, [advice], place.index, min(end, place.statement_end()), "")


def _clause_end(place: Place, start: int) -> int:
    """The index after a clause of another language that begins with its keyword and BY."""
    end = place.statement_end()
    return next((i for i in range(start, end) if keyword_of(place.tokens[i]) in CLAUSES), end)


def _order_by(place: Place) -> Diagnostic:
    end = _clause_end(place, place.index + 2)
    names = [
        token.text
        for token in place.tokens[place.index + 2 : end]
        if token.type == "NAME" and token.text.upper() not in ("ASC", "DESC")
    ]
    listed = ",".join(names) or "ts"
    call = f'"{listed}"' if len(names) < 2 else "[" + ", ".join(f'"{n}"' for n in names) + "]"
    advice = [
        f"leave it out, and name the order of the stream at the call: --order-by {listed}, or "
        f"order_by={call} in Python",
        "with WITHIN 5 MINUTES [ts] nothing is to be named: the stream is ordered by ts",
    ]
    return _unknown_clause(place, advice, place.index, end, "")


def _group_by(place: Place) -> Diagnostic:
    end = _clause_end(place, place.index + 2)
    mended = f"PARTITION BY {place.raw(place.index + 2, end)}"
    fits = place.accepts("PARTITION")
    return _unknown_clause(
        place,
        [
            f"PARTITION BY splits the stream by attributes: {offered(mended)}",
            *([] if fits else [ORDER]),
        ],
        place.index,
        end,
        mended if fits else None,
    )


def _after_match(place: Place) -> Diagnostic:
    end = _clause_end(place, place.index + 2)
    mended = "CONSUME BY ANY"
    return _unknown_clause(
        place,
        [
            f"to begin anew after each match write {mended}",
            "for one match of each start, none of which overlap, SELECT LONGEST DISJOINT",
        ],
        place.index,
        end,
        mended if place.accepts("CONSUME") else "",
    )


# --- conditions after a clause --------------------------------------------------------------------


def condition_after_clause(place: Place) -> Diagnostic | None:
    """`… WITHIN 5 MINUTES [ts] FILTER p`, a second WHERE, and HAVING."""
    keyword = "HAVING" if word_of(place.found) == "HAVING" else place.found.type
    bounds = formula_range(place)
    if keyword not in ("FILTER", "WHERE", "HAVING") or bounds is None:
        return None
    if place.opener is not None or bounds[1] > place.index or place.accepts("COMMA", "WHERE"):
        return None
    if keyword == "FILTER" and place.accepts("FILTER"):
        return None
    start, end = bounds
    if not any(keyword_of(t) == "WHERE" for t in place.tokens[place.statement_start : start]):
        return None
    last = _condition_end(place)
    condition = labelled(place, place.index + 1, last)
    if start >= end or condition is None or place.index + 1 >= last:
        return None
    clauses = place.raw(end, place.index)
    mended = f"{in_parentheses(place, start, end)} FILTER {condition} {clauses}".rstrip()
    code, message = _place_of(keyword)
    hint = f"a condition follows the formula: WHERE {offered(mended)}"
    fixes = [Fix(place.span(start, last), mended)]
    return error(code, place.found.span, message, hint, fixes=fixes)


def _place_of(keyword: str) -> tuple[str, str]:
    match keyword:
        case "FILTER":
            return "clause-order", "FILTER belongs to the formula and must stand before the clauses"
        case "WHERE":
            return "clause-twice", "WHERE is given twice"
        case _:
            return "unknown-clause", "there is no clause 'HAVING'"


def _condition_end(place: Place) -> int:
    end = place.statement_end()
    following = range(place.index + 1, end)
    return next((i for i in following if keyword_of(place.tokens[i]) in CLAUSES), end)


def clause_in_parentheses(place: Place) -> Diagnostic | None:
    """`(A ; B WITHIN 10 MINUTES) ; C`: a clause before the formula is over."""
    clause = place.found.type
    if place.opener is None or clause not in CLAUSES[3:] or not place.accepts("RPAR"):
        return None
    if place.tokens[place.opener].type != "LPAR":
        return None
    closer, end = place.closer(place.opener), place.statement_end()
    bounds = formula_range(place)
    outermost = bounds is not None and place.opener >= bounds[0]
    if closer is None or not outermost or bounds is None:
        return None
    full = FULL_NAMES.get(clause, clause)
    moved = place.raw(place.index, closer)
    formula_end = next(
        (i for i in range(closer, end) if keyword_of(place.tokens[i]) in CLAUSES), end
    )
    rest = place.raw(closer, formula_end)
    mended = f"{place.raw(place.opener, place.index)}{rest} {_measured(place, moved)}"
    hints = [f"write it after the formula, for all of the match: {offered(mended)}"]
    twice = any(
        keyword_of(token) in CLAUSES[: CLAUSES.index(clause) + 1]
        for token in place.tokens[formula_end:end]
    )
    fixes = [] if twice else [Fix(place.span(place.opener, formula_end), mended)]
    if clause == "WITHIN":
        window = _measured(place, moved).removeprefix(place.found.text).strip()
        part = place.raw(place.opener + 1, place.index)
        local = f"WITHIN[{window}]({part})"
        hints.append(f"for this part alone: {offered(local)}")
        fixes.append(Fix(place.span(place.opener, closer + 1), local))
    message = f"{full} stands after the whole formula, not inside its parentheses"
    return error("clause-in-parentheses", place.found.span, message, *hints, fixes=fixes)


def _measured(place: Place, window: str) -> str:
    """A WITHIN clause with the attribute that measures it, if it lacks one."""
    time = declared(place).time_attribute()
    is_time = window.upper().startswith("WITHIN") and "EVENTS" not in window.upper()
    return f"{window} [{time}]" if is_time and "[" not in window and time else window


# --- statements -----------------------------------------------------------------------------------


# --- words between events -------------------------------------------------------------------------

_THEN = {"THEN": ";", "NEXT": ":", "FOLLOWED": ";", "FOLLOWEDBY": ";", "BEFORE": ";"}
_NOT = {"WITHOUT": "UNLESS", "BUT": "UNLESS", "EXCEPT": "UNLESS"}


def word_between_events(place: Place) -> Diagnostic | None:
    """`A THEN B`, `A FOLLOWED BY B`, `A WITHOUT B`, `EVERY A`."""
    word = word_of(place.found)
    every = place.index - 1
    beside = place.before == "NAME" == place.found.type and place.after_operand
    if beside and word_of(place.previous) == "EVERY":
        return _between(place, every, every + 1, "", "leave it out: every match is found")
    ours = _THEN.get(word) or _NOT.get(word)
    if ours is None or not place.after_operand or place.following.type not in ("NAME", "LPAR"):
        return None
    end = place.index + 1 + (word_of(place.following) in ("BY", "NOT"))
    return _between(place, place.index, end, ours, f"write {ours}")


def _between(place: Place, start: int, end: int, text: str, advice: str) -> Diagnostic:
    words = place.raw(start, end)
    message = f"'{words}' is not an operator"
    fixes = [Fix(place.span(start, end), text)]
    return error("foreign-word", place.span(start, end), message, advice, fixes=fixes)


def sequence_function(place: Place) -> Diagnostic | None:
    """`SEQ(A a, B b)`."""
    if place.found.type != "LPAR" or place.before != "NAME" or not place.after_operand:
        return None
    closer = place.closer(place.index)
    if word_of(place.previous) not in ("SEQ", "SEQUENCE", "PATTERN") or closer is None:
        return None
    parts, start = [], place.index + 1
    for index in range(place.index + 1, closer + 1):
        if index == closer or place.tokens[index].type == "COMMA":
            words = [token.text for token in place.tokens[start:index]]
            if len(words) == 2 and place.tokens[start].type == "NAME":
                words = [words[0], "AS", words[1]]
            parts.append(" ".join(words))
            start = index + 1
    mended = f"({' ; '.join(parts)})"
    message = f"'{place.previous.text}' is not a selector"
    hint = f"a sequence is written {offered(mended)}"
    fixes = [Fix(place.span(place.index - 1, closer + 1), mended)]
    return error("unknown-selector", place.previous.span, message, hint, fixes=fixes)
