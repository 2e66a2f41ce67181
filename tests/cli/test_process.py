"""celc as a process: it is told of signals early, and ends while threads may still read."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from celc.interfaces.cli import main

QUERY = """CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }
SELECT a[id], b[id] FROM S WHERE A AS a ; B AS b
"""


def test_a_signal_during_the_imports_is_one_line() -> None:
    script = (
        "import os, signal, sys\nimport celc.__main__ as main\n"
        "class Stops:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'celc.interfaces.cli':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stops())\nmain.process()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "celc: interrupted\n")


def test_a_signal_that_python_cannot_raise_comes_again() -> None:
    """In a callback of Python's own an exception is shown and dropped."""
    script = (
        "import os, signal, sys, time\n"
        "from celc.interfaces.cli.signals import Stopped, stopped_by_signals\n"
        "class Late:\n    def __del__(self):\n        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(0)\n"
        "try:\n    with stopped_by_signals():\n        late = Late()\n        del late\n"
        "        signal.pause()\nexcept Stopped as stopped:\n    sys.exit(stopped.number)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (signal.SIGTERM, "")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["check", "{}"], ["run"]])
def test_exit_codes_of_the_process(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "q.cel").write_text(QUERY)
    arguments = [argument.format(tmp_path / "q.cel") for argument in arguments]
    ended = subprocess.run(
        [sys.executable, "-m", "celc", *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == (2 if arguments == ["run"] else 0)
    assert (ended.stdout if ended.returncode == 0 else ended.stderr) != ""


def test_matches_of_the_first_lines_do_not_wait_for_more(tmp_path: Path) -> None:
    """The source says two lines and then nothing for as long as it is not told to end."""
    (tmp_path / "q.cel").write_text(QUERY)
    command = [sys.executable, "-m", "celc", "run", str(tmp_path / "q.cel"), "-"]
    running = subprocess.Popen(
        [*command, "--input-format", "json", "--format", "json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(b'{"type": "A", "id": 1}\n{"type": "B", "id": 2}\n')
    running.stdin.flush()
    assert b'"start": 0, "end": 1' in running.stdout.readline()
    running.stdin.close()
    assert running.wait() == 0


def test_what_is_compressed_is_read_whatever_its_name_says(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "q.cel").write_text(QUERY)
    (tmp_path / "plain.csv").write_bytes(gzip.compress(b"type,id\nA,1\nB,2\n"))
    ended = subprocess.run(
        [sys.executable, "-m", "celc", "run", "q.cel", "plain.csv", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ended.stdout.count("\n") == 1, ended.stderr


PAIR = """CREATE STREAM S { EVENT A { id: INT, at: TIMESTAMP }, EVENT B { id: INT, at: TIMESTAMP } }
SELECT a[id], b[id] FROM S WHERE A AS a ; B AS b WITHIN 1 MINUTE [at]
"""


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        ("type,id,at\nA,1,1782864000\n", [], "name another form with --time-format"),
        (
            "type,id,at\nA,1,2026-07-01 12:00:00\n",
            ["--time-format", "s"],
            "column 'at': '2026-07-01 12:00:00' is no number, and --time-format says",
        ),
        ("type;id;at\nA;1;2026-07-01\n", [], "give --delimiter ';'"),
        ("type,id,at\nA,1,2026-07-01\n", ["--type-column", "Type"], "Name it with --type-column"),
        (
            "type,id,at\nA,1,1782864000\n",
            ["--time-format", "s", "--time-zone", "Europe/Berlin"],
            "--time-zone is for times that are texts",
        ),
    ],
)
def test_options_that_would_help_are_named(
    data: str, options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.cel").write_text(PAIR)
    (tmp_path / "e.csv").write_text(data)
    assert main(["run", str(tmp_path / "q.cel"), str(tmp_path / "e.csv"), *options]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_a_json_file_without_rows_lacks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.cel").write_text(PAIR)
    (tmp_path / "e.jsonl").write_text("")
    code = main(["run", str(tmp_path / "q.cel"), str(tmp_path / "e.jsonl"), "--strict-schema"])
    assert (code, capsys.readouterr().err) == (0, "")


def test_an_output_without_a_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.cel").write_text(PAIR)
    for command in (
        ["run", str(tmp_path / "q.cel"), "e.csv"],
        ["compile", str(tmp_path / "q.cel")],
    ):
        assert main([*command, "-o", ""]) == 2
        assert "-o names no file" in capsys.readouterr().err
