"""Branch-free updates → what their template is given: one row of numbers for each symbol.

Straight-line code asks what the symbol of an event is, and where any symbol may come next, the
processor guesses wrongly every other time: that costs more than the update. Here all symbols take
the same steps, with other numbers; a symbol with fewer steps does the rest for nothing. So this
form is the better one while the steps of all symbols together are not many more than each has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celc.emit_update import step_comment
from celc.piles import PilePlan, Write
from celc.tables import Kind

View = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Cell:
    """The cell that is made in one place of the rows, over all symbols."""

    place: int
    writes: tuple[Write | None, ...]
    first_column: int

    @property
    def reads(self) -> int:
        return max((len(write.reads) for write in self.writes if write), default=0)

    @property
    def begins(self) -> bool:
        return any(write.starts for write in self.writes if write)

    @property
    def ends(self) -> bool:
        return any(write.pile is None for write in self.writes if write)

    def numbers(self, symbol: int, empty: int) -> list[int]:
        """This cell's part of a symbol's row."""
        write = self.writes[symbol]
        lost = empty + 1
        if write is None:
            return [empty] * max(1, self.reads) + [lost, 0, 0, 0]
        reads = [*write.reads, *[empty] * (max(1, self.reads) - len(write.reads))]
        pile = lost if write.pile is None else write.pile
        return [*reads, pile, write.step.kind, -write.starts, -(write.pile is None)]

    def number(self, offset: int) -> str:
        """How the code finds a number of this cell's part of the row at hand."""
        return f"step[{self.first_column + offset}]"


def branch_free_view(
    plan: PilePlan, kinds: Sequence[Kind], kind_bits: int, symbols: Sequence[str]
) -> View:
    """What the template of a branch-free update needs besides `update_view`."""
    cells: list[_Cell] = []
    column = 0
    empty = len(plan.piles)
    for place in range(plan.most_cells):
        writes = tuple(w[place] if place < len(w) else None for w in plan.writes)
        cell = _Cell(place, writes, column)
        cells.append(cell)
        column += len(cell.numbers(0, empty))
    rows = [
        {
            "comment": "; ".join(
                [symbols[symbol].replace("  ", ": ", 1), *(step_comment(w, kinds) for w in writes)]
            ),
            "numbers": [n for cell in cells for n in cell.numbers(symbol, empty)],
        }
        for symbol, writes in enumerate(plan.writes)
    ]
    lines = [line for cell in cells for line in _load(cell)]
    for cell in cells:
        lines += _make(cell, kind_bits)
    return {
        # A symbol that makes all the nodes that one can still writes those of others behind them.
        "nodes_per_event": plan.nodes_per_event + (len(cells) > 1),
        "branch_free": {
            "rows": rows,
            "lines": [line.replace("SINCES", f"np.uint64({empty + 2})") for line in lines],
            "ends": any(cell.ends for cell in cells),
            "empty": empty,
            "lost": empty + 1,
        },
        "update_names": sorted(
            {name for name in _HELPERS if any(f"{name}(" in line for line in lines)}
        ),
    }


_HELPERS = ("chosen", "united")


def _load(cell: _Cell) -> list[str]:
    """What a cell is made from: all of it is read before any pile is written."""
    at = cell.place
    lines = [
        f"source = np.uint64({cell.number(0)})",
        f"child_{at}, since_{at} = heads[source], heads[source + SINCES]",
    ]
    for offset in range(1, cell.reads):
        lines += [
            f"source = np.uint64({cell.number(offset)})",
            f"child_{at}, since_{at}, next_node = united(nodes, next_node, earliest, "
            f"child_{at}, since_{at}, heads[source], heads[source + SINCES])",
        ]
    if cell.begins:
        begins = cell.number(max(1, cell.reads) + 2)
        lines.append(f"since_{at} = chosen({begins}, key, since_{at})")
    return lines


def _make(cell: _Cell, kind_bits: int) -> list[str]:
    """The cell itself; it counts only where what it is made from is inside the window."""
    at, base = cell.place, max(1, cell.reads)
    kind, ends = cell.number(base + 1), cell.number(base + 3)
    following = "following"
    if cell.ends:
        following = f"chosen({ends}, fired, following)" if at else f"following & ~{ends}"
    lines = [
        f"pile, live = np.uint64({cell.number(base)}), -np.int64(since_{at} >= earliest)",
        "following = heads[pile]",
        f"put_flat(nodes, next_node, entry << {kind_bits} | {kind}, "
        f"child_{at}, {following}, since_{at})",
        "heads[pile] = chosen(live, next_node, following)",
        f"heads[pile + SINCES] = since_{at}",
    ]
    if cell.ends and at:
        lines.append(f"fired = chosen({ends} & live, next_node, fired)")
    elif cell.ends:
        lines.append(f"fired = next_node & {ends} & live")
    elif not at:
        lines.append("fired = np.int64(0)")
    lines.append("next_node -= live")
    return lines
