"""Random queries about DECIMALs, and streams of difficult ones.

Scales differ in one comparison, whole numbers and literals stand beside DECIMALs, and values lie at
the ends of their types.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

COLUMNS = {"px": (10, 2), "q": (18, 4), "w": (38, 10), "n": (38, 0), "r": (5, 5)}
"""The precision and the scale of each attribute."""

DECLARATION = (
    "CREATE STREAM S {\n"
    + ",\n".join(
        f"  EVENT {name} {{ id: INT, big: LONG, ratio: DOUBLE, "
        + ", ".join(f"{one}: DECIMAL({p}, {s})" for one, (p, s) in COLUMNS.items())
        + " }"
        for name in "AB"
    )
    + "\n}\n"
)

_ORDERS = ("=", "<", ">=", "<>", ">", "<=")
_LITERALS = ("1.50", "2", "0.0", "-1.5", "10", "0.005", "3.14159", "-99999999.99", "12345678901.5")
_OF_SETS = ("SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")


class Decimals:
    """Texts about labels; `many` have any number of positions."""

    def __init__(self, rng: random.Random, labels: list[str], many: frozenset[str]) -> None:
        self.rng = rng
        self.labels = labels
        self.many = many
        self.selects = False

    def condition(self) -> str:
        """A comparison."""
        rng = self.rng
        one, other = self.value(2), self.value(1)
        negation = rng.choice(("", "", "NOT "))
        order = rng.choice(_ORDERS)
        return rng.choice(
            (
                *(f"{one} {order} {other}",) * 4,
                *(f"{one} {order} {rng.choice(_LITERALS)}",) * 3,
                f"{one} {negation}BETWEEN {rng.choice(_LITERALS)} AND {other}",
                f"{one} {negation}IN ({', '.join(rng.sample(_LITERALS, 3))})",
                f"({one}) IS {negation}NULL",
                self.equality(),
                self.equality(),
            )
        )

    def equality(self) -> str:
        """An equality that can be a key."""
        one, other = self.rng.choice(self.labels), self.rng.choice(self.labels)
        names = self.rng.choice((("px", "px"), ("px", "q"), ("w", "w"), ("w", "px"), ("n", "id")))
        return f"{one}.{names[0]} = {other}.{names[1]}"

    def value(self, depth: int) -> str:
        """An expression that is mostly a DECIMAL."""
        rng = self.rng
        if not depth or rng.random() < 0.3:
            return self.leaf()
        one = self.value(depth - 1)
        if rng.random() < 0.15:
            return rng.choice((f"-({one})", f"ABS({one})"))
        other = rng.choice((self.leaf(), self.leaf(), rng.choice(_LITERALS)))
        return f"({one} {rng.choice('++--**/%')} {other})"

    def leaf(self) -> str:
        """An attribute, or a function of a label."""
        rng, label = self.rng, self.rng.choice(self.labels)
        name = rng.choice((*COLUMNS, "px", "px", "q", "w"))
        if rng.random() < 0.15:
            name = rng.choice(("id", "big", "ratio"))
        if self.selects or (label in self.many and rng.random() < 0.5):
            return f"{rng.choice(_OF_SETS)}({label}.{name})"
        if label in self.many and rng.random() < 0.3:
            narrow = rng.choice(("px", "q", "r"))
            others = (f"MEDIAN({label}.{narrow})", f"STDDEV({label}.{narrow})")
            return rng.choice((f"PREV({label}.{name})", f"COUNT(DISTINCT {label}.{name})", *others))
        return f"{label}.{name}"


def query(rng: random.Random) -> str:
    """A file with one query."""
    formula, labels, many = rng.choice(
        (
            ("A AS a ; B AS b", ["a", "b"], frozenset[str]()),
            ("A AS a", ["a"], frozenset[str]()),
            ("(A OR B) AS a ; B+ AS b", ["a", "b"], frozenset("b")),
            ("A AS a ; B AS b ; A AS c", ["a", "b", "c"], frozenset[str]()),
            ("(A OR B)+ AS a", ["a"], frozenset("a")),
        )
    )
    texts = Decimals(rng, labels, many)
    conditions = [texts.condition() for _ in range(rng.randint(1, 3))]
    join = rng.choice((" AND ", " AND ", " OR "))
    texts.selects = True
    items = [f"{texts.value(2)} AS value_{number}" for number in range(rng.randint(0, 2))]
    if rng.random() < 0.3:
        items.append(f"COLLECT({rng.choice(labels)}.{rng.choice(tuple(COLUMNS))}) AS all_of_it")
    select = ", ".join([*labels, *items]) if items else "*"
    by = rng.choice(("", "", "", "PARTITION BY px\n", "PARTITION BY w\n"))
    return (
        f"{DECLARATION}SELECT {select} FROM S WHERE {formula} FILTER {join.join(conditions)}\n{by}"
    )


def totals_query(rng: random.Random) -> str:
    """A file with one query of totals."""

    def total() -> str:
        function = rng.choice(("SUM", "AVG", "MIN", "MAX"))
        return f"{function}({rng.choice('ab')}.{rng.choice(tuple(COLUMNS))})"

    def item() -> str:
        other = rng.choice(("2", "1.5", "COUNT(*)", "COUNT(b)", "0.25e0", total()))
        return rng.choice(
            (
                *(total(), total(), f"-{total()}"),
                f"{total()} {rng.choice('+-*/%')} {other}",
                f"ABS({total()}) {rng.choice('+-')} {other}",
                f"ROUND({total()} {rng.choice('+-')} {other}, {rng.choice(('0', '1', '-1'))})",
                f"COALESCE({total()}, {rng.choice(('0', '1.5', total()))})",
                f"CASE WHEN {total()} > 1 THEN {total()} WHEN COUNT(*) > 2 THEN 0.5 END",
                f"{rng.choice(('LEAST', 'GREATEST'))}({total()}, {other})",
                f"{rng.choice(('FLOOR', 'CEIL'))}({total()}) + COUNT(*)",
                f"CAST(CAST({total()} AS INT) AS DECIMAL(12, 1))",
            )
        )

    items = ", ".join(f"{item()} AS v{number}" for number in range(rng.randint(1, 3)))
    having = rng.choice(
        (
            *("", "", " HAVING v0 > 1.5", " HAVING v0 IN (1.5, 3, 0.00)"),
            *(" HAVING ROUND(v0, 1) > 1.5", " HAVING size = 'many' OR v0 > 0"),
            " HAVING size LIKE '%w' AND COALESCE(v0, 1) > 0",
        )
    )
    if "size" in having:
        items += ", CASE WHEN COUNT(*) > 1 THEN 'many' ELSE 'few' END AS size"
    formula = rng.choice(("A AS a ; B AS b", "(A OR B)+ AS a ; B AS b"))
    condition = rng.choice(("", " FILTER a.px < b.px", " FILTER a.px > -1.5"))
    per = rng.choice(("", " PER PARTITION"))
    window = rng.choice(("", " WITHIN 2 EVENTS", " WITHIN 4 EVENTS"))
    where = f"FROM S WHERE {formula}{condition}{window}{per}{having}"
    return f"{DECLARATION}SELECT TOTAL {items} {where}\n"


def stream(rng: random.Random, length: int) -> list[dict[str, Any]]:
    """Events, each attribute NULL now and then."""
    nulls = rng.choice((0.0, 0.1, 0.3))
    ends = rng.choice((0.0, 0.1, 0.5))

    def drawn(name: str) -> Decimal | None:
        precision, scale = COLUMNS[name]
        if rng.random() < nulls:
            return None
        few = (150, 200, 0, -150, 314, 1, 5)
        units = rng.choice(few) * 10**scale // 100
        if rng.random() < ends:
            largest = 10**precision - 1
            digits = 10 ** rng.randint(1, precision)
            units = rng.choice((largest, -largest, largest // 2 + 1, rng.randrange(digits)))
        most = 10**precision - 1
        return Decimal(f"{min(max(units, -most), most)}e-{scale}")

    return [
        {
            "type": rng.choice("AB"),
            "id": rng.choice((0, 1, 2, 3, None, 2**31 - 1)),
            "big": rng.choice((0, 1, -2, 2**63 - 1, None)),
            "ratio": rng.choice((1.5, 0.1, -2.0, None)),
            **{name: drawn(name) for name in COLUMNS},
        }
        for _ in range(length)
    ]
