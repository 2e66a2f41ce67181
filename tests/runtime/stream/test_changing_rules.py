"""States of streams whose table of parameters is a stream as well, without Spark."""

from __future__ import annotations

import io
import random
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from celc_runtime import CompiledQuery
from celc_runtime.plan.errors import EventError, StateError
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream import rule_versions
from celc_runtime.stream.changing_rules import check_header
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.monitor import monitor
from celc_runtime.stream.rules import hash_of_rows, in_one_order
from celc_runtime.stream.tasks import check_header as check_fixed_header
from engines import interpreted, only_query, table_of
from parameters import rows_table
from streams_by_hand import Operator, instant, same_rows
from test_random_changing_rules import ChangingOperator

import celc

_QUERY = """CREATE STREAM S { EVENT A { v: INT, ts: TIMESTAMP } }
PARAMETERS rule { key: INT, since: TIMESTAMP, until: TIMESTAMP } VALID [since, until]
SELECT x[v], y[v], rule FOR EACH rule WHERE (A AS x ; A AS y) FILTER x.v = rule.key
WITHIN 9 MILLISECONDS [ts]
"""


def _query() -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(_QUERY, order_by="ts")).with_options(positions=False)


def _begun(query: CompiledQuery) -> ChangingOperator:
    operator = ChangingOperator(query, StreamOptions({}), rng=random.Random(0))
    operator.arriving = rows_table(query, [{"key": 1}])
    operator.advance(table_of(query.plan, [{"type": "A", "v": 1, "ts": instant(5)}]), 0)
    return operator


def test_checkpoints_of_fixed_tables_and_of_streams_are_told_apart() -> None:
    query = _query()
    parameters = query.plan.source.parameters
    assert parameters is not None
    rows = in_one_order(rows_of(query.name, parameters, rows_table(query, [{"key": 1}])))
    options = StreamOptions({}, rules=hash_of_rows(rows))
    fixed = Operator(query, options, rules=rows)
    fixed.advance(table_of(query.plan, [{"type": "A", "v": 1, "ts": instant(5)}]), 0)
    (label,) = fixed.headers
    changing = _begun(query).headers[label]
    with pytest.raises(StateError, match="not of a stream whose table of parameters is a stream"):
        check_header(query.program, StreamOptions({})._asdict(), label, fixed.headers[label])
    with pytest.raises(StateError):
        check_fixed_header(query.program, options._asdict(), label, changing)
    check_header(query.program, StreamOptions({})._asdict(), label, changing)


def test_a_damaged_byte_is_refused() -> None:
    query = _query()
    stored = _begun(query)
    ((label, header),) = stored.headers.items()
    pieces = stored.segments[label]
    later = table_of(query.plan, [{"type": "A", "v": 1, "ts": instant(70)}])

    def read(header: bytes, pieces: dict[int, bytes]) -> None:
        rule_versions._cache.clear()
        operator = ChangingOperator(query, StreamOptions({}), rng=random.Random(0))
        operator.headers, operator.segments = {label: header}, {label: dict(pieces)}
        operator.timers = {name: set(timers) for name, timers in stored.timers.items()}
        operator.advance(later, 60)

    read(header, pieces)
    for place in range(0, len(header), 5):
        with pytest.raises(StateError):
            read(_changed(header, place), pieces)
    for name, data in pieces.items():
        for place in range(0, len(data), 97):
            with pytest.raises(StateError):
                read(header, {**pieces, name: _changed(data, place)})


def _changed(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_a_row_that_ends_before_it_begins_ends_the_stream() -> None:
    query = _query()
    operator = ChangingOperator(query, StreamOptions({}))
    row = {"key": 1, "since": instant(9), "until": instant(8)}
    operator.arriving = rows_table(query, [row])
    nothing = table_of(query.plan, [{"type": "A", "v": 1, "ts": instant(5)}])
    advance = partial(operator.advance, nothing.slice(0, 0), 0)
    with pytest.raises(EventError, match=r"row \{key: 1, since: .*valid until .* before it begins"):
        advance()


def _rule(key: int, since: int | None = None, until: int | None = None) -> dict[str, Any]:
    times = {"since": since, "until": until}
    return {"key": key} | {name: one and instant(one) for name, one in times.items()}


def _counts(operator: ChangingOperator) -> tuple[int, ...]:
    """Of the last micro-batch: rules that are held, came, are over and came late."""
    names = ("rules", "rules_added", "rules_ended", "rules_late")
    return tuple(operator.sum(name) for name in names)


def test_rules_that_are_held_added_ended_and_late_are_counted() -> None:
    query, rng = _query(), random.Random(0)
    operator = ChangingOperator(query, StreamOptions({}), rng=rng)
    of_none = table_of(query.plan, [{"type": "A", "v": 9, "ts": instant(99)}])
    begun = [_rule(1), _rule(2, 10, 20), _rule(3, 30)]
    late = [_rule(4, 5, 12), _rule(5, 5), _rule(3, 30, 35)]
    micro_batches = [
        (begun, 0, (3, 3, 0, 0)),
        # Two after their beginning, of which one is over, and one that another row forbids.
        ([_rule(1, 40), *late], 15, (5, 2, 0, 3)),
        ([_rule(1, 40)], 16, (5, 0, 0, 0)),
        ([], 25, (4, 0, 1, 0)),
        ([_rule(5, 26, 26)], 25, (5, 1, 0, 0)),
        ([], 60, (2, 0, 3, 0)),
    ]
    for rules, watermark, counts in micro_batches:
        operator.arriving = rows_table(query, rules) if rules else None
        operator.advance(of_none, watermark)
        assert _counts(operator) == counts, (rules, watermark)


def test_rules_that_are_read_again_after_a_restart_change_nothing() -> None:
    query = _query()
    operator = _begun(query)
    rules = rows_table(query, [_rule(1), _rule(2, 10, 40), _rule(1, 30)])
    later = table_of(query.plan, [{"type": "A", "v": 1, "ts": instant(n)} for n in (7, 50)])
    operator.arriving = rules
    operator.advance(later.slice(0, 1), 4)
    stored = [dict(operator.headers), {**operator.segments}]
    rule_versions._cache.clear()
    operator.arriving = rules
    operator.advance(later.slice(0, 0), 4)
    assert [operator.headers, operator.segments] == stored
    assert _counts(operator) == (3, 0, 0, 0)


def test_a_version_that_was_cut_by_a_shorter_one_does_not_come_back() -> None:
    """It is read again when both are over, and before the next version begins."""
    query, found = _query(), list[Any]()
    operator = ChangingOperator(query, StreamOptions({}), rng=random.Random(0))
    versions = [_rule(1, None, 39), _rule(1, 1, 4), _rule(1, 35, 38)]
    for watermark, rules in ((0, versions), (7, [_rule(2, 50)]), (10, [_rule(1, None, 39)])):
        operator.arriving = rows_table(query, rules)
        events = [{"type": "A", "v": 1, "ts": instant(watermark + n)} for n in (11, 12)]
        found += operator.advance(table_of(query.plan, events), watermark)
    assert not [*found, *operator.finish()]


def test_a_silent_table_holds_nothing_up() -> None:
    """Matches come in the micro-batch in which they come of a table that is fixed."""
    query, rules = _query(), [_rule(1), _rule(2)]
    parameters = query.plan.source.parameters
    assert parameters is not None
    rows = in_one_order(rows_of(query.name, parameters, rows_table(query, rules)))
    events = [{"type": "A", "v": 1 + n % 2, "ts": instant(n)} for n in range(1, 60)]
    table = table_of(query.plan, events)
    silent = ChangingOperator(query, StreamOptions({}), rng=random.Random(0))
    silent.arriving = rows_table(query, rules)
    options = StreamOptions({}, rules=hash_of_rows(rows))
    fixed = Operator(query, options, rng=random.Random(0), rules=rows)
    found = 0
    for number in range(10):
        batch, watermark = table.slice(6 * number, 6), max(0, 6 * number - 2)
        told = silent.advance(batch, watermark)
        assert not same_rows(told, fixed.advance(batch, watermark)), number
        silent.arriving, found = None, found + len(told)
    assert found > 50


def test_monitor_shows_what_becomes_of_rules() -> None:
    counts = {"rows": 3, "rules": 7, "rules_added": 2, "rules_ended": 1, "rules_late": 4}
    progress = {
        "batchId": 0,
        "durationMs": {},
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        "observedMetrics": {"celc_q": SimpleNamespace(asDict=lambda: counts)},
    }
    query: Any = SimpleNamespace(isActive=False, recentProgress=[progress], exception=lambda: None)
    out = io.StringIO()
    monitor(query, stream=out)
    head, line = out.getvalue().splitlines()
    assert head.split()[-6:] == ["rules", "added", "ended", "late", "rules", "watermark"]
    assert line.split()[-5:] == ["7", "2", "1", "4", "2026-01-01T00:00:00"]
    del counts["rules"]
    out = io.StringIO()
    monitor(query, stream=out)
    assert out.getvalue().splitlines()[0].split()[-2:] == ["state", "watermark"]
