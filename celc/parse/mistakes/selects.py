"""Syntax errors in the list of SELECT. Each function returns its message about a place, or None
where its case does not apply."""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.mistakes.place import CLOSERS, COMPARISONS, STRATEGIES, Place
from celc.parse.mistakes.surroundings import labels
from celc.parse.mistakes.tokens import shortened
from celc.parse.tables import END
from celc.parse.tokens import keyword_of


def _in_select(place: Place) -> bool:
    tokens = place.tokens[place.statement_start : place.index]
    words = {token.type for token in tokens}
    return "SELECT" in words and not words & {"FROM", "WHERE"}


def flat_of_all(place: Place) -> Diagnostic | None:
    """`SELECT FLAT TOTAL COUNT(*) AS n` and `SELECT a FLAT`."""
    where = place.last("FLAT")
    before = place.previous.text.upper() if place.index > place.start else ""
    word = "" if where is None else place.token(where + 1).text.upper()
    if where is not None and place.index <= where + 4 and word in ("TOTAL", "COLLAPSED"):
        flat = place.tokens[where]
        message = f"FLAT gives the labels of one match columns, and {word} is about all matches"
        fixes = [Fix(Span(flat.start, place.tokens[where + 1].start), "")]
        return error("misplaced-flat", flat.span, message, "leave FLAT out", fixes=fixes)
    if place.found.text.upper() != "FLAT" or not _in_select(place) or before == "SELECT":
        return None
    message = "FLAT stands directly after SELECT"
    return error("misplaced-flat", place.found.span, message, "write SELECT FLAT and the labels")


def all_of_label(place: Place) -> Diagnostic | None:
    """`SELECT v.*`."""
    if place.found.type != "STAR" or place.before != "DOT" or not _in_select(place):
        return None
    label = place.tokens[place.index - 2].text
    span = place.span(place.index - 1, place.index + 1)
    return error(
        "misplaced-sign",
        place.found.span,
        f"'{label}.*' is not written so: a label stands for its events with all their attributes",
        f"write {label}",
        fixes=[Fix(span, "")],
    )


def star_in_list(place: Place) -> Diagnostic | None:
    """`SELECT *, v.price AS p` and `SELECT v, *`."""
    after_star = place.found.type == "COMMA" and place.before == "STAR"
    star = place.index - 1 if after_star else place.index
    if place.tokens[star].type != "STAR" or not _in_select(place):
        return None
    if not after_star and place.before != "COMMA":
        return None
    if after_star and place.tokens[star - 1].type in ("NAME", "ATTRIBUTE", "RPAR", "INTEGER"):
        return None
    bound = ", ".join(_columns_of_star(place))
    if not bound:
        return None
    message = "* stands alone: it cannot be one item of a list"
    hint = f"name the labels in its place: {shortened(bound)}"
    fixes = [Fix(place.tokens[star].span, bound)]
    return error("misplaced-sign", place.tokens[star].span, message, hint, fixes=fixes)


def _columns_of_star(place: Place) -> list[str]:
    """The labels of the statement that no item of the list names."""
    end = place.statement_end()
    named = set()
    for index in range(place.statement_start, end):
        token = place.tokens[index]
        if keyword_of(token) in ("FROM", "WHERE"):
            break
        is_item = token.type in ("NAME", "ATTRIBUTE") and place.tokens[index - 1].type != "DOT"
        if is_item and place.tokens[index + 1].type in ("COMMA", "LSQB"):
            named.add(token.text)
    return [label for label in labels(place) if label not in named]


def name_without_as(place: Place) -> Diagnostic | None:
    """`SELECT v.price p`."""
    if place.found.type != "NAME" or not place.accepts("AS", "FROM") or not _in_select(place):
        return None
    simple = place.before in ("ATTRIBUTE", "RPAR")
    if not simple or keyword_of(place.following) not in ("FROM", "WHERE", None):
        return None
    if place.following.type not in ("NAME", "COMMA"):
        return None
    name = place.found.text
    message = "the name of a column stands after AS"
    hint = f"write AS {name}"
    fixes = [Fix(place.found.span, f"AS {name}")]
    return error("missing-as", place.found.span, message, hint, fixes=fixes)


_OF_CONDITIONS = ("IN", "LIKE", "RLIKE", "BETWEEN", "IS", "NOT")
_BEFORE_ITEMS = STRATEGIES | {"FIRST", "LONGEST", "DISJOINT", "FLAT", "TOTAL"}


def condition_as_item(place: Place) -> Diagnostic | None:
    """`SELECT v.price > 3 AS dear`."""
    is_condition = place.found.type in COMPARISONS or keyword_of(place.found) in _OF_CONDITIONS
    if not is_condition or not _in_select(place):
        return None
    start, end = _item(place)
    if place.opener not in (None, start) or not start <= place.index < end:
        return None
    name = "" if keyword_of(place.token(end)) != "AS" else f" AS {place.token(end + 1).text}"
    span = place.span(start, end)
    written = f"CASE WHEN {place.raw(start, end)} THEN TRUE ELSE FALSE END"
    message = "a condition is no item of SELECT"
    hint = f"write {shortened(written)}{name or ' AS name'}"
    fixes = [Fix(span, written)] if name else []
    return error("condition-in-select", span, message, hint, fixes=fixes)


def _item(place: Place) -> tuple[int, int]:
    """Where the item of SELECT begins and ends (behind it) to which the found token belongs."""
    start, depth = place.statement_start, 0
    for index in range(place.statement_start, place.index):
        token = place.tokens[index]
        depth += (token.type in CLOSERS) - (token.type in CLOSERS.values())
        if not depth and (token.type == "COMMA" or keyword_of(token) == "SELECT"):
            start = index + 1
    while keyword_of(place.token(start)) in _BEFORE_ITEMS and place.token(start + 1).type != "LPAR":
        start += 1
    end = place.index
    while place.token(end).type != END:
        token = place.token(end)
        depth += (token.type in CLOSERS) - (token.type in CLOSERS.values())
        if not depth and (
            token.type == "COMMA" or keyword_of(token) in ("AS", "FROM", "WHERE", "FOR")
        ):
            break
        end += 1
    return start, end


def nothing_selected(place: Place) -> Diagnostic | None:
    """`SELECT FROM S …` and `SELECT WHERE …`."""
    if place.before != "SELECT" or place.found.type not in ("FROM", "WHERE"):
        return None
    message = "nothing is selected"
    hint = "write SELECT * for all labels, or SELECT NONE for start and end of each match"
    fixes = [Fix(place.previous.span, "SELECT *"), Fix(place.previous.span, "SELECT NONE")]
    return error("missing-items", place.found.span, message, hint, fixes=fixes)
