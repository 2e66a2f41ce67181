"""A stream as the text that declares it."""

from collections.abc import Iterable
from dataclasses import replace
from textwrap import indent

from celc.core.formula import Query, Stream
from celc.diagnostics.source import visible
from celc.parse import syntax
from celc.parse.tables import grammar

_LONGEST = 80  # characters of a line, but for names and types that are longer


def undeclared_text(queries: Iterable[tuple[Query, syntax.File]]) -> str:
    """The declarations of the tables that queries read and their files do not declare. Where
    queries read different event types of a table, these are comments."""
    found: dict[str, dict[str, list[str]]] = {}
    for query, file in queries:
        known = {one.name.text for one in file.streams}
        for stream in query.streams:
            if stream.name not in known and stream.name not in query.reads:
                text = declaration_text(_as_declared(stream, query))
                found.setdefault(stream.name, {}).setdefault(text, []).append(query.name)
    whole = ""
    for texts in found.values():
        for text, names in texts.items():
            told = f"for {', '.join(map(visible, names))}\n{text}"
            whole += f"{text}\n" if len(texts) == 1 else f"{indent(told, '-- ')}\n"
    return whole


def declaration_text(stream: Stream) -> str:
    """CREATE STREAM with all event types of a stream."""
    events = ",\n".join(
        event_text(one.name, ((a.name, a.type.value) for a in one.attributes))
        for one in stream.event_types
    )
    return f"CREATE STREAM {spelled(stream.name)} {{\n{events}\n}}\n"


def _as_declared(stream: Stream, query: Query) -> Stream:
    """A stream of a query, without the attributes that the query has added."""
    added = {one.name for one in query.derived}
    added |= set() if query.parameters is None else query.parameters.columns_added
    added |= {query.begin.name} if query.begin is not None and query.reads else set()
    types = (
        replace(one, attributes=tuple(a for a in one.attributes if a.name not in added))
        for one in stream.event_types
    )
    return replace(stream, event_types=tuple(types))


def event_text(name: str, attributes: Iterable[tuple[str, str]]) -> str:
    """The declaration of an event type, given its attributes with the texts of their types."""
    inner = [f"{_attribute(attribute)}: {type}" for attribute, type in attributes]
    begin = f"  EVENT {spelled(name)} {{"
    if sum(map(len, inner)) + len(begin) <= _LONGEST:
        return f"{begin} {', '.join(inner)} }}"
    wide = ",\n".join(f"    {one}" for one in inner)
    return f"{begin}\n{wide}\n  }}"


def spelled(name: str) -> str:
    """The name of a stream, an event type or a label as it is written: in backquotes where it is no
    plain word, or reserved."""
    is_plain = name.isidentifier() and name.upper() not in grammar().reserved
    return name if is_plain else quoted(name)


def _attribute(name: str) -> str:
    # Any word is an attribute there.
    return name if name.isidentifier() else quoted(name)


def quoted(name: str) -> str:
    """A name in backquotes."""
    return f"`{name.replace('`', '``')}`"
