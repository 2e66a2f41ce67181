"""MATCH_RECOGNIZE on one machine: all cases, and what they leave open."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from celc_runtime import EventError, WorkLimitError
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.row_pattern import passes, run
from celc_runtime.row_pattern.tables import conforming_table
from celc_runtime.run.feeding import read_all
from engines import interpreted
from row_cases import RowCase, column_type, compiled, row_cases, rows_of, same, table_of

import celc
from celc import CelError
from celc.interfaces.cli import main
from celc.row_pattern import automaton

_CASES = row_cases()


@pytest.mark.parametrize("case", [c for c in _CASES if c.when == "compile"], ids=str)
def test_wrong_queries_are_refused(case: RowCase) -> None:
    with pytest.raises(CelError) as problem:
        compiled(case.query)
    assert {found.code for found in problem.value.diagnostics} == {case.error}
    assert all(found.help for found in problem.value.diagnostics)


@pytest.mark.parametrize("case", [c for c in _CASES if c.when == "run"], ids=str)
def test_wrong_tables_are_refused(case: RowCase) -> None:
    with interpreted():
        query = compiled(case.query)
    with pytest.raises(EventError, match=r"row|order"):
        query.match_table(table_of(case.schema, case.table))


@pytest.mark.parametrize("case", [c for c in _CASES if c.expected is not None], ids=str)
def test_cases(case: RowCase) -> None:
    with interpreted():
        query = compiled(case.query)
    found = query.match_table(table_of(case.schema, case.table))
    wanted = [(name, column_type(type)) for name, type in case.types.items()]
    assert found.schema == pa.schema(wanted)
    assert same(case, rows_of(found)), found.to_pylist()


_COMPILED = [c for c in _CASES if c.expected is not None][::12]


@pytest.mark.each(3)
@pytest.mark.parametrize(
    "case",
    [
        case if number % 4 == 0 else pytest.param(case, marks=pytest.mark.long)
        for number, case in enumerate(_COMPILED)
    ],
    ids=str,
)
def test_cases_by_machine_code(case: RowCase) -> None:
    found = compiled(case.query).match_table(table_of(case.schema, case.table))
    assert same(case, rows_of(found)), found.to_pylist()


@pytest.mark.each(2)
@pytest.mark.parametrize(
    "case", [c for c in _CASES if c.expected is not None and c.partition][::3], ids=str
)
def test_cases_in_batches(case: RowCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of two rows, one partition after another; matches given out one by one."""
    monkeypatch.setattr(run, "_ROWS", 3)
    monkeypatch.setattr(run, "_MATCHES", 1)
    monkeypatch.setattr(run, "_LABELS", 1)
    with interpreted():
        query = compiled(case.query)
    plan, table = query.queries["q"].plan, table_of(case.schema, case.table)
    made = conforming_table(plan, table, derived=False)
    keys = [made.column(plan.columns[n].name).combine_chunks() for n in plan.partition_by]
    table = table.take(codes_of_keys(keys, len(table)).argsort(kind="stable"))
    batches = table.to_batches(max_chunksize=2)
    for found in (query.match_arrow(batches), read_all(query.queries["q"].run(), batches)):
        assert same(case, rows_of(pa.Table.from_batches(found, query.OUTPUT_SCHEMA)))
    everything = query.match_all_table(table)
    assert same(case, rows_of(query.rows(everything, "q")))


@pytest.mark.parametrize("case", [c for c in _CASES if c.expected is not None][::9], ids=str)
def test_cases_in_pandas(case: RowCase) -> None:
    with interpreted():
        query = compiled(case.query)
    frame = table_of(case.schema, case.table).to_pandas(integer_object_nulls=True)
    found = pa.Table.from_pandas(query.match_pandas(frame), query.OUTPUT_SCHEMA)
    assert same(case, rows_of(found))


@pytest.mark.parametrize(
    "case", [c for c in _CASES if c.expected is not None and "01-" in c.name], ids=str
)
def test_earliest_ends_say_what_numbered_sets_say(
    case: RowCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way for too many sets gives the same matches."""
    monkeypatch.setattr(passes, "MOST_SETS", 1)
    with interpreted():
        query = compiled(case.query)
    assert same(case, rows_of(query.match_table(table_of(case.schema, case.table))))


_V = """CREATE TABLE t (k INT, ts LONG, v INT);
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts
  MEASURES FIRST(v) AS top, LAST(v) AS back, COUNT(*) AS n
  PATTERN (S D+ U+)
  DEFINE D AS v < PREV(v), U AS v > PREV(v)
)"""


def _table(**columns: Any) -> pa.Table:
    return pa.table(columns)


def test_a_module_is_the_same_bytes_and_can_be_pickled() -> None:
    first, second = compiled(_V), compiled(_V)
    assert first.source == second.source
    copy = pickle.loads(pickle.dumps(first.queries["q"]))
    table = _table(k=[1] * 4, ts=[1, 2, 3, 4], v=[3, 1, 2, 0]).cast(
        pa.schema([("k", pa.int32()), ("ts", pa.int64()), ("v", pa.int32())])
    )
    assert copy.match_table(table).to_pylist() == [{"k": 1, "top": 3, "back": 2, "n": 3}]


def test_types_come_from_a_schema() -> None:
    text = _V.split("\n", 1)[1]
    for schema in (
        {"k": "INT", "ts": "LONG", "v": "INT"},
        pa.schema([("k", pa.int32()), ("ts", pa.int64()), ("v", pa.int32())]),
    ):
        with interpreted():
            query = celc.compile(text, dialect="match_recognize", name="v.sql", schema=schema)
        assert query.OUTPUT_SCHEMA.field("top").type == pa.int32()
        assert list(query.queries) == ["v"]
    (missing,) = celc.check(text, dialect="match_recognize")
    assert missing.code == "no-schema"


_EVERY_ROW = """SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts MEASURES LAST(v) AS top ALL ROWS PER MATCH
  PATTERN (A) DEFINE A AS v > 1
)"""
_OTHERS = {
    "px": pa.uint64(),
    "pairs": pa.map_(pa.int32(), pa.int32()),
    "parts": pa.list_(pa.time64("us")),
    "at": pa.time64("us"),
}


def _wide() -> pa.Table:
    """A table of four columns that are read, one called like a word of the language, and others."""
    plain = {"k": [1, 1], "ts": [1, 2], "v": [0, 2], "order": [3, 4]}
    others = {name: pa.nulls(2, type) for name, type in _OTHERS.items()}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in plain.items()} | others)


def _told(text: str, schema: Any) -> list[Any]:
    return list(celc.check(text, dialect="match_recognize", schema=schema))


def test_columns_that_are_left_out_are_named() -> None:
    for schema in (_wide().schema, _wide()):
        (told,) = _told(_EVERY_ROW, schema)
        assert told.code == "unreadable-column"
        for name, type in _OTHERS.items():
            assert f"'{name}' ({type})" in told.message
        (fix,) = told.fixes
        assert fix.text == "k, ts, top, v, `order`"
        assert "list the columns of the result: SELECT k, ts, top, v, `order`" in told.help[0]
    mended = _EVERY_ROW.replace("*", fix.text, 1)
    with interpreted():
        query = celc.compile(mended, dialect="match_recognize", schema=_wide().schema)
        found = query.match_table(_wide()).to_pylist()
    assert found == [{"k": 1, "ts": 2, "top": 2, "v": 2, "order": 4}]
    # The columns of other rows are all in the result, and those that are declared.
    one_row = _EVERY_ROW.replace("ALL ROWS PER MATCH", "")
    assert not _told(one_row, _wide().schema)
    declared = f"CREATE TABLE t (k LONG, ts LONG, v LONG);\n{_EVERY_ROW}"
    assert not _told(declared, _wide().schema)


def test_columns_of_a_dataframe_that_are_left_out_are_named() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    schema = types.StructType()
    for name in ("k", "ts", "v"):
        schema = schema.add(name, types.LongType())
    pairs = types.MapType(types.IntegerType(), types.IntegerType())
    schema = schema.add("px", pairs).add("raw", types.YearMonthIntervalType())
    (told,) = _told(_EVERY_ROW, schema)
    assert told.code == "unreadable-column"
    assert told.message.endswith("read: 'px' (map<int,int>), 'raw' (interval year to month)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DEFINE A AS v", "DEFINE A AS PX"),
        ("LAST(v)", "LAST(A.px)"),
        ("ORDER BY ts", "ORDER BY px"),
        ("PARTITION BY k", "PARTITION BY px"),
        ("SELECT *", "SELECT k, px"),
    ],
)
def test_a_column_of_another_type_is_there(old: str, new: str) -> None:
    text = _EVERY_ROW.replace("SELECT *", "SELECT k").replace(old.replace("*", "k"), new)
    (told,) = _told(text, _wide().schema)
    assert told.code == "unreadable-column"
    assert "is of the type uint64, which MATCH_RECOGNIZE does not read" in told.message
    assert "AS BIGINT) AS" in told.help[1]
    assert "BOOLEAN, BYTE, SHORT" in told.help[0]


def test_the_command_line_names_columns_that_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow.parquet.write_table(_wide(), tmp_path / "t.parquet")
    (tmp_path / "q.sql").write_text(_EVERY_ROW)
    assert main(["run", str(tmp_path / "q.sql"), str(tmp_path / "t.parquet")]) == 1
    assert "'px' (uint64), 'pairs' (map<int32, int32" in capsys.readouterr().err


def test_options_of_cel_are_refused() -> None:
    with pytest.raises(ValueError, match="has no option order_by"):
        celc.compile(_V, dialect="match_recognize", order_by="ts")
    with pytest.raises(ValueError, match="dialect must be"):
        celc.compile(_V, dialect="sql")


def test_all_errors_are_told_at_once() -> None:
    text = """CREATE TABLE t (a INT);
    SELECT * FROM t MATCH_RECOGNIZE (
      ORDER BY b MEASURES SUM(A.s) AS s, SOUNDEX(a) AS u PATTERN (A B{3,1}) DEFINE C AS a > 'x'
    )"""
    found = [one.code for one in celc.check(text, dialect="match_recognize")]
    wanted = ["unknown-column", "unknown-column", "unknown-function", "bad-quantifier"]
    assert found == [*wanted, "not-in-pattern", "type-mismatch"]


def test_tables_that_do_not_fit() -> None:
    with interpreted():
        query = compiled(_V)
    with pytest.raises(EventError, match="'v', which is missing"):
        query.match_table({"k": [1], "ts": [1]})
    with pytest.raises(EventError, match="declares 'v' as INT"):
        query.match_table(_table(k=pa.array([1], pa.int32()), ts=[1], v=["a"]))
    assert query.match_table({"k": [], "ts": [], "v": []}).num_rows == 0


_SUBSETS = """CREATE TABLE t (id INT, v INT);
SELECT * FROM t MATCH_RECOGNIZE (
  ORDER BY id MEASURES COUNT(*) AS n
  PATTERN ((A | B)+ X)
  DEFINE X AS SUM(A.v) = 1 AND SUM(B.v) = 1
)"""


def test_a_search_that_takes_too_long_is_stopped() -> None:
    query = compiled(_SUBSETS)
    assert [warning.code for warning in query.warnings] == ["path-search"]
    table = {"id": list(range(40)), "v": [2**k for k in range(29)] + [0] * 11}
    with pytest.raises(WorkLimitError, match="more than max_work=10,000 steps"):
        query.with_options(max_work=10_000).match_table(table)


def test_a_search_of_the_start_is_not_exponential() -> None:
    """Failures are remembered: without that, these rows have 2³⁰ ways to fail."""
    query = compiled("""CREATE TABLE t (id INT, v INT);
        SELECT * FROM t MATCH_RECOGNIZE (
          ORDER BY id MEASURES COUNT(*) AS n
          PATTERN ((A | B)+ X) DEFINE X AS FIRST(v, 1) = 99 AND v = 1
        )""").with_options(max_work=1_000)
    table = {"id": list(range(30)), "v": [1] * 30}
    assert query.match_table(table).num_rows == 0


def test_two_passes_take_a_step_a_row_whatever_the_nesting() -> None:
    """No step is undone: a pattern that backtracking engines take 2ⁿ steps for is done at once."""
    text = """CREATE TABLE t (id INT, v INT);
    SELECT * FROM t MATCH_RECOGNIZE (
      ORDER BY id MEASURES COUNT(*) AS n
      PATTERN (((A+)+)+ B) DEFINE B AS v = 99
    )"""
    table = {"id": list(range(20_000)), "v": [1] * 20_000}
    assert compiled(text).match_table(table).num_rows == 0


@pytest.mark.each(4)
@pytest.mark.parametrize(
    ("pattern", "rows", "matches"),
    [
        ("A{1000}", 2_500, 2),
        ("(A{0,1}){4000} A{4000}", 4_000, 1),
        ("(A{0,1}){10000} A{10000}", 4_000, 0),
        ("(" * 100 + "A" + ")+" * 100, 300, 1),
        ("(A?){300} B", 700, 0),
        ("PERMUTE(A, A, A, A, A, A)", 14, 2),
    ],
    ids=["long", "optional then all", "longest", "deep", "optional", "permuted"],
)
def test_large_patterns(pattern: str, rows: int, matches: int) -> None:
    with interpreted(formatted=True):
        query = compiled(
            f"""CREATE TABLE t (id INT);
            SELECT * FROM t MATCH_RECOGNIZE (
              ORDER BY id MEASURES COUNT(*) AS n
              PATTERN ({pattern}) DEFINE A AS id >= 0, B AS id < 0
            )"""
            if " B" in pattern
            else f"""CREATE TABLE t (id INT);
            SELECT * FROM t MATCH_RECOGNIZE (
              ORDER BY id MEASURES COUNT(*) AS n PATTERN ({pattern}) DEFINE A AS id >= 0
            )"""
        )
    assert query.match_table({"id": list(range(rows))}).num_rows == matches


@pytest.mark.parametrize("rounds", [40, 100])
def test_many_distances_are_bits_of_a_row_or_left_to_the_search(rounds: int) -> None:
    """Each round has its own distance from the first row, and so a condition of its own."""
    query = compiled(f"""CREATE TABLE t (id INT, v INT);
        SELECT * FROM t MATCH_RECOGNIZE (
          ORDER BY id MEASURES COUNT(*) AS n PATTERN (A{{{rounds}}}) DEFINE A AS v >= FIRST(A.v)
        )""")
    values = [*range(rounds + 9), *range(20, 0, -1)]
    table = {"id": list(range(len(values))), "v": values}
    assert query.match_table(table).to_pylist() == [{"n": rounds}]


def test_ways_from_row_to_row_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "MOST_MOVES", 5_000)
    text = """CREATE TABLE t (id INT);
    SELECT * FROM t MATCH_RECOGNIZE (
      ORDER BY id MEASURES COUNT(*) AS n PATTERN ((A? B?){90}) DEFINE A AS id > 0, B AS id < 0
    )"""
    with pytest.raises(CelError, match="ways to go from one row to the next"):
        compiled(text)


def test_hostile_names_stay_texts() -> None:
    name = '"""\\n\'); import os #`'
    quoted = "`" + name.replace("`", "``") + "`"
    text = f"""CREATE TABLE t ({quoted} INT);
    SELECT * FROM t MATCH_RECOGNIZE (
      ORDER BY {quoted} MEASURES LAST({quoted}) AS {quoted}
      PATTERN ({quoted}+) DEFINE {quoted} AS {quoted} > 0
    )"""
    query = compiled(text)
    assert query.match_table({name: [1, 2]}).to_pylist() == [{name: 2}]


def test_a_key_has_no_regular_expression() -> None:
    text = """CREATE TABLE t (id INT, s STRING);
    SELECT * FROM t MATCH_RECOGNIZE (
      PARTITION BY IF(s RLIKE '^a', 1, 2) AS k ORDER BY id MEASURES COUNT(*) AS n PATTERN (A)
    )"""
    (told,) = celc.check(text, dialect="match_recognize")
    assert told.code == "unsupported"
    assert "PARTITION BY takes no RLIKE" in told.message


def test_bytes_are_compared() -> None:
    text = """CREATE TABLE t (id INT, b BINARY);
    SELECT * FROM t MATCH_RECOGNIZE (
      PARTITION BY b IS NULL AS none ORDER BY id
      MEASURES LAST(b) AS b, FIRST(b) <> LAST(b) AS other, COUNT(*) AS n
      PATTERN (A B* C) DEFINE B AS b = PREV(b), C AS b <> A.b
    )"""
    with interpreted():
        query = celc.compile(text, dialect="match_recognize")
    ids = pa.array(range(5), pa.int32())
    found = query.match_table(_table(id=ids, b=[b"x", b"x", b"\x00", None, b"x"]))
    assert found.to_pylist() == [{"none": False, "b": b"\x00", "other": True, "n": 3}]


def test_a_time_without_a_zone_comes_out_without_one() -> None:
    text = """SELECT * FROM t MATCH_RECOGNIZE (
      ORDER BY DATE_TRUNC('HOUR', ts) AS hour, ts
      MEASURES FIRST(ts) + INTERVAL '1' DAY AS next, ARRAY_AGG(ts) AS all_, HOUR(ts) AS h,
        CAST(LAST(ts) AS TIMESTAMP) AS utc ALL ROWS PER MATCH
      PATTERN (A B*) WITHIN INTERVAL '3' HOUR
      DEFINE A AS ts > TIMESTAMP '2026-01-01 10:00:00', B AS HOUR(ts) = HOUR(PREV(ts)) + 1
    )"""
    times = pa.array([10, 11, 13], pa.int64())
    times = pa.array([1767225600_000000 + 3_600_000_000 * h.as_py() + 1 for h in times])
    table = _table(ts=times.cast(pa.timestamp("us")))
    with interpreted():
        found = celc.compile(text, dialect="match_recognize", schema=table).match_table(table)
    clock, instant = pa.timestamp("us"), pa.timestamp("us", "UTC")
    wanted = [clock, clock, clock, pa.list_(clock), pa.int32(), instant]
    assert found.schema.types == wanted
    assert [row["ts"].hour for row in found.to_pylist()] == [10, 11, 13]
    assert [len(row["all_"]) for row in found.to_pylist()] == [1, 2, 1]


def test_names_in_double_quotes_and_words_of_other_engines() -> None:
    text = """CREATE TABLE t ("a ""b" INT, id INT);
    SELECT m."last" FROM t MATCH_RECOGNIZE (
      PARTITION BY "A ""B" % 2 ORDER BY id
      MEASURES LAG("a ""b") + LEAD(FIRST(`V 1`.id), 0) AS "last"
      PATTERN ("v 1" B) DEFINE B AS "a ""b" > LAG("a ""b", 1)
    ) m"""
    with interpreted():
        query = celc.compile(text, dialect="match_recognize")
        table = _table(**{'a "b': pa.array([1, 3], pa.int32()), "id": pa.array([1, 2], pa.int32())})
        assert query.match_table(table).to_pylist() == [{"last": 2}]
    (wrong,) = celc.check('SELECT "x', dialect="match_recognize")
    assert 'no second " closes this one' in wrong.message


@pytest.mark.parametrize("between", [" /* final ( */ ", "/**/", " -- final (\n", "\n--\n\t"])
def test_comments_stand_wherever_a_space_may(between: str) -> None:
    query = (  # a number sign is a space of a text
        "CREATE TABLE t (ts LONG, final INT, at TIMESTAMP, d DATE);\n"
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts "
        "MEASURES FINAL SUM(B.final) AS s, RUNNING COUNT(*) AS n, A.final AS f "
        "ALL ROWS PER MATCH PATTERN (PERMUTE (A, B)) "
        "DEFINE A AS at > TIMESTAMP '2026-01-01#00:00:00' - INTERVAL '1' DAY, "
        "B AS d = DATE '2026-01-01')"
    )
    with interpreted():
        wanted, given = (
            celc.compile(query.replace(" ", space).replace("#", " "), dialect="match_recognize")
            for space in (" ", between)
        )
    table = _table(
        ts=[1, 2],
        final=pa.array([3, 4], pa.int32()),
        at=pa.array([0, 2_000_000_000], pa.timestamp("s")),
        d=pa.array([20454, 20454], pa.date32()),
    )
    found = given.match_table(table)
    assert len(found) == 2
    assert found.equals(wanted.match_table(table))
