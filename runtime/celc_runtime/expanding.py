"""`expand`: the matches that compact answers stand for, in Arrow or on Spark."""

from typing import Any

from celc_runtime.arrow.expanding import expand_arrow
from celc_runtime.spark.compact import expand_frame, is_spark_frame


def expand(compact: Any, limit: int | None = None) -> Any:
    """The matches of compact answers: the rows of `match_table`, or of `match` on Spark.

    compact: what `match_compact` or `match_compact_arrow` gave: a pyarrow table, a record batch or
    a reader, which gives a RecordBatchReader; or a DataFrame of Spark, which gives a DataFrame.
    Rows and further columns may have been left out or added. limit: at most so many matches in all,
    the first ones (on Spark, any). Nothing is listed before it is read, and the time between two
    matches does not depend on how many there are.

    Raises EventError for a table without the metadata of a compact answer, ValueError for a limit
    that cannot be, TypeError for what is no table.
    """
    if is_spark_frame(compact):
        return expand_frame(compact, limit)
    return expand_arrow(compact, limit)
