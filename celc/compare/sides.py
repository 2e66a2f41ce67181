"""One of two queries that are compared: compiled as it is, and over many streams at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from celc.compare.texts import STREAM_NUMBER, over_streams
from celc.core import formula as core
from celc.core.declarations import undeclared_text
from celc.diagnostics.source import Source
from celc.driver.brief_runs import BriefQuery
from celc.driver.pipeline import Compilation, Stages, compile_files
from celc.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

Row = str
"""A row of an answer as a text: equal texts, equal rows."""


class Side:
    """A query of a text, with what the comparison asks of it."""

    def __init__(
        self, source: Source, options: Options, *, query: str | None = None, schema: Any = None
    ) -> None:
        """Compile a text. `query`: which query of it, None: its only one.

        Raises CelError with all errors of the text, ValueError where `query` does not name one.
        """
        self.options = replace(
            options, at_end="closed", positions=True, match_id=False, joins=False
        )
        compilation = compile_files([source], self.options, schema=schema)
        (file,) = compilation.files
        declared = undeclared_text((one.query, file.tree) for one in file.queries)
        if declared:
            source = Source(source.name, declared + source.text)
            compilation = compile_files([source], self.options)
        self.source = source
        self.compilation: Compilation = compilation
        names = compilation.names
        if query is None and len(names) > 1:
            raise ValueError(f"say of which query: {', '.join(map(repr, names))}")
        if query is not None and query not in names:
            raise ValueError(
                f"there is no query {query!r}; there are {', '.join(map(repr, names))}"
            )
        self.number = 0 if query is None else names.index(query)

    @property
    def stages(self) -> Stages:
        """The results of all passes for the query."""
        return self.compilation.queries[self.number]

    @property
    def query(self) -> core.Query:
        """The query, resolved."""
        return self.stages.query

    @cached_property
    def read(self) -> tuple[Stages, ...]:
        """The query, and all queries that it reads, directly or not."""
        known = {one.query.name: one for one in self.compilation.queries}
        found: dict[str, Stages] = {}
        waiting = [self.query.name]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = known[name]
                waiting += known[name].query.reads
        return tuple(found.values())

    @cached_property
    def types(self) -> dict[tuple[str, str], core.EventType]:
        """The declared event types that the query reads, by stream and name, without attributes
        that the compiler has added."""
        found: dict[tuple[str, str], core.EventType] = {}
        for stages in self.read:
            query = stages.query
            added = {one.name for one in query.derived}
            added |= set() if query.parameters is None else query.parameters.columns_added
            if query.begin is not None and query.reads:
                added.add(query.begin.name)
            for stream in query.streams:
                if stream.name in query.reads:
                    continue
                for one in stream.event_types:
                    if not one.is_rest:
                        kept = tuple(a for a in one.attributes if a.name not in added)
                        found[one.stream, one.name] = replace(one, attributes=kept)
        return found

    def lacking(self, events: pa.Table) -> frozenset[str]:
        """The columns of a stream that are attributes of other event types than it has."""
        types = {*events.column(self.options.type_column or "type").to_pylist()}
        here: set[str] = set()
        others: set[str] = set()
        for (_, name), event_type in self.types.items():
            names = {attribute.name for attribute in event_type.attributes}
            (here if name in types else others).update(names)
        return frozenset(others - here)

    @cached_property
    def alone(self) -> BriefQuery:
        """The query as users run it."""
        return self._loaded(self.compilation)

    @cached_property
    def over_streams(self) -> BriefQuery:
        """The query over many streams in one table, each with its number."""
        (file,) = self.compilation.files
        return self._loaded(compile_files([over_streams(self.source, file.tree)], self.options))

    def _loaded(self, compilation: Compilation) -> BriefQuery:
        return BriefQuery(compilation, compilation.names[self.number])


def rows_of(answer: pa.Table) -> Counter[Row]:
    """The rows of an answer, whatever their order."""
    return Counter(map(row_text, answer.to_pylist()))


def row_text(row: Any) -> Row:
    """A row as a text. The order of columns and attributes does not count: they have names."""
    if isinstance(row, dict):
        return "".join(f"{name!r}: {row_text(row[name])}, " for name in sorted(row))
    return f"[{', '.join(map(row_text, row))}]" if isinstance(row, list) else repr(row)


def rows_by_stream(answer: pa.Table) -> dict[int, Counter[Row]]:
    """The rows of an answer in many streams, by the number of the stream."""
    found: dict[int, Counter[Row]] = {}
    for row in answer.to_pylist():
        number = row.pop(STREAM_NUMBER)
        found.setdefault(number, Counter())[row_text(row)] += 1
    return found
