"""Scopes: the labels that a filter sees, and those among them that are surely bound.

A filter looks a label up in a chain of frames, innermost first: the labels of the formula it
stands on, of its scope, and of the scopes around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from celc_runtime.plan.frozen import frozen

from celc.resolve.extents import Binding, Labels


@frozen
class Beside:
    """The labels that are surely bound beside a part, and the parts of its sequence that bind
    them."""

    sure: Mapping[str, tuple[int, ...]]
    """For each label up to two parts that bind it in every match, so that one is not `own`."""
    own: int  # the number of the part
    outer: Beside | None


@frozen
class Frame:
    """The labels of one match around a filter, and the frames around it."""

    labels: Labels
    beside: Beside | None  # grows on the way from the scope down to the filter
    outer: Frame | None
    repeated: bool = False  # the scope stands inside a `+`, or other rounds without a limit
    left: Labels = field(default_factory=dict)
    """Those of its labels that are bound to the left of the part at hand."""
    right: Labels = field(default_factory=dict)  # and to the right
    history: frozenset[str] = frozenset()
    """In the operand of a FIRST: labels of which PREV and PRIOR look back over positions to its
    left."""


def to_the_left(frame: Frame | None) -> Frame | None:
    """The frames that a FIRST sees: only what is bound to the left of it."""
    if frame is None:
        return None
    return replace(frame, labels=frame.left, beside=None, outer=to_the_left(frame.outer))


def looks_left(frame: Frame | None, label: str) -> bool:
    """Whether PREV and PRIOR of a label look back over positions to the left of a FIRST."""
    while frame is not None:
        if label in frame.history:
            return True
        frame = frame.outer
    return False


def bound_later(frame: Frame | None) -> dict[str, Binding]:
    """The labels of the frames that are not bound to the left."""
    found: dict[str, Binding] = {}
    while frame is not None:
        for label, binding in frame.labels.items():
            if label not in frame.left:
                found.setdefault(label, binding)
        frame = frame.outer
    return found


def surely_bound(labels: Sequence[Labels]) -> dict[str, tuple[int, ...]]:
    """For each label up to two of several parts that bind it in every match."""
    sure: dict[str, tuple[int, ...]] = {}
    for k, part in enumerate(labels):
        for label, binding in part.items():
            before = sure.get(label, ())
            if binding.extent.least and len(before) < 2:
                sure[label] = (*before, k)
    return sure


def look_up(frame: Frame | None, label: str) -> tuple[Binding, bool] | None:
    """The binding of a label that a filter sees, and whether it is surely bound where the filter is
    judged. None where no frame has the label."""
    while frame is not None:
        binding = frame.labels.get(label)
        if binding is not None:
            return binding, bool(binding.extent.least) or _is_beside(frame.beside, label)
        frame = frame.outer
    return None


def _is_beside(beside: Beside | None, label: str) -> bool:
    while beside is not None:
        if any(part != beside.own for part in beside.sure.get(label, ())):
            return True
        beside = beside.outer
    return False


def visible_labels(frame: Frame | None) -> tuple[str, ...]:
    """All labels that a filter sees, innermost first."""
    labels: dict[str, None] = {}
    while frame is not None:
        labels.update(dict.fromkeys(frame.labels))
        frame = frame.outer
    return tuple(labels)
