"""One update of a generated module, run over single events from any state of its piles.

A state of the piles says for each pile whether it holds partial matches, and the latest start of
them. What a pile holds stands for itself: its newest node is a name. So what the update makes of
the piles can be read off the nodes: which new list holds which old ones, with which marks.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeAlias

from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import BranchFree, Keyed, StraightLine

from celc.verify.prove.code.arena_model import (
    ALWAYS,
    COUNTERS,
    MERGE,
    NEVER,
    Calls,
    Column,
    Grid,
    Nodes,
    names_of_model,
)
from celc.verify.prove.code.machines import BEGIN
from celc.verify.prove.code.module_text import ModuleText, WrongError
from celc.verify.prove.verdict import NotUnderstoodError

Pile: TypeAlias = Hashable
"""A pile: its number, or (table, column of the newest cell) of a pile by key."""

Part: TypeAlias = tuple[Hashable, tuple[int, ...]]
"""What a list holds of the state before: (pile or BEGIN, the kinds of the events since)."""

ROW = 5  # of the event in its batch; the rows before it have symbol 0
FIRST_NEW = 1000  # the id of the first node that an event makes
ENTRY = 41
KEY_VALUE, OTHER_VALUE = 7, 8
ADMITTING, BOUND, VALUE = 10, 50, 100
"""The bound of every pile, the bound that an event brings, and the value that it compares, where
nothing else is said: the event is admitted everywhere."""
_END_OF_PARTS = 2**62
_AT = {name: place for place, name in enumerate(COUNTERS)}


@dataclass(slots=True)
class Before:
    """A state, and the events that come. `symbols` are those from `ROW` on, `key` and `floor` those
    of each event."""

    since: Mapping[Pile, int]
    symbols: Sequence[int]
    key: int
    floor: int
    neighbour: bool = True  # whether the event before was the last one that mattered
    new_part: bool = False  # whether a partition begins with the first event
    full: bool = False  # whether there is no room for nodes
    same_instant: bool | None = None  # of two events; None: no two events are simultaneous
    values: Sequence[int] = ()  # the values of the terms of keys; empty: all are KEY_VALUE
    known: Sequence[bool] = ()  # whether they are not NULL; empty: none is
    emptied: frozenset[Pile] = frozenset()  # piles of which an event has taken everything
    earlier_floor: int = ALWAYS
    bounds: Sequence[int] = ()
    given: Mapping[str, int] = field(default_factory=dict)
    taken: frozenset[Pile] = frozenset()
    rises: int = 0  # how much later the window of the second event begins
    key_rises: int = 0  # and how much greater its key is
    key_of_part: int | None = None  # the key of the event in its partition; None: `key`

    @property
    def last_floor(self) -> int:
        """The earliest start in the window of the last event."""
        return self.floor + self.rises * (len(self.symbols) - 1)


@dataclass(slots=True)
class After:
    """What the update left behind."""

    nodes: Nodes
    heads: dict[Pile, tuple[int, int]]  # of each pile its newest node, and the latest start
    counters: dict[str, int]
    calls: Calls
    old: dict[int, Pile]  # the piles of the old nodes
    bounds: list[int]

    def parts(self, node: int, floor: int, lowest: int, code: UpdateCode) -> list[Part]:
        """What a list holds, as a walk from its node finds it: nothing that is dead."""
        found: list[Part] = []
        while node >= max(lowest, 1):
            row = self.nodes.rows.get(node)
            if row is None or row[3] < floor:
                break
            if node in self.old:
                found.append((self.old[node], ()))
                break
            tag, child, following, _ = row
            below = self.parts(child, floor, lowest, code)
            if tag == MERGE:
                found += below
            else:
                entry, kind = tag >> code.kind_bits, tag & ((1 << code.kind_bits) - 1)
                if not ENTRY <= entry < self.counters["ENTRY"]:
                    self.calls.wrong.append(f"a cell names event {entry - ENTRY} of the batch")
                if kind >= len(code.starts):
                    self.calls.wrong.append(f"a cell has kind {kind}")
                    break
                if code.starts[kind]:
                    found.append((BEGIN, (kind,)))
                found += [(source, (*kinds, kind)) for source, kinds in below]
            node = following
        return found


class UpdateCode:
    """The update of a query, ready to be run. Raises NotUnderstoodError where its text reads what
    the model does not have, WrongError where it reads what nothing sets."""

    def __init__(
        self,
        module: ModuleText,
        number: int,
        update: BranchFree | StraightLine | Keyed,
        plan: Plan,
        starts: Sequence[bool],
    ) -> None:
        self.plan, self.update = plan, update
        self.kind_bits = plan.matching.kind_bits
        self.starts = starts
        self.key_terms = len(update.terms) if isinstance(update, Keyed) else 0
        name = f"update_{number}"
        tree = module.functions.get(name)
        if tree is None:
            raise WrongError(f"the module has no function {name}")
        if unknown := module.unknown_in(name):
            raise WrongError(f"{name} reads {', '.join(sorted(unknown))}, which nothing sets")
        self.piles: list[Pile] = [*range(update.piles)]
        self._widths: list[int] = []
        if isinstance(update, Keyed):
            for table, one in enumerate(update.tables):
                first = 1 + len(one.texts)
                self.piles += [(table, first + 2 * n) for n in range(one.piles)]
                self._widths.append(first + 2 * one.piles)
        self.reads_neighbours = "LAST" in module.names_in(name)
        self.has_instants = "BARRIER" in module.names_in(name)
        names = module.names_in(name)
        # What these hold for the next instant stands behind what they hold in the present one.
        self._late = {p for p in self.piles if self.has_instants and f"fresh_head_{p}" in names}
        self.bounds = getattr(update, "bounds", None)
        self._past = _unpacked(tree)
        self._calls, self._given, self._takes = Calls(), dict[str, int](), frozenset[int]()
        self._names = names_of_model(self._calls, lambda node: node in self._takes)
        self._names["GIVEN"] = self._given
        for read in sorted(module.names_in(name)):
            if read in module.values and read not in self._names:
                self._names[read] = module.value(read, dict(self._names))
            elif read in module.functions:
                self._names[read] = read  # a condition that decides what is taken
        self._all_given: dict[str, int] = {}
        if self.bounds is not None:
            module, given = _with_given_values(module, name)
            self._all_given = {one: VALUE if one[0] == "v" else BOUND for one in given}
        self._function = module.compiled(name, self._names)

    def run(self, before: Before) -> After:
        """The state after the events. Raises NotUnderstoodError for a name that the model lacks."""
        memory, old = self._memory(before)
        rows = ROW + len(before.symbols)
        parts = [ROW, _END_OF_PARTS] if before.new_part else [_END_OF_PARTS]
        batch = SimpleNamespace(
            symbols=Column([0] * ROW + [*before.symbols]),
            words=Column(),
            keys=Column([before.key] * rows),
            floors=Column([before.floor] * rows),
            part_starts=Column(parts),
            instants=self._instants(before),
        )
        calls = self._calls
        calls.listed = 0
        calls.rooms, calls.fires, calls.wrong = [], [], []
        self._given.clear()
        self._given.update(self._all_given, **before.given)
        self._takes = frozenset(n for n, pile in old.items() if pile in before.taken)
        arguments: list[Any] = [batch, memory]
        tables: list[Grid] = []
        if isinstance(self.update, Keyed):
            keys = self._keys(before, old, memory.nodes)
            tables = list(keys.tables)
            arguments.append(keys)
        arguments += [None, None]
        bounds = Column([*before.bounds] or [ADMITTING] * (self.bounds or 0) + [before.key])
        if self.bounds is not None:
            arguments += [tuple(Column() for _ in range(self._past)), 0, bounds]
        try:
            self._function(*arguments)
        except (NameError, AttributeError, TypeError) as problem:
            raise NotUnderstoodError(f"the update reads what the model lacks: {problem}") from None
        except (LookupError, ArithmeticError, ValueError) as problem:
            raise WrongError(f"the update fails with {problem!r}") from None
        heads: dict[Pile, tuple[int, int]] = {}
        for pile in self.piles:
            if isinstance(pile, tuple):
                table, column = pile
                row = self._row(tables[table])
                heads[pile] = tables[table][row, column], tables[table][row, column + 1]
            else:
                assert isinstance(pile, int)
                first = 2 if pile in self._late else 0
                heads[pile] = memory.heads[first, pile], memory.heads[first + 1, pile]
        counters = {name: memory.counters[place] for name, place in _AT.items()}
        made = Calls(calls.listed, [*calls.rooms], [*calls.fires], calls.wrong)
        return After(memory.nodes, heads, counters, made, old, [*bounds])

    def _row(self, table: Grid) -> int:
        for row in range(table.shape[0]):
            if table[row, 0] and table[row, 1] == KEY_VALUE:
                return row
        return table.shape[0] - 1

    def _memory(self, before: Before) -> tuple[Any, dict[int, Pile]]:
        count = self.update.piles
        heads, nodes = Grid(5, count + 2, NEVER), Nodes()
        for place in range(count + 2):
            heads[0, place] = heads[2, place] = 0
        old: dict[int, Pile] = {}
        for number, pile in enumerate(self.piles, 1):
            if isinstance(pile, tuple):
                continue
            assert isinstance(pile, int)
            if pile in before.since:
                first = 2 if pile in self._late else 0
                heads[first, pile], heads[first + 1, pile] = number, before.since[pile]
                nodes.rows[number] = (number << self.kind_bits, 0, 0, before.since[pile])
                old[number] = pile
            elif pile in before.emptied:
                heads[0, pile] = -number if isinstance(self.update, BranchFree) else 0
        counters = Column([0] * len(COUNTERS))
        for name, value in (
            ("NEXT_NODE", FIRST_NEW),
            ("USABLE", FIRST_NEW if before.full else FIRST_NEW + 1_000_000),
            ("LOWEST", 1),
            ("ROW", ROW),
            ("SHIFT", ROW - before.key),
            ("ENTRY", ENTRY),
            ("EARLIEST", before.earlier_floor),
            ("LAST", ROW - 1 if before.neighbour else ROW - 2),
            ("INSTANT", ROW - 1 if before.neighbour else ROW - 2),
        ):
            counters[_AT[name]] = value
        memory = SimpleNamespace(
            nodes=nodes,
            heads=heads,
            counters=counters,
            fires=Grid(64, 4),
            relevant=Column([0] * 64),
        )
        return memory, old

    def _instants(self, before: Before) -> Column:
        if before.same_instant is None:
            return Column()
        second = ROW if before.same_instant else ROW + 1
        return Column([*range(ROW), ROW, second][: ROW + len(before.symbols)])

    def _keys(self, before: Before, old: dict[int, Pile], nodes: Nodes) -> Any:
        assert isinstance(self.update, Keyed)
        tables = []
        for number, width in enumerate(self._widths):
            table = Grid(64, width)
            first = 1 + len(self.update.tables[number].texts)
            for row in range(64):
                for column in range(first + 1, width, 2):
                    table[row, column] = NEVER
            tables.append(table)
        for number, pile in enumerate(self.piles, 1):
            if isinstance(pile, tuple) and pile in before.since:
                index, column = pile
                table = tables[index]
                for part in range(1 + len(self.update.tables[index].texts)):
                    table[0, part] = KEY_VALUE if part else 1
                table[0, column], table[0, column + 1] = number, before.since[pile]
                nodes.rows[number] = (number << self.kind_bits, 0, 0, before.since[pile])
                old[number] = pile
        terms, rows = len(self.update.terms), ROW + len(before.symbols)
        values, known = Grid(terms, rows + 32, KEY_VALUE), Grid(terms, rows + 32, 1)
        for term in range(terms):
            for row in range(rows):
                if before.values:
                    values[term, row] = before.values[term]
                if before.known:
                    known[term, row] = int(before.known[term])
        filled = Column([int(bool(table[0, 0])) for table in tables])
        return SimpleNamespace(values=values, known=known, tables=tables, filled=filled)


def _unpacked(tree: ast.FunctionDef) -> int:
    """The number of columns of past events that an update reads."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Name)
            and node.value.id == "past"
            and isinstance(node.targets[0], ast.Tuple)
        ):
            return len(node.targets[0].elts)
    return 0


def _with_given_values(module: ModuleText, name: str) -> tuple[ModuleText, set[str]]:
    """The module, in which an update is given the values of events that it compares; and the names
    of these."""
    given: set[str] = set()

    class Given(ast.NodeTransformer):
        def visit_Assign(self, node: ast.Assign) -> ast.AST:
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id.startswith(("value_", "bound_")):
                given.add(target.id)
                read = ast.Subscript(
                    ast.Name("GIVEN", ast.Load()), ast.Constant(target.id), ast.Load()
                )
                return ast.copy_location(ast.Assign([target], read), node)
            return node

    tree = ast.parse(ast.unparse(module.functions[name]))
    changed = Given().visit(tree).body[0]
    functions = {**module.functions, name: changed}
    return ModuleText(module.text, functions, module.values, module.imported), given
