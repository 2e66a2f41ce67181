"""What reads the SQL around a clause: a session of Spark, or DuckDB.

A host reads queries, gives celc their rows and types, and reads answers back as tables. It leaves
nothing in the user's session: Spark and DuckDB take DataFrames and Arrow tables by the values that
a text names, for as long as their answer lives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import filterfalse
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import statements as messages
from celc.statements.words import Word

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import DataFrame, SparkSession

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any] | None
"""Values for `?` in their order, or for `:name` by name."""


class HostError(Exception):
    """A host refuses a statement. statement: as it was given; rewritten: as the host was given
    it, with a table in the place of each clause."""

    def __init__(self, host: str, reason: str, statement: str, rewritten: str) -> None:
        super().__init__(
            f"{host} refuses the statement: {reason.strip()}\n\n{statement.strip()}\n\n"
            "help: the attribute `rewritten` of this error has the text that the host was given"
        )
        self.host, self.reason = host, reason
        self.statement, self.rewritten = statement, rewritten

    def __reduce__(self) -> tuple[type[HostError], tuple[str, str, str, str]]:
        return HostError, (self.host, self.reason, self.statement, self.rewritten)


class Host(ABC):
    """What celc asks of a host. A text is in its own dialect; tables are by the names that
    `table` has put there."""

    title: str
    dialect: str
    parameter_signs: tuple[str, ...] = (":",)
    """What stands before the name of a parameter."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """A name as it is written."""

    @abstractmethod
    def verbatim(self, text: str) -> str:
        """A part of a statement, where tables are named beside it."""

    @abstractmethod
    def table(self, name: str) -> str:
        """The place of a table in a text."""

    def parameter(self, name: str) -> str:
        """A named parameter in a text."""
        return f":{name}"

    def unread(self, table: str) -> Sequence[pa.Field]:
        """The columns of a table that keep the host from reading it."""
        return ()

    @abstractmethod
    def rows(self, text: str, parameters: Parameters, tables: Mapping[str, Any]) -> Any:
        """What a query reads, for `schema` and `matched`."""

    @abstractmethod
    def schema(self, rows: Any) -> Any:
        """The columns of rows, in a form that `celc.compile` takes."""

    @abstractmethod
    def matched(self, query: Any, rows: Any, hidden: list[str]) -> Any:
        """The answer of a clause as a table of the host, without some columns."""

    @abstractmethod
    def answer(self, text: str, parameters: Parameters, tables: Mapping[str, Any]) -> Any:
        """What the user gets."""


class Spark(Host):
    """A session, classic or Connect. All is lazy: the answer is a DataFrame."""

    title, dialect = "Spark", "spark"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def verbatim(self, text: str) -> str:
        # Spark finds DataFrames by Python's format fields.
        return text.replace("{", "{{").replace("}", "}}")

    def table(self, name: str) -> str:
        return "{" + name + "}"

    def rows(self, text: str, parameters: Parameters, tables: Mapping[str, Any]) -> DataFrame:
        if not tables:
            text = text.replace("{{", "{").replace("}}", "}")
        arguments: Any = dict(parameters) if isinstance(parameters, Mapping) else parameters
        return self._session.sql(text, arguments or None, **tables)

    def schema(self, rows: DataFrame) -> Any:
        return rows.schema

    def matched(self, query: Any, rows: DataFrame, hidden: list[str]) -> Any:
        return query.match(rows).drop(*hidden)

    answer = rows


class Duck(Host):
    """A connection of DuckDB. A clause is answered at once, as an Arrow table; the answer is a
    relation."""

    title, dialect = "DuckDB", "duckdb"
    parameter_signs = (":", "$")

    def __init__(self, connection: duckdb.DuckDBPyConnection, threads: int | None = None) -> None:
        self._connection = connection
        self._threads = threads  # as `match_table` takes them

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def verbatim(self, text: str) -> str:
        return text

    def table(self, name: str) -> str:
        return name

    def parameter(self, name: str) -> str:
        return f"${name}"

    def rows(self, text: str, parameters: Parameters, tables: Mapping[str, Any]) -> pa.Table:
        return self.answer(text, parameters, tables).to_arrow_table()

    def schema(self, rows: pa.Table) -> Any:
        return rows.schema

    def matched(self, query: Any, rows: pa.Table, hidden: list[str]) -> pa.Table:
        found: pa.Table = query.match_table(rows, threads=self._threads).drop_columns(hidden)
        return found

    def answer(self, text: str, parameters: Parameters, tables: Mapping[str, Any]) -> Any:
        arguments: Any = dict(parameters) if isinstance(parameters, Mapping) else parameters
        # DuckDB looks for a name that its catalog lacks among the variables of the caller, and its
        # relation keeps what it has found.
        called = {"ask": self._connection.sql, "text": text, "given": arguments or None}
        return eval("ask(text, params=given)", called | dict(tables))


class Tables(Duck):
    """Arrow tables by their names, read by a DuckDB of their own. The answer is an Arrow table."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        try:
            import duckdb
        except ImportError as problem:
            raise ImportError(
                "DuckDB reads the statement around MATCH_RECOGNIZE, and is not installed: "
                "pip install duckdb"
            ) from problem

        super().__init__(duckdb.connect())
        self._unread: dict[str, list[pa.Field]] = {}
        for name, table in tables.items():
            try:
                self._connection.register(name, table)
            except duckdb.NotImplementedException:
                schema = getattr(table, "schema", None)
                wrong = filterfalse(self._reads, schema if isinstance(schema, pa.Schema) else ())
                self._unread[name.casefold()] = [*wrong]
                if not self._unread[name.casefold()]:
                    raise

    def unread(self, table: str) -> Sequence[pa.Field]:
        return self._unread.get(table.casefold(), ())

    def _reads(self, field: pa.Field) -> bool:
        """Whether DuckDB has the type of a column."""
        import duckdb

        try:
            duckdb.from_arrow(pa.schema([field]).empty_table(), connection=self._connection)
        except duckdb.NotImplementedException:
            return False
        return True

    def answer(self, text: str, parameters: Parameters, tables: Mapping[str, Any]) -> Any:
        found = super().answer(text, parameters, tables)
        return None if found is None else found.to_arrow_table()

    def rows(self, text: str, parameters: Parameters, tables: Mapping[str, Any]) -> pa.Table:
        found: pa.Table = self.answer(text, parameters, tables)
        return found


def host_of(host: Any) -> Host:
    """What reads the SQL: a SparkSession, a connection of DuckDB, or a dictionary of tables.

    Raises TypeError for anything else.
    """
    if isinstance(host, Mapping):
        return Tables(host)
    module = type(host).__module__.partition(".")[0]
    if module == "pyspark" and hasattr(host, "sql"):
        return Spark(host)
    if module in ("duckdb", "_duckdb") and hasattr(host, "sql"):
        return Duck(host)
    raise TypeError(
        "celc.sql runs on a SparkSession, a connection of DuckDB or a dictionary of Arrow tables, "
        f"not on {type(host).__name__}"
    )


def refuse_unread(host: Host, words: list[Word], found: Diagnostics) -> None:
    """Raises `CelError` where a table is named that the host cannot read."""
    named = {word.text.casefold(): word for word in reversed(words) if word.can_be_name}
    for word in named.values():
        for field in host.unread(word.text):
            given = field.name, str(field.type), _cast_of(field.type)
            found.add(messages.unread_column(host.title, word.text, *given, word.span))
    found.raise_errors()


def _cast_of(type: pa.DataType) -> str | None:
    """The type to which a column is cast that a host cannot read, as Python writes it; None: it
    has no such type."""
    if pa.types.is_float16(type):
        return "pa.float32()"
    if pa.types.is_decimal256(type):
        return f"pa.decimal128({min(type.precision, 38)}, {min(type.scale, 38)})"
    return None
