"""Random queries whose conditions further events keep TRUE, or with which too many are too many:
numbers of different values, sums of what is not below 0, least and greatest values, under `+` and
beside all selectors, windows, keys and CONSUME."""

from __future__ import annotations

import random

_ORDERS = (">=", ">=", ">=", ">", "<=", "<", "=", "!=")
_VALUES = ("value", "id", "name", "number", "ratio", "flag", "day", "code")
_SELECTORS = (
    *("", "", "ANY ", "ANY ", "NXT ", "NXT ", "LAST ", "LAST ", "MAX ", "MAX "),
    *("FIRST ", "FIRST ", "LONGEST ", "LONGEST ", "FIRST DISJOINT ", "LONGEST DISJOINT "),
)


def growing_query(rng: random.Random) -> str:
    """A query about the declaration of `strategies_across`, without it."""
    conditions = [_growing(rng, "x") for _ in range(rng.choice((1, 1, 1, 2)))]
    together = rng.choice((" AND ", " AND ", " AND ", " OR ")).join(conditions)
    on_each = rng.choice(("", "", "", " AND x.value > 0", " AND x.id >= 1"))
    if any("SUM" in one for one in conditions) and rng.random() < 0.8:
        on_each = " AND x.id >= 0 AND x.value >= 0 AND 0 <= x.ratio"
    condition = f"({together}){on_each}"
    formula, labels = _formula(rng, condition)
    if "y" in labels and rng.random() < 0.4:
        formula = f"({formula}) FILTER {_across(rng)}"
    selector = rng.choice(_SELECTORS)
    shown = rng.choice(("*", "*", "*", "x", "NONE"))
    lines = [f"SELECT {selector}{shown}", "FROM S", f"WHERE {formula}"]
    if rng.random() < 0.2:
        lines.append("PARTITION BY id")
    size = rng.choice((3, 4, 5, 6, 8, 12))
    lines.append(rng.choice((f"WITHIN {size} EVENTS", f"WITHIN {size + 2} [ts]", "")))
    per_start = "FIRST" in selector or "LONGEST" in selector
    if rng.random() < 0.15 and not per_start:
        lines.append("CONSUME BY PARTITION" if "PARTITION BY id" in lines else "CONSUME BY ANY")
    if rng.random() < 0.1 and not selector:
        lines.append("LIMIT 2")
    return "\n".join(filter(None, lines)) + "\n"


def growing_union(rng: random.Random) -> str:
    """A query with COLLAPSED about the declaration of `strategies_across`, without it; of most,
    the greatest matches tell how many matches there are."""
    if rng.random() < 0.25:
        first, *rest = growing_query(rng).splitlines()
        rest = [line for line in rest if not line.startswith("LIMIT")]
        return "\n".join([f"SELECT COLLAPSED {first.split()[-1]}", *rest]) + "\n"
    least = rng.choice((1, 2, 2, 2, 3))
    order = rng.choice((">=", ">=", ">"))
    condition = f"COUNT(DISTINCT x.{rng.choice(_VALUES)}) {order} {least - (order == '>')}"
    condition += rng.choice(("", "", "", "", " AND x.value > 0", " AND COUNT(x) >= 2"))
    formula, fixed = rng.choice(
        (
            ("(A AS x)+", ""),
            ("(A AS x)+", ""),
            ("(A AS x)+ ; B", ""),
            ("C AS y ; (A AS x)+", "y"),
            ("C AS y ; (A AS x)+ ; B AS z", "yz"),
            ("C AS y ; (A AS x)+ ; B AS z", "yz"),
            ("C AS y ; C ; (A AS x)+ ; B", "y"),
            ("(C AS y) : (A AS x)+ ; B", "y"),
            ("A AS y ; (A AS x)+ ; B", "y"),
            ("((A OR C) AS x)+", ""),
            ("((A OR C) AS x)+ ; B AS y", "y"),
            ("((A OR (A FILTER A.id = 1)) AS x)+ ; B", ""),
            ("(A AS x)+ ; C ; (B AS y)+", ""),
        )
    )
    for label in fixed:
        if rng.random() < 0.3:
            condition += f" AND x.id = {label}.id"
    if rng.random() < 0.1:
        condition += " AND x.id = PREV(x.id)"
    shown = rng.choice(("*", "*", "*", "*", "x", "NONE"))
    lines = [f"SELECT COLLAPSED {shown}", "FROM S", f"WHERE ({formula}) FILTER {condition}"]
    lines += rng.choice(([], [], [], ["PARTITION BY id"]))
    size = rng.choice((4, 6, 8, 12))
    lines.append(rng.choice((f"WITHIN {size} EVENTS", f"WITHIN {size + 2} [ts]", "")))
    if rng.random() < 0.1:
        lines.append("CONSUME BY PARTITION" if "PARTITION BY id" in lines else "CONSUME BY ANY")
    return "\n".join(filter(None, lines)) + "\n"


def _formula(rng: random.Random, condition: str) -> tuple[str, str]:
    """A formula with a condition on its label x, and the labels that others can name."""
    return rng.choice(
        (
            (f"(A AS x)+ FILTER {condition}", "x"),
            (f"(A AS x)+ FILTER {condition}", "x"),
            (f"((A AS x)+ ; B) FILTER {condition}", "x"),
            (f"(C AS y ; (A AS x)+ ; B) FILTER {condition}", "xy"),
            (f"(C AS y ; (A AS x)+ ; B) FILTER {condition}", "xy"),
            (f"((A AS x)+ ; (C AS y)+) FILTER {condition}", "xy"),
            (f"((A AS x)+ FILTER {condition}) OR (C ; B)", "x"),
            (f"(((A AS x)+ FILTER {condition}) OR C) ; B", "x"),
            (f"((A OR C) AS x)+ FILTER {condition}", "x"),
            (f"((A AS x){{2,4}} ; B) FILTER {condition}", "x"),
            (f"((A AS x){{2,}} ; B) FILTER {condition}", "x"),
            (f"((A AS x ; C)+ ; B) FILTER {condition}", "x"),
            (f"((A AS x)+ ; C ; (A AS x)+) FILTER {condition}", "x"),
            (f"(((A AS x)+ FILTER {condition}) ; C)+ ; B", "x"),
            (f"((A AS x):+ ; B) FILTER {condition}", "x"),
            (f"((A AS x)+ ; !C ; B) FILTER {condition}", "x"),
            (f"((A AS x)+ ; (A AS y)+) FILTER {condition}", "xy"),
        )
    )


def _growing(rng: random.Random, label: str) -> str:
    order, least = rng.choice(_ORDERS), rng.choice((1, 2, 2, 3, 3, 4))
    value = rng.choice(_VALUES)
    number = rng.choice(("value", "id", "ratio", "number"))
    return rng.choice(
        (
            f"COUNT(DISTINCT {label}.{value}) {order} {least}",
            f"COUNT(DISTINCT {label}.{value}) >= {least}",
            f"{least} <= COUNT(DISTINCT {label}.{value})",
            f"COUNT(DISTINCT {label}.value) BETWEEN {least} AND {least + 1}",
            f"COUNT(DISTINCT {label}.value) {order} {least}.5",
            f"SUM({label}.{number}) {rng.choice(('>', '>='))} {least}",
            f"SUM({label}.{number}) {order} {least}",
            f"MAX({label}.value) {order} {least}",
            f"MIN({label}.{number}) {order} {least}",
            f"COUNT({label}) {order} {least}",
            f"MAX({label}.value) {order} MIN({label}.id)",
        )
    )


def _across(rng: random.Random) -> str:
    return rng.choice(
        (
            "x.id = y.id",
            "x.id = y.id",
            "x.value < y.value",
            f"MAX(x.value) {rng.choice(('>=', '>', '<'))} y.value",
            f"MIN(x.id) {rng.choice(('<=', '<', '>'))} y.id",
            f"COUNT(DISTINCT x.value) {rng.choice(('>=', '>', '<'))} y.id",
            "COUNT(DISTINCT x.id) >= COUNT(DISTINCT y.id)",
            "SUM(x.id) >= y.id",
        )
    )
