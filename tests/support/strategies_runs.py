"""Random queries whose longest matches are runs of events, or runs of neighbours that adjoin, and
queries that only look like these."""

from __future__ import annotations

import random


def run_query(rng: random.Random) -> str:
    """A query about the declaration of `strategies` with `ts` of type DOUBLE, without it."""
    choice = rng.choice(("LONGEST", "LONGEST", "LONGEST DISJOINT", "LONGEST DISJOINT"))
    event = rng.choice(("A", "A", "(A OR B)", "(A FILTER A.value > 1)", "(A OR B AS y)"))
    contiguous = rng.random() < 0.4
    rounds = rng.choice(("+", "+", "+", "{2,}", "{3,}", "{1,3}"))
    joint = ":" if contiguous else ""
    formula = f"({event} AS x){joint}{rounds}"
    conditions = []
    if rng.random() < 0.6:
        bound = rng.choice((0, 1, 2, 2.5))
        conditions.append(
            rng.choice(
                (
                    f"x.ts - PREV(x.ts) <= {bound}",
                    f"{bound} > x.ts - PREV(x.ts)",
                    f"x.ts <= PREV(x.ts) + {bound}",
                )
            )
        )
    if rng.random() < (0.5 if contiguous else 0.1):
        conditions.append(
            rng.choice(("x.value >= PREV(x.value)", "x.name = PREV(x.name)", "x.id <> PREV(x.id)"))
        )
    if rng.random() < 0.3:
        conditions.append(rng.choice(("COUNT(x) >= 2", "COUNT(x) > 2", "x.value > 1")))
    if rng.random() < 0.1:
        conditions.append("x.ts - PREV(x.ts, 2) <= 3")
    where = f"({formula}) FILTER {' AND '.join(conditions)}" if conditions else formula
    lines = [f"SELECT {choice} {rng.choice(('*', 'x', 'NONE', 'COUNT(x) AS n'))}", "FROM S"]
    lines.append(f"WHERE {where}")
    if rng.random() < 0.4:
        lines.append("PARTITION BY id")
    if rng.random() < 0.5:
        lines.append(f"WITHIN {rng.choice((2, 3, 5))} {rng.choice(('EVENTS', '[ts]'))}")
    if rng.random() < 0.1:
        lines.append("LIMIT 1")
    return "\n".join(lines) + "\n"


def adjoining_query(rng: random.Random) -> str:
    """A query about the declaration of `strategies` whose matches are runs that adjoin, mostly."""
    labels = ("x", "y", "z", "w")[: rng.choice((2, 2, 3, 3, 4))]
    gap = " ; " if rng.random() < 0.1 else " : "
    parts = [_part(rng, label) for label in labels]
    formula = gap.join(parts)
    if rng.random() < 0.15:
        formula = f"({formula}) OR ({gap.join(_part(rng, label) for label in labels)})"
    if rng.random() < 0.1:
        formula = f"({formula}):+"
    conditions = [_between(rng, labels) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    if conditions:
        formula = f"({formula}) FILTER {' AND '.join(conditions)}"
    if hides := rng.random() < 0.25:  # the events of other labels count for no choice then
        formula = f"PROJECT[{rng.choice(labels)}]({formula})"
    if rng.random() < 0.3:
        length = rng.choice(("1 EVENTS", "2 EVENTS", "2 [ts]", "3 EVENTS"))
        absent = rng.choice(("A AS q", "(B AS q)", "(A OR B) AS q", "(A AS q ; B)"))
        if "; B" not in absent and not hides and rng.random() < 0.7:
            absent += f" FILTER q.value {rng.choice('<>')} {labels[0]}.value"
        formula = f"(!({absent}) FOR {length} ; {formula})"
    shown = rng.choice(("*", "*", "NONE", labels[0], labels[-1], ", ".join(labels[:2])))
    if rng.random() < 0.2:
        shown = f"FIRST({labels[0]}.ts) AS t1, COUNT({labels[-1]}) AS n"
    if hides:
        shown = rng.choice(("*", "NONE"))
    lines = [f"SELECT {rng.choice(('LONGEST', 'LONGEST', 'LONGEST DISJOINT'))} {shown}", "FROM S"]
    lines.append(f"WHERE {formula}")
    if rng.random() < 0.4:
        lines.append("PARTITION BY id")
    if rng.random() < 0.3:
        lines.append(f"WITHIN {rng.choice((2, 3, 5))} {rng.choice(('EVENTS', '[ts]'))}")
    if rng.random() < 0.1:
        lines.append("LIMIT 1")
    return "\n".join(lines) + "\n"


def _part(rng: random.Random, label: str) -> str:
    event = rng.choice(("A", "A", "A", "B", "(A OR B)", "(A FILTER A.value > 1)"))
    rounds = rng.choice(("", ":+", ":+", ":+", ":+", ":{2,}", ":{1,2}", rng.choice(("?", "+", ""))))
    part = f"({event} AS {label})"
    if rounds == "?" and label == "x":
        rounds = ":+"
    return part + rounds


def _between(rng: random.Random, labels: tuple[str, ...]) -> str:
    """A condition, mostly between neighbours."""
    place = rng.randrange(len(labels) - 1)
    one, other = labels[place], labels[place + 1]
    compared = rng.choice((">", "<", ">=", "<>", "="))
    return rng.choice(
        (
            f"{one}.value {compared} PREV({one}.value)",
            f"{other}.value {compared} PREV({other}.value)",
            f"FIRST({other}.value) {compared} LAST({one}.value)",
            f"FIRST({other}.value) {compared} LAST({one}.value)",
            f"FIRST({other}.name) {rng.choice(('=', '<>'))} LAST({one}.name)",
            f"FIRST({other}.value) {compared} {one}.value",
            f"{other}.value {compared} LAST({one}.value)",
            f"{other}.value {compared} {one}.value",
            f"LAST({other}.value) {compared} LAST({one}.id)",
            f"FIRST({one}.value) {compared} 2",
            f"LAST({one}.value) {compared} 2",
            f"LAST({labels[-1]}.value) {compared} FIRST({labels[0]}.value)",
            f"({one}.value {compared} PREV({one}.value) OR {one}.id = 1)",
            f"(FIRST({other}.value) {compared} LAST({one}.value) OR LAST({one}.value) IS NULL)",
            f"COUNT({one}) >= 2",
            f"{one}.value BETWEEN PREV({one}.value) AND 3",
        )
    )
