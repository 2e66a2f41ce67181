"""Smallest streams with a match of a query, and with a near miss for each of its parts.

A smallest stream with a match is a shortest one on which the query differs from one that has none.
A near miss of a part is looked for where the query differs from itself with this part bent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import SHARE

from celc.compare.results import Difference
from celc.compare.shortest import shortest_difference
from celc.compare.sides import Side
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source, Span
from celc.driver.brief_runs import BriefNear
from celc.near.conditions import Names
from celc.near.edits import Edit, spliced
from celc.near.parts import parts_of
from celc.parse import syntax

if TYPE_CHECKING:
    import pyarrow as pa

    from celc.near.parts import Part


@frozen
class Example:
    """A small stream, and what the query makes of it.

    `of`: the text of the part that it is for, empty for the whole query; `line` and `column` are
    its place. `events`: the stream, None where none was found. `answer`: the rows of the query, or
    its near misses where `is_near`. `shortest`: whether there is no shorter one.
    """

    of: str
    line: int
    column: int
    is_near: bool
    events: pa.Table | None
    answer: pa.Table | None
    parameters: Mapping[str, pa.Table]
    shortest: bool


def examples_of(side: Side, deadline: float = 20.0) -> Iterator[Example]:
    """Smallest streams: with a match, with a match of each operand of OR, and with a near miss of
    each part that can bend.

    `deadline`: seconds for all of them. Raises CelError where a query has no near misses by its
    meaning, after the examples of matches.
    """
    writer = _Texts(side)
    until = monotonic() + deadline
    operands = writer.operands()
    count = 1 + len(operands)
    yield _match(side, writer, (), "", writer.query.span, _share(until, 2 * count))
    for place, operand in enumerate(operands):
        text = side.source.slice(operand.span)
        chosen = (Edit(writer.parts[place].span, f"({text})"),)
        yield _match(side, writer, chosen, text, operand.span, _share(until, 2 * count - place))
    near = BriefNear(side.source, side.options, side.query.name)
    parts = writer.near_parts()
    for place, part in enumerate(parts):
        yield _near(side, writer, near, part, _share(until, len(parts) - place))


def _share(until: float, count: int) -> float:
    """The seconds for one of `count` searches that are still to come."""
    return max(0.5, (until - monotonic()) / count)


class _Texts:
    """Texts that differ from the query's."""

    def __init__(self, side: Side) -> None:
        self._side = side
        (file,) = side.compilation.files
        self._file = file.tree
        self.query = file.tree.queries[side.number]
        self.parts: list[syntax.Disjunction] = []

    def operands(self) -> list[syntax.Formula]:
        """The operands of each OR that is no part of an absence or an iteration; the OR of each is
        at the same place of `parts`."""
        found = []
        waiting: list[syntax.Formula] = [self.query.formula]
        while waiting:
            formula = waiting.pop(0)
            if isinstance(formula, syntax.Disjunction):
                for operand in formula.operands:
                    self.parts.append(formula)
                    found.append(operand)
                continue
            match formula:
                case syntax.Filter() | syntax.As() | syntax.Project() | syntax.Rename():
                    waiting.append(formula.operand)
                case syntax.Within() | syntax.AbsenceBefore() | syntax.AbsenceAfter():
                    waiting.append(formula.operand)
                case syntax.Sequence():
                    operands = [one.operand for one in formula.links if not one.negated]
                    waiting += [formula.first, *operands]
                case syntax.Unless():
                    waiting.append(formula.left)
                case _:
                    pass
        return found

    def near_parts(self) -> Sequence[Part]:
        """The parts that can bend."""
        resolved, source = self._side.query, self._side.source
        names = Names.of(self._file, source)
        return parts_of(self.query, resolved, source, names, SHARE, all_parts=True)

    def side(self, edits: Sequence[Edit], *, never: bool = False, ends: bool = False) -> Side:
        """The query with edits. `never`: with a condition that never holds. `ends`: it shows no
        more than where matches are, and chooses none among them."""
        query, side = self.query, self._side
        made = [*edits]
        if never:
            start, end = query.formula.span.start, query.formula.span.end
            made += [Edit(Span(start, start), "("), Edit(Span(end, end), ") FILTER FALSE")]
        if ends and query.select is not None:
            made.append(Edit(query.select.span, "SELECT NONE"))
            clauses = (query.consume, query.limit)
            made += [Edit(one.span, "") for one in clauses if one is not None]
        text = side.source.text
        source = Source(side.source.name, spliced(text, Span(0, len(text)), made))
        name = side.query.name if len(side.compilation.names) > 1 else None
        return Side(source, side.options, query=name)


def _match(
    side: Side,
    writer: _Texts,
    edits: Sequence[Edit],
    of: str,
    place: Span,
    seconds: float,
) -> Example:
    """A smallest stream with a match, of the query with some edits."""
    line, column = side.source.line_and_column(place.start)
    nothing = Example(of, line, column, False, None, None, {}, False)
    try:
        asked = writer.side(edits)
    except CelError:
        return nothing  # SELECT or a condition names a label that other operands of OR have

    def answers(found: Difference) -> bool:
        return len(side.alone.rows(found.events, found.parameters)) > 0

    found = _found(writer.side(edits, never=True), asked, seconds, answers)
    if found is None:
        return nothing
    answer = side.alone.rows(found.events, found.parameters)
    return Example(of, line, column, False, found.events, answer, found.parameters, found.shortest)


def _near(side: Side, writer: _Texts, near: BriefNear, part: Part, seconds: float) -> Example:
    """A smallest stream with a near miss of a part."""
    line, column = side.source.line_and_column(part.place.start)

    def misses(found: Difference) -> pa.Table:
        rows = near.rows(found.events, found.parameters)
        places = rows.select(["line", "column"]).to_pylist()
        is_here = [place == {"line": line, "column": column} for place in places]
        return rows.filter(is_here) if any(is_here) else rows.slice(0, 0)

    found = None
    try:
        sides = writer.side((), ends=True), writer.side(part.edits, ends=True)
    except CelError:
        pass  # a part of the text that stands only inside others
    else:
        found = _found(*sides, seconds, lambda one: len(misses(one)) > 0)
    text = side.source.slice(part.place)
    if found is None:
        return Example(text, line, column, True, None, None, {}, False)
    events, parameters = found.events, found.parameters
    return Example(text, line, column, True, events, misses(found), parameters, found.shortest)


def _found(
    old: Side, new: Side, seconds: float, accepts: Callable[[Difference], bool]
) -> Difference | None:
    found = shortest_difference(old, new, deadline=seconds, accepts=accepts)
    return found if isinstance(found, Difference) else None
