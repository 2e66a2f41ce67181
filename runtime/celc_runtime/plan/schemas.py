"""The columns of the input and of the answer of a plan, as schemas of Arrow."""

from functools import lru_cache

import pyarrow as pa

from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import (
    COUNTS,
    DECIDED_TIME,
    MATCH_ID,
    MATCHES,
    Attribute,
    Label,
    Plan,
)
from celc_runtime.plan.totals import Totals
from celc_runtime.plan.uncertain import CONFIDENCE
from celc_runtime.values.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    array_of,
    decimal_of,
    map_of,
    struct_of,
    type_of,
)

_ARROW_TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "BYTE": pa.int8(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "DATE": pa.date32(),
    "INTERVAL": pa.duration("us"),
}


def arrow_type(type: str) -> pa.DataType:
    """The Arrow type of a type of the language, by its text."""
    found = _ARROW_TYPES.get(type)
    return _arrow_type(type_of(type)) if found is None else found


def _arrow_type(type: DataType) -> pa.DataType:
    match type:
        case DecimalType():
            return pa.decimal128(type.precision, type.scale)
        case ArrayType():
            return pa.list_(_arrow_type(type.element))
        case MapType():
            return pa.map_(pa.string(), _arrow_type(type.element))
        case StructType():
            return pa.struct([pa.field(name, _arrow_type(one)) for name, one in type.fields])
        case _:
            return _ARROW_TYPES[type.value]


NAMES_OF_TYPES = {str(arrow): name for name, arrow in _ARROW_TYPES.items()}
"""The types without parameters, by the text of their Arrow type."""


def named_type(arrow: pa.DataType) -> str | None:
    """The text of the type that has this Arrow type; None: there is none."""
    if pa.types.is_decimal128(arrow) and 0 <= arrow.scale <= arrow.precision:
        return decimal_of(arrow.precision, arrow.scale).value
    if not pa.types.is_nested(arrow):
        return NAMES_OF_TYPES.get(str(arrow))
    parts = arrow.field(0).type if pa.types.is_map(arrow) else arrow
    inner = [named_type(parts.field(number).type) for number in range(parts.num_fields)]
    types = [type_of(one) for one in inner if one is not None]
    if not types or len(types) < len(inner):
        return None
    if pa.types.is_struct(arrow):
        return struct_of(tuple(zip(arrow.names, types, strict=True))).value
    if pa.types.is_map(arrow):
        return map_of(types[1]).value if inner[0] == "STRING" else None
    return array_of(types[0]).value if pa.types.is_list(arrow) else None


def input_schema(plan: Plan) -> pa.Schema:
    """The columns of the input, without tiebreak columns, which may have any type that can be
    sorted."""
    return _input_schema(plan.source.text_columns, plan.source.input_attributes)


def event_schema(plan: Plan) -> pa.Schema:
    """The columns of events, once the derived ones are made."""
    return _input_schema(plan.source.text_columns, plan.source.attributes)


@lru_cache(maxsize=1 << 12)
def _input_schema(texts: tuple[str, ...], attributes: tuple[Attribute, ...]) -> pa.Schema:
    # Each batch of each of a thousand queries asks for it, and making it takes 0.2 ms.
    named = [pa.field(name, pa.string(), nullable=False) for name in texts]
    return pa.schema([*named, *(pa.field(one.name, arrow_type(one.type)) for one in attributes)])


def output_schema(plan: Plan) -> pa.Schema:
    """The columns of a row of the answer, in the order that the language defines."""
    if plan.answer.totals is not None:
        return _totals_schema(plan, plan.answer.totals)
    return _matches_schema(plan, collapsed=plan.answer.collapsed)


def match_schema(plan: Plan) -> pa.Schema:
    """The columns of one match, which are the answer's where its rows are matches."""
    return _matches_schema(plan, collapsed=False)


def row_type(plan: Plan) -> pa.StructType:
    """The type of the column of the parameter set."""
    shown = () if plan.source.parameters is None else plan.source.parameters.shown_attributes
    return pa.struct([pa.field(one.name, arrow_type(one.type)) for one in shown])


def struct_type(plan: Plan, label: Label) -> pa.StructType:
    fields = [pa.field(name, arrow_type(plan.source.type_of(name))) for name in label.attributes]
    return pa.struct([pa.field("pos", pa.int64()), *fields] if plan.answer.positions else fields)


def _matches_schema(plan: Plan, *, collapsed: bool) -> pa.Schema:
    fields = [] if plan.answer.match_id is None else [pa.field(MATCH_ID, pa.binary())]
    fields += _key_fields(plan)
    if plan.answer.positions:
        fields += [pa.field("start_pos", pa.int64()), pa.field("end_pos", pa.int64())]
    if plan.source.order_by:
        time = arrow_type(plan.source.type_of(plan.source.order_by[0]))
        fields += [pa.field("start_time", time), pa.field("end_time", time)]
        if plan.shows_decided_time and not collapsed:
            fields.append(pa.field(DECIDED_TIME, time))
    if plan.source.uncertain is not None:
        fields.append(pa.field(CONFIDENCE, pa.float64()))
    if collapsed:
        fields.append(pa.field(MATCHES, arrow_type(COUNTS)))
    for item in plan.answer.items:
        if isinstance(item, Computed):
            fields.append(pa.field(item.name, arrow_type(item.type)))
        else:
            fields.append(pa.field(item.name, pa.list_(struct_type(plan, item))))
    return pa.schema(fields)


def _totals_schema(plan: Plan, totals: Totals) -> pa.Schema:
    fields = _key_fields(plan)
    for name, type in plan.place_columns(totals):
        fields.append(pa.field(name, arrow_type(type)))
    fields += [pa.field(item.name, arrow_type(item.type)) for item in totals.items]
    return pa.schema(fields)


def _key_fields(plan: Plan) -> list[pa.Field]:
    source = plan.source
    fields = [pa.field(name, arrow_type(source.type_of(name))) for name in source.partition_by]
    if source.parameters is not None and not source.parameters.hidden:
        fields.append(pa.field(source.parameters.name, row_type(plan)))
    return fields
