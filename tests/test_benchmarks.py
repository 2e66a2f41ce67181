"""The benchmark suite: what is compared, recorded and drawn, and that all ways find the same."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from engines import interpreted
from places import ROOT

sys.path.append(str(ROOT / "benchmarks"))

import cells
import common
import compare
import kernel
import plots
import processes
import streaming
import suite
from baselines import by_hand
from common import Figure, Settings, Task
from streams import Reading

import celc

STEADY = (1e9,) * 4


def figure(values: tuple[float, ...], **changed: Any) -> Figure:
    """A rate whose calibration kernel was steady."""
    return replace(Figure("update", "events/s", values, STEADY, part="kernel"), **changed)


def verdict(old: Figure, new: Figure, *, same_machine: bool = True) -> str:
    """How the comparison of two records with one figure each calls it."""
    (change,) = compare.changes([old], [new], same_machine=same_machine)
    if change.worse is None:
        return change.reason
    return "slower" if change.is_slower else "faster" if change.is_faster else "same"


def record(figures: list[Figure], **changed: Any) -> dict[str, Any]:
    """What a run of the suite with these figures would write."""
    calibration: Any = Namespace(seen=[1e9, 1.1e9])
    settings = Settings(False, 4, calibration)
    return suite.recorded(Namespace(full=False), settings, figures, calibration) | changed


# --- comparing ------------------------------------------------------------------------------------

BEFORE = figure((100e6, 101e6, 99e6, 100e6))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (BEFORE, "same"),
        (figure((80e6, 81e6, 79e6, 80e6)), "slower"),
        (figure((130e6, 131e6, 129e6, 130e6)), "faster"),
        (figure((95e6, 96e6, 94e6, 95e6)), "same"),
        (figure((60e6, 120e6, 85e6, 101e6)), "same"),
        (figure((80e6,) * 4, context={"events": 7}), "other sizes"),
        (figure((80e6,) * 4, calibrated=(0.8e9,) * 4), "same"),
        (figure(BEFORE.values, calibrated=(1.3e9,) * 4), "same"),
    ],
    ids=[
        "the same",
        "slower",
        "faster",
        "a little",
        "noise",
        "sizes",
        "slower machine",
        "calibration alone",
    ],
)
def test_slower_is_what_is_slower_beyond_noise(after: Figure, said: str) -> None:
    assert verdict(BEFORE, after) == said


def test_between_machines_the_ratio_alone_counts() -> None:
    after = figure(BEFORE.values, calibrated=(1.3e9,) * 4)
    assert verdict(BEFORE, after, same_machine=False) == "slower"


def test_of_seconds_and_quotients_more_is_worse() -> None:
    seconds = Figure("start", "s", (1.0, 1.01), (1e9, 1e9), higher_is_better=False)
    assert verdict(seconds, replace(seconds, values=(1.3, 1.31))) == "slower"
    memory = common.size("memory", "bytes", 1000)
    assert verdict(memory, replace(memory, values=(1200,))) == "slower"
    assert verdict(memory, replace(memory, values=(800,))) == "faster"


def test_goals_are_judged_by_the_ratio() -> None:
    rate = figure((100e6,) * 4, goal=0.2 * common.NOMINAL)
    assert rate.missed_by == pytest.approx(0.5)
    seconds = Figure("s", "s", (0.3,), (common.NOMINAL / 3,), higher_is_better=False, goal=0.2)
    assert seconds.missed_by == pytest.approx(-0.5)
    assert seconds.missed_here_by == pytest.approx(0.5)


def test_a_slower_figure_makes_the_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = compare.write_record(record([BEFORE], time="10:00:00"), tmp_path)
    slow = figure((80e6, 81e6, 79e6, 80e6))
    new = compare.write_record(record([slow], time="11:00:00"), tmp_path)
    assert compare.all_records(tmp_path) == [old, new]
    assert suite.main(["--compare", str(old), str(new)]) == 1
    assert "SLOWER  update" in capsys.readouterr().out
    assert suite.main(["--compare", str(old), str(old)]) == 0


def test_what_is_no_record_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "kernel.jsonl"
    lines.write_text("{}\n{}\n")
    assert suite.main(["--compare", str(lines), str(tmp_path / "none.json")]) == 2
    assert "kernel.jsonl is no record of the suite" in capsys.readouterr().err
    assert suite.main(["--compare", str(lines)]) == 2
    assert "--compare takes two record files" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        suite.main(["--only", "kernels"])
    assert "no part is called kernels; there are kernel, output" in capsys.readouterr().err


# --- recording and drawing ------------------------------------------------------------------------


def test_a_record_says_all_and_is_read_as_it_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [BEFORE, common.size("memory", "times", 1.5, 2.0, window=7)]
    path = compare.write_record(record(figures), tmp_path)
    plain = json.loads(path.read_text())
    assert plain["calibration"]["median"] == 1.05e9
    wanted = {"machine", "commit", "python", "numba", "numpy", "pyarrow", "cpu_seconds", "mode"}
    assert wanted <= set(plain)
    assert len(path.read_text().splitlines()) == len(plain) + 3 + len(figures)
    assert compare.read_record(path)["figures"] == figures
    assert suite.main(["--table", str(path)]) == 0
    assert "| memory | 1.500 × |  | ≤ 2.000 × | reached |" in capsys.readouterr().out


@pytest.mark.long
def test_plots_are_files_and_equal_for_equal_records(tmp_path: Path) -> None:
    grown = [
        figure(
            (1e8, 1.1e8),
            calibrated=(1e9, 1e9),
            name=f"{word}: {size}",
            context={key: size, "line": "A"},
        )
        for word, (key, _) in plots.AGAINST.items()
        for size in (1, 10)
    ]
    times = [f"10:00:0{second}" for second in range(3)]
    records = [record([], time=time) | {"figures": [BEFORE, *grown]} for time in times]
    names = sorted(["over-time-kernel", *(f"cost-by-{word}" for word in plots.AGAINST)])
    written = [path.read_bytes() for path in plots.plot_all(records, tmp_path)]
    assert sorted(path.stem for path in tmp_path.iterdir()) == names
    for text in written:
        assert ElementTree.fromstring(text).tag.endswith("svg")
    assert next(plots.plot_all(records, tmp_path)).read_bytes() == written[0]


# --- measuring ------------------------------------------------------------------------------------


def test_repetitions_are_interleaved_with_each_other_and_the_calibration() -> None:
    calls: list[str] = []

    def calibrated() -> float:
        calls.append("|")
        return 1e9

    tasks = [
        Task("a", lambda: calls.append("a"), lambda: calls.append("before")),
        Task("b", lambda: calls.append("b")),
    ]
    timings = Settings(False, 2, calibrated).repeated(tasks)
    assert calls == ["|", "before", "a", "|", "b", "|"] * 3
    assert {name: len(timing.seconds) for name, timing in timings.items()} == {"a": 2, "b": 2}


@pytest.fixture(scope="module")
def query() -> Iterator[Any]:
    with interpreted():
        yield by_hand.query_of(6)


def test_a_reading_goes_on_as_one_stream(query: Any) -> None:
    table = by_hand.stream(300)
    reading = Reading(query, table.to_batches()[0], listed=True)
    reading.rewind()
    reading.update()
    later = int(table["ts"][-1].as_py() - table["ts"][0].as_py()) + int(
        table["ts"][1].as_py() - table["ts"][0].as_py()
    )
    moved = pa.table({"type": table["type"], "ts": pa.array(np.asarray(table["ts"]) + later)})
    twice = len(query.match_table(pa.concat_tables([table, moved]).combine_chunks()))
    assert reading.matches == twice - len(query.match_table(table))
    assert reading.positions == 3 * reading.matches
    assert reading.matches > 0


def test_ways_by_hand_find_the_same(query: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_hand, "_loops", by_hand._loops.py_func)
    table = by_hand.stream(2_000)
    expected = by_hand.positions_of(query.match_table(table))
    assert len(expected) > 30
    for way in (by_hand.by_python, by_hand.by_numba):
        positions, times = way(table, 6)
        by_hand.check(way.__name__, expected, positions)
        assert np.array_equal(times, np.asarray(table["ts"])[positions])
    with pytest.raises(RuntimeError, match="not the same ones"):
        by_hand.check("half", expected, expected[1:])


@pytest.mark.long
def test_the_self_join_finds_the_same(spark: Any, query: Any) -> None:
    self_joins = importlib.import_module("self_joins")
    table = by_hand.stream(2_000)
    numbered = table.append_column("row", pa.array(range(len(table))))
    join = self_joins.Join(6, keyed=False, rows=len(table), goal=1.0)
    rows = self_joins.by_join(spark.createDataFrame(numbered), join).collect()
    found = np.array([tuple(row) for row in rows])
    by_hand.check("self-join", by_hand.positions_of(query.match_table(table)), found)
    pairs = join._replace(labels="ab")
    rows = self_joins.by_join(spark.createDataFrame(numbered), pairs).collect()
    numbered = numbered.append_column("id", pa.array([0] * len(table)))
    matches = self_joins._query_of_join(pairs, "row").match_table(numbered)
    expected = zip(matches["start_pos"].to_pylist(), matches["end_pos"].to_pylist(), strict=True)
    assert sorted(map(tuple, rows)) == sorted(expected)


def test_the_old_record_names_what_is_measured_now() -> None:
    settings = Settings(False, 1, lambda: 1e9)
    with interpreted():
        names = {task.name for task in kernel.update_tasks("Q1", replace_events(settings))}
    recorded = {name for name in kernel.plain_record() if name.startswith("update Q1 ")}
    assert recorded <= names


def replace_events(settings: Settings) -> Any:
    """The settings with streams so short that they can be interpreted."""
    return Namespace(events=50, repeated=settings.repeated)


def test_cpu_time_counts_children_that_have_ended() -> None:
    before = processes.tree_seconds()
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert processes.tree_seconds() - before >= 0.25


def test_cpu_time_of_a_job_leaves_out_what_was_used_before() -> None:
    """A worker that its parent has not waited for takes none of its earlier time with it."""
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    parent = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {busy!r}])\n"
        "import time\ntime.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        started.stdout.readline()
        assert processes.seconds_of(lambda: processes.end_tree(started.pid)) >= 0
        assert processes.seconds_of(lambda: None) >= 0


# --- cells of the streaming part ------------------------------------------------------------------


def file_cost(clock: float) -> streaming.FileCost:
    """A file that took so long on the clock."""
    return streaming.FileCost(clock, 2 * clock, 0.5, 1_000, 4_000)


def cell_figures(cell: cells.Cell, clocks: dict[str, float]) -> dict[str, Figure]:
    """A cell's figures by name, where each file of a stream took as long."""
    found = {
        name: streaming.Measured([file_cost(clock)] * cell.files, file_cost(clock + 1.0))
        for name, clock in clocks.items()
    }
    return {figure.name: figure for figure in streaming.figures_of(cell, found)}


def test_rows_of_a_cell_are_spread_over_keys_and_time() -> None:
    cell = cells.Cell(50, 20_000)
    first, second = (cells.events(cell, number) for number in (0, 1))
    for number, table in enumerate((first, second)):
        micros = np.asarray(table["ts"]).astype(np.int64)
        begin = cells.START + number * 60_000_000
        assert begin == micros.min()
        assert micros.max() < begin + 60_000_000
        assert len(np.unique(micros)) == cell.rows
        assert not np.all(np.diff(micros) > 0)
        of_key = np.bincount(np.asarray(table["key"]))
        assert len(of_key) == 50
        assert 300 < of_key.min() <= of_key.max() < 500
        types = np.asarray(table["type"])
        named = np.isin(types, ["A", "B", "C"])
        relevant = named & (np.asarray(table["v"]) > 0.5)
        assert named.mean() == pytest.approx(0.1, rel=0.05)
        assert relevant.mean() == pytest.approx(0.035, rel=0.05)
    assert cells.START % (cells.WINDOW * 1_000_000) == 0


@pytest.mark.parametrize("keys", [20, 100])
def test_matches_of_a_cell_are_few_however_many_rows_a_key_has(keys: int) -> None:
    cell = cells.Cell(keys, 600)
    table = pa.concat_tables(cells.events(cell, number) for number in range(12))
    with interpreted():
        matches = celc.compile(cells.QUERY, order_by="ts").query.match_table(table.sort_by("ts"))
    assert 0 < len(matches) < 3 * cells.MATCHES * len(table)


def test_goals_of_streams_are_those_of_their_cells() -> None:
    names: list[str] = []
    for cell in streaming.cells_of_mode(full=True):
        ours_and_others = dict.fromkeys(streaming.OURS.values(), 2.0)
        found = cell_figures(cell, {streaming.COUNT: 3.0, streaming.FLOOR: 1.0, **ours_and_others})
        names += found
        for ours in streaming.OURS.values():
            speed = found[f"{cell.name}: speed of {ours} beside Spark's count"]
            assert speed.values == (1.5,) * cell.files
            of_rows = {200_000: (0.75, 1.0, 2.0, 4.0), 1_000_000: (0.7, 0.85, 1.4, 6.0)}
            assert speed.goal == of_rows[cell.rows][streaming.KEYS.index(cell.keys)]
            in_cpu = found[f"{cell.name}: speed in CPU seconds of {ours} beside Spark's count"]
            assert in_cpu.values == (1.5,) * cell.files
            floor = found[f"{cell.name}: speed of {ours} beside {streaming.FLOOR}"]
            assert (floor.values, floor.goal) == ((0.5,) * cell.files, 0.85)
            rate = found[f"{cell.name}: {ours}"]
            assert rate.values[0] == pytest.approx(cell.rows / 2_000)
            assert rate.goal == (483.0 if cell[:2] == (100_000, 1_000_000) else None)
            # The count takes a second more after a restart as well.
            restart = f"{cell.name}: {ours}, first file after a restart"
            assert found[restart].values == (3.0,)
            assert found[f"{restart}, the count's delay aside"].values == (1.0,)
            assert found[f"{cell.name}: {ours}, changelogs of a file"].values[0] == 1_000
    assert len(set(names)) == len(names)


def test_a_stream_that_was_measured_alone_is_beside_nothing() -> None:
    cell = cells.Cell(7, 1_000)
    alone = cell_figures(cell, {streaming.OURS[False]: 2.0})
    assert len(alone) == 6
    assert not any("beside" in name or "aside" in name for name in alone)
    assert len(cell_figures(cell, {streaming.COUNT: 2.0})) == 4


def test_each_part_is_there() -> None:
    for part in suite.PARTS:
        assert callable(importlib.import_module(suite.MODULES.get(part, part)).figures)
