"""Which columns a query reads, on one machine: types under another name, fields of structs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from celc_runtime import EventError
from engines import interpreted, only_query

import celc
from celc.interfaces.cli import main

STREAM = """CREATE STREAM S {
  EVENT A { `at.n`: LONG, `at.deep.v`: DOUBLE, `plain dot.`: STRING },
  EVENT B { `at.n`: LONG, `at.deep.v`: DOUBLE, `plain dot.`: STRING }
}
QUERY q: SELECT x, y FROM S WHERE (A AS x ; B AS y) FILTER y.`at.deep.v` > 2
PARTITION BY `plain dot.` WITHIN 3 [`at.n`]
"""


@pytest.fixture(scope="module")
def query() -> Any:
    with interpreted():
        return only_query(celc.compile(STREAM))


def _flat(kind: str = "type") -> pa.Table:
    return pa.table(
        {
            kind: ["A", "B", "A", "B", "B", "A"],
            "at.n": [5, 6, 1, 2, 4, 0],
            "at.deep.v": [1.0, 3.0, None, 1.5, 2.5, 9.0],
            "plain dot.": ["k"] * 6,
        }
    )


def _nested(kind: str = "type") -> pa.Table:
    """The same events; one of them has no struct at all where another has an empty field."""
    flat = _flat(kind)
    deep = [None if v is None else {"v": v, "w": 0} for v in flat["at.deep.v"].to_pylist()]
    at = [{"n": n, "deep": inner} for n, inner in zip(flat["at.n"].to_pylist(), deep, strict=True)]
    return flat.drop(["at.n", "at.deep.v"]).append_column("at", pa.array(at))


def test_a_name_with_a_dot_is_a_column_or_else_a_field(query: Any) -> None:
    wanted = query.match_table(_flat())
    assert wanted["end_pos"].to_pylist() == [3, 5]
    assert query.match_table(_nested()) == wanted
    decoy = pa.array([{"n": 0, "deep": {"v": 0.0}}] * 6)
    assert query.match_table(_flat().append_column("at", decoy)) == wanted
    sorted_events = _nested().take([5, 2, 3, 4, 0, 1])
    batches = query.match_arrow(sorted_events.to_batches(max_chunksize=2))
    assert pa.Table.from_batches(batches, query.output_schema) == wanted


def test_fields_of_a_frame(query: Any) -> None:
    pytest.importorskip("pandas")
    wanted = query.match_table(_flat())
    found = query.match_pandas(_nested().to_pandas())
    assert found["end_pos"].tolist() == wanted["end_pos"].to_pylist()
    frame = _nested().to_pandas()
    frame["at"] = 7
    with pytest.raises(EventError, match="7 has no field 'n'"):
        query.match_pandas(frame)


def test_files_that_are_read_otherwise(query: Any, tmp_path: Path) -> None:
    """A folder with the name of a file, and a file of which a log says whether it counts."""
    (tmp_path / "e.parquet").mkdir()
    with pytest.raises(TypeError, match=r"e.parquet' is a folder: read it first, as in"):
        query.match_table(tmp_path / "e.parquet")
    (tmp_path / "_delta_log").mkdir()
    pa.parquet.write_table(_flat(), tmp_path / "f.parquet")
    with pytest.raises(TypeError, match="is a table of Delta Lake: its log"):
        query.match_table(tmp_path / "f.parquet")


def test_fields_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.cel").write_text(STREAM)
    printed = []
    for name, table in (("flat", _flat()), ("nested", _nested())):
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
        files = [str(tmp_path / "q.cel"), str(tmp_path / f"{name}.parquet")]
        with interpreted():
            assert main(["run", *files, "--format", "json"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def test_a_path_that_leads_nowhere(query: Any) -> None:
    table = _nested().drop("at").append_column("at", pa.array([{"m": 1}] * 6))
    with pytest.raises(EventError, match=r"'at\.n', which is missing"):
        query.match_table(table)
    twice = pa.table([*_nested().columns, _nested()["at"]], names=[*_nested().schema.names, "at"])
    with pytest.raises(EventError, match=r"'at\.n', which is missing"):
        query.match_table(twice)


# --- the column of the event types ----------------------------------------------------------------


def test_types_are_read_from_the_column_that_is_named(query: Any) -> None:
    pytest.importorskip("pandas")
    wanted = query.match_table(_flat())
    kinds = query.with_options(type_column="kind")
    assert kinds.input_schema.names[0] == "kind"
    for other in (kinds, pickle.loads(pickle.dumps(kinds)), kinds.with_options(max_work=9)):
        assert other.match_table(_nested("kind")) == wanted
        assert other.match_pandas(_flat("kind").to_pandas())["end_pos"].tolist() == [3, 5]
    with pytest.raises(EventError, match="the column 'kind', which is missing"):
        kinds.match_table(_flat())
    null = _flat("kind").set_column(0, "kind", pa.array(["A", None] * 3))
    with pytest.raises(EventError, match="column 'kind' is NULL in row 5"):
        kinds.match_table(null)


def test_a_query_of_one_type_reads_the_column_that_is_named() -> None:
    with interpreted():
        text = "CREATE STREAM S { EVENT A { n: LONG } } SELECT * FROM S WHERE A AS x"
        query = only_query(celc.compile(text, order_by="n"))
    events = pa.table({"n": [1, 2, 3], "kind": ["A", "B", "A"]})
    assert len(query.match_table(events)) == 3
    kinds = query.with_options(type_column="kind")
    for other in (kinds, pickle.loads(pickle.dumps(kinds))):
        with pytest.warns(UserWarning, match="1 of the rows have a type that none"):
            assert len(other.match_table(events)) == 2
        with pytest.raises(EventError, match="the column 'kind', which is missing"):
            other.match_table(events.drop("kind"))
    with pytest.raises(ValueError, match="cannot read its event types from 'n'"):
        query.with_options(type_column="n")


def test_a_query_of_one_type_reads_the_types_that_are_there() -> None:
    """However the rows are cut into batches; NULL is no type there either."""
    with interpreted():
        text = "CREATE STREAM S { EVENT A { n: LONG } } SELECT * FROM S WHERE A AS x"
        query = only_query(celc.compile(text, order_by="n"))
    events = pa.table({"type": ["A", "B", "B", "A"], "n": [1, 2, 3, 4]})
    for size in (1, 2, 4):
        with pytest.warns(UserWarning, match=r"2 of the rows .* 'B' \(2"):
            found = list(query.match_arrow(events.to_batches(max_chunksize=size)))
        assert pa.Table.from_batches(found)["end_pos"].to_pylist() == [0, 1]
    with pytest.warns(UserWarning, match="2 of the rows"):
        assert query.match_table(events)["end_pos"].to_pylist() == [0, 1]
    pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="2 of the rows"):
        assert query.match_pandas(events.to_pandas())["end_pos"].tolist() == [0, 1]
    for types in (["A", None, None, "A"], [None] * 4):
        nulls = events.set_column(0, "type", pa.array(types, pa.string()))
        for size in (1, 2, 4):
            with pytest.raises(EventError, match="column 'type' is NULL in row"):
                list(query.match_arrow(nulls.to_batches(max_chunksize=size)))


def test_a_query_of_one_type_reads_the_types_that_are_there_on_spark(spark: Any) -> None:
    with interpreted():
        text = "CREATE STREAM S { EVENT A { n: LONG } } SELECT x[n] FROM S WHERE A AS x"
        query = only_query(celc.compile(text + " FILTER x.n > 1", order_by="n"))
    rows = [("A", 1), ("B", 2), ("B", 3), ("A", 4)]
    frame = spark.createDataFrame(rows, "type STRING, n LONG")
    for asked in (query, query.with_options(positions=False)):
        assert [row["x"][0]["n"] for row in frame.transform(asked.match).collect()] == [4]
        nulls = spark.createDataFrame([*rows, (None, 5)], "type STRING, n LONG")
        with pytest.raises(Exception, match="column 'type' is NULL in row"):
            nulls.transform(asked.match).collect()
        assert frame.drop("type").transform(asked.match).count() == 3
    text = query.with_options(positions=False).explain_plan(frame, ranges=1)
    assert "filtered before they are moved" in text


# --- batches --------------------------------------------------------------------------------------


def test_batches_may_have_other_dictionaries_and_no_rows(query: Any) -> None:
    wanted = query.match_table(_flat())
    events = _flat().take([5, 2, 3, 4, 0, 1])
    batches = []
    for start, end, words in (
        (0, 0, ["B"]),
        (0, 2, ["B", "A"]),
        (2, 2, []),
        (2, 6, ["A", "X", "B"]),
    ):
        part = events.slice(start, end - start)
        codes = pa.array([words.index(type) for type in part["type"].to_pylist()], pa.int8())
        types = pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string()))
        keys = part["plain dot."].combine_chunks().dictionary_encode()
        part = part.set_column(0, "type", types).set_column(3, "plain dot.", keys)
        batches += part.to_batches() or [pa.RecordBatch.from_pylist([], part.schema)]
    assert len(batches) == 4
    assert pa.Table.from_batches(query.match_arrow(batches), query.output_schema) == wanted


def test_a_frame_with_two_columns_of_a_name(query: Any) -> None:
    pytest.importorskip("pandas")
    frame = _flat().to_pandas()
    frame.columns = ["type", "at.n", "at.deep.v", "type"]
    with pytest.raises(EventError, match="'type' occurs more than once in the frame"):
        query.match_pandas(frame)
