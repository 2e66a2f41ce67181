"""Random expressions of functions, and queries that have them in every clause.

Expressions are drawn by type. Of one event they may have any function; of several only those that
are computed between events, of values that are of one event each.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

_OWN = (
    "id: INT, v: DOUBLE, f: FLOAT, big: LONG, s: STRING, at: TIMESTAMP, d: DATE, seq: LONG, "
    "ts: TIMESTAMP"
)
_MORE = "n: INT, t: STRING, ok: BOOLEAN, px: DECIMAL(10, 2)"
ZONES = ("Europe/Berlin", "America/St_Johns", "Asia/Kolkata")

NUMBERS = ("id", "v", "f", "big", "n", "n", "v", "dn", "px")
TEXTS = ("s", "s", "t", "ds")
TRUTHS = ("ok", "ok", "dk")
LACKED = ("n", "t", "ok", "px")
"""Attributes that events of the type C lack."""

_REGEXES = ("'(a+)'", "'(.)b?$', 0", "'^([^a]*)(a|b)', 2", "'(?:(a)|b)+'")

_SIGNS = ("=", "=", "<", ">=", "<>", ">", "<=")


class Values:
    """Texts of expressions. `leaf` gives an attribute of the wanted names; `whole`: they are of one
    event, or of a match, and any function may stand in them."""

    def __init__(
        self,
        rng: random.Random,
        leaf: Callable[[Sequence[str]], str],
        *,
        whole: bool = True,
        labels: Sequence[str] = (),
    ) -> None:
        self.rng = rng
        self.leaf = leaf
        self.whole = whole
        self.labels = labels  # those whose types can be asked for

    def pick(self, *ways: Callable[[], str]) -> str:
        """One of some texts, of which only that one is drawn."""
        return self.rng.choice(ways)()

    # --- numbers ---

    def number(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            literals = ("0", "1", "2", "2.5", "-1", "3", "0.5", "1e0")
            return rng.choice(literals) if rng.random() < 0.2 else self.leaf(NUMBERS)
        less = depth - 1
        anywhere = (
            lambda: f"SQRT({self.number(less)})",
            lambda: f"POWER({self.number(less)}, {rng.choice(('2', '3', '0.5', '-1'))})",
            lambda: f"{rng.choice(('FLOOR', 'CEIL', 'SIGN', 'ABS'))}({self.number(less)})",
            lambda: f"{rng.choice(('LN', 'LOG10', 'EXP', 'COS'))}({self.number(less)})",
            lambda: f"ATAN2({self.number(less)}, {self.number(less)})",
            lambda: f"{rng.choice(('GREATEST', 'LEAST'))}({self.list(self.number, less)})",
            lambda: f"COALESCE({self.list(self.number, less)})",
            lambda: f"COALESCE({self.number(less)}, {self.number(less)})",
            lambda: f"NULLIF({self.number(less)}, {self.number(less)})",
            lambda: f"({self.number(less)} {rng.choice('+-*/%')} {self.number(less)})",
            lambda: f"({self.number(less)} {rng.choice('+-')} {self.number(less)})",
            lambda: f"-({self.number(less)})",
            lambda: self.chosen(self.number, less),
            lambda: f"ROUND({self.rounded(less)}{rng.choice(('', ', 1', ', 2', ', -1'))})",
            lambda: f"{self.part()}({self.time(less)})",
            lambda: f"{self.part()}({self.leaf(('d',))})",
            lambda: f"{rng.choice(_CASTS)}({self.rounded(less)} AS {rng.choice(_NUMBER_TYPES)})",
            lambda: f"{rng.choice(_CASTS)}({self.leaf(('px',))} AS {rng.choice(_NUMBER_TYPES)})",
        )
        alone = (
            lambda: f"LENGTH({self.text(less)})",
            lambda: f"POSITION({rng.choice(('a', 'b', ''))!r}, {self.text(less)})",
            lambda: f"{self.part()}({self.time(less)}{self.zone()})",
            lambda: f"CAST({self.text(less)} AS {rng.choice(_NUMBER_TYPES)})",
            lambda: f"TRY_CAST({self.text(less)} AS {rng.choice(_NUMBER_TYPES)})",
            lambda: f"CAST({self.truth(less)} AS INT)",
            lambda: f"HASH({self.text(less)}, {self.rounded(0)}) % 3",
        )
        return self.pick(*anywhere, *(alone if self.whole else ()))

    def rounded(self, depth: int) -> str:
        """A number that is no DECIMAL."""
        return f"({self.number(depth)} + 0e0)" if self.rng.random() < 0.8 else self.leaf(("n",))

    def part(self) -> str:
        parts = ("HOUR", "MINUTE", "DAY", "DAYOFWEEK", "MONTH", "YEAR", "SECOND")
        return self.rng.choice(parts)

    def zone(self) -> str:
        zone = self.rng.choice((*ZONES, "", "", ""))
        return f" AT TIME ZONE '{zone}'" if zone else ""

    def list(self, one: Callable[[int], str], depth: int) -> str:
        return ", ".join(one(depth) for _ in range(self.rng.randint(2, 3)))

    def chosen(self, one: Callable[[int], str], depth: int) -> str:
        """IF, or CASE in one of its forms."""
        rng = self.rng
        if rng.random() < 0.4:
            return f"IF({self.condition(depth)}, {one(depth)}, {one(depth)})"
        otherwise = rng.choice((f" ELSE {one(depth)}", ""))
        if rng.random() < 0.3:
            when = f"WHEN {self.number(0)} THEN {one(depth)}"
            return f"CASE {self.number(depth)} {when}{otherwise} END"
        ways = (
            f"WHEN {self.condition(depth)} THEN {one(depth)} " for _ in range(rng.randint(1, 2))
        )
        return f"CASE {''.join(ways)}{otherwise} END"

    # --- texts, times, truths ---

    def text(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.2 or not self.whole:
            literals = ("'a'", "'b'", "''", "'A'", "'1'")
            return rng.choice(literals) if rng.random() < 0.15 else self.leaf(TEXTS)
        less = depth - 1
        return self.pick(
            lambda: f"{rng.choice(('TRIM', 'LTRIM', 'RTRIM'))}({self.text(less)})",
            lambda: f"{rng.choice(('UPPER', 'LOWER'))}({self.text(less)})",
            lambda: f"SUBSTR({self.text(less)}, {rng.randint(-2, 3)})",
            lambda: f"SUBSTR({self.text(less)}, {rng.randint(-2, 3)}, {rng.choice('012')})",
            lambda: f"REPLACE({self.text(less)}, 'a', {self.text(0)})",
            lambda: f"SPLIT_PART({self.text(less)}, 'a', {rng.randint(-1, 2)})",
            lambda: f"REGEXP_EXTRACT({self.text(less)}, {rng.choice(_REGEXES)})",
            lambda: f"({self.text(less)} || {self.text(less)})",
            lambda: f"CONCAT({self.list(self.text, less)})",
            lambda: f"COALESCE({self.text(less)}, {self.text(0)})",
            lambda: f"NULLIF({self.text(less)}, {self.text(0)})",
            lambda: f"{rng.choice(('GREATEST', 'LEAST'))}({self.text(less)}, {self.text(less)})",
            lambda: f"CAST({self.rounded(less)} AS STRING)",
            lambda: f"CAST({self.time(less)}{self.zone()} AS STRING)",
            lambda: f"SUBSTR(MD5({self.text(less)}), 1, 1)",
            lambda: f"SUBSTR(SHA2({self.text(less)}, 256), 1, 1)",
            lambda: self.chosen(self.text, less),
        )

    def time(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.5:
            return self.leaf(("at",))
        less = depth - 1
        zone = self.zone if self.whole else str
        unit = rng.choice(("HOUR", "DAY", "WEEK", "MONTH", "minute", "YEAR"))
        return self.pick(
            lambda: f"DATE_TRUNC('{unit}', {self.time(less)}{zone()})",
            lambda: f"COALESCE({self.time(less)}, {self.leaf(('d',))})",
            lambda: f"({self.time(less)} + {rng.choice(('1 HOUR', '30 MINUTES'))})",
            lambda: f"CAST({self.leaf(('d',))}{zone()} AS TIMESTAMP)",
            lambda: f"GREATEST({self.time(less)}, TIMESTAMP '2024-03-31 00:30:00')",
            *((self.by_format,) if self.whole else ()),
        )

    def by_format(self) -> str:
        """A time out of a text in a format."""
        rng = self.rng
        text = f"CAST({self.leaf(('at',))} AS STRING)"
        format = rng.choice(("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd H:m:s", "yyyy-MM-dd hh:mm:ss"))
        if rng.random() < 0.3:
            text, format = f"SUBSTR({text}, 6, 11)", "M-d H:mm"
        if rng.random() < 0.3:
            text, format = f"({text} || ' pm')", f"{format.replace('HH', 'hh').replace('H', 'h')} a"
        elif rng.random() < 0.3:
            return f"CAST(TO_DATE({text}, '{format}') AS TIMESTAMP)"
        return f"TO_TIMESTAMP({text}{self.zone()}, '{format}')"

    def truth(self, depth: int) -> str:
        """A value of the type BOOLEAN."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.3:
            return self.leaf(TRUTHS)
        less = depth - 1
        anywhere = (
            lambda: f"COALESCE({self.truth(less)}, {rng.choice(('TRUE', 'FALSE'))})",
            lambda: f"NULLIF({self.truth(less)}, {rng.choice(('TRUE', 'FALSE'))})",
            lambda: f"IF({self.condition(less)}, {self.truth(less)}, {self.truth(less)})",
            lambda: f"ISNAN({self.rounded(less)})",
            lambda: f"CAST({self.rounded(less)} AS BOOLEAN)",
        )
        alone = (
            lambda: f"STARTSWITH({self.text(less)}, {rng.choice(('a', 'b', 'A'))!r})",
            lambda: f"ENDSWITH({self.text(less)}, {self.text(0)})",
        )
        return self.pick(*anywhere, *(alone if self.whole else ()))

    # --- conditions ---

    def condition(self, depth: int) -> str:
        rng = self.rng
        if depth > 0 and rng.random() < 0.25:
            return self.pick(
                lambda: f"NOT ({self.condition(depth - 1)})",
                lambda: f"({self.condition(depth - 1)} AND {self.condition(depth - 1)})",
                lambda: f"({self.condition(depth - 1)} OR {self.condition(depth - 1)})",
            )
        negation = rng.choice(("", "", "NOT "))
        number = lambda: self.number(depth)  # noqa: E731
        text = lambda: self.text(depth)  # noqa: E731
        if not self.whole and rng.random() < 0.15:
            return self.of_joined(negation)
        if self.labels and rng.random() < 0.1:
            return f"{rng.choice(self.labels)} IS {negation}{rng.choice('AABC')}"
        return self.pick(
            lambda: f"{number()} {rng.choice(_SIGNS)} {self.number(0)}",
            lambda: f"{number()} {rng.choice(_SIGNS)} {number()}",
            lambda: f"{number()} {rng.choice(_SIGNS)} {rng.choice(('1', '0', '2.0', '3'))}",
            lambda: f"{number()} {negation}BETWEEN 0 AND {self.number(0)}",
            lambda: f"{number()} {negation}IN (0, 1, 2, NULL)",
            lambda: f"{number()} IS {negation}NULL",
            lambda: f"{text()} = {text()}",
            lambda: f"{text()} = {self.text(0)}",
            lambda: f"{text()} {rng.choice(_SIGNS)} {rng.choice(('a', 'A', 'b', 'ab'))!r}",
            lambda: f"{text()} {negation}IN ('a', 'A', 'ab', '1')",
            lambda: f"{text()} {negation}LIKE {rng.choice(('a%', '%b', '_'))!r}",
            lambda: f"{text()} IS {negation}DISTINCT FROM {self.text(0)}",
            lambda: f"{number()} IS {negation}DISTINCT FROM {self.number(0)}",
            lambda: f"{text()} IS {negation}NULL",
            lambda: f"{self.time(depth)} {rng.choice(_SIGNS)} {self.time(0)}",
            lambda: self.truth(depth),
            lambda: self.truth(depth),
            lambda: f"{self.truth(depth)} = {self.truth(0)}",
        )

    def of_joined(self, negation: str) -> str:
        """A condition on texts of several events that are joined."""
        rng = self.rng
        pieces = [self.leaf(TEXTS), self.leaf((*TEXTS, "n", "ok", "d"))]
        if rng.random() < 0.4:
            pieces.insert(rng.randrange(3), rng.choice(("'a'", "''", "'-'", self.leaf(TEXTS))))
        joined = " || ".join(pieces)
        if rng.random() < 0.2:
            joined = f"CONCAT({', '.join(pieces)})"
        other = f"{self.leaf(TEXTS)} || {self.leaf(TEXTS)}"
        return rng.choice(
            (
                f"{joined} {rng.choice(_SIGNS)} {rng.choice(('a', 'ab', 'ba', 'Aa', ''))!r}",
                f"{self.leaf(TEXTS)} {rng.choice(_SIGNS)} {joined}",
                f"{joined} {rng.choice(_SIGNS)} {other}",
                f"{joined} {negation}IN ('a', 'ab', {self.leaf(TEXTS)})",
                f"{joined} {negation}BETWEEN 'a' AND {self.leaf(TEXTS)}",
                f"({joined}) IS {negation}NULL",
                f"{joined} IS {negation}DISTINCT FROM {self.leaf(TEXTS)}",
            )
        )


_CASTS = ("CAST", "TRY_CAST")
_NUMBER_TYPES = ("DECIMAL(6, 1)", "INT", "LONG", "DOUBLE", "FLOAT", "SHORT", "BYTE")


def of_event(rng: random.Random, label: str) -> Values:
    """Expressions of one event; without a label as in brackets, keys and declarations."""

    def leaf(names: Sequence[str]) -> str:
        return f"{label}.{rng.choice(names)}" if label else rng.choice(names)

    return Values(rng, leaf, labels=[label] if label else ())


def of_events(rng: random.Random, labels: Sequence[str], *, looks_back: str = "") -> Values:
    """Expressions of several events. `looks_back`: a label of which PREV is taken too."""

    def leaf(names: Sequence[str]) -> str:
        label, name = rng.choice(labels), rng.choice(names)
        if looks_back and rng.random() < 0.4:
            return f"PREV({looks_back}.{name})"
        if rng.random() < 0.5:
            return f"{label}.{name}"
        alone = of_event(rng, label)
        if names is NUMBERS:
            return alone.number(1)
        if names is TEXTS:
            return alone.text(1)
        return alone.truth(1) if names is TRUTHS else f"{label}.{name}"

    return Values(rng, leaf, whole=False, labels=labels)


def of_match(rng: random.Random, labels: Sequence[str], single: Sequence[str]) -> Values:
    """Expressions of a whole match, as SELECT has them."""

    def leaf(names: Sequence[str]) -> str:
        name, label = rng.choice(names), rng.choice(labels)
        if single and rng.random() < 0.5:
            return f"{rng.choice(single)}.{name}"
        is_number = names is NUMBERS and name != "px"
        function = rng.choice(("FIRST", "LAST", *(("SUM", "MAX", "AVG") if is_number else ())))
        return f"{function}({label}.{name})"

    return Values(rng, leaf, labels=single)


# --- declarations ---------------------------------------------------------------------------------


def declaration(rng: random.Random) -> str:
    """A stream whose types derive the same attributes, each in its own way, or have columns."""
    events = []
    for name in "ABC":
        known = _OWN if name == "C" else f"{_OWN}, {_MORE}"
        own = tuple(part.split(":")[0] for part in f"{_OWN}, {_MORE}".split(", ") if ":" in part)
        own = tuple(one for one in own if name != "C" or one not in LACKED)
        events.append(f"  EVENT {name} {{ {known}, {_derived(rng, own)} }}")
    return "CREATE STREAM S {\n" + ",\n".join(events) + "\n}\n"


def _derived(rng: random.Random, own: tuple[str, ...]) -> str:
    made: list[str] = []

    def leaf(names: Sequence[str]) -> str:
        known = [one for one in names if one in own or one in made]
        return rng.choice(known or ["STARTSWITH(s, 'a')" if names is TRUTHS else "id"])

    values = Values(rng, leaf)
    texts = []
    for name, type, draw in (
        ("dn", "DOUBLE", values.number),
        ("ds", "STRING", values.text),
        ("dk", "BOOLEAN", values.truth),
    ):
        # Of a column, where nothing of its kind is known.
        is_known = name != "dk" or "ok" in own
        if is_known and rng.random() < 0.8:
            texts.append(f"{name}: {type} = {draw(2)}")
            made.append(name)
        else:
            texts.append(f"{name}: {type}")
    return ", ".join(texts)


# --- queries --------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """A file with one query, and the options of the call."""

    text: str
    options: dict[str, Any]
    is_total: bool


_FORMULAS = (
    "A AS x ; B AS y{xy}",
    "(A AS x{x}) ; (B AS y{y})",
    "(A OR B) AS x ; (B OR C) AS y{xy}",
    "A AS x ; (A OR C) AS y{xy}",
    "A AS x ; (B AS y)+{xy}",
    "(A OR C) AS x ; ((B OR C) AS y)+{xy}",
    "(A AS x)+ ; B AS y{xy}",
    "((A OR B) AS x):+ : B AS y{xy}",
    "A AS x ; !((A OR C) AS z{z}) ; B AS y",
    "A AS x ; !((A OR C) AS z{xz}) ; B AS y{xy}",
    "A AS x ; !((A OR C) AS z{yz}) ; B AS y",
    "((A AS x ; B AS y) UNLESS ((A OR C) AS z{xz}))",
    "((A AS x ; B AS y) UNLESS ((A OR C) AS z{z})){xy}",
    "(A AS x ; (B AS y{xy}){{1,2}} ; (A OR C) AS z)",
    "(A AS x ; (B AS y)? ; (A OR C) AS z){xy}",
    "(A AS x OR B AS y){x}",
    "((A AS x{x}) ALL (B AS y{y}))",
    "NXT((A OR B) AS x ; (A OR C) AS y{xy})",
    "LAST((A AS x ; (B AS y)+){xy})",
    "WITHIN[3 [seq]](A AS x ; (B OR C) AS y){xy}",
    "!(A AS z{xz}) FOR 3 [seq] ; B AS x ; (A OR C) AS y",
    "A AS x ; B AS y ; !((A OR C) AS z{yz}) FOR 2 [seq]",
    "(A AS x ; B AS y ; (A OR C) AS z){xy}",
    "((A AS x{x}) AND (A AS x{x})) ; B AS y",
    "NOT(A AS z{z}) ; (B AS x ; (A OR C) AS y){xy}",
)
_SEVERAL = ("(B AS y)+", "((B OR C) AS y)+", "(B AS y{xy}){{1,2}}")


def query(rng: random.Random) -> Drawn:
    """A query with functions in every clause that it has."""
    frame = rng.choice(_FORMULAS)
    many = {"y"} if any(one in frame for one in _SEVERAL) else set()
    if "(A AS x)+" in frame or ":+" in frame:
        many.add("x")
    holes = {
        labels: _filter(rng, labels, many)
        for labels in ("x", "y", "z", "xy", "xz", "yz")
        if f"{{{labels}}}" in frame
    }
    formula = frame.format(**holes)
    bound = [one for one in "xy" if f"AS {one}" in frame]
    single = [one for one in bound if one not in many and "OR B AS y" not in frame]
    single = [one for one in single if f"AS {one})?" not in frame]
    keys = _keys(rng)
    before = [f"PARTITION BY {', '.join(keys)}"] if keys else []
    if rng.random() < 0.35:
        before.append(f"WITHIN {rng.choice(('3 [seq]', '5 [seq]', '4 EVENTS', '7 MILLISECONDS'))}")
    behind, select = _select(rng, bound, single)
    if rng.random() < 0.2 and "FOR" not in frame and not select.startswith(("FIRST ", "LONGEST ")):
        before.append(f"CONSUME BY {'PARTITION' if keys and rng.random() < 0.5 else 'ANY'}")
    clauses = " ".join((*before, behind))
    text = f"{declaration(rng)}SELECT {select} FROM S WHERE {formula}\n{clauses}\n"
    options = {"order_by": ("ts",), "at_end": rng.choice(("open", "open", "closed"))}
    return Drawn(text, options, select.startswith("TOTAL"))


def _select(rng: random.Random, bound: list[str], single: list[str]) -> tuple[str, str]:
    """The clause behind all others, and what SELECT has."""
    form = rng.random()
    if form < 0.15:
        of, label = rng.choice(("dn", "n", "v")), rng.choice(bound)
        items = f"COUNT(*) AS c, SUM({label}.{of}) AS s, MAX({label}.{of}) AS m"
        return rng.choice(("PER END", "PER PARTITION", "")), f"TOTAL {items}"
    if form < 0.3:
        return "", "COLLAPSED *"
    word = rng.choice(("", "", "", "", "FIRST ", "NXT ", "LAST ", "MAX ", "LONGEST "))
    items = [*bound] if word or rng.random() < 0.6 else []
    values = of_match(rng, bound, single)
    for number in range(rng.randint(0, 2)):
        draw = rng.choice((values.number, values.text, values.truth, values.time))
        items.append(f"{draw(2)} AS e{number}")
    shown = ", ".join(items) or rng.choice(("*", "NONE", "x[id, dn, ds]"))
    return "LIMIT 2" if rng.random() < 0.1 else "", word + shown


def _filter(rng: random.Random, labels: str, many: set[str]) -> str:
    """FILTER with conditions on these labels."""
    if rng.random() < 0.25:
        return ""
    conditions = [_condition(rng, labels, many) for _ in range(rng.choice((1, 1, 1, 1, 2)))]
    join = rng.choice((" AND ", " OR "))
    return f" FILTER {join.join(conditions)}"


def _condition(rng: random.Random, labels: str, many: set[str]) -> str:
    label = rng.choice(labels)
    alone, both = of_event(rng, label), of_events(rng, labels)
    bare = of_event(rng, "")
    several = [one for one in labels if one in many]

    def quantified() -> str:
        word = rng.choice(("SOME", "EVERY"))
        of = rng.choice(several or labels)
        back = f"{of}.dn > PREV({of}.dn)" if several and rng.random() < 0.5 else f"{of}.id = 1"
        return f"{word} {of}: ({of_event(rng, of).condition(1)} OR {back})"

    def looking_back() -> str:
        of = rng.choice(several or labels)
        return of_events(rng, of, looks_back=of).condition(1)

    def of_all() -> str:
        of = rng.choice(several or labels)
        number = of_match(rng, [of], []).leaf(NUMBERS)
        return rng.choice(
            (
                f"SQRT({number}) > 1",
                f"COALESCE({number}, 0) < {label}.n",
                f"FLOOR({number}) = 1",
                f"{number} = {label}.dn",
                f"COUNT({of}) < 3 OR {alone.condition(1)}",
                f"COALESCE(FIRST({of}.{rng.choice(NUMBERS)}), 1) >= 1",
                f"IF(LAST({of}.ok), {number}, 0) = 1",
                f"CASE WHEN COUNT({of}) > 1 THEN FIRST({of}.n) ELSE 2 END > 1",
                f"NULLIF(FIRST({of}.n), LAST({of}.n)) IS NULL",
                f"LAST({of}.ds) IS DISTINCT FROM {label}.s",
                f"NTH({of}.dn, 2) > 0 OR NOT LAST({of}.dk)",
                f"COUNT(DISTINCT {of}.ds) = 1",
                f"MAX({of}.dn) >= {label}.dn",
            )
        )

    ways = [
        lambda: alone.condition(2),
        lambda: alone.condition(1),
        lambda: f"{label}[{bare.condition(2)}]",
        lambda: f"NOT ({alone.condition(1)})",
        lambda: both.condition(2),
        lambda: both.condition(1),
        lambda: f"{alone.text(2)} = {rng.choice(labels)}.{rng.choice(TEXTS)}",
        lambda: f"UPPER({labels[0]}.s) = UPPER({labels[-1]}.s)",
        quantified,
        *((looking_back, of_all, quantified) if several else (of_all,)),
    ]
    return rng.choice(ways)()


_KEYS = (
    *("UPPER(s)", "LOWER(s)", "LENGTH(s)", "COALESCE(s, 'z')", "HOUR(at)", "dk", "ds", "dn", "id"),
    *("FLOOR(v)", "SUBSTR(s, 1, 1)", "(id % 2)", "DATE_TRUNC('DAY', at)", "ROUND(v)"),
    *("HOUR(at AT TIME ZONE 'Europe/Berlin')", "NULLIF(id, 2)", "ABS(v)", "UPPER(ds)"),
)


def _keys(rng: random.Random) -> list[str]:
    return rng.sample(_KEYS, rng.choice((0, 0, 1, 1, 2)))


# --- streams --------------------------------------------------------------------------------------

_TIMES = [
    dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC),
    dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),
    dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC),
    dt.datetime(2024, 2, 29, 23, 59, 59, 500000, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 18, 30, tzinfo=dt.UTC),
]
_VALUES: dict[str, tuple[Any, ...]] = {
    "id": (0, 1, 2, 1),
    "v": (0.0, 1.0, 2.25, -1.5, 2.0, 1.0),
    "f": (0.0, 1.0, 2.5),
    "big": (0, 1, 2, 4),
    "s": ("a", "A", "ab", "", " a", "1", "b"),
    "n": (0, 1, 2, -1),
    "t": ("a", "b", "A", "1.5"),
    "ok": (True, False),
    "dn": (7.0, None),
    "ds": ("zz", None),
    "dk": (True, False),
    "at": tuple(_TIMES),
    "d": (dt.date(2024, 3, 31), dt.date(2024, 2, 29)),
    "px": tuple(map(Decimal, ("1.50", "2.00", "0.00", "1.00"))),
}


def stream(rng: random.Random, length: int) -> list[dict[str, Any]]:
    """Events. The columns of derived attributes hold something, which does not count."""
    nulls = rng.choice((0.0, 0.1, 0.3))
    few = rng.random() < 0.5
    events, seq = [], 0
    for row in range(length):
        seq += rng.choice((1, 1, 1, 2, 4))
        event: dict[str, Any] = {
            name: None if rng.random() < nulls else rng.choice(known[:3] if few else known)
            for name, known in _VALUES.items()
        }
        ts = dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=seq)
        name = rng.choice("ABC")
        event |= dict.fromkeys(LACKED if name == "C" else ())
        events.append({"type": name, **event, "seq": seq, "ts": ts, "row": row})
    return events
