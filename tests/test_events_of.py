"""`celc.events_of`: the events of matches, on one machine."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError
from engines import interpreted

import celc

QUERY = """\
CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, n: LONG, ts: TIMESTAMP },
  EVENT H { id: LONG, value: DOUBLE, n: LONG, ts: TIMESTAMP }
}
SELECT hot[value, n], dry[value, n] FROM Farm
WHERE (T AS hot ; H+ AS dry) FILTER hot.value > 40 PARTITION BY id WITHIN 3 MINUTES [ts]
"""


def compiled(text: str = QUERY) -> Any:
    with interpreted():
        return celc.compile(text).with_options(match_id=True)


def rows_of(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    start = datetime(2026, 7, 1)
    return [
        {
            "type": draw.choice("TH"),
            "id": draw.choice([1, 2, None]),
            "value": draw.choice([41.0, 42.5, math.nan, None, 0.0]),
            "n": number,
            "ts": start + timedelta(minutes=number),
            "note": f"row {number}",
        }
        for number in range(20)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_each_event_of_each_match_is_one_row(seed: int) -> None:
    rows, query = rows_of(seed), compiled()
    table = pa.Table.from_pylist(rows)
    matches = query.match_table(table)
    expected = [
        (match["match_id"], label, event["n"], f"row {event['n']}")
        for match in matches.to_pylist()
        for label in ("hot", "dry")
        for event in match[label]
    ]
    found = celc.events_of(matches, table)
    assert found.column_names == ["match_id", "label", *table.column_names]
    names = ("match_id", "label", "n", "note")
    assert [tuple(row[name] for name in names) for row in found.to_pylist()] == expected
    frame = celc.events_of(matches.to_pandas(), table.to_pandas())
    assert [tuple(row) for row in frame[list(names)].itertuples(index=False)] == expected


def test_tables_of_duckdb_give_a_table() -> None:
    duckdb = pytest.importorskip("duckdb")
    table = pa.Table.from_pylist(rows_of(1))
    matches = compiled().match_table(table)
    found = celc.events_of(duckdb.from_arrow(matches), duckdb.from_arrow(table))
    names = ["match_id", "label", "n"]
    assert found.select(names).equals(celc.events_of(matches, table).select(names))


def test_what_cannot_be_told_apart_is_an_error() -> None:
    table, query = pa.Table.from_pylist(rows_of(1)), compiled()
    matches = query.match_table(table)
    with pytest.raises(EventError, match="can be several rows of the events, which are equal in"):
        celc.events_of(matches, pa.concat_tables([table, table]))
    with pytest.raises(EventError, match=r"is in no row of the events, by value, n, id"):
        celc.events_of(matches, table.slice(19))
    with pytest.raises(ValueError, match="no column match_id: find them with"):
        celc.events_of(matches.drop_columns(["match_id"]), table)
    with pytest.raises(ValueError, match="rename it"):
        celc.events_of(matches, table.append_column("label", table["note"]))
    flat = compiled(QUERY.replace("SELECT hot[value, n], dry[value, n]", "SELECT FLAT hot[n]"))
    with pytest.raises(ValueError, match=r"select labels, .* leave FLAT out"):
        celc.events_of(flat.match_table(table), table)
    derived = QUERY.replace("ts: TIMESTAMP }", "ts: TIMESTAMP, late: LONG = n + 1 }")
    only = compiled(derived.replace("hot[value, n], dry[value, n]", "hot[late]"))
    with pytest.raises(ValueError, match=r"'hot' keeps no attribute that is a column"):
        celc.events_of(only.match_table(table), table)


def test_no_match_has_no_events() -> None:
    table = pa.Table.from_pylist(rows_of(1))
    matches = compiled().match_table(table)
    found = celc.events_of(matches.slice(0, 0), table)
    assert (found.num_rows, found.column_names[:2]) == (0, ["match_id", "label"])
