"""Files of several queries on Spark: `match_all` against each query alone, with one scan."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError, PlanWarning
from conftest import ON_SPARK, long_over_connect
from engines import as_on_spark

import celc
from celc import Matcher

_DECLARED = """CREATE STREAM S {
  EVENT A { id: LONG, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: LONG, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
"""
_QUERIES = {
    "hot": "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v > 6 PARTITION BY id WINDOW",
    "named": "SELECT x[id] FROM S WHERE (A AS x ; B) FILTER x.name = 'n3' PARTITION BY id WINDOW",
    "by name": "SELECT * FROM S WHERE (B AS x ; B AS y) FILTER x.v < 1 PARTITION BY name WINDOW",
    "apart": "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v > 8 AND y.v > 8 WINDOW",
    "taken": "SELECT * FROM S WHERE A ; B PARTITION BY id WINDOW CONSUME BY PARTITION",
    "alone": "SELECT * FROM S WHERE A AS x ; !(A OR B) FOR 1 SECOND PARTITION BY id WINDOW",
    "total": "SELECT TOTAL COUNT(*) AS n FROM S WHERE A+ ; B PARTITION BY id WINDOW",
}


def _module(names: tuple[str, ...] = tuple(_QUERIES)) -> Matcher:
    texts = [f"QUERY `{name}`: {_QUERIES[name]}" for name in names]
    texts = [text.replace("WINDOW", "WITHIN 20 SECONDS [ts]") for text in texts]
    return celc.compile("\n".join([_DECLARED, *texts]))


def _events(rows: int) -> pa.Table:
    rng = random.Random(7)
    return pa.table(
        {
            "type": [rng.choice("AB") for _ in range(rows)],
            "id": [rng.randrange(5) for _ in range(rows)],
            "v": [float(rng.randrange(10)) for _ in range(rows)],
            "name": [rng.choice(["n1", "n2", "n3", None]) for _ in range(rows)],
            "ts": pa.array([n * 1_000_000 for n in range(rows)], pa.timestamp("us", tz="UTC")),
        }
    )


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def _scans(frame: Any) -> int:
    return str(frame._jdf.queryExecution().executedPlan()).count("Scan")


def test_all_at_once_is_each_alone(spark: Any) -> None:
    module, events = _module(), _events(400)
    frame = spark.createDataFrame(events.to_pandas())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", PlanWarning)
        found = module.match_all(frame)
    assert [str(w.message) for w in told if w.category is PlanWarning] == [
        "one task reads all events of apart, which have no PARTITION BY that would spread them"
    ]
    if ON_SPARK == "classic":
        assert _scans(found) == 1
    everything = found.toArrow()
    for name, query in module.queries.items():
        alone = as_on_spark(query).match_table(events)
        part = module.rows(everything, name)
        assert _sorted(part.to_pylist()) == _sorted(alone.to_pylist()), name
        assert alone.num_rows > 5
    assert everything.num_rows == sum(
        module.rows(everything, name).num_rows for name in module.queries
    )
    rows = module.rows(found, "hot")
    wanted = module.hot.match(frame)
    assert rows.schema == wanted.schema
    assert _sorted(rows.toArrow().to_pylist()) == _sorted(wanted.toArrow().to_pylist())


@long_over_connect
def test_queries_with_one_order_take_one_shuffle(spark: Any) -> None:
    module, events = _module(("hot", "named", "total")), _events(200)
    frame = spark.createDataFrame(events.to_pandas())
    found = module.match_all(frame)
    if ON_SPARK == "classic":
        plan = str(found._jdf.queryExecution().executedPlan())
        assert plan.count("Exchange") == 1
        assert _scans(found) == 1
    everything = found.toArrow()
    for name, query in module.queries.items():
        alone = as_on_spark(query).match_table(events)
        assert _sorted(module.rows(everything, name).to_pylist()) == _sorted(alone.to_pylist())


def test_what_cannot_be_one_table(spark: Any) -> None:
    body = "SELECT * FROM S WHERE A ; B WITHIN 20 SECONDS [ts]"
    module = celc.compile(f"{_DECLARED} QUERY query: {body}")
    frame = spark.createDataFrame(_events(3).to_pandas())
    with pytest.raises(EventError, match="column 'query'"):
        module.match_all(frame)
    with pytest.raises(ValueError, match="there is no query 'cold'"):
        module.rows({}, "cold")
    with pytest.raises(TypeError, match="no answer of match_all"):
        module.rows([], "query")
