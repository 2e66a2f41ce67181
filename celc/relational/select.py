"""Relations → the text of SQL that joins them.

The text is the end of a statement: the common tables of the scans, and the SELECT of the matches.
Before it stands the common table `events` (`Columns`), which `celc_runtime.plan.joins` writes.

Spark joins by equality only without comparing all pairs. So events are joined by buckets: parts of
the measure that are as long as the window. Two events of a match lie in one bucket or in
neighbouring ones. The first scan is the one that all others are joined to: its events lie in their
own bucket, later ones in their own and the one before. So each pair meets once, and no match is
lost at a border (Theorem 1 of CEP2ASP). DuckDB joins by inequalities itself.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from celc.core import formula as core
from celc.core.formula import OutputExpression, OutputLabel
from celc.relational.bands import Band, bands_of
from celc.relational.expressions import (
    Dialect,
    Writer,
    cast,
    column,
    identifier,
    is_of_types,
    number,
)
from celc.relational.relate import output_value, scans_of
from celc.relational.relations import Missing, NotRelational, Relations, Scan


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of `events` besides those that the query reads.

    `place`: the place of an event in the order of its partition, as a value that can be compared;
    where events are numbered it is their position, and called `pos`. `time`: the first order
    column. `measure`: a whole number that windows are measured on. `keys`: those of PARTITION BY.
    """

    place: str
    time: str
    measure: str
    keys: tuple[str, ...]


def columns_of(relations: Relations, *, numbered: bool) -> Columns:
    """Names that no attribute has."""
    query = relations.query
    taken = _attribute_names(relations)
    keys = tuple(
        _unused(f"key_{place}", taken) if key.alternatives else key.name
        for place, key in enumerate(query.partition_by, start=1)
    )
    place = "pos" if numbered else _unused("place", taken)
    return Columns(place, _unused("event_time", taken), _unused("measure", taken), keys)


def select_text(relations: Relations, dialect: Dialect, *, positions: bool) -> str:
    """The common tables of the scans, and the SELECT. `positions`: whether the output has them."""
    return _Select(relations, dialect, positions=positions).text()


def _attribute_names(relations: Relations) -> set[str]:
    types = (one for stream in relations.query.streams for one in stream.event_types)
    return {attribute.name.lower() for one in types for attribute in one.attributes}


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


class _Select:
    """Writes the text of one query."""

    def __init__(self, relations: Relations, dialect: Dialect, *, positions: bool) -> None:
        self._relations = relations
        self._query = relations.query
        self._dialect: Dialect = dialect
        self._positions = positions
        self._columns = columns_of(relations, numbered=positions or relations.numbered)
        self._root = relations.scans[0].name
        self._writer = self._writing()
        taken = _attribute_names(relations) | {self._columns.measure, self._columns.time}
        self._bucket = _unused("bucket", taken)
        on_spark = dialect == "spark"
        bands = bands_of(relations) if on_spark else ()
        self._bands = tuple((band, _unused(f"band_of_{band.second}", taken)) for band in bands)
        window = self._query.window
        self._size = max(1, int(window.size)) if window is not None and on_spark else None

    def text(self) -> str:
        """The whole text."""
        parts = [self._table(scan, f"an event of each match: {scan.name}") for scan in self._scans]
        parts += [
            self._table(one.scan, f"events that must not be there: {one.scan.name}", absent=True)
            for one in self._relations.missing
        ]
        return ",\n".join(parts) + "\n" + self._pretty(self._matches()) + "\n"

    @property
    def _scans(self) -> tuple[Scan, ...]:
        return self._relations.scans

    def _pretty(self, select: exp.Expression) -> str:
        return select.sql(dialect=self._dialect, pretty=True, comments=False)

    def _writing(self, alone: str | None = None) -> Writer:
        return Writer(self._dialect, by_stream=self._query.needs_stream_column, alone=alone)

    # --- scans ------------------------------------------------------------------------------------

    def _table(self, scan: Scan, title: str, *, absent: bool = False) -> str:
        writer = self._writing(scan.name)
        select = exp.select("*", *self._own_columns(scan, writer)).from_("events")
        for conditions in self._laterals(scan, writer, absent=absent):
            select = select.lateral(conditions)
        for condition in [*self._of_types(scan), *map(writer.condition, scan.conditions)]:
            select = select.where(condition)
        name = identifier(scan.name).sql(dialect=self._dialect)
        return f"-- {title}\n{name} AS (\n{textwrap.indent(self._pretty(select), '  ')}\n)"

    def _of_types(self, scan: Scan) -> list[exp.Expression]:
        """The condition on the type of an event; none where all events are of these types."""
        declared = {(one.stream, one.name) for s in self._query.streams for one in s.event_types}
        types = [(one.stream, one.name) for one in scan.types]
        if {*types} == declared:
            return []
        return [is_of_types(None, types, by_stream=self._query.needs_stream_column)]

    def _own_columns(self, scan: Scan, writer: Writer) -> list[exp.Expression]:
        """The buckets of an event that lies in one of each."""
        found: list[exp.Expression] = []
        if self._size is not None and scan.name == self._root:
            found.append(exp.alias_(self._bucket_of(), self._bucket))
        for band, name in self._bands:
            if band.first == scan.name:
                found.append(exp.alias_(_band_of(band.left, band, writer), identifier(name)))
        return found

    def _laterals(self, scan: Scan, writer: Writer, *, absent: bool) -> Iterable[exp.Lateral]:
        """The buckets of an event that is joined as in several."""
        if self._size is not None and scan.name != self._root:
            # Before the root event no event lies where it is the first of the match.
            least = -1
            most = 0 if self._relations.firsts == (self._root,) else 1
            own = self._bucket_of()
            yield _exploded([_plus(own, step) for step in range(least, most + 1)], self._bucket)
        for band, name in self._bands:
            if band.second == scan.name and not absent:
                own = _band_of(band.right, band, writer)
                steps = [_plus(own, step) for step in (-1, 0, 1)]
                yield _exploded(steps, name, distinct=True)

    def _bucket_of(self) -> exp.Expression:
        assert self._size is not None and self._query.window is not None
        counts = self._query.window.unit is core.WindowUnit.EVENTS
        measured = column(None, self._columns.place if counts else self._columns.measure)
        return exp.IntDiv(this=measured, expression=number(self._size))

    # --- the matches ------------------------------------------------------------------------------

    def _matches(self) -> exp.Expression:
        """The SELECT of the matches."""
        outputs = self._outputs()
        select = exp.select(*outputs).from_(identifier(self._root))
        joined = {self._root}
        waiting = list(self._conditions())
        for scan in self._scans[1:]:
            joined.add(scan.name)
            ready = [one for names, one in waiting if names <= joined]
            waiting = [(names, one) for names, one in waiting if not names <= joined]
            on = [*self._together(scan.name), *ready]
            join = exp.Join(this=exp.Table(this=identifier(scan.name)))
            select.append("joins", join)
            if on:
                join.set("on", exp.and_(*on, copy=False))
            else:
                join.set("kind", "CROSS")
        assert not waiting, "a condition names a scan that is not joined"
        for missing in self._relations.missing:
            select = select.where(exp.Not(this=exp.Exists(this=self._found(missing))))
        select = select.where(
            exp.Subquery(this=exp.select("passed").from_("order_check")), copy=False
        )
        return self._once_each(select)

    def _together(self, scan: str) -> list[exp.Expression]:
        """The equalities of an event and the root event of its match."""
        found: list[exp.Expression] = []
        if self._size is not None:
            one, other = column(scan, self._bucket), column(self._root, self._bucket)
            found.append(exp.EQ(this=one, expression=other))
        for key in self._columns.keys:
            same = exp.NullSafeEQ(this=column(scan, key), expression=column(self._root, key))
            found.append(same)
        return found

    def _conditions(self) -> Iterable[tuple[frozenset[str], exp.Expression]]:
        """All that is asked of several events, each with the scans that it names."""
        relations = self._relations
        for band, name in self._bands:
            same = exp.EQ(this=column(band.second, name), expression=column(band.first, name))
            yield frozenset({band.first, band.second}), same
        for order in relations.before:
            yield frozenset({order.first, order.second}), self._follows(order.first, order.second,
                                                                        adjacent=order.adjacent)
        for window in relations.within:
            name = self._columns.place if window.of_positions else self._columns.measure
            latest = exp.Add(this=column(window.first, name), expression=number(window.size))
            fits = exp.LTE(this=column(window.last, name), expression=latest)
            yield frozenset({window.first, window.last}), fits
        for condition in relations.conditions:
            yield scans_of(condition), self._writer.condition(condition)

    def _follows(self, first: str, second: str, *, adjacent: bool = False) -> exp.Expression:
        place = self._columns.place
        one, other = column(first, place), column(second, place)
        if adjacent:
            return exp.EQ(this=other, expression=exp.Add(this=one, expression=number(1)))
        return exp.LT(this=one, expression=other)

    def _found(self, missing: Missing) -> exp.Expression:
        """The events that must not be there, for one match."""
        name, place = missing.scan.name, column(missing.scan.name, self._columns.place)
        select = exp.select("1").from_(identifier(name))
        if missing.inclusive:
            between = [
                exp.or_(*(exp.GTE(this=place.copy(), expression=column(one, self._columns.place))
                          for one in missing.after)),
                exp.or_(*(exp.LTE(this=place.copy(), expression=column(one, self._columns.place))
                          for one in missing.before)),
            ]
            between = [exp.paren(one) if isinstance(one, exp.Or) else one for one in between]
        else:
            between = [self._follows(one, name) for one in missing.after]
            between += [self._follows(name, one) for one in missing.before]
        conditions = map(self._writer.condition, missing.conditions)
        for condition in [*self._together(name), *between, *conditions]:
            select = select.where(condition)
        return select

    # --- the output -------------------------------------------------------------------------------

    def _outputs(self) -> list[exp.Expression]:
        """The columns of a match."""
        query, columns, relations = self._query, self._columns, self._relations
        found = [
            exp.alias_(column(self._root, of_key), identifier(key.name))
            for of_key, key in zip(columns.keys, query.partition_by, strict=True)
        ]
        if self._positions:
            found.append(exp.alias_(self._least(relations.firsts, columns.place), "start_pos"))
            found.append(exp.alias_(self._greatest(relations.lasts, columns.place), "end_pos"))
        found.append(exp.alias_(self._least(relations.firsts, columns.time), "start_time"))
        found.append(exp.alias_(self._greatest(relations.lasts, columns.time), "end_time"))
        for item in query.output:
            if isinstance(item, OutputExpression):
                found.append(exp.alias_(self._computed(item), identifier(item.name)))
            elif self._positions or item.attributes:
                found.append(exp.alias_(self._label(item), identifier(item.label)))
        return found

    def _least(self, scans: Sequence[str], name: str) -> exp.Expression:
        values = [column(scan, name) for scan in scans]
        return values[0] if len(values) == 1 else exp.func("LEAST", *values)

    def _greatest(self, scans: Sequence[str], name: str) -> exp.Expression:
        values = [column(scan, name) for scan in scans]
        return values[0] if len(values) == 1 else exp.func("GREATEST", *values)

    def _label(self, item: OutputLabel) -> exp.Expression:
        """The events of a label, in their order."""
        names = [attribute.name for attribute in item.attributes]
        return self._in_order(self._relations.labels.get(item.label, ()), names)

    def _in_order(self, scans: Sequence[str], names: Sequence[str]) -> exp.Expression:
        """The events of some scans as structs, each once and in order."""
        shown = [("pos", self._columns.place)] if self._positions else []
        fields = [*shown, *((name, name) for name in names)]
        sorts = len(scans) > 1 and not self._relations.in_order
        if sorts and not self._positions:
            fields.insert(0, (self._columns.place, self._columns.place))
        events = [_struct(scan, fields) for scan in scans]
        array: exp.Expression = exp.Array(expressions=events)
        if not sorts:
            return array
        if self._dialect == "spark":
            array = exp.Anonymous(this="ARRAY_DISTINCT", expressions=[array])
            array = exp.Anonymous(this="ARRAY_SORT", expressions=[array])
        else:
            array = exp.Anonymous(this="LIST_DISTINCT", expressions=[array])
            array = exp.Anonymous(this="LIST_SORT", expressions=[array])
        return array

    def _computed(self, item: OutputExpression) -> exp.Expression:
        value = item.value
        if isinstance(value, core.Collection):
            scans = self._relations.labels.get(value.label, ())
            return exp.Array(expressions=[column(scan, value.attribute) for scan in scans])
        if value.type is core.DataType.INTERVAL:
            raise NotRelational("an item of SELECT is an INTERVAL", item.span)
        return self._writer.value(output_value(self._relations, value))

    def _once_each(self, select: exp.Select) -> exp.Expression:
        """The same without matches that are found several times."""
        if self._relations.tells_matches_apart:
            return select
        names = [one.output_name for one in select.expressions]
        extra = self._identity()
        select = select.select(*extra).distinct()
        if not extra:
            return select
        shown = [column(None, name) for name in names]
        return exp.select(*shown).from_(exp.Subquery(this=select, alias=identifier("found")))

    def _identity(self) -> list[exp.Expression]:
        """What tells matches apart besides the output."""
        labels = {one.label for one in self._query.output if isinstance(one, OutputLabel)}
        hidden = [label for label in self._relations.kept if label not in labels]
        found: list[exp.Expression] = []
        if not self._positions:
            first, last = self._relations.firsts, self._relations.lasts
            found.append(exp.alias_(self._least(first, self._columns.place), "first_place"))
            found.append(exp.alias_(self._greatest(last, self._columns.place), "last_place"))
            hidden = list(self._relations.kept)
        for count, label in enumerate(hidden, start=1):
            scans = self._relations.labels.get(label, ())
            places: exp.Expression = exp.Array(
                expressions=[column(scan, self._columns.place) for scan in scans]
            )
            if len(scans) > 1 and not self._relations.in_order:
                sort = "ARRAY_SORT" if self._dialect == "spark" else "LIST_SORT"
                distinct = "ARRAY_DISTINCT" if self._dialect == "spark" else "LIST_DISTINCT"
                places = exp.Anonymous(
                    this=sort, expressions=[exp.Anonymous(this=distinct, expressions=[places])]
                )
            found.append(exp.alias_(places, f"places_{count}"))
        return found


def _struct(scan: str, fields: Sequence[tuple[str, str]]) -> exp.Expression:
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=identifier(name), expression=column(scan, read))
            for name, read in fields
        ]
    )


def _plus(value: exp.Expression, step: int) -> exp.Expression:
    if step == 0:
        return value.copy()
    operator = exp.Add if step > 0 else exp.Sub
    return operator(this=value.copy(), expression=number(abs(step)))


def _exploded(values: list[exp.Expression], name: str, *, distinct: bool = False) -> exp.Lateral:
    """One row for each of some values, in a column of this name."""
    array: exp.Expression = exp.Array(expressions=values)
    if distinct:
        array = exp.Anonymous(this="ARRAY_DISTINCT", expressions=[array])
    alias = exp.TableAlias(this=identifier(f"of_{name}"), columns=[identifier(name)])
    return exp.Lateral(this=exp.Explode(this=array), view=True, alias=alias)


def _band_of(value: core.Expression, band: Band, writer: Writer) -> exp.Expression:
    """The interval of a value. It is a floating number as well: none overflows."""
    width = writer.value(core.Constant(band.width, core.DataType.DOUBLE, value.span))
    share = exp.Div(this=exp.paren(writer.value(value)), expression=width, typed=False, safe=False)
    return cast(exp.Floor(this=share), "DOUBLE", "spark")
