"""Each function on one machine against its definition, on values of each type."""

from __future__ import annotations

import math
import re
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.values.code import called
from function_values import TYPES, calls_of, columns_of
from reference import functions
from reference.decimals import DecimalKind
from reference.values import Datum, Kind, datum_of, microseconds

from celc.core.formula import AttributeValue, Call, Constant, DataType, DecimalType

ROWS = 100
_REALS = {"SQRT", "POWER", "EXP", "LN", "LOG10", "SIN", "COS", "ATAN2", "RADIANS"}


_COMPARED_ELSEWHERE = {"GET_JSON_OBJECT", "SIZE"}
"""With Spark, and with Python's json."""


@pytest.mark.parametrize("type", TYPES, ids=lambda one: one.value)
def test_functions_are_what_their_definitions_say(type: DataType) -> None:
    table = _without_far_times(columns_of(type, rows=ROWS))
    rows = table.to_pylist()
    for call in calls_of(type):
        if call.function in _COMPARED_ELSEWHERE:
            continue
        operands = [_operand(one, table) for one in call.operands]
        ways = [operands]
        if type is DataType.STRING:
            ways.append([_coded(one) for one in operands])
        for way in ways:
            found = called(call.function, way, len(table), call.zone, call.type.value)
            if pa.types.is_dictionary(found.type):
                found = found.dictionary_decode()
            is_time, unit = pa.types.is_temporal(found.type), 1
            if pa.types.is_date(found.type):
                found, unit = found.cast(pa.int32()), 86_400_000_000
            elif is_time:
                found = found.cast(pa.int64())
            for row, value in zip(rows, found.to_pylist(), strict=True):
                data = [_datum(one, row) for one in call.operands]
                if _is_odd(data[0], call):
                    continue
                kind = _kind(call.type)
                wanted = functions.call(call.function, data, call.zone or "UTC", kind)
                assert wanted.kind == kind, call
                told = wanted.value
                if is_time and told is not None:
                    told = (microseconds(wanted) or 0) // unit
                assert _same(value, told, call), f"{_text(call)} of {data}: {wanted}"


def _without_far_times(table: pa.Table) -> pa.Table:
    """Python has no times before the year 1 and behind 9999, nor zones for all of the others."""
    for name in ("a", "b"):
        column = table.column(name)
        if not pa.types.is_temporal(column.type):
            return table
        unit = pa.int32() if pa.types.is_date(column.type) else pa.int64()
        number = column.cast(unit).to_pylist()
        most = 40_000 if unit == pa.int32() else 40_000 * 86_400 * 10**6
        near = pa.array(
            [one if one is None or abs(one) < most else one % most for one in number], unit
        )
        table = table.set_column(table.schema.get_field_index(name), name, near.cast(column.type))
    return table


def _operand(one: object, table: pa.Table) -> Any:
    if isinstance(one, AttributeValue):
        return table.column(one.attribute).combine_chunks()
    assert isinstance(one, Constant)
    return pa.scalar(one.value, arrow_type(one.type.value))


def _coded(operand: Any) -> Any:
    is_text = isinstance(operand, pa.Array) and pa.types.is_string(operand.type)
    return operand.dictionary_encode() if is_text else operand


def _datum(one: object, row: dict[str, Any]) -> Datum:
    if isinstance(one, Constant):
        return datum_of(_kind(one.type), one.value)
    assert isinstance(one, AttributeValue)
    return datum_of(_kind(one.type), row[one.attribute])


def _kind(type: DataType) -> Any:
    if isinstance(type, DecimalType):
        return DecimalKind(type.precision, type.scale)
    return Kind[type.value]


def _same(found: Any, wanted: Any, call: Call) -> bool:
    if not isinstance(found, float) or not isinstance(wanted, float):
        return bool(found == wanted)
    if math.isnan(wanted) or not math.isfinite(wanted):
        return repr(found) == repr(wanted)
    room = 2 * math.ulp(wanted) if call.function in _REALS else 0.0
    return abs(found - wanted) <= room


def _is_odd(datum: Datum, call: Call) -> bool:
    """Whether a text is read as a time that has a zone, or a year that Python does not know:
    `test_functions_on_spark` has these."""
    is_read = datum.kind is Kind.STRING and call.type.value in (
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "DATE",
    )
    return is_read and not re.fullmatch(r"[12]\d{3}(-\d+(-\d+([ T][\d:.]*)?)?)?", str(datum.value))


def _text(call: Call) -> str:
    return f"{call.function}({', '.join(str(one) for one in call.operands)})"
