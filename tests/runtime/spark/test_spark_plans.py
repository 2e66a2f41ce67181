"""Which plan `match` chooses on Spark, and that every one gives the answer of `match_table`.

Few queries and jobs, because each costs Spark seconds. What time ranges find is tested without
Spark in test_time_ranges.py. Only what a classic session and one of Spark Connect both have is
used.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery, EventError, EventWarning, PlanWarning
from celc_runtime.plan.plan import Window
from celc_runtime.run.ranges import TimeRange, cuts_for, ranges_of
from celc_runtime.spark import choose, facts
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.probe import Size, arrow_line, explained, parallelism
from celc_runtime.spark.input.pushdown import can_matter, can_matter_to_one
from celc_runtime.spark.time_ranges import Draw, counted, sampled, within
from engines import interpreted, only_query, table_of
from shares import share
from spark_conditions import Generator, queries, table_of_values
from spark_routes import INTERPRETED_PLANS
from strategies import compiled_queries, random_stream
from stream_routes import settings

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DECLARATION = (
    "CREATE STREAM S {\n"
    + ",\n".join(
        f"  EVENT {name} {{ id: LONG, value: DOUBLE, name: STRING, ts: TIMESTAMP }}"
        for name in ("A", "B", "C")
    )
    + "\n}\n"
)
EVENTS_WINDOW = "SELECT * FROM S WHERE A ; B ; C WITHIN 4 EVENTS"
KEYED = (
    "SELECT a[value], b FROM S WHERE (A AS a ; B AS b) FILTER a.value > 3 AND b.name LIKE 'p%' "
    "PARTITION BY id WITHIN 30 SECONDS [ts]"
)
_TIME_WINDOW = (
    "SELECT x[value], B FROM S WHERE (A AS x ; B) FILTER x.value > 4 WITHIN 2 SECONDS [ts]"
)
NEW_YORK = "America/New_York"


def _compiled(text: str, **options: Any) -> CompiledQuery:
    return only_query(
        celc.compile(
            DECLARATION + text,
            **{"order_by": "ts", "tiebreak": "row", "positions": True} | options,
        )
    )


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    with settings(spark, INTERPRETED_PLANS):
        yield


@pytest.fixture(scope="module")
def keyed() -> CompiledQuery:
    return _compiled(KEYED)


def stream(seed: int, rows: int, *, hot: float = 0.0, keys: int = 7) -> pa.Table:
    """Events of one hour in New York in which the clock is set back, some of undeclared types, some
    at one time; with probability `hot` of the key 3."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(2026, 11, 1, 5, 30, tzinfo=dt.UTC)
    times = np.sort(rng.integers(0, 3600, rows)) * 1_000_000
    ids = np.where(rng.random(rows) < hot, 3, rng.integers(0, keys, rows))
    values = rng.choice([1.0, 2.5, 3.0, 4.5, np.nan], rows)
    return pa.table(
        {
            "type": rng.choice(["A", "B", "C", "Stranger"], rows, p=[0.3, 0.3, 0.3, 0.1]),
            "id": pa.array(ids, mask=rng.random(rows) < 0.05),
            "value": pa.array(values, mask=rng.random(rows) < 0.1),
            "name": rng.choice(["p", "pq", "q"], rows),
            "ts": pa.array(
                times + int(start.timestamp()) * 1_000_000, pa.timestamp("us", tz="UTC")
            ),
            "row": np.arange(rows),
        }
    )


def _read(spark: Any, events: pa.Table, folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    pq.write_table(events, folder / "events.parquet", row_group_size=500)
    return spark.read.parquet(str(folder))


def _matches(query: CompiledQuery, frame: Any, **options: Any) -> list[str]:
    found = query.match(frame, **options).toArrow().cast(query.output_schema)
    return sorted(map(repr, found.to_pylist()))


def _wanted(query: CompiledQuery, events: pa.Table) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        wanted = sorted(map(repr, query.match_table(events).to_pylist()))
    assert len(wanted) > 20
    return wanted


# --- answers --------------------------------------------------------------------------------------


def test_time_ranges(spark: Any, tmp_path: Path) -> None:
    events = stream(1, 3000)
    frame = _read(spark, events, tmp_path)
    absent = "!(B AS b FILTER b.id = a.id) FOR 20 SECONDS"
    with interpreted():
        found = [_compiled(EVENTS_WINDOW), _compiled(f"SELECT * FROM S WHERE A AS a ; {absent}")]
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
        for query in found:
            assert "4 time ranges" in query.explain_plan(frame, ranges=4)
            assert _matches(query, frame, ranges=4) == _wanted(query, events)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    # NULL is found whatever range it would be in.
    last = pa.array(events["type"].to_pylist().index("B", 2500) == row for row in range(3000))
    spoilt, query = events.set_column(4, "ts", pc.if_else(last, None, events["ts"])), found[0]
    with pytest.raises(Exception, match="the order column 'ts' is NULL in row 0"):
        query.match(_read(spark, spoilt, tmp_path / "spoilt"), ranges=3).toArrow()


def test_a_hot_key(spark: Any, tmp_path: Path, keyed: CompiledQuery) -> None:
    events = stream(2, 4000, hot=0.6)
    frame = _read(spark, events, tmp_path)
    text = keyed.explain_plan(frame, ranges=4)
    assert "hot key: id=3 is cut into 3 time ranges" in text
    assert _matches(keyed, frame, ranges=4) == _wanted(keyed, events)


@pytest.mark.long
def test_other_answers_of_a_hot_key(spark: Any, tmp_path: Path, keyed: CompiledQuery) -> None:
    """Of what is no file, and without positions: rows that cannot matter are filtered. And matches
    that are decided later than they end. Their ranges are those of any key."""
    events = stream(2, 4000, hot=0.6)
    frame = _read(spark, events, tmp_path)
    short = keyed.with_options(positions=False)
    assert "filtered before they are moved" in short.explain_plan(frame, ranges=4)
    assert _matches(short, frame.repartition(3), ranges=4) == _wanted(short, events)
    late = _compiled("SELECT * FROM S WHERE A ; !B FOR 9 SECONDS PARTITION BY id")
    assert "hot key: id=3 is cut into 3 time ranges" in late.explain_plan(frame, ranges=4)
    assert _matches(late, frame, ranges=4) == _wanted(late, events)


def test_a_stream_by_key(spark: Any, tmp_path: Path, keyed: CompiledQuery) -> None:
    events = stream(3, 2000)
    frame = _read(spark, events, tmp_path)
    assert _matches(keyed, frame) == _wanted(keyed, events)
    short = keyed.with_options(positions=False)
    assert short.match(frame).columns == ["id", "start_time", "end_time", "a", "b"]
    assert _matches(short, frame) == _wanted(short, events)
    assert keyed.match(frame.limit(0)).toArrow().num_rows == 0


def test_presorted(spark: Any, tmp_path: Path, keyed: CompiledQuery) -> None:
    events = stream(4, 2000)
    frame = _read(spark, events, tmp_path)
    spread = frame.repartition(3, "id").sortWithinPartitions("id", "ts", "row")
    assert "Spark knows that each is in one" in keyed.explain_plan(spread, presorted=True)
    found = keyed.match(spread, presorted=True)
    assert explained(found).count("Exchange") == explained(spread).count("Exchange") == 1
    assert explained(found).count("Sort ") == 1
    assert _matches(keyed, spread, presorted=True) == _wanted(keyed, events)
    # Files in order: Spark does not know, so the keys are looked at.
    by_key = events.sort_by([("id", "ascending"), ("ts", "ascending"), ("row", "ascending")])
    nulls_first = pa.concat_tables(
        [by_key.filter(by_key["id"].is_null()), by_key.filter(by_key["id"].is_valid())]
    )
    files = _read(spark, nulls_first, tmp_path / "sorted")
    assert "they were read once" in keyed.explain_plan(files, presorted=True)
    assert "Exchange" not in explained(keyed.match(files, presorted=True))
    assert _matches(keyed, files, presorted=True) == _wanted(keyed, events)


def test_presorted_events_that_are_not(spark: Any, tmp_path: Path, keyed: CompiledQuery) -> None:
    frame = _read(spark, stream(5, 600), tmp_path)
    with pytest.raises(Exception, match=r"comes back in row|are not in the order of ts"):
        keyed.match(frame.coalesce(1), presorted=True).toArrow()
    falling = frame.repartition(2, "id").sortWithinPartitions("id", frame.ts.desc())
    with pytest.raises(Exception, match="are not in the order of ts, row"):
        keyed.match(falling, presorted=True).toArrow()
    twice = frame.repartition(3).sortWithinPartitions("id", "ts", "row")
    message = r"the partition id=\w+ lies in [23] Spark partitions: repartition the DataFrame by id"
    with pytest.raises(EventError, match=message):
        keyed.match(twice, presorted=True)


CHOSEN = (
    "SELECT a[value], b FROM S WHERE (A AS a ; B AS b) FILTER a.value > 3 AND b.name LIKE 'p%' "
    "PARTITION BY [src, dst] WITHIN 30 SECONDS [ts]"
)
"""Its key is `src` of A, and `dst` of B and C."""


def _of_chosen_key(text: str = CHOSEN, type_: str = "LONG") -> CompiledQuery:
    declared = DECLARATION.replace("EVENT A { id: LONG", f"EVENT A {{ src: {type_}")
    declared = declared.replace("{ id: LONG", f"{{ dst: {type_}")
    with interpreted():
        return only_query(
            celc.compile(declared + text, order_by="ts", tiebreak="row", positions=True)
        )


def _with_chosen_keys(events: pa.Table) -> pa.Table:
    """`id` as `src` or `dst`, by the type; where the type lacks the attribute, another number."""
    is_first = pc.equal(events["type"], "A")
    numbers = pa.array(np.arange(len(events)) % 3)
    src, dst = (
        pc.if_else(is_first, events["id"], numbers),
        pc.if_else(is_first, numbers, events["id"]),
    )
    return events.drop_columns("id").append_column("src", src).append_column("dst", dst)


@pytest.mark.long
def test_a_key_by_the_type_of_the_event(spark: Any, tmp_path: Path) -> None:
    """In one shuffle, cut where it is hot, presorted, and where rows are filtered."""
    plain = stream(8, 3000, hot=0.6)
    events, query = _with_chosen_keys(plain), _of_chosen_key()
    with interpreted():
        of_id = _compiled(CHOSEN.replace("[src, dst]", "id"))
    frame, wanted = _read(spark, events, tmp_path), _wanted(query, events)
    assert len(wanted) == len(_wanted(of_id, plain))
    text = query.explain_plan(frame, ranges=4)
    assert "hot key: [src, dst]=3 is cut into 3 time ranges" in text
    assert "columns: type, src, value, name, ts, dst, row (7 of the DataFrame's 7)" in text
    assert _matches(query, frame, ranges=4) == wanted
    # The column that is made may be called like one of the DataFrame, whose columns stay away.
    other = frame.withColumn("[src, dst]", _expr("'x'"))
    assert _matches(query, other) == wanted
    short = query.with_options(positions=False)
    assert "filtered before they are moved" in short.explain_plan(frame)
    assert _matches(short, frame) == _wanted(short, events)
    key = _expr(query.plan.source.key_sql[0])
    spread = frame.repartition(3, key).sortWithinPartitions(key, "ts", "row")
    assert _matches(query, spread, presorted=True) == wanted
    twice = frame.repartition(3).sortWithinPartitions(key, "ts", "row")
    message = r"repartition the DataFrame by CASE WHEN `type` IN \('A'\) THEN `src` WHEN"
    with pytest.raises(EventError, match=message):
        query.match(twice, presorted=True)
    # In one common order there is no column to be made.
    consuming = _of_chosen_key(CHOSEN + " CONSUME BY ANY")
    with pytest.warns(PlanWarning, match="depends on those of all partitions"):
        assert _matches(consuming, frame) == _wanted(consuming, events)


def test_a_key_of_columns_of_two_types(spark: Any, tmp_path: Path) -> None:
    """Widened both, and as UTC where a time has no zone, whatever the session's zone."""
    events = _with_chosen_keys(stream(9, 1200))
    frame = spark.createDataFrame(events)
    query = _of_chosen_key()
    narrow = frame.withColumn("src", _expr("cast(src AS SMALLINT)"))
    assert _matches(query, narrow) == _wanted(query, events)
    times = _of_chosen_key(type_="TIMESTAMP")
    for name in ("src", "dst"):
        at = events.schema.get_field_index(name)
        zoned = pc.multiply(events[name], 3_600_000_000).cast(pa.timestamp("us", "UTC"))
        events = events.set_column(at, name, zoned)
    wanted = _wanted(times, events)
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
        at = events.schema.get_field_index("dst")
        naive = events.set_column(at, "dst", events["dst"].cast(pa.timestamp("us")))
        mixed = _read(spark, naive, tmp_path)
        assert [dict(mixed.dtypes)[name] for name in ("src", "dst")] == [
            "timestamp",
            "timestamp_ntz",
        ]
        assert _matches(times, mixed, ranges=2) == wanted
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_key_by_the_stream_and_type_of_the_event(spark: Any) -> None:
    """One type name has another attribute in each stream; names need quotes, one is a field's."""
    text = """CREATE STREAM S { EVENT `it's\\` { `h.src`: LONG, ts: TIMESTAMP } }
    CREATE STREAM T { EVENT `it's\\` { dst: LONG, ts: TIMESTAMP } }
    SELECT x, y FROM S, T WHERE S>`it's\\` AS x ; T>`it's\\` AS y
    PARTITION BY [`h.src`, dst] WITHIN 9 EVENTS"""
    with interpreted():
        query = only_query(celc.compile(text, order_by="ts", tiebreak="row"))
    plain = stream(10, 900).filter(pc.not_equal(stream(10, 900)["type"], "C"))
    known = pc.if_else(pc.equal(plain["type"], "Stranger"), "Stranger", "it's\\")
    streams = pc.if_else(pc.equal(plain["type"], "A"), "S", "T")
    keyed = _with_chosen_keys(plain)
    events = keyed.set_column(0, "type", known).append_column("stream", streams)
    src = events["src"].combine_chunks()
    struct = pa.StructArray.from_arrays([src], fields=[pa.field("src", pa.int64())])
    events = events.drop_columns("src").append_column("h", struct)
    frame, wanted = spark.createDataFrame(events), _wanted(query, events)
    assert _matches(query, frame) == wanted
    assert _matches(query, frame, ranges=3) == wanted
    key = _expr(query.plan.source.key_sql[0].replace("`h.src`", "h.src"))
    spread = frame.repartition(3, key).sortWithinPartitions(key, "ts", "row")
    assert _matches(query, spread, presorted=True) == wanted


@pytest.mark.long
@pytest.mark.usefixtures("compiling_workers")
@pytest.mark.parametrize("seed", range(600, 612))
def test_random_keys_partitions_and_batches(
    seed: int, spark: Any, tmp_path: Path, keyed: CompiledQuery
) -> None:
    """1 to 10⁵ keys, even or skewed, 1 to 64 partitions in and out, batches cut anyhow."""
    rng = random.Random(seed)
    rows = rng.choice([2_000, 30_000, 200_000])
    keys = min(rows // 2, rng.choice([1, 2, 50, 5_000, 100_000]))
    events = stream(seed, rows, hot=rng.choice([0.0, 0.3, 0.7, 0.95]), keys=keys)
    frame = _read(spark, events, tmp_path).repartition(rng.choice([1, 3, 64]))
    settings = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": rng.choice([1, 7, 1000, 10_000, 0]),
        "spark.sql.shuffle.partitions": rng.choice([1, 5, 64]),
        "spark.sql.adaptive.enabled": rng.choice(["true", "false"]),
    }
    if rows > 2_000 and settings["spark.sql.execution.arrow.maxRecordsPerBatch"] == 1:
        settings["spark.sql.execution.arrow.maxRecordsPerBatch"] = 311
    before = {name: spark.conf.get(name) for name in settings}
    keyless = _compiled(rng.choice([EVENTS_WINDOW, _TIME_WINDOW]))
    try:
        for name, value in settings.items():
            spark.conf.set(name, str(value))
        of_keys: list[str] = []
        for ranges in (None, rng.randint(2, 9)):
            for query in (keyed, keyed.with_options(positions=False), keyless):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", EventWarning)
                    wanted = sorted(map(repr, query.match_table(events).to_pylist()))
                assert _matches(query, frame, ranges=ranges) == wanted, (settings, ranges)
                of_keys = wanted if query is keyed else of_keys
        spread = frame.repartition(5, "id").sortWithinPartitions("id", "ts", "row")
        assert _matches(keyed, spread, presorted=True) == of_keys
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


# --- choices --------------------------------------------------------------------------------------


def test_no_job_is_run_to_plan_a_small_one(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keyed: CompiledQuery
) -> None:
    """Spark's own count of its jobs, also where sizes say too much, as those of long texts do."""
    frame = _read(spark, stream(6, 4000, hot=0.9), tmp_path)
    spark.sparkContext.setJobGroup("celc-plans", "jobs before the first row")
    try:
        keyed.match(frame)
        monkeypatch.setattr(facts, "size_of", lambda _: Size(1 << 30, True))
        keyed.match(frame)
        keyed.with_options(positions=False).match_compact(frame)
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("celc-plans")
        assert not jobs
        # With ranges= somebody asks for a look.
        keyed.match(frame, ranges=2)
        assert spark.sparkContext.statusTracker().getJobIdsForGroup("celc-plans")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_files_and_caches_are_cut_without_being_asked(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keyed: CompiledQuery
) -> None:
    query = _compiled(EVENTS_WINDOW)
    frame = _read(spark, stream(6, 4000, hot=0.9), tmp_path)
    assert "by its size it has hardly more than" in query.explain_plan(frame)
    assert "by its size it has hardly more than" in keyed.explain_plan(frame)
    monkeypatch.setattr(facts, "size_of", lambda _: Size(None, False))
    assert "events are too few" in query.explain_plan(frame)
    assert "events are too few" in keyed.explain_plan(frame)
    monkeypatch.setattr(choose, "_ROWS_PER_RANGE", 100)
    assert "plan: 2 time ranges" in query.explain_plan(frame)
    assert "plan: 2 time ranges" in query.explain_plan(frame.where("id > 0").cache())
    assert "id=3 is cut into 2 time ranges" in keyed.explain_plan(frame)
    shuffled = query.explain_plan(frame.repartition(3))
    assert "plan: one task reads all events, because its plan has 'Exchange'" in shuffled
    changing = query.explain_plan(frame.where("rand() < 2"))
    assert "has 'rand', so that two readings may differ" in changing
    assert "ranges=1 was asked for" in query.explain_plan(frame, ranges=1)
    assert "ranges=1 was asked for" in keyed.explain_plan(frame, ranges=1)
    wide = _compiled("SELECT * FROM S WHERE A ; B ; C WITHIN 9 HOURS [ts]")
    assert "holds too large a part" in wide.explain_plan(frame)


def _below_tasks(plan: str) -> str:
    """The part of a plan that makes what tasks read, without what is made of their matches."""
    return plan[plan.index("MapInArrow") :]


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("A ; B", "no window"),
        ("A ; NXT(B ; C) {} WITHIN 2 EVENTS", "a selector inside the formula"),
        ("A ; LAST(B ; C) {} WITHIN 2 MINUTES [ts]", "a selector inside the formula"),
        ("C ; MAX(A+ ; B) {} WITHIN 2 EVENTS", "a selector inside the formula"),
        ("A ; B {} WITHIN 2 EVENTS CONSUME BY ANY", "CONSUME BY ANY"),
        ("A ; B {} WITHIN 2 EVENTS CONSUME BY PARTITION", "CONSUME BY PARTITION"),
        ("A ; B {} WITHIN 2 [value]", "measured on 'value'"),
    ],
)
def test_what_must_not_be_split_is_not(formula: str, why: str, spark: Any, tmp_path: Path) -> None:
    """However many ranges are asked for, hot key or not."""
    frame = _read(spark, stream(7, 400, hot=0.9), tmp_path)
    with interpreted():
        keyless = _compiled("SELECT * FROM S WHERE " + formula.format(""))
        by_key = _compiled("SELECT * FROM S WHERE " + formula.format("PARTITION BY id"))
    text = keyless.explain_plan(frame, ranges=4)
    assert "plan: one task reads all events" in text
    assert why in text
    with pytest.warns(PlanWarning, match="is run by one task, because .*PARTITION BY would"):
        assert "Union" not in explained(keyless.match(frame, ranges=4))
    if "ANY" in why or why == "no window":
        return
    text = by_key.explain_plan(frame, ranges=4)
    assert "hot keys: none is cut into time ranges" in text
    assert why in text
    assert "explode" not in _below_tasks(explained(by_key.match(frame, ranges=4)))


def test_only_needed_columns_are_read(spark: Any, tmp_path: Path, keyed: CompiledQuery) -> None:
    events = stream(8, 100)
    for number in range(34):
        events = events.append_column(f"more{number}", events["name"])
    frame = _read(spark, events, tmp_path)
    text = keyed.explain_plan(frame)
    assert "columns: type, id, value, name, ts, row (6 of the DataFrame's 40)" in text
    plan = _below_tasks(explained(keyed.match(frame, ranges=1)))
    read = "struct<type:string,id:bigint,value:double,name:string,ts:timestamp,row:bigint>"
    assert f"ReadSchema: {read}" in plan
    # All rows reach the tasks, which number them; those that cannot matter without attributes.
    assert "Filter (" not in plan
    moved = re.search(r"Exchange.*\n.*Project \[([^\]]*)\]", plan)
    assert moved is not None
    light = re.sub(r"#\d+L?", "", moved.group(1))
    typed = "if (matters) coalesce(type, no type) else null AS type, id, "
    assert light.startswith(f"{typed}if (matters) value else null AS value, ")
    assert light.endswith(", ts, row")
    few = keyed.with_options(positions=False)
    assert "Exchange" not in explained(few.match(frame))
    short = _below_tasks(explained(few.match(frame, ranges=1)))
    assert short.index("Exchange") < short.index("Filter (") < short.index("FileScan")


def test_orders_of_every_type_are_cut_where_they_are_counted(spark: Any, tmp_path: Path) -> None:
    """The rows of each range are those that were counted, also at the ends of the types."""
    rng = np.random.default_rng(9)
    rows = 2000
    micros = rng.integers(-(2**58), 2**58, rows)
    near = pa.array(np.sort(2**63 - 1 - rng.integers(0, 5000, rows)))
    columns = {
        "TIMESTAMP": (pa.array(micros, pa.timestamp("us", tz="UTC")), 10**16),
        "TIMESTAMP_NTZ": (pa.array(micros // 30, pa.timestamp("us")), 10**15),
        "DATE": (pa.array(rng.integers(-700_000, 700_000, rows, np.int32), pa.date32()), 10**15),
        "INT": (pa.array(rng.integers(-(2**31), 2**31, rows), pa.int32()), 2.5e7),
        "LONG": (near, 40),
        "FLOAT": (
            pa.array(
                rng.choice([-1.5, -0.0, 0.0, 7.25, 1e30, np.inf, -np.inf], rows), pa.float32()
            ),
            0.5,
        ),
        "DOUBLE": (pa.array(np.append(rng.normal(size=rows - 1) * 1e300, -0.0)), 1e299),
    }
    names = {declared: f"c{number}" for number, declared in enumerate(columns)}
    table = pa.table({names[declared]: values for declared, (values, _) in columns.items()})
    frame = _read(spark, table, tmp_path)
    spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
    try:
        frame = frame.withColumn("c1", frame["c1"].cast("timestamp_ntz"))
        types = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
        known: list[tuple[str, int]] = []
        kept: list[DataFrame] = []
        for declared, (_, size) in columns.items():
            name = names[declared]
            order = OrderColumn(name, declared.removesuffix("_NTZ"), types[name])
            assert not order.why_not_cut, declared
            window = Window("VALUE", size, None)
            cuts = cuts_for(sampled(_drawing(frame), order, whole=True), order, window, 4)
            ranges = ranges_of(cuts, counted(frame, order, cuts.borders), window)
            assert len(ranges) == (3 if declared == "FLOAT" else 4), declared
            assert ranges[-1].first_position + ranges[-1].rows == rows
            known += [(declared, part.rows) for part in ranges]
            kept += [frame.where(within(order, part)) for part in ranges]
        of_types = [declared for declared, _ in known]
        assert [*zip(of_types, _counted(kept), strict=True)] == known
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def _counted(frames: Sequence[DataFrame]) -> list[int]:
    """How many rows each has, in one job: a job for each took longer than all else here."""
    from pyspark.sql import functions

    parts = [
        frame.select(functions.lit(number).alias("number")) for number, frame in enumerate(frames)
    ]
    numbers = _together(parts).toArrow()["number"].to_numpy()
    return np.bincount(numbers, minlength=len(frames)).tolist()


def _together(parts: list[DataFrame]) -> DataFrame:
    """The rows of all, by a plan that is not deep."""
    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [pair[0].unionAll(pair[1]) if len(pair) > 1 else pair[0] for pair in pairs]
    return parts[0]


def test_the_number_of_tasks_is_that_of_a_range(spark: Any) -> None:
    """A classic session tells it without a job."""
    ids = spark.range(1 << 16).selectExpr("spark_partition_id() AS id")
    assert parallelism(spark.range(1)) == ids.distinct().count()


def _drawing(frame: DataFrame) -> Draw:
    return lambda fraction: frame.sample(fraction=float(fraction), seed=1)


def test_a_sample_of_keys_reads_no_order_and_skips_what_is_filtered(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def sampled_keys(draw: Draw, keys: Any, fraction: float) -> Any:
        drawn.append((draw(fraction), draw(1)))
        return original(draw, keys, fraction)

    original = facts.sampled_keys
    monkeypatch.setattr(facts, "sampled_keys", sampled_keys)
    query = _compiled(
        "SELECT a FROM S WHERE A AS a ; B AS b PARTITION BY id WITHIN 9 MINUTES [ts]"
    ).with_options(positions=False)
    frame = _read(spark, stream(3, 4000), tmp_path)
    query.match(frame, ranges=2)
    sample, whole = drawn[0]
    plan = explained(sample.select("id"))
    assert "PushedFilters: [IsNotNull(type), Not(EqualTo(type,C))]" in plan
    assert "ReadSchema: struct<type:string,id:bigint>" in plan
    assert 10 < sample.count() < 100 < whole.count()
    assert sample.select("row").collect() == sample.select("row").collect()
    assert {row[0] for row in sample.select("type").collect()} <= {"A", "B", "Stranger"}


def test_a_sample_is_the_same_each_time(spark: Any, tmp_path: Path) -> None:
    """Else each call cuts elsewhere, and Spark compiles its code for other borders anew."""
    frame = _read(spark, stream(9, 4000), tmp_path)
    order = OrderColumn("ts", "TIMESTAMP", "timestamp")
    found = sampled(_drawing(frame), order, whole=False)
    assert len(found.grid) > 20
    assert found == sampled(_drawing(frame), order, whole=False)


def test_ranges_skip_row_groups_by_statistics_alone(spark: Any, tmp_path: Path) -> None:
    """`IS NULL OR` keeps Parquet from unpacking dictionaries; rows without a value are read by the
    first range, also where another begins as early."""
    times = pa.array([10, None, 20, 30, 40, None, 50], pa.int64())
    frame = _read(spark, pa.table({"ts": times, "row": np.arange(7)}), tmp_path)
    order = OrderColumn("ts", "LONG", "bigint")
    ranges = {
        TimeRange(None, None, 30, 0, 2): [0, 1, 2, 5],
        TimeRange(20, 30, 50, 1, 3): [2, 3, 4],
        TimeRange(None, 40, 50, 0, 4): [0, 2, 3, 4],
        TimeRange(None, 50, None, 0, 5): [0, 2, 3, 4, 6],
        TimeRange(40, 50, None, 3, 2): [4, 6],
    }
    for part, rows in ranges.items():
        kept = frame.where(within(order, part))
        assert sorted(row.row for row in kept.collect()) == rows
        pushed = explained(kept).split("PushedFilters: [")[1].split("]")[0]
        compared = (part.low is not None) + (part.end is not None)
        assert pushed.count("Than") == compared, pushed
        assert pushed.startswith("Or(IsNull(ts),") == (compared > 0), pushed


# --- filters --------------------------------------------------------------------------------------


def _kept(frame: Any, conditions: list[Any], rows: int) -> np.ndarray:
    """bool[conditions, rows]: the rows that filters keep, all in one job."""
    from pyspark.sql import functions

    parts = [
        frame.where(condition).select(functions.lit(number).alias("number"), "row")
        for number, condition in enumerate(conditions)
    ]
    found = _together(parts).toArrow()
    kept = np.zeros((len(conditions), rows), np.bool_)
    kept[found["number"].to_numpy(), found["row"].to_numpy()] = True
    return kept


def _kept_by_each_and_all(frame: Any, compiled: Sequence[CompiledQuery], rows: int) -> np.ndarray:
    """`_kept` of each query; what some of them keep together is what one of them keeps."""
    several = [range(first, first + 5) for first in range(0, len(compiled) - 4, 5)]
    conditions = [can_matter(one.plan, frame.schema) for one in compiled]
    conditions += [
        can_matter_to_one([compiled[n].plan for n in of_group], frame.schema)
        for of_group in several
    ]
    kept = _kept(frame, conditions, rows)
    for of_group, together in zip(several, kept[len(compiled) :], strict=True):
        assert (together == kept[of_group].any(axis=0)).all()
    return kept[: len(compiled)]


def _no_match_is_lost(spark: Any, folder: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    generator = Generator(rng, {"number": 3, "text": 3, "moment": 2, "boolean": 1}, attributes=0.6)
    conditions = [generator.condition() for _ in range(count)]
    table = table_of_values(rng, 200)
    table = table.append_column("row", pa.array(range(len(table)), pa.int64()))
    # Groups of few rows, so that the statistics of files come into play.
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "events.parquet", row_group_size=4)
    frame = spark.read.parquet(str(folder))
    compiled = []
    for condition in conditions:
        with interpreted():
            compiled.append(only_query(celc.compile(queries([condition]))))
    kept = _kept_by_each_and_all(frame, compiled, len(table))
    for query, condition, rows in zip(compiled, conditions, kept, strict=True):
        with np.errstate(all="ignore"):
            matches = query.match_table(table)["start_pos"].to_numpy()
        assert rows[matches].all(), condition.cel
    assert 0.3 < kept.mean() < 0.9


@pytest.mark.parametrize("ansi", share(["true", "false"], 2))
def test_filters_keep_what_can_match(ansi: str, spark: Any, tmp_path: Path) -> None:
    """In the suite with ANSI mode on; with it off, `test_queries_answer_the_same_without_the_rest`
    has such filters."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        _no_match_is_lost(spark, tmp_path, seed=10, count=30)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(400, 410))
def test_many_filters_keep_what_can_match(seed: int, spark: Any, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ["false", "true"][seed % 2])
    try:
        for number in range(3):
            _no_match_is_lost(spark, tmp_path / str(number), seed * 10 + number, count=120)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")


def _same_without_the_rest(spark: Any, folder: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    found: list[CompiledQuery] = []
    drawn = compiled_queries(rng)
    while len(found) < count:
        query = next(drawn)
        if query.plan.source.relevant is not None:
            found.append(query.with_options(positions=False))
    # Short streams: under a `+` matches grow exponentially.
    streams = [random_stream(rng, 8, nulls=0.2, strangers=0.1) for _ in range(8)]
    events = [
        {**event, "row": row}
        for row, event in enumerate(event for stream in streams for event in stream)
    ]
    table = table_of(found[0].plan, events)
    frame = _read(spark, table, folder)
    kept = _kept_by_each_and_all(frame, found, len(table))
    for query, rows in zip(found, kept, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            for start in range(0, len(table), 8):
                short = table.slice(start, 8)
                found_in = query.match_table(short.filter(pa.array(rows[start : start + 8])))
                assert found_in == query.match_table(short), query
    assert kept.mean() < 0.9


def test_queries_answer_the_same_without_the_rest(spark: Any, tmp_path: Path) -> None:
    _same_without_the_rest(spark, tmp_path, seed=11, count=25)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(500, 510))
def test_many_queries_answer_the_same_without_the_rest(
    seed: int, spark: Any, tmp_path: Path
) -> None:
    _same_without_the_rest(spark, tmp_path, seed, count=100)


def test_nan_is_kept_in_row_groups_that_statistics_call_small(spark: Any, tmp_path: Path) -> None:
    """Writers leave NaN out of the maximum; Spark would skip such a group for `value > 3`."""
    events = pa.table({"type": ["A", "A"], "value": [1.0, np.nan], "ts": [1, 2], "row": [0, 1]})
    declaration = "CREATE STREAM S { EVENT A { value: DOUBLE, ts: LONG }, EVENT B { ts: LONG } }\n"
    with interpreted():
        query = only_query(
            celc.compile(declaration + "SELECT * FROM S WHERE A FILTER A.value > 3", order_by="ts")
        )
    frame = _read(spark, events, tmp_path)
    assert frame.where("value > 3").count() == 0, "Spark has learned it, and need not be helped"
    assert _kept(frame, [can_matter(query.plan, frame.schema)], 2).tolist() == [[False, True]]


def test_zeros_are_kept_in_row_groups_of_the_other_sign(spark: Any, tmp_path: Path) -> None:
    """Readers of Parquet hold -0.0 for less than 0.0."""
    events = pa.table({"type": ["A"] * 2, "value": [0.0, -0.0], "ts": [1, 2], "row": [0, 1]})
    tests = ["= 0.0", "= -0.0", "<= -0.0", ">= 0.0", "IN (0.0, 7.0)", "IN (-0.0, 7.0)"]
    texts = (f"QUERY q{n}: SELECT * FROM S WHERE A FILTER A.value {t}" for n, t in enumerate(tests))
    declaration = "CREATE STREAM S { EVENT A { value: DOUBLE, ts: LONG } }\n"
    with interpreted():
        module = celc.compile(declaration + "\n".join(texts), order_by="ts")
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=1)
    frame = spark.read.parquet(str(tmp_path))
    conditions = [can_matter(query.plan, frame.schema) for query in module.queries.values()]
    assert _kept(frame, conditions, 2).all()


def test_filters_let_through_what_is_wrong_or_counted(spark: Any, tmp_path: Path) -> None:
    schema = "type STRING, stream STRING, value DOUBLE, ts LONG, row LONG"
    rows = [
        ("A", "S", 5.0, 1, 0),
        ("A", "S", 1.0, 1, 1),
        ("B", "S", 5.0, 1, 2),
        ("A", "T", 5.0, 1, 3),
        ("Stranger", "S", 1.0, 1, 4),
        (None, "S", 1.0, 1, 5),
        ("A", None, 1.0, 1, 6),
        ("A", "S", 1.0, None, 7),
    ]
    frame = spark.createDataFrame(rows, schema)
    types = "EVENT A { value: DOUBLE, ts: LONG }, EVENT B { ts: LONG }"
    text = "SELECT * FROM S WHERE A FILTER A.value > 3"
    two = "SELECT * FROM S, T WHERE S>A FILTER A.value > 3"
    with interpreted():
        one = only_query(celc.compile(f"CREATE STREAM S {{ {types} }}\n{text}", order_by="ts"))
        both = only_query(
            celc.compile(
                f"CREATE STREAM S {{ {types} }}\nCREATE STREAM T {{ {types} }}\n{two}",
                order_by="ts",
            )
        )
    conditions = [can_matter(query.plan, frame.schema) for query in (one, both)]
    kept = [np.flatnonzero(row).tolist() for row in _kept(frame, conditions, len(rows))]
    assert kept == [[0, 3, 4, 5, 7], [0, 4, 5, 6, 7]]


# --- what is refused ------------------------------------------------------------------------------


def test_ranges_are_tasks_of_their_own(spark: Any) -> None:
    """Spark unites parts of one Spark partition each to one, if nothing keeps it from that."""
    from pyspark.sql import functions

    query = only_query(
        celc.compile(DECLARATION + "SELECT * FROM S WHERE A ; B WITHIN 3 EVENTS", order_by="ts")
    )
    events = spark.range(2000).selectExpr(
        "IF(id % 2 = 0, 'A', 'B') AS type",
        "id",
        "0D AS value",
        "'' AS name",
        "timestamp_seconds(id) AS ts",
    )
    found = query.match(events, ranges=2)
    assert found.select(functions.spark_partition_id()).distinct().count() == 2


def test_frames_that_do_not_fit(spark: Any, keyed: CompiledQuery) -> None:
    columns = {"type": "STRING", "id": "LONG", "value": "DOUBLE", "name": "STRING"}
    columns |= {"ts": "TIMESTAMP", "row": "LONG"}

    def problem(change: Callable[[Any], Any], query: CompiledQuery = keyed) -> str:
        schema = ", ".join(f"{name} {type}" for name, type in columns.items())
        with pytest.raises(EventError) as raised:
            query.match(change(spark.createDataFrame([], schema)))
        return str(raised.value)

    assert "lacks: 'id'; its columns are: 'type', 'value'" in problem(lambda df: df.drop("id"))
    assert "'id', which occurs more than once" in problem(
        lambda df: df.select("*", df["row"].alias("id"))
    )
    assert "declares 'id' as LONG, but the column's type is map<int,int>" in problem(
        lambda df: df.withColumn("id", _expr("map(1, 2)"))
    )
    assert "by the column 'row', but values of the type struct<" in problem(
        lambda df: df.withColumn("row", _expr("struct(ts)"))
    )
    assert "has no order column" in problem(
        lambda df: df, only_query(celc.compile(DECLARATION + "SELECT * FROM S WHERE A ; B"))
    )
    stream_of = spark.readStream.format("rate").load()
    assert "is a stream: use match_stream" in problem(lambda df: stream_of)
    with pytest.raises(ValueError, match="ranges must be a whole number from 1 on"):
        keyed.match(spark.range(1), ranges=0)
    with pytest.raises(ValueError, match="cannot be cut into ranges"):
        keyed.match(spark.range(1), ranges=2, presorted=True)


def _expr(text: str) -> Any:
    from pyspark.sql import functions

    return functions.expr(text)


@pytest.mark.parametrize(
    ("given", "is_told"),
    [("67108864b", True), ("64m", True), ("256MB", True), ("2147483647", False), ("2g", False)],
)
def test_a_setting_that_makes_arrow_slow_is_told(given: str, is_told: bool) -> None:
    session = SimpleNamespace(conf={"spark.sql.execution.arrow.maxBytesPerBatch": given})
    line = arrow_line(session)  # type: ignore[arg-type]
    assert bool(line) == is_told
    assert not is_told or f"maxBytesPerBatch is {given}; with 2147483647" in line
