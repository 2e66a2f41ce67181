"""The words of types, and declared attributes read off the tokens where there is no tree."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from celc.parse.tokens import Token, keyword_of, word_of

SYNONYMS = {
    "BOOL": "BOOLEAN",
    "TINYINT": "BYTE",
    **dict.fromkeys(("SMALLINT", "INT16", "INT2"), "SHORT"),
    **dict.fromkeys(("INTEGER", "INT32", "INT4"), "INT"),
    **dict.fromkeys(("BIGINT", "INT64"), "LONG"),
    **dict.fromkeys(("REAL", "FLOAT4", "FLOAT32"), "FLOAT"),
    **dict.fromkeys(("DOUBLE PRECISION", "FLOAT8", "FLOAT64"), "DOUBLE"),
    **dict.fromkeys(("NUMERIC", "DEC"), "DECIMAL"),
    **dict.fromkeys(("VARCHAR", "CHAR", "CHARACTER", "TEXT", "STR", "UTF8"), "STRING"),
    **dict.fromkeys(("BYTES", "BLOB", "BYTEA", "VARBINARY"), "BINARY"),
    **dict.fromkeys(("DATETIME", "TIMESTAMPTZ", "TIMESTAMP_LTZ"), "TIMESTAMP"),
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP_NTZ",
    **dict.fromkeys(("DURATION", "TIMEDELTA"), "INTERVAL"),
    "LIST": "ARRAY",
}
"""What other systems call the types of the language."""


def type_word(name: str) -> str:
    """The language's word, in capitals, for the type that a word names; the word itself where there
    is no such type."""
    word = name.upper()
    return SYNONYMS.get(word, word)


def declared_attributes(
    tokens: Sequence[Token], start: int, end: int
) -> Iterator[tuple[Token, str]]:
    """The names of the attributes that are declared between two tokens, each with its type."""
    index = start
    while index + 2 < end:
        name, colon, kind = tokens[index : index + 3]
        index += 1
        if word_of(name) and colon.type == "COLON" and word_of(kind):
            stop = end_of_type(tokens, index + 1, end)
            yield name, _spelled(tokens[index + 1 : stop])
            index = stop


def end_of_type(tokens: Sequence[Token], start: int, end: int) -> int:
    """The place after the type that begins at a word."""
    index, depth = start + 1, 0
    while index < end:
        depth += (tokens[index].type in _OPENING) - (tokens[index].type in _CLOSING)
        is_closing = not depth and tokens[index].type in _CLOSING
        if is_closing or not (depth > 0 or keyword_of(tokens[index]) in _WORDS):
            return index + is_closing
        index += 1
    return end


def _spelled(tokens: Sequence[Token]) -> str:
    """The text of a type in capitals, but for the names of its fields."""
    text = ""
    for token, after in zip_longest(tokens, tokens[1:]):
        is_field = after is not None and after.type == "COLON"
        text += token.text if is_field else token.text.upper()
        is_apart = after is not None and word_of(token) and word_of(after)
        text += " " if is_apart or token.type in ("COMMA", "COLON") else ""
    return type_word(text)


_OPENING = ("LESS", "LPAR")
_CLOSING = ("GREATER", "RPAR")
_WORDS = ("PRECISION", "WITH", "WITHOUT", "TIME", "ZONE")
