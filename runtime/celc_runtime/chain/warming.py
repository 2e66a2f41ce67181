"""The machine code of queries, made before their events are there.

A query is run over made-up events, as `match_table` runs it. Their values are near the constants in
the query's text, so that most queries find matches, whose code is made as well.
"""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.chain.columns import source_of
from celc_runtime.jit.kernels import compiling
from celc_runtime.jit.watching import watched_by
from celc_runtime.plan.errors import EventError, EventWarning
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.plan.schemas import arrow_type

_MANY, _FEW = 300, 24  # rows
_BATCHES = 3
_MOST_MATCHES = 2_000
"""So that the few rows of a first batch cannot reach it, and a search ends soon."""

_NUMBER = re.compile(r"(?<![\w.'])\d+(?:\.\d+)?")
_TEXT = re.compile(r"'((?:[^']|'')*)'")


def make_machine_code(query: Any) -> list[str]:
    """Make the machine code that a large input needs; returns the names of what Numba compiled.

    query: a `CompiledQuery`, with which those that it reads are run, or a `RowPatternQuery`.
    Code that only some matches need may not be made.
    """
    made: list[str] = []

    def note(kernel: str, begins: bool) -> None:
        if begins:
            made.append(kernel)

    with watched_by(note), compiling(), warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        for seed, (rows, in_order, most) in enumerate(
            (
                (_MANY, True, 1),
                (_FEW, True, _MOST_MATCHES),
                (_FEW, True, _MOST_MATCHES),
                (_FEW, False, _MOST_MATCHES),
            )
        ):
            values = _Values(_text_of(query), np.random.default_rng(seed), rows)
            # The events are made up, so an error says nothing.
            with suppress(EventError):
                _run(query, values, most, in_order=in_order)
    return made


def _run(query: Any, values: _Values, most: int, *, in_order: bool) -> None:
    if isinstance(query.plan, RowPlan):
        query.match_table(pa.table({f.name: values.of(f.type) for f in query.input_schema}))
        return
    parameters = query.plan.source.parameters
    tables = {}
    if parameters is not None:
        columns = {one.name: values.of(arrow_type(one.type)) for one in parameters.attributes}
        tables[parameters.name] = pa.table(columns)
    events = _events(query, values)
    if not in_order:
        events = events.take(pa.array(values.permutation()))
    batches = events.to_batches(max_chunksize=values.rows // _BATCHES)
    query.match_table(pa.Table.from_batches(batches), max_matches=most, **tables)


def _events(query: Any, values: _Values) -> pa.Table:
    plan = source_of(query.program).plan
    source = plan.source
    times = {*source.order_by, *source.tiebreak}
    for window in (*plan.matching.windows, *query.plan.matching.windows):
        times |= {name for name in (window.attribute, window.begin) if name is not None}
    columns = {
        field.name: values.ascending(field.type) if field.name in times else values.of(field.type)
        for field in query.file_schema
    }
    types = [source.declared_types[n] for n in values.chosen(len(source.declared_types))]
    if source.type_name in columns:
        columns[source.type_name] = pa.array([name for _, name in types])
    if source.stream_column:
        columns["stream"] = pa.array([stream for stream, _ in types])
    return pa.table(columns)


class _Values:
    """Random values near the constants in a text."""

    def __init__(self, text: str, random: np.random.Generator, rows: int) -> None:
        self._random = random
        self.rows = rows
        found = np.array([0.0, *{float(one) for one in _NUMBER.findall(text)}])
        self._numbers = np.concatenate([found - 1, found, found + 1, -found])
        self._texts = ["a", *(one.replace("''", "'") for one in _TEXT.findall(text))]

    def of(self, type: pa.DataType) -> pa.Array:
        """A column of this type."""
        if pa.types.is_string(type):
            return pa.array(self._texts).take(pa.array(self.chosen(len(self._texts))))
        if pa.types.is_boolean(type):
            return pa.array(self.chosen(2) == 1)
        numbers = self._numbers[self.chosen(len(self._numbers))]
        if pa.types.is_floating(type):
            return pa.array(numbers).cast(type)
        return _whole(np.clip(numbers, -(2.0**31), 2.0**31 - 1).astype(np.int64), type)

    def ascending(self, type: pa.DataType) -> pa.Array:
        """A column whose values can be an order."""
        if pa.types.is_string(type):
            return pa.array([f"{number:04}" for number in range(self.rows)])
        return _whole(np.arange(self.rows), type)

    def chosen(self, count: int) -> np.ndarray:
        """int64[rows]: random numbers below `count`."""
        return self._random.integers(count, size=self.rows)

    def permutation(self) -> np.ndarray:
        """int64[rows]: all rows in a random order."""
        return self._random.permutation(self.rows)


def _whole(numbers: np.ndarray, type: pa.DataType) -> pa.Array:
    array = pa.array(numbers)
    if pa.types.is_null(type):  # a column that may have any type
        return array
    if pa.types.is_date32(type):
        array = array.cast(pa.int32())
    return array.cast(type)


def _text_of(query: Any) -> str:
    """The text of the query alone, in a file of several."""
    text: str = query.text
    begin = re.search(rf"\bQUERY\s+{re.escape(query.name)}\s*:", text, re.IGNORECASE)
    if begin is None:
        return text
    end = re.compile(r"\bQUERY\b", re.IGNORECASE).search(text, begin.end())
    return text[begin.start() : len(text) if end is None else end.start()]
