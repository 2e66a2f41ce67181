"""The state of a partition as bytes: written and read, cut off, changed, and of other queries.

Whatever bytes there are: an error that says what is wrong, or an ordinary micro-batch.
"""

from __future__ import annotations

import random
import resource
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventError
from celc_runtime.errors import StateError
from celc_runtime.stream_tasks import PartitionTask, StreamFormats, StreamOptions, packed
from engines import engines, interpreted, only_query, table_of
from streams_by_hand import AFTER_ALL, EVENT_TIME, Operator, instant

from celc.pipeline import Options

_EVENTS = """CREATE STREAM S {
  EVENT A { id: INT, k: STRING, ok: BOOLEAN, v: DOUBLE, name: STRING, ts: LONG,
            event_time: TIMESTAMP },
  EVENT B { id: INT, k: STRING, ok: BOOLEAN, v: DOUBLE, name: STRING, ts: LONG,
            event_time: TIMESTAMP },
  EVENT C { id: INT, k: STRING, ok: BOOLEAN, v: DOUBLE, name: STRING, ts: LONG,
            event_time: TIMESTAMP }
}
"""

# Each keeps its state in a way of its own.
_QUERIES = {
    "time": "SELECT * WHERE A AS x ; B AS y FILTER x.v > 1 PARTITION BY k WITHIN 9 MILLISECONDS",
    "events": "SELECT * WHERE A : B+ : C PARTITION BY k WITHIN 20 EVENTS",
    "strict": "SELECT STRICT x, y WHERE A AS x ; !C ; B AS y WITHIN 12 MILLISECONDS",
    "contexts": "SELECT * WHERE NXT(A ; B+) ; C PARTITION BY k WITHIN 8 MILLISECONDS",
    "own clock": "SELECT * WHERE A ; B ; C PARTITION BY k WITHIN 7 [ts]",
    "joined": "SELECT * WHERE A AS x ; B AS y FILTER x.name = y.name PARTITION BY k "
    "WITHIN 30 EVENTS",
    "consuming": "SELECT MAX * WHERE A+ ; B PARTITION BY k WITHIN 9 EVENTS CONSUME BY PARTITION",
    "by definition": "SELECT * WHERE MAX((A AS x ; B AS y) FILTER x.id = y.id) PARTITION BY k "
    "WITHIN 5 EVENTS",
    "looks back": "SELECT * WHERE (A AS x)+ ; B AS y FILTER x.v >= PREV(x.v) AND SUM(x.v) > y.v "
    "PARTITION BY k WITHIN 6 EVENTS",
    "no window": "SELECT LAST * WHERE A ; B PARTITION BY k CONSUME BY PARTITION",
}

_OPTIONS = StreamOptions({"row": "LONG", "tag": "STRING"}, key_ttl=10**9)


@cache
def _query(name: str) -> CompiledQuery:
    with interpreted():
        compiled = engines(_EVENTS + _QUERIES[name], Options((EVENT_TIME,)))
    matcher = compiled.get("chosen", compiled["general"])
    return only_query(matcher).with_options(tiebreak=("row", "tag"))


def _table(query: CompiledQuery, rng: random.Random, first: int, count: int) -> pa.Table:
    events = [
        {
            "type": rng.choice("AABBC"),
            "id": rng.choice((1, 2, None)),
            "k": "k",
            "ok": rng.choice((True, False, None)),
            "v": rng.choice((0.5, 2.0, 3.0, None)),
            "name": rng.choice(("p", "äöü", "", None)),
            "ts": number,
            "row": number,
            "tag": rng.choice(("a", None)),
            EVENT_TIME: instant(number),
        }
        for number in range(first, first + count)
    ]
    return table_of(query.plan, events)


@cache
def _states(name: str) -> list[bytes]:
    """The states of one partition after each micro-batch of a stream, most with waiting events."""
    query, rng = _query(name), random.Random(name)
    operator = Operator(query, _OPTIONS, rng=rng)
    found = []
    time = 1
    for _ in range(12):
        operator.advance(_table(query, rng, time, 6), max(0, time - 4))
        time += 6
        found += operator.states.values()
    assert len(operator.states) == 1
    return found


def _formats(name: str) -> StreamFormats:
    return StreamFormats(_query(name), _OPTIONS)


def _with_checksum(data: bytes) -> bytes:
    """The bytes with the checksum that they should have."""
    return data[:8] + struct.pack("<I", zlib.crc32(data[12:])) + data[12:]


# --- as it was written ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", _QUERIES)
def test_what_is_written_is_read(name: str) -> None:
    states = _formats(name).states
    kept = waiting = 0
    for data in _states(name):
        state = states.read(data)
        assert states.written(state) == data
        kept += len(state.kept.records)
        waiting += len(state.waiting.records)
    assert kept
    assert waiting


@pytest.mark.parametrize("name", _QUERIES)
def test_no_beginning_of_a_state_is_one(name: str) -> None:
    states = _formats(name).states
    data = _states(name)[-1]
    for length in range(len(data)):
        with pytest.raises(StateError, match=r"cut off|checksum"):
            states.read(data[:length])
        if length >= 64:
            with pytest.raises(StateError, match="is damaged"):
                states.read(_with_checksum(data[:length]))
    with pytest.raises(StateError, match="left over"):
        states.read(_with_checksum(data + b"\0"))


# --- changed --------------------------------------------------------------------------------------

_NUMBERS = (0, 1, 2, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62 - 1, 2**62, 2**63 - 1, 2**64 - 1)

_HEADER_FIELDS = ((6, 2), (30, 2), (32, 4), (36, 4), (40, 8), (48, 8), (56, 8), (64, 8), (72, 8))


def _mutated(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """The bytes with something changed, the checksum mostly too."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind = rng.randrange(5)
        if kind == 0:
            place = rng.randrange(12, len(changed))
            changed[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            place, size = rng.choice(_HEADER_FIELDS)
            _put(changed, place, size, rng)
        elif kind == 2:
            size = rng.choice((1, 2, 4, 8))
            _put(changed, rng.randrange(64, max(65, len(changed) - size)), size, rng)
        elif kind == 3:
            other = rng.choice(others)
            place = rng.randrange(min(len(other), len(changed)))
            changed[place:] = other[place:]
        else:
            start, end = sorted(rng.randrange(64, len(changed) + 1) for _ in range(2))
            changed[start:end] = rng.choice((b"", changed[start:end] * 2))
        if len(changed) < 80:
            changed += bytes(80 - len(changed))
    return bytes(changed) if rng.random() < 0.1 else _with_checksum(bytes(changed))


def _put(data: bytearray, place: int, size: int, rng: random.Random) -> None:
    number = rng.choice((*_NUMBERS, rng.randrange(2**64), rng.randrange(100)))
    written = (number % 2 ** (8 * size)).to_bytes(size, "little")
    data[place : place + size] = written[: len(data) - place]


@contextmanager
def _little_memory() -> Iterator[None]:
    """What is done inside needs no more than 256 MiB beyond what has been needed before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 256 * 1024, f"{grown:,} KiB"


def _run_mutated(name: str, count: int, seed: int) -> tuple[int, int]:
    """How many changed states were refused, and how many were gone on with."""
    query, rng = _query(name), random.Random(f"{name} {seed}")
    states = _states(name)
    fresh = _table(query, rng, 1000, 5)
    (block,) = pa.Table.from_batches(packed(query, _OPTIONS, fresh.to_batches())).to_pylist()
    task = PartitionTask(query, _OPTIONS)
    refused = went_on = 0
    for _ in range(count):
        data = _mutated(rng.choice(states), states, rng)
        try:
            step, _ = task.step(block["key"], data, [block["events"]], 1002)
            if step.state is not None:
                task.step(block["key"], step.state, [], AFTER_ALL)
        except (StateError, EventError) as error:
            assert "query" in str(error), error
            refused += 1
        else:
            went_on += 1
    return refused, went_on


@pytest.mark.parametrize("name", _QUERIES)
def test_changed_bytes_are_refused_or_events(name: str) -> None:
    with _little_memory():
        refused, went_on = _run_mutated(name, 200, 0)
    assert refused >= 50
    assert went_on >= 5


@pytest.mark.long
@pytest.mark.parametrize("name", _QUERIES)
def test_many_changed_states(name: str) -> None:
    with _little_memory():
        refused, went_on = _run_mutated(name, 10_000, 1)
    assert refused >= 2_000
    assert went_on >= 200
