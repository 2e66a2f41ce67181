"""The table of functions, and their code on one machine."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.values.functions import FUNCTIONS
from function_values import (
    NO_CALLS,
    PARTS,
    TYPES,
    calls_of,
    columns_of,
    on_one_machine,
    parts_of,
    values_of,
)

import celc
from celc.core.formula import DataType
from celc.relational.expressions import Writer
from celc.relational.functions import typed

_STREAM = "CREATE STREAM S { EVENT A { id: INT } }\n"


def test_every_example_of_the_table_is_true() -> None:
    examples = [one.example for one in FUNCTIONS.values()]
    items = [
        f"{text} AS c{2 * n + k}" for n, both in enumerate(examples) for k, text in enumerate(both)
    ]
    query = celc.compile(f"{_STREAM}SELECT {', '.join(items)} FROM S WHERE A AS a")
    (row,) = query.match_table(pa.table({"type": ["A"], "id": [1]})).to_pylist()
    found = [row[f"c{n}"] for n in range(len(items))]
    assert found[::2] == found[1::2]


def test_the_page_of_the_language_has_a_line_for_each_function() -> None:
    page = (Path(celc.__file__).parents[1] / "docs" / "conditions.md").read_text(encoding="utf-8")
    lines = [
        f"| `{one.example[0]}` | {one.example[1]} | {one.meaning} |" for one in FUNCTIONS.values()
    ]
    assert [line for line in page.splitlines() if line in lines] == lines


@pytest.mark.parametrize("type", TYPES, ids=lambda one: one.value)
def test_every_function_has_code_and_an_expression_of_spark(type: DataType) -> None:
    table = columns_of(type, rows=40)
    writer = Writer("spark", alone="")
    for value in values_of(type):
        assert typed(value, writer).sql("spark")
        found = on_one_machine(value, table)
        assert len(found) == len(table)


def test_no_function_of_the_table_is_left_out() -> None:
    seen = {call.function for one in TYPES for call in calls_of(one)}
    seen |= {call.function for one in PARTS for call in parts_of(one)} - {"ELEMENT", "FIELD"}
    assert set(FUNCTIONS) - seen == NO_CALLS


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CAST(3000000000 AS INT)", -1294967296),
        ("TRY_CAST(3000000000 AS INT)", None),
        ("CAST(1e300 AS INT)", 2147483647),
        ("TRY_CAST(1e300 AS INT)", None),
        ("CAST(' 12.7 ' AS INT)", 12),
        ("TRY_CAST('12.7' AS INT)", None),
        ("CAST('1e3' AS DOUBLE)", 1000.0),
        ("CAST('one' AS DOUBLE)", None),
        ("CAST(1e7 AS STRING)", "1.0E7"),
        ("CAST(0.001 AS STRING)", "0.001"),
        ("CAST('yes' AS BOOLEAN)", True),
        (
            "CAST(TIMESTAMP '2024-03-31 00:59:59' AT TIME ZONE 'Europe/Berlin' AS STRING)",
            "2024-03-31 01:59:59",
        ),
        (
            "CAST(TIMESTAMP '2024-03-31 01:00:00' AT TIME ZONE 'Europe/Berlin' AS STRING)",
            "2024-03-31 03:00:00",
        ),
        (
            "CAST(TIMESTAMP '2064-07-01 00:00:00' AT TIME ZONE 'Europe/Berlin' AS STRING)",
            "2064-07-01 02:00:00",
        ),
        (
            "CAST(CAST('2024-03-31 02:30:00' AT TIME ZONE 'Europe/Berlin' AS TIMESTAMP) AS STRING)",
            "2024-03-31 01:30:00",
        ),
        (
            "CAST(CAST('2024-10-27 02:30:00' AT TIME ZONE 'Europe/Berlin' AS TIMESTAMP) AS STRING)",
            "2024-10-27 00:30:00",
        ),
        ("HOUR(TIMESTAMP '2064-07-01 00:00:00' AT TIME ZONE 'Europe/Berlin')", 2),
        ("CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS LONG)", -1),
        ("ROUND(4414656068809.725, 2)", 4414656068809.73),
        ("CAST(DATE_TRUNC('month', DATE '2024-02-29') AS STRING)", "2024-02-01 00:00:00"),
        (
            "CAST(DATE_TRUNC('DAY', TIMESTAMP '2004-10-31 04:00:00' "
            "AT TIME ZONE 'America/St_Johns') AS STRING)",
            "2004-10-31 03:30:00",
        ),
        (
            "CAST(DATE_TRUNC('YEAR', TIMESTAMP '2004-10-31 04:00:00' "
            "AT TIME ZONE 'America/St_Johns') AS STRING)",
            "2004-01-01 03:30:00",
        ),
        (
            "CAST(CAST(CAST('0.99999999999999999999999999999999999999' AS DECIMAL(38, 38)) "
            "AS TIMESTAMP) AS STRING)",
            "1970-01-01 00:00:00.999999",
        ),
        ("NULLIF(2, 2.0)", None),
        ("NULLIF(NULL, 2)", None),
        ("NULLIF('a', 'b')", "a"),
        ("LENGTH(12.5)", 4),
        ("'at ' || TIMESTAMP '2024-01-01 12:00:00'", "at 2024-01-01 12:00:00"),
        ("CAST(TO_TIMESTAMP('2024-07-01' AT TIME ZONE 'Asia/Tokyo') AS LONG)", 1719759600),
        ("SPLIT_PART('a.b', '.', -3)", ""),
        ("REGEXP_EXTRACT('order-17', '([a-z]+)-([0-9]+)')", "order"),
        ("REGEXP_EXTRACT('order-17', '[0-9]', 0)", "1"),
        ("REGEXP_EXTRACT('b', '(a)?b')", ""),
        ("REGEXP_EXTRACT('c', '(a)?b', 0)", ""),
        ("REGEXP_EXTRACT(NULL, '(a)')", None),
        ("REGEXP_EXTRACT('a', NULL)", None),
        ("REGEXP_EXTRACT('a', 'a', NULL)", None),
    ],
)
def test_values(text: str, value: Any) -> None:
    query = celc.compile(f"{_STREAM}SELECT {text} AS v FROM S WHERE A AS a")
    (row,) = query.match_table(pa.table({"type": ["A"], "id": [1]})).to_pylist()
    assert row["v"] == value


@pytest.mark.parametrize("name", ["SQRT(-1)", "EXP(1000)"])
def test_a_constant_outside_the_numbers_warns_of_nothing(name: str) -> None:
    query = celc.compile(f"{_STREAM}SELECT {name} AS v FROM S WHERE A AS a")
    (row,) = query.match_table(pa.table({"type": ["A"], "id": [1]})).to_pylist()
    assert not math.isfinite(row["v"])
