"""Tables of few rows: the same answers, warnings and errors as by the way that large ones take."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.arrow import arrays
from celc_runtime.arrow.events import sorting
from celc_runtime.arrow.tables import few_in_order, few_rows
from celc_runtime.arrow.tables.few_in_order import rank_texts
from celc_runtime.arrow.tables.few_rows import read_few
from celc_runtime.plan.errors import EventError
from celc_runtime.run.small_run import SmallRun
from engines import interpreted, only_query

import celc

DECLARED = """CREATE STREAM S {
  EVENT A { k: STRING, n: INT, ts: TIMESTAMP, v: DOUBLE, b: TIMESTAMP },
  EVENT B { k: STRING, n: INT, ts: TIMESTAMP, v: DOUBLE, b: TIMESTAMP }
}
"""
LASTING = DECLARED.replace("STREAM S", "STREAM S LASTING [b, ts]")
PAIR = "SELECT a.v AS one, b.ts AS two, a, b WHERE A AS a ; B AS b"
WINDOW = "WITHIN 6 SECONDS [ts]"
QUERIES = {
    "a key": f"{DECLARED}{PAIR} PARTITION BY n {WINDOW}",
    "a text as the key": f"{DECLARED}{PAIR} PARTITION BY k {WINDOW}",
    "a real key": f"{DECLARED}{PAIR} PARTITION BY v {WINDOW}",
    "two keys": f"{DECLARED}{PAIR} PARTITION BY n, k {WINDOW}",
    "no key": f"{DECLARED}{PAIR} {WINDOW}",
    "neighbours": f"{DECLARED}SELECT * WHERE A : B PARTITION BY n",
    "sums": f"{DECLARED}SELECT SUM(b.v) AS s, COUNT(b) AS c\nWHERE A ; (B AS b)+ "
    "PARTITION BY n WITHIN 5 EVENTS",
    "totals": f"{DECLARED}SELECT TOTAL COUNT(*) AS c WHERE A AS a ; B AS b PARTITION BY n",
    "a condition between": f"{DECLARED}SELECT * WHERE (A AS a ; B AS b) "
    f"FILTER b.v >= a.v AND b.k >= a.k PARTITION BY n {WINDOW}",
    "no B after A": f"{DECLARED}SELECT * WHERE A AS a ; !B FOR 1 SECOND {WINDOW}",
    "runs": f"{DECLARED}SELECT LONGEST a WHERE A:+ AS a FILTER a.b >= PREV(a.b) "
    f"PARTITION BY k {WINDOW}",
    "two streams": f"{DECLARED}CREATE STREAM R {{ EVENT A {{ n: INT, ts: TIMESTAMP }} }}\n"
    f"SELECT * FROM S, R WHERE S>A AS a ; R>A AS b PARTITION BY n {WINDOW}",
    "one scan": f"{DECLARED}{PAIR} PARTITION BY n {WINDOW} CONSUME BY ANY",
    "lasting": f"{LASTING}SELECT * WHERE A AS a ; B AS b PARTITION BY n {WINDOW}",
    "simultaneous": f"{DECLARED}{PAIR} PARTITION BY n {WINDOW}",
    "simultaneous with a tiebreak": f"{DECLARED}{PAIR} PARTITION BY n {WINDOW}",
    "a tiebreak": f"{DECLARED}{PAIR} PARTITION BY n {WINDOW}",
}
READ_BY_ONE_KERNEL = {
    *("a key", "a text as the key", "two keys", "no key", "neighbours", "sums", "totals"),
    *("a condition between", "runs", "a tiebreak"),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "lasting": {},
    "simultaneous": {"order_by": "ts", "ties": "simultaneous"},
    "simultaneous with a tiebreak": {
        "order_by": "ts",
        "ties": "simultaneous",
        "tiebreak": ["row"],
    },
    "a tiebreak": {"order_by": "ts", "tiebreak": ["row"]},
}


def table_of(rng: random.Random) -> pa.Table:
    """A table of up to 200 rows, perhaps with rows of other types, NULL, NaN, equal times, and in
    several pieces."""
    rows = rng.choice((0, 1, 2, 5, 30, 100, 200))
    numbers = np.random.default_rng(rng.randrange(1 << 32))
    steps = numbers.integers(0, rng.choice((2, 4, 1)) + 1, rows) * 1_000_000
    times = np.cumsum(steps) if rng.random() < 0.5 else numbers.permutation(np.cumsum(steps))
    keys = rng.choice((1, 4, 90))
    columns: dict[str, Any] = {
        "type": numbers.choice(["A", "B", *(["C"] if rng.random() < 0.2 else [])], rows),
        "k": numbers.choice([f"{'kéÿ漢𝄞'[n % 5]} {n}" for n in range(keys)], rows),
        "n": numbers.integers(0, keys, rows).astype(np.int32),
        "ts": pa.array(times, pa.int64()),
        "v": numbers.choice([0.0, -0.0, 1.5, np.nan], rows),
        "b": pa.array(times - 1_000_000 * numbers.integers(0, 3, rows), pa.int64()),
        "row": numbers.permutation(rows),
        "stream": numbers.choice(["S", "R"], rows),
    }
    for name in ("k", "n", "ts", "type"):
        if rng.random() < (0.2 if name in "kn" else 0.05):
            column = pa.array(columns[name])
            known = numbers.random(rows) < 0.9
            columns[name] = pa.array(column.to_pylist(), column.type, mask=~known)
    table = pa.table(columns)
    for name in ("ts", "b"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(pa.timestamp("us", "UTC")))
    if rng.random() < 0.3:
        place = table.column_names.index("type")
        table = table.set_column(place, "type", table.column("type").dictionary_encode())
    cut = rng.randint(0, rows)
    if rng.random() < 0.3:
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    elif rng.random() < 0.3:
        table = table.slice(cut)
    return table.select(rng.sample(table.column_names, len(table.column_names)))


def told(query: CompiledQuery, table: pa.Table) -> tuple[str, str, list[str]]:
    """(the answer's schema, its rows or the error, the warnings)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = query.match_table(table)
        except EventError as problem:
            return "error", str(problem), []
    found.validate(full=True)
    return str(found.schema), repr(found.to_pylist()), [str(one.message) for one in caught]


@pytest.mark.each(2)
@pytest.mark.parametrize("name", QUERIES)
def test_few_rows_are_read_as_many_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(name)
    with interpreted():
        options = OPTIONS.get(name, {"order_by": "ts"})
        query = only_query(celc.compile(QUERIES[name], **options))
    seen: Counter[str] = Counter()
    for _ in range(6):
        table = table_of(rng)
        few = told(query, table)
        assert told(query, table) == few, "what a table of this schema shows is known now"
        with monkeypatch.context() as patch:
            patch.setattr(sorting, "_FEW", 1)
            patch.setattr(arrays, "_FEW", 0)
            many = told(query, table)
        assert few == many, table.to_pydict()
        seen["error" if few[0] == "error" else "rows" if few[1] != "[]" else "none"] += 1
    assert seen["rows"], seen


class _Due:
    """The kernel that reads few rows, as if it were worth its machine code; here Python runs it."""

    def __init__(self) -> None:
        self.read = 0

    def is_due(self, seconds: float) -> bool:
        return seconds > 0

    def __call__(self, *arguments: Any) -> Any:
        is_read = read_few.interpreted(*arguments)
        self.read += bool(is_read)
        return is_read


@pytest.mark.each(2)
@pytest.mark.parametrize("name", QUERIES)
def test_one_kernel_reads_few_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does not read takes the way of all tables, and so do what it leaves out."""
    rng = random.Random(f"{name}, one kernel")
    with interpreted():
        query = only_query(celc.compile(QUERIES[name], **OPTIONS.get(name, {"order_by": "ts"})))
    kernel = _Due()
    for _ in range(8):
        table = table_of(rng)
        with monkeypatch.context() as patch:
            patch.setattr(few_rows, "read_few", None)
            other = told(query, table)
        with monkeypatch.context() as patch:
            patch.setattr(few_rows, "read_few", kernel)
            found = [told(query, table) for _ in range(3)]
        assert found == [other] * 3, table.to_pydict()
    assert bool(kernel.read) == (name in READ_BY_ONE_KERNEL)


def test_columns_of_all_widths_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _Due()
    monkeypatch.setattr(few_rows, "read_few", kernel)
    columns = "d: DATE, n: INT, v: FLOAT, w: LONG, k: STRING"
    text = f"CREATE STREAM S {{ EVENT A {{ {columns} }}, EVENT B {{ {columns} }} }}\n"
    text += "SELECT a, b WHERE (A AS a ; B AS b) FILTER a.n > -2 AND b.v < 2.5 AND b.w >= a.w "
    with interpreted():
        query = only_query(celc.compile(f"{text} PARTITION BY k WITHIN 3 DAYS [d]", order_by="d"))
    rng = np.random.default_rng(7)
    rows = 60
    table = pa.table(
        {
            "type": rng.choice(["A", "B"], rows),
            "d": pa.array(rng.integers(-9, 9, rows).astype(np.int32), pa.date32()),
            "n": pa.array(rng.integers(-4, 4, rows), pa.int32()),
            "v": pa.array(rng.random(rows) * 5, pa.float32(), mask=rng.random(rows) < 0.2),
            "w": pa.array(rng.integers(-4, 4, rows)),
            "k": rng.choice(["", "x", "xy", "é"], rows),
        }
    ).slice(3)
    few = told(query, table)
    assert kernel.read == 1
    assert few[1] not in ("[]", "error")
    assert few[2], "rows are equal in their order"
    monkeypatch.setattr(few_rows, "read_few", None)
    assert told(query, table) == few


@pytest.mark.parametrize("rows", [3, 40, 700, 5000])
def test_rows_are_sorted_by_numbers_and_texts(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of both signs and all sizes, with equal ones, in few digits and in many."""
    kernel = _Due()
    monkeypatch.setattr(few_rows, "read_few", kernel)
    columns = "n: LONG, k: STRING, d: LONG, ts: LONG"
    text = f"CREATE STREAM S {{ EVENT A {{ {columns} }} }}\nSELECT a WHERE A AS a "
    with interpreted():
        keyed = celc.compile(f"{text} PARTITION BY n, k", order_by="ts", tiebreak=["d"])
        alone = celc.compile(text, order_by="ts", tiebreak=["d"])
    rng = np.random.default_rng(rows)
    wide = 2**63 - 1
    for least, most in ((-5, 5), (-wide - 1, wide), (10**15, 10**15 + 300), (-(2**40), 2**20)):
        some = rng.integers(least, most, max(2, rows // 4), endpoint=True)
        some[:2] = least, most
        table = pa.table(
            {
                "type": ["A"] * rows,
                "n": rng.choice(some, rows),
                "k": rng.choice(["", "b", "ba", "é"], rows),
                "d": rng.integers(0, 3, rows),
                "ts": rng.choice(some, rows),
            }
        )
        for queries in (keyed, alone):
            query = only_query(queries)
            kernel.read = 0
            few = told(query, table)
            assert kernel.read == (rows < 5000 or queries is keyed)
            with monkeypatch.context() as patch:
                patch.setattr(few_rows, "read_few", None)
                assert told(query, table) == few


def test_texts_are_ranked_by_their_bytes() -> None:
    """Of all lengths around those of words, equal in some words, with bytes of 0 and of 128 on."""
    rng = random.Random(8)
    for _ in range(60):
        bases = [rng.choice(["a", "b\0", "é", "漢𝄞"]) * rng.randint(0, 9) for _ in range(4)]
        ends = ["", "a", "\0", "\0\0", "ab", "é", "\U0010ffff", "b" * 7, "b" * 8, "b" * 9]
        texts = [rng.choice(bases) + rng.choice(ends) for _ in range(rng.randint(1, 40))] + ["x"]
        array = pa.array(["before", *texts]).slice(1)
        _, offsets, data = array.buffers()
        ranks, different, spare = np.empty((3, len(texts)), np.int64)
        first = offsets.address + 4 * array.offset
        rank_texts(first, data.address, len(texts), ranks, different, spare)
        order = sorted({*texts}, key=lambda text: text.encode())
        assert [order[rank] for rank in ranks] == texts


def _with_one_hash(count: int) -> list[bytes]:
    """Texts of two words with the same `_hash_of`: the second word undoes the first one."""
    texts = []
    for first in range(count):
        code = ((0xCBF29CE484222325 ^ first) * 0x9E3779B97F4A7C15) & (2**64 - 1)
        second = code ^ code >> 32
        texts.append(first.to_bytes(8, "little") + second.to_bytes(8, "little"))
    random.Random(5).shuffle(texts)
    return texts


@pytest.mark.parametrize(
    "texts",
    [
        [f"user{number:04}".encode() for number in range(256)],
        [f"station-{number:08}".encode() for number in range(256)],
        [f"{number:04}{'.cel' * 3}".encode() for number in range(256)],
        [f"sensor-of-{number:03}".encode() for number in range(256)],
        _with_one_hash(256),
        [*_with_one_hash(200), *_with_one_hash(56)],
    ],
)
def test_texts_that_look_alike_take_no_square_of_steps(
    texts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()
    compared = few_in_order._compared

    def counted(*arguments: Any) -> int:
        calls["compared"] += 1
        return compared(*arguments)  # type: ignore[no-any-return]

    monkeypatch.setattr(few_in_order, "_compared", counted)
    array = pa.array(texts, pa.binary())
    _, offsets, data = array.buffers()
    ranks, different, spare = np.empty((3, len(texts)), np.int64)
    with interpreted():
        hashes = {few_in_order._hash_of(offsets.address, data.address, row) for row in range(256)}
        rank_texts(offsets.address, data.address, len(texts), ranks, different, spare)
    assert len(hashes) in (1, len(texts))
    order = sorted({*texts})
    assert [order[rank] for rank in ranks] == texts
    assert calls["compared"] <= (16 + 8 + 1) * (len(texts) + 1)


def _wide_pairs(first: int) -> pa.Table:
    """A table with more matches of A ; B than a batch has."""
    count = 120
    times = pa.array(range(count), pa.timestamp("us", "UTC"))
    numbers = pa.array(range(first, first + count), pa.int64())
    types = ["A"] * 60 + ["B"] * 60
    return pa.table({"type": types, "n": numbers, "ts": times})


def test_an_answer_stays_when_the_next_call_takes_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_rows, "read_few", _Due())
    text = f"{DECLARED}SELECT a.n AS one, b.n AS two, b.v AS v WHERE A AS a ; B AS b {WINDOW}"
    with interpreted():
        query = only_query(celc.compile(text, order_by="ts"))

    def answer_of(first: int) -> pa.Table:
        rows = range(first, first + 60)
        times = pa.array([100_000 * row for row in rows], pa.timestamp("us", "UTC"))
        columns = {"n": pa.array(rows, pa.int32()), "ts": times, "b": times}
        more = {"type": ["A", "B"] * 30, "k": ["x"] * 60, "v": [float(row) for row in rows]}
        return query.match_table(pa.table({**columns, **more}))

    answer = answer_of(0)
    before = answer.to_pylist()
    (run,) = query.program.kept["waiting"]
    assert before != answer_of(1000).to_pylist() != []
    assert query.program.kept["waiting"] == [run], "the second call has taken the run of the first"
    assert answer.to_pylist() == before


def test_a_call_takes_its_run_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call inside another one, whose matches are half read, has a run of its own; so have two
    threads."""
    monkeypatch.setattr(few_rows, "read_few", _Due())
    declared = "CREATE STREAM S { EVENT A { n: LONG, ts: TIMESTAMP }, EVENT B { n: LONG, ts: "
    text = f"{declared}TIMESTAMP }} }}\nSELECT a.n AS one, b.n AS two WHERE A AS a ; B AS b"
    with interpreted():
        query = only_query(celc.compile(f"{text} WITHIN 1 HOUR [ts]", order_by="ts"))
    one, other = _wide_pairs(0), _wide_pairs(1000)
    wanted = [query.match_table(one), query.match_table(other)]
    assert len(wanted[0]) == 3600
    program = query.program
    (run,) = program.kept["waiting"] or [SmallRun(program)]
    program.kept["waiting"].clear()
    plan = few_rows.few_rows(program, one.schema)
    assert plan is not None
    rows = plan.read(one)
    assert rows is not None
    reading = run.matches(rows)
    half = [next(reading)]
    assert len(half[0]) < 3600
    assert query.match_table(other).equals(wanted[1])
    found = pa.Table.from_batches([*half, *reading])
    assert found.equals(wanted[0])
    with ThreadPoolExecutor(2) as pool:
        answers = [*pool.map(query.match_table, [one, other] * 6)]
    assert all(answer.equals(wanted[n % 2]) for n, answer in enumerate(answers))


def test_what_sorting_shows_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with interpreted():
        query = only_query(celc.compile(QUERIES["a key"], order_by="ts"))
    looked: list[int] = []
    order = "celc_runtime.arrow.events.event_order.EventOrder"
    monkeypatch.setattr(f"{order}.part_starts", lambda _, events: looked.append(len(events)))
    monkeypatch.setattr(f"{order}._is_in_order", lambda *_, **__: looked.append(0))
    for count in (2, 100):
        table = pa.table(
            {
                "type": ["B", "A"] * (count // 2),
                "k": ["x"] * count,
                "n": pa.array([1] * count, pa.int32()),
                "ts": pa.array(range(count)[::-1], pa.timestamp("us", "UTC")),
                "v": [1.0] * count,
                "b": pa.array([0] * count, pa.timestamp("us", "UTC")),
            }
        )
        assert len(query.match_table(table)) == count // 2 * (count // 2 + 1) // 2
    assert not looked


def test_a_tiebreak_tells_no_instants_apart() -> None:
    """Rows of one instant stay one, where a tiebreak gives them an order: B is not after A. All
    rows of the table are of that instant, so that they come in one batch."""
    with interpreted():
        name = "simultaneous with a tiebreak"
        query = only_query(celc.compile(QUERIES[name], **OPTIONS[name]))
    times = pa.array([0, 0], pa.timestamp("us", "UTC"))
    keys = pa.array([1, 1], pa.int32())
    columns = {"n": keys, "ts": times, "b": times, "k": ["x", "x"], "v": [1.0, 1.0]}
    assert not len(query.match_table(pa.table({"type": ["A", "B"], "row": [0, 1], **columns})))


def test_texts_whose_offsets_do_not_begin_with_zero() -> None:
    """As a batch has them that is part of another: Arrow's `ascii_upper` cannot read them."""
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([3, 5, 6], np.int32)), pa.py_buffer(b"abcpqr")]
    )
    declared = "CREATE STREAM S { EVENT A { k: STRING, ts: LONG } }\n"
    upper = "QUERY one: SELECT UPPER(a.k) AS u, a FROM S WHERE (A AS a) FILTER UPPER(a.k) = 'PQ'\n"
    both = "QUERY two: SELECT x, a FROM one, S WHERE (one AS x ; A AS a) FILTER UPPER(a.k) = 'R'"
    with interpreted():
        queries = celc.compile(declared + upper + both, order_by="ts").queries
    table = pa.table({"type": ["A", "A"], "k": texts, "ts": [1, 2]})
    (batch,) = table.to_batches()
    assert queries["one"].match_table(table).column("u").to_pylist() == ["PQ"]
    ways = (queries["two"].match_compact(table), *queries["two"].match_compact_arrow([batch]))
    for found in ways:
        found.validate(full=True)
        assert len(found) == 1
