"""Reports of Spark DataFrames, which are collected up to a limit."""

from __future__ import annotations

from typing import Any

import pytest
from engines import interpreted
from test_docs import blocks_in

import celc
from celc.interfaces.pages import tables


def test_frames_are_collected(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from places import ROOT

    page = (ROOT / "docs" / "reports.md").read_text("utf-8")
    text = next(block.text for block in blocks_in(page) if block.comment == "file: fire.cel")
    with interpreted():
        query = celc.compile(text)
    rows = [("T", 1, 41.5, 0), ("H", 1, 24.5, 60), ("H", 2, 22.0, 90), ("H", 1, 23.0, 120)]
    named = spark.createDataFrame(rows, "type STRING, id LONG, value DOUBLE, second LONG")
    events = named.selectExpr("type", "id", "value", "timestamp_seconds(second) AS ts")
    found = query.match_table(events.toArrow())
    assert len(found) == 2
    frame = spark.createDataFrame(found.to_pandas(), query.OUTPUT_DDL)
    of_frames = celc.report(frame, events, query=query)
    assert of_frames == celc.report(found, events.toArrow(), query=query)
    monkeypatch.setattr(tables, "MOST_COLLECTED", 3)
    with pytest.raises(tables.TooManyRowsError, match="events is a Spark DataFrame of more than 3"):
        celc.report(frame, events, query=query)
