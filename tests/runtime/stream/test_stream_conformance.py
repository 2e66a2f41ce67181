"""The conformance cases as streams: in micro-batches of one to three rows, by hand.

The events are given a time of their own, a millisecond apart, and come out of order as far as the
watermark's delay allows. Between micro-batches there is nothing but the bytes of buckets. A case is
a stream by itself; then the cases of a query are partitions of one stream, in one, two and seven
buckets.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from cases_io import Case, case_stems, load_cases
from celc_runtime import CompiledQuery
from celc_runtime.stream.formats import StreamOptions
from engines import Event, Row, answer_of, engines, interpreted, only_query, table_of
from match_ids import ids_of
from places import CASES
from reference import difference
from streams_by_hand import EVENT_TIME, instant, streamed, timed

from celc.options import Options

_FOLDERS = tuple(CASES / name for name in ("language", "found", "papers"))
_STEMS = [(folder, stem) for folder in _FOLDERS for stem in case_stems(folder)]

# A window of time, or a length of an absence, without an attribute. Streams here are ordered by one
# that the cases do not have.
_BY_ORDER = re.compile(r"(?:WITHIN\s*\[?|FOR)(?:\s*[\d.]+\s+(?!EVENT)[A-Z]+\b)+\s*(?:\]|$|[A-Z;])")


def _queries(folder: Path, stem: str) -> dict[str, list[Case]]:
    """The cases of each query that a stream can run."""
    found: dict[str, list[Case]] = {}
    for case in load_cases(stem, folder):
        consumes_all = "CONSUME BY ANY" in case.query and "PARTITION BY" in case.query
        # Simultaneous events, those that last, matches that are decided late, and rows in a time
        # have tests of their own.
        in_time = re.search(r" PER \d", case.query) is not None
        has_own = case.ties is not None or case.lasts or case.ends_late or in_time
        if not consumes_all and not _BY_ORDER.search(case.query) and not has_own:
            found.setdefault(case.query, []).append(case)
    return found


def _problems(query: str, cases: Iterable[Case]) -> Iterator[str]:
    with interpreted():
        compiled = engines(timed(query), Options((EVENT_TIME,)))
    for case in cases:
        events = [
            {**event, EVENT_TIME: instant(1 + number)} for number, event in enumerate(case.events)
        ]
        for engine, matcher in compiled.items():
            query_of_case = only_query(matcher)
            if query_of_case.plan.is_of_matches:
                query_of_case = query_of_case.with_options(match_id=True)
            rows = streamed(query_of_case, events, random.Random(case.name))
            answer = answer_of(query_of_case, rows, events)
            told = difference(answer, case.expected) or _other_ids(query_of_case, rows, events)
            if told:
                yield f"{case.name} {engine}: {told}\n{case.query}"


def _other_ids(query: CompiledQuery, rows: Sequence[Row], events: Sequence[Event]) -> str:
    """What is wrong with the ids of a stream's rows: those of a table are wanted."""
    if query.plan.answer.match_id is None:
        return ""
    wanted = ids_of(query.match_table(table_of(query.plan, events)).to_pylist())
    return "" if ids_of(rows) == wanted else f"ids {ids_of(rows)} and not {wanted}"


_EACH = 32
"""One query in so many is in the suite, each by one case."""

# Of what there is little of, one each: LIMIT is in no case, and has its own test.
_ALWAYS = (
    ("06-selectors", "SELECT LAST"),
    ("07-nested-selectors", "NXT("),
    ("07-nested-selectors", "MAX("),
    ("08-within", "EVENTS"),
    ("08-within", "[ts]"),
    ("10-consume-by", "CONSUME BY ANY"),
    ("10-consume-by", "CONSUME BY PARTITION"),
    ("14-not-between", "; !"),
    ("24-local-windows", "; !"),
    ("25-absence-before", "WITHIN 3 [ts]"),
    ("25-absence-before", "WITHIN 1 EVENTS"),
    ("25-absence-before", "b.id = x.id"),
    ("correlation", "NXT("),
    ("17-prev-prior", "PREV("),
)


def test_some_queries() -> None:
    """Of every file of cases a few."""
    problems: list[str] = []
    compared = 0
    met: set[tuple[str, str]] = set()
    for folder, stem in _STEMS:
        words = [word for of_stem, word in _ALWAYS if of_stem == stem]
        for number, (query, cases) in enumerate(_queries(folder, stem).items()):
            wanted = [word for word in words if word in query and (stem, word) not in met]
            if number % _EACH and not wanted:
                continue
            met.update((stem, word) for word in words if word in query)
            compared += 1
            problems += _problems(query, cases[compared % len(cases) :][:1])
    assert not problems, "\n".join(problems)
    assert met == {*_ALWAYS}
    assert compared >= 25


@pytest.mark.long
@pytest.mark.parametrize(("folder", "stem"), _STEMS, ids=lambda part: Path(part).name)
def test_all_queries(folder: Path, stem: str) -> None:
    problems: list[str] = []
    for query, cases in _queries(folder, stem).items():
        problems += _problems(query, cases)
    assert not problems, "\n".join(problems)


# --- cases as partitions --------------------------------------------------------------------------

_BUCKETS = (1, 2, 7)


def _with_case_as_key(text: str) -> str:
    """A query of which each partition is one of a case."""
    head, body = text[: text.index("SELECT")], text[text.index("SELECT") :]
    head = re.sub(r"(EVENT\s+\w+\s*{[^}]*?)\s*}", r"\1, part: STRING }", timed(head))
    body, count = re.subn(r"PARTITION BY ", r"\g<0>part, ", body)
    if not count:
        body = body.replace("CONSUME BY ANY", "CONSUME BY PARTITION")  # there is only one
        clauses = r"(?=\s+(?:WITHIN|CONSUME|LIMIT)\b(?!\[)|\s*\Z)"
        body = re.sub(clauses, " PARTITION BY part", body, count=1)
    return head + body


_COPIES = 2
"""How often each case is in the stream, each time as a partition of its own."""


def _interleaved(cases: Iterable[Case], rng: random.Random) -> list[dict[str, object]]:
    """The events of all cases in one stream, those of a case in their order."""
    left = [
        [{**event, "part": f"{case.name} {copy}"} for event in case.events]
        for case in cases
        for copy in range(_COPIES)
    ]
    turns = [number for number, events in enumerate(left) for _ in events]
    rng.shuffle(turns)
    chosen = [left[number].pop(0) for number in turns]
    return [{**event, EVENT_TIME: instant(1 + time)} for time, event in enumerate(chosen)]


def _problems_together(query: str, cases: list[Case], buckets: int) -> Iterator[str]:
    rng = random.Random(f"{query} {buckets}")
    with interpreted():
        compiled = engines(_with_case_as_key(query), Options((EVENT_TIME,)))
    matcher = only_query(rng.choice([*compiled.values()]))
    events = _interleaved(cases, rng)
    rows = streamed(matcher, events, rng, options=StreamOptions({}, buckets=buckets))
    answers: dict[str, list[dict[str, object]]] = {}
    for row in answer_of(matcher, rows, events):
        answers.setdefault(row["partition"].pop("part"), []).append(row)
    for case in cases:
        copies = [answers.get(f"{case.name} {copy}", []) for copy in range(_COPIES)]
        for told in filter(None, (difference(answer, case.expected) for answer in copies)):
            yield f"{case.name} in {buckets} buckets: {told}\n{case.query}"


_EACH_TOGETHER = 40
"""One query in so many is in the suite as a stream of its cases."""


def test_cases_of_some_queries_as_partitions_of_one_stream() -> None:
    problems: list[str] = []
    compared = 0
    for folder, stem in _STEMS:
        for number, (query, cases) in enumerate(_queries(folder, stem).items()):
            if (number + len(stem)) % _EACH_TOGETHER:
                continue
            problems += _problems_together(query, cases, _BUCKETS[compared % len(_BUCKETS)])
            compared += 1
    assert not problems, "\n".join(problems)
    assert compared >= 10


@pytest.mark.long
@pytest.mark.parametrize("buckets", _BUCKETS)
@pytest.mark.parametrize(("folder", "stem"), _STEMS, ids=lambda part: Path(part).name)
def test_all_cases_as_partitions_of_one_stream(folder: Path, stem: str, buckets: int) -> None:
    problems: list[str] = []
    for query, cases in _queries(folder, stem).items():
        problems += _problems_together(query, cases, buckets)
    assert not problems, "\n".join(problems)
