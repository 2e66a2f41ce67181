"""Mutants: what changes there are of a query, and that each is a text with another answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from places import CASES

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_files
from celc.interfaces.cli import main
from celc.mutate.mutants import mutants_of
from celc.options import Options
from celc.parse.parser import parse

_STREAM = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, ts: LONG }, EVENT B { id: INT, v: DOUBLE, ts: LONG },
  EVENT C { id: INT, v: DOUBLE, ts: LONG }
}
SELECT * FROM S WHERE """


@pytest.mark.parametrize(
    ("query", "changes"),
    [
        (
            "(A AS a : B AS b) FILTER a.v > 3 OR NOT b.v = 1.5",
            [
                ": -> ;",
                "a.v > 3 -> FALSE",
                "a.v > 3 -> NOT (a.v > 3)",
                "a.v > 3 -> a.v > 4",
                "a.v > 3 -> a.v > 2",
                "b.v = 1.5 -> TRUE",
                "b.v = 1.5 -> NOT (b.v = 1.5)",
                "b.v = 1.5 -> b.v = 2.5",
                "b.v = 1.5 -> b.v = 0.5",
            ],
        ),
        (
            "A ; !B ; FIRST C WITHIN 1 MINUTE 30 SECONDS [ts]",
            [
                "!B -> ",
                "; -> :",
                "FIRST -> ",
                "WITHIN 1 MINUTE 30 SECONDS [ts] -> WITHIN 0.5 MINUTE 15 SECONDS [ts]",
                "WITHIN 1 MINUTE 30 SECONDS [ts] -> WITHIN 2 MINUTE 60 SECONDS [ts]",
            ],
        ),
        (
            "!C FOR 2 [ts] ; A+ ; !B FOR 4 [ts]",
            [
                "!C FOR 2 [ts] -> ",
                "2 [ts] -> 1 [ts]",
                "2 [ts] -> 4 [ts]",
                "+ -> :+",
                "!B FOR 4 [ts] -> ",
                "4 [ts] -> 2 [ts]",
                "4 [ts] -> 8 [ts]",
            ],
        ),
        (
            "A UNLESS (B FILTER B.v < -1) WITHIN 1 EVENTS",
            [
                "UNLESS (B FILTER B.v < -1) -> ",
                "B.v < -1 -> TRUE",
                "B.v < -1 -> NOT (B.v < -1)",
                "B.v < -1 -> B.v < -2",
                "B.v < -1 -> B.v < -0",
                "WITHIN 1 EVENTS -> WITHIN 2 EVENTS",
            ],
        ),
        ("A ; (!B ; FIRST C)+", ["; -> :", "!B -> "]),
        ("A ; B", ["; -> :", "; -> ; FIRST"]),
    ],
)
def test_changes_of_a_query(query: str, changes: list[str]) -> None:
    source = Source("q.cel", _STREAM + query)
    (tree,) = parse(source).queries
    found = [f"{one.before(source)} -> {one.after(source)}" for one in mutants_of(tree, source)]
    assert found == changes


@pytest.mark.long
def test_all_changes_of_all_cases_are_queries_or_told_to_be_none() -> None:
    """Each is a text that differs, and the compiler takes most of them."""
    made = refused = 0
    for path in sorted(CASES.rglob("*.jsonl")):
        if path.parent.name in ("sql", "functions"):
            continue
        for line in path.read_text("utf-8").splitlines()[::7]:
            source = Source("q.cel", json.loads(line)["query"])
            try:
                queries = parse(source).queries
            except CelError:
                continue
            for mutant in (one for query in queries for one in mutants_of(query, source)):
                changed = mutant.of(source)
                assert changed.text != source.text
                try:
                    compile_files([changed], Options(joins=False, order_by=("ts",)))
                    made += 1
                except CelError:
                    refused += 1
    assert made > 3 * refused > 0, (made, refused)


_FIRE = """CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { id: LONG, value: DOUBLE, ts: TIMESTAMP }
}
PARAMETERS rule { low: DOUBLE }
QUERY fire:
SELECT hot, dry FROM Farm FOR EACH rule
WHERE (T AS hot ; !(T FILTER T.value < 0) ; H AS dry) FILTER hot.value > rule.low + 1
PARTITION BY id WITHIN 10 MINUTES [ts]
QUERY silent:
SELECT hot FROM Farm WHERE T AS hot ; !H FOR 1 HOUR [ts]
"""
_GIVEN = "'''\ntype,id,value,ts\nT,1,50,2026-07-01 12:00:00\nH,1,50,2026-07-01 12:01:00\n'''"


@pytest.mark.long
def test_the_cases_that_are_told_notice_all_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    case = f"[[case]]\nquery = 'fire'\ngiven = {_GIVEN}\nparameters.rule = [{{ low = 9 }}]\n"
    tests = f"{case}expected = 1\n[[case]]\nquery = 'silent'\ngiven = {_GIVEN}\nexpected = 0\n"
    (tmp_path / "fire.cel").write_text(_FIRE)
    (tmp_path / "fire.test.toml").write_text(tests)
    assert main(["test", "--mutate"]) == 0
    told = capsys.readouterr().out
    assert "fire.cel: no case notices 13 of 15 changes" in told, told
    more = [line[6:] for line in told.splitlines() if line.startswith("      ")]
    (tmp_path / "fire.test.toml").write_text("\n".join([tests, *more, ""]))
    assert main(["test", "--mutate"]) == 0
    told = capsys.readouterr().out
    assert re.match(r"fire.cel: the cases notice all of \d+ changes\n", told), told
