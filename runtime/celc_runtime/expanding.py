"""`expand`: the matches that compact answers stand for, in Arrow or on Spark."""

from typing import Any

from celc_runtime.arrow.matches.expanding import expand_arrow
from celc_runtime.spark.answers.compact import expand_frame, is_spark_frame


def expand(compact: Any, limit: int | None = None) -> Any:
    """The matches of compact answers: the rows of `match_table`, or of `match` on Spark.

    compact: what `match_compact` or `match_compact_arrow` returned. A pyarrow table, a record batch
    or a reader gives a RecordBatchReader; a DataFrame of Spark gives a DataFrame. Rows and further
    columns may have been left out or added. limit: the most matches in all, the first ones (on
    Spark, any).

    Nothing is listed before it is read. The time between two matches does not depend on their
    number. Raises EventError for a table without the metadata of a compact answer, ValueError for
    an impossible limit, TypeError for a value that is not a table.
    """
    if is_spark_frame(compact):
        return expand_frame(compact, limit)
    return expand_arrow(compact, limit)
