"""Made-up events, over which queries are run before there are any."""

from __future__ import annotations

import math
from contextlib import nullcontext

import pyarrow as pa
import pytest
from celc_runtime import EventError
from celc_runtime.chain import warming
from celc_runtime.jit import kernels

import celc

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, f: FLOAT, name: STRING, day: DATE, at: TIMESTAMP, b: BOOLEAN },
  EVENT B { id: INT, v: DOUBLE, f: FLOAT, name: STRING, day: DATE, at: TIMESTAMP, b: BOOLEAN }
}
"""
_QUERIES = {
    "types": "SELECT x FROM S WHERE A AS x ; B AS y FILTER x.v > 941.5 AND y.name = 'it''s' "
    "AND x.b = TRUE AND y.id = -7 WITHIN 2 MINUTES [at]",
    "keys": "SELECT * FROM S WHERE A AS x ; B AS y FILTER x.f < y.f PARTITION BY id "
    "WITHIN 9 MINUTES [at]",
    "rules": "SELECT x FROM S FOR EACH rule WHERE A AS x ; B AS y "
    "FILTER x.name = rule.name AND y.v > rule.most WITHIN 5 MINUTES [at]",
    "chain": "SELECT * FROM pairs, S WHERE pairs ; A WITHIN 5 MINUTES [at]",
}
_BEFORE = {
    "rules": "PARAMETERS rule { name: STRING, most: DOUBLE }\n",
    "chain": "QUERY pairs: SELECT x[id] FROM S WHERE A AS x ; B AS y WITHIN 9 MINUTES [at]\n",
}
_ROWS = """SELECT * FROM t MATCH_RECOGNIZE (
  ORDER BY at MEASURES FIRST(A.v) AS v PATTERN (A B) DEFINE A AS A.v > 941, B AS B.v < A.v)
"""


@pytest.mark.each(2)
@pytest.mark.parametrize("kind", [*_QUERIES, "rows"])
def test_made_up_events_match(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mostly in Python: the machine code would take minutes."""
    found = []

    def noted(matches: pa.Table) -> pa.Table:
        found.append(len(matches))
        return matches

    if kind == "rows":
        columns = {"at": "TIMESTAMP", "v": "DOUBLE"}
        query = celc.compile(_ROWS, dialect="match_recognize", schema=columns).queries["query"]
    else:
        text = f"{_DECLARED}{_BEFORE.get(kind, '')}QUERY q: {_QUERIES[kind]}"
        query = celc.compile(text, order_by="at").queries["q"]
    match = type(query).match_table
    monkeypatch.setattr(type(query), "match_table", lambda *a, **k: noted(match(*a, **k)))
    monkeypatch.setattr(warming, "compiling", nullcontext)
    monkeypatch.setattr(kernels, "MOST_ROWS", 1 << 13)
    monkeypatch.setattr(kernels, "PATIENCE", math.inf)
    warming.make_machine_code(query)
    assert len(found) == 4
    assert any(found)


def test_an_error_about_made_up_events_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    query = celc.compile(f"{_DECLARED}QUERY q: {_QUERIES['keys']}", order_by="at").queries["q"]

    def fails(*_: object, **__: object) -> None:
        raise EventError("not these")

    monkeypatch.setattr(type(query), "match_table", fails)
    assert warming.make_machine_code(query) == []
