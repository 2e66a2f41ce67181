"""The page of an automaton: its drawing, its counts, and what it says where it draws nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from cases_io import load_cases
from engines import interpreted, table_of
from fires import FIRE, farm, hostile, matcher
from test_report import data_of

from celc.diagnostics.source import Source
from celc.driver.pipeline import Stages, compile_source
from celc.interfaces.cli import main
from celc.interfaces.pages.automaton import automaton_page
from celc.interfaces.pages.counts import Taken, taken_by
from celc.interfaces.pages.layout import Arrow, Drawing, Size, laid_out
from celc.options import Options
from celc.plan.strategy import ByDefinition, Checked, Keyed

ABC = "CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT }, EVENT C { v: INT } }\n"


def stages_of(text: str, name: str | None = None) -> Stages:
    queries = compile_source(Source("query.cel", text), Options()).queries
    return queries[-1] if name is None else next(q for q in queries if q.query.name == name)


def taken(text: str, events: pa.Table) -> Taken:
    query = list(matcher(text).queries.values())[-1]
    return taken_by(stages_of(text), query.program, events)


def of(letters: str) -> pa.Table:
    return pa.table({"type": list(letters), "v": pa.array(range(len(letters)), pa.int32())})


# --- counts ---------------------------------------------------------------------------------------


def test_counts_of_the_first_query() -> None:
    """Place 1: hot at 12:00 and 12:04; dry at 12:07 and 12:13, both in time after 12:04. Place 2
    has no hot reading. From 12:01 on a match waits at every event of place 1."""
    found = taken(FIRE, farm())
    assert (found.events, found.ends) == (7, 2)
    assert found.counts == {(0, 1, ("hot",)): 2, (1, 1, ()): 4, (1, -1, ("dry",)): 2}


def test_counts_end_with_the_window() -> None:
    found = taken(ABC + "SELECT * FROM S WHERE A ; B WITHIN 2 EVENTS", of("ACBCB"))
    assert (found.ends, found.counts[1, -1, ("B",)]) == (1, 1)
    found = taken(ABC + "SELECT * FROM S WHERE A ; B WITHIN 9 EVENTS", of("ACBCB"))
    assert (found.ends, found.counts[1, -1, ("B",)]) == (2, 2)


def test_counts_after_consumption() -> None:
    text = ABC + "SELECT * FROM S WHERE A ; B WITHIN 9 EVENTS"
    assert taken(text, of("AABBAB")).ends == 3
    consumed = taken(f"{text} CONSUME BY ANY", of("AABBAB"))
    assert (consumed.ends, consumed.counts[0, 1, ("A",)]) == (2, 3)
    assert "CONSUME BY" in consumed.notes[0]


def test_conditions_that_the_automaton_does_not_decide_are_named() -> None:
    found = taken(
        ABC + "SELECT * FROM S WHERE (A AS a ; B AS b) FILTER a.v > b.v WITHIN 9 EVENTS", of("AB")
    )
    assert found.ends == 1  # 0 > 1 is false, and no transition says so
    assert "before these conditions" in found.notes[0]


@pytest.mark.parametrize("stem", ["01", "02", "07", "08", "09", "10", "11", "13"])
def test_matches_end_where_the_automaton_accepts(stem: str) -> None:
    """Counts against the runtime, over cases of the language."""
    checked = 0
    for case in load_cases(f"{stem}-")[:8]:
        if case.options:
            continue
        stages = stages_of(case.query)
        if isinstance(stages.program.update, Keyed):
            continue
        if isinstance(stages.program.listing, Checked | ByDefinition):
            continue
        query = list(matcher(case.query).queries.values())[-1]
        events = table_of(query.plan, case.events)
        ends = {(str(one["partition"]), one["end"]) for one in case.expected}
        assert taken_by(stages, query.program, events).ends == len(ends), case.name
        checked += 1
    assert checked


# --- drawing --------------------------------------------------------------------------------------


def boxes_of(drawing: Drawing, sizes: list[Size], arrows: list[Arrow]) -> Iterator[Any]:
    """Left, top, right and bottom of nodes and labels."""
    labels = [arrow.label for arrow in arrows]
    places = zip((*drawing.nodes, *drawing.labels), (*sizes, *labels), strict=True)
    for (x, y), size in places:
        wide, high = size.width / 2, size.height / 2
        yield x - wide, y - high, x + wide, y + high


def overlap(one: Any, other: Any) -> bool:
    return bool(one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])


def test_nothing_of_a_drawing_covers_anything() -> None:
    sizes = [Size(44, 40)] * 7
    label = Size(90, 22)
    ends = [(0, 4), (0, 1), (1, 2), (2, 1), (1, 1), (1, 3), (3, 6), (4, 5), (5, 6), (0, 6), (6, 4)]
    arrows = [Arrow(source, target, label) for source, target in [*ends, (1, 1), (2, 3)]]
    drawing = laid_out(sizes, arrows)
    boxes = list(boxes_of(drawing, sizes, arrows))
    pairs = [(a, b) for n, a in enumerate(boxes) for b in boxes[n + 1 :] if overlap(a, b)]
    assert pairs == []
    for left, top, right, bottom in boxes:
        assert left >= -0.01
        assert top >= -0.01
        assert right <= drawing.width + 0.01
        assert bottom <= drawing.height + 0.01
    # Lines run from left to right, but those that lead back.
    back = [n for n, line in enumerate(drawing.lines) if line[0][0] > line[-1][0]]
    assert [(arrows[n].source, arrows[n].target) for n in back] == [(2, 1), (6, 4)]


def test_an_order_without_crossings_is_found() -> None:
    """Two paths side by side, whose nodes are numbered crosswise."""
    arrows = [
        Arrow(a, b, Size(10, 10)) for a, b in [(0, 1), (0, 2), (1, 4), (2, 3), (4, 5), (3, 5)]
    ]
    drawing = laid_out([Size(20, 20)] * 6, arrows)
    assert (drawing.nodes[1][1] < drawing.nodes[2][1]) == (
        drawing.nodes[4][1] < drawing.nodes[3][1]
    )


def test_the_page_has_each_transition() -> None:
    page = automaton_page(stages_of(FIRE), FIRE, None)
    data = data_of(page)
    found = {(one["source"], one["target"], one["marks"]) for one in data["transitions"]}
    assert found == {(0, 1, "{hot}"), (1, 1, "○"), (1, -1, "{dry}")}
    assert "T[value &gt; 40.0] / {hot}" in page
    assert "LP-normal form:" in page
    assert "WITHIN 10 MINUTES [ts]" in page


def test_a_large_automaton_is_a_list() -> None:
    text = ABC + f"SELECT * FROM S WHERE {' ; '.join('ABC' * 68)} WITHIN 999 EVENTS"
    page = automaton_page(stages_of(text), text, None)
    assert "The automaton has 204 states" in page
    assert "<svg" not in page
    assert page.count("<tr><td>") == 204


def test_hostile_names_stay_text() -> None:
    text, events = hostile()
    page = automaton_page(stages_of(text), text, taken(text, events))
    assert page.count("<script") == 2
    assert "<b onmouseover" not in page


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "fire.cel").write_text(FIRE)
    pyarrow.csv.write_csv(farm(), tmp_path / "farm.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with interpreted():
        command = ["explain", "fire.cel", "--format", "html", "-o", "fire.html", "farm.csv"]
        assert main(command) == 0
    data = data_of((folder / "fire.html").read_text("utf-8"))
    assert sorted(one["count"] for one in data["transitions"]) == [2, 2, 4]
    assert main(["explain", "fire.cel", "--format", "html"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["farm.csv"], "add --format html, or leave out farm.csv"),
        (["--format", "html", "--stage", "cea"], "draws the stage det, and not cea"),
        (["--format", "html", "none.csv"], "none.csv: there is no such file"),
        (["--format", "html", "-o", "fire.cel"], "is the file fire.cel that is read"),
        (["--format", "html", "farm.csv", "--ties", "simultaneous"], "no counts are made of them"),
    ],
)
def test_what_the_command_refuses(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    with interpreted():
        assert main(["explain", "fire.cel", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_queries_without_counts_say_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "many.cel").write_text(
        "CREATE STREAM S { EVENT A { id: LONG, ts: TIMESTAMP } }\n"
        "QUERY low: SELECT a[id] FROM S WHERE A AS a WITHIN 1 SECOND [ts]\n"
        "QUERY high: SELECT * FROM low WHERE low ; low WITHIN 1 SECOND [ts]\n"
    )
    (folder / "a.jsonl").write_text(json.dumps({"type": "A", "id": 1, "ts": "2026-07-01"}))
    command = ["explain", "many.cel", "a.jsonl", "--format", "html"]
    assert main(command) == 2
    assert "name one query with --query to draw it: low, high" in capsys.readouterr().err
    with interpreted():
        assert main([*command, "--query", "high"]) == 2
    assert "reads the rows of low" in capsys.readouterr().err
