"""Functions of one event: Spark's expressions and the code on one machine have the same values."""

import json
import random
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import long_over_connect
from function_values import PARTS, ROWS, TYPES, columns_of, on_one_machine, parts_of, values_of
from json_texts import PATHS, json_text
from spark_routes import INTERPRETED_PLANS
from stream_routes import settings

import celc
from celc.core.formula import AttributeValue, Call, Constant, DataType, DecimalType, Expression
from celc.diagnostics.source import Span
from celc.relational.expressions import Writer
from celc.relational.functions import typed

_FARTHEST = 2  # numbers between two results of a function of DOUBLEs
_COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
}
_MODES = {
    # As users meet it.
    "compiled": {**_COMPILED, "spark.sql.ansi.enabled": "false"},
    "ansi": {**_COMPILED, "spark.sql.ansi.enabled": "true"},
    "interpreted": {**INTERPRETED_PLANS, "spark.sql.ansi.enabled": "false"},
}


@pytest.fixture(
    scope="module",
    params=["compiled", *(pytest.param(one, marks=pytest.mark.long) for one in [*_MODES][1:])],
)
def far_session(spark: Any, request: Any) -> Iterator[Any]:
    """The session in a zone whose clocks change at odd hours."""
    zone = {"spark.sql.session.timeZone": "America/St_Johns"}
    with settings(spark, zone | _MODES[request.param]):
        yield spark


_FEW = 1_200
"""Rows that the suite compares: all special values of a type, which come first, and some hundred
random ones."""


@pytest.fixture(params=[_FEW, pytest.param(ROWS, marks=pytest.mark.long)])
def rows(request: Any) -> int:
    """How many values of a type are compared."""
    found: int = request.param
    return found


@long_over_connect
@pytest.mark.each(4)
@pytest.mark.parametrize("type", TYPES, ids=lambda one: one.value)
def test_both_computations_have_the_same_values(
    far_session: Any, type: DataType, rows: int, tmp_path: Any
) -> None:
    wrong = _wrong(far_session, columns_of(type, rows), list(values_of(type)), tmp_path)
    assert not wrong, "\n".join(wrong)


@long_over_connect
def test_parts_are_the_same(far_session: Any, rows: int, tmp_path: Any) -> None:
    wrong: list[str] = []
    for type in PARTS:
        wrong += _wrong(far_session, columns_of(type, rows // 10), list(parts_of(type)), tmp_path)
    assert not wrong, "\n".join(wrong)


@long_over_connect
def test_texts_of_json_hold_the_same(far_session: Any, rows: int, tmp_path: Any) -> None:
    draw = random.Random(5)
    texts = pa.array([json_text(draw) for _ in range(rows)])
    table = pa.table({"row": pa.array(range(len(texts)), pa.int32()), "a": texts})
    text, span = DataType.STRING, Span(0, 0)
    calls: list[Call] = []
    for path in PATHS:
        operands = AttributeValue("", "a", text, span), Constant(path, text, span)
        found = Call("GET_JSON_OBJECT", operands, text, None, span)
        calls += [found, Call("CAST", (found,), DataType.INT, "UTC", span)]
    wrong = _wrong(far_session, table, calls, tmp_path)
    assert not wrong, "\n".join(wrong)


def _nested(inner: str, around: str, depth: int) -> str:
    for _ in range(depth):
        inner = around.format(inner)
    return inner


@pytest.mark.long
def test_functions_deep_in_each_other_have_the_same_values(far_session: Any) -> None:
    """Long values have names in the text of SQL (`celc.relational.derived`)."""
    deep = (
        _nested("v", "FLOOR({} / 2e0)", 6),
        _nested("n", "({} * 3 + n)", 9),
        _nested("ts", "(DATE_TRUNC('HOUR', {} AT TIME ZONE 'America/St_Johns') - 7 HOURS)", 4),
        _nested("CAST(n AS STRING)", "CAST(TRY_CAST({} AS TIMESTAMP) AS STRING)", 4),
    )
    query = celc.compile(
        "CREATE STREAM S { EVENT A { id: INT, n: LONG, v: DOUBLE, ts: TIMESTAMP } }\n"
        f"SELECT a[id] FROM S WHERE A AS a FILTER a[HASH({', '.join(deep)}) % 2 = 0]",
        order_by="id",
    )
    (read,) = query.queries.values()
    assert any("TRANSFORM" in one.sql for one in read.plan.source.derived)
    draw = random.Random(6)
    events = pa.table(
        {
            "type": ["A"] * 400,
            "id": pa.array(range(400), pa.int32()),
            "n": [
                draw.choice((-(2**63), 2**63 - 1, 2024)) if n % 9 == 0 else n for n in range(400)
            ],
            "v": [None if n % 11 == 0 else draw.gauss(0, 1e3) for n in range(400)],
            "ts": pa.array(
                [draw.randint(0, 2 * 10**15) for _ in range(400)], pa.timestamp("us", "UTC")
            ),
        }
    )
    wanted = [row["a"][0]["id"] for row in query.match_table(events).to_pylist()]
    found = [row.a[0].id for row in query.match(far_session.createDataFrame(events)).collect()]
    assert 50 < len(wanted) < 350
    assert sorted(found) == sorted(wanted)


def _wrong(session: Any, table: pa.Table, calls: Sequence[Expression], folder: Any) -> list[str]:
    """Where Spark and the code on one machine differ, in words."""
    path = str(folder / "values.parquet")
    pq.write_table(table, path)
    frame = session.read.parquet(path)
    writer = Writer("spark", alone="")
    texts = [f"{typed(one, writer).sql('spark')} AS c{place}" for place, one in enumerate(calls)]
    found = frame.selectExpr("row", *texts).toArrow()
    assert found["row"].equals(table["row"])
    interprets = session.conf.get("spark.sql.codegen.factoryMode") == "NO_CODEGEN"
    wrong: list[str] = []
    for place, call in enumerate(calls):
        theirs = _exact(found.column(f"c{place}").combine_chunks())
        mine = _exact(on_one_machine(call, table))
        assert theirs.type == mine.type, call
        if not pa.types.is_floating(mine.type) and theirs.equals(mine):
            continue
        same = np.asarray(_same(call, theirs, mine))
        if interprets:
            same |= _compiled_otherwise(call, table)
        first = _exact(table.column("a").combine_chunks())
        for row in np.flatnonzero(~same)[:3].tolist():
            wrong.append(f"{call}: {first[row]}: {theirs[row]!r}, {mine[row]!r}")
    return wrong


def _compiled_otherwise(call: Expression, table: pa.Table) -> Any:
    """The rows for which Spark itself has two values. A plan that it interprets rounds the
    microseconds of a DECIMAL to 34 digits, and one that it compiles does not."""
    if isinstance(call, Call) and call.type is DataType.TIMESTAMP:
        kind = call.operands[0].type
        if isinstance(kind, DecimalType):
            seconds = table.column("a").to_pylist()
            return np.array([_is_rounded(one) for one in seconds])
    return np.zeros(len(table), bool)


def _is_rounded(seconds: Decimal | None) -> bool:
    if seconds is None:
        return False
    rounded = Context(prec=34, rounding=ROUND_HALF_EVEN).multiply(seconds, Decimal(10**6))
    return int(rounded) != int(Fraction(seconds) * 10**6)


def _same(call: Expression, one: pa.Array, other: pa.Array) -> Any:
    if pa.types.is_nested(one.type):
        # NaN is equal to itself there, and -0.0 is not told from 0.0.
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return [repr(a).replace("-0.0", "0.0") == repr(b).replace("-0.0", "0.0") for a, b in pairs]
    null = np.asarray(one.is_null()) & np.asarray(other.is_null())
    known = np.asarray(one.is_valid()) & np.asarray(other.is_valid())
    if pa.types.is_string(one.type):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        if isinstance(call, Call) and call.function == "GET_JSON_OBJECT":
            return [a == b or _is_one_value(a, b) for a, b in pairs]
        read = call.operands[0].type if isinstance(call, Call) else call.type
        return [a == b or _is_one_number(a, b, read) for a, b in pairs]
    if pa.types.is_decimal(one.type):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        read = call.operands[0].type if isinstance(call, Call) else call.type
        return [a == b or _is_one_number(a, b, read) for a, b in pairs]
    left, right = (
        np.asarray(c.fill_null(False if pa.types.is_boolean(c.type) else 0)) for c in (one, other)
    )
    exact = not isinstance(call, Call) or call.function in ("CAST", "TRY_CAST", "ROUND")
    if call.type is DataType.DOUBLE and not exact:
        near = np.abs(left.view(np.int64) - right.view(np.int64)) <= _FARTHEST
        return null | (known & (near | (np.isnan(left) & np.isnan(right))))
    if left.dtype.kind == "f":
        bits = left.view(f"i{left.itemsize}") == right.view(f"i{left.itemsize}")
        return null | (known & (bits | (np.isnan(left) & np.isnan(right))))
    return null | (known & (left == right))


def _is_one_number(one: object, other: object, type: DataType) -> bool:
    """Whether two texts, or DECIMALs, are of one number: Java before version 19 does not write all
    as later."""
    if one is None or other is None or type not in (DataType.FLOAT, DataType.DOUBLE):
        return False
    number = np.float32 if type is DataType.FLOAT else np.float64
    return bool(number(str(one)) == number(str(other)))


def _is_one_value(one: str | None, other: str | None) -> bool:
    """The same for texts of JSON."""
    if one is None or other is None:
        return False
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def _exact(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date(column.type) else column
