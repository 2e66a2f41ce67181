"""Parts that must be absent → their positions, for `celc_runtime.engine.past.latest_starts`.

The positions of a part are its events, as they are written. An event of the stream is at a position
if it has one of its symbols, and if the part begins there or goes on from a position of an earlier
event. (This is Glushkov's position automaton, which has no ε-transitions.)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from celc_runtime.plan.strategy import KeyTerm, WatchedPart

from celc.core.formula import Expression, Window
from celc.normal import normal_form as lp
from celc.normal.flat_form import AbsentPart, KeyedPart, PartAfter, PartBefore
from celc.normal.normal_form import NormalForm


@dataclass(slots=True)
class _Positions:
    """The events of a part in the order of the text, and the positions before each."""

    events: list[lp.Event] = field(default_factory=list)
    before: list[set[int]] = field(default_factory=list)

    def add(self, form: NormalForm) -> tuple[set[int], set[int]]:
        """Add a form. Returns the positions at which it begins and ends."""
        match form:
            case lp.Event():
                self.events.append(form)
                self.before.append(set())
                return {len(self.events) - 1}, {len(self.events) - 1}
            case lp.Disjunction():
                ends = [self.add(operand) for operand in form.operands]
                begins: set[int] = set()
                return begins.union(*(b for b, _ in ends)), begins.union(*(e for _, e in ends))
            case lp.Sequence():
                first, last = self.add(form.operands[0])
                for operand in form.operands[1:]:
                    begin, end = self.add(operand)
                    self._join(last, begin)
                    last = end
                return first, last
            case lp.Iteration():
                return self._rounds(form)
            case _:
                raise AssertionError("not in a part that can be followed event by event")

    def _rounds(self, form: lp.Iteration) -> tuple[set[int], set[int]]:
        """Each counted round has its own positions; the last round of `{n,}` is repeated."""
        first, last = self.add(form.operand)
        ends = set(last) if form.least == 1 else set[int]()
        begin = first
        for count in range(2, form.written_out + 1):
            begin, end = self.add(form.operand)
            self._join(last, begin)
            last = end
            if count >= form.least:
                ends |= last
        if form.most is None:
            self._join(last, begin)
        return first, ends

    def _join(self, ends: set[int], begins: set[int]) -> None:
        for position in begins:
            self.before[position] |= ends


def key_of_part(part: AbsentPart | KeyedPart | PartBefore | PartAfter) -> tuple[Expression, ...]:
    """The terms of the key of all events of a part; empty: they have none."""
    match part:
        case AbsentPart():
            return part.key
        case KeyedPart():
            return part.terms
        case _:
            return ()


def watched_part(
    part: AbsentPart | KeyedPart | PartBefore | PartAfter,
    windows: Mapping[Window, int],
    symbols_of: Callable[[lp.Event], tuple[int, ...]],
    key: tuple[KeyTerm, ...],
) -> WatchedPart:
    """A part. `symbols_of` are the kernel's symbols of an event, `key` the terms of the key of all
    its events."""
    positions = _Positions()
    begins, ends = positions.add(part.form)
    return WatchedPart(
        window=None if part.window is None else windows[part.window],
        symbols=tuple(symbols_of(event) for event in positions.events),
        before=tuple(tuple(sorted(one)) for one in positions.before),
        begins=tuple(sorted(begins)),
        ends=tuple(sorted(ends)),
        length=windows[part.length] if isinstance(part, PartBefore | PartAfter) else None,
        after=isinstance(part, PartAfter),
        key=key,
        of_key=isinstance(part, KeyedPart),
    )
