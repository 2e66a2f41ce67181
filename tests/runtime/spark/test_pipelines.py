"""In a query function of a pipeline no question is asked: a client that answers none is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celc_runtime.plan.errors import EventError, PlanWarning
from celc_runtime.spark.input.ddl import schema_of_ddl
from celc_runtime.spark.input.pipelines import is_stream
from engines import interpreted, only_query

import celc

proto = pytest.importorskip("pyspark.sql.connect.proto")

_QUERY = """
CREATE STREAM S {
    EVENT A { key: STRING, v: LONG, ts: TIMESTAMP },
    EVENT B { key: STRING, tags: ARRAY<STRING>, ts: TIMESTAMP }
}
SELECT * FROM S WHERE A ; B FILTER A[v > 3] PARTITION BY [key] WITHIN 5 MINUTES [ts]
"""
_SETTINGS = {"spark.sql.shuffle.partitions": "4"}


class _Silent:
    """A client of Connect in the query function of a flow: whoever asks it a question fails."""

    def __init__(self, flow: str) -> None:
        self.thread_local = threading.local()
        context = proto.PipelineAnalysisContext(dataflow_graph_id="graph", flow_name=flow)
        name = f"type.googleapis.com/{context.DESCRIPTOR.full_name}"
        extension = SimpleNamespace(type_url=name, value=context.SerializeToString())
        self.thread_local.user_context_extensions = [("id", extension)]
        self._resource_profile_id = None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the server was asked: {name}")


class _Session:
    """A session of such a client. Settings are no question about a DataFrame."""

    def __init__(self, flow: str = "matches") -> None:
        self.client = self._client = _Silent(flow)
        self.conf = SimpleNamespace(get=lambda name, default=None: _SETTINGS.get(name, default))

    def events(self, *, stream: bool = False) -> Any:
        from pyspark.sql.connect.dataframe import DataFrame
        from pyspark.sql.connect.plan import DataSource, Read

        found: Any = Read("events")
        if stream:
            found = DataSource(format="parquet", paths=["events"], is_streaming=True)
        return DataFrame(found, self)  # type: ignore[arg-type]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Session]:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    return _Session()


def _query(text: str = _QUERY, **options: Any) -> Any:
    with interpreted():
        return only_query(celc.compile(text, order_by="ts", **options))


def _plan(session: _Session, frame: Any) -> str:
    return str(frame._plan.plan(session.client))


def test_match_asks_nothing(session: _Session) -> None:
    found = _query().match(session.events())
    assert found.columns == ["key", "start_time", "end_time", "A", "B"]
    text = _plan(session, found)
    # A server analyses these at once, before there is a table.
    for eager in ("with_columns {", "to_schema {", "to_df {"):
        assert eager not in text
    assert "declares \\'v\\' as LONG" in text
    assert "map_partitions {" in text


def test_match_stream_asks_nothing(session: _Session) -> None:
    with pytest.warns(PlanWarning, match=r"spark-pipeline.yml"):
        found = _query().match_stream(session.events(stream=True))
    text = _plan(session, found)
    assert "transform_with_state" in text


def test_a_stream_of_a_table_is_warned_of(session: _Session) -> None:
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import Read

    events: Any = DataFrame(Read("made.here", is_streaming=True), session)  # type: ignore[arg-type]
    with pytest.warns(PlanWarning) as told:
        _query().match_stream(events)
    assert "the table 'made.here' has to be there" in " ".join(str(one.message) for one in told)


def test_chains_and_row_patterns_ask_nothing(session: _Session) -> None:
    chain = (
        "CREATE STREAM S { EVENT A { key: STRING, ts: TIMESTAMP } }\n"
        "QUERY Pairs:\nSELECT a.ts AS first FROM S WHERE A AS a ; A PARTITION BY [key] "
        "WITHIN 5 MINUTES [ts]\n"
        "QUERY Twice:\nSELECT * FROM Pairs WHERE Pairs ; Pairs PARTITION BY [key] "
        "WITHIN 5 MINUTES [ts]"
    )
    with interpreted():
        module = celc.compile(chain, order_by="ts")
        alone = chain.rpartition(" PARTITION")[0] + " WITHIN 5 MINUTES [ts]"
        apart = celc.compile(alone, order_by="ts")
        rows: Any = only_query(
            celc.compile(
                "CREATE TABLE T (k STRING, v LONG, ts TIMESTAMP);\n"
                "SELECT * FROM T MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
                "MEASURES LAST(A.v) AS v PATTERN (A+) DEFINE A AS v > 3)",
                dialect="match_recognize",
            )
        )
    for query in (module.Twice, apart.Twice, rows):
        assert "map_partitions {" in _plan(session, query.match(session.events()))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda q, s: q.match(s.events(stream=True)), "use match_stream"),
        (lambda q, s: q.match_stream(s.events()), "use match"),
        (lambda q, s: q.match(s.events(), ranges=4), "ranges=… asks Spark"),
        (lambda q, s: q.match(s.events(), presorted=True), "presorted=True asks Spark"),
        (lambda q, s: q.match(s.events(), plan="joins"), "plan='joins' asks Spark"),
        (lambda q, s: q.match_compact(s.events()), "call match"),
        (lambda q, s: q.explain_plan(s.events()), "call match or match_stream"),
        (lambda q, s: q.with_options(clock=s.events()), "give the time itself"),
        (lambda q, s: q.with_options(tiebreak="line").match(s.events()), "declare it as an attr"),
        (
            lambda q, s: q.match_stream(s.events(stream=True), buckets=1, checkpoint="there"),
            "the pipeline keeps those of its tables",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::celc_runtime.plan.errors.PlanWarning")
def test_what_asks_spark_is_refused(session: _Session, call: Any, words: str) -> None:
    with pytest.raises(EventError) as refused:
        call(_query(), session)
    assert words in str(refused.value)


def test_an_absence_at_the_end_needs_a_clock(session: _Session) -> None:
    query = _query(
        "CREATE STREAM S { EVENT A { ts: TIMESTAMP }, EVENT B { ts: TIMESTAMP } } "
        "SELECT * FROM S WHERE A ; !B FOR 1 HOUR"
    )
    with pytest.raises(EventError, match=r"at_end='closed'"):
        query.match(session.events())
    query.with_options(at_end="closed").match(session.events())


def test_outside_of_a_query_function_all_may_be_asked() -> None:
    with pytest.raises(AssertionError, match="the server was asked"):
        _query().match(_Session(flow="").events())


def test_a_stream_in_sql_is_seen(session: _Session) -> None:
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import SQL

    def of(text: str) -> Any:
        return DataFrame(SQL(text, [], {}, []), session)  # type: ignore[arg-type]

    assert is_stream(of("SELECT * FROM STREAM(events)"))
    assert not is_stream(of("SELECT * FROM streams"))


def test_schemas_are_read_without_spark() -> None:
    text = (
        "`a``b` STRUCT<`x`: ARRAY<MAP<STRING, DECIMAL(3, 2)>>, `y`: INTERVAL DAY TO SECOND>, "
        "c TIMESTAMP_NTZ, d STRUCT<>"
    )
    told = "struct<a`b:struct<x:array<map<string,decimal(3,2)>>,y:interval day to second>,"
    assert schema_of_ddl(text).simpleString() == told + "c:timestamp_ntz,d:struct<>>"
