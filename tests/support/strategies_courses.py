"""Random queries FOR EACH whose steps follow each other at once or later, with conditions of the
row on each: what a course says of a row decides which events are read (`celc/plan/courses.py`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

_TYPES = ("A", "A", "B", "B", "C")

PARAMETERS = (
    "PARAMETERS rule { nr: INT, id: INT, other: LONG, value: DOUBLE, high: DOUBLE, name: STRING }\n"
)


class _Steps:
    """Steps with labels of their own, and conditions on each."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.labels: list[str] = []
        self.outside: list[str] = []
        self._selective = rng.random() < 0.7

    def step(self) -> str:
        """An event with a label; its conditions stand here, or around the formula."""
        rng = self._rng
        label = f"v{len(self.labels)}"
        self.labels.append(label)
        conditions = [self._condition(label) for _ in range(rng.choice((0, 0, 1, 1, 1, 2)))]
        text = f"{rng.choice(_TYPES)} AS {label}"
        if not conditions or rng.random() < 0.5:
            self.outside += conditions
            return text
        return f"({text} FILTER {' AND '.join(conditions)})"

    def part(self) -> str:
        """A step, or a few."""
        return self._rng.choice(
            (self.step,) * 8
            + (
                lambda: f"({self.step()} OR {self.step()})",
                lambda: f"({self.step()} : {self.step()})",
                lambda: f"({self.step()} ; {self.step()})",
                lambda: f"({self.step()})+",
                lambda: f"({self.step()}):+",
            )
        )()

    def formula(self) -> str:
        """A few parts, one after another."""
        part, absent = self.part, self.absent
        return self._rng.choice(
            (
                *(lambda: f"{part()} : {part()} : {part()}",) * 4,
                *(lambda: f"{part()} : {part()}",) * 2,
                *(lambda: f"{part()} ; {part()} ; {part()}",) * 2,
                *(lambda: f"{part()} ; FIRST {part()} ; FIRST {part()}",) * 2,
                *(lambda: f"({part()} ; FIRST {part()}) : {part()}",) * 2,
                lambda: f"{part()} : {part()} ; {part()}",
                lambda: f"{part()} ; {part()} : {part()}",
                lambda: f"({part()} : {part()} : {part()}):+",
                lambda: f"({part()} : {part()} ; {part()})+",
                lambda: f"{part()} : ({part()}):+ : {part()}",
                lambda: f"{part()} ; !{absent()} ; {part()}",
                lambda: f"({part()} : {part()}) UNLESS {absent()}",
                lambda: f"({part()} ; {part()}) UNLESS {absent()}",
                lambda: f"({part()} : {part()}) ; !{absent()} FOR {self._rng.randint(1, 3)} [ts]",
                lambda: f"!{absent()} FOR 2 [ts] ; ({part()} : {part()})",
                lambda: f"({part()} : {part()}) OR ({part()} : {part()} : {part()})",
                lambda: "({0}) AND ({0})".format(f"{part()} : {part()}"),
                lambda: f"({part()}){{2}} : {part()}",
                lambda: f"{part()} : ({part()})? : {part()}",
            )
        )()

    def absent(self) -> str:
        """A step that must not happen. No condition outside can name it."""
        conditions = [self._condition("w") for _ in range(self._rng.choice((0, 1, 1)))]
        text = f"{self._rng.choice(_TYPES)} AS w"
        return f"({text} FILTER {' AND '.join(conditions)})" if conditions else f"({text})"

    def across(self) -> str:
        """A condition between two steps."""
        one, other = self._rng.choice(self.labels), self._rng.choice(self.labels)
        operator = self._rng.choice(("=", "<", "<=", "!="))
        return self._rng.choice(
            (
                f"{one}.value {operator} {other}.value + rule.id",
                f"{one}.id {operator} {other}.id",
                f"{other}.ts - {one}.ts <= rule.other",
            )
        )

    def _condition(self, x: str) -> str:
        rng = self._rng
        if self._selective and rng.random() < 0.6:
            return rng.choice((f"{x}.id = rule.id", f"{x}.name = rule.name"))
        return rng.choice(
            (
                f"{x}.id = rule.other",
                f"{x}.value = rule.value",
                f"{x}.value BETWEEN rule.value AND rule.high",
                f"{x}.value >= rule.value",
                f"{x}.value < rule.high",
                f"{x}.id <= rule.other",
                f"(rule.id IS NULL OR {x}.id = rule.id)",
                f"(rule.id IS NULL OR {x}.id = rule.id) AND "
                f"(rule.name IS NULL OR {x}.name = rule.name)",
                f"({x}.id = rule.id OR {x}.name = rule.name)",
                f"{x}.id IN (rule.id, rule.other)",
                f"{x}.id != rule.id",
                f"{x}.name LIKE rule.name",
                f"{x}.value > 2",
                f"{x}.name IS NULL",
                f"{x}.name <= rule.name",
                "rule.value < rule.high",
            )
        )


def followed_query(rng: random.Random) -> str:
    """A query FOR EACH rule about the declaration of `strategies` and `PARAMETERS`, without
    them."""
    steps = _Steps(rng)
    formula = steps.formula()
    conditions = steps.outside + [steps.across() for _ in range(rng.choice((0, 0, 0, 1)))]
    if conditions:
        formula = f"({formula}) FILTER {' AND '.join(conditions)}"
    chosen = rng.choice(("",) * 9 + ("STRICT ", "LAST ", "NXT ", "FIRST ", "LONGEST "))
    shown = "*" if chosen or rng.random() < 0.9 else "TOTAL COUNT(*) AS matches"
    lines = [f"SELECT {chosen}{shown}", "FROM S FOR EACH rule", f"WHERE {formula}"]
    if rng.random() < 0.25:
        lines.append(f"PARTITION BY {rng.choice(('id', 'name'))}")
    if rng.random() < 0.7:
        size = rng.choice((1, 2, 3, 5, 8))
        lines.append(f"WITHIN {rng.choice((f'{size} EVENTS', f'{size + 1} [ts]', f'{size} [ts]'))}")
    if chosen != "LONGEST " and rng.random() < 0.15:
        lines.append(f"CONSUME BY {rng.choice(('ANY', 'PARTITION'))}")
    return "\n".join(lines) + "\n"


def rules_of(rng: random.Random, events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with values of events; without any, without matches, some of them twice."""
    rows: list[dict[str, Any]] = []
    for number in range(rng.choice((0, 1, 3, 6, 12))):
        event = rng.choice(events) if events and rng.random() < 0.8 else {}
        value = event.get("value") or float(rng.randint(0, 4))
        rows.append(
            {
                "nr": number,
                "id": event.get("id", rng.choice((1, 2, 7))),
                "other": rng.choice((1, 2, 3, 99)),
                "value": value,
                "high": value + rng.choice((-1, 0, 1, 3)),
                "name": event.get("name", rng.choice(("p", "q", "none", "p%"))),
            }
        )
    for row in rows:
        for name in row:
            if name != "nr" and rng.random() < 0.08:
                row[name] = None
    rows += [dict(row) for row in rows if rng.random() < 0.2]
    rng.shuffle(rows)
    return rows
