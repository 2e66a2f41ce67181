"""`celc diff --state`: whether a changed query can go on with a checkpoint, and which arguments the
command takes. Spark is not started: the checkpoint is made by hand."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.going_on import Known
from celc_runtime.stream.tasks import formats_of

import celc
from celc.diagnostics.source import Source
from celc.interfaces.cli import main
from celc.interfaces.cli.arguments import parser
from celc.interfaces.cli.compare import on_state

_OLD = """CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { id: LONG, value: DOUBLE, ts: TIMESTAMP }
}
QUERY fire:
SELECT hot[value] FROM Farm WHERE (T AS hot ; H AS dry) FILTER hot.value > 40
PARTITION BY id WITHIN 10 MINUTES [ts]
"""


def _known() -> Known:
    """A checkpoint of the query. The column `row` orders events of one time."""
    query = celc.compile(_OLD, tiebreak="row").fire.with_options(positions=False)
    states = formats_of(query.program, StreamOptions({"row": "LONG"}, buckets=4)).states
    return Known(((0, states.written(states.fresh(0))),), (), 3, 3, 1_000_000)


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ("", "", 0, {"result": "goes on", "why": [], "after": None}),
        ("> 40", "> 41", 0, {"result": "goes on", "why": [], "after": None}),
        (
            "10 MINUTES",
            "20 MINUTES",
            1,
            {
                "result": "begins anew",
                "why": ["WITHIN: 0:10:00 [ts] → 0:20:00 [ts]"],
                "after": "1970-01-01 00:00:01+00:00",
            },
        ),
    ],
)
def test_what_is_told(
    old: str, new: str, code: int, told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    source = Source("q.cel", _OLD.replace(old, new))
    for form in ("json", "text"):
        asked: argparse.Namespace = parser().parse_args(
            ["diff", "--state", "folder", "q.cel", "--format", form]
        )
        assert on_state._query(asked, source, _known()) == code
        out = capsys.readouterr().out
        if form == "json":
            assert json.loads(out) == {"query": "fire", **told}
        else:
            assert out.startswith(f"fire: {told['result']}: ")


@pytest.mark.parametrize(
    "more",
    [["one.cel"], ["--state", "folder", "one.cel", "two.cel"], ["--state", "f", "--on", "e"]],
)
def test_one_file_or_two(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.cel").write_text(_OLD, encoding="utf-8")
    words = [str(tmp_path / one) if one.endswith(".cel") else one for one in more]
    words += [] if any(one.endswith(".cel") for one in more) else [str(tmp_path / "one.cel")]
    assert main(["diff", *words]) == 2
    assert "leave one out" in (err := capsys.readouterr().err) or "takes two files" in err
