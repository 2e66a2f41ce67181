"""`celc test`: what passes, what fails and how that is shown, and which clause is to be mended."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from celc.interfaces.cli import main

_FARM = """CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { id: LONG, value: DOUBLE, ts: TIMESTAMP }
}
"""
_FIRE = _FARM + """QUERY fire:
SELECT hot[value], dry[value]
FROM Farm
WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25
PARTITION BY id
WITHIN 10 MINUTES [ts]
"""
_TESTS = """
[[case]]
name = "hot, then dry"
given = '''
type, id, value, ts
T,    1,  41.5,  2026-07-01 12:00:00
H,    1,  31.0,  2026-07-01 12:01:00
T,    1,  42.0,  2026-07-01 12:04:00
H,    1,  24.5,  2026-07-01 12:07:00
H,    1,  23.0,  2026-07-01 12:13:00
'''
expected = [
  { id = 1, hot = 0, dry = 3 },
  { hot = { value = 42 }, dry = [3] },
  { hot = 2, dry = { pos = 4, value = 23.0 }, end_time = 2026-07-01 12:13:00 },
]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that commands run in, with a query."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fire.cel").write_text(_FIRE)
    return tmp_path


def _write(folder: Path, tests: str, query: str | None = None) -> None:
    (folder / "fire.test.toml").write_text(tests)
    if query is not None:
        (folder / "fire.cel").write_text(query)


def _case(given: str, expected: str, more: str = "") -> str:
    return f"[[case]]\n{more}\ngiven = {given}\nexpected = {expected}\n"


# --- what passes ----------------------------------------------------------------------------------

_ROW = "type = 'T', id = 1, value = 41, ts = 2026-07-01 12:00:00"
_GIVEN = {
    "rows": f"[{{ {_ROW} }}, {{ type = 'H', id = 1, value = 9.5, ts = 2026-07-01T12:00:01Z }}]",
    "columns": "{ type = ['T', 'H'], id = [1, 1], value = [41, 9.5], "
    "ts = [2026-07-01 12:00:00, '2026-07-01 12:00:01'] }",
    "JSON": """'''
{"type": "T", "id": 1, "value": 41, "ts": "2026-07-01 12:00:00"}
{"type": "H", "id": 1, "value": 9.5, "ts": "2026-07-01 12:00:01"}
'''""",
    "CSV": "'''type,id,value,ts\nT,1,41,2026-07-01 12:00:00\nH,1,9.5,2026-07-01 12:00:01'''",
}


def test_all_forms_of_rows_say_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = ("1", "[{ hot = 0, dry = { value = 9.5 } }]", """'{"hot": [0], "dry": 1}'""")
    cases = [_case(given, one) for given in _GIVEN.values() for one in expected]
    _write(folder, _TESTS + "".join(cases))
    assert main(["test", "fire.test.toml"]) == 0
    assert capsys.readouterr().out == "13 cases passed\n"


def test_nothing_given_has_no_rows(folder: Path) -> None:
    _write(folder, _case("[]", "[]") + _case("''", "0"))
    assert main(["test"]) == 0


def test_options_are_those_of_the_file_or_of_a_case(folder: Path) -> None:
    query = """CREATE STREAM S { EVENT A { v: INT, ts: LONG }, EVENT B { v: INT, ts: LONG } }
    SELECT a FROM S WHERE A AS a ; !B FOR 5 [ts]"""
    rows = "'''\ntype,v,ts\nA,1,1\n'''"
    tests = 'order_by = "ts"\n' + _case(rows, "0") + _case(rows, "1", "at_end = 'closed'")
    _write(folder, tests, query)
    assert main(["test"]) == 0
    query = query.replace("!B FOR 5 [ts]", "B")
    rows = "'''\ntype,v,ts\nA,1,1\nB,1,1\n'''"
    ties = "ties = 'simultaneous'\norder_by = ['ts']"
    _write(folder, _case(rows, "0", ties) + _case(rows, "1"), query)
    assert main(["test"]) == 0


def test_parameters_are_tables(folder: Path) -> None:
    query = """CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT } }
    PARAMETERS rule { low: INT, name: STRING }
    SELECT a, rule[name] FROM S FOR EACH rule WHERE (A AS a ; B) FILTER a.v > rule.low"""
    rows = "'''\ntype,v\nA,5\nB,1\n'''"
    expected = '[{ rule = { name = "low" }, a = 0 }, { rule = { name = "NULL" } }]'
    sets = "parameters.rule = [{ low = 1, name = 'low' }, { low = 9 }, { low = 2 }]"
    _write(folder, _case(rows, expected, sets), query)
    assert main(["test"]) == 0


def test_one_query_of_several_and_a_query_over_queries(folder: Path) -> None:
    query = """CREATE STREAM S { EVENT A { v: INT, ts: LONG }, EVENT B { v: INT, ts: LONG } }
    QUERY pair: SELECT a.v AS v FROM S WHERE A AS a ; B WITHIN 9 [ts]
    QUERY twice: SELECT x.v AS v FROM pair WHERE pair AS x ; pair AS y WITHIN 99 [ts]"""
    rows = "'''\ntype,v,ts\nA,5,1\nB,1,2\nA,7,3\nB,8,4\n'''"
    expected = "[{ v = 5 }, { v = 5, end_time = 4 }, { v = 7 }]"
    tests = (
        "query = 'pair'\norder_by = 'ts'\n"
        + _case(rows, expected)
        + _case(rows, "1", "query = 'twice'")
    )
    _write(folder, tests, query)
    assert main(["test"]) == 0


def test_a_table_without_a_declaration_and_own_functions(folder: Path) -> None:
    (folder / "own.py").write_text("def twice(v):\n    return 2.0 * v[0]\n")
    query = """FUNCTION twice(DOUBLE[]): DOUBLE
    SELECT x, y FROM visits WHERE (visits AS x ; visits AS y) FILTER twice(x.v) = y.v"""
    rows = "'''\nv\n1.5\n2.0\n3.0\n'''"
    _write(folder, "functions = 'own.py'\n" + _case(rows, "[{ x = 0, y = 2 }]"), query)
    assert main(["test"]) == 0


def test_match_recognize(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "v.sql").write_text(
        "CREATE TABLE t (id INT, v INT); SELECT * FROM t MATCH_RECOGNIZE (ORDER BY id "
        "MEASURES S.id AS first, COUNT(*) AS n PATTERN (S D U) "
        "DEFINE D AS v < PREV(v), U AS v > PREV(v))"
    )
    given = "'''\nid,v\n1,3\n2,1\n3,2\n'''"
    (folder / "v.test.toml").write_text(_case(given, "[{ first = 1, n = 3 }]") + _case(given, "1"))
    assert main(["test", "v.test.toml"]) == 0
    (folder / "v.test.toml").write_text(_case(given, "[{ first = 2, n = 3 }]"))
    assert main(["test", "v.test.toml"]) == 1
    assert "too much 1: { first = 1, n = 3 }" in capsys.readouterr().out


# --- what fails, and how it is shown --------------------------------------------------------------


def test_a_difference_is_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = """[[case]]
name = "late"
given = '''
type,id,value,ts
T,1,41.5,2026-07-01 12:00:00
H,1,31.0,2026-07-01 12:01:00
H,1,24.5,2026-07-01 12:12:00
T,2,43.0,2026-07-01 12:12:00
H,2,23.0,2026-07-01 12:12:01
'''
expected = [{ id = 1, hot = 0, dry = 2 }]
"""
    _write(folder, tests)
    assert main(["test"]) == 1
    assert capsys.readouterr().out == """fire.test.toml:2: FAILED: late
  expected 1 row, found 1 row: 1 missing, 1 too much
  #  type  id  value  ts                   missing 1  too much 1
  0  T     1   41.5   2026-07-01 12:00:00  hot
  1  H     1   31.0   2026-07-01 12:01:00
  2  H     1   24.5   2026-07-01 12:12:00  dry
  0  T     2   43.0   2026-07-01 12:12:00             hot
  1  H     2   23.0   2026-07-01 12:12:01             dry
  missing 1: { id = 1, hot = 0, dry = 2 }
  too much 1: { id = 2, hot = 0, dry = 1 }
  near miss of missing 1: WITHIN 10 MINUTES [ts] (fire.cel:10:1) asks 10 MINUTES [ts], \
and INTERVAL '0 00:12:00' DAY TO SECOND was there
0 cases passed, 1 failed
"""


def test_junit_has_failures_and_bad_files(folder: Path) -> None:
    _write(folder, _TESTS + _case(_GIVEN["CSV"], "2", "name = 'two'"))
    (folder / "other.test.toml").write_text("[[case]]\n")
    assert main(["test", "--junit", "found.xml"]) == 2
    root = ElementTree.parse(folder / "found.xml").getroot()
    told = [(one.get("name"), one.get("failures"), one.get("errors")) for one in root]
    assert told == [("fire.test.toml", "1", "0"), ("other.test.toml", "0", "1")]
    (failure,) = root.iter("failure")
    assert failure.get("message") == "expected 2 rows, found 1 row"
    assert "this case has no 'given'" in next(root.iter("error")).text


def test_answers_are_written_for_review(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = "[[case]]\nname = 'new'\ngiven = " + _GIVEN["CSV"]
    count = _case(_GIVEN["JSON"], "7  # seven", "name = 'count'")
    _write(folder, f"# kept\n{_TESTS}{new}\n\n{count}")
    assert main(["test"]) == 1
    assert "nothing is expected so far" in capsys.readouterr().out
    assert main(["test", "--write"]) == 0
    text = (folder / "fire.test.toml").read_text()
    assert text == (
        f"# kept\n{_TESTS}{new}\nexpected = [\n  {{ id = 1, hot = 0, dry = 1 }},\n]\n\n"
        + count.replace("7  #", "1  #")
    )
    assert main(["test"]) == 0


# --- which clause is to be mended: five faulty queries with their failing tests only ------------

_STEPS = """CREATE STREAM Steps {
  EVENT login { user: LONG, ts: TIMESTAMP }, EVENT check { user: LONG, ts: TIMESTAMP },
  EVENT pay { user: LONG, ts: TIMESTAMP }, EVENT help { user: LONG, ts: TIMESTAMP }
}
SELECT a, b FROM Steps WHERE login AS a ; check ; pay AS b PARTITION BY user WITHIN 1 HOUR [ts]
"""
_PAID = """'''
type,user,ts
login,1,2026-07-01 12:00:00
help,1,2026-07-01 12:01:00
check,1,2026-07-01 12:02:00
help,1,2026-07-01 12:03:00
pay,1,2026-07-01 12:04:00
'''"""
_WARM = """'''
type,id,value,ts
T,1,38.0,2026-07-01 12:00:00
H,1,20.0,2026-07-01 12:05:00
T,2,41.0,2026-07-01 12:00:00
H,2,20.0,2026-07-01 12:25:00
T,3,41.0,2026-07-01 12:00:00
H,3,20.0,2026-07-01 12:09:00
'''"""


@pytest.mark.each(4)
@pytest.mark.parametrize(
    ("query", "fault", "given", "expected", "clause"),
    [
        # A bound is too high: a match is missing.
        (_FIRE, ("> 40", "> 45"), _GIVEN["CSV"], "[{ hot = 0, dry = 1 }]", "hot.value > 45"),
        # A bound is too low: a match is too much.
        (_FIRE, ("> 40", "> 30"), _WARM, "[{ id = 3 }]", "hot.value > 30"),
        # A window is too long.
        (_FIRE, ("10 MINUTES", "10 HOURS"), _WARM, "[{ id = 3 }]", "WITHIN 10 HOURS [ts]"),
        # The next event is asked for, and others stand between.
        (_STEPS, ("check ; pay", "check : pay"), _PAID, "[{ a = 0, b = 4 }]", ":"),
        # Something is forbidden that may happen.
        (_STEPS, ("; check", "; !help ; check"), _PAID, "[{ a = 0, b = 4 }]", "!help"),
    ],
    ids=["too high", "too low", "too long", "too near", "forbidden"],
)
def test_the_clause_to_mend_is_named(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    query: str,
    fault: tuple[str, str],
    given: str,
    expected: str,
    clause: str,
) -> None:
    faulty = query.replace(*fault)
    _write(folder, _case(given, expected), faulty)
    assert main(["test"]) == 1
    told = capsys.readouterr().out
    line = faulty[: faulty.index(fault[1])].count("\n") + 1
    column = faulty.split("\n")[line - 1].index(clause) + 1
    assert {*re.findall(r"fire\.cel:(\d+):(\d+)", told)} == {(str(line), str(column))}, told
    assert clause in told
    _write(folder, _case(given, expected), query)
    assert main(["test"]) == 0


def test_a_number_to_mend_keeps_the_cases_that_pass(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 is the roundest number below 41, and lets a reading of 38 in, which must stay out."""
    cool = "type,id,value,ts\nT,1,38,2026-07-01 12:00:00\nH,1,20,2026-07-01 12:05:00"
    cases = _case(_GIVEN["CSV"], "[{ hot = 0, dry = 1 }]") + _case(
        f"'''\n{cool}\n'''", "[]", "name = 'cool'"
    )
    _write(folder, cases, _FIRE.replace("> 40", "> 90"))
    assert main(["test"]) == 1
    told = capsys.readouterr().out
    assert "all cases pass" in told
    assert "hot.value > 90  →  hot.value > 40" in told


def test_a_query_file_is_told_with_the_folder_of_its_test_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "rules").mkdir()
    _write(folder / "rules", _case(_GIVEN["CSV"], "1"), _FIRE.replace("> 40", "> 45"))
    assert main(["test"]) == 1
    assert "\n  rules/fire.cel:" in capsys.readouterr().out
    _write(folder / "rules", _case(_GIVEN["CSV"], "1"), _FIRE.replace("> 40", ">> 45"))
    assert main(["test"]) == 2
    assert capsys.readouterr().err.startswith("rules/fire.cel:")


# --- does a test notice? --------------------------------------------------------------------------


def test_what_no_case_notices_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder, _TESTS)
    assert main(["test", "--mutate"]) == 0
    told = capsys.readouterr().out
    assert "hot.value > 40  →  hot.value > 41" in told
    assert "dry.value <= 25  →  TRUE" not in told
    more = """
[[case]]
given = '''
type,id,value,ts
T,1,40.5,2026-07-01 12:00:00
T,1,39.5,2026-07-01 12:00:30
H,1,24.5,2026-07-01 12:05:00
H,1,25.5,2026-07-01 12:05:01
T,1,55,2026-07-01 13:00:00
H,1,20,2026-07-01 13:09:00
H,1,20,2026-07-01 13:11:00
'''
expected = 2
"""
    _write(folder, _TESTS + more)
    assert main(["test", "--mutate"]) == 0
    told = capsys.readouterr().out
    assert told == "fire.cel: the cases notice all of 12 changes\n2 cases passed\n"
