"""Which buckets a row of a streaming table of parameters is sent to, and what is stored of it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.rules import index
from celc_runtime.stream import rule_versions
from celc_runtime.stream.buckets import labels_of
from celc_runtime.stream.changing_rules import packed_rules
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.held_rules import HeldRules, Told
from celc_runtime.stream.stored.blocks import Block
from engines import interpreted, only_query, table_of
from parameters import rows_table
from streams_by_hand import instant, same_rows
from test_random_changing_rules import ChangingOperator

import celc

_DECLARED = """CREATE STREAM S {
  EVENT A { user: STRING, host: STRING, v: INT, ts: TIMESTAMP },
  EVENT B { user: STRING, host: STRING, v: INT, ts: TIMESTAMP }
}
PARAMETERS rule {
  id: LONG, user: STRING, host: STRING, low: INT, since: TIMESTAMP, until: TIMESTAMP
} VALID [since, until]
"""
_PAIR = """SELECT x[v], y[v], rule FOR EACH rule
WHERE (A AS x ; B AS y) FILTER {asked} AND y.v > rule.low
PARTITION BY {keys} WITHIN 9 MILLISECONDS [ts]"""
_ONE = (
    "SELECT x[v], rule FOR EACH rule WHERE {formula} PARTITION BY user WITHIN 9 MILLISECONDS [ts]"
)
_BUCKETS = 8
_BATCHES = 20


def _query(text: str, declared: str = _DECLARED) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(declared + text, order_by="ts")).with_options(
            positions=False
        )


def _sent(query: CompiledQuery, rows: list[dict[str, Any]]) -> list[Told]:
    """What each bucket is told."""
    parameters = query.plan.source.parameters
    assert parameters is not None
    options = StreamOptions({}, buckets=_BUCKETS)
    found = {label: Told.none(parameters) for label in labels_of(_BUCKETS).tolist()}
    for batch in packed_rules(query.program, options, rows_table(query, rows).to_batches()):
        for row in batch.to_pylist():
            content = Block.of(row["events"]).content
            found[row["bucket"]] = Told.read(parameters, content)
    return [*found.values()]


_RULES = [{"id": n, "user": f"u{n % 40}", "host": f"h{n}", "low": 1} for n in range(100)]


@pytest.mark.parametrize(
    "text",
    [
        _PAIR.format(asked="x.user = rule.user", keys="user"),
        _PAIR.format(asked="y.user = rule.user", keys="user"),
        _PAIR.format(asked="x.user = rule.user AND y.host = rule.host", keys="host, user"),
        _ONE.format(formula="(A AS x ; !B FOR 5 MILLISECONDS) FILTER x.user = rule.user"),
        _ONE.format(formula="(A AS x OR B AS x) FILTER x.user = rule.user"),
    ],
)
def test_a_row_goes_to_the_bucket_of_its_partition(text: str) -> None:
    told = _sent(_query(text), _RULES)
    assert sum(int(one.own.sum()) for one in told) == len(_RULES)
    own = Counter(id for one in told for id in one.rows.columns["id"].filter(pa.array(one.own)))
    assert len(own) == len(_RULES)
    assert sum(bool(one.own.any()) for one in told) > 4
    for one in told:
        # Other buckets know of a row what says when versions begin and end.
        assert one.rows.count == len(_RULES)
        others = one.take(np.flatnonzero(~one.own)).rows.columns
        assert others["user"].null_count == others["low"].null_count == len(others["id"])
        assert not others["id"].null_count


@pytest.mark.parametrize(
    "text",
    [
        _PAIR.format(asked="x.v > rule.low", keys="user"),
        _PAIR.format(asked="x.user = rule.user", keys="user, host"),
        _PAIR.format(asked="x.user >= rule.user", keys="user"),
        _PAIR.format(asked="x.host = rule.user", keys="user"),
        _ONE.format(formula="(A AS x FILTER x.user = rule.user) OR B AS x"),
        _ONE.format(formula="(A AS x) FILTER x.user = rule.user OR x.v = rule.low"),
    ],
)
def test_a_row_without_a_partition_goes_to_all_buckets(text: str) -> None:
    for told in _sent(_query(text), _RULES):
        assert told.own.all()
        assert told.rows.count == len(_RULES)


def test_versions_of_one_partition_concern_one_bucket() -> None:
    """The set's first attribute is the key: only the first bucket is told, too, which counts."""
    text = _PAIR.format(asked="x.user = rule.user", keys="user")
    query = _query(text, _DECLARED.replace("id: LONG, user: STRING", "user: STRING, id: LONG"))
    first, *others = _sent(query, _RULES)
    assert first.rows.count == len(_RULES)
    assert all(told.own.all() for told in others)
    assert int(first.own.sum()) + sum(told.rows.count for told in others) == len(_RULES)


def _streamed(query: CompiledQuery, count: int, changes: int, *, cold: bool) -> ChangingOperator:
    """A stream of rules that change in some micro-batches, held against the answer to all rows."""
    rng = random.Random(5)
    rows = [{"id": n, "user": f"u{n % 40}", "low": n % 7} for n in range(count)]
    told, found = [*rows], list[dict[str, Any]]()
    operator = ChangingOperator(query, StreamOptions({}, buckets=4), rng=rng)
    events = [
        {"type": "AB"[n % 2], "user": f"u{rng.randrange(40)}", "v": n % 9, "ts": instant(n)}
        for n in range(1, 10 * _BATCHES + 1)
    ]
    table = table_of(query.plan, events)
    for number in range(_BATCHES):
        operator.arriving = rows_table(query, rows) if rows else None
        if cold:
            rule_versions._cache.clear()
        found += operator.advance(table.slice(10 * number, 10), max(0, 10 * number - 1))
        rows = [
            # Some move to another partition, in another bucket.
            {**told[rng.randrange(count)], "since": instant(10 * number + 15), "low": number % 5}
            for _ in range(changes)
        ]
        rows = [{**row, "user": f"u{rng.randrange(40)}"} for row in rows]
        rows = [*{row["id"]: row for row in rows}.values()]
        told += rows if number + 1 < _BATCHES else []
    found += operator.finish()
    wanted = query.match_table(table, rule=rows_table(query, told)).to_pylist()
    assert len(wanted) > 5
    assert not same_rows(found, wanted)
    return operator


@pytest.mark.each(2)
@pytest.mark.parametrize(
    "asked", ["x.user = rule.user", "x.user <= rule.user AND x.user >= rule.user"]
)
def test_the_index_is_made_once_for_a_version(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 rules 2 change in each micro-batch: few rows are indexed, read and written again."""
    rule_versions._cache.clear()
    indexed: list[int] = []
    read: list[int] = []
    written: list[int] = []
    make, of_state, of_rows = index.RowIndex.__init__, HeldRules.read, HeldRules.written

    def counted(self: Any, rows: Any, *more: Any) -> None:
        indexed.append(rows.count)
        make(self, rows, *more)

    monkeypatch.setattr(index.RowIndex, "__init__", counted)
    monkeypatch.setattr(HeldRules, "read", lambda *given: read.append(1) or of_state(*given))
    monkeypatch.setattr(HeldRules, "written", lambda held: written.append(1) or of_rows(held))
    _streamed(_query(_PAIR.format(asked=asked, keys="user")), 200, 2, cold=False)
    # All rows once, and some of those that came since, as parts grow.
    assert 200 <= sum(indexed) < 5 * 200
    assert not read
    assert not written


@pytest.mark.each(2)
@pytest.mark.parametrize("bounded", [("_MOST_SEGMENTS", "_MOST_ENTRIES"), ()])
def test_a_worker_without_rules_reads_them_from_the_state(
    bounded: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = _query(_PAIR.format(asked="x.user = rule.user", keys="user"))
    monkeypatch.setattr(rule_versions, "_LEAST_LOG", 2000)
    for name, least in (("_MOST_SEGMENTS", 2), ("_MOST_ENTRIES", 9)):
        if name in bounded:
            monkeypatch.setattr(rule_versions, name, least)
    _streamed(query, 60, 5, cold=True)
