"""Three more streams from packages, larger or of another kind: `make demo ARGS=--more`.

storms     3,000,000 departures in the United States, January to June 2001, of the Bureau of
           Transportation Statistics: flights-3m.parquet of npm's `vega-datasets` 3
shop       3,602 of 31,106 clicks of an online shop, those from the cart to the purchase; they were
           made up with faults to find, in pip's `retentioneering` 5 (Apache 2.0)
glucose    13,866 readings of five people's sensors, from the tests of pip's `iglu-python` 0.4
           (GPL 2)

The packages are downloaded into build/data/more once, and only their files are read. npm and pip
are called by their names, so both have to be there. Answers and reports go to build/demo.
"""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

MICROSECONDS = pa.timestamp("us")
UTC = pa.timestamp("us", tz="UTC")

SHOP_TYPES = ("shipping_details", "add_to_cart", "payment_details", "payment_error", "purchase")


class Stream(NamedTuple):
    """A stream of events: what downloads and makes it, and the queries over it with the column that
    tells which of their rows are most worth a look."""

    name: str
    make: Callable[[Path], pa.Table]
    queries: dict[str, str]
    options: tuple[str, ...] = ()


def _downloaded(folder: Path, pattern: str, command: list[str]) -> Path:
    """The package in `folder`, which `command` downloads if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.glob(pattern)):
        if shutil.which(command[0]) is None:
            sys.exit(f"{command[0]} is needed to download {pattern}, and is not installed")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or not any(folder.glob(pattern)):
            sys.exit(f"{' '.join(command)} did not work:\n{done.stderr.strip()}")
    return next(iter(sorted(folder.glob(pattern))))


def _pip(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *arguments]


def _numbered(table: pa.Table) -> pa.Table:
    """The table with the numbers of its rows, which tell events of one time apart."""
    return table.append_column("row", pa.array(np.arange(len(table))))


def flights(folder: Path) -> pa.Table:
    """Departures, in the order of time: `origin`, `destination`, `delay` in minutes, `distance` in
    miles. Times are those of the airports' clocks, labelled UTC."""
    package = _downloaded(
        folder, "vega-datasets-3*.tgz", ["npm", "pack", "--silent", "vega-datasets@3"]
    )
    with tarfile.open(package) as archive:
        file = archive.extractfile("package/data/flights-3m.parquet")
        assert file is not None
        rows = pa.parquet.read_table(io.BytesIO(file.read()))
    columns = {
        "type": pa.array(["Departure"]).take(pa.array(np.zeros(len(rows), np.int64))),
        "at": rows["date"].cast(MICROSECONDS).cast(UTC),
        "origin": rows["origin"].cast(pa.string()),
        "destination": rows["destination"].cast(pa.string()),
        "delay": rows["delay"].cast(pa.int32()),
        "distance": rows["distance"].cast(pa.int32()),
    }
    order = [(name, "ascending") for name in ("at", "origin", "destination", "distance", "delay")]
    return _numbered(pa.table(columns).sort_by(order))


def shop(folder: Path) -> pa.Table:
    """Clicks on the way from the cart to the purchase, by `session_id`."""
    package = _downloaded(folder, "retentioneering-5*.whl", _pip("retentioneering>=5,<6"))
    with zipfile.ZipFile(package) as archive:
        text = gzip.decompress(archive.read("retentioneering/datasets/ecom.csv.gz"))
    rows = pa.csv.read_csv(io.BytesIO(text))
    rows = rows.filter(pc.is_in(rows["event"], pa.array(SHOP_TYPES)))
    columns = {
        "type": rows["event"],
        "session_id": rows["session_id"],
        "platform": rows["platform"],
        "at": rows["timestamp"].cast(MICROSECONDS).cast(UTC),
    }
    return _numbered(pa.table(columns))


def glucose(folder: Path) -> pa.Table:
    """Readings in mg/dl, by `subject`."""
    package = _downloaded(
        folder, "iglu_python-0.4*.tar.gz", _pip("--no-binary", ":all:", "iglu-python>=0.4,<0.5")
    )
    with tarfile.open(package) as archive:
        (name,) = [n for n in archive.getnames() if n.endswith("data/example_data_5_subject.csv")]
        file = archive.extractfile(name)
        assert file is not None
        rows = pa.csv.read_csv(io.BytesIO(file.read()))
    columns = {
        "type": pa.array(["Reading"] * len(rows)),
        "subject": rows["id"],
        "glucose": rows["gl"].cast(pa.int64()),
        "at": rows["time"].cast(MICROSECONDS).cast(UTC),
    }
    return _numbered(pa.table(columns))


STREAMS = (
    Stream("storms", flights, {"standstill": "flights", "storm": "flights"}),
    Stream("shop", shop, {"sent_back": "start_time", "unpaid": "failures"}, ("--at-end", "closed")),
    Stream("glucose", glucose, {"high": "highest", "crash": "start_time"}),
)


def more(celc: Callable[..., str], data: Path, build: Path, say: Callable[[str], None]) -> None:
    """Make the streams, run their queries, and write answers and reports. celc: runs a command and
    returns what it prints; say: prints a line."""
    for stream in STREAMS:
        events = data / f"{stream.name}.parquet"
        if not events.exists():
            pa.parquet.write_table(stream.make(data / "more"), events)
        rows = pa.parquet.read_metadata(events).num_rows
        query = Path("examples", "more", f"{stream.name}.cel")
        say(f"{query}: {rows:,} events")
        for name, column in stream.queries.items():
            start = time.perf_counter()
            order = ("--order-by", "at", "--tiebreak", "row", *stream.options)
            run = ("run", query, events, *order, "--query", name, "--force", "-o")
            answer, page = build / f"{name}.parquet", build / f"{name}.html"
            celc(*run, answer)
            celc(*run, page)
            found = pa.parquet.read_table(answer)
            seconds = time.perf_counter() - start
            say(f"  {name}: {len(found):,} rows, {page} ({seconds:.1f} s)")
            for row in found.sort_by([(column, "descending")]).slice(0, 5).to_pylist():
                shown = {key: value for key, value in row.items() if not key.endswith("_pos")}
                say("    " + "  ".join(map(str, shown.values())))
