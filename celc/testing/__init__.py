"""Tests of queries, in Python and by pytest: `check`, and the plugin that collects `*.test.toml`.

The compiler is imported where a test first needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

__all__ = ["check"]


def check(
    query: Any,
    given: Any,
    expected: int | Sequence[Mapping[str, Any]],
    *,
    name: str | None = None,
    **parameters: Any,
) -> None:
    """Check that a query has the rows that are expected, in the rows that are given.

    query: what `celc.compile` or `celc.compile_files` returns, one query of it, or the path of a
    query file. given: a text of CSV or of lines of JSON, a list of rows, a dictionary of columns,
    or a table of Arrow, pandas, polars or DuckDB. expected: how many rows, or for each row what is
    said of its columns: of a label its positions (`{"hot": 0, "dry": [3, 5]}`) or the attributes of
    its events (`{"hot": {"value": 41.5}}`), of another column its value, None for NULL. What a row
    does not name may be anything, and the order of rows means nothing. name: of the query, where
    there are several. parameters: of a query FOR EACH its table, in the forms of `given`.

    Raises AssertionError with a picture: the events, which rows are missing, which are too much,
    and of those that are missing their near misses. Raises ValueError for rows that do not fit the
    query, and for columns and queries that are not there; TypeError for what is no query.
    """
    __tracebackhide__ = True
    from celc.interfaces.cli.testing.calls import difference

    if isinstance(query, str | PathLike):
        import celc

        query = celc.compile_files(query)
    told = difference(query, given, expected, name, parameters)
    assert told is None, told
