"""The conformance cases through every way to run a query on one machine, and through Spark.

What this version does not support must be refused with nothing but `not-supported`: a wrong answer
would be worse than none.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from cases_io import Case, case_stems, load_cases
from engines import answers, engines, interpreted, only_query
from reference import difference
from spark_routes import table

import celc
from celc.cli import main
from celc.pipeline import Options

# How many queries (and cases) of each file compile. Written out, so that neither a file that lost
# cases nor a query that came to be refused goes unnoticed.
_COMPILED = {
    "01": (11, 44),
    "02": (14, 56),
    "03": (11, 44),
    "04": (6, 24),
    "05": (24, 96),
    "06": (24, 96),
    "07": (13, 52),
    "08": (15, 60),
    "09": (6, 24),
    "10": (7, 28),
    "11": (4, 16),
    "12": (7, 28),
    "13": (11, 44),
    "14": (10, 40),
    # COUNT, MIN and MAX against constants; not SUM, AVG or one function against another.
    "18": (3, 12),
}
# Files of which nothing is refused.
_WHOLE = tuple(f"{number:02}" for number in range(1, 15))
# Files in which each query compares labels with one another, or looks at PREV or PRIOR.
_REFUSED = ("15", "16", "17", "19", "20", "21")


def _by_query(stem: str) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in load_cases(stem):
        found.setdefault(case.query, []).append(case)
    return found


def _is_refused(query: str) -> bool:
    errors = {d.code for d in celc.check(query) if d.severity == "error"}
    assert errors <= {"not-supported"}, f"{errors}: {query}"
    return bool(errors)


def _whole(prefixes: tuple[str, ...] = _WHOLE) -> list[str]:
    return [stem for stem in case_stems() if stem.startswith(prefixes)]


def test_every_file_is_counted() -> None:
    """Each file is one of those that compile in part or in full, or one that is refused."""
    assert {stem[:2] for stem in case_stems()} == {*_COMPILED, *_REFUSED}
    assert not {*_COMPILED} & {*_REFUSED}
    assert {*_WHOLE} <= {*_COMPILED}


@pytest.mark.parametrize("stem", case_stems())
def test_python_api(stem: str) -> None:
    """`match_table` and `match_arrow` over random cuts, by both engines."""
    rng = random.Random(stem)
    problems = []
    queries = compared = 0
    for query, cases in _by_query(stem).items():
        if _is_refused(query):
            assert not stem.startswith(_WHOLE), query
            continue
        queries += 1
        with interpreted():
            compiled = engines(query, Options())
        for case in cases:
            compared += 1
            for engine, matcher in compiled.items():
                for route, answer in answers(only_query(matcher), case.events, rng).items():
                    found = difference(answer, case.expected)
                    if found:
                        problems.append(f"{case.name} {engine} {route}: {found}")
    assert not problems, "\n".join(problems)
    wanted = _COMPILED.get(stem[:2], (0, 0))
    assert queries >= wanted[0], f"{queries} of {wanted[0]} queries compiled"
    assert compared >= wanted[1], f"{compared} of {wanted[1]} cases compared"


@pytest.mark.parametrize("stem", _whole())
def test_command_line(stem: str, tmp_path: Path) -> None:
    """`celc run --format json` over a file of events."""
    problems = []
    for number, (query, cases) in enumerate(_by_query(stem).items()):
        source = tmp_path / f"q{number}.cel"
        source.write_text(query)
        for case in cases:
            events = tmp_path / "events.jsonl"
            events.write_text("".join(json.dumps(event) + "\n" for event in case.events))
            code, lines = _run(["run", str(source), str(events), "--format", "json"])
            assert code == 0, case.name
            found = difference(
                [{k: v for k, v in json.loads(line).items() if k in _KEYS} for line in lines],
                case.expected,
            )
            if found:
                problems.append(f"{case.name}: {found}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("stem", ["15", "17", "18"])
def test_command_line_refuses(stem: str, tmp_path: Path) -> None:
    """What is not supported gives exit status 1 and no output."""
    query, (case, *_) = next((q, c) for q, c in _by_query(stem).items() if _is_refused(q))
    source, events = tmp_path / "q.cel", tmp_path / "events.jsonl"
    source.write_text(query)
    events.write_text("".join(json.dumps(event) + "\n" for event in case.events))
    assert _run(["run", str(source), str(events), "--format", "json"]) == (1, [])


_KEYS = ("partition", "start", "end", "labels")


def _run(arguments: list[str]) -> tuple[int, list[str]]:
    with interpreted():
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = main(arguments)
        out.flush()
        return code, out.buffer.getvalue().decode().splitlines()  # type: ignore[attr-defined]


_BY_NUMBA = (
    *(("01", 2), ("02", 3), ("02", 5), ("05", 10), ("08", 7), ("10", 1)),
    # A selector on the whole formula, and two nested ones: contexts.
    *(("06", 10), ("07", 6)),
    # NXT, LAST and MAX in a window, each of which chooses in its own way.
    *(("08", 4), ("08", 11), ("08", 13)),
    # ALL, UNLESS, and a condition on a count.
    *(("12", 3), ("13", 4), ("18", 5)),
)


def test_compiled_by_numba() -> None:
    """A few queries of each kind as users run them: with the generated code compiled."""
    problems = []
    for stem, place in _BY_NUMBA:
        query, cases = list(_by_query(stem).items())[place]
        matcher = celc.compile(query)
        for case in cases:
            for route, answer in answers(
                only_query(matcher), case.events, random.Random(case.name)
            ).items():
                found = difference(answer, case.expected)
                if found:
                    problems.append(f"{case.name} {route}: {found}")
    assert not problems, "\n".join(problems)


def test_partitions_on_spark(spark: Any) -> None:
    """Cases with PARTITION BY; those of one query in one job, their names being a further key.

    Not CONSUME BY ANY, which looks at the whole stream: its cases run one by one.
    """
    problems = []
    queries = 0
    for stem in ("09", "10"):
        for query, cases in _by_query(stem).items():
            if "PARTITION BY" not in query:
                continue
            queries += 1
            together = "CONSUME BY ANY" not in query
            groups = [cases] if together else [[case] for case in cases]
            text = query.replace("PARTITION BY [name]", "PARTITION BY name")
            if together:
                text = text.replace("PARTITION BY ", "PARTITION BY `case`, ")
                text = text.replace("ts: LONG", "ts: LONG, `case`: STRING")
            matcher: Any = celc.compile(text, order_by="ts", tiebreak="row")
            for group in groups:
                tables = [
                    table(case.events).append_column("case", [[case.name] * len(case.events)])
                    for case in group
                ]
                events = pa_concat(tables)
                rows = spark.createDataFrame(events).transform(matcher.match).collect()
                for case in group:
                    answer = [
                        _expected_form(row, matcher)
                        for row in rows
                        if not together or row["case"] == case.name
                    ]
                    found = difference(answer, case.expected)
                    if found:
                        problems.append(f"{case.name}: {found}")
    assert not problems, "\n".join(problems)
    assert queries >= 8


def pa_concat(tables: list[Any]) -> Any:
    """Several tables of one schema as one, with row numbers that run on."""
    import pyarrow as pa

    whole = pa.concat_tables(tables)
    return whole.set_column(
        whole.schema.get_field_index("row"), "row", pa.array(range(len(whole)), pa.int64())
    )


def _expected_form(row: Any, matcher: Any) -> dict[str, Any]:
    plan = only_query(matcher).plan
    return {
        "partition": {name: row[name] for name in plan.partition_by if name != "case"},
        "start": row["start_pos"],
        "end": row["end_pos"],
        "labels": {label.name: [e["pos"] for e in row[label.name]] for label in plan.labels},
    }
