"""Queries over queries: what each query reads.

A chain is shown level by level. A query that reads only streams has level 1. Any other query is one
level above the highest query that it reads. Rejected: a tree below each query. It would show a
query once for each way to it, and there can be 2ⁿ ways with n queries.
"""

from collections.abc import Iterator, Mapping, Sequence

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.traversal import formulas_in
from celc.interfaces.explain.graphs import graph_text
from celc.interfaces.explain.stages import text_of
from celc.resolve.readers import columns_of_rows, why_rows_are_not_read


@frozen
class Reading:
    """One name in FROM, a stream or a query, and those of its event types that the formula uses."""

    name: str
    of_query: bool
    types: tuple[str, ...]


@frozen
class Level:
    """A query of a chain, and the number of the highest level below it plus one."""

    number: int
    query: core.Query
    readings: tuple[Reading, ...]


def levels_of(chosen: Sequence[core.Query], file: Sequence[core.Query]) -> tuple[Level, ...]:
    """The chosen queries and all that they read, each once, in the order of the file."""
    below: set[str] = {query.name for query in chosen}
    for query in reversed(file):
        if query.name in below:
            below.update(query.reads)
    found: dict[str, Level] = {}
    for query in file:
        if query.name in below:
            number = 1 + max((found[name].number for name in query.reads), default=0)
            found[query.name] = Level(number, query, tuple(_readings(query)))
    return tuple(found.values())


def _readings(query: core.Query) -> Iterator[Reading]:
    atoms = [part for part in formulas_in(query.formula) if isinstance(part, core.Atom)]
    named = {(one.stream, one.name) for atom in atoms for one in atom.types}
    for stream in query.streams:
        types = [one.name for one in stream.event_types if (stream.name, one.name) in named]
        yield Reading(stream.name, stream.name in query.reads, tuple(types))


# --- text -----------------------------------------------------------------------------------------


def dump_chain(chosen: Sequence[core.Query], file: Sequence[core.Query]) -> str:
    """Each level with its queries: what they read, their keys, and the columns of their rows."""
    levels = levels_of(chosen, file)
    lines: list[str] = []
    for number in range(1, 1 + max(level.number for level in levels)):
        lines.append(f"level {number}")
        for level in levels:
            if level.number == number:
                lines += _query_lines(level)
    return text_of(lines)


def _query_lines(level: Level) -> list[str]:
    query = level.query
    lines = [f"  query {query.name}"]
    for one in level.readings:
        if one.of_query:
            lines.append(f"    reads the rows of {one.name}")
        else:
            types = f": {', '.join(one.types)}" if one.types else ", but no event type of it"
            lines.append(f"    reads stream {one.name}{types}")
    if query.partition_by:
        lines.append(f"    partition by: {', '.join(map(str, query.partition_by))}")
    return [*lines, f"    {_rows(query)}"]


def _rows(query: core.Query) -> str:
    why_not, _ = why_rows_are_not_read(query)
    if why_not:
        return f"no query can read its rows: {why_not}"
    columns = ", ".join(f"{one.name} {one.type.value}" for one in columns_of_rows(query))
    return f"rows: {columns or 'no columns'}"


def dump_names(chosen: Sequence[core.Query], file: Sequence[core.Query]) -> str:
    """The names of a chain, each query below those that read it; empty where no chosen query reads
    another.

    Where a query is already shown, only its name is repeated.
    """
    queries = {query.name: query for query in file}
    readers = [query for query in chosen if query.reads]
    below = {name for query in readers for name in query.reads}
    lines: list[str] = []
    for query in readers:
        if query.name not in below:
            lines += ["chain:", *_names(query, queries, "  ", set())]
    return text_of(lines) if lines else ""


def _names(
    query: core.Query, queries: Mapping[str, core.Query], indent: str, shown: set[str]
) -> list[str]:
    if query.name in shown:
        return [f"{indent}{query.name} (above)"]
    shown.add(query.name)
    lines = [f"{indent}{query.name}"]
    for name in query.reads:
        lines += _names(queries[name], queries, indent + "  ", shown)
    streams = [stream.name for stream in query.streams if stream.name not in query.reads]
    return [*lines, *(f"{indent}  stream {name}" for name in streams)]


# --- drawing --------------------------------------------------------------------------------------


def chain_dot(chosen: Sequence[core.Query], file: Sequence[core.Query]) -> str:
    """A graph of a chain: streams are boxes, queries are ellipses with their keys and columns.

    An edge goes from what is read to its reader, and names the event types that are read.
    """
    nodes: dict[object, str] = {}
    edges: dict[tuple[object, object], list[str]] = {}
    streams: set[object] = set()
    for level in levels_of(chosen, file):
        query = level.query
        node = f"query {query.name}"
        for one in level.readings:
            source = f"{'query' if one.of_query else 'stream'} {one.name}"
            if not one.of_query:
                nodes[source] = one.name
                streams.add(source)
            edges[source, node] = [", ".join(one.types)]
        keys = ", ".join(map(str, query.partition_by))
        nodes[node] = "\n".join([query.name, *([f"partition by: {keys}"] if keys else [])])
        nodes[node] += f"\n{_rows(query)}"
    return graph_text("chain", nodes, edges, boxes=streams)
