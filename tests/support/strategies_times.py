"""Random times and durations: conditions with them, expressions of SELECT, and values of events.

`strategies` asks for these where the feature TIMES is on. Differences, sums and products leave 64
bits often enough, at the ends of what an INTERVAL holds.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from typing import Any

DECLARED = "at: TIMESTAMP, took: INTERVAL, clock: TIMESTAMP"
"""The attributes that events have besides `day`, a DATE; `clock` never falls, and is not NULL."""

_ORDERS = ("=", "<", ">=", "<>", ">", "<=")
START = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)


def _microseconds(count: int) -> dt.timedelta:
    return dt.timedelta(microseconds=count)


PLAIN: dict[str, tuple[Any, ...]] = {
    "at": tuple(START + dt.timedelta(seconds=seconds) for seconds in (0, 1, 2, 5, -43_200)),
    "took": tuple(map(_microseconds, (1_000_000, 2_000_000, 500_000, 0, -1_000_000))),
}
ODD: dict[str, tuple[Any, ...]] = {
    "at": (
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    ),
    "took": tuple(map(_microseconds, (2**63 - 1, -(2**63), 2**62, -(2**62) - 1, 1, -1))),
}


class Times:
    """Texts about the labels x and y.

    `value` writes what stands for an attribute of a label, `backward` is a label whose other
    positions are asked for as well, None: only the chosen ones.
    """

    def __init__(
        self,
        rng: random.Random,
        x: str,
        y: str,
        *,
        value: Callable[[str, str], str] = "{}.{}".format,
        backward: str | None = None,
    ) -> None:
        self.rng = rng
        self.labels = (x, y)
        self.value = value
        self.backward = backward

    def condition(self) -> str:
        """A comparison of times or of durations."""
        rng = self.rng
        one, other = self.duration(2), self.duration(2)
        negation = rng.choice(("", "", "NOT "))
        order = rng.choice(_ORDERS)
        return rng.choice(
            (
                *(f"{one} {order} {other}", f"{one} {order} {self.literal()}"),
                f"{self.moment(2)} {order} {self.moment(2)}",
                f"{one} {negation}BETWEEN {self.literal()} AND {other}",
                f"{one} {negation}IN ({self.literal()}, {other}, {self.literal()})",
                f"({one}) IS {negation}NULL",
                f"({self.moment(2)}) IS {negation}NULL",
            )
        )

    def duration(self, depth: int) -> str:
        """An INTERVAL."""
        rng = self.rng
        if not depth or rng.random() < 0.25:
            return rng.choice((self.attribute("took"), self.difference(), self.literal()))
        one = self.duration(depth - 1)
        return rng.choice(
            (
                f"({one} {rng.choice('+-')} {self.duration(depth - 1)})",
                f"({one} * {self.whole()})",
                f"({self.whole()} * {one})",
                f"-({one})",
                f"ABS({one})",
                f"({self.moment(depth - 1)} - {self.moment(depth - 1)})",
                self.difference(),
                self.of_set() if self.backward else self.difference(),
            )
        )

    def moment(self, depth: int) -> str:
        """A TIMESTAMP or a DATE."""
        rng = self.rng
        if not depth or rng.random() < 0.4:
            fixed = ("TIMESTAMP '2024-02-29 12:00:01'", "DATE '2024-02-29'")
            return rng.choice((*map(self.attribute, ("at", "at", "day")), rng.choice(fixed)))
        moment, duration = self.moment(depth - 1), self.duration(depth - 1)
        return rng.choice(
            (f"({moment} + {duration})", f"({moment} - {duration})", f"({duration} + {moment})")
        )

    def difference(self) -> str:
        one, other = self.rng.choice((("at", "at"), ("at", "at"), ("day", "day"), ("at", "day")))
        x, y = self.rng.sample(self.labels, 2)
        return f"({self.value(x, one)} - {self.value(y, other)})"

    def of_set(self) -> str:
        """A function of all positions of a label."""
        x, function = self.backward, self.rng.choice(("SUM", "AVG", "MIN", "MAX", "FIRST", "LAST"))
        return self.rng.choice(
            (
                f"{function}({x}.took)",
                f"{function}(PRIOR {x}.took)",
                f"PREV({x}.took)",
                f"({x}.at - PREV({x}.at))",
                f"(LAST({x}.at) - FIRST({x}.at))",
                f"(MAX({x}.at) - MIN({x}.day))",
            )
        )

    def attribute(self, name: str) -> str:
        return self.value(self.rng.choice(self.labels), name)

    def whole(self) -> str:
        """A whole number to multiply a duration with."""
        own = (self.attribute("id"), self.attribute("number"))
        return self.rng.choice((*own, "2", "-3", "0", "200000000000", "NULL"))

    def literal(self) -> str:
        return self.rng.choice(
            (
                *("1 SECOND", "2 SECONDS", "0 DAYS", "1 DAY", "-5 SECONDS", "1.5 SECONDS"),
                *("500 MILLISECONDS", "1 HOUR 30 MINUTES", "0.001 MILLISECONDS"),
                "106751991 DAYS 14454775.807 MILLISECONDS",
            )
        )


def selected(rng: random.Random, x: str, y: str) -> str:
    """An expression of SELECT that is a duration, or an array of them.

    A TIMESTAMP stands in a difference: Python has none after the year 9999.
    """

    def of_set(label: str, attribute: str) -> str:
        functions = ["FIRST", "LAST", "MIN", "MAX"]
        functions += ["SUM", "AVG"] if attribute == "took" else []
        return f"{rng.choice(functions)}({label}.{attribute})"

    times = Times(rng, x, y, value=of_set)
    forms = (times.duration(2), f"{times.moment(2)} - DATE '1970-01-01'", f"COLLECT({x}.took)")
    return rng.choice((forms[0], *forms))
