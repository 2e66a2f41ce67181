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
