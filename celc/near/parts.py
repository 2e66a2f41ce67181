"""The parts of a query that can bend, each with the edits of its text that bend it."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import FOUND, Measure, Took, Whole

from celc.core import formula as core
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source, Span
from celc.near import messages
from celc.near.conditions import (
    Found,
    Names,
    bent_sides,
    comparisons,
    is_count,
    microseconds,
    moving_of,
    place_of,
    sides_of,
    types_by_place,
)
from celc.near.edits import Edit, quoted
from celc.near.labels import bound, matched, named
from celc.near.sides import Sides, measured
from celc.parse import syntax
from celc.parse.trees import nodes_of


@frozen
class Part:
    """A part: where it stands, the edits that bend it, how it is measured, the expressions that
    measure it, and the labels that are gone with it.

    `marked`: a label of the bent formula whose rows are measured. `found`: the edits that ask for
    what must be absent; `before`: how long before a match it counts, and on which attribute (None:
    in events). `taken`: a comparison that cannot bend is taken away.
    """

    place: Span
    edits: tuple[Edit, ...]
    measure: Measure
    sides: Sides | None = None
    gone: frozenset[str] = frozenset()
    marked: str | None = None
    found: tuple[Edit, ...] = ()
    before: tuple[float, str | None] | None = None
    taken: bool = False


def parts_of(
    query: syntax.Query,
    resolved: core.Query,
    source: Source,
    names: Names,
    near: float | Mapping[str, float],
    all_parts: bool,
) -> list[Part]:
    """The parts of a query, in the order of the text.

    near: how far values may move, a share of their absolute value, or amounts by attribute.
    all_parts: comparisons that cannot bend are taken away. Raises CelError where how far a part was
    bent cannot be told.
    """
    finder = _Finder(query, resolved, source, names, near, all_parts)
    found = [*finder.inside(query.formula), *finder.window(), *finder.last_operand()]
    return sorted(found, key=lambda part: part.place)


@frozen
class _Finder:
    query: syntax.Query
    resolved: core.Query
    source: Source
    names: Names
    near: float | Mapping[str, float]
    all_parts: bool

    def inside(
        self,
        formula: syntax.Formula,
        repeated: bool = False,
        projects: tuple[syntax.Project, ...] = (),
    ) -> Iterator[Part]:
        """The parts in a formula; `repeated`: it can stand several times in one match; `projects`
        are around it."""
        match formula:
            case syntax.Selector() | syntax.OtherEvent() | syntax.First():
                return
            case syntax.Filter():
                yield from self._conditions(formula, repeated)
            case syntax.Within():
                yield self._local_window(formula, repeated, projects)
            case syntax.Iteration() if formula.least > 1 and not formula.contiguous:
                yield self._rounds(formula)
            case syntax.Sequence():
                yield from self._joints(formula)
                yield from self._absences_between(formula)
            case syntax.AbsenceBefore():
                start = self._before(formula.absent.span.start, "!")
                place = Span(start, formula.length.span.end)
                gone = Span(start, formula.operand.span.start)
                edit = Edit(gone, f"{self._asked(formula.absent)} ; ")
                wider = self._wider(formula.length)
                yield self._absence(place, gone, edit, *wider, before=self._size(formula.length))
            case syntax.AbsenceAfter():
                end = formula.absent.span if formula.length is None else formula.length.span
                place = Span(formula.bang.start, end.end)
                gone = Span(formula.operand.span.end, end.end)
                edit = Edit(gone, f" ; {self._asked(formula.absent)}")
                yield self._absence(place, gone, edit, *self._wider(formula.length))
            case syntax.Unless():
                start = self._before(formula.right.span.start, "UNLESS")
                place = Span(start, formula.right.span.end)
                left = formula.left.span
                gone = Span(left.end, formula.right.span.end)
                edit = Edit(gone, f") ALL {self._asked(formula.right)}")
                yield self._absence(place, gone, Edit(Span(left.start, left.start), "("), edit)
        again = repeated or isinstance(formula, syntax.Iteration)
        if isinstance(formula, syntax.Project):
            projects = (*projects, formula)
        for operand in matched(formula):
            yield from self.inside(operand, again, projects)

    def _before(self, end: int, word: str) -> int:
        return self.source.text.upper().rindex(word, 0, end)

    def _absence(
        self,
        place: Span,
        gone: Span,
        *found: Edit,
        before: tuple[float, str | None] | None = None,
    ) -> Part:
        measure = Whole(self.source.slice(place))
        return Part(place, (Edit(gone, ""),), measure, found=found, before=before)

    def _asked(self, absent: syntax.Formula) -> str:
        """What must be absent, as an operand."""
        return f"(({self.source.slice(absent.span)}) AS {quoted(FOUND)})"

    def _wider(self, length: syntax.Window | None) -> Iterator[Edit]:
        """The edit of the query's window that lets in an event so long before or after a match."""
        window = self.query.window
        if window is None or length is None:
            return
        sizes = [self._size(one) for one in (window, length)]
        (one, on), (other, other_on) = sizes
        if type(window) is not type(length) or on != other_on:
            yield Edit(window.span, "")
            return
        total = one + other
        attribute = f" [{quoted(on)}]" if on is not None else ""
        match window:
            case syntax.EventsWindow():
                text = f"{int(total)} EVENTS"
            case syntax.DurationWindow():
                text = f"{Decimal(int(total)) / 1_000_000:f} SECONDS{attribute}"
            case syntax.ValueWindow():
                text = f"{Decimal(repr(total)):f}{attribute}"
        yield Edit(window.span, f"WITHIN {text}")

    # --- signs and counts ---

    def _rounds(self, formula: syntax.Iteration) -> Part:
        begin = self.source.text.index("{", formula.operand.span.end)
        place = Span(begin, self.source.text.index("}", begin) + 1)
        least = formula.least
        most = "" if formula.most is None else str(formula.most)
        edit = Edit(place, f"{{{least - 1},{most}}}")
        return Part(place, (edit,), Whole(str(least), str(least - 1)))

    def _joints(self, formula: syntax.Sequence) -> Iterator[Part]:
        text = self.source.slice(formula.span)
        some = next(one for stream in self.resolved.streams for one in stream.event_types)
        several = len(self.resolved.streams) > 1
        stream = f"{quoted(some.stream)}>" if several else ""
        event = f"NOT({stream}{quoted(some.name)} FILTER FALSE)"
        for link in formula.links:
            if not link.contiguous:
                continue
            at = link.operator_span.end
            cut = at - formula.span.start
            # One event between: beside an operand that may be missing, where it is there.
            rest = text[cut:]
            if link.optional:
                sign = self.source.text.index("?", link.operand.span.end) - at
                rest = rest[:sign] + rest[sign + 1 :]
            bent = f"({text} OR {text[:cut]} {event} :{rest})"
            yield Part(link.operator_span, (Edit(formula.span, bent),), Whole(":"))

    def _absences_between(self, formula: syntax.Sequence) -> Iterator[Part]:
        for link in formula.links:
            if link.negated:
                place = Span(
                    self.source.text.index("!", link.operator_span.end), link.operand.span.end
                )
                gone = Span(link.operator_span.start, link.operand.span.end)
                yield self._absence(place, gone, Edit(place, self._asked(link.operand)))

    # --- windows ---

    def window(self) -> Iterator[Part]:
        """The window of the query."""
        window = self.query.window
        if window is None:
            return
        resolved = self.resolved.window
        assert resolved is not None
        edits = [*self._doubled(window), *self._absences_at_end(self.query.formula)]
        # FOR EACH measures a window in EVENTS on a column of its own.
        in_events = isinstance(window, syntax.EventsWindow)
        declared = None if in_events else resolved.attribute
        attribute = None
        if declared is not None and self.resolved.order_by[:1] != (declared,):
            attribute = declared.name
        in_time = isinstance(window, syntax.DurationWindow)
        size = float(resolved.size)
        measure = Took(self._written(window), size, in_events, in_time, None, attribute)
        yield Part(window.span, tuple(edits), measure)

    def _absences_at_end(self, formula: syntax.Formula) -> Iterator[Edit]:
        """Edits that leave out absences at the end without FOR: where a match is longer than the
        window, it has ended when such an absence begins."""
        for node in nodes_of(formula):
            if isinstance(node, syntax.AbsenceAfter) and node.length is None:
                yield Edit(Span(node.operand.span.end, node.absent.span.end), "")

    def _written(self, window: syntax.Window) -> str:
        span = window.span
        text = self.source.slice(span)
        return text[len("WITHIN") :].strip() if text.upper().startswith("WITHIN") else text

    def _doubled(self, window: syntax.Window) -> Iterator[Edit]:
        sizes = (
            [part.amount for part in window.parts]
            if isinstance(window, syntax.DurationWindow)
            else [window.size]
        )
        for size in sizes:
            yield Edit(size.span, str(2 * size.value))

    def _local_window(
        self, formula: syntax.Within, repeated: bool, projects: tuple[syntax.Project, ...]
    ) -> Part:
        start = self._before(formula.window.span.start, "WITHIN")
        place = Span(start, self.source.text.index("]", formula.window.span.end) + 1)
        if repeated:
            raise CelError(self.source, (messages.repeated_window(place),))
        window, label = formula.window, f"inside {start}"
        end = self._end_of(formula)
        edits = [*self._doubled(window), Edit(Span(start, start), "(")]
        edits.append(Edit(Span(end, end), f") AS {quoted(label)}"))
        for one in projects:
            at = self.source.text.index("[", one.span.start) + 1
            comma = ", " if one.labels else ""
            edits.append(Edit(Span(at, at), quoted(label) + comma))
        size, attribute = self._size(window)
        measure = Took(
            self.source.slice(window.span),
            size,
            isinstance(window, syntax.EventsWindow),
            isinstance(window, syntax.DurationWindow),
            label,
            attribute,
        )
        return Part(place, tuple(edits), measure, marked=label)

    def _end_of(self, formula: syntax.Within) -> int:
        """Where `WITHIN[…](φ)` ends, without parentheses around it."""
        begin = self.source.text.index("(", self.source.text.index("]", formula.window.span.end))
        inside = formula.operand.span
        at = max(inside.end, begin + 1)
        if self.source.text[at - 1] == ")" and inside.start == begin:
            return at
        return self.source.text.index(")", at) + 1

    def _size(self, window: syntax.Window) -> tuple[float, str | None]:
        if isinstance(window, syntax.EventsWindow):
            return float(window.size.value), None
        named_one = window.attribute.text if window.attribute is not None else None
        attribute = named_one or self.resolved.order_by[0].name
        if isinstance(window, syntax.ValueWindow):
            return float(window.size.value), attribute
        return float(microseconds(window.parts)), attribute

    # --- conditions ---

    def _conditions(self, formula: syntax.Filter, repeated: bool) -> Iterator[Part]:
        types = types_by_place(self.resolved.formula)
        for found in comparisons(formula.condition):
            node = found.node
            type = types.get(node.span)
            moving = tuple(
                moving_of(side, type, self.names, found.owner, self.near) for side in sides_of(node)
            )
            place = place_of(node, self.source.text)
            if any(moving):
                yield self._comparison(formula, found, place, moving, repeated)
            elif self.all_parts and not self._is_count(node):
                kept = without(formula.condition, partial(operator.is_, node), self.source)
                edit = Edit(formula.condition.span, kept or "TRUE")
                yield Part(place, (edit,), Whole(self.source.slice(place)), taken=True)

    def _is_count(self, node: Any) -> bool:
        return any(is_count(side.left) or is_count(side.right) for side in sides_of(node))

    def _comparison(
        self, formula: syntax.Filter, found: Found, place: Span, moving: Any, repeated: bool
    ) -> Part:
        edits = tuple(
            edit for one in moving if one is not None for edit in bent_sides(one, self.names.source)
        )
        # Each is a query of its own, so the name only has to be another one.
        sides = measured(f"sides {place.start}", moving, found, self.names)
        self._check_choices(formula, sides, place, repeated)
        return Part(place, edits, sides.measure, sides)

    def _check_choices(
        self, formula: syntax.Filter, sides: Sides, place: Span, repeated: bool
    ) -> None:
        """Refuse a comparison whose choices cannot be told from the labels of a match."""
        measure = sides.measure
        several = len(measure.chosen) > 1 or measure.gathered or measure.before or measure.prior
        if repeated and several:
            raise CelError(self.source, (messages.repeated_comparison(place),))
        labels = {*measure.chosen, *measure.gathered}
        outside = _bound_outside(self.query.formula, formula)
        top = bound(self.query.formula)
        for label in sorted(labels):
            if label in outside or label not in top:
                raise CelError(self.source, (messages.other_positions(label, place),))

    # --- the last operand ---

    def last_operand(self) -> Iterator[Part]:
        """The last operand of the sequence that the whole formula is."""
        formula, after = self.query.formula, None
        while not isinstance(formula, syntax.Sequence):
            match formula:
                case syntax.Filter() | syntax.As() | syntax.Within():
                    formula = formula.operand
                case syntax.AbsenceBefore(operand=syntax.Sequence()):
                    formula = formula.operand
                case syntax.AbsenceAfter(operand=syntax.Sequence() | syntax.AbsenceBefore()):
                    after = formula
                    formula = formula.operand
                case syntax.Unless():
                    formula = formula.left
                case _:
                    return
        links = formula.links
        taken = [link for link in links if not link.negated]
        is_optional = formula.first_is_optional or any(link.optional for link in links)
        if len(taken) < 2 or is_optional:
            return
        last = links[-1]
        first = links[-2] if len(links) > 1 and links[-2].negated else last
        begin = first.operator_span.start
        end = last.operand.span.end
        rest = bound(formula.first).union(*(bound(link.operand) for link in taken[:-1]))
        gone = bound(last.operand) - rest
        edits = [Edit(Span(begin, end), "")]
        if after is not None:
            behind = after.absent if after.length is None else after.length
            edits.append(Edit(Span(after.operand.span.end, behind.span.end), ""))
        removed = list(edits)
        for one in nodes_of(self.query.formula):
            if not isinstance(one, syntax.Filter):
                continue
            if any(edit.span.start <= one.span.start < edit.span.end for edit in removed):
                continue
            left = self._without_own(one, formula, gone)
            if named(one.condition, self.names.sets, None) & left:
                kept = without(one.condition, partial(self._names, left), self.source)
                edits.append(Edit(one.condition.span, kept or "TRUE"))
        measure = Whole(self.source.slice(last.operand.span))
        yield Part(last.operand.span, tuple(edits), measure, gone=gone)

    def _without_own(
        self, one: syntax.Filter, formula: syntax.Sequence, gone: frozenset[str]
    ) -> frozenset[str]:
        """The labels that are gone, without those that a scope of the filter's own binds."""
        is_around = any(node is formula for node in nodes_of(one.operand))
        return gone if is_around else gone - bound(one.operand)

    def _names(self, labels: frozenset[str], node: Any) -> bool:
        return bool(named(node, self.names.sets, None) & labels)


def without(condition: syntax.Condition, is_gone: Any, source: Source) -> str | None:
    """A condition without the clauses that have certain comparisons; None: none is left."""
    match condition:
        case syntax.AndCondition():
            kept = [without(one, is_gone, source) for one in condition.operands]
            left = [one for one in kept if one is not None]
            return " AND ".join(f"({one})" for one in left) or None
        case syntax.OrCondition():
            kept = [without(one, is_gone, source) for one in condition.operands]
            if None in kept:
                return None
            return " OR ".join(f"({one})" for one in kept)
        case syntax.EventCondition():
            inside = without(condition.condition, is_gone, source)
            if is_gone(condition):
                return None
            return None if inside is None else f"{quoted(condition.label.text)}[{inside}]"
        case _:
            return None if is_gone(condition) else source.slice(condition.span)


def _bound_outside(formula: syntax.Formula, operand: syntax.Formula) -> frozenset[str]:
    """The labels that a formula binds outside one of its operands."""
    if formula is operand:
        return frozenset()
    own: set[str] = set()
    match formula:
        case syntax.EventAtom():
            own = {formula.type.text}
        case syntax.As():
            own = {formula.label.text}
        case syntax.Rename():
            own = {formula.new.text}
    return frozenset(own).union(*(_bound_outside(one, operand) for one in matched(formula)))
