"""Writes the tables of CEL's parser, `celc/parse/tables.json`, which celc reads at every start.

    python tools/parser_tables.py     after a change to `celc/parse/grammar.lark`

Lark reads the grammar and computes the LALR tables. That takes a third of a short compilation, and
the result is the same for everybody: so it is done here, once, and a test compares the file with
the grammar. The numbers of states and reductions depend on the grammar alone, not on Lark's
version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lark import Lark
from lark.grammar import Rule
from lark.lexer import Lexer, PatternStr, Token
from lark.parsers.lalr_analysis import Shift

from celc.parse.tables import START, TABLES

_GRAMMAR = TABLES.with_name("grammar.lark")
_Row = dict[str, tuple[Any, Any]]


class _NoLexer(Lexer):
    """Stands in for Lark's lexers, which are not used."""

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        raise NotImplementedError


def tables_text() -> str:
    """The content of the file: JSON, with a line for each state and each reduction.

    A state is `{action: symbols}`. An action from 0 is the state to go to; below it, -1 - the index
    of a reduction. A reduction is the number of values, the symbol they become, and the method of
    the builder that makes it; null where a single value passes through unchanged.
    """
    # Strict: a conflict that Lark would settle by itself is an error of the grammar.
    lark = Lark(
        _GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        lexer=_NoLexer,
        start=START,
        strict=True,
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    configuration = lark.parse_interactive(None, start=START).parser_state.parse_conf
    rows: dict[Any, _Row] = configuration.states
    numbers = _numbered(rows, configuration.start_state)
    reductions = sorted(
        {_reduction(rule) for row in rows.values() for kind, rule in row.values() if kind != Shift},
        key=str,
    )
    words, others = _vocabulary(lark)
    fields: dict[str, Any] = {
        "start_state": numbers[configuration.start_state],
        "end_state": numbers[configuration.end_state],
        "keywords": words,
        "reserved": sorted(item.name for item in lark.terminals if item.priority),
        "patterns": others,
        "ignored": sorted(lark.ignore_tokens),
        "reductions": reductions,
        "states": [_state(rows[state], numbers, reductions) for state in numbers],
    }
    parts = (f"{json.dumps(name)}: {_lines(value)}" for name, value in fields.items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _numbered(rows: dict[Any, _Row], start: Any) -> dict[Any, int]:
    """Numbers of the states: in the order in which a search from the start finds them."""
    numbers, waiting = {start: 0}, [start]
    for state in waiting:
        for _, (kind, target) in sorted(rows[state].items()):
            if kind == Shift and target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
    assert len(numbers) == len(rows)
    return numbers


def _state(row: _Row, numbers: dict[Any, int], reductions: list[Any]) -> dict[int, str]:
    symbols: dict[int, list[str]] = {}
    for symbol, (kind, argument) in sorted(row.items()):
        shifts = kind == Shift
        action = numbers[argument] if shifts else -1 - reductions.index(_reduction(argument))
        symbols.setdefault(action, []).append(symbol)
    return {action: " ".join(symbols[action]) for action in sorted(symbols)}


def _reduction(rule: Rule) -> tuple[int, str, str | None]:
    # A rule made from a template is called "sum{value}"; its source is "sum".
    name = rule.alias or rule.options.template_source or rule.origin.name
    passes = rule.options.expand1 and not rule.alias and len(rule.expansion) == 1
    return len(rule.expansion), str(rule.origin.name), None if passes else str(name)


def _vocabulary(lark: Lark) -> tuple[dict[str, str], dict[str, str]]:
    words: dict[str, str] = {}
    others: dict[str, str] = {}
    for terminal in sorted(lark.terminals, key=lambda item: str(item.name)):
        # A terminal without a pattern (ATTRIBUTE) is spelled like another one.
        if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.isalpha():
            words[terminal.pattern.value] = terminal.name
        elif terminal.pattern is not None:
            others[terminal.name] = terminal.pattern.to_regexp()
    return words, others


def _lines(value: Any) -> str:
    if isinstance(value, list) and not isinstance(value[0], str):
        return "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]"
    return json.dumps(value)


if __name__ == "__main__":
    TABLES.write_text(tables_text(), encoding="utf-8")
