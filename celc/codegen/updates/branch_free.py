"""Updates without branches → one row of numbers for each symbol, and the steps that read it.

Straight-line code branches on the symbol of an event. Where any symbol may come next, the processor
predicts every second branch wrongly, which costs more than the update. Here all symbols take the
same steps, each with its own numbers. A symbol with fewer steps makes dead cells in the others. So
this form is better while all symbols together have not many more steps than each of them.
"""

from typing import ClassVar

from celc_runtime.plan.frozen import frozen

from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import LegendLine, TemplateView
from celc.codegen.updates.straight_line import pile_legend, step_comment
from celc.codegen.updates.update import UpdateInput
from celc.plan.straight_line.piles import PilePlan, Write


@frozen
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
        """The expression for a number of this cell's part of the present row."""
        return f"step[{self.first_column + offset}]"


@frozen
class SymbolRow:
    """The numbers of all cells that an event with one symbol makes."""

    comment: str
    numbers: tuple[int, ...]


@frozen
class BranchFreeUpdate(TemplateView):
    """The function `update`, in which all symbols take the same steps.

    - `header` says how the update runs, and why; `piles` what each pile is for. Two more piles
      come last: one is always empty, and one takes dead cells.
    - `forget_from` is the place in the array of piles where their latest starts begin.
    - `bound` is the most nodes of one event.
    - `key_lines` set the event's key and the earliest key in its window; `latest` is the last key
      in a window that begins at `earliest`.
    - `lines` make the cells; `ends`: a match may end at an event; `list_matches` is the function
      that lists matches.
    - `simultaneous`: see `UpdateInput`; `empties`: events empty piles.
    - `forget` frees all nodes where an event leaves no partial match; empty where no event does.
    """

    template: ClassVar[str] = "branch_free_update"

    number: int
    header: str
    piles: tuple[LegendLine, ...]
    rows: tuple[SymbolRow, ...]
    partitioned: bool
    forget_from: int
    bound: int
    latest: str
    key_lines: tuple[str, ...]
    lines: tuple[str, ...]
    ends: bool
    list_matches: str
    simultaneous: bool
    empties: bool
    forget: str


# Long: what the template asks for, name by name.
def branch_free_update(
    given: UpdateInput, plan: PilePlan, *, list_matches: str
) -> BranchFreeUpdate:
    """The update of a query; `list_matches` is the function that lists its matches."""
    imports, window, partitioned = given.imports, given.window, given.partitioned
    cells: list[_Cell] = []
    column = 0
    empty = len(plan.piles)
    lost = empty + 1
    for place in range(plan.most_cells):
        writes = tuple(w[place] if place < len(w) else None for w in plan.writes)
        cell = _Cell(place, writes, column)
        cells.append(cell)
        column += len(cell.numbers(0, empty))
    clears = any(map(plan.leaves_nothing, range(len(plan.writes))))
    rows = tuple(
        SymbolRow(
            "; ".join(
                [
                    f"{symbol}: {given.symbols[symbol].comment}",
                    *(step_comment(write, given.kinds) for write in writes),
                    *(f"pile {removal.pile} is emptied" for removal in plan.removals[symbol]),
                ]
            ),
            (
                *(n for cell in cells for n in cell.numbers(symbol, empty)),
                *(removal.pile for removal in plan.removals[symbol]),
                *[lost] * (plan.most_removals - len(plan.removals[symbol])),
                *([-plan.leaves_nothing(symbol)] if clears else []),
            ),
        )
        for symbol, writes in enumerate(plan.writes)
    )
    simultaneous = given.simultaneous
    empties = plan.most_removals > 0
    starts = f"np.uint64({lost + 1})"
    code = _CellCode(starts, given.kind_bits, imports, simultaneous, empties)
    lines = [line for cell in cells for line in code.load(cell)]
    for place in range(plan.most_removals):
        lines += code.empty(column + place)
    lines += [line for cell in cells for line in code.make(cell)]
    imports.use("njit", "np", list_matches, "put_flat", "reserve", "room_for_rows", "seal")
    imports.use("write_relevant_rows")
    imports.use("ARENA_FULL", "BLOCK", "DONE", "EARLIEST", "ENTRY", "FIRED", "LOWEST", "NEXT_NODE")
    imports.use(*(["BARRIER", "INSTANT", "NO_BARRIER"] if simultaneous else []))
    imports.use("ROW", "SHIFT", "USABLE", *(["NEVER", "PART"] if partitioned else []))
    imports.use(*(["NEVER"] if empties else []))
    return BranchFreeUpdate(
        number=given.number,
        header=given.header,
        piles=(
            *pile_legend(plan),
            LegendLine(empty, "always empty"),
            LegendLine(lost, "dead cells, never read"),
        ),
        rows=rows,
        partitioned=partitioned,
        forget_from=lost + 1,
        # Every symbol writes a dead node after its nodes, for other symbols.
        bound=plan.nodes_per_event + (len(cells) > 1),
        latest=window.latest,
        key_lines=window.key_lines(imports, passing="entry += 1"),
        lines=tuple(lines),
        ends=any(cell.ends for cell in cells),
        list_matches=list_matches,
        simultaneous=simultaneous,
        empties=empties,
        forget=code.forget(column + plan.most_removals) if clears else "",
    )


@frozen
class _CellCode:
    """Writes the steps of one cell. `starts` is the distance, in the array of piles, from a pile's
    newest cell to its latest start."""

    starts: str
    kind_bits: int
    imports: Imports
    simultaneous: bool
    empties: bool

    def load(self, cell: _Cell) -> list[str]:
        """Lines that read the sources of a cell. They come before all lines that write piles."""
        at = cell.place
        variables = f"child_{at}, since_{at}"
        source = f"heads[source], heads[source + {self.starts}]"
        lines = [
            f"source = np.uint64({cell.number(0)})",
            f"{variables} = {source}",
            *self._before_instant(f"child_{at}", f"since_{at}"),
        ]
        for offset in range(1, cell.reads):
            other = "other, other_since" if self.simultaneous else source
            joined = self.imports.call(
                "union_flat", "nodes", "next_node", "earliest", variables, other
            )
            lines += [
                f"source = np.uint64({cell.number(offset)})",
                *([f"{other} = {source}"] if self.simultaneous else []),
                *self._before_instant("other", "other_since"),
                f"{variables}, next_node = {joined}",
            ]
        if cell.begins:
            begins = cell.number(max(1, cell.reads) + 2)
            since = self._chosen(begins, "key", f"since_{at}")
            lines.append(f"since_{at} = {since}")
        return lines

    def _before_instant(self, head: str, since: str) -> tuple[str, ...]:
        """Lines that take the newest cell of `source` back to its state before the instant. The
        branch is never taken where no two events are simultaneous."""
        if not self.simultaneous:
            return ()
        arguments = ("memory", "source", head, "barrier", "next_node", "lowest")
        before = self.imports.call("seen", *arguments)
        return (f"if {head} >= barrier:", f"    {head}, {since} = {before}")

    def empty(self, column: int) -> list[str]:
        """Lines that empty a pile. Its content stays behind for the listing, but no walk reaches it
        (see `runs` in the runtime)."""
        return [
            f"pile = np.uint64(step[{column}])",
            f"heads[pile], heads[pile + {self.starts}] = -abs(heads[pile]), NEVER",
        ]

    def forget(self, column: int) -> str:
        """The line that frees all nodes after an event that leaves no partial match."""
        return f"lowest = {self._chosen(f'step[{column}]', 'next_node', 'lowest')}"

    def make(self, cell: _Cell) -> list[str]:
        """Lines that make the cell. It is live only where its sources are inside the window."""
        at, base = cell.place, max(1, cell.reads)
        kind, ends = cell.number(base + 1), cell.number(base + 3)
        following = "following"
        if cell.ends:
            following = self._chosen(ends, "fired", "following") if at else f"following & ~{ends}"
        lines = [
            f"pile, live = np.uint64({cell.number(base)}), -np.int64(since_{at} >= earliest)",
            "following = heads[pile]",
            f"put_flat(nodes, next_node, entry << {self.kind_bits} | {kind}, "
            f"child_{at}, {following}, since_{at})",
            f"heads[pile] = {self._chosen('live', 'next_node', 'following')}",
            f"heads[pile + {self.starts}] = {self._latest_start(at)}",
        ]
        if cell.ends and at:
            lines.append(f"fired = {self._chosen(f'{ends} & live', 'next_node', 'fired')}")
        elif cell.ends:
            lines.append(f"fired = next_node & {ends} & live")
        elif not at:
            lines.append("fired = np.int64(0)")
        lines.append("next_node -= live")
        return lines

    def _latest_start(self, at: int) -> str:
        """The latest start of a pile after a cell that may be dead. Then the pile is dead as well,
        unless an event has emptied what the cell is made of."""
        if not self.empties:
            return f"since_{at}"
        return self._chosen("live", f"since_{at}", f"heads[pile + {self.starts}]")

    def _chosen(self, mask: str, first: str, second: str) -> str:
        return self.imports.call("select_by_mask", mask, first, second)
