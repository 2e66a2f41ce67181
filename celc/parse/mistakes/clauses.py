"""Syntax errors in clauses, names and brackets, and where the text ends too early. Each function
returns its message about a place, or None where its case does not apply."""

from collections.abc import Set
from difflib import get_close_matches

from celc.diagnostics.errors import Diagnostic, Fix, Related, error
from celc.diagnostics.messages import wording
from celc.diagnostics.source import Span
from celc.parse.durations import spelled
from celc.parse.mistakes.missing import missing_where
from celc.parse.mistakes.place import (
    CLAUSES,
    CLOSERS,
    COMPARISONS,
    FULL_NAMES,
    SIGNS,
    STRATEGIES,
    Place,
    described,
)
from celc.parse.mistakes.surroundings import declared
from celc.parse.mistakes.tokens import offered
from celc.parse.tables import END, grammar
from celc.parse.tokens import Token, keyword_of, name_text

ORDER = (
    "clauses stand in this order: SELECT, FROM, WHERE, PARTITION BY, WITHIN, WITH CONFIDENCE, "
    "CONSUME BY, LIMIT"
)
# Clauses of other languages without their own case, and our clauses with the same meaning.
_FOREIGN_CLAUSES = {
    "GROUP": "PARTITION BY splits the stream by attributes",
    "ORDER": "the order of the stream is given at the call, not in the query",
    "WINDOW": "a window is written WITHIN 10 MINUTES",
    "RETURN": "what is reported stands after SELECT",
    "EMIT": "what is reported stands after SELECT",
    "JOIN": "streams are listed: FROM S, T",
    "ON": "conditions stand in the formula, after FILTER",
}


# --- brackets -------------------------------------------------------------------------------------


def unclosed_bracket(place: Place) -> Diagnostic | None:
    """A bracket that is still open where its partner should be."""
    if place.opener is None:
        return None
    opener = place.tokens[place.opener]
    closer = CLOSERS[opener.type]
    ends = place.at_end or place.found.type in CLOSERS.values()
    fits = place.found.type != "NAME" and place.fits_after(closer)
    if not place.accepts(closer) or not (ends or fits):
        return None
    missing = Span(place.previous.end, place.previous.end)
    message = f"this '{opener.text}' is never closed"
    hint = f"close it with '{SIGNS[closer]}'"
    related = [Related(missing, f"'{SIGNS[closer]}' is missing here at the latest")]
    fixes = [Fix(missing, SIGNS[closer])]
    return error("unclosed-bracket", opener.span, message, hint, related=related, fixes=fixes)


def unopened_bracket(place: Place) -> Diagnostic | None:
    """A closing bracket too many."""
    if place.opener is not None or place.found.type not in CLOSERS.values():
        return None
    sign = place.found.text
    message = f"this '{sign}' closes nothing"
    hint = "leave it out, or open the bracket where it should begin"
    fixes = [Fix(place.found.span, "")]
    return error("unopened-bracket", place.found.span, message, hint, fixes=fixes)


# --- names ----------------------------------------------------------------------------------------


def reserved_word(place: Place) -> Diagnostic | None:
    """A keyword as a label, type, stream or query name."""
    if not place.is_reserved() or not place.accepts("NAME"):
        return None
    # Where only a name can stand, a name is meant. Elsewhere the name may be missing, unless the
    # next token could only follow a name.
    only_name = place.accepted == {"NAME"} and place.found.type not in CLAUSES
    following = place.following.type
    if not only_name and (following not in _AFTER_NAMES or place.found.type in _BEFORE_VALUES):
        return None
    text = place.found.text
    message = f"{text} is a keyword and cannot be a name as it is"
    hint = f"in backquotes it is a name: `{text}`"
    fixes = [Fix(place.found.span, f"`{text}`")]
    return error("reserved-word", place.found.span, message, hint, fixes=fixes)


_AFTER_NAMES = frozenset(
    {"SEMICOLON", "COLON", "PLUS", "COLON_PLUS", "RPAR", "RSQB", "LBRACE", "DOT", "GREATER"}
    | {"ARROW", END}
)
# These words begin conditions or join formulas, so a sign after them does not make them names.
_BEFORE_VALUES = frozenset({"NOT", "AND", "OR", "ALL"})


_IN_NAMES = ("MINUS", "DOT", "SLASH", "COLON")


def name_with_signs(place: Place) -> Diagnostic | None:
    """`EVENT page-view { … }`, `order.created ; paid` and `AS first-one`."""
    start = end = place.index
    while _is_glued(place, start - 1) and start > place.statement_start:
        start -= 1
    while _is_glued(place, end) and place.token(end + 1).type != END:
        end += 1
    if place.token(end).type in _IN_NAMES:
        end -= 1  # the `:` after the name
    first, after = place.tokens[start], place.token(end + 1)
    kinds = [token.type for token in place.tokens[start : end + 1]]
    # Words that the parser has not reached are NAMEs.
    is_name = {*kinds[::2]} <= {"NAME", "ATTRIBUTE", "INTEGER"} and {*kinds[1::2]} <= {*_IN_NAMES}
    if len(kinds) < 3 or not is_name or after.type in (*COMPARISONS, "LPAR"):
        return None
    known, name = declared(place), place.raw(start, end + 1)
    before = place.tokens[start - 1].type if start > place.start else ""
    is_given = before in ("EVENT", "STREAM", "QUERY", "AS", "FROM") or _declares(place, before)
    is_attribute = known.of_type(name) is not None
    if not (is_given or is_attribute):
        is_other = "COLON" in kinds or first.type == "INTEGER" or not place.after_operand
        if is_other or name_text(first) in (*known.types, *known.streams):
            return None
    is_declared = is_attribute or name in known.types or f"EVENT {name}" in place.source.text
    return wording.name_with_signs(
        name, place.span(start, end + 1), is_name=is_given or is_declared
    )


def name_with_space(place: Place) -> Diagnostic | None:
    """`EVENT order created { … }`."""
    is_name = place.found.type == "NAME" == place.before and place.accepted == {"LBRACE"}
    if not is_name or place.tokens[place.index - 2].type != "EVENT":
        return None
    end = place.index
    while place.token(end + 1).type == "NAME":
        end += 1
    name, span = place.raw(place.index - 1, end + 1), place.span(place.index - 1, end + 1)
    return wording.name_with_signs(name, span)


def _is_glued(place: Place, index: int) -> bool:
    """Whether no space stands between a token and the one after it."""
    one, other = place.token(index), place.token(index + 1)
    parts = ("NAME", "ATTRIBUTE", "INTEGER", *_IN_NAMES)
    return one.end == other.start and one.type in parts and other.type in parts


def _declares(place: Place, before: str) -> bool:
    """Whether the name of an attribute is declared here."""
    opener = place.opener
    in_event = opener is not None and place.tokens[opener - 2].type == "EVENT"
    return in_event and before in ("LBRACE", "COMMA")


def selector_without_items(place: Place) -> Diagnostic | None:
    """`SELECT last FROM …`, where a label was meant."""
    if place.before not in STRATEGIES or not place.accepts("STAR", "NONE"):
        return None
    word = place.previous.text
    return error(
        "selector-without-items",
        place.previous.span,
        f"{word} directly after SELECT is the selector, and nothing to select follows it",
        f"to select all labels: SELECT {word.upper()} *",
        f"for a label of that name use backquotes: SELECT `{word}`",
        fixes=[Fix(place.previous.span, f"{word} *")],
    )


def misspelled_statement(place: Place) -> Diagnostic | None:
    """A first word that is almost SELECT, QUERY, CREATE, AGGREGATE or FUNCTION."""
    if place.index == place.statement_start + 1 and place.before == "NAME":
        first = place.previous
        if keyword_of(first) == "STREAM":
            return _misspelled(first, "CREATE STREAM", "CREATE STREAM")
        close = _close(first, {"SELECT", "QUERY", "CREATE", "AGGREGATE", "FUNCTION"})
        if close and close != keyword_of(first):
            return _misspelled(first, close)
    return None


def misspelled(place: Place) -> Diagnostic | None:
    """A word that is almost a keyword which could stand there."""
    if keyword_of(place.found) is None and place.found.type in ("NAME", "ATTRIBUTE"):
        # Where FOR EACH could stand FROM is meant rather than FOR alone.
        unlikely = {"FOR"} if place.accepts("FROM") else set()
        close = _close(place.found, (place.accepted & grammar().keywords.keys()) - unlikely)
        if close:
            return _misspelled(place.found, close)
    return None


def _close(token: Token, words: Set[str]) -> str | None:
    plain = token.text.upper() if len(token.text) < 2 * len("PARTITION") else ""
    close = get_close_matches(plain, sorted(words), 1, 0.7)
    return close[0] if close else None


def _misspelled(token: Token, keyword: str, mended: str = "") -> Diagnostic:
    full = FULL_NAMES.get(keyword, keyword)
    return error(
        "unknown-clause" if keyword in CLAUSES else "unknown-word",
        token.span,
        f"{described(token)} means nothing here",
        f"did you mean {full}?",
        fixes=[Fix(token.span, mended or keyword)],
    )


# --- clauses --------------------------------------------------------------------------------------


def clause(place: Place) -> Diagnostic | None:
    """A clause that is known, but not here."""
    keyword = place.found.type
    wants_name = place.accepts("NAME") or place.accepts("ATTRIBUTE")
    if keyword not in CLAUSES or (wants_name and place.index > place.statement_start):
        return None
    given = _clauses_before(place)
    full = FULL_NAMES.get(keyword, keyword)
    if "SELECT" not in given:
        if place.tokens[place.statement_start].type in ("CREATE", "QUERY"):
            return None
        return _without_select(place, full)
    if keyword in given:
        related = [Related(given[keyword].span, "the first one")]
        message = f"{full} is given twice"
        end = _end_of_clause(place)
        return error(
            "clause-twice",
            place.found.span,
            message,
            f"leave one of the two out: {place.text(place.index, end)}",
            ORDER,
            related=related,
            fixes=[Fix(place.span(place.index, end), "")],
        )
    later = [word for word in given if CLAUSES.index(word) > CLAUSES.index(keyword)]
    if later:
        message = f"{full} must stand before {FULL_NAMES.get(later[0], later[0])}"
        return moved(place, message, given[later[0]])
    if "WHERE" not in given and _where_follows(place):
        message = f"{full} must stand after WHERE"
        return error("clause-order", place.found.span, message, ORDER)
    return missing_where(place)


def _end_of_clause(place: Place) -> int:
    end = place.statement_end()
    following = range(place.index + 1, end)
    return next((i for i in following if _begins_clause(place, i)), end)


def _begins_clause(place: Place, index: int) -> bool:
    is_policy = keyword_of(place.tokens[index - 1]) in ("BY", "PER")
    return keyword_of(place.tokens[index]) in (*CLAUSES, "PER", "HAVING") and not is_policy


def moved(place: Place, message: str, before: Token, order: str = ORDER) -> Diagnostic:
    """The message about a clause that stands too late, with the clauses in their order."""
    end, first = _end_of_clause(place), place.tokens.index(before, place.statement_start)
    moved = f"{place.raw(place.index, end)} {place.raw(first, place.index)}"
    return error(
        "clause-order",
        place.found.span,
        message,
        f"write {offered(moved)}",
        order,
        fixes=[Fix(place.span(first, end), moved)],
    )


def _clauses_before(place: Place) -> dict[str, Token]:
    """The clauses of the statement so far, in order."""
    given: dict[str, Token] = {}
    for index in range(place.statement_start, place.index):
        token = place.tokens[index]
        is_policy = index > 0 and place.tokens[index - 1].type in ("BY", "PER")
        if token.type in CLAUSES and not is_policy:
            given.setdefault(token.type, token)
    return given


def _where_follows(place: Place) -> bool:
    for token in place.tokens[place.index :]:
        keyword = keyword_of(token)
        if keyword in ("WHERE", "QUERY", "SELECT"):
            return keyword == "WHERE"
    return False


def _without_select(place: Place, full: str) -> Diagnostic:
    begins = place.index == place.statement_start
    if place.found.type == "FROM" and begins:
        mended = f"SELECT * {place.raw(place.index, place.statement_end())}"
        message = "a query begins with SELECT"
        hint = f"write {offered(mended)}"
        fixes = [Fix(place.span(place.index, place.statement_end()), mended)]
        return error("missing-select", place.found.span, message, hint, fixes=fixes)
    if place.found.type == "SELECT":
        formula = place.text(place.statement_start, place.index)
        message = "a query begins with SELECT, but something stands before it"
        hint = f"a formula stands after WHERE: SELECT * WHERE {formula}"
        return error("missing-select", place.found.span, message, hint)
    if place.found.type == "WHERE" and not begins:
        message = "a formula that is the whole query has no WHERE"
        hint = "a condition on its events stands after FILTER: A AS x FILTER x.price > 100"
        return error("missing-select", place.found.span, message, hint)
    first = place.tokens[place.statement_start].start
    given = place.text(place.statement_start, place.statement_end())
    mended = f"SELECT * {given}" if begins else f"SELECT * WHERE {given}"
    message = f"{full} belongs to a query, and a query begins with SELECT"
    hint = f"write {mended}"
    fixes = [Fix(Span(first, first), "SELECT * " if begins else "SELECT * WHERE ")]
    return error("missing-select", place.found.span, message, hint, fixes=fixes)


def select_after_name(place: Place) -> Diagnostic | None:
    """`QUERY q: A ; B`."""
    if place.accepted != {"SELECT"} or place.at_end:
        return None
    message = "after QUERY and a name comes SELECT"
    hint = f"write SELECT * WHERE {place.text(place.index, place.formula_end())}"
    fixes = [Fix(place.found.span, f"SELECT * WHERE {place.found.text}")]
    return error("missing-select", place.found.span, message, hint, fixes=fixes)


def late_declaration(place: Place) -> Diagnostic | None:
    """CREATE STREAM, AGGREGATE or FUNCTION after the first query."""
    is_stream = keyword_of(place.found) == "CREATE" and keyword_of(place.following) == "STREAM"
    others = {"AGGREGATE": "aggregates", "FUNCTION": "functions"}
    declared = "streams" if is_stream else others.get(place.found.type)
    if declared is None or not place.accepts(END):
        return None
    message = f"{declared} are declared before the first query"
    hint = "move the declaration to the start of the file"
    return error("late-declaration", place.found.span, message, hint)


def unknown_clause(place: Place) -> Diagnostic | None:
    """A word where only a clause could follow."""
    word = place.found.text.upper() if place.found.type == "NAME" else ""
    by_follows = keyword_of(place.following) == "BY"
    # Where operators could follow as well, one of them is missing rather than a clause.
    ends_here = not place.after_operand and not place.accepts("AND")
    if not word or not place.accepts(END):
        return None
    if not (ends_here or by_follows or word in _FOREIGN_CLAUSES):
        return None
    hints = [_FOREIGN_CLAUSES[word]] if word in _FOREIGN_CLAUSES else []
    if word in ("WINDOW", "RANGE") and place.accepts("WITHIN"):
        return _window(place)
    message = f"there is no clause {described(place.found)}"
    return error("unknown-clause", place.found.span, message, *hints, ORDER)


def _window(place: Place) -> Diagnostic:
    """`WINDOW 5 MINUTES`."""
    end, time = _end_of_clause(place), declared(place).time_attribute()
    size = spelled(place.raw(place.index + 1, end))
    mended = f"WITHIN {size or '10 MINUTES'}"
    if time and not mended.endswith("EVENTS"):
        mended += f" [{time}]"
    message = f"there is no clause {described(place.found)}"
    hint = f"a window is written {mended}"
    fixes = [Fix(place.span(place.index, end), mended)] if size else []
    return error("unknown-clause", place.found.span, message, hint, fixes=fixes)
