"""Windows inside a formula: which ones hold for the whole match, and how the others are decided."""

from __future__ import annotations

import pyarrow as pa
import pytest
from celc_runtime import EventError
from celc_runtime.run.ranges import why_not_split
from engines import interpreted, only_query

import celc
from celc.core.traversal import windows_in
from celc.diagnostics.source import Source
from celc.driver.pipeline import Stages, compile_source
from celc.options import Options
from celc.plan.strategy import ByDefinition, Checked

_ATTRIBUTES = "id: INT, ts: TIMESTAMP, n: LONG"
STREAM = f"CREATE STREAM S {{ {', '.join(f'EVENT {t} {{ {_ATTRIBUTES} }}' for t in 'ABC')} }}\n"


def stages(query: str) -> Stages:
    compilation = compile_source(Source("q.cel", f"{STREAM}SELECT * WHERE {query}"), Options())
    return compilation.queries[0]


@pytest.mark.parametrize(
    ("query", "size", "left"),
    [
        ("WITHIN[3 EVENTS](A ; B)", 3, 0),
        ("WITHIN[3 EVENTS](A ; B) WITHIN 2 EVENTS", 2, 0),
        ("WITHIN[2 EVENTS](A ; B) WITHIN 3 EVENTS", 2, 0),
        ("WITHIN[5 [n]](WITHIN[4 [n]](A ; B))", 4, 0),
        ("WITHIN[5 [n]](A ; B) WITHIN 3 EVENTS", 3, 1),
        ("PROJECT[x]((WITHIN[5 [n]](A AS x ; B) FILTER x.id = 1) AS y)", 5, 0),
        ("STRICT(WITHIN[5 [n]](A ; B))", 5, 0),
        ("WITHIN[5 [n]](A ; C) UNLESS B", 5, 0),
        ("WITHIN[5 [n]](A ; B) AND (A ; B)", 5, 0),
        ("WITHIN[5 [n]](NXT(A ; B))", 5, 0),
        ("WITHIN[5 [n]](A ; B) ; C", None, 1),
        ("NXT(WITHIN[5 [n]](A ; B))", None, 1),
        ("WITHIN[5 [n]](A ; B) ALL C", None, 1),
        ("(A ; B) UNLESS WITHIN[5 [n]](C ; C)", None, 1),
        ("WITHIN[5 [n]](A ; B) OR C", None, 1),
        ("(WITHIN[5 [n]](A ; B))+", None, 1),
    ],
)
def test_a_window_of_the_whole_match_is_the_window_of_the_query(
    query: str, size: int | None, left: int
) -> None:
    found = stages(query).query
    assert (None if found.window is None else found.window.size) == size
    assert len(windows_in(found.formula)) == left


@pytest.mark.parametrize(
    ("query", "listing"),
    [
        ("WITHIN[5 [n]](A ; B) ; C", Checked),
        ("(WITHIN[5 [n]](A+) ; B)+", Checked),
        ("A ; WITHIN[5 [n]](A ALL B)", Checked),
        ("A ; WITHIN[5 [n]](NXT(A ; B))", Checked),
        ("(C ; WITHIN[5 [n]](A ; B)) AND (C ; A ; B)", Checked),
        ("A ; !(WITHIN[5 [n]](B ; B)) ; C", Checked),
        ("(A ; !(WITHIN[5 [n]](B ; B)) ; C)+", Checked),
        ("(A ; C) UNLESS WITHIN[5 [n]]((A OR B)+ ; B)", Checked),
        ("A ; !(WITHIN[5 [n]](B{2,3} ; A? ; C)) ; C", Checked),
        ("A ; !(WITHIN[5 [n]](((B AS y ; (A OR C) AS z) FILTER z IS A){2})) ; C", Checked),
        ("A ; !(WITHIN[5 [n]](B : B)) ; C", ByDefinition),
        ("A ; !(WITHIN[5 [n]](B{1001})) ; C", ByDefinition),
        ("NXT(WITHIN[5 [n]](A ; B)) ; C", ByDefinition),
    ],
)
def test_windows_are_checked_while_listing_where_roles_can_say_them(
    query: str, listing: type
) -> None:
    assert isinstance(stages(query).program.listing, listing)


def test_only_a_window_of_the_whole_match_bounds_time_ranges() -> None:
    def reason(query: str) -> str:
        with interpreted():
            matcher = celc.compile(f"{STREAM}SELECT * WHERE {query}", order_by="ts")
        return why_not_split(only_query(matcher).plan)

    assert not reason("WITHIN[5 MINUTES [ts]](A ; B)")
    assert "no window" in reason("WITHIN[5 MINUTES [ts]](A ; B) ; C")


def test_an_attribute_that_cannot_be_measured_ends_the_run() -> None:
    with interpreted():
        query = only_query(celc.compile(f"{STREAM}SELECT * WHERE WITHIN[5 [n]](A ; B) ; C"))
    rows = [{"type": name, "id": 1, "ts": None, "n": n} for n, name in enumerate("ABC")]
    schema = query.INPUT_SCHEMA
    assert len(query.match_table(pa.Table.from_pylist(rows, schema=schema))) == 1
    for value, what in ((None, "is NULL in row 2"), (0, "falls in row 2")):
        rows[2]["n"] = value
        with pytest.raises(EventError, match=f"measured on 'n', which {what}"):
            query.match_table(pa.Table.from_pylist(rows, schema=schema))


def test_a_window_of_time_needs_a_time_as_first_order_column() -> None:
    with interpreted():
        text = f"{STREAM}SELECT * WHERE WITHIN[5 MINUTES](A ; B) ; C"
        matcher = celc.compile(text, order_by="ts")
    with pytest.raises(ValueError, match="window of time"):
        matcher.with_options(order_by="n")
