"""Parts of values in queries: ARRAY, MAP, STRUCT and texts of JSON, on one machine."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime.values.json_texts import json_at

import celc
from celc.diagnostics.errors import CelError
from celc.interfaces.cli import main

SHOP = """CREATE STREAM S {
  EVENT A { t: LONG, a: ARRAY<INT>, m: MAP<STRING, DOUBLE>, j: STRING,
            p: STRUCT<city: STRING, q: ARRAY<STRUCT<c: INT>>>, n: INT = SIZE(a) },
  EVENT B { t: LONG, w: INT }
}
"""
EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "A"],
        "t": pa.array([1, 2, 3, 4], pa.int64()),
        "a": pa.array([[1, 2, 3], [None, 5], None, []], pa.list_(pa.int32())),
        "m": pa.array(
            [[("k", 1.5)], [("z", 2.0), ("k", 9.0)], None, None], pa.map_(pa.string(), pa.float64())
        ),
        "j": ['{"b": [1, {"c": "5"}]}', "x", None, '{"b": 2.50}'],
        "p": pa.array(
            [
                {"city": "X", "q": [{"c": 7}, {"c": 8}]},
                {"city": None, "q": None},
                None,
                {"city": "Y", "q": [{"c": 7}]},
            ],
            pa.struct([("city", pa.string()), ("q", pa.list_(pa.struct([("c", pa.int32())])))]),
        ),
        "w": pa.array([None, None, 2, None], pa.int32()),
    }
)
ONE, TWO, MANY = "(A OR B) AS x", "A AS x ; A AS y", "A+ AS x"
SOME = "SELECT * FROM S WHERE {formula} FILTER {condition}"


def places(table: pa.Table, label: str) -> list[list[int]]:
    return [[event["pos"] for event in row[label]] for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("condition", "formula", "expected"),
    [
        ("x.a[0] = 1", ONE, [0]),
        ("x.a[0] IS NULL", ONE, [1, 2, 3]),
        ("x.a[-1] IS NOT NULL OR x.a[3] IS NOT NULL", ONE, []),
        ("x[a[1] > 1]", ONE, [0, 1]),
        ("x.a[SIZE(x.a) - 1] = 3", ONE, [0]),
        ("SIZE(x.a) = -1", ONE, [2]),
        ("x.n = 0 OR SIZE(x.m) = 2", ONE, [1, 3]),
        ("CONTAINS(x.a, 5)", ONE, [1]),
        ("NOT CONTAINS(x.a, 1)", ONE, [3]),
        ("CONTAINS(x.a, 2.0)", ONE, [0]),
        ("CONTAINS(x.m, 'z') OR CONTAINS(x.p.city, 'Y')", ONE, [1, 3]),
        ("x.m['k'] > 1", ONE, [0, 1]),
        ("x.m['y'] IS NULL AND x.m['k'] < 2", ONE, [0]),
        ("x[p.city IN ('X', 'Y')]", ONE, [0, 3]),
        ("x.p['city'] = 'X'", ONE, [0]),
        ("x.p.q[1].c = 8", ONE, [0]),
        ("SIZE(x.p.q) = 2 AND x.p IS NOT NULL", ONE, [0]),
        ("x.j:b[1].c::INT = 5", ONE, [0]),
        ("x[j:['b'][1]['c'] = '5']", ONE, [0]),
        ("""x.j:b = '[1,{"c":"5"}]'""", ONE, [0]),
        ("x.j:b::DOUBLE = 2.5", ONE, [3]),
        ("GET_JSON_OBJECT(x.j, '$.b[1].c') = '5'", ONE, [0]),
        ("(x.n + 1)::STRING = '4' AND '3'::INT = x.n", ONE, [0]),
        ("x.a[0] + y.a[1] = 6", TWO, [0]),
        ("x.p.q[0].c = y.p.q[0].c", TWO, [0]),
        ("x.j:b[0]::INT < y.p.q[0].c", TWO, [0]),
    ],
)
def test_conditions(condition: str, formula: str, expected: list[int]) -> None:
    text = SHOP + SOME.format(formula=formula, condition=condition)
    query = celc.compile(text, order_by="t")
    assert places(query.match_table(EVENTS), "x") == [[place] for place in expected]
    batches = [batch for row in range(4) for batch in EVENTS.slice(row, 1).to_batches()]
    found = pa.Table.from_batches(query.match_arrow(batches), query.OUTPUT_SCHEMA)
    assert places(found, "x") == [[place] for place in expected]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x.p.q[0].c = PREV(x.p.q[0].c)", [[0], [0, 3], [1], [3]]),
        ("MAX(x.m['k']) > 8 AND SUM(SIZE(x.a)) = 5", [[0, 1], [0, 1, 3]]),
        ("COUNT(DISTINCT x.p.city) = 2", [[0, 1, 3], [0, 3]]),
    ],
)
def test_functions_of_positions(condition: str, expected: list[list[int]]) -> None:
    text = SHOP + SOME.format(formula=MANY, condition=condition)
    found = celc.compile(text, order_by="t").match_table(EVENTS)
    assert sorted(places(found, "x")) == expected


def test_select() -> None:
    text = f"""{SHOP}SELECT x.a[0] AS e, x.p.q[0].c AS c, x.p.q AS q, x.j:b[1].c::INT + 1 AS j,
    MAX(y.a[1]) AS m, COLLECT(y.p.city) AS cities FROM S WHERE A AS x ; A AS y"""
    first, *_ = celc.compile(text, order_by="t").match_table(EVENTS).to_pylist()
    shown = {name: first[name] for name in ("e", "c", "q", "j", "m", "cities")}
    assert shown == {
        "e": 1,
        "c": 7,
        "q": [{"c": 7}, {"c": 8}],
        "j": 6,
        "m": 5,
        "cities": [None],
    }


def test_keys_and_totals() -> None:
    text = f"{SHOP.replace('EVENT B { t: LONG, w: INT }', '')}".replace("},\n  \n}", "}\n}")
    text += "SELECT TOTAL SUM(x.a[0]) AS s FROM S WHERE A AS x ; A AS y PARTITION BY p.q[0].c"
    found = celc.compile(text, order_by="t").match_table(EVENTS.filter([True, True, False, True]))
    assert [(row["p.q[0].c"], row["s"]) for row in found.to_pylist()] == [(7, 1)]


QUERY = "SELECT x.t AS t, x.m['k'] AS k FROM S WHERE A AS x FILTER x.a[1] > 1 AND x.p.q[1].c = 8"
ROWS = [(1, 1.5)]


def rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return [(row["t"], row["k"]) for row in found.to_pylist()]


def test_other_frames() -> None:
    query = celc.compile(SHOP + QUERY, order_by="t")
    found = query.match_pandas(EVENTS.to_pandas(types_mapper=pd.ArrowDtype))
    assert list(found["t"]) == [1]
    polars = pytest.importorskip("polars")
    if_map = [[{"key": "k", "value": 1.5}], [], None, None]
    given = polars.from_arrow(EVENTS.drop_columns(["m"]))
    assert given.height == len(if_map)
    text = SHOP.replace("m: MAP<STRING, DOUBLE>", "m: ARRAY<STRUCT<key: STRING, value: DOUBLE>>")
    text += QUERY.replace("x.m['k']", "x.m[0].value")
    given = given.with_columns(polars.Series("m", if_map))
    assert rows(celc.compile(text, order_by="t").match_table(given)) == ROWS
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        events = EVENTS
        relation = connection.from_arrow(events)
        assert rows(query.match_table(relation)) == ROWS


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = tmp_path / "q.cel"
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    events = EVENTS.drop_columns(["m"])
    lines = "".join(json.dumps(row) + "\n" for row in events.to_pylist())
    (tmp_path / "events.jsonl").write_text(lines)
    # JSON has no MAP.
    plain = (SHOP + QUERY).replace("m: MAP<STRING, DOUBLE>, ", "").replace("x.m['k']", "x.a[2]")
    for name, text, k in (("events.parquet", SHOP + QUERY, 1.5), ("events.jsonl", plain, 3)):
        query.write_text(text)
        arguments = [str(query), str(tmp_path / name), "--order-by", "t", "--format", "rows"]
        assert main(["run", *arguments]) == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert (json.loads(line)["t"], json.loads(line)["k"]) == (1, k)


def test_json_in_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = tmp_path / "q.cel"
    query.write_text(
        "CREATE STREAM S { EVENT A { t: LONG, j: STRING } }\n"
        "SELECT x.t AS t FROM S WHERE A AS x FILTER x.j:b.c::INT > 4"
    )
    with (tmp_path / "events.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["t", "j"], [1, '{"b": {"c": 4}}'], [2, '{"b": {"c": "5"}}']])
    arguments = [str(query), str(tmp_path / "events.csv"), "--order-by", "t", "--format", "rows"]
    assert main(["run", *arguments]) == 0
    assert [json.loads(line)["t"] for line in capsys.readouterr().out.splitlines()] == [2]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("x.a = y.a", "compared-types"),
        ("x.p.town = 'X'", "unknown-field"),
        ("x.a.b = 1", "no-fields"),
        ("x.m.k = 1", "no-fields"),
        ("x.t.b = 1", "no-fields"),
        ("x.j.b = 'a'", "no-fields"),
        ("x.j[0] = 'a'", "no-elements"),
        ("x.t[0] = 1", "no-elements"),
        ("x.p[0] = 'X'", "no-elements"),
        ("x.a['k'] = 1", "index-type"),
        ("x.a[x.t] = 1", "index-type"),
        ("x.m[1] = 1", "index-type"),
        ("CONTAINS(x.a, 'k')", "not-contained"),
        ("CONTAINS(x.p, 'k')", "not-contained"),
        ("CONTAINS(x.p.q, 5)", "not-contained"),
        ("CONTAINS(x.m, 1)", "not-contained"),
        ("SIZE(x.t) = 1", "function-argument"),
        ("x[t.a > 2]", "no-fields"),
        ("x[y.a > 2]", "label-in-brackets"),
        ("x.a[y.n] = 1", "between-events"),
        ("x.j:['*'] = '5'", "json-name"),
        ("x.j:b[x.n] = '5'", "json-path"),
        ("GET_JSON_OBJECT(x.j, 'b') = '5'", "json-path"),
        ("GET_JSON_OBJECT(x.j, '$.*') = '5'", "json-path"),
        ("x.a:b = '5'", "function-argument"),
        ("REGEXP_EXTRACT(x.j, '(a') = '5'", "invalid-regex"),
        ("REGEXP_EXTRACT(x.j, 'a') = '5'", "no-such-group"),
        ("REGEXP_EXTRACT(x.j, '(a)', 2) = '5'", "no-such-group"),
        ("REGEXP_EXTRACT(x.j, '\\b(a)') = '5'", "regex-of-one-library"),
        ("REGEXP_EXTRACT(x.j, '(a*)+') = '5'", "regex-of-one-library"),
        ("x.a::INT = 5", "no-cast"),
    ],
)
def test_mistakes(condition: str, code: str) -> None:
    with pytest.raises(CelError) as refused:
        celc.compile(SHOP + SOME.format(formula="A AS x ; A AS y", condition=condition))
    assert [one.code for one in refused.value.diagnostics if one.severity == "error"] == [code]


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ('{"a": 1}', ("a",), "1"),
        ('{"a": "b"}', ("a",), "b"),
        ('{"a": null, "a": 2}', ("a",), "2"),
        ('{"a": [null]}', ("a", 0), "null"),
        ('{"a": 1e400}', ("a",), '"Infinity"'),
        ('{"a": {"b": 1.50, "c": "\\u0001😀"}}', ("a",), '{"b":1.5,"c":"\\u0001\\uD83D\\uDE00"}'),
        ("{'a': 'b'} and more", ("a",), "b"),
        ('{"a": 1', ("a",), None),
        ('{"a": 01}', ("a",), None),
        ("", ("a",), None),
        ("[" * 2000, (0,), None),
    ],
)
def test_json(text: str, path: tuple[str | int, ...], expected: str | None) -> None:
    assert json_at(text, path) == expected


def test_json_as_python_reads_it() -> None:
    """All readers read a text without mistakes alike."""
    draw = random.Random(3)

    def value(depth: int) -> Any:
        kind = draw.random()
        if depth < 3 and kind < 0.4:
            return {draw.choice("abc"): value(depth + 1) for _ in range(draw.randint(0, 3))}
        if depth < 3 and kind < 0.7:
            return [value(depth + 1) for _ in range(draw.randint(0, 3))]
        return draw.choice((None, True, 5, -3, 1.25, "", "ä", 'q"\\', "\n"))

    for _ in range(500):
        held = {"a": value(0)}
        inside = held["a"]
        found = json_at(json.dumps(held, indent=draw.choice((None, 1))), ("a",))
        if inside is None or isinstance(inside, str):
            assert found == inside
        else:
            assert found is not None
            assert json.loads(found) == inside
