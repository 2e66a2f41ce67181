"""The rows of a batch that each of many queries reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.arrow.events import event_order
from celc_runtime.many.relevant_rows import RelevantRows
from celc_runtime.rules.run import ForEachRun
from engines import interpreted

import celc

DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, ratio: FLOAT, name: STRING, ts: LONG },
  EVENT B { id: INT, ratio: FLOAT, name: STRING, ts: LONG }
}
"""


def _read(query: str, table: pa.Table, parts: tuple[int, ...] = ()) -> list[int]:
    """The rows that are read, after a check that they give the answer of all rows."""
    with interpreted():
        module = celc.compile(f"{DECLARATION}QUERY q: {query}", order_by="ts")
    plan = module.queries["q"].plan
    together, alone = module.match_all_table(table)["q"], module.queries["q"].match_table(table)
    assert repr(together.to_pylist()) == repr(alone.to_pylist())
    (batch,) = table.to_batches()
    rows = RelevantRows(plan, batch, np.array(parts, np.int64)).of(plan)
    return [int(row) for row in rows]


def _events(types: str, **columns: Any) -> pa.Table:
    count = len(types)
    return pa.table(
        {
            "type": list(types),
            "id": pa.array(columns.get("id", [1] * count), pa.int32()),
            "ratio": pa.array(columns.get("ratio", [1.0] * count), pa.float32()),
            "name": columns.get("name", ["p"] * count),
            "ts": range(count),
        }
    )


@pytest.mark.parametrize(
    "pattern", ["A AS x ; !B ; A AS y", "(A AS x ; A AS y) UNLESS B", "(A AS x)+ ; !B ; A AS y"]
)
def test_of_idempotent_events_one_is_read_between_two_others(pattern: str) -> None:
    events = _events("BBABBBAABBB")
    query = f"SELECT * FROM S WHERE {pattern}"
    assert _read(query, events) == [0, 2, 3, 6, 7, 8]
    assert _read(query + " WITHIN 5 [ts]", events) == [0, 2, 3, 6, 7, 8]


def test_each_partition_and_each_way_has_a_first_row() -> None:
    query = "SELECT * FROM S WHERE A AS x ; !(B FILTER {}) ; A AS y"
    many = _events("ABBBBBA", id=[1, 2, 3, 2, 3, 2, 1])
    assert _read(query.format("B.id > 1"), many, parts=(3,)) == [0, 1, 3, 6]
    assert _read(query.format("B.id > 1 OR B.ratio > 2"), many) == [0, 1, 6]
    # Two absences end the matches of two states.
    two = "SELECT * FROM S WHERE A AS x ; !(B FILTER B.id = 2) ; A AS y ; !(B FILTER B.id = 3) ; A"
    assert _read(two, many) == [0, 1, 2, 6]


@pytest.mark.parametrize(
    "query",
    [
        # An event that ends matches of one state and begins others.
        "SELECT * FROM S WHERE (A AS x ; !B ; A AS y) OR (B AS x ; A AS y)",
        # The matches that it ends depend on their events.
        "SELECT * FROM S WHERE A AS x ; !(B AS w FILTER w.id = x.id) ; A AS y WITHIN 9 [ts]",
        "SELECT * FROM S WHERE A AS x ; !(B AS w FILTER w.ratio > x.ratio) ; A AS y WITHIN 9 [ts]",
        # Conditions that are not read off a column.
        "SELECT * FROM S WHERE A AS x ; !(B FILTER B.name LIKE 'p%') ; A AS y",
        "SELECT * FROM S WHERE A AS x ; !(B FILTER B.id + 1 > 1) ; A AS y",
    ],
)
def test_all_events_are_read_where_one_does_not_stand_for_all(query: str) -> None:
    assert _read(query, _events("ABBBA")) == [0, 1, 2, 3, 4]


def test_numbers_are_compared_in_the_type_of_the_condition() -> None:
    # 0.1 as a FLOAT is larger than 0.1.
    ratios = _events("AAA", ratio=[0.1, float("nan"), 0.0])
    assert _read("SELECT * FROM S WHERE A AS x FILTER x.ratio > 0.1", ratios) == [0, 1]
    assert _read("SELECT * FROM S WHERE A AS x FILTER x.ratio < 0.1", ratios) == [2]
    ids = _events("AAA", id=[1, 7, 2])
    query = "SELECT * FROM S WHERE A AS x FILTER x.id IN (1, 5000000000) OR x.id = 7"
    assert _read(query, ids) == [0, 1]


@pytest.mark.parametrize("step", [1, 1 << 15])  # far apart, codes do not fit 16 bits
def test_rows_of_a_value_are_in_order(step: int) -> None:
    values = [5, -3, None, 5, 0, -3, 5]
    ids = [None if value is None else value * step for value in values]
    for value in (5, -3, 0, 7):
        query = f"SELECT * FROM S WHERE A AS x FILTER x.id = {value * step}"
        rows = [row for row, one in enumerate(values) if one == value]
        assert _read(query, _events("AAAAAAA", id=ids)) == rows


def test_texts_come_in_each_form() -> None:
    """Those of a dictionary that has one twice as well, and of which two are equal in capitals."""
    text = f"""{DECLARATION}QUERY one: SELECT x, y FROM S WHERE A AS x ; B AS y PARTITION BY name
    QUERY other: SELECT x, y FROM S WHERE (A AS x ; B AS y) FILTER x.name = y.name
    QUERY equal: SELECT x FROM S WHERE A AS x FILTER x.name = 'p'
    QUERY upper: SELECT x FROM S WHERE A AS x FILTER UPPER(x.name) = 'P'"""
    with interpreted():
        module = celc.compile(text, order_by="ts")
    events = _events("AABBAB" * 3)
    codes = pa.array([0, 1, 0, 2, None, 1] * 3, pa.int8())
    twice = pa.DictionaryArray.from_arrays(codes, pa.array(["p", "P", "p"]))
    place = events.column_names.index("name")
    forms = [events.set_column(place, "name", one) for one in (twice, twice.cast(pa.string()))]
    found = [module.match_all_table(one) for one in forms]
    assert found[0] == found[1]
    assert {name: len(rows) for name, rows in found[0].items()} == {
        name: len(query.match_table(forms[1])) for name, query in module.queries.items()
    }
    assert all(map(len, found[0].values()))


def test_of_many_values_none_is_looked_up_alone() -> None:
    names = ["n3", None, "other", "n25", "n3", "n4"]
    events = _events("AAAAAB", name=names, id=[3, 3, None, 3, 3, 3])
    many = ", ".join(f"'n{number}'" for number in range(30))
    assert _read(f"SELECT * FROM S WHERE A AS x FILTER x.name IN ({many})", events) == [0, 3, 4]
    assert _read(f"SELECT * FROM S WHERE A AS x FILTER x.name NOT IN ({many})", events) == [2]
    ids = ", ".join(map(str, range(30)))
    assert _read(f"SELECT * FROM S WHERE A AS x FILTER x.id IN ({ids})", events) == [0, 1, 3, 4]


@pytest.mark.parametrize(
    ("query", "read"),
    [
        # A bound of the table that most events pass. NULL is none.
        ("WHERE A AS x FILTER x.id > rule.id", [1, 4]),
        ("WHERE A AS x FILTER x.id <= rule.id", [0, 5]),
        # Neighbours: all events of the partitions that the table names.
        ("WHERE (A AS x : B AS y) FILTER x.name = rule.name PARTITION BY name", [0, 2, 6]),
        # An absence at the end: the latest event as well, which decides.
        (
            "WHERE (A AS x ; !B FOR 2 [ts]) FILTER x.name = rule.name PARTITION BY name",
            [0, 2, 6, 16],
        ),
    ],
)
def test_events_that_concern_no_row_of_a_table_are_not_read(
    query: str, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{DECLARATION}PARAMETERS rule {{ id: INT, name: STRING }}\n"
    with interpreted():
        module = celc.compile(
            f"{text}QUERY q: SELECT x FROM S FOR EACH rule {query}", order_by="ts"
        )
    # Where half of the events matter, all are read.
    names = ["p", "q", "r", None, "q", "q", "p", "q"]
    ids = [4, 9, 4, None, 7, 5, 3, 9, *[None] * 9]
    events = _events("AABAAABB" + "A" * 8 + "B", id=ids, name=[*names, *"zzzzzzzzz"])
    rows = pa.table({"id": pa.array([5, None, 6], pa.int32()), "name": ["p", "r", "none"]})
    alone = module.queries["q"].match_table(events, rule=rows)
    assert len(alone)
    push, times = ForEachRun.push, list[int]()

    def watched(run: ForEachRun, batch: pa.RecordBatch, *more: Any) -> Any:
        times.extend(batch.column("ts").to_pylist())
        return push(run, batch, *more)

    monkeypatch.setattr(ForEachRun, "push", watched)
    assert module.match_all_table(events, rule=rows)["q"].to_pylist() == alone.to_pylist()
    assert sorted(times) == read


def test_partitions_are_looked_through_once_for_all_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = "SELECT x FROM S WHERE (A AS x ; B AS y) FILTER x.id = {} PARTITION BY name\n"
    queries = "".join(f"QUERY q{n}: {pair.format(n)}" for n in range(4))
    with interpreted():
        module = celc.compile(DECLARATION + queries, order_by="ts")
    names = [f"n{number}" for number in range(40) for _ in "AB"]
    events = _events("AB" * 40, id=[0, 1, 2, 3] * 20, name=names)
    wanted = {name: query.match_table(events) for name, query in module.queries.items()}
    asked, of = list[int](), event_order.key_tuples

    def counted(columns: Any, rows: np.ndarray) -> Any:
        asked.append(len(rows))
        return of(columns, rows)

    monkeypatch.setattr(event_order, "key_tuples", counted)
    assert module.match_all_table(events) == wanted
    assert sum(map(len, wanted.values())) == 40
    assert 40 <= sum(asked) < 2 * 40, asked
