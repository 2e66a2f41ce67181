"""A changed query on the checkpoint of a stream of Spark: it goes on, or the error says from when
on it has to begin, and it begins there."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import pytest
from celc_runtime import StateError, finish
from stream_routes import (
    SETTINGS,
    events,
    files,
    finished,
    parts,
    query,
    settings,
    table,
    write_files,
)

_ROWS = events(120, keys=3)
_OLD = "SELECT x, y[v] WHERE (A AS x ; B AS y) FILTER x.v > 5 PARTITION BY id WITHIN 5 SECONDS"
_NEW = "SELECT y[v] WHERE (A AS x ; B AS y) FILTER x.v > 20 PARTITION BY id WITHIN 4 SECONDS"
_AFTER = re.compile("after='([^']+)'")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_changed_query_goes_on_and_another_begins_anew(spark: Any, tmp_path: Path) -> None:
    tables = [table(part) for part in parts(_ROWS, 4)]
    source, checkpoint = tmp_path / "in", str(tmp_path / "checkpoint")
    old, new = query(_OLD), query(_NEW)
    found: list[Any] = []

    def write(batch: Any, _: int) -> None:
        found.extend(batch.toArrow().to_pylist())

    def run(one: Any, folder: str = checkpoint, **bounds: Any) -> Any:
        stream = one.match_stream(
            files(spark, source), watermark="1 second", checkpoint=folder, **bounds
        )
        writer = stream.writeStream.foreachBatch(write)
        finished(writer.option("checkpointLocation", folder))
        return stream

    with settings(spark, SETTINGS):
        write_files(source, tables[:2])
        run(old)
        # A query that does not run leaves no trace that counts.
        new.match_stream(files(spark, source), checkpoint=checkpoint)
        run(old)
        told = list(found)
        write_files(source, tables[2:3], first=2)
        run(new)
        run(new)
        with pytest.raises(StateError, match="of type 'A' are not those of the old query") as said:
            run(old)
        (change,) = _AFTER.findall(str(said.value))
        cut = _since(checkpoint)
        assert _of(told) == _wanted(old, None, cut)
        assert _of(found[len(told) :]) == _wanted(new, cut, change)
        # As the error says.
        found.clear()
        write_files(source, tables[3:], first=3)
        fresh = str(tmp_path / "fresh")
        stream = run(old, fresh, after=change)
        assert finish(spark, fresh, stream, write)
        assert _of(found) == _wanted(old, change, None)


def _since(checkpoint: str) -> Any:
    """From when on the second query of a checkpoint has told rows, as its notes say."""
    notes = Path(checkpoint, "celc_queries").glob("*.txt")
    lines = [json.loads(line) for path in notes for line in path.read_text().splitlines()]
    (since,) = {one["since"] for one in lines} - {None}
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=since)


def _wanted(one: Any, after: Any, until: Any) -> list[str]:
    return _of(one.match_table(table(_ROWS), after=after, until=until).to_pylist())


def _of(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))
