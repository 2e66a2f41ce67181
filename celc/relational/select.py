"""Relations → the text of SQL that joins them.

The text is the end of a statement: the common tables of the scans, and the SELECT of the matches.
`celc_runtime.plan.joins` writes the common table `events` before it (`Columns`).

Without comparing all pairs, Spark joins only by equality. So events are joined by buckets: parts of
the measure as long as the window. Two events of a match lie in one bucket or in neighbouring ones.
All other scans are joined to the first scan. Its events lie in their own bucket, later events in
their own and in the one before. So each pair meets once, and no match is lost at a border (Theorem
1 of CEP2ASP). DuckDB joins by inequalities itself.

Long: the parts of one statement.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from sqlglot import exp

from celc.core import formula as core
from celc.core.formula import OutputExpression, OutputLabel
from celc.diagnostics.source import visible
from celc.relational.bands import Band, absent_bands_of, bands_of
from celc.relational.expressions import (
    Dialect,
    Writer,
    cast,
    column,
    duration,
    enclosed,
    identifier,
    is_of_types,
    named,
    number,
)
from celc.relational.layout import Joining, Select, Without, laid_out, sql
from celc.relational.relate import output_value, scans_of
from celc.relational.relations import Missing, NotRelational, Relations, Scan, Within


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of `events` besides those that the query reads.

    - `place`: the place of an event in the order of its partition, as a comparable value; where
      events are numbered it is their position, with the name `pos`
    - `time`: the first order column; `measure`: a whole number on which windows are measured
    - `keys`: those of PARTITION BY
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
    measure = "micros" if relations.unit is core.WindowUnit.MICROSECONDS else "measure"
    return Columns(place, _unused("event_time", taken), _unused(measure, taken), keys)


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
        kept = bands_of(relations) if on_spark else ()
        absent = absent_bands_of(relations) if on_spark else ()
        self._bands = [(one, _unused(f"band_of_{one.second}", taken)) for one in kept]
        self._absent_bands = [(one, _unused(f"band_of_{one.second}", taken)) for one in absent]
        window = self._query.window
        self._size = max(1, int(window.size)) if window is not None and on_spark else None

    def text(self) -> str:
        """The whole text."""
        missing = self._relations.missing
        parts = [self._table(scan) for scan in self._relations.scans]
        parts += [self._table(one.scan, absent=True) for one in missing]
        return ",\n".join(parts) + "\n" + laid_out(self._matches(), self._dialect) + "\n"

    def _writing(self, alone: str | None = None) -> Writer:
        return Writer(self._dialect, by_stream=self._query.needs_stream_column, alone=alone)

    # --- scans ------------------------------------------------------------------------------------

    def _table(self, scan: Scan, *, absent: bool = False) -> str:
        """The common table of a scan."""
        writer = self._writing(scan.name)
        select = Select(
            (exp.Star(), *self._own_columns(scan, writer)),
            identifier("events"),
            tuple(self._laterals(scan, writer)),
            where=(*self._of_types(scan), *map(writer.condition, scan.conditions)),
        )
        role = "events that a match must not have" if absent else self._role(scan.name)
        lines = [f"-- {comment(scan.name)}: {role}", *self._explained(scan)]
        body = laid_out(select, self._dialect, margin="  ")
        return "\n".join([*lines, f"{sql(identifier(scan.name), self._dialect)} AS (", body, ")"])

    def _explained(self, scan: Scan) -> Iterable[str]:
        """Comments that explain buckets, and why a row occurs several times."""
        root = comment(self._root)
        if self._size is not None and scan.name == self._root:
            lies = "a match lies in one, or in two neighbours"
            yield f"-- {self._bucket}: parts as long as the window; {lies}"
        elif self._size is not None:
            yield f"-- once for each {self._bucket} in which the {root} of its match can be"
        for band, name in (*self._bands, *self._absent_bands):
            if band.first == scan.name:
                yield f"-- {comment(name)}: parts twice as wide as the greatest difference"
            elif band.second == scan.name:
                yield f"-- once for each {comment(name)} of the {comment(band.first)} near it"

    def _role(self, scan: str) -> str:
        relations = self._relations
        if len(relations.scans) == 1:
            return "the event of a match"
        if relations.firsts == (scan,):
            return "the first event of a match"
        return "the last event of a match" if relations.lasts == (scan,) else "an event of a match"

    def _of_types(self, scan: Scan) -> list[exp.Expr]:
        """The condition on the type of an event; none where all events are of these types."""
        declared = {(one.stream, one.name) for s in self._query.streams for one in s.event_types}
        types = [(one.stream, one.name) for one in scan.types]
        if {*types} == declared:
            return []
        return [is_of_types(None, types, by_stream=self._query.needs_stream_column)]

    def _own_columns(self, scan: Scan, writer: Writer) -> list[exp.Expr]:
        """The bucket of an event that lies in one of each."""
        found: list[exp.Expr] = []
        if self._size is not None and scan.name == self._root:
            found.append(named(self._bucket_of(), identifier(self._bucket)))
        for band, name in (*self._bands, *self._absent_bands):
            if band.first == scan.name:
                found.append(named(_band_of(band.left, band, writer), identifier(name)))
        return found

    def _laterals(self, scan: Scan, writer: Writer) -> Iterable[exp.Lateral]:
        """The buckets of an event that lies in several."""
        if self._size is not None and scan.name != self._root:
            # Where the root event is the first of the match, no event lies before it.
            least = -1
            most = 0 if self._relations.firsts == (self._root,) else 1
            own = self._bucket_of()
            yield _exploded([_plus(own, step) for step in range(least, most + 1)], self._bucket)
        for band, name in (*self._bands, *self._absent_bands):
            if band.second == scan.name:
                own = _band_of(band.right, band, writer)
                steps = [_plus(own, step) for step in (-1, 0, 1)]
                yield _exploded(steps, name, distinct=True)

    def _bucket_of(self) -> exp.Expr:
        assert self._size is not None
        assert self._query.window is not None
        counts = self._query.window.unit is core.WindowUnit.EVENTS
        measured = column(None, self._columns.place if counts else self._columns.measure)
        return exp.IntDiv(this=measured, expression=number(self._size))

    # --- the matches ------------------------------------------------------------------------------

    def _matches(self) -> Select:
        """The SELECT of the matches."""
        joins = []
        joined = {self._root}
        waiting = list(self._conditions())
        for scan in self._relations.scans[1:]:
            joined.add(scan.name)
            ready = tuple(one for names, one in waiting if names <= joined)
            waiting = [(names, one) for names, one in waiting if not names <= joined]
            joins.append(Joining(identifier(scan.name), (*self._together(scan.name), *ready)))
        # The rest names no event at all.
        rest = [one for _, one in waiting]
        without = [Without(self._found(one)) for one in self._relations.missing]
        select = Select(
            tuple(self._outputs()),
            identifier(self._root),
            joins=tuple(joins),
            where=(*rest, *without, _order_is_checked()),
            # Spark assumes that a table is as small as before its rows were repeated.
            merged=tuple(identifier(band.second) for band, _ in self._bands),
        )
        return self._once_each(select)

    def _together(self, scan: str) -> list[exp.Expr]:
        """The equalities of an event and the root event of its match."""
        found: list[exp.Expr] = []
        if self._size is not None:
            one, other = column(scan, self._bucket), column(self._root, self._bucket)
            found.append(exp.EQ(this=one, expression=other))
        for key in self._columns.keys:
            same = exp.NullSafeEQ(this=column(scan, key), expression=column(self._root, key))
            found.append(same)
        return found

    def _conditions(self) -> Iterable[tuple[frozenset[str], exp.Expr]]:
        """All conditions on several events, each with the scans that it names."""
        relations = self._relations
        for band, name in self._bands:
            yield frozenset({band.first, band.second}), _same_part(band, name)
        for order in relations.before:
            follows = self._follows(order.first, order.second, adjacent=order.adjacent)
            yield frozenset({order.first, order.second}), follows
        for window in relations.within:
            name = self._columns.place if window.of_positions else self._columns.measure
            first, last = column(window.first, name), column(window.last, name)
            size = self._length(window)
            if self._size is not None:
                # In neighbouring buckets no difference overflows.
                fits = exp.LTE(this=exp.Sub(this=last, expression=first), expression=size)
            else:
                # A form by which DuckDB joins.
                fits = exp.LTE(this=last, expression=exp.Add(this=first, expression=size))
            yield frozenset({window.first, window.last}), fits
        for condition in relations.conditions:
            yield scans_of(condition), self._writer.condition(condition)

    def _length(self, window: Within) -> exp.Expr:
        """The size of a window; a length of time in words as well."""
        is_time = self._relations.unit is core.WindowUnit.MICROSECONDS and not window.of_positions
        return duration(window.size) if is_time else number(window.size)

    def _follows(self, first: str, second: str, *, adjacent: bool = False) -> exp.Expr:
        place = self._columns.place
        one, other = column(first, place), column(second, place)
        if adjacent:
            return exp.EQ(this=other, expression=exp.Add(this=one, expression=number(1)))
        return exp.LT(this=one, expression=other)

    def _found(self, missing: Missing) -> Select:
        """The events that must be absent, for one match."""
        name = missing.scan.name
        if missing.inclusive:
            between = [
                self._compared(exp.GTE, name, missing.after),
                self._compared(exp.LTE, name, missing.before),
            ]
        else:
            between = [self._follows(one, name) for one in missing.after]
            between += [self._follows(name, one) for one in missing.before]
        near = [_same_part(one, of) for one, of in self._absent_bands if one.second == name]
        conditions = map(self._writer.condition, missing.conditions)
        return Select(
            (exp.Literal.number(1),),
            identifier(name),
            where=(*self._together(name), *near, *between, *conditions),
        )

    def _compared(self, operator: type[exp.Binary], scan: str, others: Sequence[str]) -> exp.Expr:
        """Whether this comparison holds between an event and one of some others."""
        place = self._columns.place
        ways = [operator(this=column(scan, place), expression=column(one, place)) for one in others]
        return ways[0] if len(ways) == 1 else exp.paren(exp.or_(*ways, copy=False), copy=False)

    # --- the output -------------------------------------------------------------------------------

    def _outputs(self) -> list[exp.Expr]:
        """The columns of a match."""
        query, columns, relations = self._query, self._columns, self._relations
        found = [
            named(column(self._root, of_key), identifier(key.name))
            for of_key, key in zip(columns.keys, query.partition_by, strict=True)
        ]
        if self._positions:
            found.append(named(self._least(relations.firsts, columns.place), "start_pos"))
            found.append(named(self._greatest(relations.lasts, columns.place), "end_pos"))
        found.append(named(self._least(relations.firsts, columns.time), "start_time"))
        found.append(named(self._greatest(relations.lasts, columns.time), "end_time"))
        for item in query.output:
            if isinstance(item, OutputExpression):
                found.append(named(self._computed(item), identifier(item.name)))
            elif self._positions or item.attributes:
                found.append(named(self._label(item), identifier(item.label)))
        return found

    def _least(self, scans: Sequence[str], name: str) -> exp.Expr:
        values = [column(scan, name) for scan in scans]
        return values[0] if len(values) == 1 else exp.Least(this=values[0], expressions=values[1:])

    def _greatest(self, scans: Sequence[str], name: str) -> exp.Expr:
        values = [column(scan, name) for scan in scans]
        if len(values) == 1:
            return values[0]
        return exp.Greatest(this=values[0], expressions=values[1:])

    def _label(self, item: OutputLabel) -> exp.Expr:
        """The events of a label, in their order."""
        names = [attribute.name for attribute in item.attributes]
        return self._in_order(self._relations.labels.get(item.label, ()), names)

    def _in_order(self, scans: Sequence[str], names: Sequence[str]) -> exp.Expr:
        """The events of some scans as structs, each once and in order."""
        shown = [("pos", self._columns.place)] if self._positions else []
        fields = [*shown, *((name, name) for name in names)]
        sorts = len(scans) > 1 and not self._relations.in_order
        if sorts and not self._positions:
            fields.insert(0, (self._columns.place, self._columns.place))
        events = [_struct(scan, fields) for scan in scans]
        array: exp.Expr = exp.Array(expressions=events)
        if not sorts:
            return array
        if self._dialect == "spark":
            array = exp.Anonymous(this="ARRAY_DISTINCT", expressions=[array])
            array = exp.Anonymous(this="ARRAY_SORT", expressions=[array])
        else:
            array = exp.Anonymous(this="LIST_DISTINCT", expressions=[array])
            array = exp.Anonymous(this="LIST_SORT", expressions=[array])
        return array

    def _computed(self, item: OutputExpression) -> exp.Expr:
        value = item.value
        if isinstance(value, core.Collection):
            scans = self._relations.labels.get(value.label, ())
            return exp.Array(expressions=[column(scan, value.attribute) for scan in scans])
        if value.type is core.DataType.INTERVAL:
            raise NotRelational("an item of SELECT is an INTERVAL", item.span)
        return self._writer.value(output_value(self._relations, value))

    def _once_each(self, select: Select) -> Select:
        """The same without matches that were found several times."""
        query, relations = self._query, self._relations
        if relations.tells_matches_apart and not self._strips:
            return select
        names = [one.output_name for one in select.columns]
        extra = self._identity()
        columns = (*select.columns, *extra)
        select = replace(select, columns=columns, distinct=True)
        if not extra and not self._strips:
            return select
        items = {one.label: one for one in query.output if isinstance(one, OutputLabel)}
        shown = [
            self._stripped(items[name]) if name in items else column(None, name) for name in names
        ]
        return Select(tuple(shown), (select, identifier("found")))

    @property
    def _strips(self) -> bool:
        """Whether events of labels have their place, by which they are sorted."""
        return (
            not self._positions
            and not self._relations.in_order
            and any(
                len(self._relations.labels.get(one.label, ())) > 1
                for one in self._query.output
                if isinstance(one, OutputLabel)
            )
        )

    def _stripped(self, item: OutputLabel) -> exp.Expr:
        """The events of a label without their places."""
        scans = self._relations.labels.get(item.label, ())
        if not self._strips or len(scans) < 2:
            return column(None, item.label)
        fields = [(attribute.name, attribute.name) for attribute in item.attributes]
        body = _struct("event", fields)
        events = column(None, item.label)
        shown = sql(body, self._dialect)
        if self._dialect == "spark":
            text = f"TRANSFORM({sql(events, 'spark')}, event -> {shown})"
        else:
            text = f"LIST_TRANSFORM({sql(events, 'duckdb')}, LAMBDA event: {shown})"
        # sqlglot writes the arrow of lambdas as older versions of DuckDB do.
        return named(exp.Var(this=text), identifier(item.label))

    def _identity(self) -> list[exp.Expr]:
        """What distinguishes matches besides the output."""
        labels = {one.label for one in self._query.output if isinstance(one, OutputLabel)}
        hidden = [label for label in self._relations.kept if label not in labels]
        found: list[exp.Expr] = []
        if not self._positions:
            first, last = self._relations.firsts, self._relations.lasts
            found.append(named(self._least(first, self._columns.place), "first_place"))
            found.append(named(self._greatest(last, self._columns.place), "last_place"))
            hidden = list(self._relations.kept)
        for count, label in enumerate(hidden, start=1):
            scans = self._relations.labels.get(label, ())
            places: exp.Expr = exp.Array(
                expressions=[column(scan, self._columns.place) for scan in scans]
            )
            if len(scans) > 1 and not self._relations.in_order:
                sort = "ARRAY_SORT" if self._dialect == "spark" else "LIST_SORT"
                distinct = "ARRAY_DISTINCT" if self._dialect == "spark" else "LIST_DISTINCT"
                places = exp.Anonymous(
                    this=sort, expressions=[exp.Anonymous(this=distinct, expressions=[places])]
                )
            found.append(named(places, f"places_{count}"))
        return found


@cache
def _order_is_checked() -> exp.Expr:
    """A condition that reads the table that checks the order of events."""
    return exp.Subquery(this=exp.select("passed").from_("order_check"))


def _struct(scan: str, fields: Sequence[tuple[str, str]]) -> exp.Expr:
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=identifier(name), expression=column(scan, read))
            for name, read in fields
        ]
    )


def _plus(value: exp.Expr, step: int) -> exp.Expr:
    if step == 0:
        return value.copy()
    operator = exp.Add if step > 0 else exp.Sub
    return operator(this=value.copy(), expression=number(abs(step)))


def _exploded(values: list[exp.Expr], name: str, *, distinct: bool = False) -> exp.Lateral:
    """One row for each of some values, in a column of this name."""
    array: exp.Expr = exp.Array(expressions=values)
    if distinct:
        array = exp.Anonymous(this="ARRAY_DISTINCT", expressions=[array])
    alias = exp.TableAlias(this=identifier(f"of_{name}"), columns=[identifier(name)])
    return exp.Lateral(this=exp.Explode(this=array), view=True, alias=alias)


def _same_part(band: Band, name: str) -> exp.Expr:
    """The equality that ties both events of a band."""
    return exp.EQ(this=column(band.second, name), expression=column(band.first, name))


def _band_of(value: core.Expression, band: Band, writer: Writer) -> exp.Expr:
    """The interval of a value. It is a floating number as well, so it does not overflow."""
    width = writer.value(core.Constant(band.width, core.DataType.DOUBLE, value.span))
    share = exp.Div(this=enclosed(writer.value(value)), expression=width, typed=False, safe=False)
    return cast(exp.Floor(this=share), "DOUBLE", "spark")


def comment(text: str) -> str:
    """A text that ends no comment."""
    return visible(" ".join(text.split()))
