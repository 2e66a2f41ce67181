"""The examples on their full data: the compiler's answers against ones found without it.

What is expected is computed here in pandas and NumPy straight from the text of the queries, and
not with any part of celc, so that a mistake that the compiler and its reference share would show.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from places import ROOT

EXAMPLES = ROOT / "examples"

# Partition, start and end: what names a match of these queries, but for how it is divided.
Place = tuple[str, int, int]


class Example(NamedTuple):
    query: str
    key: str
    order_by: str
    tiebreak: str


WEATHER = Example("weather", "airport", "ts", "seq")
FLIGHTS = Example("flights", "tailnum", "sched_dep", "carrier,flight,file_row")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    load_file(EXAMPLES / "data.py").make_data(folder)
    return folder


@pytest.fixture(scope="module")
def expected(data: Path) -> dict[str, list[Place]]:
    return {
        "weather": expected_heat(pd.read_parquet(data / "weather.parquet")),
        "flights": expected_bad_days(pd.read_parquet(data / "flights.parquet")),
    }


def expected_heat(events: pd.DataFrame) -> list[Place]:
    parts = events.sort_values(["ts", "seq"]).groupby("airport")
    return sorted(
        (str(airport), start, end) for airport, part in parts for start, end in heat_in(part)
    )


def heat_in(part: pd.DataFrame) -> Iterator[tuple[int, int]]:
    """Once for each way to divide the time between a start and an end into warm and drying."""
    hot, warm, dry = (
        ((part["type"] == kind) & condition).to_numpy()
        for kind, condition in (
            ("T", part["value"] > 92),
            ("T", part["value"] > 85),
            ("H", part["value"] < 33),
        )
    )
    humidity = (part["type"] == "H").to_numpy()
    time = part["ts"].to_numpy()
    for start in np.flatnonzero(hot).tolist():
        too_late = int(np.searchsorted(time, time[start] + np.timedelta64(3, "h"), side="right"))
        last = start + 1  # of the warm hours so far: the humidity of the hot hour before the first
        while last + 2 < too_late and humidity[last] and warm[last + 1] and humidity[last + 2]:
            last += 2
            for end in range(last + 1, too_late):
                if dry[end]:
                    yield start, end


def expected_bad_days(events: pd.DataFrame) -> list[Place]:
    ordered = events.sort_values(["tailnum", "sched_dep", "carrier", "flight", "file_row"])
    aircraft = ordered.groupby("tailnum")
    day = pd.Timedelta(days=1)
    late = ordered["dep_delay"] > 60
    start = (
        late
        & (aircraft["dep_delay"].shift(-1) > 60)
        & (aircraft["dep_delay"].shift(-2) > 60)
        & (aircraft["sched_dep"].shift(-2) - ordered["sched_dep"] <= day)
    )
    places = zip(ordered["tailnum"][start], aircraft.cumcount()[start], strict=True)
    return sorted((tail, position, position + 2) for tail, position in places)


def test_examples_find_a_readable_number_of_matches(expected: dict[str, list[Place]]) -> None:
    assert {query: len(places) for query, places in expected.items()} == {
        "weather": 16,
        "flights": 285,
    }


@pytest.mark.each(2)
@pytest.mark.parametrize("example", [WEATHER, FLIGHTS], ids=lambda example: example.query)
def test_one_machine(example: Example, data: Path, expected: dict[str, list[Place]]) -> None:
    query = EXAMPLES / f"{example.query}.cel"
    lines = celc("run", query, data / f"{example.query}.parquet", *order(example), *JSON)
    rows = [json.loads(line) for line in lines.splitlines()]
    found = [(row["partition"][example.key], row["start"], row["end"]) for row in rows]
    assert sorted(found) == expected[example.query]


@pytest.mark.each(2)
@pytest.mark.usefixtures("compiling_workers")
@pytest.mark.parametrize("example", [WEATHER, FLIGHTS], ids=lambda example: example.query)
def test_spark(
    example: Example, data: Path, expected: dict[str, list[Place]], tmp_path: Path, spark: Any
) -> None:
    module = tmp_path / f"{example.query}_udf.py"
    query = EXAMPLES / f"{example.query}.cel"
    celc("compile", query, "-o", module, "--positions", *order(example))
    events = spark.read.parquet(str(data / f"{example.query}.parquet"))
    matches = events.transform(load_file(module).match)
    rows = matches.select(example.key, "start_pos", "end_pos").collect()
    assert sorted(tuple(row) for row in rows) == expected[example.query]


JSON = ("--format", "json")


def order(example: Example) -> tuple[str, ...]:
    return "--order-by", example.order_by, "--tiebreak", example.tiebreak


def celc(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "celc", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
