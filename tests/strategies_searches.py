"""Random queries whose conditions make the listing search: sums, neighbours of one label, and the
least and greatest of the values before, beside selectors, windows and CONSUME.

Sums are of attributes of all numeric types, so that they round, wrap around, are NULL, infinite or
no number; limits are chosen so that some matches reach them exactly.
"""

from __future__ import annotations

import random

_NUMBERS = ("value", "value", "number", "id", "ratio")
_ORDERS = (">", ">=", "<", "<=", "=", "!=", ">", ">=")


def searching_query(rng: random.Random) -> str:
    """A query about the declaration of `strategies_across`, without it."""
    formula, labels = _formula(rng)
    terms = [_condition(rng, labels) for _ in range(rng.choice((1, 1, 1, 2)))]
    joined = rng.choice((" AND ", " AND ", " OR ")).join(terms)
    selector = rng.choice(("", "", "LAST ", "LAST ", "LAST ", "NXT ", "MAX ", "ANY "))
    shown = rng.choice(("*", "*", "*", labels[0]))
    lines = [f"SELECT {selector}{shown}", "FROM S", f"WHERE {formula} FILTER {joined}"]
    if rng.random() < 0.2:
        lines.append("PARTITION BY id")
    size = rng.choice((3, 4, 5, 6, 8))
    lines.append(rng.choice((f"WITHIN {size} EVENTS", f"WITHIN {size + 2} [ts]", "")))
    if rng.random() < 0.15:
        lines.append("CONSUME BY PARTITION" if "PARTITION BY id" in lines else "CONSUME BY ANY")
    if rng.random() < 0.1 and not selector:
        lines.append("LIMIT 2")
    return "\n".join(filter(None, lines)) + "\n"


def _formula(rng: random.Random) -> tuple[str, list[str]]:
    """A formula, and the labels that the conditions can name."""
    condition = _neighbours(rng, "x")
    return rng.choice(
        (
            ("((A AS x)+ ; B)", ["x"]),
            ("((A AS x)+ ; B)", ["x"]),
            ("((A AS x)+)", ["x"]),
            ("((A AS x)+ ; B AS y)", ["x", "y"]),
            ("((A AS x)+ ; (B AS y)+)", ["x", "y"]),
            ("(C AS y ; (A AS x)+ ; B)", ["x", "y"]),
            ("((A AS x ; C AS y)+ ; B)", ["x", "y"]),
            ("(((A OR C) AS x)+ ; B AS y)", ["x", "y"]),
            ("((A AS x ; A AS y)+ ; B)", ["x", "y"]),
            (f"(((A AS x)+ FILTER {condition}) ; B AS y)", ["x", "y"]),
            (f"((((A AS x)+ FILTER {condition}) ; C)+ ; B AS y)", ["x", "y"]),
            (f"(((A AS x)+ FILTER {condition}) ; WITHIN[3 EVENTS](C AS y ; B))", ["x", "y"]),
            ("((A AS x)+ ; !C ; B)", ["x"]),
        )
    )


def _condition(rng: random.Random, labels: list[str]) -> str:
    if rng.random() < 0.35:
        return _neighbours(rng, rng.choice(labels))
    order = rng.choice(_ORDERS)
    left, right = _sum(rng, labels), _sum(rng, labels)
    limit = rng.choice(("1", "2", "3", "4.5", "0", "-1", "6", "9007199254740992", "2.5"))
    one = f"{rng.choice(('SUM', 'SUM', 'AVG'))}({labels[0]}.{rng.choice(_NUMBERS)})"
    return rng.choice(
        (
            f"{one} {order} {limit}",
            f"{one} {order} {limit}",
            f"{one} {order} {limit}",
            f"{limit} {order} {one}",
            f"{left} {order} {right}",
            f"{left} + {right} {order} {limit}",
            f"{left} - 2 * {right} {order} {limit}",
            f"-{left} / 2 {order} {limit} - {right}",
            f"COUNT({labels[0]}) {order} COUNT({labels[-1]})",
            f"COUNT({labels[0]}) * 2 {order} SUM({labels[-1]}.{rng.choice(_NUMBERS)})",
            f"{one} BETWEEN 1 AND {limit}",
        )
    )


def _sum(rng: random.Random, labels: list[str]) -> str:
    return f"SUM({rng.choice(labels)}.{rng.choice(_NUMBERS)})"


def _neighbours(rng: random.Random, label: str) -> str:
    order = rng.choice((">", ">", ">=", "<", "=", "!="))
    name, other = rng.choice(_NUMBERS), rng.choice(_NUMBERS)
    return rng.choice(
        (
            f"{label}.{name} {order} PREV({label}.{name})",
            f"{label}.{name} {order} PREV({label}.{other})",
            f"{label}.{name} {order} PREV({label}.{other})",
            f"{label}.{name} + 1 {order} PREV({label}.{name}, 2)",
            f"{label}.{name} + PREV({label}.{name}) {order} PREV({label}.{name}, 2)",
            f"{label}.{name} {order} {rng.choice(('MIN', 'MAX'))}(PRIOR {label}.{name})",
        )
    )
