"""Relations → the text of SQL that joins them.

The text is the end of a statement: the common tables of the scans, and the SELECT of the matches.
`celc_runtime.plan.joins` writes the common table `events` before it (`Columns`). The columns of the
matches are written with positions and without them. All else is the same.

Without comparing all pairs, Spark joins only by equality. So events are joined by buckets: parts of
the measure as long as the window. Two events of a match lie in one bucket or in neighbouring ones.
All other scans are joined to the first scan. Its events lie in their own bucket, later events in
their own and in the one before. So each pair meets once, and no match is lost at a border (Theorem
1 of CEP2ASP). DuckDB joins by inequalities itself.

Long: the parts of one statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from celc_runtime.plan.plan import DECIDED_TIME
from sqlglot import exp

from celc.core import formula as core
from celc.core.formula import OutputExpression, OutputLabel
from celc.diagnostics.source import visible
from celc.relational.bands import absent_bands_of, bands_of
from celc.relational.deadlines import Deadline
from celc.relational.expressions import (
    Dialect,
    Writer,
    column,
    duration,
    identifier,
    is_of_types,
    named,
    number,
)
from celc.relational.layout import (
    Joining,
    Select,
    Union,
    Without,
    behind,
    columns_text,
    head_of,
    laid_out,
    sql,
)
from celc.relational.pieces import (
    attributes,
    band_of,
    exploded,
    greatest,
    least,
    plus,
    same_part,
    struct,
)
from celc.relational.relate import output_value, scans_of
from celc.relational.relations import Columns, Missing, NotRelational, Reach, Relations, Scan

MOST_WINDOWS_AWAY = 8
"""What is absent before or behind a match occurs once for each window in which the match can be. If
these are more, it has no buckets."""


def columns_of(relations: Relations) -> Columns:
    """Names that no attribute has."""
    query = relations.query
    taken = _attribute_names(relations)
    keys = tuple(
        _unused(f"key_{place}", taken) if key.alternatives else key.name
        for place, key in enumerate(query.partition_by, start=1)
    )
    place = _unused("place", taken)
    measure = "micros" if relations.unit is core.WindowUnit.MICROSECONDS else "measure"
    time, measured = _unused("event_time", taken), _unused(measure, taken)
    return Columns(place, time, measured, keys, _unused("latest", taken))


class Statement(NamedTuple):
    """The parts of the text, each of whole lines."""

    scans: str
    """The common tables of the scans, and the SELECT of the matches up to its columns."""
    numbered: str
    """The columns of the matches, with positions."""
    plain: str
    """The columns of the matches, without positions."""
    found: str
    """The SELECT behind its columns."""


def statement_of(branches: Sequence[Relations], dialect: Dialect) -> Statement:
    """The common tables of the scans, and the SELECT of the matches of all branches."""
    selects = [_Select(one, dialect) for one in branches]
    return selects[0].statement(selects[1:])


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

    def __init__(self, relations: Relations, dialect: Dialect) -> None:
        self._relations = relations
        self._query = relations.query
        self._dialect: Dialect = dialect
        self._columns = columns_of(relations)
        self._root = relations.scans[0].name
        self._writer = self._writing()
        taken = _attribute_names(relations) | {self._columns.measure, self._columns.time}
        self._bucket = _unused("bucket", taken)
        self._deadline = Deadline(relations, dialect, self._columns)
        on_spark = dialect == "spark"
        kept = bands_of(relations) if on_spark else ()
        absent = absent_bands_of(relations) if on_spark else ()
        self._bands = [(one, _unused(f"band_of_{one.second}", taken)) for one in kept]
        self._absent_bands = [(one, _unused(f"band_of_{one.second}", taken)) for one in absent]
        window = self._query.window
        self._size = max(1, int(window.size)) if window is not None and on_spark else None

    def statement(self, others: Sequence[_Select]) -> Statement:
        """The whole text; `others` are the other branches."""
        dialect = self._dialect
        scans = [table for one in (self, *others) for table in one.tables()]
        matches = self._matches()
        plain = self._outputs(positions=False)
        if others:
            # Two branches can find one match.
            every = Union(tuple(one.identified() for one in (self, *others)))
            matches, plain = self._once_each(every)
        elif not self._relations.tells_matches_apart:
            matches, plain = self._once_each(self.identified())
        return Statement(
            ",\n".join(scans) + f"\n{head_of(matches, dialect)}",
            columns_text(matches.columns, dialect),
            columns_text(plain, dialect),
            behind(matches, dialect) + "\n",
        )

    def tables(self) -> list[str]:
        """The common tables of the scans."""
        relations = self._relations
        scans = [self._table(scan) for scan in relations.scans]
        return scans + [self._table(one.scan, absent=True) for one in relations.missing]

    def identified(self) -> Select:
        """The SELECT of the matches with positions, and with what distinguishes them."""
        matches = self._matches()
        return replace(matches, columns=(*matches.columns, *self._places()))

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
        elif self._has_buckets(scan.name):
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
                found.append(named(band_of(band.left, band, writer), identifier(name)))
        return found

    def _laterals(self, scan: Scan, writer: Writer) -> Iterable[exp.Lateral]:
        """The buckets of an event that lies in several."""
        if self._has_buckets(scan.name) and scan.name != self._root:
            # Where the root event is the first of the match, no event lies before it.
            least, most = -1, 0 if self._relations.firsts == (self._root,) else 1
            away = self._windows_away(scan.name) or 0
            if any(one.is_behind for one in self._relations.missing if one.scan == scan):
                least -= away
            else:
                most += away
            own = self._bucket_of()
            yield exploded([plus(own, step) for step in range(least, most + 1)], self._bucket)
        for band, name in (*self._bands, *self._absent_bands):
            if band.second == scan.name:
                own = band_of(band.right, band, writer)
                steps = [plus(own, step) for step in (-1, 0, 1)]
                yield exploded(steps, name, distinct=True)

    def _windows_away(self, scan: str) -> int | None:
        """How many windows from a match what is absent at an end can lie; None: it has no buckets,
        because they are too many, or the window is measured otherwise."""
        reaching = [one.reach for one in self._relations.missing if one.scan.name == scan]
        if not reaching or reaching[0] is None:
            return 0
        assert self._size is not None
        assert self._query.window is not None
        counts = self._query.window.unit is core.WindowUnit.EVENTS
        # From its start, a match is within the windows of its events anyway.
        windows = -(-reaching[0].size // self._size) - reaching[0].from_start
        same = reaching[0].of_positions == counts
        return windows if same and windows <= MOST_WINDOWS_AWAY else None

    def _has_buckets(self, scan: str) -> bool:
        return self._size is not None and self._windows_away(scan) is not None

    def _bucket_of(self) -> exp.Expr:
        assert self._size is not None
        assert self._query.window is not None
        counts = self._query.window.unit is core.WindowUnit.EVENTS
        measured = column(None, self._columns.place if counts else self._columns.measure)
        return exp.IntDiv(this=measured, expression=number(self._size))

    # --- the matches ------------------------------------------------------------------------------

    def _matches(self) -> Select:
        """The SELECT of the matches, with positions."""
        joins = []
        joined = {self._root}
        waiting = list(self._conditions())
        for scan in self._relations.scans[1:]:
            joined.add(scan.name)
            ready = tuple(one for names, one in waiting if names <= joined)
            waiting = [(names, one) for names, one in waiting if not names <= joined]
            joins.append(Joining(identifier(scan.name), (*self._together(scan.name), *ready)))
        table: exp.Expr = identifier(self._root)
        if len(joins) == 1 and self._has_buckets(self._relations.scans[1].name):
            # Of two sides of one size Spark hashes the right one: that whose rows occur once.
            (joined_with,) = joins
            joins = [replace(joined_with, table=table)]
            table = joined_with.table
        joins += self._deadline.joins(self._root)
        # The rest names no event at all.
        rest = [one for _, one in waiting]
        rest += self._deadline.conditions()
        without = [Without(self._absent(one)) for one in self._relations.missing]
        return Select(
            tuple(self._outputs(positions=True)),
            table,
            joins=tuple(joins),
            where=(*rest, *without, _order_is_checked()),
            # Spark assumes that a table is as small as before its rows were repeated.
            merged=tuple(identifier(band.second) for band, _ in self._bands),
        )

    def _together(self, scan: str) -> list[exp.Expr]:
        """The equalities of an event and the root event of its match."""
        found: list[exp.Expr] = []
        if self._has_buckets(scan):
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
            yield frozenset({band.first, band.second}), same_part(band, name)
        for order in relations.before:
            follows = self._follows(order.first, order.second, adjacent=order.adjacent)
            yield frozenset({order.first, order.second}), follows
        for window in relations.within:
            name = self._columns.place if window.of_positions else self._columns.measure
            first, last = column(window.first, name), column(window.last, name)
            size = self._length(window.size, of_positions=window.of_positions)
            if self._size is not None:
                # In neighbouring buckets no difference overflows.
                fits = exp.LTE(this=exp.Sub(this=last, expression=first), expression=size)
            else:
                # A form by which DuckDB joins.
                fits = exp.LTE(this=last, expression=exp.Add(this=first, expression=size))
            yield frozenset({window.first, window.last}), fits
        for condition in relations.conditions:
            yield scans_of(condition), self._writer.condition(condition)

    def _length(self, size: int, *, of_positions: bool) -> exp.Expr:
        """The size of a window; a length of time in words as well."""
        is_time = self._relations.unit is core.WindowUnit.MICROSECONDS and not of_positions
        return duration(size) if is_time else number(size)

    def _follows(self, first: str, second: str, *, adjacent: bool = False) -> exp.Expr:
        place = self._columns.place
        one, other = column(first, place), column(second, place)
        if adjacent:
            return exp.EQ(this=other, expression=exp.Add(this=one, expression=number(1)))
        return exp.LT(this=one, expression=other)

    def _absent(self, missing: Missing) -> Select:
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
        if missing.reach is not None:
            between.append(self._reached(missing, missing.reach))
        near = [same_part(one, of) for one, of in self._absent_bands if one.second == name]
        conditions = map(self._writer.condition, missing.conditions)
        return Select(
            (exp.Literal.number(1),),
            identifier(name),
            where=(*self._together(name), *near, *between, *conditions),
        )

    def _reached(self, missing: Missing, reach: Reach) -> exp.Expr:
        """Whether an event lies at most so far before or behind a match."""
        name = self._columns.place if reach.of_positions else self._columns.measure
        event: exp.Expr = column(missing.scan.name, name)
        size = self._length(reach.size, of_positions=reach.of_positions)
        if missing.is_behind:
            first, last = self._deadline.counted_from(name), event
        else:
            first, last = event, least(missing.before, name)
        if self._has_buckets(missing.scan.name):
            return exp.LTE(this=exp.Sub(this=last, expression=first), expression=size)
        return exp.LTE(this=last, expression=exp.Add(this=first, expression=size))

    def _compared(self, operator: type[exp.Binary], scan: str, others: Sequence[str]) -> exp.Expr:
        """Whether this comparison holds between an event and one of some others."""
        place = self._columns.place
        ways = [operator(this=column(scan, place), expression=column(one, place)) for one in others]
        return ways[0] if len(ways) == 1 else exp.paren(exp.or_(*ways, copy=False), copy=False)

    # --- the output -------------------------------------------------------------------------------

    def _outputs(self, *, positions: bool) -> list[exp.Expr]:
        """The columns of a match."""
        query, columns, relations = self._query, self._columns, self._relations
        found = [
            named(column(self._root, of_key), identifier(key.name))
            for of_key, key in zip(columns.keys, query.partition_by, strict=True)
        ]
        if positions:
            found.append(named(least(relations.firsts, columns.place), "start_pos"))
            found.append(named(greatest(relations.lasts, columns.place), "end_pos"))
        found.append(named(least(relations.firsts, columns.time), "start_time"))
        found.append(named(greatest(relations.lasts, columns.time), "end_time"))
        if relations.shows_decided_time:
            found.append(named(self._deadline.decided_time(relations.lasts), DECIDED_TIME))
        for item in query.output:
            if isinstance(item, OutputExpression):
                found.append(named(self._computed(item), identifier(item.name)))
            elif positions:
                found.append(named(self._label(item), identifier(item.label)))
            elif item.attributes:
                found.append(named(self._plain(item), identifier(item.label)))
        return found

    def _label(self, item: OutputLabel) -> exp.Expr:
        """The events of a label as structs, each once and in order."""
        scans = self._relations.labels.get(item.label, ())
        fields = [("pos", self._columns.place), *attributes(item)]
        array: exp.Expr = exp.Array(expressions=[struct(scan, fields) for scan in scans])
        return self._sorted(array) if self._sorts(item) else array

    def _plain(self, item: OutputLabel) -> exp.Expr:
        """The same without their places."""
        if self._sorts(item):
            return self._stripped(self._label(item), item)
        scans = self._relations.labels.get(item.label, ())
        return exp.Array(expressions=[struct(scan, attributes(item)) for scan in scans])

    def _sorts(self, item: OutputLabel) -> bool:
        scans = self._relations.labels.get(item.label, ())
        return len(scans) > 1 and not self._relations.in_order

    def _sorted(self, array: exp.Expr) -> exp.Expr:
        """The values of an array, each once and in order."""
        of = "ARRAY" if self._dialect == "spark" else "LIST"
        array = exp.Anonymous(this=f"{of}_DISTINCT", expressions=[array])
        return exp.Anonymous(this=f"{of}_SORT", expressions=[array])

    def _stripped(self, events: exp.Expr, item: OutputLabel) -> exp.Expr:
        """The events of a label without their places."""
        shown = sql(struct("event", attributes(item)), self._dialect)
        if self._dialect == "spark":
            text = f"TRANSFORM({sql(events, 'spark')}, event -> {shown})"
        else:
            # sqlglot writes the arrow of lambdas as older versions of DuckDB do.
            text = f"LIST_TRANSFORM({sql(events, 'duckdb')}, LAMBDA event: {shown})"
        return exp.Var(this=text)

    def _computed(self, item: OutputExpression) -> exp.Expr:
        value = item.value
        if isinstance(value, core.Collection):
            scans = self._relations.labels.get(value.label, ())
            return exp.Array(expressions=[column(scan, value.attribute) for scan in scans])
        if value.type is core.DataType.INTERVAL:
            raise NotRelational("an item of SELECT is an INTERVAL", item.span)
        return self._writer.value(output_value(self._relations, value))

    def _once_each(self, found: Select | Union) -> tuple[Select, list[exp.Expr]]:
        """The SELECT without matches that were found several times, with positions, and its columns
        without them; `found`: all that were.

        Matches are told apart by places and not by values, which Spark would change: in a GROUP BY
        −0.0 becomes 0.0.
        """
        keys = [key.name for key in self._query.partition_by]
        by = (*keys, "start_pos", "end_pos", *(one.output_name for one in self._places()))
        shown, plain = (
            [
                (
                    column(None, one.output_name)
                    if one.output_name in by
                    else self._any_of(one.output_name, positions=positions)
                )
                for one in self._outputs(positions=positions)
            ]
            for positions in (True, False)
        )
        grouped = tuple(column(None, name) for name in by)
        return Select(tuple(shown), (found, identifier("found")), by=grouped), plain

    def _any_of(self, name: str, *, positions: bool) -> exp.Expr:
        """A column of a match that was found once or several times."""
        if name == DECIDED_TIME and self._relations.shows_decided_time:
            return named(exp.Min(this=column(None, name)), name)  # it is decided once it is at all
        value: exp.Expr = exp.AnyValue(this=column(None, name))
        items = {one.label: one for one in self._query.output if isinstance(one, OutputLabel)}
        if not positions and name in items:
            value = self._stripped(value, items[name])
        return named(value, identifier(name))

    def _places(self) -> list[exp.Expr]:
        """The places of the events of each label that is kept, which tell matches apart."""
        found: list[exp.Expr] = []
        for label in self._relations.kept:
            scans = self._relations.labels.get(label, ())
            places = exp.Array(expressions=[column(scan, self._columns.place) for scan in scans])
            sorts = len(scans) > 1 and not self._relations.in_order
            value = self._sorted(places) if sorts else places
            found.append(named(value, f"places_{len(found) + 1}"))
        return found


@cache
def _order_is_checked() -> exp.Expr:
    """A condition that reads the table that checks the order of events."""
    return exp.Subquery(this=exp.select("passed").from_("order_check"))


def comment(text: str) -> str:
    """A text that ends no comment."""
    return visible(" ".join(text.split()))
