"""A resolved query → its program: the automaton, its conditions, and what a path remembers.

A condition has two parts (`positions`). The *local* part reads rows at constant distances, so it is
computed for a whole column of rows, before any path is followed. The other part reads what the path
to the row has matched, for example `LAST(B.price)` or `SUM(B.price)`. It needs registers: numbers
that a search carries along its path. Paths from one start to one state and one row differ only in
their registers. Where these are equal too, the search tries once what follows.
"""

from dataclasses import dataclass, field, replace
from itertools import chain

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.traversal import nodes_asked, nodes_of
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import row_patterns as messages
from celc.row_pattern import core as rows
from celc.row_pattern.automaton import (
    MOST_MOVES,
    Automaton,
    automaton,
    depths_of,
    with_conditions,
)
from celc.row_pattern.positions import Condition, Conditions, conditions

MOST_REMEMBERED = 10_000
"""Rows of a variable that a path remembers, in a register each."""

MOST_LOCAL = 62
"""Local conditions: a row has one bit for each, in one number of 64 bits."""


@frozen
class RowMemory:
    """The last or the first rows of some variables, in registers."""

    variables: core.Variables | None
    """None: rows of any variable."""
    first: bool
    """Whether the first rows are kept, and not the last ones."""
    depth: int
    """The number of rows, and of registers."""
    labels: bool
    """Whether a register holds the variable of a row, and not its number."""
    at: int
    """The first register."""


@frozen
class AggregateMemory:
    """An aggregate of the rows so far. Registers from `at` on hold its value, the last one the
    number of values."""

    aggregate: core.AggregateOfRows
    at: int

    @property
    def words(self) -> int:
        """The registers of its value. COUNT has none. A sum of DECIMALs has three words and one of
        INTERVALs two, so that it may become too large and small again; a DECIMAL of more than 18
        digits has two."""
        return _words(self.aggregate)

    @property
    def counter(self) -> int:
        """The register of the number of values."""
        return self.at + self.words


def _words(aggregate: core.AggregateOfRows) -> int:
    if aggregate.function == "COUNT":
        return 0
    is_sum = aggregate.function in ("SUM", "AVG")
    if isinstance(aggregate.type, core.DecimalType):
        if is_sum:
            return 3
        return 2 if aggregate.type.is_wide else 1
    return 2 if is_sum and aggregate.type is core.DataType.INTERVAL else 1


Memory = RowMemory | AggregateMemory


@frozen
class Around:
    """The rows that conditions read beside those of the match so far."""

    before: int
    """The most rows before the first row of the match."""
    ahead: tuple[int, ...]
    """For each condition, the most rows after the row at hand."""
    numbered: bool
    """Whether conditions read MATCH_NUMBER()."""
    alone: bool
    """Whether there are conditions, and all of them read nothing but columns of the row at hand."""


@frozen
class Program:
    """A query with its automaton, and what is computed along a path."""

    query: rows.Query
    automaton: Automaton
    conditions: tuple[Condition, ...]
    """The conditions of the moves."""
    local: tuple[core.Truth, ...]
    """The distinct local parts of the conditions."""
    bits: tuple[int, ...]
    """For each condition, the place of its local part in `local`; −1: it has none."""
    memories: tuple[Memory, ...]
    """What a path remembers in its registers."""
    registers: tuple[int, ...]
    """The value of each register at the start of a match."""
    live: tuple[tuple[int, ...], ...]
    """For each state, the registers that tell paths to it apart, and that later conditions read."""
    remembers: bool
    """Whether the registers hold all that conditions read of a path. If not, they read the path
    itself, as for `PREV(CLASSIFIER())`."""
    required: tuple[core.Truth, ...]
    """Conditions on one row, each of which holds for some row of every match."""
    around: Around
    """Which rows beside those of the match so far conditions read."""


def program(query: rows.Query, found: Diagnostics) -> Program:
    """The program of a query. Adds an error where it is too large, and warnings."""
    for condition, span in zip(query.conditions, query.condition_spans, strict=True):
        reads = [] if condition is None else _row_reads(condition)
        if any(depth > MOST_REMEMBERED for _, depth in reads):
            found.add(messages.too_much_remembered(MOST_REMEMBERED, span))
            found.raise_errors()
    written_out = automaton(query.pattern)
    if written_out is None:
        found.add(messages.too_many_moves(MOST_MOVES, query.pattern_span))
        found.raise_errors()
        raise AssertionError("there is an error")
    found_conditions = conditions(query, written_out)
    local = _local_parts(found_conditions)
    if len(local) > MOST_LOCAL:
        found_conditions = conditions(query, written_out, distances=False)
        local = _local_parts(found_conditions)
    made = with_conditions(written_out, found_conditions.of_state)
    resolved = found_conditions.all
    bits = [-1 if one.local is None else local[one.local] for one in resolved]
    if len(local) > MOST_LOCAL:
        found.add(messages.too_many_conditions(MOST_LOCAL, query.pattern_span))
    path = _PathMemory()
    for one in resolved:
        if one.path is not None:
            path.add(one.path)
    memories, registers, key = path.done()
    live = _live(made, resolved, path, key)
    _warn(query, made, resolved, path, key, found)
    return Program(
        replace(query, within=found_conditions.within),
        made,
        resolved,
        tuple(local),
        tuple(bits),
        memories,
        registers,
        live,
        path.remembers,
        found_conditions.required,
        _around(made, resolved),
    )


def _around(made: Automaton, resolved: tuple[Condition, ...]) -> Around:
    """What the conditions of the moves read beside the match."""
    asked = [
        [node for part in (one.local, one.path) if part is not None for node in nodes_asked(part)]
        for one in resolved
    ]
    shifts = [[_shift(node) for node in nodes] for nodes in asked]
    depths = depths_of(made)
    before = 0
    for state in made.states:
        for move in state.moves:
            for from_start, shift in () if move.condition < 0 else shifts[move.condition]:
                taken = 0 if from_start else depths[move.target]
                before = max(before, -shift - taken)
    ahead = tuple(max((shift for _, shift in found), default=0) for found in shifts)
    numbered = any(isinstance(node, core.MatchNumber) for nodes in asked for node in nodes)
    alone = any(nodes for nodes in asked) and all(map(_is_of_row, chain.from_iterable(asked)))
    return Around(before, tuple(max(one, 0) for one in ahead), numbered, alone)


def _is_of_row(node: core.Expression) -> bool:
    """Whether a term of a condition reads nothing but columns of the row at hand."""
    match node:
        case core.ColumnAt(row=core.Here(shift=0)):
            return True
        case (
            core.ColumnAt()
            | core.LabelAt()
            | core.Existing()
            | core.MatchNumber()
            | core.AggregateOfRows()
        ):
            return False
        case _:
            return True


def ahead_of(truth: core.Truth) -> int:
    """The most rows after the row at hand that a condition reads."""
    return max((shift for _, shift in map(_shift, nodes_asked(truth))), default=0)


def _shift(node: core.Expression) -> tuple[bool, int]:
    """How many rows after its base a term reads (before: negative), and whether this base can be
    the first row of the match; if not, it is the row at hand."""
    if isinstance(node, core.ColumnAt | core.LabelAt | core.Existing):
        if isinstance(node.row, core.Here):
            return False, node.row.shift
        if isinstance(node.row, core.Navigation):
            return True, node.row.shift
    return False, 0


def _local_parts(found: Conditions) -> dict[core.Truth, int]:
    """The distinct local parts of conditions, numbered."""
    local: dict[core.Truth, int] = {}
    for condition in found.all:
        if condition.local is not None:
            local.setdefault(condition.local, len(local))
    return local


@dataclass(slots=True)
class _PathMemory:
    """Collects what conditions read of the path."""

    rows: dict[tuple[core.Variables | None, bool, bool], int] = field(default_factory=dict)
    aggregates: dict[core.AggregateOfRows, None] = field(default_factory=dict)
    remembers: bool = True
    places: dict[object, tuple[int, int]] = field(default_factory=dict)

    def add(self, condition: core.Truth) -> None:
        """Note the reads of a condition."""
        for key, depth in _row_reads(condition):
            self.rows[key] = max(self.rows.get(key, 0), depth)
        for node in nodes_asked(condition):
            if isinstance(node, core.AggregateOfRows):
                self.aggregates.setdefault(node)
            if isinstance(node, core.LabelAt) and _is_shifted(node):
                self.remembers = False

    def done(self) -> tuple[tuple[Memory, ...], tuple[int, ...], frozenset[int]]:
        """The memories, the values of their registers at the start of a match, and the registers
        that can differ between two paths from one start to one row."""
        memories: list[Memory] = []
        registers: list[int] = []
        key: set[int] = set()
        for (variables, first, labels), depth in self.rows.items():
            at = len(registers)
            memories.append(RowMemory(variables, first, depth, labels, at))
            registers += [-1] * depth
            key.update(range(at, len(registers)))
            self.places[variables, first, labels] = (at, depth)
        for aggregate in self.aggregates:
            at = len(registers)
            memories.append(AggregateMemory(aggregate, at))
            size = _words(aggregate) + 1
            registers += [0] * size
            self.places[aggregate] = (at, size)
            if aggregate.variables is not None or _reads_labels(aggregate):
                key.update(range(at, at + size))
        return tuple(memories), tuple(registers), frozenset(key)

    def registers_of(self, condition: core.Truth) -> set[int]:
        """The registers that a condition reads, now or in later rows."""
        found: set[int] = set()
        keys: list[object] = [key for key, _ in _row_reads(condition)]
        keys += [node for node in nodes_asked(condition) if isinstance(node, core.AggregateOfRows)]
        for key in keys:
            at, size = self.places[key]
            found.update(range(at, at + size))
        return found


def _is_shifted(node: core.LabelAt) -> bool:
    """Whether a term reads the variable of a shifted row. No register holds it, only the path."""
    return isinstance(node.row, core.Navigation) and node.row.shift != 0


def _row_reads(
    condition: core.Truth,
) -> list[tuple[tuple[core.Variables | None, bool, bool], int]]:
    """The rows or labels of the path that a condition reads, and how many of them."""
    found = []
    for node in nodes_asked(condition):
        match node:
            case core.LabelAt(row=core.Navigation() as row) if not row.shift:
                found.append(((row.variables, row.first, True), row.offset + 1))
            case (
                core.ColumnAt(row=core.Navigation() as row)
                | core.Existing(row=core.Navigation() as row)
                | core.LabelAt(row=core.Navigation() as row)
            ) if (row.variables is not None):
                found.append(((row.variables, row.first, False), row.offset + 1))
    return found


def _reads_labels(aggregate: core.AggregateOfRows) -> bool:
    return aggregate.argument is not None and any(
        isinstance(node, core.LabelAt) for node in nodes_of(aggregate.argument)
    )


def _warn(
    query: rows.Query,
    made: Automaton,
    resolved: tuple[Condition, ...],
    path: _PathMemory,
    key: frozenset[int],
    found: Diagnostics,
) -> None:
    """Warn of conditions that make the search depend on the path."""
    told: set[int] = set()
    for state in made.states:
        for move in state.moves:
            condition = resolved[move.condition].path if move.condition >= 0 else None
            if condition is None or move.variable in told:
                continue
            if path.registers_of(condition) & key or not path.remembers:
                told.add(move.variable)
                name, span = query.variables[move.variable], query.condition_spans[move.variable]
                found.add(messages.searches_paths(name, span))


def _live(
    made: Automaton, resolved: tuple[Condition, ...], path: _PathMemory, key: frozenset[int]
) -> tuple[tuple[int, ...], ...]:
    """For each state, the registers that conditions of the moves from there on read."""
    own: list[set[int]] = [set() for _ in made.states]
    for number, state in enumerate(made.states):
        for move in state.moves:
            condition = None if move.condition < 0 else resolved[move.condition].path
            if condition is not None:
                own[number] |= path.registers_of(condition) & key
    changed = True
    while changed:
        changed = False
        # Targets mostly have greater numbers, so that one round is mostly enough.
        for number in reversed(range(len(made.states))):
            for move in made.states[number].moves:
                if not own[move.target] <= own[number]:
                    own[number] |= own[move.target]
                    changed = True
    return tuple(tuple(sorted(one)) for one in own)
