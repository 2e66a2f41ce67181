"""A query that grows feature by feature, and how it is called."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from strategies_own_functions import DECLARATIONS, GIVEN

TYPES = "ABCD"
ATTRIBUTES = (
    "id: INT, value: DOUBLE, name: STRING, num: LONG, key: DOUBLE, mile: LONG, took: INTERVAL, "
    "ts: TIMESTAMP"
)
"""Of every event type, besides a `src` or a `dst`: keys of which each type has one."""

ORDER = "ts"
TIEBREAK = "row"


class UnfitError(Exception):
    """A feature that has no place in a draft; another one is drawn."""


class Feature(NamedTuple):
    """A part of the language, or an option of the call.

    Features of lower stages are applied first: 0 changes an operand of a sequence, 1 the formula
    around it, 2 adds conditions, 3 absences at the ends, 4 what stands around these, 5 clauses, 6
    other queries of the file, 7 options.
    """

    name: str
    stage: int
    apply: Callable[[Draft], None]
    weight: int = 1
    """How often it is drawn; more of what has a code of its own on many routes."""


@dataclass
class Draft:
    """A query that grows. `labels` are those of `operands`, one each; of these `single` are bound
    exactly once in every match, and `bound` are all that the formula binds."""

    rng: random.Random
    types: list[str]
    operands: list[str]
    labels: list[str]
    joints: list[str]
    single: list[str] = field(default_factory=list)
    bound: list[str] = field(default_factory=list)
    whole: str = ""
    """The formula, once it is more than a sequence."""
    selector: str = ""
    items: str = "*"
    streams: list[str] = field(default_factory=lambda: ["S"])
    partition: str = ""
    window: str = ""
    consume: str = ""
    per: str = ""
    having: str = ""
    limit: str = ""
    for_each: bool = False
    uncertain: bool = False
    lasting: bool = False
    declared: list[str] = field(default_factory=list)
    """The declarations of aggregates and of functions of one's own."""
    below: str = ""
    """A query that this one reads."""
    beside: str = ""
    """Other queries of the file, behind this one."""
    asked: list[str] = field(default_factory=lambda: ["main"])
    """The queries that are compared."""
    order_by: tuple[str, ...] = (ORDER,)
    ties: str | None = None
    at_end: str = "open"
    traits: set[str] = field(default_factory=set)
    """What the streams should have."""

    @property
    def formula(self) -> str:
        """The text of the formula."""
        return self.whole or self.sequence(self.operands, self.joints)

    @staticmethod
    def sequence(operands: list[str], joints: list[str]) -> str:
        """Operands with what stands between them."""
        return "".join(f"{one}{joint}" for one, joint in zip(operands, [*joints, ""], strict=True))

    def around(self, pattern: str) -> None:
        """Put something around the formula, which stands for φ."""
        self.whole = pattern.replace("φ", f"({self.formula})")

    def type(self) -> str:
        """One of the few types of the query, mostly."""
        return self.rng.choice([*self.types, *self.types, *self.types, *TYPES])

    def one_label(self) -> str:
        """A label with one event."""
        if not self.single:
            raise UnfitError
        return self.rng.choice(self.single)

    def label(self) -> str:
        """A label of the formula."""
        if not self.bound:
            raise UnfitError
        return self.rng.choice(self.bound)

    def length(self) -> str:
        """A duration for WITHIN and FOR, on the order or on another attribute."""
        number = self.rng.choice((2, 3, 4, 1, 6, 0))
        forms = ["{} MILLISECONDS [ts]"] * 3 + ["{} MILLISECONDS"] * 3 + ["{} EVENTS", "{} [mile]"]
        return self.rng.choice(forms).format(number)

    def loses(self, label: str, *, bound: bool = True) -> None:
        """The label is no longer bound once in every match, or not at all."""
        self.single = [one for one in self.single if one != label]
        if not bound:
            self.bound = [one for one in self.bound if one != label]

    def text(self) -> str:
        """The file."""
        streams = ["S", "T"] if "T" in self.streams else ["S"]
        declared = "".join((*map(self._stream, streams), *self.declared))
        if self.for_each:
            declared += "PARAMETERS rule { nr: INT, id: INT, value: DOUBLE, name: STRING }\n"
        clauses = [
            f"SELECT {self.selector}{self.items}",
            f"FROM {', '.join(self.streams)}{' FOR EACH rule' if self.for_each else ''}",
            f"WHERE {self.formula}",
            f"PARTITION BY {self.partition}" if self.partition else "",
            f"WITHIN {self.window}" if self.window else "",
            f"CONSUME BY {self.consume}" if self.consume else "",
            self.per,
            f"HAVING {self.having}" if self.having else "",
            f"LIMIT {self.limit}" if self.limit else "",
        ]
        query = "\n".join(filter(None, clauses))
        return f"{declared}{self.below}QUERY main:\n{query}\n{self.beside}"

    def _stream(self, name: str) -> str:
        more = ", high: TIMESTAMP" if self.uncertain else ""
        times = "UNCERTAIN [ts, high] BY 1 MILLISECONDS " if self.uncertain else ""
        if self.lasting:
            # Events of the other stream have no length.
            more, times = ", since: TIMESTAMP", "LASTING [since, ts] " if name == "S" else ""
        events = [
            f"  EVENT {one} {{ {'src' if number % 2 else 'dst'}: INT, {ATTRIBUTES}{more} }}"
            for number, one in enumerate(TYPES)
        ]
        return f"CREATE STREAM {name} {times}{{\n" + ",\n".join(events) + "\n}\n"

    def options(self) -> dict[str, Any]:
        """The options of the compiler."""
        found: dict[str, Any] = {"functions": GIVEN} if DECLARATIONS in self.declared else {}
        if self.uncertain:
            return {**found, "tiebreak": (TIEBREAK,)}
        tiebreak = (TIEBREAK,) if self.order_by else ()
        found |= {"tiebreak": tiebreak, "at_end": self.at_end}
        found |= {} if self.lasting else {"order_by": self.order_by or None}
        return found if self.ties is None else {**found, "ties": self.ties}


def base_of(rng: random.Random) -> Draft:
    """A sequence of one to three events, most often with labels."""
    types = rng.sample(TYPES, rng.choice((3, 3, 2)))
    labels = list("xyz"[: rng.choice((2, 2, 2, 3, 1))])
    operands = [f"{rng.choice(types)} AS {label}" for label in labels]
    draft = Draft(rng, types, operands, labels, [" ; "] * (len(labels) - 1))
    draft.single, draft.bound = list(labels), list(labels)
    return draft
