"""FOR EACH: the comparisons by which the rows that an event can concern are searched.

The index of rows uses them, and `celc explain` shows them.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeVar

_T = TypeVar("_T")

_MOST_CHOICES = 64  # ways to choose a test from each OR; beyond them an OR is left out

_LOWER = ("<", "<=")
"""With these an event has the lower value, and the row's attribute is an upper bound."""


def choices_of(way: Sequence[Sequence[_T]]) -> Iterator[tuple[_T, ...]]:
    """An AND of ORs as ANDs with one test of each OR; if there are too many, some ORs are left
    out."""
    taken, count = [], 1
    for clause in sorted(way, key=len):
        if count * len(clause) <= _MOST_CHOICES:
            taken.append(clause)
            count *= len(clause)
    yield from product(*taken)


def is_lower(operator: str) -> bool:
    """Whether an event is below the rows that a comparison admits: `event < row`."""
    return operator in _LOWER


def bounds_of(operators: Sequence[str]) -> tuple[int, ...]:
    """The indices of the comparisons (none an equality) by whose order rows are searched.

    At most two: one where the event is lower, then one where it is greater, because two of the same
    kind exclude less. The other comparisons are checked for each pair.
    """
    places = sorted(range(len(operators)), key=lambda place: not is_lower(operators[place]))
    first, rest = places[:1], places[1:]
    others = [one for one in rest if is_lower(operators[one]) != is_lower(operators[first[0]])]
    return (*first, *(others or rest)[:1])
