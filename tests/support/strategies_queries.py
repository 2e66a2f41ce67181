"""Random chains of queries: two or three levels over one stream."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

_ATTRIBUTES = "id: INT, value: DOUBLE, name: STRING, ts: LONG"
DECLARATION = (
    "CREATE STREAM S {\n"
    + ",\n".join(f"  EVENT {name} {{ {_ATTRIBUTES} }}" for name in "ABCD")
    + "\n}\nPARAMETERS rule { id: INT, least: LONG }\n"
)

_FIRST = (
    "SELECT x, x.value AS v, y.id AS id FROM S WHERE A AS x ; B AS y{window}{keys}",
    "SELECT x.value AS v, x.id AS id FROM S WHERE (A AS x ; B AS y) FILTER x.id = y.id{window}",
    "SELECT x.value AS v, x.id AS id FROM S WHERE A AS x OR C AS x{keys}",
    "SELECT LAST x, SUM(x.value) AS v, FIRST(x.id) AS id FROM S WHERE (A AS x)+ ; B{window}",
    "SELECT x.value AS v, x.id AS id FROM S WHERE A AS x : (B OR C)",
    "SELECT y, COUNT(y) AS n, MAX(x.value) AS v FROM S WHERE A AS x ; B AS y{window}{keys}",
    "SELECT x.value AS v, y.id AS id FROM S WHERE A AS x ; !C ; B AS y{window}",
    "SELECT x.value AS v, x.id AS id FROM S WHERE A AS x ; !C FOR {length} [ts]{keys}",
    "SELECT x.value AS v, x.id AS id FROM S "
    "WHERE (A AS x ; !(B FILTER B.id = x.id) FOR {length} [ts]) OR B AS x{window}",
    "SELECT x.value AS v, y.id AS id FROM S WHERE A AS x ; B AS y ; !C WITHIN {length} [ts]",
    "SELECT FIRST x.value AS v, y.id AS id FROM S "
    "WHERE A AS x ; B AS y ; !C FOR {length} [ts]{keys}",
)


_KEYS = " PARTITION BY id"
_PER = ("", " PER END", " PER PARTITION", " PER PARTITION")
_SELECTORS = ("NXT", "LAST", "MAX", "STRICT")
_STARTS = ("FIRST", "LONGEST", "FIRST DISJOINT", "LONGEST DISJOINT")
_ORDERS = (*_SELECTORS, *_STARTS, "")
"""What SELECT says of which matches stay; that LIMIT and ANY say it of others leaves a choice."""
_RATES = (" LIMIT 1 PER 2", " LIMIT 2 PER 3", " LIMIT 2 PER PARTITION")


class Chain(NamedTuple):
    """A file, the names of its queries that read others, and its events. Of `readers` one is with
    COLLAPSED and two choose among their matches, and `totals` are with TOTAL. Those of `each` are
    FOR EACH of the rows `rules`, `each_totals` are so with TOTAL. `at_end` and `clock` are options
    of the call: absences at the ends of what is read are decided by them."""

    text: str
    readers: tuple[str, ...]
    totals: tuple[str, ...]
    events: list[dict[str, Any]]
    at_end: str
    clock: int | None
    each: tuple[str, ...]
    each_totals: tuple[str, ...]
    rules: list[dict[str, Any]]


class _Formulas:
    """Random formulas over the types of one query; labels that are bound once go to `single`.
    each: conditions read the rows of FOR EACH."""

    def __init__(self, rng: random.Random, types: list[str], *, each: bool = False) -> None:
        self._rng = rng
        self._each = each
        self._types = types
        self._next = 0
        self.single: list[str] = []

    def atom(self, *, single: bool = True) -> str:
        """An event, often with a label of its own."""
        rng = self._rng
        name = rng.choice(self._types)
        if rng.random() < 0.15:
            return name
        label = f"l{self._next}"
        self._next += 1
        if single:
            self.single.append(label)
        return f"{name} AS {label}"

    def formula(self, depth: int, *, single: bool = True) -> str:
        """A formula in parentheses, or an atom."""
        rng = self._rng
        if depth == 0 or rng.random() < 0.2:
            return self.atom(single=single)
        one = self.formula(depth - 1, single=single)
        kind = rng.choice(
            (
                *(";",) * 4,
                ":",
                ":",
                ":+",
                "+",
                "+",
                "OR",
                "ALL",
                "UNLESS",
                "!",
                "WITHIN",
                "FILTER",
                "AND",
                "SELECTOR",
            )
        )
        match kind:
            case "+":
                return f"({self.formula(depth - 1, single=False)})+"
            case ":":
                return f"({one} : {self.formula(depth - 1, single=single)})"
            case ":+":
                return f"({self.formula(depth - 1, single=False)}):+"
            case "OR":
                other = self.formula(depth - 1, single=False)
                self.single = [label for label in self.single if f"AS {label}" not in one]
                return f"({one} OR {other})"
            case "AND":
                return f"(({one}) AND ({one}))"
            case "ALL":
                return f"({one} ALL {self.formula(depth - 1, single=single)})"
            case "UNLESS":
                return f"({one} UNLESS ({self.formula(depth - 1, single=False)}))"
            case "!":
                absent = self.formula(depth - 1, single=False)
                return f"({one} ; !({absent}) ; {self.formula(depth - 1, single=single)})"
            case "SELECTOR":
                return f"{rng.choice(_SELECTORS)}({one})"
            case "WITHIN":
                inside = f"{one} ; {self.formula(depth - 1, single=single)}"
                return f"WITHIN[{rng.randint(1, 8)} [ts]]({inside})"
            case "FILTER":
                return f"({one} FILTER {self.condition(one)})"
            case _:
                return f"({one} ; {self.formula(depth - 1, single=single)})"

    def absent(self, formula: str) -> str:
        """What is absent before or after a formula, whose labels its conditions can name."""
        found = self.atom(single=False)
        label = found.partition(" AS ")[2]
        bound = [one for one in self.single if f"AS {one}" in formula]
        if label and bound and self._rng.random() < 0.3:
            return f"{found} FILTER {label}.id = {self._rng.choice(bound)}.id"
        return found

    def condition(self, formula: str) -> str:
        """A condition on labels that a formula binds."""
        rng = self._rng
        labels = [f"l{n}" for n in range(self._next) if f"AS l{n}" in formula]
        if not labels:
            return "rule.id = 1" if self._each else "1 = 1"
        one, other = rng.choice(labels), rng.choice(labels)
        if self._each and rng.random() < 0.7:
            forms = [f"{one}.id = rule.id", f"{one}.ts > rule.least", f"COUNT({one}) <= rule.id"]
            forms += [f"{one}.ts - {other}.ts < rule.least", f"{one}.id < rule.id"]
            return rng.choice((*forms, "rule.id >= 1"))
        if one == other:
            return rng.choice((f"{one}.id = 1", f"{one}.ts > 3"))
        return rng.choice((f"{one}.id = {other}.id", f"{one}.ts < {other}.ts"))


def _reader(
    rng: random.Random, read: list[str], *, keyed: bool, each: bool = False
) -> tuple[str, str]:
    """The items of a query that reads others, and perhaps the stream, and what follows them.
    keyed: with the keys that all queries of the chain have. each: FOR EACH row of a set."""
    wide = rng.random() < 0.7
    types = [*read, *read, *(rng.sample("ABCD", 2) if wide else ())]
    made = _Formulas(rng, types, each=each)
    formula = made.formula(rng.randint(1, 2))
    if each and "rule" not in formula:
        formula = f"({formula} FILTER {made.condition(formula)})"
    shown = [label for label in made.single if f"AS {label}" in formula][:2]
    if rng.random() < 0.2:
        formula = f"!({made.absent(formula)}) FOR {rng.randint(0, 5)} [ts] ; {formula}"
    if rng.random() < 0.25:
        formula = f"{formula} ; !({made.absent(formula)}) FOR {rng.randint(0, 5)} [ts]"
        if rng.random() < 0.2:
            formula, shown = f"({formula}) OR {made.atom(single=False)}", []
    keys = _KEYS if keyed or rng.random() < 0.1 else ""
    number = "" if keys else f", {shown[-1]}.id AS id" if shown else ""
    items = "*"
    if shown and rng.random() < 0.6:
        items = f"{shown[0]}{number}, COUNT({shown[0]}) AS n"
    streams = [*read, *(["S"] if wide else [])]
    rng.shuffle(streams)
    window = f" WITHIN {rng.randint(0, 9)} [ts]" if rng.random() < 0.5 else ""
    tables = f"{', '.join(streams)}{' FOR EACH rule' if each else ''}"
    return items, f"FROM {tables} WHERE {formula}{keys}{window}"


def random_chain(rng: random.Random) -> Chain:
    """A file with one to three queries over the stream, and one or two that read queries."""
    text = DECLARATION
    readable: list[str] = []
    # With the same keys everywhere a chain runs batch by batch.
    keyed = rng.random() < 0.25
    firsts = [one for one in _FIRST if "{keys}" in one] if keyed else _FIRST
    for number in range(rng.randint(1, 2)):
        name = f"q{number}"
        window = f" WITHIN {rng.randint(1, 9)} [ts]" if rng.random() < 0.4 else ""
        keys = _KEYS if keyed or rng.random() < 0.2 else ""
        query = rng.choice(firsts)
        if keys and "{keys}" in query:
            query = query.replace("x.id AS id", "x.ts AS first").replace(
                "y.id AS id", "y.ts AS first"
            )
        # The clauses stand in this order.
        query = query.replace("{window}{keys}", "{keys}{window}")
        query = query.format(window=window, keys=keys, length=rng.randint(0, 6))
        text += f"QUERY {name}:\n{query}\n"
        readable.append(name)
    readers = []
    for number in range(rng.randint(1, 2)):
        name = f"r{number}"
        read = rng.sample(readable, rng.randint(1, min(2, len(readable))))
        items, rest = _reader(rng, read, keyed=keyed)
        chosen = f"{rng.choice(_ORDERS)} " if rng.random() < 0.3 else ""
        text += f"QUERY {name}:\nSELECT {chosen}{items} {rest}\n"
        readers.append(name)
        readable.append(name)
    order, rate = rng.choice(_ORDERS), rng.choice(("", *_RATES))
    if order.startswith("LONGEST") and " WITHIN " not in rest:
        rate = ""
    text += f"QUERY chosen:\nSELECT {order} {items} {rest}{rate}\n"
    few, most = rng.choice((("ANY", ""), *(("", f" LIMIT {n}") for n in (1, 2))))
    few = rng.choice((few, *_STARTS, *_SELECTORS)) if most else few
    text += f"QUERY few:\nSELECT {few} {items} {rest}{most}\n"
    total, _, window = rest.partition(" WITHIN ")
    per = rng.choice(_PER)
    window = f" WITHIN {window}" if window else ""
    text += f"QUERY united:\nSELECT COLLAPSED * {rest}\n"
    text += f"QUERY counted:\nSELECT TOTAL COUNT(*) AS n {total}{window}{per}\n"
    below, keys = rng.choice(readable), _KEYS if keyed else ""
    text += "QUERY rows:\nSELECT TOTAL COUNT(*) AS n, MAX(p.ts) AS latest "
    text += f"FROM {below} WHERE {below} AS p{keys}{rng.choice(_PER)}\n"
    events = _events(rng)
    clock = rng.choice((None, None, events[-1]["ts"] + rng.randint(0, 5)))
    at_end = rng.choice(("open", "closed"))
    names = (*readers, "united", "chosen", "few")
    text += _for_each(rng, readable, keyed=keyed)
    rules = [
        {"id": rng.choice((1, 1, 2, 3, None)), "least": rng.choice((0, 1, 3, 6, None))}
        for _ in range(rng.randint(0, 4))
    ]
    return Chain(
        text,
        names,
        ("counted", "rows"),
        events,
        at_end,
        clock,
        ("each", "each_chosen", "each_united"),
        ("each_counted",),
        rules,
    )


def _for_each(rng: random.Random, readable: list[str], *, keyed: bool) -> str:
    """Queries FOR EACH that read others."""
    read = rng.sample(readable, rng.randint(1, min(2, len(readable))))
    items, rest = _reader(rng, read, keyed=keyed, each=True)
    shown = rng.choice(("", "", "rule[id], ")) if items != "*" else ""
    order, rate = rng.choice(_ORDERS), rng.choice(("", "", *_RATES))
    if order.startswith("LONGEST") and " WITHIN " not in rest:
        rate = ""
    per = rng.choice(_PER)
    return (
        f"QUERY each:\nSELECT {shown}{items} {rest}\n"
        f"QUERY each_chosen:\nSELECT {order} {shown}{items} {rest}{rate}\n"
        f"QUERY each_united:\nSELECT COLLAPSED * {rest}\n"
        f"QUERY each_counted:\nSELECT TOTAL COUNT(*) AS n {rest}{per}\n"
    )


def _events(rng: random.Random) -> list[dict[str, Any]]:
    ts, events = 0, []
    for _ in range(rng.randint(6, 11)):
        ts += rng.choice((0, 1, 1, 1, 2, 3))
        events.append(
            {
                "type": rng.choice("AAABBC" if rng.random() < 0.9 else "D"),
                "id": rng.choice((1, 1, 2, None)) if rng.random() < 0.3 else rng.choice((1, 2)),
                "value": rng.choice((1.0, 2.0, 3.0, 4.5, None)),
                "name": rng.choice(("p", "q", "pq")),
                "ts": ts,
            }
        )
    return events
