"""A changed query on the checkpoint of a stream of Spark: it goes on, or the error says from when
on it has to begin, and it begins there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import StateError, finish
from stream_routes import (
    SETTINGS,
    changed_since,
    events,
    files,
    parts,
    query,
    run,
    settings,
    table,
    wanted,
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

    def streamed(name: str, one: Any, folder: str = checkpoint, **bounds: Any) -> Any:
        """Run a query, whose rows go into a folder of a name."""
        stream = one.match_stream(
            files(spark, source), watermark="1 second", checkpoint=folder, **bounds
        )
        run(stream, tmp_path / name, folder)
        return stream

    def told(name: str, *more: pa.Table) -> list[str]:
        # The log of a folder that a stream begins in its midst is not one that Spark reads.
        found = [*map(pq.read_table, (tmp_path / name / "out").glob("*.parquet")), *more]
        return wanted(pa.concat_tables([one.cast(found[0].schema) for one in found]))

    with settings(spark, SETTINGS):
        write_files(source, tables[:2])
        streamed("old", old)
        # A query that does not run leaves no trace that counts.
        new.match_stream(files(spark, source), checkpoint=checkpoint)
        streamed("old", old)
        write_files(source, tables[2:3], first=2)
        streamed("new", new)
        streamed("new", new)
        with pytest.raises(StateError, match="of type 'A' are not those of the old query") as said:
            streamed("old", old)
        (change,) = _AFTER.findall(str(said.value))
        cut = changed_since(tmp_path / "checkpoint")
        assert told("old") == _expected(old, None, cut)
        assert told("new") == _expected(new, cut, change)
        # As the error says.
        write_files(source, tables[3:], first=3)
        fresh, rest = str(tmp_path / "fresh"), list[pa.Table]()
        stream = streamed("again", old, fresh, after=change)
        assert finish(spark, fresh, stream, lambda rows, _: rest.append(rows.toArrow()))
        assert told("again", *rest) == _expected(old, change, None)


def _expected(one: Any, after: Any, until: Any) -> list[str]:
    return wanted(one.match_table(table(_ROWS), after=after, until=until))
