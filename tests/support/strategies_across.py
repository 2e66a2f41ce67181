"""Random conditions across labels, formulas that tie their labels, and streams with odd values.

`strategies` asks for these where the features N_ARY, KEYS and LOOK_BACK are on. They are about a
declaration of their own: comparisons across labels meet numbers of every type, two texts, truths
and dates, and so the corners in which equality of values is not equality of bits.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from strategies_aggregates import own_call, own_pattern, own_text
from strategies_own_functions import number_call, truth_call
from strategies_times import ODD, PLAIN, Times

TYPES = ("A", "B", "C", "D")
_ATTRIBUTES = (
    "id: INT, value: DOUBLE, name: STRING, ts: LONG, number: LONG, ratio: FLOAT, code: STRING, "
    "flag: BOOLEAN, day: DATE"
)
WIDE_DECLARATION = (
    "CREATE STREAM S {\n"
    + ",\n".join(f"  EVENT {name} {{ {_ATTRIBUTES} }}" for name in TYPES)
    + "\n}\n"
)
# No label may be called like an event type or another column of the output, in any case.
LABELS = ("x", "y", "z", "u", "v", "w")

# Keys that can be equal often enough; numbers of different types can be equal to each other.
_KEYS = ("id", "id", "id", "id", "name", "name", "number", "value", "ratio", "code", "flag", "day")
_ORDERS = ("=", "<", ">=", "<>", ">", "<=", "==", "!=")

_LARGE = 2**53
_PLAIN: dict[str, tuple[Any, ...]] = {
    "id": (1, 2, 1, 3, 0),
    "value": (1.0, 2.0, 3.0, 2.5, 0.0),
    "name": ("p", "q", "pq", "r"),
    "number": (1, 2, 1, 3, 0),
    "ratio": (1.0, 2.0, 0.5),
    "code": ("p", "q"),
    "flag": (True, False),
    "day": (dt.date(2024, 2, 29), dt.date(2024, 3, 1)),
}
# Values of which two can be equal though their bits differ, or different though they round alike.
_ODD: dict[str, tuple[Any, ...]] = {
    "id": (1, 0, 2**31 - 1, -(2**31), 2**24 + 1),
    "value": (0.0, -0.0, math.nan, float(_LARGE), 2.0**24, math.inf, 2.0**63),
    "name": ("", "p", "p ", "P", "é"),
    "number": (1, 0, _LARGE, _LARGE + 1, 2**63 - 1, -(2**63), 2**24 + 1),
    "ratio": (0.0, -0.0, math.nan, 2.0**24, math.inf),
    "code": ("", "p", "é"),
    "flag": (True, False),
    "day": (dt.date(1970, 1, 1), dt.date(1969, 12, 31)),
}


def wide_stream(
    rng: random.Random,
    length: int,
    *,
    types: Sequence[str] = TYPES,
    nulls: float = 0.1,
    strangers: float = 0.0,
    times: bool = False,
) -> list[dict[str, Any]]:
    """A stream of `WIDE_DECLARATION`; as `random_stream`, with odd values in some streams, and
    with times and durations where `times`.

    Most streams have few keys, so that comparisons for equality hold often. Most events are of one
    of the `types`.
    """
    odd = rng.choice((0.0, 0.0, 0.15, 0.5))
    few = _chance(rng, 0.75)
    plain, strange = (_PLAIN | PLAIN, _ODD | ODD) if times else (_PLAIN, _ODD)

    def attribute(name: str) -> Any:
        if _chance(rng, nulls):
            return None
        if _chance(rng, odd):
            return rng.choice(strange[name])
        values = plain[name]
        return (
            rng.choice((values[0], values[0], values[0], values[1])) if few else rng.choice(values)
        )

    events: list[dict[str, Any]] = []
    ts = 0
    for _ in range(length):
        ts += rng.choice((1, 0, 2, 1, 3))
        kind = rng.choice(TYPES if _chance(rng, 0.1) else types)
        kind = "Stranger" if _chance(rng, strangers) else kind
        events.append({"type": kind, "ts": ts, **{name: attribute(name) for name in plain}})
    return events


def _chance(rng: random.Random, probability: float) -> bool:
    # Written so that hypothesis, which shrinks towards 0.0, shrinks towards "no".
    return rng.random() >= 1 - probability


class AcrossConditions:
    """Conditions of which most compare several labels; `unary` makes those on one."""

    def __init__(
        self,
        rng: random.Random,
        unary: Callable[[str], str],
        *,
        look_back: bool,
        times: bool = False,
        own: bool = False,
        functions: bool = False,
    ) -> None:
        self.own = own
        self.functions = functions
        self.rng = rng
        self.unary = unary
        self.look_back = look_back
        self.times = times

    def condition(self, own: Iterable[str], visible: Iterable[str]) -> str:
        """A condition on labels of the filtered formula and on others that it sees."""
        rng = self.rng
        inner = sorted(own, key=lambda label: (label in TYPES, label))
        outer = sorted(set(visible) - set(inner))
        return " AND ".join(
            self.term(inner, outer) for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3)))
        )

    def labels(self, own: Sequence[str], outer: Sequence[str]) -> tuple[str, str, str]:
        """Three labels, different ones as far as there are any, made ones and outer ones first."""
        rng = self.rng
        made = [label for label in own if label not in TYPES]
        x = rng.choice(made if made and not _chance(rng, 0.2) else own)
        others = [label for label in own if label != x]
        seen = [label for label in others if label not in TYPES] or others
        if not seen or (outer and _chance(rng, 0.6)):
            seen = list(outer) or seen or [x]
        y = rng.choice(seen)
        rest = [label for label in (*others, *outer) if label != y and label not in TYPES]
        return x, y, rng.choice(rest or [x])

    def term(self, own: Sequence[str], outer: Sequence[str]) -> str:
        """A conjunct."""
        rng = self.rng
        x, y, z = self.labels(own, outer)
        if self.times and _chance(rng, 0.6):
            backward = x if self.look_back and _chance(rng, 0.4) else None
            return Times(rng, x, y, backward=backward).condition()
        if self.look_back and _chance(rng, 0.6):
            return self.looking_back(x, y)
        makers: tuple[tuple[int, Callable[[str, str, str], str]], ...] = (
            (6, lambda x, y, z: self.tie(x, y)),
            (4, lambda x, y, z: self.comparison(x, y)),
            (3, self.arithmetic),
            (4, self.alternatives),
            (2, self.negation),
            (2, lambda x, y, z: self.other(x, y)),
            (1, lambda x, y, z: self.unary(x)),
            (1, lambda x, y, z: self.fact(x)),
        )
        chosen = rng.choice([maker for weight, maker in makers for _ in range(weight)])
        return chosen(x, y, z)

    def tie(self, x: str, y: str) -> str:
        """An equality, most often of one attribute."""
        rng = self.rng
        if _chance(rng, 0.25):
            return rng.choice(
                (
                    f"{x}.id = {y}.number",
                    f"{x}.number = {y}.value",
                    f"{x}.value == {y}.id",
                    f"{x}.ratio = {y}.id",
                    f"{x}.value = {y}.ratio",
                    f"{x}.number = {y}.ratio",
                    f"{x}.name = {y}.code",
                    f"{x}.id + 1 = {y}.id",
                    f"{x}.id % 2 = {y}.id % 2",
                    f"{x}.id = {y}.id * {y}.number",
                )
            )
        key = rng.choice(_KEYS)
        return f"{x}.{key} = {y}.{key}"

    def comparison(self, x: str, y: str) -> str:
        """Any order of two attributes."""
        rng = self.rng
        order = rng.choice(_ORDERS)
        if _chance(rng, 0.25):
            kind = rng.choice(("name", "name", "code", "flag", "day"))
            return f"{x}.{kind} {order} {y}.{kind}"
        return f"{x}.{self.number()} {order} {y}.{self.number()}"

    def number(self) -> str:
        return self.rng.choice(("value", "value", "id", "id", "number", "ratio", "ts"))

    def arithmetic(self, x: str, y: str, z: str) -> str:
        rng = self.rng
        order = rng.choice(_ORDERS)
        first, second = self.number(), self.number()
        return rng.choice(
            (
                f"{x}.{first} + {y}.{second} {order} {z}.{first}",
                f"{x}.{first} - {y}.{first} {order} 1",
                f"2 {order} {x}.{first} * {y}.{second}",
                f"ABS({x}.{first} - {y}.{second}) <= 1",
                f"{x}.{first} / {y}.{second} {order} 1",
                f"{x}.id % {y}.{second} {order} 0",
                f"{x}.value * {y}.id >= {z}.value + {x}.id",
                f"{x}.ts - {y}.ts {order} {rng.choice((-3, 2, 4))}",
                f"-{x}.id {order} {y}.{second} - 3",
            )
        )

    def alternatives(self, x: str, y: str, z: str) -> str:
        """An OR of comparisons on different labels."""
        tie, order = self.tie(x, y), self.comparison(y, z)
        return self.rng.choice(
            (
                f"({tie} OR {order})",
                f"({tie} OR {self.unary(x)})",
                f"({self.unary(y)} OR {self.comparison(x, z)})",
                f"({tie} AND {self.unary(x)} OR {order})",
                f"({self.unary(x)} OR {self.unary(y)} OR {tie})",
                f"({self.fact(x)} OR {tie})",
                f"({self.tie(x, z)} OR {self.tie(y, z)})",
            )
        )

    def negation(self, x: str, y: str, z: str) -> str:
        tie = self.tie(x, y)
        return self.rng.choice(
            (
                f"NOT {tie}",
                f"NOT {self.comparison(x, y)}",
                f"NOT ({tie} AND {self.unary(x)})",
                f"NOT ({tie} OR {self.comparison(y, z)})",
                f"NOT ({tie} AND NOT {self.comparison(x, z)})",
            )
        )

    def other(self, x: str, y: str) -> str:
        """What is neither an order nor arithmetic: BETWEEN, IN, IS NULL, ||."""
        negation = self.rng.choice(("", "", "NOT "))
        if _chance(self.rng, 0.25):
            return self.joined(x, y)
        return self.rng.choice(
            (
                f"{x}.value {negation}BETWEEN {y}.id AND {y}.value",
                f"2 {negation}BETWEEN {x}.id AND {y}.number",
                f"{x}.id {negation}IN ({y}.id, {y}.value)",
                f"{x}.name {negation}IN ({y}.name, 'q', {y}.code)",
                f"{x}.id {negation}IN (3, {y}.number, NULL)",
                f"({x}.value + {y}.value) IS {negation}NULL",
            )
        )

    def joined(self, x: str, y: str) -> str:
        """Texts of several events one after another."""
        rng = self.rng
        order, negation = rng.choice(_ORDERS), rng.choice(("", "NOT "))
        pieces = [f"{x}.name", f"{y}.{rng.choice(('name', 'code', 'id'))}"]
        rng.shuffle(pieces)
        one = f"{' || '.join(pieces)}{rng.choice(('', '', f' || {x}.code'))}"
        return rng.choice(
            (
                f"{one} {order} {rng.choice(('pq', 'pp', 'p', 'ppp', 'qp', 'p1'))!r}",
                f"{one} {order} {y}.code || {x}.name",
                f"{y}.code || {rng.choice(('p', ''))!r} {order} {one}",
                f"{one} {negation}IN ('pp', 'p1', {y}.name)",
                f"({one}) IS {negation}NULL",
            )
        )

    def fact(self, x: str) -> str:
        """A function of one label's set against a constant."""
        rng = self.rng
        order = rng.choice((">", "<=", "=", "<"))
        function = rng.choice(("MIN", "MAX", "FIRST", "LAST"))
        return rng.choice(
            (
                f"COUNT({x}) {order} {rng.randint(1, 3)}",
                f"{function}({x}.{rng.choice(('value', 'id'))}) {order} {rng.randint(0, 4)}",
                f"{rng.choice(('FIRST', 'LAST'))}({x}.name) {order} 'q'",
            )
        )

    # --- PREV, PRIOR and aggregates ---

    def looking_back(self, x: str, y: str) -> str:
        """PREV, PRIOR or an aggregate in any company."""
        rng = self.rng
        order = rng.choice(_ORDERS)
        value = self.backward(x)
        if self.functions and _chance(rng, 0.7):
            value = number_call(rng, x, y, prior=True)
        if self.functions and _chance(rng, 0.4):
            return truth_call(rng, x, y)
        if self.own and _chance(rng, 0.25):
            text = own_text(rng, x, prior=True)
            return rng.choice(
                (
                    f"{text} {order} 'pq'",
                    f"{text} {rng.choice(('', 'NOT '))}IN ('p', 'z', NULL)",
                    f"{text} IS {rng.choice(('', 'NOT '))}NULL",
                    f"{text} {order} {own_text(rng, y, prior=True)}",
                    f"{text} || {y}.code {order} {y}.name",
                    f"{text} BETWEEN 'p' AND {y}.name",
                    own_pattern(rng, x),
                    own_pattern(rng, y),
                )
            )
        text = rng.choice(
            (
                f"{value} {order} {x}.{self.number()}",
                f"{value} {order} {x}.{self.number()}",
                f"{value} {order} {y}.{self.number()}",
                f"{y}.{self.number()} {order} {value}",
                f"{value} {order} {self.backward(y)}",
                f"{value} {order} {rng.randint(0, 5)}",
                f"{value} - {x}.{self.number()} {order} {rng.randint(0, 2)}",
                f"{value} IS {rng.choice(('', 'NOT '))}NULL",
                f"{x}.name {order} {self.backward_text(x)}",
                f"{y}.name {order} {self.backward_text(x)}",
                f"PREV({x}.id) = {x}.id",
                f"{x}.value {order} PREV({x}.value)",
                f"COUNT({x}) {order} COUNT({y})",
                f"{value} BETWEEN {y}.id AND {self.backward(y)}",
            )
        )
        if not _chance(rng, 0.3):
            return text
        return rng.choice(
            (
                f"NOT {text}",
                f"({text} OR {self.unary(x)})",
                f"({text} OR {self.tie(x, y)})",
                f"({self.unary(y)} OR {text})",
                f"NOT ({text} AND {self.unary(y)})",
            )
        )

    def backward(self, x: str) -> str:
        """A number that depends on other positions of x than the chosen one."""
        rng = self.rng
        if self.own and _chance(rng, 0.7):
            return own_call(rng, x, prior=True)
        attribute = f"{x}.{self.number()}"
        function = rng.choice(("SUM", "SUM", "AVG", "AVG", "MIN", "MAX", "FIRST", "LAST"))
        return rng.choice(
            (
                f"PREV({attribute})",
                f"PREV({attribute})",
                f"{function}(PRIOR {attribute})",
                f"{function}(PRIOR {attribute})",
                f"{function}({attribute})",
                f"{function}({attribute})",
                f"COUNT({x})",
                f"COUNT(PRIOR {x})",
                f"SUM({attribute}) / COUNT({x})",
            )
        )

    def backward_text(self, x: str) -> str:
        if self.own and _chance(self.rng, 0.6):
            return own_text(self.rng, x, prior=True)
        function = self.rng.choice(("FIRST", "LAST"))
        return self.rng.choice(
            (f"PREV({x}.name)", f"{function}({x}.name)", f"{function}(PRIOR {x}.name)")
        )


class TiedFormulas:
    """Formulas whose labels are tied to each other by equality: by one key, or in chains."""

    def __init__(
        self, rng: random.Random, types: Sequence[str], conditions: AcrossConditions
    ) -> None:
        self.rng = rng
        self.types = types
        self.conditions = conditions
        self.labels: list[str] = []
        self.key = "id"

    def formula(self) -> tuple[str, frozenset[str]]:
        """A sequence FILTER ties (in parentheses, or under one operator), and what it binds."""
        rng = self.rng
        self.labels = rng.sample(LABELS, rng.choice((2, 3, 3, 3, 4)))
        self.key = rng.choice(_KEYS)
        text, bound = self.element(0)
        for place in range(1, len(self.labels)):
            element, more = self.element(place)
            bound |= more
            text = self.joined(text, element)
        terms = self.ties()
        if _chance(rng, 0.3):
            terms.append(self.conditions.condition(self.labels, ()))
        return self.wrapped(f"({text} FILTER {' AND '.join(terms)})", frozenset(bound))

    def type(self) -> str:
        return self.rng.choice(self.types)

    def element(self, place: int) -> tuple[str, set[str]]:
        """What binds the label of that place, and all that it binds."""
        rng = self.rng
        label, type_, other = self.labels[place], self.type(), self.type()
        partner = rng.choice([one for one in self.labels if one != label])
        tie = f"{label}.{self.key} = {partner}.{self.key}"
        atom = f"{type_} AS {label}"
        selector = rng.choice(("NXT", "LAST", "MAX", "STRICT"))
        spare = rng.choice([one for one in LABELS if one not in (label, partner)])
        renamed = f"{spare}.{self.key} = {partner}.{self.key}"
        forms = {
            atom: {type_, label},
            f"({atom})+": {type_, label},
            f"({atom}):+": {type_, label},
            f"({type_} OR {other}) AS {label}": {type_, other, label},
            f"({atom} OR {other})": {type_, other, label},
            f"({atom} FILTER {tie})+": {type_, label},
            f"({atom} FILTER {self.conditions.condition([label], self.labels)})+": {type_, label},
            f"({atom} AS {partner})": {type_, label, partner},
            # The round has the partner's label for itself: the one outside is hidden.
            f"({atom} ; {other} AS {partner} FILTER {tie})+": {type_, other, label, partner},
            f"({type_} ; {other}) AS {label}": {type_, other, label},
            f"{selector}({other} ; {atom} FILTER {tie})": {type_, other, label},
            f"{selector}(({other} ; {atom}) OR {atom} FILTER {tie})": {type_, other, label},
            f"PROJECT[{label}]({other} ; {atom} FILTER {tie})": {label},
            f"({type_} AS {spare} FILTER {renamed})[{spare} -> {label}]": {type_, label},
        }
        text = rng.choice([*forms, *[atom] * 12, f"({atom})+"])
        return text, forms[text]

    def joined(self, left: str, right: str) -> str:
        rng = self.rng
        if not _chance(rng, 0.4):
            return f"{left} ; {right}"
        seen = rng.choice(self.labels)
        absent = rng.choice([label for label in LABELS if label != seen])
        type_ = self.type()
        tie = f"{absent}.{self.key} = {seen}.{self.key}"
        if _chance(rng, 0.3):
            tie = self.conditions.condition([absent], [seen])
        return rng.choice(
            (
                f"({left}) : ({right})",
                f"(({left}) ALL ({right}))",
                f"({left}) ; !({type_} AS {absent} FILTER {tie}) ; {right}",
                f"({left}) ; !({type_} AS {absent} FILTER {tie}) ; {right}",
                f"{left} ; {self.type()} ; {right}",
            )
        )

    def ties(self) -> list[str]:
        """Equalities between the labels: one key for all, a key for each pair, or not all tied."""
        rng = self.rng
        form = rng.choice(("one", "one", "one", "chain", "chain", "some"))
        found = []
        for place in range(1, len(self.labels)):
            other = self.labels[rng.randrange(place) if form == "one" else place - 1]
            pair = [self.labels[place], other]
            if _chance(rng, 0.5):
                pair.reverse()
            key = self.key if form == "one" else rng.choice(_KEYS)
            found.append(f"{pair[0]}.{key} = {pair[1]}.{key}")
        if form == "some" and len(found) > 1:
            found.pop(rng.randrange(len(found)))
        return found

    def wrapped(self, text: str, bound: frozenset[str]) -> tuple[str, frozenset[str]]:
        """The formula under one more operator, or as it is."""
        rng = self.rng
        if not _chance(rng, 0.45):
            return text, bound
        seen = rng.choice(sorted(self.labels))
        other = rng.choice([label for label in LABELS if label != seen])
        type_ = self.type()
        tie = f"{other}.{self.key} = {seen}.{self.key}"
        selector = rng.choice(("NXT", "LAST", "MAX", "STRICT"))
        renamed = bound - {seen} | {other}
        kept = rng.sample(sorted(bound), rng.randint(1, len(bound)))
        return rng.choice(
            (
                (f"{text}+", bound),
                (f"{text}:+", bound),
                (f"{selector}{text}", bound),
                (f"{selector}{text}", bound),
                (f"PROJECT[{', '.join(kept)}]{text}", frozenset(kept)),
                (f"{text}[{seen} -> {other}]", renamed),
                (f"({text} UNLESS ({type_} AS {other} FILTER {tie}))", bound),
                (f"({text} UNLESS ({type_} AS {other} FILTER {tie}))", bound),
                (f"({text} OR {type_} AS {seen})", bound | {type_}),
                (f"({type_} AS {other} ; {selector}{text})", bound | {type_, other}),
            )
        )
