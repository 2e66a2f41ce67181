"""Whether engines give the same answer: rows of ids, each as often as it is there, in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_SHOWN = 3  # rows of a difference that are kept


@dataclass(frozen=True, slots=True)
class Compared:
    """same: the engines that give the answer that most of them give. differences: of each other
    engine how many rows it has that `same` have not, how many it lacks, and some of these rows."""

    same: tuple[str, ...]
    differences: dict[str, dict[str, Any]]


def in_order(answer: pa.Table) -> pa.Table:
    """The rows of an answer in an order that does not depend on who found them."""
    numbers = answer.cast(pa.schema([(name, pa.int64()) for name in answer.column_names]))
    return numbers.sort_by([(name, "ascending") for name in numbers.column_names]).combine_chunks()


def compared(answers: dict[str, pa.Table]) -> Compared:
    """Who gives the same answer. Of two answers that equally many give, that of the first engine
    counts."""
    groups: list[tuple[pa.Table, list[str]]] = []
    for name, answer in answers.items():
        rows = in_order(answer)
        same = next((names for other, names in groups if other.equals(rows)), None)
        if same is None:
            groups.append((rows, [name]))
        else:
            same.append(name)
    if not groups:
        return Compared((), {})
    right, names = max(groups, key=lambda group: len(group[1]))
    differences = {
        name: _difference(right, rows)
        for rows, others in groups
        if others != names
        for name in others
    }
    return Compared(tuple(names), differences)


def _difference(right: pa.Table, other: pa.Table) -> dict[str, Any]:
    mine, theirs = _rows(right), _rows(other)
    more, fewer = sorted(theirs - mine), sorted(mine - theirs)
    found: dict[str, Any] = {"more": len(more), "fewer": len(fewer)}
    if not more and not fewer:
        found["often"] = len(other) - len(right)
    return found | {"rows": [*more[:_SHOWN]], "without": [*fewer[:_SHOWN]]}


def _rows(table: pa.Table) -> set[tuple[int, ...]]:
    return set(zip(*(column.to_pylist() for column in table.columns), strict=True))


def in_words(difference: dict[str, Any]) -> str:
    """A difference in words, with a row of each kind: its ids, in the order of the answer."""
    if "often" in difference:
        return f"the same rows as the others, but some more or less often: {difference['often']:+,}"
    kinds = ((difference["more"], "more", "rows"), (difference["fewer"], "fewer", "without"))
    told = [
        f"{many:,} row{'s' * (many != 1)} {what} than the others, as {tuple(difference[which][0])}"
        for many, what, which in kinds
        if many
    ]
    return ", and ".join(told)
