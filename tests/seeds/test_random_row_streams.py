"""MATCH_RECOGNIZE on streams by hand, in micro-batches of one to three rows, a new task after each.

The rows are those of the batch, and each comes in the first micro-batch in which no later row can
change it. The verdict is by brute force: what the batch says of all short sequences of later rows,
over symbols that make any condition true or false.

By hand: `python tests/seeds/test_random_row_streams.py 0 500`.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
import sys
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import EventError
from celc_runtime.row_pattern.arranged import keys_of_order
from row_cases import RowCase, row_cases, rows_of, table_of
from row_streams_by_hand import RowOperator, as_read, query_of, row_options, row_streamed
from strategies_rows import row_query, row_table, with_real_groups

Row = dict[str, Any]

# --- the cases ------------------------------------------------------------------------------------

_CLOCK = "celc_clock"
_ORDER = re.compile(r"ORDER BY\s+(.*?)(?=\s+(?:MEASURES|ONE ROW|ALL ROWS|AFTER|PATTERN)\b)", re.S)
_DAY = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)


def _by_a_clock(query: Any, text: str, table: pa.Table) -> tuple[str, pa.Table]:
    """A query and a table with one time for each row, in the order that the query asks for."""
    plan, read = query.plan, as_read(query, table)
    keys: list[np.ndarray] = []
    for one in plan.order_by:
        column = read.column(plan.columns[one.column].name).combine_chunks()
        keys += keys_of_order(plan, one, column)
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(table))
    places = np.empty(len(table), np.int64)
    places[order] = np.arange(len(table))
    if _ORDER.search(text) is None:
        assert "PARTITION BY" not in text
        text = text.replace("MATCH_RECOGNIZE (", f"MATCH_RECOGNIZE (\n  ORDER BY {_CLOCK} ", 1)
    text = _ORDER.sub(f"ORDER BY {_CLOCK}", text, count=1)
    return _with_clock(text), table.append_column(_CLOCK, _clock(places))


def _with_clock(text: str) -> str:
    return re.sub(
        r"CREATE TABLE (\S+) \(", rf"CREATE TABLE \1 ({_CLOCK} TIMESTAMP, ", text, count=1
    )


def _clock(places: np.ndarray) -> pa.Array:
    times = np.datetime64("2026-05-01", "us") + places * np.timedelta64(60, "s")
    return pa.array(times).cast(pa.timestamp("us", "UTC"))


def _streamed(text: str, table: pa.Table, rng: random.Random) -> list[Row]:
    query = query_of(text)
    found = row_streamed(query, table, rng)
    return rows_of(pa.Table.from_pylist(found, query.output_schema))


_CASES = [case for case in row_cases() if case.when != "compile"]


@pytest.mark.each(3)
@pytest.mark.parametrize("case", _CASES[::12], ids=str)
def test_some_cases_as_streams(case: RowCase) -> None:
    _check_case(case)


@pytest.mark.long
@pytest.mark.parametrize("case", _CASES, ids=str)
def test_all_cases_as_streams(case: RowCase) -> None:
    _check_case(case)


def _check_case(case: RowCase) -> None:
    rng = random.Random(case.name)
    table = table_of(case.schema, case.table)
    query = query_of(case.query)
    text = case.query
    if case.error == "null-order":
        # A clock has a place for such a row, which the column that it stands for has not.
        text = text.replace("ORDER BY ", f"ORDER BY {_CLOCK}, ", 1)
        text = _with_clock(text)
        table = table.append_column(_CLOCK, _clock(np.arange(len(table))))
    elif query.plan.within is None:
        text, table = _by_a_clock(query, text, table)
    if case.expected is None:
        with pytest.raises(EventError):
            _streamed(text, table, rng)
        return
    found = [{k: v for k, v in row.items() if k != _CLOCK} for row in _streamed(text, table, rng)]
    names = [name for name in case.types if not found or name in found[0]]
    assert Counter(repr([row[name] for name in names]) for row in found) == Counter(
        repr([row[name] for name in names]) for row in case.expected
    )


# --- random queries -------------------------------------------------------------------------------


def _check(seed: int) -> bool:
    """Whether a random query could be compared."""
    rng = random.Random(seed)
    text, schema, rows = with_real_groups(row_query(rng), row_table(rng))
    order = rng.choice(("ts", "ts", "ts, id DESC"))
    text = re.sub(r"ORDER BY .*\n", f"ORDER BY {order}\n", text, count=1)
    if "PARTITION BY CAST(ts" in text or "SELECT * FROM t" not in text:
        return False
    query = query_of(text)
    table = table_of(schema, rows)
    wanted: Any
    try:
        wanted = _told(query.match_table(table))
    except EventError:
        wanted = "an error"
    found: Any
    try:
        streamed = row_streamed(query, table, rng, largest=rng.choice((1, 3, 3)))
        found = _told(pa.Table.from_pylist(streamed, query.output_schema))
    except EventError:
        found = "an error"
    assert found == wanted, f"seed {seed}\n{text}\n{rows}"
    return True


def _told(table: pa.Table) -> list[str]:
    return sorted(map(repr, rows_of(table)))


@pytest.mark.each(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_streams(seed: int) -> None:
    _check(seed)


@pytest.mark.long
def test_many_random_streams() -> None:
    assert sum(map(_check, range(12, 2100))) > 1900


# --- when a row comes -----------------------------------------------------------------------------

_SYMBOLS = ("", "a", "b", "c", "ab", "ac", "bc", "abc")
_FEW = ("", "a", "b", "c", "abc")
_CONDITIONS = (
    *("{n}", "{n}", "{n}", "{n}", "NOT {n}", "{n} AND {m}", "{n} AND NOT {n}"),
    *("{n} AND NEXT({m})", "{n} OR PREV({m})", "NEXT({n})", "{n} OR NEXT({m})"),
)
_SIGNS = ("", "", "", "*", "+", "?", "*?", "+?", "??", "{1,2}")
_PATHS = ("{n} AND COUNT(A.*) < 3", "{n} OR FIRST({m})", "{n} AND NOT A.{m}")


def _shape(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice("ABC") + rng.choice(_SIGNS)
    one, other = _shape(rng, depth - 1), _shape(rng, depth - 1)
    return rng.choice(
        (
            f"{one} {other}",
            f"{one} {other}",
            f"({one} | {other})",
            f"({one} | {other} {one})",
            f"({one} {other})+",
            f"({one}) $ | {other}" if depth == 2 else f"{one} {other}",
            f"(^ {one} | {other})",
            "PERMUTE(A, B)",
            f"{{- {one} -}} {other}",
        )
    )


def _with_row_to_skip_to(rng: random.Random) -> str:
    """A pattern in which each match, or nearly, has a B behind its first row."""
    one, other = _shape(rng, rng.choice((0, 1))), _shape(rng, rng.choice((0, 1)))
    end = rng.choice(("", "", " C?", " B*", " A*?", " $", " (C $ | A?)"))
    return rng.choice(
        (f"A {one} B", f"(A | C) B {one}", f"A B {one} | C {other} B", f"(A B | C A {other} B)")
    ) + (end if "|" not in one + other else "")


class _Drawn:
    """A query over rows that make conditions true, and whether its rows come as soon as they can.

    Where conditions read the path, and where those of one row say what is true of the next one (or
    that there is one, before `$`), rows that could fulfil them are looked for in vain. Starts
    behind one that waits for rows that conditions read wait for it. Of two matches with the same
    rows, which the end decides between, one may not show all of them.
    """

    def __init__(self, rng: random.Random) -> None:
        skip = rng.choice(("PAST LAST ROW", "TO NEXT ROW", "TO LAST B", "TO FIRST B"))
        skips_to = skip.endswith("B")
        shape = _with_row_to_skip_to(rng) if skips_to else _shape(rng, rng.choice((1, 1, 2)))
        used = [name for name in "ABC" if name in shape]
        conditions = _CONDITIONS + (_PATHS if rng.random() < 0.15 and "A" in used else ())
        if rng.random() < 0.5:
            conditions = _CONDITIONS[:7]
        defined, drawn = [], []
        for name in used:
            if rng.random() < 0.9:
                text = rng.choice(conditions)
                drawn.append(text)
                m = rng.choice("abc")
                defined.append(f"{name} AS {text.format(n=name.lower(), m=m)}")
        within = rng.choice(("", "", "WITHIN INTERVAL '3' MINUTE"))
        shown = ["FINAL ARRAY_AGG(CLASSIFIER()) AS path", "FINAL FIRST(id) AS first"]
        numbered = rng.random() < 0.15
        if numbered:
            shown.append("MATCH_NUMBER() AS number")
        every = ["", " OMIT EMPTY MATCHES"] + ([] if "{-" in shape else [" WITH UNMATCHED ROWS"])
        rows = f"ALL ROWS PER MATCH{rng.choice(every)}"
        if rng.random() < 0.2:
            # The rows of a match come together.
            rows = "ONE ROW PER MATCH"
            shown.append(rng.choice(("NEXT(LAST(id)) AS n", "NEXT(FIRST(id), 2) AS n")))
        self.text = "\n".join(
            [
                "CREATE TABLE t (k INT, id INT, ts TIMESTAMP, a BOOLEAN, b BOOLEAN, c BOOLEAN);",
                "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts",
                f"MEASURES {', '.join(shown)}",
                f"{rows} AFTER MATCH SKIP {skip}",
                f"PATTERN ({shape}) {within}",
                f"DEFINE {', '.join(defined)}" if defined else "",
                ")",
            ]
        )
        ahead = any("NEXT" in one for one in drawn)
        self.is_exact = (
            not (ahead and any("NOT" in one for one in drawn))
            and not ("$" in shape and (ahead or "{-" in shape))
            and not any(one in _PATHS for one in drawn)
            and not ((skips_to or (skip == "TO NEXT ROW" and numbered)) and ahead)
        )


def _symbol(key: int, number: int, time: dt.datetime, symbol: str) -> Row:
    return {"k": key, "id": number, "ts": time} | {name: name in symbol for name in "abc"}


def _endings(watermark: dt.datetime, *, within: bool) -> list[list[tuple[str, dt.datetime]]]:
    """What may come: no rows, rows of all symbols, and some that WITHIN keeps from some starts."""
    soon, far = watermark + dt.timedelta(microseconds=1), watermark + dt.timedelta(days=1)
    found: list[list[tuple[str, dt.datetime]]] = [[], [("", far)], [("abc", far)]]
    for symbols, length in ((_SYMBOLS, 1), (_SYMBOLS, 2), (_FEW, 3)):
        found += [
            [(symbol, soon) for symbol in word]
            for word in itertools.product(symbols, repeat=length)
        ]
    found += [[(symbol, soon)] * 5 for symbol in _SYMBOLS]
    for gaps in ((0, 1), (1, 1), (1, 2), (0, 2), (2, 2), (2, 3)) if within else ():
        times = [soon + dt.timedelta(minutes=gap) for gap in gaps]
        found += [list(zip(word, times, strict=True)) for word in itertools.product(_FEW, repeat=2)]
    return found


def _certain(
    query: Any, rows: list[Row], watermark: dt.datetime, schema: pa.Schema
) -> tuple[Counter[str] | None, bool]:
    """The rows of the result that are in it whatever comes after the watermark, of all that ends in
    no error (None: everything does); and whether something does."""
    endings = _endings(watermark, within=query.plan.within is not None)
    of_all: list[list[Row]] = []
    for key, ending in enumerate(endings):
        table = [{**row, "k": key} for row in rows]
        table += [
            _symbol(key, 100 + place, time, symbol) for place, (symbol, time) in enumerate(ending)
        ]
        of_all.append(table)
    found: dict[int, Counter[str]] = {}
    fails = _results(query, of_all, 0, schema, found)
    if not found:
        return None, True
    certain = next(iter(found.values()))
    for other in found.values():
        certain &= other
    return certain, fails


def _results(
    query: Any, tables: list[list[Row]], first: int, schema: pa.Schema, found: dict[int, Any]
) -> bool:
    """Write the rows of each table that has a result; returns whether one has none."""
    together = pa.Table.from_pylist([row for table in tables for row in table], schema)
    try:
        rows = query.match_table(together).to_pylist()
    except EventError:
        half = len(tables) // 2
        if not half:
            return True
        _results(query, tables[:half], first, schema, found)
        _results(query, tables[half:], first + half, schema, found)
        return True
    found |= {first + number: Counter() for number in range(len(tables))}
    for row in rows:
        key = row.pop("k")
        found[key][repr(row)] += 1
    return False


def _check_when(seed: int) -> bool:
    rng = random.Random(seed)
    drawn = _Drawn(rng)
    query = query_of(drawn.text)
    schema = pa.schema(
        [("k", pa.int32()), ("id", pa.int32()), ("ts", pa.timestamp("us", "UTC"))]
        + [(name, pa.bool_()) for name in "abc"]
    )
    # Empty matches of different rows look alike without their rows.
    states, alike = query.plan.states, query.plan.rows == "ONE ROW"
    alike &= states[query.plan.start].accepts or states[query.plan.first].accepts
    operator = RowOperator(query, row_options(query, rng), rng=rng)
    rows: list[Row] = []
    told: Counter[str] = Counter()
    time = _DAY
    failed = False
    for number in range(rng.randint(2, 7)):
        time += dt.timedelta(minutes=rng.choice((1, 1, 2, 4)))
        row = _symbol(0, number, time, rng.choice(_SYMBOLS))
        rows.append(row)
        passed = time + dt.timedelta(minutes=rng.choice((0, 0, 0, 3)))
        given = as_read(query, pa.Table.from_pylist([row], schema))
        certain, fails = _certain(query, rows, passed, schema)
        failed = failed or fails
        try:
            out = operator.advance(given, int(passed.timestamp() * 1000))
        except EventError:
            assert fails
            return False  # SKIP TO found no row
        if certain is None:
            return False
        told += Counter(repr({k: v for k, v in one.items() if k != "k"}) for one in out)
        early, late = told - certain, certain - told
        shown = f"seed {seed}\n{drawn.text}\n{rows}\nwatermark {passed}"
        assert not early, f"{shown}\nnot certain: {early}"
        is_exact = drawn.is_exact and not alike and not failed
        assert not late or not is_exact, f"{shown}\nnot told: {late}"
        time = passed
    return True


@pytest.mark.each(2)
@pytest.mark.parametrize("seed", range(8))
def test_rows_come_when_no_later_row_can_change_them(seed: int) -> None:
    _check_when(seed)


@pytest.mark.long
def test_many_rows_come_when_no_later_row_can_change_them() -> None:
    assert sum(map(_check_when, range(8, 500))) > 350


# --- late rows, equal times, and keys of NULL -----------------------------------------------------

_KEYS = ((1, "x"), (1, None), (None, "x"), (None, None))


def _check_late(seed: int) -> bool:
    """Rows in any order, of equal times, of partitions with keys of NULL: what is late comes back,
    and the others give the rows of the batch on them. What is dropped is what would come back."""
    rng = random.Random(seed)
    text = _Drawn(rng).text.replace("BY k", "BY k, g").replace("k INT", "k INT, g STRING")
    query = query_of(text)
    rows = [
        _symbol(0, number, _DAY + dt.timedelta(minutes=rng.randrange(9)), rng.choice(_SYMBOLS))
        | dict(zip("kg", rng.choice(_KEYS), strict=True))
        for number in range(rng.randint(3, 14))
    ]
    told, late = _with_late_rows(query, rows, random.Random(seed), "side")
    dropped, _ = _with_late_rows(query, rows, random.Random(seed), "drop")
    shown = f"seed {seed}\n{text}\n{rows}\n{late}"
    refused = [one["event"]["id"] for one in told or () if one["kind"] == "late"]
    assert {*refused} <= late, shown
    kept = sorted(
        (row for row in rows if row["id"] not in refused), key=lambda row: (row["ts"], row["id"])
    )
    try:
        wanted = query.match_table(pa.Table.from_pylist(kept, _KEYED))
    except EventError:
        assert told is None, shown
        return False
    if told is None:
        return False  # what is late is not known
    assert dropped is not None, shown
    names = query.output_schema.names
    for found in (dropped, [one for one in told if one["kind"] != "late"]):
        table = pa.Table.from_pylist(
            [{name: row[name] for name in names} for row in found], query.output_schema
        )
        assert _told(table) == _told(wanted), shown
    return True


_KEYED = pa.schema(
    {"k": pa.int32(), "g": pa.string(), "id": pa.int32(), "ts": pa.timestamp("us", "UTC")}
    | {name: pa.bool_() for name in "abc"}
)


def _with_late_rows(
    query: Any, rows: list[Row], rng: random.Random, late: str
) -> tuple[list[Row] | None, set[int]]:
    """What comes of rows in their order (None: an error), and the ids of those behind the
    watermark, which are late where their bucket has come so far."""
    tie: dict[str, Any] = {"tiebreak": ("id",), "tiebreak_types": {"id": "INT"}}
    operator = RowOperator(query, row_options(query, rng, late=late, **tie), rng=rng)
    told: list[Row] = []
    behind: set[int] = set()
    left, known = [*rows], _DAY - dt.timedelta(hours=1)
    latest, delay = known, dt.timedelta(minutes=rng.choice((0, 2, 5)))
    try:
        while left:
            count = rng.randint(1, 3)
            some, left = left[:count], left[count:]
            behind |= {row["id"] for row in some if row["ts"] <= known}
            latest = max(latest, *(row["ts"] for row in some))
            known = max(known, latest - delay)
            given = as_read(query, pa.Table.from_pylist(some, _KEYED))
            if "id" not in given.column_names:
                given = given.append_column("id", pa.array([row["id"] for row in some], pa.int32()))
            told += operator.advance(given, int(known.timestamp() * 1000))
        told += operator.finish()
    except EventError:
        return None, behind
    return told, behind


@pytest.mark.each(2)
@pytest.mark.parametrize("seed", range(6))
def test_late_rows_and_equal_times(seed: int) -> None:
    _check_late(seed)


@pytest.mark.long
def test_many_late_rows_and_equal_times() -> None:
    assert sum(map(_check_late, range(6, 1000))) > 800


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    compared = sum(_check(seed) for seed in range(first, last))
    decided = sum(_check_when(seed) for seed in range(first, last))
    late = sum(_check_late(seed) for seed in range(first, last))
    print(f"{compared}, {decided} and {late} of {last - first} compared, no difference")
