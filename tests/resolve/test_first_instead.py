"""The warning about `X ; !Y ; Y`: what it offers has the same matches, and it comes only there."""

from __future__ import annotations

import random

import pytest
from reference import difference, evaluate

import celc

STREAM = """CREATE STREAM S {
  EVENT A { k: INT, v: INT }, EVENT B { k: INT, v: INT }, EVENT C { k: INT, v: INT }
}
SELECT * FROM S WHERE """
# What is offered for each `!Y ; Y`.
OFFERED = {
    "A ; !B ; B": "FIRST B",
    "A ; !A ; A": "FIRST A",
    "(A ; !(B AS n) ; B AS b) : C": "FIRST (B AS b)",
    "A ; !(B OR C) ; (B OR C) AS x ; B": "FIRST ((B OR C) AS x)",
    "A ; C ; !(B FILTER B.v > 1) ; (B FILTER B.v > 1)": "FIRST (B FILTER B.v > 1)",
    "(A AS a ; !(B AS n FILTER n.k = a.k) ; B AS b) FILTER a.k = b.k AND b.v > 1": (
        "FIRST (B AS b FILTER b.k = a.k)"
    ),
    "A AS a ; !(B AS n FILTER n.k = a.k AND a.v < n.v) ; (B AS b FILTER b.v > a.v AND b.k = a.k)": (
        "FIRST (B AS b FILTER b.k = a.k AND a.v < b.v)"
    ),
    "(A AS x ; !(A AS n FILTER n.v >= x.v) ; A AS y) FILTER y.v >= x.v": (
        "FIRST (A AS y FILTER y.v >= x.v)"
    ),
    "(A AS a ; !(B FILTER B[k = 0 OR v = 1] AND B.v < a.v) ; B) FILTER B[v = 1 OR k = 0] "
    "AND B.v < a.v": "FIRST (B FILTER B[k = 0 OR v = 1] AND B.v < a.v)",
    "((A AS a ; !(B AS n FILTER n.k = a.k) ; (B AS b FILTER b.k = a.k))+ ; C) FILTER b.v < C.v": (
        "FIRST (B AS b FILTER b.k = a.k)"
    ),
    "((A AS a OR C) ; !(B AS n FILTER n.k = a.k) ; B AS b ; C) FILTER b.k = a.k": (
        "FIRST (B AS b FILTER b.k = a.k)"
    ),
    "!C FOR 2 EVENTS ; A ; !((B AS n FILTER n.v = 1) FILTER n.k = 0) ; "
    "((B AS b FILTER b.k = 0) FILTER b.v = 1)": "FIRST (B AS b FILTER (b.v = 1) AND (b.k = 0))",
}
NOT_OFFERED = [
    "A ; !B ; C",
    "A ; !(B ; C) ; (B ; C)",  # FIRST takes what ends first
    "A ; !(B : B) ; (B : B)",
    "A ; !B+ ; B",
    "A ; !(B FILTER B.v > 1) ; B",
    "A ; !B ; (B FILTER B.v > 1)",
    "A ; !(B AS n FILTER n.v < b.v) ; B AS b",  # what is absent sees the event after it
    "(A ; !(B AS n FILTER n.k = c.k) ; B AS b ; C AS c) FILTER b.k = c.k",
    "(A AS a ; !(B AS n FILTER n.k = a.k) ; B AS b ; C AS a) FILTER b.k = a.k",
    "(A AS a ; !(B AS n FILTER n.k = a.k) ; B AS b ; B AS b) FILTER b.k = a.k",
    "(A AS a ; !(B AS n FILTER n.k = a.k) ; B AS b)+ FILTER b.k = a.k",
    "((A AS a ; !(B AS n FILTER n.k = a.k) ; B AS b) OR C) FILTER b.k = a.k",
    "((A)+ AS a ; !(B AS n FILTER n.v > MAX(a.v)) ; B AS b) FILTER b.v > MAX(a.v)",
    "A ; FIRST B",
]


def offered(formula: str, **options: object) -> list[celc.Diagnostic]:
    found = celc.check(STREAM + formula, **options)  # type: ignore[arg-type]
    assert not [one for one in found if one.severity == "error"], found
    return [one for one in found if one.code == "first-instead"]


@pytest.mark.each(3)
@pytest.mark.parametrize("formula", OFFERED)
def test_what_is_offered_has_the_same_matches(formula: str) -> None:
    text = STREAM + formula
    (warning,) = offered(formula)
    (fix,) = warning.fixes
    assert (warning.span, fix.text) == (fix.span, OFFERED[formula])
    mended = text[: fix.span.start] + fix.text + text[fix.span.end :]
    before, after = ({one.code for one in celc.check(one)} for one in (text, mended))
    assert after <= before - {"first-instead"}
    rng = random.Random(formula)
    matches = 0
    for _ in range(60):
        rows = [
            {"type": rng.choice("AABBC"), "k": rng.randrange(2), "v": rng.choice((0, 1, 2, None))}
            for _ in range(8)
        ]
        expected = evaluate(text, rows)
        assert not difference(evaluate(mended, rows), expected), rows
        matches += len(expected)
    assert matches >= 3


def test_nothing_is_offered_elsewhere() -> None:
    for formula in NOT_OFFERED:
        assert not offered(formula), formula


def test_events_may_share_an_instant() -> None:
    formula = "(A AS a ; !(B AS n FILTER n.k = a.k) ; B AS b) FILTER b.k = a.k"
    instants = {"order_by": ("t",), "ties": "simultaneous"}
    text = STREAM.replace("v: INT", "v: INT, t: INT") + formula
    (warning,) = [one for one in celc.check(text, **instants) if one.code == "first-instead"]  # type: ignore[arg-type]
    (fix,) = warning.fixes
    mended = text[: fix.span.start] + fix.text + text[fix.span.end :]
    rng = random.Random(1)
    for _ in range(60):
        times = sorted(rng.choices(range(5), k=8))
        rows = [{"type": rng.choice("AB"), "k": rng.randrange(2), "t": time} for time in times]
        expected = evaluate(text, rows, **instants)  # type: ignore[arg-type]
        assert not difference(evaluate(mended, rows, **instants), expected)  # type: ignore[arg-type]


def test_nothing_is_offered_where_first_is_an_error_or_events_last() -> None:
    assert not offered("A ; !B ; B", first_order=True)
    rows = STREAM.replace("SELECT", "QUERY q: SELECT") + "A ; B QUERY r: SELECT * FROM q WHERE "
    found = celc.check(f"{rows} q AS x ; !q ; q AS y", order_by=("v",))
    assert {one.code for one in found} == {"by-definition"}
