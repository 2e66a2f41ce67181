"""Mistakes in the declaration of an aggregate: what its parts are, and their order."""

from celc.diagnostics.errors import Diagnostic, error
from celc.parse.mistakes.place import Place, described
from celc.parse.tables import END

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
