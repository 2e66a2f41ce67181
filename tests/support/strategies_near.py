"""Random queries whose near misses are many: each has several parts that can bend."""

from __future__ import annotations

import random

DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, price: DECIMAL(8, 2), name: STRING, ts: LONG },
  EVENT B { id: INT, value: DOUBLE, price: DECIMAL(8, 2), name: STRING, ts: LONG },
  EVENT C { id: INT, value: DOUBLE, price: DECIMAL(8, 2), name: STRING, ts: LONG },
  EVENT D { id: INT, value: DOUBLE, price: DECIMAL(8, 2), name: STRING, ts: LONG }
}
PARAMETERS rule { id: INT, v: DOUBLE }
"""
_LABELS = ("a", "b", "c", "d")
_TYPES = ("A", "B", "C", "D")


def near_query_text(rng: random.Random) -> str:
    """A query about `DECLARATION`, with it."""
    for_each = rng.random() < 0.15
    count = rng.choice((1, 2, 2, 2, 3, 3, 4))
    labels = list(_LABELS[:count])
    iterated: set[str] = set()
    operands = []
    for label, kind in zip(labels, rng.sample(_TYPES, count), strict=True):
        types = kind if rng.random() < 0.8 else f"({kind} OR {rng.choice(_TYPES)})"
        operand = f"{types} AS {label}"
        if rng.random() < 0.2:
            inside = operand
            if rng.random() < 0.4:
                inside = f"{operand} FILTER {_comparison(rng, [label], set(), for_each)}"
            rounds = rng.choice(("+", "+", "{2}", "{2,3}", "{3,}", ":+"))
            operand = f"({inside}){rounds}"
            iterated.add(label)
        elif rng.random() < 0.2:
            operand = f"({operand} FILTER {_comparison(rng, [label], set(), for_each)})"
        operands.append(operand)
    formula = operands[0]
    for number, operand in enumerate(operands[1:], start=1):
        roll = rng.random()
        if roll < 0.2:
            formula += f" ; !{_absent(rng, labels[:number])} ; {operand}"
        elif roll < 0.4:
            formula += f" : {operand}"
        elif roll < 0.5 and labels[number] not in iterated:
            formula += f" ; FIRST {operand}" if " FILTER " not in operand else f" ; {operand}"
        else:
            formula += f" ; {operand}"
    windowed = rng.random() < 0.6
    ends = rng.random()
    if ends < 0.1:
        formula = f"!{_absent(rng, [])} FOR {rng.randint(1, 4)} [ts] ; {formula}"
    elif ends < 0.25:
        length = f" FOR {rng.randint(1, 4)} [ts]" if not windowed or rng.random() < 0.5 else ""
        formula += f" ; !{_absent(rng, labels)}{length}"
    elif ends < 0.35:
        formula = f"({formula}) UNLESS {_absent(rng, labels)}"
        formula = f"({formula})"
    if ends >= 0.25 and rng.random() < 0.15:
        length = rng.choice((f"{rng.randint(1, 4)} [ts]", f"{rng.randint(1, 4)} EVENTS"))
        formula = f"WITHIN[{length}]({formula})"
    conditions = [
        _clause(rng, labels, iterated, for_each) for _ in range(rng.choice((0, 1, 1, 1, 2)))
    ]
    if count > 1 and rng.random() < 0.2:  # only events with one id are in a match
        conditions += [f"{one}.id = {labels[0]}.id" for one in labels[1:]]
    if conditions:
        formula = f"({formula}) FILTER {' AND '.join(conditions)}"
    chosen = rng.choice(("*", "*", "*", labels[-1], "NXT *", "FIRST *"))
    each = " FOR EACH rule" if for_each else ""
    lines = [f"SELECT {chosen} FROM S{each} WHERE {formula}"]
    if rng.random() < 0.3:
        lines.append("PARTITION BY id")
    if windowed:
        lines.append(f"WITHIN {rng.randint(1, 5)} {rng.choice(('[ts]', '[ts]', 'EVENTS'))}")
    return DECLARATION + "\n".join(lines) + "\n"


def _absent(rng: random.Random, labels: list[str]) -> str:
    kind = rng.choice(_TYPES)
    if labels and rng.random() < 0.3:
        return f"({kind} AS w FILTER w.id = {rng.choice(labels)}.id)"
    return rng.choice((kind, f"({kind} FILTER {kind}.value > 2)"))


def _clause(rng: random.Random, labels: list[str], iterated: set[str], for_each: bool) -> str:
    one = _comparison(rng, labels, iterated, for_each)
    roll = rng.random()
    if roll < 0.15:
        return f"({one} OR {_comparison(rng, labels, iterated, for_each)})"
    if roll < 0.25:
        other, third = (_comparison(rng, labels, iterated, for_each) for _ in range(2))
        return f"({one} OR ({other} AND {third}))"
    return f"NOT {one}" if roll < 0.3 else one


def _comparison(rng: random.Random, labels: list[str], iterated: set[str], for_each: bool) -> str:
    one, other = rng.choice(labels), rng.choice(labels)
    sign = rng.choice(("<", "<=", ">", ">="))
    many = sorted(iterated & {*labels})
    number = rng.choice(("2", "2", "2.5", "1", "3", "-1.5", "0"))
    forms = [
        f"{one}.value {sign} {number}",
        f"{one}.value {sign} {number}",
        f"{number} {sign} {one}.value",
        f"{one}.value {sign} {other}.value",
        f"{one}.value * 2 {sign} {other}.value + 2",
        f"{one}.price {sign} {number}",
        f"{one}.price {sign} {other}.price",
        f"{one}.value BETWEEN {rng.choice(('1.5', '2'))} AND {rng.choice(('2.5', '3'))}",
        f"{one}.id = {other}.id",
        f"{one}.name {sign} 'q'",
        f"{one}[value {sign} {number} AND id >= 1]",
    ]
    if for_each:
        forms += [f"{one}.value {sign} rule.v", f"{one}.id = rule.id"] * 2
    for label in many:
        forms += [
            f"COUNT({label}) {sign} {rng.choice((1, 2, 3))}",
            f"{rng.choice((2, 3))} {sign} COUNT({label})",
            f"{rng.choice(('SUM', 'AVG', 'MAX'))}({label}.value) {sign} {number}",
            f"{label}.value {sign} PREV({label}.value)",
            f"{label}.value {sign} AVG(PRIOR {label}.value)",
        ]
    return rng.choice(forms)


def near_stream(rng: random.Random, length: int) -> list[dict[str, object]]:
    """Events whose values lie around the bounds of the conditions."""
    events: list[dict[str, object]] = []
    ts = 0
    for _ in range(length):
        ts += rng.choice((0, 1, 1, 1, 2, 3))
        value = rng.choice((None, *(round(rng.uniform(0.8, 3.4), 2) for _ in range(9))))
        events.append(
            {
                "type": rng.choice(_TYPES),
                "id": rng.choice((1, 1, 2, 2, None)),
                "value": value,
                "price": None if value is None else f"{value:.2f}",
                "name": rng.choice(("p", "q", "r")),
                "ts": ts,
            }
        )
    return events
