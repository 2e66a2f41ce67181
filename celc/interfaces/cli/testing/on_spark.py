"""`celc test --spark`: the cases in a session of Spark on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from celc_runtime.row_pattern.query import RowPatternQuery

from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.testing.running import Asked, Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def local_session(option: str, cores: int) -> Iterator[SparkSession]:
    """A session of Spark on this machine, which ends with the block. `option` asks for it.

    Raises CommandProblem without PySpark.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise CommandProblem(f"{option} needs PySpark: pip install 'celc[spark]'") from None
    session = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName(f"celc {option}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def local_spark() -> Iterator[Run]:
    """What runs cases in a local session, which ends with the block."""
    with local_session("--spark", 2) as session:
        yield run_on(session)


def run_on(session: SparkSession) -> Run:
    """What runs cases in a session."""

    def run(asked: Asked) -> pa.Table:
        frame = session.createDataFrame(asked.events)
        if isinstance(asked.query, RowPatternQuery):
            return asked.query.match(frame).toArrow()
        query = asked.query.with_options(positions=True)
        return query.match(frame, **asked.tables).toArrow()

    return run
