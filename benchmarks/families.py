"""Queries that grow in one way each: `FAMILIES[name](n)` is the text with n of something.

`benchmarks/compile.py --growth` measures them, `tests/test_compile_growth.py` counts what the
compiler does for them.
"""

from __future__ import annotations

from collections.abc import Callable

STREAM = "CREATE STREAM S { EVENT A { v: INT, s: STRING }, EVENT B { v: INT, s: STRING } }\n"


def _each(text: str, count: int, joined: str) -> str:
    return joined.join(text.format(k=k, next=k + 1) for k in range(count))


def _types(count: int, formula: str) -> str:
    declared = _each("EVENT E{k} {{ v: INT }}", count, ", ")
    return (
        f"CREATE STREAM S {{ EVENT A {{ v: INT }}, EVENT B {{ v: INT }}, {declared} }}\n{formula}"
    )


def _attributes(count: int, formula: str) -> str:
    declared = _each("a{k}: INT", count, ", ")
    return f"CREATE STREAM S {{ EVENT A {{ {declared} }}, EVENT B {{ {declared} }} }}\n{formula}"


def _filtered(condition: str) -> str:
    return f"{STREAM}(A AS x ; B) FILTER {condition}"


def _streams(count: int, query: str) -> str:
    declared = _each("CREATE STREAM S{k} {{ EVENT E{k} {{ v: INT }} }}", count, "\n")
    return f"{declared}\n{query}"


FAMILIES: dict[str, Callable[[int], str]] = {
    "event types, declared": lambda n: _types(n, "A ; B"),
    "event types in an OR": lambda n: _types(n, f"A ; ({_each('E{k}', n, ' OR ')}) AS x ; B"),
    "event types, an attribute each": lambda n: (
        f"CREATE STREAM S {{ {_each('EVENT E{k} {{ a{k}: INT }}', n, ', ')} }}\nE0 AS x ; E1"
    ),
    "attributes, declared": lambda n: _attributes(n, "A AS x ; B"),
    "attributes of PARTITION BY": lambda n: _attributes(
        n, f"SELECT * FROM S WHERE A ; B PARTITION BY {_each('a{k}', n, ', ')}"
    ),
    "streams, declared": lambda n: _streams(n, "SELECT * FROM S0 WHERE E0 AS x"),
    "streams in FROM": lambda n: _streams(
        n, f"SELECT * FROM {_each('S{k}', n, ', ')} WHERE E0 AS x"
    ),
    "ORs, = numbers": lambda n: _filtered(_each("x.v = {k}", n, " OR ")),
    "ORs, = texts": lambda n: _filtered(_each("x.s = 'k{k}'", n, " OR ")),
    "ORs, LIKE": lambda n: _filtered(_each("x.s LIKE 'k{k}%'", n, " OR ")),
    "ORs, an attribute each": lambda n: _attributes(
        n, f"(A AS x ; B) FILTER {_each('x.a{k} = {k}', n, ' OR ')}"
    ),
    "ANDs, != numbers": lambda n: _filtered(_each("x.v != {k}", n, " AND ")),
    "ANDs, an attribute each": lambda n: _attributes(
        n, f"(A AS x ; B) FILTER {_each('x.a{k} > {k}', n, ' AND ')}"
    ),
    "IN, numbers": lambda n: _filtered(f"x.v IN ({_each('{k}', n, ', ')})"),
    "IN, texts": lambda n: _filtered(f"x.s IN ({_each(chr(39) + 'k{k}' + chr(39), n, ', ')})"),
    "NOT IN, texts": lambda n: _filtered(
        f"x.s NOT IN ({_each(chr(39) + 'k{k}' + chr(39), n, ', ')})"
    ),
    "labels in a sequence": lambda n: STREAM + _each("A AS x{k}", n, " ; "),
    "labels in an OR": lambda n: f"{STREAM}({_each('A AS x{k}', n, ' OR ')}) ; B",
    "labels in SELECT": lambda n: (
        f"{STREAM}SELECT {_each('x{k}', n, ', ')} FROM S WHERE {_each('A AS x{k}', n, ' ; ')}"
    ),
    "a chain of two types": lambda n: STREAM + " ; ".join("AB"[k % 2] for k in range(n)),
    "a chain of + of two types": lambda n: STREAM + " ; ".join("AB"[k % 2] + "+" for k in range(n)),
    "rounds": lambda n: f"{STREAM}A{{{n}}} ; B",
    "rounds, any number up to": lambda n: f"{STREAM}(A ; B){{1,{n}}}",
    "rounds with a condition across events": lambda n: (
        f"{STREAM}((A AS x){{{n}}} ; B) FILTER x.v > PREV(x.v, 2)"
    ),
    "operands that may be missing": lambda n: f"{STREAM}A ; {_each('B? ; A', n, ' ; ')} ; B",
    "parentheses": lambda n: f"{STREAM}{'(' * n}A{')' * n} ; B",
    "queries, alike": lambda n: STREAM
    + _each("QUERY q{k}: SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > {k}]", n, "\n"),
}
"""Compiling these takes time that is proportional to n."""

QUADRATIC: dict[str, Callable[[int], str]] = {
    "labels on one event": lambda n: f"{STREAM}A {_each('AS x{k}', min(n, 150), ' ')} ; B",
    "event types in a chain": lambda n: _types(n, _each("E{k}", n, " ; ")),
    "equalities along a chain": lambda n: (
        f"{STREAM}({_each('A AS x{k}', n, ' ; ')}) FILTER "
        f"{_each('x{k}.v = x{next}.v', n - 1, ' AND ')}"
    ),
}
"""n² by nature: n states times n classes of events, a label set for each of n operators (at
most 200) around an event, or roles of n events that each get one after the other."""
