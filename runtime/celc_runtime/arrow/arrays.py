"""Arrow arrays for kernels: values without copies, order, equality.

Kernels read NumPy arrays, and Arrow and Spark differ in which values are equal and which is the
greater one (NaN, −0.0, NULL). Both are settled here, once, and no function depends on a query.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.calendar_intervals import CALENDAR_INTERVAL
from celc_runtime.arrow.number_types import DTYPES, WHOLE
from celc_runtime.arrow.text_conditions import truth_of_columns, truth_of_values
from celc_runtime.arrow.views import AS_THEY_ARE, without_views
from celc_runtime.engine.arena.batch import order_preserving
from celc_runtime.engine.arena.nodes import BLOCK
from celc_runtime.engine.values.spark_arithmetic import LAST_DAY, MICROSECONDS_PER_DAY
from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.values.types import MOST_NARROW

PAIRS = np.dtype([("low", np.uint64), ("high", np.int64)])
"""Words of 128 bits, as Arrow stores them."""


def numbers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(the values of a column, anything where NULL; bool[rows], where they are not NULL).

    BOOLEAN becomes uint8, TIMESTAMP and INTERVAL int64, DATE int32. A DECIMAL of up to 18 digits is
    its smallest unit, int64, a longer one `PAIRS`. What is no number becomes zeros: of such a
    column, only the places of NULL count. Both arrays are read-only.
    """
    if column.type.id in DTYPES:
        values = whole_values(column)
    elif pa.types.is_decimal128(column.type):
        values = np.frombuffer(column.buffers()[1], PAIRS)
        values = values[column.offset : column.offset + len(column)]
        if column.type.precision <= MOST_NARROW:
            values = np.ascontiguousarray(values["low"]).view(np.int64)
            values.flags.writeable = False
    elif pa.types.is_boolean(column.type):
        values = np.asarray(
            pc.fill_null(column, False).cast(pa.uint8()).to_numpy(zero_copy_only=False)
        )
        values.flags.writeable = False
    else:
        values = zeros(len(column))
    if column.null_count == 0:
        return values, _all_true(len(column))
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    valid.flags.writeable = False  # like `_TRUE`: kernels are compiled for one type of array
    return values, valid


def whole_values(column: pa.Array) -> np.ndarray:
    """The values of a column of a type among `DTYPES`."""
    first = column.offset
    values = np.frombuffer(column.buffers()[1], DTYPES[column.type.id])
    return values[first : first + len(column)]


def smallest_units(column: pa.Array) -> np.ndarray:
    """The smallest units of a DECIMAL column as whole numbers of Python, anything where NULL."""
    values, _ = numbers(column)
    if values.dtype != PAIRS:
        return values.astype(object)
    found: np.ndarray = values["high"].astype(object) * 2**64 + values["low"].astype(object)
    return found


def decimal_column(units: np.ndarray, known: np.ndarray, type: pa.DataType) -> pa.Array:
    """A DECIMAL column of smallest units; anything where not known."""
    units = np.where(known, units, 0)
    pairs = np.empty(len(units), PAIRS)
    pairs["low"] = (units & (2**64 - 1)).astype(np.uint64)
    pairs["high"] = (units >> 64).astype(np.int64)
    valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(type, len(units), [valid, pa.py_buffer(pairs)])


NO_NULLS = np.ones(BLOCK, np.bool_)
"""The argument of `classify` for a column without NULLs (see `block_of`)."""
NO_NULLS.flags.writeable = False

_TRUE = np.ones(0, np.bool_)


def _all_true(rows: int) -> np.ndarray:
    global _TRUE
    found = _TRUE  # another thread may replace it meanwhile
    if len(found) < rows:
        found = np.ones(rows, np.bool_)
        found.flags.writeable = False
        _TRUE = found
    return found[:rows]


_ZEROS = np.zeros(0, np.int32)


def zeros(rows: int) -> np.ndarray:
    """int32[rows], all 0; shared between batches."""
    global _ZEROS
    found = _ZEROS  # another thread may replace it meanwhile
    if len(found) < rows:
        found = np.zeros(rows, np.int32)
        found.flags.writeable = False
        _ZEROS = found
    return found[:rows]


def whole_numbers(column: pa.Array) -> np.ndarray:
    """A window or order column without NULLs as int64 in the same order; times in microseconds. Of
    what has more bits, and no window, not all are told apart: DECIMALs by words, texts not at all.
    """
    values = numbers(column)[0]
    values = values["high"] if values.dtype == PAIRS else values
    if pa.types.is_date32(column.type):
        return values.astype(np.int64) * MICROSECONDS_PER_DAY
    if pa.types.is_floating(column.type):
        return order_preserving(values.astype(np.float64))
    return np.ascontiguousarray(values.astype(np.int64, copy=False))


def not_a_number(column: pa.Array) -> np.ndarray:
    """bool[rows]: where a FLOAT or DOUBLE column without NULLs is NaN; empty for other types."""
    if not pa.types.is_floating(column.type):
        return np.zeros(0, np.bool_)
    wrong: np.ndarray = np.isnan(numbers(column)[0])
    return wrong


def immeasurable(column: pa.Array) -> np.ndarray:
    """bool[rows]: where a value cannot be a 64-bit window key; empty: all can. No NULLs."""
    values = numbers(column)[0]
    wrong: np.ndarray = np.zeros(0, np.bool_)
    if pa.types.is_date32(column.type):
        wrong = np.abs(values.astype(np.int64)) > LAST_DAY
    elif values.dtype == np.int64:
        wrong = values == -(2**63)
    return wrong


def plain(column: pa.Array) -> pa.Array:
    """The column, neither dictionary-coded nor with views."""
    if column.type.id in AS_THEY_ARE:
        return column
    column = without_views(column)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def coded(column: pa.Array) -> pa.DictionaryArray:
    """The column, dictionary-coded."""
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def text_truth(condition: TextCondition, column: pa.DictionaryArray) -> np.ndarray:
    """bool[rows]: where a condition on one text holds; each distinct text is tested once."""
    # The last element stands for NULL.
    table = np.append(truth_of_values(condition, column.dictionary), condition.of_null)
    indices = column.indices
    if pa.types.is_unsigned_integer(indices.type):
        indices = indices.cast(pa.int64())
    if indices.null_count:
        indices = pc.fill_null(indices, -1)
    holding = np.flatnonzero(table)
    places = indices.to_numpy(zero_copy_only=False)
    if len(holding) == 1 and holding[0] < len(table) - 1:
        # As for `x.a = 'b'`. Comparing numbers of one type takes a tenth of the time.
        only: np.ndarray = places == places.dtype.type(holding[0])
        return only
    # This takes half the time of `table[places]`, which first makes 64-bit numbers of the places.
    truth: np.ndarray = np.take(table, places, mode="wrap")
    return truth


class TextComparer:
    """Compares columns of texts, by their codes if they share a dictionary of distinct texts.

    It remembers the last dictionary, because batches share theirs.
    """

    def __init__(self) -> None:
        self._distinct: pa.Array | None = None

    def truth(self, condition: TextComparison, left: pa.Array, right: pa.Array) -> np.ndarray:
        """bool[rows]: where a comparison of two columns is TRUE."""
        if condition.operator not in ("=", "!=") or not self._share(left, right):
            return truth_of_columns(condition, plain(left), plain(right))
        compare = pc.equal if condition.operator == "=" else pc.not_equal
        found = pc.fill_null(compare(left.indices, right.indices), False)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)

    def _share(self, left: pa.Array, right: pa.Array) -> bool:
        if left.type != right.type or not pa.types.is_dictionary(left.type):
            return False
        texts = left.dictionary
        if not _is_same(texts, right.dictionary):
            return False
        if self._distinct is None or not _is_same(texts, self._distinct):
            if not _is_distinct(texts):
                return False
            self._distinct = texts
        return True


def _is_distinct(texts: pa.Array) -> bool:
    return not texts.null_count and len(pc.unique(texts)) == len(texts)


def _has_distinct_texts(column: pa.DictionaryArray) -> bool:
    """Whether texts are equal where their codes are; not looked for in a long dictionary."""
    texts = column.dictionary
    return pa.types.is_string(texts.type) and 2 * len(texts) < len(column) and _is_distinct(texts)


def _is_same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays share their memory."""
    if (one.offset, len(one)) != (other.offset, len(other)):
        return False
    pairs = zip(one.buffers()[1:], other.buffers()[1:], strict=True)
    return all(a is not None and b is not None and a.address == b.address for a, b in pairs)


def differs(column: pa.Array) -> np.ndarray:
    """bool[rows − 1]: where a value differs from the one before; NULL = NULL, NaN = NaN."""
    if pa.types.is_dictionary(column.type) and _has_distinct_texts(column):
        column = column.indices  # a third of the time
    if is_whole(column):
        values = whole_values(column)  # a quarter of the time for few rows
        different: np.ndarray = values[1:] != values[:-1]
        return different
    column = plain(column)
    column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    here, before = column[1:], column[:-1]
    changed = np.array(pc.fill_null(pc.not_equal(here, before), False), np.bool_)
    if column.null_count:
        null = np.asarray(column.is_null())
        changed |= null[1:] != null[:-1]
    if pa.types.is_floating(column.type):
        nan = np.isnan(numbers(column)[0])
        changed &= ~(nan[1:] & nan[:-1])
    return changed


def as_keys(column: pa.Array) -> pa.Array:
    """A plain column in which equal values have the same bits: −0.0 becomes 0.0, and NaN is unique.

    Arrow compares values by their bits when it codes or hashes them.
    """
    if not pa.types.is_floating(column.type):
        return column
    values, valid = numbers(column)
    found = values + values.dtype.type(0)
    found[np.isnan(found)] = np.nan
    return pa.array(found, column.type, mask=~valid if column.null_count else None)


def sortable(column: pa.Array) -> pa.Array:
    """A column that Arrow sorts as Spark sorts the given one: NaN is equal to itself and the
    greatest, −0.0 equals 0.0. DECIMALs of 32 and 64 bits Arrow 26 sorts in no order, or not."""
    if pa.types.is_null(column.type):
        return column.cast(pa.int8())
    if pa.types.is_decimal(column.type) and column.type.bit_width < 128:
        return column.cast(pa.decimal128(column.type.precision, column.type.scale))
    if not pa.types.is_floating(column.type):
        return column
    values = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0))
    # Only this NaN: there are other ones, also negative ones.
    keys = order_preserving(np.where(np.isnan(values), np.nan, values))
    return pa.array(keys, mask=np.asarray(column.is_null()))


def is_whole(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column has whole numbers or times of up to 64 bits alone, and no NULL. Then its
    `numbers` compare as its values do."""
    return column.type.id in WHOLE and not column.null_count


_FEW = 1 << 12  # rows: for more of them, Arrow's own `take` is faster


def taken(column: pa.Array, rows: np.ndarray | pa.Array) -> pa.Array:
    """A copy of the values of a column in some rows (int64). All rows must exist: it is not
    checked."""
    if len(rows) <= _FEW and isinstance(column, pa.Array) and is_whole(column):
        places = rows if isinstance(rows, np.ndarray) else rows.to_numpy()
        return whole_column(whole_values(column)[places], column.type)  # a third of the time
    if isinstance(rows, np.ndarray):
        rows = whole_column(rows, pa.int64())
    return pc.take(column, rows, boundscheck=False)


def room_of(numbers: int) -> np.ndarray:
    """int64[numbers], anything. Arrow keeps memory that it has used; new memory costs as much to
    touch for the first time as a pass, most of all in a thread, whose memory the system takes
    back."""
    return np.frombuffer(pa.allocate_buffer(8 * numbers), np.int64)


def whole_column(values: np.ndarray, type: pa.DataType) -> pa.Array:
    """A column of a type of whole numbers or times over its values, which are not copied. Arrow
    itself looks at them for twice as long."""
    if not values.flags.c_contiguous:
        values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(type, len(values), [None, pa.py_buffer(values)])


def order_of_neighbours(column: pa.Array, last: pa.Array | None) -> np.ndarray:
    """int8[rows]: 1 where a value is greater than the one before, 0 if equal, −1 if less.

    last: the value before the first row, if there is one. NULL comes first, as in Spark.
    """
    if last is None and is_whole(column):
        values, order = whole_values(column), np.ones(len(column), np.int8)
        # A tenth of the time for few rows.
        np.subtract(
            values[1:] > values[:-1], values[1:] < values[:-1], out=order[1:], dtype=np.int8
        )
        return order
    if last is not None and last.type != column.type:
        if pa.types.is_null(column.type):
            column = column.cast(last.type)
        else:
            last = last.cast(column.type)
    column = sortable(column)
    first = pa.nulls(1, column.type) if last is None else sortable(last)
    before = pa.concat_arrays([first, column[:-1]])
    larger = np.array(pc.fill_null(pc.greater(column, before), False), np.int8)
    smaller = np.array(pc.fill_null(pc.less(column, before), False), np.int8)
    order = larger - smaller
    if before.null_count or column.null_count:
        order += np.asarray(before.is_null()).astype(np.int8)
        order -= np.asarray(column.is_null()).astype(np.int8)
    return order


def in_one_piece(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one chunk; a column of several chunks loses its dictionaries.

    The offsets of its texts begin with 0: where they do not, `ascii_upper` of Arrow 26 gives texts
    that cannot be read.
    """
    if not isinstance(column, pa.ChunkedArray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.num_chunks == 1 and column.type.id in DTYPES:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch of a schema without rows; Arrow makes none of Python values for some types."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, type) for type in schema.types], schema=schema)


def is_ordered(type: pa.DataType) -> bool:
    """Whether values of a type have an order: all but lists, structs, maps and months."""
    if type.id in AS_THEY_ARE:
        return True
    if pa.types.is_dictionary(type):
        return is_ordered(type.value_type)
    return not pa.types.is_nested(type) and type != CALENDAR_INTERVAL


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch without dictionary-coded columns, so that it fits into a table with others."""
    return pa.RecordBatch.from_arrays(
        [plain(column) for column in batch.columns], batch.schema.names
    )
