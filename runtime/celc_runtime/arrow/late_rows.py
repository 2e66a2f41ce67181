"""Few rows in another order, whose columns are moved when they are asked for.

To move all columns of a hundred rows takes as long as to find their symbols, and a query without a
match reads one or two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import taken, whole_column


class Taken(NamedTuple):
    """What has been read of all rows of a run, in order, and checked.

    part_starts: int64, the rows at which partitions begin, and two ends (`Batch`). tied: as
    `Prepared.tied`. codes, of_types: as `EventTypes.codes` gives them. keys: int64[rows], what the
    window is measured on; empty: nothing. columns: the values of those that `classify` reads; None:
    they are to be asked for.
    """

    part_starts: np.ndarray
    tied: np.ndarray | None
    codes: np.ndarray
    of_types: np.ndarray
    keys: np.ndarray
    columns: list[np.ndarray | None]


class LateRows:
    """The rows of a record batch in another order. What is asked of it besides columns and rows is
    asked of a whole batch, which is made then.

    order: int64[rows]. values: columns in order, as far as they are known, none of which has NULL;
    of texts, numbers in the same order. places: for each column of `schema` that of the batch; −1:
    the numbers of the rows.
    """

    def __init__(
        self,
        batch: pa.RecordBatch,
        order: np.ndarray,
        values: Mapping[str, np.ndarray],
        places: Sequence[int],
        schema: pa.Schema,
        taken: Taken | None = None,
    ) -> None:
        self.batch, self.order, self.values, self.schema = batch, order, values, schema
        self.taken = taken
        self._places = places
        self._moved: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return len(self.order)

    def place(self, which: str | int) -> int:
        """The place of a column in the batch, by its name or number here."""
        number = self.schema.get_field_index(which) if isinstance(which, str) else which
        return self._places[number]

    def column(self, which: str | int) -> pa.Array:
        place = self.place(which)
        found = self._moved.get(place)
        if found is None:
            if place < 0:
                found = whole_column(self.order, pa.int64())
            else:
                found = taken(self.batch.column(place), self.order)
            self._moved[place] = found
        return found

    def unmoved(self, name: str) -> pa.Array:
        """A column as it stands in the batch: `order` has the places of the rows in it."""
        return self.batch.column(self.place(name))

    def of(self, places: Sequence[int], schema: pa.Schema) -> LateRows:
        """Some of the columns."""
        chosen = [self._places[place] for place in places]
        return LateRows(self.batch, self.order, self.values, chosen, schema)

    def take(self, rows: pa.Array | np.ndarray) -> LateRows:
        """Some of the rows, in the order of `rows`."""
        order = self.order[np.asarray(rows)]
        return LateRows(self.batch, order, {}, self._places, self.schema)

    @cached_property
    def _whole(self) -> pa.RecordBatch:
        columns = [self.column(number) for number in range(len(self._places))]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)
