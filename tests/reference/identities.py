"""Which matches `match_id` tells apart, by what they are made of.

Two rows of an answer are of one match where they agree in the partition, the row of the parameter
set, the first and the last event, and the events under each label; and two events are one where
they agree in the values that the query reads of them, and in their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from .answers import _comparable


def identity(
    match: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    read: Sequence[str],
    order: Sequence[str],
    *,
    has_ties: bool = False,
) -> Hashable:
    """What a match, in the form of the cases, is told by. events: of its partition, by their
    positions; read: the columns that the query reads, those of the order among them. has_ties: no
    event of one time comes first, so that a match starts and ends at times."""

    def values(place: int, names: Sequence[str]) -> Hashable:
        found = tuple(_comparable(_one_zero(events[place].get(name))) for name in names)
        return found if order else (*found, place)

    edges = order if has_ties else read
    labels = sorted(
        (label, tuple(sorted((values(place, read) for place in places), key=repr)))
        for label, places in match["labels"].items()
    )
    return (
        tuple((name, _comparable(_one_zero(value))) for name, value in match["partition"].items()),
        repr(match.get("parameters")),
        values(match["start"], edges),
        values(match["end"], edges),
        tuple(labels),
    )


def _one_zero(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value
