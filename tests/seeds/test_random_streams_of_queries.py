"""Random chains and files of queries as streams, in micro-batches of one to three rows: the rows of
a table.

A task is made anew for each micro-batch, from nothing but the bytes of buckets. By hand:
`python tests/seeds/test_random_streams_of_queries.py 0 500`.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from celc_runtime.arrow.tables.derived import with_derived
from celc_runtime.chain.all_on_spark import read_plan
from celc_runtime.chain.columns import declared_types
from celc_runtime.chain.streams.match import operators_of
from celc_runtime.chain.streams.operators import Group, Wanted, group_of
from celc_runtime.chain.streams.rearranged import arranged
from celc_runtime.chain.streams.units import can_share
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.stream.formats import StreamOptions
from engines import Event, as_on_spark, interpreted, table_of
from module_streams_by_hand import ModuleOperator, module_streamed
from queries_over_queries import source_table
from strategies_queries import random_chain
from streams_by_hand import (
    EVENT_TIME,
    in_milliseconds,
    instant,
    micro_batches,
    microseconds,
    perhaps_in_sections,
    same_rows,
)
from test_random_across import stream_for
from test_random_many import file_of

import celc
from celc import CelError, Matcher

_BUCKETS = (1, 2, 7)


def _buckets(program: Any, rng: random.Random) -> int:
    return rng.choice(_BUCKETS) if program.plan.source.key_columns else 1


def _compiled(text: str, **options: Any) -> Matcher | None:
    """None: the compiler refuses the text, which is made at random."""
    try:
        with interpreted():
            return celc.compile(text, **options)
    except CelError:
        return None


# --- queries over queries -------------------------------------------------------------------------


def _in_time(text: str) -> str:
    """A chain over events whose `ts` is a time, its numbers milliseconds; without the queries FOR
    EACH, which no stream runs."""
    text = text.partition("QUERY each:")[0]
    text = text.replace("ts: LONG", "ts: TIMESTAMP")
    text = re.sub(r"(\d+) \[ts\]", r"\1 MILLISECONDS [ts]", text)
    return re.sub(r"\.ts > 3", ".id > 0", text)


def _with_other_keys(text: str, rng: random.Random) -> str:
    """The same chain, some of whose queries have further keys, or those in another order."""
    chosen = [rng.choice(("id", "id", "id, name", "name, id")) for _ in text.split("BY id")]
    head, *parts = text.split("BY id")
    return head + "".join(f"BY {keys}{part}" for keys, part in zip(chosen, parts, strict=False))


class Reader(NamedTuple):
    """A query of a chain that a stream runs, and the events that it reads."""

    text: str
    query: Any  # as on Spark
    table: pa.Table

    @property
    def wanted(self) -> pa.Table:
        """What a table answers, when no more events come."""
        positions = self.query.plan.answer.positions
        return self.query.with_options(at_end="closed", positions=positions).match_table(self.table)


def readers_of(seed: int, *, suffix: str = "") -> Iterator[Reader | str]:
    """The readers of one chain, or why a stream does not run them. suffix: of their names."""
    rng = random.Random(seed)
    chain = random_chain(random.Random(seed))
    names = (*chain.readers, *chain.totals)
    text = re.sub(rf"\b({'|'.join(names)})\b", rf"\1{suffix}", _in_time(chain.text))
    keys = random.Random(f"keys {seed}")
    if keys.random() < 0.4:
        text = _with_other_keys(text, keys)
    module = _compiled(text, order_by="ts")
    if module is None:
        yield "refused"
        return
    events = [{**event, "ts": event["ts"] * 1000} for event in chain.events]
    for name in names:
        query = module.queries[f"{name}{suffix}"].with_options(
            tiebreak="number", positions=rng.random() < 0.3 or None
        )
        query = as_on_spark(query)
        reason = why_not(query.program, Route.UNBOUNDED)
        if reason is not None:
            yield reason.code
            continue
        table = source_table(query, events)
        table = table.append_column("number", pa.array(range(len(table)), pa.int64()))
        yield Reader(text, query, table)


def check_chain(seed: int) -> list[str]:
    """Compare the readers of one chain; returns what came of each."""
    rng = random.Random(seed)
    found = []
    for reader in readers_of(seed):
        if isinstance(reader, str):
            found.append(reader)
            continue
        program, wanted = reader.query.program, reader.wanted
        options = StreamOptions({"number": "LONG"}, buckets=_buckets(program, rng))
        operator = group_of(program, Wanted())
        rows = module_streamed(operator, reader.table, rng, options=options)
        told = same_rows(rows, wanted.to_pylist())
        assert not told, f"seed {seed}, {program.name}\n{reader.text}\n{told}\n{reader.table}"
        found.append("rows" if wanted.num_rows else "no rows")
    return found


# --- all queries of a module ----------------------------------------------------------------------


def _windowed(text: str, rng: random.Random) -> str:
    """The file with a window of time in most queries that have none."""
    head, *queries = re.split(r"(?=\nQUERY )", text)
    found = [head]
    for query in queries:
        lacks = not re.search(r"WITHIN(?!\[)|CONSUME|LIMIT", query)
        window = f" WITHIN {rng.choice((2, 3, 5, 9, 40))} MILLISECONDS [{EVENT_TIME}]"
        found.append(query.rstrip() + (window if lacks and rng.random() < 0.85 else "") + "\n")
    return "".join(found)


def _common_table(programs: Sequence[Any], events: Sequence[Event]) -> pa.Table:
    """The columns that several programs read, in the declared types."""
    columns: dict[str, Any] = {}
    for program in programs:
        table = table_of(program.plan, events)
        columns |= {name: table.column(name) for name in table.column_names}
    for program in programs:
        for one in program.plan.source.attributes:
            if one.type == "FLOAT":
                columns[one.name] = columns[one.name].cast(pa.float32())
    return pa.table(columns)


def check_module(seed: int) -> list[str]:
    """Compare the queries of one file; returns what came of each."""
    rng = random.Random(seed)
    file = file_of(rng)
    text = _windowed(in_milliseconds(file.text), rng)
    ties = {"ties": "simultaneous"} if rng.random() < 0.25 else {}
    module = _compiled(text, order_by=EVENT_TIME, **ties)
    if module is None:
        return ["refused"]
    programs = {name: query.program.on_spark for name, query in module.queries.items()}
    programs = {n: one for n, one in programs.items() if why_not(one, Route.UNBOUNDED) is None}
    events = stream_for(rng, file)
    time = 1
    for event in events:
        event[EVENT_TIME] = instant(time)
        time += rng.choice((0, 1, 1, 2) if ties else (1, 1, 2))
    found = []
    types = frozenset().union(*map(declared_types, programs.values()))
    for groups in operators_of(programs):
        served = [
            (
                Group(
                    {name: programs[name] for name in names}, names, programs, None, number, types
                ),
                StreamOptions({}, buckets=_buckets(programs[names[0]], rng)),
            )
            for number, names in enumerate(groups)
        ]
        group = {name: programs[name] for names in groups for name in names}
        table = _common_table([*group.values()], events)
        (first, options), *more = served
        rows = module_streamed(first, table, rng, time=EVENT_TIME, options=options, more=more)
        for name, program in group.items():
            positions = program.plan.answer.positions
            query = module.queries[name].with_options(at_end="closed", positions=positions)
            wanted = query.match_table(table)
            own = [row[name] for row in rows if row["query"] == name]
            rows_wanted = wanted.to_pylist()
            if ties and program.plan.answer.collapsed:
                # The union of matches does not say in which order events of an instant stand.
                own, rows_wanted = map(_sorted_lists, (own, rows_wanted))
            told = same_rows(own, rows_wanted)
            assert not told, f"seed {seed}, {name}\n{text}\n{told}\n{events}"
            shares = "shares" if can_share(program) and len(group) > 1 else "alone"
            found.append(f"{shares}, {'rows' if wanted.num_rows else 'no rows'}")
    return found


def _sorted_lists(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            n: sorted(value, key=repr) if isinstance(value, list) else value
            for n, value in row.items()
        }
        for row in rows
    ]


# --- a module whose queries change ----------------------------------------------------------------


def _lives(rng: random.Random, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The queries of two or three modules that follow each other, at least one of them in all."""
    stays = rng.choice(names)
    return [
        tuple(name for name in names if name == stays or rng.random() < 0.6)
        for _ in range(rng.choice((2, 2, 3)))
    ]  # a query can come back


def _lived(
    programs: dict[str, Any], lives: Sequence[tuple[str, ...]], table: pa.Table, rng: random.Random
) -> list[tuple[list[int], list[dict[str, Any]]]]:
    """For each module, the rows of the table that were read before it, and what comes out of it.
    A module that reads no row leaves no trace."""
    plain = {n: one for n, one in programs.items() if not one.plan.source.reads}
    table = with_derived(read_plan(plain, programs), table)
    first = next(iter(programs.values()))
    options = StreamOptions({}, buckets=_buckets(first, rng))
    times = [microseconds(one) for one in table.column(EVENT_TIME).to_pylist()]
    batches = [*micro_batches(times, rng.choice((1, 2, 5, 1000)), rng, 3)]
    ends = sorted(rng.randint(0, len(batches) * 2 // 3) for _ in lives[1:])
    read: list[int] = []
    found: list[tuple[list[int], list[dict[str, Any]]]] = []
    stream = ModuleOperator(_module(programs, lives[0], None), options, rng)
    for names, start, end in zip(lives, (0, *ends), (*ends, len(batches)), strict=True):
        units = None
        if stream.headers:
            group = {name: programs[name] for name in names}
            (((_, units, _),),) = arranged(group, [[names]], [stream.headers])
        stream.group = _module(programs, names, units)
        found.append(([*read], []))
        for chosen, watermark in batches[start:end]:
            found[-1][1].extend(stream.advance(table.take(chosen) if chosen else None, watermark))
            read += chosen
    found[-1][1].extend(stream.finish())
    assert not stream.counts["late"], "no event was late"
    return found


def _module(programs: dict[str, Any], names: tuple[str, ...], units: Any) -> Group:
    return Group({name: programs[name] for name in names}, names, programs, units)


def check_changed(seed: int) -> list[str]:
    """A stream that goes on with other queries: each answers the events from its begin on."""
    rng = random.Random(seed)
    file = file_of(rng)
    text = _windowed(in_milliseconds(file.text), rng)
    module = _compiled(text, order_by=EVENT_TIME)
    if module is None:
        return ["refused"]
    programs = {name: query.program.on_spark for name, query in module.queries.items()}
    programs = {n: one for n, one in programs.items() if why_not(one, Route.UNBOUNDED) is None}
    if not programs:
        return ["refused"]
    names = max((one for groups in operators_of(programs) for one in groups), key=len)
    programs = {name: programs[name] for name in names}
    events = stream_for(rng, file)
    for time, event in enumerate(events, 1):
        event[EVENT_TIME] = instant(time)
    table = _common_table([*programs.values()], events)
    lives = _lives(rng, names)
    with perhaps_in_sections(rng):
        told = _lived(programs, lives, table, rng)
    found = []
    for name, program in programs.items():
        at = [place for place, life in enumerate(lives) if name in life]
        last = len(lives) - 1
        if last not in at:
            continue
        reads = [len(seen) for seen, _ in told]
        away = [n for n in range(last) if n not in at and reads[n + 1] > reads[n]]
        begun = max((n + 1 for n in away), default=0)
        before, _ = told[begun]
        seen = table.filter(pa.array([n not in before for n in range(len(table))], pa.bool_()))
        query = module.queries[name].with_options(
            at_end="closed", positions=program.plan.answer.positions
        )
        wanted = query.match_table(seen)
        own = [row[name] for _, rows in told[begun:] for row in rows if row["query"] == name]
        differ = same_rows(own, wanted.to_pylist())
        assert not differ, f"seed {seed}, {name} of {lives}\n{text}\n{differ}\n{events}"
        shares = "shares" if can_share(program) else "alone"
        how = "begins" if before else "goes on"
        found.append(f"{shares}, {how}, {'rows' if wanted.num_rows else 'no rows'}")
    return found


@pytest.mark.filterwarnings("ignore")
def test_modules_that_change_equal_the_table() -> None:
    found = Counter(one for seed in range(12) for one in check_changed(seed))
    assert found["shares, goes on, rows"] >= 3, found
    assert found["shares, begins, rows"] >= 1, found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [6, pytest.param(12, marks=pytest.mark.long)])
def test_chains_on_streams_equal_the_table(seeds: int) -> None:
    found = Counter(one for seed in range(20, 20 + seeds) for one in check_chain(seed))
    assert found["rows"] >= 5 * seeds // 12, found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [6, pytest.param(12, marks=pytest.mark.long)])
def test_modules_on_streams_equal_the_table(seeds: int) -> None:
    found = Counter(one for seed in range(seeds) for one in check_module(seed))
    assert found["shares, rows"] >= 3 * seeds // 12, found
    assert found["alone, rows"] >= 3 * seeds // 12, found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_many_chains_on_streams_equal_the_table() -> None:
    found = Counter(one for seed in range(32, 300) for one in check_chain(seed))
    assert found["rows"] >= 250, found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_many_modules_that_change_equal_the_table() -> None:
    found = Counter(one for seed in range(12, 160) for one in check_changed(seed))
    assert found["shares, begins, rows"] >= 20, found
    assert found["alone, begins, rows"] >= 20, found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_many_modules_on_streams_equal_the_table() -> None:
    found = Counter(one for seed in range(12, 200) for one in check_module(seed))
    assert found["shares, rows"] >= 60, found


if __name__ == "__main__":
    for check in (check_chain, check_module, check_changed):
        seeds = range(*map(int, sys.argv[1:]))
        print(check.__name__, Counter(one for seed in seeds for one in check(seed)))
