"""Look-ups of nearest events by key, against a search through all events."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.plan.strategy import KeyTerm, NearestEvent
from celc_runtime.run.past import key_memory
from celc_runtime.run.past.nearest_events import NearestEvents
from counting import lines_of
from engines import interpreted

import celc

_TYPES = {"k": "LONG", "m": "LONG", "x": "DOUBLE", "y": "DOUBLE", "s": "STRING", "t": "STRING"}
_KEYS = [
    ("k",),
    ("x",),
    ("s",),
    ("k", "s"),
    ("s", "x", "k"),
]
_OTHER = {"k": "m", "x": "y", "s": "t"}
_ROWS = 400


def _events(rng: random.Random) -> pa.RecordBatch:
    def values(type: str) -> list[object]:
        pool: dict[str, list[object]] = {
            "LONG": [None, *range(5)],
            "DOUBLE": [None, 0.0, -0.0, math.nan, 1.5],
            "STRING": [None, *(f"text {n}" for n in range(4))],
        }
        return [rng.choice(pool[type]) for _ in range(_ROWS)]

    types = {"LONG": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string()}
    arrays = [pa.array(values(type), types[type]) for type in _TYPES.values()]
    return pa.RecordBatch.from_arrays(arrays, list(_TYPES))


def _key(events: pa.RecordBatch, row: int, names: tuple[str, ...]) -> tuple[object, ...] | None:
    found = tuple(events.column(name)[row].as_py() for name in names)
    # NaN is NaN in SQL, but not in Python.
    same = tuple("NaN" if value != value else value for value in found)
    return None if None in same else same


def _searched(
    events: pa.RecordBatch,
    symbols: np.ndarray,
    begins: np.ndarray,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    *,
    after: bool,
) -> list[int]:
    brought = [
        _key(events, row, names[0]) if symbols[row] in (1, 3) else None for row in range(_ROWS)
    ]
    found = []
    for row in range(_ROWS):
        asked = _key(events, row, names[1])
        others = range(row + 1, _ROWS) if after else range(row - 1, -1, -1)
        same = (other for other in others if begins[other] == begins[row] and asked is not None)
        found.append(next((other for other in same if brought[other] == asked), -1))
    return found


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("key", _KEYS)
def test_the_nearest_event_is_found(
    key: tuple[str, ...], own: bool, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In tables that begin small and grow, over cuts, with events forgotten in between."""
    monkeypatch.setattr(key_memory, "_FEWEST_ROWS", 4)
    rng = random.Random(f"{key} {own} {after}")
    asking = key if own else tuple(_OTHER[name] for name in key)
    events = _events(rng)
    symbols = np.array([rng.randrange(1, 5) for _ in range(_ROWS)], np.uint8)
    starts = sorted({0, *(rng.randrange(_ROWS) for _ in range(3))})
    begins = np.array([max(s for s in starts if s <= row) for row in range(_ROWS)])
    lookup = NearestEvents(
        NearestEvent(
            (1, 3),
            key=tuple(KeyTerm(name, _TYPES[name]) for name in key),
            asking=tuple(KeyTerm(name, _TYPES[name]) for name in asking),
            after=after,
        )
    )
    expected = _searched(events, symbols, begins, (key, asking), after=after)
    cuts = [0, *sorted(rng.randrange(_ROWS) for _ in range(6)), _ROWS]
    first, known = 0, np.zeros(0, np.int64)
    for start, end in pairwise(cuts):
        new = np.full(end - start, -1)
        known = np.append(known, new)
        lookup.write(
            events.slice(start, end - start), symbols[start:end], begins[start:end], first, known
        )
        seen = [other if other < end else -1 for other in expected[first:end]]
        # An event that is forgotten may be told of or not.
        answers = [max(-1, int(one)) for one in known]
        wrong = [
            (first + place, answer, wanted)
            for place, (answer, wanted) in enumerate(zip(answers, seen, strict=True))
            if answer != wanted and not (wanted < first and answer in (-1, wanted))
        ]
        assert not wrong
        gone = rng.randrange(len(known) // 2 + 1)
        first, known = first + gone, known[gone:]
    assert sum(other >= 0 for other in expected) > 20


@pytest.mark.long
def test_keys_of_forgotten_events_take_no_room() -> None:
    """Of a million keys, one after another, a table holds those that are remembered."""
    wanted = NearestEvent((1,), key=(KeyTerm("k", "LONG"),), asking=(KeyTerm("k", "LONG"),))
    lookup = NearestEvents(wanted)
    rows = 1000
    for number in range(200):
        keys = pa.array(np.arange(number * rows, (number + 1) * rows))
        events = pa.RecordBatch.from_arrays([keys], ["k"])
        first = max(0, (number - 1) * rows)
        known = np.full((number + 1) * rows - first, -1)
        symbols = np.ones(rows, np.uint8)
        lookup.write(events, symbols, np.zeros(rows, np.int64), first, known)
    assert lookup.nbytes < 1 << 21


@pytest.mark.parametrize(
    "formula",
    [
        "!(B AS y FILTER y.id = x.id) FOR 1000 [ts] ; A AS x",
        "A AS x ; !(B AS y FILTER y.id = x.id) FOR 1000 [ts]",
        "A AS x ; !(B AS y FILTER y.id = x.id) ; C",
        "A AS x ; !(B AS y FILTER y.id = z.id AND y.id = x.id) ; C AS z",
    ],
)
def test_events_of_other_keys_are_not_looked_at(formula: str) -> None:
    """However many there are beside a match."""

    def lines(others: int) -> int:
        with interpreted():
            matcher = celc.compile(
                "CREATE STREAM S { EVENT A { id: LONG, ts: LONG }, EVENT B { id: LONG, ts: LONG }, "
                "EVENT C { id: LONG, ts: LONG } } "
                f"SELECT * FROM S WHERE {formula} WITHIN 1000 [ts]",
                at_end="closed",
            )
        beside = range(10, 10 + others)
        ids = [*beside, 1, *beside]
        table = {"type": ["B"] * others + ["A"] + ["B"] * others, "id": ids}
        table["type"].append("C")
        ids.append(1)
        table["ts"] = list(range(len(ids)))
        with interpreted():
            return lines_of(lambda: matcher.match_table(table), "completes_1")

    assert 0 < lines(100) == lines(3)
