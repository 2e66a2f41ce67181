"""Keys of states → the look-ups of a straight-line update, and the places of its cells in tables.

A state with a key has its piles in a table, with a row for each value of the key. States whose keys
have the same ties share a table. So with one key for all labels, an event costs one look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.strategy import Keyed, KeyTable, KeyTerm

from celc.automata.determinize import DetState
from celc.codegen.text.escape import comment_text
from celc.codegen.text.imports import Imports
from celc.core.formula import Expression
from celc.plan.code import code
from celc.plan.keys import KeyPlan, KeyRemoval, named_term
from celc.plan.straight_line.piles import PilePlan, Write
from celc.plan.tables import Kind

_ROW_OF = {1: "row_of", 2: "row_of_two", 3: "row_of_three"}
_HASH_OF = {1: "hash_of", 2: "hash_of_two", 3: "hash_of_three"}


@frozen
class TableOfPiles:
    """A table of piles by key; one event adds at most `entries` rows to it."""

    number: int
    comment: str
    entries: int


@frozen
class TableRow:
    """The place of a cell in a table: names of variables, the column of the pile's newest cell, and
    the values of the key.

    `find` looks the row up again where another key of the same event may have taken it in the
    meantime; otherwise it is empty.
    """

    table: str
    row: str
    column: int
    filled: str
    values: tuple[str, ...]
    find: str

    def cell(self, after: int = 0) -> str:
        return f"{self.table}[{self.row}, {self.column + after}]"


@dataclass(slots=True)
class KeyLookups:
    """Numbers the terms, tables and columns of a keyed update, and writes its look-ups.

    - `terms`: the attributes of events that are values of keys, in order
    - `tables`: the ties of each table's keys; `entries`: the most rows that one event adds to each
      table
    - `columns`: the place of each keyed pile, as (table, column of its newest cell)
    - `looked_up`: each table with the terms of its look-ups
    - `simultaneous`: piles are read as they were before the present instant
    """

    keys: KeyPlan
    plan: PilePlan
    kinds: Sequence[Kind]
    imports: Imports
    simultaneous: bool = False
    terms: dict[tuple[str, str], int] = field(default_factory=dict)
    tables: list[tuple[int, ...]] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    columns: dict[int, tuple[int, int]] = field(default_factory=dict)
    looked_up: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)

    def __post_init__(self) -> None:
        piles: list[int] = []
        for number, pile in enumerate(self.plan.piles):
            key = self.keys.key(pile.target)
            if not key:
                continue
            if key not in self.tables:
                self.tables.append(key)
                self.entries.append(0)
                piles.append(0)
            table = self.tables.index(key)
            self.columns[number] = (table, 1 + len(key) + 2 * piles[table])
            piles[table] += 1
        assert self.tables, "a state with a key is reached by some event"

    def piles_of(self, table: int) -> int:
        """How many piles a row of a table holds."""
        return sum(place[0] == table for place in self.columns.values())

    def of_symbol(self, symbol: int) -> SymbolLookups:
        removals = [one for one in self.keys.removals if symbol in one.symbols]
        return SymbolLookups(self, self.plan.writes[symbol], removals)

    def number_of(self, term: Expression) -> int:
        """The number of an attribute of events that is a value of keys."""
        return self.terms.setdefault(named_term(term), len(self.terms))

    def term_of(self, tie: int, marks: Sequence[str]) -> int:
        """The number of the term with which an event with some marks takes part in a tie."""
        (term,) = self.keys.ties[tie].of(marks)
        return self.number_of(term)

    def guard(self, marks: Sequence[str]) -> str:
        """The condition that no key of an event with these marks is NULL; empty without keys."""
        ties = [n for n, tie in enumerate(self.keys.ties) if tie.of(marks)]
        return " and ".join(f"known[{self.term_of(tie, marks)}, row]" for tie in ties)

    def mixes(self, write: Write) -> bool:
        """Whether a pile takes cells from sources with several keys, or from piles whose latest
        start can go back. Then the starts of its cells come in any order, so a cell has the latest
        start of all matches in the pile."""
        if write.starts or write.pile is None:
            return False
        sources = write.step.sources
        if len(sources) > 1 and any(map(self._is_emptied, sources)):
            return True
        if not all(map(self._rises, sources)):
            return True
        marks = self.kinds[write.step.kind].marks
        kept = {
            tie
            for tie in self.keys.key(self.plan.piles[write.pile].target)
            if self.keys.ties[tie].round_mark not in marks
        }
        return any(not kept.issuperset(self.keys.key(source)) for source in write.step.sources)

    def _is_emptied(self, state: DetState) -> bool:
        return any(removal.state == state for removal in self.keys.removals)

    def _rises(self, state: DetState) -> bool:
        """Whether the latest start that events find in a state never goes back, also not when an
        event has emptied its row in the meantime."""
        if not self._is_emptied(state):
            return True
        piles = [n for n, pile in enumerate(self.plan.piles) if pile.target == state]
        into = [one for writes in self.plan.writes for one in writes if one.pile in piles]
        return len(piles) == 1 and not any(map(self.mixes, into))

    def latest(self, row: TableRow) -> str:
        """The latest start of the matches in the pile of a row."""
        return self.imports.call("pile_at", row.table, row.row, str(row.column), "lowest") + "[1]"

    def ahead(self) -> tuple[str, ...]:
        """Lines that fetch the rows of a later event; valid when all branches have been written."""
        return tuple(
            self.imports.call("fetch_ahead", f"table_{table}", self._hash(terms))
            for table, terms in sorted(self.looked_up)
        )

    def _hash(self, terms: tuple[int, ...]) -> str:
        values = (f"values[{term}, row + AHEAD]" for term in terms)
        return self.imports.call(_HASH_OF[len(terms)], *values)

    def key_tables(self) -> tuple[TableOfPiles, ...]:
        """The tables; complete when all branches have been written."""
        return tuple(
            TableOfPiles(table, ", and ".join(map(self._describe, key)), self.entries[table])
            for table, key in enumerate(self.tables)
        )

    def keyed(self, kernel: str) -> Keyed:
        """An update with keys, when its kernel has been written."""
        return Keyed(
            code(kernel),
            piles=len(self.plan.piles),
            terms=tuple(KeyTerm(*one) for one in self.terms),
            tables=tuple(
                KeyTable(tuple(map(self._is_text, key)), piles=self.piles_of(table))
                for table, key in enumerate(self.tables)
            ),
        )

    def _is_text(self, tie: int) -> bool:
        return KeyTerm(*named_term(self.keys.ties[tie].terms[0][1])).is_text

    def _describe(self, tie: int) -> str:
        return comment_text(self.keys.ties[tie].text)


class SymbolLookups:
    """The look-ups that the writes of one symbol share."""

    def __init__(
        self, all_lookups: KeyLookups, writes: Sequence[Write], removals: Sequence[KeyRemoval]
    ) -> None:
        self._all = all_lookups
        self._rows: dict[tuple[int, tuple[int, ...]], int] = {}
        self._loads: dict[tuple[int, int], None] = {}
        self._removals = [
            (place, terms, self._row_of(place[0], terms))
            for removal in removals
            for terms in [tuple(map(all_lookups.number_of, removal.terms))]
            for pile, place in all_lookups.columns.items()
            if all_lookups.plan.piles[pile].target == removal.state
        ]
        entries = [0] * len(all_lookups.tables)
        for write in writes:
            marks = all_lookups.kinds[write.step.kind].marks
            for pile in write.reads:
                self._row(pile, marks)
            if write.pile is not None and self._row(write.pile, marks, loaded=False) is not None:
                entries[all_lookups.columns[write.pile][0]] += 1
        all_lookups.entries = list(map(max, all_lookups.entries, entries))

    def _row(self, pile: int, marks: Sequence[str], *, loaded: bool = True) -> int | None:
        """The number of the row in which an event finds a pile; None: the pile is not in a
        table."""
        if pile not in self._all.columns:
            return None
        table, _ = self._all.columns[pile]
        terms = tuple(self._all.term_of(tie, marks) for tie in self._all.tables[table])
        row = self._row_of(table, terms)
        if loaded:
            self._loads[pile, row] = None
        return row

    def _row_of(self, table: int, terms: tuple[int, ...]) -> int:
        self._all.looked_up.add((table, terms))
        return self._rows.setdefault((table, terms), len(self._rows))

    def removals(self) -> list[str]:
        """Lines that empty piles by key; what is read of them has been read."""
        if not self._removals:
            return []
        self._all.imports.use("NEVER")
        by_row: dict[str, list[tuple[str, str]]] = {}
        for (table, column), terms, row in self._removals:
            known = " and ".join(f"known[{term}, row]" for term in terms)
            cells = f"table_{table}[row_{row}, {column}]", f"table_{table}[row_{row}, {column + 1}]"
            by_row.setdefault(known, []).append(cells)
        lines = ["# the unmarked matches with its key are lost"]
        for known, emptied in by_row.items():
            lines.append(f"if {known}:")
            lines += [f"    {head}, {since} = 0, NEVER" for head, since in dict.fromkeys(emptied)]
        return lines

    def lines(self) -> tuple[str, ...]:
        """The look-ups, and the newest cells of the piles that are read."""
        read = self._read
        lines = [f"row_{row} = {self._find(row)}" for row in self._rows.values() if row in read]
        for pile, row in self._loads:
            table, column = self._all.columns[pile]
            arguments = (f"table_{table}", f"row_{row}", str(column), "lowest")
            found = self._all.imports.call("pile_at", *arguments)
            names = f"head_{pile}_{row}, since_{pile}_{row}"
            lines.append(f"{names} = {found}")
            if self._all.simultaneous:
                head = f"head_{pile}_{row}"
                before = self._all.imports.call(
                    "seen_of_key", "nodes", head, "barrier", "next_node", "lowest"
                )
                lines += [f"if {head} >= barrier:", f"    {names} = {before}"]
        return tuple(lines)

    @property
    def _read(self) -> set[int]:
        """The rows that are looked up before anything is written."""
        return {row for _, row in self._loads} | {row for *_, row in self._removals}

    def _find(self, row: int) -> str:
        table, terms = next(key for key, number in self._rows.items() if number == row)
        arguments = (f"table_{table}", *(f"values[{term}, row]" for term in terms))
        return self._all.imports.call(_ROW_OF[len(terms)], *arguments)

    def source(self, pile: int, marks: Sequence[str]) -> str | None:
        """The end of the names of a read pile's variables; None where it is not in a table."""
        row = self._row(pile, marks)
        return None if row is None else f"{pile}_{row}"

    def target(self, pile: int, marks: Sequence[str]) -> TableRow | None:
        """The row that takes a new cell of a pile; None where the pile is not in a table."""
        row = self._row(pile, marks, loaded=False)
        if row is None:
            return None
        table, column = self._all.columns[pile]
        (terms,) = [key[1] for key, number in self._rows.items() if number == row]
        others = sum(key[0] == table for key in self._rows) > 1
        is_read = row in self._read
        return TableRow(
            f"table_{table}",
            f"row_{row}",
            column,
            f"filled_{table}",
            tuple(f"values[{term}, row]" for term in terms),
            # Another key of this event may have taken a row that was looked up before.
            self._find(row) if others or not is_read else "",
        )
