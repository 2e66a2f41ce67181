"""Streams whose table of parameters is a stream as well, on Spark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventError, finish
from celc_runtime.stream.monitor import micro_batch
from conftest import long_over_connect
from engines import interpreted, only_query
from stream_routes import SETTINGS, START, files, run, settings, write_files

import celc

_DECLARED = """CREATE STREAM Quotes { EVENT Q { ts: TIMESTAMP, venue: STRING, price: DOUBLE } }
PARAMETERS rule { id: LONG, factor: DOUBLE, since: TIMESTAMP, until: TIMESTAMP }{valid}
"""
_RISES = """SELECT x[price], y[price], rule FOR EACH rule
WHERE (Q AS x ; Q AS y) FILTER y.price > rule.factor * x.price PARTITION BY venue WITHIN 20 SECONDS
"""


def _query(text: str = _RISES, valid: str = " VALID [since, until]") -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(_DECLARED.replace("{valid}", valid) + text, order_by="ts"))


def _time(second: int | None) -> dt.datetime | None:
    return None if second is None else START + dt.timedelta(seconds=second)


def _quotes(first: int, behind: int) -> pa.Table:
    seconds = range(first, behind)
    return pa.table(
        {
            "ts": pa.array([_time(one) for one in seconds], pa.timestamp("us", "UTC")),
            "venue": ["one" if one % 3 else "other" for one in seconds],
            "price": [10.0 + one * 7 % 11 for one in seconds],
        }
    )


def _rules(*rows: tuple[int, float, int | None, int | None]) -> pa.Table:
    ids, factors, since, until = zip(*rows, strict=True) if rows else ((), (), (), ())
    times = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "factor": pa.array(factors, pa.float64()),
            "since": pa.array(map(_time, since), times),
            "until": pa.array(map(_time, until), times),
        }
    )


def _texts(rows: pa.Table) -> list[str]:
    utc = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return sorted(map(repr, rows.cast(pa.schema(utc)).to_pylist()))


@long_over_connect
def test_rules_come_go_and_are_read_again(spark: Any, tmp_path: Path) -> None:
    query = _query()
    first = _rules((1, 1.2, None, None), (2, 1.3, 0, 50))
    versions = _rules((1, 1.5, 45, None), (3, 1.1, 60, 80))
    at_last = _rules((1, 1.3, 90, None), (2, 1.2, 100, None))
    late = _rules((4, 1.0, 10, 20))  # over when it comes
    with settings(spark, SETTINGS):
        write_files(tmp_path / "in", [_quotes(0, 30), _quotes(30, 60)])
        write_files(tmp_path / "rules", [first, versions])
        schema = spark.read.parquet(str(tmp_path / "rules")).schema
        told = []
        for number in (2, 3):
            frame, rules = files(spark, tmp_path / "in"), files(spark, tmp_path / "rules", schema)
            found = query.match_stream(
                frame,
                watermark="1 second",
                buckets=2,
                checkpoint=str(tmp_path / "checkpoint"),
                rule=rules,
            )
            told += [micro_batch(one) for one in run(found, tmp_path)]
            if number == 2:
                write_files(tmp_path / "in", [_quotes(60, 90), _quotes(90, 130)], 2)
                again = pa.concat_tables([at_last, late, first])
                write_files(tmp_path / "rules", [again], 2)
        rest: list[Any] = []
        finish(
            spark, str(tmp_path / "checkpoint"), found, lambda rows, _: rest.append(rows.toArrow())
        )
        there = spark.read.parquet(str(tmp_path / "out")).toArrow()
    table = pa.concat_tables([first, versions, at_last])
    wanted = query.with_options(positions=False).match_table(_quotes(0, 130), rule=table)
    assert len(wanted) > 50
    assert _texts(pa.concat_tables([there.cast(rest[0].schema), *rest])) == _texts(wanted)
    assert sum(one["added"] for one in told) == 6, told
    # Those that are read again change nothing.
    assert sum(one["late rules"] for one in told) == 1, told
    assert max(one["rules"] for one in told) <= 6


def test_what_rules_of_a_stream_cannot_do(spark: Any) -> None:
    query, frame = _query(), spark.readStream.format("rate").load()
    events = frame.selectExpr("timestamp AS ts", "'v' AS venue", "CAST(value AS DOUBLE) AS price")
    rules = frame.selectExpr(
        "value AS id", "1.0D AS factor", "timestamp AS since", "timestamp AS until"
    )
    for given, options, why in (
        (_query(valid=""), {}, r"declare it with VALID \[since, until\]"),
        (query, {"late": "side"}, "use late='drop' or late='error'"),
        (query, {"key_ttl": "1 hour"}, "leave it out"),
        (query.with_options(positions=True), {}, "leave out positions=True"),
        (_query(_RISES.replace("(Q AS x", "(!Q FOR 1 SECOND ; Q AS x")), {}, "absence before"),
    ):
        with pytest.raises(EventError, match=why):
            given.match_stream(events, rule=rules, **options)
    with pytest.raises(EventError, match=r"parameters 'rule': .*'factor'"):
        query.match_stream(events, rule=rules.drop("factor"))
    with pytest.raises(TypeError, match="takes no argument 'rules': its parameter set is 'rule'"):
        query.match_stream(events, rules=rules)
