"""Random formulas of `:` and `;` beside each other, in loops and branches, under a small window.

What is between the two sides of `:` is lost at the next event, and what is between those of `;`
stays. Where both lead to the same event, matches of different ages meet, and the window may drop
some of them and not the others.
"""

from __future__ import annotations

import random

_TYPES = ("A", "B", "C")


def neighbour_query(rng: random.Random) -> str:
    """A query about the declaration of `strategies`, without it."""
    selector = rng.choice(("", "", "", "", "LAST ", "NXT ", "MAX ", "ANY "))
    formula = _mixed(rng) if rng.random() < 0.8 else _formula(rng, rng.choice((2, 3, 3, 4)))
    lines = [f"SELECT {selector}*", "FROM S", f"WHERE {formula}"]
    if rng.random() < 0.1:
        lines.append("PARTITION BY id")
    size = rng.choice((2, 3, 3, 4, 4, 5))
    lines.append(f"WITHIN {rng.choice((f'{size} EVENTS', f'{size + 2} [ts]'))}")
    if rng.random() < 0.1:
        lines.append("CONSUME BY ANY")
    return "\n".join(lines) + "\n"


def _mixed(rng: random.Random) -> str:
    """A formula in which one event can go on with neighbours and with what lies further back."""

    def part() -> str:
        one = rng.choice(_TYPES)
        if rng.random() < 0.75:
            return one
        other = rng.choice(_TYPES)
        return rng.choice(
            (f"({one} OR {other})", f"({one} : {other})", f"({one} ; {other})", f"({one})+")
        )

    a, b, c, d = (part() for _ in range(4))
    tail = rng.choice(("", "", f" ; {d}", f" : {d}"))
    return rng.choice(
        (
            f"{a} : ({b} ; {c})+{tail}",
            f"{a} : ({b} ; {c})+{tail}",
            f"({a} : {b} ; {c})+{tail}",
            f"({a} ; {b} : {c})+{tail}",
            f"({a} OR ({b} ; {c})) : {d} ; {part()}",
            f"({a} OR ({b} ; {c})) : ({d} ; {part()})+",
            f"{a} ; ({b} : {c}):+{tail}",
            f"{a} ; {b} : ({c} : {d}):+ : {part()} ; {part()}",
            f"({a} : ({b} ; {c})+) OR ({d} ; {part()}){tail}",
        )
    )


def _formula(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(_TYPES)
    form = rng.choice(("sequence",) * 6 + ("loop",) * 3 + ("either",) * 2)
    if form == "loop":
        return f"({_formula(rng, depth - 1)}){rng.choice(('+', '+', ':+'))}"
    left, right = _formula(rng, depth - 1), _formula(rng, rng.randrange(depth))
    if rng.random() < 0.5:
        left, right = right, left
    operator = {"sequence": rng.choice((" ;", " :")), "either": " OR"}[form]
    return f"({left}){operator} ({right})"
