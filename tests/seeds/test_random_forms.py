"""Tables whose columns have any form that Arrow has for the declared type: the same matches, by any
number of threads and in batches, as two loops over the rows find.

Keys, order and compared values are of each type, with NULL, NaN, −0.0, and texts of any letters.
By hand: `python tests/seeds/test_random_forms.py 0 500`.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventWarning
from celc_runtime.plan.errors import EventError
from engines import interpreted, only_query
from test_random_parts import leaving_out, small_parts

import celc

Rows: TypeAlias = list[dict[str, Any]]

_NAN, _INFINITY = math.nan, math.inf
_SMALL = (0, 1, 2, 100, 127)
_LONGS = (0, 1, -1, 5, 2**31, -(2**31), 2**63 - 1, -(2**63))
_REALS = (0.0, -0.0, _NAN, 1.5, -1.5, _INFINITY, -_INFINITY)
_TEXTS = (
    "",
    "a",
    "A",
    "ä",
    "a\u0308",
    "\U0001f600",
    "\uffff",
    "\0",
    "a\0",
    "z" * 8,
    "z" * 8 + "\0",
)
_LONG_MONEY = tuple(Decimal(n) for n in (0, 1, -1, 2**64, -(2**64), 10**35, 1 - 10**35))
_MONEY = tuple(Decimal(n) / 4 for n in (0, 5, -5, 399_999_996, -399_999_996))
_INSTANTS = tuple(
    dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=n)
    for n in (0, 1, 2, -1, 10**9, 1_700_000_000)
)
_DAYS = (dt.date(1970, 1, 1), dt.date(1900, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1))
_STEPS = tuple(dt.timedelta(seconds=n) for n in (0, 1, -1, 34_560_000))
_CODED = pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint16(), pa.large_string())

FORMS: dict[str, tuple[tuple[pa.DataType, tuple[Any, ...]], ...]] = {
    "LONG": (
        (pa.int64(), _LONGS),
        (pa.int8(), _SMALL),
        (pa.uint8(), (*_SMALL, 255)),
        (pa.uint32(), (*_SMALL, 2**32 - 1)),
        (pa.dictionary(pa.int8(), pa.int64()), _LONGS),
    ),
    "STRING": tuple(
        (form, _TEXTS) for form in (pa.string(), pa.large_string(), pa.string_view(), *_CODED)
    ),
    "DOUBLE": (
        (pa.float64(), _REALS),
        (pa.float32(), _REALS),
        (pa.float16(), _REALS),
        (pa.int32(), _SMALL),
        (pa.dictionary(pa.int32(), pa.float64()), _REALS),
    ),
    "DECIMAL(38, 2)": ((pa.decimal128(38, 2), _LONG_MONEY),),
    "DECIMAL(10, 2)": ((pa.decimal128(10, 2), _MONEY), (pa.decimal128(7, 0), _LONG_MONEY[:3])),
    "TIMESTAMP": tuple(
        (pa.timestamp(unit, zone), _INSTANTS)
        for unit in ("s", "ms", "us", "ns")
        for zone in ("UTC", "America/St_Johns")
    ),
    "DATE": ((pa.date32(), _DAYS),),
    "BOOLEAN": ((pa.bool_(), (True, False)),),
    "INTERVAL": tuple((pa.duration(unit), _STEPS) for unit in ("s", "ms", "us", "ns")),
}

_WINDOWS = {"LONG": "3 [t]", "DOUBLE": "3 [t]", "TIMESTAMP": "3 SECONDS [t]", "DATE": "3 DAYS [t]"}
"""Windows on an order column of these types. Of others they are measured in events alone."""


@cache
def query_of(key: str, order: str, value: str, clauses: str, *, twice: bool) -> CompiledQuery:
    """a is followed by b, whose value is not less; key: the type of the key, or none. twice: events
    are ordered by `u` after `t`."""
    shared = f"{f'k: {key}, ' if key else ''}t: {order}, u: LONG, r: LONG"
    select = "TOTAL COUNT(*) AS n" if clauses == "PER PARTITION" else "a.r AS a, b.r AS b"
    text = f"""
CREATE STREAM S {{ EVENT A {{ {shared}, v: {value} }}, EVENT B {{ {shared}, v: {value} }},
  EVENT Other {{ {shared} }} }}
SELECT {select} FROM S WHERE (A AS a ; B AS b) FILTER b.v >= a.v OR a.v IS NULL
{'PARTITION BY k' if key else ''} {clauses}"""
    with interpreted():
        return only_query(celc.compile(text, order_by=["t", "u"] if twice else "t"))


def ordered(value: Any) -> tuple[int, Any]:
    """A value as Spark orders it: NULL first, NaN last, texts by their bytes."""
    if value is None:
        return 0, 0
    if isinstance(value, float):
        return (2, 0.0) if math.isnan(value) else (1, value)
    return 1, value.encode() if isinstance(value, str) else value


def wanted_of(rows: Rows, clauses: str) -> list[Any]:
    """What the query answers for rows, by its definition."""
    parts: dict[Any, Rows] = {}
    for row in sorted(rows, key=lambda row: ordered(row["t"])):
        parts.setdefault(ordered(row["k"]), []).append(row)
    found: list[Any] = []
    for part in parts.values():
        matches = []
        for end, b in enumerate(part):
            for start, a in enumerate(part[:end]):
                if (a["type"], b["type"]) != ("A", "B"):
                    continue
                if a["v"] is not None and ordered(b["v"]) < ordered(a["v"]):
                    continue
                if "[t]" in clauses:
                    most: Any = 3
                    if not isinstance(a["t"], int | float):
                        most = dt.timedelta(**{"days" if "DAYS" in clauses else "seconds": 3})
                    if not b["t"] - a["t"] <= most:
                        continue
                elif "EVENTS" in clauses and end - start > 3:
                    continue
                matches.append((a["r"], b["r"]))
        if clauses == "PER PARTITION":
            found += [len(matches)] if matches else []
        else:
            found += matches[:2] if "LIMIT" in clauses else matches
    return sorted(found)


def column(rng: random.Random, form: pa.DataType, values: Sequence[Any]) -> pa.ChunkedArray:
    """Values in some chunks, each with another dictionary where they are coded."""
    cuts = sorted(rng.randint(0, len(values)) for _ in range(rng.choice((0, 1, 4))))
    chunks = []
    for first, end in zip((0, *cuts), (*cuts, len(values)), strict=True):
        part = [*values[first:end], *rng.choices(values, k=2 * bool(values))]  # the last two go
        if form == pa.float16():
            part = [None if one is None else np.float16(one) for one in part]
        plain = pa.array(part, form.value_type if pa.types.is_dictionary(form) else form)
        if pa.types.is_dictionary(form):
            coded = plain.dictionary_encode()
            plain = pa.DictionaryArray.from_arrays(
                coded.indices.cast(form.index_type), coded.dictionary
            )
        chunks.append(plain.slice(0, end - first))
    return pa.chunked_array(chunks, form)


def rows_of(rng: random.Random, given: dict[str, Sequence[Any]]) -> Rows:
    """Rows with these values, in no order, in that of time, or in that of keys and time."""
    rows: Rows = []
    for _ in range(rng.choice((0, 1, 2, 5, 9, 17, 40))):
        row = {name: rng.choice(values) for name, values in given.items()}
        rows.append({"type": rng.choice(("A", "B", "A", "B", "Other")), **row})
        if rows[-1]["type"] == "Other":
            rows[-1]["v"] = None
    return rng.choice((rows, sorted(rows, key=lambda row: ordered(row["t"])), in_order(rows)))


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (ordered(row["k"]), ordered(row["t"])))


def rows_found(found: pa.Table) -> list[Any]:
    if "n" in found.schema.names:
        return sorted(map(int, found["n"].to_pylist()))
    return sorted((row["a"], row["b"]) for row in found.to_pylist())


def check(seed: int) -> str:
    """Compare the answers for one table."""
    rng = random.Random(seed)
    key, order, value = (rng.choice([*FORMS]) for _ in range(3))
    key = key if rng.random() < 0.7 else ""
    windows = ["3 EVENTS", *([_WINDOWS[order]] if order in _WINDOWS else [])]
    others = ("", "LIMIT 2 PER PARTITION", "PER PARTITION")
    clauses = rng.choice((*others, *(f"WITHIN {window}" for window in windows)))
    twice = rng.random() < 0.2
    query = query_of(key, order, value, clauses, twice=twice)
    forms = {name: pa.int64() for name in "ru"}
    forms["type"] = rng.choice([form for form, _ in FORMS["STRING"]])
    given: dict[str, Sequence[Any]] = {"k": [None]}
    for name, type in (("k", key), ("t", order), ("v", value)):
        if type:
            forms[name], values = rng.choice(FORMS[type])
            given[name] = (*values, None)
    given["t"] = [one for one in given["t"][:-1] if one == one]
    if "[t]" in clauses and order == "LONG":
        given["t"] = [one for one in given["t"] if abs(one) < 2**40]
    given["k"] = rng.sample(given["k"], min(rng.choice((2, 9)), len(given["k"])))
    rows = rows_of(rng, given)
    if twice:  # no time comes twice, so that a sort need not look at `u`
        rows = [*{ordered(row["t"]): row for row in rows}.values()]
    for number, row in enumerate(rows):
        row |= {"u": 0, "r": number}
    is_wrong = twice and len(rows) > 0 and rng.random() < 0.5
    if is_wrong:
        rng.choice(rows)["u"] = None
    wanted = wanted_of(rows, clauses)

    def table(rows: Rows) -> pa.Table:
        names = [name for name in ("type", "k", "t", "u", "v", "r") if name in forms]
        return pa.table({n: column(rng, forms[n], [row[n] for row in rows]) for n in names})

    def compare(find: Callable[[], pa.Table], note: str) -> None:
        if is_wrong:
            with pytest.raises(EventError, match="the order column 'u' is NULL"):
                find()
            return
        got = rows_found(find())
        assert got == wanted, f"seed {seed}, {note}: {got} for {wanted}\n{query.text}{rows}"

    whole = table(rows)
    compare(lambda: query.match_table(whole), "as it is")
    with small_parts(rng):
        for count in (1, 2, 3, 7):
            compare(partial(query.match_table, whole, threads=count), f"{count} threads")
        with leaving_out(query):
            for count in (1, 2):
                compare(partial(query.match_table, whole, threads=count), f"{count}, left out")

    def in_batches() -> pa.Table:
        found = query.match_arrow(table(in_order(rows)).to_batches())
        return pa.Table.from_batches(found, query.OUTPUT_SCHEMA)

    compare(in_batches, "in batches")
    return "NULL" if is_wrong else "rows" if wanted else "no rows"


@pytest.mark.filterwarnings(f"ignore::{EventWarning.__module__}.EventWarning")
@pytest.mark.parametrize("seeds", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_tables_in_any_form(seeds: int) -> None:
    found = Counter(map(check, range(seeds)))
    assert found["rows"] >= seeds // 4, found
    assert found["NULL"] >= seeds // 20, found


if __name__ == "__main__":
    print(Counter(map(check, range(*map(int, sys.argv[1:])))))
