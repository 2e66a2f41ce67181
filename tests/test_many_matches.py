"""More matches than anybody wants: the run is stopped where asked to, and says so."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from celc_runtime import CompiledQuery, EventWarning
from engines import interpreted, only_query

import celc
from celc.cli import main

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
