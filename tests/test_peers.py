"""celc beside SQL: both find the same before anything is timed, and the page shows the record."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from engines import interpreted
from places import ROOT

sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "peers")]

import page
import run
import tasks
from in_duckdb import InDuckDB, in_order

pytest.importorskip("duckdb")

_ROWS = 3_000


@pytest.fixture(scope="module")
def peer() -> InDuckDB:
    return InDuckDB(tasks.tables(_ROWS))


@pytest.mark.parametrize("task", tasks.TASKS, ids=lambda task: task.name)
def test_sql_finds_the_same(peer: InDuckDB, task: tasks.Task) -> None:
    with interpreted():
        found = in_order(peer.by_celc(task, task.compiled(_ROWS)))
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
