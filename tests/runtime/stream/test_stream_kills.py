"""Streams whose driver, or whose workers, are killed: nothing is lost, nothing comes twice; and one
of very many partitions.

Each driver is a process of its own with a JVM of its own, which is what takes the time.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime.stream.processor import STATE
from places import TESTS
from row_streams_by_hand import query_of
from stream_routes import (
    END,
    SCHEMA,
    SETTINGS,
    changed_since,
    events,
    files,
    parts,
    queries,
    query,
    run,
    settings,
    sums,
    table,
    wanted,
    write_files,
)

pytestmark = pytest.mark.long

TEXT = """QUERY pairs: SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v > 40 AND y.v > 45
    PARTITION BY id WITHIN 15 SECONDS [ts]"""

NAMED, CHANGED = (
    f"""QUERY pairs: SELECT {name} AS name, y.v AS v FROM S WHERE (A AS x ; B AS y)
    FILTER x.v > {low} AND y.v > 45 PARTITION BY id WITHIN 15 SECONDS [ts]"""
    for name, low in (("x.name", 40), ("'n'", 41))
)

SILENT = """QUERY pairs: SELECT * FROM S WHERE (A AS x ; !(B AS y FILTER y.v > 45) FOR 5 SECONDS)
    FILTER x.v > 40 PARTITION BY id"""

CHAIN = """QUERY pair:
SELECT x.v AS v FROM S WHERE (A AS x ; B AS y) FILTER x.v > 40 AND y.v > 40
PARTITION BY id WITHIN 5 SECONDS [ts]
QUERY alone:
SELECT x.v AS v FROM S WHERE A AS x ; !B FOR 2 SECONDS [ts] PARTITION BY id
QUERY twice:
SELECT p, q FROM pair, alone WHERE pair AS p ; alone AS q PARTITION BY id WITHIN 20 SECONDS [ts]
QUERY chain:
SELECT t, b FROM twice, S WHERE twice AS t ; B AS b PARTITION BY id WITHIN 20 SECONDS [ts]"""

_PAIRS = """QUERY q{n}: SELECT x, y FROM S WHERE (A AS x ; B AS y) FILTER x.v > {n} AND y.v < {less}
    PARTITION BY id WITHIN {seconds} SECONDS [ts]"""

_ALONE = """QUERY q{n}: SELECT x.v AS v FROM S
    WHERE (A AS x FILTER x.v > {n}) ; !B FOR {seconds} SECONDS [ts] PARTITION BY id"""

FIFTY = "\n".join(
    (_PAIRS if n % 5 else _ALONE).format(n=n, less=60 - n, seconds=2 + n % 7) for n in range(50)
)

SHAPE = """CREATE TABLE t (id INT, ts TIMESTAMP, v DOUBLE, name STRING);
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY id ORDER BY ts
  MEASURES FIRST(ts) AS since, COUNT(*) AS n, PREV(FIRST(v)) AS before, MATCH_NUMBER() AS number
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A B+ C?) WITHIN INTERVAL '15' SECONDS
  DEFINE A AS v > 40, B AS v < 45 OR v IS NULL, C AS v > A.v
)"""


RULED = """PARAMETERS rule { key: INT, user: INT, low: DOUBLE, since: TIMESTAMP, until: TIMESTAMP }
  VALID [since, until]
QUERY rules: SELECT x[v], y[v], rule FROM S FOR EACH rule
WHERE (A AS x ; B AS y) FILTER x.id = rule.user AND x.v > rule.low AND y.v > 40
PARTITION BY id WITHIN 15 SECONDS [ts]"""


def compiled_text(text: str) -> Any:
    """The query of a text, of either language."""
    return query_of(text) if text.startswith("CREATE TABLE") else query(text)


DRIVER = '''
import os, signal, sys
from functools import partial
from pathlib import Path

from celc_runtime.stream import changing_match, match as stream
from celc_runtime import finish
from pyspark.sql import SparkSession
from row_streams_by_hand import query_of
from stream_routes import SETTINGS, files, queries

folder, (text, asked, master, kill) = Path(sys.argv[1]), sys.argv[2:]


def once(marker):
    """Kill this process, once."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def dying_task(route, marker, options):
    task, steps = route(options), []
    step = task.step

    def dying(label, header, load, blocks, watermark):
        steps.append(label)
        if watermark and header is not None and len(steps) > 1:
            once(marker)
        return step(label, header, load, blocks, watermark)

    task.step = dying
    return task


def dying_after(route, marker, options, rules, batches):
    """Dies when the states of the task have been changed, and matches are on their way."""
    for batch in route(options, rules, batches):
        once(marker)
        yield batch


def dying_writer(route, marker, driver, options):
    """Dies with its driver, between two pieces of a state that is written anew."""
    from celc_runtime.stream import held_rules, rule_versions
    from celc_runtime.stream.one_bucket import bucket

    task, anew, pieces = route(options), [], []
    rule_versions._MOST_ENTRIES = 3
    for where, name in ((bucket, "carry_over"), (held_rules.HeldRules, "written")):
        made = getattr(where, name)
        setattr(where, name, lambda *given, made=made: (anew.append(1), made(*given))[1])
    text_of = task.text_of

    def dying(data):
        pieces.extend(anew)
        if len(pieces) >= 2 and not os.path.exists(marker):
            open(marker, "x").close()
            os.killpg(driver, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return text_of(data)

    task.text_of = dying
    return task


if kill == "writers":
    for where in (stream, changing_match):
        made = where.task_route
        where.task_route = lambda program, made=made: partial(
            dying_writer, made(program), str(folder / "writers"), os.getpid()
        )
if kill == "workers":
    for name, dying in (("task_route", dying_task), ("unpacking_route", dying_after)):
        made = getattr(stream, name)
        patched = lambda program, made=made, dying=dying, name=name: partial(
            dying, made(program), str(folder / name)
        )
        setattr(stream, name, patched)

builder = (
    SparkSession.builder.master(master)
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
)
for name, value in SETTINGS.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
if text.startswith("CREATE TABLE"):
    route = query_of(text).match_stream
else:
    module = queries(text)
    route = module.queries[asked].match_stream if asked else module.match_all_stream
if (folder / "rules").exists():
    route = partial(route, rule=files(spark, folder / "rules"))
checkpoint = str(folder / "checkpoint")
if kill in ("nobody", "writers"):
    route = partial(route, checkpoint=checkpoint)
matches = route(files(spark, folder / "in"), watermark="2 seconds")
writer = matches.writeStream.format("parquet").option("path", str(folder / "out"))
writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
writer.start().awaitTermination()
if kill == "nobody":
    sys.exit()
rest = str(folder / "rest")
finish(spark, checkpoint, matches, lambda rows, _: rows.write.mode("overwrite").parquet(rest))
spark.read.parquet(str(folder / "out")).unionAll(spark.read.parquet(rest)).coalesce(1).write.mode(
    "overwrite"
).parquet(str(folder / "all"))
spark.stop()
'''


def _start(folder: Path, master: str, kill: str, text: str = TEXT, name: str = "pairs") -> Any:
    """A driver that runs a query, or all of a text if `name` is empty."""
    script = folder / "driver.py"
    script.write_text(DRIVER)
    folders = (TESTS, TESTS / "support")
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    more = {"PYSPARK_PYTHON": sys.executable, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, str(script), str(folder), text, name, master, kill],
        stdout=(folder / "said").open("a"),
        stderr=subprocess.STDOUT,
        env=os.environ | more,
        cwd=folder,
        start_new_session=True,
    )


def _last(folder: Path) -> int:
    """The last file that a micro-batch was begun with.

    There can be more files than micro-batches. A source notes a file before the stream notes its
    micro-batch. When the driver is killed between the two, the next one takes two files.
    """
    there = folder / "checkpoint" / "offsets"
    numbers = [int(path.name) for path in there.glob("*") if path.name.isdigit()]
    if not numbers:
        return -1
    sources = (there / str(max(numbers))).read_text().splitlines()[2:]
    read: list[int] = [json.loads(line)["logOffset"] for line in sources if line != "-"]
    return max(read)


def _killed(driver: Any, folder: Path, at: int, after: float) -> bool:
    """Kill a driver some time after a micro-batch has begun with a file, or a later one; False: it
    ended before."""
    while driver.poll() is None:
        if _last(folder) >= at:
            time.sleep(after)
            if driver.poll() is not None:
                break
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
            return True
        time.sleep(0.02)
    assert driver.returncode == 0, _said(folder)
    return False


def _said(folder: Path) -> str:
    """The errors that the drivers told; plans take pages between them."""
    lines = (folder / "said").read_text().splitlines()
    return "\n".join(line[:400] for line in lines if re.search("Error|Exception|Caused", line))


def _answer(folder: Path) -> list[str]:
    return wanted(pq.read_table(folder / "all"))


def _killed_often(
    folder: Path, kills: int, rows: Any, text: str, name: str, count: int = 30
) -> None:
    """A driver that is killed at random moments behind so many of its files, and started again
    until it gets through; the last one runs `finish`, too."""
    rnd = random.Random(kills)
    write_files(folder / "in", [table(part) for part in parts(rows, count)])
    died = 0
    # A driver can end before it is killed at one of the last two.
    for at in sorted(rnd.sample(range(1, count - 2), kills)):
        driver = _start(folder, "local[2]", "driver", text, name)
        died += _killed(driver, folder, at, rnd.random())
    driver = _start(folder, "local[2]", "driver", text, name)
    assert driver.wait() == 0, _said(folder)
    assert died == kills
    assert _last(folder) >= count - 1


@pytest.mark.parametrize(
    ("text", "kills"),
    [(TEXT, 1), (TEXT, 7), (SILENT, 1), (SILENT, 7), (SHAPE, 20)],
    ids=["pairs-1", "pairs-7", "deadlines-1", "deadlines-7", "rows-20"],
)
def test_a_driver_that_is_killed(text: str, kills: int, spark: Any, tmp_path: Path) -> None:
    """Nothing is lost or doubled."""
    assert spark.version  # Java has been found
    rows = events(300, keys=5)
    _killed_often(tmp_path, kills, rows, text, "pairs")
    compiled = compiled_text(text)
    if text == SILENT:
        compiled = compiled.with_options(at_end="closed")
    expected = spark.createDataFrame(table(rows)).transform(compiled.match).toArrow()
    assert _answer(tmp_path) == wanted(expected)
    assert len(expected) > 50


@pytest.mark.parametrize(("text", "name"), [(CHAIN, "chain"), (FIFTY, "")], ids=["chain", "fifty"])
def test_a_driver_of_several_queries_that_is_killed(
    text: str, name: str, spark: Any, tmp_path: Path
) -> None:
    """Twenty times."""
    assert spark.version
    rows = events(300, keys=5)
    _killed_often(tmp_path, 20, rows, text, name)
    module = queries(text)
    found = pq.read_table(tmp_path / "all")
    for one in [name] if name else module.queries:
        compiled = module.queries[one].with_options(at_end="closed", positions=False)
        expected = compiled.match_table(table(rows))
        assert wanted(found if name else module.rows(found, one)) == wanted(expected), one
        assert len(expected) or not name
    assert len(found) > 50


def _changing_rules(count: int, seconds: float) -> pa.Table:
    """Versions of 50 rules, two for each micro-batch of so many seconds. They come in time, because
    the watermark comes behind."""
    rnd, begin = random.Random(3), events(1, 1)[0]["ts"]
    changes = [
        {
            "key": number % 50,
            "user": rnd.randrange(5),
            "low": rnd.choice([0.0, 40.0, 45.0]),
            "since": begin + dt.timedelta(seconds=number // 2 * seconds + 5 + number % 2 / 2),
            "until": None,
        }
        for number in range(count)
    ]
    type = SCHEMA.field("ts").type
    fields = {"key": pa.int32(), "user": pa.int32(), "low": pa.float64()}
    schema = pa.schema([*fields.items(), ("since", type), ("until", type)])
    return pa.Table.from_pylist(changes, schema)


def test_a_driver_whose_rules_change_is_killed(spark: Any, tmp_path: Path) -> None:
    """1,000 versions of 50 rules in 500 micro-batches, and 20 kills."""
    assert spark.version
    rows, rules = events(1500, keys=5), _changing_rules(1000, 1.5)
    write_files(tmp_path / "rules", [rules.slice(2 * number, 2) for number in range(500)])
    _killed_often(tmp_path, 20, rows, RULED, "rules", 500)
    bare = query(RULED).with_options(positions=False)
    expected = bare.match_table(table(rows), rule=rules)
    assert _answer(tmp_path) == wanted(expected)
    assert len(expected) > 500


def test_a_driver_that_is_killed_within_a_state_of_a_changed_query(
    spark: Any, tmp_path: Path
) -> None:
    """While a bucket is written in the form of the new query."""
    assert spark.version
    rows = events(120, keys=5)
    write_files(tmp_path / "in", [table(part) for part in parts(rows, 6)[:3]])
    assert _start(tmp_path, "local[2]", "nobody", NAMED).wait() == 0, _said(tmp_path)
    write_files(tmp_path / "in", [table(part) for part in parts(rows, 6)[3:]], first=3)
    _killed_while_writing(tmp_path, CHANGED, "pairs")
    cut = changed_since(tmp_path / "checkpoint")
    expected = [
        query(one).with_options(positions=False).match_table(table(rows), **bounds)
        for one, bounds in ((NAMED, {"until": cut}), (CHANGED, {"after": cut}))
    ]
    assert _answer(tmp_path) == wanted(pa.concat_tables(expected))
    assert min(map(len, expected)) > 5


def test_a_driver_that_is_killed_while_rules_are_written_anew(spark: Any, tmp_path: Path) -> None:
    """As a whole, behind a log of three entries."""
    assert spark.version
    rows = events(120, keys=5)
    write_files(tmp_path / "in", [table(part) for part in parts(rows, 8)])
    rules = _changing_rules(16, 7.5)
    write_files(tmp_path / "rules", [rules.slice(2 * number, 2) for number in range(8)])
    _killed_while_writing(tmp_path, RULED, "rules")
    bare = query(RULED).with_options(positions=False)
    expected = bare.match_table(table(rows), rule=rules)
    assert _answer(tmp_path) == wanted(expected)
    assert len(expected) > 10


def _killed_while_writing(folder: Path, text: str, name: str) -> None:
    """A driver that is killed between two pieces of a state, and another one behind it."""
    assert _start(folder, "local[2]", "writers", text, name).wait() == -signal.SIGKILL
    assert (folder / "writers").exists()
    assert _start(folder, "local[2]", "writers", text, name).wait() == 0, _said(folder)


def test_workers_that_are_killed(spark: Any, tmp_path: Path) -> None:
    """One within a bucket's step, one when all states of its task have been changed."""
    rows = events(120, keys=5)
    write_files(tmp_path / "in", [table(part) for part in parts(rows, 4)])
    driver = _start(tmp_path, "local[2,4]", "workers")
    assert driver.wait() == 0, _said(tmp_path)
    assert (tmp_path / "task_route").exists()
    assert (tmp_path / "unpacking_route").exists()
    assert (tmp_path / "said").read_text().count("Exception in task") >= 2
    expected = spark.createDataFrame(table(rows)).transform(query(TEXT).match).toArrow()
    assert _answer(tmp_path) == wanted(expected)


def test_a_hundred_thousand_partitions(spark: Any, tmp_path: Path) -> None:
    """Two events of each; here, because other tests of streams run workers without Numba."""
    count = 100_000
    start = events(1, 1)[0]["ts"]
    times = [start, start + dt.timedelta(seconds=1)]
    rows = pa.table(
        {
            "type": ["A", "B"] * count,
            "id": pa.array([row // 2 for row in range(2 * count)], pa.int32()),
            "v": [50.0] * (2 * count),
            "name": ["n"] * (2 * count),
            "ts": pa.array(times * count, SCHEMA.field("ts").type),
            "row": pa.array(range(2 * count), pa.int64()),
        }
    )
    write_files(tmp_path / "in", [rows, table([END])])
    compiled = query(TEXT).with_options(positions=True)
    with settings(spark, SETTINGS | {"spark.sql.shuffle.partitions": "2"}):
        progress = run(compiled.match_stream(files(spark, tmp_path / "in")), tmp_path)
        found = spark.read.parquet(str(tmp_path / "out"))
        assert found.where("x[0].v = 50 AND start_pos = 0 AND end_pos = 1").count() == count
        assert found.select("id").distinct().count() == found.count() == count
        state = spark.read.format("statestore").option("path", str(tmp_path / "checkpoint"))
        pieces = state.option("stateVarName", STATE).load()
        # All but the last event's partition have shrunk to their counters.
        assert pieces.selectExpr("sum(length(user_map_value.data))").first()[0] <= 32 * count
    counts = sums(progress, "celc_pairs")
    assert (counts["events"], counts["matches"], counts["late"]) == (2 * count, count, 0)
