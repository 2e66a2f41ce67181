"""`%load_ext celc` and `%%cel`: cells with queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("IPython", reason="the extra `dev` has it")

import celc

TABLE = {
    "type": ["T", "H", "H"],
    "id": [1, 1, 2],
    "value": [41.5, 24.5, 20.0],
    "ts": [1_000_000, 2_000_000, 3_000_000],
}
CELL = """\
%%cel fire --on table
CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: LONG },
  EVENT H { id: LONG, value: DOUBLE, ts: LONG }
}
SELECT hot[value], dry[value]
FROM Farm
WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25
"""
ROWS = """\
%%cel rise --dialect match_recognize --on prices
CREATE TABLE t (id INT, v INT);
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY id MEASURES COUNT(*) AS n PATTERN (A U)
DEFINE U AS v > PREV(v))
"""


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    """A shell of IPython in this process, with the extension."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "celc")
    shell.push({"table": TABLE, "prices": {"id": [1, 2, 3], "v": [1, 2, 1]}})
    yield shell
    InteractiveShell.clear_instance()


def _error(shell: Any, cell: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert not shell.run_cell(cell).success
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    return told.out + told.err


def test_a_cell_becomes_a_matcher_and_matches(shell: Any) -> None:
    shown = shell.run_cell(CELL).result
    assert "<p>2 matches</p>" in shown._repr_html_()
    assert shell.user_ns["fire_matches"].num_rows == 2
    assert isinstance(shell.user_ns["fire"], celc.Matcher)
    only_made = CELL.replace("fire --on table", "hot --order-by ts --ties simultaneous")
    matcher = shell.run_cell(only_made).result
    assert matcher is shell.user_ns["hot"]
    assert "query hot" in repr(matcher)
    assert "<p>1 match</p>" in shell.run_cell(ROWS).result._repr_html_()
    report = shell.run_cell(CELL.replace("--on table", "--report --on table")).result
    assert "<iframe" in report._repr_html_()
    plain, _ = shell.display_formatter.format(report)
    assert re.fullmatch(r"a page of HTML, [\d,]+ characters", plain["text/plain"])
    plain, _ = shell.display_formatter.format(shown)
    assert plain["text/plain"].endswith("\n2 matches")


def test_a_cell_with_parameters(shell: Any) -> None:
    cell = CELL.replace("hot.value > 40", "hot.value > rule.least")
    cell = cell.replace("CREATE", "PARAMETERS rule { id: INT, least: DOUBLE }\nCREATE", 1)
    cell = cell.replace("FROM Farm", "FROM Farm FOR EACH rule")
    shell.push({"rules": {"id": [7, 8], "least": [40.0, 50.0]}})
    given = "--parameters rule=rules --on table"
    assert shell.run_cell(cell.replace("--on table", given)).success
    rules = shell.user_ns["fire_matches"].column("rule").to_pylist()
    assert rules == [{"id": 7, "least": 40.0}] * 2


def test_errors_are_texts_with_the_lines_of_the_cell(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _error(shell, CELL.replace("hot.value", "hott.value"), capsys)
    assert "fire.cel:8:36: error[unbound-label]" in told
    assert "help: did you mean 'hot'?" in told
    shell.push({"bad": {**TABLE, "value": ["x", "y", "z"]}})
    told = _error(shell, CELL.replace("--on table", "--on bad"), capsys)
    assert told.startswith("EventError: query 'fire' declares 'value' as DOUBLE")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "the following arguments are required: NAME"),
        ("3x", "'3x' is no name of a variable"),
        ("fire --ties x", "argument --ties: invalid choice: 'x'"),
        ("fire --report", "nothing is run without --on TABLE"),
        ("fire --on tabel", "tabel is no table: NameError: name 'tabel' is not defined"),
        ("fire --on table --query x", "there is no query 'x': --query is one of fire"),
        ("fire --on table --parameters rule", "--parameters rule: write SET=TABLE"),
        ("fire --on 'table", "No closing quotation in"),
    ],
)
def test_wrong_lines(shell: Any, capsys: pytest.CaptureFixture[str], line: str, told: str) -> None:
    cell = CELL.replace("%%cel fire --on table", f"%%cel {line}")
    assert f"UsageError: %%cel: {told}" in _error(shell, cell, capsys)


def test_the_tab_key(shell: Any) -> None:
    from IPython.core.completer import provisionalcompleter

    def words(text: str) -> list[str]:
        with provisionalcompleter():
            return [one.text for one in shell.Completer.completions(text, len(text))]

    assert words(CELL[: CELL.index("hot.value") + len("hot.v")]) == ["value"]
    assert "FILTER" in words(CELL[: CELL.index("FILTER") + 2])
    assert "MATCH_RECOGNIZE" in words(ROWS[: ROWS.index("MATCH_RECOGNIZE") + 4])
    assert "table" in words("tab")
    assert "fire" not in words(CELL)
