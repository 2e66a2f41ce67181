"""Random conditions with SOME and EVERY around conditions of every other kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from reference.condition_parser import ConditionParser
from reference.nodes import named
from reference.tokens import Cursor

_Conditions = Callable[[Iterable[str], Iterable[str]], str]


class Quantified:
    """Conditions of which most have a SOME or EVERY; `others` makes those that stand in it and
    beside it."""

    def __init__(self, rng: random.Random, others: _Conditions) -> None:
        self.rng = rng
        self.others = others

    def condition(self, own: Iterable[str], visible: Iterable[str]) -> str:
        """A condition on labels of the filtered formula and on others that it sees."""
        rng = self.rng
        first = self.term(own, visible)
        form = rng.choice(("one", "one", "one", "and", "or", "not or", "mixed", "two"))
        match form:
            case "one":
                return first
            case "and" if rng.random() < 0.3:
                return f"{first} AND {self.nth(own)}"
            case "and":
                return f"{first} AND ({self.others(own, visible)})"
            case "or":
                return f"({first} OR ({self.others(own, visible)}))"
            case "not or":
                return f"NOT ({first} OR ({self.others(own, visible)}))"
            case "mixed":
                return f"({self.others(own, visible)}) AND NOT {first} OR {first}"
            case _:
                return f"({first} OR {self.term(own, visible)})"

    def nth(self, own: Iterable[str]) -> str:
        """A comparison with the value at some place."""
        rng = self.rng
        x, y = (rng.choice(sorted(own)) for _ in range(2))
        prior, place = rng.choice(("", "", "PRIOR ")), rng.choice((1, 2, 2, 3, -1, -2, -2))
        name = rng.choice(("value", "id", "name"))
        found = f"NTH({prior}{x}.{name}, {place})"
        other = rng.choice((f"{y}.{name}", f"{x}.{name}", "'q'" if name == "name" else "2"))
        return rng.choice(
            (f"{found} {rng.choice(('=', '<', '>=', '<>'))} {other}", f"{found} IS NULL")
        )

    def term(self, own: Iterable[str], visible: Iterable[str], *, nested: bool = False) -> str:
        """SOME or EVERY, or their negation; without one where a condition names no label."""
        rng = self.rng
        inside = self.others(own, visible)
        if rng.random() < 0.15:
            inside = f"({inside}) {rng.choice(('AND', 'OR'))} {self.nth(own)}"
        if not nested and rng.random() < 0.15:
            join = rng.choice(("AND", "OR"))
            inside = f"({inside}) {join} {self.term(own, visible, nested=True)}"
        labels = sorted(named(ConditionParser(Cursor(inside)).condition()))
        if not labels:
            return f"({inside})"
        chosen = rng.sample(labels, min(len(labels), rng.choice((1, 1, 1, 2))))
        word = rng.choice(("SOME", "SOME", "EVERY"))
        negation = rng.choice(("", "", "NOT "))
        return f"({negation}{word} {', '.join(chosen)}: ({inside}))"
