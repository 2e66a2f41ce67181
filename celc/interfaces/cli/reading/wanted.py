"""The columns that `celc run` wants from a file of events, and the messages where one is missing.

A file may lack an attribute for two reasons. There was no value for it: this is NULL. Or the file
spells it differently: this must not be NULL silently. So where the file has a similar name, that is
an error. Where it has none, the attribute is NULL, with a warning at the end of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from celc_runtime.arrow.events.paths import arrow_fields, path_of
from celc_runtime.arrow.fitting import fits
from celc_runtime.chain.columns import levels_of, source_of
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.schemas import named_type
from celc_runtime.query import CompiledQuery
from celc_runtime.rules.inner import over_events

from celc.core.formula import Query
from celc.diagnostics.messages.wording import available, guess, quote, quoted
from celc.interfaces.cli.problems import CommandProblem


@frozen
class Wanted:
    """The columns that a query reads from a file."""

    query: str
    schema: pa.Schema  # their types; NULL stands for any type that the file has
    required: frozenset[str]
    """Columns that every file must have: types, streams, partitions and order."""
    type_name: str  # the column of the event types, which may be missing if it is not required
    owners: Mapping[str, frozenset[str]]  # the event types that declare each attribute
    declared: frozenset[str]  # all names with a meaning in the streams

    @classmethod
    def of(cls, query: Query, compiled: CompiledQuery, others: Iterable[Query] = ()) -> Wanted:
        """The columns that a compiled query reads, and the names that its streams declare. `others`
        are the queries of the file, some of which it may read."""
        plan = source_of(compiled.program).plan
        added: frozenset[str] = frozenset()
        if query.parameters is not None:
            # No file of events has the columns of the parameter table.
            added = query.parameters.columns_added
        if plan.source.parameters is not None:
            plan = over_events(plan)
        owners: dict[str, frozenset[str]] = {}
        read_by = levels_of(compiled.program)
        chain = [query, *(one for one in others if one is not query and one.name in read_by)]
        streams = {s.name: s for one in chain for s in one.streams if s.name not in one.reads}
        types = [one for stream in streams.values() for one in stream.event_types]
        added |= {one.begin.name for one in chain if one.begin is not None}
        for one in types:
            for attribute in one.attributes:
                if attribute.name in added:
                    continue
                owners[attribute.name] = owners.get(attribute.name, frozenset()) | {one.name}
        source = plan.source
        read = {attribute.name for attribute in source.attributes}
        # A file may lack all events of a type that has an attribute of the key.
        required = {*read.intersection(source.key_columns), *source.order_by, *source.tiebreak}
        required |= {name for name in (plan.window_attribute,) if name is not None}
        required |= {source.type_name} if source.type_column else set()
        required |= {"stream"} if source.stream_column else set()
        return cls(
            query.name,
            compiled.file_schema,
            frozenset(required),
            source.type_name,
            owners,
            frozenset({*owners, source.type_name, "stream"}),
        )

    def with_others(self, others: Iterable[Wanted]) -> Wanted:
        """The columns that this query reads, and those of others in the same types."""
        every = (self, *others)
        fields: dict[str, pa.Field] = {}
        owners: dict[str, frozenset[str]] = {}
        for one in every:
            for field in one.schema:
                if field.name not in fields or pa.types.is_null(fields[field.name].type):
                    fields[field.name] = field
            for name, types in one.owners.items():
                owners[name] = owners.get(name, frozenset()) | types
        return Wanted(
            ", ".join(one.query for one in every),
            pa.schema(list(fields.values())),
            frozenset().union(*(one.required for one in every)),
            self.type_name,
            owners,
            frozenset().union(*(one.declared for one in every)),
        )

    def reading(self, schema: pa.Schema) -> Wanted:
        """The same with columns besides that bent forms of the query read: it can read fewer, as
        where a condition is never true."""
        more = (field for field in schema if field.name not in self.schema.names)
        return replace(self, schema=pa.schema([*self.schema, *more]))

    @property
    def types(self) -> frozenset[str]:
        """The event types that the streams declare."""
        return frozenset().union(*self.owners.values())

    def refuse_unread(self, file: str, format: str, present: Collection[str]) -> None:
        """Raises CommandProblem where a format of text has no values of a column's type."""
        refused = {"csv": pa.types.is_nested, "json": _has_maps}.get(format)
        for field in self.schema:
            if refused is not None and field.name in present and refused(field.type):
                remedy = "CSV has no such values: give the events as JSON lines or Parquet"
                if format == "json":
                    remedy = (
                        "no object of JSON is read as such a value: declare a STRUCT with the keys "
                        "that the query needs, or give the events as Parquet"
                    )
                raise CommandProblem(
                    f"{file}: query {self.query!r} declares {field.name!r} as "
                    f"{named_type(field.type)}, and {remedy}"
                )

    def misfits(self, given: pa.Schema) -> frozenset[str]:
        """The columns of a file that are read, and whose type does not fit the declared one."""
        types = {field.name: named_type(field.type) for field in self.schema}
        # Whole numbers are INTERVALs in Parquet.
        known = {name: type for name, type in types.items() if type and type != "INTERVAL"}
        return frozenset(
            field.name
            for field in given
            if field.name in known and not fits(field.type, known[field.name])
        )

    def refuse_misspelt(self, file: str, names: Iterable[str], known: Collection[str]) -> None:
        """Raises CommandProblem where the file has a name like one of the missing `names`. A name
        that the streams declare counts only as itself."""
        others = [name for name in known if name not in self.declared]
        for name in names:
            if meant := _guess(name, others):
                if name == self.type_name:
                    raise CommandProblem(
                        f"{file}: no row has {quote(name)}, the column of the event types; {meant} "
                        "Name it with --type-column"
                    )
                raise CommandProblem(
                    f"{file}: no row has {quote(name)}, which query {quote(self.query)} reads; "
                    f"{meant} Upper and lower case must agree. Correct the name in the query or "
                    "in the file, or declare the other name too if the file has both"
                )

    def refuse_lacking(self, file: str, names: Iterable[str], known: Collection[str]) -> None:
        """Raises CommandProblem for columns that a file with its own schema lacks."""
        if lacking := list(names):
            columns, are = ("the columns", "are") if len(lacking) > 1 else ("the column", "is")
            raise CommandProblem(
                f"{file}: query {quote(self.query)} cannot do without {columns} {quoted(lacking)}, "
                f"which {are} missing; {available('the columns are', known)[0]}"
                f"{another_delimiter(known)}{self._other_types(lacking)}"
            )

    def _other_types(self, lacking: Collection[str]) -> str:
        """How to name the column of the event types, if that is missing."""
        if [*lacking] != [self.type_name]:
            return ""
        return "; if another column has the event types, name it with --type-column"

    def words_on(self, file: str, lacking: Collection[str]) -> str:
        """The message on attributes that no row has."""
        them = "it is" if len(lacking) == 1 else "they are"
        return (
            f"{file}: no row has {quoted(lacking)}, which query {quote(self.query)} reads: {them} "
            "NULL in all events"
        )


def another_delimiter(known: Collection[str]) -> str:
    """A hint for a CSV file whose names all stand in one column: another delimiter."""
    if len(known) == 1:
        (name,) = known
        for sign in (";", "\t", "|"):
            if sign in name:
                shown = "\\t" if sign == "\t" else sign
                return f"; if {sign!r} is between its fields, give --delimiter '{shown}'"
    return ""


def _guess(name: str, others: Collection[str]) -> str:
    """The question whether another name is meant; empty where no name is similar."""
    same = [other for other in others if other.casefold() == name.casefold()]
    return "".join(guess(name, same or [other for other in others if _can_be(name, other)]))


def _can_be(name: str, other: str) -> bool:
    """Whether a likeness of two names counts. Names of fields in one struct are alike because of
    the struct's name, which does not count."""
    before, _, field = name.rpartition(".")
    other_before, _, other_field = other.rpartition(".")
    if name.startswith(f"{other}."):
        return False
    return before != other_before or bool(guess(field, [other_field]))


def leads_somewhere(name: str, given: Any) -> bool:
    """Whether a name is a column, or a field of one; `given` are the columns of a file."""
    try:
        return path_of(name, given, arrow_fields) is not None
    except LookupError:
        return False


def inner_names(given: Any, before: str = "") -> Iterator[str]:
    """The names of the fields in columns, as paths with dots."""
    for name, type in given:
        for inner, below in arrow_fields(type):
            yield f"{before}{name}.{inner}"
            yield from inner_names([(inner, below)], f"{before}{name}.")


def _has_maps(type: pa.DataType) -> bool:
    inside = [type.field(place).type for place in range(type.num_fields)]
    return pa.types.is_map(type) or any(map(_has_maps, inside))
