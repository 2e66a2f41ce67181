"""Random formulas in which events take matches out of their states: absences, UNLESS, nested LAST,
loops with a neighbour at their edges, and SELECT FIRST.

Each event takes away all unmarked matches of a state or none, so most such queries are run on
piles that are emptied or moved whole. Windows are small, so that some matches have left them.
"""

from __future__ import annotations

import random

TYPES = ("A", "B", "C", "D")


def removal_query(rng: random.Random) -> str:
    """A query about the declaration of `strategies`, without it."""
    if rng.random() < 0.4:
        return _query_of_two_ages(rng)
    selector = rng.choice(("", "", "", "", "FIRST ", "STRICT ", "LAST ", "ANY "))
    formula = _formula(rng)
    if rng.random() < 0.2:
        formula = f"({formula}) UNLESS {_absent(rng)}"
    lines = [f"SELECT {selector}*", "FROM S", f"WHERE {formula}"]
    if rng.random() < 0.15:
        lines.append("PARTITION BY id")
    size = rng.choice((4, 5, 6, 8, 10))
    lines.append(rng.choice((f"WITHIN {size} EVENTS", f"WITHIN {size + 2} [ts]", "")))
    if rng.random() < 0.1:
        lines.append("CONSUME BY PARTITION" if "PARTITION BY id" in lines else "CONSUME BY ANY")
    return "\n".join(filter(None, lines)) + "\n"


def _query_of_two_ages(rng: random.Random) -> str:
    """A query in which matches of two states go on together that different events take away, and
    begin at different times; the window may drop some of them and not the others."""
    a, b, c, d = rng.sample(TYPES, 4)
    lost, other = rng.choice(((a, d), (d, a), (c, d), (d, c), (d, d), (f"({d} ; {c})", a)))
    one = rng.choice((f"{a} ; !{lost} ; {c}", f"(({a} ; {c}) UNLESS {lost})"))
    longer = f"{a} ; !{lost} ; {b} ; !{b} ; {c}"
    two = rng.choice((f"{b} ; !{other} ; {c}", f"{b} ; {c}", f"{b} : {c}", longer, longer))
    behind = rng.choice((f" ; {d}", f" ; {d}", f" ; {a}", "+", f":+ ; {b}"))
    formula = f"(({one}) OR ({two})){behind}"
    window = rng.choice((5, 6, 7, 8))
    return f"SELECT *\nFROM S\nWHERE {formula}\nWITHIN {window} EVENTS\n"


def idempotent_query(rng: random.Random) -> str:
    """A query about `WIDE_DECLARATION`, without it, with events that are only forbidden, by
    conditions on one event. No event is counted, so that a file of many queries reads one of
    several such events (`relevant_rows`)."""
    one, other, third = rng.choices(TYPES[:3], k=3)
    forbidden = [_forbidden(rng, name) for name in rng.choices(TYPES[:3], k=2)]
    without = rng.choice((forbidden[0], forbidden[0], f"({forbidden[0]} OR {forbidden[1]})"))
    formula = rng.choice(
        (
            f"{one} AS x ; !{without} ; {other} AS y",
            f"{one} AS x ; !{without} ; ({other} AS y)+",
            f"({one} AS x)+ ; !{without} ; {other} AS y",
            f"{one} AS x ; !{without} ; {third} AS z ; !{forbidden[1]} ; {other} AS y",
            f"({one} AS x ; {other} AS y) UNLESS {without}",
            f"(({one} AS x ; {other} AS y) UNLESS {without}) ; {third} AS z",
            f"({one} AS x ; !{without} ; {other} AS y) OR ({other} AS x ; {third} AS y)",
        )
    )
    filters = [_one_event(rng, label) for label in rng.choice(("", "x", "y", "xy"))]
    filters += ["y.id = x.id"] * (rng.random() < 0.2) + ["y.value > x.value"] * (rng.random() < 0.1)
    if filters:
        formula = f"({formula}) FILTER {' AND '.join(filters)}"
    chosen = rng.choice(("*", "*", "*", "FIRST *", "LAST *", "COLLAPSED *", "TOTAL COUNT(*) AS n"))
    lines = [f"SELECT {chosen}", "FROM S", f"WHERE {formula}"]
    lines += ["PARTITION BY flag"] * (rng.random() < 0.2)
    lines += rng.choice(([], [f"WITHIN {rng.choice((4, 6, 12))} [ts]"]))
    lines += ["CONSUME BY ANY"] * (chosen == "*" and rng.random() < 0.1)
    lines += [rng.choice(("PER END", "PER PARTITION"))] * chosen.startswith("TOTAL")
    return "\n".join(lines) + "\n"


def _forbidden(rng: random.Random, name: str) -> str:
    """An event of a type, most often with conditions."""
    conditions = [_one_event(rng, "w") for _ in range(rng.choice((0, 1, 1, 1, 2)))]
    joint = rng.choice((" AND ", " AND ", " OR "))
    return f"({name} AS w FILTER {joint.join(conditions)})" if conditions else name


def _one_event(rng: random.Random, label: str) -> str:
    """A condition on one event."""
    return label + rng.choice(
        (
            *(
                f".id {operator} {number}"
                for operator in ("=", "!=", "<", ">=")
                for number in (1, 2)
            ),
            ".id IN (1, 5000000000)",
            *(f".value {operator} 1" for operator in ("<", "<=", ">", ">=", "!=")),
            *(f".ratio {operator} 0.5" for operator in ("<", ">", "=")),
            *(".name = 'p'", ".name IN ('p', 'pq')", ".name LIKE 'p%'", ".name >= 'q'"),
            *(".name IS NULL", ".flag = TRUE", ".value IS NOT NULL", ".number + 1 > 2"),
        )
    )


def _part(rng: random.Random) -> str:
    one = rng.choice(TYPES)
    if rng.random() < 0.7:
        return one
    other = rng.choice(TYPES)
    return rng.choice((f"({one} OR {other})", f"({one})+", f"({one} ; {other})", f"({one}):+"))


def _absent(rng: random.Random) -> str:
    one, other = rng.choice(TYPES), rng.choice(TYPES)
    longer = f"({one} ; {other})", f"({one} ; {other} ; {rng.choice(TYPES)})", f"({one} : {other})"
    return rng.choice((one, one, one, f"({one} OR {other})", *longer))


def _formula(rng: random.Random) -> str:
    a, b, c, d = (_part(rng) for _ in range(4))
    without, less = _absent(rng), _absent(rng)
    tail = rng.choice(("", "", f" ; {d}", f" : {d}", f" ; !{less} ; {d}"))
    shapes = (
        f"{a} ; !{without} ; {b}{tail}",
        f"{a} ; !{without} ; {b}{tail}",
        f"{a} ; {b} ; !{without} ; {c}{tail}",
        f"{a} ; ({b} ; !{without} ; {c})+{tail}",
        f"({a} ; !{without} ; {b})+{tail}",
        f"({a} ; {b}+ ; {c}) UNLESS {without}",
        f"(({a} ; {b}) UNLESS {without}){tail or f' ; {d}'}",
        f"({a} OR ({b} ; !{without} ; {c})){tail or f' ; {d}'}",
        f"{a} : ({b} ; {c}):+{tail or f' ; {d}'}",
        f"({a} ; {b}):+ ; !{without} ; {d}",
        f"{a} : ({b} ; !{without} ; {c}):+ ; {d}",
        f"LAST({a} ; {b}){tail or f' ; {d}'}",
        f"{a} ; LAST({b} ; {c}){tail}",
    )
    return rng.choice(shapes)
