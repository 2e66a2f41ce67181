"""What does not fit a stream is refused when `match_stream` is called, and nothing is started."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from celc_runtime import EventError, PlanWarning, split_late
from celc_runtime.stream import session
from celc_runtime.stream.buckets import labels_of, spark_hashes
from celc_runtime.stream.session import CHANGELOG, ROCKS_DB, STORE, TASKS
from engines import as_on_spark
from stream_routes import END, SETTINGS, query, settings, table

WINDOWED = "SELECT * FROM S WHERE A AS x ; B AS y PARTITION BY id WITHIN 5 SECONDS [ts]"


@pytest.fixture(scope="module")
def frame(spark: Any) -> Iterator[Any]:
    """A streaming DataFrame of events; nobody ever asks for its rows."""
    with settings(spark, SETTINGS):
        yield _frame(spark)


def _frame(spark: Any) -> Any:
    return (
        spark.readStream.format("rate")
        .load()
        .selectExpr(
            "'A' AS type",
            "CAST(value AS INT) AS id",
            "CAST(value AS DOUBLE) AS v",
            "'n' AS name",
            "timestamp AS ts",
            "value AS row",
            "CAST(value AS DECIMAL(9, 2)) AS price",
            "struct(value AS inner) AS deep",
            "timestamp AS at",
        )
    )


def _refused(error: type[Exception], said: str, text: str, frame: Any, **options: Any) -> None:
    compiled = {name: options.pop(name) for name in ("order_by",) if name in options}
    with pytest.raises(error, match=re.escape(said)):
        query(text, **compiled).match_stream(frame, **options)


QUERIES = {
    "without a window": (
        "its state grows with the stream, because it has no window, so a match may begin with any "
        "event: give it a window (WITHIN), or say match_stream(df, allow_unbounded_state=True)",
        "SELECT * FROM S WHERE A ; B PARTITION BY id",
        {},
    ),
    "a selector inside": (
        "a selector inside the formula compares matches over the whole stream",
        "SELECT * FROM S WHERE NXT((A AS x ; B AS y) FILTER x.id = y.id) ; A WITHIN 9 EVENTS",
        {},
    ),
    "longest without a window": (
        "SELECT LONGEST DISJOINT without a window knows its matches only when the stream ends: "
        "give it a window (WITHIN), or use SELECT FIRST",
        "SELECT LONGEST DISJOINT * FROM S WHERE A ; B PARTITION BY id",
        {"allow_unbounded_state": True},
    ),
    "longest, cut by LIMIT": (
        "when all of them are is known of a window of time on the first order column 'ts' alone",
        "SELECT LONGEST * FROM S WHERE A ; B WITHIN 9 EVENTS LIMIT 1",
        {},
    ),
    "longest, forgotten": (
        "key_ttl would forget matches of SELECT LONGEST that wait for their window to pass",
        "SELECT LONGEST * FROM S WHERE A ; B PARTITION BY id WITHIN 9 EVENTS",
        {"key_ttl": "1 hour"},
    ),
    "longest, with a selector inside": (
        "with SELECT FIRST DISJOINT a stream cannot forget the events that a selector inside the "
        "formula compares",
        "SELECT FIRST DISJOINT * FROM S WHERE NXT((A AS x ; B AS y) FILTER x.id = y.id) ; A "
        "WITHIN 9 EVENTS",
        {},
    ),
    "any": (
        "CONSUME BY ANY with PARTITION BY reads all partitions in one order, and a stream keeps "
        "each by itself: use CONSUME BY PARTITION",
        WINDOWED + " CONSUME BY ANY",
        {},
    ),
    "without order": (
        "order",
        "SELECT * FROM S WHERE A ; B WITHIN 3 EVENTS",
        {"order_by": None},
    ),
    "no time": (
        "orders events by 'v', which it declares as DOUBLE: a watermark needs a TIMESTAMP",
        "SELECT * FROM S WHERE A ; B WITHIN 3 EVENTS",
        {"order_by": "v"},
    ),
    "a long window": (
        "a window on a stream can hold 1,048,576 EVENTS at most, and this one holds 2,000,000",
        "SELECT * FROM S WHERE A ; B WITHIN 2000000 EVENTS",
        {},
    ),
    "a column called kind": (
        "there is a column 'kind', and late='side' adds one: choose another name with AS",
        "SELECT x, COUNT(x) AS kind FROM S WHERE A AS x ; B WITHIN 3 EVENTS",
        {"late": "side"},
    ),
    "a column that Spark takes for kind": (
        "there is a column 'Kind', and late='side' adds one: choose another name with AS",
        "SELECT x, COUNT(x) AS Kind FROM S WHERE A AS x ; B WITHIN 3 EVENTS",
        {"late": "side"},
    ),
    "a decimal": (
        "the tiebreak column 'price' is of type decimal(9,2), which the state of a stream does not "
        "hold: cast it to one of",
        WINDOWED,
        {"tiebreak": "price"},
    ),
    "a struct": (
        "values of the type struct<inner:bigint> have no order",
        WINDOWED,
        {"tiebreak": "deep"},
    ),
    "no such tiebreak": ("'nothing'", WINDOWED, {"tiebreak": "nothing"}),
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries_that_no_stream_can_run(name: str, frame: Any) -> None:
    said, text, options = QUERIES[name]
    _refused(EventError, said, text, frame, **options)


OPTIONS = {
    "late must be one of 'drop', 'error', 'side', not 'keep'": {"late": "keep"},
    "api must be 'row', 'pandas' or None, not 'arrow'": {"api": "arrow"},
    "watermark must be a duration like '10 seconds' or '1 hour 30 minutes'": {"watermark": "10"},
    "hour, day), not '1 month'": {"watermark": "1 month"},
    "not '-1 second'": {"watermark": "-1 second"},
    "not 10": {"watermark": 10},
    "max_event_time_skew must be a duration": {"max_event_time_skew": "soon"},
    "key_ttl must be a duration": {"key_ttl": ""},
    "its event time is 'ts', not 'at'": {"event_time": "at"},
    "buckets must be between 1 and 16,384, not 0": {"buckets": 0},
    "buckets must be between 1 and 16,384, not 16,385": {"buckets": 16_385},
}


@pytest.mark.parametrize("said", OPTIONS)
def test_options_that_cannot_be(said: str, frame: Any) -> None:
    _refused(ValueError, said, WINDOWED, frame, **OPTIONS[said])


@pytest.mark.parametrize("buckets", [True, 2.0, "2"])
def test_buckets_are_a_whole_number(buckets: Any, frame: Any) -> None:
    said = f"buckets must be a whole number, not {buckets!r}"
    _refused(TypeError, said, WINDOWED, frame, buckets=buckets)


def test_labels_follow_the_hash_that_spark_partitions_by(spark: Any) -> None:
    """So that each task gets as many buckets as another."""
    values = [0, 1, -1, 7, 2**31 - 1, -(2**31), *range(1000, 1100), *labels_of(64).tolist()]
    numbers = spark.createDataFrame([(value,) for value in values], "value INT")
    found = numbers.selectExpr("value", "hash(value) AS hash").collect()
    wanted = spark_hashes(np.array([row.value for row in found])).tolist()
    assert [row.hash for row in found] == wanted


def test_a_batch_is_for_match(spark: Any) -> None:
    batch = spark.createDataFrame(table([END]))
    said = "match_stream reads a stream (spark.readStream), and this DataFrame is there as a whole"
    _refused(EventError, said, WINDOWED, batch)


def test_a_stream_is_not_for_match(frame: Any) -> None:
    with pytest.raises(EventError, match="match_stream"):
        query(WINDOWED).match(frame)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ts": "CAST(ts AS STRING)"}, "'ts'"),
        ({"ts": "unix_millis(ts)"}, "'ts'"),
        ({"ts": "CAST(ts AS DATE)"}, "'ts'"),
        ({"v": "CAST(v AS STRING)"}, "'v'"),
        ({"v": "deep"}, "'v'"),
    ],
)
def test_columns_of_another_type(change: dict[str, str], said: str, frame: Any) -> None:
    changed = frame.selectExpr(*(f"{change.get(name, name)} AS {name}" for name in frame.columns))
    _refused(EventError, said, WINDOWED, changed)


def test_a_column_is_missing(frame: Any) -> None:
    _refused(EventError, "'v'", WINDOWED, frame.drop("v"))


def test_split_late_takes_what_has_late_events(frame: Any) -> None:
    with pytest.raises(EventError, match=re.escape("match_stream(df, late='side')")):
        split_late(query(WINDOWED).match_stream(frame))


def test_unbounded_state_can_be_allowed(frame: Any) -> None:
    unbounded = query("SELECT x[v] FROM S WHERE A AS x ; B PARTITION BY id")
    found = unbounded.match_stream(frame, allow_unbounded_state=True)
    assert found.isStreaming
    assert found.columns == as_on_spark(unbounded).output_schema.names


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
            "RocksDB store, and the session has 'org.apache.spark.sql.execution.streaming.state."
            f"HDFSBackedStateStoreProvider': before match_stream is called, call spark.conf.set("
            f"'{STORE}'",
        ),
        ("RocksDB", "the session has 'RocksDB': before match_stream"),
        (
            "com.acme.RocksDBStateStoreProvider",
            "Spark cannot load its class com.acme.RocksDBStateStoreProvider: call spark.conf.set(",
        ),
        ("it's.RocksDBStateStoreProvider", "Spark cannot load its class it's.RocksDBStateStore"),
    ],
)
def test_a_session_without_the_store_is_refused_before_a_stream_starts(
    store: str, said: str, frame: Any, spark: Any
) -> None:
    with settings(spark, {STORE: store}):
        _refused(RuntimeError, said, WINDOWED, frame)
    assert query(WINDOWED).match_stream(frame).isStreaming


@contextmanager
def _unset(spark: Any, *names: str) -> Iterator[None]:
    """A session in which nobody has set these."""
    with settings(spark, dict.fromkeys(names, "") | {TASKS: "7"}):
        for name in (*names, TASKS):
            spark.conf.unset(name)
        yield


def test_what_nobody_has_set_is_set_and_said_once(frame: Any, spark: Any) -> None:
    with _unset(spark, STORE, CHANGELOG):
        with pytest.warns(PlanWarning, match="match_stream has set") as told:
            query(WINDOWED).match_stream(frame)
        assert told[0].filename == __file__
        assert [spark.conf.get(name) for name in (STORE, CHANGELOG)] == [ROCKS_DB, "true"]
        with warnings.catch_warnings():
            warnings.simplefilter("error", PlanWarning)
            query(WINDOWED).match_stream(frame)


def test_what_somebody_has_set_stays(frame: Any, spark: Any) -> None:
    with _unset(spark, STORE), settings(spark, {CHANGELOG: "false"}):
        with pytest.warns(PlanWarning) as told:
            query(WINDOWED).match_stream(frame)
        assert CHANGELOG not in str(told[0].message)
        assert spark.conf.get(CHANGELOG) == "false"


def test_a_session_that_forbids_settings_is_refused(
    frame: Any, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkException

    def forbidden(self: Any, name: str, value: Any) -> None:
        raise PySparkException(f"[CANNOT_MODIFY_CONFIG] Cannot modify {name}.\nSee the manual.")

    with _unset(spark, STORE, CHANGELOG), monkeypatch.context() as patched:
        patched.setattr(type(spark.conf), "set", forbidden)
        _refused(RuntimeError, "call spark.conf.set(", WINDOWED, frame)
        _refused(
            RuntimeError,
            f"set it here: [CANNOT_MODIFY_CONFIG] Cannot modify {STORE}.)",
            WINDOWED,
            frame,
        )


def test_a_changelog_that_is_forbidden_is_told(
    frame: Any, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkException

    def forbidden(self: Any, name: str, value: Any) -> None:
        raise PySparkException(f"[CANNOT_MODIFY_CONFIG] Cannot modify {name}.")

    with _unset(spark, CHANGELOG), monkeypatch.context() as patched:
        patched.setattr(type(spark.conf), "set", forbidden)
        with pytest.warns(PlanWarning, match="writes the whole store") as told:
            assert query(WINDOWED).match_stream(frame).isStreaming
        said = [one for one in told if "whole store" in str(one.message)]
        assert [one.filename for one in said] == [__file__]


def test_many_tasks_on_few_cores_are_told_once(frame: Any, spark: Any) -> None:
    session._tell_of_tasks.cache_clear()
    with _unset(spark), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", PlanWarning)
        for _ in range(2):
            query(WINDOWED).match_stream(frame)
    said = [str(one.message) for one in told if TASKS in str(one.message)]
    # Connect does not say how many cores there are.
    if hasattr(spark, "_sc"):
        assert len(said) == 1
        assert f"spark.conf.set('{TASKS}', '2')" in said[0]
        assert told[0].filename == __file__
    else:
        assert said == []


def test_a_spark_without_the_library_of_the_store_is_refused(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_LIBRARY", "org.rocksdb.NotThere")
    said = "cannot load its class org.rocksdb.NotThere: add the JAR of org.rocksdb:rocksdbjni"
    _refused(RuntimeError, said, WINDOWED, frame)
