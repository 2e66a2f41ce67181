"""Random queries whose conditions count the events before one: COUNT(PRIOR x)."""

from __future__ import annotations

import random
from typing import Any

DECLARATION = (
    "CREATE STREAM S {\n"
    + ",\n".join(
        f"  EVENT {name} {{ id: INT, value: DOUBLE, big: LONG, ts: LONG }}" for name in "ABC"
    )
    + "\n}\n"
)
_FORMULAS = (
    "((A AS x)+ ; B AS y)",
    "((A AS x)+ ; B AS y)",
    "(B AS y ; (A AS x)+)",
    "((A AS x OR B AS x)+ ; C AS y)",
    "((A AS x)+ ; (B AS x)+ ; C AS y)",
    "(A AS x)+",
    "((A AS x)+ ; C? ; B AS y)",
    "((A AS x)+ OR (B AS y ; A AS x) OR C)",
    "(C ; (A AS x):+ ; B AS y)",
    "(((A AS x)+ ; B AS y) ; (A AS z)+)",
    "((A AS x ; B AS w)+ ; C AS y)",
    "(((A AS x)+ : B AS y)+)",
    "(A OR B OR C)+ AS x",
)
_SIDES = (
    *("0", "1", "2", "3", "1.5"),
    *("x.id", "x.value", "x.id + 1", "x.value * 2", "x.big"),
    *("y.id", "y.value", "x.id - y.id"),
)


def _condition(rng: random.Random) -> str:
    count, side = "COUNT(PRIOR x)", rng.choice(_SIDES)
    operator = rng.choice(("<", "<=", ">", ">=", "=", "<>"))
    found = f"{count} {operator} {side}" if rng.random() < 0.6 else f"{side} {operator} {count}"
    return rng.choice(
        (
            *(found,) * 10,
            f"{found} OR x.value > {rng.choice((1, 2))}",
            f"x.id < y.id OR {found}",
            f"{count} BETWEEN {rng.choice((0, 1))} AND x.id",
            f"x.id BETWEEN {count} AND 3",
            f"NOT {found}",
            f"{count} IN (1, 2)",
        )
    )


def counting_file(rng: random.Random) -> str:
    """A file with the queries `one`, its union `united` and its totals `counted`."""
    conditions = [_condition(rng) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.2:
        more = ("x.value > PREV(x.value)", "COUNT(x) < 4", "x.id <= y.id")
        conditions.append(rng.choice(more))
    body = f"FROM S WHERE {rng.choice(_FORMULAS)} FILTER {' AND '.join(conditions)}"
    body += rng.choice(("", "", " PARTITION BY id"))
    body += rng.choice(("", " WITHIN 4 EVENTS", " WITHIN 6 [ts]"))
    return (
        f"{DECLARATION}QUERY one: SELECT * {body}\nQUERY united: SELECT COLLAPSED * {body}\n"
        f"QUERY counted: SELECT TOTAL COUNT(*) AS n, COUNT(x) AS m, MAX(x.id) AS i {body}\n"
    )


def counted_events(rng: random.Random) -> list[dict[str, Any]]:
    """A few events, of which some have no number, or one that is none."""
    real = (0.5, 1.0, 2.0, 2.5, 3.0, None, float("nan"), float("inf"))
    return [
        {
            "type": rng.choice("AAABC"),
            "id": rng.choice((1, 2, 3, 1, 2, 3, 0, 5, None)),
            "value": rng.choice(real),
            "big": rng.choice((1, 2, 3, 10**12, -5, None)),
            "ts": number // 2,
        }
        for number in range(rng.randint(5, 9))
    ]
