"""What is found by definition is told where a job of Spark is planned, in whatever way."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from celc_runtime import PlanWarning
from stream_routes import SETTINGS, settings

import celc

_TEXT = """
CREATE STREAM S {
  EVENT A { k: INT, v: INT, t: TIMESTAMP },
  EVENT B { k: INT, v: INT, t: TIMESTAMP }
}
QUERY slow: SELECT a[v] FROM S WHERE A AS a ; !(A AS c ; B AS b FILTER b.v < c.v) ; B
  PARTITION BY k WITHIN 9 SECONDS
QUERY top: SELECT * FROM slow WHERE slow PARTITION BY k
"""


def _module(text: str) -> ModuleType:
    """A generated module as a file of one is imported; nobody has seen the compiler's warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", celc.CelWarning)
        source = celc.compile(text, order_by="t").source
    module = ModuleType("generated")
    module.__dict__["__celc_text__"] = source
    exec(source, module.__dict__)
    return module


def _told(plan: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", PlanWarning)
        plan()
    return [str(one.message).split(":")[0] for one in found if "by definition" in str(one.message)]


def _events(spark: Any) -> Any:
    return spark.createDataFrame([], "type string, k int, v int, t timestamp")


def test_each_way_to_plan_a_job_tells_it_once(spark: Any) -> None:
    module, events = _module(_TEXT), _events(spark)
    slow, top = module.QUERIES["slow"], module.QUERIES["top"]
    assert _told(lambda: slow.match(events)) == ["query 'slow'"]
    assert _told(lambda: top.match(events)) == ["query 'slow'"]
    assert "query 'slow': matches are found by definition" in top.explain_plan(events)
    alone = _module(_TEXT[: _TEXT.index("QUERY top")])
    assert _told(lambda: alone.match_all(events)) == ["query 'slow'"]


def test_a_table_function_tells_it(spark: Any) -> None:
    slow = _module(_TEXT).QUERIES["slow"]
    assert _told(lambda: slow.register(spark, "slow_by_definition")) == ["query 'slow'"]


def test_a_stream_tells_it(spark: Any, tmp_path: Path) -> None:
    slow = _module(_TEXT).QUERIES["slow"]
    rows = spark.readStream.schema(_events(spark).schema).json(str(tmp_path))
    with settings(spark, SETTINGS):
        assert _told(lambda: slow.match_stream(rows)) == ["query 'slow'"]
