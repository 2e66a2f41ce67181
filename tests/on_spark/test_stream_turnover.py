"""A long stream whose keys come and go: processes and checkpoint stay as large as they are."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from stream_routes import SETTINGS, event, files, query, settings, table, write_files

pytestmark = pytest.mark.long

PAIRS = query("""QUERY pairs: SELECT x[v] FROM S WHERE A AS x ; B AS y PARTITION BY id
    WITHIN 5 SECONDS [ts]""")

MICRO_BATCHES = 500


def _resident() -> int:
    """The bytes in memory of this process and all that descend from it: Spark and its workers."""
    pages: dict[int, int] = {}
    children = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            pages[int(folder.name)] = int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue  # it has ended meanwhile
        children[parent].append(int(folder.name))
    found, left = 0, [os.getpid()]
    while left:
        process = left.pop()
        found += pages.get(process, 0)
        left += children[process]
    return found * os.sysconf("SC_PAGE_SIZE")


def _stored(folder: Path) -> int:
    """The bytes of the files in a folder."""
    found = 0
    for path in folder.rglob("*"):
        try:
            found += path.stat().st_size
        except FileNotFoundError:
            continue  # Spark has cleaned up meanwhile
    return found


def _write(folder: Path) -> None:
    rnd = random.Random(1)
    for number in range(MICRO_BATCHES):
        rows = [
            event(number + place / 50, rnd.choice("AB"), 20 * number + rnd.randrange(60), row=place)
            for place in range(40)
        ]
        write_files(folder, [table(rows)], first=number)


def test_keys_that_come_and_go(spark: Any, tmp_path: Path) -> None:
    """500 micro-batches; the last 400 take no more than the first 100 do, but for some noise.

    Beside the states a checkpoint has the list of all files that the source has read, which grows.
    A state that is written whole each time has RocksDB's own list of its files in it, which grows
    by some hundred bytes until the store is opened anew: so changes are written, as users should.
    """
    _write(tmp_path / "in")
    fewer = {
        "spark.sql.streaming.minBatchesToRetain": "5",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.maintenanceInterval": "5s",
    }
    checkpoint = tmp_path / "checkpoint"
    states = checkpoint / "state"
    samples: list[tuple[int, int, int]] = []
    with settings(spark, SETTINGS | fewer):
        stream = PAIRS.match_stream(
            files(spark, tmp_path / "in"), watermark="1 second", key_ttl="10 seconds", buckets=3
        )
        writer = stream.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        started = writer.trigger(availableNow=True).start()
        try:
            while not started.awaitTermination(0.5):
                progress = started.lastProgress
                if progress:
                    samples.append((progress["batchId"], _resident(), _stored(states)))
        finally:
            started.stop()
    assert samples[-1][0] >= MICRO_BATCHES - 5
    early = [sample for sample in samples if 20 <= sample[0] < 100]
    late = [sample for sample in samples if sample[0] >= 100]
    assert len(early) > 5
    for place, noise in ((1, 64 << 20), (2, 1 << 20)):
        first, last = (max(sample[place] for sample in part) for part in (early, late))
        assert last <= 1.2 * first + noise, samples[:: len(samples) // 20]
