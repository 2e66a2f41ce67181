"""The labels of the events of a match as the bits of one number.

A match of thirty events and their labels is then joined with another, compared and hashed as a
number is, and a proof looks at hundreds of thousands of them. Each label has a band of bits, one
for each position of a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from celc.verify.prove.verdict import NotUnderstoodError

Labelling: TypeAlias = int
"""Pairs of a label and a position."""

Positions: TypeAlias = int
"""Positions of a stream as bits."""

NOWHERE: Positions = 0
MOST_EVENTS = 64  # of a stream

_ALL = (1 << MOST_EVENTS) - 1


class Labels:
    """The bands of labels. All labellings that are compared with each other have the same ones."""

    def __init__(self) -> None:
        self._bands: dict[str, int] = {}
        self._kept: dict[Callable[[str], bool], tuple[int, Labelling]] = {}
        self._places: dict[Positions, tuple[int, ...]] = {}

    def _band(self, label: str) -> int:
        if label not in self._bands:
            self._bands[label] = MOST_EVENTS * len(self._bands)
        return self._bands[label]

    def at(self, labels: Iterable[str], place: int) -> Labelling:
        """An event with some labels. Raises NotUnderstoodError behind the last position."""
        if place >= MOST_EVENTS:
            raise NotUnderstoodError(f"streams of more than {MOST_EVENTS} events")
        found = 0
        for label in labels:
            found |= 1 << self._band(label) + place
        return found

    def positions(self, mu: Labelling, label: str) -> Positions:
        """The positions of a label."""
        return mu >> self._band(label) & _ALL

    def labelled(self, positions: Positions, label: str) -> Labelling:
        """Some positions with a label."""
        return positions << self._band(label)

    def bands(self, labels: Iterable[str]) -> Labelling:
        """Some labels at all positions: `mu & bands` are these labels of `mu`."""
        found = 0
        for label in labels:
            found |= _ALL << self._band(label)
        return found

    def kept(self, mu: Labelling, is_kept: Callable[[str], bool]) -> Labelling:
        """The part of a labelling with labels of a kind."""
        number, bands = self._kept.get(is_kept, (0, 0))
        if number != len(self._bands):
            bands = self.bands(filter(is_kept, [*self._bands]))
            self._kept[is_kept] = len(self._bands), bands
        return mu & bands

    def renamed(self, mu: Labelling, old: str, new: str) -> Labelling:
        """A labelling with one label in place of another."""
        there = self.positions(mu, old)
        return mu & ~self.labelled(_ALL, old) | self.labelled(there, new)

    def support(self, mu: Labelling, is_kept: Callable[[str], bool] | None = None) -> Positions:
        """The positions that have a label, or one of a kind."""
        found = 0
        for label, band in self._bands.items():
            if is_kept is None or is_kept(label):
                found |= mu >> band
        return found & _ALL

    def places(self, positions: Positions) -> tuple[int, ...]:
        """Positions as numbers, in order."""
        if positions not in self._places:
            self._places[positions] = tuple(places_of(positions))
        return self._places[positions]

    def sets(self, mu: Labelling) -> dict[str, tuple[int, ...]]:
        """The positions of each label that has some, in order."""
        return {
            label: self.places(there)
            for label, band in self._bands.items()
            if (there := mu >> band & _ALL)
        }

    def pairs(self, mu: Labelling) -> frozenset[tuple[str, int]]:
        """A labelling as pairs of a label and a position."""
        return frozenset((label, one) for label, some in self.sets(mu).items() for one in some)


def places_of(positions: Positions) -> Iterator[int]:
    """Positions as numbers, in order."""
    while positions:
        yield (positions & -positions).bit_length() - 1
        positions &= positions - 1


def last_of(positions: Positions) -> int:
    """The last position; −1: there is none."""
    return positions.bit_length() - 1
