"""Queries with a mistake, made from a seed: constants, labels, conditions, windows, `;` for `:`."""

from __future__ import annotations

import random
from collections.abc import Iterator

from celc.diagnostics.source import Source, Span
from celc.near.edits import Edit, spliced
from celc.parse import syntax
from celc.parse.parser import parse
from celc.parse.trees import nodes_of

KINDS = ("constant", "label", "condition", "operator", "window", "sign")

_OTHER = {"=": "<>", "!=": "=", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def mistakes(text: str, seed: int) -> Iterator[tuple[str, str]]:
    """Endless texts with one mistake each, with what it is. Some are no queries any more, and some
    mean the same as before."""
    source = Source("rule.cel", text)
    file = parse(source)
    chosen = random.Random(seed)
    ways = {kind: list(_ways(kind, file)) for kind in KINDS}
    ways = {kind: found for kind, found in ways.items() if found}
    while True:
        kind = chosen.choice([*ways])
        span, replacements = chosen.choice(ways[kind])
        new = chosen.choice(replacements)
        made = spliced(text, Span(0, len(text)), [Edit(span, new)])
        yield f"{kind}: {source.slice(span)!r} became {new!r}", made


def _ways(kind: str, file: syntax.File) -> Iterator[tuple[Span, list[str]]]:
    """Places in the text, each with what can stand there by mistake."""
    nodes = [one for one in nodes_of(file.queries) if hasattr(one, "span")]
    nodes.sort(key=lambda one: (one.span.start, one.span.end))
    labels = sorted({one.label.text for one in nodes if isinstance(one, syntax.As)})
    numbers_of_windows = {
        inner.span
        for one in nodes
        if isinstance(one, syntax.DurationPart | syntax.EventsWindow)
        for inner in nodes_of(one)
        if isinstance(inner, syntax.IntegerLiteral)
    }
    for node in nodes:
        match node:
            case syntax.IntegerLiteral() if kind == "constant":
                if node.span not in numbers_of_windows:
                    yield node.span, [
                        str(node.value + 1),
                        str(node.value - 1),
                        str(node.value * 10),
                    ]
            case syntax.IntegerLiteral() if kind == "window":
                if node.span in numbers_of_windows:
                    yield node.span, [str(node.value + 1), str(node.value * 2), f"{node.value}0"]
            case syntax.TextLiteral() if kind == "constant":
                yield node.span, [f"'{node.value[:-1]}'", f"'{node.value}s'", f"'{node.value[1:]}'"]
            case syntax.BooleanLiteral() if kind == "constant":
                yield node.span, [str(not node.value).upper()]
            case syntax.Attribute(label=syntax.Name() as label) if kind == "label":
                others = [one for one in labels if one != label.text]
                if others:
                    yield label.span, others
            case syntax.AndCondition() if kind == "condition":
                for first, second in zip(node.operands, node.operands[1:], strict=False):
                    yield Span(first.span.end, second.span.end), [""]
                    yield Span(first.span.start, second.span.start), [""]
            case syntax.Comparison() if kind == "operator":
                gap = Span(node.left.span.end, node.right.span.start)
                yield gap, [f" {_OTHER[node.operator]} "]
            case syntax.Sequence() if kind == "sign":
                for link in node.links:
                    if not link.negated:
                        yield link.operator_span, [";" if link.contiguous else ":"]
            case _:
                pass
