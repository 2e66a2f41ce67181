"""What one change makes of a query: its conditions, constants, windows, joints and absences.

The changes are those of mutation testing (DeMillo, Lipton and Sayward 1978), for the parts that
such queries have. A change is an edit of the text, as near misses have it, so that what is compiled
is what a person would have written. Some changes make no query, which the compiler says.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Source, Span
from celc.near.edits import Edit, spliced
from celc.parse import syntax
from celc.parse.trees import nodes_of

_LITERALS = (syntax.IntegerLiteral, syntax.DoubleLiteral)
_WINDOWS = (syntax.EventsWindow, syntax.ValueWindow, syntax.DurationWindow)


@frozen
class Mutant:
    """One change: what it is in a few words, the part that is changed, and the edits of the text.

    `moves`: it moves a number, and other numbers can take its place.
    """

    what: str
    place: Span
    edits: tuple[Edit, ...]
    moves: Span | None = None

    def of(self, source: Source) -> Source:
        """The text with the change."""
        return Source(source.name, spliced(source.text, Span(0, len(source.text)), self.edits))

    def before(self, source: Source) -> str:
        """The text of the part."""
        return source.slice(self.place)

    def after(self, source: Source) -> str:
        """The text of the part with the change; empty: it is gone."""
        place = self.place
        if any(edit.span.start < place.start or edit.span.end > place.end for edit in self.edits):
            return ""
        return spliced(source.text, place, self.edits).strip()

    def texts(self, source: Source) -> tuple[str, str]:
        """The text of the part before and after."""
        return self.before(source), self.after(source)

    def with_number(self, number: str) -> Mutant:
        """The same place with another number."""
        assert self.moves is not None
        return Mutant("another number", self.place, (Edit(self.moves, number),), self.moves)


def mutants_of(query: syntax.Query, source: Source) -> tuple[Mutant, ...]:
    """All changes of a query, in the order of the text."""
    finder = _Finder(source)
    found = [*finder.formulas(query), *finder.windows(query)]
    if query.having is not None:
        found += finder.conditions(query.having.condition, "TRUE")
    return tuple(sorted(found, key=lambda one: one.place))


@frozen
class _Finder:
    source: Source

    def formulas(self, query: syntax.Query) -> Iterator[Mutant]:
        for node in nodes_of(query.formula):
            match node:
                case syntax.Filter():
                    yield from self.conditions(node.condition, "TRUE")
                case syntax.Sequence():
                    yield from self.joints(node)
                case syntax.Iteration(least=1, most=None):
                    yield from self.rounds(node)
                case syntax.AbsenceBefore():
                    start = self.source.text.rindex("!", 0, node.absent.span.start)
                    place = Span(start, node.length.span.end)
                    yield self.gone(place, Span(start, node.operand.span.start))
                case syntax.AbsenceAfter():
                    end = node.absent.span if node.length is None else node.length.span
                    place = Span(node.bang.start, end.end)
                    yield self.gone(place, Span(node.operand.span.end, end.end))
                case syntax.Unless():
                    start = self.source.text.upper().rindex("UNLESS", 0, node.right.span.start)
                    place = Span(start, node.right.span.end)
                    yield self.gone(place, Span(node.left.span.end, node.right.span.end))

    def gone(self, place: Span, span: Span) -> Mutant:
        return Mutant("the absence dropped", place, (Edit(span, ""),))

    # --- conditions ---

    def conditions(self, node: Any, neutral: str) -> Iterator[Mutant]:
        """Changes of the comparisons of a condition; `neutral` is what stands for one that is not
        there."""
        match node:
            case syntax.AndCondition():
                for one in node.operands:
                    yield from self.conditions(one, "TRUE")
            case syntax.OrCondition():
                for one in node.operands:
                    yield from self.conditions(one, "FALSE")
            case syntax.NotCondition():
                other = {"TRUE": "FALSE", "FALSE": "TRUE"}
                yield from self.conditions(node.operand, other[neutral])
            case syntax.EventCondition() | syntax.Quantified():
                yield from self.conditions(node.condition, neutral)
            case _:
                span = node.span
                text = self.source.slice(span)
                if text.upper() != neutral:
                    yield Mutant("the condition dropped", span, (Edit(span, neutral),))
                yield Mutant("the condition negated", span, (Edit(span, f"NOT ({text})"),))
                for literal in nodes_of(node):
                    if isinstance(literal, _LITERALS):
                        yield from self.moved(span, literal)

    def moved(self, place: Span, literal: Any) -> Iterator[Mutant]:
        """A constant that is one more, and one less."""
        value = Decimal(self.source.slice(literal.span))
        for number in (value + 1, value - 1):
            text = f"({number:f})" if number < 0 else f"{number:f}"
            what = f"{value:f} moved to {number:f}"
            yield Mutant(what, place, (Edit(literal.span, text),), literal.span)

    # --- windows ---

    def windows(self, query: syntax.Query) -> Iterator[Mutant]:
        for node in nodes_of(query):
            if isinstance(node, _WINDOWS):
                yield from self.window(node)

    def window(self, window: Any) -> Iterator[Mutant]:
        is_duration = isinstance(window, syntax.DurationWindow)
        sizes = [part.amount.span for part in window.parts] if is_duration else [window.size.span]
        values = [(size, Decimal(self.source.slice(size))) for size in sizes]
        halves = [
            (size, value / 2 if is_duration or value % 1 else value // 2) for size, value in values
        ]
        moves = sizes[0] if len(sizes) == 1 else None
        if any(half for _, half in halves):
            edits = tuple(Edit(size, f"{half:f}") for size, half in halves)
            yield Mutant("the window halved", window.span, edits, moves)
        if any(value for _, value in values):
            edits = tuple(Edit(size, f"{2 * value:f}") for size, value in values)
            yield Mutant("the window doubled", window.span, edits, moves)

    # --- joints ---

    def joints(self, formula: syntax.Sequence) -> Iterator[Mutant]:
        for link in formula.links:
            sign = link.operator_span
            if link.negated:
                start = self.source.text.index("!", sign.end)
                place = Span(start, link.operand.span.end)
                yield self.gone(place, Span(sign.start, link.operand.span.end))
                continue
            other = ";" if link.contiguous else ":"
            what = f"{self.source.slice(sign)} exchanged for {other}"
            yield Mutant(what, sign, (Edit(sign, other),))
            if isinstance(link.operand, syntax.First):
                yield from self.first(link.operand)
            elif not link.contiguous and not link.optional:
                edit = Edit(sign, "; FIRST")
                yield Mutant("; exchanged for ; FIRST", sign, (edit,))

    def first(self, formula: syntax.First) -> Iterator[Mutant]:
        word = self.source.text.upper().rindex("FIRST", 0, formula.operand.span.start)
        if formula.absent is not None:
            start = self.source.text.rindex("!", 0, formula.absent.span.start)
            place = Span(start, formula.absent.span.end)
            yield self.gone(place, Span(start, word))
        elif (formula.least, formula.most) == (1, 1):
            place = Span(word, word + len("FIRST"))
            yield Mutant("FIRST dropped", place, (Edit(place, ""),))

    def rounds(self, formula: syntax.Iteration) -> Iterator[Mutant]:
        at = self.source.text.find("+", formula.operand.span.end, formula.span.end)
        if at < 0:
            return  # `{1,}`
        sign = Span(at - formula.contiguous, at + 1)
        if self.source.slice(sign) in ("+", ":+"):
            other = "+" if formula.contiguous else ":+"
            yield Mutant(
                f"{self.source.slice(sign)} exchanged for {other}", sign, (Edit(sign, other),)
            )
