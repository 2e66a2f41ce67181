"""Bad test files: a message with the place, what is wrong, and what there is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from celc.interfaces.cli import main
from celc.interfaces.cli.toml.places import places_of

_QUERY = """CREATE STREAM S { EVENT A { v: INT, ts: TIMESTAMP }, EVENT B { v: INT, ts: TIMESTAMP } }
PARAMETERS rule { low: INT }
QUERY one: SELECT a[v], b FROM S WHERE A AS a ; B AS b WITHIN 5 MINUTES [ts]
QUERY each: SELECT a FROM S FOR EACH rule WHERE A AS a FILTER a.v > rule.low
"""
_CASE = "query = 'one'\n[[case]]\nname = 'first'\ngiven = '''\ntype,v,ts\n{row}\n'''\n"
_FINE = "A,1,2026-07-01 12:00:00"
_ONE = _CASE.format(row=_FINE)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[case]\n", ["1:7: error[test-file]: this is no TOML: "]),
        ("a = 1\na = 2\n", ["2:6: error[test-file]: this is no TOML: Cannot overwrite a value"]),
        ("", ["error[test-file]: this file has no case", "help: write [[case]]"]),
        ("case = 3\n", ["1:8: error[test-file]: a case begins with [[case]]"]),
        (
            f"{_ONE}exepcted = 0\n",
            ["8:1: error[test-file]: 'exepcted' has no meaning here", "did you mean 'expected'?"],
        ),
        (f"at_ned = 'open'\n{_ONE}", ["1:1: error", "did you mean 'at_end'?"]),
        (f"at_end = 'close'\n{_ONE}", ["1:10: error", "at_end is not 'close'", "'closed'"]),
        (f"{_ONE}ties = 'same'\n", ["8:8: error", "ties can be: 'simultaneous'"]),
        (f"{_ONE}order_by = [1]\n", ["8:12: error", "order_by is the name of a column"]),
        (f"{_ONE}order_by = 'w'\n", ["order column 'w' is not an attribute", "'v', 'ts'"]),
        (f"file = 'tests.cel'\n{_ONE}", ["1:8: error", "did you mean 'test.cel'?"]),
        (f"{_ONE}given = 1", ["no TOML: Cannot overwrite"]),
        ("[[case]]\ngiven = 1", ["2:9: error[test-file]: rows are a text of CSV"]),
        ("[[case]]\ngiven = { a = [1], b = [] }", ["2:9: error", "'a' has 1, 'b' has 0"]),
        ("[[case]]\nexpected = 0", ["1:1: error[test-file]: this case has no 'given'"]),
        (f"{_ONE}expected = -1\n", ["8:12: error[test-file]: 'expected' is a list of rows"]),
        (f"{_ONE}expected = '[1]'\n", ["8:12: error", "a row is an object"]),
        (f"{_ONE}expected = '''\n{{}}\n{{'''\n", ["10:1: error", "this is no line of JSON"]),
        (
            f"{_ONE}[[case]]\nname = 'first'\ngiven = []\n",
            ["9:8: error[test-file]: two cases are called 'first'", "note: test.test.toml:3:8"],
        ),
        (
            _ONE.replace("'one'", "'oen'"),
            ["1:9: error[test-file]: test.cel has no query 'oen'", "did you mean 'one'?"],
        ),
        (
            _ONE.replace("query = 'one'\n", ""),
            ["2:8: error[test-file]: test.cel has several queries", "'one', 'each'"],
        ),
        (
            _ONE.replace("'one'", "'each'"),
            ["3:8: error[test-file]: query 'each' is FOR EACH rule: give its rows"],
        ),
        (
            f"{_ONE}parameters.rule = []\n",
            ["8:19: error[test-file]: query 'one' has no parameter set 'rule'", "none"],
        ),
        (
            _ONE.replace("'one'", "'each'") + "parameters.rule = [{ hi = 1 }]\n",
            ["8:19: error[test-rows]: no row has 'low', which parameter set 'rule' declares"],
        ),
        # --- rows that are given
        (
            _CASE.format(row="A,x,2026-07-01 12:00:00"),
            ["6:1: error[test-rows]: column 'v': 'x' is no INT", "   6 | A,x,2026"],
        ),
        (
            _CASE.format(row=f"{_FINE}\nA,1,yesterday"),
            ["7:1: error[test-rows]: column 'ts': 'yesterday' is no TIMESTAMP of ISO 8601"],
        ),
        (_ONE.replace("type,v,ts", "type,w,ts"), ["4:9: error[test-rows]: ", "'v'"]),
        (_CASE.format(row="A,1"), ["6:1: error", "the file has 3 columns, and this row has 2"]),
        (
            "query = 'one'\n[[case]]\ngiven = [\n{ type = 'A' },\n{ type = 'A', v = 'x' },\n]\n",
            ["5:1: error[test-rows]: "],
        ),
        # --- rows that are expected
        (
            f"{_ONE}expected = [\n{{ a = 0 }},\n{{ c = 1 }}]\n",
            [
                "10:1: error[test-expected]: the answer has no column 'c'",
                "its columns: 'start_pos'",
            ],
        ),
        (
            f"{_ONE}expected = [{{ a = {{ w = 1 }} }}]\n",
            ["8:13: error[test-expected]: 'a' shows no 'w'", "a shows: 'pos', 'v'"],
        ),
        (f"{_ONE}expected = [{{ a = 'x' }}]\n", ["an event of 'a' is its position"]),
        (f"{_ONE}expected = [{{ a = {{ v = 'x' }} }}]\n", ["column 'a': \"x\" is no INT"]),
        (f"{_ONE}expected = [{{ start_time = 3 }}]\n", ["'start_time': 3 is no TIMESTAMP"]),
    ],
)
def test_messages(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    told: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test.cel").write_text(_QUERY)
    (tmp_path / "test.test.toml").write_text(text)
    assert main(["test", "test.test.toml"]) == 2
    found = capsys.readouterr().err
    assert [one for one in told if one not in found] == [], found
    assert found.startswith(("test.test.toml:", "test.cel:")), found


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.test.toml"], "celc: none.test.toml: there is no such file"),
        (["test.cel"], "the name of a test file ends in .test.toml; test.test.toml is there"),
        (["empty"], "celc: empty: there is no .test.toml file in this folder"),
        (["--write", "--mutate"], "--write records answers, and --mutate tests them"),
    ],
)
def test_wrong_command_lines(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "test.cel").write_text(_QUERY)
    (tmp_path / "test.test.toml").write_text(_ONE)
    assert main(["test", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_event_types_that_nothing_declares_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test.cel").write_text(_QUERY)
    (tmp_path / "test.test.toml").write_text(_CASE.format(row=f"a{_FINE[1:]}") + "expected = 0\n")
    assert main(["test", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "test.test.toml:4:9: warning[test-event-type]: no stream of the query declares" in told
    assert "help: did you mean 'A'?" in told


def test_a_bad_query_has_the_code_of_a_bad_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test.cel").write_text(_QUERY.replace("a[v]", "a[w]"))
    (tmp_path / "test.test.toml").write_text(_ONE)
    assert main(["test", str(tmp_path)]) == 2
    found = capsys.readouterr()
    assert "test.cel:3:21: error" in found.err
    assert found.out == "0 cases passed, 1 file could not be run\n"


_TOML = '''# a comment
top = "x" # "not" a key = 1
a.b = 1
"quoted key" . c = [1, [2, "]"], { d = 'e', f = """
"" } ]""" }]

[t.u]
text = \'\'\'
[[case]]
\'\'\'
[[case]]
given = { x = [1,
  2] }
[case.sub]
last = 2026-07-01 12:00:00
[[case]]
z = -1.5e3'''


def test_places_are_those_of_the_text() -> None:
    found = places_of(_TOML)
    content = tomllib.loads(_TOML)

    def leaves(value: object, path: tuple[str | int, ...]) -> None:
        if isinstance(value, dict):
            for name, one in value.items():
                leaves(one, (*path, name))
        elif isinstance(value, list):
            for number, one in enumerate(value):
                leaves(one, (*path, number))
        else:
            place = found[path].value
            written = _TOML[place.start : place.end]
            assert tomllib.loads(f"a = {written}")["a"] == value

    leaves(content, ())
    place = found[("case", 0, "given")]
    assert _TOML[place.key.start : place.key.end] == "given"
    assert _TOML[place.value.start : place.value.end] == "{ x = [1,\n  2] }"
    place = found[("case", 1)]
    assert _TOML[place.key.start : place.key.end] == "[[case]]"
    assert _TOML[: place.key.start].count("\n") == 15
