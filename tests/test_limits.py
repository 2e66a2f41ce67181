"""What is too large is refused in time, with the limit, the place, and what to change.

Where a construction can grow exponentially its growth is counted, so that no query makes the
compiler run for long. One query for each limit; benchmarks/compile.py has more and larger ones.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import pyarrow as pa
import pytest

import celc
from celc.automata.determinize import determinize
from celc.diagnostics.errors import CelError, Diagnostic
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options

DECLARATION = """CREATE STREAM S {
  EVENT A { v: INT, w: INT }, EVENT B { v: INT, w: INT }, EVENT C { v: INT, w: INT }
}
"""
MANY = "CREATE STREAM S { EVENT A { " + ", ".join(f"a{k}: INT" for k in range(60)) + " } }\n"
CPU_LIMIT = 60.0
"""Seconds. Each query takes up to a few; where growth is not counted some would never end."""


@dataclass(frozen=True)
class Limit:
    """A query that is too large, and what its message must say of it.

    `limit` is the number that the message names, `place` how the text there begins, `change` words
    of the help.
    """

    code: str
    query: str
    limit: str
    place: str
    change: str
    max_states: int = Options().max_states


def _each(text: str, count: int, joined: str) -> str:
    return joined.join(text.format(k=k, next=k + 1) for k in range(count))


LIMITS = {
    "condition": Limit(
        "condition-too-large",
        f"{MANY}A AS x FILTER {_each('(x.a{k} = 1 AND x.a{next} = 2)', 25, ' OR ')}",
        "1,000 clauses",
        "(x.a0 = 1 AND x.a1 = 2) OR",
        "write the condition as an AND of ORs",
    ),
    "cases of a clause": Limit(
        "normal-form-too-large",
        f"{DECLARATION}(A AS x ; B AS y ; C AS z ; A AS u) FILTER "
        + _each("(x.v > {k} OR y.v > {k} OR z.v > {k} OR u.v > {k})", 12, " AND "),
        "20,000",
        "(x.v > 6 OR",
        "put conditions on one label each",
    ),
    "conditions on an outer label": Limit(
        "normal-form-too-large",
        f"{DECLARATION}A AS x ; ((B AS y) FILTER "
        + _each("(x.v > {k} OR y.v = {k})", 12, " AND ")
        + ")+",
        "8 different conditions",
        "(x.v > 8 OR",
        "put conditions on a label where it is bound",
    ),
    "number of conditions": Limit(
        "too-many-classes",
        DECLARATION + _each("((A AS x{k}) FILTER x{k}.v = {k})", 80, " ; "),
        "the limit of 60",
        "x60.v = 60",
        "use fewer conditions",
    ),
    "combinations of conditions": Limit(
        "too-many-classes",
        MANY + _each("((A AS x{k}) FILTER x{k}.a{k} > 0)", 14, " ; "),
        "4,000 combinations",
        "x11.a11 > 0",
        "different attributes double the combinations",
    ),
    "steps of a product": Limit(
        "automaton-too-large",
        f"{DECLARATION}(A AS a ; B AS b) UNLESS (A{' : (A OR B)' * 20} : C)",
        "400,000 steps",
        "(A AS a ; B AS b) UNLESS",
        "make the parts smaller",
    ),
    "steps of what is absent": Limit(
        "automaton-too-large",
        f"{DECLARATION}A AS a ; !(A{' : (A OR B)' * 20} : C) ; B AS b",
        "400,000 steps",
        "(A : (A OR B)",
        "make the parts smaller",
    ),
    "states": Limit(
        "too-many-states",
        f"{DECLARATION}SELECT TOTAL COUNT(*) AS n WHERE A : (A OR B):+ : A{' : (A OR B)' * 14}",
        "2,000 states",
        "A : (A OR B):+",
        "raise the limit with --max-states",
    ),
    "states, with --max-states": Limit(
        "too-many-states",
        f"{DECLARATION}A ; B ; C ; A ; B ; C",
        "4 states",
        "A ; B",
        "raise the limit with --max-states",
        max_states=4,
    ),
    "count": Limit(
        "count-too-large",
        f"{DECLARATION}((A AS x)+ ; B) FILTER COUNT(x) > 1000000",
        "1,000",
        "COUNT(x) > 1000000",
        "use a smaller one",
    ),
}


_DEAR = "cases of a clause"
"""To refuse it takes seconds."""


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param(limit, id=name, marks=[pytest.mark.long] if name == _DEAR else [])
        for name, limit in LIMITS.items()
    ],
)
def test_limits(limit: Limit) -> None:
    """The refusal, and that it comes before the work that it saves the user from."""
    source = Source("query.cel", limit.query)
    start = time.process_time()
    found = errors_of(source, limit.max_states)
    seconds = time.process_time() - start
    assert [item.code for item in found] == [limit.code]
    (refusal,) = found
    assert limit.limit in refusal.message
    assert source.slice(refusal.span).startswith(limit.place)
    assert any(limit.change in advice for advice in refusal.help)
    assert seconds < CPU_LIMIT


def errors_of(source: Source, max_states: int) -> list[Diagnostic]:
    with pytest.raises(CelError) as refused:
        compile_source(source, Options(max_states=max_states))
    return [item for item in refused.value.diagnostics if item.severity == "error"]


def test_every_limit_is_tested() -> None:
    assert {limit.code for limit in LIMITS.values()} == {
        *("condition-too-large", "normal-form-too-large", "too-many-classes"),
        *("automaton-too-large", "too-many-states", "count-too-large"),
    }


def test_large_tables_are_counted_before_they_are_made() -> None:
    """States times classes of events: each alone may be within its limit."""
    types = ", ".join(f"EVENT E{k} {{}}" for k in range(40))
    chain = " ; ".join(f"E{k}" for k in range(40))
    source = Source("query.cel", f"CREATE STREAM S {{ {types} }}\n{chain}")
    (stages,) = compile_source(source, Options()).queries
    cells = stages.full.states * stages.full.symbols
    span = stages.query.formula.span
    determinize(stages.automaton, source, span, max_cells=cells)
    with pytest.raises(CelError) as refused:
        determinize(stages.automaton, source, span, max_cells=cells - 1)
    (found,) = refused.value.diagnostics
    assert found.code == "tables-too-large"
    assert f"more than {cells - 1:,} entries" in found.message
    assert source.slice(found.span) == chain
    assert "split the formula" in found.help[0]


def test_more_states_are_allowed_with_max_states() -> None:
    limit = LIMITS["states, with --max-states"]
    compilation = compile_source(Source("query.cel", limit.query), Options(max_states=6))
    assert compilation.queries[0].full.states == 6


# Large, but no reason to refuse: each of these once took exponential or quadratic time.
FINE = {
    "LAST of many event types": "CREATE STREAM S {"
    + _each("EVENT E{k} {{}}", 24, ", ")
    + "}\nLAST("
    + _each("E{k}", 24, " ; ")
    + ")",
    "many conditions on one type": DECLARATION
    + _each("((A AS x{k}) FILTER x{k}.v > {k} AND x{k}.w = {k})", 40, " ; "),
    "many conditions on one event": f"{MANY}A AS x FILTER " + _each("x.a{k} > {k}", 50, " AND "),
    "a long count": f"{DECLARATION}((A AS x)+ ; B) FILTER COUNT(x) = 1000",
    "many event types": "CREATE STREAM S {"
    + _each("EVENT E{k} {{}}", 300, ", ")
    + "}\nE0 ; ("
    + _each("E{k}", 300, " OR ")
    + ") ; E1",
}


@pytest.mark.parametrize("query", FINE.values(), ids=FINE)
def test_what_is_only_long_compiles(query: str) -> None:
    """Guards against work that is exponential again, and hangs."""
    start = time.process_time()
    compile_source(Source("query.cel", query), Options())
    assert time.process_time() - start < CPU_LIMIT


def test_large_tables_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with tables of thousands of entries spells them as lines, and means the same."""
    text = (
        "CREATE STREAM S { EVENT A {}, EVENT B {}, EVENT C {}, EVENT D {} }\n"
        "SELECT * FROM S WHERE ((A ; B) ALL (C ; D)) UNLESS (A : A) WITHIN 9 EVENTS"
    )
    rng = random.Random(3)
    types = [rng.choice("ABCD") for _ in range(200)]
    events = pa.table({"type": types})
    small = celc.compile(text)
    monkeypatch.setattr("celc.codegen.updates.tables._MOST_WRITTEN_OUT", 0)
    large = celc.compile(text)
    assert 'moves="""' in large.source
    assert 'moves="""' not in small.source
    found = large.match_table(events)
    assert found.equals(small.match_table(events))
    assert len(found) > 50
