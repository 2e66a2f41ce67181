"""`celc warm`, and `celc.compile(…, processes=n)`: machine code that is there before a run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from celc_runtime.jit import bootstrap

import celc
from celc.driver import warm as warming
from celc.interfaces.cli import main

DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, ts: LONG },
  EVENT B { id: INT, v: DOUBLE, name: STRING, ts: LONG }
}
"""
QUERIES = """QUERY one: SELECT a[id], b[v, name] FROM S WHERE A AS a ; B AS b
FILTER a.v > 42 AND b.name = 'x' WITHIN 5 [ts]
QUERY two: SELECT a, b FROM S WHERE (A AS a)+ ; B AS b FILTER a.v > b.v WITHIN 9 EVENTS
"""

_RUN = """
import contextlib, gc, io, json, sys
from celc.interfaces.cli import main
names = sys.argv[1:]
with contextlib.redirect_stdout(io.StringIO()):
    for name in names:
        assert main(["run", "q.cel", "events.csv", "--query", name, "-o", name + ".json",
                     "--max-matches", "9999"]) == 0
from celc_runtime.jit.kernels import Kernel
kernels = [one for one in gc.get_objects() if isinstance(one, Kernel) and one._compiled]
missed = [one.__name__ for one in kernels if one._compiled.stats.cache_misses]
print(json.dumps([len(kernels), missed]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with queries and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CELC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_OPT", "1")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    monkeypatch.delenv("CELC_INTERPRETED_ROWS", raising=False)
    bootstrap.cache_root.cache_clear()
    (tmp_path / "q.cel").write_text(DECLARED + QUERIES)
    return tmp_path


def _told(capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """How many kernels were made for each query."""
    lines = [line for line in capsys.readouterr().out.splitlines() if ": " in line]
    found = [re.fullmatch(r"(.+): (\d+) kernels? in \d+\.\d s(?:, kept in .+)?", o) for o in lines]
    return {one[1]: int(one[2]) for one in found if one is not None}


@pytest.mark.long
def test_a_large_run_after_it_compiles_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{'AB'[n % 3 == 0]},{n % 7},{n * 37 % 101},{'xyz'[n % 2]},{n}" for n in range(20_000)]
    (folder / "events.csv").write_text("\n".join(["type,id,v,name,ts", *rows]) + "\n")
    # One process: two would compile what both queries call side by side.
    assert main(["warm", "q.cel", "--processes", "1"]) == 0
    told = _told(capsys)
    assert set(told) == {"one", "two", "2 queries"}
    assert told["one"] + told["two"] == told["2 queries"] > 20
    done = subprocess.run(
        [sys.executable, "-c", _RUN, "one", "two"], capture_output=True, text=True, check=True
    )
    compiled, missed = json.loads(done.stdout)
    assert (compiled > 3, missed) == (True, [])
    assert (folder / "one.json").stat().st_size > 0
    # Modules of the same queries find it as well.
    assert main(["compile", "q.cel", "-o", "q_udf.py"]) == 0
    assert main(["warm", "q_udf.py"]) == 0
    assert _told(capsys) == {"one": 0, "two": 0, "2 queries": 0}
    assert len(celc.compile(DECLARED + QUERIES, processes=2).queries) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.cel"], "nothing.cel: there is no such file"),
        (["nothing.py"], "nothing.py: No such file or directory"),
        (["own.py"], "own.py is no module that celc has written"),
        (["q.cel", "--processes", "0"], "0 is no number of processes"),
        (["bad.cel", "q.cel"], "bad.cel:1:1: error"),
    ],
)
def test_what_it_cannot_make_is_said(
    arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "own.py").write_text("print(1)\n")
    (folder / "bad.cel").write_text("QUERY")
    code: object
    try:
        code = main(["warm", *arguments])
    except SystemExit as end:
        code = end.code
    assert code == (1 if "bad.cel" in arguments else 2)
    assert said in capsys.readouterr().err


def test_without_a_cache_there_is_nothing_to_fill(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cache").write_text("a file")
    vars(warnings).pop("__celc_warned__", None)
    assert main(["warm", "q.cel"]) == 2
    assert "cannot keep compiled code" in capsys.readouterr().err
    bootstrap.cache_root.cache_clear()
    with pytest.warns(RuntimeWarning, match="no folder for machine code|cannot keep"):
        celc.compile(DECLARED + QUERIES, processes=1)
    bootstrap.cache_root.cache_clear()
    vars(warnings).pop("__celc_warned__", None)


def test_a_process_that_dies_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_PROGRAM", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(warming.NotWarmed, match=r"'one': the process .* ended with signal 9"):
        list(warming.warm([("text", "one"), ("text", "two")], 1))


@pytest.mark.parametrize("processes", [0, -1])
def test_so_many_processes_cannot_be(processes: int) -> None:
    """That is said before a text is compiled, or a file is looked for."""
    with pytest.raises(ValueError, match=f"processes must be 1 or more, not {processes}"):
        celc.compile("no query", processes=processes)
    with pytest.raises(ValueError, match=f"processes must be 1 or more, not {processes}"):
        celc.compile_files("no file", processes=processes)
