"""`celc prove`: what it says of queries, and of modules that were changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from celc_runtime import CompiledQuery

from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.driver.pipeline import compile_source
from celc.driver.proved_answers import rows_of_module
from celc.driver.proving import proofs, representations
from celc.interfaces.cli import main
from celc.normal.divide import Exact
from celc.normal.normal_form import Event
from celc.options import Options
from celc.verify.prove.expressions import parts_of
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


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("query", "ties"),
    [
        ("SELECT * FROM S WHERE (A ALL B) ; !A ; B", "simultaneous"),
        ("SELECT * FROM S WHERE A AS x ; FIRST (B AS y) FILTER y.id = x.id", None),
    ],
)
def test_no_step_is_wrong(query: str, ties: str | None) -> None:
    assert "wrong" not in kinds(given(query, ties=ties)).values()


def test_steps_share_what_is_known_of_one_normal_form_alone() -> None:
    found = given("SELECT * FROM S WHERE (A AS x ; B AS y) FILTER y.id = x.id")
    assert "wrong" not in kinds(found).values()
    assert len(found.known) > 0
    other = given("SELECT * FROM S WHERE (A AS x ; B AS y) FILTER y.id < x.id").normal_form
    of_another = kinds(replace(found, normal_form=other))
    assert of_another["core formula → normal form"] == "wrong"
    of_form = "normal form → automaton's form and conditions between events"
    assert of_another[of_form] == "wrong"


@pytest.mark.each(8)
@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("(A AS x ; B AS y) FILTER x.id = 7 AND y.id = x.id", 2),
        ("((A AS x)+ ; B AS y) FILTER y.id = x.id AND 7 = x.id", 2),
        ("(A AS x ; B AS y ; A AS z) FILTER x.v = 0 AND y.v = x.v AND z.v = y.v", 3),
        ("((A AS x OR B AS x) ; B AS y) FILTER x.id = 7 AND x.id = y.id", 3),
        ("((A AS x ; B AS y) FILTER x.id = 7 AND y.id = x.id)+ ; B AS z", 2),
        # x may have no event: then y may have any value.
        ("((A AS x OR B AS z) ; B AS y) FILTER x.id = 7 AND y.id = x.id", 1),
        ("(A AS x)? ; B AS y FILTER x.id = 7 AND y.id = x.id", 1),
    ],
)
def test_what_equals_an_attribute_with_a_value_has_that_value(query: str, values: int) -> None:
    found = given(f"SELECT * FROM S WHERE ({query}) WITHIN 6 EVENTS")
    events = [one for one in parts_of(found.normal_form) if isinstance(one, Event)]
    with_value = [one for one in events if one.clauses]
    assert len(with_value) == values
    assert found.division.rest == Exact() or values == 1
    verdict = STEPS[0](found)
    assert (verdict.kind, verdict.what.endswith("; 0 matches were compared")) == ("bounded", False)


def test_parts_of_decimals_and_days() -> None:
    """The rows of a part are found by its key, which a proof holds as a number."""
    query = (
        "CREATE STREAM S { EVENT A { k: DECIMAL(10, 2), d: DATE, ts: LONG } }\n"
        "SELECT * FROM S WHERE A AS x ; A AS y PARTITION BY k, d"
    )
    compilation = compile_source(Source("q.cel", query), Options(order_by=("ts",)))
    ((_, verdicts),) = proofs(compilation, "".join(compilation.module_parts("celc compile q.cel")))
    (rows,) = (one for one in verdicts if one.step == "core formula → rows of the module")
    assert (rows.kind, "in parts side by side" in rows.what) == ("bounded", True)


def test_conditions_on_the_key_of_a_part() -> None:
    """The definitions read the keys that the module reads, and some part has the value."""
    query = (
        "CREATE STREAM S { EVENT A { id: LONG, v: LONG } }\n"
        "SELECT * FROM S WHERE (A AS x ; A AS y) FILTER x.id = 7 AND y.v > 3 PARTITION BY id"
    )
    compilation = compile_source(Source("q.cel", query), Options())
    (found,) = representations(compilation, text := compilation.module_text("celc compile q.cel"))
    module = Matcher(text).queries[found.query.name]
    assert isinstance(module, CompiledQuery)
    rows = rows_of_module(found, module)
    assert (rows.kind, " 0 rows" in rows.what) == ("bounded", False)


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
