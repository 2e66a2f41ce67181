"""Bounds of piles → the lines of an update that keep and read them."""

from collections.abc import Sequence

from celc_runtime.plan.frozen import frozen

from celc.codegen.correlated.checks import EventCode
from celc.codegen.text.escape import comment_text
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import LegendLine
from celc.core.formula import DataType, Expression
from celc.core.show import show_predicate
from celc.plan.straight_line.pile_bounds import PileBounds
from celc.plan.straight_line.piles import Write

_REAL = (DataType.FLOAT, DataType.DOUBLE)


@frozen
class BoundCode:
    """Writes the bounds of piles.

    `least_p_c` is the bound of pile p by condition c since the window began anew, `older_p_c` the
    one before. `values` writes the compared values, from the remembered `columns` of past events.
    `windowed`: a window lets bounds be forgotten.
    """

    bounds: PileBounds
    values: EventCode
    columns: tuple[str, ...]
    imports: Imports
    windowed: bool

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
        return [*self._bounds(), *(["turned"] if self.windowed else [])]

    def _bounds(self) -> list[str]:
        return [f"{name}_{p}_{c}" for p, c in self.bounds.kept for name in ("least", "older")]

    def renewed(self) -> tuple[str, ...]:
        if not self.windowed:
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
        self.imports.use("NO_BOUND", *(["ALWAYS"] if self.windowed else []))
        return (
            f"{' = '.join(self._bounds())} = NO_BOUND",
            *(["turned = ALWAYS"] if self.windowed else []),
        )

    def lines(self, writes: Sequence[Write], marks: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """Lines that find the values which the writes of an event compare and keep. `marks` are
        those of each write."""
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
        lines = ["here = entry - first"] if asked or own else []
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
        return " and ".join(
            f"min(least_{pile}_{number}, older_{pile}_{number})"
            f" {'<' if self.bounds.pairings[number].strict else '<='} value_{number}"
            for number in self.bounds.asked(pile, marks)
        )

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
