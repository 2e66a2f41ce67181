"""The rows of a parameter table that an event can affect, as conditions on each event type.

An event that cannot change the answer for a row is not read for that row. Conditions on one event
tell which events these are, as in `plan/relevance`: they are the events without a symbol. A query
that asks for neighbours, or has selectors inside, reads all events for every row, because an event
also counts there as a neighbour.

All events of a match have one partition. Where each match has an event whose key of PARTITION BY
equals an attribute of the row, all of them have: so events of other partitions do not concern the
row, whatever else they are asked.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.parameters import Concern, OfBoth, OfEvent, OfRow, Test

from celc.automata.determinize import START
from celc.automata.predicates import TypeConditions
from celc.core import formula as core
from celc.core.formula import MIRRORED, DataType, Predicate
from celc.normal.normal_form import EventClause
from celc.plan.program import Program
from celc.plan.relevance import (
    asks_for_neighbours,
    clauses_of,
    has_selectors,
    least_truths,
    truths_that_matter,
)
from celc.plan.tables import Tables

MOST_WAYS = 64  # combinations of conditions on a type; beyond them only the type is asked for


_Clause: TypeAlias = tuple[Test, ...]


@frozen
class Concerns:
    """The rows that events can affect, by event type. `of_types` is None where every event can
    affect every row; `why` says why."""

    of_types: tuple[Concern, ...] | None
    why: str = ""


def concerns_of(program: Program, *, sees_all_events: bool) -> Concerns:
    """The rows that an event can affect, of a query with a parameter set. `sees_all_events`: the
    selection also reads events that the query does not ask about."""
    query, tables = program.query, program.tables
    parameters = query.parameters
    assert parameters is not None
    if parameters.sees_all:
        return Concerns(None, "any event can decide a match with an absence at its end")
    if query.strategy == "STRICT" or asks_for_neighbours(query.formula):
        return Concerns(None, "the query asks for neighbours")
    if has_selectors(query.formula) or tables.contexts is not None or sees_all_events:
        return Concerns(None, "a selector compares matches")
    columns = columns_of(program)
    shared = tuple((one,) for one in _keys_of_rows(program, columns))
    return Concerns(
        tuple(
            _concern(conditions, truths, columns, shared)
            for conditions, truths in truths_that_matter(program)
        )
    )


def columns_of(program: Program) -> dict[str, str]:
    """The attribute of the row that each column holds; empty for answers to patterns, which are not
    attributes of the event or of the row."""
    parameters = program.query.parameters
    assert parameters is not None
    return {**dict(parameters.columns), **{one.column: "" for one in parameters.patterns}}


def _concern(
    conditions: TypeConditions,
    truths: set[int],
    columns: Mapping[str, str],
    shared: tuple[_Clause, ...],
) -> Concern:
    """shared: what is true of all events of a match."""
    ways = tuple(way_of(conditions, truth, columns) for truth in least_truths(truths))
    if len(ways) > MOST_WAYS or not all(ways):
        ways = ((),) if shared else ()
    ways = tuple((*way, *(one for one in shared if one not in way)) for way in ways)
    return Concern(conditions.type.stream, conditions.type.name, ways)


def _keys_of_rows(program: Program, columns: Mapping[str, str]) -> Iterator[OfBoth]:
    """Equalities of a key of PARTITION BY with an attribute of the row that one event at least of
    each match satisfies."""
    keys = {one.name for one in program.query.partition_by if not one.alternatives} - {*columns}
    asked: dict[OfBoth, dict[tuple[str, str], int]] = {}
    for conditions in program.alphabet.types:
        type = conditions.type.stream, conditions.type.name
        for bit, group in enumerate(conditions.groups):
            for clause in group:
                match _clause(clause, columns):
                    case (OfBoth(operator="=", attribute=name) as test,) if name in keys:
                        of_types = asked.setdefault(test, {})
                        of_types[type] = of_types.get(type, 0) | 1 << bit
    for test, groups in asked.items():
        if not _ends_without(program, groups):
            yield test


def _ends_without(program: Program, groups: Mapping[tuple[str, str], int]) -> bool:
    """Whether a match can end without an event that satisfies a group of conditions of its type,
    which are given as bit sets."""
    tables = program.tables
    moves: set[tuple[int, int | None]] = set()
    for conditions in program.alphabet.types:
        asked = groups.get((conditions.type.stream, conditions.type.name), 0)
        for number, symbol in program.alphabet.numbered(conditions.type):
            for one in _symbols_of(tables, tables.symbol_of[number]):
                moves.update((s, tables.skip[s][one]) for s in range(1, tables.states))
                for step in () if symbol.truth & asked else tables.steps[one]:
                    moves.update(
                        (source, START if step.target is None else step.target)
                        for source in step.sources
                    )
    seen: set[int] = {START}
    found: list[int] = [START]
    while found:
        state = found.pop()
        targets = {target for source, target in moves if source == state and target is not None}
        if START in targets:
            return True
        found += targets - seen
        seen |= targets
    return False


def _symbols_of(tables: Tables, number: int) -> set[int]:
    """The symbols of the tables that events of a class can have."""
    return {number} if tables.instants is None else {place[number] for place in tables.instants}


def way_of(
    conditions: TypeConditions, truth: int, columns: Mapping[str, str]
) -> tuple[_Clause, ...]:
    """The clauses of the groups in a bit set, without clauses that an index cannot answer."""
    clauses = [_clause(clause, columns) for clause in clauses_of(conditions, truth)]
    return tuple(clause for clause in clauses if clause is not None)


def _clause(clause: EventClause, columns: Mapping[str, str]) -> _Clause | None:
    tests = [_test(predicate, columns) for predicate in clause.predicates]
    known = tuple(test for test in tests if test is not None)
    return known if len(known) == len(tests) else None


def _test(predicate: Predicate, columns: Mapping[str, str]) -> Test | None:
    match predicate:
        case core.NullTest():
            operator = "is_not_null" if predicate.negated else "is_null"
            return _with_constants(operator, predicate.operand, (), columns)
        case core.Membership():
            if predicate.negated and predicate.has_null:
                return None
            operator = "not_in" if predicate.negated else "in"
            return _with_constants(operator, predicate.operand, predicate.values, columns)
        case core.Comparison():
            return _comparison(predicate, columns)
        case _:
            return None


def _comparison(predicate: core.Comparison, columns: Mapping[str, str]) -> Test | None:
    operator, left, right = predicate.operator, predicate.left, predicate.right
    if isinstance(left, core.Constant):
        operator, left, right = MIRRORED[operator], right, left
    if isinstance(right, core.Constant):
        values = () if right.value is None else (right.value,)
        return _with_constants(operator, left, values, columns) if values else None
    one, other = _attribute(left), _attribute(right)
    if one is None or other is None or (one in columns) == (other in columns):
        return None
    if one in columns:
        operator, one, other = MIRRORED[operator], other, one
    if operator == "!=" or not columns[other]:
        return None
    return OfBoth(operator, one, columns[other], left.type.value)


def _with_constants(
    operator: str,
    operand: core.Expression,
    values: tuple[core.Value, ...],
    columns: Mapping[str, str],
) -> Test | None:
    attribute = _attribute(operand)
    if attribute is None or attribute == core.TYPE:
        return None
    if operand.type is DataType.STRING and operator in ("<", "<=", ">", ">="):
        return None
    if columns.get(attribute) == "":
        return None
    if attribute in columns:
        return OfRow(operator, columns[attribute], operand.type.value, values)
    return OfEvent(operator, attribute, operand.type.value, values)


_KEPT = (DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE)


def _attribute(operand: core.Expression) -> str | None:
    """The attribute that an operand is, perhaps cast to a wider number; None for anything else."""
    if isinstance(operand, core.Cast):
        if operand.type not in _KEPT or operand.operand.type not in _KEPT:
            return None
        operand = operand.operand
    return operand.attribute if isinstance(operand, core.AttributeValue) else None
