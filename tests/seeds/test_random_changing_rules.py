"""Random streams whose table of parameters is a stream: rows and versions come in random
micro-batches, most of them before their `since`. The answer is that of the table of all rows, where
a late row counts from the watermark on. Some streams are read after a time, behind a batch that
ends there.

Without Spark, micro-batch by micro-batch; some micro-batches are run twice, as after a kill, and
some rows are read again. By hand:

    python tests/seeds/test_random_changing_rules.py 0 200      # seeds 0 to 199
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventWarning, PlanWarning
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream import held_rules, rule_versions
from celc_runtime.stream.changing_rules import (
    ChangingTask,
    finished_matches,
    packed_events,
    packed_rules,
    unpacked_matches,
)
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.rules import hash_of_rows, in_one_order
from engines import interpreted, only_query, table_of
from parameters import rows_table
from reference import known_time
from streams_by_hand import (
    Operator,
    SlicedStream,
    instant,
    micro_batches,
    microseconds,
    perhaps_in_sections,
    same_rows,
)

import celc

Row = dict[str, Any]

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: INT, event_time: TIMESTAMP },
  EVENT B { id: INT, v: INT, event_time: TIMESTAMP },
  EVENT C { id: INT, v: INT, event_time: TIMESTAMP }
}
PARAMETERS rule { key: INT, low: INT, since: TIMESTAMP, until: TIMESTAMP } VALID [since, until]
"""

_PAIR = "(A AS x ; B AS y) FILTER y.v >= rule.low"
_LABELS = "x[v], y[v], rule FOR EACH rule WHERE"
_WITHIN = "WITHIN {w} MILLISECONDS [event_time]"
_FOR = "FOR {d} MILLISECONDS"
_KEY = "PARTITION BY id"
_NAMED = (
    f"SELECT {_LABELS} {_PAIR} AND x.id = rule.low {_KEY} {_WITHIN}",
    f"SELECT {_LABELS} {_PAIR} AND y.id = rule.key {_KEY} {_WITHIN}",
    f"SELECT {_LABELS} A AS x ; !C ; B AS y FILTER x.id = rule.low PARTITION BY id, v {_WITHIN}",
    f"SELECT x[v], rule FOR EACH rule WHERE (A AS x ; !B {_FOR}) FILTER x.id = rule.low {_KEY}",
    "SELECT x[v], rule FOR EACH rule WHERE (A AS x OR B AS x) FILTER x.id = rule.low "
    "AND x.v = rule.key PARTITION BY id, v",
)
_QUERIES = (
    f"SELECT {_LABELS} {_PAIR} {_WITHIN}",
    f"SELECT {_LABELS} {_PAIR} PARTITION BY id {_WITHIN}",
    "SELECT x[v], rule FOR EACH rule WHERE A AS x FILTER x.v = rule.low",
    f"SELECT x[v], rule FOR EACH rule WHERE (A AS x ; !B {_FOR}) FILTER x.v > rule.low {_WITHIN}",
    "SELECT x[v], rule FOR EACH rule WHERE A AS x ; !(B AS z FILTER z.v > rule.low) "
    f"{_FOR} PARTITION BY id {_WITHIN}",
    f"SELECT {_LABELS} A AS x ; !(C AS z FILTER z.v > rule.low) ; B AS y {_WITHIN}",
    f"SELECT LONGEST {_LABELS} {_PAIR} {_WITHIN}",
    f"SELECT MAX {_LABELS} (A AS x)+ ; B AS y FILTER y.v >= rule.low {_WITHIN}",
    f"SELECT NXT {_LABELS} {_PAIR} {_WITHIN} CONSUME BY PARTITION",
    f"SELECT TOTAL COUNT(*) AS n, SUM(y.v) AS s FOR EACH rule WHERE {_PAIR} {_WITHIN}",
    f"SELECT TOTAL COUNT(*) AS n FOR EACH rule WHERE {_PAIR} {_WITHIN} PER 7 MILLISECONDS",
    f"SELECT COLLAPSED {_LABELS} {_PAIR} {_WITHIN}",
    f"SELECT {_LABELS} (A AS x : B AS y) FILTER y.v >= rule.low {_WITHIN}",
    f"SELECT {_LABELS} A AS x ; FIRST B AS y FILTER y.v >= rule.low {_WITHIN}",
    f"SELECT {_LABELS} {_PAIR} WITHIN 3 EVENTS",
    *_NAMED,
    *_NAMED,
)


class ChangingOperator(Operator):
    """The operator of a stream whose table of parameters is a stream as well."""

    arriving: pa.Table | None = None

    def _task(self) -> ChangingTask:
        return ChangingTask(self.query.program, self.options)

    def _packed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        program: Program = self.query.program
        yield from packed_events(program, self.options, batches)
        if self.arriving is not None:
            yield from packed_rules(program, self.options, self.arriving.to_batches())

    def _of_messages(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return unpacked_matches(self.query.program, self.options, [batch])

    def _finished(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return finished_matches(self.query.program, self.options, [batch])


@dataclass
class Told:
    """What a stream has been told of its rules: each row, with the watermark at which it came."""

    rows: list[tuple[Row, int | None]] = field(default_factory=list)
    late: int = 0

    def add(self, row: Row, watermark: int | None) -> None:
        """A row that comes at a watermark, in milliseconds; None: before the first one."""
        if any(row == other for other, _ in self.rows):
            return
        same = (row["key"], row["since"])
        is_late = watermark is not None and (
            row["since"] is None or microseconds(row["since"]) <= 1000 * watermark
        )
        if any((other["key"], other["since"]) == same for other, _ in self.rows):
            self.late += 1
            return
        self.late += is_late
        self.rows.append((row, watermark if is_late else None))

    def effective(self) -> list[tuple[Row, Row]]:
        """Each row, and what it counts as alone."""
        return [(row, self._alone(row, late)) for row, late in self.rows]

    def _alone(self, row: Row, late: int | None) -> Row:
        later = [
            self._begin(other, when)
            for other, when in self.rows
            if other["key"] == row["key"] and _before(row["since"], other["since"])
        ]
        ends = [end for end in (row["until"], *later) if end is not None]
        begin = self._begin(row, late)
        end = min(ends, default=None)
        if begin is not None and end is not None and end < begin:
            end = begin
        return {**row, "since": begin, "until": end}

    @staticmethod
    def _begin(row: Row, late: int | None) -> Any:
        if late is None:
            return row["since"]
        return instant(late) + (instant(1) - instant(0)) / 1000


def _before(one: Any, other: Any) -> bool:
    return other is not None and (one is None or one < other)


# --- what is drawn --------------------------------------------------------------------------------


@contextmanager
def little(rng: random.Random) -> Iterator[None]:
    """Often the log of the rules is short, and a worker keeps few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_versions, "_LEAST_LOG", rng.choice((0, 700, 1 << 16)))
        patch.setattr(rule_versions, "_MOST_SEGMENTS", rng.choice((1, 2, 16)))
        patch.setattr(rule_versions, "_MOST_ENTRIES", rng.choice((2, 256)))
        patch.setattr(rule_versions, "_MOST_ROWS", rng.choice((0, 1 << 20)))
        yield


def query_of(rng: random.Random) -> CompiledQuery:
    """One of the queries, without positions."""
    text = rng.choice(_QUERIES).format(w=rng.choice((2, 5, 20)), d=rng.choice((1, 3)))
    with interpreted():
        found = only_query(celc.compile(_DECLARED + text, order_by="event_time"))
    return found.with_options(positions=False)


def events_of(rng: random.Random) -> list[Row]:
    """Events in the order of their times, one at each."""
    times = sorted(rng.sample(range(1, 60), rng.randint(0, 25)))
    return [
        {
            "type": rng.choice("AABBC"),
            "id": rng.randint(1, 2),
            "v": rng.randint(0, 3),
            "event_time": instant(time),
        }
        for time in times
    ]


def rules_of(rng: random.Random) -> list[Row]:
    """Rows with a key and a time each; some share both, some come twice. Some streams have one key,
    whose short versions lie within long ones, with gaps between them."""
    rows: list[Row] = []
    keys, lengths = rng.choice((((None, 1, 1, 1, 2), (60,)), ((1,), (6, 6, 60))))
    for _ in range(rng.randint(0, 6)):
        begin = rng.randrange(59)
        bounds = begin, rng.randint(begin + 1, min(59, begin + rng.choice(lengths)))
        since, until = (None if rng.random() < 0.3 else instant(one) for one in bounds)
        key = rng.choice(keys)
        rows.append({"key": key, "low": rng.choice((0, 0, 1, 2)), "since": since, "until": until})
    return rows + [dict(row) for row in rows if rng.random() < 0.2]


# --- comparing ------------------------------------------------------------------------------------


def advanced(
    operator: ChangingOperator, events: pa.Table, watermark: int, rng: random.Random
) -> list[Row]:
    """A micro-batch; some are run twice, as after a kill."""
    if rng.random() < 0.2:
        before = saved(operator)
        operator.advance(events, watermark)
        restore(operator, before)
    return operator.advance(events, watermark)


def saved(operator: ChangingOperator) -> tuple[Any, ...]:
    """What Spark has stored of an operator."""
    return (
        dict(operator.headers),
        {label: dict(pieces) for label, pieces in operator.segments.items()},
        {label: set(timers) for label, timers in operator.timers.items()},
        operator.watermark,
    )


def restore(operator: ChangingOperator, before: tuple[Any, ...]) -> None:
    """Go back to what was stored, in another worker."""
    operator.headers, operator.segments, operator.timers, operator.watermark = before
    rule_versions._cache.clear()


def streamed(
    query: CompiledQuery,
    events: Sequence[Row],
    rules: Sequence[Row],
    rng: random.Random,
    after: Any = None,
) -> tuple[list[Row], Told]:
    """The rows that come out, of a stream after a time those that are known later, and what became
    of the rules."""
    told, waiting = Told(), [*rules]
    table, passed_on = table_of(query.plan, events), list[Row]
    if after is not None:
        stream = SlicedStream.of(query, after, None)
        query, table, passed_on = stream.query, stream.events_of(table), stream.rows_of
    ahead = rng.choice((2, 10, 100))  # so many milliseconds before their `since` rows come, or less
    share = rng.choice((0.05, 0.05, 0.5))  # of the rows that came, how many come once more
    operator = ChangingOperator(query, StreamOptions({}, buckets=rng.choice((1, 3, 5))), rng=rng)
    if not query.plan.source.partition_by:
        operator = ChangingOperator(query, StreamOptions({}), rng=rng)
    times = [microseconds(time) for time in table.column("event_time").to_pylist()]
    found: list[Row] = []
    for chosen, watermark in micro_batches(times, rng.choice((0, 1, 3)), rng, 3):
        arriving = []
        for row in [*waiting]:
            since = 0 if row["since"] is None else microseconds(row["since"]) // 1000
            if since <= watermark + rng.randint(0, ahead) or rng.random() < 0.1:
                waiting.remove(row)
                arriving.append(row)
        again = [row for row, _ in told.rows if rng.random() < share]
        for row in in_taken_order(query, arriving):
            told.add(row, watermark or None)
        both = [*arriving, *again]
        rng.shuffle(both)
        operator.arriving = rows_table(query, both) if both else None
        found += advanced(operator, table.take(pa.array(chosen, pa.int64())), watermark, rng)
    return passed_on([*found, *operator.finish()]), told


def batch_until(query: CompiledQuery, events: Sequence[Row], told: Told, until: Any) -> list[Row]:
    """The rows of a batch that ends where a stream begins, of each rule alone."""
    return [
        row
        for one in told.effective()
        for row in _of_alone(query, events, *one, bounds={"until": until})
    ]


def in_taken_order(query: CompiledQuery, rows: Sequence[Row]) -> list[Row]:
    """Rows of one micro-batch in the order in which buckets take them, where two exclude each
    other."""
    parameters = query.plan.source.parameters
    assert parameters is not None
    read = replace(parameters, valid=None)
    digests = [
        held_rules.Told.of(parameters, rows_of("q", read, rows_table(query, [row]))).digests[0]
        for row in rows
    ]
    return [rows[place] for place in np.argsort(digests, kind="stable")]


def wanted_of(query: CompiledQuery, events: Sequence[Row], told: Told) -> list[Row]:
    """The rows of each rule alone over all events."""
    closed = query.with_options(at_end="closed")
    return [row for one in told.effective() for row in _of_alone(closed, events, *one, bounds={})]


def _of_alone(
    query: CompiledQuery, events: Sequence[Row], row: Row, alone: Row, bounds: Any
) -> list[Row]:
    table = table_of(query.plan, events)
    shown = rows_table(query, [row]).to_pylist()[0]
    found = query.match_table(table, rule=rows_table(query, [alone]), **bounds)
    return [
        {**match, "rule": {name: shown[name] for name in match["rule"]}}
        for match in found.to_pylist()
    ]


def check_fixed(
    query: CompiledQuery, events: Sequence[Row], told: Told, rng: random.Random
) -> None:
    """The rows of a table that does not change, on a stream and of a table of events."""
    given = rows_table(query, [row for row, _ in told.rows])
    parameters = query.plan.source.parameters
    assert parameters is not None
    rules = in_one_order(rows_of(query.name, parameters, given))
    options = StreamOptions({}, rules=hash_of_rows(rules))
    operator = Operator(query, options, rng=rng, rules=rules)
    table = table_of(query.plan, events)
    found = [*operator.advance(table, 0), *operator.finish()]
    wanted = query.with_options(at_end="closed").match_table(table, rule=given).to_pylist()
    assert not same_rows(found, wanted), same_rows(found, wanted)


def check(seed: int, tally: Counter[str]) -> None:
    """One random stream."""
    rng = random.Random(seed)
    query, events, rules = query_of(rng), events_of(rng), rules_of(rng)
    sliced = (Route.AFTER, Route.UNTIL)
    after, before = None, list[Row]()
    if rng.random() < 0.5 and not any(why_not(query.program, route) for route in sliced):
        after = instant(rng.randint(10, 40))
    with perhaps_in_sections(rng), little(rng), warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        warnings.simplefilter("ignore", PlanWarning)
        found, told = streamed(query, events, rules, rng, after)
        check_fixed(query, events, told, rng)
        wanted = wanted_of(query, events, told)
        if after is not None:
            before = batch_until(query, events, told, after)
    if after is not None:
        tally["after"] += 1
        known = [known_time(query.text, row) for row in wanted]
        assert not any(known_time(query.text, row) <= after for row in found)
        assert not any(known_time(query.text, row) > after for row in before)
        tally["on both sides"] += min(known, default=after) <= after < max(known, default=after)
    found += before
    left, right = Counter(map(repr, found)), Counter(map(repr, wanted))
    assert left == right, (
        f"seed {seed}: {query.name}\n"
        + "\n".join(f"missing: {one}" for one in (right - left).elements())
        + "\n".join(f"too many: {one}" for one in (left - right).elements())
        + f"\n{told}"
    )
    tally.update(matches=len(found), late=told.late, rules=len(told.rows), streams=1)


# --- tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [8, pytest.param(16, marks=pytest.mark.long)])
def test_random_changing_rules(seeds: int) -> None:
    tally = Counter[str]()
    for seed in range(seeds):
        check(seed, tally)
    assert tally["matches"] >= 15 * seeds // 16, tally
    assert tally["late"] >= 1, tally
    assert tally["after"] >= 2, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 3000, 500))
def test_many_random_changing_rules(first: int) -> None:
    tally = Counter[str]()
    for seed in range(first, first + 500):
        check(seed, tally)
    print(tally)
    assert tally["late"] >= 50, tally


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "lows"),
    [(f"SELECT {_LABELS} {_PAIR} {_KEY} {_WITHIN}", (4, 9)), (_NAMED[0], (1, 3))],
    ids=["all buckets", "one bucket"],
)
def test_a_thousand_changes_and_twenty_kills(text: str, lows: tuple[int, int]) -> None:
    """1,000 versions of 50 rules come in 500 micro-batches, of which 20 are run twice."""
    rng = random.Random(7)
    text = text.format(w=20, d=3)
    query = only_query(celc.compile(_DECLARED + text, order_by="event_time"))
    query = query.with_options(positions=False)
    events = [
        {
            "type": rng.choice("ABC"),
            "id": rng.randint(1, 3),
            "v": rng.randint(0, 9),
            "event_time": instant(2 * number),
        }
        for number in range(1, 1001)
    ]
    rules = [
        {
            "key": number % 50,
            "low": rng.randint(*lows),
            "since": instant(100 + 2 * number - number % 2),
            "until": None if rng.random() < 0.7 else instant(130 + 2 * number),
        }
        for number in range(1000)
    ]
    kills = set(rng.sample(range(500), 20))
    operator = ChangingOperator(query, StreamOptions({}, buckets=3), rng=rng)
    table, found, held = table_of(query.plan, events), list[Row](), 0
    for number in range(500):
        operator.arriving = rows_table(query, rules[2 * number : 2 * number + 2])
        watermark = 0 if number == 0 else 4 * number - 3
        batch = table.slice(2 * number, 2)
        if number in kills:
            before = saved(operator)
            operator.advance(batch, watermark)
            restore(operator, before)
        found += operator.advance(batch, watermark)
        held = max(held, sum(one["rules"] for one in operator.kept.values()))
    found += operator.finish()
    closed = query.with_options(at_end="closed")
    wanted = closed.match_table(table, rule=rows_table(query, rules)).to_pylist()
    assert len(wanted) > 500
    assert not same_rows(found, wanted)
    assert held < 200, held


def main() -> None:
    """Run seeds by hand; stop at the first difference."""
    parser = argparse.ArgumentParser(description="compare random streams of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    asked = parser.parse_args()
    tally = Counter[str]()
    for seed in range(asked.first, asked.end):
        check(seed, tally)
    print(tally)


if __name__ == "__main__":
    main()
