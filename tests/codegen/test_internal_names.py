"""Columns and labels may be called anything, what the machinery calls its own included.

A query whose names are changed gives the answer of the query as it was, with its names changed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery, EventError
from celc_runtime.arrow.events.paths import received, wire_name
from celc_runtime.plan.names import unused_name
from engines import interpreted, only_query

import celc
from celc.interfaces.cli import main

NAMES = [
    *("\0position", "\0row", "position", "row", "row_", "*", "range", "Range", "number"),
    *("bucket", "hash", "rows", "key0", "column_0", "celc_time", "celc_ahead", "place"),
    *("celc:612e62", "celc:", "celc:zz", "a.b", "0", ""),
]
"""What columns are or were called somewhere on the way of an event, and what looks like it."""

_DECLARED = """CREATE STREAM S {
  EVENT A { `k`: INT, `v`: DOUBLE, `t`: STRING, `o`: LONG },
  EVENT B { `k`: INT, `v`: DOUBLE, `t`: STRING, `o`: LONG }
}
"""
_QUERIES = {
    "shown": "SELECT * FROM S WHERE A AS x ; B AS y WITHIN 9 EVENTS",
    "by part": "SELECT * FROM S WHERE A AS x ; B AS y FILTER x.`v` > 1 PARTITION BY `k` "
    "WITHIN 20 [`o`]",
    "joined": "SELECT x, y FROM S WHERE A AS x ; B AS y FILTER x.`t` = y.`t` AND x.`v` < y.`v` "
    "WITHIN 30 [`o`]",
    "chosen": "SELECT MAX x FROM S WHERE (A AS x)+ ; B WITHIN 5 EVENTS",
    "computed": "SELECT SUM(x.`v`) AS s, COLLECT(x.`t`) AS c FROM S WHERE (A AS x)+ ; B "
    "WITHIN 5 EVENTS",
}


def _named(text: str, names: Mapping[str, str]) -> str:
    for before, name in names.items():
        text = text.replace(f"`{before}`", f"`{name}`")
    return text


def _query(text: str, names: Mapping[str, str], order: str = "o") -> CompiledQuery:
    with interpreted():
        query = only_query(celc.compile(_named(_DECLARED + text, names)))
    return query.with_options(order_by=(names.get(order, order),))


def _events(count: int = 60) -> pa.Table:
    """In no order, and some of types that the query does not declare."""
    rng = random.Random(1)
    order = rng.sample(range(count), count)
    return pa.table(
        {
            "type": [rng.choice("AABBC") for _ in order],
            "k": pa.array([rng.randrange(3) for _ in order], pa.int32()),
            "v": [rng.choice((0.5, 2.0, 3.0)) for _ in order],
            "t": [rng.choice("pqr") for _ in order],
            "o": pa.array(order, pa.int64()),
        }
    )


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """What comes out, with attributes called otherwise."""
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, dict):
        return {
            names.get(name, name.replace("_o", f"_{names.get('o', 'o')}")): _renamed(item, names)
            for name, item in value.items()
        }
    return value


pytestmark = pytest.mark.filterwarnings("ignore::celc_runtime.EventWarning")


@pytest.mark.each(5, values=False)
@pytest.mark.parametrize(
    "third", [0, *(pytest.param(third, marks=pytest.mark.long) for third in (1, 2))]
)
@pytest.mark.parametrize("kind", _QUERIES)
@pytest.mark.parametrize("attribute", ["k", "v", "t", "o"])
def test_an_attribute_may_be_called_anything(kind: str, attribute: str, third: int) -> None:
    """A third of the names for each query and attribute; each name is in six or seven of these."""
    events = _events()
    wanted = _query(_QUERIES[kind], {}).match_table(events)
    assert len(wanted)
    first = third + list(_QUERIES).index(kind) + "kvto".index(attribute)
    for name in [name for name in NAMES if name][first % 3 :: 3]:
        names = {attribute: name}
        query = _query(_QUERIES[kind], names)
        renamed = events.rename_columns([names.get(n, n) for n in events.column_names])
        found = query.match_table(renamed)
        shown = [list(row.values()) for row in _renamed(wanted.to_pylist(), names)]
        assert [list(row.values()) for row in found.to_pylist()] == shown, name
        by_order = renamed.sort_by([(names.get(n, n), "ascending") for n in ("k", "o")])
        if "PARTITION" not in _QUERIES[kind]:
            by_order = renamed.sort_by(names.get("o", "o"))
        batches = by_order.to_batches(max_chunksize=7)
        assert sum(map(len, query.match_arrow(batches))) == len(wanted), name


@pytest.mark.parametrize("type", [pa.string(), pa.int64()])
def test_columns_that_are_not_read_may_be_called_anything(type: pa.DataType) -> None:
    """Also those that a table has twice."""
    events = _events()
    more = events
    for number, name in enumerate([*NAMES, *NAMES[:3], "pos"]):
        values = [f"{(7 * row + number) % 60}" for row in range(len(events))]
        more = more.append_column(name, pa.array(values).cast(type))
    for kind, text in _QUERIES.items():
        query = _query(text, {})
        wanted = query.match_table(events)
        assert query.match_table(more) == wanted, kind
        keys = ["k", "o"] if "PARTITION" in text else ["o"]
        ordered = more.take(
            pa.array(sorted(range(60), key=lambda r: [more[k][r].as_py() for k in keys]))
        )
        assert (
            pa.Table.from_batches(query.match_arrow(ordered.to_batches()), wanted.schema) == wanted
        )


@pytest.mark.parametrize("given", [False, True], ids=["alone", "beside one of that name"])
def test_messages_number_rows_as_they_were_given(given: bool) -> None:
    """Whether a table had to be sorted, and whatever its columns are called."""
    query = _query(_QUERIES["shown"], {})
    events = _events()
    types = [None if row == 41 else type for row, type in enumerate(events["type"].to_pylist())]
    spoilt = events.set_column(0, "type", pa.array(types))
    if given:
        for name in ("\0row", "row", "row_"):
            spoilt = spoilt.append_column(name, pa.array(["x"] * 60))
    with pytest.raises(EventError, match=r"row 41 \(counted from 0\)"):
        query.match_table(spoilt)


@pytest.mark.each(2)
@pytest.mark.parametrize("label", ["\0", "\0role 0", "\0role 1", "\0absent", "\0round 0", "pos"])
def test_a_label_may_be_called_anything(label: str) -> None:
    """What marks the roles in conditions across events is no label."""
    events = _events()
    texts = [
        "SELECT * FROM S WHERE A AS `x` ; B AS y FILTER `x`.v < y.v WITHIN 9 EVENTS",
        "SELECT * FROM S WHERE A AS `x` ; (B AS z)+ FILTER `x`.t = z.t WITHIN 9 EVENTS",
        "SELECT * FROM S WHERE (A AS `x` ; B AS y FILTER `x`.v < y.v)+ ; A WITHIN 9 EVENTS",
        "SELECT * FROM S WHERE A AS `x` ; !(B AS y FILTER y.v > `x`.v) ; B WITHIN 9 EVENTS",
        "SELECT `x` FROM S WHERE A AS `x` ; B AS y FILTER SUM(`x`.v) < y.v WITHIN 9 EVENTS",
    ]
    for text in texts:
        wanted = _query(text, {}).match_table(events)
        found = _query(text, {"x": label}).match_table(events)
        assert len(wanted)
        assert found.column_names == [label if n == "x" else n for n in wanted.column_names]
        assert [list(row.values()) for row in found.to_pylist()] == [
            list(row.values()) for row in wanted.to_pylist()
        ]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = _events().sort_by("o")
    names = {"v": "\0position", "t": "\0row", "k": "celc:612e62"}
    renamed = events.rename_columns([names.get(n, n) for n in events.column_names])
    pq.write_table(renamed, tmp_path / "e.parquet")
    (tmp_path / "e.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in renamed.to_pylist())
    )
    (tmp_path / "q.cel").write_text(_named(_DECLARED + _QUERIES["by part"], names))
    wanted = _query(_QUERIES["by part"], names).match_table(renamed)
    for file in ("e.parquet", "e.jsonl"):
        arguments = ["run", str(tmp_path / "q.cel"), str(tmp_path / file), "--format", "json"]
        assert main([*arguments, "--order-by", "o"]) == 0
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        assert [(line["partition"], line["start"], line["end"]) for line in lines] == [
            ({names["k"]: row[names["k"]]}, row["start_pos"], row["end_pos"])
            for row in wanted.to_pylist()
        ], file


def test_a_missing_column_is_missing_whatever_it_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No column of the machinery's own stands for it."""
    for name in ("*", "**", "\0row", "row"):
        text = f"CREATE STREAM S {{ EVENT A {{ `{name}`: INT }} }}\n"
        (tmp_path / "q.cel").write_text(
            text + f"SELECT * FROM S WHERE A AS x FILTER x.`{name}` = 1"
        )
        pq.write_table(pa.table({"other": [1]}), tmp_path / "e.parquet")
        assert main(["run", str(tmp_path / "q.cel"), str(tmp_path / "e.parquet")]) != 0
        assert "is missing" in capsys.readouterr().err
    with interpreted():
        query = only_query(
            celc.compile("CREATE STREAM S { EVENT A { `a.b`: INT } }\nSELECT * FROM S WHERE A AS x")
        )
    table = pa.table({"celc:612e62": pa.array([1], pa.int32())})
    with pytest.raises(EventError, match=r"'a\.b', which is missing"):
        query.match_table(table)


def test_names_on_the_way_to_a_worker_are_told_apart() -> None:
    names = [*NAMES, "a`b", "celc:61", wire_name("a.b"), wire_name(wire_name("a.b"))]
    names = list(dict.fromkeys(names))
    sent = [wire_name(name) for name in names]
    assert len(set(sent)) == len(names)
    batch = pa.record_batch([pa.array([1])] * len(names), names=sent)
    assert received(batch).schema.names == names
    # What celc has not sent stays as it is.
    odd = pa.record_batch([pa.array([1])] * 3, names=["celc:zz", "celc:ff", "celc:61"])
    assert received(odd).schema.names == ["celc:zz", "celc:ff", "celc:61"]


def test_an_unused_name_is_unused_in_any_case() -> None:
    assert unused_name("range", ["a"]) == "range"
    assert unused_name("range", ["Range", "RANGE_"]) == "range__"
