"""Clauses and words of other languages, and the text that says the same here.

Each function returns its message about a place, or None where its case does not apply.
"""

import json
from itertools import pairwise

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.mistakes.clauses import ORDER
from celc.parse.mistakes.place import CLAUSES, FULL_NAMES, Place, described
from celc.parse.mistakes.surroundings import (
    declared,
    formula_range,
    in_parentheses,
    labelled,
    without,
)
from celc.parse.mistakes.tokens import offered
from celc.parse.mistakes.totals import HAVING_OF_TOTALS
from celc.parse.tables import END
from celc.parse.tokens import keyword_of, name_text, word_of

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
        return _distinct(place, select + 1)
    rest = place.raw(first, place.statement_end())
    mended = f"{rest} LIMIT {place.tokens[select + 2].text} PER PARTITION"
    fix = Fix(place.span(select + 1, place.statement_end()), mended)
    return _first_rows(place, "SELECT TOP", span, f"SELECT {offered(mended)}", fix)


def _distinct(place: Place, modifier: int) -> Diagnostic:
    """`SELECT DISTINCT x.a AS a`, and `SELECT DISTINCT ON (a) x`."""
    tokens, first = place.tokens, modifier + 1
    if word_of(tokens[first]) == "ON" and tokens[first + 1].type == "LPAR":
        first = (place.closer(first + 1) or first) + 1
    span = place.span(modifier, modifier + 1)
    word, named = word_of(tokens[modifier]), json.dumps(_columns(place)[4:])
    advice = f"leave {word} out: rows with labels are of different events"
    if named != "[]":
        advice = (
            f"leave {word} out, and make equal rows one in the answer: matches.select("
            f"{named[1:-1]}).distinct() on Spark, matches[{named}].drop_duplicates() in pandas"
        )
    return error(
        "foreign-word",
        span,
        f"there is no SELECT {word}: each match is a row, also where rows look alike",
        advice,
        "for one row of each key write PARTITION BY key and LIMIT 1 PER PARTITION",
        fixes=[Fix(Span(span.start, tokens[first].start), "")],
    )


_OF_ANSWER = (
    "for a few rows of the answer: celc run --max-matches, match_table(…, max_matches=…), limit(…) "
    "on Spark"
)


def _first_rows(place: Place, words: str, span: Span, shown: str, fix: Fix) -> Diagnostic:
    """The message about `SELECT TOP 5 …` and `… FETCH FIRST 5 ROWS ONLY`."""
    statement = place.tokens[place.statement_start : place.statement_end()]
    keyed = any(keyword_of(token) == "PARTITION" for token in statement)
    whose = "each part of the stream" if keyed else "the stream"
    return error(
        "foreign-word",
        span,
        f"there is no {words}",
        f"for the first matches of {whose} write {shown}; LIMIT alone is for each end position",
        _OF_ANSWER,
        fixes=[fix],
    )


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
        case "OFFSET":
            advice = "leave it out: rows of the answer cannot be passed over"
            return _left_out(place, advice, place.index + 2)
        case "FETCH" if place.accepts("LIMIT"):
            return _fetch(place)
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
    ends = (*CLAUSES, "HAVING")
    return next((i for i in range(start, end) if keyword_of(place.tokens[i]) in ends), end)


def _order_by(place: Place) -> Diagnostic:
    """`ORDER BY n DESC LIMIT 10`: of the answer, unless it names a time of the events."""
    end, first = _clause_end(place, place.index + 2), place.index + 2
    tokens = place.tokens[first:end]
    down = any(word_of(token) == "DESC" for token in tokens)
    # Of `x.a` the attribute.
    keys = [
        name_text(token)
        for token, after in pairwise((*tokens, place.token(end)))
        if token.type == "NAME" and after.type != "DOT" and word_of(token) not in ("ASC", "DESC")
    ]
    columns, known = _columns(place), declared(place)
    column = next((key for key in keys if key in columns), None)
    values = [key for key in keys if known.of_type(key) not in (None, "TIMESTAMP", "DATE")]
    lacking = column is None and bool(values)
    column = column or (values[0] if values else "end_time")
    sorts = f'orderBy("{column}"{", ascending=False" if down else ""}) on Spark'
    arrow = f'sort_by([("{column}", "{"descending" if down else "ascending"}")]) of Arrow'
    advice = [
        "leave it out: the rows of each part come in the order of their ends; sort the answer with "
        f"{sorts}, {arrow}"
    ]
    if lacking:
        advice.append(
            f"{column} has to be a column for that: select it, as in x.{column} AS {column}"
        )
    ordering = [key for key in keys if known.of_type(key) in ("TIMESTAMP", "DATE")]
    if ordering and not down and not {*ordering} & {*columns}:
        call = f'"{ordering[0]}"' if len(ordering) == 1 else json.dumps(ordering)
        advice.append(
            f"the order of the events is named at the call: --order-by {','.join(ordering)}, or "
            f"order_by={call} in Python; a window such as WITHIN 5 MINUTES [ts] names it too"
        )
    limited = keyword_of(place.token(end)) == "LIMIT" and not place.accepts("WHERE")
    if limited:
        count, end = place.token(end + 1).text, min(end + 2, place.statement_end())
        advice.append(
            f"LIMIT {count} is for each end position; of the sorted rows it is limit({count})"
        )
    return _unknown_clause(place, advice, place.index, end, "")


def _columns(place: Place) -> list[str]:
    """The columns of the answer that SELECT names, and those that each answer has."""
    tokens, found = place.tokens, ["start_pos", "end_pos", "start_time", "end_time"]
    for index in range(place.statement_start, place.statement_end()):
        if keyword_of(tokens[index]) in ("FROM", "WHERE"):
            break
        if keyword_of(tokens[index]) == "AS":
            found.append(name_text(tokens[index + 1]))
    return found


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


def _fetch(place: Place) -> Diagnostic:
    """`FETCH FIRST 5 ROWS ONLY`."""
    end = _clause_end(place, place.index + 1)
    numbers = [one.text for one in place.tokens[place.index : end] if one.type == "INTEGER"]
    mended = f"LIMIT {numbers[0] if numbers else 1} PER PARTITION"
    fix = Fix(place.span(place.index, end), mended)
    return _first_rows(place, "FETCH", place.found.span, mended, fix)


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
    if keyword == "HAVING" and "(*)" in condition.replace(" ", ""):
        return None  # COUNT(*) is of all matches, and no FILTER asks for it
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
            return "needs-total", HAVING_OF_TOTALS


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
    if ours == "UNLESS":
        return _without(place, end)
    return _between(place, place.index, end, ours, f"write {ours}")


def _without(place: Place, after: int) -> Diagnostic:
    """`A WITHOUT B` and `(A ; C) BUT NOT B`."""
    start, operand = place.formula_start(), place.token(after)
    end = (place.closer(after) or after) + 1 if operand.type == "LPAR" else after + 1
    mended, says = without(place, start, place.index, place.raw(after, end))
    message = f"'{place.raw(place.index, after)}' is not an operator"
    fixes = [Fix(place.span(start, end), mended)]
    hint = f"{says} {offered(mended)}"
    return error("foreign-word", place.span(place.index, after), message, hint, fixes=fixes)


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
