"""What `match(df, progress=…)` writes, counted."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import celc_runtime
import pytest
from celc_runtime.spark.progress import Line
from conftest import long_over_connect
from engines import interpreted, only_query

import celc


class _Terminal(io.StringIO):
    """A terminal; a file says that something has been written to it."""

    def __init__(self, shown: Path) -> None:
        super().__init__()
        self._shown = shown

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._shown.touch()
        return super().write(text)


@pytest.fixture(scope="module")
def query() -> Any:
    text = "CREATE STREAM S { EVENT A { id: LONG } } QUERY pairs: SELECT * WHERE A AS x ; A AS y "
    with interpreted():
        return only_query(celc.compile(f"{text} WITHIN 1 [id]"))


def _awaited(stream: io.StringIO, wanted: Callable[[str], object]) -> str:
    """What is written, once that is as wanted: Spark tells of an action's end a moment later.

    A minute is far more than that takes anywhere; it only ends a wait in vain.
    """
    for _ in range(1200):
        if wanted(stream.getvalue()):
            break
        time.sleep(0.05)
    return stream.getvalue()


def test_one_line_for_the_first_action(spark: Any, query: Any) -> None:
    text = "CREATE STREAM S { EVENT A { id: LONG } } QUERY parts: SELECT * WHERE A PARTITION BY id"
    with interpreted():
        by_id = only_query(celc.compile(text, order_by="id"))
    out = io.StringIO()
    matches = query.match(spark.range(1000), progress=out)
    assert out.getvalue() == ""
    assert matches.count() == 999
    assert _awaited(out, len).splitlines() == [
        "pairs: 999 matches",
        "  rows read: 1,000",
        "  rows that can matter: 1,000",
        "  rows to Python: 1,000",
        "  columns shuffled: none",
        "  jobs before the first row: none",
    ]
    assert len(matches.limit(2).collect()) == 2
    # Another one, watched from its own beginning.
    other = io.StringIO()
    none = spark.range(1000).where("id < rand() - 1")
    assert none.transform(query.match, progress=other).collect() == []
    assert _awaited(other, len).startswith("pairs: 0 matches\n  rows read: 0\n")
    parts = io.StringIO()
    assert none.transform(by_id.match, progress=parts).collect() == []
    assert _awaited(parts, len).startswith("parts: 0 matches\n")
    assert "columns shuffled: 1\n" in parts.getvalue()
    assert out.getvalue().count("pairs") == 1


@long_over_connect
def test_undecided_matches_are_counted(spark: Any) -> None:
    """Each of a hundred events waits for ten later ones; the last ten, and the clock's own, do not
    see their end. No match and no column more comes out."""
    text = """CREATE STREAM S {
      EVENT A { id: LONG, part: LONG },
      EVENT B { id: LONG, part: LONG }
    }
    QUERY silent: SELECT x WHERE A AS x ; !B FOR 10 [id] PARTITION BY part"""
    with interpreted():
        silent = only_query(celc.compile(text, order_by="id"))
    events = spark.range(100).selectExpr("id", "id % 3 AS part", "'A' AS type")
    out = io.StringIO()
    matches = silent.match(events, progress=out)
    assert matches.schema == silent.match(events).schema
    assert len(matches.collect()) == 89
    said = "silent: 89 matches, 11 undecided (if no more events come: with_options("
    assert _awaited(out, len).startswith(said)
    assert "undecided: matches whose absence" in silent.explain_plan(events)
    closed, out = silent.with_options(at_end="closed"), io.StringIO()
    assert len(closed.match(events, progress=out).collect()) == 100
    assert _awaited(out, len).startswith("silent: 100 matches\n")
    assert "undecided" not in closed.explain_plan(events)


def test_a_terminal_is_shown_the_tasks(
    spark: Any, query: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The tasks wait until they are shown, for a minute at most."""
    monkeypatch.setattr(sys.modules[Line.__module__], "_IDLE", 0.1)

    shown = str(tmp_path / "shown")

    def until_shown(batches: Any) -> Any:
        import os
        import time

        for batch in batches:
            for _ in range(1200):
                if os.path.exists(shown):
                    break
                time.sleep(0.05)
            yield batch

    out = _Terminal(Path(shown))
    slow = spark.range(40).mapInArrow(until_shown, "id BIGINT")
    assert query.match(slow, progress=out).count() == 39
    *states, last = _awaited(out, lambda text: text.endswith("\n")).split("\r")[1:]
    first, *numbers = last.splitlines()
    assert first == "pairs: 39 matches".ljust(len(states[-1]))
    assert "  rows to Python: 40" in numbers
    assert states
    for state in states:
        assert re.fullmatch(r"pairs: \d+ of \d+ tasks done, \d+ running *", state)


def test_a_failed_action_is_not_counted_as_a_whole(spark: Any, query: Any) -> None:
    out = io.StringIO()
    events = spark.range(10).selectExpr("if(id = 5, NULL, id) AS id")
    with pytest.raises(Exception, match="'id' is NULL"):
        query.match(events, progress=out).collect()
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        assert out.getvalue() == ""
    else:
        assert "; Spark's last job failed\n" in _awaited(out, len)


def test_a_notebook_has_one_cell_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class _Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            assert raw
            shown.append(data["text/plain"])

    display = SimpleNamespace(display=lambda data, *, raw, display_id: _Handle())
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=True))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    out = io.StringIO()
    line = Line(out)
    line.show("1 of 2")
    line.leave()
    line.end("all")
    assert (shown, out.getvalue()) == (["1 of 2", "all"], "")


def test_what_is_wrong_is_told_as_without_progress(spark: Any, query: Any) -> None:
    with pytest.raises(celc_runtime.EventError, match="the DataFrame lacks: 'id'"):
        query.match(spark.range(1).selectExpr("id AS n"), progress=True)
