"""Columns of matches that one kernel looks up are those that are looked up one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.arrow.matches import output, together
from engines import interpreted, only_query

import celc

ROWS = 300

STREAM = """
CREATE STREAM S {
  EVENT A { k: LONG, n: INT, v: DOUBLE, w: LONG, s: STRING, ts: TIMESTAMP },
  EVENT B { k: LONG, n: INT, v: DOUBLE, w: LONG, s: STRING, ts: TIMESTAMP }
}
SELECT a, b[v, s], FIRST(a.w) AS first, b.v AS last, b.n AS n, COUNT(a) AS count FROM S
"""


def query_of(text: str) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(STREAM + text, order_by="ts"))


def table_of() -> pa.Table:
    rng = np.random.default_rng(1)
    gaps = rng.random(ROWS) < 0.2
    table = pa.table(
        {
            "type": rng.choice(["A", "B"], ROWS),
            "k": np.sort(rng.integers(0, 5, ROWS)),
            "n": pa.array(rng.integers(0, 99, ROWS), pa.int32()),
            "v": rng.random(ROWS),
            "w": pa.array(rng.integers(0, 99, ROWS), mask=gaps),
            "s": rng.choice(["x", "y"], ROWS),
            "ts": pa.array(np.arange(ROWS), pa.timestamp("us")),
        }
    )
    return table.slice(7)  # so that no value of a column is at the beginning of its memory


@pytest.mark.parametrize("keys", ["", "PARTITION BY k"])
@pytest.mark.parametrize(
    "formula", ["A AS a ; B AS b", "A+ AS a ; B AS b", "A AS a ; A AS c ; B AS b"]
)
def test_columns_are_those_that_are_looked_up_one_by_one(
    monkeypatch: pytest.MonkeyPatch, formula: str, keys: str
) -> None:
    query, table, made = query_of(f"WHERE {formula} {keys} WITHIN 5 EVENTS"), table_of(), []

    def counted(*given: object) -> dict[tuple[str, int], pa.Array]:
        found = together.looked_up(*given)  # type: ignore[arg-type]
        made.append(len(found))
        return found

    monkeypatch.setattr(output, "looked_up", counted)
    monkeypatch.setattr(together, "is_due", lambda kernel, seconds: True)
    batches = table.to_batches(max_chunksize=90)
    for read in (query.match_table, lambda _: pa.Table.from_batches(query.match_arrow(batches))):
        monkeypatch.setattr(output, "LEAST_MATCHES", 1 << 30)
        one_by_one = read(table)
        assert not made
        assert len(one_by_one) > 100
        monkeypatch.setattr(output, "LEAST_MATCHES", 0)
        found = read(table)
        assert max(made) >= 5
        assert found.equals(one_by_one)
        found.validate(full=True)
        made.clear()
