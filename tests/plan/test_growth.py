"""How the time grows by definition, in words, against the steps that a run takes."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from celc_runtime.engine.definition.open_questions import Budget
from engines import interpreted, only_query

import celc

_DECLARATION = "CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT }, EVENT C { v: INT } }\n"


def _steps(text: str, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The steps of a run over so many events, of which each can be in many matches."""
    taken = 0

    def spend(_budget: Budget, steps: int = Budget.STEP) -> None:
        nonlocal taken
        taken += steps

    monkeypatch.setattr(Budget, "spend", spend)
    with interpreted(), pytest.warns(celc.CelWarning, match="definition of the formula"):
        query = only_query(celc.compile(_DECLARATION + text, at_end="closed"))
    events = pa.table(
        {
            "type": ["ABC"[number % 3] for number in range(count)],
            "v": pa.array(range(count, 0, -1), pa.int32()),
        }
    )
    query.match_table(events)
    return taken


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("A AS a ; !((B AS b FILTER b.v < a.v) : C) ; C", "the 4th power of"),
        ("A AS a ; !((B AS b FILTER b.v > a.v) OR (C AS c ; A FILTER c.v > a.v)) ; C", "4th"),
        ("NXT(A AS a ; B AS b FILTER a.v > b.v) ; C", "the cube of"),
        ("NXT(A AS a : B AS b FILTER a.v > b.v)", "the square of"),
        ("A AS a ; !(B AS b : C FILTER b.v > a.v) FOR 5 EVENTS", "the cube of"),
    ],
)
def test_steps_grow_as_the_warning_says(
    formula: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may grow less: at most one event more is a factor for each event of the formula."""
    text = f"SELECT * WHERE {formula}"
    (told,) = (
        one.message for one in celc.check(_DECLARATION + text) if one.code == "by-definition"
    )
    assert words in told, told
    power = {"the square of": 2, "the cube of": 3}.get(words, 4)
    few, many = (_steps(text, count, monkeypatch) for count in (24, 48))
    assert few > 0
    assert math.log2(many / few) <= power + 0.3, (few, many)


def test_rounds_can_double_the_time_with_each_event() -> None:
    text = "SELECT * WHERE (A AS a ; !(B AS b FILTER b.v < a.v) ; C)+ WITHIN 9 EVENTS"
    (told,) = (
        one.message for one in celc.check(_DECLARATION + text) if one.code == "by-definition"
    )
    assert told.endswith("the time can double with each event in a window")
