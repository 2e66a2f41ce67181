"""The conformance cases through every way to run a query on one machine.

`on_spark` has the ways through Spark.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases_io import Case, case_stems, load_cases, load_refused
from engines import answers, engines, interpreted, only_query, tier
from reference import difference

import celc
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.interfaces.cli import main
from celc.options import Options

pytestmark = pytest.mark.filterwarnings("ignore:.*undecided")  # tests/runtime/run has its tests

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
    "22-quantifiers": (60, 60),
    "23-time-conditions": (61, 61),
    "24-local-windows": (65, 65),
    "25-absence-before": (64, 64),
    "26-absence-after": (60, 65),
    "27-simultaneous": (61, 62),
    "33-per-start": (60, 60),
    "34-own-aggregates": (26, 26),
    "35-boolean-conditions": (11, 11),
    "36-nth": (7, 7),
    "37-decimals": (78, 79),
    "40-first": (154, 157),
    "41-lasting": (46, 47),
    "43-some-every": (50, 57),
    "46-limit-per": (29, 30),
    "48-joined-texts": (15, 15),
    "49-lasting-ends": (19, 35),
    "51-states-as-met": (5, 5),
    "52-late-starts": (20, 20),
    "53-instants-per-start": (11, 11),
    "56-lasting-choices": (23, 25),
}
_REFUSED = 76
"""How many queries of all files are errors."""


def _by_query(stem: str) -> dict[tuple[str, Options], list[Case]]:
    """The cases of each query, with the options of its calls."""
    found: dict[tuple[str, Options], list[Case]] = {}
    for case in load_cases(stem):
        found.setdefault((case.query, _options(case)), []).append(case)
    return found


def _options(case: Case) -> Options:
    return Options(case.order_by, ties=case.ties, at_end=case.at_end)


def test_every_file_is_counted() -> None:
    """By the file; `test_python_api` counts what is in it."""
    assert case_stems() == [*_SIZES]
    assert sum(cases for _, cases in _SIZES.values()) == 1858


@pytest.mark.parametrize("each", [6, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("stem", case_stems())
def test_python_api(stem: str, each: int) -> None:
    """`match_table` and `match_arrow` over random cuts: all queries by the engine that is chosen
    for them, and one in so many by the general one too. In the suite cases take turns."""
    rng = random.Random(stem)
    problems = []
    queries = compared = 0
    for (query, options), cases in _by_query(stem).items():
        queries += 1
        with interpreted():
            compiled = engines(query, options, general=queries % each == 0)
        for case in cases:
            compared += 1
            by = "" if each == 1 else ("match_table", "match_arrow")[compared % 2]
            for engine, matcher in compiled.items():
                for route, answer in answers(only_query(matcher), case.events, rng, by=by).items():
                    found = difference(answer, case.expected)
                    if found:
                        problems.append(f"{case.name} {engine} {route}: {found}")
    assert not problems, "\n".join(problems)
    assert (queries, compared) == _SIZES[stem]


@pytest.mark.each(3, values=False)
@pytest.mark.parametrize("each", [12, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("stem", case_stems())
def test_small_inputs_in_python(stem: str, each: int) -> None:
    """As users run them first: no kernel is compiled for a few events. Each twelfth query of
    each third file; so do most of the other tests."""
    problems = []
    for (query, options), cases in [*_by_query(stem).items()][::each]:
        with tier():
            problems += _differences(query, options, cases)
    assert not problems, "\n".join(problems)


def test_queries_that_are_errors() -> None:
    refused = load_refused()
    assert len(refused) == _REFUSED
    for case in refused:
        with pytest.raises(CelError) as caught:
            compile_source(Source("query.cel", case.query), _options(case))
        assert any(found.severity == "error" for found in caught.value.diagnostics), case.name
        assert all(found.help for found in caught.value.diagnostics), case.name


@pytest.mark.each(4, values=False)
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(slice(1), id="one"),
        pytest.param(slice(None), id="all", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("stem", case_stems())
def test_command_line(stem: str, part: slice, tmp_path: Path) -> None:
    """`celc run --format json` over a file of events: the longest answer of each ninth query in
    each fourth file, or all cases.

    The others differ in their queries and events, which `test_python_api` sees to.
    """
    problems = []
    for number, ((query, _), cases) in enumerate(_by_query(stem).items()):
        if part.stop and number % 9:
            continue
        source = tmp_path / f"q{number}.cel"
        source.write_text(query)
        for case in sorted(cases, key=lambda case: -len(case.expected))[part]:
            events = tmp_path / "events.jsonl"
            events.write_text(
                "".join(json.dumps(event, default=str) + "\n" for event in case.events)
            )
            order = [f"--order-by={','.join(case.order_by)}"] if case.order_by else []
            order += [f"--ties={case.ties}"] if case.ties else []
            order += [f"--at-end={case.at_end}"] if case.at_end != "open" else []
            code, lines = _run(["run", str(source), str(events), "--format", "json", *order])
            assert code == 0, case.name
            found = difference(
                [_row_of(case, json.loads(line)) for line in lines],
                case.expected,
            )
            if found:
                problems.append(f"{case.name}: {found}")
    assert not problems, "\n".join(problems)


_KEYS = ("partition", "start", "end", "labels", "decided_time")


def _row_of(case: Case, line: dict[str, Any]) -> dict[str, Any]:
    """A line of the output in the form of the cases."""
    keys = (*_KEYS, "values") if any("values" in one for one in case.expected) else _KEYS
    row = {key: line[key] for key in keys if key in line}
    if isinstance(row.get("decided_time"), str):
        row["decided_time"] = dt.datetime.fromisoformat(row["decided_time"])
    return row


def _run(arguments: list[str]) -> tuple[int, list[str]]:
    with interpreted():
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = main(arguments)
        out.flush()
        return code, out.buffer.getvalue().decode().splitlines()  # type: ignore[attr-defined]


# A query of each form of generated code: how its update runs, and how matches are listed.
_EACH_FORM = (
    # Branch-free: all matches, in runs (with a duration), the latest and the earliest in a window,
    # checked ones (by sums over what came before), and those that the definition finds.
    *(("08", 7), ("23", 48), ("08", 11), ("08", 13), ("17", 5), ("20", 8)),
    # Straight-line: all matches, consumed, checked ones under a selector, and by the definition.
    *(("10", 1), ("16", 9), ("25", 7)),
    # With keys: all matches, and checked ones, with a correlated absence.
    *(("15", 0), ("19", 3)),
    # The general engine: nested selectors, which are contexts, checked matches, and an absence in
    # a window among simultaneous events, which the definition finds.
    *(("07", 6), ("16", 11), ("27", 38)),
    # Longest runs of events, read off the events.
    ("33", 5),
)
_MORE_FORMS = (
    *(("01", 2), ("02", 3), ("02", 5), ("05", 10), ("06", 10), ("08", 4), ("12", 3), ("13", 4)),
    *(("15", 4), ("17", 1), ("18", 1), ("18", 5), ("19", 2), ("20", 0), ("21", 2)),
    # Rounds whose labels are compared, and PREV over them.
    *(("22", 7), ("22", 16)),
    # The absolute value of a difference of times.
    ("23", 27),
    # Windows inside a formula: in a `+`, in rounds, and below `!`.
    *(("24", 7), ("24", 11), ("24", 12)),
    # Absences before a match: of a part, of a pair, and of an event that is compared.
    *(("25", 5), ("25", 6), ("25", 11)),
    # Absences after a match: counted from its end, from its start, and of a compared event.
    *(("26", 0), ("26", 11), ("26", 29)),
)


@pytest.mark.parametrize(
    "places",
    [
        pytest.param(_EACH_FORM[1::8], id="some forms"),
        pytest.param(_EACH_FORM, id="each form", marks=pytest.mark.long),
        pytest.param(_MORE_FORMS, id="more", marks=pytest.mark.long),
    ],
)
def test_compiled_by_numba(places: tuple[tuple[str, int], ...]) -> None:
    """As users run them: with the generated code compiled, and where Python and machine code take
    turns."""
    problems = []
    for stem, place in places:
        (query, options), cases = list(_by_query(stem).items())[place]
        problems += _differences(query, options, cases)
        with tier(random.Random(query)):
            problems += _differences(query, options, cases)
    assert not problems, "\n".join(problems)


def _differences(query: str, options: Options, cases: list[Case]) -> Iterator[str]:
    """What a query answers otherwise than its cases want."""
    order_by, ties, at_end = options.order_by, options.ties, options.at_end
    matcher = celc.compile(query, order_by=order_by, ties=ties, at_end=at_end)
    for case in cases:
        rng = random.Random(case.name)
        for route, answer in answers(only_query(matcher), case.events, rng).items():
            found = difference(answer, case.expected)
            if found:
                yield f"{case.name} {route}: {found}"


@pytest.mark.long
def test_each_form_is_compiled_by_numba() -> None:
    """No two of the queries are of one form, and they are as many as there are in the cases."""
    forms = [_form(list(_by_query(stem).values())[place]) for stem, place in _EACH_FORM]
    assert len({*forms}) == len(forms)
    everywhere = {_form(cases) for stem in case_stems() for cases in _by_query(stem).values()}
    assert everywhere == {*forms}


def _form(cases: list[Case]) -> tuple[type, type]:
    source = Source("query.cel", cases[0].query)
    (stages,) = compile_source(source, _options(cases[0])).queries
    return type(stages.program.update), type(stages.program.listing)
