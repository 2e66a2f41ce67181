"""FLOATs in what `celc run` writes: the shortest number of their own type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from celc.interfaces.cli.command import main

QUERY = """CREATE STREAM S { EVENT A { f: FLOAT, g: DOUBLE, ts: TIMESTAMP } }
SELECT x, x.f AS f, MAX(x.g) AS g, COLLECT(x.f) AS fs FROM S WHERE A AS x WITHIN 1 HOUR [ts]
"""
EVENTS = """f,g,ts
55.6,55.6,2026-07-01 12:00:00
1e-45,0.1,2026-07-01 12:00:01
,1,2026-07-01 12:00:02
"""


def run(tmp_path: Path, format: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    (tmp_path / "q.cel").write_text(QUERY, encoding="utf-8")
    (tmp_path / "e.csv").write_text(EVENTS, encoding="utf-8")
    assert main(["run", str(tmp_path / "q.cel"), str(tmp_path / "e.csv"), "--format", format]) == 0
    return capsys.readouterr().out.splitlines()


def test_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line)["values"] for line in run(tmp_path, "json", capsys)]
    assert [(row["f"], row["g"]) for row in rows] == [(55.6, 55.6), (1e-45, 0.1), (None, 1.0)]
    assert [row["fs"] for row in rows] == [[55.6], [1e-45], [None]]


def test_in_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in run(tmp_path, "rows", capsys)]
    assert [row["x"][0]["f"] for row in rows] == [55.6, 1e-45, None]


@pytest.mark.parametrize("format", ["csv", "table"])
def test_as_text(format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(run(tmp_path, format, capsys))
    assert "55.6" in text
    assert "55.59" not in text
