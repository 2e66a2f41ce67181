"""The parser of MATCH_RECOGNIZE: it cuts the next token off the text and takes it, one by one.

The tables of the grammar are those of an LALR parser (`celc.parse.stacks` runs them). SQL reserves
few words, so a lexer that runs first cannot tell a keyword from a name: `pattern` is a keyword
before a parenthesis and may be a column in a condition. Here the state of the parser decides. Only
the terminals that may stand next are tried, keywords before names. If none fits, all terminals are
tried, so that the error shows the word that is there.
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
    """A rule of the grammar that was read: an inner node of the syntax tree."""

    name: str
    """The name of the rule, or its alias in the grammar."""
    parts: list[Any]
    """Its tokens and nodes in the order of the text; None for an optional part that is absent."""
    span: Span | None
    """The text from its first token to its last one; None: it has no tokens."""
    value: Any = None
    """The syntax node that a builder makes of it; None before."""


class RowMachine(Stacks):
    """One run of the parser over a text."""

    def __init__(self, text: str) -> None:
        super().__init__(grammar())
        self._text = text
        self.tokens: list[Token] = []
        """The tokens that were taken so far."""
        self.nodes: list[Node] = []
        """The nodes of the tree, the lower ones first."""

    def run(self) -> Token | None:
        """Read the text to its end.

        Returns the first token that the grammar does not allow at its place, and None if the whole
        text is right. Where no token begins, the returned token has the type `BAD`.
        """
        wrong = self.read()
        if wrong is None:
            end = self.tokens[-1].end if self.tokens else 0
            token = Token(END, "", end, end)
            wrong = None if self.take(token) else token
        return wrong

    def read(self) -> Token | None:
        """Read the tokens of the text, but do not ask whether it may end there.

        Returns as `run`.
        """
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
    """The parts that a node keeps. A list is replaced by its items, so that trees stay flat."""
    for place in range(len(parts)) if reduction.kept is None else reduction.kept:
        part = None if place is None else parts[place]
        if isinstance(part, Node) and _is_list(part):
            yield from part.parts
        else:
            yield part


def _is_list(node: Node) -> bool:
    """Whether a node is only a list of its parts. Lark makes such rules for `*` and `+`."""
    return node.name.startswith("_")


# --- words ----------------------------------------------------------------------------------------


@cache
def grammar() -> Grammar:
    """The tables of MATCH_RECOGNIZE, read at the first call."""
    return read_tables(TABLES)


def _token(text: str, at: int, terminals: Iterable[str]) -> Token | None:
    """The token that begins at offset `at`, by the first terminal that fits; None: none fits."""
    for terminal in terminals:
        found = _pattern(terminal).match(text, at)
        if found is not None:
            return Token(terminal, found.group(), at, found.end())
    return None


@cache
def _tried(state: int) -> tuple[str, ...]:
    """The terminals that the parser accepts in a state, in the order in which they are tried."""
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
    """The offset of the first character from `at` on that is no white space and no comment."""
    found = _ignored().match(text, at)
    return at if found is None else found.end()


def plain_text(text: str) -> str:
    """The text without comments, and with one space for each run of white space.

    What stands in quotes is not changed. Two texts that differ only in their layout become equal.
    """
    return re.sub(
        r"('(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\")|(?:\s|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)+",
        lambda found: found[1] or " ",
        text,
    ).strip()
