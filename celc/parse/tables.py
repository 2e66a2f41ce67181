"""The tables of a `grammar.lark` for its lexer and parser.

Lark makes them (`tools/parser_tables.py`), and `tables.json` keeps them, because making them takes
longer than compiling most queries. The loop that runs over them is ours
(`celc.parse.stacks`): the kind of a word depends on the parser's state, errors ask what else
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

    `method` is None where a single value passes through unchanged. `kept` are the places of the
    values that the method gets, with None for a part that is left out; None: it gets all.
    """

    size: int
    target: str
    method: str | None
    kept: list[int | None] | None = None


# A state number to shift to, or a reduction.
Action: TypeAlias = int | Reduction


@frozen
class Grammar:
    """The tables of the grammar and its vocabulary.

    `actions[state]` gives the action on a terminal, and on a nonterminal the state to go to.
    `keywords` gives the terminal of an upper-case word; `patterns` gives regular expressions for
    all other terminals, those first that are tried first, and for the `ignored` ones, which leave
    no token.
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
    """The tables of CEL, read at the first call."""
    return read_tables(TABLES)


def read_tables(path: Path) -> Grammar:
    """The tables that a file keeps."""
    fields = json.loads(path.read_text(encoding="utf-8"))
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
