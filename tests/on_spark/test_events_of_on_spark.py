"""`celc.events_of` of DataFrames, with the rows of one machine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from test_events_of import compiled, rows_of

import celc


def test_the_events_of_matches_are_those_of_one_machine(spark: SparkSession) -> None:
    query = compiled()
    rows = [row for row in rows_of(3) if row["value"] == row["value"]]
    events = spark.createDataFrame(
        rows, "type STRING, id BIGINT, value DOUBLE, n BIGINT, ts TIMESTAMP, note STRING"
    )
    table = pa.Table.from_pylist(rows)
    expected = celc.events_of(query.match_table(table), table)
    found = celc.events_of(events.transform(query.match), events)
    assert found.columns == ["match_id", "label", *events.columns]
    assert _rows(found.toArrow()) == _rows(expected)
    twice = celc.events_of(events.transform(query.match), events.unionAll(events))
    with pytest.raises(Exception, match="can be several rows of the events"):
        twice.collect()


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    names = ("match_id", "label", "n", "note")
    return sorted(tuple(row[name] for name in names) for row in table.to_pylist())
