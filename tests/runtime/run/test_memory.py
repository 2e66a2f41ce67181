"""Memory stays within what the window needs, and the enumeration stops, resumes and never dawdles.

Nothing here is timed: sizes are read off, steps are counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import celc_runtime.run.run as run_module
import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.engine.arena import nodes as arena
from celc_runtime.engine.walk.listing import list_fired, new_output
from celc_runtime.engine.walk.walk import walk_of
from celc_runtime.run.run_of import run_of
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.walk import walks
from celc_runtime.run.walk.latest import LatestWalk
from celc_runtime.run.walk.window_walks import SelectorWalk
from engines import answer_of, engines, only_query, table_of
from reference import as_expected, difference, evaluate
from strategies import random_stream

import celc
from celc.options import Options

_DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG }, EVENT C { id: INT, ts: LONG }
}
"""
_ROWS = 100_000


def _stream(batches: int) -> Iterator[pa.RecordBatch]:
    """Batches of A and B, with a C every now and then; time goes on by one every ten events."""
    rng = np.random.default_rng(7)
    types = pa.array(["A", "B", "C"])
    for number in range(batches):
        codes = rng.integers(0, 2, _ROWS).astype(np.int8)
        codes[rng.integers(0, _ROWS, 20)] = 2
        first = number * _ROWS
        yield pa.RecordBatch.from_arrays(
            [
                pa.DictionaryArray.from_arrays(pa.array(codes), types),
                pa.array(np.arange(first, first + _ROWS, dtype=np.int32) % 1000),
                pa.array(np.arange(first, first + _ROWS) // 10),
            ],
            ["type", "id", "ts"],
        )


@pytest.fixture
def long_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers for matches begin as long as they become, at most, when they have been full."""
    monkeypatch.setattr(walks, "_FIRST_MATCHES", walks._MATCHES_PER_BATCH)


@pytest.mark.each(2)
@pytest.mark.usefixtures("long_buffers")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a[id], b[id] FROM S WHERE A AS a ; B AS b : C AS c WITHIN 1000 EVENTS LIMIT 3",
        pytest.param(
            "SELECT a[id], b[id] FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 1000 EVENTS LIMIT 3",
            marks=pytest.mark.long,
        ),
        "SELECT a[id], b[id] FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 100 [ts] LIMIT 3",
        pytest.param(
            "SELECT a[id] FROM S WHERE (A AS a)+ ; B : C WITHIN 1000 EVENTS LIMIT 3",
            marks=pytest.mark.long,
        ),
    ],
)
def test_memory_does_not_grow_with_the_stream(query: str) -> None:
    """After 10⁷ events a run holds what it held after 10⁶."""
    run = run_of(only_query(celc.compile(_DECLARATION + query)).program)
    sizes = []
    matches = 0
    for number, batch in enumerate(_stream(100), start=1):
        for found in run.push(batch):
            matches += len(found)
        if number in (10, 100):
            sizes.append((run.arena_bytes, run.stored_events <= 4096, run.buffer_bytes))
    assert matches
    assert sizes[0] == sizes[1]
    assert sizes[1][1]
    assert sizes[1][0] <= 1 << 20


@pytest.mark.each(3)
@pytest.mark.usefixtures("long_buffers")
@pytest.mark.parametrize(
    "query",
    [
        # Each chooses in a way of its own: reading the window backwards, going down the arena,
        # and by an automaton, which LAST needs as well where an event of a match has no label.
        "SELECT NXT * FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 1000 EVENTS",
        pytest.param(
            "SELECT NXT * FROM S WHERE A AS a ; (B AS b)+ ; C AS c WITHIN 100 [ts]",
            marks=pytest.mark.long,
        ),
        "SELECT LAST * FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 1000 EVENTS",
        pytest.param(
            "SELECT LAST b, c FROM S WHERE A AS a ; B AS b : C AS c WITHIN 100 [ts]",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "SELECT MAX * FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 100 EVENTS",
            marks=pytest.mark.long,
        ),
        "SELECT MAX * FROM S WHERE (A AS a OR B AS b)+ ; C AS c WITHIN 100 [ts]",
    ],
)
def test_selection_in_a_window_keeps_the_window_alone(query: str) -> None:
    """After 10⁶ events as much as after 10⁵, the window's events for the selection included."""
    run = run_of(only_query(celc.compile(_DECLARATION + query)).program)
    sizes = []
    stored = []
    matches = 0
    for number, batch in enumerate(_stream(10), start=1):
        for found in run.push(batch):
            matches += len(found)
        if number in (1, 10):
            sizes.append((run.arena_bytes, run.buffer_bytes))
            stored.append(run.stored_events)
    assert matches > 10
    assert sizes[0] == sizes[1]
    assert sizes[1][0] <= 1 << 20
    # What the arena's rows refer to: as many events as there are rows, but for merges among them.
    assert max(stored) <= 4096
    assert abs(stored[0] - stored[1]) <= stored[0] // 20


def _empty(rows: np.ndarray) -> bool:
    """Whether the rows say that nothing was written to them."""
    return bool(
        (rows[:, arena.TAG] == arena.MERGE).all() and (rows[:, arena.SINCE] == arena.NEVER).all()
    )


@pytest.mark.parametrize("next_node", [16, 17, 23, 31, 32, 1000, 2**31 + 5])
def test_a_grown_arena_holds_nothing_where_no_node_was_written(next_node: int) -> None:
    """What is looked for an old event reads all rows: a row of garbage would be an event."""
    memory = arena.new_memory(1, size=16, first_node=next_node)
    ids = np.arange(next_node, next_node + 16)
    for node in ids:
        arena.put.py_func(memory.nodes, node, 8 * node, node - 1, 0, node)
    memory.counters[arena.NEXT_NODE] = next_node + 16
    for size in (32, 64):
        memory = arena.grown(memory)
        assert len(memory.nodes) == size
        rows = ids & (size - 1)
        assert memory.nodes[rows].tolist() == [[8 * node, node - 1, 0, node] for node in ids]
        assert _empty(np.delete(memory.nodes, rows, axis=0))


@pytest.mark.each(2)
@pytest.mark.parametrize(
    "query",
    [
        pytest.param(
            "SELECT * FROM S WHERE A ; B ; C WITHIN 200 EVENTS LIMIT 1", marks=pytest.mark.long
        ),
        "SELECT * FROM S WHERE A : B ; C WITHIN 20 [ts] LIMIT 1",
        pytest.param(
            "SELECT LAST * FROM S WHERE A ; B ; C WITHIN 200 EVENTS", marks=pytest.mark.long
        ),
        "SELECT NXT * FROM S WHERE A ; B+ ; C WITHIN 20 [ts]",
    ],
)
def test_events_that_nodes_refer_to_are_kept_while_the_arena_grows(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every few events nothing in the window is older than the oldest event that is kept."""
    small = run_module.new_memory
    monkeypatch.setattr(run_module, "new_memory", lambda *given, **options: small(*given, size=2))
    (whole,) = _stream(1)
    for matcher in engines(_DECLARATION + query, Options()).values():
        run = run_of(only_query(matcher).program)
        sizes = set()
        for start in range(0, 3000, 23):
            for _ in run.push(whole.slice(start, 23)):
                pass
            memory = run._memory
            next_node = int(memory.counters[arena.NEXT_NODE])
            size = len(memory.nodes)
            lowest = int(memory.counters[arena.LOWEST])
            ids = np.arange(max(lowest, next_node - size), next_node)
            nodes = memory.nodes[ids & (size - 1)]
            at = start + 22
            floor = at - 200 if "EVENTS" in query else at // 10 - 20
            cells = nodes[(nodes[:, arena.TAG] != arena.MERGE) & (nodes[:, arena.SINCE] >= floor)]
            entries = cells[:, arena.TAG] >> only_query(matcher).plan.matching.kind_bits
            assert len(entries)
            assert run._oldest_entry() <= entries.min()
            sizes.add(size)
        assert len(sizes) >= 3, "the arena was to grow while events came"


@pytest.mark.parametrize(
    ("formula", "window"),
    [
        ("A ; B ; C", " WITHIN 6 EVENTS"),
        ("(A ; B)+ : C", ""),
        *(
            pytest.param(formula, window, marks=pytest.mark.long)
            for formula in ("A ; B ; C", "A+ ; B", "A : B ; C", "(A ; B)+ : C")
            for window in ("", " WITHIN 6 EVENTS", " WITHIN 5 [ts]")
            if (formula, window) not in (("A ; B ; C", " WITHIN 6 EVENTS"), ("(A ; B)+ : C", ""))
        ),
    ],
)
def test_numbers_past_32_bits(formula: str, window: str) -> None:
    """Positions and node ids that cross 2³¹ in the middle of a stream."""
    text = _STREAM + f"SELECT * FROM S WHERE {formula}{window}"
    far = 2**31 - 6
    events = random_stream(random.Random(formula + window), 14)
    expected = [as_expected(match) for match in evaluate(text, events)]
    for matcher in engines(text, Options()).values():
        query = only_query(matcher)
        run = run_of(query.program, RunOptions(first_node=far, first_position=far))
        rows = []
        for batch in table_of(query.plan, events).to_batches(max_chunksize=5):
            rows += [row for found in run.push(batch) for row in found.to_pylist()]
        assert any(row["end_pos"] >= 2**31 for row in rows) or not expected
        for row in rows:
            row["start_pos"] -= far
            row["end_pos"] -= far
            for label in query.plan.answer.labels:
                for event in row[label.name]:
                    event["pos"] -= far
        assert not difference(answer_of(query, rows, events), expected)


_STREAM = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, name: STRING, ts: LONG },
  EVENT B { id: INT, value: DOUBLE, name: STRING, ts: LONG },
  EVENT C { id: INT, value: DOUBLE, name: STRING, ts: LONG },
  EVENT D { id: INT, value: DOUBLE, name: STRING, ts: LONG }
}
"""


def test_buffers_become_longer_up_to_those_of_a_batch() -> None:
    walk = walks.AllWalk()
    output = walk.buffers(3)
    sizes = [len(output.rows)]
    while (longer := walk.longer(output)) is not output:
        output = longer
        sizes.append(len(output.rows))
    assert sizes == [1 << place for place in (11, 14, 17)]
    assert output.limit[0] == 3
    assert len(output.tags) - arena.PADDING == walks._ENTRIES_PER_BATCH


@pytest.mark.parametrize(("rows", "matches"), [(None, 11), (1 << 11, 11), (5000, 14), (10**7, 17)])
def test_where_many_rows_come_buffers_begin_long(rows: int | None, matches: int) -> None:
    query = only_query(engines(f"{_STREAM}SELECT * FROM S WHERE A ; B")["chosen"])
    run = run_of(query.program, RunOptions(rows=rows))
    assert int(np.log2(len(run._output.rows))) == matches


@pytest.mark.parametrize("formula", ["A+ ; B", "A ; B ; C", "A:+ ; B", "(A OR B)+ : C"])
def test_enumeration_stops_and_resumes(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers for one match, or shorter than a match, and an arena and stack that must grow."""
    monkeypatch.setattr(walks, "_MATCHES_PER_BATCH", 1)
    monkeypatch.setattr(walks, "_ENTRIES_PER_BATCH", 2)
    small = run_module.new_memory

    def tiny(piles: int, **options: Any) -> arena.Memory:
        memory = small(piles, **{**options, "size": 4})
        return memory._replace(stack=memory.stack[:3].copy(), path=memory.path[:2].copy())

    monkeypatch.setattr(run_module, "new_memory", tiny)
    text = _STREAM + f"SELECT * FROM S WHERE {formula}"
    seeds = (random_stream(random.Random(f"{formula} {n}"), 12) for n in range(100))
    events = next(stream for stream in seeds if len(evaluate(text, stream)) > 5)
    expected = [as_expected(match) for match in evaluate(text, events)]
    for matcher in engines(text, Options()).values():
        query = only_query(matcher)
        table = table_of(query.plan, events)
        batches = list(query.match_arrow(table.to_batches()))
        assert all(len(batch) == 1 for batch in batches)
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert not difference(answer_of(query, rows, events), expected)


def _steps_for(outputs: int, dead: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Nodes looked at to list so many matches of A ; B behind so many A's outside the window."""
    window = outputs - 1
    declared = "CREATE STREAM S { EVENT A {}, EVENT B {} } "
    text = f"{declared}SELECT * FROM S WHERE A ; B WITHIN {outputs} EVENTS"
    query = only_query(celc.compile(text))
    types = pa.array(["A"] * (dead + outputs) + ["B"])
    run = run_of(query.program)
    looked: list[int] = []

    class Counted(np.ndarray):  # type: ignore[type-arg]
        """An arena that counts how often the tag of a node is read."""

        def __getitem__(self, key: Any) -> Any:
            if isinstance(key, tuple) and key[1] == arena.TAG:
                looked.append(int(key[0]))
            return super().__getitem__(key)

    # The update lists nothing itself: what has fired is left for the walk that is counted.
    run._output.limit[0] = 0
    for _ in run.push(pa.RecordBatch.from_arrays([types], ["type"])):
        raise AssertionError("nothing was to be listed")
    memory, output = run._memory, new_output(matches=2 * outputs, room=4 * outputs, limit=None)
    newest = int(memory.counters[arena.NEXT_NODE]) - 1
    memory.fires[0] = newest, len(types) - 1, 1, len(types) - 1 - outputs
    memory.counters[arena.FIRED] = 1
    counted = memory._replace(nodes=memory.nodes.view(Counted))
    memory.counters[arena.LISTED] = 1
    memory.counters[arena.STACK_SIZE] = 1
    memory.counters[arena.MATCHES_LEFT] = 2**62
    memory.stack[0] = newest, 0
    lowest = arena.lowest_id.py_func
    walk: Any = walk_of(None)
    monkeypatch.setitem(walk.py_func.__globals__, "lowest_id", lowest)
    assert walk.py_func(counted, output, run._kinds, ()) == arena.DONE
    assert int(output.used[0]) == window + 1
    return len(looked)


def test_dead_events_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 matches are listed in as many steps behind 16,000 dead events as behind none."""
    alone = _steps_for(1000, 0, monkeypatch)
    behind = _steps_for(1000, 16_000, monkeypatch)
    assert alone == behind
    assert alone <= 3 * 1000


def test_nothing_is_listed_twice_after_a_stop() -> None:
    """`list_fired` without anything waiting is done at once."""
    query = only_query(celc.compile(_DECLARATION + "SELECT * FROM S WHERE A ; B"))
    run = run_of(query.program)
    assert list_fired(run._memory, run._output, run._kinds) == arena.DONE
    assert int(run._output.used[0]) == 0


@pytest.mark.parametrize(
    ("strategy", "formula"),
    [
        ("MAX", "(A+ ; B)+ ; C"),
        ("MAX", "A+ ; B ; C"),
        ("NXT", "A+ ; B ; C"),
        ("LAST", "A+ ; B ; C"),
    ],
)
def test_matches_that_are_not_chosen_cost_nothing(strategy: str, formula: str) -> None:
    """2ⁿ − 1 matches end with the last event and one is chosen: nodes grow as n does."""
    query = only_query(
        celc.compile(
            f"{_DECLARATION} SELECT {strategy} * FROM S WHERE {formula} WITHIN 5000 EVENTS"
        )
    )
    nodes = []
    for count in (500, 1000, 2000):
        events = [{"type": name} for name in [*("A" * count), "B", "C"]]
        run = run_of(query.program)
        (batch,) = table_of(query.plan, events).to_batches()
        rows = [row for found in run.push(batch) for row in found.to_pylist()]
        assert [(len(row["A"]), row["end_pos"]) for row in rows] == [(count, count + 1)]
        made = int(run._memory.counters[arena.NEXT_NODE])
        if isinstance(run._walk, LatestWalk | SelectorWalk):
            made += int(run._walk._scratch.counters[arena.NEXT_NODE])
        nodes.append(made)
    assert nodes[2] - nodes[1] == 2 * (nodes[1] - nodes[0])
    assert nodes[2] < 6 * 2000
