"""MATCH_RECOGNIZE by its definitions: derivations in order of preference, one row at a time.

Nothing is shared with the compiler but the reader of the text. A pattern is a generator of its
derivations; expressions are evaluated on the rows mapped so far. Everything is recomputed wherever
it is asked for, so it is for tables of a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from celc.row_pattern import syntax

from .row_expressions import UNITS, Values, kind_of
from .values import Datum, Kind, datum_of, microseconds

Row = Mapping[str, Datum]
Path = tuple[tuple[str, bool], ...]
"""The variables of the rows taken so far, and whether each row is excluded."""


class TooLong(Exception):
    """More steps than a test can wait for."""


class RunError(Exception):
    """The run stops with an error: `kind` says which."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def answer(
    query: syntax.Query, text: str, table: Sequence[Mapping[str, Any]], most: int = 200_000
) -> list[dict[str, Any]]:
    """The rows of the result, partition by partition in the order of their first rows; `text` is
    that of the query."""
    assert query.table is not None
    kinds = {one.name.key: kind_of(one.type) for one in query.table.columns}
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in table:
        read = {name.casefold(): value for name, value in row.items()}
        data = {key: datum_of(kind, read[key]) for key, kind in kinds.items()}
        keys = [_unsigned(_of_row(one, data, text)) for one in query.partition_by]
        found = dict(data)
        found |= {one.called.key: k for one, k in zip(query.partition_by, keys, strict=True)}
        for one in query.order_by:
            found |= {one.key.called.key: _of_row(one.key, data, text)}
        parts.setdefault(tuple(map(_in_order, keys)), []).append(found)
    rows = []
    for part in parts.values():
        for one in reversed(query.order_by):
            key = one.key.called.key
            if one.nulls_first is None and any(row[key].value is None for row in part):
                raise RunError("null-order")
            nulls_last = one.nulls_first is not True
            part.sort(key=lambda row: _in_order(row[key]), reverse=one.descending)
            part.sort(key=lambda row: (row[key].value is None) == nulls_last)
        rows += _Partition(query, text, part, list(kinds), most).rows()
    return [{name: datum.value for name, datum in row.items()} for row in rows]


def _of_row(key: syntax.Key, row: Row, text: str) -> Datum:
    """The value of a key of a row."""
    return Values(text, {}, {}, [row], 0, (), (), 0, row=0).value(key.expression)


def _unsigned(datum: Datum) -> Datum:
    """What a partition shows of its key: 0.0 for -0.0."""
    value = datum.value
    return Datum(datum.kind, value + 0.0 if isinstance(value, float) else value)


def _in_order(datum: Datum) -> Any:
    """A value that is equal where keys are, and sorts as they do: NaN equals NaN, above all."""
    value = datum.value
    if value is None:
        return (False, False, 0)
    is_nan = value != value
    if isinstance(value, str):
        value = value.encode()
    return (True, is_nan, 0 if is_nan else value)


@dataclass(frozen=True)
class _Match:
    start: int
    path: Path
    number: int


class _Partition:
    def __init__(
        self, query: syntax.Query, text: str, rows: list[Row], columns: list[str], most: int
    ) -> None:
        self._query = query
        self._text = text
        self._rows = rows
        self._columns = columns
        self._left = most
        self._define = {one.name.key: one.condition for one in query.definitions}
        self._names: dict[str, str] = {}
        for name in _variables(query.pattern):
            self._names.setdefault(name.key, name.text)
        self._members = {key: {key} for key in self._names}
        for subset in query.subsets:
            self._members[subset.name.key] = {member.key for member in subset.members}

    # --- matches ----------------------------------------------------------------------------------

    def _values(self, start: int, seen: Path, whole: Path, number: int) -> Values:
        return Values(
            self._text, self._names, self._members, self._rows, start, seen, whole, number
        )

    def rows(self) -> list[dict[str, Datum]]:
        """The result of the partition."""
        found: list[dict[str, Datum]] = []
        covered, number, start = 0, 0, 0
        while start < len(self._rows):
            path = next(self._derive(self._query.pattern, start, start, (), number + 1), None)
            if path is None:
                if self._query.rows == "WITH UNMATCHED" and start >= covered:
                    found.append(self._shown(None, start, None))
                start += 1
                continue
            number += 1
            match = _Match(start, path, number)
            found += self._rows_of(match)
            covered = max(covered, start + len(path))
            start = self._following(match)
        return found

    def _rows_of(self, match: _Match) -> Iterator[dict[str, Datum]]:
        query = self._query
        if not match.path:
            if query.rows != "OMIT EMPTY":
                yield self._shown(match, match.start, None)
        elif query.rows == "ONE ROW":
            yield self._shown(match, match.start, len(match.path) - 1)
        else:
            for place, (_, excluded) in enumerate(match.path):
                if not excluded:
                    yield self._shown(match, match.start + place, place)

    def _following(self, match: _Match) -> int:
        skip = self._query.skip
        if not match.path or skip.mode == "TO NEXT ROW":
            return match.start + 1
        if skip.mode == "PAST LAST ROW":
            return match.start + len(match.path)
        assert skip.target is not None
        members = self._members[skip.target.key]
        places = [n for n, (variable, _) in enumerate(match.path) if variable in members]
        if not places:
            raise RunError("skip-target-missing")
        place = places[0 if skip.mode == "TO FIRST" else -1]
        if place == 0:
            raise RunError("skip-to-first-row")
        return match.start + place

    def _shown(self, match: _Match | None, row: int, place: int | None) -> dict[str, Datum]:
        query = self._query
        measured: dict[str, Datum] = {}
        for measure in query.measures:
            value = Datum(Kind.NULL, None)
            if match is not None:
                whole = match.path
                seen = whole[: 0 if place is None else place + 1]
                values = self._values(match.start, seen, whole, match.number)
                value = replace(values, measures=measured).value(measure.expression)
            measured[measure.name.key] = value
        here = self._rows[row]
        every = {one.called.key: here[one.called.key] for one in query.partition_by}
        if query.rows != "ONE ROW":
            ordered = [one.key for one in query.order_by]
            every |= {
                one.called.key: here[one.called.key] for one in ordered if one.column or one.name
            }
        every |= measured
        if query.rows != "ONE ROW":
            every |= {key: here[key] for key in self._columns if key not in every}
        if query.selected is None:
            return every
        return {(one.alias or one.column).key: every[one.column.key] for one in query.selected}

    # --- derivations ------------------------------------------------------------------------------

    def _derive(
        self, pattern: syntax.Pattern, start: int, row: int, path: Path, number: int
    ) -> Iterator[Path]:
        """The paths to which a pattern leads from a row, the preferred first."""
        yield from self._of(pattern, start, path, number, False)

    def _of(
        self, node: syntax.Pattern, start: int, path: Path, number: int, excluded: bool
    ) -> Iterator[Path]:
        row = start + len(path)
        self._left -= 1
        if self._left < 0:
            raise TooLong
        match node:
            case syntax.Variable():
                longer = (*path, (node.name.key, excluded))
                if row < len(self._rows) and self._fits(start, row):
                    condition = self._define.get(node.name.key)
                    values = self._values(start, longer, longer, number)
                    if condition is None or values.value(condition).value is True:
                        yield longer
            case syntax.Nothing():
                yield path
            case syntax.Anchor():
                if row == (0 if node.sign == "^" else len(self._rows)):
                    yield path
            case syntax.Concatenation():
                yield from self._in_turn(node.parts, start, path, number, excluded)
            case syntax.Alternation():
                for part in node.parts:
                    yield from self._of(part, start, path, number, excluded)
            case syntax.Permutation():
                for order in permutations(node.parts):
                    yield from self._in_turn(order, start, path, number, excluded)
            case syntax.Exclusion():
                yield from self._of(node.part, start, path, number, True)
            case syntax.Repetition():
                yield from self._rounds(node, 0, start, path, number, excluded)

    def _in_turn(
        self,
        parts: Sequence[syntax.Pattern],
        start: int,
        path: Path,
        number: int,
        excluded: bool,
    ) -> Iterator[Path]:
        if not parts:
            yield path
            return
        for longer in self._of(parts[0], start, path, number, excluded):
            yield from self._in_turn(parts[1:], start, longer, number, excluded)

    def _rounds(
        self,
        node: syntax.Repetition,
        done: int,
        start: int,
        path: Path,
        number: int,
        excluded: bool,
    ) -> Iterator[Path]:
        if node.reluctant and done >= node.least:
            yield path
        if node.most is None or done < node.most:
            for longer in self._of(node.part, start, path, number, excluded):
                if len(longer) == len(path) and done + 1 >= node.least:
                    yield longer  # an empty round past the lower bound is the last
                else:
                    yield from self._rounds(node, done + 1, start, longer, number, excluded)
        if not node.reluctant and done >= node.least:
            yield path

    def _fits(self, start: int, row: int) -> bool:
        within = self._query.within
        if within is None:
            return True
        length = int(within.amount) * UNITS[within.unit.text.upper().removesuffix("S")]
        column = self._query.order_by[0].key.called.key
        first, last = (microseconds(self._rows[one][column]) for one in (start, row))
        assert first is not None
        assert last is not None
        return last - first <= length


def _variables(node: syntax.Pattern) -> Iterator[syntax.Name]:
    match node:
        case syntax.Variable():
            yield node.name
        case syntax.Concatenation() | syntax.Alternation() | syntax.Permutation():
            for part in node.parts:
                yield from _variables(part)
        case syntax.Exclusion() | syntax.Repetition():
            yield from _variables(node.part)
