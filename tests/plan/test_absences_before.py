"""Absences before a match: how they are decided, and how far before a match events matter."""

from __future__ import annotations

import pytest
from celc_runtime.run.ranges import why_not_split
from engines import interpreted, only_query

import celc
from celc.diagnostics.source import Source
from celc.driver.pipeline import Stages, compile_source
from celc.options import Options
from celc.plan.reaches import reaches_of
from celc.plan.strategy import ByDefinition, Checked

_ATTRIBUTES = "id: INT, ts: TIMESTAMP, n: LONG, d: DOUBLE"
STREAM = f"CREATE STREAM S {{ {', '.join(f'EVENT {t} {{ {_ATTRIBUTES} }}' for t in 'ABC')} }}\n"


def stages(query: str) -> Stages:
    compilation = compile_source(Source("q.cel", f"{STREAM}SELECT * WHERE {query}"), Options())
    return compilation.queries[0]


@pytest.mark.parametrize(
    ("query", "hops"),
    [
        ("!B FOR 3 EVENTS ; A", [(3,)]),
        ("A ; (!B FOR 3 EVENTS ; C)", [(3,)]),
        ("!B FOR 3 EVENTS ; (!C FOR 5 EVENTS ; A)", [(3,), (5,)]),
        ("!(!C FOR 5 EVENTS ; B) FOR 3 EVENTS ; A", [(3, 5)]),
        ("A ; !(!C FOR 5 EVENTS ; B) ; C", [(5,)]),
        ("(A ; C) UNLESS (!C FOR 5 EVENTS ; B)", [(5,)]),
        ("WITHIN[4 EVENTS](A ; B) ; C", []),
    ],
)
def test_events_that_matter_are_found_in_hops(query: str, hops: list[tuple[int, ...]]) -> None:
    found = reaches_of(stages(query).query.formula)
    assert [tuple(window.size for window in one) for one in found] == hops


@pytest.mark.parametrize(
    ("query", "listing"),
    [
        ("!B FOR 3 EVENTS ; A", Checked),
        ("!(B ; (A OR C)+) FOR 3 EVENTS ; A ; C", Checked),
        ("!(WITHIN[2 EVENTS](B ; C)) FOR 3 EVENTS ; A", Checked),
        ("(!B FOR 3 EVENTS ; A)+ ; C", Checked),
        ("(!B FOR 3 EVENTS ; A ; C) AND (A ; C)", Checked),
        ("!(B AS b FILTER b.id = x.id) FOR 3 EVENTS ; A AS x", Checked),
        ("!B FOR 3 EVENTS ; A CONSUME BY ANY", ByDefinition),
        ("!(B : C) FOR 3 EVENTS ; A", ByDefinition),
        ("(!(B AS b FILTER b.id = x.id) FOR 3 EVENTS ; A AS x)+", ByDefinition),
        ("!((B AS b ; C) FILTER b.id = x.id) FOR 3 EVENTS ; A AS x", ByDefinition),
        ("NXT(!B FOR 3 EVENTS ; A ; C)", ByDefinition),
    ],
)
def test_how_they_are_decided(query: str, listing: type) -> None:
    assert type(stages(query).program.listing) is listing


@pytest.mark.parametrize(
    ("query", "size"),
    [
        ("!B FOR 3 EVENTS ; A ; C WITHIN 4 EVENTS", 7),
        ("!B FOR 3 SECONDS [ts] ; A ; C WITHIN 4 SECONDS [ts]", 7_000_000),
        ("!(!C FOR 5 [n] ; B) FOR 3 [n] ; A ; C WITHIN 4 [n]", 12),
        ("!B FOR 3 EVENTS ; A ; C WITHIN 4 SECONDS [ts]", None),
        ("!B FOR 3 [n] ; A ; C WITHIN 4 SECONDS [ts]", None),
        ("!B FOR 3 [d] ; A ; C WITHIN 4 [d]", None),
        ("!B FOR 3 EVENTS ; A ; C", None),
    ],
)
def test_the_window_with_what_lies_before_it(query: str, size: int | None) -> None:
    with interpreted():
        plan = only_query(celc.compile(f"{STREAM}SELECT * WHERE {query}")).plan
    assert (None if plan.whole_window is None else plan.whole_window.size) == size
    assert bool(why_not_split(plan)) == (size is None)
