"""Which types of Arrow's columns serve for a type of the language: those that change no value."""

import pyarrow as pa

from celc_runtime.plan.schemas import arrow_type
from celc_runtime.values.types import ArrayType, DataType, DecimalType, MapType, StructType, type_of

_WIDENING = {
    "SHORT": (pa.int8(), pa.uint8()),
    "INT": (pa.int8(), pa.int16(), pa.uint8(), pa.uint16()),
    "LONG": (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()),
    "FLOAT": (pa.float16(), pa.int8(), pa.int16()),
    "DOUBLE": (pa.float16(), pa.float32(), pa.int8(), pa.int16(), pa.int32()),
    "STRING": (pa.large_string(), pa.string_view()),
    "BINARY": (pa.large_binary(), pa.binary_view()),
}
"""The types that are cast to a type of the language, because no value changes."""


def fits(found: pa.DataType, wanted: str) -> bool:
    """Whether each value of an Arrow type is one of a type of the language. Times finer than
    microseconds count as well: a cast says whether one of them is."""
    return _fits(found, type_of(wanted))


def _fits(found: pa.DataType, wanted: DataType) -> bool:
    if isinstance(found, pa.BaseExtensionType):
        return _fits(found.storage_type, wanted)
    if pa.types.is_dictionary(found):
        return _fits(found.value_type, wanted)
    if pa.types.is_null(found):
        return True
    match wanted:
        case ArrayType(element=element):
            return _is_list(found) and _fits(found.value_type, element)
        case MapType(element=element):
            is_map = pa.types.is_map(found) and _fits(found.key_type, DataType.STRING)
            return is_map and _fits(found.item_type, element)
        case StructType(fields=fields):
            return pa.types.is_struct(found) and all(
                found.get_field_index(name) >= 0 and _fits(found.field(name).type, inner)
                for name, inner in fields
            )
        case DecimalType(precision=precision, scale=scale):
            whole = precision - scale
            is_narrow = pa.types.is_decimal(found) and 0 <= found.scale <= scale
            return is_narrow and bool(found.precision - found.scale <= whole)
        case DataType.TIMESTAMP:
            # A time zone does not change the instant. Times without a zone are in UTC.
            return bool(pa.types.is_timestamp(found))
        case DataType.TIMESTAMP_NTZ:
            return pa.types.is_timestamp(found) and found.tz is None
        case DataType.INTERVAL:
            return bool(pa.types.is_duration(found))
        case DataType.BINARY if pa.types.is_fixed_size_binary(found):
            return True
        case _:
            return found == arrow_type(wanted.value) or found in _WIDENING.get(wanted.value, ())


def _is_list(found: pa.DataType) -> bool:
    # Views of lists are none: Arrow casts them to lists that it cannot read.
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_one(found) for is_one in tests)
