"""Tables with a log that says which of their files count: which folders are such tables.

A change of such a table writes new files and keeps the old ones, and its log says which of them
hold the rows. So a reader of all files in the folder would also read rows that were deleted or
replaced.
"""

from collections.abc import Iterable
from pathlib import Path

_LOGS = (
    ("_delta_log", "is a table of Delta Lake", "format('delta').load"),
    ("metadata/*.metadata.json", "is a table of Apache Iceberg", "format('iceberg').load"),
    ("metadata/version-hint.text", "is a table of Apache Iceberg", "format('iceberg').load"),
    (".hoodie", "is a table of Apache Hudi", "format('hudi').load"),
    ("_spark_metadata", "was written by a stream of Spark", "parquet"),
)
"""For each: a file in the folder of such a table, what the table is, and how Spark reads it."""


def why_not_plain(folders: Iterable[Path]) -> str:
    """Why the files of some folders cannot be read one by one; empty: they can.

    A folder is such a table, or lies in one.
    """
    around = {
        one: None
        for folder in folders
        for at in (folder, folder.resolve())
        for one in (at, *at.absolute().parents)
    }
    for folder in around:
        for log, what, read in _LOGS:
            if next(folder.glob(log), None) is not None:
                reads = "does not read that log"
                if log.startswith(("_delta_log", "metadata/")):
                    reads = "run reads that log only where this folder itself is named"
                return (
                    f"{folder} {what}: its log ({log}) says which of its files count, and celc "
                    f"{reads}. Its files alone have rows that are no longer, or "
                    "never were, in the table. Read it with Spark and match the DataFrame, as in "
                    f"match(spark.read.{read}('{folder}')), or write its rows to other files"
                )
    return ""
