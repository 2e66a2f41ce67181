"""`--max-compile-seconds`: a compilation ends when its time is over, wherever it is.

The clock of these tests counts how often it is looked at, so that each look can be the last one.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import celc
from celc.diagnostics import deadline
from celc.diagnostics.errors import CelError, Diagnostic
from celc.diagnostics.source import Source
from celc.driver import pipeline
from celc.driver.pipeline import compile_source
from celc.interfaces.cli import main
from celc.interfaces.cli.problems import FILE_WRONG, FINE, QUERY_WRONG
from celc.options import Options

STREAM = "CREATE STREAM S { EVENT A { v: INT, s: STRING }, EVENT B { v: INT, s: STRING } }\n"
QUERIES = {
    "sequence": "A AS x ; (B AS y)+ FILTER x.v > 1 AND y.v > 2",
    "selector": "SELECT MAX * FROM S WHERE A AS x ; B+ WITHIN 10 EVENTS",
    "across": "(A AS x ; B AS y ; A AS z) FILTER x.v = y.v AND x.v < z.v",
    "nested selector": "NXT(A AS x ; B+) UNLESS (B : A)",
    "two": "QUERY p: SELECT * FROM S WHERE A ; B\nQUERY q: SELECT * FROM S WHERE B ; A",
}
STAGES = (
    "reading the text",
    "looking up names and types",
    "bringing conditions and labels to their events",
    "finding the classes of events that its conditions tell apart",
    "building the automaton of the formula",
    "making the automaton deterministic",
    "making the automaton smaller",
    "writing the automaton as tables",
    "writing the module",
    "putting the module into lines",
)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> itertools.count[int]:
    """A clock that goes on by one whenever it is looked at."""
    looks = itertools.count()
    monkeypatch.setattr(deadline, "clock", lambda: next(looks))
    return looks


def compiled(text: str, seconds: float | None) -> str:
    """The module of a query, compiled in so many seconds."""
    options = Options(max_compile_seconds=seconds)
    return compile_source(Source("query.cel", text), options).module_text("celc compile query.cel")


def ends(text: str, step: int = 1) -> Iterator[tuple[int, Diagnostic]]:
    """How a compilation ends in 1 second, in 1 + step seconds, … until it has time enough."""
    for seconds in itertools.count(1, step):
        try:
            compiled(text, seconds)
        except CelError as stopped:
            (found,) = (d for d in stopped.diagnostics if d.severity == "error")
            yield seconds, found
        else:
            return


@pytest.mark.each(4)
@pytest.mark.parametrize("name", QUERIES)
def test_each_look_at_the_clock_can_be_the_last(name: str, counted: itertools.count[int]) -> None:
    text = STREAM + QUERIES[name]
    found = list(ends(text, step=5))
    assert len(found) > 20
    for seconds, diagnostic in found:
        assert diagnostic.code == "too-slow-to-compile"
        assert f"takes more than {deadline.seconds_text(seconds)}:" in diagnostic.message
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    assert len({diagnostic.span for _, diagnostic in found}) > 4, "the place goes along"


def test_every_stage_says_its_name(counted: itertools.count[int]) -> None:
    messages = [found.message for _, found in ends(STREAM + QUERIES["sequence"])]
    said = {message.split("celc was ")[1] for message in messages}
    assert said == {f"{stage} when that time was over" for stage in STAGES}


@pytest.mark.each(2)
@pytest.mark.parametrize("name", QUERIES)
def test_a_deadline_that_is_met_changes_no_byte(name: str) -> None:
    assert compiled(STREAM + QUERIES[name], 10**6) == compiled(STREAM + QUERIES[name], None)


def test_without_a_deadline_nobody_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(STREAM + QUERIES["sequence"], None)
    assert deadline._running.get() is None


def test_time_between_compiling_and_writing_does_not_count(counted: itertools.count[int]) -> None:
    text = STREAM + QUERIES["sequence"]
    enough = 2 + max(seconds for seconds, _ in ends(text, step=10)) + 10
    compilation = compile_source(Source("q.cel", text), Options(max_compile_seconds=enough))
    for _ in range(10 * enough):
        next(counted)
    compilation.module_text("celc compile q.cel")


def test_all_errors_found_so_far_are_shown(counted: itertools.count[int]) -> None:
    large = "((A AS a ; B)+ FILTER COUNT(a) = 1000000)"
    text = (
        f"{STREAM}QUERY p: SELECT * FROM S WHERE {large}\n"
        "QUERY q: SELECT * FROM S WHERE A AS x ; B AS y FILTER x.v > 1 AND y.v > 2"
    )
    codes = set()
    for seconds in range(1, 2000, 7):
        with pytest.raises(CelError) as stopped:
            compiled(text, seconds)
        errors = [d.code for d in stopped.value.diagnostics if d.severity == "error"]
        assert len(errors) == len(set(errors)), "each problem once"
        codes.add(tuple(sorted(errors)))
    assert ("count-too-large", "too-slow-to-compile") in codes
    assert ("count-too-large",) in codes, "with more time that is all"


# --- how often ------------------------------------------------------------------------------------

FAMILIES: dict[str, Callable[[int], str]] = {
    "types": lambda n: (
        "CREATE STREAM S { "
        + ", ".join(f"EVENT E{k} {{ v: INT }}" for k in range(n))
        + " }\n"
        + " ; ".join(f"E{k}" for k in range(n))
    ),
    "conditions": lambda n: f"{STREAM}(A AS x ; B) FILTER "
    + " OR ".join(f"x.s = 'k{k}'" for k in range(n)),
    "all of": lambda n: f"{STREAM}(A AS x ; B) FILTER "
    + " AND ".join(f"x.v != {k}" for k in range(n)),
    "labels": lambda n: STREAM + " ; ".join(f"A AS x{k}" for k in range(n)),
    "selector": lambda n: f"{STREAM}MAX({' ; '.join('AB'[k % 2] for k in range(n // 10))})",
    "unless": lambda n: f"{STREAM}A UNLESS ({' ; '.join('AB'[k % 2] for k in range(n))})",
}
SIZE, MOST_CALLS = 200, 25_000
"""Passes over the query as a whole may do without a look; 200 ⋅ 200 of anything may not."""


@pytest.mark.each(2)
@pytest.mark.parametrize("name", FAMILIES)
def test_no_stage_runs_long_without_a_look_at_the_clock(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts calls of functions between two looks: a loop that does not look shows here.

    Those of the stages, as they run for users: without the checks between them.
    """
    monkeypatch.setattr(pipeline, "VERIFYING", False)
    calls = [0]
    longest: dict[str, int] = {}

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        calls[0] += event == "call"

    def clock() -> float:
        stage = sys._getframe(1).f_locals.get("self")
        doing = stage._doing if stage is not None else ""
        longest[doing] = max(longest.get(doing, 0), calls[0])
        calls[0] = 0
        return 0.0

    monkeypatch.setattr(deadline, "clock", clock)
    text = FAMILIES[name](SIZE)
    compile_source(Source("query.cel", STREAM + "A"), Options())  # the grammar is read once
    calls[0] = 0
    sys.setprofile(profile)
    try:
        compile_source(Source("query.cel", text), Options(max_compile_seconds=1))
    finally:
        sys.setprofile(None)
    assert len(longest) > 5
    assert max(longest.values()) < MOST_CALLS, longest


# --- where it is given ----------------------------------------------------------------------------


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by which any compilation takes hours."""
    hours = itertools.count(step=3600)
    monkeypatch.setattr(deadline, "clock", lambda: next(hours))


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.cel").write_text(STREAM + "A ; B")
    (tmp_path / "events.csv").write_text("type,v,s\nA,1,x\nB,2,y\n")
    return "q.cel"


COMMANDS = {
    "compile": ["compile", "q.cel"],
    "check": ["check", "q.cel"],
    "explain": ["explain", "q.cel", "--stage", "code"],
    "run": ["run", "q.cel", "events.csv"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_with_the_error_and_exit_code_1(
    name: str, query: str, late: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMANDS[name], "--max-compile-seconds", "1"]) == QUERY_WRONG
    said = capsys.readouterr().err
    assert "error[too-slow-to-compile]: the compilation takes more than 1 second: " in said
    assert "--max-compile-seconds" in said
    assert not Path("q_udf.py").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_no_deadline_of_their_own(
    name: str, query: str, late: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(COMMANDS[name]) == FINE


def test_the_header_of_a_module_does_not_tell_it(query: str) -> None:
    assert main(["compile", query]) == FINE
    without = Path("q_udf.py").read_bytes()
    assert main(["compile", query, "--max-compile-seconds", "600"]) == FINE
    assert Path("q_udf.py").read_bytes() == without


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon", ""])
def test_what_is_no_time_is_refused(
    text: str, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", query, f"--max-compile-seconds={text}"])
    assert ended.value.code == FILE_WRONG
    assert "is no time: give a positive number of seconds" in capsys.readouterr().err


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "1"])
def test_in_python_what_is_no_time_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError, match="max_compile_seconds must be a positive number"):
        celc.compile(STREAM + "A ; B", max_compile_seconds=value)


def test_in_python_it_is_an_error_of_the_query(late: None) -> None:
    with pytest.raises(CelError, match="too-slow-to-compile"):
        celc.compile(STREAM + "A ; B", max_compile_seconds=0.5)
    (found,) = celc.check(STREAM + "A ; B", max_compile_seconds=0.5)
    assert found.code == "too-slow-to-compile"
    assert celc.check(STREAM + "A ; B") == ()
