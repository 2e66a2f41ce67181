"""The conformance cases as streams: micro-batches of one to three rows of each case.

A query's cases are one stream, each a partition of its own, and several such streams are one of
Spark's, because to start one takes it seconds. CONSUME BY ANY with PARTITION BY is no stream.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, lasting_in, load_cases
from celc_runtime import CompiledQuery, finish
from chosen_cases import some_cases
from conftest import ON_SPARK
from engines import as_on_spark, interpreted, only_query
from reference import as_expected, evaluate
from spark_routes import told
from stream_routes import SETTINGS, START, files, run, settings, together, write_files

import celc

SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "id": pa.int32(),
        "src": pa.int32(),
        "dst": pa.int32(),
        "value": pa.float64(),
        "name": pa.string(),
        "mileage": pa.int64(),
        "price": pa.float64(),
        "ts": pa.int64(),
        "start": pa.timestamp("us", "UTC"),
        "end": pa.timestamp("us", "UTC"),
        "row": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
        "part": pa.string(),
        "asked": pa.int32(),
    }
)

_TOGETHER = 10
"""Queries in one of Spark's streams."""

_FILES = 8
"""Micro-batches with rows."""

_FEW_FILES = 3
"""The same where few cases will do; they have up to nine events."""

_BUCKETS = (1, 2, 7)
"""How many buckets the partitions of a stream are in, one stream after another."""


def _compiled(case: Case, number: int) -> CompiledQuery:
    """A case's query over `at`, a time with the seconds of `ts`, with the case as a partition.
    Events that last have times in place of the seconds of their starts and ends."""
    text = lasting_in("SECONDS", case.query) if case.lasts else case.query
    head, body = text[: text.index("SELECT")], text[text.index("SELECT") :]
    head = head.replace("ts: LONG }", "ts: LONG, at: TIMESTAMP, part: STRING }")
    head = head.replace("end: TIMESTAMP }", "end: TIMESTAMP, part: STRING }")
    body, count = re.subn(r"PARTITION BY ", r"\g<0>part, ", body)
    if not count:
        body = body.replace("CONSUME BY ANY", "CONSUME BY PARTITION")  # there is only one
        body = re.sub(r"(?= WITHIN | CONSUME | LIMIT |$)", " PARTITION BY part", body, count=1)
    body = re.sub(r"FOR ([\d.]+) \[ts\]", r"FOR \1 SECONDS [at]", body)
    # What waits is measured on the event time; of the other windows half are measured on `ts`.
    if number % 2 or case.ends_late or _WAITS.search(text):
        body = re.sub(r"WITHIN (\d+) \[ts\]", r"WITHIN \1 SECONDS [at]", body)
    with interpreted():
        named = f"{head}QUERY q{number}: {body}"
        order_by = None if case.lasts else "at"
        return only_query(celc.compile(named, order_by=order_by, tiebreak="row"))


def _rows(case: Case, number: int) -> list[dict[str, Any]]:
    found = []
    for row, event in enumerate(case.in_order):
        event = event | {name: _time(event[name]) for name in ("start", "end") if name in event}
        at = event["end"] if case.lasts else _time(event["ts"])
        found.append(event | {"row": row, "at": at, "part": case.name, "asked": number})
    return found


_OF_CASES = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
"""Where the times of cases begin."""


def _time(value: Any) -> dt.datetime:
    """The time of a number of seconds, or in place of a time of a case."""
    if isinstance(value, dt.datetime):
        return START + (value.replace(tzinfo=dt.UTC) - _OF_CASES)
    return START + dt.timedelta(seconds=value)


def _dealt(
    rows: list[dict[str, Any]], rnd: random.Random, files: int
) -> list[list[dict[str, Any]]]:
    """A case's rows for each file: one to three, in order."""
    dealt, at = [], 0
    for left in range(files, 0, -1):
        most = min(3, len(rows) - at)
        least = max(0, min(most, len(rows) - at - 3 * (left - 1)), 1 if at < len(rows) else 0)
        count = rnd.randint(least, most)
        dealt.append(rows[at : at + count])
        at += count
    assert at == len(rows)
    return dealt


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({f.name: pa.array([r.get(f.name) for r in rows], f.type) for f in SCHEMA})


def _write(folder: Path, groups: list[list[Case]], files: int) -> str:
    """Write the files; the delay with which no event is late, which cases have only together: the
    watermark follows the case whose times are ahead."""
    rnd = random.Random(1)
    chunks: list[list[dict[str, Any]]] = [[] for _ in range(files)]
    for number, cases in enumerate(groups):
        for case in cases:
            for chunk, rows in zip(chunks, _dealt(_rows(case, number), rnd, files), strict=True):
                chunk.extend(rows)
    for chunk in chunks:
        rnd.shuffle(chunk)
    chunks = [chunk for chunk in chunks if chunk]
    write_files(folder, [_table(chunk) for chunk in chunks])
    latest, behind = START, dt.timedelta(0)
    for chunk in chunks:
        behind = max(behind, latest - min(row["at"] for row in chunk))
        latest = max(latest, *(row["at"] for row in chunk))
    return f"{behind // dt.timedelta(milliseconds=1) + 1} milliseconds"


_FAR = START + dt.timedelta(days=900)
_ENDS = [
    # Each query has one of the types.
    {"type": one, "part": "the end", "row": 0, "ts": 10**8, "at": _FAR, "start": _FAR, "end": _FAR}
    for one in ("A", "J", "Q")
]


def _problems(groups: list[list[Case]], compiled: list[CompiledQuery], found: Any) -> list[str]:
    answers: dict[str, list[dict[str, Any]]] = {}
    for row in found.collect():
        number = int(row.stream)
        match = json.loads(row.json)
        assert ("start_pos" in match) == as_on_spark(compiled[number]).plan.answer.positions
        answers.setdefault(match["part"], []).append(match)
    problems = []
    for number, (cases, query) in enumerate(zip(groups, compiled, strict=True)):
        # Of a stream that is over; and as a table, whose events come in their order.
        query = query.with_options(at_end="closed")
        for case in cases:
            events, rows = _table(_rows(case, number)), answers.get(case.name, [])
            if wrong := told(query, events, rows, case.expected, apart="part"):
                problems.append(f"{case.name}: {wrong}")
    return problems


def _streams(
    spark: Any, folder: Path, groups: list[list[Case]], first: int, count: int
) -> list[str]:
    """What is wrong with the answers of some queries' streams, which are one of Spark's.

    An event far in the future ends them: `finish` serves one at a time.
    """
    delay = _write(folder / "in", groups, count)
    write_files(folder / "in", [_table(_ENDS)], first=99)
    frame = files(spark, folder / "in")
    compiled = [_compiled(cases[0], first + n) for n, cases in enumerate(groups)]
    streams = {
        str(number): one.match_stream(
            frame.where(f"asked = {number} OR asked IS NULL"),
            watermark=delay,
            allow_unbounded_state=True,
            buckets=_BUCKETS[number % len(_BUCKETS)],
        )
        for number, one in enumerate(compiled)
    }
    run(together(streams), folder)
    return _problems(groups, compiled, spark.read.parquet(str(folder / "out")))


_WAITS = re.compile(r"\bLONGEST\b|\bDISJOINT\b")
"""Its matches wait until no later event can change them."""


def _is_stream(case: Case) -> bool:
    """Whether all matches of a case are known once the time is far behind it."""
    waits = _WAITS.search(case.query) and not re.search(r"WITHIN \d+ \[ts\]", case.query)
    return _can_be_stream(case) and not waits


def _can_be_stream(case: Case) -> bool:
    if case.lasts:
        return False  # they have a test of their own
    # All cases share the columns of a file.
    of_numbers = not case.events or not isinstance(case.events[0]["ts"], dt.datetime)
    if case.ties is not None or re.search(r"LIMIT \d+ PER \d+\b(?! [A-Z])", case.query):
        return False  # a stream's time is no number
    if case.ends_late and re.search(r"\d EVENTS|\[mileage\]|SECONDS", case.query):
        return False  # an absence at the end is refused that is not measured on the event time
    if case.ends_late and re.search("SELECT (FIRST|LONGEST)", case.query):
        return False
    return of_numbers and ("CONSUME BY ANY" not in case.query or "PARTITION BY" not in case.query)


def _by_query() -> list[list[Case]]:
    groups: dict[str, list[Case]] = {}
    for case in map(_decided, filter(_is_stream, load_cases())):
        groups.setdefault(case.query, []).append(case)
    return list(groups.values())


def _decided(case: Case) -> Case:
    """A case whose deadlines have all passed, as they have when the time is far behind it."""
    if not case.ends_late:
        return case
    found = evaluate(case.query, case.events, order_by=case.order_by, at_end="closed")
    expected = [as_expected(match) for match in found]
    # A case of an absence before a match can be closed too.
    for match in (one for one in expected if "decided_time" in one):
        match["decided_time"] = _time(match["decided_time"]).replace(tzinfo=None)
    return replace(case, expected=expected)


def _all_streams(spark: Any, folder: Path, groups: list[list[Case]], count: int) -> list[str]:
    """The same of any number of queries, whose rows come in so many files."""
    problems = []
    with settings(spark, SETTINGS):
        for at in range(0, len(groups), _TOGETHER):
            problems += _streams(spark, folder / str(at), groups[at : at + _TOGETHER], at, count)
    return problems


@pytest.mark.long
def test_all_cases(spark: Any, tmp_path: Path) -> None:
    """Over Connect one query in five: it is the same plan."""
    groups = _by_query()
    assert sum(map(len, groups)) > 800
    if ON_SPARK == "connect":
        groups = groups[::5]
    problems = _all_streams(spark, tmp_path, groups, _FILES)
    assert not problems, "\n".join(problems)


@pytest.mark.long
def test_all_cases_that_wait(spark: Any, tmp_path: Path) -> None:
    """Cases whose matches are known only at the end, each a stream with a `finish` of its own. (No
    stream has such a query without a window.)"""
    cases = [case for case in load_cases() if _can_be_stream(case) and not _is_stream(case)]
    cases = [case for case in cases if "WITHIN" in case.query]
    assert len(cases) > 10
    problems = []
    with settings(spark, SETTINGS):
        for number, case in enumerate(cases):
            problems += _finished(spark, tmp_path / str(number), case, number)
    assert not problems, "\n".join(problems)


def _lasting_cases() -> list[Case]:
    return [_decided(case) for stem in ("41", "49") for case in load_cases(stem)]


@pytest.mark.long
def test_all_cases_of_events_that_last(spark: Any, tmp_path: Path) -> None:
    """Over Connect one in five."""
    cases = _lasting_cases()
    assert len(cases) > 70
    if ON_SPARK == "connect":
        cases = cases[::5]
    problems = _all_streams(spark, tmp_path, [[case] for case in cases], _FEW_FILES)
    assert not problems, "\n".join(problems)


@pytest.mark.long
def test_events_that_last(spark: Any, tmp_path: Path) -> None:
    """One whose matches wait for an absence at their end, and one that `finish` ends."""
    first, last = _lasting_cases()[0], _lasting_cases()[-5]
    assert " FIRST " in first.query
    assert last.ends_late
    problems = _all_streams(spark, tmp_path, [[last]], _FEW_FILES)
    with settings(spark, SETTINGS):
        problems += _finished(spark, tmp_path / "finished", first, 1)
    assert not problems, "\n".join(problems)


def _thirty_cases() -> list[Case]:
    cases = [case for case in some_cases(50) if _is_stream(case) and len(case.events) <= 9][:30]
    assert len(cases) == 30
    return cases


@pytest.mark.long
def test_some_queries(spark: Any, tmp_path: Path) -> None:
    """Three that keep different states. In the suite `test_checkpoints_on_spark` has six others,
    LONGEST among them, `test_many_queries_on_streams` eight, and `test_stream_conformance` has
    more, without Spark."""
    cases = _thirty_cases()
    windows = [case for case in cases if case.name.startswith("24")][:1]
    groups = [[case] for case in cases[1:14:8] + windows]
    assert len(groups) == 3
    problems = _all_streams(spark, tmp_path, groups, _FEW_FILES)
    assert not problems, "\n".join(problems)


@pytest.mark.long
def test_streams_that_end(spark: Any, tmp_path: Path) -> None:
    """A stream for each query; what it leaves in its state at the end is run by `finish`. The suite
    has others that end in `test_streams` and `test_many_queries_on_streams`."""
    problems = []
    with settings(spark, SETTINGS):
        for number, case in enumerate(_thirty_cases()):
            problems += _finished(spark, tmp_path / str(number), case, number)
    assert not problems, "\n".join(problems)


def _finished(spark: Any, folder: Path, case: Case, number: int) -> list[str]:
    delay = _write(folder / "in", [[case]], _FEW_FILES)
    compiled = _compiled(case, number)
    found = compiled.match_stream(
        files(spark, folder / "in"),
        watermark=delay,
        allow_unbounded_state=True,
        buckets=_BUCKETS[number % len(_BUCKETS)],
    )
    run(found, folder)
    rest: list[Any] = []
    finish(spark, str(folder / "checkpoint"), found, lambda rows, _: rest.append(rows.toArrow()))
    there = spark.read.parquet(str(folder / "out")).toArrow()
    wire = together({"0": spark.createDataFrame(pa.concat_tables([there, *rest]))})
    return _problems([[case]], [compiled], wire)
