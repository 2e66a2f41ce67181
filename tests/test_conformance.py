"""The conformance cases through every way to run a query on one machine, and through Spark."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from cases_io import Case, case_stems, load_cases, load_errors
from engines import answers, engines, interpreted, only_query, with_times
from reference import difference
from spark_routes import table

import celc
from celc import CelError
from celc.cli import main
from celc.options import Options

# How many queries (and cases) each file has, so that a file that lost some does not go unnoticed.
_SIZES = {
    "01-sequence-or": (11, 44),
    "02-iteration": (14, 56),
    "03-labels": (11, 44),
    "04-select": (6, 24),
    "05-unary-filters": (24, 96),
    "06-selectors": (24, 96),
    "07-nested-selectors": (13, 52),
    "08-within": (15, 60),
    "09-partition-by": (6, 24),
    "10-consume-by": (7, 28),
    "11-and": (4, 16),
    "12-all": (7, 28),
    "13-unless": (11, 44),
    "14-not-between": (10, 40),
    "15-correlation": (16, 64),
    "16-correlated-selectors": (12, 48),
    "17-prev-prior": (7, 28),
    "18-aggregate-filters": (8, 32),
    "19-correlated-negation": (4, 16),
    "20-scopes": (10, 40),
    "21-prev-in-or": (4, 16),
    "24-local-windows": (55, 55),
}


def _by_query(stem: str) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in load_cases(stem):
        found.setdefault(case.query, []).append(case)
    return found


def test_every_file_is_counted() -> None:
    """By the file; `test_python_api` counts what is in it."""
    assert case_stems() == [*_SIZES]
    assert sum(cases for _, cases in _SIZES.values()) == 951


@pytest.mark.parametrize("stem", case_stems())
def test_python_api(stem: str) -> None:
    """`match_table` and `match_arrow` over random cuts, by both engines."""
    rng = random.Random(stem)
    problems = []
    queries = compared = 0
    for query, cases in _by_query(stem).items():
        queries += 1
        with interpreted():
            compiled = engines(query, Options(cases[0].order_by))
        for case in cases:
            compared += 1
            for engine, matcher in compiled.items():
                events = with_times(only_query(matcher).plan, case.events)
                for route, answer in answers(only_query(matcher), events, rng).items():
                    found = difference(answer, case.expected)
                    if found:
                        problems.append(f"{case.name} {engine} {route}: {found}")
    assert not problems, "\n".join(problems)
    assert (queries, compared) == _SIZES[stem]


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(slice(1), id="one"),
        pytest.param(slice(1, None), id="others", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("stem", case_stems())
def test_command_line(stem: str, part: slice, tmp_path: Path) -> None:
    """`celc run --format json` over a file of events: the longest answer of each query, or others.

    The other cases differ in their events, which `test_python_api` sees to.
    """
    problems = []
    for number, (query, cases) in enumerate(_by_query(stem).items()):
        source = tmp_path / f"q{number}.cel"
        source.write_text(query)
        for case in sorted(cases, key=lambda case: -len(case.expected))[part]:
            events = tmp_path / "events.jsonl"
            events.write_text("".join(json.dumps(event) + "\n" for event in case.events))
            order = ["--order-by", ",".join(case.order_by)] if case.order_by else []
            code, lines = _run(["run", str(source), str(events), "--format", "json", *order])
            assert code == 0, case.name
            found = difference(
                [{k: v for k, v in json.loads(line).items() if k in _KEYS} for line in lines],
                case.expected,
            )
            if found:
                problems.append(f"{case.name}: {found}")
    assert not problems, "\n".join(problems)


def test_errors() -> None:
    """The queries that are errors are refused, and nothing else of the file is."""
    cases = load_errors()
    assert len(cases) >= 5
    for case in cases:
        with pytest.raises(CelError):
            celc.compile(case.query, order_by=case.order_by)


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
    # Conditions across labels, and on a label from outside.
    *(("15", 4), ("19", 2)),
    # PREV, PRIOR and sums.
    *(("17", 1), ("17", 5), ("18", 1), ("21", 2)),
    # Windows inside a formula: in a `+`, and below `!`.
    *(("24", 7), ("24", 10)),
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


# Queries without PARTITION BY, whose cases are parts of one table all the same: of each way to
# decide conditions across labels.
_IN_PARTS = (("15", 13), ("16", 7), ("17", 1), ("19", 2))


def test_partitions_on_spark(spark: Any) -> None:
    """The cases of one query in one job, their names being a further key of its partitions.

    Not CONSUME BY ANY, which looks at the whole stream: its cases run one by one.
    """
    problems = []
    queries = [
        item for stem in ("09", "10") for item in _by_query(stem).items() if "PARTITION" in item[0]
    ]
    assert len(queries) == 8
    queries += [list(_by_query(stem).items())[place] for stem, place in _IN_PARTS]
    for query, cases in queries:
        together = "CONSUME BY ANY" not in query
        groups = [cases] if together else [[case] for case in cases]
        text = _by_case(query) if together else query
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


def _by_case(query: str) -> str:
    """The query with parts of their own for the events of each case."""
    text = query.replace("ts: LONG", "ts: LONG, `case`: STRING")
    if "PARTITION BY" in text:
        text = text.replace("PARTITION BY [name]", "PARTITION BY name")
        return text.replace("PARTITION BY ", "PARTITION BY `case`, ")
    return f"{text}\nPARTITION BY `case`"


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
