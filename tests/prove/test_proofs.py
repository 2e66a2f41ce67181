"""`celc prove`: what it says of queries, and of modules that were changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.driver.proving import proofs, representations
from celc.interfaces.cli import main
from celc.options import Options
from celc.verify.prove.representations import Representations
from celc.verify.prove.steps import STEPS

_STREAM = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, ts: TIMESTAMP }
}
"""


def given(query: str, *, ties: str | None = None) -> Representations:
    """The representations of a query over the stream of these tests."""
    options = Options(order_by=("ts",), ties=ties)  # type: ignore[arg-type]
    compilation = compile_source(Source("q.cel", _STREAM + query), options)
    (found,) = representations(compilation, compilation.module_text("celc compile q.cel"))
    return found


def kinds(found: Representations) -> dict[str, str]:
    """The kind of each step's verdict."""
    return {one.step: one.kind for one in (step(found) for step in STEPS)}


def test_a_query_of_single_events() -> None:
    found = kinds(given("SELECT * FROM S WHERE (A AS x ; (B AS y)+) FILTER x.v > 3 AND y.v < x.v"))
    assert "wrong" not in found.values()
    assert found["conditions → symbols"] == "exact"
    assert found["normal form → automaton"] == "exact"
    assert found["core formula → normal form"] == "bounded"


@pytest.mark.parametrize(
    ("query", "ties"),
    [
        ("SELECT * FROM S WHERE (A ALL B) ; !A ; B", "simultaneous"),
        ("SELECT * FROM S WHERE A AS x ; FIRST (B AS y) FILTER y.id = x.id", None),
    ],
)
def test_no_step_is_wrong(query: str, ties: str | None) -> None:
    assert "wrong" not in kinds(given(query, ties=ties)).values()


def test_parts_of_decimals_and_days() -> None:
    """The rows of a part are found by its key, which a proof holds as a number."""
    query = (
        "CREATE STREAM S { EVENT A { k: DECIMAL(10, 2), d: DATE, ts: LONG } }\n"
        "SELECT * FROM S WHERE A AS x ; A AS y PARTITION BY k, d"
    )
    compilation = compile_source(Source("q.cel", query), Options(order_by=("ts",)))
    ((_, verdicts),) = proofs(compilation, "".join(compilation.module_parts("celc compile q.cel")))
    (rows,) = (one for one in verdicts if one.step == "core formula → rows of the module")
    assert (rows.kind, "in two parts" in rows.what) == ("bounded", True)


def test_a_module_and_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.cel").write_text(_STREAM + "SELECT * FROM S WHERE A ; B\n", "utf-8")
    assert main(["compile", "--prove", "q.cel"]) == 0
    report = json.loads(Path("q_udf.proof.json").read_text("utf-8"))
    assert [one["query"] for one in report["queries"]] == ["q"]
    assert main(["prove", "--check", "q_udf.py", "q_udf.proof.json"]) == 0
    assert "proved exactly:" in capsys.readouterr().out
    with Path("q_udf.py").open("a", encoding="utf-8") as module:
        module.write("# changed\n")
    assert main(["prove", "--check", "q_udf.py", "q_udf.proof.json"]) == 1
    assert "is not the module that was proved" in capsys.readouterr().err


def test_row_patterns_are_tested_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "generated" / "recovery.sql").read_text("utf-8")
    Path("q.sql").write_text(text, "utf-8")
    assert main(["prove", "q.sql"]) == 0
    assert "tested only:" in capsys.readouterr().out
