"""The rows of a parameter table: columns in the declared types, each row once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import as_keys, in_one_piece, plain
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.parameters import OfBoth, Parameters
from celc_runtime.plan.plan import Attribute, Plan, Source
from celc_runtime.plan.strategy import All
from celc_runtime.program import Program, Rows
from celc_runtime.rules.versions import coded_keys, with_times


def given_rows(program: Program, tables: Mapping[str, Any]) -> Rows:
    """The rows of the table that a call gives for the parameter set of a query.

    tables: one at least. Raises TypeError for a table without a set and a value that is not a
    table; EventError if the table does not fit the declaration, or is wrong in its versions.
    """
    parameters = asked_set(program, tables)
    return rows_of(program.name, parameters, tables[parameters.name])


def asked_set(program: Program, tables: Mapping[str, Any]) -> Parameters:
    """The parameter set of a query whose call gives tables, one at least. Raises TypeError for a
    table without a set."""
    parameters = program.plan.source.parameters
    wanted = [] if parameters is None else [parameters.name]
    for name in tables:
        if name not in wanted:
            if name == "threads":
                raise TypeError(
                    f"query {program.name!r} takes no threads here, because one thread reads "
                    "batches as they come: give all events to match_table(events, threads=…) or "
                    "match_compact(events, threads=…)"
                )
            known = f"its parameter set is {wanted[0]!r}" if wanted else "it has no parameter set"
            raise TypeError(f"query {program.name!r} takes no argument {name!r}: {known}")
    assert parameters is not None, "a call without tables has no rows"
    return parameters


def rows_of(query: str, parameters: Parameters, table: Any) -> Rows:
    """The rows of a table in any form that `match_table` takes; equal rows count once.

    So the answer does not depend on which of them comes first. Rows that were read before are
    taken as they are.
    """
    if isinstance(table, Rows):
        return table
    reader = reader_of(query, parameters)
    try:
        found = table_of(reader, table)
        batch = pa.RecordBatch.from_arrays(
            [in_one_piece(column) for column in found.columns], found.column_names
        )
        batch = conforming(reader.plan, batch)
    except (EventError, TypeError) as problem:
        raise type(problem)(f"parameters {parameters.name!r}: {problem}") from None
    columns = {one.name: as_keys(plain(batch.column(one.name))) for one in parameters.attributes}
    rows = Rows(len(batch), columns)
    rows = rows.take(first_of_equal(rows))
    return rows if parameters.valid is None else with_times(parameters, rows)


def neighbours(rows: Rows, parameters: Parameters) -> tuple[Rows, np.ndarray]:
    """The rows in an order where those that concern the same events are neighbours, and their
    numbers (int64) in `rows`.

    The pairs of a row are read together. So its events are still in the processor's cache when
    those of the next row are read.
    """
    if "neighbours" not in rows.kept:
        order = _order_of_neighbours(rows, parameters)
        rows.kept["neighbours"] = rows.take(order), order
    found: tuple[Rows, np.ndarray] = rows.kept["neighbours"]
    return found


def reader_of(query: str, parameters: Parameters) -> Program:
    """A program that reads the table as if its rows were events of one type."""
    attributes = tuple(Attribute(one.name, one.type) for one in parameters.attributes)
    # A column of the table may have the usual name.
    source = Source(attributes=attributes, type_name=f"{parameters.number}type")
    none: Any = None
    return Program(Plan(name=query, source=source), none, none, All(), {})


def _order_of_neighbours(rows: Rows, parameters: Parameters) -> np.ndarray:
    course = parameters.course
    concerns = parameters.concerns if course is None else course.begins
    tests = (
        test
        for concern in concerns or ()
        for way in concern.ways
        for either in way
        for test in either
    )
    equal = next((t for t in tests if isinstance(t, OfBoth) and t.operator == "="), None)
    if equal is None:
        return np.arange(rows.count)
    return np.argsort(coded_keys(rows.columns[equal.parameter]).indices, kind="stable")


def first_of_equal(rows: Rows) -> np.ndarray:
    """int64: the first row of each set of equal rows, in order."""
    codes = np.zeros(rows.count, np.int64)
    for column in rows.columns.values():
        coded = coded_keys(column)
        codes = codes * max(1, len(coded.dictionary)) + np.asarray(coded.indices)
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    first = np.unique(codes, return_index=True)[1]
    return np.sort(first)
