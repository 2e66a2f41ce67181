"""The query that wrote a state, as a few bytes that show what differs in another query."""

import re
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

from celc_runtime.plan.errors import StateError
from celc_runtime.plan.plan import Plan
from celc_runtime.stream.stored.rows import RowLayout

_LONG_HASH = 6

IDENTITY = (
    "the query's text",
    "WITHIN",
    "PARTITION BY",
    "the output (SELECT, CONSUME BY, LIMIT, positions)",
    "the order columns, or ties",
    "the tiebreak columns or their types",
    "the columns that are read, or their types",
)
"""The parts in which the query that reads a state must equal the query that wrote it."""


class OtherQuery(StateError):
    """The error for a state that another query has written."""


def differences(found: bytes, wanted: bytes) -> list[str]:
    """The parts of `IDENTITY` in which two identities differ."""
    edges = [0, *range(_LONG_HASH, len(found) + 1, 2)]
    return [
        what
        for what, (start, end) in zip(IDENTITY, pairwise(edges), strict=True)
        if found[start:end] != wanted[start:end]
    ]


def other_query(plan: Plan, found: bytes, wanted: bytes, with_other_positions: bytes) -> StateError:
    """The error for a state whose identity is not the wanted one.

    with_other_positions: the identity of the same query with positions if it has none, or without.
    """
    if found == with_other_positions:
        had = not plan.answer.positions
        begun = "with" if had else "without"
        return StateError(
            f"query {plan.name!r}: the checkpoint was begun {begun} positions: go on with "
            f"with_options(positions={had}), or begin a new checkpoint"
        )
    differing = differences(found, wanted)
    if plan.functions and IDENTITY[0] in differing:
        names = ", ".join(name for name, _ in plan.functions)
        differing[0] += f", or the source of {names}"
    return OtherQuery(
        f"query {plan.name!r}: the checkpoint holds the state of another query; what differs: "
        f"{', '.join(differing)}. Run the query that it was begun with, or begin "
        "a new checkpoint; match_stream(df, checkpoint=path) says whether this one can go on, or "
        "from when a new one has to begin"
    )


def identity(plan: Plan, layout: RowLayout, text: str, contexts: bytes) -> bytes:
    """The hashes of `IDENTITY`, the same on every machine: six bytes, then two for each other
    part."""
    source = plan.source
    window = plan.matching.window
    fields = [tuple(field) for field in layout.fields[: len(layout.fields) - len(layout.keys)]]
    own = {*source.order_by, *source.tiebreak}
    written: tuple[object, ...] = (normalised(text, plan.name), contexts.hex())
    if plan.functions:
        written += plan.functions
    parts: tuple[object, ...] = (
        written,
        window and (window.unit, window.size, plan.window_attribute),
        source.key_columns,
        (plan.output_ddl(), plan.matching.consume_by, plan.choice.limit, plan.answer.positions),
        (source.order_by if source.ties is None else (source.order_by, source.ties)),
        (source.tiebreak, [field for field in fields if field[0] in source.tiebreak]),
        ([field for field in fields if field[0] not in own], layout.types, source.type_column),
    )
    return b"".join(
        blake2b(repr(part).encode(), digest_size=2 if number else _LONG_HASH).digest()
        for number, part in enumerate(parts)
    )


_TOKEN = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL)


def normalised(text: str, query: str) -> str:
    """A query's part of its file, without comments and meaningless spaces.

    It has the declarations, and the text from the query's name to the next query.
    """
    head, whole, own = _parted(text)
    return " ".join(part for part in (head, own.get(query, whole)) if part)


@lru_cache(maxsize=4)  # a file can have hundreds of queries, and each asks for its own part
def _parted(text: str) -> tuple[str, str, dict[str, str]]:
    """The tokens before the first query, all tokens where there is no such query, and those of
    each query, by its name."""
    tokens = [
        token
        for token in _TOKEN.findall(text)
        if not token.isspace() and not token.startswith(("--", "/*"))
    ]
    starts = [
        place
        for place in range(len(tokens) - 2)
        if tokens[place + 2] == ":" and tokens[place].upper() == "QUERY"
    ]
    whole = " ".join(tokens)
    if not starts:
        return "", whole, {}
    own: dict[str, str] = {}
    for start, end in pairwise([*starts, len(tokens)]):
        own.setdefault(tokens[start + 1].strip("`"), " ".join(tokens[start:end]))
    return " ".join(tokens[: starts[0]]), whole, own
