"""The faster forms of the kernel do what the slower ones do.

Updates without branches and listing in runs, against the general engine on streams much longer than
random cases have; texts that are coded without a dictionary, against Arrow's; and that what is
listed becomes Arrow's without being copied.
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from functools import partial
from typing import Any

import celc_runtime.run.run as run_module
import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.arrow.event_store import EventStore
from celc_runtime.arrow.events.ascending import is_sorted, strictly_increases
from celc_runtime.arrow.events.declared_types import DeclaredTypes
from celc_runtime.arrow.matches import output
from celc_runtime.engine.arena import nodes as arena
from celc_runtime.engine.arena.batch import NO_INTEGERS, Batch
from celc_runtime.jit.kernels import compiling
from celc_runtime.plan.strategy import BranchFree, InRuns, StraightLine
from celc_runtime.run.run_of import run_of
from celc_runtime.run.walk import walks
from engines import engines, interpreted, only_query
from shares import share

import celc
from celc.options import Options
from celc.plan.straight_line import shapes

_DECLARATION = "CREATE STREAM S {{ {} }}\n".format(
    ", ".join(f"EVENT {name} {{ key: INT, ts: LONG }}" for name in "ABCD")
)

_PLAIN = "CREATE STREAM S { EVENT A {}, EVENT B {}, EVENT C {} }\n"

FORMS = {
    # formula: whether its matches are listed in runs
    "A ; B": True,
    "A ; B ; C": True,
    "(A AS x ; B AS x) ; C AS y": True,
    "A ; A ; B": True,
    "(A ALL B) ; C": False,
    "(A OR B) ; C": False,
    "A ; (B OR (B ; C)) ; D": False,
    "A+ ; B": False,
    "A+ ; B+ ; C": False,
    "(A+ ; B)+ ; C": False,
}
OF_STATES_THAT_EMPTY = {
    # The same, of fewer matches; not all of them have updates without branches.
    "A ; !B ; C": True,
    "(A ; B ; C) UNLESS D": True,
    "LAST(A ; B) ; C": True,
    "A ; !(B ; D) ; C": False,
    "A : (B ; C):+ ; D": False,
}
CLAUSES = {
    " WITHIN 10 EVENTS": "type",
    " WITHIN 14 [ts]": "type",
    " PARTITION BY key WITHIN 9 EVENTS": "key",
    " PARTITION BY key WITHIN 12 [ts]": "key",
}


def _events(seed: int, count: int, *, by_key: bool) -> pa.Table:
    """Events of which three quarters matter; partitions of 1 to 200 events one after another."""
    rng = np.random.default_rng(seed)
    table = {
        "type": np.array(list("ABCDXA"))[rng.integers(0, 6, count)],
        "key": np.zeros(count, np.int32),
        "ts": np.cumsum(rng.integers(0, 4, count)),
    }
    if by_key:
        sizes = rng.integers(1, 200, count)
        table["key"] = np.repeat(np.arange(count, dtype=np.int32), sizes)[:count]
    return pa.table(table)


@pytest.mark.each(11, values=False)
@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("formula", FORMS | OF_STATES_THAT_EMPTY)
def test_long_streams(formula: str, clause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(formula + clause)
    text = f"{_DECLARATION}SELECT * FROM S WHERE {formula}{clause}"
    with interpreted():
        found = engines(text, Options())
    chosen, general = only_query(found["chosen"]), only_query(found["general"])
    usual = formula in FORMS
    assert isinstance(chosen.program.update, BranchFree if usual else BranchFree | StraightLine)
    in_runs = (FORMS | OF_STATES_THAT_EMPTY)[formula]
    assert isinstance(chosen.program.listing, InRuns) == in_runs
    table = _events(rng.randrange(10**6), 500, by_key=CLAUSES[clause] == "key")
    declared = table.filter(pa.compute.is_in(table["type"], pa.array(list("ABCD"))))
    expected = general.match_table(declared)
    assert len(expected) > (100 if usual else 10)
    # No room at first, buffers that are full in the middle of a run, batches that end anywhere.
    memory = partial(arena.new_memory, size=rng.choice((1, 2, 4, 64)))
    monkeypatch.setattr(run_module, "new_memory", memory)
    monkeypatch.setattr(walks, "_MATCHES_PER_BATCH", rng.choice((1, 7, 64)))
    monkeypatch.setattr(walks, "_ENTRIES_PER_BATCH", rng.choice((9, 100, 1000)))
    batches = []
    start = 0
    while start < len(declared):
        size = rng.choice((1, 50, 400))
        batches += declared.slice(start, size).combine_chunks().to_batches()
        start += size
    answer = pa.Table.from_batches(chosen.match_arrow(batches), chosen.output_schema)
    assert _rows(answer) == _rows(expected)


@pytest.mark.parametrize("room", share([300, 7], 2))
def test_rows_that_the_update_keeps_are_those_of_the_matches(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over many blocks, dense and sparse ones, and where the update stops within a block."""
    text = f"{_DECLARATION}SELECT * FROM S WHERE A ; B ; C WITHIN 20 EVENTS"
    with interpreted():
        found = engines(text, Options())
    chosen, general = only_query(found["chosen"]), only_query(found["general"])
    assert isinstance(chosen.program.update, BranchFree)
    rng = np.random.default_rng(room)
    dense = np.repeat(rng.random(8) < 0.3, 1000)
    types = np.where(dense | (rng.random(8000) < 0.05), rng.integers(0, 3, 8000), 3)
    table = pa.table(
        {
            "type": np.array(list("ABCD"))[types],
            "key": rng.integers(0, 100, 8000).astype(np.int32),
            "ts": np.arange(8000),
        }
    )
    expected = _rows(general.match_table(table))
    assert len(expected) > 1000
    monkeypatch.setattr(walks, "_MATCHES_PER_BATCH", room)
    assert _rows(chosen.match_table(table)) == expected
    for rows in (5000, 999):
        batches = table.combine_chunks().to_batches(max_chunksize=rows)
        answer = pa.Table.from_batches(chosen.match_arrow(batches), chosen.output_schema)
        assert _rows(answer) == expected


def _rows(matches: pa.Table) -> list[str]:
    return sorted(map(repr, matches.to_pylist()))


def test_leaves_grow_and_are_forgotten() -> None:
    """More events can begin a match than there is room for at first: in the window, and ever."""
    with interpreted():
        query: Any = only_query(
            engines(f"{_PLAIN}SELECT * FROM S WHERE A ; B WITHIN 900 EVENTS")["chosen"]
        )
    types = ["A"] * 600 + ["B"] + ["A"] * 1000 + ["B"] + ["A", "B"] * 600
    run = run_of(query.program)
    matches = 0
    for start in range(0, len(types), 111):
        part = types[start : start + 111]
        batch = pa.record_batch({"type": part})
        matches += sum(map(len, run.push(batch)))
    expected = sum(
        types[start] == "A"
        for end in range(len(types))
        if types[end] == "B"
        for start in range(max(0, end - 900), end)
    )
    assert matches == expected
    assert len(run._memory.leaf_marks) <= 2048


@pytest.mark.each(2)
@pytest.mark.parametrize("formula", ["A ; !B ; C", "(A ; A+ ; C) UNLESS B", "(A ; A : C) UNLESS B"])
def test_what_is_emptied_is_forgotten(formula: str) -> None:
    """Without a window, the arena holds the nodes since an event left no partial match."""
    with interpreted():
        query: Any = only_query(
            engines(f"{_PLAIN}SELECT * FROM S WHERE {formula} LIMIT 1")["chosen"]
        )
    run = run_of(query.program)
    matches = 0
    for _ in range(100):
        batch = pa.record_batch({"type": ["A"] * 400 + ["C", "B"]})
        matches += sum(map(len, run.push(batch)))
    assert matches == 100
    assert len(run._memory.nodes) <= 4 * arena.FIRES  # in all, more than twice as many are made


def test_arrow_takes_what_is_listed_as_it_is() -> None:
    """What Arrow allocates itself for positions is less than a number for each match."""
    with interpreted():
        query = only_query(engines(f"{_PLAIN}SELECT * FROM S WHERE A ; B ; C")["chosen"])
    events = pa.table({"type": ["A"] * 60 + ["B"] * 60 + ["C"]})
    query.match_table(events.slice(0, 3))
    before = pa.total_allocated_bytes()
    answer = query.match_table(events)
    assert len(answer) == 3600
    assert pa.total_allocated_bytes() - before < 8 * len(answer)


@pytest.mark.parametrize("asked", [3, 400])
def test_past_events_are_found_in_chunks_and_together(asked: int) -> None:
    """Few events are picked out of where they are, many are put together first."""
    rng = random.Random(asked)
    payload = EventStore(("text",))
    written: list[tuple[int, str]] = []
    for size in (40, 30, 5, 5, 1, 60):
        first = len(written)
        events = pa.record_batch({"text": [f"{first + row}" for row in range(size)]})
        words = np.zeros((size + 7) // 8, np.uint64)
        symbols = words.view(np.uint8)[:size]
        symbols[:] = [rng.choice((0, 1)) for _ in range(size - 1)] + [1]
        batch = Batch(symbols, words, *[NO_INTEGERS] * 7)
        payload.enter(events, batch, lambda rows: rows * 10, len(written))
        written += [(row * 10, events["text"][row].as_py()) for row in np.flatnonzero(symbols)]
        oldest = rng.randrange(max(1, len(written) // 2))
        entries = np.array([rng.randrange(oldest, len(written)) for _ in range(asked)])
        entries[0] = oldest
        past = payload.stretch(oldest, len(written))
        assert past.positions(entries).tolist() == [written[entry][0] for entry in entries]
        texts = past.column("text", past.places(entries)).to_pylist()
        assert texts == [written[entry][1] for entry in entries]
        payload.leave(0, len(written))


def test_compiler_and_runtime_agree_on_the_longest_shape() -> None:
    assert shapes.MAX_LEVELS == arena.MAX_LEVELS


# --- texts and order ------------------------------------------------------------------------------


_TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "a\x00",
    "\x00",
    "\x00\x00",
    "\x08",
    "ä",
    "äö",
    "in °C",
    "😀",
    "🎉🎉🎉",
]
_TEXTS += ["1234567", "12345678", "123456789", "temperature", "temperaturf", "temperature in °C"]
_TEXTS += ["a" * 50, "a" * 49 + "b", "a" * 20 + "b" + "a" * 29, "a" * 8 + "b" + "a" * 41, "a" * 17]


def _random_text(rng: random.Random) -> str:
    return "".join(rng.choices("ab\x00ä", k=rng.randint(0, rng.choice((1, 2, 7, 9, 20)))))


@pytest.mark.parametrize("seed", range(60))
def test_declared_types_are_told_apart(seed: int) -> None:
    rng = random.Random(seed)
    texts = [*_TEXTS, *(_random_text(rng) for _ in range(40))]
    texts += [text[: rng.randint(0, 8)] for text in texts]
    if seed % 3 == 0:  # only short ones, or only letters
        most = rng.choice((1, 7))
        texts = [text for text in texts if len(text.encode()) <= most]
    declared = rng.sample(texts, rng.randint(1, min(len(texts), 20)))
    _check_codes(rng, declared, texts)


@pytest.mark.each(4)
@pytest.mark.parametrize("count", [2, 16, 17, 254, 255, 256, 300, 512])
@pytest.mark.parametrize(
    "pattern", ["{}", "n{}", "measurement {}", "{} of the things that are measured"]
)
def test_many_declared_types_are_told_apart(pattern: str, count: int) -> None:
    rng = random.Random(count)
    texts = [pattern.format(chr(97 + n) if count <= 16 else n) for n in range(count + 50)]
    types = _check_codes(rng, texts[:count], texts)
    assert types.can_tell
    for part in (texts[:count], texts):
        _check_column(types, pa.array(rng.choices(part, k=5000), pa.string()))


def test_more_names_than_slots_are_for_are_not_told_apart() -> None:
    assert not DeclaredTypes([f"{number}" for number in range(513)]).can_tell
    assert not DeclaredTypes([]).can_tell


def test_letters_among_longer_texts_are_told_apart() -> None:
    """Whole blocks of letters have a loop of their own."""
    rng = random.Random(1)
    types = DeclaredTypes(["a", "bb", "c", "", "d", "e"])
    parts = [rng.choices(["a", "c", "d", "e", "x"], k=rng.randint(1, 6000)) for _ in range(4)]
    values = [*parts[0], "bb", *parts[1], "", "xx", *parts[2], "longer than all", *parts[3]]
    _check_column(types, pa.array(values, pa.string()))
    for start in range(5):  # as many bytes as texts, but not one each
        _check_column(types, pa.array((["a", "", "bb", "c"] * 2000)[start:], pa.string()))


def _check_codes(rng: random.Random, declared: list[str], texts: list[str]) -> DeclaredTypes:
    """Columns of all kinds have the right codes, as far as the types say that they can tell."""
    types = DeclaredTypes(declared)
    if not types.can_tell:  # names that are equal in all that is hashed
        keys = {_hashed(text.encode(), declared) for text in declared}
        assert len(keys) < len(set(declared))
        return types
    values = rng.choices([*texts, "x" * rng.randint(0, 20)], k=rng.randint(0, 60))
    first = rng.randint(0, 3)
    column = pa.array([*["before"] * first, *values, "behind"], pa.string())
    _check_column(types, column[first : first + len(values)])
    _check_column(types, column[first:])
    _check_column(types, pa.array(rng.choices(declared, k=rng.randint(0, 60)), pa.string()))
    _check_column(types, pa.array([], pa.string()))
    _check_column(types, pa.array([""] * rng.randint(0, 9), pa.string()))
    return types


def _hashed(text: bytes, declared: list[str]) -> int:
    def word(part: bytes) -> int:
        return int.from_bytes(part.rjust(8, b"\x00"), "little")

    if max(len(name.encode()) for name in declared) <= 7:
        return word(text) + len(text)
    return (word(text[:8]) + 2 * word(text[-8:]) + len(text)) % 2**64


def _check_column(types: DeclaredTypes, column: pa.StringArray) -> None:
    declared, values = types.names[:-1], column.to_pylist()
    number = {name: code for code, name in enumerate(declared)}
    for way in (nullcontext, compiling):  # Arrow looks texts up until there is machine code
        with way():
            codes, names = types.codes(column)
        assert codes.dtype == (np.uint8 if len(declared) < 255 else np.uint16)
        assert codes.tolist() == [number.get(value, len(declared)) for value in values]
        assert names == (types.names if set(values) - set(declared) else declared)


@pytest.mark.parametrize("formula", ["A AS a ; B+ AS b ; C AS c", "(A AS a OR B AS b) ; C+ AS c"])
@pytest.mark.parametrize("rows", [30, 3])
def test_columns_of_matches_are_those_of_the_kernel(
    formula: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with interpreted():
        declared = _PLAIN + f"SELECT * WHERE {formula} WITHIN 9 EVENTS"
        query = only_query(celc.compile(declared, positions=True))
    table = pa.table({"type": random.Random(1).choices("ABC", k=rows)})
    asked = []

    def by_kernel(kernel: Any, seconds: float) -> bool:
        asked.append(kernel)
        return True

    monkeypatch.setattr(output, "is_due", lambda kernel, seconds: False)
    wanted = query.match_table(table)
    assert (len(wanted) > 50) == (rows > 3)
    monkeypatch.setattr(output, "is_due", by_kernel)
    assert query.match_table(table).equals(wanted)
    assert set(asked) == ({output.label_columns} if len(wanted) else set())


@pytest.mark.parametrize("seed", range(20))
def test_a_column_that_rises_is_sorted(seed: int) -> None:
    rng = random.Random(seed)
    values = sorted(rng.choices(range(60), k=rng.randint(0, 9)))
    if rng.random() < 0.5:
        rng.shuffle(values)
    cuts = sorted(rng.choices(range(len(values) + 1), k=2))
    type = rng.choice((pa.int32(), pa.int64(), pa.timestamp("us")))
    parts = [values[: cuts[0]], values[cuts[0] : cuts[1]], values[cuts[1] :]]
    column = pa.chunked_array([pa.array(part, type) for part in parts])
    assert strictly_increases(column) == (values == sorted(set(values)))
    if strictly_increases(column) and values:
        assert is_sorted([column.combine_chunks()])


def test_machine_code_of_longest_runs_reads_a_batch_without_events() -> None:
    """Machine code is made for the types of what it reads, and nothing has none yet."""
    text = _PLAIN.replace("{}", "{ v: INT, ts: LONG }")
    text += "SELECT LONGEST a WHERE A:+ AS a FILTER a.v >= PREV(a.v)"
    query = only_query(celc.compile(text, order_by="ts"))
    values = pa.array([1, 2, 1, 2, 1, 1, 1], pa.int32())
    table = pa.table({"type": [*"BBAAABA"], "v": values, "ts": range(7)})
    with compiling():
        assert query.match_table(table.slice(0, 2)).num_rows == 0
        found = query.match_arrow(iter(table.to_batches(max_chunksize=2)))
        assert sum(batch.num_rows for batch in found) == 4
