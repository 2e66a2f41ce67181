"""A query that reads others as a table function of Spark SQL.

The function brings the queries along that are read, and a task runs the whole chain on the events
of the declared streams. If all queries of the chain have one PARTITION BY, a call has it too;
otherwise it takes the table as a single partition.
"""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from celc_runtime.chain.columns import source_of
from celc_runtime.chain.run import why_gathered
from celc_runtime.chain.tables import chain_run
from celc_runtime.program import Program
from celc_runtime.run.feeding import Reads
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.spark.sql import SortingStream, TaskStream, registered


class ChainStream(TaskStream):
    """The events of one task, partition after partition, for a query that reads others."""

    waits = True

    def _reading_of(self, program: Program) -> Program:
        return _reading(program)

    def _new_run(self) -> Reads[pa.RecordBatch]:
        return chain_run(self._program, RunOptions(ties_are_errors=True))


class SortingChainStream(SortingStream):
    """The events of one task for a query that reads others, where the rows of a partition of the
    table come in no order."""

    def _reading_of(self, program: Program) -> Program:
        return _reading(program)

    def _new_run(self) -> Reads[pa.RecordBatch]:
        return chain_run(self._program, RunOptions(ties_are_errors=True))


def registered_chain(program: Program, spark: Any, name: str | None, *, sorts: bool) -> Any:
    """The table function of a query that reads others, registered in a Spark session."""
    streams = ChainStream, SortingChainStream
    return registered(program, spark, name, sorts=sorts, streams=streams)


def _reading(program: Program) -> Program:
    """A program that reads the events of declared streams, in the partitions of the chain."""
    found, own = source_of(program), program.plan.source
    keys = () if why_gathered(program) else own.partition_by
    source = replace(found.plan.source, partition_by=keys, order_by=own.order_by)
    return replace(found, plan=replace(found.plan, name=program.name, source=source))
