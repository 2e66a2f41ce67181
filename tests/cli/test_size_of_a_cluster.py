"""`celc size`: predictions out of measured runs, and what it says where nothing is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from celc_runtime.plan.plan import Window
from celc_runtime.query import CompiledQuery

from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.driver.pipeline import compile_files
from celc.interfaces.cli import main
from celc.interfaces.cli.sizing import calibration
from celc.interfaces.cli.sizing.amounts import bytes_shown, seconds_shown, shown
from celc.interfaces.cli.sizing.model import Batch, Model, Stream, model, steps, terms
from celc.interfaces.cli.sizing.shape import Shape, shape_of
from celc.options import Options

DECLARED = """CREATE STREAM S {
  EVENT A { id: LONG, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: LONG, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
"""
PAIR = "SELECT x[v], y[v] FROM S WHERE (A AS x ; B AS y) FILTER x.v > 0.5"
KEYED = f"{PAIR} PARTITION BY id WITHIN 1 HOUR [ts]"
RISING = KEYED.replace("x.v > 0.5", "x.v < y.v")
AMOUNTS = ["--rows", "5e9/day", "--keys", "2e7", "--match-rate", "0.001"]

SHAPE = Shape(
    name="q",
    numbers=3,
    texts=1,
    values=5,
    real=2,
    other=0,
    types=2,
    search=0,
    tables=False,
    parts="keys",
    why_one="",
    window=Window("MICROSECONDS", 3_600_000_000, "ts"),
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _size(text: str, *words: str) -> int:
    Path("q.cel").write_text(DECLARED + text, "utf-8")
    return main(["size", "q.cel", *words])


def _json(capsys: pytest.CaptureFixture[str], text: str, *words: str) -> dict[str, Any]:
    assert _size(text, *words, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["queries"]
    assert isinstance(found, dict)
    return found


def _cpu(capsys: pytest.CaptureFixture[str], text: str, *words: str) -> float:
    return float(_json(capsys, text, *words)["batch"]["cpu"]["value"])


def test_the_model_has_terms_that_are_known() -> None:
    batch = Batch(1e6, 1e4, 0.5, 1e3, 3.0, 4, 10.0)
    stream = Stream(1e6, 1e4, 0.5, 1e3, 3.0, 4, 10.0, 1e5)
    of_batch = {"batch cpu", "batch memory", "batch shuffle", "batch answer"}
    of_streams = {"stream cpu", "stream checkpoint", "stream state"}
    assert set(model().measured["costs"]) in (of_batch, of_batch | of_streams)
    for name, cost in model().measured["costs"].items():
        known = terms(SHAPE, batch if name.startswith("batch") else stream)
        assert set(cost["terms"]) <= set(known), name
        assert all(value > 0 for value in cost["terms"].values())
        assert 1 < cost["factor"] < 3
        found = model().cost(name, known)
        assert found.low < found.value < found.high
        assert found.value == pytest.approx(sum(model().parts(name, known).values()))


def test_a_cost_goes_with_the_rows_and_with_the_query(capsys: pytest.CaptureFixture[str]) -> None:
    once = _cpu(capsys, KEYED, *AMOUNTS)
    twice = _cpu(capsys, KEYED, "--rows", "1e10/day", "--keys", "4e7", "--match-rate", "0.001")
    assert twice == pytest.approx(2 * once, rel=0.01)
    assert _cpu(capsys, KEYED, *AMOUNTS, "--relevant", "0.1") < 0.7 * once
    more = _cpu(capsys, KEYED.replace("y[v]", "y[v, name]"), *AMOUNTS)
    assert more > 1.02 * once
    assert _cpu(capsys, RISING, *AMOUNTS) >= once
    many = _cpu(capsys, KEYED, "--rows", "5e9/day", "--keys", "2e7", "--match-rate", "1")
    assert many > 1.2 * once


def test_values_that_labels_show_are_told_apart_by_their_types() -> None:
    text = f"{DECLARED}{KEYED}".replace("SELECT x[v], y[v]", "SELECT x[v, name, ts], y[id]")
    compilation = compile_files([Source("q.cel", text)], Options(order_by=("ts",)))
    (query,) = Matcher(compilation.module_parts("celc compile")).queries.values()
    assert isinstance(query, CompiledQuery)
    shape = shape_of(compilation.queries[0], query.plan)
    assert (shape.real, shape.other) == (2, 1)  # `id` is the key


def test_a_search_goes_with_the_events_in_the_window() -> None:
    assert steps(SHAPE, 100.0) == 0
    found = [
        steps(Shape(**{**_fields(SHAPE), "search": power}), in_window)
        for power in (1, 2)
        for in_window in (20.0, 40.0)
    ]
    assert found == [5.0, 10.0, 50.0, 200.0]


def _fields(shape: Shape) -> dict[str, Any]:
    return {name: getattr(shape, name) for name in Shape.__dataclass_fields__}


def test_executors_follow_from_hours_and_hours_from_executors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    batch = _json(capsys, KEYED, *AMOUNTS, "--hours", "0.1")["batch"]
    assert batch["executors"] > 1
    assert batch["hours"]["value"] <= 0.1
    told = str(batch["executors"])
    again = _json(capsys, KEYED, *AMOUNTS, "--executors", told)["batch"]
    assert again["hours"]["value"] == pytest.approx(batch["hours"]["value"], rel=0.05)
    fewer = _json(capsys, KEYED, *AMOUNTS, "--executors", "1")["batch"]["hours"]["value"]
    assert fewer == pytest.approx(batch["executors"] * batch["hours"]["value"], rel=0.05)


_STREAM = {
    "stream cpu": {"job": 0.5, "row": 4e-7, "event": 8e-7, "event of the state": 1e-7},
    "stream checkpoint": {"event": 12.0, "task": 500.0},
    "stream state": {"event of the state": 12.0},
}


@pytest.fixture
def with_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of streams with simple numbers."""
    costs = {
        name: {"terms": of, "factor": 1.25, "most rows": 200_000} for name, of in _STREAM.items()
    }
    made = {**model().measured, "costs": model().measured["costs"] | costs}
    monkeypatch.setattr("celc.interfaces.cli.sizing.command.model", lambda: Model(made))


@pytest.mark.usefixtures("with_streams")
def test_a_stream_is_the_sum_of_its_terms(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rows", "1e6/s", "--keys", "1e6", "--match-rate", "0.001", "--relevant", "0.1"]
    stream = _json(capsys, KEYED, *words, "--trigger", "10", "--executors", "2")["stream"]
    state = 1e5 * 3600 + 1e6  # events of an hour, and those of a micro-batch that wait
    cpu = 0.5 + 1e7 * 4e-7 + 1e6 * 8e-7 + state * 1e-7
    assert stream["batch"]["value"] == pytest.approx(cpu)
    assert stream["load"]["high"] == pytest.approx(1.25 * cpu / 10)
    assert stream["state"]["value"] == pytest.approx(12 * state)
    assert stream["checkpoint"]["value"] == pytest.approx(12e6 + 8 * 500)


@pytest.mark.usefixtures("with_streams")
def test_a_stream_has_a_state(capsys: pytest.CaptureFixture[str]) -> None:
    hour = _json(capsys, KEYED, *AMOUNTS)["stream"]
    half = _json(capsys, KEYED.replace("1 HOUR", "30 MINUTES"), *AMOUNTS)["stream"]
    assert hour["events_kept"] == pytest.approx(5e9 / 24)
    assert half["events_kept"] == pytest.approx(5e9 / 48)
    assert half["state"]["value"] < 0.7 * hour["state"]["value"]
    assert hour["load"]["value"] == pytest.approx(hour["batch"]["value"] / 60)


@pytest.mark.usefixtures("with_streams")
def test_the_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert _size(KEYED, *AMOUNTS, "--hours", "1", "--cores", "8") == 0
    out = capsys.readouterr().out
    for words in (
        "q: 5e9 rows each day, of which 5e9 can matter, 20,000,000 keys, 5,000,000 matches",
        "As a batch job over all of them:",
        "are for the rows",
        "of 8 cores",
        "As a stream, a micro-batch of 3,470,000 rows each 60 s:",
        "What this does not know:",
        "- rows are taken to be spread evenly over the keys",
        "- all rows are taken to matter",
        "an object store or a network",
        "--calibrate",
        "nine of ten queries that were not measured",
    ):
        assert words in out


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (
            "SELECT * FROM S WHERE (A AS x)+ ; B AS y FILTER SUM(x.v) = 10 WITHIN 1 HOUR [ts]",
            [],
            "its search for matches can take twice as long with each event of the window",
        ),
        (
            f"QUERY one: {KEYED.replace('x[v], y[v]', '*')}\nQUERY two:\n"
            "SELECT * FROM one WHERE one AS p ; one AS r PARTITION BY id WITHIN 1 HOUR",
            ["--query", "two"],
            "it reads the rows of one",
        ),
        (
            RISING,
            ["--rows", "5e9", "--keys", "2e7", "--match-rate", "0.001"],
            "say --rows 5e+09/day",
        ),
    ],
    ids=["doubling search", "rows of a query", "no time"],
)
def test_what_is_not_known_is_said(
    text: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _size(text, *AMOUNTS, *words) == 1
    assert told in capsys.readouterr().err


def test_a_search_beyond_those_measured_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    told = _json(capsys, RISING, *AMOUNTS)["not known"]
    assert not any("search" in one for one in told)
    told = _json(capsys, RISING, "--rows", "5e9/day", "--keys", "20", "--match-rate", "1")
    assert any("the search for matches looks at about" in one for one in told["not known"])


def test_one_task_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, f"{PAIR} WITHIN 1 HOUR [ts] CONSUME BY ANY", *AMOUNTS, "--executors", "9")
    assert found["batch"]["tasks"] == 1
    assert found["batch"]["hours"]["value"] > found["batch"]["cpu"]["value"] / 3600
    assert "one task reads all rows" in found["not known"][0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--rows", "many", "--match-rate", "1"], "'many' is no number of rows"),
        (["--rows", "5e9/week", "--match-rate", "1"], "'5e9/week': rows come each s, second"),
        (["--rows", "0", "--match-rate", "1"], "give one of 1 or more"),
        (["--rows", "5e9", "--match-rate", "-1"], "give 0 or more"),
        (["--rows", "5e9", "--match-rate", "1", "--relevant", "2"], "no part of the rows"),
        (["--rows", "5e9", "--match-rate", "1", "--hours", "0"], "is no length of time"),
        (["--rows", "5e9", "--match-rate", "1", "--hours", "1", "--executors", "2"], "not allowed"),
    ],
)
def test_wrong_amounts_are_said(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _size(KEYED, *words)
    assert told in capsys.readouterr().err


def test_keys_must_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert _size(KEYED, "--rows", "5e9", "--match-rate", "1") == 2
    assert "say how many values it has, as in --keys 2e7" in capsys.readouterr().err


def test_rows_of_sql_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.sql").write_text("SELECT 1", "utf-8")
    assert main(["size", "q.sql", *AMOUNTS]) == 2
    assert "knows queries of CEL" in capsys.readouterr().err


def test_another_machine_is_another_factor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _cpu(capsys, KEYED, *AMOUNTS)
    slower = 3 * float(model().measured["calibration"])
    module = "celc.interfaces.cli.sizing.command.seconds"
    monkeypatch.setattr(module, lambda: slower)
    assert _cpu(capsys, KEYED, *AMOUNTS, "--calibrate") == pytest.approx(3 * plain)


@pytest.mark.machine_code
@pytest.mark.long
def test_calibration_takes_time() -> None:
    assert 0 < calibration.seconds() < 10


def test_numbers_are_shown_with_three_digits() -> None:
    assert [shown(one) for one in (0.0012345, 12.345, 1234.5, 3_472_222, 5e9)] == [
        *("0.00123", "12.3", "1,230", "3,470,000", "5e9"),
    ]
    assert [bytes_shown(one) for one in (12, 1536, 3 << 30)] == ["12 bytes", "1.5 KiB", "3 GiB"]
    assert [seconds_shown(one) for one in (1.5, 600, 9000, 864_000)] == [
        *("1.5 s", "10 min", "2.5 h", "10 days"),
    ]
