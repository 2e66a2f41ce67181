"""Near misses: the cases by the definitions and by compiled queries, what rows tell, and errors."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import farm
import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import EventError, EventWarning
from near_answers import asked_of, by_compiler, by_reference, from_case, near_cases
from reference import CelError as NoMeaning
from reference import WorkLimitError
from strategies_near import near_query_text, near_stream

import celc
from celc import CelError, CelWarning
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_files
from celc.interfaces.cli import main
from celc.near.needs import tied_by
from celc.options import Options

_CASES = near_cases()


@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)])
def test_cases(each: int) -> None:
    wrong = []
    for case in _CASES[::each]:
        if "error" not in case:
            expected = from_case(case)
            for answer in (by_reference, by_compiler):
                found = answer(case["query"], case["events"], **asked_of(case))
                wrong += [] if found == expected else [(case["name"], answer.__name__, found)]
    assert not wrong
    assert len(_CASES) == 84


def test_cases_that_are_errors() -> None:
    refused = [case for case in _CASES if "error" in case]
    assert len(refused) == 3
    for case in refused:
        with pytest.raises(NoMeaning):
            by_reference(case["query"], case["events"], **asked_of(case))
        with pytest.raises(CelError) as raised:
            by_compiler(case["query"], case["events"], **asked_of(case))
        assert raised.value.diagnostics[0].code == "no-near-misses"


def _agrees(seed: int) -> bool:
    """Whether a random query has the near misses of the definitions; it is told whether any."""
    rng = random.Random(seed)
    text = near_query_text(rng)
    events = near_stream(rng, rng.randint(6, 14))
    for event in events:
        event["price"] = None if event["price"] is None else Decimal(event["price"])
    asked: dict[str, Any] = {
        "near": rng.choice((0.1, 0.3, 0.5, {"value": 0.7}, {"value": 0.4, "price": 0.3})),
        "all_parts": rng.random() < 0.2,
        "order_by": ("ts",),
        "at_end": rng.choice(("open", "closed")),
    }
    if "FOR EACH" in text:
        rows = rng.choice((1, 2, 3))
        asked["parameters"] = {
            "rule": [
                {"id": rng.choice((1, 2)), "v": rng.choice((1.5, 2.0, 2.2))} for _ in range(rows)
            ]
        }
    try:
        expected = by_reference(text, events, work_limit=200_000, **asked)
    except WorkLimitError:
        return False
    assert by_compiler(text, events, **asked) == expected, (seed, text)
    return bool(expected)


def test_random_queries() -> None:
    assert sum(map(_agrees, range(6))) > 0


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_many_random_queries(part: int) -> None:
    assert sum(map(_agrees, range(1000 + 100 * part, 1100 + 100 * part))) > 5


# --- which events matter --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "tied"),
    [
        ("(A AS a ; B AS b) FILTER a.id = b.id", "id"),
        ("(A AS a ; B AS b ; C AS c) FILTER a.id = b.id AND c.id = b.id", "id"),
        ("(A AS a ; B AS b ; C AS c) FILTER a.id = b.id AND c.id = 1", None),
        ("(A AS a ; B AS b) FILTER a.v = b.v", None),
        ("(A AS a ; B AS b) FILTER a.id = b.id OR a.v > 1", None),
        ("(A AS a ; !(C AS c FILTER c.id = a.id) ; B AS b) FILTER a.id = b.id", "id"),
        ("(A AS a ; !C ; B AS b) FILTER a.id = b.id", None),
        ("((A AS a ; B AS b) UNLESS (C AS c FILTER c.id = b.id)) FILTER a.id = b.id", "id"),
        ("((A AS a ; B AS b) FILTER a.id = b.id)+", None),
        ("(A AS a ; (B AS b)+ ; C AS c) FILTER a.id = b.id AND b.id = c.id", "id"),
        ("(A AS a ; (B AS b)? ; C AS c) FILTER a.id = b.id AND b.id = c.id", None),
        ("(A AS a ; FIRST (B AS b)) FILTER a.id = b.id", None),
        ("((A AS a) OR (B AS a) ; C AS c) FILTER a.id = c.id", None),
    ],
)
def test_what_all_events_of_a_match_have_in_common(formula: str, tied: str | None) -> None:
    source = Source("q.cel", _DECLARED + f"SELECT * FROM S WHERE {formula} WITHIN 9 [ts]")
    (query,) = compile_files([source], Options(order_by=("ts",))).files[0].queries
    assert tied_by(query.query.formula) == tied


# --- the farm -------------------------------------------------------------------------------------

_FARM = """CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { id: LONG, value: DOUBLE, ts: TIMESTAMP }
}
QUERY fire:
SELECT hot[value], dry[value]
FROM Farm
WHERE (T AS hot ; H AS dry)
  FILTER hot.value > 40 AND dry.value <= 25 AND hot.id = dry.id
WITHIN 10 MINUTES [ts]
"""


def _farm(seed: int) -> pa.Table:
    times, types, places, values = zip(*farm.events(seed), strict=True)
    first = np.datetime64("2026-07-01", "us")
    ts = first + np.array(times) * np.timedelta64(1000, "us")
    return pa.table(
        {
            "type": types,
            "id": pa.array(places, pa.int64()),
            "value": values,
            "ts": pa.array(ts, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
        }
    )


@pytest.mark.long
def test_the_farm_has_as_many_as_it_should() -> None:
    fire = celc.compile(_FARM)
    found = [
        (len(fire.match_table(table)), len(fire.near_misses(table)))
        for table in map(_farm, range(1, 6))
    ]
    assert found == [(105, 283), (175, 196), (524, 231), (96, 128), (281, 230)]


# --- what rows tell -------------------------------------------------------------------------------

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, ts: LONG }, EVENT B { id: INT, v: DOUBLE, ts: LONG },
  EVENT C { id: INT, v: DOUBLE, ts: LONG }
}
"""
_EVENTS = pa.table(
    {
        "type": list("ACBCAB"),
        "id": pa.array([1, 1, 1, 2, 2, 2], pa.int32()),
        "v": [1.0, 2.0, 3.0, 2.8, 1.0, 1.9],
        "ts": [1, 2, 3, 4, 6, 8],
    }
)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("A AS a ; !C ; B AS b WITHIN 4 [ts]", [("!C", "!C", "C at 2")]),
        ("(A AS a ; B AS b) UNLESS C WITHIN 4 [ts]", [("UNLESS C", "UNLESS C", "C at 2")]),
        ("!C FOR 2 [ts] ; A", [("!C FOR 2 [ts]", "!C FOR 2 [ts]", "C at 4")]),
        (
            "A AS a ; B AS b ; !C FOR 1 [ts] WITHIN 2 [ts]",
            [("!C FOR 1 [ts]", "!C FOR 1 [ts]", "C at 4")],
        ),
        ("(A AS a ; B AS b) FILTER b.v > 3 WITHIN 2 [ts]", [("b.v > 3", "3", "3.0")]),
        ("(A AS a ; B AS b) FILTER b.v > a.v + 2 WITHIN 2 [ts]", [("b.v > a.v + 2", "3.0", "3.0")]),
        ("(A AS a ; B AS b) FILTER b.v > 2 WITHIN 1 [ts]", [("WITHIN 1 [ts]", "1 [ts]", "2")]),
        ("A AS a : A AS b", []),
        ("C AS a : C AS b WITHIN 2 [ts]", [(":", ":", None)]),
        ("C{3} ; A", [("{3}", "3", "2")]),
        ("C AS a ; A AS b ; C AS c WITHIN 5 [ts]", [("C AS c", "C AS c", None)] * 2),
    ],
)
def test_what_was_asked_and_found(query: str, told: list[tuple[Any, ...]]) -> None:
    asked = celc.compile(_DECLARED + f"SELECT * FROM S WHERE {query}", order_by="ts")
    found = asked.near_misses(_EVENTS).to_pylist()
    assert [(row["part"], row["asked"], row["found"]) for row in found] == told


def test_columns_are_those_of_a_match_and_what_was_bent() -> None:
    text = _DECLARED + "SELECT a, b.v AS v FROM S WHERE (A AS a ; B AS b) FILTER b.v > 3.1"
    asked = celc.compile(text, order_by="ts")
    found = asked.near_misses(_EVENTS)
    matches = asked.match_table(_EVENTS).schema.names
    assert found.schema.names == [*matches, "part", "line", "column", "asked", "found", "amount"]
    (row,) = found.to_pylist()
    assert (row["v"], row["line"], row["column"], row["amount"]) == (
        3.0,
        5,
        58,
        pytest.approx(0.1 / 0.31),
    )


def test_a_column_that_goes_with_the_last_operand_is_null() -> None:
    text = _DECLARED + "SELECT b, c.v AS v, c FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 1 [ts]"
    found = celc.compile(text, order_by="ts").near_misses(_EVENTS, parts="all").to_pylist()
    assert not found
    text = text.replace("WITHIN 1 [ts]", "WITHIN 2 [ts]").replace(
        "C AS c", "(C AS c FILTER c.v > 9)"
    )
    *_, row = celc.compile(text, order_by="ts").near_misses(_EVENTS).to_pylist()
    assert (row["v"], row["c"]) == (None, None)


def test_durations_between_events_bend() -> None:
    text = """CREATE STREAM S {
      EVENT A { at: TIMESTAMP }, EVENT B { at: TIMESTAMP }, EVENT C { at: TIMESTAMP }
    }
    SELECT * FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER c.at - b.at <= b.at - a.at"""
    seconds = [0, 100, 209]
    at = pa.array(
        [dt.datetime(2026, 7, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=s) for s in seconds]
    )
    events = pa.table({"type": list("ABC"), "at": at})
    asked = celc.compile(text, order_by="at")
    rows = asked.near_misses(events).to_pylist()
    (row,) = [row for row in rows if row["part"].startswith("c.at")]
    assert row["found"] == "INTERVAL '0 00:01:49' DAY TO SECOND"
    assert row["amount"] == pytest.approx(0.9)
    with pytest.raises(CelError, match="what is compared here is a duration"):
        asked.near_misses(events, near={"at": 5.0})


# --- what is left out and refused -----------------------------------------------------------------


def test_clauses_that_choose_are_left_out_with_a_word() -> None:
    text = _DECLARED + "SELECT LAST * FROM S WHERE (A ; B) FILTER B.v > 9 CONSUME BY ANY LIMIT 1"
    asked = celc.compile(text, order_by="ts")
    with pytest.warns(CelWarning) as told:
        asked.near_misses(_EVENTS)
    words = [str(one.message).splitlines()[0] for one in told]
    assert [word.partition("leave out ")[2].split(":")[0] for word in words] == [
        "CONSUME BY",
        "LIMIT",
        "SELECT LAST",
    ]


def test_how_many_rows_a_comparison_that_is_taken_away_gave() -> None:
    text = _DECLARED + "SELECT * FROM S WHERE (A AS a ; B AS b) FILTER b.id = 7 AND b.v > 2.9"
    asked = celc.compile(text, order_by="ts")
    assert not asked.near_misses(_EVENTS)
    with pytest.warns(EventWarning, match="in 1 of 1 near misses a comparison that cannot bend"):
        found = asked.near_misses(_EVENTS, parts="all")
    assert found["part"].to_pylist() == ["b.id = 7"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT COLLAPSED * FROM S WHERE A ; B", "SELECT COLLAPSED has no near misses"),
        (
            "SELECT * FROM S WHERE ((A AS a ; B AS b) FILTER b.v > a.v)+",
            "compares positions in a part that can stand several times in a match",
        ),
        ("SELECT * FROM S WHERE (WITHIN[2 [ts]](A ; B))+", "this window was bent cannot be told"),
        (
            "SELECT * FROM S WHERE A AS x ; (B AS x FILTER x.v > 1)",
            "x has other positions in a match than those that it compares",
        ),
    ],
)
def test_a_query_without_near_misses_is_refused(query: str, words: str) -> None:
    asked = celc.compile(_DECLARED + query, order_by="ts")
    with pytest.raises(CelError, match="no-near-misses") as raised:
        asked.near_misses(_EVENTS)
    assert words in str(raised.value)


def test_a_near_miss_has_no_match_id() -> None:
    text = _DECLARED + "SELECT * FROM S WHERE (A ; B) FILTER B.v > 9"
    asked = celc.compile(text, order_by="ts", match_id=True)
    for call in (asked.near_misses, lambda events: asked.match_stream(events, near=0.1)):
        with pytest.raises(CelError, match="a near miss has no match_id") as raised:
            call(_EVENTS)
        assert ":5:1:" in str(raised.value)


def test_wrong_arguments() -> None:
    asked = celc.compile(_DECLARED + "SELECT * FROM S WHERE (A ; B) FILTER B.v > 9", order_by="ts")
    for near in (0, -1, True, float("nan"), {"v": "much"}):
        with pytest.raises(ValueError, match="near must be a positive number"):
            asked.near_misses(_EVENTS, near=near)
    with pytest.raises(CelError, match="available are id, v, ts"):
        asked.near_misses(_EVENTS, near={"w": 1.0})
    with pytest.raises(ValueError, match="parts must be 'all' or None"):
        asked.near_misses(_EVENTS, parts="some")
    with pytest.raises(EventError, match="'v'"):
        asked.near_misses(_EVENTS.drop_columns(["v"]))
    two = _DECLARED + "QUERY p: SELECT * FROM S WHERE A ; B QUERY q: SELECT * FROM S WHERE B ; A"
    with pytest.raises(ValueError, match="say of which query"):
        celc.compile(two, order_by="ts").near_misses(_EVENTS)
    assert celc.compile(two, order_by="ts").near_misses(_EVENTS, query="q").num_rows == 0


# --- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b FROM S WHERE (A AS a ; B AS b) FILTER b.v > 3.1",
        "SELECT NXT a, b FROM S WHERE (A AS a ; B AS b) FILTER b.v > 3.1",
        "SELECT a, b FROM S WHERE (A AS a ; B AS b) FILTER b.v > 3.1 CONSUME BY ANY LIMIT 1",
    ],
)
@pytest.mark.parametrize("rows", ["", "A,1,1.0,1\nB,1,3.0,2\n"])
def test_run_without_what_chooses_and_without_rows(
    text: str, rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query, events = tmp_path / "q.cel", tmp_path / "e.csv"
    query.write_text(_DECLARED + text)
    events.write_text(f"type,id,v,ts\n{rows}")
    assert main(["run", str(query), str(events), "--order-by", "ts", "--near"]) == 0
    assert ("b.v > 3.1" in capsys.readouterr().out) == bool(rows)


def test_run_reads_what_bent_forms_alone_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The query can match nothing, and reads no `id`."""
    query, events = tmp_path / "q.cel", tmp_path / "e.csv"
    query.write_text(
        f"{_DECLARED} SELECT a[v], b[v] FROM S\n"
        "WHERE (A AS a ; (B AS b FILTER b.v BETWEEN 3.1 AND 3)) FILTER b.id = a.id"
    )
    events.write_text("type,id,v,ts\nA,1,1.0,1\nB,1,3.0,2\n")
    run = ["run", str(query), str(events), "--order-by", "ts", "--near"]
    assert main(run) == 0
    assert "b.v" in capsys.readouterr().out
    assert main([*run, "-o", str(tmp_path / "q.html")]) == 0


def test_run_and_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, events, module = (tmp_path / name for name in ("q.cel", "e.csv", "q_near.py"))
    query.write_text(_DECLARED + "SELECT a, b FROM S WHERE (A AS a ; B AS b) FILTER b.v > 3.1\n")
    events.write_text("type,id,v,ts\nA,1,1.0,1\nB,1,3.0,2\n")
    run = ["run", str(query), str(events), "--order-by", "ts"]
    assert main([*run, "--near", "--format", "csv"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.endswith('"part","line","column","asked","found","amount"')
    assert row.split(',"b.v > 3.1",')[1].startswith('5,51,"3.1","3.0",0.32')
    assert main([*run, "--near", "--near-by", "v=1"]) == 0
    assert "0.1" in capsys.readouterr().out
    for wrong, words in (
        (["--near-by", "2"], "give --near as well"),
        (["--near", "--near-by", "v=no"], "give a positive number"),
        (["--near", "--match-id"], "leave one of them out"),
    ):
        assert main([*run, *wrong]) == 2
        assert words in capsys.readouterr().err
    assert main(["compile", str(query), "--order-by", "ts", "--near", "-o", str(module)]) == 0
    names: dict[str, Any] = {"__name__": "q_near"}
    exec(compile(module.read_text(), str(module), "exec"), names)
    table = pa.table(
        {"type": ["A", "B"], "id": pa.array([1, 1], pa.int32()), "v": [1.0, 3.0], "ts": [1, 2]}
    )
    assert names["near_misses"](table)["part"].to_pylist() == ["b.v > 3.1"]
