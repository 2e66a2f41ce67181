"""The invariants of the plan of a query of MATCH_RECOGNIZE."""

from collections.abc import Iterable

from celc_runtime.plan.expressions import (
    LabelOfRow,
    RowIsThere,
    ValueOfAggregate,
    ValueOfRow,
    nodes_in,
)
from celc_runtime.plan.row_pattern import LETTERS, RowPlan, RowState, Variables

from celc.verify.lowered import named
from celc.verify.violations import Violation, Violations

ONCE = "names of columns, variables and the columns of the result are there once"
NUMBERS = "columns, variables, rows and measures are named by numbers that there are"
DERIVED = "derived columns are the last ones, and are made of columns of the table"
STATES = "a move leads to a state, on a variable and a condition that there are"
FOUND_BEFORE = "a condition that is found beforehand has one of the bits"
ONLY_OF_LISTS = "only ARRAY_AGG has an order, and a condition beside its argument"
ONE_ARGUMENT = "an aggregate has one argument, with its type; only COUNT can have none"
MEMORY = "a search has memory for each state, and nothing else has any"
TARGETS = "variables are skipped to where the clause says so, and only there"
TIME = "WITHIN is measured on a first order column that is a time, from the first time on"


def row_plan(found: RowPlan) -> Violations:
    """A plan names only its own columns, variables and states.

    The runtime looks them up by number without a check, partly in machine code. A wrong number
    would read beyond an array.
    """
    for names in (found.columns, found.outputs):
        yield from _once(one.name for one in names)
    yield from _once(found.variables)
    yield from _columns(found)
    yield from _automaton(found)
    yield from _measures(found)
    yield from _aggregates(found)
    if (found.skip in ("TO FIRST", "TO LAST")) != bool(found.targets):
        yield Violation(TARGETS, f"SKIP {found.skip} has {found.targets}")
    yield from _in_range(NUMBERS, "skipped to", found.targets, found.variables)
    first = [(found.columns[one.column].type, one.descending) for one in found.order_by[:1]]
    times = ([(one, False)] for one in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"))
    if found.within is not None and first not in times:
        yield Violation(TIME, f"it is measured on {first}")


def _once(given: Iterable[str]) -> Violations:
    names = [name.lower() for name in given]
    if len(names) != len({*names}):
        yield Violation(ONCE, str(names))


def _columns(found: RowPlan) -> Violations:
    named = {
        "PARTITION BY": found.partition_by,
        "ORDER BY": [order.column for order in found.order_by],
        "conditions": [one for one in found.read if one != LETTERS],
        "the result": [one.number for one in found.outputs if not one.measure],
        "measures": [
            node.column
            for tree in found.trees
            for node in nodes_in(tree)
            if isinstance(node, ValueOfRow)
        ],
    }
    for where, numbers in named.items():
        yield from _in_range(NUMBERS, f"columns of {where}", numbers, found.columns)

    made = [one.name for one in found.derived]
    table = [column.name for column in found.columns[: len(found.columns) - len(made)]]
    if made != [column.name for column in found.columns[len(table) :]]:
        yield Violation(DERIVED, f"{made} are made")
    for one in found.derived:
        missing = [name for name, _ in one.reads if name not in table]
        if missing:
            yield Violation(DERIVED, f"{one.name} reads {missing}")


def _automaton(found: RowPlan) -> Violations:
    states: tuple[RowState, ...] = named(found.states)
    moves = [move for state in states for move in state.moves]
    targets = [found.first, found.start, *(move.target for move in moves)]
    yield from _in_range(STATES, "states", targets, states)
    yield from _in_range(STATES, "variables", [move.variable for move in moves], found.variables)
    asked = [move.condition for move in moves if move.condition != -1]
    yield from _in_range(STATES, "conditions", asked, found.conditions)
    local = [one.local for one in found.conditions if one.local != -1]
    yield from _in_range(FOUND_BEFORE, "bits", local, range(found.local_conditions))
    if {*local} != {*range(found.local_conditions)}:
        yield Violation(FOUND_BEFORE, f"{sorted({*local})} of {found.local_conditions} are asked")
    if len(found.live) != (len(states) if found.searches else 0):
        yield Violation(MEMORY, f"{len(found.live)} of {len(states)} states")
    live = [register for registers in found.live for register in registers]
    yield from _in_range(MEMORY, "registers", live, found.registers)


def _measures(found: RowPlan) -> Violations:
    shown = [one.number for one in found.outputs if one.measure]
    yield from _in_range(NUMBERS, "measures of the result", shown, found.measures)
    rows, aggregates = [], []
    for tree in (one.value for one in found.measures):
        for node in nodes_in(tree):
            match node:
                case ValueOfRow(row=int(number)) | LabelOfRow(row=int(number)):
                    rows.append(number)
                case RowIsThere(row=number):
                    rows.append(number)
                case ValueOfAggregate(aggregate=number):
                    aggregates.append(number)
    yield from _in_range(NUMBERS, "rows of measures", rows, found.navigations)
    yield from _in_range(NUMBERS, "aggregates of measures", aggregates, found.aggregates)
    for row in found.navigations:
        yield from _variables(found, "a row", row.variables)


def _aggregates(found: RowPlan) -> Violations:
    for one in found.aggregates:
        yield from _variables(found, one.function, one.variables)
        given = one.argument is not None
        if given != bool(one.read) or not (given or one.function == "COUNT"):
            yield Violation(ONE_ARGUMENT, f"{one.function} reads a value of type {one.read!r}")
        if (one.order or one.kept is not None) and one.function != "ARRAY_AGG":
            yield Violation(ONLY_OF_LISTS, one.function)


def _variables(found: RowPlan, what: str, variables: Variables) -> Violations:
    yield from _in_range(NUMBERS, f"variables of {what}", variables or (), found.variables)


def _in_range(
    invariant: str, what: str, numbers: Iterable[int], there: tuple[object, ...] | range
) -> Violations:
    wrong = sorted({number for number in numbers if not 0 <= number < len(there)})
    if wrong:
        yield Violation(invariant, f"{what}: {wrong} of {len(there)}")
