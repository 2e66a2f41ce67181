"""Random queries in random slices of time: each slice against the rows of the whole answer that the
reference knows then, so that the slices are together the whole. Slices are batches and streams: a
batch and then a stream, and a stream behind another.

By hand: `python tests/seeds/test_random_slices.py 0 500`.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, case_stems, load_cases
from celc_runtime import CompiledQuery
from celc_runtime.chain.columns import levels_of
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.run.feeding import read_all
from celc_runtime.stream.formats import StreamOptions
from engines import engines, in_parts, interpreted, only_query, table_of
from parameters import rows_table
from queries_over_queries import batches_for, source_table
from reference import known_time
from strategies import EVERYTHING, SHORTER, Feature, random_query
from strategies_absences import branching_absence_query, correlated_absence_query
from strategies_queries import random_chain
from streams_by_hand import EVENT_TIME, SlicedStream, in_milliseconds, instant, streamed_table
from test_random import TOO_LARGE
from test_random_limits import stream_of
from test_random_queries_over_queries import _OF_ATTRIBUTES as OF_ATTRIBUTES

import celc
from celc import CelError
from celc.options import Options

_PLAIN = (EVERYTHING | SHORTER | {Feature.LOCAL_WINDOW}) - {Feature.ANY, Feature.LIMIT}
_ACROSS = {Feature.CORRELATION, Feature.PREV, Feature.PRIOR, Feature.OUTER, Feature.AGGREGATE}
_ABSENT = frozenset({Feature.NOT_BEFORE, Feature.NOT_AFTER})

Bounds = tuple[Any, Any]


def sliced_query(rng: random.Random) -> str:
    """A random query of any kind that has slices, and many that have none."""
    kind = rng.choice(("plain", "across", "start", "absent", "absent", "correlated", "branching"))
    if kind == "correlated":
        text = correlated_absence_query(rng)
    elif kind == "branching":
        text = branching_absence_query(rng)
    else:
        more = {"start": frozenset({Feature.PER_START}), "absent": _ABSENT}.get(kind, frozenset())
        less = {Feature.SELECTOR, Feature.CONSUME_BY} if rng.random() < 0.7 else set()
        features = (_PLAIN if kind == "across" else _PLAIN - _ACROSS) - less
        text = random_query(rng, features | more, depth=rng.choice((1, 2, 3)))
    text = re.sub(r"LIMIT \d+\n", "", text.replace("SELECT ANY ", "SELECT "))
    if "WITHIN" not in text.rsplit("WHERE", 1)[1] and rng.random() < 0.5:
        rest = r"((CONSUME BY \w+\n)?(LIMIT .*\n)?(PER \w+\n)?)\Z"
        text = re.sub(rest, rf"WITHIN {rng.randint(0, 6)} [ts]\n\1", text, count=1)
    if rng.random() < 0.2 and "TOTAL" not in text:
        select = rng.choice(("SELECT COLLAPSED * FROM S", "SELECT TOTAL COUNT(*) AS n FROM S"))
        text = re.sub(r"SELECT .* FROM S", select, text)
    return text


def cuts_of(rng: random.Random, times: Iterable[Any], step: Any = None) -> list[Bounds]:
    """Two to six slices that are together all time: cut at events, between them and behind. step:
    how far from an event; None: by the type of the times."""
    known = sorted({*times})
    if not known:
        return []
    if step is not None:
        pass
    elif isinstance(known[0], dt.date):
        step = dt.timedelta(1) if not isinstance(known[0], dt.datetime) else dt.timedelta(seconds=1)
    elif isinstance(known[0], float):
        step = 0.5
    else:
        step = 1
    drawn = {rng.choice(known) + rng.randint(-1, 3) * step for _ in range(rng.randint(1, 5))}
    cuts = sorted(drawn)
    return [*zip([None, *cuts], [*cuts, None], strict=True)]


def _rows(answer: pa.Table | Iterable[pa.RecordBatch], query: CompiledQuery) -> list[Any]:
    if not isinstance(answer, pa.Table):
        batches = [*answer]
        schema = batches[0].schema if batches else query.output_schema
        answer = pa.Table.from_batches(batches, schema)
    rows: list[Any] = answer.to_pylist()
    return rows


def _counted(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


def compare(
    rng: random.Random,
    text: str,
    query: CompiledQuery,
    table: pa.Table,
    batches: Iterable[pa.RecordBatch] | None,
) -> str:
    """Compare the slices of a query; returns what came of it. batches: the events in the order of
    the query's streams; None: only the table."""
    if why_not(query.program, Route.UNTIL):
        return "refused"
    slices = cuts_of(rng, table.column(query.plan.source.order_by[0]).drop_null().to_pylist())
    bare = query.with_options(positions=False)
    whole = {
        end: bare.with_options(at_end=end).match_table(table).to_pylist()
        for end in ("closed", bare.plan.choice.at_end)
    }
    has_after = why_not(query.program, Route.AFTER) is None
    found = "no rows"
    for after, until in slices if has_after else [(None, u) for _, u in slices[:-1]]:
        rows = whole["closed" if until is not None else bare.plan.choice.at_end]
        wanted = []
        for row in rows:
            time = known_time(text, row, query=query.name if "QUERY" in text else None)
            is_known = until is None or time <= until
            if (after is None or time > after) and is_known:
                wanted.append(row)
        bounds: dict[str, Any] = {"after": after, "until": until}
        ways: dict[str, Any] = {"a table": query.match_table(table, **bounds)}
        if batches is not None:
            ways["batches"] = query.match_arrow(batches, **bounds)
            if not why_not(query.program, Route.RUN):
                ways["a run"] = read_all(query.run(**bounds), batches)
        for way, answer in ways.items():
            got = _counted(_rows(answer, bare))
            told = (
                f"{way} {bounds} lacks {_counted(wanted) - got}, and has {got - _counted(wanted)}"
            )
            assert got == _counted(wanted), f"{told}\n{text}\n{query.name} {table.to_pylist()}"
        found = "rows" if wanted else found
    return found


def _check_one(rng: random.Random) -> Iterator[str]:
    text = sliced_query(rng)
    at_end = rng.choice(("open", "closed"))
    try:
        with interpreted():
            matchers = engines(text, Options(("ts",), at_end=at_end))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE | {"unknown-label"}, f"{codes}: {text}"
        return
    for _ in range(2):
        events = stream_of(rng, text)
        for matcher in matchers.values():
            query = only_query(matcher)
            if query.plan.choice.ruled_out:
                continue  # the reference waits for absences of branches without matches
            table = table_of(query.plan, events)
            if "ts" not in table.column_names:
                continue
            is_one = not query.plan.source.partition_by or query.plan.interleaves
            ordered = table if is_one else table_of(query.plan, in_parts(query.plan, events))
            batches = ordered.to_batches(max_chunksize=rng.choice((1, 2, 3, 99)))
            yield compare(rng, text, query, table, batches)


def _check_chain(rng: random.Random) -> Iterator[str]:
    chain = random_chain(rng)
    try:
        with interpreted():
            matcher = celc.compile(chain.text, order_by="ts", at_end=chain.at_end)
    except CelError as problem:
        codes = {one.code for one in problem.diagnostics if one.severity == "error"}
        assert not codes - TOO_LARGE - OF_ATTRIBUTES, codes
        return
    for name in (*chain.readers, *chain.totals, *chain.each, *chain.each_totals, "q0"):
        query = matcher.queries[name]
        if query.plan.source.parameters is not None:
            query = query.with_parameters(rule=rows_table(query, chain.rules))
        if query.plan.choice.limit is not None or any(
            one.plan.choice.ruled_out for one in levels_of(query.program).values()
        ):
            continue
        table = source_table(query, chain.events)
        batches = batches_for(query, table) if query.plan.source.reads else None
        yield compare(rng, chain.text, query, table, batches)


def _check_streams(rng: random.Random) -> Iterator[str]:
    """Slices of which some are streams: their lengths in `ts` are milliseconds."""
    text = in_milliseconds(sliced_query(rng))
    try:
        with interpreted():
            matchers = engines(text, Options((EVENT_TIME,), ("row",)))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE | {"unknown-label"}, f"{codes}: {text}"
        return
    query = only_query(rng.choice([*matchers.values()]))
    for _ in range(2):
        events = stream_of(rng, text)
        if query.plan.choice.ruled_out or "ts" not in events[0]:
            continue
        timed = [
            {**event, "row": row, EVENT_TIME: instant(10 + int(event["ts"]))}
            for row, event in enumerate(events)
        ]
        yield compare_streams(rng, text, query, table_of(query.plan, timed))


def compare_streams(rng: random.Random, text: str, query: CompiledQuery, table: pa.Table) -> str:
    """Compare slices of a query that are batches at first, and streams from some slice on, with the
    whole; returns what came of it."""
    routes = Route.UNBOUNDED, Route.AFTER, Route.UNTIL
    if any(why_not(query.program, route) is not None for route in routes):
        return "refused as a stream"
    slices = cuts_of(rng, table.column(EVENT_TIME).to_pylist(), dt.timedelta(milliseconds=1))
    closed = query.with_options(positions=False, at_end="closed")
    whole, batches = closed.match_table(table).to_pylist(), rng.randint(0, len(slices) - 1)
    together = Counter[str]()
    for number, (after, until) in enumerate(slices):
        if number < batches:
            way = "a batch"
            found = query.match_table(table, after=after, until=until).to_pylist()
        else:
            way = "a stream"
            found = _streamed(rng, query, table, after, until)
        wanted = []
        for row in whole:
            time = known_time(text, row)
            if (after is None or time > after) and (until is None or time <= until):
                wanted.append(row)
        assert _counted(found) == _counted(wanted), (
            f"{way} of {after} to {until} lacks {_counted(wanted) - _counted(found)}, and has "
            f"{_counted(found) - _counted(wanted)}\n{text}\n{table.to_pylist()}"
        )
        together += _counted(found)
    assert together == _counted(whole)
    return "streams" if whole else "no rows"


def _streamed(
    rng: random.Random, query: CompiledQuery, table: pa.Table, after: Any, until: Any
) -> list[Any]:
    options = StreamOptions({"row": "LONG"})
    if after is None and until is None:
        bare = CompiledQuery(query.program.on_spark)
        return streamed_table(bare, table, rng, options)
    stream = SlicedStream.of(query, after, until)
    found = streamed_table(stream.query, stream.events_of(table), rng, options)
    return stream.rows_of(found)


def check_case(rng: random.Random, case: Case) -> str:
    """The events of a case in slices, in the order of its call."""
    try:
        with interpreted():
            options = Options(case.order_by, ties=case.ties, at_end=case.at_end)
            query = only_query([*engines(case.query, options).values()][-1])
    except CelError:
        return "refused"
    order = query.plan.source.order_by[:1]
    if not order or query.plan.choice.ruled_out or query.plan.choice.limit is not None:
        return "without an order, or with a choice"
    events = case.in_order
    table = table_of(query.plan, events)
    ordered = table_of(query.plan, in_parts(query.plan, events))
    return compare(rng, case.query, query, table, ordered.to_batches(max_chunksize=2))


def check(seed: int) -> Counter[str]:
    rng = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind = rng.random()
            if kind < 0.3:
                return Counter(_check_chain(rng))
            return Counter((_check_streams if kind < 0.6 else _check_one)(rng))
        except Exception as problem:
            problem.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("seeds", [4, pytest.param(30, marks=pytest.mark.long)])
def test_slices_are_together_the_whole(seeds: int) -> None:
    found = sum(map(check, range(seeds)), Counter())
    assert found["rows"] >= 11 * seeds // 30, found
    assert found["streams"] >= 4 * seeds // 30, found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stem", case_stems())
def test_cases_in_slices(stem: str) -> None:
    """The cases of all parts of the language: instants, events that last, absences, days."""
    rng = random.Random(stem)
    for case in load_cases(stem):
        try:
            check_case(rng, case)
        except Exception as problem:
            problem.add_note(case.name)
            raise


@pytest.mark.long
@pytest.mark.parametrize("first", range(100, 2100, 500))
def test_many_slices_are_together_the_whole(first: int) -> None:
    found = sum(map(check, range(first, first + 500)), Counter())
    assert found["rows"] > 200, found
    assert found["streams"] > 60, found


if __name__ == "__main__":
    print(sum(map(check, range(*map(int, sys.argv[1:]))), Counter()))
