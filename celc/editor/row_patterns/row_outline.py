"""What the tokens of a text with MATCH_RECOGNIZE declare, whether or not the text is right."""

import re
from collections.abc import Iterator, Sequence

from celc_runtime.plan.frozen import frozen

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*[\s\S]*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*(?:'|\Z))"
    r"|(?P<quoted>`(?:[^`]|``)*(?:`|\Z)|\"(?:[^\"]|\"\")*(?:\"|\Z))|(?P<word>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>[^\s\w])"
)


@frozen
class RowToken:
    """A piece of a text; `kind` is text, quoted, word, number or sign."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """The name that a word or a quoted name spells; empty for others."""
        if self.kind == "quoted":
            quote = self.text[0]
            return self.text[1:].removesuffix(quote).replace(2 * quote, quote)
        return self.text if self.kind == "word" else ""

    @property
    def word(self) -> str:
        """A word in capitals, or a sign; empty for others."""
        return self.text.upper() if self.kind in ("word", "sign") else ""


@frozen
class RowOutline:
    """The columns of the table with their types, the variables of the pattern, the subsets with
    their members, and the names of the measures."""

    columns: tuple[tuple[str, str], ...]
    variables: tuple[str, ...]
    subsets: tuple[tuple[str, tuple[str, ...]], ...]
    measures: tuple[str, ...]


def row_tokens(text: str) -> list[RowToken]:
    """The tokens of any text, without comments."""
    return [
        RowToken(str(found.lastgroup), found.group(), found.start(), found.end())
        for found in _TOKEN.finditer(text)
        if found.lastgroup != "comment"
    ]


def is_in_comment_or_text(text: str, offset: int) -> bool:
    """Whether an offset is in a comment or in a text."""
    for found in _TOKEN.finditer(text):
        if found.lastgroup in ("comment", "text") and found.start() < offset:
            is_open = found.end() == len(text) and not found.group().endswith(("'", "*/"))
            ends_after = offset < found.end() or (
                offset == found.end() and (is_open or found.group().startswith("--"))
            )
            if ends_after:
                return True
    return False


def row_outline(text: str) -> RowOutline:
    """The outline of a text."""
    tokens = row_tokens(text)
    columns, pattern = list[tuple[str, str]](), list[str]()
    subsets, measures = list[tuple[str, tuple[str, ...]]](), list[str]()
    for index, token in enumerate(tokens):
        following = tokens[index + 1 : index + 4]
        words = [one.word for one in following]
        if token.word == "CREATE" and words[:1] == ["TABLE"]:
            columns += _columns(tokens, index + 3)
        elif token.word == "PATTERN" and words[:1] == ["("]:
            pattern += (one.name for one in _inside(tokens, index + 1) if one.name)
        elif token.word == "MEASURES":
            measures += _measures(tokens, index + 1)
        elif words[:2] == ["=", "("] and token.name:
            members = tuple(one.name for one in _inside(tokens, index + 2) if one.name)
            subsets.append((token.name, members))
    variables = {name.casefold(): name for name in reversed(pattern) if name.upper() != "PERMUTE"}
    return RowOutline(
        tuple(columns), tuple(reversed(variables.values())), tuple(subsets), tuple(measures)
    )


def _inside(tokens: Sequence[RowToken], opening: int) -> Iterator[RowToken]:
    """The tokens between a bracket and the one that closes it."""
    depth = 0
    for token in tokens[opening:]:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return
        if token.text not in "()":
            yield token


def _columns(tokens: Sequence[RowToken], opening: int) -> Iterator[tuple[str, str]]:
    inside = list(_inside(tokens, opening))
    for index, token in enumerate(inside[:-1]):
        if token.name and (index == 0 or inside[index - 1].text == ",") and inside[index + 1].name:
            yield token.name, inside[index + 1].name.upper()


def _measures(tokens: Sequence[RowToken], start: int) -> Iterator[str]:
    for token, following in zip(tokens[start:], tokens[start + 1 :], strict=False):
        if token.word in ("ONE", "AFTER", "PATTERN", "DEFINE"):
            return
        if token.word == "AS" and following.name:
            yield following.name
