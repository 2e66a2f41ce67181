"""`after` and `until` on one machine: the cases, what is refused, and what is read."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from celc_runtime import EventError, PlanWarning
from celc_runtime.run.feeding import read_all
from engines import batches_of, engines, interpreted, only_query
from places import CASES
from reference import evaluate, evaluate_totals, known_time

import celc
from celc.interfaces.cli import main
from celc.options import Options

_STEM = "45-after-until"
_SIZE = 38

_SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "id": pa.int32(),
        "value": pa.float64(),
        "name": pa.string(),
        "ts": pa.timestamp("us", tz="UTC"),
    }
)


@cache
def _cases() -> list[dict[str, Any]]:
    lines = (CASES / "slices" / f"{_STEM}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _time(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def _events(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**event, "ts": _time(event["ts"])} for event in case["events"]]


def _options(case: Mapping[str, Any]) -> Options:
    return Options(tuple(case["options"]["order_by"]), at_end=case["options"].get("at_end", "open"))


def _wanted(case: Mapping[str, Any], numbers: Iterable[int]) -> Counter[str]:
    """The rows of a slice in the form of `_got`: events by their ids, no positions."""
    found: Counter[str] = Counter()
    for number in numbers:
        if "rows" in case:
            row = {**case["rows"][number]}
            row.pop("end_pos", None)
            found[_text({n: _time(v) if n in _TIMES else str(v) for n, v in row.items()})] += 1
            continue
        row = case["expected"][number]
        part = [
            event["id"]
            for event in case["events"]
            if all(event[name] == value for name, value in row["partition"].items())
        ]
        labels = {name: [part[at] for at in places] for name, places in row["labels"].items()}
        times = {name: _time(row[name]) for name in sorted(_TIMES & row.keys())}
        found[_text({**row["partition"], **times, **labels})] += 1
    return found


def _got(case: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        shown: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, list):
                value = [event["id"] for event in value]
            elif isinstance(value, dt.datetime):
                value = value.astimezone(dt.UTC)
            elif "rows" in case:
                value = str(value)
            shown[name] = value
        found[_text(shown)] += 1
    return found


_TIMES = {"start_time", "end_time", "decided_time", "span_start", "span_end"}


def _text(row: Mapping[str, Any]) -> str:
    return repr(sorted(row.items()))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_cases() -> None:
    """By a table, by batches and by a run; refused queries say why."""
    rng, compared, refused = random.Random(1), set(), set()
    for case in _cases():
        with interpreted():
            matchers = engines(case["query"], _options(case))
        for engine, matcher in matchers.items():
            query = only_query(matcher)
            if "error" in case:
                refused.add(case["name"])
                with pytest.raises(EventError, match=case["error"].split(" without")[0]):
                    query.match_table(_SCHEMA.empty_table(), after=_time(case["options"]["after"]))
                continue
            table = pa.Table.from_pylist(_events(case), _SCHEMA)
            keys = query.plan.source.partition_by
            sorted_table = table.sort_by([(name, "ascending") for name in (*keys, "ts")])
            for slice in case["slices"]:
                compared.add((case["name"], repr(slice)))
                bounds = {name: _time(slice.get(name)) for name in ("after", "until")}
                wanted = _wanted(case, slice["rows"])
                batches = [*batches_of(sorted_table, rng)]
                ways: dict[str, Any] = {
                    "a table": query.match_table(table, **bounds).to_batches(),
                    "batches": query.match_arrow(batches, **bounds),
                    "a run": read_all(query.run(**bounds), batches),
                }
                for way, found in ways.items():
                    rows = [row for batch in found for row in batch.to_pylist()]
                    assert _got(case, rows) == wanted, f"{case['name']} {engine} {way} {slice}"
    assert len(compared) == sum(len(case.get("slices", ())) for case in _cases())
    assert len(_cases()) == _SIZE
    assert len(refused) == 5


def test_the_reference_knows_the_rows_of_the_cases() -> None:
    """The times at which the reference knows rows put them into the slices of the cases."""
    for case in _cases():
        if "error" in case:
            continue
        events = _events(case)
        options: dict[str, Any] = {
            "order_by": "ts",
            "at_end": case["options"].get("at_end", "open"),
        }
        if "rows" in case:
            rows = evaluate_totals(case["query"], events, **options)
        else:
            rows = [
                dict(zip(("start_time", "end_time"), one.times or (), strict=True))
                | {"decided_time": one.decided_time}
                for one in evaluate(case["query"], events, times=True, **options)
            ]
        known = Counter(known_time(case["query"], row) for row in rows)
        for slice in case["slices"]:
            after, until = _naive(slice.get("after")), _naive(slice.get("until"))
            inside = sum(
                count
                for time, count in known.items()
                if (after is None or _plain(time) > after)
                and (until is None or _plain(time) <= until)
            )
            assert inside == len(slice["rows"]), f"{case['name']} {slice}"


def _plain(time: dt.datetime) -> dt.datetime:
    return time.replace(tzinfo=None)


def _naive(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text)


# --- what is read ---------------------------------------------------------------------------------

_DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, value: DOUBLE, name: STRING, ts: TIMESTAMP }
}
"""
_PAIRS = _DECLARATION + "SELECT y.id AS id FROM S WHERE A ; B AS y WITHIN 1 HOUR [ts]\n"
_START = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)


def _compiled(text: str = _PAIRS, **options: Any) -> Any:
    with interpreted():
        return celc.compile(text, **{"order_by": "ts"} | options)


def _days(days: int) -> pa.Table:
    rows = [
        {"type": "AB"[n % 2], "id": n, "value": 1.0, "name": "n", "ts": _START + n * _STEP}
        for n in range(days * 48)
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


_STEP = dt.timedelta(minutes=30)


def test_files_and_datasets_are_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups outside are not read; what is found is what a table in memory gives."""
    table = _days(30)
    path = tmp_path / "events.parquet"
    pq.write_table(table, path, row_group_size=48)
    bounds = {"after": "2026-07-20", "until": "2026-07-21"}
    wanted = _compiled().match_table(table, **bounds)
    assert 0 < len(wanted) < 200
    groups: list[Any] = []
    plain = pq.ParquetFile.iter_batches

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        groups.append(named["row_groups"])
        return plain(self, *given, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    assert _compiled().match_table(path, **bounds).equals(wanted)
    assert groups == [[18, 19, 20]], "the day before has the window, the day behind its first event"
    monkeypatch.undo()
    dataset = pyarrow.dataset.dataset(path)
    assert _compiled().match_table(dataset, **bounds).equals(wanted)


def test_an_order_column_that_is_derived_cuts_as_well() -> None:
    text = _PAIRS.replace("ts: TIMESTAMP", "at: STRING, ts: TIMESTAMP = TO_TIMESTAMP(at)")
    table = _days(3)
    at = pa.array([str(one.as_py())[:19] for one in table.column("ts")], pa.string())
    given = table.drop_columns(["ts"]).append_column("at", at)
    bounds = {"after": "2026-07-02", "until": "2026-07-03"}
    wanted = _compiled().match_table(table, **bounds)
    query = only_query(_compiled(text))
    assert query.match_table(given, **bounds).equals(wanted)
    found = read_all(query.run(**bounds), given.to_batches(max_chunksize=7))
    assert pa.Table.from_batches(found, wanted.schema).equals(wanted)


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        ("", "has no window"),
        ("WITHIN 3 EVENTS", "is in EVENTS"),
        ("WITHIN 3 [value]", "is on 'value'"),
    ],
)
def test_all_is_read_where_no_window_bounds_it(clause: str, words: str) -> None:
    query = _compiled(_PAIRS.replace("WITHIN 1 HOUR [ts]", clause))
    with pytest.warns(PlanWarning, match=words):
        found = query.match_table(_days(2), after="2026-07-02")
    whole = query.match_table(_days(2))
    late = [row for row in whole.to_pylist() if row["end_time"] > _START + dt.timedelta(days=1)]
    assert found.column("end_time").to_pylist() == [row["end_time"] for row in late]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "error", "words"),
    [
        ({"after": "2026-07-02", "until": "2026-07-01"}, ValueError, "is later than until="),
        ({"after": dt.datetime(2026, 7, 1)}, ValueError, "this time has no zone"),
        ({"until": "yesterday"}, ValueError, "this text is no time"),
        ({"until": 3}, TypeError, "give a datetime"),
        ({"after": True}, TypeError, "give a datetime"),
    ],
)
def test_bounds_that_are_no_times(bounds: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        _compiled().match_table(_days(1), **bounds)


@pytest.mark.parametrize(
    ("type", "good", "bad", "words"),
    [
        ("LONG", 3, "3", "give a number"),
        ("LONG", 3, 2.5, "give a whole number"),
        ("DOUBLE", 2.5, float("nan"), "give a finite number"),
        ("DATE", dt.date(2026, 7, 2), dt.datetime(2026, 7, 2), "give a date"),
        ("DATE", "2026-07-02", "July", "this text is no day"),
        ("TIMESTAMP_NTZ", dt.datetime(2026, 7, 2), _START, "this time has a zone"),
    ],
)
def test_bounds_of_other_columns(type: str, good: Any, bad: Any, words: str) -> None:
    query = _compiled(f"CREATE STREAM S {{ EVENT A {{ ts: {type} }} }}\nSELECT * FROM S WHERE A")
    values = {
        "LONG": [1, 3, 4],
        "DOUBLE": [1.0, 2.5, 3.0],
        "DATE": [dt.date(2026, 7, day) for day in (1, 2, 3)],
        "TIMESTAMP_NTZ": [dt.datetime(2026, 7, day) for day in (1, 2, 3)],
    }[type]
    events = {"ts": values}
    assert query.match_table(events, after=good)["end_time"].to_pylist() == values[2:]
    assert query.match_table(events, until=good)["end_time"].to_pylist() == values[:2]
    with pytest.raises((TypeError, ValueError), match=words):
        query.match_table(events, after=bad)


def test_a_query_of_row_patterns_has_no_slices() -> None:
    text = """CREATE TABLE t (ts TIMESTAMP, v INT);
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES B.v AS v PATTERN (A B) DEFINE B AS B.v > 1)"""
    with interpreted():
        query = celc.compile(text, dialect="match_recognize")
    with pytest.raises(EventError, match="MATCH_RECOGNIZE skips past matches"):
        query.match_table({"ts": [], "v": []}, after=_START)


def test_max_matches_counts_the_rows_of_the_slice() -> None:
    query = _compiled()
    whole = query.match_table(_days(2), after="2026-07-02")
    with pytest.warns(UserWarning, match="was stopped"):
        found = query.match_table(_days(2), after="2026-07-02", max_matches=3)
    assert found.equals(whole.slice(0, 3))


def test_compact_answers_of_a_slice() -> None:
    query = _compiled(_PAIRS.replace("y.id AS id", "y"))
    bounds = {"after": "2026-07-02", "until": "2026-07-02 12:00:00"}
    graphs = query.match_compact(_days(2), **bounds)
    assert query.expand(graphs).read_all().equals(query.match_table(_days(2), **bounds))


# --- the command line -----------------------------------------------------------------------------


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["run", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_compact_answers_of_a_slice_of_a_reader() -> None:
    text = """CREATE STREAM S { EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG } }
    QUERY pairs: SELECT a.id AS id2 FROM S WHERE A AS a ; B PARTITION BY id WITHIN 4 [ts]
    QUERY twice: SELECT p, q FROM pairs WHERE pairs AS p ; pairs AS q
    PARTITION BY id WITHIN 9 [ts]"""
    twice = celc.compile(text, order_by="ts").queries["twice"]
    table = pa.table(
        {
            "type": list("ABAB") * 6,
            "id": pa.array([1, 1, 2, 2] * 6, pa.int32()),
            "ts": list(range(24)),
        }
    )
    for bounds in ({"after": 8}, {"until": 15}, {"after": 7, "until": 13}):
        expected = twice.match_table(table, **bounds)
        found = twice.expand(twice.match_compact(table, **bounds)).read_all()
        assert 0 < len(expected) < len(twice.match_table(table))
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, events = tmp_path / "q.cel", tmp_path / "e.csv"
    query.write_text(_PAIRS)
    lines = ["type,id,value,name,ts", "A,1,1,n,2026-07-01 23:30:00", "B,2,1,n,2026-07-02 00:00:00"]
    events.write_text("\n".join([*lines, "B,3,1,n,2026-07-02 00:10:00"]) + "\n")
    bounds = ["--after", "2026-07-01", "--until", "2026-07-02"]
    code, out, _ = _run(capsys, str(query), str(events), *bounds, "--format", "json")
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {
            "query": "q",
            "partition": {},
            "start_time": "2026-07-01 23:30:00+00:00",
            "end_time": "2026-07-02 00:00:00+00:00",
            "labels": {},
            "values": {"id": 2},
        }
    ]
    code, out, _ = _run(
        capsys, str(query), str(events), "--after", "2026-07-02", "--format", "rows"
    )
    assert [json.loads(line)["id"] for line in out.splitlines()] == [3]
    zone = ["--after", "2026-07-02 02:05", "--time-zone", "Europe/Berlin", "--format", "rows"]
    code, out, _ = _run(capsys, str(query), str(events), *zone)
    assert out == "", "the times of the events are in this zone as well"
    code, out, err = _run(
        capsys, str(query), str(events), "--after", "2026-07-02", "--until", "2026-07-02 00:00"
    )
    assert (code, "are one time: no row is between" in err) == (0, True)
    for wrong, words in (
        (["--after", "tomorrow"], "--after tomorrow: this text is no time"),
        (["--after", "2026-07-03", "--until", "2026-07-01"], "is later than until="),
        (["--after", "2026-07-03", "--format", "html"], "a report draws matches"),
    ):
        code, _, err = _run(capsys, str(query), str(events), *wrong)
        assert code != 0
        assert words in err
