"""The five lines with which `celc explain` and `celc check -v` begin: what they say of the recipes,
and that it is so.

What a line says is compared with the module that is generated, and with the other stages, which say
it in their own words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from celc_runtime.plan import strategy
from golden_files import compare
from places import ROOT

import celc
from celc.interfaces.cli import main

_INDEX = (ROOT / "docs" / "recipes.md").read_text("utf-8")
_PAGES = [
    (ROOT / "docs" / page).read_text("utf-8")
    for page in dict.fromkeys(re.findall(r"recipes/[\w-]+\.md", _INDEX))
]
_TITLES = ("kind", "event", "match", "memory", "cheaper")
_INTERNAL = re.compile(
    r"\b(pile|cell|node|arena|listing|kernel|symbol|letter|role|tie|mark|microsecond|LP-normal"
    r"|deterministic|branch-free|straight-line|fire|walk|clause)s?\b"
)
"""Words of the code, which the lines do not use."""

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, t: TIMESTAMP },
  EVENT B { id: INT, value: DOUBLE, t: TIMESTAMP },
  EVENT C { id: INT, value: DOUBLE, t: TIMESTAMP }
}
"""

_SAID = {
    "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.value > 3 WITHIN 5 MINUTES [t]": [
        "safe (no label holds events of both sides of a ;)",
        "unary (no condition is about two events)",
        "decided by an automaton of 2 states",
        "1 look-up of its type, up to 1 comparison of its own columns and up to 1 new entry",
        "no search: 1 step for each of its events",
        "up to 1 match for each earlier event of the last 5 MINUTES",
        "and its columns that are shown or compared, for 5 MINUTES",
        "PARTITION BY, if each value is a question of its own",
    ],
    "SELECT * FROM S WHERE A AS x ; B AS x": ["not safe (label 'x' is bound on both sides of ';')"],
    "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER COUNT(x) >= 2": [
        "but some count or compare with constants",
        "to the end of the input",
    ],
    "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.id = y.id": [
        "not unary (about several events: x.id = y.id)",
        "for each value of the compared columns (x.id = y.id)",
        "up to 1 look-up by key",
        "PARTITION BY in place of x.id = y.id",
    ],
    "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.value = z.value"
    " WITHIN 9 EVENTS": ["up to 2 look-ups by key", "over entries that have left the window"],
    "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.value < y.value WITHIN 9 EVENTS": [
        "finds candidates, to be decided by 1 condition",
        "for each possible last event up to 1 comparison with each earlier event",
        "of the last 9 EVENTS",
        "an equality beside it",
    ],
    "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.value < z.value": ["up to n² times"],
    "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER AVG(x.value) = 3": ["can double with each event"],
    "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER x.value > PREV(x.value)": ["grows with a power"],
    "SELECT * FROM S WHERE A AS x ; !((B AS y ; B) FILTER x.id = y.id) ; C": [
        "to be decided in plain Python, because",
        "the reason",
    ],
    "SELECT * FROM S WHERE A ; B+ ; C": [
        "the number of matches can double with each event so far",
        "SELECT TOTAL, COLLAPSED or MAX, if not every choice",
    ],
    "SELECT * FROM S WHERE !B FOR 3 MINUTES [t] ; (A ; C) WITHIN 5 MINUTES [t]": [
        "for 5 MINUTES, and 3 MINUTES more for what must be absent",
    ],
    "SELECT TOTAL COUNT(*) AS n FROM S WHERE A ; B+ ; C": ["none is listed: counts and sums"],
    "SELECT COLLAPSED * FROM S WHERE A ; B+ ; C": ["none is listed: 1 step for each event"],
    "SELECT MAX * FROM S WHERE A ; B+ ; C WITHIN 9 EVENTS": ["once for each last event"],
    "SELECT NXT * FROM S WHERE (A OR B) ; (B OR C)+ ; C WITHIN 9 EVENTS": ["decided by"],
    "SELECT LONGEST * FROM S WHERE (A AS x):+ FILTER x.value > PREV(x.value)": [
        "by reading the events in order",
        "1 comparison with the event before",
        "the events of the run that is open",
    ],
    "SELECT FIRST * FROM S WHERE (A AS x ; B AS y) FILTER x.value < y.value": ["SELECT FIRST"],
    "SELECT * FROM S WHERE A AS a ; FIRST (B AS b FILTER b.value > a.value)": [
        "1 comparison with each match that has begun",
    ],
}


def _blocks(page: str, opening: str) -> dict[str, str]:
    """The files of the recipes, by their names."""
    found = re.finditer(r"<!-- file: (\S+) -->\n```" + opening + r"\n(.*?)```", page, re.S)
    return {one[1]: one[2] for one in found}


def _verdict(capsys: Any, path: Path, *arguments: str) -> list[str]:
    """What `celc check -v` says of each query of a file, or of why it is refused."""
    assert main(["check", "-v", str(path), *arguments]) == 0
    return str(capsys.readouterr().out).splitlines()[1:]


def _lines(capsys: Any, folder: Path, query: str) -> dict[str, str]:
    path = folder / "q.cel"
    path.write_text(_DECLARED + query)
    name, *lines = _verdict(capsys, path)
    assert name == "query q"
    return dict(line.split(maxsplit=1) for line in lines)


def test_the_recipes(tmp_path: Path, capsys: Any, update: bool) -> None:
    said: list[str] = []
    for name, text in _blocks("\n".join(_PAGES), "cel").items():
        (tmp_path / name).write_text(text)
        said += _verdict(capsys, tmp_path / name)
    for page in _PAGES:
        data = _blocks(page, "csv")
        rows = next(iter(data), "")
        for one in re.findall(r"```sql\n(SELECT (?:(?!```).)*?MATCH_RECOGNIZE.*?)```", page, re.S):
            if re.search(r"FROM \w+\nMATCH_RECOGNIZE", one):  # the others read a subquery
                (tmp_path / rows).write_text(data[rows])
                path = tmp_path / f"{Path(rows).stem}.sql"
                path.write_text(one)
                said += _verdict(capsys, path, "--schema", str(tmp_path / rows))
    compare(Path(__file__).with_name("recipes.txt"), "\n".join(said) + "\n", update)


@pytest.mark.parametrize("query", _SAID)
def test_the_lines_say_what_the_query_is(query: str, tmp_path: Path, capsys: Any) -> None:
    lines = _lines(capsys, tmp_path, query)
    assert tuple(lines) == _TITLES
    text = "\n".join(lines.values())
    for said in _SAID[query]:
        assert said in text
    shown = text.partition("because")[0]  # a reason is that of a warning
    assert not _INTERNAL.search(shown)


@pytest.mark.parametrize("query", _SAID)
def test_their_facts_are_those_of_the_module(query: str, tmp_path: Path, capsys: Any) -> None:
    lines = _lines(capsys, tmp_path, query)
    states = re.search(r"an automaton of (\d+) state", lines["kind"])
    if states is not None:
        assert main(["explain", str(tmp_path / "q.cel"), "--stage", "det"]) == 0
        told = re.search(r"deterministic automaton: (\d+) states", capsys.readouterr().out)
        assert told is not None
        assert told[1] == states[1]
    program = celc.compile(_DECLARED + query).query.program
    keyed = isinstance(program.update, strategy.Keyed)
    assert keyed == ("by key" in lines["event"])
    assert ("plain Python" in lines["match"]) == isinstance(program.listing, strategy.ByDefinition)
    searches = re.search("a search|for each candidate|possible last event", lines["match"])
    checked = isinstance(program.listing, strategy.Checked | strategy.ByDefinition)
    assert checked == bool(searches)
    window = program.plan.matching.window
    if window is not None:
        size = "5 MINUTES" if window.unit == "MICROSECONDS" else f"{window.size} EVENTS"
        assert size in lines["match"] + lines["memory"]
    else:
        assert "of the last" not in lines["match"] + lines["memory"]


def test_explain_begins_with_the_same_lines(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "q.cel"
    path.write_text(_DECLARED + next(iter(_SAID)))
    lines = _verdict(capsys, path)
    assert main(["explain", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[:6] == lines
    assert main(["explain", str(path), "--stage", "formula"]) == 0
    assert "cheaper" not in capsys.readouterr().out


def test_they_are_for_people(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "q.cel"
    path.write_text(_DECLARED + next(iter(_SAID)))
    assert main(["check", "-v", "--format", "json", str(path)]) == 2
    assert "leave out --format json" in capsys.readouterr().err
