"""Absences of OR: each operand is looked for in its own way, so that their cost is that of each."""

from __future__ import annotations

import pyarrow as pa
import pytest
from counting import lines_of
from engines import interpreted, only_query

import celc
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options
from celc.plan.strategy import ByDefinition

_DECLARATION = (
    "CREATE STREAM S { EVENT A { k: LONG, ts: LONG }, EVENT B { k: LONG, ts: LONG }, "
    "EVENT C { k: LONG, ts: LONG } }\n"
)
_FIRST, _SECOND = "(A AS m FILTER m.k = a.k)", "(B AS n FILTER n.k = a.k)"
_EITHER = f"{_FIRST} OR {_SECOND}"


@pytest.mark.parametrize(
    "formula",
    [
        f"A AS a ; !({_EITHER}) ; C",
        f"(A AS a ; C) UNLESS ((C AS m FILTER m.k < a.k) OR {_SECOND})",
        f"!({_EITHER}) FOR 5 [ts] ; A AS a ; C",
        f"A AS a ; C ; !({_EITHER}) FOR 5 [ts]",
        f"A AS a ; !({_EITHER} OR B) ; C",
        "A AS a ; !((A AS m OR B AS n) FILTER m.k = a.k AND n.k < a.k) ; C",
        f"A AS a ; !({_FIRST} OR (B AS n ; C AS p FILTER n.k = p.k)) ; C",
        f"A AS a ; !({_SECOND} AS w) ; C",
        f"A AS a ; !(PROJECT[n]({_SECOND})) ; C",
        f"A AS a ; !({_SECOND}[n -> w]) ; C",
        f"A AS a ; !({_SECOND}+) ; C",
        f"A AS a ; !(WITHIN[5 [ts]]({_EITHER})) ; C",
    ],
)
def test_code_is_written_for_them(formula: str) -> None:
    source = Source("query.cel", f"{_DECLARATION}SELECT * WHERE {formula}")
    (stages,) = compile_source(source, Options(("ts",))).queries
    assert not isinstance(stages.program.listing, ByDefinition)


def _lines(formula: str, count: int) -> int:
    """The lines that decide whole matches, of many keys with a match each."""
    with interpreted():
        query = only_query(celc.compile(f"{_DECLARATION}SELECT LAST * WHERE {formula}"))
    events = pa.table(
        {
            "type": ["ABC"[number % 3] for number in range(count)],
            "k": pa.array([number + number % 3 for number in range(count)], pa.int64()),
            "ts": pa.array(range(count), pa.int64()),
        }
    )
    found = query.match_table(events)
    assert len(found)
    return lines_of(lambda: query.match_table(events), "completes_1")


def test_they_cost_what_each_costs() -> None:
    """The growth is that of one absence of both types, which is looked for by the same key."""
    formula = "A AS a ; !({}) ; C AS c FILTER c.k = a.k + 4"
    alike = "(A OR B) AS m FILTER m.k = a.k"
    many = [_lines(formula.format(absent), 240) for absent in (_EITHER, alike)]
    few = [_lines(formula.format(absent), 120) for absent in (_EITHER, alike)]
    assert 0 < many[0] <= 3 * many[1], (many, few)
    assert many[0] * few[1] <= 1.1 * many[1] * few[0], (many, few)
