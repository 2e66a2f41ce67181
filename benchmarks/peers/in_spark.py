"""Each task in Spark SQL beside `match`, both on the same Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from spark_jobs import write
from tasks import Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class InSpark:
    """A session with the tables as views."""

    def __init__(self, spark: SparkSession, folder: Path, tables: dict[str, pa.Table]) -> None:
        self.version = spark.version
        self._spark = spark
        self._frames = {
            name: spark.read.parquet(str(write(folder / name, table)))
            for name, table in tables.items()
        }
        for name, frame in self._frames.items():
            frame.createOrReplaceTempView(name)

    def by_sql(self, task: Task, rows: int) -> DataFrame:
        """The plan of the SQL."""
        return _numbers(self._spark.sql(task.sql_text(rows)), task)

    def by_celc(self, task: Task, query: Any) -> DataFrame:
        """The plan of celc."""
        return _numbers(query.match(self._frames[task.table]), task)


def _numbers(frame: DataFrame, task: Task) -> DataFrame:
    return frame.select(*(frame[name].cast("bigint").alias(name) for name in task.columns))
