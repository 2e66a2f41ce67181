"""`celc run --memory`: events of a keyed query are read in turns, and the rows are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from celc_runtime.run import by_keys
from engines import interpreted

from celc.driver import large_inputs
from celc.interfaces.cli import main

_STREAM = "CREATE STREAM S { EVENT A { id: LONG, note: STRING, n: INT, ts: LONG } }\n"
_QUERY = f"{_STREAM}SELECT x[n], y[n] FROM S WHERE A AS x ; A AS y PARTITION BY KEY WITHIN 9 [ts]"


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Writes a query and its events, and gives the arguments of `celc run`."""

    def written(query: str, rows: list[dict[str, Any]]) -> list[str]:
        (tmp_path / "q.cel").write_text(query)
        events = tmp_path / "e.jsonl"
        events.write_text("".join(json.dumps({"type": "A"} | row) + "\n" for row in rows))
        # Equal times are an event before the other by their numbers.
        return ["run", str(tmp_path / "q.cel"), str(events), "--order-by", "ts,n"]

    return written


def _rows(count: int = 400) -> list[dict[str, Any]]:
    keys = [None, *range(7)]
    notes = [None, "", "é", "z", "a"]
    return [
        {"id": keys[n * 5 % 8], "note": notes[n * 3 % 5], "n": n, "ts": n * 7 % 50}
        for n in range(count)
    ]


@pytest.mark.each(2)
@pytest.mark.parametrize("key", ["id", "note", "note, id", "id, note"])
def test_the_rows_are_the_same(
    key: str, written: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = written(_QUERY.replace("KEY", key), _rows())
    ranges: list[int] = []

    def counted(program: Any, read: Any, asked: Any, threads: Any) -> Any:
        ranges.append(len(asked))
        return by_keys.matches_by_keys(program, read, asked, threads)

    monkeypatch.setattr(large_inputs, "matches_by_keys", counted)
    with interpreted():
        found = []
        for more in ([], ["--memory", "9KB"], ["--memory", "9KB", "--threads", "2"]):
            assert main([*given, "--format", "rows", *more]) == 0
            found.append(capsys.readouterr().out)
    assert found[0].count("\n") > 20
    assert found == [found[0]] * 3
    assert len(ranges) == 2
    assert min(ranges) > 1


def test_a_key_that_is_larger_is_read_all_the_same(
    written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    given = written(_QUERY.replace("KEY", "id"), [{**row, "id": 3} for row in _rows()])
    with interpreted():
        assert main([*given, "--format", "rows"]) == 0
        one = capsys.readouterr().out
        assert main([*given, "--format", "rows", "--memory", "1KB"]) == 0
    assert capsys.readouterr().out == one


def test_events_are_read_so_often_at_most(
    written: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = written(_QUERY.replace("KEY", "id"), _rows())
    readings: list[int] = []
    plain = by_keys._tables

    def counted(program: Any, read: Any) -> Any:
        readings.append(1)
        return plain(program, read)

    monkeypatch.setattr(by_keys, "_tables", counted)
    with interpreted():
        for most, found in ((64, 7), (3, 3)):
            monkeypatch.setattr(large_inputs, "MOST_READINGS", most)
            assert main([*given, "--format", "rows", "--memory", "1KB"]) == 0
            assert len(readings) == found  # of seven keys, and NULL
            readings.clear()


def test_memory_that_is_free_is_used_in_three_quarters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_inputs, "_FREE", tmp_path / "meminfo")
    monkeypatch.setattr(large_inputs, "_CONTAINER", tmp_path)
    assert large_inputs.usable_memory() is None
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    4000 kB\n")
    assert large_inputs.usable_memory() == 3000 << 10
    for most, usable in (("max", 3000 << 10), ("800000", 3 * (800_000 - 500_000 + 300_000) // 4)):
        (tmp_path / "memory.max").write_text(f"{most}\n")
        (tmp_path / "memory.current").write_text("500000\n")
        (tmp_path / "memory.stat").write_text("anon 200000\nfile 300000\n")
        assert large_inputs.usable_memory() == usable


def test_an_error_names_the_row_as_it_is_read(
    written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = _rows()
    rows[41] |= {"ts": None}
    given = written(_QUERY.replace("KEY", "id"), rows)
    told = []
    with interpreted():
        for more in ([], ["--memory", "9KB"]):
            assert main([*given, *more]) == 2
            told.append(capsys.readouterr().err)
    assert "line 42" in told[0]
    assert told[1] == told[0]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (_QUERY.replace(" PARTITION BY KEY", ""), "because it has no PARTITION BY, and the events"),
        (_QUERY.replace("KEY", "id") + " CONSUME BY ANY", "because with CONSUME BY ANY a match"),
    ],
)
def test_what_has_to_be_in_memory_together_is_refused(
    query: str, why: str, written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    given = written(query, _rows())
    with interpreted():
        assert main([*given, "--memory", "1KB"]) == 2
        error = capsys.readouterr().err
        assert "do not fit 1,000 bytes of memory" in error
        assert why in error
        assert main([*given, "--memory", "1GiB"]) == 0


@pytest.mark.parametrize("size", ["4", "GB", "-1GB", "0MB", "4 TB", "1e3MB"])
def test_sizes_have_a_number_and_a_unit(
    size: str, written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*written(_QUERY, []), f"--memory={size}"])
    assert "is no size: give a number and a unit, such as 500MB or 4GiB" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--format", "html"], ["--near"]])
def test_what_holds_all_events_has_no_memory_to_set(
    more: list[str], written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    given = written(_QUERY.replace("KEY", "id"), _rows())
    assert main([*given, *more, "--memory", "1GB"]) == 2
    assert "--memory" in capsys.readouterr().err
