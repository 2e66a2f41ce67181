"""Extents: the event types and the number of positions of a label, from those of the parts of a
formula."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span
from celc.parse import syntax

MANY, UNLIMITED = 2, 3
"""Numbers of positions: 0, 1, MANY (2 or more), and, as the greatest, UNLIMITED."""


@frozen
class Extent:
    """The positions that a label, or a whole match, can have."""

    types: int  # a bit for each event type
    least: int  # the least number of positions: 0, 1 or MANY
    most: int  # the greatest number: 0, 1, MANY or UNLIMITED


NOTHING = Extent(0, 0, 0)


@frozen
class Binding:
    """A label of a formula."""

    extent: Extent
    place: Span  # where the text first binds it
    named_at: int | None
    """The offset at which AS, a renaming or PROJECT first names it, for `SELECT *`; None:
    nowhere."""
    bare_at: int | None
    """The offset of the first atom of this event type under no AS, for `SELECT *`; None:
    nowhere."""


Labels: TypeAlias = Mapping[str, Binding]


# --- how labels combine ---------------------------------------------------------------------------

Combine: TypeAlias = Callable[[Sequence[Extent]], Extent]
"""The extent of a label in a formula, from its extents in the parts (one or more)."""


def _types(extents: Sequence[Extent]) -> int:
    types = 0
    for extent in extents:
        types |= extent.types
    return types


def _together(extents: Sequence[Extent]) -> int:
    most = [extent.most for extent in extents]
    return UNLIMITED if UNLIMITED in most else min(MANY, sum(most))


def one_after_another(extents: Sequence[Extent]) -> Extent:
    """All parts, on different positions."""
    least = min(MANY, sum(extent.least for extent in extents))
    return Extent(_types(extents), least, _together(extents))


def one_of(extents: Sequence[Extent]) -> Extent:
    """One part of several."""
    return Extent(
        _types(extents),
        min(extent.least for extent in extents),
        max(extent.most for extent in extents),
    )


def overlaid(extents: Sequence[Extent]) -> Extent:
    """All parts, perhaps on the same positions."""
    least = max(extent.least for extent in extents)
    return Extent(_types(extents), least, _together(extents))


def identical(extents: Sequence[Extent]) -> Extent:
    """All parts on exactly the same positions."""
    types = extents[0].types
    for extent in extents:
        types &= extent.types
    return Extent(
        types, max(extent.least for extent in extents), min(extent.most for extent in extents)
    )


def merge(parts: Sequence[Labels], combine: Combine) -> dict[str, Binding]:
    """The labels of several parts together. A part without a label gives it no positions."""
    gathered: dict[str, list[Binding]] = {}
    for labels in parts:
        for label, binding in labels.items():
            gathered.setdefault(label, []).append(binding)
    merged = {}
    for label, bindings in gathered.items():
        extents = [binding.extent for binding in bindings]
        if len(bindings) < len(parts):
            extents.append(NOTHING)
        merged[label] = Binding(
            combine(extents),
            bindings[0].place,
            earliest(binding.named_at for binding in bindings),
            earliest(binding.bare_at for binding in bindings),
        )
    return merged


def earliest(offsets: Iterable[int | None]) -> int | None:
    """The least of some offsets in the text; None where all are missing."""
    return min((offset for offset in offsets if offset is not None), default=None)


def repeated(extent: Extent, rounds: syntax.Iteration | syntax.First) -> Extent:
    """One part in each of several rounds, on different positions."""
    least = min(MANY, extent.least * rounds.least)
    if not extent.most or extent.most == UNLIMITED:
        most = extent.most
    else:
        most = UNLIMITED if rounds.most is None else min(MANY, extent.most * rounds.most)
    return Extent(extent.types, least, most)
