"""Tables that queries read without CREATE STREAM, because their columns are known (`schema=`)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from celc_runtime import EventWarning
from celc_runtime.arrow.fitting import fits

import celc
from celc.interfaces.cli.command import main
from celc.interfaces.cli.declaring import samples
from celc.resolve.types.schemas import columns_of, of_arrow

COLUMNS = {"type": "STRING", "id": "LONG", "v": "DOUBLE", "ts": "TIMESTAMP"}
DECLARED = "EVENT {} {{ id: LONG, v: DOUBLE, ts: TIMESTAMP }}"

# Queries with the event types of `t` that they name.
QUERIES: Mapping[str, str] = {
    "SELECT * FROM t WHERE A ; B": "A B",
    "SELECT x[v] FROM t WHERE (A AS x : B) FILTER x.v > 3 PARTITION BY id WITHIN 3 [v]": "A B",
    "SELECT FIRST * FROM t WHERE ((B OR A) AS x ; C) FILTER x IS NOT D WITHIN 9 EVENTS": "B A C D",
    "SELECT * FROM t WHERE A ; !B ; t>C": "A B C",
    "SELECT TOTAL COUNT(*) AS n FROM t WHERE NOT(A) ; (B UNLESS `page view`)": "A B `page view`",
    "SELECT * FROM t WHERE t ; t": "t",
}


def _declared(types: str) -> str:
    names = types.replace("page view", "page_view").split(" ")
    events = (DECLARED.format(name.replace("_", " ")) for name in names)
    return f"CREATE STREAM t {{ {', '.join(events)} }}\n"


def _code(matcher: celc.Matcher) -> str:
    """What a module does: all but its text, and the lines of it that reasons name."""
    return re.sub(r"\(line \d+\)", "", matcher.source.partition("CELC_VERSION")[2])


@pytest.mark.each(2)
@pytest.mark.parametrize("query", QUERIES)
def test_a_table_is_the_stream_that_declares_its_columns(query: str) -> None:
    """Byte for byte the same code, so nothing that runs a module can tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", celc.CelWarning)
        found = celc.compile(query, schema=COLUMNS, order_by="ts")
        wanted = celc.compile(_declared(QUERIES[query]) + query, order_by="ts")
        again = celc.compile(found.QUERY, order_by="ts")
    assert _code(found) == _code(wanted) == _code(again)
    assert found.QUERY.startswith("CREATE STREAM t {\n  EVENT ")


def test_each_query_reads_the_types_that_it_names() -> None:
    text = "QUERY one: SELECT * FROM t WHERE A : B\nQUERY two: SELECT * FROM t WHERE A : C"
    found = celc.compile(text, schema=COLUMNS, order_by="ts")
    alone = celc.compile("SELECT * FROM t WHERE A : C", schema=COLUMNS, order_by="ts")
    types = [query.plan.source.declared_types for query in found.queries.values()]
    assert types == [(("t", "A"), ("t", "B")), (("t", "A"), ("t", "C"))]
    assert alone.queries["query"].plan.source.types == found.queries["two"].plan.source.types
    assert "-- for one\n-- CREATE STREAM t {\n" in found.QUERY


def test_a_table_without_types_has_one() -> None:
    table = pa.table({"v": [3, 1, 2], "pos": [0, 0, 0]})
    query = celc.compile(
        "SELECT x.v AS v FROM r WHERE (r AS x : r AS y) FILTER x.v > y.v", schema=table
    )
    assert query.match_table(table).column("v").to_pylist() == [3]
    assert "EVENT r { v: LONG }" in query.QUERY


def test_the_column_of_types_has_another_name() -> None:
    table = pa.table({"kind": ["A", "B", "C"], "v": [1, 2, 3]})
    query = celc.compile("SELECT * FROM t WHERE A ; B", schema=table.schema, type_column="kind")
    with pytest.warns(EventWarning, match="'C'"):
        (row,) = query.match_table(table).to_pylist()
    assert row == {
        "start_pos": 0,
        "end_pos": 1,
        "A": [{"pos": 0, "v": 1}],
        "B": [{"pos": 1, "v": 2}],
    }


def test_a_declared_stream_stays_what_it_is() -> None:
    text = "CREATE STREAM t { EVENT A { id: INT } }\nSELECT * FROM t WHERE A"
    assert _code(celc.compile(text, schema=COLUMNS)) == _code(celc.compile(text))


def test_fields_of_structs_that_a_query_names_are_attributes() -> None:
    table = pa.table({"s": [{"x": 1, "y": {"z": "q"}}], "a.b": [2.5]})
    text = "SELECT e.`s.y.z` AS z, e.`a.b` AS b, e.s AS s FROM e WHERE e FILTER e.`s.x` = 1"
    (row,) = celc.compile(text, schema=table).match_table(table).to_pylist()
    assert (row["z"], row["b"], row["s"]) == ("q", 2.5, {"x": 1, "y": {"z": "q"}})


def test_other_streams_of_from_keep_their_types() -> None:
    text = "CREATE STREAM S { EVENT A { id: LONG } }\nSELECT * FROM S, t WHERE A ; B"
    (query,) = celc.compile(text, schema=COLUMNS).queries.values()
    assert query.plan.source.declared_types == (("S", "A"), ("t", "B"))


def test_rows_of_queries_are_read_beside_a_table() -> None:
    text = """QUERY rises: SELECT y.v AS top FROM t WHERE (A AS x : A AS y) FILTER x.v < y.v
QUERY after: SELECT rises.top AS top, b.v AS v FROM rises, t WHERE rises ; B AS b"""
    table = pa.table({"type": ["A", "A", "B"], "v": [1.0, 2.0, 9.0], "ts": [1, 2, 3]})
    found = celc.compile(text, schema=table, order_by="ts").queries["after"].match_table(table)
    assert found.select(["top", "v"]).to_pylist() == [{"top": 2.0, "v": 9.0}]


# --- schemas --------------------------------------------------------------------------------------


def test_every_arrow_type_has_a_type_that_its_columns_fit() -> None:
    numbers = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32)]
    types = [
        *numbers,
        *(pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null()),
        *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary(16)),
        *(pa.large_binary(), pa.binary_view(), pa.date32(), pa.timestamp("ns")),
        *(pa.timestamp("s", "Europe/Berlin"), pa.duration("ms"), pa.decimal128(10, 2)),
        *(pa.decimal32(5, 2), pa.decimal256(20, 2), pa.uuid()),
        *(pa.list_(pa.int8()), pa.large_list(pa.string()), pa.list_(pa.int32(), 3)),
        *(pa.map_(pa.string(), pa.timestamp("us")), pa.dictionary(pa.int8(), pa.string())),
        pa.struct([("a", pa.uint8()), ("b c", pa.list_(pa.timestamp("us")))]),
    ]
    for type in types:
        found = of_arrow(type)
        assert found is not None, type
        assert fits(type, found.value), type
    others = [pa.uint64(), pa.time64("us"), pa.date64(), pa.decimal256(50, 2), pa.struct([])]
    others += [pa.map_(pa.int32(), pa.string()), pa.list_(pa.uint64()), pa.list_view(pa.int8())]
    assert [of_arrow(type) for type in others] == [None] * len(others)


def test_a_schema_of_spark_or_of_texts() -> None:
    from pyspark.sql import types as spark

    fields = {
        "a": (spark.ByteType(), "TINYINT"),
        "b": (spark.DecimalType(10, 2), "decimal(10,2)"),
        "c": (spark.TimestampNTZType(), "TIMESTAMP"),
        "d": (spark.ArrayType(spark.StringType()), "ARRAY<TEXT>"),
        "e": (spark.DayTimeIntervalType(), "INTERVAL"),
        "f": (spark.MapType(spark.StringType(), spark.LongType()), "MAP<STRING, BIGINT>"),
        "g": (
            spark.StructType([spark.StructField("x y", spark.IntegerType())]),
            "STRUCT<`x y`: INT>",
        ),
    }
    schema = spark.StructType([spark.StructField(name, one) for name, (one, _) in fields.items()])
    of_spark = [one.type for one in columns_of(schema)]
    assert of_spark == [one.type for one in columns_of({n: t for n, (_, t) in fields.items()})]
    assert of_spark == [one.type for one in columns_of({n: t for n, (t, _) in fields.items()})]
    unknown = spark.StructType([spark.StructField("i", spark.YearMonthIntervalType())])
    assert columns_of(unknown)[0].type is None


class _AnyName:
    """Any name is one of its columns, as of a DataFrame of Spark Connect, which asks nobody."""

    schema = pa.schema({"v": pa.int64()})

    def __getattr__(self, name: str) -> object:
        return object()


def test_a_frame_that_seems_to_have_all_names_is_known_by_its_schema() -> None:
    assert [one.name for one in columns_of(_AnyName())] == ["v"]


@pytest.mark.parametrize(
    "type", ["FOO", "LONG, b: INT", "", "PRIMARY_TIME", "INT }, EVENT u { b: INT"]
)
def test_a_text_that_is_no_type_is_an_error_in_words(type: str) -> None:
    with pytest.raises(
        ValueError, match=r"schema: column 'v' has the type .*; types are BOOLEAN, "
    ):
        celc.compile("SELECT * FROM t WHERE t", schema={"v": type})


def test_a_schema_without_columns_is_an_error_in_words() -> None:
    with pytest.raises(TypeError, match="schema: give a dictionary of types by column"):
        celc.compile("SELECT * FROM t WHERE t", schema=5)
    assert [one.code for one in celc.check("SELECT * FROM t WHERE A")] == ["unknown-stream"]
    assert not celc.check("SELECT * FROM t WHERE A", schema=COLUMNS, order_by="ts")


def _several_kinds(table: pa.Table) -> Any:
    return table.to_pandas().assign(mixed=[1, "x"] + [None] * (len(table) - 2))


@pytest.mark.parametrize(
    "of",
    [
        pa.Table.to_reader,
        pa.Table.to_pandas,
        _several_kinds,
        polars.from_arrow,
        lambda table: polars.from_arrow(table).lazy(),
        lambda table: polars.from_arrow(table).schema,
        duckdb.from_arrow,
    ],
    ids=["reader", "pandas", "pandas, several kinds", "polars", "lazy", "schema", "duckdb"],
)
def test_a_table_of_any_library_is_its_schema(of: Any) -> None:
    columns = {
        "type": ["A", "B"],
        "id": [1, 2],
        "v": [1.5, None],
        "ts": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "on": [True, False],
    }
    table = pa.table(columns)
    wanted = [(one.name, one.type) for one in columns_of(table.schema)]
    found = [(one.name, one.type) for one in columns_of(of(table))]
    assert found == [*wanted, *([("mixed", None)] if of is _several_kinds else [])]
    query = celc.compile("SELECT x FROM t WHERE A AS x ; B WITHIN 1 HOUR [ts]", schema=of(table))
    assert len(query.match_table(table)) == 1


# --- the command line -----------------------------------------------------------------------------

CSV = "kind,id,v,ts\nA,1,1.5,2026-07-01 12:00:00\nB,1,2,2026-07-01 12:01:00\n"
JSON = """{"kind": "A", "s": {"v": 1}, "ts": "2026-07-01T12:00:00Z"}
{"kind": "B", "s": {"v": 2}, "ts": "2026-07-01T12:01:00Z"}
"""


@pytest.fixture
def run(tmp_path: Path, capsys: Any, monkeypatch: Any) -> Any:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capsys.readouterr()

    return command


def test_a_run_takes_the_columns_from_the_events(run: Any, tmp_path: Path) -> None:
    query = "SELECT a.v + b.v AS sum FROM t WHERE A AS a ; B AS b WITHIN 5 MINUTES [ts]"
    (tmp_path / "q.cel").write_text(query)
    (tmp_path / "json.cel").write_text(query.replace("a.v + b.v", "a.`s.v` + b.`s.v`"))
    (tmp_path / "e.csv").write_text(CSV)
    (tmp_path / "e.json").write_text(JSON)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / "e.csv"), tmp_path / "e.parquet")
    for name, source, total in (
        ("e.csv", "q", 3.5),
        ("e.parquet", "q", 3.5),
        ("e.json", "json", 3),
    ):
        code, told, _ = run(
            "run", f"{source}.cel", name, "--type-column", "kind", "--format", "rows"
        )
        assert (code, f'"sum": {total}' in told) == (0, True)
    code, _, said = run("run", "q.cel", "e.csv")
    assert (code, "error[no-type-column]: table 't' has no column 'type'" in said) == (1, True)
    assert run("run", "q.cel", "none.csv")[0::2] == (2, "celc: none.csv: there is no such file\n")


def test_a_later_row_that_does_not_fit_is_told_with_the_declaration(
    run: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(samples, "MOST_ROWS", 100)
    (tmp_path / "q.cel").write_text("SELECT x[v] FROM log WHERE A AS x FILTER x.v > 199")
    (tmp_path / "w.cel").write_text("SELECT x[w] FROM log WHERE A AS x")
    rows = [f'{{"kind": "A", "v": {n}}}\n' for n in range(201)]
    last = '{"kind": "A", "v": 1.5, "w": 2}\n'
    (tmp_path / "e.json").write_text("".join([*rows, last]))
    (tmp_path / "e.csv").write_text("kind,v\n" + "A,1\n" * 201 + "A,x\n")
    for name, line in (("e.json", 202), ("e.csv", 203)):
        code, _, said = run("run", "q.cel", name, "--type-column", "kind", "-o", "o.csv")
        assert (code, said.startswith(f"celc: {name}, line {line:,}: ")) == (2, True)
        assert f"they are those that the first 100 rows of {name} show" in said
        command = f"celc init {name} --type-column kind --name log"
        assert f"{command} writes CREATE STREAM\n" in said
        text = run(*command.split(" ")[1:])[1]
        declared = text.partition("SELECT")[0].replace("v: LONG", "v: DOUBLE")
        (tmp_path / "d.cel").write_text(declared + (tmp_path / "q.cel").read_text())
        code, found, _ = run("run", "d.cel", name, "--type-column", "kind", "--format", "rows")
        assert (code, found) == (0, _OF_JSON) if name == "e.json" else (2, "")
    code, _, said = run("run", "w.cel", "e.json", "--type-column", "kind")
    assert (code, "attributes are those of the first 100 rows of e.json" in said) == (1, True)


_OF_JSON = '{"start_pos": 200, "end_pos": 200, "x": [{"pos": 200, "v": 200.0}]}\n'


def test_folders_give_undeclared_tables_columns(run: Any, tmp_path: Path) -> None:
    (tmp_path / "q.cel").write_text("SELECT x[n, day] FROM log WHERE t AS x FILTER x.n > 0")
    (tmp_path / "q.sql").write_text(
        "SELECT * FROM log MATCH_RECOGNIZE (ORDER BY day MEASURES A.n AS n PATTERN (A))"
    )
    for day in (1, 2):
        for ending in ("csv", "parquet"):
            folder = tmp_path / ending / f"n={day - 1}" / f"day=2026-07-0{day}" / "type=t"
            folder.mkdir(parents=True)
            rows = pa.table({"v": [day], "n": ["of the file"]})
            if ending == "csv":
                pyarrow.csv.write_csv(rows, folder / "e.csv")
            else:
                pyarrow.parquet.write_table(rows, folder / "e.parquet")
    for ending in ("csv", "parquet"):
        code, found, _ = run("run", "q.cel", ending, "--format", "rows")
        assert (code, '"x": [{"pos": 1, "n": 1, "day": "2026-07-02"}]' in found) == (0, True)
    code, found, _ = run("run", "q.sql", "parquet", "--format", "rows")
    assert (code, found) == (0, '{"n": 0}\n{"n": 1}\n')


def test_types_that_are_numbers_are_names(run: Any, tmp_path: Path) -> None:
    (tmp_path / "q.cel").write_text("SELECT a.v AS v FROM t WHERE `1` AS a ; `2`")
    (tmp_path / "e.csv").write_text("type,v\n1,5\n2,6\n")
    assert run("run", "q.cel", "e.csv", "--format", "rows")[:2] == (
        0,
        '{"start_pos": 0, "end_pos": 1, "v": 5}\n',
    )


def test_commands_take_the_columns_from_a_file(run: Any, tmp_path: Path) -> None:
    (tmp_path / "q.cel").write_text("SELECT a.v AS v FROM t WHERE A AS a ; B WITHIN 5 MINUTES [ts]")
    (tmp_path / "e.csv").write_text(CSV)
    schema = ["--schema", "e.csv", "--type-column", "kind"]
    assert run("check", "q.cel", *schema)[:2] == (0, "q: fine\n")
    assert run("check", "q.cel")[0] == 1
    assert run("check", "q.cel", "--schema", "none.csv")[0] == 2
    assert run("compile", "q.cel", *schema)[0] == 0
    module = (tmp_path / "q_udf.py").read_text()
    assert "celc compile q.cel -o q_udf.py --type-column kind --schema e.csv" in module
    assert '"  EVENT A { id: LONG, v: DOUBLE, ts: TIMESTAMP },",' in module
    assert "FROM t" in run("compile", "q.cel", *schema, "--to", "duckdb-sql")[1]
    code, told, _ = run("explain", "q.cel", *schema)
    assert (code, "streams: t\n" in told) == (0, True)


def test_row_patterns_take_them_likewise(run: Any, tmp_path: Path) -> None:
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.v AS v PATTERN (A) )"
    (tmp_path / "q.sql").write_text(text)
    (tmp_path / "e.csv").write_text(CSV)
    assert run("check", "q.sql", "--schema", "e.csv")[:2] == (0, "q: fine\n")
