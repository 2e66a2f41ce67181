"""`expand`: the matches that compact answers stand for, in Arrow or on Spark."""

from __future__ import annotations

from typing import Any

from celc_runtime.arrow.expanding import expand_arrow


def expand(compact: Any, limit: int | None = None) -> Any:
    """The matches of compact answers: the rows of `match_table`.

    compact: what `match_compact` or `match_compact_arrow` gave: a pyarrow table, a record batch, or
    a reader. Returns a RecordBatchReader. limit: at most so many matches in all. Nothing is listed
    before it is read, and the time between two matches does not depend on how many there are.

    Raises EventError for a table without the metadata of a compact answer, ValueError for a limit
    that cannot be, TypeError for what is no table.
    """
    return expand_arrow(compact, limit)
