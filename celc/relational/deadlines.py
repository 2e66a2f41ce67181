"""Matches that end with an absence: when they are decided, in SQL.

A match is decided when the events have passed its deadline. The runtime writes the tables that say
how far they have come (`celc_runtime.plan.joins`): `clock` for deadlines in the measure, and
`part_ends` for those in positions, which has a row for each partition. Their only value is NULL
where no more events come, so that every match is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from celc_runtime.plan.frozen import frozen
from sqlglot import exp

from celc.core import formula as core
from celc.core.formula import DataType
from celc.relational.expressions import TYPES, Dialect, cast, column, duration, identifier, number
from celc.relational.layout import Joining
from celc.relational.pieces import greatest, least
from celc.relational.relations import Columns, NotRelational, Reach, Relations

CLOCK, PART_ENDS = "clock", "part_ends"

_DAY = 86_400_000_000
_BITS = {DataType.BYTE: 8, DataType.SHORT: 16, DataType.INT: 32, DataType.LONG: 64}


@frozen
class Deadline:
    """When the matches of one branch are decided."""

    relations: Relations
    dialect: Dialect
    columns: Columns

    @property
    def reach(self) -> Reach | None:
        """How far behind the match its deadline is; None: it is decided when it ends."""
        return self.relations.deadline

    @property
    def type(self) -> DataType:
        """The type of the first order column. Raises NotRelational where it has no statement."""
        late = next(one for one in self.relations.late)
        first = late.length.attribute or self.relations.query.order_by[0]
        if first.type not in (*_BITS, DataType.TIMESTAMP, DataType.DATE):
            what = f"an absence stands behind the pattern, and the order is a {first.type.value}"
            raise NotRelational(what, late.span)
        return first.type

    def counted_from(self, name: str) -> exp.Expr:
        """A column of the event from which the absence is measured."""
        assert self.reach is not None
        if self.reach.from_start:
            return least(self.relations.firsts, name)
        return greatest(self.relations.lasts, name)

    def joins(self, root: str) -> Iterable[Joining]:
        """The table that is joined to the matches."""
        if self.reach is not None and self.reach.of_positions:
            on = [
                exp.NullSafeEQ(this=column(PART_ENDS, key), expression=column(root, key))
                for key in self.columns.keys
            ]
            yield Joining(identifier(PART_ENDS), tuple(on))

    def conditions(self) -> Iterable[exp.Expr]:
        """Whether a match is decided."""
        reach = self.reach
        if reach is None:
            return
        if reach.of_positions:
            place = exp.Add(
                this=self.counted_from(self.columns.place), expression=number(reach.size)
            )
            is_decided: exp.Expr = exp.LTE(
                this=place, expression=column(PART_ENDS, self.columns.latest)
            )
        else:
            latest = exp.Subquery(this=exp.select(column(None, self.columns.latest)).from_(CLOCK))
            is_decided = exp.LT(this=self._later(self.columns.measure), expression=latest)
        yield exp.Coalesce(this=is_decided, expressions=[exp.true()])

    def decided_time(self, lasts: Sequence[str]) -> exp.Expr:
        """The time after which a match is decided, in the type of the first order column."""
        if self.reach is None:
            return greatest(lasts, self.columns.time)
        match self.type:
            case DataType.TIMESTAMP:
                name = "TIMESTAMP_MICROS" if self.dialect == "spark" else "MAKE_TIMESTAMPTZ"
                return exp.Anonymous(this=name, expressions=[self._later(self.columns.measure)])
            case DataType.DATE:
                date, days = self.counted_from(self.columns.time), number(self.reach.size // _DAY)
                if self.dialect == "spark":
                    return exp.Anonymous(this="DATE_ADD", expressions=[date, days])
                return exp.Add(this=date, expression=days)
            case DataType.LONG:
                return self._later(self.columns.measure)
            case _:
                return cast(self._later(self.columns.measure), TYPES[self.type], self.dialect)

    def _later(self, name: str) -> exp.Expr:
        """The deadline as a number: not beyond the greatest of its type, and never overflowing."""
        assert self.reach is not None
        size, event = self.reach.size, self.counted_from(name)
        if self.relations.unit is core.WindowUnit.MICROSECONDS:
            return exp.Add(this=event, expression=duration(size))
        most = 2 ** (_BITS[self.type] - 1) - 1
        if size >= most:
            return number(most)
        later = exp.Add(this=event, expression=number(size))
        if self.type is not DataType.LONG:
            return exp.Least(this=later, expressions=[number(most)])
        is_near = exp.LTE(this=self.counted_from(name), expression=number(most - size))
        return exp.Case(ifs=[exp.If(this=is_near, true=later)], default=number(most))
