"""Time ranges without Spark: parts of a stream give together what the stream gives as a whole.

Seams are drawn at random, so that they lie anywhere, also where events stand at one time.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from celc_runtime import CompiledQuery, EventError, EventWarning
from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.plan.plan import Window
from celc_runtime.run.ranges import (
    Cuts,
    Sample,
    TimeRange,
    cuts_for,
    ranges_of,
    why_not_split,
    worthwhile,
)
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.numbering import why_not_numbered
from celc_runtime.spark.worker.task_columns import EVENTS_ALONE
from celc_runtime.spark.worker.tasks import matches_of_task
from engines import batches_of, engines, interpreted, only_query, table_of
from numbered_rows import COLUMNS, numbered_rows
from strategies import DECLARATION, random_stream

import celc
from celc.options import Options

SPLIT = (
    "SELECT * FROM S WHERE A ; B ; C WITHIN 4 EVENTS",
    "SELECT * FROM S WHERE A ; B+ ; C WITHIN 5 [ts]",
    "SELECT * FROM S WHERE (A : B OR C)+ WITHIN 3 EVENTS",
    "SELECT * FROM S WHERE (A ; C) UNLESS B WITHIN 6 [ts]",
    "SELECT * FROM S WHERE A ; !B ; (C OR D) WITHIN 5 EVENTS",
    "SELECT * FROM S WHERE A ALL (B ; C) WITHIN 4 EVENTS",
    "SELECT ANY * FROM S WHERE A+ ; B WITHIN 6 [ts]",
    "SELECT * FROM S WHERE A+ ; B WITHIN 6 EVENTS LIMIT 3",
    "SELECT NXT * FROM S WHERE A+ ; B ; C WITHIN 7 [ts]",
    "SELECT LAST * FROM S WHERE A+ ; B WITHIN 7 EVENTS",
    "SELECT FIRST * FROM S WHERE A+ ; B ; C WITHIN 7 [ts]",
    "SELECT MAX * FROM S WHERE (A+ ; B)+ ; C WITHIN 5 [ts]",
    "SELECT STRICT * FROM S WHERE (A OR B)+ ; C WITHIN 4 [ts]",
    "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id "
    "WITHIN 6 EVENTS",
    "SELECT * FROM S WHERE ((A AS x)+ ; (B AS y)+) FILTER x.value < y.value WITHIN 5 [ts]",
    "SELECT MAX * FROM S WHERE ((A AS x)+ ; B AS y) FILTER x.value < y.value WITHIN 6 [ts]",
    "SELECT * FROM S WHERE A AS x ; !(B AS y FILTER y.id = x.id) ; C WITHIN 5 EVENTS",
    "SELECT * FROM S WHERE A AS x ; !((B AS y)+ FILTER y.id = x.id) ; C WITHIN 5 EVENTS",
    "SELECT x, COUNT(y) AS n, SUM(y.value) AS s FROM S WHERE A AS x ; (B AS y)+ WITHIN 4 [ts]",
    "SELECT * FROM S WHERE !B FOR 4 [ts] ; A ; C WITHIN 5 [ts]",
    "SELECT * FROM S WHERE !(B AS y FILTER y.id = x.id) FOR 9 EVENTS ; A AS x WITHIN 0 EVENTS",
    "SELECT * FROM S WHERE !(!C FOR 2 EVENTS ; B : D) FOR 6 EVENTS ; A ; C WITHIN 4 EVENTS",
)
"""Every way to run a query that has a window: both engines, each chooser, keys, checks."""

SPLIT_WITH_DEADLINES = (
    "SELECT * FROM S WHERE A ; !B FOR 3 [ts]",
    "SELECT * FROM S WHERE A ; C ; !B FOR 4 [ts] WITHIN 5 [ts]",
    "SELECT * FROM S WHERE A ; C ; !B FOR 4 [ts] WITHIN 5 EVENTS",
    "SELECT * FROM S WHERE A AS x ; C ; !(B AS y FILTER y.id = x.id) WITHIN 6 [ts]",
    "SELECT * FROM S WHERE A AS x ; !((B AS y ; C AS z) FILTER y.id = x.id AND z.id = y.id) "
    "FOR 4 [ts]",
    "SELECT * FROM S WHERE !D FOR 3 [ts] ; A ; !(B ; C) FOR 5 [ts]",
    "SELECT * FROM S WHERE (A ; !B FOR 3 [ts]) OR (C ; D) WITHIN 4 [ts]",
    "SELECT NXT * FROM S WHERE A ; C ; !B FOR 2 [ts] WITHIN 6 [ts]",
    "SELECT * FROM S WHERE A ; C WITHIN 4 [ts]",
)
"""Queries of which a match can be decided by events after it; and the like without such events."""

WHOLE = {
    "SELECT * FROM S WHERE A ; B": "no window",
    "SELECT * FROM S WHERE A ; NXT(B ; C) WITHIN 2 EVENTS": "a selector inside",
    "SELECT * FROM S WHERE LAST(A ; B) ; C WITHIN 2 [ts]": "a selector inside",
    "SELECT * FROM S WHERE C ; MAX(A+ ; B) WITHIN 2 EVENTS": "a selector inside",
    "SELECT * FROM S WHERE A AS x ; MAX((B AS y FILTER y.id = x.id)+ ; C) WITHIN 2 [ts]": (
        "a selector inside"
    ),
    "SELECT * FROM S WHERE A ; B WITHIN 2 EVENTS CONSUME BY ANY": "CONSUME BY ANY",
    "SELECT * FROM S WHERE A ; B PARTITION BY id WITHIN 2 EVENTS CONSUME BY PARTITION": (
        "CONSUME BY PARTITION"
    ),
    "SELECT LONGEST * FROM S WHERE A ; B WITHIN 2 EVENTS": "SELECT LONGEST compares",
    "SELECT FIRST * FROM S WHERE (A AS x ; B AS y) FILTER x.id < y.id WITHIN 2 EVENTS": (
        "SELECT FIRST compares"
    ),
    "SELECT * FROM S WHERE A ; B WITHIN 2 [value]": "the window is measured on 'value'",
    "SELECT * FROM S WHERE !B FOR 2 EVENTS ; A ; C WITHIN 2 [ts]": "in another way than the window",
    "SELECT * FROM S WHERE !(B : C) FOR 2 [value] ; A ; C WITHIN 2 EVENTS": "in another way",
    "SELECT * FROM S WHERE A ; !B FOR 2 EVENTS": "measured in events, on another column",
    "SELECT * FROM S WHERE A ; C ; !B FOR 2 [value] WITHIN 3 [ts]": "measured in events, on",
}


def _compiled(text: str, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(DECLARATION + text, order_by="ts", **options))


def _events(rng: random.Random, length: int) -> list[dict[str, Any]]:
    events = random_stream(rng, length, nulls=0.05, strangers=0.1)
    return [{**event, "row": row} for row, event in enumerate(events)]


def _column(query: CompiledQuery) -> OrderColumn:
    name = query.plan.source.order_by[0]
    return OrderColumn(name, query.plan.source.type_of(name), "bigint")


def _counts(values: np.ndarray, borders: Sequence[int | float]) -> list[int]:
    places = np.searchsorted(np.array(borders), values, side="right")
    return np.bincount(places, minlength=len(borders) + 1).tolist()


def _ranges(query: CompiledQuery, events: pa.Table, rng: random.Random) -> list[TimeRange]:
    """Ranges with random seams, by the same functions as on Spark."""
    window = query.plan.whole_window
    assert window is not None
    known = pc.is_in(events["type"], pa.array([name for _, name in _declared(query)]))
    values = np.asarray(events["ts"].filter(known))
    distinct = sorted({int(value) for value in np.asarray(events["ts"])})
    seams = sorted(rng.sample(distinct[1:], min(3, len(distinct) - 1)))
    lows = []
    for seam in seams:
        if window.unit == "EVENTS":
            before = [value for value in distinct if value < seam]
            lows.append(tuple(sorted(rng.sample(before, min(4, len(before))))))
        else:
            low = _column(query).window_start(seam, window)
            assert low is not None
            lows.append((low,))
    deadline, ends = query.plan.farthest_deadline, []
    if deadline is not None:
        ends = [_column(query).deadline_end(seam, deadline) for seam in seams]
    cuts = Cuts(tuple(seams), tuple(lows), tuple(ends))
    return ranges_of(cuts, _counts(values, cuts.borders), window)


def _with_clock(query: CompiledQuery, events: pa.Table) -> CompiledQuery:
    """The query as `match` hands it to tasks: they do not see the latest event of all."""
    if not query.plan.asks_for_clock:
        return query
    known = pc.is_in(events["type"], pa.array([name for _, name in _declared(query)]))
    latest = pc.max(events["ts"].filter(known)).as_py()
    return query if latest is None else query.with_options(clock=latest)


def _declared(query: CompiledQuery) -> list[tuple[str, str]]:
    return [*query.plan.source.types, *query.plan.source.other_types]


def _rows_of(events: pa.Table, part: TimeRange) -> pa.Table:
    mask = pa.array(np.ones(len(events), np.bool_))
    if part.low is not None:
        mask = pc.and_(mask, pc.greater_equal(events["ts"], part.low))
    if part.end is not None:
        mask = pc.and_(mask, pc.less(events["ts"], part.end))
    return events.filter(mask)


_ORDERED = Options(order_by=("ts",), tiebreak=("row",))
_SIMULTANEOUS = Options(order_by=("ts",), ties="simultaneous")
_ALL = [(text, _ORDERED) for text in (*SPLIT, *SPLIT_WITH_DEADLINES)]
_ALL += [
    (text, _SIMULTANEOUS)
    for text in SPLIT_WITH_DEADLINES
    if " EVENTS" not in text and "SELECT *" in text
]


@pytest.mark.each(8)
@pytest.mark.parametrize(("text", "options"), _ALL)
def test_ranges_find_together_what_the_stream_holds(text: str, options: Options) -> None:
    with interpreted():
        found = engines(DECLARATION + text, options)
    assert found
    for matcher in found.values():
        query = only_query(matcher)
        assert not why_not_split(query.plan)
        matches = numbered = 0
        for seed in range(4):
            rng = random.Random(f"{text} {seed}")
            events = table_of(query.plan, _events(rng, 80))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                wanted = query.match_table(events)
                program = _with_clock(query, events).program
                undecided: list[int] = []
                whole, tell = events.to_batches(), undecided.append
                list(matches_of_task(program, EVENTS_ALONE, (), whole, tell))
                of_whole, rows = undecided.pop(), list[dict[str, Any]]()
                for part in _ranges(query, events, rng):
                    of_part, columns = _rows_of(events, part), EVENTS_ALONE
                    if seed % 2 and not why_not_numbered(query.plan):
                        of_part, columns = numbered_rows(query.plan, of_part, part), COLUMNS
                        numbered += 1
                    batches, shipped = batches_of(of_part, rng), (part.shipped,)
                    for batch in matches_of_task(program, columns, shipped, batches, tell):
                        rows += batch.to_pylist()
            assert _shown(rows) == _shown(wanted.to_pylist()), seed
            assert sum(undecided) == of_whole, seed
            matches += len(rows)
        assert matches
        assert bool(numbered) is not bool(why_not_numbered(query.plan))


def _shown(rows: list[dict[str, Any]]) -> list[str]:
    # NaN and all.
    return [repr(row) for row in rows]


@pytest.mark.each(3)
@pytest.mark.parametrize(
    "text",
    SPLIT[:2]
    + SPLIT[3:4]
    + SPLIT[9:10]
    + SPLIT[12:14]
    + SPLIT[-3:]
    + SPLIT_WITH_DEADLINES[:1]
    + SPLIT_WITH_DEADLINES[3:5],
)
def test_a_hot_key_in_ranges_beside_others(text: str) -> None:
    """The stream as a worker gets it: by key, a hot one by the number of its range."""
    head, within, window = text.rpartition(" WITHIN") if "WITHIN" in text else (text, "", "")
    query = _compiled(f"{head} PARTITION BY id{within}{window}", tiebreak="row")
    matches = 0
    for seed in range(4):
        rng = random.Random(f"{text} {seed}")
        events, _ = sorted_for(query.plan, table_of(query.plan, _events(rng, 150)))
        of_key = {key: events.filter(_is(events["id"], key)) for key in (None, 0, 1, 2, 3)}
        hot = rng.choice([None, 1])
        numbers = COLUMNS if seed % 2 and not why_not_numbered(query.plan) else EVENTS_ALONE
        columns = numbers._replace(range="range")
        parts: list[pa.Table] = []
        ranges: list[TimeRange] = []
        for key, rows in of_key.items():
            cut = _ranges(query, rows, rng) if key in (hot, 2) else [None]
            for part in cut:
                if part is not None:
                    ranges.append(part)
                table = rows if part is None else _rows_of(rows, part)
                if columns.number:
                    table = numbered_rows(query.plan, table, part)
                number = pa.array([0 if part is None else len(ranges)] * len(table), pa.int32())
                parts.append(table.append_column("range", number))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            wanted = query.match_table(events)
            shipped = tuple(part.shipped for part in ranges)
            batches = batches_of(pa.concat_tables(parts), rng)
            program = _with_clock(query, events).program
            found = [
                row
                for batch in matches_of_task(program, columns, shipped, batches)
                for row in batch.to_pylist()
            ]
        assert _shown(found) == _shown(wanted.to_pylist()), seed
        matches += len(found)
    assert matches > 3


def _is(column: pa.ChunkedArray, key: int | None) -> pa.ChunkedArray:
    return column.is_null() if key is None else pc.fill_null(pc.equal(column, key), False)


@pytest.mark.parametrize(("text", "why"), WHOLE.items())
def test_what_depends_on_all_that_came_before_is_not_split(text: str, why: str) -> None:
    query = _compiled(text)
    assert why in why_not_split(query.plan)


def _stream(*types: str) -> list[dict[str, Any]]:
    return [
        {"type": name, "id": 1, "value": float(ts), "ts": ts, "row": ts}
        for ts, name in enumerate(types)
    ]


_PAST = {
    "SELECT * FROM S WHERE A ; NXT(B ; C) WITHIN 2 EVENTS": "BDDDDABCDD",
    "SELECT * FROM S WHERE LAST(A+ ; B) ; C WITHIN 2 EVENTS": "ADDDDABCDD",
    "SELECT * FROM S WHERE C ; MAX(A+ ; B) WITHIN 2 EVENTS": "ADDDDCABDD",
    "SELECT * FROM S WHERE A AS x ; MAX((B AS y FILTER y.id = x.id)+ ; C) WITHIN 2 [ts]": (
        "BDDDDABCDD"
    ),
    "SELECT * FROM S WHERE A ; B ; A WITHIN 2 EVENTS CONSUME BY ANY": "DABABABABABABAB",
    "SELECT * FROM S WHERE A ; B ; A PARTITION BY id WITHIN 2 EVENTS CONSUME BY PARTITION": (
        "DABABABABABABAB"
    ),
}
"""Queries of which an event long before changes the answer, with such streams."""


@pytest.mark.parametrize(("text", "types"), _PAST.items())
def test_an_event_long_before_changes_the_answer(text: str, types: str) -> None:
    """So a range that does not see it is wrong: these queries are never split."""
    query = _compiled(text)
    events = table_of(query.plan, _stream(*types))
    wanted = query.match_table(events).to_pylist()
    late, after = ((5, 3, len(types) - 3, None),), events.slice(3).to_batches()
    found = [
        row
        for batch in matches_of_task(query.program, EVENTS_ALONE, late, after)
        for row in batch.to_pylist()
    ]
    assert found != [row for row in wanted if row["end_pos"] >= 5]
    assert why_not_split(query.plan)


def test_events_that_were_not_counted_are_noticed() -> None:
    query = _compiled(SPLIT[0], tiebreak="row")
    events = table_of(query.plan, _stream(*"ABCABC"))
    message = r"had 7 events when they were counted and 6 when they were read.*ranges=1"
    with pytest.raises(EventError, match=message):
        list(matches_of_task(query.program, EVENTS_ALONE, ((3, 0, 7, None),), events.to_batches()))
    # A task that Spark gives no rows at all.
    with pytest.raises(EventError, match=r"had 2 events .* and 0 when"):
        list(matches_of_task(query.program, EVENTS_ALONE, ((3, 0, 2, None),), []))


def test_numbered_events_that_were_not_counted_are_noticed() -> None:
    query = _compiled("SELECT * FROM S WHERE A ; C WITHIN 5 [ts]", tiebreak="row")
    events = table_of(query.plan, _stream(*"ABCAB"))
    for counted, found in ((4, "more"), (6, "fewer")):
        part = TimeRange(None, None, None, 0, counted)
        handed = numbered_rows(query.plan, events, part)
        with pytest.raises(EventError, match=rf"had {counted} events .* and {found} when"):
            list(matches_of_task(query.program, COLUMNS, (part.shipped,), handed.to_batches()))


def test_a_tie_is_an_error_in_a_range_as_well() -> None:
    query = _compiled(SPLIT[0])
    events = table_of(query.plan, [*_stream(*"ABC"), *_stream(*"ABC")[2:]])
    with pytest.raises(EventError, match="two events are equal in ts"):
        list(matches_of_task(query.program, EVENTS_ALONE, ((1, 0, 4, None),), events.to_batches()))


# --- choosing seams -------------------------------------------------------------------------------


def test_seams_cut_a_sample_into_equal_shares() -> None:
    order = OrderColumn("ts", "LONG", "bigint")
    sample = Sample(100_000, tuple(range(1000, 2023)))
    cuts = cuts_for(sample, order, Window("VALUE", 10, None), 4)
    assert cuts.seams == (1256, 1512, 1767)
    assert cuts.lows == ((1246,), (1502,), (1757,))
    assert cuts.borders == [1246, 1256, 1502, 1512, 1757, 1767]


def test_one_value_for_most_events_leaves_fewer_seams() -> None:
    order = OrderColumn("ts", "LONG", "bigint")
    grid = (*[5] * 900, *range(6, 129))
    cuts = cuts_for(Sample(1000, grid), order, Window("VALUE", 1, None), 8)
    assert cuts.seams == ()  # 5 is the first value there is
    later = (*range(100), *[500] * 923)
    assert cuts_for(Sample(1000, later), order, Window("VALUE", 1, None), 8).seams == (500,)
    assert cuts_for(Sample(0, ()), order, Window("VALUE", 1, None), 8) == Cuts((), ())


def test_a_window_of_events_gets_values_far_enough_back() -> None:
    order = OrderColumn("ts", "LONG", "bigint")
    sample = Sample(1_023_000, tuple(range(1023)))
    cuts = cuts_for(sample, order, Window("EVENTS", 4000, None), 2)
    ((*lows,),) = cuts.lows
    assert cuts.seams == (512,)
    assert lows == [512 - 28, 512 - 14, 512 - 7]
    # The latest value with enough events behind it is taken, whatever the sample said.
    counts = [1000] * 5
    assert [r.low for r in ranges_of(cuts, counts, Window("EVENTS", 1000, None))] == [None, 505]
    assert [r.low for r in ranges_of(cuts, counts, Window("EVENTS", 1001, None))] == [None, 498]
    assert [r.low for r in ranges_of(cuts, counts, Window("EVENTS", 3001, None))] == [None, None]


def test_ranges_count_on_from_each_other() -> None:
    cuts = Cuts((10, 20), ((7,), (17,)))
    ranges = ranges_of(cuts, [5, 4, 3, 2, 1], Window("VALUE", 3, None))
    assert ranges == [
        TimeRange(None, None, 10, 0, 9),
        TimeRange(7, 10, 20, 5, 9),
        TimeRange(17, 20, None, 12, 3),
    ]


def test_a_range_reads_on_as_far_as_a_deadline_lies() -> None:
    cuts = Cuts((10, 20), ((7,), (17,)), (14, 25))
    assert cuts.borders == [7, 10, 14, 17, 20, 25]
    ranges = ranges_of(cuts, [5, 4, 3, 2, 1, 6, 7], Window("VALUE", 3, None))
    assert ranges == [
        TimeRange(None, None, 14, 0, 12, 10),
        TimeRange(7, 10, 25, 5, 16, 20),
        TimeRange(17, 20, None, 14, 14),
    ]


@pytest.mark.parametrize(
    ("declared", "found", "number", "size", "end"),
    [
        ("LONG", "bigint", 10, 5, 15),
        ("LONG", "bigint", 10, 5.5, 16),
        ("LONG", "bigint", 2**63 - 2, 5, None),
        ("DATE", "date", 20_000, 36 * 3_600 * 10**6, 20_002),
        ("DATE", "date", -141_440, 2 * 86_400 * 10**6, -141_424),
        ("TIMESTAMP", "timestamp", 7, 3, 10),
        ("TIMESTAMP", "timestamp_ntz", 253_402_300_799_999_999, 3, None),
    ],
)
def test_where_deadlines_end(
    declared: str, found: str, number: int, size: float, end: int | None
) -> None:
    order = OrderColumn("ts", declared, found)
    assert order.deadline_end(number, Window("VALUE", size, None)) == end


def test_fewer_ranges_where_the_window_holds_most_of_each() -> None:
    seams = tuple(range(100, 1600, 100))
    counts_of = [10] * 16
    cuts = Cuts(seams, tuple((seam - 100,) if seam > 100 else () for seam in seams))
    # Borders and seams are the same values here, so 16 buckets.
    ranges = worthwhile(cuts, counts_of, Window("VALUE", 100, None))
    assert [r.start for r in ranges] == [None, 200, 400, 600, 800, 1000, 1200, 1400]
    assert sum(r.rows for r in ranges) == 160 + 7 * 10
    for earlier, later in pairwise(ranges):
        assert earlier.end == later.start
    wide = Cuts(seams, tuple(() for _ in seams))
    assert len(worthwhile(wide, counts_of, Window("VALUE", 10**6, None))) == 1


@pytest.mark.parametrize(
    ("declared", "found", "number", "size", "wanted"),
    [
        ("LONG", "bigint", 10, 2.5, 7),
        ("LONG", "bigint", -(2**63) + 5, 6, None),
        ("TIMESTAMP", "timestamp", 1_000_000, 600_000_000, -599_000_000),
        ("TIMESTAMP", "timestamp_ntz", -62_135_596_800_000_000, 1, None),
        ("DATE", "date", 3, 86_400_000_000, 2),
        ("DATE", "date", 3, 1, 2),
        ("DATE", "date", -141_420, 10 * 86_400_000_000, -141_441),
        ("DOUBLE", "double", 1e308, 1e308, -1.0),
        ("DOUBLE", "double", -1.7e308, 1e308, None),
    ],
)
def test_where_a_window_can_reach_to(
    declared: str, found: str, number: int | float, size: int | float, wanted: int | float | None
) -> None:
    low = OrderColumn("ts", declared, found).window_start(number, Window("VALUE", size, None))
    if wanted == -1.0:
        assert low is not None
        assert low < 0.0
    else:
        assert low == wanted


def test_a_window_of_fractions_never_reaches_before_its_start() -> None:
    """`end - start <= size` rounds; the value that is read from must not be after such a start."""
    order = OrderColumn("ts", "DOUBLE", "double")
    rng = np.random.default_rng(1)
    for _ in range(2000):
        seam, size = rng.normal() * 10.0 ** rng.integers(-5, 15), rng.random() * 10.0
        low = order.window_start(float(seam), Window("VALUE", float(size), None))
        assert low is not None
        start = np.nextafter(low, -np.inf)
        assert not seam - start <= size


def test_rows_before_is_what_accumulate_says() -> None:
    """`worthwhile` merges counts; the sums between the borders that are left stay the same."""
    rng = random.Random(5)
    for _ in range(50):
        seams = tuple(sorted(rng.sample(range(1000), 7)))
        lows = tuple((seam - rng.randint(1, 200),) for seam in seams)
        cuts = Cuts(seams, lows)
        counts = [rng.randint(0, 9) for _ in range(len(cuts.borders) + 1)]
        before = dict(zip(cuts.borders, accumulate(counts), strict=False))
        for part in worthwhile(cuts, counts, Window("VALUE", 1, None)):
            assert part.first_position == (0 if part.low is None else before[part.low])
            end = sum(counts) if part.end is None else before[part.end]
            assert part.rows == end - part.first_position
