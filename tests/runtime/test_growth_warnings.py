"""Every way to run a query tells once, before it runs, what is found by definition."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, PlanWarning
from celc_runtime.chain.streams.all_queries import AllQueries
from engines import interpreted

import celc

_DECLARATION = """
CREATE STREAM S { EVENT A { v: INT, t: LONG }, EVENT B { v: INT, t: LONG } }
CREATE STREAM U UNCERTAIN [low, high] BY 1 { EVENT E { low: LONG, high: LONG } }
PARAMETERS P { v: INT }
"""
_SLOW = "SELECT a[v] FROM S WHERE A AS a ; !(A AS c ; B AS b FILTER b.v < c.v) ; B"
_FAST = "SELECT a[v] FROM S WHERE A AS a ; B"
_EVENTS = pa.table(
    {
        "type": ["A", "B"],
        "v": pa.array([2, 1], pa.int32()),
        "t": pa.array([1, 2], pa.int64()),
    }
)
_RULES = pa.table({"v": pa.array([1], pa.int32())})


def _module(*queries: str, order_by: str | None = "t") -> ModuleType:
    """A generated module as a file of one is imported; nobody has seen the compiler's warnings."""
    with warnings.catch_warnings(), interpreted():
        warnings.simplefilter("ignore", celc.CelWarning)
        source = celc.compile(_DECLARATION + "\n".join(queries), order_by=order_by).source
        module = ModuleType("generated")
        module.__dict__["__celc_text__"] = source
        exec(source, module.__dict__)
    return module


def _told(run: Callable[[], object]) -> list[str]:
    """What a call says of the time; it says it of this file, where the call is written."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    of_growth = [one for one in found if "by definition" in str(one.message)]
    assert all(one.category is PlanWarning and one.filename == __file__ for one in of_growth)
    return [str(one.message).split(":")[0] for one in of_growth]


_RUNS: dict[str, Callable[[Any], object]] = {
    "match_table": lambda query: query.match_table(_EVENTS),
    "match_arrow": lambda query: list(query.match_arrow(_EVENTS)),
    "match_pandas": lambda query: query.match_pandas(_EVENTS.to_pandas()),
    "run": lambda query: query.run(),
}
"""The ways to run a query on one machine that can find matches by definition."""

_ON_SPARK = {"match", "match_stream", "register"}
"""See `on_spark/test_growth_on_spark.py`."""

_NO_RUNS = {
    "expand",
    "explain_plan",  # has a line that says it
    "with_options",
    "with_parameters",
    "match_compact",  # refuses conditions across events
    "match_compact_arrow",
}


def test_each_way_to_run_a_query_is_known() -> None:
    """A new one has to say it, or stand among those which do not run a query."""
    constants = {"plan", "name", "text"}
    names = {
        name
        for name, value in inspect.getmembers_static(CompiledQuery)
        if not name.startswith("_")
        and not name.isupper()
        and not name.endswith(("_schema", "_ddl", "_by"))
    }
    assert names - constants == {*_RUNS, *_ON_SPARK, *_NO_RUNS}
    of_all = {name for name in vars(AllQueries) if not name.startswith("_")}
    of_one = {"explain_all_stream", "match_all_stream"}  # the second tells it as `match_all`
    assert of_all == {"match_all", "match_all_table", "rows", *of_one}


@pytest.mark.parametrize("way", _RUNS)
def test_each_way_tells_it_once(way: str) -> None:
    slow = _module(f"QUERY slow: {_SLOW}").QUERIES["slow"]
    assert _told(lambda: _RUNS[way](slow)) == ["query 'slow'"]
    fast = _module(f"QUERY fast: {_FAST}").QUERIES["fast"]
    assert _told(lambda: _RUNS[way](fast)) == []


def test_all_queries_at_once_tell_each() -> None:
    module = _module(f"QUERY one: {_SLOW}", f"QUERY fast: {_FAST}", f"QUERY two: {_SLOW}")
    assert _told(lambda: module.match_all_table(_EVENTS)) == ["query 'one'", "query 'two'"]


def test_queries_that_are_read_tell_it_too() -> None:
    """At whatever depth, and a query that two others read once."""
    module = _module(
        f"QUERY low: {_SLOW}",
        "QUERY one: SELECT * FROM low WHERE low",
        "QUERY two: SELECT * FROM low WHERE low",
        "QUERY top: SELECT * FROM one, two WHERE one ; two",
    )
    top = module.QUERIES["top"]
    assert _told(lambda: top.match_table(_EVENTS)) == ["query 'low'"]
    assert _told(lambda: list(top.match_arrow(_EVENTS))) == ["query 'low'"]


def test_rows_of_a_table_tell_it_once() -> None:
    query = _module("QUERY q: " + _SLOW.replace("WHERE", "FOR EACH P WHERE")).QUERIES["q"]
    assert _told(lambda: query.match_table(_EVENTS, P=_RULES)) == ["query 'q'"]


def test_uncertain_time_tells_it() -> None:
    """Where the definition is asked, and not where pairs of events are compared."""
    fast = "SELECT * FROM U WHERE (E AS x ; E AS y) FILTER y.low > x.low"
    slow = "SELECT * FROM U WHERE (E AS x ; E AS y) UNLESS (E AS z FILTER z.low > x.low)"
    module = _module(f"QUERY slow: {slow}", f"QUERY fast: {fast}", order_by=None)
    assert _told(lambda: module.QUERIES["slow"].match_arrow) == ["query 'slow'"]
    assert _told(lambda: module.QUERIES["fast"].match_arrow) == []
    codes = [[one.code for one in celc.check(_DECLARATION + text)] for text in (slow, fast)]
    assert codes == [["by-definition"], []]


def test_what_the_compiler_has_told_is_not_told_again() -> None:
    with warnings.catch_warnings(record=True) as found, interpreted():
        warnings.simplefilter("always")
        matcher = celc.compile(_DECLARATION + _SLOW, order_by="t")
        matcher.match_table(_EVENTS)
        matcher.with_options(tiebreak="v").match_table(_EVENTS)
    assert [one.category for one in found] == [celc.CelWarning]


def test_a_query_that_was_sent_tells_nothing() -> None:
    """Whoever has sent it was told, and a worker of Spark would say it in each task."""
    module = _module(f"QUERY slow: {_SLOW}")
    sent = pickle.loads(pickle.dumps(module.QUERIES["slow"]))
    assert _told(lambda: sent.match_table(_EVENTS)) == []
