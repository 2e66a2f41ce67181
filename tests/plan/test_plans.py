"""Conditions across events: which of its plans the compiler takes, and that each plan is right.

There are three: keys, by which partial matches are looked up (`celc.plan.keys`); checks while
matches are listed (`celc.normal.flatten`); and the definitions, for what cannot be read off the
events of a match. A query that falls back to a slower plan still answers right, so its plan is
asserted besides.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from celc_runtime import EventWarning
from celc_runtime.plan.strategy import All
from celc_runtime.run.past import key_memory
from engines import answers, engines, interpreted, only_query, table_of
from reference import Match, check_answer, evaluate
from shares import share
from strategies_across import TYPES, WIDE_DECLARATION, wide_stream
from test_random import cramped

from celc.diagnostics.source import Source
from celc.driver.pipeline import Stages, compile_source
from celc.options import Options
from celc.plan.strategy import ByDefinition, Checked, Keyed, StraightLine

Event = dict[str, Any]

BY_KEYS = [
    "A AS x ; B AS y FILTER x.id = y.id",
    "A AS x ; B AS y ; C AS z FILTER x.id = y.id AND y.id = z.id",
    "A AS x ; B AS y ; C AS z FILTER x.id = y.id AND x.id = z.id",
    # A chain: x and y are joined by one key, y and z by another.
    "A AS x ; B AS y ; C AS z FILTER x.id = y.id AND y.name = z.name",
    "A AS x ; B AS y ; C AS z ; D AS w FILTER x.id = y.id AND y.name = z.name AND z.day = w.day",
    "A AS x ; (B AS y)+ ; C AS z FILTER x.id = y.id AND y.id = z.id",
    "(A AS x)+ ; B AS y FILTER x.id = y.id",
    "(A AS x OR B AS x) ; C AS z FILTER x.id = z.id",
    # Keys of any type, and equalities of two types.
    "A AS x ; B AS y FILTER x.name = y.code",
    "A AS x ; B AS y FILTER x.flag = y.flag",
    "A AS x ; B AS y FILTER x.day = y.day",
    "A AS x ; B AS y FILTER x.id = y.number",
    "A AS x ; B AS y FILTER x.number = y.value",
    "A AS x ; B AS y ; C AS z FILTER x.value = y.value AND y.value = z.value",
    "A AS x ; B AS y FILTER x.ratio = y.value",
    "A AS x ; B AS y FILTER x.id = y.ratio",
    # Keys of several attributes.
    "A AS x ; B AS y FILTER x.id = y.id AND x.name = y.name",
    "A AS x ; B AS y FILTER x.id = y.id AND x.name = y.name AND x.value = y.value",
    # On a side of AND: both sides have the same labels.
    "(A AS x ; B AS y FILTER x.id = y.id) AND (A AS x ; B AS y)",
    # In the rounds of an iteration: each has a key of its own.
    "((A AS x ; B AS y) FILTER x.id = y.id)+ ; C",
    "(A AS x ; B AS y FILTER x.name = y.name)+",
    "((A AS x ; B AS y FILTER x.id = y.id)+ ; C AS z)+",
    # An absent event with the key takes partial matches away; so do a FIRST and a choice of LAST.
    "A AS x ; FIRST (B AS y FILTER x.id = y.id)",
    "A AS x ; FIRST (A AS y FILTER x.id = y.id) ; FIRST (B AS z FILTER z.id = y.id)",
    # The rows of two keys: cells come in any order of their starts.
    "A AS x ; FIRST (B AS y FILTER x.id = y.id) ; FIRST (C AS z FILTER z.name = y.name)",
    "A AS x ; B AS y ; FIRST (C AS z FILTER z.name = y.name) FILTER x.id = y.id",
    "A AS x ; !(C AS c FILTER c.id = x.id) ; B AS y FILTER x.id = y.id",
    "A AS x ; !(C AS c FILTER c.id = y.id AND c.value >= 2) ; B AS y FILTER x.id = y.id",
    "A AS x ; !(C AS c FILTER c.id = y.id AND c.name = x.name) ; B AS y "
    "FILTER x.id = y.id AND y.name = x.name",
    "LAST(A AS x ; B AS y FILTER x.id = y.id) ; C",
    # What is projected away can be a key as well; a start says which event that was.
    "PROJECT[y](A AS x ; B AS y FILTER x.id = y.id)",
]

BY_KEYS_AND_CHECKS = [
    # An absent event that has not the whole key, or more than it, or comes again in the match.
    "A AS x ; !(C AS c FILTER c.id = x.id) ; B AS y FILTER x.id = y.id AND x.name = y.name",
    "A AS x ; !(C AS c FILTER c.id = x.id AND c.value > x.value) ; B AS y FILTER x.id = y.id",
    "(A AS x ; B AS y FILTER x.id = y.id) UNLESS (C AS c FILTER c.id = x.id)",
    # The choice of a selector over a chain is an absence of single events.
    "NXT(A AS x ; B AS y FILTER x.id = y.id) ; C",
    "NXT(A AS x ; B AS y ; C AS z FILTER x.id = y.id AND y.id = z.id)",
    "A AS x ; B AS y FILTER x.id = y.id AND x.value < y.value",
    "A AS x ; B AS y FILTER x.id = y.id AND (x.name = y.name OR x.flag = y.flag)",
    "A AS x ; B AS y ; C AS z FILTER x.id = y.id AND x.name = z.name",
    "A AS x ; (B AS y)+ FILTER x.id = y.id AND y.value > PREV(y.value)",
    "A AS x ; (B AS y)+ ; C AS z FILTER x.id = y.id AND y.id = z.id AND SUM(y.value) > z.value",
]

BY_CHECKS = [
    # An event in between, of a label that has nothing to do with the key.
    "A AS x ; B ; C AS z FILTER x.id = z.id",
    "A AS x ; (B AS y)+ ; C AS z FILTER x.id = z.id",
    # Other comparisons, and terms that are no attributes.
    "A AS x ; B AS y FILTER x.id <> y.id",
    "A AS x ; B AS y FILTER x.id + 1 = y.id",
    "A AS x ; B AS y FILTER x.name < y.name",
    "A AS x ; B AS y FILTER x.id IN (y.id, 2)",
    "A AS x ; B AS y ; C AS z FILTER y.value BETWEEN x.value AND z.value",
    "A AS x ; B AS y FILTER x.id = y.id OR x.value > 2",
    # Where a branch leaves a label unbound, the condition holds there.
    "(A AS x OR B AS y) ; C AS z FILTER x.id = z.id",
    "A AS x ; (B AS y OR C AS z) FILTER x.id = z.id",
    "A AS x ; (B AS y OR C AS z) FILTER x.id = y.id AND x.name = z.name",
    # What must follow at once is lost at every other event, so there is nothing to look up.
    "A AS x : B AS y FILTER x.id = y.id",
    "STRICT(A AS x ; B AS y FILTER x.id = y.id)",
    "(A AS x ; B AS y FILTER x.id = y.id) ALL C",
    "(A AS x)+ FILTER x.value > PREV(x.value)",
    "(A AS x)+ ; B AS y FILTER x.value > PREV(x.value) + y.value",
    "(A AS x)+ FILTER x.value > MIN(PRIOR x.value)",
    "(A AS x)+ FILTER x.value > MAX(PRIOR x.value)",
    "(A AS x)+ FILTER x.value >= AVG(PRIOR x.value)",
    "(A AS x)+ ; B FILTER SUM(x.value) > 3",
    "(A AS x)+ ; (B AS y)+ FILTER COUNT(x) = COUNT(y)",
    "(A AS x)+ ; B AS y FILTER LAST(x.value) <= y.value AND FIRST(x.id) = y.id",
    "((A AS x)+ ; B AS y FILTER x.id < y.id)+",
    # One event that must be absent is looked for among those in between.
    "A AS x ; !(B AS y FILTER y.id = x.id) ; C AS z",
    "A AS x ; !(B AS y FILTER y.id = x.id AND y.value > z.value) ; C AS z",
    "A AS x ; !((B OR C) AS y FILTER y.id = x.id) ; C AS z",
    "(A AS x ; C AS z) UNLESS (B AS y FILTER y.id = x.id)",
    "((A AS x)+ ; C AS z) UNLESS (B AS y FILTER y.id = z.id AND y.value > x.value)",
    # What is absent is compared with nothing: an automaton sees to it.
    "A AS x ; !B ; C AS z FILTER x.id = z.id",
    "A AS x ; !(B FILTER B.value > 1) ; C AS z FILTER x.value < z.value",
    "(A AS x ; C AS z FILTER x.id = z.id) UNLESS B",
    "NXT(A AS x ; B AS y) ; C AS z FILTER x.id = z.id",
    "LAST(A AS x ; B AS y FILTER x.value < y.value) ; C",
]

BY_DEFINITION = [
    "A AS x ; !(B AS y ; D AS w FILTER y.id < w.id) ; C AS z",
    "A AS x ; !(B AS y ; D FILTER y.id = x.id) ; C AS z",
    "(A AS x ; C AS z) UNLESS (B AS y ; D FILTER y.id = x.id)",
    "(A AS x ; !(B AS y FILTER y.id = x.id) ; C AS z)+",
    "NXT(A AS x ; B AS y FILTER x.value < y.value) ; C",
    "NXT(A AS x ; B AS y ; C AS z FILTER x.id = y.id)",
    "LAST((A AS x)+ ; B AS y FILTER x.id = y.id) ; C",
    "(LAST(A AS x ; B AS y FILTER x.id = y.id))+ ; C",
    "A AS x ; LAST(B AS y ; C AS z FILTER x.id = y.id)",
    "MAX(A AS x ; (B AS y)+ FILTER x.id = y.id) AND (A AS x ; (B AS y)+)",
    "((A AS x)+ ; B AS y FILTER SUM(x.value) > y.value)+",
]

PLANS = [
    *((formula, "keys") for formula in BY_KEYS),
    *((formula, "keys, checks") for formula in BY_KEYS_AND_CHECKS),
    *((formula, "checks") for formula in BY_CHECKS),
    *((formula, "definition") for formula in BY_DEFINITION),
]


def stages_of(body: str) -> Stages:
    """The stages of a query over the declarations of `strategies_across`."""
    (stages,) = compile_source(Source("query.cel", WIDE_DECLARATION + body), Options()).queries
    return stages


def plan_of(body: str) -> str:
    """The plans that a query's conditions across events are left to."""
    program = stages_of(body).program
    plans = {
        "keys": isinstance(program.update, Keyed),
        "checks": isinstance(program.listing, Checked),
        "definition": isinstance(program.listing, ByDefinition),
    }
    return ", ".join(name for name, is_there in plans.items() if is_there)


@contextmanager
def crowded(rng: random.Random) -> Iterator[None]:
    """As `cramped`, with the smallest tables of keys that serve the queries here."""
    with cramped(rng), pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_memory, "_FEWEST_ROWS", 16)
        yield


def pairs_for(body: str, streams: int, length: int) -> Iterator[tuple[list[Event], list[Match]]]:
    """Streams of the types of a query, most of them with a match, and the reference's answers."""
    rng = random.Random(body)
    types = [name for name in TYPES if re.search(rf"\b{name}\b", body)]
    without = 0
    for number in range(40 * streams):
        nulls = 0.1 if number % 2 else 0.0
        events = wide_stream(rng, rng.randint(length // 2, length), types=types, nulls=nulls)
        wanted = evaluate(WIDE_DECLARATION + body, events)
        if wanted or without == 0:
            without += not wanted
            streams -= 1
            yield events, wanted
        if streams == 0:
            return
    raise AssertionError(f"too few streams have a match: {body}")


def compare(body: str, *, streams: int = 2, length: int = 10) -> None:
    """Hold the answers of all engines and routes against the reference's."""
    text = WIDE_DECLARATION + body
    with interpreted():
        matchers = engines(text)
    rng = random.Random(body)
    for events, wanted in pairs_for(body, streams, length):
        for engine, matcher in matchers.items():
            with crowded(rng), warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                # Of numbers that leave their type, in modules that run as plain Python.
                warnings.simplefilter("ignore", RuntimeWarning)
                for route, answer in answers(only_query(matcher), events, rng).items():
                    try:
                        check_answer(text, wanted, answer)
                    except AssertionError as problem:
                        told = f"{engine} engine, {route}: {problem}\n{body}\n{events}"
                        raise AssertionError(told) from None


@pytest.mark.each(3)
@pytest.mark.parametrize(("formula", "plan"), PLANS)
def test_the_plan_of_a_formula_and_its_answers(formula: str, plan: str) -> None:
    assert plan_of(f"SELECT * WHERE {formula}") == plan
    compare(f"SELECT * WHERE {formula}")


# --- what is decided, and when --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "keys", "decided"),
    [
        ("A AS x ; B AS y FILTER x.id = y.id", [0, 1], 1),
        ("A AS x ; B AS y ; C AS z FILTER x.id = y.id AND y.id = z.id", [0, 1, 1], 2),
        # Only the last one counts where the first is not asked for any more.
        ("A AS x ; B AS y ; C AS z FILTER x.id = y.id AND y.name = z.name", [0, 1, 1], 2),
        ("A AS x ; B AS y ; C FILTER x.id = y.id", [0, 1, 0], 1),
        ("A AS x ; B AS y FILTER x.id = y.id AND x.name = y.name", [0, 2], 2),
        ("A AS x ; B AS y FILTER x.id = y.id AND x.value < y.value", [0, 1], 1),
        ("((A AS x ; B AS y) FILTER x.id = y.id)+ ; C", [0, 1, 0], 1),
    ],
)
def test_how_many_attributes_tell_the_content_of_each_state_apart(
    formula: str, keys: Sequence[int], decided: int
) -> None:
    update = stages_of(f"SELECT * WHERE {formula}").program.update
    assert isinstance(update, Keyed)
    plan = update.keys
    assert [len(key) for key in plan.keys] == keys
    assert len(plan.decided) == decided


@pytest.mark.parametrize(
    ("formula", "takes"),
    [
        ("A AS x ; FIRST (B AS y FILTER y.value > x.value)", 1),
        (
            "A AS x ; FIRST (B AS y FILTER y.value > x.value) ; FIRST (C AS z FILTER z.id <> y.id)",
            2,
        ),
        ("(A AS x)+ ; D AS w ; FIRST (B AS y FILTER y.value > w.value)", 1),
        ("A AS x ; FIRST (B AS y FILTER y.value > x.value) ; C AS z FILTER z.value > x.value", 1),
        # It is compared with an event that is not the last one before it, or with several.
        ("A AS x ; D ; FIRST (B AS y FILTER y.value > x.value)", 0),
        ("(A AS x)+ ; FIRST (B AS y FILTER y.value > x.value)", 0),
        # What must be absent, and what follows, have other conditions.
        ("A AS x ; !(C AS c FILTER c.value > x.value) ; B", 0),
        ("A AS x ; !(B AS y FILTER y.value > x.value) ; B", 0),
        # The condition is one of a branch: the listing also asks whether it was that branch.
        ("(A AS x ; FIRST (B AS y FILTER y.value > x.value)) OR (A AS x ; C AS y)", 0),
    ],
)
def test_firsts_that_events_take(formula: str, takes: int) -> None:
    program = stages_of(f"SELECT * WHERE {formula}").program
    bounds = program.update.bounds if isinstance(program.update, StraightLine) else None
    assert len(bounds.takes if bounds is not None else ()) == takes
    compare(f"SELECT * WHERE {formula}")


def test_a_key_has_three_parts_at_most() -> None:
    """What does not fit into a key is checked."""
    equalities = [f"x.{name} = y.{name}" for name in ("id", "name", "value", "flag")]
    for count in (3, 4):
        body = f"SELECT * WHERE A AS x ; B AS y FILTER {' AND '.join(equalities[:count])}"
        program = stages_of(body).program
        assert isinstance(program.update, Keyed)
        assert max(map(len, program.update.keys.keys)) == 3
        assert isinstance(program.listing, All if count == 3 else Checked)
        compare(body)


@pytest.mark.parametrize(
    ("formula", "kinds"),
    [
        ("A AS x ; B AS y FILTER x.value < y.value", ["pairs"]),
        ("(A AS x)+ FILTER x.value > PREV(x.value)", ["neighbours"]),
        # Larger than all before: what one pair refutes need not wait for the others.
        ("(A AS x)+ FILTER x.value > MAX(PRIOR x.value)", ["complete", "earlier"]),
        ("(A AS x)+ FILTER x.value < MIN(PRIOR x.value)", ["complete", "earlier"]),
        ("(A AS x)+ FILTER MAX(PRIOR x.value) <= x.value", ["complete", "earlier"]),
        # Larger than some before: one witness is enough.
        ("(A AS x)+ FILTER x.value > MIN(PRIOR x.value)", ["witness"]),
        ("(A AS x)+ FILTER x.value < MAX(PRIOR x.value)", ["witness"]),
        ("(A AS x)+ FILTER x.value > AVG(PRIOR x.value)", ["complete"]),
        ("(A AS x)+ ; B FILTER SUM(x.value) > 3", ["complete"]),
        ("(A AS x)+ ; B AS y FILTER y.value > MAX(x.value)", ["complete", "pairs"]),
        ("(A AS x)+ ; B AS y FILTER y.value > MIN(x.value)", ["complete"]),
    ],
)
def test_when_a_condition_is_decided(formula: str, kinds: Sequence[str]) -> None:
    checks = stages_of(f"SELECT * WHERE {formula}").program.listing
    assert isinstance(checks, Checked)
    assert [clause.when for clause in checks.clauses] == kinds
    compare(f"SELECT * WHERE {formula}")


# --- clauses --------------------------------------------------------------------------------------

_FORMULAS = {
    "keys": "A AS x ; B AS z FILTER x.id = z.id",
    "checks": "A AS x ; B ; A AS z FILTER x.id = z.id",
    "absent": "A AS x ; !(B AS y FILTER y.id = x.id) ; A AS z",
    "definition": "A AS x ; !(B AS y ; B FILTER y.id = x.id) ; A AS z",
}
_CLAUSES = [
    *("WITHIN 5 EVENTS", "WITHIN 4 [ts]", "LIMIT 1", "LIMIT 2", "WITHIN 6 EVENTS LIMIT 2"),
    *("CONSUME BY NONE", "CONSUME BY PARTITION", "CONSUME BY ANY", "CONSUME BY ANY LIMIT 1"),
    *("PARTITION BY flag", "PARTITION BY name WITHIN 5 [ts]", "PARTITION BY flag LIMIT 1"),
    *("PARTITION BY flag CONSUME BY PARTITION", "PARTITION BY flag CONSUME BY ANY"),
]


@pytest.mark.each(3)
@pytest.mark.parametrize("clauses", _CLAUSES)
@pytest.mark.parametrize("plan", _FORMULAS)
def test_clauses(plan: str, clauses: str) -> None:
    """Interleaved partitions are for the general engine, which knows no keys."""
    body = f"SELECT * WHERE {_FORMULAS[plan]} {clauses}"
    interleaved = "PARTITION BY" in clauses and "CONSUME BY ANY" in clauses
    wanted = {"keys": "keys", "absent": "checks"}.get(plan, plan)
    if interleaved:
        # Events of other partitions lie between those of one.
        wanted = {"keys": "checks", "absent": "definition"}.get(plan, plan)
    assert plan_of(body) == wanted
    compare(body, length=12)


@pytest.mark.each(3)
@pytest.mark.parametrize("clauses", ["", " WITHIN 5 EVENTS", " CONSUME BY ANY", " LIMIT 1"])
@pytest.mark.parametrize(
    "select", share(["NXT *", "LAST *", "MAX *", "STRICT *", "ANY *", "z", "NONE"], 3)
)
@pytest.mark.parametrize("plan", _FORMULAS)
def test_strategies_and_items(plan: str, select: str, clauses: str) -> None:
    body = f"SELECT {select} WHERE {_FORMULAS[plan]}{clauses}"
    if plan == "keys":
        # A selector, and telling apart what looks alike, are left to the listing.
        listed = "keys, checks" if select in ("NXT *", "LAST *", "MAX *", "NONE") else "keys"
        assert plan_of(body) == ("checks" if select == "STRICT *" else listed)
    else:
        assert plan_of(body) == ("checks" if plan == "absent" else plan)
    compare(body)


@pytest.mark.each(6)
@pytest.mark.parametrize("strategy", ["NXT", "LAST", "MAX"])
@pytest.mark.parametrize(
    "formula",
    [
        "(A AS x)+ ; B AS y FILTER x.id = y.id",
        "((A AS x ; B AS y) FILTER x.id = y.id)+",
        "(A AS x)+ ; B AS y FILTER x.value <= y.value",
        "A AS x ; B ; C AS z FILTER x.id = z.id",
    ],
)
def test_selectors_of_select_choose_among_matches_of_many_lengths(
    strategy: str, formula: str
) -> None:
    for items in ("*", "x"):
        for window in ("", " WITHIN 6 EVENTS"):
            compare(f"SELECT {strategy} {items} WHERE {formula}{window}")


# --- rows that look alike -------------------------------------------------------------------------


def _event(kind: str, ts: int, **values: Any) -> Event:
    return {"type": kind, "ts": ts, **values}


def _rows(body: str, events: Sequence[Event]) -> Iterator[list[Event]]:
    """The rows of a query, by each engine."""
    with interpreted():
        matchers = engines(WIDE_DECLARATION + body)
    for seed, matcher in enumerate(matchers.values()):
        with crowded(random.Random(seed)):
            query = only_query(matcher)
            yield query.match_table(table_of(query.plan, events)).to_pylist()


@pytest.mark.parametrize(
    "body",
    [
        "SELECT x, z WHERE A AS x ; B AS y ; C AS z FILTER x.id = y.id AND y.id = z.id",
        "SELECT * WHERE PROJECT[x, z](A AS x ; B AS y ; C AS z FILTER x.id = y.id AND y.id = z.id)",
        "SELECT NONE WHERE A AS x ; B AS y ; C AS z FILTER x.id = y.id AND y.id = z.id",
        "SELECT x, z WHERE A AS x ; B AS y ; C AS z FILTER x.id <= y.id AND y.id <= z.id",
        "SELECT x, z WHERE A AS x ; (B AS y)+ ; C AS z FILTER x.id = y.id AND y.id = z.id",
    ],
)
@pytest.mark.parametrize("clause", ["", " LIMIT 1", " CONSUME BY ANY", " WITHIN 9 EVENTS"])
def test_matches_that_differ_in_what_is_hidden_are_one_row(body: str, clause: str) -> None:
    events = [_event("A", 0, id=1), *(_event("B", n, id=1) for n in (1, 2, 3))]
    events += [_event("B", 4, id=2), _event("C", 5, id=1), _event("C", 6, id=2)]
    # Consuming forgets all events up to the first match; the second C needs an equal A.
    expected = [(0, 5)]
    if "<=" in body and clause != " CONSUME BY ANY":
        expected.append((0, 6))
    for rows in _rows(body + clause, events):
        assert [(row["start_pos"], row["end_pos"]) for row in rows] == expected


def test_limit_counts_rows_and_not_the_matches_that_look_alike() -> None:
    body = "SELECT x WHERE A AS x ; B AS y ; C AS z FILTER x.id <= y.id LIMIT 2"
    events = [_event("A", n, id=1) for n in range(3)]
    events += [_event("B", 3, id=1), _event("B", 4, id=2), _event("C", 5, id=0)]
    for rows in _rows(body, events):
        assert len({row["start_pos"] for row in rows}) == len(rows) == 2
