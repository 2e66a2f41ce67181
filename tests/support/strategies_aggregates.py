"""Random aggregates of a file, and calls of them and of the functions of sets, for `strategies`.

A file declares one aggregate of each signature, with a random body; calls know the signatures only.
Most give numbers, so that they can stand where SUM can; `own_name` gives a text.
"""

from __future__ import annotations

import random

_NUMBERS = ("value", "value", "id", "number", "ratio", "ts")
_SIGNATURES: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "own_real": ((("a", "DOUBLE"),), "DOUBLE"),
    "own_int": ((("a", "INT"),), "INT"),
    "own_long": ((("a", "LONG"), ("b", "INT")), "LONG"),
    "own_text": ((("t", "STRING"), ("a", "DOUBLE")), "DOUBLE"),
    "own_texts": ((("t", "STRING"), ("s", "STRING"), ("a", "LONG")), "LONG"),
    "own_float": ((("a", "FLOAT"), ("f", "BOOLEAN")), "FLOAT"),
    "own_day": ((("d", "DATE"), ("a", "DOUBLE")), "DOUBLE"),
    "own_time": ((("d", "TIMESTAMP"), ("a", "LONG")), "DOUBLE"),
    "own_name": ((("t", "STRING"), ("a", "DOUBLE")), "STRING"),
    "own_names": ((("t", "STRING"), ("s", "STRING")), "STRING"),
    "own_made": ((("t", "STRING"), ("a", "LONG")), "STRING"),
    "own_length": ((("t", "STRING"), ("s", "STRING")), "INT"),
}
_OF_TEXTS = ("own_name", "own_names")
_MAKING = ("own_made", "own_length")
"""Those that make texts: by || and the functions of texts, and without RLIKE."""
_ATTRIBUTES = {
    "DOUBLE": _NUMBERS,
    "FLOAT": ("ratio", "id", "number"),
    "LONG": ("number", "id"),
    "INT": ("id",),
    "STRING": ("name", "name", "code"),
    "BOOLEAN": ("flag",),
    "DATE": ("day",),
    "TIMESTAMP": ("day",),
}
_WIDENING = ("INT", "LONG", "FLOAT", "DOUBLE")
_STATES = ("DOUBLE", "DOUBLE", "LONG", "INT", "FLOAT", "BOOLEAN", "DATE", "TIMESTAMP", "INTERVAL")
_STATES = (*_STATES, "STRING", "STRING")
_LIKES = ("LIKE 'p%'", "LIKE '%'", "LIKE '_'", "LIKE '%q_%'", "LIKE '_%é%'")
_PATTERNS = (*_LIKES, "RLIKE '^[pq]$'", "RLIKE 'é|z'")
_LITERALS = {
    "INT": ("0", "1", "-1", "2147483647", "2"),
    "LONG": ("0", "3", "-9223372036854775808", "5000000000"),
    "FLOAT": ("0", "1", "16777217"),
    "DOUBLE": ("0", "0.5", "-1.5", "1e16", "2"),
    "BOOLEAN": ("TRUE", "FALSE"),
    "DATE": ("DATE '2024-02-29'", "DATE '1969-12-31'"),
    "TIMESTAMP": ("TIMESTAMP '2024-03-01 00:00:00'", "DATE '2024-02-29'"),
    "INTERVAL": ("1 DAY", "2 HOURS 30 SECONDS"),
    "STRING": ("'p'", "'pq'", "''", "'é'", "'z'"),
}


def own_pattern(rng: random.Random, label: str) -> str:
    """A pattern that a text of an aggregate of the file is asked for."""
    no = rng.choice(("", "NOT "))
    before = "PRIOR " if rng.random() < 0.5 else ""
    name = rng.choice((*_OF_TEXTS, "own_made"))
    patterns = _LIKES if name in _MAKING else _PATTERNS
    return f"{_call(rng, name, before, label)} {no}{rng.choice(patterns)}"


def own_call(rng: random.Random, label: str, *, prior: bool) -> str:
    """A call of an aggregate of the file, or of a function of sets, that is a number; `prior`: it
    may be of what lies before."""
    before = "PRIOR " if prior and rng.random() < 0.5 else ""
    if rng.random() < 0.4:
        if rng.random() < 0.4:
            attribute = rng.choice((*_NUMBERS, "name", "code", "flag", "day"))
            return f"COUNT(DISTINCT {before}{label}.{attribute})"
        function = rng.choice(("VARIANCE", "STDDEV", "MEDIAN", "MEDIAN"))
        return f"{function}({before}{label}.{rng.choice(_NUMBERS)})"
    name = rng.choice([one for one, (_, kind) in _SIGNATURES.items() if kind != "STRING"])
    return _call(rng, name, before, label)


def own_text(rng: random.Random, label: str, *, prior: bool) -> str:
    """A call of an aggregate of the file that is a text."""
    before = "PRIOR " if prior and rng.random() < 0.5 else ""
    return _call(rng, rng.choice((*_OF_TEXTS, "own_made")), before, label)


def _call(rng: random.Random, name: str, before: str, label: str) -> str:
    parameters, _ = _SIGNATURES[name]
    taken = [f"{label}.{rng.choice(_ATTRIBUTES[kind])}" for _, kind in parameters]
    return f"{name}({before}{', '.join(taken)})"


def own_declarations(rng: random.Random) -> str:
    """A declaration of each aggregate that calls name."""
    return "".join(_Declaration(rng, name).text() for name in _SIGNATURES)


class _Declaration:
    """Writes one declaration; `names` are what expressions may name, by type."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng = rng
        self.name = name
        self.parameters, self.kind = _SIGNATURES[name]
        self.state = [
            (f"v{number}", rng.choice((self.kind, self.kind, *_STATES)))
            for number in range(rng.randint(1, 3))
        ]
        self.names: list[tuple[str, str]] = []

    def text(self) -> str:
        """`AGGREGATE own_real(a: DOUBLE): DOUBLE …`."""
        rng = self.rng
        state = ", ".join(f"{name}: {kind} = {self._first(kind)}" for name, kind in self.state)
        self.names = [*self.parameters, *self.state, *self.state]
        changed = [one for one in self.state if rng.random() < 0.9] or self.state[:1]
        rng.shuffle(changed)
        steps = ", ".join(f"{name} = {self.expression(kind, 2)}" for name, kind in changed)
        self.names = self.state
        given = ", ".join(f"{name}: {kind}" for name, kind in self.parameters)
        return (
            f"AGGREGATE {self.name}({given}): {self.kind}\n  STATE {state}\n  STEP {steps}\n"
            f"  RESULT {self.expression(self.kind, 1)}\n"
        )

    def _first(self, kind: str) -> str:
        return "NULL" if self.rng.random() < 0.3 else self.rng.choice(_LITERALS[kind])

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a type, or of a narrower one."""
        rng = self.rng
        if kind in _WIDENING and rng.random() < 0.3:
            kind = rng.choice(_WIDENING[: _WIDENING.index(kind) + 1])
        if not depth or rng.random() < 0.2:
            fitting = [name for name, one in self.names if one == kind]
            return rng.choice((*fitting, *fitting, *fitting, rng.choice(_LITERALS[kind])))
        forms = ["choice", "if"]
        if kind in _WIDENING:
            forms += ["arithmetic", "arithmetic", "arithmetic", "sign"]
        elif kind in ("TIMESTAMP", "INTERVAL"):
            forms += ["times", "times"]
        elif kind == "BOOLEAN":
            forms += ["computed"]
        if kind in (*_WIDENING, "TIMESTAMP", "DATE"):
            forms += ["computed"]
        if kind in ("STRING", "INT", "BOOLEAN") and self.name in _MAKING:
            forms += ["of texts"] * 3
        form = rng.choice(forms)
        if form == "computed":
            return self._computed(kind, depth)
        if form == "of texts":
            return self._of_texts(kind, depth)
        first, second = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        match form:
            case "choice":
                function = rng.choice(("LEAST", "GREATEST", "COALESCE"))
                last = rng.choice(("", "", ", NULL", f", {self.expression(kind, depth - 1)}"))
                return f"{function}({first}, {second}{last})"
            case "if" if rng.random() < 0.3:
                cases = [
                    f"WHEN {self.condition(depth - 1)} THEN {one}"
                    for one in (first, second, first)[: rng.randint(1, 3)]
                ]
                return f"CASE {' '.join(cases)}{rng.choice(('', f' ELSE {second}'))} END"
            case "if":
                second = rng.choice((second, second, "NULL"))
                sides = [first, second] if rng.random() < 0.7 else [second, first]
                return f"IF({self.condition(depth - 1)}, {sides[0]}, {sides[1]})"
            case "sign":
                return rng.choice((f"-({first})", f"ABS({first})"))
            case "times" if kind == "INTERVAL":
                moments = self.expression("TIMESTAMP", 0), self.expression("DATE", 0)
                return rng.choice(
                    (
                        f"({moments[0]} - {moments[1]})",
                        f"({first} + {second})",
                        f"(2 * {first})",
                        f"ABS(-({first}))",
                    )
                )
            case "times":
                return f"({first} {rng.choice('+-')} {self.expression('INTERVAL', 0)})"
            case _:
                signs = "+-*/%" if kind == "DOUBLE" else "+-*%"
                return f"({first} {rng.choice(signs)} {second})"

    def _computed(self, kind: str, depth: int) -> str:
        """A function of values, of those whose answers are exact."""
        rng = self.rng
        own = self.expression(kind, depth - 1)
        named = [name for name, one in self.names if one == kind]
        # Of two equal literals it is NULL, which has no type.
        forms = [f"NULLIF({rng.choice(named)}, {own})"] if named else [own]
        real = self.expression("DOUBLE", depth - 1)
        # A literal of a DATE is one of TIMESTAMP too, and no number.
        time = (
            f"COALESCE({self.expression('TIMESTAMP', depth - 1)}, TIMESTAMP '1999-12-31 23:59:59')"
        )
        whole = self.expression("LONG", depth - 1)
        match kind:
            case "DOUBLE":
                forms += [f"SQRT({real})", f"ROUND({real}, 1)", f"SIGN({real})"]
                forms += [f"CAST({whole} AS DOUBLE)"]
            case "FLOAT":
                forms += [f"CAST({real} AS FLOAT)"]
            case "LONG":
                forms += [f"FLOOR({real})", f"CEIL({real})", f"CAST({time} AS LONG)"]
            case "INT":
                forms += [f"YEAR({time})", f"DAY({time})", f"CAST({whole} AS INT)"]
            case "BOOLEAN":
                forms += [f"ISNAN({real})"]
            case "DATE":
                forms += [f"CAST({time} AS DATE)"]
            case "TIMESTAMP":
                forms += [f"DATE_TRUNC('hour', {time})"]
        return rng.choice(forms)

    def _of_texts(self, kind: str, depth: int) -> str:
        """A function of texts."""
        rng = self.rng
        text, other = self.expression("STRING", depth - 1), self.expression("STRING", depth - 1)
        place, length = rng.randint(-3, 3), rng.randint(-1, 3)
        match kind:
            case "INT":
                return rng.choice((f"LENGTH({text})", f"POSITION({other}, {text})"))
            case "BOOLEAN":
                return f"{rng.choice(('STARTSWITH', 'ENDSWITH'))}({text}, {other})"
        return rng.choice(
            (
                f"({text} || {other})",
                f"(COALESCE({text}, '') || 'é ' || {other})",
                f"CONCAT({other}, {text}, 'q')",
                f"SUBSTR({text}, {place})",
                f"SUBSTR({text}, {place}, {length})",
                f"REPLACE({text}, {other}, 'zé')",
                f"REPLACE({text}, 'p')",
                f"{rng.choice(('TRIM', 'LTRIM', 'RTRIM'))}({text} || ' ')",
                f"({text} || CAST({self.expression('LONG', depth - 1)} AS STRING))",
            )
        )

    def condition(self, depth: int) -> str:
        """A condition of IF."""
        rng = self.rng
        if depth and rng.random() < 0.4:
            first, second = self.condition(depth - 1), self.condition(depth - 1)
            return rng.choice((f"{first} AND {second}", f"({first} OR {second})", f"NOT ({first})"))
        texts = [name for name, kind in self.parameters if kind == "STRING"]
        texts = [name for name in texts if (name, "STRING") in self.names]
        if any(kind == "STRING" for _, kind in self.names) and rng.random() < 0.2:
            patterns = _LIKES if self.name in _MAKING else _PATTERNS
            text, pattern = self.expression("STRING", depth), rng.choice(patterns)
            return f"{text} {rng.choice(('', 'NOT '))}{pattern}"
        if texts and rng.random() < 0.6:
            t, s = rng.choice(texts), rng.choice(texts)
            return rng.choice(
                (
                    f"{t} = 'p'",
                    f"{t} < 'q'",
                    f"{t} {rng.choice(('', 'NOT '))}LIKE 'p%'",
                    f"{t} IN ('p', 'é')",
                    f"{t} NOT IN ('q', NULL)",
                    f"{t} {rng.choice(('=', '<', '<>'))} {s}",
                    f"{t} IS NULL",
                    f"{t} RLIKE '^[pq]$'",
                )
            )
        _, kind = rng.choice(self.names)
        first, second = self.expression(kind, depth), self.expression(kind, depth)
        order = rng.choice(("=", "<", ">=", "<>", ">", "<="))
        return rng.choice(
            (
                f"{first} {order} {second}",
                f"{first} {order} {second}",
                f"{first} IS {rng.choice(('', 'NOT '))}NULL",
                f"{first} {rng.choice(('', 'NOT '))}BETWEEN {second} AND {first}",
                f"{first} {rng.choice(('', 'NOT '))}IN ({second}, {rng.choice(_LITERALS[kind])})",
            )
        )
