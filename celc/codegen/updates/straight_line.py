"""Straight-line updates → a branch for each symbol, with the lines that make each cell."""

from collections.abc import Sequence
from typing import ClassVar

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START
from celc.codegen.text.escape import comment_text
from celc.codegen.text.templates import LegendLine, TemplateView
from celc.codegen.updates.key_lookups import KeyLookups, SymbolLookups, TableOfPiles, TableRow
from celc.codegen.updates.pile_bounds import TakeCode
from celc.codegen.updates.update import UpdateInput
from celc.normal.show import show_labels
from celc.plan.straight_line.piles import PilePlan, Removal, Write
from celc.plan.tables import Kind


@frozen
class WriteCode:
    """One cell that is made. `joined` are lines that make one list of several piles. `lines` make
    the cell where `condition` holds; without a condition, always."""

    comment: str
    joined: tuple[str, ...]
    condition: str
    lines: tuple[str, ...]


@frozen
class SymbolBranch:
    """The steps of an event with one symbol; `keyword` is `if` or `elif`.

    - `bounds` are lines that find what the bounds of piles are compared with, and their new
      values; and that take cells out of piles.
    - `saved` are piles that are written before they are read for the last time, or read as they
      were before the instant.
    - `removals` are lines that empty piles, and move their content to others.
    """

    keyword: str
    symbol: int
    comment: str
    lookups: tuple[str, ...]
    bounds: tuple[str, ...]
    saved: tuple[int, ...]
    removals: tuple[str, ...]
    writes: tuple[WriteCode, ...]


@frozen
class StraightLineUpdate(TemplateView):
    """The function `update`, with a branch for each symbol.

    - `header` says how the update runs, and why; `piles` what each pile is for.
    - `takes` are functions that decide what events take out of piles.
    - `bounds` are lines that load the bounds of piles by the conditions `pairings`, which read the
      remembered `columns`. Lines `renewed` forget what has left the window, `forget_bounds` forget
      all, `leave_bounds` leave them to the next call.
    - `heads` are the piles in variables, `fleeting` the piles that live for one event.
    - `key_tables` hold the other piles; `filling` are the tables to which an event may add a row;
      `ahead` fetches rows that later events need.
    - `bound` is the most nodes of one event.
    - `key_lines` set the event's key and the earliest key in its window; `latest` is the last key
      in a window that begins at `earliest`.
    - `forget` empties all piles in variables; it is empty where there are none.
    - `simultaneous`: see `UpdateInput`. Then the fleeting piles are `of_instants`, and live for one
      instant. `only_barrier`: there are none.
    - `leaves_nothing` is the condition that no partial match is left after an event; empty where
      that is never known.
    """

    template: ClassVar[str] = "straight_line_update"

    number: int
    header: str
    piles: tuple[LegendLine, ...]
    takes: tuple[TakeCode, ...]
    pairings: tuple[LegendLine, ...]
    columns: tuple[str, ...]
    bounds: tuple[str, ...]
    renewed: tuple[str, ...]
    forget_bounds: tuple[str, ...]
    leave_bounds: tuple[str, ...]
    heads: tuple[int, ...]
    fleeting: tuple[int, ...]
    key_tables: tuple[TableOfPiles, ...]
    filling: tuple[TableOfPiles, ...]
    ahead: tuple[str, ...]
    bound: int
    latest: str
    key_lines: tuple[str, ...]
    partitioned: bool
    consumes: bool
    forget: str
    branches: tuple[SymbolBranch, ...]
    simultaneous: bool
    of_instants: tuple[int, ...]
    only_barrier: bool
    leaves_nothing: str


# Long: what the template asks for, name by name.
def straight_line_update(
    given: UpdateInput, plan: PilePlan, lookups: KeyLookups | None = None
) -> StraightLineUpdate:
    """The update of a query. `lookups` are those of its piles by key, None without keys."""
    imports, window = given.imports, given.window
    fleeting = tuple(sorted(plan.fleeting))
    in_variables = [
        p for p in range(len(plan.piles)) if lookups is None or p not in lookups.columns
    ]
    branches = _branches(given, plan, lookups)
    reads_before = given.simultaneous and any(branch.saved for branch in branches)
    tables = () if lookups is None else lookups.key_tables()
    filling = tuple(table for table in tables if table.entries)
    forgotten = [f"since_{pile}" for pile in in_variables]
    if given.simultaneous:
        # The bounds of the present instant are not there yet.
        forgotten += [f"fresh_since_{pile}" for pile in fleeting]
    forget = " = ".join([*forgotten, "NEVER"])
    imports.use("njit", "np", "list_fired", "next_relevant_row", "reserve")
    imports.use("ARENA_FULL", "DONE", "EARLIEST", "ENTRY", "FIRED", "LOWEST", "NEXT_NODE", "ROW")
    imports.use("SHIFT", "USABLE", *(["PART"] if given.partitioned else []))
    if given.simultaneous:
        imports.use("BARRIER", "INSTANT", "NO_BARRIER", *(["seen"] if reads_before else []))
        imports.use(*(["NEVER"] if plan.fleeting else []))
    elif plan.fleeting:
        imports.use("LAST", "NEVER")
    if in_variables and (given.partitioned or given.consumes):
        imports.use("NEVER")
    if filling:
        imports.use("KEYS_FULL")
    if tables:
        imports.use("AHEAD")
    bounds = given.bounds
    return StraightLineUpdate(
        number=given.number,
        header=given.header,
        piles=pile_legend(plan, lookups),
        takes=() if bounds is None else bounds.functions(),
        pairings=() if bounds is None or not bounds.bounds.kept else bounds.legend(),
        columns=() if bounds is None else bounds.columns,
        bounds=() if bounds is None else bounds.loaded(),
        renewed=() if bounds is None else bounds.renewed(),
        forget_bounds=() if bounds is None or not given.partitioned else bounds.forgotten(),
        leave_bounds=() if bounds is None else bounds.left(),
        heads=tuple(in_variables),
        fleeting=() if given.simultaneous else fleeting,
        key_tables=tables,
        filling=filling,
        ahead=() if lookups is None else lookups.ahead(),
        bound=plan.nodes_per_event,
        latest=window.latest,
        key_lines=window.key_lines(imports, passing="row, entry = row + 1, entry + 1"),
        partitioned=given.partitioned,
        consumes=given.consumes,
        forget=forget if in_variables else "",
        branches=branches,
        simultaneous=given.simultaneous,
        of_instants=fleeting if given.simultaneous else (),
        only_barrier=given.simultaneous and not fleeting,
        leaves_nothing=" or ".join(
            f"symbol == {symbol}"
            for symbol in range(len(plan.writes))
            if plan.leaves_nothing(symbol)
        ),
    )


def pile_legend(plan: PilePlan, lookups: KeyLookups | None = None) -> tuple[LegendLine, ...]:
    """The state and the sources of each pile."""
    lines = []
    for number, pile in enumerate(plan.piles):
        sources = " or ".join("start" if s == START else f"state {s}" for s in pile.sources)
        comment = f"state {pile.target}, from {sources}"
        if pile.moved:
            comment = f"state {pile.target}, moved there from {sources}"
        if number in plan.fleeting:
            comment += ", only at the next event"
        if lookups is not None and number in lookups.columns:
            comment += f", by key in table {lookups.columns[number][0]}"
        lines.append(LegendLine(number, comment))
    return tuple(lines)


def step_comment(write: Write, kinds: Sequence[Kind]) -> str:
    """The transition that a cell stands for: its sources, its marks and its target."""
    step = write.step
    sources = ", ".join("start" if s == START else f"state {s}" for s in step.sources)
    target = "match" if step.target is None else f"state {step.target}"
    return f"{sources} --{comment_text(show_labels(kinds[step.kind].marks))}--> {target}"


def _branches(
    given: UpdateInput, plan: PilePlan, lookups: KeyLookups | None
) -> tuple[SymbolBranch, ...]:
    branches: list[SymbolBranch] = []
    for symbol, writes in enumerate(plan.writes):
        of_symbol = None if lookups is None else lookups.of_symbol(symbol)
        by_key = [] if of_symbol is None else of_symbol.removals()
        takes = frozenset[int]() if given.bounds is None else given.bounds.takes(symbol)
        if not (writes or plan.removals[symbol] or by_key or takes):
            continue
        keyed = set() if lookups is None else set(lookups.columns)
        kept = plan.saved[symbol]
        if given.simultaneous:
            # Each is read as it was before the instant.
            kept = tuple(
                dict.fromkeys(p for w in writes for p in w.reads if p not in plan.fleeting)
            )
        saved = tuple(pile for pile in kept if pile not in keyed)
        code = _BranchCode(given, plan, lookups, of_symbol, saved, takes)
        branches.append(
            SymbolBranch(
                "elif" if branches else "if",
                symbol,
                given.symbols[symbol].comment,
                () if of_symbol is None else of_symbol.lines(),
                code.bounds(symbol, writes),
                saved,
                (*code.removals(plan.removals[symbol]), *by_key),
                tuple(map(code.write, writes)),
            )
        )
    return tuple(branches)


@frozen
class _BranchCode:
    """Writes the cells of one symbol. Piles in `saved` are read under their old names, and what an
    event takes of those in `takes` under names of its own."""

    given: UpdateInput
    plan: PilePlan
    lookups: KeyLookups | None
    of_symbol: SymbolLookups | None
    saved: tuple[int, ...]
    takes: frozenset[int]

    def write(self, write: Write) -> WriteCode:
        """One cell: its sources, its condition, and its place."""
        marks = self.given.kinds[write.step.kind].marks
        sources = [self._variables(pile, marks) for pile in write.reads]
        admits = [self._admits(pile, marks) for pile in write.reads]
        if len(sources) > 1 and any(admits):
            self.given.imports.use("NEVER")
            sources = [
                (head, f"({latest} if {test} else NEVER)" if test else latest)
                for (head, latest), test in zip(sources, admits, strict=True)
            ]
        if write.starts:  # the cell is made anyway
            sources = [
                (f"({head} if {test} else 0)" if test else head, latest)
                for (head, latest), test in zip(sources, admits, strict=True)
            ]
        child, since = ("0", "key") if not sources else sources[0]
        joined: list[str] = []
        if len(sources) > 1:
            joined.append(f"child, since = {child}, {since}")
            child, since = "child", "since"
            for other in sources[1:]:
                arguments = ("nodes", "next_node", "earliest", child, since, *other)
                call = self.given.imports.call("union", *arguments)
                joined.append(f"child, since, next_node = {call}")
        conditions = [] if write.starts else [f"{since} >= earliest"]
        guard = "" if self.lookups is None else self.lookups.guard(marks)
        if len(sources) == 1 and not write.starts:
            conditions += filter(None, admits)
        return WriteCode(
            step_comment(write, self.given.kinds),
            tuple(joined),
            " and ".join([*conditions, *([guard] if guard else [])]),
            self._lines(write, child, since),
        )

    def bounds(self, symbol: int, writes: Sequence[Write]) -> tuple[str, ...]:
        """Lines that find what the bounds of piles are compared with, and their new values; and
        that take cells out of piles."""
        code, kinds = self.given.bounds, self.given.kinds
        if code is None:
            return ()
        marks = [kinds[write.step.kind].marks for write in writes]
        values = code.lines(writes, marks, takes=bool(self.takes))
        return (*values, *code.taken(symbol, writes, kinds))

    def removals(self, removals: Sequence[Removal]) -> list[str]:
        """Lines that empty piles. What is moved was saved before, and goes in front of its pile."""
        if not removals:
            return []
        self.given.imports.use("NEVER")
        lines = ["# the unmarked matches of these piles are lost, or move to another state"]
        lines += [
            f"head_{removal.pile}, since_{removal.pile} = np.int64(0), np.int64(NEVER)"
            for removal in removals
        ]
        for removal in removals:
            if removal.into is not None:
                into = f"head_{removal.into}, since_{removal.into}"
                old = f"old_head_{removal.pile}", f"old_since_{removal.pile}"
                arguments = ("nodes", "next_node", "earliest", *old, into)
                lines.append(f"{into}, next_node = {self.given.imports.call('union', *arguments)}")
        return lines

    def _variables(self, pile: int, marks: Sequence[str]) -> tuple[str, str]:
        """The variables with the newest cell of a read pile, and with the latest start in it."""
        keyed = None if self.of_symbol is None else self.of_symbol.source(pile, marks)
        end = str(pile) if keyed is None else keyed
        if pile in self.takes:
            return f"taken_{pile}", f"since_taken_{pile}"
        old = "old_" if pile in self.saved else ""
        return f"{old}head_{end}", f"{old}since_{end}"

    def _admits(self, pile: int, marks: tuple[str, ...]) -> str:
        """A test whether the bounds of a pile admit an event; empty: it has no bounds, or they were
        asked before something was taken."""
        if self.given.bounds is None or pile in self.takes:
            return ""
        return self.given.bounds.admits(pile, marks)

    def _passes_over(self, write: Write) -> bool:
        """Whether a cell is made of several piles, some of which bounds can leave out."""
        marks = self.given.kinds[write.step.kind].marks
        return len(write.reads) > 1 and any(self._admits(pile, marks) for pile in write.reads)

    def _lines(self, write: Write, child: str, since: str) -> tuple[str, ...]:
        """Lines that make a cell and put it on its pile. `since` is the latest of its starts."""
        marks = self.given.kinds[write.step.kind].marks
        row = None
        if self.of_symbol is not None and write.pile is not None:
            row = self.of_symbol.target(write.pile, marks)
        lines = [f"{row.row} = {row.find}"] if row is not None and row.find else []
        begin = "key" if write.starts else since
        mixes = self.lookups is not None and self.lookups.mixes(write)
        # What is left of a pile can have earlier starts than what was taken before.
        mixes = mixes or not self.takes.isdisjoint(write.reads)
        if write.pile is not None and not write.starts and (mixes or self._passes_over(write)):
            # What lasts for one event begins anew: the matches of the event before are in no pile.
            fresh = "fresh_" if write.pile in self.plan.fleeting else ""
            latest = f"{fresh}since_{write.pile}"
            if row is not None and self.lookups is not None:
                latest = self.lookups.latest(row)
            of_all = "# the latest in the whole pile, not only below this cell"
            lines.append(f"latest = max({since}, {latest})  {of_all}")
            begin = "latest"
        tag = f"entry << {self.given.kind_bits} | {write.step.kind}"
        if row is not None:
            lines += _key_lines(row)
            head, after = row.cell(), f"{row.cell()}, {row.cell(1)}"
        elif write.pile is None:
            head, after = "fired", ""
        else:
            fresh = "fresh_" if write.pile in self.plan.fleeting else ""
            head = f"{fresh}head_{write.pile}"
            after = f"{head}, {fresh}since_{write.pile}"
        put = self.given.imports.call("put", "nodes", "next_node", tag, child, head, begin)
        if not after:
            return (*lines, put, "fired, next_node = next_node, next_node + 1")
        bounds = () if self.given.bounds is None else self.given.bounds.kept(write, marks)
        return (*lines, put, *bounds, f"{after}, next_node = next_node, {begin}, next_node + 1")


def _key_lines(row: TableRow) -> list[str]:
    """Lines that write the key of a row that has not been taken yet."""
    return [
        f"if {row.table}[{row.row}, 0] == 0:",
        f"    {row.table}[{row.row}, 0], {row.filled} = 1, {row.filled} + 1",
        *(
            f"    {row.table}[{row.row}, {place}] = {value}"
            for place, value in enumerate(row.values, 1)
        ),
    ]
