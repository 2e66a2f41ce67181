"""What makes no query is refused in steps that grow with the text, and not with its square.

Steps are lines of the program that are run, each turn of a loop included: the same number on every
machine. A text of 100,000 signs is refused in seconds where it is linear, and in minutes where it
is quadratic.
"""

from __future__ import annotations

import sys
from functools import partial
from types import FrameType
from typing import Any

import pytest
from counting import steps_of

from celc.diagnostics import deadline
from celc.diagnostics.errors import CelError, Diagnostics
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options
from celc.parse.tokens import tokenize

STREAM = "CREATE STREAM S { EVENT A { v: INT, s: STRING }, EVENT B { v: INT, s: STRING } }\n"
# Behind these the same piece is wrong in different ways.
BEGINNINGS = {
    "formula": STREAM,
    "condition": f"{STREAM}A AS x FILTER ",
    "value": f"{STREAM}A AS x FILTER x.v > ",
    "items": f"{STREAM}SELECT ",
    "window": f"{STREAM}SELECT * FROM S WHERE A WITHIN ",
    "result": f"{STREAM}AGGREGATE f(v: INT): INT STATE s: INT = 0 STEP s = v RESULT ",
}
PIECES = [
    *("(", "[", "{", ")", "]", "}", "'a ", "`a ", '"', "/*", "--\n", "# a\n", "&&", "^", "é", "$"),
    *(";", ":", "!", "+", "-", "*", "?", ",", ".", "->", ":+", "=", "<", "NOT "),
    *("A ", "A;", "A.", "x.v ", "1 ", "1a ", "1 MINUTE ", "5 apples ", "00:05 ", "`a b` "),
    *("A ; (", "(A OR ", "(A AS x ; ", "!A ; ", "(A.v + ", "(A.v > 1 AND ", "A+ ", "A? "),
    *("NXT(", "NOT(", "PROJECT[](", "WITHIN[", "A[", "COUNT(", "COUNT(DISTINCT ", "ABS("),
    *("IF(", "CASE WHEN ", "PREV(", "x.v IN (1, ", "x.v BETWEEN ", "x.v BETWEEN (", "AND ", "OR "),
    *(
        "x.v = 'a' || ",
        "INTERVAL ",
        "FILTER ",
        "SELECT ",
        "SELECT * WHERE A ; (",
        "WHERE ",
        "AS x ",
    ),
    *("QUERY q: ", "CREATE STREAM S {", "EVENT A {", "AGGREGATE f(x: INT): INT STATE ", "a: INT, "),
    *("WITHIN ", "PARTITION BY ", "FOR 1 ", "HAVING ", "ORDER BY ", "MATCH_RECOGNIZE ("),
]
SIZE = 150
LINEAR = 2.4
MOST_STEPS = 45
"""For each token: a few times over the text."""


def refuse(text: str) -> None:
    """Compile it, and word what is wrong with it."""
    try:
        compile_source(Source("q.cel", text), Options())
    except CelError as problem:
        str(problem)


@pytest.mark.each(2, values=False)
@pytest.mark.parametrize("each", [6, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_steps_grow_with_the_text(beginning: str, each: int) -> None:
    """Each piece behind a sixth of the beginnings; behind all in the long run."""
    start = BEGINNINGS[beginning]
    first = [*BEGINNINGS].index(beginning) % each
    refuse(start + "A")  # the grammar is read once
    faster = {}
    for piece in PIECES[first::each]:
        texts = [start + piece * size for size in (SIZE, 2 * SIZE)]
        few, many = (steps_of(partial(refuse, text)) for text in texts)
        if many > LINEAR * few:
            faster[piece] = (few, many)
    assert not faster


@pytest.mark.parametrize("piece", ["(", "A ; (", "(A AS x ; ", "x.v BETWEEN ", "CASE WHEN "])
def test_the_clock_is_looked_at_between_the_mistakes_that_are_looked_for(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{STREAM}A ; " + piece * SIZE
    refuse(text)
    looks: list[int] = []
    steps = 0

    def look() -> float:
        nonlocal steps
        looks.append(steps)
        steps = 0
        return 0.0

    def step(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return step

    monkeypatch.setattr(deadline, "clock", look)
    sys.settrace(step)
    try:
        compile_source(Source("q.cel", text), Options(max_compile_seconds=1))
    except CelError:
        pass
    finally:
        sys.settrace(None)
    tokens = tokenize(Source("q.cel", text), Diagnostics(Source("q.cel", text)))
    assert max(looks) < MOST_STEPS * len(tokens)
