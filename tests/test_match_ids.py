"""`match_id`: the same on every route, and one for each match.

What is one match the reference says (`reference.identities`). Random queries cross `match_id` with
all else (`crossings`): FOR EACH row, over rows of queries, with uncertain time, on streams.
"""

from __future__ import annotations

import datetime as dt
import json
import pickle
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases_io import Case, case_stems, load_cases
from celc_runtime import CompiledQuery, EventError
from celc_runtime.arrow.matches.match_ids import hashes
from engines import batches_of, in_parts, interpreted, only_query, table_of
from match_ids import ids_of, wrong_ids
from places import CASES

import celc
from celc.interfaces.cli import main

pytestmark = pytest.mark.filterwarnings("ignore:.*undecided")

_FOLDERS = tuple(CASES / name for name in ("language", "found", "papers"))
_STEMS = [(folder, stem) for folder in _FOLDERS for stem in case_stems(folder)]

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
"""


def _query(text: str, **options: object) -> CompiledQuery:
    with interpreted():
        query = only_query(celc.compile(_DECLARED + text, **{"order_by": "ts"} | options))
    return query.with_options(match_id=True)


def _table(rows: list[tuple[str, int, float | None, str | None, int]]) -> pa.Table:
    types, ids, values, names, seconds = zip(*rows, strict=True)
    start = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)
    times = [start + dt.timedelta(seconds=one) for one in seconds]
    return pa.table(
        {
            "type": pa.array(types, pa.string()),
            "id": pa.array(ids, pa.int32()),
            "v": pa.array(values, pa.float64()),
            "name": pa.array(names, pa.string()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


_ROWS = [
    ("A", 1, 1.0, "x", 1),
    ("B", 1, None, "y", 2),
    ("A", 2, 0.0, None, 2),
    ("B", 2, 3.0, "", 3),
    ("B", 1, 4.0, "xé", 5),
]


# --- the cases ------------------------------------------------------------------------------------


def _problems(text: str, cases: list[Case]) -> list[str]:
    """What differs between routes, and what has one id or several wrongly."""
    problems = []
    options = {"order_by": cases[0].order_by, "ties": cases[0].ties, "at_end": cases[0].at_end}
    with interpreted():
        query = only_query(celc.compile(text, **options)).with_options(match_id=True)
    for case in cases:
        plan, table = query.plan, table_of(query.plan, case.events)
        found = query.match_table(table)
        assert found.schema.equals(query.output_schema)
        rows = found.to_pylist()
        told = wrong_ids(query, rows, case.events)
        ordered = table_of(plan, in_parts(plan, case.events))
        batches = query.match_arrow(batches_of(ordered, random.Random(case.name)))
        others = {"match_arrow": [row for batch in batches for row in batch.to_pylist()]}
        if plan.source.order_by:
            bare = query.with_options(positions=False)
            others["without positions"] = bare.match_table(table).to_pylist()
        else:
            assert len({row["match_id"] for row in rows}) == len(rows), case.name
        told += "".join(f"\n{route}" for route in others if ids_of(others[route]) != ids_of(rows))
        if told:
            problems.append(f"{case.name}: {told}")
    return problems


def _by_query(folder: Path, stem: str) -> dict[object, list[Case]]:
    found: dict[object, list[Case]] = {}
    for case in load_cases(stem, folder):
        if not re.search(r"SELECT (TOTAL|COLLAPSED)", case.query):
            options = case.order_by, case.ties, case.at_end
            found.setdefault((case.query, *options), []).append(case)
    return found


@pytest.mark.each(3, values=False)
@pytest.mark.parametrize(
    "every", [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.long)]
)
@pytest.mark.parametrize(("folder", "stem"), _STEMS, ids=lambda part: Path(part).name)
def test_cases(folder: Path, stem: str, every: bool) -> None:
    """Every fifteenth query by one of its cases, or all."""
    problems: list[str] = []
    for cases in list(_by_query(folder, stem).values())[:: 1 if every else 15]:
        problems += _problems(cases[0].query, cases if every else cases[-1:])
    assert not problems, "\n".join(problems)


# --- what an id depends on ------------------------------------------------------------------------


def test_the_column_is_the_first_one_of_sixteen_bytes() -> None:
    query = _query("SELECT a[id], COUNT(b) AS n FROM S WHERE A AS a ; B+ AS b PARTITION BY id")
    found = query.match_table(_table(_ROWS))
    assert found.schema.equals(query.output_schema)
    assert found.column_names[0] == "match_id"
    assert found.schema.field("match_id").type == pa.binary()
    assert {len(id) for id in found["match_id"].to_pylist()} == {16}
    assert query.output_ddl.startswith("`match_id` BINARY, `id` INT, ")


def test_an_id_is_the_same_in_every_version() -> None:
    """Sinks hold ids of years ago."""
    query = _query("SELECT * FROM S WHERE A AS a ; B AS b FILTER b.v > a.v PARTITION BY id")
    found = query.match_table(_table(_ROWS))["match_id"].to_pylist()
    assert [one.hex() for one in found] == [
        "9e99cd2f77fc2ce6e143f82e69003b2f",
        "472d917fef56f325470ead43652ba8a5",
    ]


def test_physical_types_make_no_difference() -> None:
    query = _query("SELECT * FROM S WHERE A AS a ; B AS b")
    table = _table(_ROWS)
    wanted = query.match_table(table)["match_id"].to_pylist()
    assert len({*wanted}) == 5
    for name, type in (
        ("id", pa.int16()),
        ("v", pa.float32()),
        ("name", pa.large_string()),
        ("name", pa.dictionary(pa.int8(), pa.string())),
        ("ts", pa.timestamp("ms", "UTC")),
        ("ts", pa.timestamp("us", "Europe/Berlin")),
        ("ts", pa.timestamp("ns", "UTC")),
    ):
        number = table.column_names.index(name)
        other = table.set_column(number, name, table.column(name).cast(type))
        assert query.match_table(other)["match_id"].to_pylist() == wanted, type


def test_what_is_not_read_makes_no_difference() -> None:
    query = _query("SELECT a, b FROM S WHERE A AS a ; B AS b FILTER a.id = b.id")
    assert [one.name for one in query.plan.source.attributes] == ["id", "v", "name", "ts"]
    narrow = _query("SELECT a[id], b[id] FROM S WHERE A AS a ; B AS b FILTER a.id = b.id")
    assert [one.name for one in narrow.plan.source.attributes] == ["id", "ts"]
    one, other = _table(_ROWS), _table([(*row[:2], 7.0, "z", row[4]) for row in _ROWS])
    ids = [narrow.match_table(table)["match_id"].to_pylist() for table in (one, other)]
    assert ids[0] == ids[1]
    ids = [query.match_table(table)["match_id"].to_pylist() for table in (one, other)]
    assert not {*ids[0]} & {*ids[1]}


def test_under_which_label_an_event_is_makes_a_difference() -> None:
    one = _query("SELECT * FROM S WHERE A AS x ; B AS y")
    other = _query("SELECT * FROM S WHERE A AS y ; B AS x")
    ids = [query.match_table(_table(_ROWS))["match_id"].to_pylist() for query in (one, other)]
    assert not {*ids[0]} & {*ids[1]}


def test_equal_events_are_told_apart_by_a_tiebreak() -> None:
    """Two events of one time with the same values are one, unless the order tells them apart."""
    rows = [("A", 1, 1.0, "x", 1), ("A", 1, 1.0, "x", 1), ("B", 1, 1.0, "x", 2)]
    query = _query("SELECT * FROM S WHERE A AS a ; B AS b")
    ids = query.match_table(_table(rows))["match_id"].to_pylist()
    assert ids[0] == ids[1]
    table = _table(rows).append_column("row", pa.array([0, 1, 2]))
    query = query.with_options(tiebreak="row")
    ids = query.match_table(table)["match_id"].to_pylist()
    assert ids[0] != ids[1]
    narrow = table.set_column(5, "row", table.column("row").cast(pa.int8()))
    assert query.match_table(narrow)["match_id"].to_pylist() == ids


def test_a_match_without_labels_is_told_by_its_start_and_its_end() -> None:
    query = _query("SELECT NONE FROM S WHERE A ; B").with_options(positions=False)
    ids = query.match_table(_table(_ROWS))["match_id"].to_pylist()
    assert len({*ids}) == len(ids) == 5


def test_values_have_one_form() -> None:
    def ids(values: list[object], type: pa.DataType) -> list[int]:
        found: list[int] = hashes({"a": pa.array(values, type)}, len(values))[0].tolist()
        return found

    nan = float("nan")
    assert ids([0.0, nan, 2.0], pa.float64()) == ids([-0.0, -nan, 2.0], pa.float64())
    texts = ["", "\0", "\0\0", "abcdefgh", "abcdefgh\0", "12345678abcdefgh", "abcdefgh12345678"]
    texts += ["é", "e", None, "x" * 1000, "x" * 1001]
    found = ids(texts, pa.string())
    assert len({*found}) == len(texts)
    assert ids(texts, pa.large_string()) == found
    sliced = pa.array(["before", *texts], pa.string())[1:]
    assert hashes({"a": sliced}, len(texts))[0].tolist() == found
    assert ids([None, None], pa.string()) == ids([None, None], pa.int32())


# --- options --------------------------------------------------------------------------------------


def test_options_keep_it_and_take_it_away() -> None:
    query = _query("SELECT * FROM S WHERE A AS a ; B AS b")
    copied = pickle.loads(pickle.dumps(query))
    assert copied.output_schema.equals(query.output_schema)
    assert query.with_options(order_by=["ts", "id"]).plan.answer.match_id is not None
    without = query.with_options(match_id=False)
    assert without.plan.answer.match_id is None
    assert "match_id" not in without.output_schema.names


def test_wrong_options() -> None:
    query = _query("SELECT * FROM S WHERE A AS a ; B AS b")
    with pytest.raises(ValueError, match="match_id must be True or False, not 1"):
        query.with_options(match_id=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'Match_ID' already: rename it with AS"):
        _query("SELECT a.id AS Match_ID FROM S WHERE A AS a")


@pytest.mark.parametrize("select", ["TOTAL COUNT(*) AS n", "COLLAPSED *"])
def test_rows_for_many_matches_have_none(select: str) -> None:
    query = _query(f"SELECT {select} FROM S WHERE A AS a ; B AS b")
    with pytest.raises(EventError, match=re.escape("one row for many matches, and match_id")):
        query.match_table(_table(_ROWS))


def test_graphs_have_none() -> None:
    query = _query("SELECT * FROM S WHERE A AS a ; B AS b")
    with pytest.raises(EventError, match="a graph stands for many matches, and match_id tells one"):
        query.match_compact(_table(_ROWS))


# --- the command line -----------------------------------------------------------------------------


def test_the_command_line_writes_ids_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.cel").write_text(_DECLARED + "SELECT a[id] FROM S WHERE A AS a ; B AS b")
    events = str(tmp_path / "e.parquet")
    pq.write_table(_table(_ROWS), events)
    query = _query("SELECT a[id] FROM S WHERE A AS a ; B AS b", order_by="ts")
    found = query.match_table(_table(_ROWS))["match_id"].to_pylist()
    command = ["run", str(tmp_path / "q.cel"), events, "--order-by", "ts", "--match-id"]
    for format in ("table", "json", "csv"):
        with interpreted():
            assert main([*command, "--format", format]) == 0
        lines = capsys.readouterr().out.splitlines()
        shown = [one.hex() for one in found if any(one.hex() in line for line in lines)]
        assert len(shown) == len(found) == 5, format
    for file in ("out.parquet", "out.html"):
        with interpreted():
            assert main([*command, "-o", str(tmp_path / file)]) == 0
    assert pq.read_table(tmp_path / "out.parquet")["match_id"].to_pylist() == found
    page = (tmp_path / "out.html").read_text("utf-8")
    assert all(one.hex() in page for one in found)


@pytest.mark.parametrize(
    ("select", "told"),
    [
        (
            "TOTAL COUNT(*) AS n",
            "SELECT TOTAL has one row for many matches, and match_id tells one",
        ),
        ("a.id AS match_id", "--match-id: query 'q' has a column 'match_id' already: rename it"),
    ],
)
def test_the_command_line_says_where_there_is_none(
    select: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.cel").write_text(_DECLARED + f"SELECT {select} FROM S WHERE A AS a")
    pq.write_table(_table(_ROWS), tmp_path / "e.parquet")
    with interpreted():
        code = main(["run", str(tmp_path / "q.cel"), str(tmp_path / "e.parquet"), "--match-id"])
    assert code == 2
    assert told in capsys.readouterr().err


def test_the_command_line_has_the_ids_of_match_recognize(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "CREATE TABLE t (id INT, v INT);\nSELECT * FROM t MATCH_RECOGNIZE (ORDER BY id "
        "MEASURES COUNT(*) AS n PATTERN (A U) DEFINE U AS v > PREV(v))"
    )
    schema = pa.schema({"id": pa.int32(), "v": pa.int32()})
    rows = pa.table({"id": [1, 2, 3, 4], "v": [1, 2, 1, 5]}, schema)
    (tmp_path / "q.sql").write_text(text)
    pq.write_table(rows, tmp_path / "e.parquet")
    asked = ["run", str(tmp_path / "q.sql"), str(tmp_path / "e.parquet"), "--match-id"]
    with interpreted():
        query = celc.compile(text, name="q.sql", dialect="match_recognize")
        wanted = query.with_options(match_id=True).match_table(rows)["match_id"].to_pylist()
        assert main([*asked, "--format", "rows"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["match_id"] for line in lines] == [one.hex() for one in wanted]
    assert len(set(wanted)) == 2


_THREE = """QUERY one: SELECT a FROM S WHERE A AS a
QUERY total: SELECT TOTAL COUNT(*) AS n FROM S WHERE A
QUERY two: SELECT a, b FROM S WHERE A AS a ; B AS b"""


def test_a_module_can_have_them(tmp_path: Path) -> None:
    """All queries whose rows are matches, as each by its options; a total has none."""
    with interpreted():
        asked = celc.compile(_DECLARED + _THREE, order_by="ts", match_id=True)
        plain = celc.compile(_DECLARED + _THREE, order_by="ts")
    assert "match_id=True)" in asked.source
    for name in ("one", "two"):
        wanted = plain.queries[name].with_options(match_id=True).match_table(_table(_ROWS))
        assert asked.queries[name].match_table(_table(_ROWS)).equals(wanted)
        assert asked.match_all_table(_table(_ROWS))[name].equals(wanted)
        again = pickle.loads(pickle.dumps(asked.queries[name]))
        assert again.match_table(_table(_ROWS)).equals(wanted)
    assert "match_id" not in asked.queries["total"].output_schema.names
    ordered = asked.queries["one"].with_options(tiebreak="row").plan.answer.match_id
    assert ordered is not None
    assert ordered[-1] == "row"
    (tmp_path / "q.cel").write_text(_DECLARED + _THREE)
    written = tmp_path / "q_udf.py"
    options = ["--order-by", "ts", "--match-id"]
    assert main(["compile", str(tmp_path / "q.cel"), "-o", str(written), *options]) == 0
    assert "q_udf.py --order-by ts --match-id\n" in written.read_text()
    assert written.read_text().count("match_id=(") == 2


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("SELECT a.id AS match_id FROM S WHERE A AS a", [], "has a column 'match_id' already"),
        ("SELECT TOTAL COUNT(*) AS n FROM S WHERE A", [], "no query of this text has rows"),
        ("SELECT a FROM S WHERE A AS a", ["--to", "spark-sql"], "computes no match_id"),
    ],
)
def test_a_module_is_told_where_there_is_none(
    text: str, options: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.cel").write_text(_DECLARED + text)
    given = ["compile", str(tmp_path / "q.cel"), "-o", str(tmp_path / "q_udf.py"), "--match-id"]
    assert main([*given, "--order-by", "ts", *options]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "q_udf.py").exists()
    if not options:
        with pytest.raises(ValueError, match=re.escape(told)):
            celc.compile(_DECLARED + text, order_by="ts", match_id=True)
