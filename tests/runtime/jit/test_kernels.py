"""Kernels are run by Python first, and by machine code once that is worth it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import WorkLimitError
from celc_runtime.engine.arena.batch import NO_INTEGERS, Batch
from celc_runtime.engine.walk.collected_listing import collected_listing
from celc_runtime.engine.walk.walk import listing_kernel
from celc_runtime.jit import kernels
from celc_runtime.jit.kernels import njit
from celc_runtime.row_pattern import passes
from celc_runtime.row_pattern import run as row_pattern_run
from celc_runtime.row_pattern.search import find_by_search
from celc_runtime.run.walk import checked
from engines import interpreted
from other_processes import run
from shares import share

import celc

_FEW, _MANY = np.arange(3), np.arange(1 << 14)


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for users."""
    monkeypatch.setattr(kernels, "MOST_ROWS", 1 << 13)
    monkeypatch.setattr(kernels, "PATIENCE", 0.2)
    monkeypatch.setattr(kernels, "PATIENCE_TO_LOAD", 0.02)
    monkeypatch.setattr(checked, "collected_listing", collected_listing)


def _seen(values: Any) -> Any:
    return values[0] * 2, values.shape[0] > 5


def _is_compiled(kernel: Any) -> bool:
    return kernel._compiled is not None


def test_python_reads_small_inputs_and_machine_code_large_ones() -> None:
    kernel = njit(cache=False)(_seen)
    small = kernel(_FEW)
    assert not _is_compiled(kernel)
    assert kernel(_MANY) == (0, True)
    assert _is_compiled(kernel)
    again = kernel(_FEW)
    assert [(type(one), one) for one in small] == [(type(one), one) for one in again]
    assert [type(one) for one in small] == [int, bool]


def test_runs_that_take_what_is_made_wait_for_no_machine_code() -> None:
    kernel = njit(cache=False)(_seen)
    with kernels.taking_what_is_made(), kernels.compiling():
        assert kernel(_MANY) == (0, True)
    assert not _is_compiled(kernel)
    kernel(_MANY)
    assert _is_compiled(kernel)


def test_proofs_are_read_by_python_although_there_is_machine_code() -> None:
    asked = []
    kernel = njit(plain=lambda values: asked.append(len(values)), cache=False)(_seen)
    kernel._is_plain = False
    kernel.compiled  # noqa: B018  # as an earlier run has left it
    with kernels.interpreting():
        kernel(_FEW)
    assert asked == [len(_FEW)]
    assert kernel(_MANY) == (0, True)


def test_the_rows_of_a_batch_count_and_the_memory_does_not() -> None:
    def batch_of(rows: int) -> Batch:
        return Batch(np.zeros(rows, np.uint8), *([NO_INTEGERS] * 8))

    kernel = njit(cache=False)(lambda batch, memory: batch.symbols.shape[0] + memory[0].shape[0])
    assert kernel(batch_of(3), (_MANY,)) == 3 + len(_MANY)
    assert not _is_compiled(kernel)
    kernel(batch_of(1 << 14), (_MANY,))
    assert _is_compiled(kernel)


def test_a_kernel_that_takes_long_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.15, 1.0, 1.15, 2.0])
    monkeypatch.setattr(kernels, "thread_time", lambda: next(clock))
    kernel = njit(cache=False)(_seen)
    for _ in range(2):
        kernel(_FEW)
        assert not _is_compiled(kernel)
    kernel(_FEW)
    assert _is_compiled(kernel)


def test_machine_code_that_is_kept_is_loaded_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.03, 1.0])
    monkeypatch.setattr(kernels, "thread_time", lambda: next(clock))
    kernel = njit(cache=False)(_seen)
    vars(kernel)["is_made"] = True
    kernel(_FEW)
    assert not _is_compiled(kernel)
    kernel(_FEW)
    assert _is_compiled(kernel)


def test_what_python_runs_calls_python() -> None:
    """Also a kernel that is compiled: its types would be others."""
    inner = njit(cache=False)(_seen)
    inner(_MANY)
    seen = []
    monkey = inner.plain
    inner.plain = lambda values: seen.append(len(values)) or monkey(values)
    outer = njit(cache=False)(lambda values: inner(values)[0])
    assert outer(_FEW) == 0
    assert seen == [3]
    inner(_FEW)
    assert seen == [3]


def test_an_error_in_python_is_one_of_the_kernel() -> None:
    kernel = njit(cache=False)(lambda values: values[9])
    for _ in range(2):
        with pytest.raises(IndexError):
            kernel(_FEW)
        assert not kernels._now.interprets


def test_numbers_wrap_around_in_silence(recwarn: pytest.WarningsRecorder) -> None:
    kernel = njit(cache=False)(lambda values: values[0] * values[0])
    assert kernel(np.array([1 << 33])) == kernel.compiled(np.array([1 << 33])) == 0
    assert not len(recwarn)


def test_threads_do_not_disturb_each_other() -> None:
    inside, leave = threading.Event(), threading.Event()

    def waits(values: Any) -> int:
        inside.set()
        leave.wait(60)
        return len(values)

    thread = threading.Thread(target=kernels.Kernel(waits, {}, kept=False), args=(_FEW,))
    thread.start()
    assert inside.wait(60)
    kernel = njit(cache=False)(_seen)
    kernel(_MANY)
    assert _is_compiled(kernel)
    leave.set()
    thread.join()


_SEARCHES = {
    "listed": "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER SUM(x.v) = -1",
    "collected": "SELECT MAX * FROM S WHERE ((A AS x)+ ; B) FILTER SUM(x.v) = -1",
}
_DECLARED = "CREATE STREAM S { EVENT A { v: DOUBLE }, EVENT B { v: DOUBLE } }\n"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel is compiled because it took long."""
    monkeypatch.setattr(kernels, "PATIENCE", float("inf"))
    monkeypatch.setattr(kernels, "PATIENCE_TO_LOAD", float("inf"))


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("text", share(_SEARCHES.values(), 2))
def test_a_search_over_few_events_is_not_left_to_python(text: str) -> None:
    """It takes more steps than Python should, and is not started again where it can go on."""
    (query,) = celc.compile(_DECLARED + text, max_work=300_000).queries.values()
    values = np.random.default_rng(1).normal(size=41)
    events = pa.table({"type": ["A"] * 40 + ["B"], "v": values})
    checks = query.program.listing
    kernel = collected_listing(checks) if text.startswith("SELECT MAX") else listing_kernel(checks)
    with pytest.raises(WorkLimitError, match="more than 300,000 steps"):
        query.match_table(events)
    assert _is_compiled(kernel)


@pytest.mark.parametrize("told", ["", "-1", "many", "1e3"])
def test_a_wrong_number_of_rows_is_an_error(told: str) -> None:
    with pytest.raises(ValueError, match="CELC_INTERPRETED_ROWS must be a whole number of rows"):
        kernels._most_rows(told)
    assert kernels._most_rows("0") == 0


@pytest.mark.long
def test_a_process_knows_what_an_earlier_one_has_made(tmp_path: Path) -> None:
    script = """
import json, sys
import celc, pyarrow as pa
text = "CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }\\n"
query, = celc.compile(text + "QUERY q: SELECT * FROM S WHERE A ; B").queries.values()
events = pa.table({"type": ["A", "B"], "id": pa.array([1, 2], pa.int32())})
query.match_table(events)
from celc_runtime.jit import kernels
import gc
print(json.dumps(sorted(o.__name__ for o in gc.get_objects()
                        if isinstance(o, kernels.Kernel) and o.is_made)))
"""
    cache = {"CELC_CACHE_DIR": str(tmp_path)}
    run(script, **cache, CELC_INTERPRETED_ROWS="0")
    made = run(script, **cache, CELC_INTERPRETED_ROWS=None)
    assert {"update_1", "classify_1"} <= set(made)


_ROW_PATTERN = """CREATE TABLE t (id INT, v DOUBLE, ts TIMESTAMP);
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY {order} MEASURES COUNT(*) AS n PATTERN {pattern}
DEFINE {condition})"""


_TWO_SUMS = _ROW_PATTERN.format(
    order="id", pattern="((A | B)+ X)", condition="X AS SUM(A.v) = 1 AND SUM(B.v) = 1"
)


def test_a_search_that_pauses_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few steps here, and by Python both times; the long run has machine code."""
    with interpreted():
        (query,) = celc.compile(_TWO_SUMS, dialect="match_recognize").queries.values()
    rows = {"id": list(range(6)), "v": [0.0, 1.0, 0.0, 1.0, 0.0, 5.0]}
    wanted = query.match_table(rows)
    assert len(wanted)
    longer: list[bool] = []

    def noted() -> nullcontext[None]:
        longer.append(True)
        return nullcontext()

    monkeypatch.setattr(row_pattern_run, "STEPS_IN_PYTHON", 3)
    monkeypatch.setattr(row_pattern_run, "compiling", noted)
    assert query.match_table(rows).equals(wanted)
    assert longer


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_a_search_over_few_rows_is_not_left_to_python() -> None:
    """It pauses, and goes on by machine code; its limit is that of each start."""
    (query,) = celc.compile(_TWO_SUMS, dialect="match_recognize").queries.values()
    program = query.program
    find = find_by_search(program.advance, program.holds)
    few = {"id": list(range(8)), "v": [2.0**k for k in range(8)]}
    assert len(query.match_table(few)) == 0
    assert not _is_compiled(find)
    many = {"id": list(range(40)), "v": [2.0**k for k in range(29)] + [0.0] * 11}
    with pytest.raises(WorkLimitError, match="more than max_work=10,000 steps"):
        query.with_options(max_work=10_000).match_table(many)
    assert not _is_compiled(find)
    with pytest.raises(WorkLimitError, match="more than max_work=300,000 steps"):
        query.with_options(max_work=300_000).match_table(many)
    assert _is_compiled(find)


@pytest.mark.usefixtures("patient")
def test_earliest_ends_of_many_states_are_machine_code() -> None:
    """They take a step for each row and move, so that the rows alone do not tell."""
    found = {}
    for size in (2, 1000):
        text = _ROW_PATTERN.format(
            order="ts", pattern=f"(A{{{size}}}) WITHIN INTERVAL '1' HOUR", condition="A AS v > 0"
        )
        (query,) = celc.compile(text, dialect="match_recognize").queries.values()
        kernel = passes.find_earliest
        kernel._compiled = None
        rows = {"v": [1.0] * 2000, "ts": pa.array(range(2000), pa.timestamp("us"))}
        found[size] = len(query.match_table(pa.table(rows))), _is_compiled(kernel)
    assert found == {2: (1000, False), 1000: (2, True)}


_FEW_AND_MANY = {
    "CEL": """
text = "CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }\\n"
query, = celc.compile(text + "QUERY q: SELECT * FROM S WHERE A ; B").queries.values()
events = pa.table({"type": ["A", "B"], "id": pa.array([1, 2], pa.int32())})
many = pa.table({"type": ["A"] * 9999 + ["B"], "id": pa.array(range(10_000), pa.int32())})
""",
    "MATCH_RECOGNIZE": """
text = "CREATE TABLE t (id INT);\\nSELECT * FROM t MATCH_RECOGNIZE (ORDER BY id MEASURES "
text += "LAST(B.id) AS b PATTERN (A B) DEFINE A AS id % 2 = 0, B AS id = PREV(id) + 1)"
query, = celc.compile(text, dialect="match_recognize").queries.values()
events = pa.table({"id": pa.array([2, 3], pa.int32())})
many = pa.table({"id": pa.array(range(2 * 9999), pa.int32())})
""",
}


@pytest.mark.each(2)
@pytest.mark.parametrize("language", _FEW_AND_MANY)
def test_numba_is_imported_when_it_is_needed(language: str) -> None:
    """A run over a few events needs none of it; NumPy and Arrow only."""
    script = f"""
import sys
import celc, pyarrow as pa
{_FEW_AND_MANY[language]}
assert len(query.match_table(events)) == 1
assert not {{"numba", "llvmlite"}} & {{*sys.modules}}
assert len(query.match_table(many)) == 9999
assert "numba" in sys.modules
"""
    subprocess.run(
        [sys.executable, "-c", script], check=True, env=_without("CELC_INTERPRETED_ROWS")
    )


def _without(name: str) -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != name}
