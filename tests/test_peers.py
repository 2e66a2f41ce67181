"""celc beside its peers: both find the same before anything is timed, the page shows the record.

FlinkCEP's own jobs run only where its wheel and a JDK are; the rest of its side is tested without.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from engines import interpreted
from places import ROOT

sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "peers")]

import in_flink
import in_flink_sql
import page
import row_streams
import run
import tasks
from in_duckdb import InDuckDB, by_celc, in_order

pytest.importorskip("duckdb")

_ROWS = 3_000


@pytest.fixture(scope="module")
def peer() -> InDuckDB:
    return InDuckDB(tasks.tables(_ROWS))


@pytest.mark.parametrize("task", tasks.TASKS, ids=lambda task: task.name)
def test_sql_finds_the_same(peer: InDuckDB, task: tasks.Task) -> None:
    with interpreted():
        found = in_order(by_celc(task, task.compiled(_ROWS), tasks.tables(_ROWS)))
    assert len(found) > 20
    assert found.equals(in_order(peer.by_sql(task, _ROWS)))


def test_another_answer_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    task = tasks.TASKS[0]
    wrong = replace(task, sql=task.sql.replace("type = 'B'", "type = 'C'"))
    monkeypatch.setattr(run, "TASKS", (wrong,))
    with interpreted(), pytest.raises(RuntimeError, match="29 rows by celc, 28 by SQL"):
        list(run.figures_of_duckdb(_ROWS, 1))


def test_the_page_shows_the_newest_record() -> None:
    text = (ROOT / "docs" / "comparison.md").read_text("utf-8")
    tables = page.tables()
    assert tables
    for peer, lines in tables.items():
        assert f"\n## {peer.split()[0]}\n" in text
        assert "\n" + "\n".join(lines) + "\n" in text, f"{peer}: run benchmarks/peers/page.py"


def test_a_later_run_of_a_record_replaces_figures_and_keeps_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(*tasks_and_seconds: tuple[str, float]) -> str:
        figures = [
            {"peer": "DuckDB 1", "task": task, "rows": 10, "peer_seconds": seconds}
            for task, seconds in tasks_and_seconds
        ]
        return json.dumps({"figures": figures}) + "\n"

    record = line(("a", 1.0), ("b", 2.0)) + line(("c", 3.0), ("a", 4.0))
    (tmp_path / "peers-2026-01-02.jsonl").write_text(record, "utf-8")
    (tmp_path / "peers-2026-01-01.jsonl").write_text(line(("old", 9.0)), "utf-8")
    monkeypatch.setattr(page, "RECORDS", tmp_path)
    assert [(one["task"], one["peer_seconds"]) for one in page.newest()] == [
        ("a", 4.0),
        ("b", 2.0),
        ("c", 3.0),
    ]


def test_the_table_of_a_peer_names_its_way_and_shows_its_reading() -> None:
    figure = {
        "peer": "FlinkCEP 2.3.0",
        "task": "two",
        "rows": 2_000,
        "matches": 1_000,
        "peer_seconds": 2.5,
        "celc_seconds": 0.25,
        "times": 10.0,
    }
    assert list(page.table([{**figure, "read_seconds": 0.5}])) == [
        "| task | rows | matches | FlinkCEP, s | of it reading, s | celc, s | celc is |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| two | 2,000 | 1,000 | 2.500 | 0.500 | 0.250 | 10.0 × faster |",
    ]
    assert list(page.table([{**figure, "peer": "Spark 4.3.0", "times": 0.5}])) == [
        "| task | rows | matches | SQL, s | celc, s | celc is |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| two | 2,000 | 1,000 | 2.500 | 0.250 | **2.0 × slower** |",
    ]


def test_each_task_has_a_pattern_of_flink_and_each_pattern_a_task() -> None:
    source = (ROOT / "benchmarks" / "peers" / "flink" / "Patterns.java").read_text("utf-8")
    matching = source[source.index("private int match(") : source.index("private int read(")]
    patterns = set(re.findall(r'case "(\w+)":', matching))
    asked = [task.flink_text(_ROWS).split(" ") for task in tasks.TASKS if task.flink]
    assert {pattern for pattern, _ in asked} == patterns
    assert {pattern: int(most) for pattern, most in asked}["two_events"] == tasks.window(_ROWS)


_ECHO = """
import sys
print("ready 1.2", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "end":
        sys.exit(3)
    print("error: no such word" if word == "bad" else word.upper(), flush=True)
"""


def test_a_child_answers_each_line_and_its_errors_are_raised() -> None:
    child = in_flink.Child([sys.executable, "-c", _ECHO])
    assert child.greeting == "ready 1.2"
    assert child.ask("match a") == "MATCH A"
    with pytest.raises(RuntimeError, match="bad: error: no such word"):
        child.ask("bad")
    assert child.ask("match b") == "MATCH B"
    with pytest.raises(RuntimeError, match="end: the process ended with code 3"):
        child.ask("end")
    with pytest.raises(RuntimeError, match="late: the process ended with code 3"):
        child.ask("late")
    child.close()


def test_a_child_that_does_not_start_says_so() -> None:
    with pytest.raises(RuntimeError, match="the process ended with code 7"):
        in_flink.Child([sys.executable, "-c", "raise SystemExit(7)"])


def test_what_flink_lacks_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flink, "jars", lambda names: [])
    assert in_flink.missing() == 'FlinkCEP is not installed: pip install ".[flink]"'
    monkeypatch.setattr(in_flink, "jars", lambda names: [Path("flink-dist-1.jar")])
    monkeypatch.setattr(in_flink, "jdk", lambda: None)
    assert "no javac" in str(in_flink.missing())


@pytest.mark.skipif(in_flink.missing() is not None, reason=str(in_flink.missing()))
def test_flink_finds_the_same(tmp_path: Path) -> None:
    data = tasks.tables(_ROWS)
    with in_flink.InFlink(tmp_path, data) as flink:
        assert flink.version
        for task in tasks.TASKS:
            with interpreted():
                own = by_celc(task, task.compiled(_ROWS), data)
            assert flink.match(task, _ROWS) == len(own) > 20
            assert run.same_rows(task, own, flink.answer(task), "FlinkCEP") == len(own)
        with pytest.raises(RuntimeError, match="no such pattern: other"):
            flink.match(replace(tasks.TASKS[0], flink="other 1"), _ROWS)


def test_what_flink_sql_lacks_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flink_sql, "jars", lambda names: [])
    assert in_flink_sql.missing() == 'Flink SQL is not installed: pip install ".[flink]"'


@pytest.mark.skipif(in_flink_sql.missing() is not None, reason=str(in_flink_sql.missing()))
def test_flink_sql_finds_as_many_rows(tmp_path: Path) -> None:
    row_streams.check_flink(tmp_path)
