"""Each invariant of tables and plans fails where it is broken, and holds on the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from verified import PLAIN, SELECTED, invariants_of, stages_of

from celc import verify
from celc.driver.pipeline import Stages
from celc.plan.keys import KeyPlan
from celc.plan.straight_line.piles import PilePlan
from celc.plan.strategy import (
    BranchFree,
    ByDefinition,
    Checked,
    EarliestInWindow,
    InWindow,
    Keyed,
    StraightLine,
    UnionLists,
)
from celc.plan.tables import Contexts, Tables
from celc.verify import plans


def _with_step(symbol: int = 1, **changes: Any) -> Callable[[Tables], Tables]:
    def change(tables: Tables) -> Tables:
        steps = list(tables.steps)
        first, *rest = steps[symbol]
        steps[symbol] = (replace(first, **changes), *rest)
        return replace(tables, steps=tuple(steps))

    return change


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda t: replace(t, skip=t.skip[1:]), plans.TOTAL),
        (lambda t: replace(t, skip=(t.skip[0], t.skip[1][1:], *t.skip[2:])), plans.TOTAL),
        (lambda t: replace(t, steps=t.steps[1:]), plans.TOTAL),
        (lambda t: replace(t, skip=(t.skip[1], *t.skip[1:])), plans.IN_RANGE),
        (_with_step(sources=(99,)), plans.IN_RANGE),
        (_with_step(target=0), plans.IN_RANGE),
        (_with_step(kind=99), plans.IN_RANGE),
        (_with_step(sources=(1, 2)), plans.STARTS_MARKED),
        (lambda t: replace(t, steps=(t.steps[1], *t.steps[1:])), plans.INERT),
        (lambda t: replace(t, symbol_of=t.symbol_of[1:]), plans.SYMBOLS),
        (lambda t: replace(t, symbol_of=(0,) * len(t.symbol_of)), plans.SYMBOLS),
        (lambda t: replace(t, symbol_of=t.symbol_of[::-1]), plans.SYMBOLS),
        (
            lambda t: replace(t, steps=(t.steps[0], t.steps[1] * 2, *t.steps[2:])),
            plans.ONE_STEP,
        ),
        (
            lambda t: replace(t, steps=(*t.steps[:-1], (*t.steps[-1], *t.steps[1]))),
            plans.ENDS_LAST,
        ),
    ],
)
def test_tables(broken: Callable[[Tables], Tables], invariant: str) -> None:
    stages = stages_of(PLAIN)
    classes = len(stages.alphabet.symbols)
    assert not invariants_of(verify.tables(stages.program.tables, classes))
    assert invariant in invariants_of(verify.tables(broken(stages.program.tables), classes))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda c: replace(c, following=c.following[1:]), plans.TOTAL),
        (lambda c: replace(c, letters=((99,) * len(c.letters[0]), *c.letters[1:])), "range"),
        # What no atom asks for is taken for what begins a match.
        (lambda c: replace(c, letters=tuple(row[::-1] for row in c.letters)), plans.INERT),
    ],
)
def test_tables_with_contexts(broken: Callable[[Contexts], Contexts], invariant: str) -> None:
    stages = stages_of("* FROM S WHERE NXT(A ; B) ; C")
    classes = len(stages.alphabet.symbols)
    tables = stages.program.tables
    assert tables.contexts is not None
    named = plans.IN_RANGE if invariant == "range" else invariant
    assert not invariants_of(verify.tables(tables, classes))
    wrong = replace(tables, contexts=broken(tables.contexts))
    assert named in invariants_of(verify.tables(wrong, classes))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda s: replace(s, following=s.following[1:]), plans.TOTAL),
        (lambda s: replace(s, symbols=tuple((99,) * len(row) for row in s.symbols)), "range"),
        (lambda s: replace(s, tables=_with_step(kind=99)(s.tables)), plans.IN_RANGE),
        (lambda s: replace(s, tables=_with_step(sources=(0, 1))(s.tables)), plans.STARTS_APART),
    ],
)
def test_selection_tables(broken: Callable[[Any], Any], invariant: str) -> None:
    compiled = stages_of(SELECTED).program
    assert isinstance(compiled.listing, InWindow)
    chosen = compiled.listing.tables
    named = plans.IN_RANGE if invariant == "range" else invariant
    assert not invariants_of(verify.selection_tables(chosen, compiled.tables.symbols))
    assert named in invariants_of(verify.selection_tables(broken(chosen), compiled.tables.symbols))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda e: replace(e, back=e.back[1:]), plans.TOTAL),
        (lambda e: replace(e, ends=(99,) * len(e.ends)), plans.IN_RANGE),
        (lambda e: replace(e, ends=(1,) * len(e.ends)), plans.SETS),
        (lambda e: replace(e, back=(e.back[1], *e.back[1:])), plans.SETS),
    ],
)
def test_sets_of_states(broken: Callable[[Any], Any], invariant: str) -> None:
    listing = stages_of("NXT * FROM S WHERE A ; B ; C WITHIN 9 EVENTS").program.listing
    assert isinstance(listing, EarliestInWindow)
    chosen = listing.tables
    assert not invariants_of(verify.earliest(chosen))
    assert invariant in invariants_of(verify.earliest(broken(chosen)))


def _piles(stages: Stages) -> PilePlan:
    update = stages.program.update
    assert isinstance(update, BranchFree | StraightLine)
    return update.piles


def _with_write(symbol: int, **changes: Any) -> Callable[[Any], Any]:
    def change(plan: Any) -> Any:
        writes = list(plan.writes)
        first, *rest = writes[symbol]
        writes[symbol] = (replace(first, **changes), *rest)
        return replace(plan, writes=tuple(writes))

    return change


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda p: replace(p, piles=p.piles * 40), plans.IN_RANGE),
        (lambda p: replace(p, writes=p.writes[1:]), plans.TOTAL),
        (lambda p: replace(p, writes=((), (), *p.writes[2:])), plans.ALL_WRITTEN),
        (lambda p: replace(p, writes=((), (), *p.writes[2:])), plans.ALL_STEPS),
        (lambda p: replace(p, nodes_per_event=0), plans.ENOUGH_NODES),
        (_with_write(1, reads=(0,)), plans.PILES_FIT),
        (_with_write(1, starts=False), plans.PILES_FIT),
        (_with_write(2, pile=0), plans.PILES_FIT),
    ],
)
def test_straight_lines(broken: Callable[[Any], Any], invariant: str) -> None:
    stages = stages_of(PLAIN)
    plan = _piles(stages)
    assert not invariants_of(verify.straight_line(plan))
    assert invariant in invariants_of(verify.straight_line(broken(plan)))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda p: replace(p, removals=((),) * len(p.removals)), plans.EMPTIED),
        (lambda p: replace(p, removals=p.removals[::-1]), plans.EMPTIED),
        (lambda p: replace(p, removals=p.removals[1:]), plans.TOTAL),
        (lambda p: replace(p, saved=((),) * len(p.saved)), plans.READ_BEFORE),
        (
            lambda p: replace(p, piles=(p.piles[0], replace(p.piles[1], moved=False))),
            plans.PILES_FIT,
        ),
        (lambda p: replace(p, nodes_per_event=0), plans.ENOUGH_NODES),
    ],
)
def test_states_that_empty(broken: Callable[[Any], Any], invariant: str) -> None:
    plan = _piles(stages_of("* FROM S WHERE A ; !(B ; A) ; C WITHIN 9 EVENTS"))
    assert not invariants_of(verify.straight_line(plan))
    assert invariant in invariants_of(verify.straight_line(broken(plan)))


def test_piles_are_read_before_they_are_written() -> None:
    """`A ; A ; A`: each event hands on what the one before has left."""
    stages = stages_of("* FROM S WHERE A ; A ; A WITHIN 9 EVENTS")
    plan = _piles(stages)
    assert not invariants_of(verify.straight_line(plan))
    reverse = replace(plan, writes=tuple(writes[::-1] for writes in plan.writes))
    assert invariants_of(verify.straight_line(reverse)) == {plans.READ_BEFORE}
    saved = tuple(tuple(range(len(plan.piles))) for _ in plan.writes)
    assert not invariants_of(verify.straight_line(replace(reverse, saved=saved)))


_KEYED = (
    "* FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id WITHIN 9 EVENTS"
)


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (lambda j: replace(j, keys=j.keys[1:]), plans.KEYS),
        (lambda j: replace(j, keys=((0,), *j.keys[1:])), plans.KEYS),
        (lambda j: replace(j, keys=((), (5,), *j.keys[2:])), plans.KEYS),
        (lambda j: replace(j, ties=(replace(j.ties[0], terms=()),)), plans.KEYS_BROUGHT),
    ],
)
def test_keys(broken: Callable[[KeyPlan], KeyPlan], invariant: str) -> None:
    program = stages_of(_KEYED).program
    assert isinstance(program.update, Keyed)
    keys = program.update.keys
    assert not invariants_of(verify.joins(keys, program.tables))
    assert invariant in invariants_of(verify.joins(broken(keys), program.tables))


def test_keys_of_absent_events() -> None:
    program = stages_of("* FROM S WHERE A AS x ; FIRST (B AS y FILTER y.id = x.id)").program
    assert isinstance(program.update, Keyed)
    keys = program.update.keys
    (removal,) = keys.removals
    assert not invariants_of(verify.joins(keys, program.tables))
    broken = replace(keys, removals=(replace(removal, terms=()),))
    assert plans.KEYS_REMOVED in invariants_of(verify.joins(broken, program.tables))


_COMPARED = _KEYED.replace("WITHIN", "AND x.value < z.value WITHIN")


def test_checks() -> None:
    program = stages_of(_COMPARED).program
    update, checks = program.update, program.listing
    assert isinstance(update, Keyed)
    assert isinstance(checks, Checked)
    assert not invariants_of(verify.checks(checks, update.keys))
    twice = replace(checks, clauses=update.keys.decided)
    assert invariants_of(verify.checks(twice, update.keys)) == {plans.DECIDED_ONCE}
    nothing = Checked((), (), (), (), (), (), (), None, "", distinct=False, max_work=1)
    assert invariants_of(verify.checks(nothing, None)) == {plans.SOMETHING_LEFT}


_GENERAL = UnionLists("no other update is allowed")


@pytest.mark.parametrize(
    ("body", "changes", "invariant"),
    [
        ("LAST * FROM S WHERE A ; B WITHIN 9 EVENTS", {"update": _GENERAL}, plans.LATEST_OF_PILES),
        (
            _KEYED,
            {"listing": ByDefinition(stages_of(PLAIN).normal_form, False, 1)},
            plans.KEYS_BEFORE_DEFINITIONS,
        ),
        (_COMPARED, {"listing.max_work": 0}, plans.BOUNDED),
        ("LONGEST * FROM S WHERE A+", {"listing.kinds": (9, 9)}, plans.KINDS_OF_RUNS),
        ("* FROM S WHERE A+ ; B WITHIN 9 EVENTS", {"update": _GENERAL}, plans.STARTS_APART),
    ],
)
def test_programs(body: str, changes: dict[str, Any], invariant: str) -> None:
    program = stages_of(body).program
    assert not invariants_of(verify.program(program))
    for name, value in changes.items():
        whole, _, field = name.partition(".")
        broken = replace(getattr(program, whole), **{field: value}) if field else value
        program = replace(program, **{whole: broken})
    assert invariant in invariants_of(verify.program(program))


def _broken_parts() -> Iterator[tuple[str, str, Callable[[Any], Any]]]:
    """Queries of each update and listing with data of its own, and a way to break that."""
    yield "* FROM S WHERE A ; B WITHIN 9 EVENTS", "update.piles", _fewer_nodes
    yield _KEYED, "update.piles", _fewer_nodes
    yield _KEYED, "update.keys", lambda keys: replace(keys, keys=keys.keys[1:])
    yield _COMPARED, "listing.clauses", lambda clauses: ()
    yield SELECTED, "listing.tables", lambda found: replace(found, following=found.following[1:])
    earliest = "NXT * FROM S WHERE A ; B ; C WITHIN 9 EVENTS"
    yield earliest, "listing.tables", lambda found: replace(found, back=found.back[1:])
    yield SELECTED, "tables", lambda found: replace(found, steps=found.steps[1:])


def _fewer_nodes(piles: PilePlan) -> PilePlan:
    return replace(piles, nodes_per_event=0)


@pytest.mark.parametrize(("body", "name", "broken"), _broken_parts())
def test_each_part_of_a_program_is_looked_at(
    body: str, name: str, broken: Callable[[Any], Any]
) -> None:
    program = stages_of(body).program
    assert not invariants_of(verify.program(program))
    whole, _, field = name.partition(".")
    part = getattr(program, whole)
    changed = replace(part, **{field: broken(getattr(part, field))}) if field else broken(part)
    assert invariants_of(verify.program(replace(program, **{whole: changed})))
