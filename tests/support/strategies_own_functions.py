"""Functions of one's own for `strategies`, and random calls of them.

They are the same in all files. They give the same by Python, for the reference, and by Numba: whole
numbers stay small, and real ones are added in the order of the array.
"""

from __future__ import annotations

import random

from given import callables, copied

TEXT = """
FEW = 2


def _total(x):
    found = 0.0
    for i in range(len(x)):
        found += float(x[i])
    return found


def fn_near(x, y):
    return abs(_total(x) - _total(y)) <= FEW


def fn_longer(x, flags):
    found = 0
    for i in range(len(flags)):
        found += 1 if flags[i] else 0
    return len(x) - found


def fn_ends(x):
    return float(x[-1]) - float(x[0]) if len(x) else -1.0


def fn_rising(x):
    for i in range(1, len(x)):
        if not x[i] > x[i - 1]:
            return False
    return True


def fn_days(times, n):
    return (times[-1] - times[0]) // 86_400_000_000 + len(n) if len(times) else -len(n)
"""
GIVEN = copied(TEXT)
CALLABLES = callables(TEXT)
DECLARATIONS = """\
FUNCTION fn_near(DOUBLE[], DOUBLE[]): BOOLEAN
FUNCTION fn_longer(LONG[], BOOLEAN[]): INT
FUNCTION fn_ends(FLOAT[]): DOUBLE
FUNCTION fn_rising(DOUBLE[]): BOOLEAN
FUNCTION fn_days(TIMESTAMP[], LONG[]): LONG
"""
_REAL = ("value", "value", "id", "number", "ratio", "ts")


def number_call(rng: random.Random, x: str, y: str, *, prior: bool) -> str:
    """A call that is a number; `prior`: it may be of what lies before."""
    before = "PRIOR " if prior and rng.random() < 0.3 else ""
    y = x if before else y
    return rng.choice(
        (
            f"fn_ends({before}{x}.{rng.choice(('ratio', 'number'))})",
            f"fn_longer({before}{x}.number, {y}.flag)",
            f"fn_days({before}{x}.day, {y}.number)",
        )
    )


def truth_call(rng: random.Random, x: str, y: str) -> str:
    """A call that is a condition, or a comparison of one."""
    text = rng.choice(
        (
            f"fn_near({x}.{rng.choice(_REAL)}, {y}.{rng.choice(_REAL)})",
            f"fn_near({x}.value, {x}.id)",
            f"fn_rising({rng.choice(('', 'PRIOR '))}{x}.{rng.choice(_REAL)})",
        )
    )
    return rng.choice((text, text, f"NOT {text}", f"{text} = {x}.flag", f"{text} IS NULL"))
