"""The machine that reads MATCH_RECOGNIZE: words are cut off where it stands.

A word is a keyword only where the machine accepts one, and is tried as that before as a name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from celc.diagnostics.source import Span
from celc.parse.stacks import Stacks
from celc.parse.tables import END, Grammar, Reduction, read_tables
from celc.parse.tokens import BAD, Token

TABLES = Path(__file__).with_name("tables.json")
START = "query"


@dataclass(slots=True)
class Node:
    """A rule of the grammar with its parts: tokens, nodes, and None for what is left out."""

    name: str
    parts: list[Any]
    span: Span | None
    """From the first word to the last one; None: it has none."""
    value: Any = None
    """What a builder makes of it."""


class RowMachine(Stacks):
    """One run of the parser over a text."""

    def __init__(self, text: str) -> None:
        super().__init__(grammar())
        self._text = text
        self.tokens: list[Token] = []
        self.nodes: list[Node] = []
        """The nodes of the tree, the lower ones first."""

    def run(self) -> Token | None:
        """Read the text to its end. Returns the first token that cannot stand at its place, which
        is `BAD` where no token begins; else None."""
        wrong = self.read()
        if wrong is None:
            end = self.tokens[-1].end if self.tokens else 0
            token = Token(END, "", end, end)
            wrong = None if self.take(token) else token
        return wrong

    def read(self) -> Token | None:
        """Read all tokens of the text, and not its end. Returns as `run`."""
        at, size = _behind_ignored(self._text, 0), len(self._text)
        while at < size:
            token = _token(self._text, at, _tried(self._states[-1]))
            if token is None:
                token = _token(self._text, at, grammar().patterns)
            if token is None:
                return Token(BAD, self._text[at], at, at + 1)
            if not self.take(token):
                return token
            self.tokens.append(token)
            at = _behind_ignored(self._text, token.end)
        return None

    def _shifted(self, token: Token) -> Token:
        return token

    def _reduced(self, reduction: Reduction, parts: list[Any]) -> Node:
        assert reduction.method is not None
        spans = [part.span for part in parts if part.span is not None]
        span = spans[0].to(spans[-1]) if spans else None
        node = Node(reduction.method, list(_kept(reduction, parts)), span)
        if not _is_list(node):
            self.nodes.append(node)
        return node


def _kept(reduction: Reduction, parts: Sequence[Any]) -> Iterator[Any]:
    for place in range(len(parts)) if reduction.kept is None else reduction.kept:
        part = None if place is None else parts[place]
        if isinstance(part, Node) and _is_list(part):
            yield from part.parts
        else:
            yield part


def _is_list(node: Node) -> bool:
    """Whether a node stands for its parts: Lark makes such rules of `*` and `+`."""
    return node.name.startswith("_")


# --- words ----------------------------------------------------------------------------------------


@cache
def grammar() -> Grammar:
    """The tables of MATCH_RECOGNIZE, read at the first call."""
    return read_tables(TABLES)


def _token(text: str, at: int, terminals: Iterable[str]) -> Token | None:
    """The token at a place, of the first terminal that fits; None: none does."""
    for terminal in terminals:
        found = _pattern(terminal).match(text, at)
        if found is not None:
            return Token(terminal, found.group(), at, found.end())
    return None


@cache
def _tried(state: int) -> tuple[str, ...]:
    """The terminals that may stand in a state."""
    row = grammar().actions[state]
    return tuple(terminal for terminal in grammar().patterns if terminal in row)


@cache
def _pattern(terminal: str) -> re.Pattern[str]:
    return re.compile(grammar().patterns[terminal])


@cache
def _ignored() -> re.Pattern[str]:
    patterns = "|".join(grammar().patterns[name] for name in grammar().ignored)
    return re.compile(f"(?:{patterns})*")


def _behind_ignored(text: str, at: int) -> int:
    found = _ignored().match(text, at)
    return at if found is None else found.end()


def plain_text(text: str) -> str:
    """A text without comments, each run of white space one space; as it is within quotes."""
    return re.sub(
        r"('(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\")|(?:\s|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)+",
        lambda found: found[1] or " ",
        text,
    ).strip()
