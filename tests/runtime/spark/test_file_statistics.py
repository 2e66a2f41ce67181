"""Cuts by the statistics of Parquet files: what they tell, and when a sample is taken instead."""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.run.ranges import GRID, Sample
from celc_runtime.spark import facts, file_statistics
from celc_runtime.spark.file_statistics import (
    DeclaredTypes,
    quantiles_of,
    spread,
    told_by_files,
)
from celc_runtime.spark.group_cuts import RowGroup
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.probe import explained
from engines import interpreted, only_query
from py4j.protocol import Py4JError
from shares import share

import celc

NOTHING = Sample(0, ())
LONGS = OrderColumn("ts", "LONG", "bigint")
BY_FILES = "cuts: by the statistics of the files' row groups"


def sampled_by_files(frame: Any, order: OrderColumn, ranges: int) -> tuple[Sample, str]:
    told = told_by_files(frame, order, ranges, None)
    return told.sample, told.unknown


# --- quantiles ------------------------------------------------------------------------------------


def _far_off(grid: tuple[float, ...], values: np.ndarray) -> float:
    """The greatest distance of a quantile from its share, as a part of all values."""
    ranks = [bisect_left(values, value) / len(values) for value in grid]
    return max(abs(rank - (n + 1) / GRID) for n, rank in enumerate(ranks))


@pytest.mark.parametrize("seed", range(12))
def test_quantiles_are_those_of_values_that_are_spread_evenly(seed: int) -> None:
    rng = random.Random(seed)
    groups, values = [], []
    for _ in range(rng.choice((1, 2, 5, 40, 300))):
        least = rng.randint(-1000, 1000)
        rows, wide = rng.randint(1, 3000), rng.choice((0, 10, 400, 10_000))
        groups.append(RowGroup(rows, least, least + wide))
        values += [least + wide * place / rows for place in range(rows)]
    found = quantiles_of(groups, LONGS)
    assert found.rows == len(values)
    assert len(found.grid) == GRID - 1
    assert list(found.grid) == sorted(found.grid)
    # Where values are equal, any number of quantiles is the same.
    if all(group.greatest - group.least >= 400 for group in groups):
        assert _far_off(found.grid, np.sort(values)) < 0.02


def test_no_rows_have_no_quantiles() -> None:
    assert quantiles_of([], LONGS) == NOTHING


def test_quantiles_are_values_that_literals_hold() -> None:
    """No day of October 1582: Spark's literals for Parquet have other days there."""
    days = OrderColumn("day", "DATE", "date")
    grid = quantiles_of([RowGroup(1000, -141_500, -141_400)], days).grid
    assert 200 < len(grid) < GRID - 1
    assert not set(range(-141_440, -141_424)) & {int(day) for day in grid}


def test_places_are_spread() -> None:
    assert spread(0, 4) == []
    assert spread(3, 4) == [0, 1, 2]
    assert spread(10, 1) == [5]
    assert spread(10, 4) == [1, 3, 6, 8]
    for count in range(1, 60):
        for most in range(1, 70):
            places = spread(count, most)
            assert len(places) == len(set(places)) == min(count, most)
            assert set(places) <= set(range(count))


# --- files ----------------------------------------------------------------------------------------


def _columns(rows: int) -> dict[str, tuple[OrderColumn, pa.Array]]:
    """A column of each type in order, from before 1970 on."""
    counted = np.arange(rows) - rows // 4
    micros = pa.array(counted * 1_000_003)
    return {
        "tiny": (OrderColumn("tiny", "INT", "tinyint"), pa.array(counted % 100, pa.int8())),
        "small": (OrderColumn("small", "INT", "smallint"), pa.array(counted, pa.int16())),
        "int": (OrderColumn("int", "INT", "int"), pa.array(counted * 1000, pa.int32())),
        "long": (OrderColumn("long", "LONG", "bigint"), pa.array(counted * 10**12)),
        "day": (OrderColumn("day", "DATE", "date"), pa.array(counted, pa.int32()).cast("date32")),
        "ts": (
            OrderColumn("ts", "TIMESTAMP", "timestamp"),
            micros.cast(pa.timestamp("us", tz="UTC")),
        ),
        "local": (
            OrderColumn("local", "TIMESTAMP", "timestamp_ntz"),
            micros.cast(pa.timestamp("us")),
        ),
    }


def _written(folder: Path, table: pa.Table, files: int = 3, **options: Any) -> Path:
    """A table in files that follow each other, of several row groups each."""
    folder.mkdir()
    each = -(-len(table) // files)
    for number in range(files):
        part = table.slice(number * each, each)
        pq.write_table(part, folder / f"part-{number:02}.parquet", row_group_size=100, **options)
    return folder


def test_every_type_of_order_column(spark: Any, tmp_path: Path) -> None:
    rows = 4000
    columns = _columns(rows)
    table = pa.table({name: values for name, (_, values) in columns.items()})
    frame = spark.read.parquet(str(_written(tmp_path / "events", table)))
    found = dict(frame.dtypes)
    for name, (order, values) in columns.items():
        assert found[name] == order.found
        sample, why = sampled_by_files(frame, order, 4)
        assert not why, name
        # Row groups are looked at that lie evenly, so each file's rows are known.
        assert sample.rows == pytest.approx(rows, rel=0.01)
        width = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
        numbers = np.sort(np.asarray(values.cast(width)))
        assert numbers[0] <= sample.grid[0]
        assert sample.grid[-1] <= numbers[-1]
        assert _far_off(sample.grid, numbers) < 0.05, name


def test_many_files_are_not_all_looked_at(spark: Any, tmp_path: Path) -> None:
    """Nobody notices that the others are damaged."""
    table = pa.table({"ts": np.arange(9000)})
    folder = _written(tmp_path / "events", table, files=90)
    frame = spark.read.parquet(str(folder))
    chosen = {sorted(folder.glob("*.parquet"))[place] for place in spread(90, 32)}
    for path in set(folder.glob("*.parquet")) - chosen:
        path.write_bytes(b"")
    sample, why = sampled_by_files(frame, LONGS, 4)
    assert not why
    assert sample.rows == 9000
    # A file in three is looked at, which is a hundredth of the rows.
    assert _far_off(sample.grid, np.arange(9000)) < 0.04
    # More ranges are cut more finely.
    assert "cannot be read (" in sampled_by_files(frame, LONGS, 12)[1]


def _spoilt(folder: Path) -> None:
    next(folder.glob("part-01*")).unlink()


def _without_statistics(folder: Path) -> None:
    path = folder / "part-01.parquet"
    pq.write_table(pq.read_table(path), path, write_statistics=False)


def _of_another_type(folder: Path) -> None:
    path = folder / "part-01.parquet"
    times = pq.read_table(path)["ts"].cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"ts": times}), path)


def _without_the_column(folder: Path) -> None:
    pq.write_table(pa.table({"other": [1, 2]}), folder / "part-01.parquet")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_spoilt, r"the statistics of file:.*part-01.parquet cannot be read \("),
        (_without_statistics, "a file has no statistics of 'ts'"),
        (_of_another_type, r"a file has 'ts' as TIMESTAMP\(MICROS,true\)"),
        (_without_the_column, "a file has no column 'ts'"),
    ],
)
def test_files_that_do_not_tell(change: Any, why: str, spark: Any, tmp_path: Path) -> None:
    folder = _written(tmp_path / "events", pa.table({"ts": np.arange(900)}))
    frame = spark.read.schema("ts bigint").parquet(str(folder))
    assert sampled_by_files(frame, LONGS, 2)[1] == ""
    change(folder)
    found, told = sampled_by_files(frame, LONGS, 2)
    assert found == NOTHING
    assert re.fullmatch(why + ".*", told, re.DOTALL), told


def test_frames_that_are_not_their_files(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"ts": np.arange(900), "v": np.arange(900)})
    frame = spark.read.parquet(str(_written(tmp_path / "events", table)))
    changed = "the DataFrame is not all rows of Parquet files, as they are"
    for as_they_are in (frame, frame.select("v", "ts"), frame.select("ts")):
        assert sampled_by_files(as_they_are, LONGS, 2)[1] == ""
    for other in (
        frame.where("v > 3"),
        frame.where("ts > 3"),
        frame.selectExpr("v AS ts"),
        frame.selectExpr("-ts AS ts"),
        frame.unionAll(frame),
        frame.limit(10),
        frame.sample(fraction=0.5),
        frame.repartition(2),
        # Spark plans a DataFrame once, and `frame` has been asked for its plan before.
        frame.cache().select("*"),
        spark.range(3).withColumnRenamed("id", "ts"),
    ):
        assert sampled_by_files(other, LONGS, 2) == (NOTHING, changed)
    frame.unpersist()
    for order in (
        OrderColumn("ts", "DOUBLE", "double"),
        OrderColumn("ts", "LONG", "decimal(9,0)"),
    ):
        assert sampled_by_files(frame, order, 2) == (NOTHING, f"'ts' is of type {order.found}")


def test_times_without_statistics(spark: Any, tmp_path: Path) -> None:
    """Of Spark's older form of times, which is no number."""
    old = "spark.sql.parquet.outputTimestampType"
    given = spark.conf.get(old)
    spark.conf.set(old, "INT96")
    try:
        frame = spark.range(100).selectExpr("timestamp_seconds(id) AS ts")
        frame.write.parquet(str(tmp_path / "events"))
    finally:
        spark.conf.set(old, given)
    frame = spark.read.parquet(str(tmp_path / "events"))
    order = OrderColumn("ts", "TIMESTAMP", "timestamp")
    assert sampled_by_files(frame, order, 2)[1].startswith("a file has 'ts' as a number")


def test_a_plan_is_explained_with_and_without_a_statement(spark: Any, tmp_path: Path) -> None:
    """Where a cluster forbids the class that DataFrame.explain asks, a statement tells the same."""
    table = pa.table({"ts": np.arange(90), "v": np.arange(90)})
    frame = spark.read.parquet(str(_written(tmp_path / "events", table))).where("v > 3")
    asked: list[str] = []

    def explain(*_: Any) -> str:
        raise Py4JError("forbidden")

    def sql(text: str, events: Any) -> Any:
        asked.append(text)
        return spark.sql(text, events=frame)

    jvm = SimpleNamespace(PythonSQLUtils=SimpleNamespace(explainString=explain))
    forbidding = SimpleNamespace(_jdf=frame._jdf, sparkSession=SimpleNamespace(_jvm=jvm, sql=sql))
    for mode in ("", "EXTENDED", "COST"):
        told, stated = explained(frame, mode), explained(forbidding, mode)  # type: ignore[arg-type]
        assert "FileScan parquet" in told
        # What was parsed is the statement or the DataFrame; all else is the same.
        *_, optimized = told.split("== Optimized Logical Plan ==")
        assert stated.endswith(optimized)
    assert len(asked) == 3


# --- plans ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def query() -> CompiledQuery:
    with interpreted():
        return only_query(
            celc.compile(
                "CREATE STREAM S { EVENT A { ts: LONG }, EVENT B { ts: LONG } } "
                "SELECT * FROM S WHERE A ; B WITHIN 6 [ts]",
                order_by="ts",
                positions=True,
            )
        )


def _events(rows: int, seed: int, late: int = 0) -> pa.Table:
    """Events in order; of each hundred, a row group, the last one is so much too late."""
    rng = np.random.default_rng(seed)
    ts = 2 * np.arange(rows)
    ts[99::100] -= late  # odd, so that no two are equal
    return pa.table({"type": rng.choice(["A", "B", "C"], rows), "ts": ts})


@pytest.mark.parametrize("late", share([0, 301, 40_001], 3, first=2))
def test_answers_are_those_of_one_range(
    late: int, spark: Any, tmp_path: Path, query: CompiledQuery
) -> None:
    """Late events stretch every row group. Where that makes ranges uneven, a sample cuts them."""
    folder = _written(tmp_path / "events", _events(3000, 7, late))
    frame = spark.read.parquet(str(folder))
    text = query.explain_plan(frame, ranges=4)
    assert "4 time ranges" in text
    assert ("cuts: by a sample, because the files' statistics would" in text) == (late > 1000)
    assert (BY_FILES in text) == (late < 1000)
    found, wanted = (
        sorted(map(repr, query.match(frame, ranges=ranges).toArrow().to_pylist()))
        for ranges in (4, 1)
    )
    assert found == wanted
    assert len(found) > 500


def test_a_sample_is_told_with_its_reason(spark: Any, tmp_path: Path, query: CompiledQuery) -> None:
    frame = spark.read.parquet(str(_written(tmp_path / "events", _events(900, 3))))
    changed = query.explain_plan(frame.where("ts >= 0"), ranges=3)
    assert "cuts: by a sample, because the DataFrame is not all rows of Parquet files" in changed
    assert "cuts:" not in query.explain_plan(frame, ranges=1)


def test_a_cluster_that_has_no_such_classes(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: CompiledQuery
) -> None:
    """Or forbids them: the reason is told, and a sample is taken."""
    frame = spark.read.parquet(str(_written(tmp_path / "events", _events(900, 3))))
    forbidden = Py4JError("not in the list of what may be called")
    for name, change, why in (
        ("can_be_read", False, "this Spark has no class of Parquet's"),
        ("seen", _raises(forbidden), r"cannot be read \(not in the list of"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(file_statistics._Footers, name, change)
            assert re.search(
                f"cuts: by a sample, because .*{why}", query.explain_plan(frame, ranges=3)
            )
    assert BY_FILES in query.explain_plan(frame, ranges=3)


def test_names_that_java_does_not_have_are_noticed(spark: Any) -> None:
    footers = file_statistics._Footers(spark, spark._jvm, LONGS, None)
    assert footers.can_be_read
    footers._opened = spark._jvm.org.apache.parquet.hadoop.NoSuchReader.open
    assert not footers.can_be_read


def _raises(problem: Exception) -> Any:
    def fails(*_: Any) -> None:
        raise problem

    return fails


# --- cuts where row groups begin ------------------------------------------------------------------

AT_GROUPS = "cuts: where row groups of the files begin"
DECLARED = DeclaredTypes("type", ("A", "B", "C"))


def _uncounted(
    frame: Any, types: DeclaredTypes | None = DECLARED, order: OrderColumn = LONGS
) -> str:
    """Why rows are counted; empty: they are not."""
    told = told_by_files(frame, order, 2, types)
    assert not told.unknown
    assert told.sample.grid
    assert (told.cuts is None) == bool(told.uncounted)
    return told.uncounted


def test_rows_need_not_be_counted_where_all_have_positions(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(_written(tmp_path / "events", _events(1000, 1))))
    others = "a row group may have rows of undeclared types"
    assert _uncounted(frame) == ""
    assert _uncounted(frame, DeclaredTypes("type", ("A", "B", "C", "no such type"))) == ""
    assert _uncounted(frame, DeclaredTypes("type", ("A", "B"))) == others
    assert _uncounted(frame, DeclaredTypes("type", ())) == others
    many = tuple(f"type {number}" for number in range(300))
    assert _uncounted(frame, DeclaredTypes("type", ("A", "B", "C", *many))) == others
    assert _uncounted(frame.select("ts"), None) == ""
    cuts = told_by_files(frame, LONGS, 2, DECLARED).cuts
    assert cuts is not None
    # Three files of 334, 334 and 332 rows, in row groups of 100.
    begins = [0, 100, 200, 300, 334, 434, 534, 634, 668, 768, 868, 968]
    assert cuts == (tuple(2 * begin for begin in begins), tuple(begins), 1000)


def _changed(table: pa.Table, column: str, row: int, value: Any) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values, table[column].type))


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("type", "D", "a row group may have rows of undeclared types"),
        ("type", None, "a row group may have rows of undeclared types"),
        ("ts", None, "'ts' may be NULL"),
    ],
)
def test_one_row_without_a_position_is_noticed(
    column: str, value: Any, why: str, spark: Any, tmp_path: Path
) -> None:
    for row in (0, 150, 999):
        table = _changed(_events(1000, 1), column, row, value)
        frame = spark.read.parquet(str(_written(tmp_path / f"events{row}", table)))
        assert _uncounted(frame) == why


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": False},
        {"use_dictionary": ["ts"]},
        {"write_statistics": ["ts"]},  # whether a type is NULL is not known
        {"dictionary_pagesize_limit": 1, "data_page_size": 1, "write_batch_size": 5},
    ],
)
def test_types_without_a_whole_dictionary_are_counted(
    options: dict[str, Any], spark: Any, tmp_path: Path
) -> None:
    folder = _written(tmp_path / "events", _events(1000, 1), **options)
    frame = spark.read.parquet(str(folder))
    assert _uncounted(frame) == "a row group may have rows of undeclared types"
    assert _uncounted(frame, None) == ""


def test_values_of_another_calendar_are_counted(spark: Any, tmp_path: Path) -> None:
    for type, first in ((pa.date32(), -25_567), (pa.timestamp("us"), -2_208_988_800_000_000)):
        for early in (0, 1):
            values = pa.array(first - early + np.arange(900)).cast(
                pa.int32() if type == pa.date32() else pa.int64()
            )
            folder = _written(tmp_path / f"{type.id}{early}", pa.table({"ts": values.cast(type)}))
            frame = spark.read.parquet(str(folder))
            name = "DATE" if type == pa.date32() else "TIMESTAMP"
            order = OrderColumn("ts", name, frame.dtypes[0][1])
            early_told = "'ts' has values before the year 1900" if early else ""
            assert _uncounted(frame, None, order) == early_told


def test_many_row_groups_and_files_are_counted(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"ts": np.arange(9000)})
    for files, why in (
        (1, ""),  # 90 row groups
        (30, ""),  # three in each
        (33, "there are 33 files"),
        (2, "a file has more than 128 row groups"),
    ):
        given = table if files != 2 else pa.table({"ts": np.arange(26_000)})
        frame = spark.read.parquet(str(_written(tmp_path / f"{files}", given, files=files)))
        assert _uncounted(frame, None) == why


def test_files_without_rows_are_passed_by(spark: Any, tmp_path: Path) -> None:
    folder = _written(tmp_path / "events", _events(1000, 1))
    spark.read.parquet(str(folder)).limit(0).coalesce(1).write.mode("append").parquet(str(folder))
    frame = spark.read.parquet(str(folder))
    assert len(frame.inputFiles()) == 4
    assert _uncounted(frame) == ""


def test_files_that_are_read_twice(spark: Any, tmp_path: Path) -> None:
    """Their rows are there twice, and their names once."""
    folder = str(_written(tmp_path / "events", _events(1000, 1)))
    first = f"{folder}/part-00.parquet"
    twice = "a file is read more than once"
    assert told_by_files(spark.read.parquet(folder, folder), LONGS, 2, DECLARED).unknown == twice
    assert told_by_files(spark.read.parquet(folder, first), LONGS, 2, DECLARED).unknown == twice
    both = spark.read.parquet(first, f"{folder}/part-01.parquet")
    assert _uncounted(both) == ""


def test_names_of_files_that_are_written_in_another_way(spark: Any, tmp_path: Path) -> None:
    folder = _written(tmp_path / "my events 100 % #1", _events(1000, 1))
    assert _uncounted(spark.read.parquet(str(folder))) == ""


def test_a_folder_without_files(spark: Any, tmp_path: Path, query: CompiledQuery) -> None:
    (tmp_path / "empty").mkdir()
    frame = spark.read.schema("type string, ts bigint").parquet(str(tmp_path / "empty"))
    told = told_by_files(frame, LONGS, 2, DECLARED)
    assert (told.sample, told.unknown) == (NOTHING, "")
    for silent in (query, query.with_options(positions=False)):
        assert silent.match(frame, ranges=3).count() == 0


@pytest.fixture(scope="module")
def queries() -> dict[str, CompiledQuery]:
    """Of all three types of the events, so that each row has a position."""
    declared = (
        "CREATE STREAM S { EVENT A { ts: LONG }, EVENT B { ts: LONG }, EVENT C { ts: LONG } } "
    )
    texts = {
        "time": "SELECT * FROM S WHERE A ; B WITHIN 6 [ts]",
        "numbered": "SELECT * FROM S WHERE A ; B AS b WITHIN 6 [ts]",
        "events": "SELECT * FROM S WHERE A ; B WITHIN 4 EVENTS",
        "all": "SELECT * FROM S WHERE A ; (B OR C) WITHIN 5 [ts]",
        "deadline": "SELECT * FROM S WHERE A ; !B FOR 4 [ts]",
        "totals": "SELECT TOTAL COUNT(*) AS n FROM S WHERE A ; B+ WITHIN 6 [ts] PER END",
    }
    with interpreted():
        return {
            name: only_query(celc.compile(declared + text, order_by="ts", positions=True))
            for name, text in texts.items()
        }


@pytest.mark.each(4)
@pytest.mark.parametrize(
    ("name", "late"),
    [
        *[(name, 0) for name in ("time", "numbered", "events", "all", "deadline", "totals")],
        *[(name, 301) for name in ("numbered", "events")],
    ],
)
def test_answers_without_a_count_are_those_of_one_range(
    name: str,
    late: int,
    spark: Any,
    tmp_path: Path,
    queries: dict[str, CompiledQuery],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two late events in the middle leave cuts elsewhere."""
    events = _events(6000, 9)
    if late:
        for row in (2999, 3500):
            events = _changed(events, "ts", row, 2 * row - late)
    frame = spark.read.parquet(str(_written(tmp_path / "events", events)))
    query = queries[name]
    with monkeypatch.context() as patch:
        patch.setattr(facts, "counted", _raises(AssertionError("rows were counted")))
        assert AT_GROUPS in query.explain_plan(frame, ranges=2)
        cut = query.match(frame, ranges=2)
    _compare(cut, query.match(frame, ranges=1))


def _compare(cut: Any, whole: Any) -> None:
    found, wanted = (sorted(map(repr, one.toArrow().to_pylist())) for one in (cut, whole))
    assert found == wanted
    assert len(found) > 500


def test_filtered_rows_need_no_count(
    spark: Any,
    tmp_path: Path,
    queries: dict[str, CompiledQuery],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor a proof of their types: without positions nothing depends on their number."""
    events = _changed(_events(6000, 9), "type", 5000, "of no declared type")
    frame = spark.read.parquet(str(_written(tmp_path / "events", events)))
    for whole in (queries["time"], queries["numbered"]):
        assert BY_FILES in whole.explain_plan(frame, ranges=2)
        silent = whole.with_options(positions=False)
        with monkeypatch.context() as patch:
            for name in ("counted", "sampled"):
                patch.setattr(facts, name, _raises(AssertionError("rows were read")))
            assert AT_GROUPS in silent.explain_plan(frame, ranges=2)
            cut = silent.match(frame, ranges=2)
        _compare(cut, silent.match(frame, ranges=1))
    coarse = spark.read.parquet(str(_written(tmp_path / "coarse", _events(900, 9))))
    told = queries["time"].with_options(positions=False).explain_plan(coarse, ranges=2)
    assert "cuts: by a sample, because rows are filtered, and not enough row groups" in told


def test_filters_of_a_job_leave_the_ranges_side_by_side(
    spark: Any, tmp_path: Path, queries: dict[str, CompiledQuery]
) -> None:
    """Spark unites parts of one Spark partition in one task, unless a part is of another kind."""
    frame = spark.read.parquet(str(_written(tmp_path / "events", _events(6000, 9))))
    for name in ("numbered", "totals"):
        matches = queries[name].match(frame, ranges=4)
        first = matches.columns[-1]
        for job in (
            matches,
            matches.where("end_pos > 5"),
            matches.where(f"`{first}` IS NOT NULL"),
            matches.select("end_pos").where("end_pos IS NOT NULL"),
        ):
            assert job.rdd.getNumPartitions() >= 4


_RANDOM = (
    "SELECT * FROM S WHERE A ; B WITHIN 6 [ts]",
    "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 5 EVENTS",
    "SELECT * FROM S WHERE A+ ; C WITHIN 4 [ts]",
    "SELECT * FROM S WHERE A ; !B FOR 4 [ts]",
    "SELECT * FROM S WHERE !B FOR 3 [ts] ; A",
    "SELECT NXT * FROM S WHERE A+ ; B WITHIN 7 [ts]",
    "SELECT * FROM S WHERE A : C WITHIN 12 EVENTS",
)


@pytest.mark.long
@pytest.mark.parametrize("count", [150])
def test_random_files_in_random_ranges(count: int, spark: Any, tmp_path: Path) -> None:
    """Files in any order, with late events and equal times, some with undeclared types."""
    event = "{ ts: LONG }"
    declared = f"CREATE STREAM S {{ EVENT A {event}, EVENT B {event}, EVENT C {event} }} "
    with interpreted():
        queries = [
            only_query(celc.compile(declared + text, order_by="ts", tiebreak="row", positions=True))
            for text in _RANDOM
        ]
    cut_at_groups = 0
    for seed in range(count):
        rng, numbers = random.Random(seed), np.random.default_rng(seed)
        rows = rng.choice((200, 400, 900))
        ts = np.cumsum(numbers.integers(0, rng.choice((2, 3, 5)), rows))
        for _ in range(rng.choice((0, 0, 2, 20))):
            ts[rng.randrange(rows)] -= rng.randrange(40)
        types = [*"ABC", *("D" if rng.random() < 0.1 else "")]
        table = pa.table({"type": numbers.choice(types, rows), "ts": ts, "row": np.arange(rows)})
        folder, files = tmp_path / str(seed), rng.choice((1, 2, 4))
        folder.mkdir()
        for place, name in enumerate(rng.sample(range(9), files)):
            part = table.slice(place * rows // files, rows // files)
            path, groups = folder / f"{name}.parquet", rng.choice((15, 25, 50))
            pq.write_table(part, path, row_group_size=max(1, rows // files // groups))
        query = rng.choice(queries)
        if rng.random() < 0.4:
            query = query.with_options(positions=False)
        frame, ranges = spark.read.parquet(str(folder)), rng.randint(2, 5)
        cut_at_groups += AT_GROUPS in query.explain_plan(frame, ranges=ranges)
        found = query.match(frame, ranges=ranges).toArrow().to_pylist()
        wanted = query.match_table(table.sort_by([("ts", "ascending"), ("row", "ascending")]))
        assert sorted(map(repr, found)) == sorted(map(repr, wanted.to_pylist())), seed
    assert 4 * cut_at_groups >= count
