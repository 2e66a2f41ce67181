"""Words of a formula or an expression → a box, broken at its operators and brackets.

A range of words is broken before its operators of the lowest level; then the same holds inside each
operand. Lists are broken after their commas. The content of brackets is put on its own lines.
"""

from collections.abc import Sequence
from itertools import pairwise

from celc_runtime.plan.frozen import frozen

from celc.editor.formatting.documents import INDENT, SPACE, Box, Break, Document, box
from celc.editor.formatting.tokens import BEGIN_PARTS, Word

COMMA = 0  # the level of commas, below those of all operators

# Levels of boxes. Deeper text is written without places for a line end.
_MAX_DEPTH = 120
_CLOSING = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "COLON_LBRACE": "RBRACE"}
_CLOSING |= {"EXCLUDE": "EXCLUDED", "CASE": "END"}
# With a space inside.
_WIDE = frozenset({"EXCLUDE", "CASE"})
_LINE = Break()


@frozen
class Chains:
    """The words of a text, and for each opening bracket the place of the closing one."""

    words: Sequence[Word]
    closing: dict[int, int]

    def between(self, start: int, end: int, depth: int = 0, *, indent: int = INDENT) -> Box:
        """The box of a range of words. Lines that begin in it are indented by `indent`."""
        if depth > _MAX_DEPTH:
            return self.flat(start, end)
        places = self.lowest(start, end)
        if not places:
            return self._operand(start, end, depth)
        is_list = self.words[places[0]].level == COMMA
        bounds = [start, *places, end]
        parts: list[Document] = []
        for begin, stop in pairwise(bounds):
            # A comma ends an operand. Any other operator begins one, or is a part of it.
            first = begin + (is_list and begin != start)
            parts += [_LINE] if parts else []
            if begin != start and not is_list and self.words[begin].role not in BEGIN_PARTS:
                first = begin + 1
                parts += [self.words[begin].piece(), SPACE]
            operand: Document = self.between(first, stop, depth + 1)
            if is_list and stop != end:
                operand = box(operand, self.words[stop].piece())
            parts.append(operand)
        is_filled = self.words[places[0]].role == "part" or (is_list and self._is_long(bounds))
        if is_filled:
            return _filled(parts)
        return box(parts[0], box(*parts[1:], indent=0 if is_list else indent), whole=True)

    def lowest(self, start: int, end: int) -> list[int]:
        """The operators of the lowest level between two words, outside of brackets."""
        found: list[int] = []
        lowest, index = None, start
        while index < end:
            level = self.words[index].level
            if level is not None and index > start and (lowest is None or level <= lowest):
                if level != lowest:
                    lowest = level
                    found.clear()
                found.append(index)
            index = self.closing.get(index, index) + 1
        return found

    def bracket(self, start: int, end: int, depth: int, gap: str = "") -> Box:
        """The box of a bracket with its content. `gap` is written inside the brackets."""
        opening, closing = self.words[start].piece(), self.words[end].piece()
        if start + 1 == end:
            return box(opening, closing)
        place = Break(flat=gap)
        content = self.between(start + 1, end, depth + 1, indent=0)
        return box(opening, box(place, content, indent=INDENT), place, closing, whole=True)

    def _operand(self, start: int, end: int, depth: int) -> Box:
        parts: list[Document] = []
        index = start
        while index < end:
            if index > start and self.words[index].spaced:
                parts.append(SPACE)
            last = self.closing.get(index, index)
            if last == index:
                parts.append(self.words[index].piece())
            elif self.words[index].role == "bounds":
                parts.append(self.flat(index, last + 1))
            else:
                gap = " " if self.words[index].kind in _WIDE else ""
                parts.append(self.bracket(index, last, depth + 1, gap))
            index = last + 1
        return box(*parts)

    def flat(self, start: int, end: int) -> Box:
        """The box of a range of words without places for a line end."""
        parts: list[Document] = []
        for index in range(start, end):
            if index > start and self.words[index].spaced:
                parts.append(SPACE)
            parts.append(self.words[index].piece())
        return box(*parts)

    def _is_long(self, bounds: Sequence[int]) -> bool:
        """Whether it is a list of single words, of which a line takes several."""
        sizes = [end - begin - 1 for begin, end in pairwise(bounds[1:])]
        return len(sizes) > 3 and max(sizes) == 1 and bounds[1] - bounds[0] == 1


def _filled(parts: Sequence[Document]) -> Box:
    filled: list[Document] = [parts[0]]
    for place, operand in zip(parts[1::2], parts[2::2], strict=True):
        filled.append(box(place, operand, whole=True))
    return box(*filled)


def closing_brackets(words: Sequence[Word]) -> dict[int, int]:
    """For each opening bracket the place of the closing one."""
    opened: list[int] = []
    closing: dict[int, int] = {}
    for index, word in enumerate(words):
        if word.kind in _CLOSING:
            opened.append(index)
        elif opened and word.kind == _CLOSING[words[opened[-1]].kind]:
            closing[opened.pop()] = index
    return closing
