"""What the benchmarks of Spark share: a session, jobs that drop what they return, and data."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 8
ROW_GROUP = 125_000


def set_environment() -> None:
    """Name Java, the Python of workers and an address of this machine where nothing else does."""
    tools = Path(__file__).parent.parent / "tools"
    if "JAVA_HOME" not in os.environ:
        found = subprocess.run(
            [sys.executable, tools / "java.py"], capture_output=True, text=True, check=True
        )
        os.environ["JAVA_HOME"] = found.stdout.strip()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


@contextmanager
def session(more: Mapping[str, str] = MappingProxyType({})) -> Iterator[SparkSession]:
    """A session on two cores, whose workers run this Python. more: settings besides."""
    set_environment()
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config(map=dict(more))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def run(frame: DataFrame) -> None:
    """Run a job, and drop what it returns."""
    frame.write.format("noop").mode("overwrite").save()


def run_made(make: Callable[[], DataFrame]) -> None:
    """Make a plan and run it."""
    run(make())


def run_unmeasured(spark: SparkSession, make: Callable[[], DataFrame]) -> None:
    """Make a plan and run it with the setting that `explain_plan` names: Spark does not add up the
    size of a batch row by row."""
    setting = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = spark.conf.get(setting)
    assert before is not None
    spark.conf.set(setting, "2147483647")
    try:
        run_made(make)
    finally:
        spark.conf.set(setting, before)


def answer(frame: DataFrame) -> tuple[Any, ...]:
    """The number of rows and a checksum of them that no order changes."""
    from pyspark.sql import functions

    columns = [functions.col(f"`{name}`") for name in frame.columns]
    found = frame.agg(functions.count("*"), functions.bit_xor(functions.xxhash64(*columns))).first()
    assert found is not None
    return tuple(found)


def write(folder: Path, table: pa.Table) -> Path:
    """Write a table as a folder of Parquet files of equal length."""
    folder.mkdir()
    step = -(-len(table) // FILES)
    for number in range(FILES):
        part = table.slice(number * step, step)
        parquet.write_table(part, folder / f"part-{number:02}.parquet", row_group_size=ROW_GROUP)
    return folder
