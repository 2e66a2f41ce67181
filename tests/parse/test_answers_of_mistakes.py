"""The mistakes of people after the changes that the messages offer: each answer is the one that was
meant, written out by hand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from engines import interpreted
from test_mistakes import FOLDER, fully_mended, mistakes

import celc

NAN = float("nan")
EVENTS = [
    # type, user, item, price, minutes after 2026-07-01 12:00
    ("View", "a", 1, 5.0, 0),
    ("Cart", "a", 1, 5.0, 2),
    ("View", "b", 2, 2.0, 3),
    ("Cart", "b", 1, 8.0, 4),
    ("Purchase", "a", 1, 5.0, 6),
    ("View", "a", 3, 41.0, 20),
    ("View", "b", 2, None, 21),
    ("Cart", "a", 3, 1.0, 22),
    ("View", "A", 1, NAN, 1440),
    ("Cart", "ax", 1, 3.0, 1450),
]
NOON = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
TABLE = pa.table(
    {
        "type": [event[0] for event in EVENTS],
        "user": [event[1] for event in EVENTS],
        "item": [event[2] for event in EVENTS],
        "price": pa.array([event[3] for event in EVENTS], pa.float64()),
        "ts": pa.array(
            [NOON + dt.timedelta(minutes=e[4]) for e in EVENTS], pa.timestamp("us", "UTC")
        ),
    }
)
VIEWS = (0, 2, 5, 6, 8)
# A view and a later cart, within five minutes and however much later.
SOON = [(0, 1), (0, 3), (2, 3), (5, 7), (6, 7)]
EVER = [
    (0, 1),
    (0, 3),
    (0, 7),
    (0, 9),
    (2, 3),
    (2, 7),
    (2, 9),
    (5, 7),
    (5, 9),
    (6, 7),
    (6, 9),
    (8, 9),
]
Row = dict[str, Any]


def events(row: Row) -> tuple[int, ...]:
    """The positions of a match, by its labels."""
    labels = [value for value in row.values() if isinstance(value, list)]
    return tuple(sorted({event["pos"] for label in labels for event in label}))


def ends(row: Row) -> tuple[int, int]:
    return row["start_pos"], row["end_pos"]


def times(row: Row) -> tuple[str, int, int]:
    """The user of a part, and when a match begins and ends, in minutes."""
    begin, end = (int((row[n] - NOON).total_seconds()) // 60 for n in ("start_time", "end_time"))
    return row["user"], begin, end


def column(name: str) -> Callable[[Row], Any]:
    return lambda row: row[name]


OF_THREE = [
    *((*views, 7) for views in ((0, 2, 5), (0, 2, 5, 6))),
    *((0, 2, 5, *views, 9) for views in ((), (6,), (8,), (6, 8))),
    *((*views, 8, 9) for views in combinations((0, 2, 5, 6), 2)),
]
"""Choices of three and more views before a cart, the third of which costs more than the cart."""

ANSWERS: dict[str, tuple[Callable[[Row], Any], list[Any]]] = {
    "a1 comment #": (events, SOON),
    "a2 // comment": (events, SOON),
    "a3 WHERE twice": (events, [pair for pair in EVER if pair[0] in (0, 5, 8)]),
    "a4 FILTER after WITHIN": (events, [(0, 1), (0, 3), (5, 7)]),
    "a5 HAVING": (events, [*combinations(VIEWS, 4), VIEWS]),
    "a7 label dot star": (ends, SOON),
    "a8 agg no label": (column("t"), [2.0, 5.0, 5.0, 7.0, 41.0, 41.0, None]),
    "a9 select many": (column("p"), [2.0, 5.0, 5.0, 5.0, 41.0, 41.0, None]),
    "b2 single MINUTE typo": (events, SOON),
    "b3 no number": (events, [(2, 3), (6, 7)]),
    "b4 WITHIN wrong attr": (events, SOON),
    "b5 order typo": (times, [("a", 0, 2), ("a", 20, 22), ("b", 3, 4)]),
    "b6 FILTER keyword typo": (events, [(0, 1), (0, 3), (5, 7)]),
    "b8 concat": (events, [(0, 9), (5, 9)]),
    "b9 first": (events, [(0, 1), (0, 2, 3), (0, 3), (5, 6, 7), (5, 7)]),
    "c1 index": (events, [(0, 1), (0, 2, 3), (0, 3), (5, 6, 7), (5, 7)]),
    "c2 duration 0.5h": (events, SOON),
    "c3 ISO": (events, [(0, 1), (0, 3), (0, 7), (2, 3), (2, 7), (5, 7), (6, 7), (8, 9)]),
    # The last view waits for its ten minutes to pass.
    "c4 exists": (events, [(5,), (6,)]),
    "d1 distinct": (column("u"), ["a", "a", "a", "b", "b"]),
    "d3 order by result": (column("n"), [1, 1, 1, 1, 1, 2, 2]),
    "d8 between the wrong names": (events, EVER),
    "d9 type as attribute": (events, [(view,) for view in VIEWS]),
    "e2 boolean": (events, [(0, 7), (0, 9), (5, 7), (5, 9), (8, 9)]),
    "e3 month": (events, EVER),
    "e4 paper's own form": (
        events,
        [(0, 1), (0, 3), (0, 7), (0, 9), (2, 3), (2, 7), (2, 9), (5, 6), (5, 8)],
    ),
    "e5 optional in parentheses": (
        events,
        [(0, 1), (1,), (2, 3), (3,), (6, 7), (7,), (8, 9), (9,)],
    ),
    "f1 nan": (events, [(8,)]),
    "f2 same day": (events, [pair for pair in EVER if pair[1] < 9 or pair == (8, 9)]),
    "f8 index": (events, OF_THREE),
    "f9 ilike": (events, [(0,), (5,), (8,)]),
    "g2 followed by": (events, EVER),
    "g3 key of two names": (times, [("a", 0, 2), ("a", 0, 22), ("a", 20, 22), ("b", 3, 4)]),
}
MISTAKES = {
    one.name: one
    for path in sorted(FOLDER.glob("people*.txt"))
    for one in mistakes(path)
    if one.name in ANSWERS
}


@pytest.mark.filterwarnings("ignore::celc.CelWarning", "ignore::celc_runtime.EventWarning")
@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_what_was_meant(name: str) -> None:
    of_row, meant = ANSWERS[name]
    mended = fully_mended(MISTAKES[name].source.text)
    with interpreted():
        found = celc.compile(mended, order_by="ts").match_table(TABLE).to_pylist()
    assert sorted(map(of_row, found), key=repr) == sorted(meant, key=repr), mended
