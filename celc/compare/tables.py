"""Streams of the search as tables: many in one, or one as users would write it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.schemas import arrow_type

from celc.compare.events import Domain, key_of
from celc.compare.sides import Side
from celc.compare.texts import STREAM_NUMBER
from celc.compare.times import Clocks
from celc.compare.values import as_python, default
from celc.core.formula import DataType

Times = Mapping[str, Sequence[int | float]]
"""For each clock the values at the events of a stream."""


@frozen
class Stream:
    """A small stream: its events by their numbers in the domain, and their times."""

    letters: tuple[int, ...]
    times: Times

    def without(self, place: int) -> Stream:
        """The stream without one event."""
        cut = slice(place, place + 1)
        letters = [*self.letters]
        del letters[cut]
        times = {}
        for name, values in self.times.items():
            kept = [*values]
            del kept[cut]
            times[name] = tuple(kept)
        return Stream(tuple(letters), times)


class Tables:
    """The tables of streams as one side reads them.

    `spreads`: attributes that lie a distance from a clock, with the clock and the direction.
    """

    def __init__(
        self,
        side: Side,
        domain: Domain,
        clocks: Clocks,
        spreads: Mapping[str, tuple[str, int]],
    ) -> None:
        self._side, self._domain, self._clocks = side, domain, clocks
        self._spreads = spreads
        columns: dict[str, DataType] = {}
        for event_type in side.types.values():
            for attribute in event_type.attributes:
                columns.setdefault(attribute.name, attribute.type)
        for stages in side.read:
            for one in stages.query.order_by:
                columns.setdefault(one.name, one.type)
        self._columns = columns
        self._letters = self._of_letters()

    def _of_letters(self) -> pa.Table:
        """A row for each event of the domain, without times."""
        side, letters = self._side, self._domain.letters
        owner = {key_of(side, key): one for key, one in side.types.items()}
        made: dict[str, pa.Array] = {}
        options = side.options
        made[options.type_column or "type"] = pa.array(
            [letter.type[1] for letter in letters], pa.string()
        )
        if side.query.needs_stream_column:
            made["stream"] = pa.array([letter.type[0] for letter in letters], pa.string())
        keys = {n for s in side.read for key in s.query.partition_by for n in key.attributes}
        for name, type in self._columns.items():
            if name in self._clocks.types and name not in self._spreads:
                continue
            given = self._domain.types.get(name, type)
            values = []
            for letter in letters:
                known = owner.get(letter.type)
                has = known is None or known.type_of(name) is not None
                value = letter.values.get(name)
                if value is None and name not in letter.values and has and name in keys:
                    value = default(given)
                values.append(as_python(value, given) if has else None)
            if name in self._spreads:
                made[name] = pa.array(values, arrow_type(given.value))
                continue
            array = pa.array(values, arrow_type(given.value))
            made[name] = array if given is type else array.cast(arrow_type(type.value))
        return pa.table(made)

    def of(self, streams: Sequence[Stream], *, numbered: bool = True) -> pa.Table:
        """The streams one after another, `numbered`: with the number of each."""
        numbers = np.repeat(np.arange(len(streams)), [len(one.letters) for one in streams])
        flat = [letter for one in streams for letter in one.letters]
        table = self._letters.take(pa.array(flat, pa.int64()))
        for name, type in self._clocks.types.items():
            if name not in self._columns:
                continue
            times = [value for one in streams for value in one.times[name]]
            table = _with(table, name, _times(times, type, self._columns[name]))
        for name, (clock, direction) in self._spreads.items():
            if name not in self._columns:
                continue
            near = [
                self._domain.letters[letter].values.get(name) or 0
                for one in streams
                for letter in one.letters
            ]
            times = [value for one in streams for value in one.times[clock]]
            moved = [time + direction * by for time, by in zip(times, near, strict=True)]
            type = self._columns[name]
            table = _with(table, name, _times(moved, type, type))
        for name in self._side.options.tiebreak:
            if name not in table.column_names:
                table = table.append_column(name, pa.array(range(len(table)), pa.int64()))
        if numbered:
            table = table.append_column(STREAM_NUMBER, pa.array(numbers, pa.int64()))
        return table


def _with(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def _times(values: Sequence[int | float], given: DataType, type: DataType) -> pa.Array:
    target = arrow_type(given.value)
    if given.is_checked:
        found = pa.array(np.array(values, np.int64)).cast(target)
    elif given is DataType.DATE:
        found = pa.array(np.array(values, np.int32)).cast(target)
    else:
        found = pa.array([as_python(value, given) for value in values], target)
    return found if given is type else found.cast(arrow_type(type.value))


def parameter_tables(sides: Iterable[Side], domain: Mapping[str, tuple[Any, ...]]) -> Any:
    """The tables of parameter sets over a domain: all combinations of the values of attributes."""
    from itertools import islice, product

    found: dict[str, pa.Table] = {}
    for side in sides:
        for stages in side.read:
            parameters = stages.query.parameters
            if parameters is None:
                continue
            names = [one.name for one in parameters.attributes]
            lists = [
                domain.get(f"{parameters.name}.{one.name}", (default(one.type),))
                for one in parameters.attributes
            ]
            rows = list(islice(product(*lists), 60))
            found[parameters.name] = pa.table(
                {
                    name: pa.array(
                        [as_python(row[place], one.type) for row in rows],
                        arrow_type(one.type.value),
                    )
                    for place, (name, one) in enumerate(
                        zip(names, parameters.attributes, strict=True)
                    )
                }
            )
    return found
