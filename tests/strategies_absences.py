"""Random absences before, inside and behind a formula whose conditions compare them with it.

Most are tied by an equality, so that they are looked for by a key; some of the labels that they are
compared with may have no event, or several.
"""

from __future__ import annotations

import random

from strategies_across import TYPES, WIDE_DECLARATION, AcrossConditions

_LABELS = ("x", "y", "z")


def correlated_absence_query(rng: random.Random) -> str:
    """A query about `WIDE_DECLARATION`, with it."""
    conditions = AcrossConditions(rng, lambda label: f"{label}.value >= 2", look_back=False)
    labels = list(_LABELS[: rng.choice((1, 2, 2, 3))])
    parts = [_part(rng, label) for label in labels]
    where = rng.choice(("before", "after", "after", "inside"))
    if where == "inside" and len(parts) == 1:
        where = "before"
    absent = f"!({_absent(rng, conditions, labels)})"
    length = rng.choice((f"{rng.randint(0, 6)} [ts]", f"{rng.randint(0, 5)} EVENTS"))
    joint = rng.choice((" ; ", " ; ", " ; ", " : "))
    if where == "before":
        formula = f"{absent} FOR {length} ; {joint.join(parts)}"
    elif where == "after":
        length = "" if rng.random() < 0.3 else f" FOR {length}"  # then as far as the window
        formula = f"{joint.join(parts)} ; {absent}{length}"
    else:
        place = rng.randrange(1, len(parts))
        left, right = " ; ".join(parts[:place]), " ; ".join(parts[place:])
        formula = f"{left} ; {absent} ; {right}"
    if len(labels) > 1 and rng.random() < 0.3:
        formula = f"({formula}) FILTER {conditions.tie(*rng.sample(labels, 2))}"
    chosen = rng.choice(("*", "*", "*", "NXT *", "LAST *"))
    lines = [f"SELECT {chosen} FROM S WHERE {formula}"]
    lines += rng.choice(([], ["PARTITION BY flag"]))
    window = rng.choice((f"WITHIN {rng.randint(2, 8)} [ts]", f"WITHIN {rng.randint(2, 8)} EVENTS"))
    lines += [window] if not length or rng.random() < 0.4 else []
    return WIDE_DECLARATION + "\n".join(lines) + "\n"


def _part(rng: random.Random, label: str) -> str:
    """An event with a label, most often; or several, or perhaps none."""
    one = rng.choice(TYPES[:3])
    atom = f"{one} AS {label}"
    forms = (*[atom] * 5, f"({atom})+", f"({atom} OR {rng.choice(TYPES[:3])})")
    return rng.choice((*forms, f"({one} OR D) AS {label}"))


def _absent(rng: random.Random, conditions: AcrossConditions, labels: list[str]) -> str:
    """An event FILTER what it has in common with the formula."""
    one = rng.choice((*(f"{name} AS w" for name in TYPES[:3]), "(B OR C) AS w"))
    terms = []
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        label = rng.choice(labels)
        makers = (conditions.tie, conditions.tie, conditions.tie, conditions.comparison)
        terms.append(rng.choice(makers)(*rng.choice((("w", label), (label, "w")))))
    if rng.random() < 0.2:
        terms.append("w.value >= 2")
    if rng.random() < 0.05:
        terms.append("w.id > 3 AND w.id IS NULL")  # of no event
    if rng.random() < 0.1:
        terms = rng.choice((["w.id > 3 AND w.id IS NULL"], ["w.value >= 2"]))
    return f"{one} FILTER {' AND '.join(terms)}"
