"""Cells of the streaming benchmark: sizes, the query, and the files that a stream reads.

A file holds a minute of event time. A tenth of its rows have a type that the query names, and a
third of those satisfy the conditions, whatever the number of keys is.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

WINDOW = 600
SECONDS_OF_A_FILE = 60
FILES_OF_A_WINDOW = WINDOW // SECONDS_OF_A_FILE

WARM_UP = 4 * FILES_OF_A_WINDOW
"""Files before the measured ones. Ten fill the window; for thirty more the JVM still compiles the
code of Spark's planner and of its serialization, and takes a third of all CPU for that."""
QUERY = f"""
CREATE STREAM S {{
  EVENT A {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT B {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT C {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT X {{ key: INT, v: DOUBLE, ts: TIMESTAMP }}
}}
SELECT a[v], c[v] FROM S
WHERE (A AS a ; B AS b ; C AS c) FILTER a.v > 0.5 AND b.v > 0.5 AND c.v > 0.5
PARTITION BY key WITHIN {WINDOW} SECONDS [ts]
"""

NAMED = {"A": 0.04, "B": 0.03, "C": 0.03}
"""The share of rows that each type which the query names has: a tenth in all."""

RELEVANT = 0.035
"""The share of rows that satisfy a condition as well."""

MATCHES = 0.01
"""The most matches for each row, on average."""

ROW_GROUP = 100_000
"""Rows that one task reads at a time: two tasks share a large file."""

START = 1_767_225_600 * 1_000_000
"""The beginning of 2026, in microseconds since 1970. A tumbling window begins there as well."""


class Cell(NamedTuple):
    """The sizes of one measurement."""

    keys: int
    rows: int  # of a file
    warm_up: int = WARM_UP  # files before the measured ones; FILES_OF_A_WINDOW fill the window
    files: int = 5  # that are measured
    buckets: int | None = None  # an option of `match_stream`; None leaves the choice to it

    @property
    def name(self) -> str:
        """The cell in the names of figures."""
        return f"{self.keys:,} keys, {self.rows:,} rows"

    @property
    def context(self) -> dict[str, Any]:
        """What must be equal for two figures of this cell to be compared."""
        filled = min(1.0, self.warm_up / FILES_OF_A_WINDOW)
        sizes = {"keys": self.keys, "rows": self.rows, "files": self.files, "window filled": filled}
        return sizes if self.buckets is None else sizes | {"buckets": self.buckets}


def relevant_shares(cell: Cell) -> dict[str, float]:
    """The share of rows of each type that satisfy its condition.

    With few keys, one key has up to 500,000 rows in a window, and three equal shares would make
    200,000 matches for each row: listing them would be all that is measured. So B and C are rarer
    the more rows a key has, and A makes up for them: in each cell as many rows are kept.
    """
    of_a_key = cell.rows * FILES_OF_A_WINDOW / cell.keys
    # A row ends of_a_key² / 2 pairs of rows, so many times the product of shares are matches.
    rare = min(0.01, math.sqrt(2 * MATCHES / RELEVANT) / of_a_key)
    return {"A": RELEVANT - 2 * rare, "B": rare, "C": rare}


def events(cell: Cell, number: int) -> pa.Table:
    """A file's rows: times evenly spaced over its minute, keys at random; in no order."""
    rng = np.random.default_rng(number)
    relevant = relevant_shares(cell)
    shares = [*relevant.values(), *(NAMED[name] - relevant[name] for name in NAMED)]
    kinds = rng.choice(7, cell.rows, p=[*shares, 1 - sum(NAMED.values())])
    low = rng.random(cell.rows) / 2
    length = SECONDS_OF_A_FILE * 1_000_000
    micros = START + number * length + np.arange(cell.rows) * length // cell.rows
    return pa.table(
        {
            "type": pa.array([*"ABCABCX"]).take(pa.array(kinds)),
            "key": pa.array(rng.integers(0, cell.keys, cell.rows, dtype=np.int32)),
            "v": pa.array(np.where(kinds < 3, 1 - low, low)),
            "ts": pa.array(rng.permutation(micros), pa.timestamp("us", tz="UTC")),
        }
    )


def write_files(folder: Path, cell: Cell) -> list[Path]:
    """A cell's files, in the order of their times: warm-up, measured, and one for a restart."""
    folder.mkdir()
    files = [folder / f"{number:04}.parquet" for number in range(cell.warm_up + cell.files + 1)]
    for number, file in enumerate(files):
        parquet.write_table(events(cell, number), file, row_group_size=ROW_GROUP)
    return files
