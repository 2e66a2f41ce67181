"""How `celc run` shows matches and how far it is: tables for people, rows that flow, progress."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.jit import watching
from celc_runtime.run import parts
from engines import interpreted
from rich.cells import cell_len

from celc.interfaces.cli import main, progress, run, table
from celc.interfaces.cli.reading import text_blocks
from celc.interfaces.cli.reading.text_rows import LineTooLong, whole_lines

STREAM = "CREATE STREAM S { EVENT A { id: LONG, note: STRING, ts: TIMESTAMP } }\n"


@pytest.fixture
def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Any:
    """The table of a query over rows, as lines."""

    def shown(query: str, rows: list[dict[str, Any]], *options: str, width: int = 80) -> list[str]:
        (tmp_path / "q.cel").write_text(STREAM + query)
        events = tmp_path / "e.jsonl"
        events.write_text("".join(json.dumps({"type": "A"} | row) + "\n" for row in rows))
        monkeypatch.setattr(run, "WIDTH", width)
        with interpreted():
            assert main(["run", str(tmp_path / "q.cel"), str(events), *options]) == 0
        return capsys.readouterr().out.splitlines()

    return shown


# --- rows as JSON ---------------------------------------------------------------------------------


def test_rows_have_the_columns_that_parquet_has(shown: Any) -> None:
    rows = [{"id": n, "ts": f"2026-07-01T1{n}:00:00Z", "note": "ä"} for n in range(2)]
    query = "SELECT x[id, note], COUNT(x) AS n FROM S WHERE A AS x PARTITION BY id"
    told = [json.loads(line) for line in shown(query, rows, "--format", "rows")]
    assert told == [
        {"id": n, "start_pos": 0, "end_pos": 0, "x": [{"pos": 0, "id": n, "note": "ä"}], "n": 1}
        for n in range(2)
    ]


def test_threads_write_what_one_writes(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LEAST_ROWS", 1)
    rows = [{"id": n % 3, "ts": f"2026-07-01T1{n}:00:00Z", "note": "n"} for n in range(9)]
    query = "SELECT x[id] FROM S WHERE A AS x ; A PARTITION BY id"
    one, *others = (
        shown(query, rows, "--format", "rows", *threads)
        for threads in ((), ("--threads", "1"), ("--threads", "3"))
    )
    assert len(one) == 9
    assert others == [one, one]


# --- tables ---------------------------------------------------------------------------------------


def test_a_table_has_short_times_and_says_their_zone_once(shown: Any) -> None:
    rows = [{"id": n, "ts": f"2026-07-01T1{n}:00:00+02:00", "note": "n"} for n in range(2)]
    assert shown("SELECT x[id, ts] FROM S WHERE A AS x WITHIN 1 HOUR [ts]", rows) == [
        "start_pos  end_pos  start_time  end_time  x",
        "─────────  ───────  ──────────  ────────  ────────────────────",
        "0          0        08:00:00    08:00:00  #0 id=0, ts=08:00:00",
        "1          1        09:00:00    09:00:00  #1 id=1, ts=09:00:00",
        "2 matches (times in UTC on 2026-07-01)",
    ]
    rows[1]["ts"] = "2026-07-02T10:00:00.5Z"
    assert shown("SELECT x[id] FROM S WHERE A AS x WITHIN 1 HOUR [ts]", rows)[2:] == [
        "0          0        2026-07-01 08:00:00         2026-07-01 08:00:00         #0",
        "                                                                            id=0",
        "1          1        2026-07-02 10:00:00.500000  2026-07-02 10:00:00.500000  #1",
        "                                                                            id=1",
        "2 matches (times in UTC)",
    ]


@pytest.mark.parametrize("width", [20, 40, 52, 60, 80, 200])
def test_no_word_is_cut_and_no_line_is_wider_than_its_words_need(width: int, shown: Any) -> None:
    notes = ["a few words", "Donaudampfschifffahrtsgesellschaft", "語 " * 20, "", "\x1b[31m"]
    rows = [{"id": 10**n, "note": note, "ts": None} for n, note in enumerate(notes)]
    lines = shown("SELECT x[id, note] FROM S WHERE A AS x", rows, width=width)
    text = "\n".join(lines)
    for name in ("start_pos", "end_pos", "x", *notes[0].split(), notes[1], r"\x1b[31m"):
        assert name in text
    assert "\x1b" not in text
    # A block may be as narrow as it likes: only a word that does not fit is longer than the line.
    for line in lines[:-1]:
        assert cell_len(line) <= width or notes[1] in line or width < 40, line
    assert lines[0].startswith("──") == (width < 52 + len("note="))
    assert lines[-1] == "5 matches"


def test_a_match_that_is_too_wide_is_a_block(shown: Any) -> None:
    rows = [{"id": 1, "note": "w" * 70, "ts": None}]
    query = "SELECT x FROM S WHERE A AS x FILTER x.note IS NOT NULL AND x.id > 0"
    assert shown(query.replace("x FROM", "x[id, note] FROM"), rows) == [
        "── match 1 " + "─" * 69,
        "start_pos  0",
        "end_pos    0",
        "x          #0 id=1,",
        "           note=" + "w" * 70,
        "1 match",
    ]


def test_no_matches_are_a_table_of_names(shown: Any) -> None:
    assert shown("SELECT x FROM S WHERE A AS x FILTER x.id < 0", [{"id": 1}]) == [
        "start_pos  end_pos  x",
        "─────────  ───────  ─",
        "0 matches",
    ]


def test_the_first_matches_are_shown_before_the_last_are_found(tmp_path: Path) -> None:
    with interpreted():
        import celc

        (query,) = celc.compile(f"{STREAM}SELECT x[id] FROM S WHERE A AS x").queries.values()
    events = pa.table({"id": pa.array(range(50))})
    matches = query.match_table(events).to_batches()[0]
    out = io.BytesIO()
    write = table.table(query, out, 40, 80, warn_beyond=False)
    write(matches.slice(0, 39))
    assert out.getvalue() == b""
    write(matches.slice(39, 5))
    text = out.getvalue().decode()
    assert (text.count("#"), "#39 id=39" in text) == (40, True)
    write(matches.slice(44))
    assert out.getvalue().decode() == text
    write(None)
    assert out.getvalue().decode() == f"{text}50 matches, the first 40 shown\n"


def test_the_width_is_that_of_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "q.cel").write_text(f"{STREAM}SELECT x[id, note] FROM S WHERE A AS x")
    (tmp_path / "e.jsonl").write_text('{"id": 1, "note": "a few words"}\n')
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    for width, first in (("20", "── match 1 "), ("70", "start_pos  ")):
        reading, writing_end = pty.openpty()
        subprocess.run(
            [sys.executable, "-m", "celc", "run", "q.cel", "e.jsonl"],
            stdout=writing_end,
            cwd=tmp_path,
            env=environment | {"COLUMNS": width, "NUMBA_DISABLE_JIT": "1"},
            check=True,
        )
        os.close(writing_end)
        assert read_all(reading).startswith(first)


def read_all(reading: int) -> str:
    """What was written to a terminal whose other end is closed."""
    data = b""
    while True:
        try:
            more = os.read(reading, 1 << 16)
        except OSError:  # the way in which the end of a terminal shows
            more = b""
        if not more:
            os.close(reading)
            return data.decode()
        data += more


# --- rows that flow -------------------------------------------------------------------------------


@pytest.mark.each(3, values=False)
@pytest.mark.parametrize("format", ["json", "csv"])
@pytest.mark.parametrize("given", ["json", "csv"])
def test_matches_are_written_while_events_are_still_to_come(
    given: str, format: str, tmp_path: Path
) -> None:
    stream = "CREATE STREAM S { EVENT A { id: LONG } }\n"
    (tmp_path / "q.cel").write_text(f"{stream}SELECT x[id] FROM S WHERE A AS x")
    options = ["--input-format", given, "--format", format]
    running = subprocess.Popen(
        [sys.executable, "-m", "celc", "run", "q.cel", "-", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(b"type,id\n" if given == "csv" else b"")
    header = int(format == "csv")
    sent = seen = 0
    while seen < 3 + header:
        assert sent < 2000
        line = f"A,{sent}" if given == "csv" else f'{{"id": {sent}}}'
        running.stdin.write(f"{line}\n".encode())
        running.stdin.flush()
        sent += 1
        while select.select([running.stdout], [], [], 0.05)[0]:
            seen += os.read(running.stdout.fileno(), 1 << 16).count(b"\n")
    running.stdin.close()
    seen += len(running.stdout.readlines())
    assert running.wait(timeout=60) == 0
    assert seen == sent + header
    running.stdout.close()


def test_lines_are_handed_on_whole_and_at_once() -> None:
    class Pieces(io.RawIOBase):
        def __init__(self, *pieces: bytes) -> None:
            self.left = list(pieces)

        def read(self, size: int = -1) -> bytes:
            return self.left.pop(0) if self.left else b""

    pieces = Pieces(b"a\nb", b"c\n", b"\n", b"d", b"e", b"\nf\n", b"g")
    found = whole_lines(pieces, 9, 100)
    assert (next(found), len(pieces.left)) == (b"a\n", 6)
    assert list(found) == [b"bc\n", b"\n", b"de\nf\n", b"g"]
    with pytest.raises(LineTooLong):
        list(whole_lines(Pieces(b"abc", b"def"), 3, 5))


# --- progress -------------------------------------------------------------------------------------


class Clock:
    """A clock that goes on by a step whenever it is looked at."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self._step = step

    def __call__(self) -> float:
        self.now += self._step
        return self.now


def on_terminal(
    monkeypatch: pytest.MonkeyPatch, step: float, *arguments: str, terminal: bool = True
) -> str:
    """What a run writes to standard error."""
    monkeypatch.setattr(progress, "clock", Clock(step))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    reading, writing_end = pty.openpty() if terminal else os.pipe()
    with ThreadPoolExecutor() as pool:
        said = pool.submit(read_all, reading)
        with os.fdopen(writing_end, "w") as stream, monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", stream)
            with interpreted():
                assert main(["run", *arguments, "--format", "json"]) == 0
    return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", said.result())


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A query, and events that come in many batches."""
    monkeypatch.setattr(text_blocks, "_BLOCK", 1000)
    stream = "CREATE STREAM S { EVENT A { id: LONG } }\n"
    (tmp_path / "q.cel").write_text(f"{stream}SELECT x[id] FROM S WHERE A AS x")
    (tmp_path / "e.jsonl").write_text("".join(f'{{"id": {n}}}\n' for n in range(5000)))
    return str(tmp_path / "q.cel"), str(tmp_path / "e.jsonl")


def test_progress_tells_bytes_rows_and_matches(many: Any, monkeypatch: Any, capsys: Any) -> None:
    said = on_terminal(monkeypatch, 0.5, *many)
    found = re.findall(r"([\d.]+) (kB|bytes) of 63.9 kB, ([\d,]+) rows, ([\d,]+) match", said)
    assert len(found) > 10
    rows = [int(one[2].replace(",", "")) for one in found]
    matches = [int(one[3].replace(",", "")) for one in found]
    assert rows == sorted(rows)
    assert 4000 < rows[-1] <= 5000
    assert all(0 <= row - match <= 200 for row, match in zip(rows, matches, strict=True))
    # Nothing is left of it, and the matches are all there.
    assert len(capsys.readouterr().out.splitlines()) == 5000


def test_progress_waits_for_two_seconds(many: Any, monkeypatch: Any, capsys: Any) -> None:
    assert on_terminal(monkeypatch, 0.001, *many) == ""


def test_no_progress_where_standard_error_is_no_terminal(
    many: Any, monkeypatch: Any, capsys: Any
) -> None:
    assert on_terminal(monkeypatch, 0.5, *many, terminal=False) == ""


def test_progress_of_input_whose_size_is_not_known(
    many: Any, monkeypatch: Any, capsys: Any
) -> None:
    with (
        open(many[1], "rb") as stream,
        subprocess.Popen(["cat"], stdin=stream, stdout=subprocess.PIPE) as piped,
    ):
        monkeypatch.setattr(sys, "stdin", piped.stdout)
        said = on_terminal(monkeypatch, 0.5, many[0], "-", "--input-format", "json")
    assert re.search(r"kB, [\d,]+ rows, [\d,]+ matches", said)
    assert " of " not in said


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_compiled_is_shown_and_vanishes(
    terminal: bool, many: Any, monkeypatch: Any, capsys: Any
) -> None:
    """Nothing of the first half second, and nothing where standard error is no terminal."""
    found = run.matches_of

    def compiles(*arguments: Any, **more: Any) -> Any:
        told = watching.watchers[0] if watching.watchers else lambda *_: None
        told("classify", True)
        told("classify", False)
        told("update", True)
        told("list_runs", True)
        time.sleep(0.3)
        told("list_runs", False)
        told("update", False)
        return found(*arguments, **more)

    monkeypatch.setattr(run, "matches_of", compiles)
    monkeypatch.setattr(progress, "WAIT_TO_COMPILE", 0.05)
    said = on_terminal(monkeypatch, 0.001, *many, terminal=terminal)
    doing = "compiling (once for this query) q: "
    assert said.split("\r") == (
        ["", f"{doing}list_runs", f"{doing}update", ""] if terminal else [""]
    )
    assert watching.watchers == []
    assert len(capsys.readouterr().out.splitlines()) == 5000
