"""How a query is run: the choice for each kind of query, why, and the module that carries it."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.plan.strategy import All, InRuns, Latest, United
from celc_runtime.program import Program as RunProgram
from celc_runtime.program import ShippedFunction
from celc_runtime.spark.answers.wire import wire_of
from celc_runtime.spark.worker.task_columns import EVENTS_ALONE
from celc_runtime.spark.worker.tasks import Task
from celc_runtime.stream.tasks import finishing_route, packing_route, task_route, unpacking_route
from engines import interpreted, only_query

import celc
from celc import Matcher
from celc.diagnostics.source import Source
from celc.driver.pipeline import Compilation, compile_source
from celc.options import Options
from celc.plan.adjoining.spots import AdjoiningRuns
from celc.plan.strategy import (
    EVERY_UPDATE,
    GENERAL_ENGINE,
    BranchFree,
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InWindow,
    InWorlds,
    Keyed,
    Listing,
    LongestRuns,
    StraightLine,
    UnionLists,
    Update,
)

_TYPES = ", ".join(f"EVENT {name} {{ id: INT, value: DOUBLE }}" for name in "ABCD")
_UNCERTAIN = "UNCERTAIN [low, high] BY 1 { EVENT E { low: LONG, high: LONG } }"
_DECLARATION = f"CREATE STREAM S {{ {_TYPES} }}\nCREATE STREAM U {_UNCERTAIN}\n"

_CHOICES: list[tuple[str, type[Update], str, type[Listing], str]] = [
    ("* FROM S WHERE A ; B ; C", BranchFree, "as it is", InRuns, "same 3 places"),
    ("* FROM S WHERE A+ ; B", BranchFree, "as it is", All, "more than one shape"),
    ("* FROM S WHERE A ; B LIMIT 5", BranchFree, "as it is", All, "at most 5"),
    ("ANY * FROM S WHERE A ; B", BranchFree, "as it is", All, "one match"),
    ("* FROM S WHERE A", StraightLine, "one event", All, "exactly the matches"),
    ("* FROM S WHERE A : B", StraightLine, "at the next event", All, "exactly the matches"),
    ("* FROM S WHERE A ; B CONSUME BY ANY", StraightLine, "consumes", All, "exactly the matches"),
    ("* FROM S WHERE (A OR B) ; C ; (D OR A+)", StraightLine, "nodes", All, "exactly the matches"),
    ("* FROM S WHERE A ; NXT (B ; C)", UnionLists, "nested selectors", All, "exactly the matches"),
    (
        "* FROM S WHERE A ; B PARTITION BY id CONSUME BY ANY",
        UnionLists,
        "in one order",
        All,
        "exactly the matches",
    ),
    (
        "* FROM S WHERE (A AS a ; B AS b) FILTER a.id = b.id",
        Keyed,
        "apart by key",
        All,
        "exactly the matches",
    ),
    (
        "* FROM S WHERE (A AS a ; B AS b) FILTER a.id < b.id",
        StraightLine,
        "bounds of its piles",
        Checked,
        "compare the events",
    ),
    (
        "* FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER a.id = b.id AND b.id < c.id",
        Keyed,
        "apart by key",
        Checked,
        "compare the events",
    ),
    (
        "c FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER b.id = c.id",
        Keyed,
        "apart by key",
        Checked,
        "look alike",
    ),
    (
        "MAX * FROM S WHERE (A AS a ; B AS b) FILTER a.id < b.id",
        StraightLine,
        "bounds of its piles",
        Checked,
        "SELECT MAX",
    ),
    (
        "* FROM S WHERE (A AS a ; B AS b) FILTER a.id < b.id CONSUME BY ANY",
        StraightLine,
        "bounds of its piles",
        Checked,
        "compare the events",
    ),
    (
        "* FROM S WHERE NXT ((A AS a ; B AS b) FILTER a.id < b.id) ; C",
        BranchFree,
        "as it is",
        ByDefinition,
        "do not decide",
    ),
    (
        "NXT * FROM S WHERE A ; B WITHIN 9 EVENTS",
        BranchFree,
        "as it is",
        EarliestInWindow,
        "in one way",
    ),
    (
        "LAST * FROM S WHERE A+ ; B WITHIN 9 EVENTS",
        BranchFree,
        "as it is",
        Latest,
        "latest event first",
    ),
    (
        "MAX * FROM S WHERE A+ ; B WITHIN 9 EVENTS",
        BranchFree,
        "as it is",
        EarliestInWindow,
        "in one way",
    ),
    (
        "MAX * FROM S WHERE (A OR B)+ ; (A AS x OR C) WITHIN 9 EVENTS",
        BranchFree,
        "as it is",
        InWindow,
        "SELECT MAX compares",
    ),
    ("NXT * FROM S WHERE A ; B", UnionLists, "", All, "exactly the matches"),
    ("FIRST * FROM S WHERE A ; B", BranchFree, "or loses it", InRuns, "same 2 places"),
    ("* FROM S WHERE A ; !B ; C", BranchFree, "or loses it", InRuns, "same 2 places"),
    ("* FROM S WHERE (A ; C) UNLESS B", BranchFree, "or loses it", InRuns, "same 2 places"),
    ("* FROM S WHERE LAST(A ; B) ; C", BranchFree, "or loses it", InRuns, "same 3 places"),
    (
        "* FROM S WHERE A ; !(B ; D) ; C",
        StraightLine,
        "moves them to another",
        All,
        "exactly the matches",
    ),
    ("* FROM S WHERE A : (B ; C):+ ; D", StraightLine, "next event", All, "exactly the matches"),
    ("* FROM S WHERE A ; !(B : D) ; C", UnionLists, "change the state", All, "exactly the matches"),
    ("LONGEST * FROM S WHERE A ; B", BranchFree, "as it is", All, "by their starts"),
    ("LONGEST DISJOINT * FROM S WHERE A+", UnionLists, "no update", LongestRuns, "its run"),
    (
        "LONGEST * FROM S WHERE (A AS a):+ FILTER a.id > PREV(a.id)",
        UnionLists,
        "no update",
        LongestRuns,
        "its run",
    ),
    (
        "FIRST * FROM S WHERE (A AS a ; B AS b) FILTER a.id < b.id",
        StraightLine,
        "bounds of its piles",
        Checked,
        "SELECT FIRST compares",
    ),
    ("TOTAL COUNT(*) AS n FROM S WHERE A+ ; B", UnionLists, "alone", Counted, "one run for each"),
    ("TOTAL COUNT(*) AS n FROM S WHERE NXT(A ; B)", UnionLists, "", United, "in how many of them"),
    (
        "TOTAL COUNT(*) AS n FROM S WHERE (A AS a ; B AS b) FILTER a.id = b.id",
        Keyed,
        "apart by key",
        United,
        "in how many of them",
    ),
    ("COLLAPSED * FROM S WHERE A+ ; B", BranchFree, "as it is", United, "below their end"),
    ("* FROM U WHERE E ; E", UnionLists, "in every order", InWorlds, "events of uncertain time"),
]


def _compiled(body: str, updates: frozenset[type[Update]] = EVERY_UPDATE) -> Compilation:
    source = Source("query.cel", f"{_DECLARATION}SELECT {body}")
    return compile_source(source, Options(), updates=updates)


def _loaded(compilation: Compilation) -> CompiledQuery:
    with interpreted():
        return only_query(Matcher(compilation.module_text("test")))


def _names(program: object) -> tuple[str, str]:
    return type(program.update).__name__, type(program.listing).__name__  # type: ignore[attr-defined]


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("body", "update", "why_so_run", "listing", "why_so_listed"),
    _CHOICES,
    ids=[choice[0] for choice in _CHOICES],
)
def test_the_choice_its_reasons_and_what_the_module_carries(
    body: str,
    update: type[Update],
    why_so_run: str,
    listing: type[Listing],
    why_so_listed: str,
) -> None:
    compilation = _compiled(body)
    (stages,) = compilation.queries
    program = stages.program
    assert _names(program) == (update.__name__, listing.__name__)
    assert why_so_run in program.update.reason
    assert why_so_listed in program.listed_because
    text = compilation.module_text("test")
    assert program.update.reason in text
    assert program.listed_because in text
    assert _names(_loaded(compilation).program) == _names(program)


def test_the_table_has_every_update_and_every_listing() -> None:
    assert {choice[1] for choice in _CHOICES} == set(Update.__args__)  # type: ignore[attr-defined]
    assert {choice[3] for choice in _CHOICES} == set(Listing.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", [choice[0] for choice in _CHOICES])
def test_the_general_engine_runs_any_query(body: str) -> None:
    (stages,) = _compiled(body, GENERAL_ENGINE).queries
    assert isinstance(stages.program.update, UnionLists)
    assert stages.program.update.reason
    assert not isinstance(stages.program.listing, InRuns | Latest)  # they need piles


def test_what_may_not_be_chosen_is_not_chosen() -> None:
    chain = "* FROM S WHERE A ; B"
    (stages,) = _compiled(chain, EVERY_UPDATE - {BranchFree}).queries
    assert _names(stages.program) == ("StraightLine", "All")
    same_key = "* FROM S WHERE (A AS a ; B AS b) FILTER a.id = b.id"
    (stages,) = _compiled(same_key, EVERY_UPDATE - {Keyed}).queries
    assert _names(stages.program) == ("BranchFree", "Checked")


def test_runs_that_are_read_off_the_events_warn_of_no_search() -> None:
    runs = "LONGEST * FROM S WHERE (A AS a):+ FILTER a.id > PREV(a.id)"
    assert not _compiled(runs).warnings
    searched = _compiled(runs.replace("LONGEST", "NXT").replace(":+", "+")).warnings
    assert [warning.code for warning in searched] == ["exponential-search"]


@pytest.mark.parametrize(
    ("body", "adjoin"),
    [
        ("(A AS a : (A AS b):+) FILTER FIRST(b.id) < a.id AND b.id < PREV(b.id)", True),
        ("((A AS a):+ : (A AS b):+) FILTER FIRST(b.id) > LAST(a.id)", True),
        ("((A AS a):{1,2} : (B AS b OR A AS c):+) FILTER a.id < PREV(a.id)", True),
        ("(!(B AS c FILTER c.id > a.id) FOR 3 EVENTS ; A AS a : (B AS b):+)", True),
        ("A AS a : A AS b : (B AS c):+", True),
        ("((A AS a):+ : (A AS b):+) FILTER b.id > a.id", False),  # each with each
        ("((A AS a):+ : (A AS b):+) FILTER FIRST(b.id) > FIRST(a.id)", False),
        ("((A AS a : B AS b):+ : A AS c) FILTER a.id > PREV(a.id)", False),
        ("((A AS a):+ : (A AS b):+) FILTER SUM(a.id) > 5", False),
        ("((A AS a):+ ; B AS b) FILTER a.id > PREV(a.id)", False),
        ("(!(B AS c FILTER c.id > b.id) FOR 3 EVENTS ; A AS a : (B AS b):+)", False),
    ],
)
def test_runs_adjoin_where_conditions_compare_neighbours(body: str, adjoin: bool) -> None:
    (stages,) = _compiled(f"LONGEST * FROM S WHERE {body}").queries
    listing = stages.program.listing
    assert (isinstance(listing, LongestRuns) and isinstance(listing.run, AdjoiningRuns)) == adjoin


@pytest.mark.parametrize(
    ("query", "warns"),
    [
        ("LAST * FROM S WHERE (A AS a)+ FILTER a.id > PREV(a.id)", False),
        ("MAX * FROM S WHERE (A AS a)+ FILTER a.id > PREV(a.id)", True),
        ("LAST * FROM S WHERE (A AS a)+ FILTER SUM(a.id) > 5", False),
        ("LAST * FROM S WHERE (A AS a)+ FILTER SUM(a.id) > 5 AND AVG(a.id) < 3", True),
        ("LAST * FROM S WHERE (A AS a)+ FILTER SUM(a.id) = 5", True),
        ("LAST * FROM S WHERE (A AS a)+ FILTER SUM(a.id) > 5 CONSUME BY ANY", False),
        ("* FROM S WHERE (A AS a)+ FILTER SUM(a.id) > 5 CONSUME BY ANY", True),
        ("ANY * FROM S WHERE (A AS a)+ ; B FILTER a.id > PREV(a.id)", False),
    ],
)
def test_searches_that_remember_or_are_bounded_warn_of_no_search(query: str, warns: bool) -> None:
    codes = [warning.code for warning in _compiled(query).warnings]
    assert ("exponential-search" in codes) == warns


# --- program and façade ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "route_of",
    [
        packing_route,
        task_route,
        unpacking_route,
        finishing_route,
    ],
)
def test_a_route_is_found_again_where_its_pickle_is_read(
    route_of: Callable[[RunProgram], ShippedFunction],
) -> None:
    query = only_query(celc.compile(f"{_DECLARATION}SELECT * FROM S WHERE A ; B"))
    query = query.with_options(tiebreak="row")
    route = route_of(query.program)
    again = pickle.loads(pickle.dumps(route))
    assert repr(again) == repr(route)
    assert pickle.loads(pickle.dumps(query.program)).plan == query.plan


@pytest.mark.parametrize("formula", ["A ; B", "A ; (B)+"])
def test_a_task_is_found_again_where_its_pickle_is_read(formula: str) -> None:
    query = only_query(celc.compile(f"{_DECLARATION}SELECT * FROM S WHERE {formula}"))
    program = query.with_options(order_by="id", tiebreak="row").program
    task = Task(program, wire_of(program), EVENTS_ALONE.shipped())
    again = pickle.loads(pickle.dumps(task))
    assert type(again) is Task
    rows = [{"type": name, "id": at, "value": 1.0, "row": at} for at, name in enumerate("ABB")]
    schema = pa.schema(
        {"type": pa.string(), "id": pa.int32(), "value": pa.float64(), "row": pa.int64()}
    )
    batch = pa.RecordBatch.from_pylist(rows, schema)
    found = [one.to_pylist() for one in again([batch])]
    assert found
    assert found == [one.to_pylist() for one in task([batch])]


# --- aggregates of one's own ----------------------------------------------------------------------

_MEAN = """AGGREGATE mean(a: DOUBLE): DOUBLE STATE n: LONG = 0, s: DOUBLE = 0
  STEP n = n + 1, s = s + a RESULT s / n
"""


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("mean(x.value) > 3", 0),
        ("x.value > mean(PRIOR x.value)", 0),
        ("VARIANCE(x.value) > 3", 0),
        ("COUNT(DISTINCT x.id) > SUM(x.id)", 0),
        ("mean(x.value) + SUM(x.value) > 3", 0),
        ("SUM(x.value) > mean(x.value)", 0),
        ("SUM(x.value) > 9 AND mean(x.value) > 3", 1),
        ("x.value > PREV(x.value) AND mean(x.value) > 3", 0),
    ],
)
@pytest.mark.parametrize("selector", ["", "LAST "])
def test_own_aggregates_promise_nothing_before_the_match_is_whole(
    condition: str, bounds: int, selector: str
) -> None:
    """No bound of a sum speaks of them, and a match that fails says nothing of another one with
    the same events so far."""
    query = f"SELECT {selector}* FROM S WHERE ((A AS x)+ ; B) FILTER {condition} WITHIN 9 EVENTS"
    (stages,) = compile_source(Source("q.cel", _DECLARATION + _MEAN + query), Options()).queries
    listing = stages.program.listing
    assert isinstance(listing, Checked)
    assert len(listing.sum_bounds) == bounds
    assert not listing.fails_alike
    assert not listing.is_brief
    assert any(clause.when == "complete" for clause in listing.clauses)
