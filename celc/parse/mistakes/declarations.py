"""Mistakes in declarations: what other systems write there, and the parts of an aggregate."""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.mistakes.place import Place, described
from celc.parse.tables import END


def constraint(place: Place) -> Diagnostic | None:
    """`user: STRING NOT NULL`, `user: STRING NULL` and `user: STRING DEFAULT 'x'`."""
    if not _after_type(place):
        return None
    word, following = place.found.text.upper(), place.following.text.upper()
    if word == "DEFAULT":
        message = "an attribute has no DEFAULT: where there is no value, it is NULL"
        return error("constraint", place.found.span, message, "leave it out")
    if word == "NULL" or (word, following) == ("NOT", "NULL"):
        last = place.following if word == "NOT" else place.found
        written = f"{word} NULL" if word == "NOT" else "NULL"
        message = f"a declaration has no {written}: each attribute can be NULL"
        hint = "leave it out; FILTER x.a IS NOT NULL keeps the events that have a value"
        fixes = (Fix(Span(place.previous.end, last.end), ""),)
        return error("constraint", place.found.span.to(last.span), message, hint, fixes=fixes)
    return None


def list_type(place: Place) -> Diagnostic | None:
    """`tags: STRING[]`."""
    if not _after_type(place) or place.found.type != "LSQB":
        return None
    written = place.previous.text.upper()
    message, hint = "lists have a type of their own", f"write ARRAY<{written}>"
    if place.following.type != "RSQB":
        return error("list-type", place.found.span, message, hint)
    span = place.previous.span.to(place.following.span)
    return error("list-type", span, message, hint, fixes=(Fix(span, f"ARRAY<{written}>"),))


def braces(place: Place) -> Diagnostic | None:
    """`EVENT A (user STRING)`."""
    if place.found.type != "LPAR" or not place.accepts("LBRACE") or place.last("EVENT") is None:
        return None
    message = "the attributes of an event type stand in braces, each with a ':' before its type"
    hint = f"write EVENT {place.previous.text} {{ user: STRING, ts: TIMESTAMP }}"
    return error("braces", place.found.span, message, hint)


def _after_type(place: Place) -> bool:
    """Whether the found token stands after the word of a type."""
    return place.accepts("PRECISION", "WITHOUT")


# --- aggregates ----------------------------------------------------------------------------------

_PARTS = {
    "AGGREGATE": (
        "an aggregate has parameters and a type, and its STATE follows: "
        "AGGREGATE mean(a: DOUBLE): DOUBLE STATE …"
    ),
    "STATE": (
        "STATE gives each variable a type and a first value, and STEP follows: "
        "STATE n: LONG = 0, total: DOUBLE = 0 STEP …"
    ),
    "STEP": (
        "STEP gives variables new values, and RESULT follows: "
        "STEP n = n + 1, total = total + a RESULT total / n"
    ),
}


def in_declaration(place: Place) -> Diagnostic | None:
    """`AGGREGATE f(a) STATE …`, `STATE n: INT STEP …`, and a declaration without RESULT."""
    part = place.part_of_aggregate
    if part is None:
        return None
    hints = [_PARTS[part]]
    opener = place.opener
    if opener and place.tokens[opener - 1].type == "IF":
        hints = ["IF takes a condition and two values: IF(a > 3, a, 0)"]
    after = f" after {described(place.previous)}"
    found = place.found
    what = f"{described(found)} cannot stand here"
    if found.type == END:
        what = "the file ends too early"
    return error("aggregate-declaration", found.span, f"{what}{after}", *hints)
