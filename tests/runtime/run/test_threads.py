"""Threads: how many, what a part may write, errors, rows of MATCH_RECOGNIZE, and calls at once.

That answers are the same for any number is tested in `tests/seeds/test_random_parts.py`.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Lock, Thread, current_thread
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.arrow.events import digits, sorting
from celc_runtime.arrow.events.sorting import Sorted, order_for
from celc_runtime.plan.errors import EventError
from celc_runtime.rules import any_query
from celc_runtime.run import parts, threads
from celc_runtime.run.parts import answer_of_parts, parts_of, threads_line
from celc_runtime.run.source.run_options import PLAIN
from engines import interpreted, only_query

import celc

DECLARED = "CREATE STREAM S { EVENT A { k: STRING, ts: LONG }, EVENT B { k: STRING, ts: LONG } }\n"
ROWS = 2_000


def query_of(text: str, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(DECLARED + text, order_by="ts", **options))


def table_of(keys: int = 9, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "type": rng.choice(["A", "B"], ROWS),
            "k": rng.choice([f"key {n}" for n in range(keys)], ROWS),
            "ts": np.cumsum(rng.integers(0, 3, ROWS)),
        }
    )


class Rows:
    """What a call reads."""


BY_KEY = "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 20 [ts]"


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Few rows have a kernel of their own, which a process takes after some hundred calls.
    monkeypatch.setattr(any_query, "MOST_ROWS_READ", 0)
    monkeypatch.setattr(parts, "LEAST_ROWS", 50)
    monkeypatch.setattr(parts, "_ROWS_OF_A_PART", 50)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.filterwarnings("ignore:.*equal in ts")
@pytest.mark.parametrize("keys", [1, 9, 900])
def test_threads_find_what_one_finds(keys: int) -> None:
    query, table = query_of(BY_KEY), table_of(keys)
    one = query.match_table(table, threads=1)
    assert len(one) > 10
    for count in (2, 3, 7):
        assert query.match_table(table, threads=count).equals(one)
        assert len(parts_of(query.program, order_for(query.plan, table), count)) > count


@pytest.mark.usefixtures("small_parts")
@pytest.mark.filterwarnings("ignore:.*equal in ts")
def test_threads_find_the_graphs_that_one_finds() -> None:
    query, table = query_of(BY_KEY), table_of(9)
    one = query.match_compact(table, threads=1)
    assert len(one) > 10
    for count in (2, 3, 7):
        assert query.match_compact(table, threads=count).equals(one)


FOR_EACH = """CREATE STREAM S { EVENT A { k: STRING, ts: LONG }, EVENT B { k: STRING, ts: LONG } }
PARAMETERS rule { nr: INT, late: LONG }
SELECT * FROM S FOR EACH rule WHERE WHAT PARTITION BY k WITHIN 20 [ts]"""


@pytest.mark.each(2, values=False)
@pytest.mark.parametrize("counts", [(3,), pytest.param((2, 3, 7), marks=pytest.mark.long)])
@pytest.mark.usefixtures("small_parts")
@pytest.mark.filterwarnings("ignore:.*(equal in ts|undecided)")
@pytest.mark.parametrize(
    ("what", "waits"),
    [
        ("(A AS a ; B AS b) FILTER b.ts - a.ts > rule.late", False),
        ("((A AS a ; B AS b) FILTER b.ts - a.ts > rule.late) ; !B", True),
    ],
)
def test_threads_pair_rows_of_a_table_with_whole_partitions(
    what: str, waits: bool, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with interpreted():
        query = only_query(celc.compile(FOR_EACH.replace("WHAT", what), order_by="ts"))
    used: list[int] = []

    def counted(calls: Any, count: int) -> Any:
        used.append(len(calls))
        return threads.side_by_side(calls, count)

    monkeypatch.setattr(parts, "side_by_side", counted)
    query = query.with_parameters(rule={"nr": [1, 2, 3], "late": [15, 0, 5]})
    assert query.plan.asks_for_clock == waits
    ways = [query.match_table] if waits else [query.match_table, query.match_compact]
    table = table_of()
    for match in ways:
        one = match(table, threads=1)
        assert len(one) > 10
        assert all(match(table, threads=count).equals(one) for count in counts)
    assert len(used) == len(counts) * len(ways)
    assert min(used) > 2


def test_batches_that_come_one_by_one_have_no_threads() -> None:
    query = query_of(BY_KEY)
    for match in (query.match_arrow, query.match_compact_arrow, query.match_pandas):
        with pytest.raises(TypeError, match=r"takes no threads here.*match_table"):
            match(table_of(1), threads=2)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.filterwarnings("ignore:.*equal in ts")
def test_a_part_writes_into_its_own_arrays_alone(tmp_path: Path) -> None:
    """What parts share lies in memory that cannot be written: the process would end."""
    query, table = query_of(BY_KEY), table_of()
    rows = order_for(query.plan, table)
    assert rows.order is not None
    shared = rows.table.append_column("order", pa.array(rows.order))
    path = tmp_path / "rows.arrow"
    with pa.ipc.new_file(path, shared.schema) as out:
        out.write_table(shared)
    with pa.memory_map(str(path)) as file:
        mapped = pa.ipc.open_file(file).read_all()
        order = mapped.column("order").chunk(0).to_numpy()
        there = Sorted(mapped.drop_columns(["order"]), order, rows.numbered)
        found = answer_of_parts(
            query.program, there, parts_of(query.program, there, 3), PLAIN, threads=3
        )
        assert found is not None
        one = query.match_table(table, threads=1)
        assert pa.Table.from_batches(found.batches, query.output_schema).equals(one)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.filterwarnings("ignore:.*equal in ts")
@pytest.mark.each(3, values=False)
@pytest.mark.parametrize("rises", [True, False])
@pytest.mark.parametrize("key", ["STRING", "LONG"])
def test_threads_sort_large_tables(monkeypatch: pytest.MonkeyPatch, key: str, rises: bool) -> None:
    monkeypatch.setattr(sorting, "_FEW", 10)
    monkeypatch.setattr(digits, "_ROWS_OF_A_SLICE", 1)
    monkeypatch.setattr(sorting, "is_worth_it", lambda _rows: True)
    with interpreted():
        text = DECLARED.replace("k: STRING", f"k: {key}") + BY_KEY
        query = only_query(celc.compile(text, order_by="ts"))
    table = table_of()
    if key == "LONG":
        numbers = [int(one[4:]) for one in table.column("k").to_pylist()]
        table = table.set_column(1, "k", pa.array(numbers))
    if not rises:
        table = table.take(pa.array(np.random.default_rng(2).permutation(ROWS)))
    for given in (table, pa.concat_tables([table[:700], table[700:]])):
        rows = order_for(query.plan, given, workers=threads.workers_of(3))
        assert rows.moved
        assert (
            rows.begins(query.plan).tolist()
            == Sorted(rows.table, rows.order).begins(query.plan).tolist()
        )
        one = query.match_table(given, threads=1)
        assert len(one) > 10
        assert all(query.match_table(given, threads=count).equals(one) for count in (2, 3, 7))
        with monkeypatch.context() as patch:  # rows that are picked part by part
            patch.setattr(sorting, "MOST_MOVED", ROWS - 1)
            picked = order_for(query.plan, given, workers=threads.workers_of(3))
            assert not picked.moved
            assert (picked.starts is None) == (not rises)  # else no thread looks for them alone
            assert picked.begins(query.plan).tolist() == rows.begins(query.plan).tolist()
            assert query.match_table(given, threads=2).equals(one)


def test_calls_side_by_side() -> None:
    """All are made, by as many threads; the first error in their order is raised, and no call after
    it begins once it is known."""
    for count in (1, 2, 5):
        assert threads.side_by_side([lambda n=n: n for n in range(9)], count) == [*range(9)]
    made = []

    def call(number: int) -> None:
        made.append(number)
        if number in (3, 4):
            raise EventError(f"call {number}")

    with pytest.raises(EventError, match="call 3"):
        threads.side_by_side([partial(call, n) for n in range(100)], 2)
    assert len(made) < 100


def test_threads_wait_for_the_next_step_and_hold_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_SECONDS", 0.2)
    both = Barrier(2, timeout=10)

    def call(_rows: object) -> Thread:
        both.wait()  # so that each thread has one of two calls
        return current_thread()

    seen = set[Thread]()
    for _ in range(5):
        rows = Rows()
        held = ref(rows)
        seen.update(threads.side_by_side([partial(call, rows), partial(call, rows)], 2))
        del rows
        assert held() is None
    (other,) = seen - {current_thread()}
    assert other.daemon
    other.join(10)
    assert not other.is_alive()
    assert threads.side_by_side([lambda: 1, lambda: 2], 2) == [1, 2]


def test_calls_of_several_threads_share_those_that_wait() -> None:
    """A thread that has ended its work can have that of another call before the first one knows:
    nobody takes back what is not his."""
    found: list[bool] = []

    def call() -> None:
        for _ in range(2_000):
            answers = threads.side_by_side([lambda: 1, lambda: 2, lambda: 3], 3)
            found.append(answers == [1, 2, 3])

    callers = [Thread(target=call, daemon=True) for _ in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(30)
    assert found == [True] * 8_000


def test_a_call_that_is_stopped_as_others_end_waits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped:
        waits = 0

        def __init__(self) -> None:
            lock = Lock()
            self.acquire, self.release = lock.acquire, lock.release

        def __enter__(self) -> None:
            assert self.acquire(timeout=10)

        def __exit__(self, *_: object) -> None:
            self.release()
            Stopped.waits += 1
            if Stopped.waits == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(threads, "Lock", Stopped)
    both = Barrier(2, timeout=10)  # so that each thread has one of two calls
    with pytest.raises(KeyboardInterrupt):
        threads.side_by_side([both.wait, both.wait], 2)
    assert Stopped.waits == 2
    assert sorted(threads.side_by_side([both.wait, both.wait], 2)) == [0, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_child_process_starts_threads_of_its_own() -> None:
    both = Barrier(2, timeout=10)
    assert sorted(threads.side_by_side([both.wait, both.wait], 2)) == [0, 1]
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        found = threads.side_by_side([both.wait, both.wait], 2)
        os._exit(0 if sorted(found) == [0, 1] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.usefixtures("small_parts")
def test_an_error_is_that_of_one_run() -> None:
    query, table = query_of(BY_KEY), table_of()
    times = table.column("ts").to_pylist()
    times[7] = times[1500] = None
    table = table.set_column(2, "ts", pa.array(times))
    found = []
    for count in (1, 3):
        with pytest.raises(EventError) as caught:
            query.match_table(table, threads=count)
        found.append(str(caught.value))
    assert found[0] == found[1]
    assert "is NULL in row" in found[0]


def test_two_threads_may_call_one_matcher_at_once() -> None:
    query = query_of(BY_KEY)
    tables = [table_of(seed=seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: query.match_table(one, threads=1).num_rows, tables * 2))
    assert found == [query.match_table(one, threads=1).num_rows for one in tables] * 2


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "2", True])
def test_what_is_no_number_of_threads(wrong: Any) -> None:
    with pytest.raises(ValueError, match="threads must be a whole number from 1"):
        query_of(BY_KEY).match_table(table_of(), threads=wrong)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.filterwarnings("ignore:.*equal in ts")
@pytest.mark.parametrize("pays", [True, False])
def test_threads_are_used_where_they_pay(pays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By themselves; a number that is given is used for any table that has parts."""
    monkeypatch.setattr(any_query, "ROWS_THAT_PAY", ROWS if pays else ROWS + 1)
    monkeypatch.setattr(threads, "cores", lambda: 3)
    used: list[int] = []

    def counted(calls: Any, count: int) -> Any:
        used.append(count)
        return [call() for call in calls]

    monkeypatch.setattr(parts, "side_by_side", counted)
    query, table = query_of(BY_KEY), table_of()
    found = query.match_table(table)
    assert used == ([3] if pays else [])
    assert found.equals(query.match_table(table, threads=1))
    assert found.equals(query.match_table(table, threads=2))
    assert used == ([3, 2] if pays else [2])


def test_threads_without_a_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: range(8), raising=False)
    limit = tmp_path / "cpu.max"
    monkeypatch.setattr(threads, "_LIMIT", limit)
    assert threads.cores() == 8
    for text, wanted in (("max 100000", 8), ("250000 100000", 3), ("1000 100000", 1)):
        limit.write_text(text)
        assert threads.threads_for(None) == wanted
    context = SimpleNamespace(get=lambda: object())
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(TaskContext=context))
    limit.write_text("max 100000")
    assert threads.threads_for(None) == 1
    assert threads.threads_for(5) == 5


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (BY_KEY, "threads: each reads whole partitions of a table; large ones are cut into time"),
        ("SELECT * WHERE A ; B PARTITION BY k", "a large one is not cut into time ranges, because"),
        ("SELECT * WHERE A ; B WITHIN 5 [ts]", "threads: each reads time ranges of a table"),
        ("SELECT * WHERE A ; B WITHIN 5 [ts] CONSUME BY ANY", "one reads a table, because with CO"),
        ("SELECT * WHERE A ; B", "one reads a table, because the query has no window"),
        (
            "PARAMETERS rule { nr: INT }\nSELECT * FOR EACH rule WHERE A ; B PARTITION BY k",
            "threads: each reads whole partitions of a table; a large one is not cut",
        ),
        (
            "PARAMETERS rule { nr: INT }\nSELECT * FOR EACH rule WHERE A ; B WITHIN 5 [ts]",
            "one reads a table, because all its events are paired with the rows of a table",
        ),
        (
            "SELECT * WHERE A ; B PARTITION BY k CONSUME BY ANY",
            "with CONSUME BY ANY a match depends on those of all partitions",
        ),
    ],
)
def test_what_threads_read_in_words(text: str, line: str) -> None:
    assert line in threads_line(query_of(text).plan)


ROW_PATTERN = """CREATE TABLE t (k STRING, ts LONG, v INT);
SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
  MEASURES MATCH_NUMBER() AS n, FIRST(ts) AS t1, LAST(ts) AS t2
  AFTER MATCH SKIP {skip} PATTERN (S DOWN+ UP+) DEFINE DOWN AS v < PREV(v), UP AS v > PREV(v))"""


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("rises", [True, False])
def test_partitions_of_row_patterns(rises: bool) -> None:
    with interpreted():
        made = celc.compile(ROW_PATTERN.format(skip="TO LAST UP"), dialect="match_recognize")
    (query,) = made.queries.values()
    rng = np.random.default_rng(3)
    table = table_of().drop_columns(["type"])
    table = table.append_column("v", pa.array(rng.integers(0, 9, ROWS).astype(np.int32)))
    if not rises:
        table = table.take(pa.array(rng.permutation(ROWS)))
    one = query.match_table(table, threads=1)
    assert len(one) > 100
    for count in (2, 3, 7):
        assert query.match_table(table, threads=count).equals(one)


@pytest.mark.long
@pytest.mark.usefixtures("small_parts")
@pytest.mark.filterwarnings("ignore:.*equal in ts")
def test_memory_stays_flat() -> None:
    query, table = query_of(BY_KEY), table_of()
    resident = Path("/proc/self/statm")
    sizes = []
    for _ in range(6):
        for _ in range(300):
            query.match_table(table, threads=3)
        sizes.append(int(resident.read_text().split()[1]))
    assert sizes[-1] < 1.05 * sizes[1], sizes
