"""Bounds of piles, and takes from them → the lines of an update that keep and read them."""

from __future__ import annotations

from collections.abc import Sequence

from celc_runtime.plan.frozen import frozen

from celc.codegen.correlated.checks import EventCode
from celc.codegen.text.escape import comment_text
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import LegendLine
from celc.core.formula import DataType, Expression
from celc.core.show import show_predicate
from celc.normal.flat_form import ABSENT
from celc.plan.straight_line.pile_bounds import PileBounds, asked_by
from celc.plan.straight_line.piles import Write
from celc.plan.tables import Kind

_REAL = (DataType.FLOAT, DataType.DOUBLE)


@frozen
class TakeCode:
    """The function that decides whether an event takes a cell: its name, the conditions in words
    and in code."""

    name: str
    comment: str
    truth: str


@frozen
class BoundCode:
    """Writes the bounds of piles of query `number`, and what events take from piles.

    `least_p_c` is the bound of pile p by condition c since the window began anew, `older_p_c` the
    one before. `values` writes the compared values, from the remembered `columns` of past events.
    `windowed`: a window lets bounds be forgotten.
    """

    number: int
    bounds: PileBounds
    values: EventCode
    columns: tuple[str, ...]
    imports: Imports
    windowed: bool
    kind_bits: int

    def legend(self) -> tuple[LegendLine, ...]:
        """The conditions in words."""
        return tuple(
            LegendLine(number, comment_text(show_predicate(pairing.written)))
            for number, pairing in enumerate(self.bounds.pairings)
        )

    def loaded(self) -> tuple[str, ...]:
        """Lines that load the bounds which the last call has left."""
        return tuple(f"{name} = bounds[{place}]" for place, name in enumerate(self._variables()))

    def left(self) -> tuple[str, ...]:
        """Lines that leave all bounds to the next call."""
        return tuple(f"bounds[{place}] = {name}" for place, name in enumerate(self._variables()))

    def _variables(self) -> list[str]:
        return [*self._bounds(), *(["turned"] if self._turns else [])]

    @property
    def _turns(self) -> bool:
        return self.windowed and bool(self.bounds.kept)

    def _bounds(self) -> list[str]:
        return [f"{name}_{p}_{c}" for p, c in self.bounds.kept for name in ("least", "older")]

    def renewed(self) -> tuple[str, ...]:
        if not self._turns:
            return ()
        self.imports.use("NO_BOUND")
        pairs = [f"{pile}_{number}" for pile, number in self.bounds.kept]
        olders, leasts = [f"older_{one}" for one in pairs], [f"least_{one}" for one in pairs]
        return (
            "if earliest > turned:  # what was in the piles then has left the window",
            f"    turned, {', '.join(olders)} = key, {', '.join(leasts)}",
            f"    {' = '.join(leasts)} = NO_BOUND",
        )

    def forgotten(self) -> tuple[str, ...]:
        if not self.bounds.kept:
            return ()
        self.imports.use("NO_BOUND", *(["ALWAYS"] if self.windowed else []))
        return (
            f"{' = '.join(self._bounds())} = NO_BOUND",
            *(["turned = ALWAYS"] if self.windowed else []),
        )

    def functions(self) -> tuple[TakeCode, ...]:
        """The functions that decide what events take."""
        found = []
        for number, take in enumerate(self.bounds.takes):
            names = {ABSENT: "here", take.role: "earlier"}
            truths = [f"({self.values.of_clause(one.clause, names)})" for one in take.clauses]
            said = [show_predicate(p) for one in take.clauses for p in one.written.predicates]
            name = f"takes_{self.number}_{number}"
            found.append(TakeCode(name, comment_text(" AND ".join(said)), " & ".join(truths)))
        return tuple(found)

    def taken(self, symbol: int, writes: Sequence[Write], kinds: Sequence[Kind]) -> tuple[str, ...]:
        """Lines that take the cells out of piles which an event with a symbol takes."""
        lines: list[str] = []
        for number, take in enumerate(self.bounds.takes):
            for pile in take.piles if symbol in take.symbols else ():
                asked = {
                    bound
                    for write in writes
                    if pile in write.reads
                    for bound in self.bounds.asked(pile, kinds[write.step.kind].marks)
                }
                needed = asked.intersection(asked_by(self.bounds, pile, take, kinds))
                tests = [self._admits(pile, bound) for bound in sorted(needed)]
                lines += self._take(number, pile, tests)
        return tuple(lines)

    def takes(self, symbol: int) -> frozenset[int]:
        """The piles from which an event with a symbol takes."""
        return frozenset(p for one in self.bounds.takes if symbol in one.symbols for p in one.piles)

    def _take(self, number: int, pile: int, tests: Sequence[str]) -> list[str]:
        self.imports.use("NEVER")
        found = self.imports.call(
            "taken_from",
            *("nodes", "next_node", "lowest", "earliest", f"takes_{self.number}_{number}"),
            *("past", "here", "first", str(self.kind_bits), f"head_{pile}"),
        )
        names = f"taken_{pile}, since_taken_{pile}"
        lines = [
            f"{names} = np.int64(0), np.int64(NEVER)",
            f"if {' and '.join([f'since_{pile} >= earliest', *tests])}:",
            f"    {names}, head_{pile}, since_{pile} = {found}",
        ]
        # A bound that other piles take over from this one stays.
        kept = [
            f"{pile}_{bound}"
            for bound in range(len(self.bounds.pairings))
            if [p for p, number in self.bounds.kept if number == bound] == [pile]
        ]
        if kept:
            self.imports.use("NO_BOUND")
            forgotten = " = ".join(f"{name}_{one}" for one in kept for name in ("least", "older"))
            lines += [f"    if head_{pile} == 0:", f"        {forgotten} = NO_BOUND"]
        return lines

    def lines(
        self, writes: Sequence[Write], marks: Sequence[tuple[str, ...]], *, takes: bool
    ) -> tuple[str, ...]:
        """Lines that find the values which the writes of an event compare and keep. `marks` are
        those of each write; `takes`: the event takes cells as well."""
        asked = {
            number
            for write, of_write in zip(writes, marks, strict=True)
            for pile in write.reads
            for number in self.bounds.asked(pile, of_write)
        }
        own = {
            number
            for write, of_write in zip(writes, marks, strict=True)
            for pile, number in self.bounds.kept
            if pile == write.pile and self.bounds.pairings[number].earlier in of_write
        }
        lines = ["here = entry - first"] if asked or own or takes else []
        for number, pairing in enumerate(self.bounds.pairings):
            if number in asked:
                value = self._key(pairing.of_later, pairing.falls, "LEAST_KEY")
                lines.append(f"value_{number} = {value}")
            if number in own:
                value = self._key(pairing.of_earlier, pairing.falls, "NO_BOUND")
                lines.append(f"bound_{number} = {value}")
        return tuple(lines)

    def admits(self, pile: int, marks: tuple[str, ...]) -> str:
        """A test whether some match of a pile may admit an event with these marks; empty: all
        may."""
        return " and ".join(self._admits(pile, bound) for bound in self.bounds.asked(pile, marks))

    def _admits(self, pile: int, bound: int) -> str:
        compared = "<" if self.bounds.pairings[bound].strict else "<="
        return f"min(least_{pile}_{bound}, older_{pile}_{bound}) {compared} value_{bound}"

    def kept(self, write: Write, marks: tuple[str, ...]) -> tuple[str, ...]:
        lines = []
        for pile, number in self.bounds.kept:
            if pile != write.pile:
                continue
            least = f"least_{pile}_{number}"
            values = [f"bound_{number}"]
            if self.bounds.pairings[number].earlier not in marks:
                values = [
                    f"{name}_{source}_{number}"
                    for source in write.reads
                    for name in ("least", "older")
                ]
            lines.append(f"{least} = min({', '.join([least, *values])})")
        return tuple(lines)

    def _key(self, expression: Expression, falls: bool, null: str) -> str:
        value, known = self.values.value_at(expression, "here")
        if expression.type in _REAL:
            value = self.imports.call("key_of_real", value)
        self.imports.use(null)
        return f"{'~' if falls else ''}{value} if {known} else np.int64({null})"
