"""`celc diff` and `celc example`: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from celc.interfaces.cli import main

DECLARED = """CREATE STREAM S {
  EVENT A { id: LONG, x: INT, ts: TIMESTAMP },
  EVENT B { id: LONG, x: INT, ts: TIMESTAMP }
}
"""
AB = "SELECT a, b WHERE (A AS a ; B AS b)"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {
        "old": f"{AB} FILTER a.x > 3 AND b.x = a.x",
        "new": f"{AB} FILTER a.x > 3 AND b.x >= a.x",
        "same": f"{AB} FILTER a.x >= 4 AND b.x = a.x",
        "more": f"{AB} FILTER a.x > 3 AND b.x = a.x AND b.x > 3",
        "wrong": f"{AB} FILTER a.y > 3",
        "two": f"QUERY one: {AB} QUERY two: {AB} FILTER a.x > 3",
        "three": f"QUERY one: {AB} FILTER a.x > 2 QUERY three: {AB}",
    }
    for name, text in texts.items():
        Path(f"{name}.cel").write_text(DECLARED + text)


@pytest.mark.parametrize(
    ("new", "code", "said"),
    [
        ("same", 0, "old: the same answers, proved"),
        ("new", 1, "old: different answers to a shortest stream of those tried, 2 events:"),
        ("more", 3, "old: no difference found, but not proved"),
        ("wrong", 2, ""),
        ("absent", 2, ""),
    ],
)
def test_exit_codes(new: str, code: int, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    seconds = "1" if code == 3 else "60"
    assert main(["diff", "old.cel", f"{new}.cel", "--seconds", seconds]) == code
    out, err = capfd.readouterr()
    assert said in out
    assert bool(err) is (code == 2)


def test_queries_are_compared_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "two.cel", "three.cel", "--format", "json"]) == 1
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(one["query"], one["result"]) for one in told] == [
        ("two", "different"),
        ("three", "different"),
        ("one", "different"),
    ]
    assert [one["type"] for one in told[2]["events"]] == ["A", "B"]
    assert main(["diff", "two.cel", "three.cel", "--query", "two"]) == 2


def test_what_is_told_is_read_again(capfd: pytest.CaptureFixture[str]) -> None:
    main(["diff", "old.cel", "new.cel"])
    rows = capfd.readouterr().out.split("\n\n")[1]
    Path("events.csv").write_text("".join(f"{row.strip()}\n" for row in rows.splitlines()))
    for name, count in (("old", 0), ("new", 1)):
        assert main(["run", f"{name}.cel", "events.csv", "--format", "rows"]) == 0
        assert len(capfd.readouterr().out.splitlines()) == count
    assert main(["diff", "old.cel", "new.cel", "--on", "events.csv"]) == 1
    assert "no row before, 1 row after; no row went, 1 row came" in capfd.readouterr().out
    assert main(["diff", "old.cel", "same.cel", "--on", "events.csv"]) == 0


def test_examples_have_a_match_and_near_misses(capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT a WHERE (A AS a OR B AS a) FILTER a.x > 100 WITHIN 1 MINUTE [ts]"
    Path("one.cel").write_text(DECLARED + query)
    assert main(["example", "one.cel", "--format", "json"]) == 0
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(one["example"], one["of"], len(one["events"] or ())) for one in told] == [
        ("match", None, 1),
        ("match", "A AS a", 1),
        ("match", "B AS a", 1),
        ("near miss", "a.x > 100", 1),
        ("near miss", "WITHIN 1 MINUTE [ts]", 0),
    ]
    assert told[2]["events"][0]["type"] == "B"
    assert told[3]["answer"][0]["found"] == "100"


def test_streams_of_other_types_and_parameters_are_read_again(
    capfd: pytest.CaptureFixture[str],
) -> None:
    declared = (
        "PARAMETERS rule { least: DECIMAL(10, 2) } CREATE STREAM S { EVENT A "
        "{ d: DECIMAL(10, 2), day: DATE, tags: ARRAY<STRING> } } "
    )
    where = "SELECT a FOR EACH rule WHERE (A AS a) FILTER a.day >= DATE '2026-03-01'"
    Path("old.cel").write_text(f"{declared}{where} AND a.d > rule.least AND SIZE(a.tags) > 1")
    Path("new.cel").write_text(f"{declared}{where} AND a.d >= rule.least AND SIZE(a.tags) > 1")
    assert main(["diff", "old.cel", "new.cel", "--order-by", "day"]) == 1
    lines = [one.strip() for one in capfd.readouterr().out.splitlines()]
    Path("events.json").write_text(f"{lines[2]}\n")
    row = lines.index("parameters rule:") + 1
    Path("rules.csv").write_text("\n".join(lines[row : row + 2]))
    given = ["events.json", "--parameters", "rule=rules.csv", "--order-by", "day"]
    for name, count in (("old", 0), ("new", 1)):
        assert main(["run", f"{name}.cel", *given, "--format", "rows"]) == 0
        assert len(capfd.readouterr().out.splitlines()) == count
