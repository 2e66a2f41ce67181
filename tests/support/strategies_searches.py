"""Random queries whose conditions make the listing search: sums, neighbours of one label, and the
least and greatest of the values before, beside selectors, windows and CONSUME.

Sums are of attributes of all numeric types, so that they round, wrap around, are NULL, infinite or
no number; limits are chosen so that some matches reach them exactly.
"""

from __future__ import annotations

import random
from typing import Any

_NUMBERS = ("value", "value", "number", "id", "ratio")
_ORDERS = (">", ">=", "<", "<=", "=", "!=", ">", ">=")
_LIMITS: tuple[str, ...] = (
    "1",
    "2",
    "3",
    "4.5",
    "0",
    "0",
    "-1",
    "6",
    "9007199254740992",
    "2.5",
    "0.6",
    "0.3",
    "1.1",
)
_LIMITS = (*_LIMITS, "0.6000000000000001", "0.30000000000000004", "0.7999999999999999")
_TENTHS = (0.1, 0.2, 0.3, 0.4, 0.7)


def searching_query(rng: random.Random) -> str:
    """A query about the declaration of `strategies_across`, without it."""
    looks_back = rng.random() < 0.5
    formula, labels = _formula(rng)
    selector = rng.choice(("", "", "LAST ", "LAST ", "LAST ", "NXT ", "MAX ", "ANY "))
    shown = rng.choice(("*", "*", "*", labels[0]))
    where = f"{formula} FILTER {_condition(rng, labels, looks_back)}"
    if rng.random() < 0.1:
        where = f"((((A AS x)+) FILTER {_sum_condition(rng, ['x'])}) OR C AS y) ; B"
        shown = "*"
    lines = [f"SELECT {selector}{shown}", "FROM S", f"WHERE {where}"]
    if rng.random() < 0.15:
        lines.append("PARTITION BY id")
    size = rng.choice((4, 5, 6, 8, 12))
    lines.append(rng.choice((f"WITHIN {size} EVENTS", f"WITHIN {size + 2} [ts]", "")))
    if rng.random() < 0.15:
        lines.append("CONSUME BY PARTITION" if "PARTITION BY id" in lines else "CONSUME BY ANY")
    if rng.random() < 0.1 and not selector:
        lines.append("LIMIT 2")
    return "\n".join(filter(None, lines)) + "\n"


def in_tenths(rng: random.Random, events: list[dict[str, Any]]) -> None:
    """Give some streams values whose sums depend on the order in which they are added."""
    if rng.random() < 0.3:
        for event in events:
            if event["value"] is not None:
                event["value"] = rng.choice(_TENTHS)


def _formula(rng: random.Random) -> tuple[str, list[str]]:
    """A formula, and the labels that the conditions can name."""
    condition = _neighbours(rng, "x")
    return rng.choice(
        (
            ("((A AS x)+ ; B)", ["x"]),
            ("((A AS x)+ ; B)", ["x"]),
            ("((A AS x)+)", ["x"]),
            ("(A ; A+ ; B)", ["A"]),
            ("((A OR (A ; A ; C)) ; A+ ; B)", ["A"]),
            ("((A AS x)+ ; B AS y)", ["x", "y"]),
            ("((A AS x)+ ; (B AS y)+)", ["x", "y"]),
            ("(C AS y ; (A AS x)+ ; B)", ["x", "y"]),
            ("((A AS x ; C)+ ; B)", ["x"]),
            ("((A AS x ; C AS y)+ ; B)", ["x", "y"]),
            ("(((A OR C) AS x)+ ; B AS y)", ["x", "y"]),
            ("((A AS x ; A AS y)+ ; B)", ["x", "y"]),
            (f"(((A AS x)+ FILTER {condition}) ; B AS y)", ["x", "y"]),
            (f"((((A AS x)+ FILTER {condition}) ; C)+ ; B AS y)", ["x", "y"]),
            (f"(((A AS x)+ FILTER {condition}) ; WITHIN[3 EVENTS](C AS y ; B))", ["x", "y"]),
            ("((A AS x)+ ; !C ; B)", ["x"]),
        )
    )


def _condition(rng: random.Random, labels: list[str], looks_back: bool) -> str:
    """One or two conditions; `looks_back`: all on neighbours, of which failures are remembered."""
    terms = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        backward = looks_back or rng.random() < 0.2
        label = rng.choice(labels)
        terms.append(_neighbours(rng, label) if backward else _sum_condition(rng, labels))
    return rng.choice((" AND ", " AND ", " OR ")).join(terms)


def _sum_condition(rng: random.Random, labels: list[str]) -> str:
    order, limit = rng.choice(_ORDERS), rng.choice(_LIMITS)
    left, right = _sum(rng, labels), _sum(rng, labels)
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
            f"{left} {order} {labels[-1]}.value",
            f"COUNT({labels[0]}) {order} COUNT({labels[-1]})",
            f"COUNT({labels[0]}) * 2 {order} SUM({labels[-1]}.{rng.choice(_NUMBERS)})",
            f"{one} BETWEEN 1 AND {limit}",
            _whole(rng, labels),
            _whole(rng, labels),
            f"{_whole(rng, labels)} AND {_whole(rng, labels)}",
            f"{_whole(rng, labels)} OR {_whole(rng, labels)}",
        )
    )


def _whole(rng: random.Random, labels: list[str]) -> str:
    """A condition that a few numbers decide: sums of whole numbers, and the events with a value."""
    order, limit = rng.choice(_ORDERS), rng.choice(("0", "1", "2", "3", "5"))
    name, other = rng.choice(_NUMBERS), rng.choice(_NUMBERS)
    whole = [f"SUM({rng.choice(labels)}.{rng.choice(('number', 'id'))})" for _ in range(2)]
    label, last = labels[0], labels[-1]
    return rng.choice(
        (
            f"{whole[0]} = {limit}",
            f"{whole[0]} = {whole[1]} + {limit}",
            f"{whole[0]} {order} COUNT({last})",
            f"FIRST({label}.{name}) {order} LAST({label}.{name})",
            f"FIRST({label}.{name}) {order} LAST({last}.{other})",
            f"MIN({label}.{name}) {order} MAX({last}.{other})",
            f"MAX({label}.{name}) - MIN({label}.{name}) {order} {limit}",
            f"COUNT({label}) {order} MIN({last}.{name})",
            f"{whole[0]} IS NULL",
        )
    )


def _sum(rng: random.Random, labels: list[str]) -> str:
    return f"SUM({rng.choice(labels)}.{rng.choice(_NUMBERS)})"


def _neighbours(rng: random.Random, label: str) -> str:
    order = rng.choice((">", ">=", ">=", "<=", "=", "=", "!="))
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
