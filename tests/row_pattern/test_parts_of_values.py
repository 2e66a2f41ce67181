"""Parts of values in MATCH_RECOGNIZE: fields, elements, texts of JSON, and short casts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from engines import interpreted
from row_cases import compiled

from celc import CelError

_TYPES = (
    "id INT, p STRUCT<a: STRING, b: STRUCT<C: INT>>, l ARRAY<INT>, m MAP<STRING, INT>, "
    "j STRING, v INT"
)
_ROWS: list[dict[str, Any]] = [
    {"id": 0, "p": {"a": "x", "b": {"C": 1}}, "l": [1, 2], "m": [("k", 7)], "j": '{"b":[{"c":3}]}'},
    {"id": 1, "p": {"a": "y", "b": None}, "l": [], "m": [("q", 1)], "j": "{}"},
    {"id": 2, "p": None, "l": None, "m": None, "j": None},
    {"id": 3, "p": {"a": "x", "b": {"C": 5}}, "l": [9], "m": [("k", None)], "j": '{"b":[{"c":4}]}'},
    {
        "id": 4,
        "p": {"a": None, "b": {"C": 4}},
        "l": [8, 3],
        "m": [("k", 2)],
        "j": '{"b":[{"c":"z"}]}',
    },
]


def _table() -> pa.Table:
    p = pa.struct([("a", pa.string()), ("b", pa.struct([("C", pa.int32())]))])
    columns = {"p": p, "l": pa.list_(pa.int32()), "m": pa.map_(pa.string(), pa.int32())}
    found = {name: pa.array([row[name] for row in _ROWS], type) for name, type in columns.items()}
    found["id"] = pa.array([row["id"] for row in _ROWS], pa.int32())
    found["j"] = pa.array([row["j"] for row in _ROWS], pa.string())
    found["v"] = pa.array(range(5), pa.int32())
    return pa.table(found)


def _found(measure: str, pattern: str, partition: str = "") -> list[Any]:
    text = (
        f"CREATE TABLE t ({_TYPES}); SELECT z FROM t MATCH_RECOGNIZE ({partition} ORDER BY id "
        f"MEASURES {measure} AS z AFTER MATCH SKIP TO NEXT ROW PATTERN {pattern})"
    )
    with interpreted():
        return compiled(text).match_table(_table()).column("z").to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        ("A.p.a", ["x", "y", None, "x", None]),
        ("p.b.c + 1", [2, None, None, 6, 5]),
        ("P.A", ["x", "y", None, "x", None]),
        ("(A.p).b.C", [1, None, None, 5, 4]),
        ("A.p['a']", ["x", "y", None, "x", None]),
        ("A.l[0]", [1, None, None, 9, 8]),
        ("l[v - v + 1]", [2, None, None, None, 3]),
        ("A.m['k']", [7, None, None, None, 2]),
        ("A.j:b[0].c::INT", [3, None, None, 4, None]),
        ("j:b[0]['c']", ["3", None, None, "4", "z"]),
        ("v::STRING || p.a", ["0x", "1y", None, "3x", None]),
        ("A.p.b", [{"C": 1}, None, None, {"C": 5}, {"C": 4}]),
    ],
)
def test_a_part_is_a_value(measure: str, wanted: list[Any]) -> None:
    assert _found(measure, "(A)") == wanted


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("B.p.b.c < A.p.b.c", [3]),
        ("PREV(p.b.c) > p.b.c", [3]),
        ("l[0] < A.l[0] AND CONTAINS(B.l, 3)", [3]),
        ("B.m['k'] IS NULL", [0, 1, 2]),
        ("j:b[0].c::INT > 3", [2]),
        ("v::BIGINT < 3 AND p.a IS NOT NULL", [0]),
        ("FIRST(p.a) || p.a = 'xy'", [0]),
        ("MAX(l[0]) = 9", [2, 3]),
    ],
)
def test_a_part_is_compared(condition: str, wanted: list[Any]) -> None:
    assert _found("A.v", f"(A B) DEFINE B AS {condition}") == wanted


def test_a_field_is_a_key() -> None:
    assert _found("A.v", "(A B)", "PARTITION BY p.a") == [0, 2]
    assert sorted(_found("SUM(p.b.c)", "(A+ $)", "PARTITION BY p.a AS key"), key=str) == [
        *(4, 4, 5, 6, None)
    ]


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("A.v.x", "a value of the type INT has no fields"),
        ("A.p.q", "the STRUCT has no field 'q'"),
        ("q.p", "there is no variable 'q'"),
        ("A.v[0]", "has no elements"),
        ("A.l['k']", "elements of an ARRAY are counted by an INT"),
        ("A.j:b[v]", "numbers and texts in its brackets"),
        ("COUNT(A.p.*)", "these are not the arguments of COUNT"),
    ],
)
def test_what_is_no_part_is_told(measure: str, message: str) -> None:
    with pytest.raises(CelError) as error:
        _found(measure, "(A)")
    assert message in str(error.value)
