"""The process that makes machine code for a file of many queries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

import celc
from celc.diagnostics.source import Source
from celc.loader import ahead
from celc.options import Options
from celc.parse.parser import parse

DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, at: TIMESTAMP, day: DATE, ts: LONG },
  EVENT B { id: INT, v: DOUBLE, name: STRING, at: TIMESTAMP, day: DATE, ts: LONG }
}
-- a comment, and another declaration
CREATE STREAM T { EVENT C { id: INT } }
"""
SHAPES = (
    "SELECT * FROM S WHERE A AS x ; B AS y FILTER x.id = {n} AND y.v > {n}.5",
    "SELECT x FROM S WHERE (A AS x)+ ; B FILTER x.name = 'n{n}' PARTITION BY id WITHIN {n} [ts]",
    "SELECT * FROM S WHERE A ; !(B FILTER B.id = {n}) ; A WITHIN {n} MINUTES [at]",
    "SELECT TOTAL COUNT(*) AS n FROM S WHERE A AS x ; B FILTER x.id > {n}",
    "SELECT * FROM T WHERE C AS c FILTER c.id = {n}",
)


def _text(queries: int, shapes: tuple[str, ...] = SHAPES) -> str:
    lines = [
        f"QUERY q{n}:\n{shapes[n % len(shapes)].format(n=n + 1)}\n-- the end of query {n}"
        for n in range(queries)
    ]
    return DECLARATION + "\n".join(lines) + "\n"


class _Started:
    """Stands for `subprocess.Popen`, and starts nothing."""

    given: list[str]

    def __init__(self, command: list[str], **_: Any) -> None:
        self.command = command
        self.stdin = self
        self.closed = False
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def close(self) -> None:
        self.closed = True
        self.given.append(self.text)

    def poll(self) -> int:
        return 0


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What processes that would have been started are given."""
    found: list[str] = []
    monkeypatch.setattr(_Started, "given", found, raising=False)
    monkeypatch.setattr(subprocess, "Popen", _Started)
    monkeypatch.setattr(ahead, "_cores", lambda: 2)
    monkeypatch.setattr(ahead, "cache_root", lambda: Path("cache"))
    monkeypatch.delenv("CELC_AHEAD", raising=False)
    monkeypatch.setattr("numba.core.config.DISABLE_JIT", 0)
    return found


def test_one_query_of_each_shape_is_given(given: list[str]) -> None:
    celc.compile(_text(ahead._MANY))
    (read,) = map(json.loads, given)
    assert celc.compile(read["text"]).queries.keys() == {f"q{n}" for n in range(len(SHAPES))}
    assert read["text"].startswith(DECLARATION)
    assert Options(**read["options"] | {"tiebreak": ()}) == Options()


def test_a_text_with_errors_is_not_given(given: list[str]) -> None:
    with pytest.raises(celc.CelError):
        celc.compile(_text(ahead._MANY).replace("x.id > 4", "x.unknown > 4"))
    with pytest.raises(celc.CelError):
        celc.compile(_text(ahead._MANY) + "QUERY")
    assert given == ["{}", "{}"]


@pytest.mark.parametrize(
    "why", ["few queries", "few shapes", "one core", "switch", "no Numba", "no cache"]
)
def test_a_process_is_not_always_worth_it(
    why: str, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _text(ahead._MANY)
    match why:
        case "few queries":
            text = _text(ahead._MANY - 1)
        case "few shapes":
            text = _text(ahead._MANY, SHAPES[: ahead._FEWEST - 1])
        case "one core":
            monkeypatch.setattr(ahead, "_cores", lambda: 1)
        case "switch":
            monkeypatch.setenv("CELC_AHEAD", "0")
        case "no cache":
            monkeypatch.setattr(ahead, "cache_root", lambda: None)
        case "no Numba":
            monkeypatch.setattr("numba.core.config.DISABLE_JIT", 1)
    assert len(celc.compile(text).queries) >= ahead._MANY - 1
    assert given == (["{}"] if why == "few shapes" else [])


def test_what_it_leaves_out_is_whole_queries() -> None:
    source = Source("query.cel", _text(12))
    file = parse(source)
    chosen = [*ahead._of_each_shape(file, source)]
    assert [query.name.text for query in chosen if query.name] == ["q0", "q1", "q2", "q3", "q4"]
    left = ahead._only(file, source, chosen[1:3])
    assert [query.name.text for query in parse(Source("q", left)).queries if query.name] == [
        "q1",
        "q2",
    ]


_RUN = """
import json, os, sys
from celc_runtime.jit import machine_code
from celc_runtime.many.machine_code import make_machine_code
import celc
made = []
save = machine_code.KernelCache.save_overload
def noted(self, signature, data):
    made.append(self._name)
    return save(self, signature, data)
machine_code.KernelCache.save_overload = noted
text = sys.stdin.read()
module = celc.compile(text)
for query in module.queries.values():
    make_machine_code(query.program)
print(json.dumps(made))
"""


@pytest.mark.parametrize("shapes", [1, pytest.param(len(SHAPES), marks=pytest.mark.long)])
def test_the_machine_code_is_that_of_the_run(shapes: int, tmp_path: Path) -> None:
    """The process leaves machine code in the cache, and another one finds all of it there."""
    env = os.environ | {"CELC_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    source = Source("query.cel", _text(shapes))
    given = json.dumps({"text": source.text, "options": {"tiebreak": [], "order_by": None}})
    program = ahead._PROGRAM.format(path=sys.path)
    subprocess.run([sys.executable, "-c", program], input=given, text=True, check=True, env=env)
    kept = {path.name.partition("-")[0] for path in tmp_path.glob("*.kernel")}
    assert {"update", "classify"} <= kept
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{_RUN}"],
        input=source.text,
        capture_output=True,
        text=True,
        check=True,
        env=env,
        cwd=ROOT,
    )
    assert json.loads(done.stdout) == []


def test_it_ends_where_nothing_is_given_or_nobody_waits(capfd: pytest.CaptureFixture[str]) -> None:
    program = ahead._PROGRAM.format(path=sys.path)
    subprocess.run([sys.executable, "-c", program], input="{}", text=True, check=True)
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_ends_it_without_a_word() -> None:
    program = ahead._PROGRAM.format(path=sys.path)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b" " * 1_000_000)  # more than a pipe holds: the process reads it
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT
        assert process.stderr.read() == b""
