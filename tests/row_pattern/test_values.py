"""Values of MATCH_RECOGNIZE: the logic of three values, and the ends of types."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from engines import interpreted
from row_cases import compiled

from celc import CelError


def _measured(expression: str, columns: dict[str, pa.Array], types: str) -> pa.ChunkedArray:
    """A measure of each row of a table."""
    text = (
        f"CREATE TABLE t ({types}); SELECT m FROM t MATCH_RECOGNIZE (ORDER BY id "
        f"MEASURES {expression} AS m ALL ROWS PER MATCH PATTERN (A))"
    )
    ids = pa.array(range(max(map(len, columns.values()), default=1)), pa.int32())
    with interpreted():
        found = compiled(text).match_table(pa.table({"id": ids, **columns}))
    return found.column("m")


_THREE = (True, True, True, False, False, False, None, None, None)
_OTHER = (True, False, None) * 3


def _and(one: Any, other: Any) -> bool | None:
    if False in (one, other):
        return False
    return None if None in (one, other) else True


def _not(one: Any) -> bool | None:
    return None if one is None else not one


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("a AND b", lambda a, b: _and(a, b)),
        ("a OR b", lambda a, b: _not(_and(_not(a), _not(b)))),
        ("NOT (a AND b)", lambda a, b: _not(_and(a, b))),
        ("NOT (a OR NOT b)", lambda a, b: _and(_not(a), b)),
        ("NOT NOT (a AND NOT b)", lambda a, b: _and(a, _not(b))),
        ("(a OR b) IS NULL", lambda a, b: _and(_not(a), _not(b)) is None),
        ("(a AND b) = b", lambda a, b: None if b is None else _equal(_and(a, b), b)),
        ("COALESCE(a, b, FALSE)", lambda a, b: next(x for x in (a, b, False) if x is not None)),
        ("CASE WHEN a THEN b WHEN NOT a THEN NOT b END", lambda a, b: b if a else _else(a, b)),
        ("a IN (b, TRUE)", lambda a, b: _not(_and(_not(_equal(a, b)), _not(_equal(a, True))))),
        ("a NOT IN (b, FALSE)", lambda a, b: _and(_not(_equal(a, b)), _not(_equal(a, False)))),
        ("NOT a BETWEEN b AND b", lambda a, b: _not(_equal(a, b))),
    ],
)
def test_the_logic_of_three_values(expression: str, wanted: Any) -> None:
    columns = {"a": pa.array(_THREE, pa.bool_()), "b": pa.array(_OTHER, pa.bool_())}
    found = _measured(expression, columns, "id INT, a BOOLEAN, b BOOLEAN")
    assert found.to_pylist() == [wanted(a, b) for a, b in zip(_THREE, _OTHER, strict=True)]


def _equal(one: Any, other: Any) -> bool | None:
    return None if None in (one, other) else one == other


def _else(a: Any, b: Any) -> bool | None:
    return None if a is None else _not(b)


@pytest.mark.parametrize(
    ("expression", "type"),
    [("NULL + NULL", pa.int32()), ("(NULL * NULL) + 1", pa.int32()), ("NULL / NULL", pa.float64())],
)
def test_arithmetic_of_nulls_alone_is_a_number(expression: str, type: pa.DataType) -> None:
    found = _measured(expression, {}, "id INT")
    assert found.type == type
    assert found.to_pylist() == [None]


def test_days_have_a_difference_where_their_midnights_are_no_times() -> None:
    days = pa.array([200_000_000, 3, None], pa.int32()).cast(pa.date32())
    others = pa.array([199_999_999, 1, 1], pa.int32()).cast(pa.date32())
    columns, types = {"d": days, "e": others}, "id INT, d DATE, e DATE"
    found = _measured("d - e = INTERVAL '1' DAY", columns, types)
    assert found.to_pylist() == [True, False, None]
    assert _measured("TIMESTAMPDIFF(DAY, e, d)", columns, types).to_pylist() == [None, 2, None]


def test_the_longest_difference_of_times_is_cut_towards_zero() -> None:
    least, most = -(2**63), 2**63 - 1
    ends = [least, 0, -1, most, -1_999_999, most]
    begins = [0, -1_999_999, least, 0, 0, -1]
    columns = {
        "a": pa.array(begins).cast(pa.timestamp("us", "UTC")),
        "b": pa.array(ends).cast(pa.timestamp("us", "UTC")),
    }
    found = _measured("TIMESTAMPDIFF(SECOND, a, b)", columns, "id INT, a TIMESTAMP, b TIMESTAMP")
    longest = most // 1_000_000
    assert found.to_pylist() == [-longest, 1, longest, longest, -1, None]


def test_intervals_are_measures() -> None:
    days = [dt.timedelta(days=-1), None, dt.timedelta(seconds=5)]
    columns = {"a": pa.array(days, pa.duration("us"))}
    for expression, wanted in (
        ("a", days),
        ("PREV(a)", [None, *days[:-1]]),
        ("a + INTERVAL '1' DAY", [dt.timedelta(0), None, dt.timedelta(1, 5)]),
        ("MAX(a)", days),
        ("COUNT(a)", [1, 0, 1]),
        ("ARRAY_AGG(a)", [[day] for day in days]),
    ):
        assert _measured(expression, columns, "id INT, a INTERVAL").to_pylist() == wanted
    with pytest.raises(CelError, match="AVG takes numbers and INTERVALs, and this is of type DATE"):
        _measured("AVG(a)", columns, "id INT, a DATE")


def test_the_time_that_a_match_takes_is_a_measure() -> None:
    times = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 1, 4)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
    with interpreted():
        query = compiled(
            "CREATE TABLE t (ts TIMESTAMP); SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES "
            "LAST(ts) - FIRST(ts) AS whole, MIN(A.ts - DATE '2026-01-02') AS least PATTERN (A+ B))"
        )
    found = query.match_table(table)
    assert found.schema.types == [pa.duration("us")] * 2
    assert found.to_pylist() == [{"whole": dt.timedelta(3), "least": dt.timedelta(-1)}]
