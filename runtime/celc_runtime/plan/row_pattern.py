"""One query of MATCH_RECOGNIZE as its generated module writes it."""

from dataclasses import KW_ONLY
from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import ddl_of

Variables: TypeAlias = tuple[int, ...] | None
"""Numbers of variables; None: all of them."""


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
class RowAggregate:
    """A function of the visible rows of `variables`. `argument` is a column of the table by its
    number, `label` the variable of a row, `computed` a number of `arguments`; none of them: COUNT
    of rows. `read` is the type of the argument, `type` that of the result."""

    function: Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG"]
    variables: Variables
    type: str
    _: KW_ONLY
    read: str = ""
    argument: int | None = None
    label: bool = False
    computed: int | None = None
    final: bool = False


@frozen
class ValueOfRow:
    """A measure that is a column's value at a row."""

    name: str
    type: str
    _: KW_ONLY
    column: int
    row: int


@frozen
class LabelOfRow:
    """A measure that is the variable of a row."""

    name: str
    _: KW_ONLY
    row: int
    type: str = "STRING"


@frozen
class NumberOfMatch:
    """A measure that is the number of the match."""

    name: str
    type: str = "LONG"


@frozen
class ValueOfAggregate:
    """A measure that is an aggregate."""

    name: str
    type: str
    _: KW_ONLY
    aggregate: int


@frozen
class ComputedValue:
    """A measure that generated code computes: `number` among these."""

    name: str
    type: str
    _: KW_ONLY
    number: int


Measure: TypeAlias = ValueOfRow | LabelOfRow | NumberOfMatch | ValueOfAggregate | ComputedValue


@frozen
class RowOutput:
    """A column of the result: a column of the table or a measure, by its number."""

    name: str
    number: int
    measure: bool = False


Skip: TypeAlias = Literal["PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST"]
Rows: TypeAlias = Literal["ONE ROW", "SHOW EMPTY", "OMIT EMPTY", "WITH UNMATCHED"]


@frozen(kw_only=True)
class RowPlan:
    """A query as data.

    `states`, `first` (the state before the first row of a partition), `start` (before any other)
    and `conditions` are the automaton. `read` are the columns that generated code reads, `texts`
    and `regexes` what it compares texts with. `registers` are the first values of the memory of the
    path, `live` for each state those that conditions can still read, `remembers` whether they say
    all of the path that conditions read. `within`: microseconds on the first order column.
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
    computed_arguments: tuple[str, ...]
    measures: tuple[Measure, ...]
    outputs: tuple[RowOutput, ...]
    registers: tuple[int, ...] = ()
    live: tuple[tuple[int, ...], ...] = ()
    remembers: bool = True
    max_work: int = 10_000_000

    @property
    def is_of_matches(self) -> bool:
        """Whether a row of the result stands for a match, and for nothing else."""
        return self.rows == "ONE ROW"

    @property
    def searches(self) -> bool:
        """Whether conditions read more of the match than rows at constant distances."""
        return any(condition.path for condition in self.conditions)

    @property
    def columns_read(self) -> tuple[int, ...]:
        """The numbers of the columns of the table that the query needs, in their order."""
        needed = {*self.partition_by, *(order.column for order in self.order_by), *self.read}
        needed |= {output.number for output in self.outputs if not output.measure}
        for measure in self.measures:
            if isinstance(measure, ValueOfRow):
                needed.add(measure.column)
        needed |= {a.argument for a in self.aggregates if a.argument is not None}
        return tuple(sorted(needed))

    def output_types(self) -> list[str]:
        """The types of the result's columns, as the language names them."""
        found = []
        for output in self.outputs:
            if not output.measure:
                found.append(self.columns[output.number].type)
                continue
            measure = self.measures[output.number]
            array = isinstance(measure, ValueOfAggregate) and (
                self.aggregates[measure.aggregate].function == "ARRAY_AGG"
            )
            found.append(f"ARRAY<{measure.type}>" if array else measure.type)
        return found

    def output_ddl(self) -> str:
        """The columns of the result in Spark's notation."""
        return ", ".join(
            "`" + output.name.replace("`", "``") + f"` {_ddl_type(type)}"
            for output, type in zip(self.outputs, self.output_types(), strict=True)
        )


def _ddl_type(type: str) -> str:
    if type.startswith("ARRAY<"):
        return f"ARRAY<{_ddl_type(type[6:-1])}>"
    return ddl_of(type)
