"""Whole statements in editors: the clause is ours, and the text around it stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sql_statements import statements

import celc
from celc.diagnostics.errors import CelError
from celc.editor.languages import ROW_PATTERNS
from celc.interfaces.cli import main

_TEXT = """-- as it is
with dear as (select * from ticker where price > :least)
select m.symbol,   count(*) as n
  from dear match_recognize (partition by symbol order by ts measures last(price) as p, 'two
lines' as t /* a
 comment */ pattern (a b+?) define b as price > prev(price) and symbol <> ? and price<$k) as m
join (select * from ticker match_recognize (order by ts measures count(*) as n pattern (a))) as z
group by m.symbol
"""
_WANTED = """-- as it is
with dear as (select * from ticker where price > :least)
select m.symbol,   count(*) as n
  from dear MATCH_RECOGNIZE (
    PARTITION BY symbol
    ORDER BY ts
    MEASURES last(price) AS p, 'two
lines' AS t /* a
 comment */
    PATTERN (a b+?)
    DEFINE
      b AS price > prev(price)
      AND symbol <> ?
      AND price < $k
  ) as m
join (select * from ticker MATCH_RECOGNIZE (
  ORDER BY ts
  MEASURES count(*) AS n
  PATTERN (a)
)) as z
group by m.symbol
"""


def _formatted(text: str) -> str:
    return celc.format_text(text, dialect="match_recognize")


def test_the_text_around_stays() -> None:
    assert _formatted(_TEXT) == _WANTED
    assert _formatted(_WANTED) == _WANTED


@pytest.mark.parametrize("statement", [*statements()][::4], ids=str)
def test_a_second_run_changes_nothing(statement: Any) -> None:
    once = _formatted(statement.text)
    assert _formatted(once) == once


def test_errors_have_places_in_the_statement() -> None:
    text = _TEXT.replace("prev(price)", "> price")
    with pytest.raises(CelError) as caught:
        _formatted(text)
    (problem,) = caught.value.diagnostics
    assert problem.span.start == text.index("> price")


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    path.write_text(_TEXT)
    assert main(["fmt", "--check", str(path)]) != 0
    assert main(["fmt", str(path)]) == 0
    assert path.read_text() == _WANTED


@pytest.mark.parametrize(
    ("word", "told"),
    [("prev", "PREV(v.x)"), ("b+?", "variable `b`"), ("define", "conditions"), ("group", None)],
)
def test_hover(word: str, told: str | None) -> None:
    found = ROW_PATTERNS.hover(_TEXT, _TEXT.index(word))
    if told is None:
        assert found is None
        return
    assert found is not None
    assert told in found.text
    assert _TEXT[found.span.start : found.span.end] in word
