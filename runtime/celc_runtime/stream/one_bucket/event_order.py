"""The order of a bucket's events: by the order columns and the tiebreak columns."""

from collections.abc import Collection, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import sortable
from celc_runtime.arrow.nested import to_bytes
from celc_runtime.plan.errors import EventError, StateError
from celc_runtime.plan.plan import Plan
from celc_runtime.stream.stored.key_table import grouped
from celc_runtime.stream.stored.rows import RowLayout, Rows


class EventSort:
    """Sorts the rows of a query. time: the index of the first order column in a row."""

    def __init__(self, plan: Plan, layout: RowLayout) -> None:
        source = plan.source
        self._plan = plan
        self._layout = layout
        names = [field.name for field in layout.fields]
        self.time = names.index(source.order_by[0])
        ordered = dict.fromkeys((*source.order_by, *source.tiebreak))
        self._places = _places(names, ordered, source.key_columns)
        self._types: np.ndarray | None = None
        self._others: list[int] = []
        if source.takes_ties:
            # The order of all columns that are read, as on Spark: types first.
            types = [(name.encode(), stream.encode()) for stream, name in source.declared_types]
            self._types = np.array([sorted(types).index(pair) for pair in types])
            read = (attribute.name for attribute in source.attributes)
            self._others = _places(names, read, {*ordered, *source.key_columns})

    def of(self, rows: Rows, codes: np.ndarray) -> np.ndarray:
        """int64[rows]: the rows by partition, sorted in each; `codes` (int64) number partitions.

        If two events of a partition are equal in all the columns, it raises EventError, unless they
        are simultaneous. Then all columns that are read sort them, and equal rows are
        interchangeable.
        """
        found = _by_time(self._layout.values(rows, self.time), codes)
        if found is not None:
            return found
        keys = self._sort_keys(rows)
        order: np.ndarray = np.lexsort(keys[::-1])
        groups = int(codes.max()) + 1 if len(codes) else 0
        by_partition: np.ndarray = order[grouped(codes[order], groups)[0]]
        equal = np.ones(max(0, len(order) - 1), np.bool_)
        for key in (codes, *keys):
            in_order = key[by_partition]
            equal &= in_order[1:] == in_order[:-1]
        if equal.any() and self._types is None:
            self._refuse_tie(rows, by_partition[int(equal.argmax())])
        return by_partition

    def _sort_keys(self, rows: Rows) -> list[np.ndarray]:
        keys = self._keys_of(rows, self._places)
        if self._types is not None:
            keys += [self._types[self._layout.codes(rows)], *self._keys_of(rows, self._others)]
        return keys

    def _keys_of(self, rows: Rows, places: list[int]) -> list[np.ndarray]:
        keys: list[np.ndarray] = []
        texts: list[pa.Array] | None = None
        for place in places:
            field = self._layout.fields[place]
            if field.is_text:
                texts = texts or self.columns(rows)
                values = _ranks(to_bytes(texts[place]) if field.is_nested else texts[place])
            elif field.type in ("FLOAT", "DOUBLE"):
                values = np.asarray(sortable(pa.array(self._layout.values(rows, place))))
            else:
                values = self._layout.values(rows, place)
            missing = self._layout.missing(rows, place)
            if missing.any():
                keys.append(~missing)  # NULL comes first, as in Spark
            keys.append(values)
        return keys

    def columns(self, rows: Rows, places: Iterable[int] | None = None) -> list[pa.Array]:
        """The columns of rows at some places, None: all; raises StateError if a text is not
        UTF-8."""
        try:
            return self._layout.columns(rows, places)
        except StateError as error:
            raise StateError(f"query {self._plan.name!r}: {error}") from None

    def _refuse_tie(self, rows: Rows, row: int) -> None:
        names = ", ".join((*self._plan.source.order_by, *self._plan.source.tiebreak))
        one = self._layout.taken(rows, np.array([row]))
        time = self.columns(one)[self.time]
        raise EventError(
            f"query {self._plan.name!r}: two events of a partition are equal in {names} "
            f"({self._plan.source.order_by[0]} is {time[0]}), and a stream has no order of its "
            "own: name a column that tells them apart, as in match_stream(df, tiebreak='id'); or, "
            "if neither comes before the other and the query asks for no order among them (as "
            "SELECT FIRST, LIMIT and EVENTS do), compile it with ties='simultaneous'. No column "
            "tells rows apart that are equal in all columns: df.dropDuplicatesWithinWatermark() "
            "leaves one of them"
        )


def _places(names: list[str], wanted: Iterable[str], known: Collection[str]) -> list[int]:
    """The indices of the wanted names that a row has, without the known ones."""
    return [names.index(name) for name in wanted if name in names and name not in known]


def _by_time(times: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
    """int64[rows]: the rows by partition and time, if these differ for all rows; else None.

    Also None if partition, time and row do not fit into one number. NumPy sorts numbers several
    times as fast as rows by several columns.
    """
    if not len(times):
        return np.zeros(0, np.int64)
    first = int(times.min())
    row_bits, time_bits = len(times).bit_length(), (int(times.max()) - first).bit_length()
    if int(codes.max()).bit_length() + time_bits + row_bits > 62:
        return None
    places = (codes << time_bits) + (times - first)
    in_order = np.sort((places << row_bits) + np.arange(len(times)))
    if (np.diff(in_order >> row_bits) == 0).any():
        return None
    return in_order & ((1 << row_bits) - 1)


def _ranks(column: pa.Array) -> np.ndarray:
    """int64: the ranks of texts by their bytes; equal texts have equal ranks."""
    coded = column.dictionary_encode(null_encoding="encode")
    places = pc.rank(coded.dictionary, tiebreaker="dense")
    ranks: np.ndarray = np.asarray(places, np.int64)[
        np.asarray(coded.indices.to_numpy(zero_copy_only=False))
    ]
    return ranks
