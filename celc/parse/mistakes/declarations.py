"""Mistakes in declarations: what other systems write there, the parts of an aggregate, and the
types of a function."""

from celc_runtime.values.types import SIMPLE_TYPES

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.mistakes.place import CLOSERS, Place, described
from celc.parse.mistakes.surroundings import columns, types_in_formulas
from celc.parse.mistakes.tokens import offered
from celc.parse.tables import END
from celc.parse.tokens import Token
from celc.parse.types import type_word


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
    closer = place.closer(place.index)
    listed = [] if closer is None else columns(place, place.index, closer)
    mended = f"{{ {', '.join(listed or ['user: STRING', 'ts: TIMESTAMP'])} }}"
    fixes = []
    if closer is not None and listed:
        fixes = [Fix(place.span(place.index, closer + 1), mended)]
    hint = f"write EVENT {place.previous.text} {offered(mended)}"
    return error("braces", place.found.span, message, hint, fixes=fixes)


def missing_event(place: Place) -> Diagnostic | None:
    """`CREATE STREAM S { A { id: INT } }` and `CREATE STREAM S { id: INT }`."""
    found, opener = place.found, place.opener
    if place.accepted != {"EVENT"} or found.type != "NAME" or opener is None:
        return None
    message = "a stream declares its event types, and each begins with EVENT"
    if place.following.type == "LBRACE":
        fixes = [Fix(found.span, f"EVENT {found.text}")]
        return error("missing-event", found.span, message, f"write {fixes[0].text}", fixes=fixes)
    closer = place.closer(opener)
    if place.following.type != "COLON" or closer is None:
        return None
    names = types_in_formulas(place, closer) or ["A"]
    listed = place.raw(place.index, closer)
    mended = ", ".join(f"EVENT {name} {{ {listed} }}" for name in names)
    fixes = [Fix(place.span(place.index, closer), mended)]
    return error("missing-event", found.span, message, f"write {offered(mended)}", fixes=fixes)


def semicolon(place: Place) -> Diagnostic | None:
    """`EVENT A { id: INT; ts: TIMESTAMP; }`."""
    found, opener = place.found, place.opener
    if found.type != "SEMICOLON" or opener is None or place.tokens[opener].type != "LBRACE":
        return None
    if not (place.accepts("COMMA") or _after_type(place)):
        return None
    is_last = place.following.type == "RBRACE"
    mended = "" if is_last else ","
    hint = "leave it out" if is_last else "write ,"
    message = "a declaration has commas between its parts"
    return error("misplaced-sign", found.span, message, hint, fixes=[Fix(found.span, mended)])


def type_before_name(place: Place) -> Diagnostic | None:
    """`EVENT A { STRING user }`."""
    is_name = place.accepted == {"COLON"} and place.before == "ATTRIBUTE"
    if not is_name or place.found.type != "NAME":
        return None
    if _is_type(place.found) or not _is_type(place.previous):
        return None
    mended = f"{place.found.text}: {place.previous.text.upper()}"
    span = place.span(place.index - 1, place.index + 1)
    message = "the name of an attribute stands before its type"
    return error("missing-sign", span, message, f"write {mended}", fixes=[Fix(span, mended)])


def _is_type(token: Token) -> bool:
    return type_word(token.text) in {one.value for one in SIMPLE_TYPES}


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


# --- functions -----------------------------------------------------------------------------------


def in_function(place: Place) -> Diagnostic | None:
    """`FUNCTION f(DOUBLE): BOOLEAN`, `FUNCTION f(a: DOUBLE[]): …` and `FUNCTION f(DOUBLE[])`."""
    before = range(place.index - 1, place.start - 1, -1)
    start = next((index for index in before if place.tokens[index].type == "FUNCTION"), None)
    if start is None:
        return None
    depth, closed = 0, None
    for index in range(start + 2, place.index):
        kind = place.tokens[index].type
        depth += (kind in CLOSERS) - (kind in CLOSERS.values())
        if not depth and closed is None:
            closed = index
    # Behind the parentheses are a ':' and the word of a type, which has no size.
    behind = 0 if closed is None else place.index - closed - 1
    is_sized = behind == 3 and place.before == "LPAR"
    if behind > 2 and not is_sized:
        return None
    found = place.found
    what = f"{described(found)} cannot stand here"
    if found.type == END:
        what = "the file ends too early"
    hints = [
        "a function is declared by the types of its arrays and of its result: "
        "FUNCTION close(DOUBLE[], DOUBLE[]): BOOLEAN"
    ]
    if is_sized:
        hints = [f"its result is a number, BOOLEAN or TIMESTAMP, without a size: {hints[0]}"]
    after = f" after {described(place.previous)}"
    return error("function-declaration", found.span, f"{what}{after}", *hints)
