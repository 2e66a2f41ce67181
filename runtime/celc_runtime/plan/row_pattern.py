"""One query of MATCH_RECOGNIZE as its generated module writes it."""

from dataclasses import KW_ONLY
from typing import Literal, TypeAlias

from celc_runtime.plan.expressions import Derived, Tree, ValueOfRow, nodes_in
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import MATCH_ID, Attribute
from celc_runtime.values.types import ddl_of

Variables: TypeAlias = tuple[int, ...] | None
"""Numbers of variables; None: all of them."""


TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")
"""The types of columns that WITHIN can be measured on, and that streams can follow."""


@frozen
class RowColumn:
    """A column of the table, with its type as the language names it."""

    name: str
    type: str


@frozen
class RowOrder:
    """A column of ORDER BY, by its number; `nulls_first` None: NULL is an error."""

    column: int
    _: KW_ONLY
    descending: bool = False
    nulls_first: bool | None = None


@frozen
class RowMove:
    """A move of the automaton: a row of `variable` leads to the state `target`."""

    variable: int
    target: int
    _: KW_ONLY
    condition: int = -1  # its number among the plan's conditions; −1: any row
    excluded: bool = False  # the row is in {- … -}


@frozen
class RowState:
    """A state of the automaton."""

    moves: tuple[RowMove, ...]  # in order of preference
    accepts: bool = False  # a match may end here
    accepts_at_end: bool = False  # a match may end here behind the partition's last row


def states_of(text: str) -> tuple[RowState, ...]:
    """States from lines of numbers: whether it accepts, here and at the end, then its moves, each
    as variable, target, condition and whether the row is excluded."""
    found = []
    for line in text.split("\n"):
        ends, *moves = line.split(" ")
        read = []
        for move in moves:
            variable, target, condition, excluded = map(int, move.split(","))
            read.append(RowMove(variable, target, condition=condition, excluded=bool(excluded)))
        found.append(RowState(tuple(read), ends[0] == "1", ends[1] == "1"))
    return tuple(found)


@frozen
class MoveCondition:
    """The condition of a move on its row."""

    local: int = -1  # the bit of its local part, which is computed beforehand; −1: it has none
    path: bool = False  # whether the search decides another part, which reads the path
    ahead: int = 0  # how many rows after the row at hand it reads


@frozen
class RowNavigation:
    """`shift` rows after the row that is `offset` rows from the first or last of the visible rows
    of `variables`; `final`: all rows of the match are visible, else those up to the current one."""

    variables: Variables
    _: KW_ONLY
    first: bool = False
    offset: int = 0
    shift: int = 0
    final: bool = False


@frozen
class SortedBy:
    """A value by which the rows of an aggregate are sorted, and its type; `nulls_first` None: NULL
    is an error."""

    value: Tree
    type: str
    _: KW_ONLY
    descending: bool = False
    nulls_first: bool | None = None


@frozen
class RowAggregate:
    """A function of the visible rows of `variables`. `argument` reads each of these rows, None:
    COUNT of rows. `read` is the type of the argument, `type` that of the result. It keeps the rows
    of which `kept` is TRUE, in `order`, and with `distinct` of equal values the first."""

    function: Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG"]
    variables: Variables
    type: str
    _: KW_ONLY
    argument: Tree | None = None
    read: str = ""
    final: bool = False
    distinct: bool = False
    kept: Tree | None = None
    order: tuple[SortedBy, ...] = ()


@frozen
class Measure:
    """A column that MEASURES computes, with its type as the language names it."""

    name: str
    type: str
    value: Tree


@frozen
class RowOutput:
    """A column of the result: a column of the table or a measure, by its number."""

    name: str
    number: int
    measure: bool = False


Skip: TypeAlias = Literal["PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST"]
Rows: TypeAlias = Literal["ONE ROW", "SHOW EMPTY", "OMIT EMPTY", "WITH UNMATCHED"]


LETTERS = -1
"""Stands for a column: the UTF-8 bytes of all texts, and where each begins and ends."""


@frozen(kw_only=True)
class RowPlan:
    """A query as data.

    `columns` are those of the table, then the `derived` ones. `states`, `first` (the state before
    the first row of a partition), `start` (before any other) and `conditions` are the automaton.
    `read` are the columns that generated code reads, with `LETTERS` among them, `texts` and
    `regexes` what it compares texts with. `registers` are the first values of the memory of the
    path, `live` for each state those that conditions can still read, `remembers` whether they say
    all of the path that conditions read. `within`: microseconds on the first order column.
    `before`: how many rows before the first row of a match conditions read; `numbered`: whether
    they read MATCH_NUMBER(). `required`: conditions on one row, each of which holds for some row
    of every partition that is in the result. `realisable`: the combinations of local conditions
    that a row can fulfil, as bits; empty: all of them may be. `alone`: whether conditions read
    nothing but the row at hand. `match_id`: whether the first column of the result is `match_id`.
    """

    name: str
    columns: tuple[RowColumn, ...]
    partition_by: tuple[int, ...]
    order_by: tuple[RowOrder, ...]
    variables: tuple[str, ...]
    states: tuple[RowState, ...]
    first: int
    start: int
    conditions: tuple[MoveCondition, ...]
    local_conditions: int
    read: tuple[int, ...]
    texts: tuple[str, ...]
    regexes: tuple[str, ...]
    rows: Rows
    skip: Skip
    targets: tuple[int, ...]
    target: str
    within: int | None
    navigations: tuple[RowNavigation, ...]
    aggregates: tuple[RowAggregate, ...]
    measures: tuple[Measure, ...]
    outputs: tuple[RowOutput, ...]
    derived: tuple[Derived, ...] = ()
    registers: tuple[int, ...] = ()
    live: tuple[tuple[int, ...], ...] = ()
    remembers: bool = True
    before: int = 0
    numbered: bool = False
    max_work: int = 10_000_000
    required: tuple[Tree, ...] = ()
    realisable: tuple[int, ...] = ()
    alone: bool = False
    match_id: bool = False

    @property
    def is_of_matches(self) -> bool:
        """Whether a row of the result stands for a match, and for nothing else."""
        return self.rows == "ONE ROW"

    @property
    def searches(self) -> bool:
        """Whether conditions read more of the match than rows at constant distances."""
        return any(condition.path for condition in self.conditions)

    @property
    def is_timed(self) -> bool:
        """Whether the first column of ORDER BY is an ascending time."""
        return any(
            self.columns[one.column].type in TIMES and not one.descending
            for one in self.order_by[:1]
        )

    @property
    def can_wait(self) -> bool:
        """Whether the match of a start can wait for ever for later rows, because the pattern has
        loops, and no WITHIN closes it."""
        return self.within is None and _has_loop(self.states)

    @property
    def columns_read(self) -> tuple[int, ...]:
        """The numbers of the columns that the query needs, in their order."""
        needed = {*self.partition_by, *(order.column for order in self.order_by), *self.read}
        needed.discard(LETTERS)
        needed |= {output.number for output in self.outputs if not output.measure}
        return tuple(sorted({*needed, *_columns_in(self.trees)}))

    @property
    def columns_shown(self) -> tuple[int, ...]:
        """The numbers of the columns that the result reads, in their order."""
        if self.match_id:
            return self.columns_read
        shown = {output.number for output in self.outputs if not output.measure}
        return tuple(sorted({*shown, *_columns_in(self.measured)}))

    @property
    def attributes_read(self) -> tuple[Attribute, ...]:
        """The columns that the query needs, once the derived ones are made."""
        read = (self.columns[number] for number in self.columns_read)
        return tuple(Attribute(one.name, one.type) for one in read)

    @property
    def attributes_of_table(self) -> tuple[Attribute, ...]:
        """The columns of the table that it needs."""
        made = {one.name for one in self.derived}
        found = {one.name: one for one in self.attributes_read if one.name not in made}
        for one in self.derived:
            for name, type in one.reads:
                found.setdefault(name, Attribute(name, type))
        order = {column.name: number for number, column in enumerate(self.columns)}
        return tuple(sorted(found.values(), key=lambda one: order[one.name]))

    @property
    def measured(self) -> tuple[Tree, ...]:
        """What measures are, and what aggregates read."""
        read = (
            (one.argument, *(key.value for key in one.order), one.kept) for one in self.aggregates
        )
        of_aggregates = (tree for trees in read for tree in trees if tree is not None)
        return (*(one.value for one in self.measures), *of_aggregates)

    @property
    def trees(self) -> tuple[Tree, ...]:
        """What measures are, what aggregates read, and what is required."""
        return (*self.measured, *self.required)

    def output_names(self) -> list[str]:
        """The names of the result's columns."""
        return [*([MATCH_ID] if self.match_id else []), *(output.name for output in self.outputs)]

    def output_types(self) -> list[str]:
        """The types of the result's columns, as the language names them."""
        return [
            *(["BINARY"] if self.match_id else []),
            *(
                (self.measures if output.measure else self.columns)[output.number].type
                for output in self.outputs
            ),
        ]

    def output_ddl(self) -> str:
        """The columns of the result in Spark's notation."""
        return ", ".join(
            "`" + name.replace("`", "``") + f"` {ddl_of(type)}"
            for name, type in zip(self.output_names(), self.output_types(), strict=True)
        )


def _columns_in(trees: tuple[Tree, ...]) -> set[int]:
    """The numbers of the columns that trees read."""
    return {one.column for tree in trees for one in nodes_in(tree) if isinstance(one, ValueOfRow)}


def _has_loop(states: tuple[RowState, ...]) -> bool:
    """Whether moves lead from a state back to it, and from there to an end."""
    targets = [{move.target for move in state.moves} for state in states]
    ends = {n for n, state in enumerate(states) if state.accepts or state.accepts_at_end}
    while more := {n for n, to in enumerate(targets) if to & ends} - ends:
        ends |= more
    left = {n: to & ends for n, to in enumerate(targets) if n in ends}
    while free := [n for n, to in left.items() if not to & left.keys()]:
        for n in free:
            del left[n]
    return bool(left)
