"""INTERVAL through one machine: what is read, computed, written and refused."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import EventError, as_html
from engines import interpreted, only_query

import celc
from celc.interfaces.cli import main

STREAM = (
    "CREATE STREAM S { EVENT A { ts: TIMESTAMP, day: DATE, took: INTERVAL, n: LONG, "
    "`minutes`: INT } }\n"
)
_LARGEST = 2**63 - 1
_NOON = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)


def _query(text: str) -> Any:
    with interpreted():
        return only_query(celc.compile(STREAM + text, order_by="ts"))


def _durations(values: list[int | None], unit: str = "us") -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.duration(unit))


def _table(took: pa.Array, n: int = 2) -> pa.Table:
    rows = range(len(took))
    return pa.table(
        {
            "ts": pa.array(
                [_NOON + dt.timedelta(seconds=row) for row in rows], pa.timestamp("us", "UTC")
            ),
            "day": pa.array([dt.date(2026, 7, 1 + row) for row in rows], pa.date32()),
            "took": took,
            "n": pa.array([n] * len(took), pa.int64()),
            "minutes": pa.array([3] * len(took), pa.int32()),
        }
    )


def _values(query: Any, table: pa.Table) -> list[dict[str, Any]]:
    """The expressions of each match, durations in microseconds."""
    found = query.match_table(table)
    names = [item.name for item in query.plan.answer.expressions]
    assert all(found.schema.field(name).type == pa.duration("us") for name in names)
    return found.select(names).cast(pa.schema([(n, pa.int64()) for n in names])).to_pylist()


# --- results --------------------------------------------------------------------------------------

_ARITHMETIC = [
    ("x.took + 1 SECOND", _LARGEST, None),
    ("x.took + 1 SECOND", _LARGEST - 1_000_000, _LARGEST),
    ("x.took - 0.001 MILLISECONDS", -_LARGEST - 1, None),
    ("1 SECOND - x.took", -5, 1_000_005),
    ("-x.took", -_LARGEST - 1, None),
    ("-x.took", -_LARGEST, _LARGEST),
    ("ABS(x.took)", -_LARGEST - 1, None),
    ("ABS(x.took)", -7, 7),
    ("x.took * 3", 2**62, None),
    ("-3 * x.took", -5, 15),
    ("x.took * -1", -_LARGEST - 1, None),
    ("x.n * x.took", 2**62, None),
    ("x.n * x.took", 2**62 - 1, 2**63 - 2),
    ("x.took * NULL", 5, None),
    ("(x.ts + x.took) - x.ts", 5, 5),
    ("(x.ts + x.took) - x.ts", _LARGEST, None),
    ("(x.ts - x.took) - x.ts", -_LARGEST - 1, None),
    ("(x.day + x.took) - x.ts", 0, -43_200_000_000),
    ("x.ts - x.day", 0, 43_200_000_000),
    ("x.day - DATE '2026-06-29'", 0, 172_800_000_000),
    ("5 MINUTES", 0, 300_000_000),
    ("SUM(x.took)", -5, -5),
    ("x.took + x.minutes * 1 MINUTE", 1, 180_000_001),
]


@pytest.mark.parametrize(("expression", "took", "wanted"), _ARITHMETIC)
def test_arithmetic_in_select_and_in_conditions(
    expression: str, took: int, wanted: int | None
) -> None:
    table = _table(_durations([took]))
    selected = _query(
        f"SELECT {expression} AS value, COUNT(x) * 1 SECOND AS one FROM S WHERE A AS x"
    )
    assert _values(selected, table) == [{"value": wanted, "one": 1_000_000}]
    if wanted is None:
        holds, fails = f"({expression}) IS NULL", f"({expression}) <= ({expression})"
    else:
        milliseconds = f"{abs(wanted) // 1000}.{abs(wanted) % 1000:03} MILLISECONDS"
        literal = f"-({milliseconds})" if wanted < 0 else milliseconds
        holds = f"({expression}) = {literal}"
        fails = f"({expression}) IS NULL"
    assert len(_query(f"SELECT x FROM S WHERE A AS x FILTER {holds}").match_table(table)) == 1
    assert len(_query(f"SELECT x FROM S WHERE A AS x FILTER {fails}").match_table(table)) == 0


@pytest.mark.parametrize(
    ("took", "total", "average"),
    [
        ([1, 2], 3, 1),
        ([-1, -2], -3, -1),
        ([-1, 2, 2], 3, 1),
        ([None, None], None, None),
        ([None, -7], -7, -7),
        ([_LARGEST, _LARGEST, -_LARGEST - 1, 5], None, 2**61),
        # The sum leaves 64 bits on the way, and comes back.
        ([_LARGEST, _LARGEST, -_LARGEST, -3], _LARGEST - 3, (_LARGEST - 3) // 4),
        ([-_LARGEST - 1, -_LARGEST - 1, -_LARGEST - 1], None, -_LARGEST - 1),
    ],
)
def test_sums_and_averages(took: list[int | None], total: int | None, average: int | None) -> None:
    """Of exact sums; averages are rounded towards zero, and need no sum that fits."""
    table = _table(_durations(took))
    text = "SELECT MAX SUM(x.took) AS total, AVG(x.took) AS average FROM S WHERE (A AS x):+"
    assert _values(_query(text), table)[-1] == {"total": total, "average": average}
    for value, expression in ((total, "SUM(x.took)"), (average, "AVG(x.took)")):
        of_all = f"SELECT MAX NONE FROM S WHERE (A AS x):+ FILTER COUNT(x) = {len(took)} AND"
        null = f"{of_all} {expression} IS {'' if value is None else 'NOT '}NULL"
        assert len(_query(null).match_table(table)) == 1


def test_times_beyond_the_calendar() -> None:
    """A TIMESTAMP after the year 9999 is one; a DATE that begins at none makes NULL."""
    far = pa.table(
        {
            **{
                name: _table(_durations([1])).column(name)
                for name in ("ts", "took", "n", "minutes")
            },
            "day": pa.array([106_751_992], pa.int32()).cast(pa.date32()),
        }
    )
    query = _query(
        "SELECT x.ts + 100000000 DAYS AS late, x.day + x.took AS none FROM S WHERE A AS x"
    )
    found = query.match_table(far)
    assert found["late"].cast(pa.int64()).to_pylist() == [
        int(_NOON.timestamp()) * 10**6 + 10**8 * 86_400 * 10**6
    ]
    assert found["none"].to_pylist() == [None]
    # The difference of two DATEs is exact all the same.
    apart = _query("SELECT x.day - DATE '2000-01-01' AS apart FROM S WHERE A AS x")
    assert _values(apart, far) == [{"apart": (106_751_992 - 10_957) * 86_400 * 10**6}]


# --- what is read ---------------------------------------------------------------------------------


def test_durations_of_other_units() -> None:
    query = _query("SELECT x[took] FROM S WHERE A AS x FILTER x.took = 2 SECONDS")
    for unit, value in (("s", 2), ("ms", 2000), ("ns", 2 * 10**9)):
        assert len(query.match_table(_table(_durations([value, 7000], unit)))) == 1
    with pytest.raises(EventError, match="round or filter such durations"):
        query.match_table(_table(_durations([2001, None], "ns")))
    with pytest.raises(EventError, match="64 bits, but"):
        query.match_table(_table(_durations([2**62], "s")))
    with pytest.raises(EventError, match=r"declares 'took' as INTERVAL, but .* int64: cast"):
        query.match_table(_table(pa.array([2_000_000], pa.int64())))


def test_pandas_and_python_durations() -> None:
    query = _query(
        "SELECT x[took], x.took * 2 AS twice FROM S WHERE A AS x FILTER x.took > 1 SECOND"
    )
    frame = _table(_durations([1, 2])).to_pandas()
    frame["took"] = pd.to_timedelta([1.0, 2.0], unit="s")
    assert frame["took"].dtype in ("timedelta64[ns]", "timedelta64[us]")  # of pandas 2 and 3
    found = query.match_pandas(frame)
    assert found["twice"].tolist() == [pd.Timedelta(seconds=4)]
    lists = _table(_durations([1, 2])).to_pydict()
    lists["took"] = [dt.timedelta(seconds=1), dt.timedelta(seconds=2)]
    assert query.match_table(lists)["twice"].to_pylist() == [dt.timedelta(seconds=4)]


def test_keys_and_orders() -> None:
    """PARTITION BY an INTERVAL, equality across events, and an INTERVAL as order column."""
    table = _table(_durations([5, None, 5, None, -5]))
    parts = _query("SELECT x, y FROM S WHERE A AS x : A AS y PARTITION BY took").match_table(table)
    keys = parts["took"].cast(pa.int64()).to_pylist()
    assert sorted(keys, key=repr) == [5, None]
    equal = _query("SELECT x, y FROM S WHERE (A AS x ; A AS y) FILTER x.took = y.took")
    assert [row["end_pos"] for row in equal.match_table(table).to_pylist()] == [2]
    with interpreted():
        ordered = only_query(
            celc.compile(STREAM + "SELECT x[n] FROM S WHERE A AS x", order_by="took")
        )
    whole = table.filter(pa.compute.is_valid(table["took"]))
    ends = ordered.match_table(whole)["end_time"].cast(pa.int64()).to_pylist()
    assert ends == [-5, 5, 5]
    assert "0:00:00.000005" in as_html(parts)._repr_html_()
    assert "-0:00:00.000005" in as_html(ordered.match_table(whole))._repr_html_()


# --- files ----------------------------------------------------------------------------------------

_FILE_QUERY = (
    "SELECT x[took], x.took - 1 SECOND AS less FROM S WHERE A AS x FILTER x.took <= 2 SECONDS"
)


def _run(tmp_path: Path, source: Path, *more: str) -> tuple[int, str]:
    (tmp_path / "q.cel").write_text(STREAM + _FILE_QUERY)
    output = tmp_path / f"out.{more[0]}"
    with interpreted():
        code = main(["run", str(tmp_path / "q.cel"), str(source), "-o", str(output)])
    return code, output.read_text() if more[0] != "parquet" else ""


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_have_microseconds(kind: str, tmp_path: Path) -> None:
    source = tmp_path / f"events.{kind}"
    rows = [("2026-07-01 12:00:00", 2_000_000), ("2026-07-01 12:00:01", 3_000_000)]
    if kind == "csv":
        source.write_text("ts,took\n" + "".join(f"{ts},{took}\n" for ts, took in rows))
    elif kind == "jsonl":
        lines = [json.dumps({"ts": ts, "took": took}) + "\n" for ts, took in rows]
        source.write_text("".join(lines))
    else:
        whole = _table(_durations([took for _, took in rows]))
        pq.write_table(whole.set_column(2, "took", whole["took"].cast(pa.int64())), source)
    code, text = _run(tmp_path, source, "json")
    assert code == 0
    assert json.loads(text)["values"] == {"less": 1_000_000}
    assert '""took"": 2000000' in _run(tmp_path, source, "csv")[1]
    table = _run(tmp_path, source, "txt")[1]
    assert "took=0:00:02" in table
    assert "0:00:01" in table
    assert _run(tmp_path, source, "parquet")[0] == 0
    assert pq.read_schema(tmp_path / "out.parquet").field("less").type == pa.duration("us")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_files_with_other_durations(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / f"events.{kind}"
    source.write_text(
        "ts,took\n2026-07-01 12:00:00,5 min\n"
        if kind == "csv"
        else '{"ts": "2026-07-01 12:00:00", "took": "5 min"}\n'
    )
    (tmp_path / "q.cel").write_text(STREAM + _FILE_QUERY)
    assert main(["run", str(tmp_path / "q.cel"), str(source)]) == 2
    told = capsys.readouterr().err
    assert "line" in told
    said = "'5 min' is no INTERVAL, which is a whole number of microseconds"
    assert kind == "jsonl" or f"column 'took': {said}" in told


def test_words_stay_names() -> None:
    """Units and INTERVAL are names wherever no duration can stand."""
    text = """CREATE STREAM seconds {
      EVENT minutes { `days`: INT, hour: INT, interval: INTERVAL, second: INT },
      EVENT interval { `days`: INT, hour: INT, interval: INTERVAL, second: INT }
    }
    QUERY day: SELECT hours, day[second, hour] FROM seconds
    WHERE (minutes AS hours ; interval AS day)
    FILTER hours.second < 5 AND day.hour > 5 AND hours[days = 3 AND second = 1]
       AND day.interval >= 1 HOUR - 1 SECOND AND hours.days * 1 DAY > day.interval
    PARTITION BY hour WITHIN 5 MINUTES"""
    with pytest.raises(celc.CelError) as caught:
        celc.compile(text)
    assert {d.code for d in caught.value.diagnostics if d.severity == "error"} == {
        "unmeasured-window"
    }
    assert celc.compile(text.replace("WITHIN 5 MINUTES", "WITHIN 5 [second]"))
