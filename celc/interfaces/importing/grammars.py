"""Texts of other languages → the trees of their grammars."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TypeAlias

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from celc.diagnostics.errors import CelError, Diagnostic, error
from celc.diagnostics.source import Source, Span

Node: TypeAlias = Tree[Token]

_SHOWN = {
    "STRING": "a text",
    "RAW_STRING": "a text",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "NAME": "a name",
    "QUOTED": "a name",
    "SPAN": "a time such as 5m",
    "COMPARATOR": "a comparison",
    "SEEN_AS": "':', like or regex",
    "IN": "in",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "TIMES": "'*'",
    "MISSING": "'!'",
    "EQUAL": "'='",
    "TILDE": "'~'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMMA": "','",
    "DOT": "'.'",
    "VBAR": "'|'",
    "QMARK": "'?'",
    "INDEX": "an index such as [0]",
    "$END": "the end",
}


@cache
def _parser(folder: str) -> Lark:
    grammar = files(f"{__package__}.{folder}").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def parse(source: Source, folder: str) -> Node:
    """The tree of a text by the grammar of a folder beside.

    Raises `CelError` at the first word that cannot stand where it does.
    """
    try:
        return _parser(folder).parse(source.text)
    except UnexpectedInput as found:
        raise CelError(source, (_told(source, found),)) from None


def _told(source: Source, found: UnexpectedInput) -> Diagnostic:
    if isinstance(found, UnexpectedToken) and found.token.type != "$END":
        start, text = found.token.start_pos or 0, str(found.token)
    elif isinstance(found, UnexpectedCharacters):
        start, text = found.pos_in_stream or 0, source.text[found.pos_in_stream or 0]
    else:
        start, text = len(source.text), ""
    accepted = set(getattr(found, "accepts", None) or getattr(found, "allowed", None) or ())
    if isinstance(found, UnexpectedEOF):
        accepted = set(found.expected)
    words = sorted({_SHOWN.get(one, one.lower()) for one in accepted if not one.startswith("__")})
    help = [f"expected {', '.join(words)}"] if words else []
    if text == "'" and "STRING" in accepted:
        help = ['texts stand in double quotes: "cmd.exe"']
    elif text == '"' and "STRING" in accepted:
        help = [r"a text ends in its line; behind \ stands one of b f n r t \ ' \" or u{…}"]
    elif text.startswith("="):
        help = ["equality is written '=='"]
    what = f"'{text}' cannot stand here" if text else "the query ends here, and it is not complete"
    return error("import-syntax", Span(start, start + max(1, len(text))), what, *help)


def span_of(node: Node | Token) -> Span:
    """The place of a node or a token in the text."""
    if isinstance(node, Token):
        return Span(node.start_pos or 0, node.end_pos or 0)
    return Span(getattr(node.meta, "start_pos", 0), getattr(node.meta, "end_pos", 0))
