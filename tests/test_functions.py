"""Functions of values in queries: in conditions, SELECT, keys and declarations, on one machine."""

from __future__ import annotations

import datetime as dt
import random
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.arrow import vectors
from celc_runtime.run.feeding import read_all
from celc_runtime.values import code
from engines import interpreted, only_query, table_of
from streams_by_hand import EVENT_TIME, instant, streamed

import celc
from celc.diagnostics.errors import CelError

SHOP = """CREATE STREAM S {
  EVENT A { v: DOUBLE, s: STRING, ts: TIMESTAMP, h: INT = HOUR(ts) },
  EVENT B { v: DOUBLE, s: STRING, ts: TIMESTAMP, w: INT, h: INT = w + HOUR(ts) * 10 }
}
"""
TIMES = [dt.datetime(2024, 1, 1, hour, 30) for hour in (1, 3, 4, 5, 23)]
EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B", "A"],
        "v": [4.0, 9.0, 2.25, None, 16.0],
        "s": ["ab", "Ab", "straße", None, "x"],
        "ts": pa.array(TIMES, pa.timestamp("us", "UTC")),
        # Events of the type A have no attribute w, whatever the column holds.
        "w": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "h": pa.array([0] * 5, pa.int32()),
    }
)


def rows(query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        celc.compile(SHOP + query, order_by="ts").match_table(EVENTS).to_pylist()
    )
    return found


def positions(condition: str, formula: str) -> list[tuple[int, ...]]:
    """The positions of x and y in the matches of a formula with a condition."""
    found = rows(f"SELECT * FROM S WHERE {formula} FILTER {condition}")
    labels = [label for label in ("x", "y") if found and label in found[0]]
    return sorted(tuple(row[label][0]["pos"] for label in labels) for row in found)


ONE = "(A OR B) AS x"
TWO = "A AS x ; (A OR B) AS y"


@pytest.mark.parametrize(
    ("condition", "formula", "expected"),
    [
        ("SQRT(x.v) = 2.0", ONE, [(0,)]),
        ("HOUR(x.ts) = 3 AND UPPER(x.s) = 'AB'", ONE, [(1,)]),
        ("HOUR(x.ts AT TIME ZONE 'Asia/Tokyo') = 10", ONE, [(0,)]),
        ("x[UPPER(s) = 'STRASSE' OR LENGTH(s) = 1]", ONE, [(2,), (4,)]),
        ("x.s || 'c' = 'abc'", ONE, [(0,)]),
        ("ROUND(x.v - y.v, 1) = 1.8", TWO, [(0, 2)]),
        ("CAST(x.v / y.v AS INT) = 1", TWO, [(0, 2)]),
        ("CAST(x.v / y.v AS DECIMAL(6, 2)) = 1.78", TWO, [(0, 2)]),
        ("HOUR(x.ts + (y.ts - x.ts)) = 4", TWO, [(0, 2)]),
        ("DATE_TRUNC('HOUR', GREATEST(x.ts, y.ts)) > y.ts - 5 MINUTES", TWO, []),
        ("ISNAN(x.v - y.v) OR x.v > 4", TWO, []),
        ("NOT ISNAN(x.v - y.v) AND y.v IS NULL", TWO, [(0, 3), (2, 3)]),
        ("UPPER(FIRST(x.s)) = 'AB' AND y.v = 16", TWO, [(0, 4)]),
        ("STARTSWITH(x.s, 'A') OR ENDSWITH(x.s, 'e')", ONE, [(1,), (2,)]),
        ("NOT STARTSWITH(x.s, 'A')", ONE, [(0,), (2,), (4,)]),
        ("x.h = 1 OR x.h > 50", ONE, [(0,), (3,)]),
        ("COALESCE(x.w, 7) = 7", ONE, [(0,), (2,), (4,)]),
        ("CASE x.s WHEN 'ab' THEN 1 WHEN 'x' THEN 2 END = 2", ONE, [(4,)]),
        ("x.v > SQRT(POWER(3, 2))", ONE, [(0,), (1,), (4,)]),
        ("UPPER(x.s) = UPPER(y.s)", TWO, [(0, 1)]),
        ("SQRT(POWER(y.v - x.v, 2) + 0.0) > 11", TWO, [(0, 4), (2, 4)]),
        ("GREATEST(x.v, y.v, 3.0) > 10", TWO, [(0, 4), (2, 4)]),
        ("COALESCE(y.v, x.v) = x.v", TWO, [(0, 3), (2, 3)]),
        (
            "CASE WHEN y.s = 'Ab' THEN y.v - x.v WHEN y.v IS NULL THEN 5 END = 5",
            TWO,
            [(0, 1), (0, 3), (2, 3)],
        ),
        ("IF(y.v > x.v, y.v - x.v, x.v - y.v) < 6", TWO, [(0, 1), (0, 2)]),
        ("x.s IS DISTINCT FROM y.s AND y.v IS NOT DISTINCT FROM NULL", TWO, [(0, 3), (2, 3)]),
        ("LN(y.v - 9.0) IS NULL", TWO, [(0, 1), (0, 2), (0, 3), (2, 3)]),
        ("COALESCE(FIRST(x.v), 7) = 7", ONE, [(3,)]),
        ("IF(LAST(x.v) > 3, 1, NULL) IS NULL", ONE, [(2,), (3,)]),
        ("NULLIF(FIRST(x.h), 1) IS NULL", ONE, [(0,)]),
        ("NOT (GREATEST(FIRST(x.w), 3) > 3)", ONE, [(0,), (1,), (2,), (4,)]),
    ],
)
def test_conditions(condition: str, formula: str, expected: list[tuple[int, ...]]) -> None:
    assert positions(condition, formula) == expected


def test_select() -> None:
    first, *_ = rows(
        "SELECT x.s || '-' || UPPER(y.s) AS both, ROUND(SUM(y.v), 1) AS sum, "
        "CASE WHEN COUNT(y) > 1 THEN 'many' ELSE 'few' END AS n, HOUR(x.ts) AS hour "
        "FROM S WHERE A AS x ; B AS y"
    )
    assert (first["both"], first["sum"], first["n"], first["hour"]) == ("ab-AB", 9.0, "few", 1)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("CASE WHEN y.v > 3 THEN 'high' ELSE 'low' END", ["high", "low", "low"]),
        ("IF(y IS B, 'b', 'a')", ["a", "b", "b"]),
        ("CASE WHEN y IS NOT B THEN CAST(y.v AS STRING) END", ["2.25", None, None]),
        ("CAST(y.v AS STRING)", ["2.25", "9.0", None]),
    ],
)
def test_items_tell_matches_apart_by_the_labels_in_them(
    item: str, expected: list[str | None]
) -> None:
    """Three matches with one start and one end differ in y alone."""
    query = f"SELECT {item} AS i FROM S WHERE A AS x ; (A OR B) AS y ; A AS z"
    found = rows(query)
    ends = [row["i"] for row in found if (row["start_pos"], row["end_pos"]) == (0, 4)]
    assert sorted(ends, key=str) == sorted(expected, key=str)


def test_keys() -> None:
    found = rows("SELECT * FROM S WHERE A AS x ; B AS y PARTITION BY LOWER(s)")
    assert [(row["LOWER(s)"], row["x"][0]["s"], row["y"][0]["s"]) for row in found] == [
        ("ab", "ab", "Ab")
    ]


def test_a_derived_attribute_is_shown_and_not_read() -> None:
    query = celc.compile(SHOP + "SELECT * FROM S WHERE B AS x", order_by="ts")
    assert "h" not in query.INPUT_SCHEMA.names
    found = query.match_table(EVENTS.drop_columns(["h"])).to_pylist()
    assert [row["x"][0]["h"] for row in found] == [32, 54]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("FOO(x.s) = 1", "unknown-function"),
        ("SQRT(x.s) = 1", "function-argument"),
        ("SQRT(x.v, 2) = 1", "function-arguments"),
        ("UPPER(x) = 'A'", "needs-number"),
        ("ROUND(x.v, x.v) = 1", "needs-literal"),
        ("UPPER(x.s || y.s) = 'AB'", "between-events"),
        ("HOUR(x.ts AT TIME ZONE 'Mars') = 1", "unknown-zone"),
        ("SQRT(x.v AT TIME ZONE 'UTC') = 1", "misplaced-zone"),
        ("CAST(x.ts AS BOOLEAN)", "no-cast"),
    ],
)
def test_mistakes(condition: str, code: str) -> None:
    with pytest.raises(CelError) as refused:
        celc.compile(f"{SHOP}SELECT * FROM S WHERE A AS x ; B AS y FILTER {condition}")
    assert [one.code for one in refused.value.diagnostics if one.severity == "error"] == [code]


@pytest.mark.parametrize(
    ("declaration", "code"),
    [
        ("n: INT, m: INT = n + k", "unknown-in-event"),
        ("n: INT = n + 1", "derived-of-itself"),
        ("n: INT = m, m: INT = n", "derived-of-itself"),
        ("s: STRING, n: INT = LENGTH(x.s)", "label-in-brackets"),
        ("s: STRING, n: STRING = LENGTH(s)", "derived-type"),
        ("v: INT, n: LONG = SUM(v)", "function-in-brackets"),
    ],
)
def test_wrong_derived_attributes(declaration: str, code: str) -> None:
    with pytest.raises(CelError) as refused:
        celc.compile(f"CREATE STREAM S {{ EVENT A {{ {declaration} }} }}\nSELECT * FROM S WHERE A")
    assert code in [one.code for one in refused.value.diagnostics]


SAME = "SELECT * FROM S WHERE A AS x ; B AS y FILTER UPPER(x.s) = UPPER(y.s) AND x.h < 20"
RULES = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["AB", "X"]})


def test_many_queries() -> None:
    text = f"""{SHOP}
    QUERY same: {SAME}
    QUERY small: SELECT * FROM S WHERE A AS x FILTER ROUND(x.v) = 2
    QUERY exact: SELECT * FROM S WHERE A AS x FILTER ROUND(x.v, 1) = 2.3
    """
    queries = celc.compile(text, order_by="ts")
    found = {name: table.num_rows for name, table in queries.match_all_table(EVENTS).items()}
    assert found == {"same": 1, "small": 1, "exact": 1}


def test_queries_over_queries() -> None:
    text = f"""{SHOP}
    QUERY same: {SAME}
    QUERY read: SELECT * FROM same, S WHERE same AS m ; A AS z FILTER HOUR(m.ts) + 1 = HOUR(z.ts)
    """
    read = celc.compile(text, order_by="ts").read
    assert read.match_table(EVENTS).num_rows == 1
    batches = EVENTS.to_batches(max_chunksize=1)
    assert sum(len(batch) for batch in read.match_arrow(batches)) == 1


def test_rules() -> None:
    text = SHOP + "PARAMETERS rule { id: LONG, name: STRING }\n"
    text += "SELECT * FROM S FOR EACH rule WHERE (A OR B) AS x FILTER UPPER(x.s) = rule.name"
    found = celc.compile(text, order_by="ts").match_table(EVENTS, rule=RULES).to_pylist()
    assert [(row["rule"]["id"], row["x"][0]["pos"]) for row in found] == [(1, 0), (1, 1), (2, 4)]


def test_rows_in_any_order() -> None:
    query = celc.compile(f"{SHOP}{SAME} PARTITION BY LOWER(s)", order_by="ts")
    turned = EVENTS.take([4, 3, 2, 1, 0])
    assert query.match_table(turned).drop_columns(["start_pos", "end_pos"]).num_rows == 1
    assert query.match_compact(EVENTS).num_rows == 1


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("FILTER SQRT(rule.least) = x.v", [(1, 0), (2, 4)]),
        ("FILTER IF(rule.least > 20, x.v, 0) = 16.0", [(2, 4)]),
        ("FILTER COALESCE(rule.least, x.v) < LEAST(x.v * 5, 17)", [(1, 0), (1, 4)]),
        ("FILTER ABS(rule.least - x.v) BETWEEN 1 AND POWER(rule.id, 8)", [(2, 0), (2, 2), (2, 4)]),
    ],
)
def test_functions_of_rules(clause: str, expected: list[tuple[int, int]]) -> None:
    text = SHOP + "PARAMETERS rule { id: LONG, least: DOUBLE }\n"
    text += f"SELECT * FROM S FOR EACH rule WHERE A AS x {clause}"
    rules = pa.table({"id": pa.array([1, 2], pa.int64()), "least": [16.0, 256.0]})
    found = celc.compile(text, order_by="ts").match_table(EVENTS, rule=rules).to_pylist()
    assert sorted((row["rule"]["id"], row["x"][0]["pos"]) for row in found) == sorted(expected)


@pytest.mark.parametrize("coded", [False, True])
def test_the_hash_of_null_is_a_number(coded: bool) -> None:
    texts = EVENTS.column("s").combine_chunks()
    events = EVENTS.set_column(2, "s", texts.dictionary_encode() if coded else texts)
    query = celc.compile(f"{SHOP}SELECT * FROM S WHERE B AS x FILTER HASH(x.s) = 42", order_by="ts")
    assert [row["start_pos"] for row in query.match_table(events).to_pylist()] == [3]


def test_a_stream_of_one_type_has_no_column_of_types() -> None:
    text = "CREATE STREAM S { EVENT A { n: INT } }\nSELECT IF(x IS A, 1, 2) AS e FROM S"
    query = celc.compile(f"{text} WHERE A AS x FILTER CASE WHEN x IS A THEN x.n ELSE 0 END = 7")
    found = query.match_table(pa.table({"n": pa.array([7, 8], pa.int32())})).to_pylist()
    assert found == [{"start_pos": 0, "end_pos": 0, "e": 1}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT FIRST COALESCE(y.v, x.v) AS c FROM S WHERE A AS x ; B AS y",
        "SELECT GREATEST(y.v, x.v) AS c FROM S WHERE A AS x ; B AS y LIMIT 3",
        "SELECT TOTAL COUNT(*) AS n FROM S WHERE A AS x FILTER IF(x.v > 3, x.v, 0) = 4 "
        "HAVING n > 0 AND n IN (1, 2)",
    ],
)
def test_expressions_beside_choices_and_having(query: str) -> None:
    assert rows(query)


def _rows_computed(query: str, events: pa.Table, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each call of a slow function, when a query is run."""
    found: list[int] = []

    def counted(name: str, operands: Any, rows: int, zone: str | None, type: str) -> pa.Array:
        if name in code.SLOW:
            found.append(max(len(one) for one in operands if isinstance(one, pa.Array)))
        return code.called(name, operands, rows, zone, type)

    asked = celc.compile(SHOP + query, order_by="ts")
    monkeypatch.setattr(vectors, "called", counted)
    assert asked.match_table(events).num_rows == 1
    return found


@pytest.mark.parametrize(
    ("query", "computed"),
    [
        ("SELECT * FROM S WHERE B AS x FILTER CAST(x.ts AS STRING) LIKE '%03:30:00'", [2]),
        ("SELECT * FROM S WHERE B AS x FILTER HASH(x.s, x.w) <> 1 AND x.w = 2", [2]),
        # A key is asked for of all events.
        ("SELECT * FROM S WHERE B AS x FILTER x.w = 2 PARTITION BY CAST(ts AS STRING)", [5]),
    ],
)
def test_slow_functions_are_computed_of_the_events_that_are_asked_for(
    query: str, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _rows_computed(query, EVENTS, monkeypatch) == computed


def test_a_function_of_coded_texts_is_computed_of_each_distinct_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = EVENTS.column("s").combine_chunks().dictionary_encode()
    many = EVENTS.set_column(2, "s", texts)
    query = "SELECT * FROM S WHERE A AS x FILTER UPPER(x.s) = 'STRASSE'"
    seen: list[int] = []
    upper = code._CODE["UPPER"]

    def counted(text: pa.Array, rows: int) -> pa.Array:
        seen.append(len(text))
        found: pa.Array = upper(text, rows=rows)
        return found

    monkeypatch.setitem(code._CODE, "UPPER", counted)
    asked = celc.compile(SHOP + query, order_by="ts")
    assert asked.match_table(many).num_rows == 1
    assert {*seen} == {len(texts.dictionary)}


_DECLARED = """CREATE STREAM S {
  EVENT A { v: DOUBLE, n: INT, px: DECIMAL(6, 2), event_time: TIMESTAMP DERIVED },
  EVENT B { v: DOUBLE, event_time: TIMESTAMP }
}
"""
_OF_A = {
    "once": ("INT", "n * 2 - 1"),
    "less": ("DOUBLE", "-v"),
    "paid": ("DECIMAL(17, 2)", "px * n"),
}


@pytest.mark.parametrize(
    "body",
    [
        "SUM({paid}) AS s, LAST({once}) AS l, COUNT(DISTINCT {once}) AS d FROM S WHERE A+ AS x ; B",
        "COUNT(x) AS n FROM S WHERE ((A AS x)+ ; B) FILTER SUM({paid}) > 3.5 AND MIN({less}) < 1",
        "COUNT(x) AS n FROM S WHERE (A AS x)+ FILTER {once} > PREV({once})",
        "COUNT(x) AS n FROM S WHERE (A AS x)+ FILTER {paid} >= MAX(PRIOR {paid})",
        "TOTAL SUM({paid}) AS s, MAX({once}) AS m, AVG({less}) AS a FROM S WHERE (A AS x)+ ; B",
    ],
)
def test_aggregates_of_what_is_computed_of_one_event(body: str) -> None:
    """The same as of attributes that are declared with these values, on a table and a stream."""
    names = "".join(f", {name}: {type} = {value}" for name, (type, value) in _OF_A.items())
    written = {name: re.sub(r"\b(n|v|px)\b", r"x.\1", value) for name, (_, value) in _OF_A.items()}
    of_values = body.format(**written)
    of_attributes = body.format(**{name: f"x.{name}" for name in _OF_A})
    rng = random.Random(body)
    events = [
        {
            "type": rng.choice("AAB"),
            "v": rng.choice([None, 0.5, -2.0, 3.0]),
            "n": rng.choice([None, 1, 2, 3]),
            "px": rng.choice([None, Decimal("0.10"), Decimal("1.25"), Decimal("-3.00")]),
            EVENT_TIME: instant(10 + 2 * row),
        }
        for row in range(12)
    ]
    with interpreted():
        wanted, found = (
            only_query(celc.compile(text, order_by=EVENT_TIME))
            for text in (
                f"{_DECLARED.replace(' DERIVED', names)}SELECT {of_attributes} WITHIN 9 SECONDS",
                f"{_DECLARED.replace(' DERIVED', '')}SELECT {of_values} WITHIN 9 SECONDS",
            )
        )
    table = table_of(wanted.plan, events)
    rows_of_attributes = wanted.match_table(table).to_pylist()
    assert len(rows_of_attributes) >= 3
    assert found.output_schema == wanted.output_schema
    assert found.match_table(table).to_pylist() == rows_of_attributes
    for one in (found, wanted):
        rows_of_stream = streamed(one, events, random.Random(1))
        assert sorted(map(repr, rows_of_stream)) == sorted(map(repr, rows_of_attributes))


@pytest.mark.parametrize("each", ["", "FOR EACH rule "])
def test_a_run_that_is_fed_makes_their_columns(each: str) -> None:
    rows = "x.id = rule.id AND " if each else ""
    query = celc.compile(
        "CREATE STREAM S { EVENT A { id: INT, name: STRING } }\n"
        "PARAMETERS rule { id: INT }\n"
        f"SELECT x FROM S {each}WHERE A AS x FILTER {rows}UPPER(x.name) = 'P'\n"
    ).query
    events = pa.table({"type": ["A"] * 3, "id": pa.array([1, 1, 2], pa.int32()), "name": [*"pqp"]})
    given = {"rule": pa.table({"id": pa.array([1], pa.int32())})} if each else {}
    wanted = query.match_table(events, **given).to_pylist()
    assert len(wanted) == (1 if each else 2)
    found = read_all(query.run(**given), events.to_batches(max_chunksize=1))
    assert [row for batch in found for row in batch.to_pylist()] == wanted
