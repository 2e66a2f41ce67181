"""Writes the tables of the parsers, the `tables.json` beside each grammar, which celc reads at a
start.

    python tools/parser_tables.py     after a change to a `grammar.lark`

Lark reads the grammar and computes the LALR tables. That takes a third of a short compilation, and
the result is the same for everybody: so it is done here, once, and a test compares each file
with its grammar. The numbers of states and reductions depend on the grammar alone, not on Lark's
version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lark import Lark
from lark.grammar import Rule, Terminal
from lark.lexer import Lexer, PatternStr, TerminalDef, Token
from lark.parsers.lalr_analysis import Shift

import celc.parse.tables
import celc.row_pattern.machine

_Row = dict[str, tuple[Any, Any]]


class _NoLexer(Lexer):
    """Stands in for Lark's lexers, which are not used."""

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        raise NotImplementedError


LANGUAGES: dict[Path, dict[str, Any]] = {
    celc.parse.tables.TABLES: {
        "start": celc.parse.tables.START,
        "keep_all_tokens": True,
        "maybe_placeholders": False,
    },
    celc.row_pattern.machine.TABLES: {
        "start": celc.row_pattern.machine.START,
        "maybe_placeholders": True,
    },
}
"""What Lark is told of the grammar beside each file."""


def tables_text(path: Path) -> str:
    """The content of a file: JSON, with a line for each state and each reduction.

    A state is `{action: symbols}`. An action from 0 is the state to go to; below it, -1 - the index
    of a reduction. A reduction is the number of values, the symbol they become, the method of the
    builder that makes it (null where a single value passes through unchanged), and which of the
    values that gets, where it does not get all.
    """
    options = LANGUAGES[path]
    # Strict: a conflict that Lark would settle by itself is an error of the grammar.
    lark = Lark(
        path.with_name("grammar.lark").read_text(encoding="utf-8"),
        parser="lalr",
        lexer=_NoLexer,
        strict=True,
        **options,
    )
    configuration = lark.parse_interactive(None, start=options["start"]).parser_state.parse_conf
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


def _reduction(rule: Rule) -> tuple[Any, ...]:
    # A rule made from a template is called "sum{value}"; its source is "sum".
    name = rule.alias or rule.options.template_source or rule.origin.name
    passes = rule.options.expand1 and not rule.alias and len(rule.expansion) == 1
    made = len(rule.expansion), str(rule.origin.name), None if passes else str(name)
    kept = _kept(rule)
    return made if passes or kept == list(range(len(rule.expansion))) else (*made, tuple(kept))


def _kept(rule: Rule) -> list[int | None]:
    """The places of the symbols of a rule that leave a value, and None for each one that could
    stand between them and does not."""
    places = enumerate(rule.expansion)
    kept: list[int | None] = []
    for is_missing in rule.options.empty_indices or [False] * len(rule.expansion):
        if is_missing:
            kept.append(None)
            continue
        place, symbol = next(places)
        is_left_out = isinstance(symbol, Terminal) and symbol.filter_out
        if rule.options.keep_all_tokens or not is_left_out:
            kept.append(place)
    return kept


def _vocabulary(lark: Lark) -> tuple[dict[str, str], dict[str, str]]:
    words: dict[str, str] = {}
    others: dict[str, str] = {}
    # In the order in which Lark's own lexers try them.
    for terminal in sorted(lark.terminals, key=_is_tried):
        pattern = terminal.pattern
        if pattern is None:  # spelled like another one (ATTRIBUTE)
            continue
        if isinstance(pattern, PatternStr) and pattern.value.isidentifier():
            words[pattern.value] = terminal.name
            continue
        others[terminal.name] = pattern.to_regexp()
        if re.match(rf"{terminal.name}(\\b|\(\?=)", pattern.value, re.IGNORECASE):
            words[terminal.name] = terminal.name
    return dict(sorted(words.items())), others


def _is_tried(terminal: TerminalDef) -> tuple[int, int, int, str]:
    pattern = terminal.pattern
    widths = (0, 0) if pattern is None else (pattern.max_width, len(pattern.value))
    return -terminal.priority, -widths[0], -widths[1], str(terminal.name)


def _lines(value: Any) -> str:
    if isinstance(value, list) and not isinstance(value[0], str):
        return "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]"
    return json.dumps(value)


if __name__ == "__main__":
    for path in LANGUAGES:
        path.write_text(tables_text(path), encoding="utf-8")
