"""A search that cannot end is stopped with words that say where, and what to do."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError, WorkLimitError
from celc_runtime.plan.plan import Choice
from engines import interpreted, only_query
from shares import share

import celc
from celc.core.limits import DEFAULT_MAX_WORK, MOST_MAX_WORK
from celc.interfaces.cli import main
from celc.options import Options

_DECLARATION = "CREATE STREAM S { EVENT A { value: INT }, EVENT B { value: INT } }\n"
_SUM = "SELECT * WHERE ((A AS x)+ ; B) FILTER SUM(x.value) = 1"
_BY_DEFINITION = "SELECT * WHERE ((A AS x)+ ; B FILTER SUM(x.value) = 1)+"


def _events(values: list[int]) -> pa.Table:
    """An A for each value, then a B."""
    return pa.table(
        {
            "type": [*["A"] * len(values), "B"],
            "value": pa.array([*values, 0], pa.int32()),
        }
    )


def _threes(count: int) -> list[int]:
    """Multiples of 3 on both sides of 0, so that no bound tells which sums can be reached."""
    return [3 * (n + 1) * (-1) ** n for n in range(count)]


def test_the_command_line_says_where_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """40 events have 2⁴⁰ sums, all of them multiples of 3; none of them is 1."""
    source, events = tmp_path / "hopeless.cel", tmp_path / "events.jsonl"
    source.write_text(_DECLARATION + _SUM)
    rows = _events(_threes(40)).to_pylist()
    events.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with interpreted():
        code = main(["run", str(source), str(events), "--format", "json", "--max-work", "5000"])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    for said in ("'hopeless'", "position 40", "5,000 steps", "WITHIN", "--max-work"):
        assert said in err


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_a_limit_is_a_number_above_0(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(tmp_path / "q.cel"), "events.csv", "--max-work", text])
    assert stop.value.code == 2
    assert "--max-work" in capsys.readouterr().err


@pytest.mark.parametrize("formula", share([_SUM, _BY_DEFINITION], 2))
def test_in_python(formula: str) -> None:
    events = _events(_threes(16))
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + formula, max_work=1_000))
    with pytest.raises(WorkLimitError, match=r"position 16 takes more than 1,000 steps"):
        query.match_table(events)
    assert issubclass(WorkLimitError, EventError)
    assert query.with_options(max_work=100_000_000).match_table(events).num_rows == 0
    with pytest.raises(ValueError, match="whole number"):
        query.with_options(max_work=0)


def test_steps_count_anew_for_each_match_and_each_event() -> None:
    """Many steps in all, few between two matches."""
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + _SUM.replace("= 1", "> 0"), max_work=20))
    assert query.match_table(_events([1] * 10)).num_rows == 2**10 - 1
    several = pa.concat_tables([_events([1000] * 3) for _ in range(3)])
    hopeless = query.with_options(max_work=20)
    assert hopeless.match_table(several).num_rows == 7 + 63 + 511


def test_the_limit_is_in_the_module_only_where_something_is_searched() -> None:
    matcher = celc.compile(_DECLARATION + _SUM, max_work=7)
    assert "max_work=7" in matcher.source
    plain = celc.compile(_DECLARATION + "SELECT * WHERE A ; B", max_work=7)
    assert "max_work" not in plain.source.split("Plan(", 1)[1]


_RISING = "SELECT {} * WHERE ((A AS x)+ ; B) FILTER x.value > PREV(x.value)"
_RISING_BY_DEFINITION = (
    "SELECT {} * WHERE ((A AS x)+ ; B FILTER x.value > PREV(x.value) OR COUNT(x) > 99):+"
)


@pytest.mark.parametrize(
    ("formula", "values", "other", "enough"),
    [(_RISING, 14, "NXT", 600), (_RISING_BY_DEFINITION, 9, "NXT", 54_500)],
    ids=["listed", "by definition"],
)
def test_candidates_that_are_compared_with_each_other_count(
    formula: str, values: int, other: str, enough: int
) -> None:
    """What finds the candidates is the same search; MAX then compares them in pairs."""
    events = _events([(7 * n) % (values + 1) for n in range(values)])

    def answer(selector: str, max_work: int) -> int:
        with interpreted():
            matcher = celc.compile(_DECLARATION + formula.format(selector), max_work=max_work)
        return int(only_query(matcher).match_table(events).num_rows)

    assert answer(other, enough) >= 1
    with pytest.raises(WorkLimitError, match=f"position {values} takes more than {enough:,} "):
        answer("MAX", enough)
    assert answer("MAX", 100 * enough) > 1


@pytest.mark.parametrize("wrong", [0, -1, 2**63, 1.5, True, "5"])
def test_compiler_and_runtime_have_the_same_limits(wrong: Any) -> None:
    """Neither imports the other to start with, so each has the numbers and the words."""
    query = only_query(celc.compile(_DECLARATION + _SUM, max_work=MOST_MAX_WORK))
    assert query.with_options(max_work=MOST_MAX_WORK).plan.choice.max_work == MOST_MAX_WORK
    with pytest.raises(ValueError, match="max_work") as in_compiler:
        Options(max_work=wrong)
    with pytest.raises(ValueError, match="max_work") as in_runtime:
        query.with_options(max_work=wrong)
    assert str(in_compiler.value) == str(in_runtime.value)
    (default,) = [field.default for field in fields(Choice) if field.name == "max_work"]
    assert default == DEFAULT_MAX_WORK == Options().max_work
