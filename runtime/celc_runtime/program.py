"""A query as a generated module holds it: its plan, its kernels, how it is run, and its text.

Everything that runs a query takes a program. A program refers to nothing that runs, so every part
of the runtime can import it.

Long: each option of a call, with its check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from operator import methodcaller
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.jit.shipping import TOLD, pickled
from celc_runtime.plan.errors import PlanWarning
from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.joins import NO_JOINS, Joins
from celc_runtime.plan.options import with_match_id, with_type_column
from celc_runtime.plan.plan import Label, Plan
from celc_runtime.plan.schemas import arrow_type, input_schema, match_schema, output_schema
from celc_runtime.plan.strategy import (
    ByDefinition,
    Checked,
    InWorlds,
    Listing,
    LongestRuns,
    UnionLists,
    Update,
)
from celc_runtime.values.warned import warn


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of the table that is given for a parameter set, each once, numbered from 0 as they
    stand in it."""

    count: int
    columns: Mapping[str, pa.Array]  # the attributes of the set, in the declared types
    made: frozenset[str] = frozenset()  # the columns that are made of others, and no attributes
    kept: dict[str, Any] = field(init=False, default_factory=dict, repr=False)
    """What is made of the rows once for one query, for example the index over its conditions."""

    def for_another(self) -> Rows:
        """The same rows for another query, which keeps what it makes of them itself."""
        return Rows(self.count, self.columns, self.made)

    def take(self, numbers: np.ndarray) -> Rows:
        """The rows with these numbers (int64), in this order."""
        chosen = pa.array(numbers)
        columns = {name: one.take(chosen) for name, one in self.columns.items()}
        return Rows(len(numbers), columns, self.made)

    def with_column(self, name: str, column: pa.Array) -> Rows:
        """The rows with other values in a column. Both have what is made of either."""
        found = Rows(self.count, {**self.columns, name: column}, self.made)
        object.__setattr__(found, "kept", self.kept)
        return found

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows in a form that can be sent to other processes."""
        return pa.RecordBatch.from_arrays(list(self.columns.values()), list(self.columns))

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch) -> Rows:
        """The rows of `batch`."""
        return cls(len(batch), dict(zip(batch.schema.names, batch.columns, strict=True)))


@dataclass(frozen=True, eq=False)
class Program:
    """One query, ready to be run."""

    plan: Plan
    classify: Callable[..., None]  # the kernel that finds the symbol of each event
    update: Update
    listing: Listing
    module: dict[str, Any] = field(repr=False)
    """The globals of the generated module. They lead to its text when the query is sent to a Spark
    worker."""
    reads: tuple[Program, ...] = ()  # the queries whose rows are its events, without its options
    joins: Joins = NO_JOINS  # the query as joins of Spark, or why it cannot be
    positions: bool | None = None  # whether the answer shows positions; None: not said (`on_spark`)
    rows: Rows | None = None  # those of its parameter set; None: no table is given yet, or no set
    kept: dict[object, Any] = field(init=False, default_factory=dict, repr=False)
    """What its runs find alike, and the first of them notes."""

    @property
    def name(self) -> str:
        """The query's name."""
        return self.plan.name

    @property
    def text(self) -> str:
        """The text of the file that the query was compiled from."""
        return str(self.module["QUERY"])

    @property
    def sees_all(self) -> bool:
        """Whether matches depend on events before the window, whatever they are."""
        match self.listing:
            case ByDefinition(sees_all=sees_all) | Checked(sees_all=sees_all):
                return sees_all
            case _:
                return False

    @property
    def all_wait(self) -> bool:
        """Whether every match is decided after its end, if any is."""
        match self.listing:
            case ByDefinition(ways=ways):
                return all(way.deadline is not None for way in ways)
            case _:
                return True

    @property
    def compares_late(self) -> bool:
        """Whether matches with the same end, or start, are decided together, at a time that any
        partition can show.

        If so, the clock must be known before the first partition ends.
        """
        plan = self.plan
        if not (plan.asks_for_clock and plan.source.partition_by):
            return False
        if plan.choice.per_start is not None:
            return True
        match self.listing:
            case ByDefinition(ways=ways, joins_ends=joins_ends):
                return bool(ways) and joins_ends
            case _:
                return False

    @property
    def growth(self) -> str:
        """How the time grows if matches are found by definition, in words; otherwise empty."""
        match self.listing:
            case ByDefinition(growth=growth) | InWorlds(definition=ByDefinition(growth=growth)):
                return growth
            case _:
                return ""

    @property
    def contexts(self) -> np.ndarray:
        """int64[contexts, symbols], the context after an event; without rows unless nested
        selectors depend on the stream before a match."""
        match self.update:
            case UnionLists(tables=tables):
                return tables.following
            case _:
                return _NO_CONTEXTS

    @cached_property
    def file_schema(self) -> pa.Schema:
        """The columns to read from a file: input columns and tiebreak columns.

        NULL stands for any type that the file has.
        """
        known = input_schema(self.plan)
        if not self.plan.source.type_column:
            # A file may have the column all the same. Then it counts.
            known = known.append(pa.field(self.plan.source.type_name, pa.string()))
        extra = [name for name in self.plan.source.tiebreak if name not in known.names]
        return pa.schema([*known, *(pa.field(name, pa.null()) for name in extra)])

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of the answer; cached, because making them takes longer than a run of few
        events."""
        return output_schema(self.plan)

    @cached_property
    def no_rows(self) -> pa.Table:
        """The answer without rows."""
        return self.output_schema.empty_table()

    @cached_property
    def match_schema(self) -> pa.Schema:
        """The columns of a match, which are the answer's if its rows are matches."""
        return match_schema(self.plan)

    @cached_property
    def stored_attributes(self) -> tuple[str, ...]:
        """Those of its plan."""
        return self.plan.stored_attributes

    @cached_property
    def answer_items(self) -> tuple[Label | Computed, ...]:
        """Those of its plan's answer."""
        return self.plan.answer.items

    @property
    def output_ddl(self) -> str:
        """The columns of a match in Spark's notation."""
        return self.plan.output_ddl()

    def with_options(
        self,
        *,
        order_by: str | Sequence[str] | None = None,
        tiebreak: str | Sequence[str] | None = None,
        ties: str | None = None,
        max_work: int | None = None,
        type_column: str | None = None,
        positions: bool | None = None,
        at_end: str | None = None,
        clock: object = None,
        match_id: bool | None = None,
    ) -> Program:
        """The same program with other options; see `CompiledQuery.with_options`."""
        plan, source = self.plan, self.plan.source
        if order_by is not None:
            _check_other_order(plan, _given_names(order_by))
        if order_by is not None and not source.reads:
            plan = _ordered(plan, _given_names(order_by))
            self._check_runs(plan)
        if ties is not None:
            _check_ties(self, ties)
        if tiebreak is not None:
            plan = replace(plan, source=replace(plan.source, tiebreak=_given_names(tiebreak)))
        if max_work is not None:
            if type(max_work) is not int or not 1 <= max_work <= _MOST_WORK:
                raise ValueError(
                    f"max_work must be a whole number from 1 to {_MOST_WORK}, not {max_work!r}"
                )
            plan = replace(plan, choice=replace(plan.choice, max_work=max_work))
        if type_column is not None:
            plan = with_type_column(plan, type_column)
        if positions is not None:
            if type(positions) is not bool:
                raise ValueError(f"positions must be True or False, not {positions!r}")
            plan = replace(plan, answer=replace(plan.answer, positions=positions))
        if at_end is not None:
            if at_end not in ("open", "closed"):
                raise ValueError(f"at_end must be 'open' or 'closed', not {at_end!r}")
            plan = replace(plan, choice=replace(plan.choice, at_end=at_end))
        if clock is not None:
            plan = replace(plan, choice=replace(plan.choice, clock=clock_of(plan, clock)))
        plan = _with_match_id(plan, match_id)
        if not output_schema(plan).names:
            raise ValueError(
                f"query {plan.name!r} would have no column without positions: select an attribute "
                "or COUNT of a label, or name order columns"
            )
        said = self.positions if positions is None else positions
        return replace(self, plan=plan, positions=said)

    @cached_property
    def on_spark(self) -> Program:
        """The program as all routes of Spark run it.

        Without a choice of the user, the answer has no positions. Positions count every row, so
        every row would be sorted and numbered. A query that counts events numbers the rows anyway,
        and shows them. Without order columns Spark runs nothing.
        """
        plan = self.plan
        if self.positions is not None or plan.counts_events or not plan.source.order_by:
            return self
        return self.with_options(positions=False)

    def _check_runs(self, plan: Plan) -> None:
        """Raises ValueError if the choice of runs relies on another order."""
        match self.listing:
            case LongestRuns(ordered_by=str(name)) if plan.source.order_by[:1] != (name,):
                raise ValueError(
                    f"query {plan.name!r} was compiled for events in the order of {name!r}, which "
                    "its conditions compare with the event before; for another order compile it "
                    f"with --order-by {','.join(plan.source.order_by)}"
                )

    @cached_property
    def levels(self) -> tuple[Program, ...]:
        """The queries that this one reads, with its options and without positions."""
        plan = self.plan
        return tuple(
            one.with_options(
                tiebreak=plan.source.tiebreak,
                max_work=plan.choice.max_work,
                type_column=_type_column(one.plan, plan),
                positions=False,
                at_end=plan.choice.at_end,
                clock=plan.choice.clock,
                match_id=False,
            )
            for one in self.reads
        )

    @property
    def shipped(self) -> ShippedQuery:
        """The stand-in for the compiled query in a pickle."""
        return ShippedQuery(self)

    def function(self, name: str, module: str, function: str) -> ShippedFunction:
        """The function of a pickle, by its module in the runtime.

        The runtime may have another name where the pickle is read.
        """
        package = __name__.partition(".")[0]
        found = getattr(import_module(f"{package}.{module}"), function)
        return ShippedFunction(self, name, found)

    def __reduce__(self) -> Any:
        return getattr, (self.shipped, "program")


def with_constants(
    classify: Callable[..., None], constants: tuple[int | float, ...]
) -> Callable[..., None]:
    """The kernel `classify` with the constants of a query, which it takes first."""
    return partial(classify, constants)


class ShippedQuery:
    """Stands for a compiled query in a pickle: where that is read, the `CompiledQuery` is there."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def __reduce__(self) -> Any:
        plan, rows = self._program.plan, self._program.rows
        if plan.source.parameters is not None and rows is not None:
            bare = ShippedQuery(replace(self._program, rows=None))
            tables = {plan.source.parameters.name: rows.batch}
            return methodcaller("with_parameters", **tables), (bare,)
        options = {
            "order_by": plan.source.order_by,
            "tiebreak": plan.source.tiebreak,
            "max_work": plan.choice.max_work,
            "type_column": plan.source.type_name if plan.source.type_column else None,
            "positions": self._program.positions,
            "at_end": plan.choice.at_end,
            "clock": plan.choice.clock,
            "match_id": plan.answer.match_id is not None,
        }
        return pickled(self._program.module, options, plan.name)


class ShippedFunction:
    """One way to run a program: a function that Spark can send to its workers.

    `function` is a function or a class at the top of a module of the runtime; it takes the program
    first. A pickle names it by that module, and the program finds it (`Program.function`). A bound
    method would not work: Spark's pickler refers to a method's function by the module where it is
    defined, which a worker need not have.
    """

    def __init__(self, program: Program, name: str, function: Callable[..., Any]) -> None:
        self._program = program
        self._name = name
        self._function = function

    def __repr__(self) -> str:
        return f"<{self._name} of query {self._program.name!r}>"

    def __call__(self, *arguments, **tables):  # type: ignore[no-untyped-def]
        # No argument has a name: Spark counts named arguments, `self` included, and would pass the
        # key of a group as a second one. No annotations: with one, Spark asks for the types of all
        # arguments of a function, and warns because this is an object. Tables of parameters are
        # given by name; a function that reads events takes them.
        return self._function(self._program, *arguments, **tables)

    def __reduce__(self) -> Any:
        module = self._function.__module__.partition(".")[2]
        found = methodcaller("function", self._name, module, self._function.__name__)
        return found, (self._program,)


def clock_of(plan: Plan, clock: object) -> int | float:
    """A time of the first order column as a plan holds it; raises ValueError for other values."""
    if not plan.source.order_by:
        raise ValueError(f"query {plan.name!r} has no order column that a clock could show")
    type = plan.source.type_of(plan.source.order_by[0])
    if isinstance(clock, bool) or type == "STRING":
        raise _no_clock(plan, type, clock)
    if isinstance(clock, int | float):
        if isinstance(clock, float) and type not in ("FLOAT", "DOUBLE"):
            raise _no_clock(plan, type, clock)
        return clock
    try:
        value = pa.scalar(clock, arrow_type(type)).value
    except (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError):
        raise _no_clock(plan, type, clock) from None
    assert isinstance(value, int)
    return value


def _no_clock(plan: Plan, type: str, clock: object) -> ValueError:
    return ValueError(
        f"clock must be a {type} as in {plan.source.order_by[0]!r}, or for a time a datetime or a "
        f"date, not {clock!r}"
    )


def _type_column(plan: Plan, reader: Plan) -> str | None:
    """The column with the types of events for a query that another reads.

    None: it has none, or the one that the query was compiled with.
    """
    return None if plan.source.type_name == reader.source.type_name else reader.source.type_name


_NO_CONTEXTS = np.zeros((0, 0), np.int64)

_MOST_WORK = 2**63 - 1
"""The most steps that kernels can count."""


def _check_ties(program: Program, ties: object) -> None:
    """Raises ValueError if a query, or one that it reads, was compiled for other ties."""
    if program.plan.source.ties != ties:
        raise _other_ties(program.plan, ties)
    for one in program.reads:
        _check_ties(one, ties)


def _other_ties(plan: Plan, ties: object) -> ValueError:
    if ties != "simultaneous":
        return ValueError(f"ties must be 'simultaneous' or None, not {ties!r}")
    return ValueError(
        f"query {plan.name!r} was compiled for events that come one after another, and "
        "simultaneous events need code of their own: compile it with --ties simultaneous, or with "
        "celc.compile(…, ties='simultaneous')"
    )


def _given_names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _check_other_order(plan: Plan, order_by: tuple[str, ...]) -> None:
    """Raises ValueError if the query says its order itself, or was compiled for one alone."""
    source = plan.source
    if order_by == source.order_by:
        return
    if source.begin is not None and not source.reads:
        raise ValueError(
            f"query {plan.name!r} reads events that last, whose order is that of their ends, "
            f"{source.order_by[0]!r}: leave out order_by"
        )
    if source.reads:
        raise ValueError(
            f"query {plan.name!r} reads other queries, and all of them are compiled for the "
            f"order of {source.order_by[0]!r}; for another order compile the file with --order-by"
        )
    if source.uncertain:
        raise ValueError(
            f"query {plan.name!r} reads events of uncertain time, whose order is that of "
            f"{source.order_by[0]!r}: leave out order_by"
        )
    rules = source.parameters
    if rules is not None and rules.valid is not None and order_by[:1] != source.order_by[:1]:
        raise ValueError(
            f"query {plan.name!r} compares {source.order_by[0]!r} with the times of a row of "
            f"{rules.name!r} (VALID), so that it orders the events first; for another order "
            "compile the file with --order-by"
        )


def _check_instants(plan: Plan, order_by: tuple[str, ...]) -> None:
    """Raises ValueError if simultaneous events would differ in what a window is measured on."""
    if not order_by:
        raise ValueError(f"query {plan.name!r} needs order columns to tell simultaneous events")
    for name in (window.attribute for window in plan.matching.windows):
        if name is not None and name not in order_by:
            raise ValueError(
                f"query {plan.name!r} has a window that is measured on {name!r}, in which "
                f"simultaneous events could differ: name it in order_by, as in {[*order_by, name]}"
            )


def _check_rate(plan: Plan, order_by: tuple[str, ...]) -> None:
    """Raises ValueError if the order column cannot measure the length of LIMIT … PER."""
    rate = plan.choice.rate
    if rate is None or rate.length is None:
        return
    types = {one.name: one.type for one in plan.source.order_candidates}
    is_time = bool(order_by) and types[order_by[0]] in ("TIMESTAMP", "DATE")
    if not order_by or is_time != (rate.length.unit == "MICROSECONDS"):
        kind = "TIMESTAMP or DATE" if rate.length.unit == "MICROSECONDS" else "number"
        raise ValueError(
            f"query {plan.name!r} has LIMIT … PER a length that needs a {kind} as its first order "
            "column"
        )


def _with_match_id(plan: Plan, asked: object) -> Plan:
    """The plan with or without the column `match_id`.

    asked: None keeps the choice, though other columns may identify events now.
    """
    if asked is not None and type(asked) is not bool:
        raise ValueError(f"match_id must be True or False, not {asked!r}")
    if asked is False:
        return replace(plan, answer=replace(plan.answer, match_id=None))
    return plan if asked is None and plan.answer.match_id is None else with_match_id(plan)


def _ordered(plan: Plan, order_by: tuple[str, ...]) -> Plan:
    source = plan.source
    known = {attribute.name for attribute in source.order_candidates}
    for name in order_by:
        if name not in known:
            raise ValueError(
                f"query {plan.name!r} cannot be ordered by {name!r}: it must be an attribute of "
                f"all its event types; those are: {', '.join(sorted(known)) or 'none'}"
            )
    windows = plan.matching.windows
    if any(window.unit == "MICROSECONDS" and window.attribute is None for window in windows):
        types = {a.name: a.type for a in source.order_candidates}
        if not order_by or types[order_by[0]] not in ("TIMESTAMP", "DATE"):
            raise ValueError(
                f"query {plan.name!r} has a window of time, which needs a TIMESTAMP or DATE as its "
                "first order column"
            )
    if source.ties is not None:
        _check_instants(plan, order_by)
    _check_rate(plan, order_by)
    read = {attribute.name for attribute in source.attributes}
    added = tuple(a for a in source.order_candidates if a.name in order_by and a.name not in read)
    return replace(
        plan, source=replace(plan.source, order_by=order_by, attributes=source.attributes + added)
    )


def growth_line(program: Program) -> str:
    """The line that no code was written for the formula of a query, and what that costs."""
    return f"matches are found by definition, in plain Python, and the time {program.growth}"


def warn_of_growth(programs: Iterable[Program]) -> None:
    """Warn the caller of a method about queries, and those that they read, that may take long.

    The warning comes once: not again after the compiler or the sender of a query.
    """
    for line in dict.fromkeys(line for program in programs for line in _growth_lines(program)):
        warn(line, PlanWarning)


def _growth_lines(program: Program) -> Iterator[str]:
    for level in program.levels:
        yield from _growth_lines(level)
    if program.growth and TOLD not in program.module:
        yield f"query {program.name!r}: {growth_line(program)}"
