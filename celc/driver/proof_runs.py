"""A module's own run over strings of symbols, for proofs: what its code lists, without its classes.

The symbols of events are given, so that a proof chooses them. All else is as always: the update,
the walk, the choice and the answer of the runtime, over a table of events.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from celc_runtime.jit.kernels import taking_what_is_made
from celc_runtime.jit.shipping import module_of
from celc_runtime.plan.schemas import input_schema
from celc_runtime.query import CompiledQuery

Rows: TypeAlias = list[dict[str, Any]]

ListedBy: TypeAlias = Callable[[Sequence[int], Mapping[str, Sequence[Any]]], Rows]
"""The rows of the answer over events with these symbols and these values of columns."""


def listed_by(module: str, query: str) -> ListedBy:
    """What a query of a module lists; `module` is the module's text.

    Columns that are not given are NULL, and those of types have a type that the query reads.
    """
    program = module_of(module).QUERIES[query].program
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
        with warnings.catch_warnings(), taking_what_is_made():
            warnings.simplefilter("ignore")
            read = CompiledQuery(replace(program, classify=classify)).match_table(table)
        return list(read.to_pylist())

    return rows


def _filling(plan: Any, field: pa.Field) -> Any:
    stream, kind = plan.source.declared_types[0]
    if field.name == "stream" and plan.source.stream_column:
        return stream
    return kind if field.name == plan.source.type_name and plan.source.type_column else None
