"""Values that are only carried come out of Spark as they went in, on every route."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from carried import CARRIED, LABELS, MISSING, VALUES, carried_query, rows_of, table_of_carried
from celc_runtime import EventError, split_late
from conftest import long_over_connect
from stream_routes import SETTINGS, files, run, settings

TABLE = table_of_carried()


def _events(spark: Any, table: pa.Table = TABLE) -> Any:
    # Spark takes Arrow's times without a zone for those of the session's zone.
    place = "STRUCT<x: INT, path: ARRAY<ARRAY<SMALLINT>>, at: TIMESTAMP_NTZ>"
    return spark.createDataFrame(table).selectExpr(
        "* EXCEPT (place, local)",
        f"CAST(place AS {place}) AS place",
        "CAST(local AS TIMESTAMP_NTZ) AS local",
    )


def test_every_batch_route(spark: Any) -> None:
    events = _events(spark)
    events.createOrReplaceTempView("carried")
    found, wanted = {}, {}
    for text in (LABELS, VALUES, MISSING):
        query = carried_query(text, positions=True)
        name = query.name
        wanted[name] = rows_of(query.match_table(TABLE))
        found[name] = {"match": query.match(events)}
        query.register(spark)
        call = f"SELECT * FROM {name}(TABLE(carried) PARTITION BY (k) ORDER BY (ts))"
        found[name]["sql"] = spark.sql(call)
    query = carried_query(LABELS, positions=True)
    found["labels"]["compact"] = query.expand(query.match_compact(events))
    for name, routes in found.items():
        for route, frame in routes.items():
            shown = frame.toArrow() if hasattr(frame, "toArrow") else pa.table(frame.read_all())
            assert rows_of(shown) == wanted[name], (name, route)


@long_over_connect
def test_joins(spark: Any) -> None:
    """Also with columns of narrower types, and with the fields of a struct in another order."""
    query = carried_query(LABELS).with_options(positions=False)
    events = _events(spark)
    wanted = rows_of(query.match(events, plan="kernel").toArrow())
    assert rows_of(query.match(events, plan="joins").toArrow()) == wanted
    other = "struct(1 AS more, place.at AS at, place.path AS path, place.x AS x)"
    changed = events.where("small IS NULL OR small = 0").selectExpr(
        "* EXCEPT (place, small)",
        f"if(place IS NULL, NULL, {other}) AS place",
        "CAST(small AS TINYINT) AS small",
    )
    for plan in ("joins", "kernel"):
        shown = query.match(changed, plan=plan).toArrow()
        assert set(rows_of(shown)) < set(wanted)


@long_over_connect
def test_columns_of_other_types_are_refused_before_any_task(spark: Any) -> None:
    events = _events(spark, TABLE.slice(0, 2))
    query = carried_query(LABELS)
    for name, other in {
        "price": "DOUBLE",
        "tags": "STRING",
        "scores": "MAP<INT, DOUBLE>",
        "place": "STRUCT<x: INT>",
        "raw": "STRING",
        "small": "INT",
        "local": "TIMESTAMP",
    }.items():
        changed = events.where("small IS NULL OR small = 0").selectExpr(
            f"* EXCEPT ({name})", f"CAST(NULL AS {other}) AS {name}"
        )
        with pytest.raises(EventError, match=f"declares '{name}' as ") as caught:
            query.match(changed)
        assert CARRIED[name] in str(caught.value)
    for name, narrower in {
        "price": "DECIMAL(9, 1)",
        "place": "STRUCT<more: INT, at: TIMESTAMP_NTZ, path: ARRAY<ARRAY<TINYINT>>, x: SMALLINT>",
        "small": "TINYINT",
    }.items():
        changed = events.where("small IS NULL OR small = 0").selectExpr(
            f"* EXCEPT ({name})", f"CAST(NULL AS {narrower}) AS {name}"
        )
        query.match(changed)


@pytest.mark.long
def test_streams_keep_them_over_a_restart(spark: Any, tmp_path: Path) -> None:
    """In the state, in matches and in late events."""
    with settings(spark, SETTINGS):
        _stream_keeps_them(spark, tmp_path)


def _stream_keeps_them(spark: Any, folder: Path) -> None:
    query = carried_query(VALUES, positions=True)
    far = pa.array([dt.datetime(2027, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    last = TABLE.slice(len(TABLE) - 1).set_column(3, "ts", far)
    pieces = [TABLE.slice(0, 15), pa.concat_tables([TABLE.slice(15), last]), TABLE.slice(3, 2)]
    (folder / "in").mkdir()
    for name, piece in enumerate(pieces):
        pq.write_table(piece, folder / "in" / f"{name}.parquet")
        # Each run ends and begins anew with the checkpoint of the one before.
        fields = _events(spark, TABLE.slice(0, 1)).schema.fields
        schema = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in fields)
        stream = query.match_stream(
            files(spark, folder / "in", schema), watermark="1 second", late="side"
        )
        run(stream, folder)
    found, late = split_late(spark.read.schema(stream.schema).parquet(str(folder / "out")))
    wanted = query.match_table(pa.concat_tables([TABLE, last]))
    assert rows_of(found.toArrow()) == rows_of(wanted)
    names = [*CARRIED]
    kept = late.select(*names).toArrow().cast(TABLE.select(names).schema)
    assert rows_of(kept) == rows_of(TABLE.slice(3, 2).select(names))
