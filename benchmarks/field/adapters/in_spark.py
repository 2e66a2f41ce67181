"""Spark SQL: the events in Spark's own cache, the answer collected as a table of Arrow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from data_sets import DataSet
from processes import tree_seconds
from pyarrow import parquet
from tasks import Task

from adapters.adapter import CORES, Adapter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROW_GROUP = 32_768


class InSpark(Adapter):
    name, title, languages = "spark_sql", "Spark SQL", ("spark_sql", "sql")
    package = "pyspark"
    how = "a session on all cores, over a cached DataFrame; rows are collected as a table of Arrow"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        java = Path(__file__).resolve().parents[3] / "tools" / "java.py"
        if "JAVA_HOME" not in os.environ and java.exists():
            found = subprocess.run(
                [sys.executable, java], capture_output=True, text=True, check=True
            )
            os.environ["JAVA_HOME"] = found.stdout.strip()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        self._spark = (
            SparkSession.builder.master(f"local[{CORES}]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "3g")
            .config("spark.driver.maxResultSize", "2g")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", str(2 * CORES))
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
        self._spark.sparkContext.setLogLevel("ERROR")
        self.frame: DataFrame | None = None
        self.found = pa.table({})

    def load(self, data: DataSet, table: pa.Table) -> None:
        if self.frame is not None:
            self.frame.unpersist(blocking=True)
        path = self.folder / f"{data.name}.parquet"
        parquet.write_table(table, path, row_group_size=_ROW_GROUP)
        self.frame = self._spark.read.parquet(str(path)).cache()
        self.frame.count()
        self.frame.createOrReplaceTempView(data.name)

    def run(self, task: Task, text: str) -> int:
        self.found = self._spark.sql(text).toArrow()
        return len(self.found)

    def answer(self, task: Task) -> pa.Table:
        return self.found.select(list(task.answer))

    def seconds(self) -> float:
        return tree_seconds()

    def close(self) -> None:
        self._spark.stop()


def frame_of(spark: InSpark) -> DataFrame:
    """The events of a session."""
    assert spark.frame is not None
    return spark.frame
