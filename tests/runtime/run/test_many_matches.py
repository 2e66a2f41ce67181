"""More matches than anybody wants: the run is stopped where asked to, and says so."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from celc_runtime import CompiledQuery, EventWarning
from celc_runtime.engine.arena import nodes as arena
from celc_runtime.plan.strategy import Checked
from celc_runtime.run.run_of import run_of
from celc_runtime.run.walk import many_matches as many
from celc_runtime.run.walk import walks
from engines import interpreted, only_query

import celc
from celc import Matcher
from celc.diagnostics.source import Source
from celc.driver.pipeline import Options, compile_source
from celc.interfaces.cli import main
from celc.plan.strategy import EVERY_UPDATE, GENERAL_ENGINE

STREAM = """CREATE STREAM S {
  EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG }
}
"""
PAIRS = "SELECT x, y FROM S WHERE A AS x ; B AS y"


def _events(types: str) -> pa.Table:
    numbers = np.arange(len(types))
    ids = pa.array(numbers % 3, pa.int32())
    return pa.table({"type": list(types), "id": ids, "ts": numbers})


def _query(text: str, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(STREAM + text, **options))


# --- a limit for all matches ----------------------------------------------------------------------


def test_match_table_stops_after_a_number_of_matches() -> None:
    query, events = _query(PAIRS), _events("AAABB")
    everything = query.match_table(events)
    assert len(everything) == 6
    for most in (1, 4):
        with pytest.warns(EventWarning, match=rf"stopped after {most} match(es)? \(max_matches\)"):
            assert query.match_table(events, max_matches=most) == everything[:most]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert query.match_table(events, max_matches=7) == everything


def test_events_behind_the_last_match_that_is_wanted_are_not_matched() -> None:
    query = _query("SELECT x FROM S WHERE (A AS x)+")
    with pytest.warns(EventWarning, match="stopped after 10 matches"):
        # 2^60 of them in all.
        assert len(query.match_table(_events("A" * 60), max_matches=10)) == 10


@pytest.mark.parametrize("most", [0, -1, 1.0, True])
def test_a_number_of_matches_is_a_whole_number_above_0(most: Any) -> None:
    with pytest.raises(ValueError, match="max_matches must be a whole number from 1"):
        _query(PAIRS).match_table(_events("AB"), max_matches=most)


def _run(tmp_path: Path, text: str, *arguments: str) -> int:
    (tmp_path / "q.cel").write_text(STREAM + text)
    rows = _events("AAABB").to_pylist()
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with interpreted():
        return main(["run", str(tmp_path / "q.cel"), str(tmp_path / "e.jsonl"), *arguments])


def test_the_command_line_stops_after_a_number_of_matches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, PAIRS, "--format", "json") == 0
    everything, err = capsys.readouterr()
    assert len(everything.splitlines()) == 6
    assert err == ""
    assert _run(tmp_path, PAIRS, "--format", "json", "--max-matches", "4") == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == everything.splitlines()[:4]
    assert err == "celc: stopped after 4 matches (--max-matches); there may be more\n"
    assert _run(tmp_path, PAIRS, "--format", "json", "--max-matches", "7") == 0
    assert capsys.readouterr() == (everything, "")


def test_the_number_is_for_all_queries_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"QUERY one: {PAIRS} QUERY two: {PAIRS}"
    assert _run(tmp_path, text, "--format", "json", "--max-matches", "8") == 0
    found = [json.loads(line)["query"] for line in capsys.readouterr().out.splitlines()]
    assert found == ["one"] * 6 + ["two"] * 2
    assert _run(tmp_path, text, "--format", "json", "--max-matches", "6") == 0
    found = [json.loads(line)["query"] for line in capsys.readouterr().out.splitlines()]
    assert found == ["one"] * 6


def test_files_are_whole_where_a_run_is_stopped(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    code = _run(tmp_path, PAIRS, "--format", "parquet", "-o", str(out), "--max-matches", "3")
    assert code == 0
    assert pa.parquet.read_table(out).num_rows == 3


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_the_command_line_takes_a_whole_number_above_0(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(tmp_path / "q.cel"), "events.csv", "--max-matches", text])
    assert stop.value.code == 2
    assert "--max-matches" in capsys.readouterr().err


# --- a warning where one event ends too many ------------------------------------------------------


FORMULAS = [
    "(A AS x)+ ; B AS y",
    "(A AS x)+ ; (B AS y)+",
    "A AS x ; B AS y",
    "A AS x ; A AS y ; A AS z ; B AS w",
    "(A AS x ; B AS y)+",
    "(A AS x OR B AS y)+ ; B AS z",
    "(A AS x ; A AS y) ALL (B AS z ; B AS w)",
    "(A AS x ; B AS y)+ FILTER COUNT(x) >= 2",
    "(A AS x)+ ; ((B AS y)+ : A AS z) ; B AS w",
    "(A AS x ; B AS y) OR (B AS x ; A AS y ; B AS z)",
]


@pytest.mark.each(11, values=False)
@pytest.mark.parametrize("clauses", ["", "WITHIN 6 EVENTS", "WITHIN 7 [ts]", "PARTITION BY id"])
@pytest.mark.parametrize("straight", [True, False])
@pytest.mark.parametrize("formula", FORMULAS)
def test_matches_are_counted_as_many_as_are_listed(
    formula: str, straight: bool, clauses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every time that the buffers are full, what is counted is compared with what is listed."""
    compiled = compile_source(
        Source("q.cel", f"{STREAM}SELECT * FROM S WHERE {formula} {clauses}"),
        Options(order_by=("ts",)),
        updates=EVERY_UPDATE if straight else GENERAL_ENGINE,
    )
    with interpreted():
        query = only_query(Matcher(compiled.module_text("test")))
    events = _events("".join(random.Random(5).choices("AAB", k=14)))
    if "PARTITION" in clauses:
        events = events.sort_by([("id", "ascending"), ("ts", "ascending")])
    counted: dict[int, float] = {}

    def look(self: Any, memory: Any, output: Any, kinds: Any, *_: Any) -> None:
        if memory.counters[arena.STACK_SIZE] or memory.counters[arena.RUN_LEFT]:
            fire = memory.fires[memory.counters[arena.LISTED] - 1]
            counted[int(fire[1])] = many.count_matches(memory, kinds, fire)

    monkeypatch.setattr(many.ManyMatches, "look", look)
    monkeypatch.setattr(walks, "_MATCHES_PER_BATCH", 1)
    monkeypatch.setattr(walks, "_ENTRIES_PER_BATCH", 4)
    listed: Counter[int] = Counter()
    batches = run_of(query.program).push(events.to_batches()[0])
    whole = events.to_pylist()
    for match in pa.Table.from_batches(batches, query.output_schema).to_pylist():
        (row,) = [n for n, event in enumerate(whole) if event["ts"] == match["end_time"]]
        listed[row] += 1
    assert counted or max(listed.values(), default=0) < 2
    for row, count in counted.items():
        assert count == listed[row], row


def _until_warned(query: CompiledQuery, events: pa.Table) -> int:
    """How many matches are handed out before the first warning, which is raised."""
    listed = 0
    try:
        for batch in query.run().push(events.to_batches()[0]):
            listed += len(batch)
    except EventWarning as warning:
        warning.add_note(str(listed))
        raise
    return listed


@pytest.mark.filterwarnings("error::celc_runtime.EventWarning")
def test_more_matches_than_a_million_at_one_event_are_told_before_they_are_listed() -> None:
    text = "SELECT x FROM S WHERE ((A AS x)+ ; B) FILTER COUNT(x) >= 100 WITHIN 300 EVENTS"
    query = _query(text, order_by="ts")
    said = (
        r"query 'query': about 10\^60 matches end at position 200; for fewer, use SELECT NXT, LAST "
        r"or MAX, SELECT LONGEST DISJOINT, LIMIT, a smaller WITHIN, .* SELECT TOTAL COUNT\(\*\) AS "
        r"matches or SELECT COLLAPSED \*; .*--max-matches or match_table\(…, max_matches=…\)"
    )
    with pytest.raises(EventWarning, match=said) as told:
        _until_warned(query, _events("A" * 200 + "B"))
    assert int(told.value.__notes__[0]) < many.MOST_MATCHES / 10


def _warned(query: CompiledQuery, events: pa.Table, batch: int | None = None) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in query.match_arrow(events.to_batches(max_chunksize=batch)):
            pass
    return [str(item.message) for item in told]


def test_the_number_is_exact_where_it_can_be() -> None:
    query = _query("SELECT x FROM S WHERE (A AS x)+ ; B")
    (said,) = _warned(query, _events("A" * 20 + "B"))
    assert "1,048,575 matches end at position 20;" in said


def test_it_is_said_once() -> None:
    query = _query("SELECT x, y, z FROM S WHERE A AS x ; A AS y ; B AS z")
    (said,) = _warned(query, _events("A" * 1500 + "BB"))
    assert "1,124,250 matches end at position 1,500;" in said


@pytest.mark.long
def test_matches_with_conditions_count_as_they_are_listed() -> None:
    text = "SELECT * FROM S WHERE (A AS x ; A AS y ; B AS z) FILTER x.ts < y.ts + 0"
    query = only_query(celc.compile(STREAM + text))
    assert isinstance(query.program.listing, Checked)
    (said,) = _warned(query, _events("A" * 1500 + "B"))
    assert "more than 1,000,000 matches end at position 1,500;" in said


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT * FROM S WHERE A AS x ; B AS y", "A" * 1100 + "B" * 1100),
        ("SELECT * FROM S WHERE (A AS x)+ ; B LIMIT 70000", "A" * 40 + "BB"),
        ("SELECT LAST * FROM S WHERE (A AS x)+ ; B", "A" * 40 + "BB"),
        ("SELECT MAX * FROM S WHERE (A AS x)+ ; B WITHIN 100 EVENTS", "A" * 40 + "BB"),
        ("SELECT * FROM S WHERE (A AS x)+ ; B WITHIN 18 EVENTS", "A" * 40 + "BB"),
        ("SELECT x FROM S WHERE (A AS x):+", "A" * 900),
    ],
)
def test_ordinary_queries_are_not_warned_of(text: str, types: str) -> None:
    query = _query(text, order_by="ts")
    assert not _warned(query, _events(types))


# --- a warning of the compiler --------------------------------------------------------------------

_CHOICES = "SELECT * FROM S WHERE ((A AS x)+ ; B AS y)"


@pytest.mark.parametrize(
    "text",
    [
        f"{_CHOICES} FILTER COUNT(x) >= 100 WITHIN 1000 [ts]",
        f"{_CHOICES} FILTER COUNT(x) > 99 AND x.id > 3 WITHIN 103 EVENTS",
        f"{_CHOICES} FILTER 20 <= COUNT(x) PARTITION BY id WITHIN 90 [ts]",
        "SELECT x FROM S WHERE (((A AS x)+ FILTER COUNT(x) >= 100) ; B) WITHIN 1000 [ts]",
    ],
)
def test_large_choices_in_a_window_are_warned_of(text: str) -> None:
    assert [found.code for found in celc.check(STREAM + text)] == ["many-choices"]


@pytest.mark.parametrize(
    "text",
    [
        f"{_CHOICES} FILTER COUNT(x) >= 100 WITHIN 102 EVENTS",  # no room for 104 of them
        f"{_CHOICES} FILTER COUNT(x) >= 19 WITHIN 1000 [ts]",
        f"{_CHOICES} FILTER COUNT(x) <= 100 WITHIN 1000 [ts]",
        f"{_CHOICES} FILTER COUNT(x) = 100 WITHIN 1000 [ts]",
        f"{_CHOICES} FILTER COUNT(x) >= 100 OR y.id > 3 WITHIN 1000 [ts]",
        f"{_CHOICES} FILTER COUNT(x) >= 100 WITHIN 1000 [ts] LIMIT 1",
        f"{_CHOICES} FILTER COUNT(x) >= 100 WITHIN 1000 [ts]".replace("SELECT", "SELECT MAX"),
        f"{_CHOICES} FILTER COUNT(x) >= 100 WITHIN 1000 [ts]".replace("*", "y"),
        f"{_CHOICES} FILTER COUNT(x) >= 100 WITHIN 1000 [ts]".replace(")+", "):+"),
    ],
)
def test_other_choices_are_not_warned_of(text: str) -> None:
    assert not celc.check(STREAM + text)


@pytest.mark.filterwarnings("ignore::celc_runtime.EventWarning")
def test_the_number_of_events_in_the_warning_is_the_smallest_that_is_enough() -> None:
    (found,) = celc.check(f"{STREAM}{_CHOICES} FILTER COUNT(x) >= 20 WITHIN 99 [ts]")
    assert "of 28 events for 'x' within the window, more than 1,000,000 matches" in found.message
    query = _query("SELECT x FROM S WHERE (A AS x)+ FILTER COUNT(x) >= 20", order_by="ts")
    ends: Counter[int] = Counter()
    for batch in query.run().push(_events("A" * 28).to_batches()[0]):
        ends.update(batch["end_pos"].to_pylist())
    assert ends[26] <= many.MOST_MATCHES < ends[27]
