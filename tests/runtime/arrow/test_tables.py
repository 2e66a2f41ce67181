"""Tables as they come: whatever form events are given in, the answer is that of a nested loop."""

from __future__ import annotations

import datetime
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery, EventError
from celc_runtime.arrow.tables import event_tables
from engines import interpreted, only_query

import celc

QUERY = """CREATE STREAM S {
  EVENT T { place: STRING, n: LONG, value: DOUBLE, ts: TIMESTAMP, day: DATE },
  EVENT H { place: STRING, n: LONG, value: DOUBLE, ts: TIMESTAMP, day: DATE }
}
QUERY q: SELECT hot[value, n, day], dry[n] FROM S
WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.n != 3
PARTITION BY place WITHIN 10 MINUTES [ts]
"""

_START = datetime.datetime(2026, 7, 1, 12)
_MINUTE = datetime.timedelta(minutes=1)

pytestmark = pytest.mark.filterwarnings("ignore::celc_runtime.EventWarning")

Rows = list[dict[str, Any]]


def _rows() -> Rows:
    """Events in a random order, with NULLs, a type that is not declared, a column nobody reads."""
    source = random.Random(7)
    rows: Rows = [
        {
            "type": source.choice(["T", "H", "other"]),
            "place": source.choice(["a", "bé", None]),
            "n": source.choice([1, 2, 3, None]),
            "value": source.choice([39.5, 41.0, 44.25, None]),
            "ts": _START + number * _MINUTE,
            "day": datetime.date(2026, 7, 1 + number // 40),
            "unread": number,
        }
        for number in range(120)
    ]
    source.shuffle(rows)
    return rows


ROWS = _rows()
SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("place", pa.string()),
        ("n", pa.int64()),
        ("value", pa.float64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("unread", pa.int64()),
    ]
)
TABLE = pa.Table.from_pylist(ROWS, SCHEMA)

Answer = list[tuple[Any, ...]]


def _nested_loop(rows: Rows) -> Answer:
    """The matches by the meaning of the query, from rows in Python."""
    rows = sorted((row for row in rows if row["type"] != "other"), key=lambda row: row["ts"])
    found = []
    for first in rows:
        for last in rows:
            if (
                (first["type"], last["type"]) == ("T", "H")
                and first["place"] == last["place"]
                and first["ts"] < last["ts"] <= first["ts"] + 10 * _MINUTE
                and (first["value"] or 0) > 40
                and last["n"] not in (3, None)
            ):
                hot = (first["value"], first["n"], first["day"])
                found.append((first["place"], first["ts"], last["ts"], *hot, last["n"]))
    return sorted(found, key=repr)


WANTED = _nested_loop(ROWS)


def _answer(matches: pa.Table) -> Answer:
    found = []
    for row in matches.to_pylist():
        (hot,), (dry,) = row["hot"], row["dry"]
        times = [row[name].replace(tzinfo=None) for name in ("start_time", "end_time")]
        found.append((row["place"], *times, hot["value"], hot["n"], hot["day"], dry["n"]))
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def query() -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(QUERY))


def _frame(**columns: Any) -> pd.DataFrame:
    return TABLE.to_pandas().assign(**columns)


class Streamed:
    """Somebody else's table: nothing is known of it but the interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class OneBatch:
    """The same for one batch."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return TABLE.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


def _batches() -> list[pa.RecordBatch]:
    return TABLE.to_batches(max_chunksize=7)


def _dataset(folder: Path) -> ds.Dataset:
    pq.write_table(TABLE[:50], folder / "0.parquet")
    pq.write_table(TABLE[50:], folder / "1.parquet", row_group_size=4)
    return ds.dataset([folder / "0.parquet", folder / "1.parquet"])


def _parquet(folder: Path) -> Path:
    pq.write_table(TABLE, folder / "events.parquet", row_group_size=9)
    return folder / "events.parquet"


def _relation(columns: str = "*") -> Any:
    connection = duckdb.connect()
    connection.register("events", TABLE)
    return connection.sql(f"SELECT {columns} FROM events")


def _lists() -> dict[str, list[Any]]:
    return {name: [row[name] for row in ROWS] for name in SCHEMA.names}


def _polars() -> pl.DataFrame:
    frame = pl.from_arrow(TABLE)
    assert isinstance(frame, pl.DataFrame)
    return frame


FORMS: dict[str, Callable[[Path], Any]] = {
    "Table": lambda _: TABLE,
    "RecordBatch": lambda _: TABLE.combine_chunks().to_batches()[0],
    "RecordBatchReader": lambda _: TABLE.to_reader(max_chunksize=7),
    "list of batches": lambda _: _batches(),
    "tuple of tables": lambda _: (TABLE[:9], TABLE[9:]),
    "generator of batches": lambda _: (batch for batch in _batches()),
    "dataset": _dataset,
    "scanner": lambda folder: _dataset(folder).scanner(),
    "path": _parquet,
    "path as text": lambda folder: str(_parquet(folder)),
    "stream interface": lambda _: Streamed(TABLE),
    "array interface": lambda _: OneBatch(),
    "pandas": lambda _: _frame(),
    "pandas, Arrow's types": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, types with NA": lambda _: _frame(n=pd.array(_lists()["n"], "Int64")),
    "pandas, objects": lambda _: pd.DataFrame(ROWS, dtype=object),
    "pandas, None and NaN": lambda _: _frame(
        place=pd.Series(_lists()["place"], dtype=object).where(lambda s: s.notna(), np.nan)
    ),
    "pandas, categories": lambda _: _frame(
        type=TABLE["type"].to_pandas().astype("category"),
        place=TABLE["place"].to_pandas().astype("category"),
    ),
    "pandas, time in the index": lambda _: _frame().set_index("ts"),
    "pandas, another zone": lambda _: _frame(
        ts=TABLE["ts"].to_pandas().dt.tz_convert("America/New_York")
    ),
    "pandas, no zone": lambda _: _frame(ts=TABLE["ts"].to_pandas().dt.tz_localize(None)),
    "polars": lambda _: _polars(),
    "polars, lazy": lambda _: _polars().lazy(),
    "polars, categories": lambda _: _polars().with_columns(
        pl.col("type").cast(pl.Enum(["T", "H", "other"])), pl.col("place").cast(pl.Categorical)
    ),
    "polars, milliseconds elsewhere": lambda _: _polars().with_columns(
        pl.col("ts").dt.cast_time_unit("ms").dt.convert_time_zone("Asia/Tokyo")
    ),
    "polars, nanoseconds without zone": lambda _: _polars().with_columns(
        pl.col("ts").dt.replace_time_zone(None).dt.cast_time_unit("ns")
    ),
    "polars, smaller numbers": lambda _: _polars().with_columns(
        pl.col("n").cast(pl.UInt8), pl.col("value").cast(pl.Float32)
    ),
    "polars, an object nobody reads": lambda _: _polars().with_columns(
        pl.Series("unread", [object()] * len(ROWS), dtype=pl.Object)
    ),
    "duckdb": lambda _: _relation(),
    "duckdb, ENUM": lambda _: _relation(
        "* REPLACE (CAST(type AS ENUM ('T', 'H', 'other')) AS type)"
    ),
    "dictionary of lists": lambda _: _lists(),
    "dictionary of arrays": lambda _: {name: TABLE[name] for name in SCHEMA.names},
    "dictionary of NumPy's": lambda _: {
        **{name: np.array(values, dtype=object) for name, values in _lists().items()},
        "ts": np.array(_lists()["ts"], "datetime64[us]"),
        "type": np.array(_lists()["type"]),
    },
    "dictionary of series": lambda _: {
        **{name: _polars()[name] for name in ("type", "place", "day")},
        **{name: _frame()[name] for name in ("n", "value", "ts")},
    },
    "dictionary of what is read": lambda _: {
        name: values for name, values in _lists().items() if name != "unread"
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_has_the_same_matches(
    query: CompiledQuery, form: str, tmp_path: Path
) -> None:
    assert len(WANTED) == 10
    matches = query.match_table(FORMS[form](tmp_path))
    assert matches.schema == query.output_schema
    assert _answer(matches) == WANTED


@pytest.mark.parametrize("form", FORMS)
def test_sorted_events_are_matched_in_any_form(
    query: CompiledQuery, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = [("place", "ascending", "at_start"), ("ts", "ascending", "at_start")]
    events = TABLE.sort_by([(name, how) for name, how, _ in order])
    nulls = events.filter(pa.compute.is_null(events["place"]))
    ordered = pa.concat_tables([nulls, events.filter(pa.compute.is_valid(events["place"]))])
    monkeypatch.setattr(sys.modules[__name__], "TABLE", ordered)
    monkeypatch.setattr(sys.modules[__name__], "ROWS", _naive(ordered.to_pylist()))
    batches = query.match_arrow(FORMS[form](tmp_path))
    assert _answer(pa.Table.from_batches(batches, query.output_schema)) == WANTED


def _naive(rows: Rows) -> Rows:
    return [{**row, "ts": row["ts"].replace(tzinfo=None)} for row in rows]


def test_match_arrow_reads_a_stream_as_it_comes(query: CompiledQuery) -> None:
    read = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(4):
            read.append(number)
            times = pa.array([_START + 2 * number * _MINUTE] * 2, SCHEMA.field("ts").type)
            columns = {"type": ["T", "H"], "place": ["a"] * 2, "n": [1, 1], "value": [41.0, 1.0]}
            yield pa.record_batch({**columns, "ts": times, "day": pa.nulls(2, pa.date32())})

    matches = query.match_arrow(batches())
    next(matches)
    assert read == [0]


def test_the_query_of_a_table_without_rows_has_no_matches(query: CompiledQuery) -> None:
    for nothing in ([], TABLE[:0], TABLE[:0].to_pandas(), _polars()[:0], [TABLE[:0]]):
        assert query.match_table(nothing).num_rows == 0
        assert list(query.match_arrow(nothing)) == []


def test_a_table_without_rows_must_have_the_columns(query: CompiledQuery) -> None:
    for nothing in (TABLE[:0].drop("n"), {"type": []}, _polars()[:0].drop("n")):
        with pytest.raises(EventError, match=r"reads the column '(n|place)', which is missing"):
            query.match_table(nothing)


@pytest.mark.parametrize("form", ["Table", "pandas", "polars", "polars, lazy", "duckdb", "dataset"])
def test_a_missing_column_is_told_with_those_that_there_are(
    query: CompiledQuery, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "TABLE", TABLE.rename_columns({"value": "Value"}))
    with pytest.raises(EventError, match=r"'value', which is missing; .*'Value'.*'unread'"):
        query.match_table(FORMS[form](tmp_path))


def test_a_dataset_is_asked_for_the_columns_that_are_read(
    query: CompiledQuery, tmp_path: Path
) -> None:
    dataset = _dataset(tmp_path)
    # A column that cannot be read is in the file, and stays there.
    broken = TABLE.set_column(6, "unread", pa.array(["no number"] * len(TABLE)))
    pq.write_table(broken, tmp_path / "1.parquet")
    pq.write_table(TABLE[:0], tmp_path / "0.parquet")
    with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError)):
        dataset.to_table()
    assert _answer(query.match_table(dataset)) == WANTED


def test_a_lazy_frame_is_asked_for_the_columns_that_are_read(query: CompiledQuery) -> None:
    def fails(_: Any) -> Any:
        raise AssertionError("nobody reads this column")

    lazy = _polars().lazy()
    lazy = lazy.with_columns(pl.col("unread").map_batches(fails, return_dtype=pl.Int64))
    assert _answer(query.match_table(lazy)) == WANTED


def test_a_relation_is_asked_for_the_columns_that_are_read(query: CompiledQuery) -> None:
    relation = _relation("* REPLACE (error('nobody reads this column')::BIGINT AS unread)")
    with pytest.raises(duckdb.Error, match="nobody reads"):
        relation.fetchall()
    assert _answer(query.match_table(relation)) == WANTED


def test_only_columns_that_are_read_are_sorted(query: CompiledQuery) -> None:
    # Arrow cannot pick rows of views: if it tried, this would fail.
    views = TABLE.append_column("views", pa.array(["x"] * len(TABLE), pa.string_view()))
    assert _answer(query.match_table(views)) == WANTED


def test_the_same_as_columns_whose_texts_are_views(query: CompiledQuery) -> None:
    views = pa.array(["T", "H"], pa.string_view())
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), views)
    place = pa.array(["a", "a"], pa.string_view())
    rest = {"n": [1, 1], "value": [41.0, 1.0], "day": pa.nulls(2, pa.date32())}
    times = pa.array([_START, _START + _MINUTE], pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"type": coded, "place": place, "ts": times, **rest})
    assert len(list(query.match_arrow([batch]))) == 1
    # A coded text where a number is declared is a wrong type, and no failure of Arrow.
    wrong = batch.set_column(batch.schema.get_field_index("n"), "n", coded)
    with pytest.raises(EventError, match="declares 'n' as LONG, but the column's type is"):
        list(query.match_arrow([wrong]))


@pytest.mark.parametrize("name", ["type", "place", "n", "value", "ts"])
def test_the_same_as_columns_of_runs(query: CompiledQuery, name: str) -> None:
    at = TABLE.column_names.index(name)
    runs = pc.run_end_encode(TABLE.column(name).combine_chunks())
    assert _answer(query.match_table(TABLE.set_column(at, name, runs))) == WANTED


def test_columns_of_extension_types_are_what_they_store(query: CompiledQuery) -> None:
    at = TABLE.column_names.index("place")
    places = TABLE.column("place").combine_chunks().cast(pa.string())
    json = pa.ExtensionArray.from_storage(pa.json_(), places)
    assert _answer(query.match_table(TABLE.set_column(at, "place", json))) == WANTED
    uuid = pa.array([b"0123456789abcdef"] * len(TABLE), pa.uuid())
    with pytest.raises(EventError, match="give it a column of the type string, made of this one"):
        query.match_table(TABLE.set_column(at, "place", uuid))


def test_no_time_of_pandas_in_a_list_is_null() -> None:
    text = "CREATE STREAM S { EVENT A { ts: TIMESTAMP } } SELECT x[ts] WHERE A AS x"
    with interpreted():
        found = only_query(celc.compile(text)).match_table({"ts": [pd.NaT, _START]})
    times = [row["x"][0]["ts"] for row in found.to_pylist()]
    assert times == [None, _START.replace(tzinfo=datetime.UTC)]


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("value", pa.array([Decimal("41.5"), None]), "cast the column to double"),
        ("value", [Decimal("41.5"), None], "cast the column to double"),
        ("value", pd.Series([Decimal("41.5"), None]), "cast the column to double"),
        ("value", pl.Series(["41.5", None]).cast(pl.Decimal(10, 2)), "cast the column to double"),
        ("value", pa.array([1, 2]), "cast the column to double"),
        ("n", [1.5, 2.0], "Float value 1.5"),
        ("n", pd.Series([1.5, 2.0]), "Float value 1.5"),
        ("n", np.array([1.0, np.nan]), "declares 'n' as LONG"),
        ("n", [2**63, 0], "declares 'n' as LONG"),
        ("n", [True, False], "the column's type is bool"),
        ("n", ["1", "2"], "the column's type is string"),
        ("n", [1, "2"], "declares 'n' as LONG, which the column does not fit"),
        ("n", "12", "is a str and no sequence of values"),
        ("n", 12, "is a int and no sequence of values"),
        ("value", [2**53 + 1, 0], "declares 'value' as DOUBLE"),
        ("ts", [1, 2], "the column's type is int64"),
        ("ts", ["2026-07-01", "2026-07-02"], "the column's type is string"),
        ("ts", pd.Series([1, 2]), "the column's type is int64"),
        ("day", pd.Series([pd.Timestamp(_START)] * 2), "the column's type is timestamp"),
        ("place", [b"a", b"b"], "the column's type is binary"),
    ],
)
def test_what_would_change_a_value_is_refused(
    query: CompiledQuery, column: str, values: Any, said: str
) -> None:
    times = [_START, _START + _MINUTE]
    columns = {"type": ["T", "H"], "place": ["a", "a"], "n": [1, 1], "value": [41, 1]}
    good = {**columns, "ts": times, "day": [None, None]}
    assert query.match_table(good).num_rows == 1
    with pytest.raises(EventError, match=said):
        query.match_table({**good, column: values})


def test_numbers_without_a_type_are_fitted_where_none_changes() -> None:
    text = "CREATE STREAM S { EVENT A { i: INT, f: FLOAT, d: DOUBLE, b: BOOLEAN } } "
    with interpreted():
        query = only_query(celc.compile(f"{text} SELECT x FROM S WHERE A AS x", order_by="i"))
    values = {"i": [1, 2], "f": [0.1, 0.5], "d": [3, 4], "b": [True, None]}
    wanted = [
        {"pos": 0, "i": 1, "f": float(np.float32(0.1)), "d": 3.0, "b": True},
        {"pos": 1, "i": 2, "f": 0.5, "d": 4.0, "b": None},
    ]
    assert [row["x"][0] for row in query.match_table(values).to_pylist()] == wanted
    with pytest.raises(EventError, match="declares 'f' as FLOAT, but the column's type is double"):
        query.match_table(pd.DataFrame(values))
    exact = pd.DataFrame({**values, "f": [0.25, np.nan]})
    found = [row["x"][0]["f"] for row in query.match_table(exact).to_pylist()]
    assert found == [0.25, None]


def test_fields_of_structs_in_any_form(tmp_path: Path) -> None:
    text = "CREATE STREAM S { EVENT A { `at.n`: LONG, k: STRING } } SELECT x FROM S WHERE A AS x"
    with interpreted():
        query = only_query(celc.compile(text, order_by="at.n"))
    nested = [{"n": 5, "deep": "no"}, {"n": 2, "deep": "no"}]
    table = pa.table({"at": nested, "k": ["a", "b"], "z": [1, 2]})
    pq.write_table(table, tmp_path / "e.parquet")
    forms_of_it = [
        table,
        table.to_pandas(),
        pl.from_arrow(table),
        pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
        ds.dataset(tmp_path / "e.parquet"),
        tmp_path / "e.parquet",
        table.to_pydict(),
        duckdb.connect().from_arrow(table),
    ]
    for events in forms_of_it:
        found = [row["x"][0]["at.n"] for row in query.match_table(events).to_pylist()]
        assert found == [2, 5]


def test_a_query_that_reads_no_column_counts_rows() -> None:
    text = "CREATE STREAM S { EVENT A { k: STRING } } SELECT COUNT(x) AS n FROM S WHERE A AS x"
    with interpreted():
        query = only_query(celc.compile(text))
    assert not query.input_schema.names
    assert query.match_table(pa.table({"k": ["a", "b"]})).num_rows == 2
    for events in (pl.DataFrame({"k": ["a", "b"]}), pd.DataFrame({"k": ["a", "b"]})):
        assert query.match_table(events).num_rows == 2


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (None, "NoneType is no table of events: give a pyarrow Table"),
        (7, "int is no table of events"),
        (b"bytes", "bytes is no table"),
        ([{"type": "T"}], r"from_pylist\(rows\)"),
        ([1, 2], "list, which gives a int"),
        (pl.Series([1, 2]), "polars.Series holds one column"),
        (pd.Series([1, 2]), "pandas.Series"),
        (np.zeros(3), "numpy.ndarray, which gives a numpy.float64"),
        ("events.csv", r"read_csv\(path\)"),
        (Path("folder"), r"dataset\(path\)"),
    ],
)
def test_what_is_no_table_is_named_with_what_is_accepted(
    query: CompiledQuery, events: Any, said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        query.match_table(events)
    with pytest.raises(TypeError, match=said):
        list(query.match_arrow(events))


def test_columns_of_different_lengths_are_told(query: CompiledQuery) -> None:
    with pytest.raises(EventError, match="'type' has 1, 'place' has 120"):
        query.match_table({**_lists(), "type": ["T"]})


def test_batches_with_other_types_are_told(query: CompiledQuery) -> None:
    other = TABLE.set_column(2, "n", TABLE["n"].cast(pa.int32()))
    with pytest.raises(EventError, match="the record batches differ"):
        query.match_table([TABLE, other])


def test_a_frame_of_a_pandas_without_the_interface(
    query: CompiledQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(pd.DataFrame, "__arrow_c_stream__")
    assert _answer(query.match_table(_frame())) == WANTED


def test_libraries_are_not_imported_for_tables_of_others() -> None:
    source = Path(event_tables.__file__).read_text("utf-8")
    assert not [word for word in ("pandas", "polars", "duckdb") if f"import {word}" in source]


def test_what_a_query_keeps_of_one_table_does_not_count_for_the_next() -> None:
    """Tables of few rows whose columns differ in types, order and coding, in turns."""
    text = (
        "CREATE STREAM S {EVENT A {k: LONG, v: DOUBLE, ts: LONG}, EVENT B {k: LONG, ts: LONG}} "
        "SELECT a[k, v], b.ts AS t WHERE A AS a ; B AS b PARTITION BY k WITHIN 9 [ts]"
    )
    source = random.Random(5)
    with interpreted():
        query = only_query(celc.compile(text, order_by="ts"))
        answers = 0
        for _ in range(60):
            rows = source.choice([0, 1, 2, 30])
            types = source.choice(["AB", "ABx", "Ax", "A"])
            numbers = source.choice([pa.int64(), pa.int32(), pa.int16()])
            times = source.sample(range(40), rows)
            columns = {
                "type": pa.array(source.choices(types, k=rows), pa.string()),
                "k": pa.array(source.choices([1, 2, None], k=rows), numbers),
                "v": pa.array(source.choices([1.0, None], k=rows), pa.float64()),
                "ts": pa.array(source.choice([times, sorted(times)]), numbers),
                "row": pa.array(range(rows), pa.int32()),
            }
            match source.randrange(4):
                case 0:
                    columns["type"] = columns["type"].dictionary_encode()
                case 1:
                    columns["type"] = columns["type"].cast(pa.large_string())
            names = source.sample(list(columns), k=len(columns))
            table = pa.table({name: columns[name] for name in names})
            fresh = CompiledQuery(replace(query.program))
            found = query.match_table(table)
            assert found.equals(fresh.match_table(table))
            assert found.equals(
                pa.Table.from_batches(query.match_arrow(_sorted(table)), found.schema)
            )
            answers += len(found)
    assert answers > 100


def _sorted(table: pa.Table) -> pa.Table:
    keys = list(zip(table["k"].to_pylist(), table["ts"].to_pylist(), strict=True))
    order = sorted(range(len(keys)), key=lambda row: (keys[row][0] or 0, keys[row][1]))
    return table.take(pa.array(order, pa.int64()))


@pytest.mark.parametrize("keyed", ["", "PARTITION BY k"])
@pytest.mark.parametrize("make", [pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256])
def test_decimals_of_any_width_order_events(make: Callable[..., pa.DataType], keyed: str) -> None:
    """Arrow 26 sorts those of 32 and 64 bits in no order, or not at all."""
    declared = "CREATE STREAM S { EVENT A { ts: DECIMAL(9, 2), k: DECIMAL(9, 2) } }"
    with interpreted():
        query = only_query(celc.compile(f"{declared} SELECT a WHERE A AS a {keyed}", order_by="ts"))
    numbers = [Decimal(text) for text in ("1.50", "-0.01", "0.00", "-5.00", "9999999.99")]
    table = pa.table(
        {"ts": pa.array(numbers, make(9, 2)), "k": pa.array(numbers[::-1], make(9, 2))}
    )
    names = ["k", "ts"] if keyed else ["ts"]
    found = [
        tuple(row["a"][0][name] for name in names) for row in query.match_table(table).to_pylist()
    ]
    keys = [tuple(row[name] for name in names) for row in table.to_pylist()]
    assert found == sorted(keys)


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ("ARRAY<STRING>", [["a", "b"], None, ["long text " * 3]]),
        ("STRUCT<a: STRING, b: LONG>", [{"a": "p", "b": 1}, None, {"a": "q", "b": None}]),
        ("ARRAY<BINARY>", [[b"a"], None, []]),
        ("ARRAY<STRUCT<a: ARRAY<STRING>>>", [[{"a": ["p"]}], None, [{"a": None}]]),
    ],
)
def test_texts_inside_of_values_can_be_views(declared: str, values: list[Any]) -> None:
    """As polars gives them, which Arrow cannot put in another order."""
    with interpreted():
        text = f"CREATE STREAM S {{ EVENT A {{ ts: LONG, x: {declared} }} }} SELECT a WHERE A AS a"
        query = only_query(celc.compile(text, order_by="ts"))
    frame = pl.DataFrame({"type": ["A"] * 3, "ts": [3, 1, 2], "x": values})
    found = [row["a"][0]["x"] for row in query.match_table(frame).to_pylist()]
    assert found == [values[1], values[2], values[0]]
    assert query.match_compact(frame).num_rows == 3


class _Stream:
    """A table that another library hands over."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(schema)


def test_a_stream_of_another_library_has_batches_without_rows() -> None:
    """Arrow 26 joins no such piece that begins behind the first row of its memory."""
    with interpreted():
        text = "CREATE STREAM S { EVENT A { ts: LONG } } SELECT a WHERE A AS a"
        query = only_query(celc.compile(text, order_by="ts"))
    table = pa.table({"type": ["A"] * 3, "ts": [3, 1, 2]})
    pieces = pa.concat_tables([table[:1], table[1:1], table[1:]])
    rising = table.set_column(1, "ts", pa.array([1, 2, 3]))
    found = query.match_table(_Stream(pieces))
    assert found.column("start_time").to_pylist() == [1, 2, 3]
    assert query.match_compact(_Stream(pieces)).num_rows == 3
    assert found.equals(query.match_table(pa.RecordBatchReader.from_stream(_Stream(pieces))))
    cut = pa.concat_tables([rising[:1], rising[1:1], rising[1:]])
    assert "ts: LONG" in celc.declare(cut, type_column="type")


@pytest.mark.parametrize("type", [pa.timestamp("ns"), pa.timestamp("s"), pa.date32()])
@pytest.mark.parametrize("step", [1, 10_000_000])
def test_a_coded_column_of_times_is_declared(type: pa.DataType, step: int) -> None:
    """Also of times that Python has not."""
    values = pa.array([0, step], type)
    codes = pa.array([0, 0, 1], pa.int8())
    for column in (pa.DictionaryArray.from_arrays(codes, values), values.take(codes)):
        found = celc.declare(pa.table({"type": ["A"] * 3, "t": column}), type_column="type")
        assert "'t' seems to order the events" in found
