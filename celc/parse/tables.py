"""`grammar.lark` as tables for the lexer and the parser, built once in a process.

Lark reads the grammar and computes the LALR tables. The loop that runs over them is ours
(`celc.parse.machine`): the kind of a word depends on the parser's state, errors ask what else
could stand at a place, and it takes half the time of Lark's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from lark import Lark
from lark.grammar import Rule
from lark.lexer import Lexer, PatternStr, Token
from lark.parsers.lalr_analysis import Shift

START = "file"
END = "$END"


@dataclass(frozen=True, slots=True)
class Reduction:
    """Replace the top `size` values by the result of the builder's `method`.

    `method` is None where a single value passes through unchanged.
    """

    size: int
    target: str
    method: str | None


# A state number to shift to, or a reduction.
Action: TypeAlias = int | Reduction


@dataclass(frozen=True, slots=True)
class Grammar:
    """The tables of the grammar and its vocabulary.

    `actions[state]` gives the action on a terminal, and on a nonterminal the state to go to.
    `keywords` gives the terminal of an upper-case word; `patterns` gives regular expressions for
    all other terminals, and for the `ignored` ones, which leave no token.
    """

    actions: tuple[dict[str, Action], ...]
    start_state: int
    end_state: int
    keywords: dict[str, str]
    reserved: frozenset[str]
    patterns: dict[str, str]
    ignored: frozenset[str]


class _NoLexer(Lexer):
    """Stands in for Lark's lexers, which are not used."""

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        raise NotImplementedError


@cache
def grammar() -> Grammar:
    """The tables, built at the first call (some 0.1 s)."""
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    # Strict: a conflict that Lark would settle by itself is an error of the grammar.
    lark = Lark(
        text,
        parser="lalr",
        lexer=_NoLexer,
        start=START,
        strict=True,
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    configuration = lark.parse_interactive(None, start=START).parser_state.parse_conf
    numbers = {state: number for number, state in enumerate(configuration.states)}
    words, others = _vocabulary(lark)
    return Grammar(
        actions=tuple(
            {
                symbol: numbers[argument] if kind is Shift else _reduction(argument)
                for symbol, (kind, argument) in row.items()
            }
            for row in configuration.states.values()
        ),
        start_state=numbers[configuration.start_state],
        end_state=numbers[configuration.end_state],
        keywords=words,
        reserved=frozenset(item.name for item in lark.terminals if item.priority),
        patterns=others,
        ignored=frozenset(lark.ignore_tokens),
    )


def _vocabulary(lark: Lark) -> tuple[dict[str, str], dict[str, str]]:
    words: dict[str, str] = {}
    others: dict[str, str] = {}
    for terminal in lark.terminals:
        # A terminal without a pattern (ATTRIBUTE) is spelled like another one.
        if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.isalpha():
            words[terminal.pattern.value] = terminal.name
        elif terminal.pattern is not None:
            others[terminal.name] = terminal.pattern.to_regexp()
    return words, others


def _reduction(rule: Rule) -> Reduction:
    # A rule made from a template is called "sum{value}"; its source is "sum".
    name = rule.alias or rule.options.template_source or rule.origin.name
    passes = rule.options.expand1 and not rule.alias and len(rule.expansion) == 1
    return Reduction(len(rule.expansion), str(rule.origin.name), None if passes else str(name))
