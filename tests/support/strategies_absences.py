"""Random absences before, inside and behind a formula whose conditions compare them with it.

Most are tied by an equality, so that they are looked for by a key; some of the labels that they are
compared with may have no event, or several. And branches of an OR, each with an absence of its own.
"""

from __future__ import annotations

import random

from strategies_across import TYPES, WIDE_DECLARATION, AcrossConditions

_LABELS = ("x", "y", "z")
_PER_START = ("FIRST ", "LONGEST ", "FIRST DISJOINT ", "LONGEST DISJOINT ")
_RULING_OUT = (
    "COUNT({one}) = 1",
    "COUNT({one}) = 0",
    "COUNT({one}) <= 1 AND COUNT({other}) >= 1",
    "FIRST({one}.value) > 1",
    "MAX({one}.value) >= 2",
    "{one}.value IS NULL AND {one}.value = 1",
    "{one} IS A",
    "COUNT({one}) > COUNT({other})",
    "{one}.id = {other}.id",
    "{one}.value >= 2 OR {other}.id = 1",
)
"""Conditions by which the matches of some branches of an OR are none, and others that are not."""


def correlated_absence_query(rng: random.Random) -> str:
    """A query about `WIDE_DECLARATION`, with it."""
    conditions = AcrossConditions(rng, lambda label: f"{label}.value >= 2", look_back=False)
    labels = list(_LABELS[: rng.choice((1, 2, 2, 3))])
    parts = [_part(rng, label) for label in labels]
    where = rng.choice(("before", "after", "after", "inside", "inside", "unless"))
    if where == "inside" and len(parts) == 1:
        where = "before"
    absent = f"!({_absents(rng, conditions, labels)})"
    length = rng.choice((f"{rng.randint(0, 6)} [ts]", f"{rng.randint(0, 5)} EVENTS"))
    joint = rng.choice((" ; ", " ; ", " ; ", " : "))
    if where == "before":
        formula = f"{absent} FOR {length} ; {joint.join(parts)}"
    elif where == "after":
        length = "" if rng.random() < 0.3 else f" FOR {length}"  # then as far as the window
        formula = f"{joint.join(parts)} ; {absent}{length}"
    elif where == "unless":
        formula = f"({joint.join(parts)}) UNLESS ({absent.removeprefix('!')})"
    else:
        place = rng.randrange(1, len(parts))
        left, right = " ; ".join(parts[:place]), " ; ".join(parts[place:])
        formula = f"{left} ; {absent} ; {right}"
    if len(labels) > 1 and rng.random() < 0.3:
        formula = f"({formula}) FILTER {conditions.tie(*rng.sample(labels, 2))}"
    per_start = f"{rng.choice(_PER_START)}*"
    chosen = rng.choice(("*", "*", "*", "NXT *", "LAST *", per_start, per_start))
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


def _absents(rng: random.Random, conditions: AcrossConditions, labels: list[str]) -> str:
    """What must be absent: an event, most often; or one of several, in other words too."""
    if rng.random() < 0.5:
        return _absent(rng, conditions, labels)
    if rng.random() < 0.2:
        tie = conditions.tie("w", rng.choice(labels))
        other = conditions.comparison("u", rng.choice(labels))
        return f"(A AS w OR (B OR C) AS u) FILTER {tie} AND {other}"
    parts = [f"({_absent(rng, conditions, labels)})" for _ in range(rng.choice((1, 2, 2, 3)))]
    parts += rng.choice(([], [], [rng.choice(TYPES)], ["(A AS w FILTER w.value >= 2)"]))
    whole = " OR ".join(parts)
    around = ("({})", "({})", "({}) AS u", "PROJECT[w]({})", "({})[w -> u]", "({})+", "({}){{1}}")
    return rng.choice(around).format(whole)


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


_TIES = (("id", "id"), ("id", "id"), ("name", "name"), ("number", "id"), ("value", "value"))
"""Attributes of an event and of the one behind it, which are equal."""


_ORDERS = (
    *["{own}.value > {other}.value"] * 3,
    *("{own}.value <= {other}.value", "{own}.id <> {other}.id", "{own}.value >= {other}.value + 1"),
    *("{own}.value > {other}.value AND {own}.id < {other}.id", "{own}.name > {other}.name"),
    *("{own}.name = {other}.name OR {own}.id > {other}.id", "{own}.flag"),
)


def keyed_absence_query(rng: random.Random) -> str:
    """A query about `WIDE_DECLARATION`, with it: a chain whose events have a key with the one
    before, and of which some are the first ones with that key, or the first ones beyond it. An
    absence has the key too, often another event's, or asks for more."""
    tie = rng.choice(_TIES)
    formula, outside = f"{rng.choice(TYPES[:3])} AS x", []
    ordered = rng.random() < 0.4
    labels = ["x"]
    for label in _LABELS[1:] if rng.random() < 0.5 else _LABELS[1:2]:
        before = rng.choice((labels[-1], labels[-1], labels[-1], "x"))
        tie = rng.choice((tie, tie, tie, rng.choice(_TIES)))
        keys = [tie] if rng.random() < 0.8 else [tie, ("flag", "flag")]
        equal = " AND ".join(f"{label}.{own} = {before}.{other}" for other, own in keys)
        own = f"{rng.choice(TYPES[:3])} AS {label}"
        more = rng.choice(("", "", f" AND {label}.value >= 2"))
        joint = rng.random()
        if ordered or joint < 0.15:
            asked = rng.choice(_ORDERS).format(own=label, other=before) + more
            formula += f" ; FIRST ({own} FILTER {asked})"
            outside += [equal] * (rng.random() < 0.1)
        elif joint < 0.6:
            formula += f" ; FIRST ({own} FILTER {equal}{more})"
        else:
            if joint < 0.85:
                asked = equal.replace(f"{label}.", "w.")
                asked += rng.choice(("", "", "", f" AND w.value >= {before}.value"))
                absent = f"{rng.choice(TYPES[:3])} AS w"
                formula += f" ; !({absent} FILTER {asked}{more.replace(label + '.', 'w.')})"
            formula += f" ; {rng.choice((own, own, own, f'({own})+'))}"
            outside.append(equal + more)
        labels.append(label)
    if outside:
        formula = f"({formula}) FILTER {' AND '.join(outside)}"
    if rng.random() < 0.15:
        formula = f"({formula}) OR ({rng.choice(TYPES[:3])} AS x ; {rng.choice(TYPES[:3])} AS z)"
    if rng.random() < 0.15:
        formula = f"({formula}) : {rng.choice(TYPES[:3])}"
    chosen = rng.choice((*["*"] * 5, "NXT *", "LAST *", "ANY *", "COLLAPSED *", "TOTAL"))
    items = chosen.replace("TOTAL", "TOTAL COUNT(*) AS many, SUM(x.id) AS ids")
    lines = [f"SELECT {items} FROM S WHERE {formula}"]
    lines += rng.choice(([], [], [], ["PARTITION BY flag"]))
    lines += rng.choice(
        ([], [f"WITHIN {rng.randint(2, 8)} [ts]"], [f"WITHIN {rng.randint(2, 8)} EVENTS"])
    )
    if chosen == "*":
        lines += rng.choice(([], [], [], ["CONSUME BY ANY"], ["LIMIT 1"]))
    return WIDE_DECLARATION + "\n".join(lines) + "\n"


def branching_absence_query(rng: random.Random) -> str:
    """A query about `WIDE_DECLARATION`, with it: an OR of parts with absences of different length
    or none behind them. Some parts have no match, because of what stands around the OR."""
    labels = list(_LABELS[: rng.choice((2, 2, 2, 3))])
    window = rng.choice(("", f"WITHIN {rng.randint(1, 8)} [ts]"))
    formula = " OR ".join(f"({_branch(rng, label, window=bool(window))})" for label in labels)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        formula = _around(rng, formula, labels)
    kept = ", ".join(label for label in labels if rng.random() < 0.5)
    items = rng.choice(("*", "*", "NONE", kept or "NONE"))
    by_end = ("NXT ", "LAST ", "MAX ", "ANY ", "COLLAPSED ", "TOTAL ")
    chosen = rng.choice((*[""] * 5, *by_end, *_PER_START))
    per: list[str] = []
    if chosen == "TOTAL ":
        items = f"COUNT(*) AS many, COUNT({rng.choice(labels)}) AS of_one"
        per = rng.choice(([], ["PER PARTITION"]))
    lines = [f"SELECT {chosen}{items} FROM S WHERE {formula}"]
    lines += rng.choice(([], [], ["PARTITION BY flag"]))
    lines += [window] if window else []
    one = not chosen or chosen in _PER_START
    lines += ["LIMIT 1"] if one and rng.random() < 0.1 else per
    return WIDE_DECLARATION + "\n".join(lines) + "\n"


def _branch(rng: random.Random, label: str, *, window: bool) -> str:
    """A part with a label, and an absence of some length behind it, most often."""
    one, other = (rng.choice(TYPES[:3]) for _ in range(2))
    atom = f"{one} AS {label}"
    forms = [atom, atom, f"{other} ; {atom}", f"({atom})+", f"{atom} ; {other}"]
    forms += [f"{atom} UNLESS {other}", f"{atom} FILTER {label}.value >= 2"]
    nested = [f"NXT({other} ; {atom})", f"NXT({other} ; {one}) AS {label}", f"MAX(({atom})+)"]
    part = rng.choice((*forms, *nested))
    if " UNLESS " in part or " FILTER " in part:
        part = f"({part})"
    if rng.random() < 0.2:
        part = f"!{rng.choice(TYPES[:3])} FOR {rng.randint(0, 3)} [ts] ; {part}"
    if rng.random() < 0.25:
        return part
    length = "" if window and rng.random() < 0.2 else f" FOR {rng.choice((0, 1, 2, 4, 9))} [ts]"
    if rng.random() < 0.1 and length:
        length = f" FOR {rng.randint(1, 4)} EVENTS"
    return f"{part} ; !{rng.choice(TYPES[:3])}{length}"


def _around(rng: random.Random, formula: str, labels: list[str]) -> str:
    """A condition, a window or other labels around an OR; changes the labels."""
    chance = rng.random()
    if chance < 0.15:
        return f"WITHIN[{rng.randint(0, 4)} [ts]]({formula})"
    if chance < 0.3:
        labels[:] = [label for label in labels if rng.random() < 0.7] or labels
        return f"PROJECT[{', '.join(labels)}]({formula})"
    if chance < 0.4:
        place = rng.randrange(len(labels))
        old, labels[place] = labels[place], f"{labels[place]}_"
        return f"({formula})[{old} -> {labels[place]}]"
    one, other = rng.choice(labels), rng.choice(labels)
    condition = rng.choice(_RULING_OUT).format(one=one, other=other)
    return f"(({formula}) FILTER {condition})"
