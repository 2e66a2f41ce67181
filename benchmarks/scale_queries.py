"""Queries of many shapes and events for them, from which `scale.py` learns what a query costs.

A `Design` is a query with the events that it reads. Each number that costs may depend on differs
between designs: columns, texts, the part of the rows that can matter, events in a window, rows of a
key, values of a match, tasks. FRESH are for the check: no number was fitted to them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from celc_runtime.query import CompiledQuery
from pyarrow import parquet

from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.driver.pipeline import compile_files
from celc.interfaces.cli.sizing.shape import Shape, shape_of
from celc.options import Options

WINDOW = 600
"""Seconds of the window of each query."""

START = 1_767_225_600 * 1_000_000  # the beginning of 2026, in microseconds since 1970

TEXT = 10
"""Bytes of the texts, about."""


class Design(NamedTuple):
    """A query, and what its events are like.

    numbers, texts: columns besides key, v, n and ts. share: of the rows that have one of the types
    that the query names; passing: of these, those that pass a condition on one event. rows_of_key:
    for each key. in_window: rows of these types of a key in a window.
    """

    name: str
    formula: str
    select: str = "*"
    types: str = "ABC"
    numbers: int = 0
    texts: int = 0
    text_key: bool = False
    key: bool = True
    share: float = 0.3
    passing: float = 1.0
    rows_of_key: int = 100
    in_window: float = 3.0
    tasks: int = 4

    @property
    def text(self) -> str:
        """The query."""
        key = "STRING" if self.text_key else "INT"
        columns = [f"key: {key}", "v: DOUBLE", "n: INT", "ts: TIMESTAMP"]
        columns += [f"x{number}: DOUBLE" for number in range(self.numbers)]
        columns += [f"t{number}: STRING" for number in range(self.texts)]
        body = ", ".join(columns)
        declared = ", ".join(f"EVENT {name} {{ {body} }}" for name in (*self.types, "X"))
        partition = "PARTITION BY key " if self.key else ""
        return (
            f"CREATE STREAM S {{ {declared} }}\nSELECT {self.select} FROM S WHERE {self.formula} "
            f"{partition}WITHIN {WINDOW} SECONDS [ts]"
        )

    def seconds(self, rows: int) -> float:
        """The time that so many rows span."""
        keys = rows / self.rows_of_key if self.key else 1
        return rows * self.share / keys / self.in_window * WINDOW


_ABC = "A AS a ; B AS b ; C AS c"
_AB = "A AS a ; B AS b"

FITTED = (
    Design("rare", _ABC, share=0.01),
    Design("all rows", _ABC, share=1.0),
    Design("two events", _AB, "a[v]", "AB", in_window=2, rows_of_key=50),
    Design("six numbers", _ABC, numbers=6),
    Design("six numbers of all rows", _ABC, "a[v], c[v]", numbers=6, share=1.0),
    Design("two texts", _ABC, texts=2, share=0.5),
    Design("texts of all rows", _AB, "b[v]", "AB", texts=3, share=1.0, in_window=1),
    Design("text key", _AB, types="AB", text_key=True, share=0.5, rows_of_key=20, in_window=2),
    Design("many keys", _AB, types="AB", share=0.5, rows_of_key=5, in_window=2),
    Design("two matches a row", _AB, types="AB", share=1.0, rows_of_key=1000, in_window=8),
    Design("their values", _ABC, "a[v], c[v]", share=1.0, in_window=6),
    Design(
        "rising",
        f"({_ABC}) FILTER a.v < b.v AND b.v < c.v",
        share=0.5,
        rows_of_key=1000,
        in_window=12,
    ),
    Design(
        "long search",
        f"({_AB}) FILTER a.v + b.v > 1.95",
        types="AB",
        share=1.0,
        rows_of_key=5000,
        in_window=100,
    ),
    Design(
        "longer search",
        f"({_AB}) FILTER a.v + b.v > 1.99",
        types="AB",
        share=1.0,
        rows_of_key=20_000,
        in_window=1000,
    ),
    Design("equal numbers", f"({_ABC}) FILTER a.n = b.n AND b.n = c.n", share=0.5, in_window=12),
    Design("one of two", "(A OR B) AS x ; C AS c", share=0.6),
    Design("unless", "(A AS a ; C AS c) UNLESS B", share=0.6, in_window=6),
    Design("last", _ABC, "LAST *", share=0.5, in_window=12, rows_of_key=1000),
    Design("one key", _ABC, key=False, share=0.1, in_window=4),
    Design("sixteen tasks", _ABC, share=0.5, tasks=16),
    # Several numbers at once, so that what each costs is told apart.
    Design("wide pairs", _AB, types="AB", numbers=4, share=0.9, rows_of_key=200, in_window=6),
    Design(
        "wide search",
        f"({_AB}) FILTER a.v + b.v > 1",
        types="AB",
        numbers=2,
        texts=1,
        share=0.7,
        rows_of_key=400,
        in_window=8,
    ),
    Design(
        "narrow answers of wide rows",
        _ABC,
        "a[v], c[n]",
        numbers=3,
        texts=2,
        share=0.4,
        in_window=4,
    ),
    Design(
        "four events, one shown",
        "A AS a ; B AS b ; C AS c ; D AS d",
        "d[v]",
        types="ABCD",
        numbers=1,
        share=0.8,
        in_window=6,
    ),
    Design(
        "few rows with texts",
        _AB,
        "a[t0], b[v]",
        types="AB",
        numbers=2,
        texts=2,
        share=0.05,
        in_window=2,
    ),
    Design("text key, wide", _ABC, text_key=True, numbers=3, share=0.6, rows_of_key=50),
    Design("eight tasks", _AB, types="AB", numbers=1, texts=1, tasks=8),
    Design(
        "equal pairs",
        f"({_AB}) FILTER a.n = b.n",
        types="AB",
        numbers=1,
        share=1.0,
        in_window=20,
    ),
)

FRESH = (
    Design(
        "four events",
        "A AS a ; B AS b ; C AS c ; D AS d",
        "a[v, n], d[v]",
        "ABCD",
        numbers=2,
        texts=1,
        share=0.4,
        in_window=4,
        rows_of_key=200,
    ),
    Design(
        "greater",
        f"({_AB}) FILTER b.v > a.v AND a.n < 50",
        types="AB",
        numbers=3,
        share=0.8,
        passing=0.75,
        rows_of_key=300,
        in_window=10,
    ),
    Design("texts of a key", _ABC, "b[t0]", texts=2, text_key=True, share=0.2, rows_of_key=30),
    Design(
        "rising with texts",
        f"({_AB}) FILTER a.v < b.v",
        "a[t0, v], b[n]",
        types="AB",
        numbers=1,
        texts=1,
        share=0.6,
        rows_of_key=150,
        in_window=4,
    ),
    Design(
        "no event between",
        "(A AS a ; C AS c) UNLESS B",
        "a[v, t0], c[n, ts]",
        texts=1,
        share=0.9,
        rows_of_key=60,
        in_window=5,
    ),
)


class Compiled(NamedTuple):
    """The query of a design, as it runs and as the model sees it."""

    query: CompiledQuery
    shape: Shape


def compiled(design: Design) -> Compiled:
    """The query of a design, ordered by time."""
    compilation = compile_files([Source("query.cel", design.text)], Options(order_by=("ts",)))
    query = Matcher(compilation.module_parts("benchmarks/scale.py")).query
    return Compiled(query, shape_of(compilation.queries[0], query.plan))


def events(
    design: Design,
    rows: int,
    seed: int = 1,
    keys: int | None = None,
    begin: int = 0,
    length: int | None = None,
) -> pa.Table:
    """Rows in no order, each at a time of its own, in so many microseconds; keys at random."""
    rng = np.random.default_rng(seed)
    count = len(design.types)
    kinds = np.where(rng.random(rows) < design.share, rng.integers(0, count, rows), count)
    found = rng.integers(0, keys or max(1, rows // design.rows_of_key), rows, dtype=np.int32)
    step = (length or design.seconds(rows) * 1e6) / rows
    if step < 1:
        raise ValueError(f"{design.name}: {rows:,} rows would share times")
    times = START + begin + (rng.permutation(rows) * step).astype(np.int64)
    columns: dict[str, Any] = {
        "type": pa.DictionaryArray.from_arrays(
            pa.array(kinds.astype(np.int32)), pa.array([*design.types, "X"])
        ),
        "key": pa.array(found),
        "v": pa.array(rng.random(rows)),
        "n": pa.array(rng.integers(0, 100, rows, dtype=np.int32)),
        "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
    }
    if design.text_key:
        columns["key"] = _texts("key", found)
    for number in range(design.numbers):
        columns[f"x{number}"] = pa.array(rng.random(rows))
    for number in range(design.texts):
        columns[f"t{number}"] = _texts("te", rng.integers(0, 1 << 20, rows))
    return pa.table(columns)


def _texts(begin: str, numbers: Any) -> pa.Array:
    """Texts of about TEXT bytes."""
    digits = pa.compute.cast(pa.array(numbers.astype(np.int64) + 10_000_000), pa.string())
    return pa.compute.binary_join_element_wise(begin, digits, "")


FILES, ROW_GROUP = 8, 125_000


def write(folder: Path, design: Design, rows: int) -> Path:
    """Write the events of a design as Parquet files of equal length."""
    folder.mkdir()
    step = -(-rows // FILES)
    table = events(design, rows)
    for number in range(FILES):
        part = table.slice(number * step, step)
        parquet.write_table(part, folder / f"part-{number}.parquet", row_group_size=ROW_GROUP)
    return folder
