"""What the Python interface says to values that it does not take: words of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from celc_runtime import EventError
from engines import interpreted

import celc

TEXT = """CREATE STREAM S { EVENT A { v: LONG, ts: TIMESTAMP }, EVENT B { v: LONG, ts: TIMESTAMP } }
QUERY q: SELECT * FROM S WHERE A ; B WITHIN 1 HOUR [ts]
"""
TIMES = pd.to_datetime(["2026-07-01 00:00", "2026-07-01 00:10"]).astype("datetime64[us]")
FRAME = pd.DataFrame({"type": ["A", "B"], "v": [1, 2], "ts": TIMES})
TABLE = pa.Table.from_pandas(FRAME)


@pytest.fixture(scope="module")
def query() -> celc.Matcher:
    with interpreted():
        return celc.compile(TEXT)


MISTAKES: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "match of pandas": (lambda q: q.match(FRAME), TypeError, r"pandas.DataFrame: match_table\(…\)"),
    "match of Arrow": (lambda q: q.match(TABLE), TypeError, r"pyarrow.Table: match_table\(…\)"),
    "match of a path": (lambda q: q.match("a.parquet"), TypeError, r"is str: match_table\(…\)"),
    "match of nothing": (lambda q: q.match(None), TypeError, "takes a DataFrame of Spark"),
    "match_stream of pandas": (
        lambda q: q.match_stream(FRAME),
        TypeError,
        "match_stream takes a DataFrame of Spark, and this is pandas.DataFrame",
    ),
    "match_all of pandas": (lambda q: q.match_all(FRAME), TypeError, r"match_all_table\(…\)"),
    "plan of pandas": (
        lambda q: q.explain_plan(FRAME),
        TypeError,
        "explain_plan takes a DataFrame",
    ),
    "register nowhere": (lambda q: q.register(None), TypeError, "register takes a SparkSession"),
    "rows of Python": (lambda q: q.match_table([{"type": "A"}]), TypeError, "from_pylist"),
    "CSV by its path": (lambda q: q.match_table("a.csv"), TypeError, "read other files first"),
    "no column of types": (
        lambda q: q.match_table(FRAME.rename(columns={"type": "kind"})),
        EventError,
        r"'type', which is missing; .* with_options\(type_column=…\)",
    ),
    "no attribute": (
        lambda q: q.match_table(FRAME.drop(columns="v")),
        EventError,
        r"'v', which is missing; .*\(add it, or rename the column",
    ),
    "another parameter": (
        lambda q: q.match_table(FRAME, rule=FRAME),
        TypeError,
        "takes no argument 'rule'",
    ),
    "no query of the name": (lambda q: q.fire, AttributeError, "has no 'fire'"),
    "order that nobody has": (
        lambda q: q.with_options(order_by="tz"),
        ValueError,
        "cannot be ordered by 'tz'",
    ),
    "text that is none": (
        lambda _: celc.compile(None),
        TypeError,
        "is a str, and this is NoneType",
    ),
    "text in bytes": (lambda _: celc.check(TEXT.encode()), TypeError, "a str, and this is bytes"),
    "name of a file": (
        lambda _: celc.compile("rules/fire.cel"),
        ValueError,
        r"celc.compile_files\('rules/fire.cel'\)",
    ),
    "option of no file": (
        lambda _: celc.compile_files("fire.cel", orderby="ts"),
        TypeError,
        "compile_files takes no argument 'orderby'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_it_is_said_in_words(query: celc.Matcher, name: str) -> None:
    call, kind, words = MISTAKES[name]
    with interpreted(), pytest.raises(kind, match=words):
        call(query)


def test_what_check_finds_is_shown_as_people_read_it() -> None:
    found = celc.check(TEXT.replace("A ; B", "A ; C"))
    assert [one.code for one in found] == ["unknown-event-type"]
    assert repr(found).startswith("query.cel:2:36: error[unknown-event-type]: ")
    assert repr(found).endswith(" ^\nhelp: event types here: 'A', 'B'")
    assert repr(celc.check(TEXT)) == "fine: no errors and no warnings"
