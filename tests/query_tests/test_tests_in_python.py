"""`celc.testing.check`, and the plugin of pytest."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import celc
from celc.testing import check

_QUERY = """CREATE STREAM S { EVENT A { v: INT, ts: TIMESTAMP }, EVENT B { v: INT, ts: TIMESTAMP } }
SELECT a[v], b FROM S WHERE (A AS a ; B AS b) FILTER a.v > 3 WITHIN 5 MINUTES [ts]
"""
_ROWS = """type, v, ts
A, 5, 2026-07-01 12:00:00
B, 1, 2026-07-01 12:03:00
"""
_TIMES = [dt.datetime(2026, 7, 1, 12, minute, tzinfo=dt.UTC) for minute in (0, 3)]
_COLUMNS = {"type": ["A", "B"], "v": [5, 1], "ts": _TIMES}
_TABLE = pa.table(
    {
        "type": ["A", "B"],
        "v": pa.array([5, 1], pa.int32()),
        "ts": pa.array(_TIMES, pa.timestamp("us", "UTC")),
    }
)
_OBJECTS = [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*_COLUMNS.values(), strict=True)]


def test_what_is_as_expected_says_nothing(tmp_path: Path) -> None:
    query = celc.compile(_QUERY)
    for given in (_ROWS, _COLUMNS, _TABLE, _OBJECTS):
        check(query, given, [{"a": 0, "b": [1], "end_time": _TIMES[1]}])
    check(query.queries["query"], _TABLE, 1)
    (tmp_path / "q.cel").write_text(_QUERY)
    check(tmp_path / "q.cel", _ROWS, [{"a": {"v": 5}}])
    check(query, [], 0)


def test_a_difference_is_an_assertion_with_a_picture() -> None:
    with pytest.raises(AssertionError) as raised:
        check(celc.compile(_QUERY), _ROWS.replace("A, 5", "A, 3"), [{"a": 0, "b": 1}])
    assert str(raised.value) == """expected 1 row, found 0 rows: 1 missing, 0 too much
#  type  v  ts                   missing 1
0  A     3  2026-07-01 12:00:00  a
1  B     1  2026-07-01 12:03:00  b
missing 1: { a = 0, b = 1 }
near miss of missing 1: a.v > 3 (the query:2:54) asks 3, and 3 was there"""


def test_parameters_are_given_by_name() -> None:
    query = celc.compile(
        "CREATE STREAM S { EVENT A { v: INT } } PARAMETERS rule { low: INT }\n"
        "SELECT a, rule[low] FROM S FOR EACH rule WHERE A AS a FILTER a.v > rule.low"
    )
    rows = "type,v\nA,5\n"
    check(query, rows, [{"rule": {"low": 1}, "a": 0}], rule=[{"low": 1}, {"low": 9}])
    check(query, rows, 0, rule="low\n7\n")
    check(query, rows, 1, rule={"low": [None, 1]})


@pytest.mark.parametrize(
    ("given", "expected", "kind", "told"),
    [
        (_ROWS.replace("5", "x"), 1, ValueError, "given:2:1: error[test-rows]: column 'v': 'x'"),
        (_ROWS, [{"c": 1}], ValueError, "the answer has no column 'c'"),
        (5, 1, TypeError, "given is a text of CSV"),
        (_ROWS, "1", TypeError, "expected is a number of rows"),
    ],
)
def test_wrong_calls(given: object, expected: object, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as raised:
        check(celc.compile(_QUERY), given, expected)  # type: ignore[arg-type]
    assert told in str(raised.value)


def test_wrong_queries() -> None:
    several = celc.compile(
        f"{_QUERY.replace('SELECT', 'QUERY p: SELECT')} QUERY q: SELECT * FROM S WHERE A"
    )
    with pytest.raises(ValueError, match="say which query, by name=…; there are 'p', 'q'"):
        check(several, _ROWS, 1)
    check(several, _ROWS, 1, name="q")
    with pytest.raises(TypeError, match="not int"):
        check(5, _ROWS, 1)


def test_pytest_collects_test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.cel").write_text(_QUERY)
    case = f"[[case]]\nname = 'NAME'\ngiven = '''\n{_ROWS}'''\nexpected = NUMBER\n"
    cases = [case.replace("NAME", f"case {n}").replace("NUMBER", str(n)) for n in (1, 2)]
    (tmp_path / "q.test.toml").write_text("".join(cases))
    (tmp_path / "bad.test.toml").write_text("[[case]]\n")
    # It looks for garbage five times in all that this process has.
    plugins = ["no:celc", "celc.testing.plugin", "no:cacheprovider", "no:unraisableexception"]
    options = ["-q", *(word for plugin in plugins for word in ("-p", plugin))]
    code = pytest.main([*options, "--rootdir", str(tmp_path), str(tmp_path / "q.test.toml")])
    told = capsys.readouterr().out
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "q.test.toml::case 2" in told
    assert "expected 2 rows, found 1 row" in told
    assert "0  A     5  2026-07-01 12:00:00  a" in told
    assert "1 failed, 1 passed" in told
    pytest.main([*options, "--rootdir", str(tmp_path), str(tmp_path / "bad.test.toml")])
    assert (
        "bad.test.toml:1:1: error[test-file]: this case has no 'given'" in capsys.readouterr().out
    )
