"""Random chains as streams of Spark, stopped and started again: the rows of a table.

Ten chains are one of Spark's streams, because to start one takes it seconds. An event far in the
future ends them.
"""

from __future__ import annotations

import random
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from conftest import ON_SPARK
from stream_routes import SETTINGS, files, run, settings, taken_apart, together, wanted, write_files
from streams_by_hand import instant, microseconds, shuffled
from test_random_streams_of_queries import Reader, readers_of

_TOGETHER = 10
_DELAY = 3  # milliseconds


def _comes(query: CompiledQuery) -> bool:
    """Whether its rows come before `finish`, which ends one stream and not ten together."""
    totals = query.plan.answer.totals
    return totals is None or totals.per != "PARTITION"


def _chosen(first: int) -> list[Reader]:
    """A reader with rows of each of some chains."""
    found = (
        [
            one
            for one in readers_of(seed, suffix=f"_{seed}")  # metrics of one stream differ
            if isinstance(one, Reader) and _comes(one.query) and one.wanted.num_rows
        ]
        for seed in count(first)
    )
    return [random.Random(first).choice(some) for some in islice(filter(None, found), _TOGETHER)]


def _parts(reader: Reader, seed: int) -> list[pa.Table]:
    """The micro-batches of a chain, of one to three rows each; the last one ends it."""
    rng, table = random.Random(seed), reader.table
    times = [microseconds(one) for one in table.column("ts").to_pylist()]
    order, parts = shuffled(times, _DELAY, rng), []
    while order:
        size = rng.randint(1, 3)
        parts.append(table.take(order[:size]))
        order = order[size:]
    last = {"type": "Z", "ts": instant(10**9), "number": -1}
    parts.append(pa.Table.from_pylist([last], table.schema))
    return parts


def _compare(spark: Any, folder: Path, first: int) -> None:
    chosen = _chosen(first)
    parts = [_parts(one, first + n) for n, one in enumerate(chosen)]
    streams = {}
    for number, (reader, tables) in enumerate(zip(chosen, parts, strict=True)):
        write_files(folder / f"in{number}", tables[: len(tables) // 2])
        streams[str(number)] = reader.query.match_stream(
            files(spark, folder / f"in{number}"),
            tiebreak="number",
            watermark=f"{_DELAY} milliseconds",
            allow_unbounded_state=True,
            buckets=(1, 2, 7)[number % 3],
        )
    matches = together(streams)
    run(matches, folder)
    for number, tables in enumerate(parts):
        half = len(tables) // 2
        write_files(folder / f"in{number}", tables[half:], first=half)
    run(matches, folder)
    found = taken_apart(spark.read.parquet(str(folder / "out")))
    problems = [
        f"{reader.query.program.name}: {found.get(str(number))} and not {wanted(reader.wanted)}\n"
        f"{reader.text}"
        for number, reader in enumerate(chosen)
        if found.get(str(number)) != wanted(reader.wanted)
    ]
    assert not problems, "\n".join(problems)


_STREAMS = 1 if ON_SPARK == "connect" else 6


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 500 * _STREAMS, 500))
def test_random_chains(spark: Any, tmp_path: Path, first: int) -> None:
    with settings(spark, SETTINGS):
        _compare(spark, tmp_path, first)
