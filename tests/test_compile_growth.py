"""The work of compiling grows with the query, and not with its square.

Work is counted, not timed: calls of functions, built-in ones included, and characters that black
is given. If the size of a query doubles, linear work doubles too, and quadratic work becomes about
four times as much.
"""

from __future__ import annotations

import sys
from typing import Any

import black
import pytest
from counting import calls_of
from places import ROOT
from shares import share

import celc.driver.pipeline
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options

sys.path.append(str(ROOT / "benchmarks"))

from families import FAMILIES, QUADRATIC

SIZE = 120
"""The n of a query. Smaller queries are compiled in another way: as straight-line code, and their
conditions are compared in pairs."""

SIZES = {"queries, alike": 60, "ANDs, != numbers": 240, "ANDs, an attribute each": 240}
"""Other sizes: a smaller one if each of the n is a whole query, larger ones for higher limits."""

LINEAR, SQUARE = 2.3, 4.6  # the most that work may grow by, for twice the size


@pytest.fixture(autouse=True)
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the texts that are given to black, which is not run.

    The checks between passes are switched off, as for users. They would hide the work of passes.
    """
    monkeypatch.setattr(celc.driver.pipeline, "VERIFYING", False)
    sizes: list[int] = []

    def format_str(text: str, **_mode: Any) -> str:
        sizes.append(len(text))
        return text

    monkeypatch.setattr(black, "format_str", format_str)
    compile_module(FAMILIES["parentheses"](1))  # so that what is read and built once is there
    sizes.clear()
    return sizes


def compile_module(text: str) -> str:
    """The module of a query."""
    compilation = compile_source(Source("query.cel", text), Options())
    return compilation.module_text("celc compile query.cel")


def calls_to_compile(text: str) -> int:
    """How many functions are called to compile a query."""
    return calls_of(lambda: compile_module(text))


@pytest.mark.parametrize("name", share(FAMILIES, 12, first=6))
def test_work_grows_with_the_query(name: str, given: list[int]) -> None:
    calls, characters = [], []
    size = SIZES.get(name, SIZE)
    for n in (size, 2 * size):
        given.clear()
        calls.append(calls_to_compile(FAMILIES[name](n)))
        characters.append(sum(given))
    assert calls[1] <= LINEAR * calls[0], calls
    assert characters[1] <= LINEAR * characters[0], characters


@pytest.mark.parametrize("name", QUADRATIC)
def test_work_grows_with_the_square_where_tables_do(name: str) -> None:
    small, large = (calls_to_compile(QUADRATIC[name](n)) for n in (SIZE // 4, SIZE // 2))
    assert large <= SQUARE * small


def test_queries_that_are_alike_are_formatted_once(given: list[int]) -> None:
    compile_module(FAMILIES["queries, alike"](9))
    few = sum(given)
    given.clear()
    compile_module(FAMILIES["queries, alike"](99))
    assert len(given) < 20
    # The text about all queries grows with their number. The code that they share does not.
    assert sum(given) < 6 * few
