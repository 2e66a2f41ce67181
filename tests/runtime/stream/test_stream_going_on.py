"""A changed query goes on with the state that the old query has left in the checkpoint.

Its rows must be those rows of the whole input that become known from then on. If the state does not
suffice, an error says why, and at which time the new query has to begin.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, StateError
from celc_runtime.arrow.tables.known_times import known_of
from celc_runtime.arrow.tables.slices import Slice
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.going_on import GoesOn, Known, Query, decided
from celc_runtime.stream.stored.needs import Needs, _conditions, lacking, needs_in, record_of
from celc_runtime.stream.tasks import formats_of
from engines import interpreted, only_query, table_of
from streams_by_hand import Operator, instant, perhaps_in_sections

import celc

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, k: STRING, v: DOUBLE, n: LONG, time: TIMESTAMP },
  EVENT B { id: INT, k: STRING, v: DOUBLE, n: LONG, time: TIMESTAMP },
  EVENT C { id: INT, k: STRING, v: DOUBLE, n: LONG, time: TIMESTAMP }
}
"""
_WITHIN = "PARTITION BY k WITHIN 200 MILLISECONDS"
_PAIR = f"WHERE (A AS x ; B AS y) FILTER y.v >= x.v {_WITHIN}"
_SILENT = "WHERE (A AS x FILTER x.v > 0.4) ; !(B AS z FILTER z.v > 0.4) FOR 150 MILLISECONDS"
_ORDERED = ("EVENTS", " : ", "LIMIT", "ANY", "LAST", "FIRST", "LONGEST")
"""Words that a query over simultaneous events cannot have."""

GOING_ON = [
    # The output, and what is checked while matches are listed.
    (f"SELECT x, y {_PAIR}", f"SELECT x[v], y[n] {_PAIR}"),
    (f"SELECT x, y {_PAIR}", f"SELECT y[n] {_PAIR} LIMIT 1"),
    (f"SELECT x, y {_PAIR}", f"SELECT ANY x, y {_PAIR}"),
    (f"SELECT x, y {_PAIR}", f"SELECT LAST x, y {_PAIR}"),
    (f"SELECT x, y {_PAIR}", f"SELECT x, y {_PAIR.replace('y.v >= x.v', 'y.n > x.n + 1')}"),
    (f"SELECT x, y {_PAIR}", f"SELECT COLLAPSED x {_PAIR}"),
    (f"SELECT x, y {_PAIR}", f"SELECT TOTAL COUNT(*) AS c, SUM(y.n) AS s {_PAIR} PER END"),
    (
        f"SELECT TOTAL COUNT(*) AS c {_PAIR} PER 300 MILLISECONDS",
        f"SELECT TOTAL SUM(x.v) AS c {_PAIR} PER 300 MILLISECONDS",
    ),
    # Constants, windows, and other formulas over the same events.
    (f"SELECT x {_PAIR}", f"SELECT x {_PAIR.replace('200', '90')}"),
    (
        f"SELECT x WHERE (A AS x ; B AS y) FILTER x.v > 0.4 AND y.v IN (0.5, 2, 3) {_WITHIN}",
        f"SELECT x WHERE (A AS x ; B AS y) FILTER x.v >= 1 AND y.v = 2 {_WITHIN}",
    ),
    (f"SELECT x WHERE A AS x ; B ; C {_WITHIN}", f"SELECT x WHERE C AS x ; A {_WITHIN}"),
    (f"SELECT x WHERE A AS x ; B+ ; C {_WITHIN}", f"SELECT x WHERE (A AS x ; !B ; C) {_WITHIN}"),
    (
        f"SELECT x WHERE A AS x ; B ; C FILTER x.v IS NOT NULL {_WITHIN}",
        f"SELECT x WHERE A AS x ; B FILTER x.v > 1 OR x.v = 0.5 {_WITHIN}",
    ),
    (
        f"SELECT FIRST x, y {_PAIR}",
        f"SELECT FIRST x, y {_PAIR.replace('y.v >= x.v', 'y.v > 0.5')}",
    ),
    (f"SELECT x, y {_PAIR}", f"SELECT FIRST x, y {_PAIR}"),
    # Absences.
    (
        f"SELECT x {_SILENT} PARTITION BY k",
        f"SELECT x[n] {_SILENT.replace('z.v > 0.4', 'z.v > 1')} PARTITION BY k",
    ),
    (
        f"SELECT x {_SILENT} PARTITION BY k",
        f"SELECT x {_SILENT.replace('x.v > 0.4', 'x.v > 1')} PARTITION BY k LIMIT 1",
    ),
    (
        f"SELECT x WHERE !C FOR 50 MILLISECONDS ; (A AS x ; B) {_WITHIN}",
        f"SELECT x WHERE !C FOR 30 MILLISECONDS ; (A AS x ; B) FILTER x.v > 0.5 {_WITHIN}",
    ),
    (
        f"SELECT x WHERE A AS x ; !B {_WITHIN}",
        f"SELECT x WHERE (A AS x FILTER x.v > 0.5) ; !B {_WITHIN}",
    ),
    # Matches that wait.
    (
        f"SELECT LONGEST x, y {_PAIR}",
        f"SELECT LONGEST x, y {_PAIR.replace('y.v >= x.v', 'y.v > 0.5')}",
    ),
    # Neighbours, and numbers of events.
    (
        "SELECT x WHERE A AS x : B+ : C PARTITION BY k WITHIN 6 EVENTS",
        "SELECT x[v] WHERE A AS x : B : (B OR C) PARTITION BY k WITHIN 6 EVENTS",
    ),
    (
        f"SELECT x WHERE A AS x : B AS y {_WITHIN}",
        f"SELECT x WHERE (A AS x : B AS y) FILTER y.v > 0.5 {_WITHIN}",
    ),
]
"""(old query, new query): the new one goes on with the state of the old one."""

REFUSED = [
    (f"SELECT x[v] {_PAIR}", f"SELECT x[id] {_PAIR}", "it reads the column 'id'"),
    (f"SELECT x {_PAIR}", f"SELECT x {_PAIR.replace('200', '201')}", "WITHIN: 0:00:00.200000 [ti"),
    (f"SELECT x {_PAIR}", f"SELECT x {_PAIR.replace('BY k', 'BY k, id')}", "PARTITION BY: k → k, "),
    (f"SELECT x {_PAIR}", f"SELECT x WHERE A AS x ; C {_WITHIN}", "events of type 'C', of which"),
    (
        f"SELECT x WHERE (A AS x ; B) FILTER x.v > 1 {_WITHIN}",
        f"SELECT x WHERE (A AS x ; B) FILTER x.v > 0.5 {_WITHIN}",
        "conditions on events of type 'A' are not those of the old query",
    ),
    (
        f"SELECT x WHERE (A AS x ; B) FILTER x.v + 1 > 1 {_WITHIN}",
        f"SELECT x WHERE (A AS x ; B) FILTER x.v + 1 > 2 {_WITHIN}",
        "nor known to be stricter",
    ),
    (f"SELECT x {_PAIR}", f"SELECT x {_SILENT} PARTITION BY k", "absences at the end: none → 0:00"),
    (f"SELECT x {_PAIR}", f"SELECT LONGEST x {_PAIR}", "other matches of a start (all matches → L"),
    (f"SELECT x {_PAIR}", f"SELECT x {_PAIR} CONSUME BY ANY", "the new query has CONSUME BY"),
    (
        "SELECT x WHERE A AS x PARTITION BY k",
        "SELECT x WHERE A AS x ; A PARTITION BY k",
        "matches of the old query have one event",
    ),
    (
        f"SELECT TOTAL COUNT(*) AS c {_PAIR} PER 300 MILLISECONDS",
        f"SELECT TOTAL COUNT(*) AS c {_PAIR} PER 200 MILLISECONDS",
        "the spans of totals",
    ),
    (
        f"SELECT x WHERE !C FOR 50 MILLISECONDS ; (A AS x ; B) {_WITHIN}",
        f"SELECT x WHERE !C FOR 60 MILLISECONDS ; (A AS x ; B) {_WITHIN}",
        "it looks 0:00:00.060000 [time] back before a match",
    ),
    (
        "SELECT x WHERE A AS x : B PARTITION BY k WITHIN 6 EVENTS",
        "SELECT x WHERE A AS x : B PARTITION BY k WITHIN 5 EVENTS",
        "WITHIN: 6 EVENTS → 5 EVENTS",
    ),
]
"""(old query, new query, a part of the error): the state does not suffice for the new one."""


def _compiled(body: str, ties: str = "error", *, positions: bool = False) -> CompiledQuery:
    with interpreted():
        if ties == "error":
            found = celc.compile(_DECLARED + body, order_by="time", tiebreak="row")
        else:
            found = celc.compile(_DECLARED + body, order_by="time", ties=ties)
    query: CompiledQuery = only_query(found).with_options(positions=positions)
    return query


def _options(query: CompiledQuery, **more: Any) -> StreamOptions:
    ties = {"row": "LONG"} if query.plan.source.ties is None else {}
    return StreamOptions(ties, buckets=2 if query.plan.source.partition_by else 1, **more)


def _needs(query: CompiledQuery) -> Needs:
    found = needs_in(formats_of(query.program, _options(query)).states.fresh(0).record)
    assert found is not None
    return found


def _events(rng: random.Random, count: int, step: int) -> list[dict[str, Any]]:
    return [
        {
            "type": rng.choice("AABBC"),
            "id": rng.choice((1, 2, None)),
            "k": rng.choice(("a", "b", None)),
            "v": rng.choice((0.5, 1.0, 2.0, 3.0, None)),
            "n": number // 2,
            "time": instant(1000 + step * (number // (1 if step > 5 else 2))),
            "row": number,
        }
        for number in range(count)
    ]


def _table(query: CompiledQuery, events: list[dict[str, Any]]) -> pa.Table | None:
    if not query.plan.source.tiebreak:
        events = [{name: v for name, v in one.items() if name != "row"} for one in events]
    return table_of(query.plan, events) if events else None


def _in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def _bare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without positions, which a stream and `match_table` count from different events.
    The events of a label are sorted, because those of one instant come in any order."""
    return [
        {
            name: (
                sorted(({n: v for n, v in one.items() if n != "pos"} for one in value), key=repr)
                if isinstance(value, list)
                else value
            )
            for name, value in row.items()
            if name not in ("start_pos", "end_pos")
        }
        for row in rows
    ]


def _handed_over(old: CompiledQuery, new: CompiledQuery, seed: int) -> int:
    """Run a stream with one query, and from a random micro-batch on with another one.

    The rows of the first must be those known until then, the rows of the second those known later.
    Returns the number of the latter.
    """
    rng = random.Random(seed)
    step = rng.choice((1, 10, 30))
    events = _events(rng, rng.randint(12, 40), step)
    delay, half = rng.choice((1, 20, 45)), rng.randint(2, len(events) - 4)
    operator = Operator(old, _options(old), rng=rng)
    told: list[list[dict[str, Any]]] = [[], []]
    watermark, place, since = 0, 0, None
    query = old
    while place < len(events):
        if place >= half and query is old:
            needs, identity = _needs(old), formats_of(old.program, operator.options).states
            since = needs.given_by(1000 * operator.watermark)
            accepts = ((identity.identity, identity.fresh(0).record),)
            before, query = operator, new
            operator = Operator(new, _options(new, accepts=accepts), rng=rng)
            operator.headers, operator.segments = before.headers, before.segments
            operator.timers, operator.watermark = before.timers, before.watermark
        count = rng.randint(1, 3)
        chosen, place = events[place : place + count], place + count
        rng.shuffle(chosen)
        told[query is new] += operator.advance(_table(query, chosen), watermark)
        latest = max(one["time"].timestamp() for one in events[:place])
        watermark = max(0, round(latest * 1000) - delay)
    assert since is not None
    told[1] += operator.finish()
    assert not operator.counts["late"]
    rows = Slice(new.program, known_of(new.program), since, None).rows
    schema = new.program.output_schema
    kept = rows.of_rows(pa.RecordBatch.from_pylist(told[1], schema=schema)).to_pylist()
    kept, told[0] = _bare(kept), _bare(told[0])
    table = _table(new, events)
    assert table is not None
    at = instant(0) + (instant(1) - instant(0)) * since / 1000
    wanted = _bare(new.with_options(at_end="closed").match_table(table, after=at).to_pylist())
    assert _in_order(kept) == _in_order(wanted)
    if not _needs(old).mixes:
        until = _bare(old.with_options(at_end="closed").match_table(table, until=at).to_pylist())
        assert _in_order(told[0]) == _in_order(until)
    return len(kept)


@pytest.mark.parametrize(("old", "new"), [GOING_ON[0], GOING_ON[9]])
def test_a_changed_query_goes_on(old: str, new: str) -> None:
    before, after = (_compiled(one) for one in (old, new))
    for seed in range(2):
        _handed_over(before, after, seed)


@pytest.mark.long
@pytest.mark.parametrize(("old", "new"), GOING_ON)
@pytest.mark.parametrize("ties", ["error", "simultaneous"])
@pytest.mark.parametrize("positions", [False, True])
def test_a_changed_query_goes_on_at_many_places(
    old: str, new: str, ties: str, *, positions: bool
) -> None:
    if ties != "error" and any(word in old + new for word in _ORDERED):
        return
    before, after = (_compiled(one, ties, positions=positions) for one in (old, new))
    assert not lacking(_needs(before), _needs(after))
    rows = 0
    for seed in range(40):
        with perhaps_in_sections(random.Random(seed)):
            rows += _handed_over(before, after, seed)
    assert rows


@pytest.mark.parametrize(("old", "new", "told"), REFUSED)
def test_what_does_not_suffice_is_told(old: str, new: str, told: str) -> None:
    reasons = lacking(_needs(_compiled(old)), _needs(_compiled(new)))
    assert any(one.startswith(told) or told in one for one in reasons), reasons


# --- what the driver decides ----------------------------------------------------------------------

_A, _B, _C = (
    f"SELECT x[v] WHERE (A AS x ; B) FILTER x.v > {least} {_WITHIN}" for least in (0, 1, 2)
)


def _known(*notes: Query, header: bytes = b"", last_batch: int = 5, **more: Any) -> Known:
    known = {"begun_batch": last_batch, "watermark": 1_600_000, **more}
    return Known(((0, header),), notes, last_batch, **known)


def _header(body: str, *, is_recorded: bool = True) -> bytes:
    query = _compiled(body)
    formats = formats_of(query.program, _options(query))
    if not is_recorded:
        formats = StreamFormats(query.program, _options(query))
    return formats.states.written(formats.states.fresh(0))


def _decided(body: str, known: Known) -> GoesOn:
    query = _compiled(body)
    return decided(query.program, formats_of(query.program, _options(query)), known, "folder")


def test_a_change_is_noted_when_it_has_run() -> None:
    """A note counts from its first micro-batch on, and then no wider query may follow."""
    begun = _known(header=_header(_A))
    assert _decided(_A, begun) == GoesOn((), None)
    changed = _decided(_B, begun)
    assert [one.after_batch for one in changed.new] == [-1, 5]
    assert changed.since == 1_600_000
    assert [record for _, record in changed.accepts] == [changed.new[0].record]
    # It has not run: the first one goes on, and says so.
    back = _decided(_A, _known(*changed.new, header=_header(_A)))
    assert (back.since, [one.after_batch for one in back.new]) == (None, [5])
    notes = (*changed.new, *back.new)
    assert _decided(_A, _known(*notes, header=_header(_A), last_batch=6)).new == ()
    # It has run, in micro-batches that met no bucket.
    ran = _known(*changed.new, header=_header(_A), last_batch=7)
    assert _decided(_B, ran) == GoesOn(changed.accepts, 1_600_000)
    assert len(_decided(_C, ran).accepts) == 2
    with pytest.raises(StateError, match=r"after='1970-01-01 00:00:01\.600000\+00:00'"):
        _decided(_A, ran)


@pytest.mark.parametrize(
    ("old", "new", "more", "told"),
    [
        (_B, _A, {}, "after='1970-01-01 00:00:01.600000+00:00': all rows that are known by then"),
        (_B, _A, {"begun_batch": 6}, "Its stream was stopped within micro-batch 6: start it once"),
        (_B, _A, {"watermark": None}, "No row has been returned yet: begin a new checkpoint"),
        (_B, f"{_B} CONSUME BY ANY", {}, "'query' cannot begin in the midst of a stream: CONSUME"),
        (f"SELECT x {_SILENT}", _A, {}, "after='1970-01-01 00:00:01.599999+00:00': all rows"),
        (
            "SELECT x WHERE A AS x OR (A AS x ; !B FOR 1 SECOND)",
            _A,
            {},
            "(but for rows that wait for no absence and end at 1970-01-01 00:00:01.600000+00:00,",
        ),
    ],
)
def test_the_way_out_is_told(old: str, new: str, more: dict[str, Any], told: str) -> None:
    with pytest.raises(StateError, match=re.escape(told)):
        _decided(new, _known(header=_header(old), **more))


def test_a_state_of_the_first_version_says_nothing_of_needs() -> None:
    with pytest.raises(StateError, match="written by a version of celc that notes less"):
        _decided(_B, _known(header=_header(_A, is_recorded=False)))
    assert _decided(_A, _known(header=_header(_A, is_recorded=False))) == GoesOn((), None)


def test_queries_of_one_shape_have_conditions_of_their_own() -> None:
    """They share a kernel, which takes the constants of each."""
    texts = [
        f"QUERY q{number}: SELECT x FROM S WHERE A AS x FILTER x.v > {number}" for number in (1, 2)
    ]
    both = celc.compile(_DECLARED + "\n".join(texts), order_by=["time"])
    programs = [one.program for one in (both.q1, both.q2)]
    assert len({_conditions(program) for program in programs}) == 2


def test_a_damaged_record_is_refused() -> None:
    record = record_of(_needs(_compiled(_A)))
    assert needs_in(record) == _needs(_compiled(_A))
    assert needs_in(b"") is None
    for place in range(len(record)):
        changed = bytes([*record[:place], record[place] ^ 1, *record[place + 1 :]])
        with suppress(StateError):
            assert needs_in(changed) is not None, "it was read as something else"
