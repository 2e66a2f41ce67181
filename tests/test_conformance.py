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

# Files whose queries all compile, but for those with a selector.
_SUPPORTED = ("01", "02", "03", "04", "05", "08", "09", "10")
_SELECTORS = ("SELECT LAST", "SELECT NXT", "SELECT MAX", "SELECT STRICT")


def _by_query(stem: str) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in load_cases(stem):
        found.setdefault(case.query, []).append(case)
    return found


def _is_refused(query: str) -> bool:
    errors = {d.code for d in celc.check(query) if d.severity == "error"}
    assert errors <= {"not-supported"}, f"{errors}: {query}"
    return bool(errors)


@pytest.mark.parametrize("stem", case_stems())
def test_python_api(stem: str) -> None:
    """`match_table` and `match_arrow` over random cuts, by both engines."""
    rng = random.Random(stem)
    problems = []
    for query, cases in _by_query(stem).items():
        refused = _is_refused(query)
        if stem.startswith(_SUPPORTED):
            assert refused == any(word in query for word in _SELECTORS), query
        if refused:
            continue
        with interpreted():
            compiled = engines(query, Options())
        for case in cases:
            for engine, matcher in compiled.items():
                for route, answer in answers(only_query(matcher), case.events, rng).items():
                    found = difference(answer, case.expected)
                    if found:
                        problems.append(f"{case.name} {engine} {route}: {found}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("stem", [s for s in case_stems() if s.startswith(_SUPPORTED)])
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
            if any(word in query for word in _SELECTORS):
                assert code == 1
                assert not lines
                continue
            assert code == 0, case.name
            found = difference(
                [{k: v for k, v in json.loads(line).items() if k in _KEYS} for line in lines],
                case.expected,
            )
            if found:
                problems.append(f"{case.name}: {found}")
    assert not problems, "\n".join(problems)


_KEYS = ("partition", "start", "end", "labels")


def _run(arguments: list[str]) -> tuple[int, list[str]]:
    with interpreted():
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = main(arguments)
        out.flush()
        return code, out.buffer.getvalue().decode().splitlines()  # type: ignore[attr-defined]


def test_compiled_by_numba() -> None:
    """A few queries of each kind as users run them: with the generated code compiled."""
    problems = []
    for stem, place in (("01", 2), ("02", 3), ("02", 5), ("05", 10), ("08", 7), ("10", 1)):
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
    for stem in ("09", "10"):
        for query, cases in _by_query(stem).items():
            if "PARTITION BY" not in query or _is_refused(query):
                continue
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
