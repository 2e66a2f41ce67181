"""SELECT TOTAL … PER PARTITION on a stream: the rows of all partitions, once it ends."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.matches.total_rows import total_rows
from celc_runtime.arrow.matches.total_values import Groups
from celc_runtime.engine.totals.measures import measures_of
from celc_runtime.engine.totals.stored_sums import sums_in
from celc_runtime.program import Program
from celc_runtime.stream.one_bucket.known_keys import merged_keys
from celc_runtime.stream.stored.rows import RowLayout
from celc_runtime.stream.stored.state_rows import KEPT_ROWS, KeyRecords


def rows_of_partitions(
    program: Program, layout: RowLayout, records: Sequence[KeyRecords]
) -> pa.RecordBatch | None:
    """The rows of the partitions that have had a match; None: there is none.

    records: of the segments of a bucket, the oldest first.
    """
    totals = program.plan.answer.totals
    assert totals is not None
    if not records:
        return None
    last = merged_keys(layout, list(records))
    ends, sums = sums_in(last.values[KEPT_ROWS], measures_of(totals.functions))
    ended = np.flatnonzero(ends >= 0)
    if not len(ended):
        return None
    keys = tuple(layout.of_keys.columns(last.rows)[: len(layout.keys)])
    groups = Groups(keys, np.zeros(len(ends), np.int64), ends, None, sums)
    rows = total_rows(program.plan, program.output_schema, groups.taken(ended))
    return rows if len(rows) else None
