"""A compiled file as an object with the names of its generated module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.events.sorting import is_sorted_stream, sort_columns
from celc_runtime.chain.columns import source_of
from celc_runtime.display import file_text, queries_html
from celc_runtime.jit.shipping import TOLD, module_of, text_of
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.near.queries import SHARE
from celc_runtime.plan.plan import Plan
from celc_runtime.query import CompiledQuery
from celc_runtime.rules.inner import over_events
from celc_runtime.run.by_keys import why_at_once

from celc.diagnostics.errors import Diagnostic
from celc.driver.large_inputs import (
    TIMES,
    gathered,
    matches_in_ranges,
    too_large,
    usable_memory,
)

if TYPE_CHECKING:
    from celc_runtime.chain.streams.near.query import NearQuery


class Matcher:
    """A compiled file, with the attributes of its generated module (`match_table`, `match`, …).

    It loads the module's text, or the parts of one. `source` is the text as `celc compile` writes
    it. It is formatted only when it is asked for, because black takes most of the time of a
    compilation. `warnings` are those of the compiler, `queries` the compiled queries by name.
    `again` compiles the file with another value of `ties` and other order columns, and `near` the
    bent forms of a query.
    """

    def __init__(
        self,
        source: str | tuple[str, ...],
        warnings: tuple[Diagnostic, ...] = (),
        again: Callable[..., Matcher] | None = None,
        near: Callable[..., NearQuery] | None = None,
    ) -> None:
        self._text = source
        self.warnings = warnings
        self._again = again
        self._near = near
        self._near_queries: dict[str, NearQuery] = {}
        self._module = module_of("".join(source))
        self._module.__dict__[TOLD] = True  # by the warnings of the compiler

    @property
    def source(self) -> str:
        if isinstance(self._text, tuple):
            from celc.codegen.text.layout import formatted

            self._text = formatted(self._text)
        return self._text

    @property
    def queries(self) -> dict[str, Any]:
        """The compiled queries by name, in the order of the file.

        Each is a `CompiledQuery`, or a `RowPatternQuery` for MATCH_RECOGNIZE.
        """
        return dict(self._module.QUERIES)

    def with_options(
        self,
        *,
        order_by: str | Sequence[str] | None = None,
        ties: str | None = None,
        **options: Any,
    ) -> Any:
        """The query of a file with one query, with other options.

        See `CompiledQuery.with_options` and `RowPatternQuery.with_options`. Simultaneous events
        need other code, so the file is compiled again for them. Raises CelError where the query has
        no meaning with them.
        """
        query = self._module.with_options.__self__
        if not isinstance(query, CompiledQuery):
            given = {"order_by": order_by, "ties": ties}
            options |= {name: value for name, value in given.items() if value is not None}
            return query.with_options(**options)
        if ties in (None, query.plan.source.ties) or self._again is None:
            return query.with_options(order_by=order_by, ties=ties, **options)
        made = self._again(ties=ties, order_by=order_by or query.plan.source.order_by or None)
        changed: CompiledQuery = made.with_options(**options)
        return changed

    def near_misses(
        self,
        events: Any,
        *,
        near: float | Mapping[str, float] = SHARE,
        parts: str | None = None,
        query: str | None = None,
        **parameters: Any,
    ) -> pa.Table:
        """What is almost a match: matches of a query with one part bent that share no event with a
        match of the query, of each start the nearest, on this machine.

        events: as for `match_table`. near: how far the value of a comparison may move, over its
        absolute value; or an amount for each attribute. parts: "all": comparisons that cannot bend
        are taken away, one at a time. query: its name, where the file has several. parameters: of a
        query FOR EACH its table.

        The columns are those of `match_table`, then `part` (the text of what was bent), `line` and
        `column` (its place, from 1), `asked`, `found` (texts), and `amount` (from 0 to 1: how far
        it was bent over how far it may). Warns of clauses that are left out. Raises CelError where
        a query has no near misses by its meaning, ValueError for wrong options and names, and what
        `match_table` raises.
        """
        return self._near_query(near, parts, query).near_misses(events, **parameters)

    def match_stream(
        self,
        events: Any,
        *,
        near: float | Mapping[str, float] | None = None,
        parts: str | None = None,
        query: str | None = None,
        **options: Any,
    ) -> Any:
        """The matches of a streaming DataFrame, each as soon as it is certain; see
        `CompiledQuery.match_stream`, whose options these are.

        near: as for `near_misses`; then the stream has near misses as well, and a column `kind`, as
        `NearQuery.match_stream` says. parts, query: as for `near_misses`. Raises what these raise.
        """
        if near is not None:
            return self._near_query(near, parts, query).match_stream(events, **options)
        if parts is not None:
            raise ValueError("parts says which parts bend for near misses: give near as well")
        if query is None:
            return self._module.match_stream(events, **options)
        if query not in self.queries:
            raise self._unknown(query)
        return self.queries[query].match_stream(events, **options)

    def _near_query(
        self, near: float | Mapping[str, float], parts: str | None, query: str | None
    ) -> NearQuery:
        """A query with its bent forms, compiled once."""
        if parts not in (None, "all"):
            raise ValueError(f"parts must be 'all' or None, not {parts!r}")
        if self._near is None or not isinstance(next(iter(self.queries.values())), CompiledQuery):
            raise ValueError("near misses are of queries in CEL that celc has compiled from a text")
        if query is not None and query not in self.queries:
            raise self._unknown(query)
        if query is None and len(self.queries) > 1:
            names = ", ".join(map(repr, self.queries))
            raise ValueError(f"say of which query: query=… is one of {names}")
        wanted = repr((query, near, parts))
        if wanted not in self._near_queries:
            self._near_queries[wanted] = self._near(query, near, parts == "all")
        return self._near_queries[wanted]

    def _unknown(self, query: str) -> ValueError:
        return ValueError(
            f"there is no query {query!r}; there are {', '.join(map(repr, self.queries))}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._module, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._module)})

    def __repr__(self) -> str:
        queries = list(self.queries.values())
        if not isinstance(queries[0], CompiledQuery):
            return repr(queries[0])
        return file_text(query.plan for query in queries)

    def _repr_html_(self) -> str:
        queries = list(self.queries.values())
        if not isinstance(queries[0], CompiledQuery):
            return str(queries[0]._repr_html_())
        return queries_html([query.plan for query in queries], self._module.QUERY)

    def __reduce__(self) -> tuple[type[Matcher], tuple[Any, ...]]:
        return Matcher, (self.source, self.warnings, self._again, self._near)


def loaded_text(matcher: Matcher) -> str:
    """The text of its module as it was loaded, which nobody has formatted."""
    return text_of(matcher._module.__dict__)


def matches_of(
    query: CompiledQuery,
    read: Callable[[], Iterable[pa.RecordBatch]],
    tables: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Any] | None = None,
    threads: int | None = None,
    memory: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The matches in events that can be read more than once; `bounds`: `after` and `until` of a
    slice. threads: as for `match_table`; for several, all events are gathered.

    If the events are sorted, they are matched batch by batch in bounded memory; a first reading
    finds this out. Other events are gathered and sorted. All events are gathered for a query with a
    parameter set, whose table is in `tables`, and for a query over queries.

    memory: bytes that the run may take, about; None: three quarters of what is free. Where gathered
    events would take more, those of a query with PARTITION BY are read one range of keys after
    another (`celc_runtime.run.by_keys`). Others are gathered all the same; with `memory` EventError
    is raised for them.
    """
    plan = query.plan if query.plan.source.parameters is None else over_events(query.plan)
    plan = source_of(query.program).plan if plan.source.reads else plan
    alone = threads in (None, 1) and not reads_more(query)
    if alone and _is_sorted(query.plan, read):
        yield from query.match_arrow(_conformed(plan.of_inputs, read), **(bounds or {}))
        return
    why = why_at_once(query.plan) or ("they give one slice" if bounds else "")
    most = usable_memory() if memory is None else memory
    limit = None if most is None or (why and memory is None) else most // TIMES
    conformed = partial(_conformed, plan.of_inputs, read)
    found = gathered(conformed, query.file_schema, limit)
    if isinstance(found, pa.Table):
        given = {**(bounds or {}), **(tables or {})}
        yield from query.match_table(found, threads=threads, **given).to_batches()
        return
    assert most is not None
    if why:
        raise too_large(query.program, why, most)
    yield from matches_in_ranges(query.program, found, conformed, most, threads)


def reads_more(query: CompiledQuery) -> bool:
    """Whether a query reads more than its events: a table of parameters, the rows of queries."""
    return query.plan.source.parameters is not None or bool(query.plan.source.reads)


def sharing(queries: Mapping[str, CompiledQuery]) -> dict[str, CompiledQuery]:
    """The queries that can share a reading of their events, where there are several."""
    from celc_runtime.many.groups import reading_all

    found = {name: query for name, query in queries.items() if not reads_more(query)}
    try:
        if len(found) > 1:
            reading_all({name: query.program for name, query in found.items()})
            return found
    except EventError:
        pass  # two of them read a column in two types
    return {}


def matches_together(
    queries: Mapping[str, CompiledQuery], read: Callable[[], Iterable[pa.RecordBatch]]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The matches of queries in the same events, each batch with the name of its query.

    The queries are those of `sharing`. If the events are sorted for all of them, they are matched
    in bounded memory, with a reading for each order; else they are gathered once.
    """
    from celc_runtime.many.groups import reading_all, reading_groups
    from celc_runtime.many.tables import answers_of_all, answers_of_sorted

    programs = {name: query.program for name, query in queries.items()}
    reading = reading_all(programs)
    groups = reading_groups(programs.values())
    late = any(program.compares_late for program in programs.values())
    if not late and all(_is_sorted(group.plan, read) for group in groups):
        for group in groups:
            yield from answers_of_sorted(group, _conformed(group.plan.of_inputs, read))
    else:
        conformed = partial(_conformed, reading.plan.of_inputs, read)
        table = gathered(conformed, reading.file_schema)
        assert isinstance(table, pa.Table), "no size was given that it may have"
        yield from answers_of_all(programs, table)


def _is_sorted(plan: Plan, read: Callable[[], Iterable[pa.RecordBatch]]) -> bool:
    """Whether the events are known to come in the order of a query."""
    # In the order of a column that is not there yet, no batch is known to be sorted.
    if plan.source.made.intersection(sort_columns(plan)):
        return False
    # Nor by a key that is chosen by event types, some of which get their name later.
    if plan.source.rest and plan.source.chosen_keys:
        return False
    return is_sorted_stream(plan.of_inputs, _conformed(plan.of_inputs, read))


def _conformed(
    plan: Plan, read: Callable[[], Iterable[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    # Files can give one column several types, whose values cannot be compared.
    rows = 0
    for batch in read():
        yield conforming(plan, batch, rows)
        rows += len(batch)
