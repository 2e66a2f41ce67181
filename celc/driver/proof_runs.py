"""A module's own run for proofs: what its code lists for symbols, and the symbols of events.

Where symbols are given, a proof chooses them. All else is as always: the update, the walk, the
choice and the answer of the runtime, over a table of events.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from celc_runtime.jit.kernels import interpreting
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import input_schema
from celc_runtime.query import CompiledQuery

from celc.driver.proved_answers import table_of_events
from celc.verify.prove.streams import Event

Rows: TypeAlias = list[dict[str, Any]]


class _AllFoundError(Exception):
    """The symbols of all events are found."""


def listed_by(
    query: CompiledQuery,
) -> Callable[[Sequence[int], Mapping[str, Sequence[Any]]], Rows]:
    """A function from symbols of events and values of columns to the rows of a query's answer.

    Columns that are not given are NULL, and those of types have a type that the query reads.
    """
    program = query.program
    schema = input_schema(program.plan)

    def rows(symbols: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> Rows:
        found = np.array(symbols, program.plan.matching.symbol_dtype)
        begun = 0

        def classify(*arguments: Any) -> None:
            nonlocal begun
            batch = arguments[-1]
            batch[:] = found[begun : begun + len(batch)]
            begun += len(batch)

        arrays = []
        for field in schema:
            given = columns.get(field.name)
            if given is None:
                given = [_filling(program.plan, field)] * len(symbols)
            arrays.append(pa.array(given, field.type))
        table = pa.Table.from_arrays(arrays, names=schema.names)
        return list(_answer(query, classify, table).to_pylist())

    return rows


def symbols_by(query: CompiledQuery) -> Callable[[Sequence[Event]], list[int]]:
    """A function from events to the symbols that a query's code finds for them."""
    program = query.program
    schema = input_schema(program.plan)

    def symbols(events: Sequence[Event]) -> list[int]:
        found: list[int] = []

        def classify(*arguments: Any) -> None:
            program.classify(*arguments)
            found.extend(arguments[-1].tolist())
            if len(found) == len(events):
                raise _AllFoundError

        # The matches of these events can be endless, and nobody asks for them.
        with suppress(_AllFoundError):
            _answer(query, classify, table_of_events(events, schema))
        return found

    return symbols


def _answer(query: CompiledQuery, classify: Callable[..., None], table: pa.Table) -> pa.Table:
    with warnings.catch_warnings(), interpreting():
        warnings.simplefilter("ignore")
        return CompiledQuery(replace(query.program, classify=classify)).match_table(table)


def _filling(plan: Plan, field: pa.Field) -> str | None:
    stream, kind = plan.source.declared_types[0]
    if field.name == "stream" and plan.source.stream_column:
        return stream
    return kind if field.name == plan.source.type_name and plan.source.type_column else None
