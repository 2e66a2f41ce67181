"""Expressions in SELECT: what each function and operator gives, by exact answers.

The answers are worked out by hand from the language page. How they come out of random queries is in
`test_random_expressions`.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from engines import engines, interpreted, only_query

import celc
from celc.interfaces.cli import main

DECLARATION = """CREATE STREAM S {
  EVENT A { i: INT, l: LONG, f: FLOAT, d: DOUBLE, s: STRING, b: BOOLEAN, t: TIMESTAMP, day: DATE },
  EVENT B { i: INT, d: DOUBLE },
  EVENT C { i: INT }
}
"""
NAN, INF = math.nan, math.inf
LEAST_INT, MOST_INT, LEAST, MOST = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
NEW_YEAR, NEXT_DAY = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
DENORMAL = 5e-324

Events = list[dict[str, Any]]


def rows(select: str, events: Events, formula: str, declaration: str = DECLARATION) -> Events:
    """The rows of the output, which both engines must agree on, in order."""
    with interpreted():
        compiled = engines(f"{declaration}SELECT {select} WHERE {formula}")
    found = []
    for matcher in compiled.values():
        query = only_query(matcher)
        table = pa.Table.from_pylist(events, query.input_schema)
        # An event at a time too: then all but the last ones come from what is stored.
        batches = query.match_arrow(table.to_batches(max_chunksize=1))
        stored = [row for batch in batches for row in batch.to_pylist()]
        assert repr(stored) == repr(query.match_table(table).to_pylist())
        found.append(sorted(stored, key=repr))
    assert all(repr(answer) == repr(found[0]) for answer in found)
    return found[0]


def values(expressions: list[str], column: str, given: list[Any]) -> list[Any]:
    """What expressions give of a label x that holds one event for each of the given values."""
    select = ", ".join(f"{text} AS v{number}" for number, text in enumerate(expressions))
    events = [*({"type": "A", column: value} for value in given), {"type": "C"}]
    found = rows(select, events, "STRICT((A AS x)+ : C)" if given else "A AS x OR C")
    row = max(found, key=lambda row: row["end_pos"] - row["start_pos"])
    return [row[f"v{number}"] for number in range(len(expressions))]


FUNCTIONS = ("FIRST", "LAST", "MIN", "MAX", "SUM", "AVG", "COLLECT")
OF_ALL_TYPES = ("FIRST", "LAST", "COLLECT")
ORDERED = ("FIRST", "LAST", "MIN", "MAX", "COLLECT")


# --- functions of a label -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "given", "expected"),
    [
        # FIRST, LAST, MIN, MAX, SUM, AVG, COLLECT
        ("i", [3, -1, 2], (3, 2, -1, 3, 4, 4 / 3, [3, -1, 2])),
        ("i", [None, 5, None], (None, None, 5, 5, 5, 5.0, [None, 5, None])),
        ("i", [None, None], (None, None, None, None, None, None, [None, None])),
        ("i", [MOST_INT, MOST_INT], (MOST_INT, MOST_INT, MOST_INT, MOST_INT, 2 * MOST_INT,
                                     float(MOST_INT), [MOST_INT, MOST_INT])),
        ("l", [MOST, 1], (MOST, 1, 1, MOST, LEAST, 2.0**62, [MOST, 1])),
        ("l", [LEAST, -1], (LEAST, -1, LEAST, -1, MOST, -(2.0**62), [LEAST, -1])),
        ("l", [2**53 + 1, None, 1], (2**53 + 1, 1, 1, 2**53 + 1, 2**53 + 2, 2.0**52,
                                     [2**53 + 1, None, 1])),
        ("d", [1.5, -2.0, 0.5], (1.5, 0.5, -2.0, 1.5, 0.0, 0.0, [1.5, -2.0, 0.5])),
        ("d", [None, 1.5], (None, 1.5, 1.5, 1.5, 1.5, 1.5, [None, 1.5])),
        ("d", [None], (None, None, None, None, None, None, [None])),
        ("d", [NAN, 1.0], (NAN, 1.0, 1.0, NAN, NAN, NAN, [NAN, 1.0])),
        ("d", [1.0, NAN], (1.0, NAN, 1.0, NAN, NAN, NAN, [1.0, NAN])),
        ("d", [NAN, None], (NAN, None, NAN, NAN, NAN, NAN, [NAN, None])),
        ("d", [INF, NAN, -INF], (INF, -INF, -INF, NAN, NAN, NAN, [INF, NAN, -INF])),
        ("d", [INF, -INF], (INF, -INF, -INF, INF, NAN, NAN, [INF, -INF])),
        ("d", [1e308, 1e308], (1e308, 1e308, 1e308, 1e308, INF, INF, [1e308, 1e308])),
        # From left to right: 1 is lost, and so is 1 at the end.
        ("d", [1.0, 1e16, -1e16], (1.0, -1e16, -1e16, 1e16, 0.0, 0.0, [1.0, 1e16, -1e16])),
        ("d", [1e16, -1e16, 1.0], (1e16, 1.0, -1e16, 1e16, 1.0, 1 / 3, [1e16, -1e16, 1.0])),
        ("d", [DENORMAL, DENORMAL], (DENORMAL, DENORMAL, DENORMAL, DENORMAL, 2 * DENORMAL,
                                     DENORMAL, [DENORMAL, DENORMAL])),
        ("f", [0.5, 2.0**24, 1.0], (0.5, 1.0, 0.5, 2.0**24, 2.0**24 + 1.5,
                                    (2.0**24 + 1.5) / 3, [0.5, 2.0**24, 1.0])),
        ("f", [NAN, None], (NAN, None, NAN, NAN, NAN, NAN, [NAN, None])),
    ],
)  # fmt: skip
def test_functions_of_numbers(column: str, given: list[Any], expected: tuple[Any, ...]) -> None:
    found = values([f"{function}(x.{column})" for function in FUNCTIONS], column, given)
    assert repr(found) == repr([*expected])


@pytest.mark.parametrize(
    ("column", "given", "expected"),
    [
        # FIRST, LAST, MIN, MAX, COLLECT
        ("b", [True, False], (True, False, False, True, [True, False])),
        ("b", [None, True], (None, True, True, True, [None, True])),
        ("b", [None], (None, None, None, None, [None])),
        (
            "t",
            [NOON, None, NOON - dt.timedelta(microseconds=1)],
            (
                NOON,
                NOON - dt.timedelta(microseconds=1),
                NOON - dt.timedelta(microseconds=1),
                NOON,
                [NOON, None, NOON - dt.timedelta(microseconds=1)],
            ),
        ),
        (
            "day",
            [NEXT_DAY, NEW_YEAR, None],
            (NEXT_DAY, None, NEW_YEAR, NEXT_DAY, [NEXT_DAY, NEW_YEAR, None]),
        ),
    ],
)
def test_functions_of_other_types(column: str, given: list[Any], expected: tuple[Any, ...]) -> None:
    assert values([f"{f}(x.{column})" for f in ORDERED], column, given) == [*expected]


def test_functions_of_texts() -> None:
    given = ["b", None, "", "ä\0'\"\n{{x}}"]
    found = values([f"{f}(x.s)" for f in OF_ALL_TYPES], "s", given)
    assert found == ["b", given[-1], given]


@pytest.mark.parametrize("column", ["i", "l", "f", "d"])
def test_a_label_without_events(column: str) -> None:
    """NULL, COUNT 0, COLLECT an empty array; for every match of a batch."""
    expressions = [f"{function}(x.{column})" for function in FUNCTIONS]
    assert values([*expressions, "COUNT(x)"], column, []) == [*[None] * 6, [], 0]


@pytest.mark.parametrize("column", ["s", "b", "t", "day"])
def test_a_label_without_events_of_other_types(column: str) -> None:
    functions = OF_ALL_TYPES if column == "s" else ORDERED
    expressions = [f"{function}(x.{column})" for function in functions]
    assert values(expressions, column, []) == [*[None] * (len(functions) - 1), []]


def test_some_matches_bind_the_label_and_some_do_not() -> None:
    events = [{"type": "A", "i": 4}, {"type": "C"}, {"type": "A", "i": 6}, {"type": "C"}]
    select = "FIRST(x.i) AS first, LAST(x.i) AS last, SUM(x.i) AS sum, COUNT(x) AS n, x"
    found = rows(select, events, "A AS x OR C")
    assert [tuple(row.values()) for row in sorted(found, key=lambda row: row["start_pos"])] == [
        (0, 0, 4, 4, 4, 1, [{"pos": 0, **_attributes(i=4)}]),
        (1, 1, None, None, None, 0, []),
        (2, 2, 6, 6, 6, 1, [{"pos": 2, **_attributes(i=6)}]),
        (3, 3, None, None, None, 0, []),
    ]


def _attributes(**given: Any) -> dict[str, Any]:
    return dict.fromkeys(["i", "l", "f", "d", "s", "b", "t", "day"]) | given


def test_count_counts_positions_with_nulls() -> None:
    assert values(["COUNT(x)"], "i", [None, 1, None]) == [3]


def test_an_attribute_that_some_types_lack_is_null_there() -> None:
    events = [{"type": "A", "d": 2.0}, {"type": "C"}, {"type": "B", "d": 3.0}]
    select = "COLLECT(x.d) AS ds, SUM(x.d) AS sum, COUNT(x) AS n"
    (row,) = rows(select, events, "(A : C : B) AS x")
    assert (row["ds"], row["sum"], row["n"]) == ([2.0, None, 3.0], 5.0, 3)


# --- arithmetic -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "column", "given", "expected"),
    [
        ("MAX(x.i) + 1", "i", MOST_INT, LEAST_INT),
        ("MIN(x.i) - 1", "i", LEAST_INT, MOST_INT),
        ("MAX(x.i) * 2", "i", MOST_INT, -2),
        ("-MIN(x.i)", "i", LEAST_INT, LEAST_INT),
        ("ABS(MIN(x.i))", "i", LEAST_INT, LEAST_INT),
        ("ABS(MIN(x.i))", "i", -5, 5),
        ("MAX(x.i) + COUNT(x)", "i", MOST_INT, MOST_INT + 1),
        ("MAX(x.i) + 2147483648", "i", MOST_INT, 2 * MOST_INT + 1),
        ("SUM(x.i) + 1", "i", MOST_INT, MOST_INT + 1),
        ("SUM(x.l) + 1", "l", MOST, LEAST),
        ("SUM(x.l) * 3", "l", MOST, MOST - 2),
        ("-MIN(x.l)", "l", LEAST, LEAST),
        ("ABS(MIN(x.l))", "l", LEAST, LEAST),
        ("MIN(x.l) - 1", "l", LEAST, MOST),
        ("SUM(x.i) / 2", "i", 5, 2.5),
        ("SUM(x.i) / 0", "i", 5, None),
        ("SUM(x.d) / MIN(x.d)", "d", 0.0, None),
        ("SUM(x.d) / -0.0", "d", 1.0, None),
        ("MIN(x.l) / COUNT(x)", "l", MOST, 2.0**63),
        ("MIN(x.i) % 3", "i", -5, -2),
        ("MIN(x.i) % -3", "i", 5, 2),
        ("MIN(x.i) % 0", "i", 5, None),
        ("MIN(x.i) % -1", "i", LEAST_INT, 0),
        ("MIN(x.l) % -1", "l", LEAST, 0),
        ("MIN(x.l) % 10", "l", LEAST, -8),
        ("MIN(x.d) % 1.5", "d", -4.0, -1.0),
        ("MIN(x.d) % 0.0", "d", -4.0, None),
        ("MIN(x.d) % 2", "d", INF, NAN),
        ("3.5 % MIN(x.d)", "d", INF, 3.5),
        ("MIN(x.f) % 1", "f", 2.75, 0.75),
        ("MIN(x.f) + MAX(x.l)", "f", 1.0, None),
        ("MIN(x.f) * 2", "f", 3e38, INF),
        ("MIN(x.f) * 2.0", "f", 0.5, 1.0),
        ("MIN(x.f) + 16777217", "f", 0.0, 16777216.0),
        ("-MIN(x.d)", "d", 0.0, -0.0),
        ("ABS(MIN(x.d))", "d", -0.0, 0.0),
        ("ABS(MIN(x.d))", "d", NAN, NAN),
        ("-MIN(x.d)", "d", INF, -INF),
        ("MIN(x.d) - MAX(x.d)", "d", INF, NAN),
        ("MIN(x.i) + NULL", "i", 1, None),
        ("NULL * SUM(x.d)", "d", 1.0, None),
        ("MIN(x.i) + MAX(x.d)", "i", 1, None),
        ("(MAX(x.i) + 1) * -2", "i", 3, -8),
        ("2 + 3 * MAX(x.i)", "i", 3, 11),
        ("AVG(x.i) * COUNT(x)", "i", 3, 3.0),
    ],
)
def test_arithmetic(expression: str, column: str, given: Any, expected: Any) -> None:
    assert repr(values([expression], column, [given])) == repr([expected])


@pytest.mark.parametrize(
    ("constant", "expected"),
    [
        ("1", 1),
        ("-2147483648", LEAST_INT),
        ("1.5", 1.5),
        ("1 / 0", None),
        ("7 % 4 - 1", 2),
        ("'it''s \\ \"{{x}}\"'", 'it\'s \\ "{{x}}"'),
        ("TRUE", True),
        ("NULL", None),
        ("TIMESTAMP '2026-01-01 12:00:00'", NOON),
        ("DATE '2026-01-02'", NEXT_DAY),
    ],
)
def test_constants(constant: str, expected: Any) -> None:
    assert values([constant], "i", [1, 2]) == [expected]


# --- rows and columns -----------------------------------------------------------------------------


def test_one_row_for_each_projected_match_where_rows_look_alike() -> None:
    """x is no column, but what it holds tells two matches apart; y does not."""
    events = [{"type": "A", "i": 1}, {"type": "A", "i": 1}, {"type": "B"}, {"type": "C"}]
    found = rows("COUNT(x) AS n", events, "A AS x ; C")
    assert [(row["start_pos"], row["n"]) for row in found] == [(0, 1), (1, 1)]
    found = rows("COUNT(x) AS n", events, "(A AS x)+ ; (A OR B) AS y ; C")
    # {0} twice over (the rest goes to y), {0, 1}, {1}
    assert sorted((row["start_pos"], row["n"]) for row in found) == [(0, 1), (0, 2), (1, 1)]
    found = rows("COUNT(y) AS n", events, "(A AS x)+ ; (A OR B) AS y ; C")
    # From 0 with y = {1} or {2}, from 1 with y = {2}
    assert sorted((row["start_pos"], row["n"]) for row in found) == [(0, 1), (0, 1), (1, 1)]


def test_columns_stand_in_the_order_of_items_with_their_types() -> None:
    with interpreted():
        compiled = engines(
            DECLARATION + "SELECT COUNT(x) AS n, y[i], COLLECT(x.l) AS ls, `a``b` , SUM(x.f) AS f, "
            "AVG(x.i) AS mean, MAX(x.t) AS late, MIN(x.i) + 1 AS i, x.day AS day, y.d AS d, "
            "x.f AS single, SUM(x.i) AS total, COLLECT(x.b) AS bs "
            "WHERE A AS x ; B AS y ; C AS `a``b` PARTITION BY i"
            .replace("AS i,", "AS k,")
        )  # fmt: skip
    for matcher in compiled.values():
        query = only_query(matcher)
        assert query.output_ddl.split(", `")[3:] == [
            "n` BIGINT",
            "y` ARRAY<STRUCT<`pos`: BIGINT",
            "i`: INT>>",
            "ls` ARRAY<BIGINT>",
            "a``b` ARRAY<STRUCT<`pos`: BIGINT",
            "i`: INT>>",
            "f` DOUBLE",
            "mean` DOUBLE",
            "late` TIMESTAMP",
            "k` INT",
            "day` DATE",
            "d` DOUBLE",
            "single` FLOAT",
            "total` BIGINT",
            "bs` ARRAY<BOOLEAN>",
        ]
        types = {field.name: field.type for field in query.output_schema}
        assert [*types][3:] == [
            *("n", "y", "ls", "a`b", "f", "mean", "late", "k", "day", "d", "single", "total", "bs")
        ]
        assert types["ls"] == pa.list_(pa.int64())
        assert types["late"] == pa.timestamp("us", tz="UTC")
        assert types["single"] == pa.float32()


def test_what_only_expressions_read_is_read_and_nothing_else() -> None:
    with interpreted():
        compiled = engines(DECLARATION + "SELECT SUM(x.l) AS total WHERE A AS x ; B AS y")
    query = only_query(compiled["general"])
    assert query.input_schema.names == ["type", "l"]
    assert query.output_schema.names == ["start_pos", "end_pos", "total"]


def test_a_bare_attribute_is_that_of_the_only_position() -> None:
    events = [{"type": "A", "i": 7, "s": "p"}, {"type": "B", "d": 0.5}]
    (row,) = rows("x.s AS s, y.d * x.i AS product", events, "A AS x ; B AS y")
    assert (row["s"], row["product"]) == ("p", 3.5)


# --- files ----------------------------------------------------------------------------------------

_FILE = (
    "CREATE STREAM S { EVENT A { i: INT, d: DOUBLE, s: STRING }, EVENT B { i: INT } }\n"
    "QUERY one: SELECT SUM(x.i) AS total, y[i], COLLECT(x.s) AS texts, AVG(x.d) AS mean "
    "WHERE STRICT((A AS x)+ ; B AS y)\n"
    "QUERY two: SELECT COUNT(A) AS n, A.d AS d WHERE A\n"
)
_EVENTS = (
    '{"type": "A", "i": 1, "d": 0.5, "s": "ä"}\n{"type": "A", "i": 2, "s": null}\n'
    '{"type": "B", "i": 9}\n'
)


def _run(tmp_path: Path, *options: str, query: str = _FILE) -> bytes:
    (tmp_path / "q.cel").write_text(query)
    (tmp_path / "e.jsonl").write_text(_EVENTS)
    out = tmp_path / "out"
    arguments = ["run", str(tmp_path / "q.cel"), str(tmp_path / "e.jsonl"), "-o", str(out)]
    with interpreted():
        assert main([*arguments, *options]) == 0
    return out.read_bytes()


def test_json(tmp_path: Path) -> None:
    found = [json.loads(line) for line in _run(tmp_path, "--format", "json").splitlines()]
    assert [line["values"] for line in found if line["query"] == "one"] == [
        {"total": 2, "texts": [None], "mean": None},
        {"total": 3, "texts": ["ä", None], "mean": 0.5},
    ]
    assert [line["values"] for line in found if line["query"] == "two"] == [
        {"n": 1, "d": 0.5},
        {"n": 1, "d": None},
    ]
    assert [line["labels"] for line in found] == [{"y": [2]}, {"y": [2]}, {}, {}]


def test_json_without_numbers_that_it_lacks(tmp_path: Path) -> None:
    query = "CREATE STREAM S { EVENT A { i: INT }, EVENT B { i: INT } }\n"
    query += "SELECT 1e308 * 10 AS big, -(1e308 * 10) AS small, COLLECT(A.i) AS ints, "
    query += "1e308 * 10 - 1e308 * 10 AS nothing WHERE A"

    def refuse(name: str) -> None:
        raise AssertionError(name)

    line = _run(tmp_path, "--format", "json", query=query).splitlines()[0]
    found = json.loads(line, parse_constant=refuse)["values"]
    assert found == {"big": "Infinity", "small": "-Infinity", "ints": [1], "nothing": "NaN"}


def test_parquet(tmp_path: Path) -> None:
    _run(tmp_path, "--format", "parquet", "--query", "one")
    table = pyarrow.parquet.read_table(tmp_path / "out")
    assert table.column_names == ["start_pos", "end_pos", "total", "y", "texts", "mean"]
    assert table.to_pylist()[1]["texts"] == ["ä", None]


def test_csv(tmp_path: Path) -> None:
    lines = _run(tmp_path, "--format", "csv", "--query", "one").decode().splitlines()
    assert lines == [
        '"start_pos","end_pos","total","y","texts","mean"',
        '1,2,2,"[{""pos"": 2, ""i"": 9}]","[null]",',
        '0,2,3,"[{""pos"": 2, ""i"": 9}]","[""\\u00e4"", null]",0.5',
    ]


def test_table(tmp_path: Path) -> None:
    text = _run(tmp_path, "--format", "table", "--query", "one").decode()
    assert "ä" in text
    assert "NULL" in text
    assert "2 matches" in text


def test_one_file_with_its_runtime(tmp_path: Path) -> None:
    """`--standalone` brings what expressions need."""
    made = tmp_path / "one.py"
    (tmp_path / "q.cel").write_text(_FILE)
    assert main(["compile", str(tmp_path / "q.cel"), "--standalone", "-o", str(made)]) == 0
    events = [json.loads(line) for line in _EVENTS.splitlines()]
    program = (
        "import one, pyarrow as pa\n"
        "query = one.QUERIES['one']\n"
        f"table = pa.Table.from_pylist({events!r}, query.input_schema)\n"
        "print(query.match_table(table).column('total').to_pylist())"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "[2, 3]\n"


def test_pandas_keeps_large_whole_numbers_beside_null() -> None:
    """What pandas makes real numbers of, if it is let."""
    with interpreted():
        compiled = engines(DECLARATION + "SELECT MAX(x.l) AS m, COLLECT(x.i) AS ints WHERE A AS x")
    query = only_query(compiled["general"])
    events = pa.Table.from_pylist(
        [{"type": "A", "l": MOST, "i": 1}, {"type": "A"}, {"type": "A", "l": 1}],
        query.input_schema,
    )
    found = query.match_pandas(events.to_pandas(integer_object_nulls=True))
    assert found["m"].tolist() == [MOST, None, 1]
    assert [list(one) for one in found["ints"]] == [[1], [None], [None]]


def test_compiled_by_numba() -> None:
    """As users run it, by `celc.compile`."""
    matcher = celc.compile(DECLARATION + "SELECT SUM(x.d) / COUNT(x) AS mean WHERE (A AS x)+ ; C")
    query = only_query(matcher)
    events = [{"type": "A", "d": 1.0}, {"type": "A", "d": 2.0}, {"type": "C"}]
    table = query.match_table(pa.Table.from_pylist(events, query.input_schema))
    assert sorted(table.column("mean").to_pylist()) == [1.0, 1.5, 2.0]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("select", "code"),
    [
        ("SUM(x.s) AS v", "aggregate-type"),
        ("AVG(x.s) AS v", "aggregate-type"),
        ("MIN(x.s) AS v", "aggregate-type"),
        ("SUM(x.b) AS v", "aggregate-type"),
        ("AVG(x.t) AS v", "aggregate-type"),
        ("x.i AS v", "many-positions"),
        ("x.i + y.i AS v", "many-positions"),
        ("SUM(x.i)", "unnamed-expression"),
        ("SUM(x.i) AS Y, y", "duplicate-column"),
        ("SUM(x.i) AS v, COUNT(x) AS V", "duplicate-column"),
        ("SUM(x.i) AS START_POS", "duplicate-column"),
        ("SUM(x.i) AS end_Time", "duplicate-column"),
        ("SUM(x.i) AS I", "duplicate-column"),
        ("COUNT(x.i) AS v", "needs-label"),
        ("SUM(x) AS v", "needs-attribute"),
        ("PREV(x.i) AS v", "previous-in-select"),
        ("MAX(PRIOR x.i) AS v", "previous-in-select"),
        ("COLLECT(x.i) + 1 AS v", "collect-in-expression"),
        ("MODE(x.i) AS v", "unknown-function"),
        ("SUM(x.nothing) AS v", "unknown-attribute"),
        ("SUM(z.i) AS v", "unbound-in-select"),
        ("y.i + FIRST(x.s) AS v", "arithmetic-type"),
        ("ABS(FIRST(x.b)) AS v", "arithmetic-type"),
        ("-FIRST(x.t) AS v", "arithmetic-type"),
        ("NULL + NULL AS v", "two-nulls"),
    ],
)
def test_errors(select: str, code: str) -> None:
    text = f"{DECLARATION}SELECT {select} WHERE (A AS x)+ ; B AS y PARTITION BY i WITHIN 9 EVENTS"
    assert {found.code for found in celc.check(text) if found.severity == "error"} == {code}


def test_a_bare_attribute_under_plus_names_what_to_write() -> None:
    text = DECLARATION + "SELECT x.i AS v WHERE (A AS x)+ ; B WITHIN 9 EVENTS"
    (found,) = [one for one in celc.check(text) if one.severity == "error"]
    message = str(found)
    assert all(function in message for function in ("FIRST", "LAST", "COLLECT")), message


def test_names_can_be_those_of_hidden_labels_and_of_other_attributes() -> None:
    (row,) = rows("SUM(x.i) AS x, COUNT(x) AS d", [{"type": "A", "i": 4}], "A AS x")
    assert (row["x"], row["d"]) == (4, 1)
