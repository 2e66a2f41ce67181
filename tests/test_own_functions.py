"""Functions of one's own: the cases by each way to run them here, and what is wrong with functions.

`on_spark/test_own_functions_on_spark.py` has the ways through Spark.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from celc_runtime.engine.values import made_texts
from celc_runtime.jit.kernels import compiling
from celc_runtime.plan.errors import EventError, FunctionError, StateError
from engines import Row, answer_of, answers, engines, interpreted, only_query, table_of, tier
from given import callables, copied
from places import CASES, TESTS
from reference import difference, evaluate
from reference.answers import as_expected
from reference.own_functions import given_functions
from streams_by_hand import EVENT_TIME, Operator, instant, streamed, timed

import celc
from celc.diagnostics.errors import render_all
from celc.diagnostics.source import Source
from celc.driver.given_functions import functions_of_file
from celc.driver.pipeline import compile_source
from celc.editor.languages import CEL
from celc.interfaces.cli import main
from celc.options import Options

FOLDER = CASES / "functions"


@cache
def _cases() -> dict[str, list[Case]]:
    """The cases of each query."""
    found: dict[str, list[Case]] = {}
    for case in load_cases(folder=FOLDER):
        found.setdefault(case.query, []).append(case)
    return found


def _options(case: Case, order_by: tuple[str, ...] | None = None) -> Options:
    return Options(order_by, functions=copied(case.functions))


# --- cases ----------------------------------------------------------------------------------------


def test_the_reference_answers_the_cases() -> None:
    of_all = load_cases(folder=FOLDER)
    assert len(of_all) == 40
    for case in of_all:
        with given_functions(callables(case.functions)):
            found = [as_expected(one) for one in evaluate(case.query, case.events)]
        assert not difference(found, case.expected), case.name


def test_tables_and_batches() -> None:
    """By both engines, whose code is interpreted: Numba compiles functions all the same."""
    problems: list[str] = []
    for query, cases in _cases().items():
        with interpreted():
            compiled = engines(query, _options(cases[0]))
        for engine, matcher in compiled.items():
            problems += (f"{engine} {one}" for one in _differences(matcher, cases))
    assert not problems, "\n".join(problems)


_SOME = slice(1)
_ALL = pytest.param(slice(None), id="all", marks=pytest.mark.long)


@pytest.mark.machine_code
@pytest.mark.parametrize("part", [pytest.param(_SOME, id="some"), _ALL])
def test_machine_code(part: slice) -> None:
    """As users run them, and where Python and machine code take turns."""
    problems: list[str] = []
    for query, cases in [*_cases().items()][part]:
        compilation = compile_source(Source("query.cel", query), _options(cases[0]))
        matcher = celc.Matcher(compilation.module_parts("test"))
        with compiling():
            problems += _differences(matcher, cases)
        with tier(random.Random(query)):
            problems += _differences(matcher, cases)
    assert not problems, "\n".join(problems)


def _differences(matcher: celc.Matcher, cases: list[Case]) -> Iterator[str]:
    for case in cases:
        rng = random.Random(case.name)
        for route, answer in answers(only_query(matcher), case.events, rng).items():
            found = difference(answer, case.expected)
            if found:
                yield f"{case.name} {route}: {found}"


def test_streams() -> None:
    """In micro-batches, with nothing but the bytes of states between them."""
    problems = []
    for query, cases in _cases().items():
        with interpreted():
            compiled = engines(timed(query), _options(cases[0], (EVENT_TIME,)))
        for case in cases:
            events = [{**e, EVENT_TIME: instant(1 + n)} for n, e in enumerate(case.events)]
            for engine, matcher in compiled.items():
                one = only_query(matcher)
                rows = streamed(one, events, random.Random(case.name))
                told = difference(answer_of(one, rows, events), case.expected)
                problems += [f"{case.name} {engine}: {told}"] if told else []
    assert not problems, "\n".join(problems)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problems = []
    for number, cases in enumerate(_cases().values()):
        case, query = cases[0], tmp_path / f"q{number}.cel"
        functions, events = tmp_path / "functions.py", tmp_path / "events.jsonl"
        query.write_text(case.query)
        functions.write_text(case.functions)
        lines = (json.dumps(event, default=str) + "\n" for event in case.events)
        events.write_text("".join(lines))
        given = [f"--functions={functions}", "--format=json"]
        with interpreted():
            code = main(["run", str(query), str(events), *given])
        out = capsys.readouterr()
        assert code == 0, out.err
        rows = [json.loads(line) for line in out.out.splitlines()]
        found = difference([{k: row[k] for k in _KEYS} for row in rows], case.expected)
        problems += [f"{case.name}: {found}"] if found else []
    assert not problems, "\n".join(problems)


_KEYS = ("partition", "start", "end", "labels")


# --- what is copied -------------------------------------------------------------------------------

LIMIT = 1.0
WEIGHTS = (0.5, 0.25)
NAMES = ["a list"]
other_total = math.fsum


def _total(x: np.ndarray) -> float:
    found = 0.0
    for one in x:
        found += one
    return found


def near(x, y, most=LIMIT):  # type: ignore[no-untyped-def]
    """Whether two sums are near."""
    return math.fabs(_total(x) - _total(y)) * WEIGHTS[0] <= np.float64(most)


def twice(x):  # type: ignore[no-untyped-def]
    return _total(x) * 2 if _total(x) > 0 else twice(-x)


def named(x):  # type: ignore[no-untyped-def]
    return len(x) > len(NAMES)


def parsed(x):  # type: ignore[no-untyped-def]
    return len(json.dumps("x")) > len(x)


def summed(x):  # type: ignore[no-untyped-def]
    return other_total(x) > 1


def of_another_file(x):  # type: ignore[no-untyped-def]
    return len(copied("")) > len(x)


@cache
def decorated(x):  # type: ignore[no-untyped-def]
    return len(x) > 1


def lost(x):  # type: ignore[no-untyped-def]
    return nowhere(x) > 1  # type: ignore[name-defined]  # noqa: F821


def _around(limit: float) -> Callable[..., bool]:
    def inside(x):  # type: ignore[no-untyped-def]
        return len(x) > limit

    return inside


_STREAM = "CREATE STREAM S { EVENT A { v: DOUBLE, t: LONG }, EVENT B { v: DOUBLE, t: LONG } }\n"
_PAIRS = "SELECT * FROM S WHERE ((A AS x){1,4} ; B AS y) FILTER "
_NEAR = f"{_STREAM}FUNCTION near(DOUBLE[], DOUBLE[]): BOOLEAN {_PAIRS}near(x.v, y.v)"


def _of_one(name: str, result: str = "BOOLEAN") -> str:
    truth = f"{name}(x.v)" if result == "BOOLEAN" else f"{name}(x.v) > 1"
    return f"{_STREAM}FUNCTION {name}(DOUBLE[]): {result} {_PAIRS}{truth}"


def _events(*values: float | None) -> dict[str, list[Any]]:
    """A's with these values, and a B of 4 at the end."""
    count = len(values)
    types = [*("A" * count), "B"]
    return {"type": types, "v": [*values, 4.0], "t": list(range(count + 1))}


def test_a_function_is_copied_with_what_it_uses() -> None:
    with interpreted():
        found = celc.compile(_NEAR, functions={"near": near})
    source = found.source
    for line in ("import math", "import numpy as np", "LIMIT = 1.0", "WEIGHTS = (0.5, 0.25)"):
        assert f'"{line}",' in source
    assert source.index('"def _total(x') < source.index('"def near(x, y, most=LIMIT)')
    assert "NAMES" not in source
    assert "near" in found.__reduce__()[1][0]
    rows = found.match_table(_events(1.0, None, 3.0)).to_pylist()
    assert sorted([e["pos"] for e in row["x"]] for row in rows) == [[0, 1, 2], [0, 2], [1, 2], [2]]
    again = pickle.loads(pickle.dumps(found))
    assert again.match_table(_events(1.0, None, 3.0)).to_pylist() == rows


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_around(2.0), "'inside' uses 'limit' of the function around it"),
        (named, "'named' uses 'NAMES', which is a list"),
        (parsed, "'parsed' uses 'json', which is the module json"),
        (of_another_file, "uses 'copied', which is of functools"),
        (lost, "'lost' uses 'nowhere', which its file does not have"),
        (twice, "'twice' calls itself"),
        (lambda x: len(x) > 1, "it is a lambda"),
    ],
)
def test_what_cannot_be_copied_is_named(function: Callable[..., bool], said: str) -> None:
    (found,) = celc.check(_of_one("f"), functions={"f": function})
    assert found.code == "function-not-copied"
    assert said in found.message
    assert found.help


def test_a_decorator_and_a_function_of_another_file() -> None:
    with pytest.raises(ValueError, match="functions must give functions of Python"):
        celc.check(_of_one("f"), functions={"f": decorated})
    with pytest.raises(ValueError, match="functions must give functions of Python"):
        celc.check(_of_one("f"), functions={"f": math.sin})
    (found,) = celc.check(_of_one("f", "DOUBLE"), functions={"f": summed})
    assert found.code == "function-not-compiled"  # math.fsum is copied, and Numba has none


def test_functions_that_do_not_fit_their_declaration() -> None:
    def given(text: str, **functions: Callable[..., Any]) -> list[tuple[str, str]]:
        return [(one.code, one.message) for one in celc.check(text, functions=functions)]

    def real(x):  # type: ignore[no-untyped-def]
        return x[0]

    def nothing(x):  # type: ignore[no-untyped-def]
        pass

    def perhaps(x):  # type: ignore[no-untyped-def]
        return x[0] if len(x) else None

    def texts(x):  # type: ignore[no-untyped-def]
        return "a" + x[0]

    def none():  # type: ignore[no-untyped-def]
        return 1.0

    text = _of_one("real")
    assert given(text) == [("function-not-given", "no function 'real' is given")]
    assert given(text, reel=real)[0][0] == "function-not-given"
    ((code, said),) = given(text, real=real)
    assert (code, "returns real numbers (float64)" in said) == ("function-result", True)
    assert given(_of_one("real", "DOUBLE"), real=real) == []
    ((code, said),) = given(_of_one("real", "LONG"), real=real)
    assert (code, "is declared as LONG" in said) == ("function-result", True)
    ((code, said),) = given(_of_one("nothing"), nothing=nothing)
    assert (code, "returns nothing (None)" in said) == ("function-result", True)
    ((code, said),) = given(_of_one("perhaps", "DOUBLE"), perhaps=perhaps)
    assert (code, "None on some ways" in said) == ("function-result", True)
    ((code, said),) = given(_of_one("none", "DOUBLE"), none=none)
    assert (code, "takes 0" in said) == ("function-arrays", True)
    (found,) = celc.check(_of_one("texts"), functions={"texts": texts})
    assert found.code == "function-not-compiled"
    assert any("in the line" in one for one in found.help)
    # The text alone is right, and runs no code; it is no module yet.
    assert celc.check(text) == ()
    with pytest.raises(celc.CelError, match="no function 'real' is given"):
        celc.compile(text)


@pytest.mark.parametrize(
    "path", sorted((TESTS / "errors" / "given").glob("*.cel")), ids=lambda path: path.stem
)
def test_messages(path: Path, request: pytest.FixtureRequest) -> None:
    """What `celc check --functions` says of a text and the functions beside it."""
    source = Source(path.name, path.read_text(encoding="utf-8"))
    given = functions_of_file(path.with_suffix(".py"))
    found = CEL.check(source, Options(functions=given))
    golden, said = path.with_suffix(".expected"), render_all(source, found) + "\n"
    if request.config.getoption("--update-golden"):
        golden.write_text(said, encoding="utf-8")
    assert said == golden.read_text(encoding="utf-8")


def test_functions_are_for_cel() -> None:
    with pytest.raises(ValueError, match="FUNCTION declares them in CEL"):
        celc.compile("SELECT 1", dialect="match_recognize", functions={"near": near})


def test_a_file_of_functions_that_cannot_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query, functions = tmp_path / "q.cel", tmp_path / "functions.py"
    query.write_text(_of_one("f"))
    for text, said in (("1 / 0", "cannot be run: ZeroDivisionError"), ("", "no function 'f'")):
        functions.write_text(text)
        assert main(["check", str(query), f"--functions={functions}"]) > 0
        out = capsys.readouterr()
        assert said in out.err + out.out
    assert main(["check", str(query), f"--functions={tmp_path / 'none.py'}"]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err
    assert main(["compile", str(query), "--to", "spark-sql", f"--functions={functions}"]) > 0


# --- errors of functions --------------------------------------------------------------------------


def beyond(x):  # type: ignore[no-untyped-def]
    """Reads behind its array where it has two values."""
    return x[len(x) - 1 + len(x) // 2] > 0


def picky(x):  # type: ignore[no-untyped-def]
    if len(x) > 1:
        raise ValueError("more than one")
    return True


def divided(x):  # type: ignore[no-untyped-def]
    return 1 / (2 - len(x)) > 0


def large(x):  # type: ignore[no-untyped-def]
    return 100 * len(x)


_WRONG = [
    (beyond, "BOOLEAN", "IndexError: index is out of bounds"),
    (picky, "BOOLEAN", "ValueError: more than one, in the line 'raise ValueError"),
    (divided, "BOOLEAN", "ZeroDivisionError: division by zero"),
    (large, "BYTE", "OverflowError: its result does not fit into BYTE"),
]


@pytest.mark.parametrize(("function", "result", "said"), _WRONG)
def test_a_function_that_fails_says_so(
    function: Callable[..., Any], result: str, said: str
) -> None:
    """By Python and by machine code, in a condition and in SELECT."""
    name = function.__name__
    text = _of_one(name, result)
    items = text.split("FILTER")[0].replace("SELECT *", f"SELECT {name}(x.v) AS f, x")
    for one in (text, items):
        matcher = celc.compile(one, functions={name: function})
        assert matcher.match_table(_events(1.0)).num_rows == 1
        with pytest.raises(FunctionError, match=f"a call of {name} ended with {said}"):
            matcher.match_table(_events(1.0, 2.0))


@pytest.mark.long
@pytest.mark.machine_code
@pytest.mark.each(2)
@pytest.mark.parametrize(("function", "result", "said"), _WRONG[:2])
def test_a_function_that_fails_in_machine_code(
    function: Callable[..., Any], result: str, said: str
) -> None:
    matcher = celc.compile(
        _of_one(function.__name__, result), functions={"beyond": beyond, "picky": picky}
    )
    with compiling(), pytest.raises(FunctionError, match=said):
        matcher.match_table(_events(1.0, 2.0))


def test_the_command_line_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, functions, events = (tmp_path / name for name in ("q.cel", "f.py", "e.csv"))
    query.write_text(_of_one("beyond"))
    functions.write_text("def beyond(x):\n    return x[5] > 0\n")
    events.write_text("type,v,t\nA,1.0,1\nB,2.0,2\n")
    assert main(["run", str(query), str(events), f"--functions={functions}"]) == 2
    told = capsys.readouterr().err
    assert "a call of beyond ended with IndexError: index is out of bounds" in told
    assert "Traceback" not in told


# --- without the file -----------------------------------------------------------------------------


@pytest.mark.long
def test_a_standalone_module_needs_no_file(tmp_path: Path) -> None:
    """In a process that has neither celc nor the functions."""
    query, functions, module = (tmp_path / one for one in ("q.cel", "functions.py", "alone.py"))
    query.write_text(_of_one("latest"))
    functions.write_text("import numpy as np\n\n\ndef latest(x):\n    return np.max(x) > 2\n")
    given = [f"--functions={functions}", "--standalone", "-o", str(module)]
    assert main(["compile", str(query), *given]) == 0
    assert (
        "celc compile q.cel -o alone.py --standalone --functions functions.py" in module.read_text()
    )
    functions.unlink()
    job = f"import alone; print(alone.match_table({_events(1.0, 3.0)}).num_rows)"
    run = [sys.executable, "-c", job]
    done = subprocess.run(
        run, cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "2"


def test_a_stream_goes_on_with_the_same_source_only() -> None:
    """The source is part of its identity; an error of a function loses nothing."""

    def first(x):  # type: ignore[no-untyped-def]
        return x[0] > 1

    def other(x):  # type: ignore[no-untyped-def]
        return x[0] > 2

    text = timed(_of_one("f") + " WITHIN 1 HOUR").replace("t: LONG, ", "")

    def query(function: Callable[..., Any]) -> Any:
        with interpreted():
            return only_query(celc.compile(text, order_by=EVENT_TIME, functions={"f": function}))

    def rows(*events: tuple[str, float]) -> list[Row]:
        return [{"type": t, "v": v, EVENT_TIME: instant(1000 + int(v))} for t, v in events]

    begun = query(first)
    operator = Operator(begun)
    operator.advance(table_of(begun.plan, rows(("A", 2.0), ("A", 3.0))), 0)

    def states(one: Operator) -> tuple[Any, ...]:
        return copy.deepcopy((one.headers, one.segments, one.timers))

    def restarted(one: Any, found: tuple[Any, ...]) -> Operator:
        anew = Operator(one)
        anew.headers, anew.segments, anew.timers = copy.deepcopy(found)
        return anew

    kept = states(operator)
    end = table_of(begun.plan, rows(("B", 4.0)))
    with pytest.raises(StateError, match="the query's text, or the source of f"):
        restarted(query(other), kept).advance(end, 0)
    again = restarted(query(first), kept)
    again.advance(end, 0)
    assert len(again.finish()) == 3

    def fails(x):  # type: ignore[no-untyped-def]
        return x[0] > 1 and x[0 if x[0] < 3 else 9] > 1

    begun = query(fails)
    operator = Operator(begun)
    operator.advance(table_of(begun.plan, rows(("A", 1.5))), 0)
    kept = states(operator)
    wrong = table_of(begun.plan, rows(("A", 3.0), ("B", 4.0)))
    # At once, and when the watermark passes events that wait: the micro-batch writes nothing.
    with pytest.raises(FunctionError, match="a call of f ended with IndexError"):
        operator.advance(wrong, 5000)
    assert states(operator) == kept
    operator = restarted(begun, kept)
    operator.advance(wrong, 0)
    waiting = states(operator)
    for _ in range(2):  # nor does it pass over them
        with pytest.raises(FunctionError, match="a call of f ended with IndexError"):
            operator.advance(None, 5000)
        assert states(operator) == waiting
        operator = restarted(begun, waiting)
    # Once its events are mended, the first is run again.
    again = restarted(begun, kept)
    found = again.advance(table_of(begun.plan, rows(("A", 2.5), ("B", 4.0))), 5000)
    assert sorted(len(row["x"]) for row in [*found, *again.finish()]) == [1, 1, 2]


# --- texts that aggregates make -------------------------------------------------------------------

_DOUBLING = """
CREATE STREAM S { EVENT A { name: STRING } }
AGGREGATE doubled(t: STRING): STRING
  STATE all_of_it: STRING = ''
  STEP all_of_it = all_of_it || all_of_it || t
  RESULT all_of_it
QUERY q: SELECT doubled(x.name) AS d FROM S WHERE STRICT((A AS x)+) FILTER ASKED
"""


@pytest.mark.parametrize("asked", ["COUNT(x) >= 1", "doubled(x.name) <> 'b'"])
def test_a_text_that_is_too_long(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the run with words, in SELECT and in FILTER."""
    monkeypatch.setattr(made_texts, "MOST_BYTES", 100)
    events = pa.table({"type": ["A"] * 9, "name": ["a"] * 9})
    with interpreted():
        query = celc.compile(_DOUBLING.replace("ASKED", asked)).queries["q"]
        assert len(query.match_table(events.slice(0, 6))) == 21
        with pytest.raises(EventError, match="a text that an aggregate makes has more than"):
            query.match_table(events)
