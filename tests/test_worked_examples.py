"""The worked examples: each query has exactly the answer that stands beside it.

A folder of examples/worked has its events in events.csv, and for each query `name.cel` the rows of
its answer in `name.jsonl`, as `celc run --format json` prints them. Of a file of several queries
the answer is that of the one called `name`. The answers were compared with
what the papers say, and worked out by hand where they say nothing. The reference and the compiled
query are both held against them, line by line; only the order of rows that end together is open.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import interpreted
from places import ROOT
from reference import as_expected, evaluate, parse
from reference.names import Schema
from reference.values import Kind

from celc import check
from celc.interfaces.cli import main

Row = dict[str, Any]

FOLDER = ROOT / "examples" / "worked"
QUERIES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/*.cel"))

# --- the answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
def test_reference(name: str) -> None:
    text = query_file(name).read_text(encoding="utf-8")
    query = Path(name).name
    asked = query if "\nQUERY " in text else None
    order = re.search(r"(\w+): PRIMARY_TIME", text)  # which is no more than a type to the reference
    matches = evaluate(
        text, events_of(name, text), query=asked, order_by=None if order is None else order[1]
    )
    found = [as_expected(match) for match in matches]
    lines = [json.dumps({"query": query, **row, "values": row.get("values", {})}) for row in found]
    assert sorted(lines) == sorted(lines_of(name))


@pytest.mark.each(2)
@pytest.mark.parametrize("name", QUERIES)
def test_compiled(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    query = query_file(name)
    arguments = [str(query), str(query.parent / "events.csv"), "--query", query.stem]
    capfd.readouterr()
    with interpreted():
        status = main(["run", *arguments, "--format", "json"])
    lines = capfd.readouterr().out.splitlines()
    assert status == 0
    assert sorted(lines) == sorted(lines_of(name))
    for ends in ends_by_part(map(json.loads, lines)):
        assert ends == sorted(ends)


def test_each_file_belongs_to_a_query() -> None:
    files = {str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*")}
    events = {f"{Path(name).parent}/events.csv" for name in QUERIES}
    assert files == events | {f"{name}.{kind}" for name in QUERIES for kind in ("cel", "jsonl")}


@pytest.mark.parametrize("name", QUERIES)
def test_warnings_are_explained_in_the_query(name: str) -> None:
    text = query_file(name).read_text(encoding="utf-8")
    warned = any(found.severity == "warning" for found in check(text))
    assert warned == ("celc warns" in text)


# --- what the page says about answers -------------------------------------------------------------


def test_partition_by_and_correlation_find_the_same_departures() -> None:
    """Positions of a part are turned into rows of the table, which are what the matches share."""
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    for number, event in enumerate(table_of("late")):
        rows_of[event["tailnum"]].append(number)

    def departures(row: Row) -> list[int]:
        positions = [position for label in row["labels"].values() for position in label]
        tail = row["partition"].get("tailnum")
        return [rows_of[tail][position] for position in positions] if tail else positions

    found = [
        sorted((departures(row), row["values"]) for row in answer_of(f"late/{name}"))
        for name in ("partitioned", "correlated")
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_departures_are_those_of_the_year(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from data import flight_events  # type: ignore[import-not-found,unused-ignore]

    year = flight_events().to_pandas().sort_values(["sched_dep", "carrier", "flight", "file_row"])
    chosen = year["tailnum"].isin(["N18120", "N13975", "N18557"])
    chosen &= year["sched_dep"] < "2013-01-04"
    real = [
        {
            "tailnum": event.tailnum,
            "carrier": event.carrier,
            "flight": str(event.flight),
            "origin": event.origin,
            "dest": event.dest,
            "dep_delay": "" if math.isnan(event.dep_delay) else str(int(event.dep_delay)),
            "sched_dep": f"{event.sched_dep:%Y-%m-%d %H:%M:%S}",
        }
        for event in year[chosen].itertuples()
    ]
    assert table_of("late") == real


def test_both_options_of_query_6_have_the_same_rows() -> None:
    first, second = (answer_of(f"load/query_6_option_{option}") for option in (1, 2))
    for row in first + second:
        del row["query"]
    assert sorted(map(json.dumps, first)) == sorted(map(json.dumps, second))
    assert len(first) == 27


# --- files ----------------------------------------------------------------------------------------


def query_file(name: str) -> Path:
    return FOLDER / f"{name}.cel"


def lines_of(name: str) -> list[str]:
    return (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()


def answer_of(name: str) -> list[Row]:
    return [json.loads(line) for line in lines_of(name)]


def table_of(folder: str) -> list[dict[str, str]]:
    with (FOLDER / folder / "events.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def events_of(name: str, text: str) -> list[Row]:
    """The events as the reference reads them: values of the declared types, None where empty."""
    kinds = Schema(parse(text), None).kinds
    return [
        {
            column: READERS[kinds[column]](value) if column in kinds else value
            for column, value in event.items()
            if value
        }
        for event in table_of(str(Path(name).parent))
    ]


READERS: dict[Kind, Callable[[str], Any]] = {
    Kind.INT: int,
    Kind.LONG: int,
    Kind.DOUBLE: float,
    Kind.STRING: str,
    Kind.TIMESTAMP: dt.datetime.fromisoformat,
}


def ends_by_part(rows: Iterable[Row]) -> Iterator[list[int]]:
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        ends[json.dumps(row["partition"])].append(row["end"])
    yield from ends.values()
