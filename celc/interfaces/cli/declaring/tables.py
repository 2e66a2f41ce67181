"""The first rows of a table of a library, and `celc.declare`.

No library is imported here: whoever has a table of one has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from celc.interfaces.cli.declaring.files import declared_files
from celc.interfaces.cli.declaring.samples import MOST_ROWS, Sample, flattened
from celc.interfaces.cli.declaring.shape import CannotDeclare, shape_of
from celc.interfaces.cli.declaring.text import declaration
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.reading.events import Form

_ACCEPTED = (
    "a DataFrame of Spark, pandas or polars, a relation of DuckDB, a pyarrow Table or dataset, "
    "anything else with __arrow_c_stream__, a dictionary of columns, or the path of a file"
)


def declared(table: Any, type_column: str | None, name: str | None) -> str:
    """The text of `celc.declare`. Raises ValueError and TypeError as that does."""
    if isinstance(table, str | PathLike) or _are_paths(table):
        paths = [table] if isinstance(table, str | PathLike) else table
        try:
            return declared_files(list(map(str, paths)), Form(), type_column=type_column, name=name)
        except CommandProblem as problem:
            raise CannotDeclare(str(problem)) from None
    left_out: dict[str, str] = {}
    rows = _first_rows(table, left_out)
    is_whole = len(rows) <= MOST_ROWS
    rows = flattened(rows.slice(0, MOST_ROWS))
    counted = f"{len(rows):,} row{'' if len(rows) == 1 else 's'} of a table"
    told = f"the {counted}" if is_whole else f"the first {counted}"
    sample = Sample(rows, told, is_whole, left_out, Form(), {}, {})
    called = name or "events"
    return declaration(sample, shape_of(sample, called, type_column), called, ())


def _are_paths(table: Any) -> bool:
    is_list = isinstance(table, Sequence) and not isinstance(table, str | bytes) and bool(table)
    return is_list and all(isinstance(one, str | PathLike) for one in table)


def _first_rows(table: Any, left_out: dict[str, str]) -> pa.Table:
    """The first MOST_ROWS rows of a table and one more, which shows that there are others."""
    most = MOST_ROWS + 1
    library = type(table).__module__.split(".")[0]
    if library == "pyspark" and hasattr(table, "toArrow"):
        if table.isStreaming:
            raise TypeError(
                "a stream has no rows to look at: declare a DataFrame of spark.read with its files "
                "or its table"
            )
        return table.limit(most).toArrow()
    if _is_a(table, "pandas", "DataFrame"):
        return _of_pandas(table.head(most), left_out)
    if _is_a(table, "polars", "LazyFrame"):
        return pa.table(table.head(most).collect())
    if _is_a(table, "polars", "DataFrame"):
        return pa.table(table.head(most))
    if _is_a(table, "duckdb", "DuckDBPyRelation"):
        return pa.table(table.limit(most))
    if _is_a(table, "pyarrow.dataset", "Dataset"):
        return table.head(most)
    if isinstance(table, pa.Table):
        return table.slice(0, most)
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table.slice(0, most)])
    if isinstance(table, Mapping) or hasattr(table, "__arrow_c_stream__"):
        return pa.table(table).slice(0, most)
    raise TypeError(f"{type(table).__name__} is no table of events: give {_ACCEPTED}")


def _is_a(table: object, module: str, name: str) -> bool:
    known = getattr(sys.modules.get(module), name, None)
    return known is not None and isinstance(table, known)


def _of_pandas(frame: Any, left_out: dict[str, str]) -> pa.Table:
    """The columns of a data frame that Arrow has a type for."""
    columns = {}
    for place, name in enumerate(frame.columns):
        try:
            columns[str(name)] = pa.Array.from_pandas(frame.iloc[:, place])
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            left_out[str(name)] = "its values are of several kinds"
    return pa.table(columns)
