"""Keys that are DOUBLEs or FLOATs: a query answers as it does with whole numbers in their place, on
every route of one machine and on a stream. NaN equals NaN, and −0.0 is 0.0, which the answer shows.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, expand
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.rules import hash_of_rows, in_one_order
from engines import batches_of, in_parts, interpreted, only_query, plain_totals, table_of
from row_cases import compiled as compiled_rows
from streams_by_hand import EVENT_TIME, instant, streamed

import celc

_FORMS: Mapping[int | None, tuple[Any, ...]] = {
    0: (0.0, -0.0),
    1: (math.nan, -math.nan),
    2: (1.5,),
    None: (None,),
}
"""The real numbers that stand for a whole number."""

_DECLARED = f"""CREATE STREAM S {{
  EVENT A {{ k: LONG, l: LONG, n: INT, {EVENT_TIME}: TIMESTAMP }},
  EVENT B {{ k: LONG, l: LONG, n: INT, {EVENT_TIME}: TIMESTAMP }}
}}
"""
_SET = "PARAMETERS rule { k: LONG, n: INT }\n"
_PAIR = "(A AS a ; B AS b)"

_QUERIES = {
    "matches": f"SELECT a[k, n], b[k, n] FROM S WHERE {_PAIR} PARTITION BY k WITHIN 6 MILLISECONDS",
    "two keys": f"SELECT a[n], b[n] FROM S WHERE {_PAIR} PARTITION BY k, l",
    "chosen keys": f"SELECT a[n], b[n] FROM S WHERE {_PAIR} PARTITION BY [k, l]",
    "consumed": f"SELECT a[n] FROM S WHERE {_PAIR} PARTITION BY k CONSUME BY PARTITION",
    "limited": f"SELECT a[n] FROM S WHERE {_PAIR} PARTITION BY k LIMIT 1",
    "last": f"SELECT LAST a[n], b[n] FROM S WHERE {_PAIR} PARTITION BY k",
    "longest": "SELECT LONGEST a[n] FROM S WHERE A+ AS a PARTITION BY k",
    "absence": "SELECT a[n] FROM S WHERE (A AS a ; !B FOR 3 MILLISECONDS) PARTITION BY k",
    "equal": f"SELECT a[n], b[n] FROM S WHERE {_PAIR} FILTER a.k = b.k",
    "equal to another": f"SELECT a[n], b[n] FROM S WHERE {_PAIR} FILTER a.k = b.l AND a.l = b.k",
    "distinct": "SELECT COUNT(DISTINCT a.k) AS c FROM S WHERE A+ AS a"
    " FILTER COUNT(DISTINCT a.k) = 2 WITHIN 4 MILLISECONDS",
    "collapsed": f"SELECT COLLAPSED a[n] FROM S WHERE {_PAIR} PARTITION BY k",
    "total": f"SELECT TOTAL COUNT(*) AS c, MIN(a.n) AS m FROM S WHERE {_PAIR} PARTITION BY k",
    "total of partitions": f"SELECT TOTAL COUNT(*) AS c, SUM(b.n) AS m FROM S WHERE {_PAIR}"
    " PARTITION BY k PER PARTITION HAVING c > 1",
    "total of times": f"SELECT TOTAL COUNT(*) AS c FROM S WHERE {_PAIR} PARTITION BY k"
    " PER 4 MILLISECONDS HAVING c > 1",
    "listed totals": f"SELECT TOTAL COUNT(*) AS c FROM S WHERE {_PAIR} FILTER a.n + b.n > 3"
    " PARTITION BY k, l PER PARTITION",
    "each": f"SELECT a[n], b[n] FROM S FOR EACH rule WHERE {_PAIR} FILTER a.k = rule.k",
    "each in parts": f"SELECT a[n] FROM S FOR EACH rule WHERE {_PAIR}"
    " FILTER a.l = rule.k AND b.n >= rule.n PARTITION BY k",
    "total of each": f"SELECT TOTAL COUNT(*) AS c FROM S FOR EACH rule WHERE {_PAIR}"
    " FILTER a.l = rule.k PARTITION BY k PER PARTITION",
}


def _text(name: str, type: str) -> str:
    text = (_DECLARED + (_SET if "FOR EACH" in _QUERIES[name] else "")).replace("LONG", type)
    if name == "chosen keys":
        first, second = text.split("EVENT B")
        text = first.replace(f" l: {type},", "") + "EVENT B" + second.replace(f" k: {type},", "")
    return text + _QUERIES[name]


def _query(name: str, type: str) -> CompiledQuery:
    with interpreted():
        found = only_query(celc.compile(_text(name, type), order_by=EVENT_TIME, at_end="closed"))
    return found if found.plan.source.parameters is None else found.with_options(positions=False)


def _events(rng: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "type": rng.choice("AAB" if place < 4 else "ABB"),
            "k": rng.choice((0, 0, 1, 1, 2, None)),
            "l": rng.choice((0, 0, 1)),
            "n": rng.randint(0, 3),
            EVENT_TIME: instant(1 + place),
        }
        for place in range(rng.randint(5, 14))
    ]


_RULES = [{"k": k, "n": n} for k in (0, 0, 1, 2, None) for n in (1, 0, 1)]


def _real(rng: random.Random, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with real numbers for the whole ones."""
    return [
        {
            name: rng.choice(_FORMS[value]) if name in ("k", "l") else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _whole(value: Any) -> Any:
    """What is shown of a row, with the whole numbers again; of each label its events' too."""
    match value:
        case dict():
            return {name: _whole(one) for name, one in value.items()}
        case list():
            return [_whole(one) for one in value]
        case float():
            assert repr(value) != "-0.0"
            return 1 if value != value else {0.0: 0, 1.5: 2}[value]
        case _:
            return value


Answer = Callable[[CompiledQuery, Sequence[dict[str, Any]], random.Random], list[dict[str, Any]]]


def _tables(query: CompiledQuery, rng: random.Random) -> dict[str, pa.Table]:
    """The table of the parameter set, if the query has one; its rows come in any order."""
    if query.plan.source.parameters is None:
        return {}
    (type,) = {one.type for one in query.plan.source.parameters.attributes if one.name == "k"}
    rows = list(_RULES) if type == "LONG" else _real(rng, _RULES)
    rng.shuffle(rows)
    types = {"LONG": pa.int64(), "DOUBLE": pa.float64(), "FLOAT": pa.float32()}
    columns = {"k": types[type], "n": pa.int32()}
    return {"rule": pa.table({n: pa.array([r[n] for r in rows], t) for n, t in columns.items()})}


def _by_table(query: CompiledQuery, events: Sequence[Any], rng: random.Random) -> list[Any]:
    return query.match_table(table_of(query.plan, events), **_tables(query, rng)).to_pylist()


def _by_batches(query: CompiledQuery, events: Sequence[Any], rng: random.Random) -> list[Any]:
    if query.plan.source.parameters is not None:
        return _by_table(query, events, rng)
    ordered = table_of(query.plan, in_parts(query.plan, events))
    found = query.match_arrow(batches_of(ordered, rng))
    return [row for batch in found for row in batch.to_pylist()]


def _as_stream(query: CompiledQuery, events: Sequence[Any], rng: random.Random) -> list[Any]:
    tables = _tables(query, rng)
    options, rules = StreamOptions({}), None
    if tables:
        assert query.plan.source.parameters is not None
        rules = in_one_order(rows_of(query.name, query.plan.source.parameters, tables["rule"]))
        options = StreamOptions({}, rules=hash_of_rows(rules))
    return streamed(query, events, rng, options=options, rules=rules)


def _expanded(query: CompiledQuery, events: Sequence[Any], rng: random.Random) -> list[Any]:
    return expand(query.match_compact(table_of(query.plan, events))).read_all().to_pylist()


_NO_STREAMS = {"total of partitions", "total of each", "listed totals", "absence"}
_COMPACT = {"matches", "two keys", "chosen keys", "consumed", "limited", "last", "equal"}
_ROUTES: dict[str, Answer] = {
    "table": _by_table,
    "batches": _by_batches,
    "stream": _as_stream,
    "compact": _expanded,
}


@pytest.mark.each(5, values=False)
@pytest.mark.parametrize("type", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize("name", _QUERIES)
def test_real_keys_are_as_whole_ones(name: str, type: str) -> None:
    real, whole = _query(name, type), _query(name, "LONG")
    rows = 0
    for seed in range(6):
        rng = random.Random(f"{name} {seed}")
        events = _events(rng)
        with plain_totals():
            wanted = Counter(map(repr, _whole(_by_table(whole, events, rng))))
            rows += wanted.total()
            for route, answer in _ROUTES.items():
                if route == "stream" and name in _NO_STREAMS:
                    continue
                if route == "compact" and name not in _COMPACT:
                    continue
                made = _real(rng, events)
                found = Counter(map(repr, _whole(answer(real, made, rng))))
                assert found == wanted, f"{route}, seed {seed}: {made}"
    assert rows >= 4


def test_rows_of_parameters_are_one_set_in_any_order() -> None:
    """What a checkpoint remembers of the table does not depend on the sign of a zero."""
    query = _query("each", "DOUBLE")
    assert query.plan.source.parameters is not None
    hashes = set()
    for keys in ([0.0, -0.0, math.nan], [-math.nan, -0.0, 0.0]):
        table = pa.table({"k": keys, "n": pa.array([1] * 3, pa.int32())})
        rows = in_one_order(rows_of(query.name, query.plan.source.parameters, table))
        assert list(map(repr, rows.columns["k"].to_pylist())) == ["0.0", "nan"]
        hashes.add(hash_of_rows(rows))
    assert len(hashes) == 1


_ROWS = """CREATE TABLE t (k DOUBLE, v DOUBLE, n INT);
SELECT k, f, l FROM t MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY v MEASURES FIRST(n) AS f, LAST(n) AS l{rows} PATTERN (A B)
  DEFINE B AS B.n > A.n)"""


@pytest.mark.parametrize("rows", ["", " ALL ROWS PER MATCH"])
def test_real_keys_of_row_patterns(rows: str) -> None:
    text = _ROWS.format(rows=rows)
    with interpreted():
        real, whole = compiled_rows(text), compiled_rows(text.replace("k DOUBLE", "k BIGINT"))
    found_rows = 0
    for seed in range(8):
        rng = random.Random(seed)
        made = [
            {"k": rng.choice((0, 1, 2)), "v": n - 5.0, "n": rng.randint(0, 9)} for n in range(9)
        ]
        wanted = Counter(map(repr, whole.match_table(_rows(made)).to_pylist()))
        rng.shuffle(made)
        found = _whole(real.match_table(_rows(_real(rng, made))).to_pylist())
        assert Counter(map(repr, found)) == wanted, made
        found_rows += wanted.total()
    assert found_rows >= 8


def test_nan_is_last_in_the_order_of_row_patterns() -> None:
    """Whatever its sign: a processor makes NaN with either."""
    with interpreted():
        query = compiled_rows(_ROWS.format(rows=""))
    for last in _FORMS[1]:
        table = _rows([{"k": 1.5, "v": v, "n": n} for v, n in ((last, 2), (-math.inf, 1))])
        assert query.match_table(table).to_pylist() == [{"k": 1.5, "f": 1, "l": 2}]


def _rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.table({name: [row[name] for row in rows] for name in ("k", "v")}).append_column(
        "n", pa.array([row["n"] for row in rows], pa.int32())
    )
