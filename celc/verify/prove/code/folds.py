"""Rows about many matches: COLLAPSED, and the plain items of TOTAL, from a list of the matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from celc.core.formula import (
    Comparison,
    Constant,
    PerEnd,
    PerPartition,
    Query,
    Total,
    TotalOf,
    Variable,
)
from celc.verify.prove.code.paths import Path
from celc.verify.prove.verdict import NotUnderstoodError

Row: TypeAlias = tuple[Any, ...]
Ends: TypeAlias = Iterable[tuple[int, Sequence[Path]]]
Events: TypeAlias = Sequence[Mapping[str, Any]]


def check_understood(query: Query) -> None:
    """Raises NotUnderstoodError for a TOTAL of which nothing is compared."""
    total = query.total
    if total is None:
        return
    if not isinstance(total.per, PerEnd | PerPartition):
        raise NotUnderstoodError(f"TOTAL PER {total.per}")
    if not _plain(total):
        raise NotUnderstoodError("TOTAL of expressions")


def attributes_of_totals(query: Query) -> set[str]:
    """The attributes that the compared items of TOTAL read."""
    if query.total is None:
        return set()
    return {one.attribute for one in _plain(query.total).values() if one.attribute is not None}


def united(ends: Ends, shown: Sequence[str]) -> Counter[Row]:
    """The rows of COLLAPSED: the least start, the end, how many, and the union under each label."""
    found: Counter[Row] = Counter()
    for end, matches in ends:
        if not matches:
            continue
        rows = []
        for name in shown:
            events = {row for one in matches for row, marks in one.events if name in marks}
            rows.append((name, tuple(sorted(events))))
        found[min(one.start for one in matches), end, len(matches), tuple(rows)] += 1
    return found


def read_united(rows: Iterable[Mapping[str, Any]], shown: Sequence[str]) -> Counter[Row]:
    """The rows of COLLAPSED that a module gives, as `united` has them."""
    return Counter(
        (
            row["start_pos"],
            row["end_pos"],
            int(row["matches"]),
            tuple((name, tuple(event["pos"] for event in row[name])) for name in shown),
        )
        for row in rows
    )


def totals(query: Query, ends: Ends, events: Events) -> Counter[Row]:
    """The rows of TOTAL, as far as they are compared: the end (of PER END), and plain items."""
    total = query.total
    assert total is not None
    groups: dict[int | None, list[Path]] = {}
    for end, matches in ends:
        if matches:
            groups.setdefault(end if isinstance(total.per, PerEnd) else None, []).extend(matches)
    found: Counter[Row] = Counter()
    for group, matches in groups.items():
        values = {name: _value(one, matches, events) for name, one in _plain(total).items()}
        if _is_kept(total, values):
            found[group, *values.items()] += 1
    return found


def read_totals(query: Query, rows: Iterable[Mapping[str, Any]]) -> Counter[Row]:
    """The rows of TOTAL that a module gives, in the form of those that are expected."""
    total = query.total
    assert total is not None
    per_end = isinstance(total.per, PerEnd)
    return Counter(
        (
            row["end_pos"] if per_end else None,
            *((name, _number(row[name])) for name in _plain(total)),
        )
        for row in rows
    )


def _plain(total: Total) -> dict[str, TotalOf]:
    """The items that are one function of matches."""
    return {
        item.name: item.value
        for item in total.items
        if isinstance(item.value, TotalOf)
        and item.value.function in ("COUNT", "SUM", "MIN", "MAX")
        and (item.value.read is None or item.value.read.value in _NUMBERS)
    }


_NUMBERS = frozenset({"BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"})


def _value(one: TotalOf, matches: Sequence[Path], events: Events) -> float | None:
    if one.label is None:
        return len(matches)
    rows = [row for match in matches for row, marks in match.events if one.label in marks]
    if one.attribute is None:
        return len(rows)
    values = [v for row in rows if (v := events[row].get(one.attribute)) is not None]
    if not values:
        return None
    found: dict[str, float] = {
        "COUNT": len(values),
        "SUM": sum(values),
        "MIN": min(values),
        "MAX": max(values),
    }
    return found[one.function]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _is_kept(total: Total, values: Mapping[str, float | None]) -> bool:
    having = total.having
    if having is None:
        return True
    sides: list[float] = []
    if isinstance(having, Comparison) and not having.beside:
        for side in (having.left, having.right):
            known = None
            if isinstance(side, Constant) and isinstance(side.value, int | float):
                known = side.value
            elif isinstance(side, Variable) and side.name in values:
                known = values[side.name]
                if known is None:
                    return False
            if known is None:
                break
            sides.append(known)
    if len(sides) != 2 or not isinstance(having, Comparison):
        raise NotUnderstoodError("HAVING of more than a plain item and a number")
    left, right = sides
    return {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "=": left == right,
        "!=": left != right,
    }[having.operator]
