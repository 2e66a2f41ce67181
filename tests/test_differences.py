"""Differences of two queries: what is proved, what is found, and that both are true."""

from __future__ import annotations

import pytest

from celc.compare import Difference, Equal, Unknown, shortest_difference
from celc.diagnostics.source import Source

DECLARED = """CREATE STREAM S {
  EVENT A { id: LONG, x: INT, name: STRING, ts: TIMESTAMP },
  EVENT B { id: LONG, x: INT, name: STRING, ts: TIMESTAMP }
}
"""


def compared(old: str, new: str, longest: int = 8) -> Difference | Equal | Unknown:
    texts = Source("old.cel", DECLARED + old), Source("new.cel", DECLARED + new)
    return shortest_difference(*texts, deadline=60, longest=longest)


AB = "SELECT * WHERE (A AS a ; B AS b)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"{AB} FILTER a.x > 3", f"{AB} FILTER a.x >= 4"),
        (f"{AB} FILTER NOT (a.x > 3)", f"{AB} FILTER a.x <= 3"),
        (f"{AB} FILTER a.name IN ('u', 'v')", f"{AB} FILTER a.name = 'v' OR a.name = 'u'"),
        ("A OR B", "B OR A"),
        ("SELECT a WHERE (A AS a){2,3}", "SELECT a WHERE (A AS a ; A AS a) OR (A AS a){3}"),
        (f"{AB} WITHIN 60 SECONDS [ts]", f"{AB} WITHIN 1 MINUTE [ts]"),
        (f"{AB} FILTER a.x = b.x AND a.x > 3", f"{AB} FILTER a.x >= 4 AND a.x = b.x"),
        (
            "SELECT LAST * WHERE (A AS a ; B AS b) FILTER a.x > 3 WITHIN 1 MINUTE [ts]",
            "SELECT LAST * WHERE (A AS a ; B AS b) FILTER a.x >= 4 WITHIN 60 SECONDS [ts]",
        ),
        (
            "SELECT TOTAL COUNT(*) AS n WHERE (A AS a) FILTER a.x > 3",
            "SELECT TOTAL COUNT( * ) AS n WHERE (A AS a) FILTER a.x >= 4",
        ),
    ],
)
def test_equal_answers_are_proved(old: str, new: str) -> None:
    assert isinstance(compared(old, new), Equal)


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        (f"{AB} FILTER a.x > 3", f"{AB} FILTER a.x >= 3", 2),
        (AB, "SELECT * WHERE (A AS a : B AS b)", 3),
        ("A", "A OR B", 1),
        (f"{AB} WITHIN 5 EVENTS", f"{AB} WITHIN 7 EVENTS", 7),
        (f"{AB} WITHIN 10 SECONDS [ts]", f"{AB} WITHIN 11 SECONDS [ts]", 2),
        ("SELECT a WHERE (A AS a){4}", "SELECT a WHERE (A AS a){5}", 4),
        (f"{AB} FILTER a.x = b.x", f"{AB} FILTER a.x >= b.x", 2),
        (f"{AB} FILTER a.x = b.x", f"{AB} FILTER a.x = b.x OR a.x IS NULL", 2),
        (f"{AB} FILTER a.x > 3 AND b.x = a.x", f"{AB} FILTER a.x > 3 AND b.x >= a.x", 2),
        ("SELECT * WHERE A AS a ; !B ; A AS c", "SELECT * WHERE A AS a ; A AS c", 3),
        (
            "SELECT * WHERE A AS a ; !B FOR 1 MINUTE [ts]",
            "SELECT * WHERE A AS a ; !(B AS b FILTER b.x > 3) FOR 1 MINUTE [ts]",
            2,
        ),
        (
            f"{AB} FILTER b.ts > TIMESTAMP '2026-03-01 00:00:00' WITHIN 1 HOUR [ts]",
            f"{AB} FILTER b.ts >= TIMESTAMP '2026-03-01 00:00:00' WITHIN 1 HOUR [ts]",
            2,
        ),
        (f"{AB} PARTITION BY id", f"{AB} PARTITION BY name", 2),
        (AB, f"{AB} FILTER a.name LIKE 'x%'", 2),
    ],
)
def test_the_shortest_difference_is_found(old: str, new: str, events: int) -> None:
    found = compared(old, new)
    assert isinstance(found, Difference)
    assert len(found.events) == events
    assert found.shortest
    assert found.old.to_pylist() != found.new.to_pylist()


def test_what_is_not_proved_says_its_bound() -> None:
    old = f"{AB} FILTER a.x = b.x AND a.x > 3"
    found = compared(old, f"{old} AND b.x > 3", longest=2)
    assert isinstance(found, Unknown)
    assert found.bound.length == 2
    assert {"3", "4", "NULL"} <= {*found.bound.values["x"]}


def test_a_wrong_name_of_a_query_is_told() -> None:
    text = Source("old.cel", f"{DECLARED}QUERY one: {AB} QUERY two: {AB}")
    with pytest.raises(ValueError, match="'one', 'two'"):
        shortest_difference(text, text)
