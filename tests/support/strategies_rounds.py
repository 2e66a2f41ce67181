"""Random iterations whose rounds bind several labels and compare them with labels from outside.

`strategies` asks for these where the feature ROUNDS is on. A condition inside such an iteration is
asked of every round by itself: its labels of the round are compared with each other, and each of
them with all that the outside labels hold, before the rounds, behind them or between them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from strategies_across import LABELS, AcrossConditions

_ORDERS = ("=", "<", ">=", ">", "<=", "!=")
_NUMBERS = ("value", "value", "id", "number", "ts")


class RoundFormulas:
    """Formulas of two to three labels of a round and one or two outside."""

    def __init__(
        self, rng: random.Random, types: Sequence[str], conditions: AcrossConditions
    ) -> None:
        self.rng = rng
        self.types = types
        self.conditions = conditions
        self.bound: set[str] = set()

    def formula(self) -> tuple[str, frozenset[str]]:
        """The iteration with what is outside, in parentheses; and all labels that it binds."""
        rng = self.rng
        self.bound = set()
        labels = rng.sample(LABELS, len(LABELS))
        count = rng.choice((2, 2, 2, 3))
        inner, labels = labels[:count], labels[count:]
        outer, labels = labels[: rng.choice((1, 1, 2))], labels[2:]
        rounds = self.iteration(inner, outer)
        if rng.random() < 0.3:
            rounds = self.nested(rounds, inner, outer, labels[0])
        text = self.beside(rounds, outer)
        if rng.random() < 0.3:
            everything = [*inner, *outer]
            text = f"{text} FILTER {self.conditions.condition(everything, ())}"
        return f"({text})", frozenset(self.bound)

    def event(self, label: str) -> str:
        """What binds the label to one event, or seldom to several."""
        rng = self.rng
        names = [rng.choice(self.types)]
        if rng.random() < 0.15:
            names.append(rng.choice(self.types))
        self.bound.update((label, *names))
        if len(names) == 2:
            return f"({names[0]} OR {names[1]}) AS {label}"
        text = f"{names[0]} AS {label}"
        return rng.choice((text, text, text, text, text, f"({text})+", f"({text}):+"))

    def iteration(self, inner: Sequence[str], outer: Sequence[str]) -> str:
        """Rounds that bind the inner labels, with conditions that see the outer ones."""
        rng = self.rng
        parts = [self.event(label) for label in inner]
        text = parts[0]
        for part in parts[1:]:
            text = f"({text}){rng.choice((' ;', ' ;', ' ;', ' :', ' ALL'))} ({part})"
        if rng.random() < 0.15:
            text = f"(({text}) OR {self.event(inner[0])})"
        terms = [self.term(inner, outer) for _ in range(rng.choice((1, 1, 2)))]
        again = rng.choice(("+", "+", "+", ":+"))
        return f"(({text}) FILTER {' AND '.join(terms)}){again}"

    def nested(self, rounds: str, inner: Sequence[str], outer: Sequence[str], label: str) -> str:
        """Rounds around the rounds, which bind one more label for the outer round."""
        rng = self.rng
        event = self.event(label)
        text = rng.choice((f"{event} ; {rounds}", f"{rounds} ; {event}"))
        seen = rng.sample(inner, 1) if rng.random() < 0.6 else list(inner)
        if rng.random() < 0.4:
            # What the inner rounds compare may also be bound in the round around them.
            text = text.replace(f"{outer[0]}.", f"{label}.")
        return f"(({text}) FILTER {self.term([label, *seen], outer)})+"

    def beside(self, rounds: str, outer: Sequence[str]) -> str:
        """The rounds with what binds the outer labels, before or behind them or both."""
        rng = self.rng
        events = [self.event(label) for label in outer]
        if len(events) == 2:
            first, second = events
            return rng.choice(
                (
                    f"{first} ; {rounds} ; {second}",
                    f"{first} ; {second} ; {rounds}",
                    f"{rounds} ; {first} ; {second}",
                )
            )
        (event,) = events
        return rng.choice(
            (
                f"{event} ; {rounds}",
                f"{event} ; {rounds}",
                f"{rounds} ; {event}",
                f"{rounds} ; {event}",
                f"{event} : {rounds}",
                f"(({event}) ALL ({rounds}))",
            )
        )

    def term(self, inner: Sequence[str], outer: Sequence[str]) -> str:
        """A clause that most often names several labels of the round and one from outside."""
        rng = self.rng
        y, z = rng.sample(list(inner), 2)
        x, w = rng.choice(outer), rng.choice([*outer, *inner])
        a, b = rng.choice(_NUMBERS), rng.choice(_NUMBERS)
        order, other = rng.choice(_ORDERS), rng.choice(_ORDERS)
        if rng.random() < 0.15:
            return self.conditions.condition(inner, outer)
        backward = self.conditions.backward(y) if self.conditions.look_back else f"{y}.{a}"
        return rng.choice(
            (
                f"{x}.{a} {order} {y}.{a} + {z}.{a}",
                f"{x}.{a} {order} {y}.{a} + {z}.{a}",
                f"{x}.{a} - {y}.{a} {order} {z}.{b}",
                f"({x}.{a} {order} {y}.{a} OR {x}.{a} {other} {z}.{a})",
                f"({x}.{a} {order} {y}.{a} OR {x}.{a} {other} {z}.{a})",
                f"({y}.{a} {order} {z}.{a} OR {w}.{b} {other} {x}.{b})",
                f"{x}.{a} BETWEEN {y}.{a} AND {z}.{a}",
                f"{x}.id IN ({y}.id, {z}.number)",
                f"NOT ({x}.{a} {order} {y}.{a} AND {x}.{b} {other} {z}.{b})",
                f"({backward} {order} {z}.{a} OR {x}.{a} {other} {y}.{a})",
                f"({x}.{a} {order} {backward} OR {y}.{a} {other} {z}.{a})",
                f"{x}.{a} = {y}.{a} AND {y}.{a} {order} {z}.{a}",
                f"{backward} {order} {x}.{a}",
            )
        )
