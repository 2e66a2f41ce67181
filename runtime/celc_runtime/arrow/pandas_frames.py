"""pandas frames in and out: for one machine, and for the grouped-map route on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.conforming import not_found_error
from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program

if TYPE_CHECKING:
    import pandas


def frame_of(matches: pa.Table) -> pandas.DataFrame:
    """Matches as a frame; times have no zone there, as those that pandas is given."""
    naive = [_naive(column) for column in matches.columns]
    # Whole numbers with a NULL among them would become real ones, and large ones others.
    return pa.table(naive, names=matches.column_names).to_pandas(integer_object_nulls=True)


def frame_table(program: Program, frame: pandas.DataFrame) -> pa.Table:
    """The columns of a frame that a query reads; a level of the index is one as well.

    What a column lacks is left to the check that names all columns.
    """
    found = {}
    for field in program.file_schema:
        column = _frame_column(frame, field.name)
        if column is not None:
            found[field.name] = fitted(program, field.name, column, field.type)
        elif program.plan.type_column or field.name != program.plan.type_name:
            raise not_found_error(program.plan, field.name, [str(name) for name in frame.columns])
    # A query that looks at nothing still counts rows.
    return pa.table(found or {"*": pa.nulls(len(frame))})


def fitted(program: Program, name: str, values: Any, wanted: pa.DataType | None) -> Any:
    """A column of values that have no Arrow type, as the declared type if none of them changes.

    Numbers become numbers of another kind; whatever else does not fit is left to the check of all
    columns. What has an Arrow type keeps it; `wanted` None or NULL: any will do.
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
        # Python's own numbers have no size: those in a list are rounded, as those in a text are.
        untyped = isinstance(values, list | tuple)
        return _as_number(column, wanted, rounds=untyped)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as problem:
        first = str(problem).split("\n", 1)[0]
        raise EventError(
            f"query {program.name!r} declares {name!r} as {_declared(program, name)}, which the "
            f"column does not fit: {first}"
        ) from None


def _declared(program: Program, name: str) -> str:
    types = {attribute.name: attribute.type for attribute in program.plan.attributes}
    return types.get(name, "STRING")


def _inferred(values: Any) -> pa.Array:
    if _is_pandas(values):
        column = pa.Array.from_pandas(values)
    else:
        column = pa.array(values if hasattr(values, "dtype") else list(values))
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


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
        # NaN is not equal to itself, and stays one.
        changed = pc.and_(changed, pc.invert(pc.is_nan(column)))
        return cast if rounds or not pc.any(changed).as_py() else column
    return column.cast(wanted)


def _frame_column(frame: pandas.DataFrame, name: str) -> pandas.Series[Any] | None:
    """The column of that name, or the field of structs that the name is the path of."""
    names = list(frame.columns)
    if names.count(name) > 1:
        raise EventError(
            f"the column {name!r} occurs more than once in the frame (drop or rename all but one)"
        )
    if name in names:
        return frame[name]
    if list(frame.index.names).count(name) == 1:
        return frame.index.get_level_values(name).to_series()
    for dot in reversed([place for place, letter in enumerate(name) if letter == "."]):
        if names.count(name[:dot]) == 1:
            column = frame[name[:dot]]
            for field in name[dot + 1 :].split("."):
                # Structs come as dictionaries, or as Spark's rows, which take a name as well.
                column = column.map(lambda value, field=field: _frame_field(value, field))
            return column
    return None


def _frame_field(value: Any, name: str) -> Any:
    if value is None or value != value:
        return None
    try:
        return value[name]
    except (KeyError, TypeError, ValueError, IndexError):
        raise EventError(
            f"{value!r} has no field {name!r}: a name with a dot is a field of a struct where "
            "no column is called so"
        ) from None


def _naive(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as Spark takes them back from pandas: without zone, as it gave them."""
    return column.cast(without_zone(column.type))


def without_zone(type: pa.DataType) -> pa.DataType:
    """A type in which every time stamp has lost its zone."""
    if pa.types.is_timestamp(type):
        return pa.timestamp(type.unit)
    if pa.types.is_list(type):
        return pa.list_(without_zone(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([pa.field(field.name, without_zone(field.type)) for field in type])
    return type
