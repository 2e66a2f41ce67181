"""FOR EACH as data: the parameter set of a query, and the rows that an event concerns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Parameter:
    """An attribute of the set, with its type as the language names it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """`x.attribute LIKE rule.parameter`; `column`: that of events with the answer. `operator`: LIKE
    or RLIKE."""

    column: str
    operator: str
    attribute: str
    parameter: str


@dataclass(frozen=True, slots=True)
class OfEvent:
    """A condition on an attribute of an event and constants, in the type `type`.

    `operator`: `=`, `!=`, `<`, `<=`, `>`, `>=`, in, not_in, is_null or is_not_null. Of a STRING
    there are no order comparisons.
    """

    operator: str
    attribute: str
    type: str
    operands: tuple[int | float | str | bool, ...] = ()


@dataclass(frozen=True, slots=True)
class OfRow:
    """The same of an attribute of the set."""

    operator: str
    parameter: str
    type: str
    operands: tuple[int | float | str | bool, ...] = ()


@dataclass(frozen=True, slots=True)
class OfBoth:
    """`event.attribute operator rule.parameter`, in the type `type`."""

    operator: str
    attribute: str
    parameter: str
    type: str


Test: TypeAlias = OfEvent | OfRow | OfBoth


@dataclass(frozen=True, slots=True)
class Concern:
    """The rows that an event of one type can concern: those for which one of `ways` is true.

    Without `ways`: all rows. A way is an AND of ORs. It may be true of more rows than matter, but
    never of fewer.
    """

    stream: str
    type: str
    ways: tuple[tuple[tuple[Test, ...], ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameter set of a query FOR EACH, and how its values come to the events.

    `shown`: its attributes in the output. `columns`: columns of events, each with the attribute of
    the set that it holds; `patterns`: those of patterns. `number`: the column of the row's number,
    by which events are partitioned first, unless the rows are run one by one (`row_by_row`).
    `position`: the column of positions, on which windows of EVENTS are measured; None: none is.
    `consume_by`: CONSUME BY among the events of one row. `concerns`: the rows that an event
    concerns, by its type; None: every event concerns every row, for `why`.
    """

    name: str
    attributes: tuple[Parameter, ...]
    shown: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    number: str
    patterns: tuple[Pattern, ...] = ()
    position: str | None = None
    row_by_row: bool = False
    consume_by: str = "NONE"
    concerns: tuple[Concern, ...] | None = None
    why: str = ""

    def type_of(self, attribute: str) -> str:
        """The type of an attribute of the set."""
        return next(one.type for one in self.attributes if one.name == attribute)

    @property
    def shown_attributes(self) -> tuple[Parameter, ...]:
        """The attributes of the set in the output, in their order."""
        types = {one.name: one for one in self.attributes}
        return tuple(types[name] for name in self.shown)


def routes_of_rows(name: str) -> str:
    """The calls that take the table of a parameter set."""
    return (
        f"match_table(events, {name}=rows), or on Spark match(df, {name}=rows) or "
        f"match_stream(df, {name}=rows)"
    )
