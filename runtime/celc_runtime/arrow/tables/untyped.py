"""Values without Arrow types (Python, NumPy, pandas) → Arrow columns of the declared types."""

import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program


def fitted(program: Program, name: str, values: Any, wanted: pa.DataType | None) -> Any:
    """A column of values without an Arrow type, in the declared type if no value changes.

    Numbers are converted to another type of numbers. Other values that do not fit are left to the
    check of all columns. A column with an Arrow type keeps it. wanted: None or NULL: any type.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if hasattr(values, "__arrow_c_stream__") and not _is_pandas(values):
            return pa.chunked_array(values)
        if hasattr(values, "__arrow_c_array__") and not _is_pandas(values):
            return pa.array(values)
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise EventError(
                f"query {program.name!r} reads the column {name!r}, which is a "
                f"{type(values).__name__} and no sequence of values"
            )
        column = _inferred(values)
        if wanted is None or column.type == wanted or not _is_number(column.type):
            return column
        # Python's own numbers have no size. In a list they are rounded, like numbers in a text.
        untyped = isinstance(values, list | tuple)
        return _as_number(column, wanted, rounds=untyped)
    except (
        ValueError,
        pa.ArrowTypeError,
        OverflowError,
    ) as problem:  # ArrowInvalid is a ValueError
        first, declared = str(problem).split("\n", 1)[0], program.plan.source.input_type(name)
        raise EventError(
            f"query {program.name!r} declares {name!r} as {declared}, which the column does not "
            f"fit: {first}"
        ) from None


def _inferred(values: Any) -> pa.Array:
    if _is_pandas(values):
        column = pa.Array.from_pandas(values)
    elif hasattr(values, "dtype"):
        column = pa.array(values)
    else:
        column = _of_objects(list(values))
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _of_objects(values: list[Any]) -> pa.Array:
    """Python's values; pandas' missing time is NULL."""
    missing = getattr(sys.modules.get("pandas"), "NaT", None)
    try:
        return pa.array(values)
    except ValueError:
        if missing is None or not any(one is missing for one in values):
            raise
        return pa.array([None if one is missing else one for one in values])


def _is_pandas(values: Any) -> bool:
    return type(values).__module__.split(".")[0] == "pandas"


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type))


def _as_number(column: pa.Array, wanted: pa.DataType, *, rounds: bool) -> pa.Array:
    if not _is_number(wanted):
        return column
    if wanted == pa.float32() and pa.types.is_float64(column.type):
        cast = column.cast(wanted)
        changed = pc.not_equal(cast.cast(column.type), column)
        # NaN is not equal to itself, but it does not change.
        changed = pc.and_(changed, pc.invert(pc.is_nan(column)))
        return cast if rounds or not pc.any(changed).as_py() else column
    return column.cast(wanted)
