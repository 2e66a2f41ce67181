"""The steps of this half of a proof, each with its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from celc_runtime.plan import strategy as runtime
from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.automata.determinize import DetState
from celc.core.formula import Query
from celc.plan.program import Program
from celc.plan.strategy import (
    BranchFree,
    Counted,
    EarliestInWindow,
    InWindow,
    InWorlds,
    Keyed,
    LongestRuns,
    StraightLine,
    UnionLists,
)
from celc.verify.prove.code.listing_step import (
    ListedBy,
    listing_difference,
    refused,
)
from celc.verify.prove.code.machines import difference, marks_text
from celc.verify.prove.code.module_text import ModuleText, WrongError, module_text
from celc.verify.prove.code.plan_step import (
    clock_of,
    differences_of_labels,
    differences_of_module,
    differences_of_plan,
    differences_of_shape,
    has_floors,
)
from celc.verify.prove.code.tables_step import (
    differences_of_tables,
    differences_of_text,
    tables_in,
)
from celc.verify.prove.code.update_bounds import check_bounds
from celc.verify.prove.code.update_code import Pile, UpdateCode
from celc.verify.prove.code.update_keys import check_keys
from celc.verify.prove.code.update_pairs import check_pairs
from celc.verify.prove.code.update_step import UpdateStep
from celc.verify.prove.code.written import written
from celc.verify.prove.representations import Representations
from celc.verify.prove.verdict import NotUnderstoodError, Verdict

TABLES = "automaton → tables"
PLAN = "program → plan and module"
UPDATE = "tables → update"
LISTING = "update → listing"


def listing_step(found: Representations, listed_by: ListedBy) -> Verdict:
    """Whether a module lists the paths of the automaton."""
    why = _too_large(found) or refused(found)
    if why is not None:
        return Verdict(LISTING, "tested", why)
    try:
        differ, bound = listing_difference(found, listed_by)
    except NotUnderstoodError as problem:
        return Verdict(LISTING, "tested", str(problem))
    return Verdict(LISTING, "bounded" if differ is None else "wrong", bound, differ)


def _exactly(step: str, what: str, differences: Iterator[str]) -> Verdict:
    first = next(differences, None)
    if first is not None:
        return Verdict(step, "wrong", what, first)
    return Verdict(step, "exact", what)


MOST_CELLS = 400_000  # pairs of a state and a letter that are compared in a few seconds


def _too_large(found: Representations) -> str | None:
    """Why an automaton is not compared; None: it is."""
    cells = found.minimal.states * len(found.minimal.class_of)
    if cells <= MOST_CELLS:
        return None
    return f"the automaton has {cells:,} pairs of states and letters, more than are compared"


def tables_step(found: Representations) -> Verdict:
    """Whether the tables are those of the minimal automaton."""
    if why := _too_large(found):
        return Verdict(TABLES, "tested", why)
    differences = differences_of_tables(
        found.minimal, found.automaton.letters.machine, found.program.tables
    )
    return _exactly(TABLES, "every move of every state at every letter", differences)


def plan_step(found: Representations) -> Verdict:
    """Whether the plan says what the query asks for, and the module says the plan."""

    def differences() -> Iterator[str]:
        program = found.program
        read = written(module_text(found.module), found.query.name)
        yield from differences_of_module(read, found.plan)
        yield from differences_of_plan(found.query, program.output_kinds, found.plan)
        of_one = found.plan.matching.one_event and not found.query.simultaneous
        if of_one and found.minimal.states > 1:
            yield "matches of several events are said to have one"
        if isinstance(program.listing, All | InRuns | Latest):
            yield from differences_of_labels(found.minimal, found.plan)
        if isinstance(program.listing, InRuns):
            yield from differences_of_shape(found.minimal, program.tables, program.listing)

    what = "labels, kinds, window, order and limits; the module's plan is the plan"
    try:
        return _exactly(PLAN, what, differences())
    except NotUnderstoodError as problem:
        return Verdict(PLAN, "tested", str(problem))
    except SyntaxError as problem:
        return Verdict(PLAN, "wrong", what, f"the module is not Python: {problem}")


def update_step(found: Representations) -> Verdict:
    """Whether the code of the update does what the automaton says."""
    program = found.program
    if why := _too_large(found):
        return Verdict(UPDATE, "tested", why)
    if isinstance(program.listing, InWorlds | LongestRuns):
        return Verdict(UPDATE, "tested", "the listing reads the events itself, without an update")
    try:
        module = module_text(found.module)
        number = module.number_of(found.query.name)
        match program.update:
            case UnionLists():
                return _by_tables(found, module, number)
            case BranchFree() | StraightLine() | Keyed():
                return _by_piles(found, module, number)
            case _:
                assert_never(program.update)
    except (NotUnderstoodError, SyntaxError) as problem:
        return Verdict(UPDATE, "tested", str(problem))


def _by_tables(found: Representations, module: ModuleText, number: int) -> Verdict:
    what = "the tables in the module, move by move; the runtime's engine follows them"

    def differences() -> Iterator[str]:
        given = tables_in(module, f"TABLES_{number}")
        yield from differences_of_text(given, found.program.tables)
        yield from _settings(found, given)

    return _exactly(UPDATE, what, differences())


def _settings(found: Representations, given: dict[str, object]) -> Iterator[str]:
    query, program = found.query, found.program
    window, mode, size = query.window, given["window"], given["size"]
    if window is None:
        wanted: tuple[object, object] = ("NO_WINDOW", 0)
        if _is_alone(found):
            wanted = ("EVENTS", 0)
    elif has_floors(query):
        wanted = ("FLOORS", 0)
    else:
        clock = clock_of(query, one_event=False)
        unit = "EVENTS" if window.unit.name == "EVENTS" else "KEYS"
        wanted = (unit, clock.key - clock.floor)
    if (mode, size) != wanted:
        yield f"the window of the tables is {mode} {size}, not {wanted[0]} {wanted[1]}"
    if given["consumes"] != consumes(query, program):
        yield "a match consumes partial matches, or does not"
    if given["interleaved"] != (query.consume_by == "ANY" and bool(query.partition_by)):
        yield "partitions interleave, or do not"


def _is_alone(found: Representations) -> bool:
    """Whether every match has one event, so that nothing is kept for a later one."""
    return found.plan.matching.one_event and not found.query.simultaneous


def consumes(query: Query, program: Program) -> bool:
    """Whether the update forgets partial matches where a match ends: all that end are matches."""
    by_update = All | InRuns | InWindow | EarliestInWindow | Latest | United | Counted
    return query.consume_by != "NONE" and isinstance(program.listing, by_update)


def _by_piles(found: Representations, module: ModuleText, number: int) -> Verdict:
    program, query = found.program, found.query
    tables, update = program.tables, written(module, found.query.name).update
    assert isinstance(update, runtime.BranchFree | runtime.StraightLine | runtime.Keyed)
    starts = [kind.starts for kind in tables.kinds]
    does = consumes(query, program)
    clock = clock_of(query, one_event=_is_alone(found))
    marks = [kind.marks for kind in tables.kinds]
    bounds = program.update.bounds if isinstance(program.update, StraightLine) else None
    takes: dict[int, frozenset[Pile]] = {}
    for take in () if bounds is None else bounds.takes:
        for symbol in take.symbols:
            takes[symbol] = takes.get(symbol, frozenset()) | {*take.piles}
    try:
        code = UpdateCode(module, number, update, found.plan, starts)
        step = UpdateStep(code, clock, tables.symbols, consumes=does, takes=takes)
        step.check()
        check_pairs(step)
        if bounds is not None:
            check_bounds(step, bounds, marks)
        if isinstance(program.update, Keyed):
            assert isinstance(update, runtime.Keyed)
            check_keys(step, program.update.keys, program.update.piles, update.terms, marks)
    except WrongError as problem:
        return Verdict(UPDATE, "wrong", "the code of the update", str(problem))
    machine = step.machine(marks)
    lost = frozenset[tuple[DetState, int]]()
    if isinstance(program.update, Keyed):
        lost = frozenset(
            (one.state, symbol) for one in program.update.keys.removals for symbol in one.symbols
        )
    differ = difference(found.minimal, tables.symbol_of, machine, consumes=does, lost=lost)
    what = "the code, symbol by symbol, from states of the piles; then streams of any length"
    if differ is not None:
        word = ", ".join(f"{symbol} as {marks_text(marks)}" for symbol, marks in differ.word)
        return Verdict(UPDATE, "wrong", what, f"{differ.what}: symbols {word}")
    if not step.keeps_order:
        what += "; that starts stay in order in piles is seen in what is listed, not proved"
    if lost or takes:
        what += "; which absences the update decides is as in the plan"
    if step.is_exact:
        return Verdict(UPDATE, "exact", what)
    return Verdict(UPDATE, "bounded", f"{what}; of more than a few piles, pairs")


CODE_STEPS: Final = (tables_step, plan_step, update_step)
"""From the minimal automaton to the text of the module; `listing_step` also runs the module."""
