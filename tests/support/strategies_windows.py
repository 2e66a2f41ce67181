"""Random formulas in which a part in a window must be absent: `!(WITHIN[w](φ))`, and UNLESS."""

from __future__ import annotations

import random

_TYPES = ("A", "B", "C")


def absent_window_query(rng: random.Random) -> str:
    """A query about the declaration of `strategies`, without it."""
    size = rng.choice((f"{rng.randint(0, 5)} [ts]", f"{rng.randint(0, 4)} EVENTS"))
    absent = f"WITHIN[{size}]({_part(rng, 2)})"
    left, right, other = _part(rng, 1), _part(rng, 1), rng.choice(_TYPES)
    formula = rng.choice(
        (
            f"{left} ; !({absent}) ; {right}",
            f"({left} ; {right}) UNLESS {absent}",
            f"({left} ; !({absent}) ; {right})+",
            f"({left} ; !({absent}) ; {right}) ALL {other}",
            f"{other} ; ({left} UNLESS {absent}) ; {right}",
            f"{left} ; !({absent}) ; {right} ; !({absent}) ; {other}",
            f"WITHIN[4 [ts]]({left} ; !({absent}) ; {right}) ; {other}",
        )
    )
    lines = [f"SELECT {rng.choice(('*', '*', 'NXT *', 'LAST *', 'NONE'))} FROM S WHERE {formula}"]
    lines += rng.choice(([], ["PARTITION BY id"], ["PARTITION BY id"], ["WITHIN 6 [ts]"]))
    lines += rng.choice(([], [], ["CONSUME BY ANY"]))
    return "\n".join(lines) + "\n"


def _part(rng: random.Random, depth: int) -> str:
    form = rng.random()
    if depth == 0 or form < 0.2:
        return rng.choice((*_TYPES, "((A OR B) AS y FILTER y IS NOT B)"))
    if form < 0.5:
        optional = rng.choice(("", "", "?"))
        return f"({_part(rng, depth - 1)}{optional} ; {_part(rng, depth - 1)})"
    if form < 0.7:
        return f"({_part(rng, depth - 1)} OR {_part(rng, depth - 1)})"
    return f"({_part(rng, depth - 1)}){rng.choice(('+', '+', '{2}', '{2,}', '{1,2}', '{2,3}'))}"
