"""What `celc` writes: whole or not at all, and with one line where it cannot be written."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from engines import interpreted

from celc.interfaces.cli import main, match_formats, output

QUERY = """\
CREATE STREAM S { EVENT A { id: INT, name: STRING }, EVENT B { id: INT } }
SELECT * FROM S WHERE A AS x
"""
FORMATS = ("table", "json", "csv", "parquet")

_INTERPRETED = os.environ | {"NUMBA_DISABLE_JIT": "1"}
"""The environment of processes: to compile takes them seconds, and they write the same without."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A query and its events, with a match for each of them."""
    source, events = tmp_path / "q.cel", tmp_path / "events.jsonl"
    source.write_text(QUERY)
    rows = [{"type": "A", "id": number, "name": f"event {number}"} for number in range(12)]
    events.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(source), str(events)


def celc(*arguments: object) -> int:
    with interpreted():
        try:
            return main([str(argument) for argument in arguments])
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else -1


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- every way in which writing can fail ----------------------------------------------------------

_FAILING = ("open", "write", "fchmod", "fsync", "close", "replace")


class FailingSystem:
    """The system's calls, of which the one of a number fails as on a full disk.

    A failing write takes half of what it is given first if it can, as a disk does that gets full.
    """

    def __init__(self, failing: int) -> None:
        self._left = failing
        self.failed = ""

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in _FAILING:
            return real

        def call(*arguments: Any) -> Any:
            self._left -= 1
            if self._left:
                return real(*arguments)
            self.failed = name
            if name == "close":
                real(*arguments)
            if name == "write":
                real(arguments[0], arguments[1][: len(arguments[1]) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return call


def runs_that_fail(
    monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> Iterator[tuple[str, int]]:
    """Runs a command again and again, with another failing call each time, until none is left."""
    monkeypatch.setattr(output, "BUFFER", 256)
    for failing in range(1, 200):
        system = FailingSystem(failing)
        with monkeypatch.context() as patched:
            patched.setattr(output, "os", system)
            code = celc(*arguments)
        if not system.failed:
            assert code == 0
            return
        yield system.failed, code
    raise AssertionError("the command makes more calls than it has to write")


@pytest.mark.each(2)
@pytest.mark.parametrize("old", [None, b"the old file\n"], ids=["new", "old"])
@pytest.mark.parametrize("format", FORMATS)
def test_no_failing_call_leaves_a_part_of_a_file(
    format: str,
    old: bytes | None,
    files: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "out" / "matches"
    target.parent.mkdir()
    if old is not None:
        target.write_bytes(old)
    failed = []
    arguments = ("run", *files, "--format", format, "-o", target, "--force")
    for call, code in runs_that_fail(monkeypatch, *arguments):
        failed.append(call)
        assert code == 2, call
        assert capsys.readouterr().err == f"celc: {target}: No space left on device\n"
        assert names(target.parent) == (set() if old is None else {"matches"}), call
        if old is not None:
            assert target.read_bytes() == old
    assert names(target.parent) == {"matches"}
    assert target.read_bytes() != old
    expected = {*_FAILING} - ({"fchmod"} if old is None else set())
    assert set(failed) == expected
    assert failed.count("write") > 2


@pytest.mark.parametrize("format", FORMATS)
def test_no_failing_write_to_standard_output_is_a_traceback(
    format: str,
    files: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = 0
    with (tmp_path / "stdout").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        for call, code in runs_that_fail(monkeypatch, "run", *files, "--format", format):
            count += call == "write" and code == 2
            # What tells of it is a write as well, and the code has to do where that one fails.
            told = capsys.readouterr().err
            assert told == "celc: standard output: No space left on device\n"
    assert count > 2


@pytest.mark.parametrize("command", ["compile", "explain"])
def test_no_failing_call_leaves_a_part_of_a_module(
    command: str,
    files: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "out.py"
    target.write_text("print('mine')\n")
    before = names(tmp_path)
    arguments = (command, files[0], "-o", target, "--force")
    for call, code in runs_that_fail(monkeypatch, *arguments):
        assert code == 2, call
        assert capsys.readouterr().err == f"celc: {target}: No space left on device\n"
        assert target.read_text() == "print('mine')\n"
        assert names(tmp_path) == before
    assert target.read_text() != "print('mine')\n"


# --- standard streams that are full or closed -----------------------------------------------------


def process(shell: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`celc` in a process of its own, started by a shell that does something to its streams."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-m", "celc", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=_INTERPRETED,
    )


COMMANDS = [
    ["--version"],
    ["run", "--help"],
    ["check", "q.cel"],
    ["explain", "q.cel"],
    *(["run", "q.cel", "events.jsonl", "--format", format] for format in FORMATS),
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.each(4)
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_full_standard_output(
    arguments: list[str], files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = process(">/dev/full", *arguments)
    assert ended.stderr == "celc: standard output: No space left on device\n"
    assert ended.returncode == 2


@pytest.mark.parametrize("arguments", [COMMANDS[0], COMMANDS[2], COMMANDS[5]], ids=" ".join)
def test_a_closed_standard_output(
    arguments: list[str], files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = process(">&-", *arguments)
    assert (ended.stderr, ended.returncode) == ("celc: standard output is closed\n", 2)


def test_closed_streams_that_are_not_needed(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = process(">&- 2>&-", "run", *files, "-o", "out.json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len((tmp_path / "out.json").read_text().splitlines()) == 12
    # Errors do not go where matches go.
    (tmp_path / "q.cel").write_text("SELECT")
    for streams in ("2>&-", "2>/dev/full"):
        ended = process(streams, "run", *files)
        assert (ended.returncode, ended.stdout) == (1, "")


def test_a_reader_that_goes_away_has_read_enough(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in COMMANDS[2::2]:
        reading, writing_end = os.pipe()
        os.close(reading)
        ended = subprocess.run(
            [sys.executable, "-m", "celc", *arguments],
            stdout=writing_end,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=_INTERPRETED,
        )
        os.close(writing_end)
        assert (ended.stderr, ended.returncode) == ("", 0)


def test_signs_that_the_terminal_lacks(tmp_path: Path) -> None:
    source = tmp_path / "q.cel"
    source.write_text("CREATE STREAM S { EVENT `Tür` {} }\nSELECT * WHERE `Tür` ; `Tür`\n", "utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(
        [sys.executable, "-m", "celc", "explain", str(source)],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"T\xfcr" in ended.stdout


# --- signals --------------------------------------------------------------------------------------

_PAUSED = """\
import sys, time
import celc.interfaces.cli.run as run
matches_of = run.matches_of
def slowly(*given, **more):
    yield from matches_of(*given, **more)
    sys.stderr.write("all written\\n")
    sys.stderr.flush()
    while True:
        time.sleep(0.01)
run.matches_of = slowly
run.match_formats.ROWS_IN_FILE = run.match_formats.ROWS_SHOWN
from celc.__main__ import process
from celc.interfaces.cli import output
output.BUFFER = 64
process()
"""


@pytest.mark.each(4, values=False)
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "celc: interrupted\n"),
        (signal.SIGTERM, 143, "celc: terminated\n"),
        (signal.SIGKILL, -signal.SIGKILL, ""),
    ],
)
@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "old"])
def test_a_run_that_is_stopped_leaves_the_file_as_it_was(
    number: signal.Signals,
    code: int,
    said: str,
    old: bytes | None,
    files: tuple[str, str],
    tmp_path: Path,
) -> None:
    target = tmp_path / "out" / "matches.json"
    target.parent.mkdir()
    if old is not None:
        target.write_bytes(old)
    running = subprocess.Popen(
        [sys.executable, "-c", _PAUSED, "run", *files, "-o", str(target), "--force"],
        stderr=subprocess.PIPE,
        text=True,
        env=_INTERPRETED,
    )
    assert running.stderr is not None
    assert running.stderr.readline() == "all written\n"
    (part,) = names(target.parent) - {"matches.json"}
    assert (target.parent / part).stat().st_size > 0
    running.send_signal(number)
    assert running.wait(timeout=60) == code
    assert running.stderr.read() == said
    running.stderr.close()
    left = names(target.parent)
    if number != signal.SIGKILL:
        assert part not in left
    assert left - {part} == (set() if old is None else {"matches.json"})
    if old is not None:
        assert target.read_bytes() == old


@pytest.mark.each(2)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_to_standard_output_that_is_stopped(
    number: signal.Signals, code: int, files: tuple[str, str]
) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", _PAUSED, "run", *files, "--format", "json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=_INTERPRETED,
    )
    assert running.stderr is not None
    assert running.stderr.readline() == "all written\n"
    running.send_signal(number)
    assert running.wait(timeout=60) == code
    assert len(running.stderr.read().splitlines()) == 1
    running.stderr.close()


def test_the_handlers_of_signals_are_put_back(files: tuple[str, str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert celc("check", files[0]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


# --- which files may be written -------------------------------------------------------------------


def same_file(original: Path) -> dict[str, Path]:
    """A file under other names."""
    folder = original.parent
    (folder / "sub").mkdir()
    others = {"itself": original, "around": folder / "sub" / ".." / original.name}
    others["hard link"] = folder / f"hard{original.suffix}"
    os.link(original, others["hard link"])
    others["link"] = folder / f"link{original.suffix}"
    others["link"].symlink_to(original.name)
    return others


@pytest.mark.parametrize("which", [0, 1], ids=["query", "events"])
def test_an_input_is_never_overwritten(
    which: int, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    original = Path(files[which])
    before = original.read_bytes()
    for target in same_file(original).values():
        for options in ([], ["--force"]):
            assert celc("run", *files, "--format", "json", "-o", target, *options) == 2
            assert f"is the file {original} that is read" in capsys.readouterr().err
            if which == 0:
                for command in ("compile", "explain"):
                    assert celc(command, files[0], "-o", target, *options) == 2
                    assert "that is read" in capsys.readouterr().err
            assert original.read_bytes() == before


_RULES = """CREATE STREAM S { EVENT A { id: INT, name: STRING } }
PARAMETERS rule { id: INT }
SELECT a FROM S FOR EACH rule WHERE A AS a FILTER a.id = rule.id
"""


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_a_table_of_parameters_is_never_overwritten(
    options: list[str],
    files: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By whatever name, alone or in a folder; nor is what standard input comes from."""
    monkeypatch.chdir(tmp_path)
    Path("q.cel").write_text(_RULES)
    Path("rules").mkdir()
    table = tmp_path / "rules" / "a.csv"
    table.write_text("id\n3\n")
    others = [*same_file(table).values(), Path("rules/a.csv")]
    for given in ("rules/a.csv", "rules", "rules/[a]*.csv", str(table)):
        for target in others:
            if given == "rules" and target.parent == table.parent and target != table:
                continue
            set_of_rules = ["--parameters", f"rule={given}", "--format", "csv"]
            assert celc("run", *files, *set_of_rules, "-o", target, *options) == 2
            assert "that is read; write to another one" in capsys.readouterr().err
            assert table.read_text() == "id\n3\n"


@pytest.mark.each(4, values=False)
@pytest.mark.parametrize("options", [[], ["--force"]])
@pytest.mark.parametrize("streams", ["< events.jsonl", ">> events.jsonl", "1<> events.jsonl"])
def test_events_that_the_shell_opens_are_never_overwritten(
    streams: str, options: list[str], files: tuple[str, str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    before = Path("events.jsonl").read_bytes()
    arguments = ["-", "--input-format", "json", "-o", "events.jsonl", *options]
    if streams != "< events.jsonl":
        arguments = ["events.jsonl"]
    for more in ([], ["-o", "/dev/stdout"]) if arguments == ["events.jsonl"] else ([],):
        ended = process(streams, "run", "q.cel", *arguments, "--format", "json", *more)
        assert "that is read; write to another one" in ended.stderr
        assert ended.returncode == 2
        assert Path("events.jsonl").read_bytes() == before


def test_explain_overwrites_when_told_to(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.txt"
    target.write_text("mine")
    assert celc("explain", files[0], "-o", target) == 2
    assert capsys.readouterr().err == f"celc: {target} exists; use --force to overwrite it\n"
    assert target.read_text() == "mine"
    assert celc("explain", files[0], "-o", target, "--force") == 0
    assert target.read_text().startswith("q")


def test_the_new_file_has_the_mode_of_the_old_one(files: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("")
    target.chmod(0o640)
    assert celc("run", *files, "-o", target, "--force") == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    other = tmp_path / "new.json"
    mask = os.umask(0o027)
    try:
        assert celc("run", *files, "-o", other) == 0
    finally:
        os.umask(mask)
    assert stat.S_IMODE(other.stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_being_written_is_read_by_nobody_else(mode: int, tmp_path: Path) -> None:
    """A kill would leave it so. A new file has the permissions that it keeps from the start."""
    target = tmp_path / "out.json"
    target.write_text("old")
    target.chmod(mode)
    with output.written(target) as out:
        out.write(b"new")
        out.flush()
        (part,) = names(tmp_path) - {"out.json"}
        assert stat.S_IMODE((tmp_path / part).stat().st_mode) == 0o600
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", mode)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
@pytest.mark.parametrize(
    ("refused", "owner", "mode"),
    [(0, (1234, 2345), 0o654), (1, (0, 2345), 0o654), (2, (0, 0), 0o644)],
)
def test_the_new_file_is_of_the_owner_and_group_of_the_old_one(
    refused: int,
    owner: tuple[int, int],
    mode: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As far as the system allows it; another group reads it only where everybody does."""
    target = tmp_path / "out.json"
    target.write_text("old")
    os.chown(target, 1234, 2345)
    target.chmod(0o654)
    real, calls = os.fchown, []

    def fchown(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) <= refused:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        real(*arguments)

    monkeypatch.setattr(output.os, "fchown", fchown)
    with output.written(target) as out:
        out.write(b"new")
    found = target.stat()
    assert ((found.st_uid, found.st_gid), stat.S_IMODE(found.st_mode)) == (owner, mode)


def test_a_symbolic_link_stays_and_leads_to_the_new_file(
    files: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "out.json", tmp_path / "link.json"
    link.symlink_to(Path("real") / "out.json")
    for options in ([], ["--force"]):
        assert celc("run", *files, "-o", link, *options) == 0
        assert link.is_symlink()
        assert len(real.read_text().splitlines()) == 12
        assert names(real.parent) == {"out.json"}
        real.write_text("old")


def test_devices_and_pipes_are_written_as_they_are(files: tuple[str, str], tmp_path: Path) -> None:
    assert celc("run", *files, "--format", "json", "-o", "/dev/null") == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    assert celc("run", *files, "--format", "json", "-o", pipe) == 0
    assert len(reader.communicate()[0].splitlines()) == 12
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_ordinary_files_in_the_folder_of_devices_are_replaced(
    files: tuple[str, str], tmp_path: Path
) -> None:
    folder = Path("/dev/shm")
    if not os.access(folder, os.W_OK):
        pytest.skip("this system has no memory to put files into")
    target = folder / f"{tmp_path.parent.name}-{tmp_path.name}-{os.getpid()}.json"
    try:
        for options in ([], ["--force"]):
            assert celc("run", *files, "-o", target, *options) == 0
            assert _json_lines(target) == 12
        assert celc("run", *files, "-o", target) == 2
    finally:
        target.unlink()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no /dev/stdout")
def test_a_file_that_the_shell_has_opened_is_added_to(
    files: tuple[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    ended = process(f">>{log}", "run", *files, "--format", "json", "-o", "/dev/stdout")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert log.read_text().startswith("before\n")
    assert len(log.read_text().splitlines()) == 13


def test_what_is_wrong_with_the_events_leaves_the_old_file(
    files: tuple[str, str], tmp_path: Path
) -> None:
    with open(files[1], "a") as stream:
        stream.write('{"type": null}\n')
    target = tmp_path / "out.json"
    assert celc("run", *files, "-o", target) == 2
    assert not target.exists()
    target.write_text("old")
    assert celc("run", *files, "-o", target, "--force") == 2
    assert target.read_text() == "old"
    assert names(tmp_path) == {"q.cel", "events.jsonl", "out.json"}


# --- formats --------------------------------------------------------------------------------------


def _json_lines(path: Path) -> int:
    return len([json.loads(line) for line in path.read_text().splitlines()])


def _csv_rows(path: Path) -> int:
    with path.open() as stream:
        return len(list(csv.DictReader(stream)))


def _table_rows(path: Path) -> int:
    assert "12 matches" in path.read_text()
    return path.read_text().count("#")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("m.csv", _csv_rows),
        ("m.json", _json_lines),
        ("m.jsonl", _json_lines),
        ("m.ndjson", _json_lines),
        ("M.PARQUET", lambda path: pa.parquet.read_table(path).num_rows),
        ("m.txt", _table_rows),
    ],
)
def test_the_ending_says_the_format(
    name: str, count: Callable[[Path], int], files: tuple[str, str], tmp_path: Path
) -> None:
    assert celc("run", *files, "-o", tmp_path / name) == 0
    assert count(tmp_path / name) == 12


@pytest.mark.parametrize("name", ["m.csv", "m.json", "m.parquet", "m.txt"])
@pytest.mark.parametrize("format", FORMATS)
def test_an_ending_that_says_another_format_is_an_error(
    name: str, format: str, files: tuple[str, str], tmp_path: Path, capsys: Any
) -> None:
    target = tmp_path / name
    means = {".txt": "table"}.get(target.suffix, target.suffix[1:])
    code = celc("run", *files, "-o", target, "--format", format)
    if means == format or (means, format) == ("json", "rows"):
        assert code == 0
        return
    assert code == 2
    assert f"means the format {means}, and --format says {format}" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize("name", ["matches", "m.xlsx", "m.csv.gz"])
def test_an_ending_that_says_nothing_needs_a_format(
    name: str, files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert celc("run", *files, "-o", tmp_path / name) == 2
    said = capsys.readouterr().err
    assert ".csv, .html, .json, .jsonl, .ndjson, .parquet, .txt" in said
    assert "--format table|json|rows|csv|parquet|html" in said
    assert celc("run", *files, "-o", tmp_path / name, "--format", "csv") == 0
    assert _csv_rows(tmp_path / name) == 12


def test_a_table_in_a_file_is_whole_or_says_that_it_is_not(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    with open(files[1], "w") as stream:
        stream.writelines(f'{{"type": "A", "id": {number}}}\n' for number in range(100))
    assert celc("run", *files, "-o", tmp_path / "whole.txt") == 0
    assert (tmp_path / "whole.txt").read_text().count("#") == 100
    capsys.readouterr()
    monkeypatch.setattr(match_formats, "ROWS_IN_FILE", 70)
    assert celc("run", *files, "-o", tmp_path / "cut.txt") == 0
    assert (tmp_path / "cut.txt").read_text().count("#") == 70
    assert "the first 70 of 100 matches" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["csv", "json", "rows", "table"])
def test_bytes_can_be_null(format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, events = tmp_path / "q.cel", tmp_path / "events.parquet"
    source.write_text(
        "CREATE STREAM S { EVENT A { b: BINARY } }\n"
        "SELECT LAST(x.b) AS last FROM S WHERE A AS x PARTITION BY b"
    )
    pa.parquet.write_table(pa.table({"b": pa.array([None, b"\xff"])}), events)
    assert celc("run", source, events, "--format", format) == 0
    assert capsys.readouterr().out.count("ff") == 2
