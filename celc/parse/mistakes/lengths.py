"""Syntax errors around the length of an absence, `!B FOR 5 MINUTES`. Each function returns its
message about a place, or None where its case does not apply."""

from celc.diagnostics.errors import Diagnostic, error
from celc.parse.mistakes.place import Place, described
from celc.parse.tokens import word_of

_POSTFIXES = ("AS", "IN", "LSQB", "PLUS", "COLON_PLUS", "LBRACE", "COLON_LBRACE", "QUESTION")


def length_without_absence(place: Place) -> Diagnostic | None:
    """`A FOR 5 MINUTES`."""
    is_length = word_of(place.found) == "FOR" and place.following.type in ("INTEGER", "DOUBLE")
    if not is_length or not place.accepts("SEMICOLON"):
        return None
    return error(
        "misplaced-for",
        place.found.span,
        "FOR says for how long something is absent, so it follows '!' and what is absent",
        "for no B in the 10 minutes before an A write !B FOR 10 MINUTES ; A",
        "for the length of a match write WITHIN[10 MINUTES](…)",
    )


def after_length(place: Place) -> Diagnostic | None:
    """`!B FOR 5 MINUTES AS x`."""
    keyword = place.last("FOR")
    found = place.found
    if keyword is None or (found.type not in _POSTFIXES and word_of(found) not in _POSTFIXES):
        return None
    inside = (token.type for token in place.tokens[keyword : place.index])
    if any(type in ("SEMICOLON", "COLON", "RPAR", "LPAR") for type in inside):
        return None
    return error(
        "misplaced-for",
        found.span,
        f"{described(found)} cannot stand after the length of an absence",
        "if it belongs to what is absent, write it before FOR, as in !(B AS x) FOR 10 MINUTES ; A",
        "if it belongs to all, write parentheses, as in (!B FOR 10 MINUTES ; A) AS x",
    )
