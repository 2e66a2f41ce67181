"""The shape of a rule: its text without the constants that its events are compared with.

Rules of one shape are one query FOR EACH row of a table of constants: its answer is by definition
what the query gives with the values of one row in place of `rule.a`, for each row. So a shape is a
text of CEL, compiled like any other.

A constant is taken out where an attribute is compared with it (`=`, `<`, IN, BETWEEN, LIKE) and has
the attribute's type. Equal constants of one attribute stay one. All other constants (of WITHIN,
`{n}`, arithmetic, BOOLEANs) belong to the shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.tokens import Token
from celc.parse.trees import nodes_of
from celc.parse.types import type_word

Constant: TypeAlias = str | int | float

RULE = "rule"
"""The attribute of a shape's parameter set that has the names of the rules."""

_WHOLE = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}
_EXACT = 2**53  # up to this a DOUBLE has every whole number


@frozen
class Row:
    """A rule as a row of the table of its shape."""

    rule: str
    values: tuple[Constant, ...]


@frozen
class Shape:
    """The shape of a rule: a name by its words, which other rules do not change, the columns of its
    table, and its text, in the layout of this rule."""

    name: str
    columns: tuple[str, ...]
    text: str


@frozen
class _Constant:
    """A constant in the text of a rule, and the attribute that is compared with it."""

    span: Span
    attribute: str
    type: str
    value: Constant


def shape_of(
    source: Source, file: syntax.File, tokens: Sequence[Token], name: str
) -> tuple[Shape, Row] | None:
    """The shape of a file with one rule, which is called `name`, and its row; None where it has
    none: a query FOR EACH or of uncertain time, a file with functions or aggregates, or one in
    whose query no constant can be taken out."""
    if len(file.queries) != 1 or file.parameters or file.aggregates or file.functions:
        return None
    (query,) = file.queries
    uncertain = any(isinstance(one.times, syntax.UncertainClause) for one in file.streams)
    if query.select is None or query.for_each is not None or uncertain:
        return None
    constants = sorted(_constants(query.formula, _types(file)), key=lambda one: one.span.start)
    if not constants:
        return None
    columns: dict[tuple[str, Constant], str] = {}
    types: dict[str, str] = {}
    for one in constants:
        if (one.attribute, one.value) not in columns:
            column = _unused(one.attribute, {RULE, *types})
            columns[one.attribute, one.value] = column
            types[column] = one.type
    places = {one.span.start: (one.span, columns[one.attribute, one.value]) for one in constants}
    body = Span(query.select.span.start, query.span.end)
    after = (query.streams[-1].span if query.streams else query.select.span).end
    words = [
        *(one.text for stream in file.streams for one in _inside(tokens, stream.span)),
        *(f"{column} {type}" for column, type in types.items()),
        *(text for text, _ in _pieces(tokens, body, places, after, "")),
    ]
    code = hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:10]
    taken = {one.text.strip("`").casefold() for one in tokens}
    shape, rows = _unused(f"shape_{code}", taken), _unused(f"rule_{code}", taken)
    streams, written = _text(source, file, _pieces(tokens, body, places, after, rows))
    declared = ", ".join(f"{column}: {type}" for column, type in {RULE: "STRING", **types}.items())
    text = f"{streams}\n\nPARAMETERS {rows} {{ {declared} }}\n\nQUERY {shape}:\n{written}\n"
    return Shape(shape, (RULE, *types), text), Row(name, tuple(value for _, value in columns))


def _types(file: syntax.File) -> Mapping[str, str]:
    """The types of the attributes that have one type in all events; the others are left out."""
    found: dict[str, set[str]] = {}
    for stream in file.streams:
        for event in stream.events:
            for one in event.attributes:
                plain = not one.type.sizes and not one.type.parts
                type = type_word(one.type.name.text) if plain else ""
                found.setdefault(one.name.text, set()).add(type)
    return {name: type for name, (type, *more) in found.items() if not more}


def _constants(formula: syntax.Formula, types: Mapping[str, str]) -> Iterator[_Constant]:
    compared: tuple[syntax.Expression, ...]
    for node in nodes_of(formula):
        match node:
            case syntax.Comparison(_, syntax.Attribute() as attribute, other):
                compared = (other,)
            case syntax.Comparison(_, other, syntax.Attribute() as attribute):
                compared = (other,)
            case syntax.InList(syntax.Attribute() as attribute, compared):
                pass
            case syntax.Between(syntax.Attribute() as attribute, low, high):
                compared = (low, high)
            case syntax.PatternMatch(_, syntax.Attribute() as attribute, pattern):
                compared = (pattern,)
            case _:
                continue
        name = attribute.attribute.text
        for one in compared:
            value = _value(one, types.get(name, ""))
            if value is not None:
                yield _Constant(one.span, name, types[name], value)


def _value(node: syntax.Expression, type: str) -> Constant | None:
    """The value of a constant of this type; None for another expression."""
    sign = 1
    if isinstance(node, syntax.Negation):
        node, sign = node.operand, -1
    match node:
        case syntax.TextLiteral(value=text) if type == "STRING" and sign > 0:
            return text
        case syntax.IntegerLiteral(value=number) if type in _WHOLE:
            bound = 1 << (_WHOLE[type] - 1)
            return sign * number if -bound <= sign * number < bound else None
        case syntax.IntegerLiteral(value=number) if type == "DOUBLE" and number <= _EXACT:
            return float(sign * number)
        case syntax.DoubleLiteral(value=real) if type == "DOUBLE":
            return sign * real
        case _:
            return None


def _unused(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken."""
    plain = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in name)
    plain = plain if plain[:1].isalpha() else f"value_{plain}"
    known, number, found = {one.casefold() for one in taken}, 1, plain
    while found.casefold() in known:
        number += 1
        found = f"{plain}_{number}"
    return found


def _inside(tokens: Sequence[Token], span: Span) -> Iterator[Token]:
    return (one for one in tokens if span.start <= one.start and one.end <= span.end)


def _pieces(
    tokens: Sequence[Token],
    body: Span,
    places: Mapping[int, tuple[Span, str]],
    after: int,
    rows: str,
) -> Iterator[tuple[str, Span]]:
    """The words of a query with columns of `rows` in place of constants, and their places; FOR EACH
    stands behind what ends at `after`."""
    replaced = 0
    for one in _inside(tokens, body):
        if one.start < replaced:
            continue
        if one.start in places:
            span, column = places[one.start]
            replaced = span.end
            yield f"{rows}.{column}", span
        else:
            yield one.text, one.span
        if one.end == after:
            yield f"FOR EACH {rows}", Span(after, after)


def _text(source: Source, file: syntax.File, pieces: Iterator[tuple[str, Span]]) -> tuple[str, str]:
    """(The streams that a file declares; its query of pieces, without the comments between)."""
    found = [*pieces]
    written = [found[0][0]]
    for (_, before), (text, span) in pairwise(found):
        between = source.slice(Span(before.end, span.start))
        if span.start == span.end:
            between = " "
        elif between.strip():
            between = "\n" if "\n" in between else " "
        written += (between, text)
    return "\n\n".join(source.slice(one.span) for one in file.streams), "".join(written).rstrip()
