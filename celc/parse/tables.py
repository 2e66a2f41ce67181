"""The tables of `grammar.lark` for the lexer and the parser.

Lark makes them (`tools/parser_tables.py`), and `tables.json` keeps them, because making them takes
longer than compiling most queries. The loop that runs over them is ours
(`celc.parse.machine`): the kind of a word depends on the parser's state, errors ask what else
could stand at a place, and it takes half the time of Lark's.
"""

import json
from functools import cache
from pathlib import Path
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

TABLES = Path(__file__).with_name("tables.json")
START = "file"
END = "$END"


@frozen
class Reduction:
    """Replace the top `size` values by the result of the builder's `method`.

    `method` is None where a single value passes through unchanged.
    """

    size: int
    target: str
    method: str | None


# A state number to shift to, or a reduction.
Action: TypeAlias = int | Reduction


@frozen
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


@cache
def grammar() -> Grammar:
    """The tables, read at the first call."""
    fields = json.loads(TABLES.read_text(encoding="utf-8"))
    reductions = [Reduction(*reduction) for reduction in fields["reductions"]]
    return Grammar(
        actions=tuple(_row(state, reductions) for state in fields["states"]),
        start_state=fields["start_state"],
        end_state=fields["end_state"],
        keywords=fields["keywords"],
        reserved=frozenset(fields["reserved"]),
        patterns=fields["patterns"],
        ignored=frozenset(fields["ignored"]),
    )


def _row(state: dict[str, str], reductions: list[Reduction]) -> dict[str, Action]:
    """The actions of a state, which are written as `{action: symbols}`."""
    row: dict[str, Action] = {}
    for text, symbols in state.items():
        number = int(text)
        action = number if number >= 0 else reductions[-1 - number]
        row.update(dict.fromkeys(symbols.split(), action))
    return row
