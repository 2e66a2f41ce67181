"""Totals over more matches than a DOUBLE can count, next to totals over few.

No reference can list these matches. But the matches of `A+ ; B` are all sets of A's before the B,
so their number and their sums follow from the A's in the window.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.plan.errors import TotalError
from celc_runtime.plan.strategy import United
from celc_runtime.run.answer import counted
from engines import interpreted, only_query, plain_totals

import celc

DECLARED = """CREATE STREAM S {
  EVENT A { id: LONG, v: DOUBLE }, EVENT B { id: LONG, v: DOUBLE }, EVENT C { v: DOUBLE }
}
"""
ITEMS = (
    "APPROX_COUNT(*) AS matches, SUM(x.v) AS total, AVG(x.v) AS mean, "
    "SUM(c.v) AS total_of_c, AVG(c.v) AS mean_of_c"
)
QUERIES = {
    "counted": f"SELECT TOTAL {ITEMS} FROM S WHERE (A AS x)+ ; B OR C AS c",
    "in a window": f"SELECT TOTAL {ITEMS} FROM S WHERE (A AS x)+ ; B OR C AS c WITHIN 2500 EVENTS",
    "of parts": f"SELECT TOTAL {ITEMS} FROM S WHERE (A AS x)+ ; B OR C AS c PER PARTITION",
}
Row = dict[str, float | None]


def _events(random_of: random.Random, count: int) -> list[tuple[str, float | None]]:
    """Random events: B's and C's come first after few A's, and later after many."""
    found = []
    for place in range(count):
        rare = random_of.random() < (0.2 if place < 20 else 0.005)
        type = random_of.choice("BC") if rare else "A"
        values = [None, 0.0, random_of.uniform(0, 10), 1e-200, 1e200]
        value = random_of.choices(values, [1, 1, 10, 1, 1 if type == "C" else 0])[0]
        found.append((type, value))
    return [*found, ("C", 7.0), ("C", None), ("B", None)]


def _as_double(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _row(parts: Iterator[tuple[int, Fraction, int, list[float | None]]]) -> Row:
    """The row of totals over all parts of the matches.

    A part is (the number of its matches, the sum of the values under x, how many values that sum
    has, the values under c).
    """
    matches, total, known, of_c = 0, Fraction(0), 0, []
    for number, more, values, some in parts:
        matches, total, known = matches + number, total + more, known + values
        of_c += [Fraction(value) for value in some if value is not None]
    return {
        "matches": _as_double(Fraction(matches)),
        "total": _as_double(total) if known else None,
        "mean": float(total / known) if known else None,
        "total_of_c": _as_double(sum(of_c, Fraction(0))) if of_c else None,
        "mean_of_c": float(sum(of_c, Fraction(0)) / len(of_c)) if of_c else None,
    }


def _expected(name: str, events: list[tuple[str, float | None]]) -> list[Row]:
    parts = []
    for end, (type, value) in enumerate(events):
        if type == "C":
            parts.append((1, Fraction(0), 0, [value]))
        if type != "B":
            continue
        first = max(0, end - 2500) if name == "in a window" else 0
        some = [one for kind, one in events[first:end] if kind == "A"]
        if some:
            known = [Fraction(one) for one in some if one is not None]
            each = 2 ** (len(some) - 1)
            parts.append(
                (2 ** len(some) - 1, each * sum(known, Fraction(0)), each * len(known), [])
            )
    if name == "of parts":
        return [_row(iter(parts))]
    return [_row(iter([part])) for part in parts]


@pytest.mark.each(2)
@pytest.mark.parametrize(
    "name",
    [
        name if name != "in a window" else pytest.param(name, marks=pytest.mark.long)
        for name in QUERIES
    ],
)
def test_few_matches_beside_many(name: str) -> None:
    query = only_query(celc.compile(DECLARED + QUERIES[name]))
    for seed in range(2):
        events = _events(random.Random(seed), 3000)
        types, values = zip(*events, strict=True)
        table = pa.table({"type": types, "v": pa.array(values, pa.float64())})
        rows = query.match_table(table).to_pylist()
        expected = _expected(name, events)
        assert len(rows) == len(expected) > (0 if name == "of parts" else 10)
        for row, wanted in zip(rows, expected, strict=True):
            for item, value in wanted.items():
                assert row[item] == pytest.approx(value, rel=1e-9, abs=0), (seed, row, wanted)


@dataclass
class Turns:
    """How often a run changed the form of its numbers."""

    removed: int = 0  # changes to numbers without bounds
    tried: int = 0  # attempts to go back


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    found = Turns()
    totals = counted.CountedWalk
    remove, attempt = totals._remove_bounds, totals._try_bounds

    def removing(self: counted.CountedWalk, *, until: int) -> None:
        found.removed += 1
        remove(self, until=until)

    def trying(self: counted.CountedWalk, row: int) -> None:
        found.tried += 1
        attempt(self, row)

    monkeypatch.setattr(counted, "_STAY", 40)
    monkeypatch.setattr(totals, "_remove_bounds", removing)
    monkeypatch.setattr(totals, "_try_bounds", trying)
    return found


def _stretches(random_of: random.Random, most: int) -> list[tuple[str, int, float]]:
    """(type, id, v) of random events: 500 with many A's, 500 with few, and so on.

    Ids are as large as `most` only where A's are few.
    """
    found: list[tuple[str, int, float]] = []
    for place in range(3000):
        few = place // 500 % 2
        type = random_of.choices("ABC", [1, 3, 20] if few else [20, 1, 1])[0]
        value = random_of.choice((-3, 5, most, -most)) if few else random_of.randint(-9, 9)
        found.append((type, value, random_of.uniform(-1, 1)))
    return found


def _rows_by_end(items: str, events: list[tuple[str, int, float]]) -> dict[int, dict[str, Any]]:
    """The totals of `A+ ; B` in a window, by the position of the end; events come in batches."""
    query = only_query(
        celc.compile(f"{DECLARED}SELECT TOTAL {items} FROM S WHERE (A AS x)+ ; B WITHIN 200 EVENTS")
    )
    types, ids, values = zip(*events, strict=True)
    table = pa.table({"type": types, "id": pa.array(ids, pa.int64()), "v": values})
    batches = query.match_arrow(table.to_batches(max_chunksize=700))
    return {row["end_pos"]: row for batch in batches for row in batch.to_pylist()}


def test_counts_that_leave_their_bounds_and_come_back(turns: Turns) -> None:
    """Windows with up to 2²⁰⁰ matches come between windows with few."""
    events = _stretches(random.Random(1), 9)
    rows = _rows_by_end("APPROX_COUNT(*) AS matches, AVG(x.v) AS mean", events)
    for end, row in rows.items():
        some = [value for type, _, value in events[max(0, end - 200) : end] if type == "A"]
        assert row["matches"] == pytest.approx(2.0 ** len(some) - 1, rel=1e-12)
        mean = float(sum(map(Fraction, some)) / len(some))
        assert row["mean"] == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert len(rows) > 200
    assert turns.tried >= 3
    assert turns.removed >= 3


@pytest.mark.parametrize("most", [1 << 39, 1 << 40, 1 << 62])
def test_values_that_are_too_large_for_bounds(turns: Turns, most: int) -> None:
    """Sums are exact. Where A's would be many, they are C's here: such sums would be errors."""
    events = [
        (type if place // 500 % 2 else "C", value, real)
        for place, (type, value, real) in enumerate(_stretches(random.Random(most), most))
    ]
    rows = _rows_by_end("COUNT(*) AS matches, SUM(x.id) AS s", events)
    for end, row in rows.items():
        some = [value for type, value, _ in events[max(0, end - 200) : end] if type == "A"]
        assert row["matches"] == 2 ** len(some) - 1
        assert row["s"] == 2 ** (len(some) - 1) * sum(some)
    assert len(rows) > 100
    assert (turns.removed > 0) == (most >= 1 << 40)


@pytest.mark.long
def test_few_values_beside_many_matches_with_keys() -> None:
    """An event is added once for each match with it. Most events are in very many matches, and the
    last ones in few."""
    query = only_query(
        celc.compile(
            DECLARED + "SELECT TOTAL APPROX_COUNT(*) AS matches, SUM(a.v) AS total, "
            "AVG(a.v) AS mean, SUM(x.v) AS of_x FROM S WHERE A AS a ; (A AS x)+ ; B AS b "
            "FILTER a.id = b.id AND x.id = b.id"
        )
    )
    assert isinstance(query.program.listing, United)
    count, last = 3000, [7.0, 3.0, 5.0]
    values = [*[None] * (count - len(last)), *last]
    table = pa.table(
        {
            "type": [*["A", "A"] * count, "B", "B"],
            "id": [*[1, 2] * count, 1, 3],
            "v": pa.array([*(one for value in values for one in (value, 1.0)), None, None]),
        }
    )
    row, *others = query.match_table(table).to_pylist()
    assert not others
    assert row["matches"] == math.inf
    # Of the last three A's the first is in the matches with any of the other two behind it.
    assert row["total"] == pytest.approx(3 * 7.0 + 3.0, rel=1e-9)
    assert row["mean"] == pytest.approx((3 * 7.0 + 3.0) / 4, rel=1e-9)
    assert row["of_x"] == math.inf


def test_more_measures_than_a_word_has_bits() -> None:
    """A step has a bit for each measure: whether the event counts for it. Here are 70 measures."""
    names = [f"n{number}" for number in range(70)]
    of_type = ", ".join(f"{name}: LONG" for name in names)
    items = ", ".join(
        f"SUM({'xy'[number % 2]}.{name}) AS s{number}" for number, name in enumerate(names)
    )
    with interpreted(), plain_totals():
        query = only_query(
            celc.compile(
                f"CREATE STREAM S {{ EVENT A {{ {of_type} }}, EVENT B {{ {of_type} }} }} "
                f"SELECT TOTAL {items} FROM S WHERE A AS x ; B AS y WITHIN 3 EVENTS"
            )
        )
        columns = {name: [number, 100 + number, 7] for number, name in enumerate(names)}
        (row,) = query.match_table(pa.table({"type": ["A", "B", "C"], **columns})).to_pylist()
    for number in range(70):
        assert row[f"s{number}"] == number + (100 if number % 2 else 0)


def _split(count: int) -> int:
    """How many matches `A+ ; A+ ; B` has over `count` A's: each set of A's, cut at each place."""
    return count * 2 ** (count - 1) - 2**count + 1


@pytest.mark.parametrize(
    ("before", "clauses"),
    [
        ("", ""),
        # A's on both sides of a cut: each number has room, but not their product.
        ("AAA" + 100 * "C", " WITHIN 150 EVENTS"),
        # More A's than have room when the window is cut, which the B does after 151 of them.
        (11 * "A", " WITHIN 150 EVENTS"),
    ],
)
def test_counts_do_not_wrap(before: str, clauses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 140 A's on, the number of matches is 1 modulo 2¹²⁸: a wrapped one would be small."""
    monkeypatch.setattr(counted, "_STAY", 10)
    with interpreted(), plain_totals():
        pattern = "(A AS x)+ ; (A AS y)+ ; B"
        query = only_query(
            celc.compile(f"{DECLARED}SELECT TOTAL COUNT(*) AS n FROM S WHERE {pattern}{clauses}")
        )
        for count in (60, 121, 122, 140, 160):
            types = [*before, *"A" * count, "B"]
            table = pa.table({"type": types, "v": pa.nulls(len(types), pa.float64())})
            wanted = _split(types[-151 if clauses else 0 :].count("A"))
            if wanted < 10**38:
                (row,) = query.match_table(table).to_pylist()
                assert row["n"] == wanted
            else:
                with pytest.raises(TotalError, match="38 digits"):
                    query.match_table(table)


@pytest.mark.parametrize("value", [2**39, -(2**39), 1 - 2**40, 0])
def test_sums_do_not_wrap(value: int) -> None:
    with interpreted(), plain_totals():
        query = only_query(
            celc.compile(
                f"{DECLARED}SELECT TOTAL SUM(x.id) AS s, SUM(x.v) AS r FROM S WHERE (A AS x)+ ; B"
            )
        )
        for count in range(76, 92):
            table = pa.table(
                {
                    "type": [*["A"] * count, "B"],
                    "id": [value] * (count + 1),
                    "v": [0.0] * (count + 1),
                }
            )
            total = count * 2 ** (count - 1) * value
            if abs(total) < 10**38:
                assert query.match_table(table).to_pylist() == [
                    {"end_pos": count, "s": total, "r": 0}
                ]
            else:
                with pytest.raises(TotalError, match="38 digits"):
                    query.match_table(table)


@pytest.mark.each(2)
@pytest.mark.parametrize("value", [2**20, 2**36, 2**37, 2**39 - 2**36])
@pytest.mark.parametrize("within", ["", "WITHIN 89 EVENTS"])
@pytest.mark.parametrize("run", [1, 42, 84])
def test_large_sums_of_both_signs(value: int, within: str, run: int) -> None:
    """Whether a sum has room is decided by the absolute values, also if the signs cancel.

    Signs change after each value, after half of a window (both halves then nearly cancel), or
    after all of it. The sums of the largest values are a little more than 2¹²⁸: the part of such a
    number that two words can hold has fewer than 38 digits.
    """
    places = [n for n in range(90) if n % 15 != 14]  # the others are B's
    signs = {n: -1 if number // run % 2 else 1 for number, n in enumerate(places)}
    events = [("A", signs[n] * value + n % 7) if n in signs else ("B", 0) for n in range(90)]
    if within:
        events *= 4
    wanted = []
    for end, (type, _) in enumerate(events):
        if type == "B":
            ids = [id for type, id in events[max(0, end - 89) : end] if type == "A"]
            ways = 2 ** (len(ids) - 1)
            if ways * sum(map(abs, ids)) >= 10**38:
                break
            wanted.append({"end_pos": end, "n": 2 * ways - 1, "s": ways * sum(ids)})
    text = f"SELECT TOTAL COUNT(*) AS n, SUM(x.id) AS s FROM S WHERE (A AS x)+ ; B {within}"
    table = pa.table({"type": [type for type, _ in events], "id": [id for _, id in events]})
    table = table.append_column("v", pa.nulls(len(table), pa.float64()))
    with interpreted(), plain_totals():
        query = only_query(celc.compile(DECLARED + text))
        if len(wanted) == [type for type, _ in events].count("B"):
            assert value < 2**37
            assert query.match_table(table).to_pylist() == wanted
            return
        # The last rows leave 38 digits, those before them do not.
        assert value >= 2**37
        with pytest.raises(TotalError, match="absolute values"):
            query.match_table(table)
        known = table.slice(0, wanted[-1]["end_pos"] + 1)
        assert query.match_table(known).to_pylist() == wanted


@pytest.mark.parametrize("value", [2**20, 2**40 - 2**34])
def test_parts_that_leave_all_bounds_at_once(value: int) -> None:
    """The first A leaves the window at place 90, and the others stand before and behind the cut
    there. No element is large before B; then both halves of the sum are 2¹²⁷ and more."""
    types = ["A", *["C"] * 48, *["A"] * 83, "B"]
    table = pa.table({"type": types, "id": [value] * len(types), "v": [1.0] * len(types)})
    text = "SELECT TOTAL COUNT(*) AS n, SUM(x.id) AS s FROM S WHERE (A AS x)+ ; B WITHIN 89 EVENTS"
    with interpreted(), plain_totals():
        query = only_query(celc.compile(DECLARED + text))
        if value > 2**39:
            with pytest.raises(TotalError, match="absolute values"):
                query.match_table(table)
            return
        assert query.match_table(table).to_pylist() == [
            {"end_pos": len(types) - 1, "n": 2**83 - 1, "s": 83 * 2**82 * value}
        ]


def test_large_values_leave_with_the_window(turns: Turns) -> None:
    """Huge values force numbers without bounds. A cut must not go back to bounds as long as such a
    value is in the window."""
    random_of = random.Random(3)
    events = [
        (
            random_of.choices("ABC", [1, 3, 20])[0],
            place % 7,
            random_of.choice((1e200, 3.0, -1e-200)),
        )
        for place in range(2000)
    ]
    events = [(type, id, value if n < 1390 else 0.5) for n, (type, id, value) in enumerate(events)]
    rows = _rows_by_end("SUM(x.v) AS s, AVG(x.v) AS mean", events)
    for end, row in rows.items():
        some = [Fraction(v) for type, _, v in events[max(0, end - 200) : end] if type == "A"]
        wanted = float(2 ** (len(some) - 1) * sum(some))
        size = float(2 ** (len(some) - 1) * sum(map(abs, some)))
        assert abs(row["s"] - wanted) <= 1e-9 * size
        assert abs(row["mean"] - float(sum(some) / len(some))) <= 1e-9 * size
    assert len(rows) > 200
    assert turns.tried >= 1


def test_windows_that_grow_after_a_cut() -> None:
    """A window with few events is followed by one with many: the events before the cut stay."""
    with interpreted(), plain_totals():
        query = only_query(
            celc.compile(
                "CREATE STREAM S { EVENT A { ts: LONG }, EVENT B { ts: LONG } } "
                "SELECT TOTAL COUNT(*) AS n FROM S WHERE A ; B WITHIN 1000 [ts]",
                order_by="ts",
            )
        )
        times = [*range(0, 9000, 100), *range(9000, 10000, 5), *range(10000, 10500)]
        types = ["AAB"[n % 3] for n in range(len(times))]
        rows = query.match_table(pa.table({"type": types, "ts": times})).to_pylist()
    for row in rows:
        end = row["end_pos"]
        first = times[end] - 1000
        assert row["n"] == sum(
            type == "A" and time >= first for type, time in zip(types[:end], times, strict=False)
        )
    assert len(rows) > 250


def test_sums_of_no_value_are_null() -> None:
    with interpreted(), plain_totals():
        query = only_query(
            celc.compile(
                f"{DECLARED}SELECT TOTAL SUM(x.id) AS s, SUM(b.id) AS b, SUM(x.v) AS r FROM S "
                "WHERE (A AS x)+ ; B AS b WITHIN 3 EVENTS"
            )
        )
        table = pa.table(
            {
                "type": list("AABACB"),
                "id": pa.array([None, None, 5, 0, 1, None], pa.int64()),
                "v": pa.array([None, None, 1.0, 0.0, 1.0, 1.0], pa.float64()),
            }
        )
        assert query.match_table(table).to_pylist() == [
            {"end_pos": 2, "s": None, "b": 15, "r": None},
            {"end_pos": 5, "s": 0, "b": None, "r": 0.0},
        ]
