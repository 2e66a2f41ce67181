"""Which words of a condition or an expression are operators, in both dialects."""

from collections.abc import Iterable, Mapping, Sequence

from celc.editor.formatting.chains import COMMA
from celc.editor.formatting.tokens import Word

_ENDS_OF_OPERANDS = frozenset(
    {"NAME", "ATTRIBUTE", "QUOTED", "UNIT", "INTEGER", "DOUBLE", "REAL", "TEXT", "RPAR", "RSQB"}
    | {"TRUE", "FALSE", "NULL", "END"}
)
_ARITHMETIC = {"PLUS": 6, "MINUS": 6, "STAR": 7, "SLASH": 7, "PERCENT": 7}
_CLOSING = frozenset({"RPAR", "RSQB", "RBRACE"})
_OPENING = frozenset({"LPAR", "LSQB", "LBRACE"})


def read_operators(words: Sequence[Word], places: Iterable[int], levels: Mapping[str, int]) -> None:
    """Set the levels of commas and operators at some places, and the role of signs of numbers.
    `levels` are those of all operators except commas and arithmetic."""
    # The AND of a BETWEEN is the next one at its depth.
    low_bounds: set[int] = set()
    depth = 0
    for place in places:
        word = words[place]
        depth += (word.kind in _OPENING) - (word.kind in _CLOSING)
        if word.role:
            continue
        if word.kind == "COMMA":
            word.level = COMMA
        elif word.kind == "BETWEEN":
            low_bounds.add(depth)
        elif word.kind == "AND" and depth in low_bounds:
            low_bounds.remove(depth)
        elif word.kind in _ARITHMETIC:
            if place and words[place - 1].kind in _ENDS_OF_OPERANDS:
                word.level = _ARITHMETIC[word.kind]
            elif word.kind != "STAR":
                word.role = "sign"
        else:
            word.level = levels.get(word.kind)
