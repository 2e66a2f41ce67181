"""Random queries whose longest matches are runs of events, and a few that only look like these."""

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
