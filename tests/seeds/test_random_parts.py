"""Tables in parts: the same answer, and the same warnings, for any number of threads, and where
ranges of keys are read one after another.

Parts are as small as they can be here, and start in random order. By hand:
`python tests/seeds/test_random_parts.py 0 500`.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pytest
import test_random_parameters
from cases_io import Case, case_stems, load_cases
from celc_runtime import CompiledQuery
from celc_runtime.arrow import pieces
from celc_runtime.arrow.events import ascending, digits, sorting
from celc_runtime.plan.errors import EventError
from celc_runtime.rules import any_query
from celc_runtime.run import parts, prefilter, ranges, threads
from celc_runtime.run.by_keys import Keys, matches_by_keys, why_at_once
from celc_runtime.run.parts import why_one_scan
from celc_runtime.run.walk.adjoining_runs import AdjoiningRunsWalk
from celc_runtime.run.walk.by_definition import DefinitionWalk
from celc_runtime.run.walk.checked import CheckedWalk
from celc_runtime.run.walk.longest_runs import LongestRunsWalk
from celc_runtime.run.walk.window_walks import SelectorWalk
from engines import engines, in_parts, interpreted, only_query, table_of, with_texts_of_any_form
from parameters import rows_table
from queries_over_queries import source_table
from strategies import EVERYTHING, SHORTER, Feature, random_query
from strategies_queries import random_chain
from test_random import TOO_LARGE
from test_random_limits import stream_of
from test_random_queries_over_queries import _OF_ATTRIBUTES as OF_ATTRIBUTES
from test_random_slices import sliced_query

import celc
from celc import CelError
from celc.options import Options

THREADS = (1, 2, 3, 7)

_FEATURES = (EVERYTHING | SHORTER) - {Feature.ANY, Feature.SELECTOR}


@contextmanager
def small_parts(rng: random.Random | None) -> Iterator[Counter[str]]:
    """Parts of a row inside, started in random order (None: by threads); counts those that ran."""
    found: Counter[str] = Counter()

    def side_by_side(calls: Sequence[Callable[[], Any]], count: int) -> list[Any]:
        found["parts"] += len(calls)
        order = [*range(len(calls))]
        if rng is None:
            return threads.side_by_side(calls, count)
        rng.shuffle(order)
        answers = {place: calls[place]() for place in order}
        return [answers[place] for place in range(len(calls))]

    def prefiltered(*arguments: Any) -> Any:
        answer = prefilter.prefiltered(*arguments)
        found["left out"] += answer is not None and answer.size < len(arguments[1])
        return answer

    def of_parts(*arguments: Any) -> Any:
        answer = parts.answer_of_parts(*arguments)
        found["tables" if answer is not None else "errors"] += 1
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digits, "_ROWS_OF_A_SLICE", 2)
        patch.setattr(ascending, "_FEW", 2)
        patch.setattr(sorting, "_FEW", 2)
        patch.setattr(sorting, "is_worth_it", lambda _rows: True)
        patch.setattr(parts, "LEAST_ROWS", 1)
        patch.setattr(parts, "_ROWS_OF_A_PART", 1)
        patch.setattr(ranges, "_MOST_READ", 1e9)
        patch.setattr(ranges, "_LONGEST", 1e9)
        patch.setattr(parts, "side_by_side", side_by_side)
        patch.setattr(any_query, "answer_of_parts", of_parts)
        patch.setattr(any_query, "prefiltered", prefiltered)
        patch.setattr(any_query, "TINY", 0)  # pieces stay until a run reads them
        patch.setattr(any_query, "NOTED_ROWS", 1)
        # Few rows have a run of their own, which has all of them in one batch, and which a process
        # takes after some hundred calls.
        patch.setattr(any_query, "MOST_ROWS_READ", 0)
        for walk in (
            *(AdjoiningRunsWalk, CheckedWalk, DefinitionWalk, LongestRunsWalk, SelectorWalk),
        ):
            patch.setattr(walk, "most_rows", 3)
        yield found


@contextmanager
def leaving_out(query: CompiledQuery) -> Iterator[None]:
    """Rows that cannot matter leave tables of any size, however few they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_query, "LEAST_ROWS", 1)
        patch.setattr(prefilter, "_ROWS_OF_A_THREAD", 1)
        patch.setattr(prefilter, "_ROWS_OF_A_KEY", 0)
        for share in ("_MOST_KEPT", "_MOST_KEPT_OF_ONE_STREAM", "_MOST_KEPT_TO_REMEMBER"):
            patch.setattr(prefilter, share, 1.0)
        query.program.kept.pop("share", None)
        yield


def told(
    query: CompiledQuery, table: pa.Table, count: int, *, compact: bool = False, **more: Any
) -> tuple[Any, list[str]]:
    """The answer, or the text of its error, and the texts of its warnings."""
    match = query.match_compact if compact else query.match_table
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer: Any = match(table, threads=count, **more)
        except EventError as problem:
            answer = str(problem)
    return answer, [str(one.message) for one in caught]


def told_by_keys(query: CompiledQuery, table: pa.Table, threads: int) -> tuple[Any, list[str]]:
    """The same, with one range of keys in memory after another."""
    keys = Keys(query.program)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def read() -> list[pa.RecordBatch]:
            batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=5)
            return batches

        for batch in read():
            keys.add(batch)
        try:
            found = matches_by_keys(query.program, read, keys.ranges(4), threads)
            answer: Any = pa.Table.from_batches(found, query.output_schema)
        except EventError as problem:
            answer = str(problem)
    return answer, [str(one.message) for one in caught]


def _are_same(one: Any, other: Any) -> bool:
    """Whether two answers, or errors, are the same; as texts, where NaN is equal to nothing."""
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())


def compare(query: CompiledQuery, table: pa.Table, note: str, **more: Any) -> str:
    """Compare the answers of all numbers of threads, with rows left out, and by ranges of keys, to
    a table in pieces; returns what came of it."""
    one = told(query, table, THREADS[0], **more)
    if len(table) > 4:
        cuts = [0, len(table) // 4, len(table) // 4 + 1, len(table)]
        table = pa.concat_tables([table[first:end] for first, end in pairwise(cuts)])
    others = [told(query, table, count, **more) for count in THREADS[1:]]
    ways = [(f"{count} threads", other) for count, other in zip(THREADS[1:], others, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "SMALL", 0)
        ways.append(("pieces as they stand", told(query, table, 1, **more)))
    if "max_matches" not in more:
        with leaving_out(query):
            ways += [("rows left out", told(query, table, count, **more)) for count in (1, 2)]
            forms = with_texts_of_any_form(table, random.Random(len(note)))
            ways.append(("rows left out, texts in any form", told(query, forms, 2, **more)))
    if not more and not why_at_once(query.plan):
        ways += [("ranges of keys", told_by_keys(query, table, count)) for count in (1, 2)]
    for way, other in ways:
        assert _are_same(one[0], other[0]), f"{way}: {other[0]}\nfor {one[0]}\n{note} {table}"
        assert one[1] == other[1], f"{way}: {other[1]} for {one[1]}\n{note}"
    if isinstance(one[0], str):
        return "error"
    return "rows" if len(one[0]) else "no rows"


def check_case(rng: random.Random, case: Case) -> str:
    """The events of a case, as they are and in a random order."""
    try:
        with interpreted():
            options = Options(case.order_by, ties=case.ties, at_end=case.at_end)
            query = only_query([*engines(case.query, options).values()][-1])
    except CelError:
        return "refused"
    events = in_parts(query.plan, case.events) if rng.random() < 0.5 else case.events
    found = compare(query, table_of(query.plan, events), case.query)
    return "one scan" if why_one_scan(query.plan) else found


def _check_one(rng: random.Random) -> Iterator[str]:
    text = sliced_query(rng)
    options = Options(("ts",), ties=rng.choice((None, None, "simultaneous")))
    try:
        with interpreted():
            matchers = engines(text, options)
    except CelError:
        return
    query = only_query(rng.choice([*matchers.values()]))
    for _ in range(3):
        table = table_of(query.plan, stream_of(rng, text))
        yield compare(query, table, text)
        yield f"compact {compare(query, table, text, compact=True)}"
        limit = rng.randint(1, 9)
        yield compare(query, table, text, max_matches=limit)


def check_left_out(seed: int) -> Counter[str]:
    """Queries, most of which do not need all rows, and events in order."""
    rng = random.Random(seed)
    text = random_query(rng, _FEATURES, depth=rng.choice((1, 2, 3)))
    if rng.random() < 0.5:
        text = sliced_query(rng)  # half of these have an absence at an end
    at_end = rng.choice(("open", "closed"))
    with small_parts(rng) as found:
        try:
            with interpreted():
                matchers = engines(text, Options(("ts",), at_end=at_end))
        except CelError:
            return found
        query = only_query(rng.choice([*matchers.values()]))
        if query.plan.asks_for_clock and rng.random() < 0.5:
            query = query.with_options(clock=rng.randint(0, 30))
        for _ in range(2):
            table = table_of(query.plan, stream_of(rng, text))
            steps = accumulate(rng.choice((1, 1, 2)) for _ in range(len(table)))
            times = pa.array(steps, pa.int64()).cast(table.schema.field("ts").type)
            rising = table.set_column(table.column_names.index("ts"), "ts", times)
            found[compare(query, rising, f"seed {seed}: {text}")] += 1
            compare(query, rising, f"seed {seed}: {text}", compact=True)
    return found


def _check_chain(rng: random.Random) -> Iterator[str]:
    chain = random_chain(rng)
    try:
        with interpreted():
            matcher = celc.compile(chain.text, order_by="ts", at_end=chain.at_end)
    except CelError as problem:
        codes = {one.code for one in problem.diagnostics if one.severity == "error"}
        assert not codes - TOO_LARGE - OF_ATTRIBUTES, codes
        return
    for query in matcher.queries.values():
        if query.plan.source.parameters is not None:
            query = query.with_parameters(rule=rows_table(query, chain.rules))
        yield compare(query, source_table(query, chain.events), chain.text)


def check_rules(seed: int) -> Counter[str]:
    """A query FOR EACH row of a random table, on some streams."""
    found: Counter[str] = Counter()

    def by_threads(
        rng: random.Random,
        name: str,
        query: Any,
        ties: str | None,
        matchers: Any,
        tally: Any,
        given: Callable[[], tuple[Any, Any]],
        *,
        streams: int,
    ) -> None:
        for _ in range(streams):
            events, rules = given()
            one = only_query(rng.choice([*matchers.values()]))
            one = one.with_parameters(rule=rows_table(one, rules))
            note, table = f"{name}: {query.text}{rules}", table_of(one.plan, events)
            found[f"{compare(one, table, note)} FOR EACH"] += 1
            compare(one, table, note, compact=True)

    with pytest.MonkeyPatch.context() as patch, small_parts(random.Random(seed)) as ran:
        patch.setattr(test_random_parameters, "compare", by_threads)
        test_random_parameters.check(seed, test_random_parameters.Counts())
    return found + ran


def check(seed: int) -> Counter[str]:
    rng = random.Random(seed)
    with small_parts(rng) as ran:
        try:
            found = Counter((_check_chain if rng.random() < 0.2 else _check_one)(rng))
        except Exception as problem:
            problem.add_note(f"seed {seed}")
            raise
    return found + ran


@pytest.mark.parametrize("seeds", [7, pytest.param(12, marks=pytest.mark.long)])
def test_parts_are_together_the_whole(seeds: int) -> None:
    found = sum(map(check, range(seeds)), Counter())
    assert found["rows"] >= 21 * seeds // 24, found
    assert found["compact rows"] >= 4 * seeds // 12 - 2, found
    assert found["tables"] >= 21 * seeds // 12, found


@pytest.mark.parametrize("seeds", [25, pytest.param(500, marks=pytest.mark.long)])
def test_rows_that_cannot_matter_are_left_out(seeds: int) -> None:
    found = sum(map(check_left_out, range(seeds)), Counter())
    assert found["left out"] >= seeds, found
    assert found["rows"] >= seeds // 2, found


def test_starts_beside_events_have_one_order() -> None:
    assert check(277)["compact rows"]  # its matches start at other places than their events


def test_a_clock_that_is_given_stays() -> None:
    assert check(2094)["tables"]  # the rows of a query below end before the events that it reads


def test_null_keys_of_some_ranges_are_counted() -> None:
    assert check(438)["tables"]  # a sort has seen that the other ranges have none


@pytest.mark.parametrize("seeds", [2, pytest.param(8, marks=pytest.mark.long)])
def test_parts_of_queries_for_each_row(seeds: int) -> None:
    found = sum(map(check_rules, range(seeds)), Counter())
    assert found["rows FOR EACH"] >= 4 * seeds // 8, found
    assert found["tables"] >= 11 * seeds // 8, found


@pytest.mark.long
@pytest.mark.parametrize("first", range(100, 500, 100))
def test_parts_of_many_queries_for_each_row(first: int) -> None:
    found = sum(map(check_rules, range(first, first + 100)), Counter())
    assert found["rows FOR EACH"] > 30, found


@pytest.mark.long
@pytest.mark.parametrize("stem", case_stems())
def test_cases_in_parts(stem: str) -> None:
    rng = random.Random(stem)
    with small_parts(rng) as ran:
        for case in load_cases(stem):
            try:
                ran[check_case(rng, case)] += 1
            except Exception as problem:
                problem.add_note(case.name)
                raise
    assert bool(ran["tables"]) == bool(ran["rows"] + ran["no rows"]), ran


@pytest.mark.long
@pytest.mark.parametrize("first", range(100, 1100, 250))
def test_many_parts_are_together_the_whole(first: int) -> None:
    found = sum(map(check, range(first, first + 250)), Counter())
    assert found["rows"] > 300, found


if __name__ == "__main__":
    print(sum(map(check, range(*map(int, sys.argv[1:]))), Counter()))
