"""Rows of events in messages: their numbers among all rows of the input."""

import re

import numpy as np
import pyarrow as pa


class RowNames:
    """How messages of one run name rows.

    seen: the number of rows in earlier batches. given: the column of each batch with the rows'
    numbers; None: no rows were left out. column: the column that numbers rows before some are left
    out.
    """

    def __init__(self, given: str | None, column: str) -> None:
        self.given = given
        self.column = given or column
        self.seen = 0

    def numbered(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The events with their numbers as a column, before rows are left out."""
        if self.given is not None:
            return events
        numbers = np.arange(self.seen, self.seen + len(events))
        return events.append_column(self.column, pa.array(numbers))

    def first(self, events: pa.RecordBatch, wrong: pa.Array | np.ndarray) -> str:
        """The name of the first row where `wrong` (bool[rows]) is true."""
        return self.of(events, int(np.flatnonzero(np.asarray(wrong))[0]))

    def of(self, events: pa.RecordBatch, row: int) -> str:
        # No column that the query reads has this name, and the batch has no others.
        numbered = self.column if self.column in events.schema.names else None
        return row_text(events, row, rows_seen=self.seen, numbered=numbered)


def row_text(events: pa.RecordBatch, row: int, *, rows_seen: int, numbered: str | None) -> str:
    """The name of a row of a batch in a message: its number among all rows of the input."""
    number = rows_seen + row if numbered is None else events.column(numbered)[row].as_py()
    return f"row {number:,} (counted from 0)"


def row_named_in(message: str) -> int | None:
    """The number of the first row that a message about events names; None: there is none."""
    found = re.search(r"row ([\d,]+) \(counted from 0\)", message)
    return None if found is None else int(found[1].replace(",", ""))
