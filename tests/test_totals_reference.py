"""The reference evaluator on SELECT TOTAL and SELECT COLLAPSED: cases, and what they leave out."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from cases_io import Case, load_cases, load_refused
from places import CASES
from reference import (
    CelError,
    Match,
    RunError,
    WorkLimitError,
    difference,
    evaluate,
    evaluate_totals,
    totals_difference,
)

FOLDER = CASES / "totals"

# The first cases of both files have more matches than can be listed.
_TOO_MANY = {
    *(f"28-totals/{number:03}" for number in range(1, 17)),
    *(f"29-collapsed/{number:03}" for number in range(1, 10)),
}


def _told(case: Case) -> str:
    """What tells the reference's answer to a case apart from the expected one."""
    limit = 20_000
    if case.rows is None and case.run_error is None:
        found = evaluate(case.query, case.events, order_by=case.order_by, work_limit=limit)
        return difference(found, case.expected)
    rows = evaluate_totals(case.query, case.events, order_by=case.order_by, work_limit=limit)
    return totals_difference(rows, case.rows or [])


@pytest.mark.parametrize("stem", ["28-totals", "29-collapsed", "40-first"])
def test_cases(stem: str) -> None:
    problems: list[str] = []
    too_many: set[str] = set()
    for case in load_cases(stem, FOLDER):
        try:
            told = _told(case)
        except WorkLimitError:
            too_many.add(case.name)
        else:
            problems += [f"{case.name}: {told}"] if told else []
    assert not problems
    assert too_many == {name for name in _TOO_MANY if name.startswith(stem)}


def test_all_cases_are_there() -> None:
    assert len(load_cases(folder=FOLDER)) == 160
    assert len(load_refused(folder=FOLDER)) == 15


def test_cases_that_are_errors() -> None:
    for case in load_refused(FOLDER):
        answer = evaluate_totals if "SELECT TOTAL" in case.query else evaluate
        with pytest.raises(CelError):
            answer(case.query, case.events, order_by=case.order_by)


# --- items ----------------------------------------------------------------------------------------

_DECLARATION = """CREATE STREAM S {
    EVENT A {
        i: INT, l: LONG, f: FLOAT, d: DOUBLE, s: STRING, b: BOOLEAN, v: INTERVAL, t: TIMESTAMP
    },
    EVENT B { t: TIMESTAMP, y: DATE }
}
"""


def _item(item: str, values: list[dict[str, Any]], having: str = "") -> Any:
    """The value of an item over one match of so many A and a B."""
    events = [{"type": "A", **one} for one in values] + [{"type": "B"}]
    formula = f"(A AS x):{{{len(values)}}} ; B"
    text = f"{_DECLARATION} SELECT TOTAL {item} AS n WHERE {formula} PER PARTITION {having}"
    rows = evaluate_totals(text, events)
    return rows[0]["n"] if rows else "no row"


@pytest.mark.parametrize(
    ("item", "values", "answer"),
    [
        ("SUM(x.i)", [{"i": 2**31 - 1}] * 3, Decimal(3 * (2**31 - 1))),
        ("SUM(x.l)", [{"l": -(2**63)}] * 3, Decimal(-3 * 2**63)),
        ("SUM(x.i)", [{}], None),
        ("SUM(x.f)", [{"f": 0.1}], 0.10000000149011612),
        ("SUM(x.d)", [{"d": 1e308}] * 2, math.inf),
        ("SUM(x.d)", [{"d": math.inf}, {"d": -math.inf}], math.nan),
        ("AVG(x.l)", [{"l": 2**63 - 1}] * 2, float(2**63 - 1)),
        ("AVG(x.d)", [{"d": 1e308}] * 2, 1e308),
        ("MAX(x.d)", [{"d": math.nan}, {"d": math.inf}], math.nan),
        ("MIN(x.s)", [{"s": "b"}, {"s": "a"}, {}], "a"),
        ("MAX(x.b)", [{"b": False}, {"b": True}], True),
        ("SUM(x.v)", [{"v": -7}, {"v": 2}], -5),
        ("AVG(x.v)", [{"v": -7}, {"v": 2}], -2),
        ("COUNT(x) - 2 * COUNT(*)", [{}] * 3, Decimal(1)),
        ("ABS(COUNT(*) - COUNT(x))", [{}] * 3, Decimal(2)),
        ("ABS(MIN(x.i)) - 1", [{"i": -7}], 6),
        ("ABS(-MAX(x.d))", [{"d": -0.5}], 0.5),
        ("ABS(SUM(x.v))", [{"v": -5}], 5),
        ("ABS(SUM(x.i))", [{}], None),
        ("-SUM(x.i) % 4", [{"i": 7}], Decimal(-3)),
        ("COUNT(*) % 0", [{}], None),
        ("COUNT(*) + NULL", [{}], None),
        ("COUNT(x) / 2", [{}], 0.5),
        ("COUNT(x) + 0.5", [{}], 1.5),
        ("COUNT(x) * MAX(x.f)", [{"f": 0.1}], 0.10000000149011612),
        ("MAX(x.i) + MIN(x.l)", [{"i": 2**31 - 1, "l": 1}], 2**31),
        ("MAX(x.t) - MIN(x.t)", [{"t": "2026-01-01"}, {"t": "2026-01-02"}], 86_400_000_000),
        ("SUM(x.v) * COUNT(*)", [{"v": 5}], 5),
    ],
)
def test_items(item: str, values: list[dict[str, Any]], answer: Any) -> None:
    found = _item(item, values)
    assert type(found) is type(answer)
    assert not totals_difference([{"n": found}], [{"n": answer}])


@pytest.mark.parametrize(
    ("item", "values"),
    [
        ("SUM(x.l) * SUM(x.l) * 2", [{"l": 2**63 - 1}]),
        ("MAX(x.i) + 1", [{"i": 2**31 - 1}]),
        ("-MIN(x.l)", [{"l": -(2**63)}]),
        ("ABS(MIN(x.l))", [{"l": -(2**63)}]),
        ("ABS(MIN(x.i))", [{"i": -(2**31)}]),
        ("SUM(x.v)", [{"v": 2**62}] * 2),
        ("MAX(x.v) * 2", [{"v": 2**62}]),
    ],
)
def test_nothing_wraps(item: str, values: list[dict[str, Any]]) -> None:
    with pytest.raises(RunError, match="APPROX_COUNT") as raised:
        _item(item, values)
    assert raised.value.end_pos == len(values)


@pytest.mark.parametrize(
    ("having", "is_kept"),
    [
        ("n = 3", True),
        ("n = 3.0 AND n < 3.5", True),
        ("n IN (1, 3.0)", True),
        ("ABS(n - 5) * 2 = 4", True),
        ("n / 0 IS NULL", True),
        ("n = NULL", False),
        ("NOT n = NULL", False),
        ("n % 2 <> 1", False),
    ],
)
def test_having(having: str, is_kept: bool) -> None:
    found = _item("COUNT(x)", [{}] * 3, f"HAVING {having}")
    assert found == (Decimal(3) if is_kept else "no row")


@pytest.mark.parametrize(
    "rest",
    [
        "COUNT(*) WHERE A",
        "x.i AS n WHERE A AS x",
        "2 AS n WHERE A",
        "COUNT(DISTINCT x.i) AS n WHERE A AS x",
        "SUM(PRIOR x.i) AS n WHERE A AS x",
        "ABS(x.i) AS n WHERE A AS x",
        "ABS(DISTINCT COUNT(*)) AS n WHERE A",
        "SUM(x.s) AS n WHERE A AS x",
        "AVG(x.t) AS n WHERE A AS x",
        "SUM(*) AS n WHERE A",
        "MAX(x.s) + COUNT(*) AS n WHERE A AS x",
        "COUNT(*) AS n, COUNT(A) AS n WHERE A",
        "COUNT(*) AS end_pos WHERE A",
        "COUNT(*) AS n WHERE A PER 0 SECONDS",
        "COUNT(*) AS span_end WHERE A WITHIN 1 DAY [t] PER 1 DAY",
        "COUNT(*) AS n WHERE A PER 1 DAY",
        "COUNT(*) AS n WHERE A PER 3 EVENTS",
        "COUNT(*) AS n WHERE A HAVING COUNT(*) > 1",
        "COUNT(*) AS n WHERE A HAVING n.i > 1",
        "COUNT(*) AS n WHERE A HAVING n LIKE '1'",
        "COUNT(*) AS n WHERE A LIMIT 1",
    ],
)
def test_what_has_no_meaning_is_refused(rest: str) -> None:
    with pytest.raises(CelError):
        evaluate_totals(f"{_DECLARATION} SELECT TOTAL {rest}", [])


def test_labels_of_a_total_are_no_columns() -> None:
    text = f"{_DECLARATION} SELECT TOTAL COUNT(end_pos) AS n WHERE A AS end_pos"
    assert evaluate_totals(text, [{"type": "A"}]) == [{"end_pos": 0, "n": 1}]


# --- groups ---------------------------------------------------------------------------------------

_TIMED = "CREATE STREAM S { EVENT A { t: TIMESTAMP }, EVENT B { t: TIMESTAMP } } "


def _at(types: str, *seconds: int) -> list[dict[str, Any]]:
    start = dt.datetime(2026, 1, 1)
    return [
        {"type": name, "t": start + dt.timedelta(seconds=second)}
        for name, second in zip(types, seconds, strict=True)
    ]


def test_the_column_of_a_window_makes_spans() -> None:
    text = f"{_TIMED} SELECT TOTAL COUNT(*) AS n WHERE A ; B WITHIN 5 SECONDS [t] PER 10 SECONDS"
    midnight = dt.datetime(2026, 1, 1)
    assert evaluate_totals(text, _at("ABAB", 0, 1, 9, 10)) == [
        {"span_start": midnight, "span_end": midnight + dt.timedelta(seconds=10), "n": 1},
        {
            "span_start": midnight + dt.timedelta(seconds=10),
            "span_end": midnight + dt.timedelta(seconds=20),
            "n": 1,
        },
    ]


def test_spans_of_days() -> None:
    text = "CREATE STREAM S { EVENT A { y: DATE } } SELECT TOTAL COUNT(*) AS n WHERE A PER 2 DAYS"
    events = [{"type": "A", "y": day} for day in ("1969-12-30", "1969-12-31", "1970-01-01")]
    assert evaluate_totals(text, events, order_by="y") == [
        {"span_start": dt.datetime(1969, 12, 30), "span_end": dt.datetime(1970, 1, 1), "n": 2},
        {"span_start": dt.datetime(1970, 1, 1), "span_end": dt.datetime(1970, 1, 3), "n": 1},
    ]


def test_only_decided_matches_are_counted() -> None:
    text = f"{_TIMED} SELECT TOTAL COUNT(*) AS n WHERE A ; !B FOR 5 SECONDS"
    events = _at("AAA", 0, 3, 6)
    assert [row["end_pos"] for row in evaluate_totals(text, events, order_by="t")] == [0]
    closed = evaluate_totals(text, events, order_by="t", at_end="closed")
    assert [row["end_pos"] for row in closed] == [0, 1, 2]
    per_part = evaluate_totals(f"{text} PER PARTITION", events, order_by="t")
    assert per_part == [{"n": 1}]


def test_a_row_of_an_end_waits_for_all_its_matches() -> None:
    text = f"{_TIMED} SELECT TOTAL COUNT(*) AS n WHERE B OR (A ; B ; !A FOR 5 SECONDS)"
    events = _at("AB", 0, 1)
    assert evaluate_totals(text, events, order_by="t") == []
    assert evaluate_totals(f"{text} PER PARTITION", events, order_by="t") == [{"n": 1}]
    closed = evaluate_totals(text, events, order_by="t", at_end="closed")
    assert [row["n"] for row in closed] == [2]
    collapsed = text.replace("TOTAL COUNT(*) AS n", "COLLAPSED *")
    assert evaluate(collapsed, events, order_by="t") == []
    [row] = evaluate(collapsed, events, order_by="t", at_end="closed")
    assert (row.start, row.end, row.matches) == (0, 1, 2)


def test_simultaneous_events() -> None:
    text = f"{_TIMED} SELECT TOTAL COUNT(*) AS n WHERE A ; B"
    events = _at("AABAB", 0, 1, 1, 2, 2)
    rows = evaluate_totals(text, events, order_by="t", ties="simultaneous")
    assert [(row["end_pos"], row["n"]) for row in rows] == [(2, 1), (4, 2)]


# --- collapsed matches ----------------------------------------------------------------------------


def test_none_collapses_to_ends() -> None:
    text = f"{_TIMED} SELECT COLLAPSED NONE WHERE A ; B"
    rows = evaluate(text, _at("AABB", 0, 1, 2, 3))
    assert rows == [Match((), 0, 2, (), matches=2), Match((), 0, 3, (), matches=2)]


@pytest.mark.parametrize(
    "rest",
    [
        "COLLAPSED ANY * WHERE A",
        "ALL COLLAPSED * WHERE A",
        "COLLAPSED FIRST * WHERE A",
        "COLLAPSED A, COUNT(A) AS n WHERE A",
        "COLLAPSED x WHERE A AS x LIMIT 2",
        "COLLAPSED Matches WHERE A AS Matches",
    ],
)
def test_what_cannot_be_collapsed_is_refused(rest: str) -> None:
    with pytest.raises(CelError):
        evaluate(f"{_TIMED} SELECT {rest}", [])


@pytest.mark.parametrize(
    "items", ["TOTAL", "COLLAPSED", "TOTAL, x", "COLLAPSED[t]", "TOTAL.t AS COLLAPSED", "x AS y"]
)
def test_the_words_stay_names(items: str) -> None:
    label = "COLLAPSED" if items.startswith("COLLAPSED") else "TOTAL"
    if items == "x AS y":
        items, label = "COUNT(x) AS TOTAL", "y"
    text = f"{_TIMED} SELECT {items} WHERE (A AS x) AS {label}"
    assert len(evaluate(text, _at("A", 0))) == 1
