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
from celc_runtime.plan.errors import StateError
from celc_runtime.stream.state import IDENTITY, normalised
from celc_runtime.stream.tasks import PartitionTask, StreamFormats, StreamOptions, packed
from engines import engines, interpreted, only_query, table_of
from streams_by_hand import AFTER_ALL, EVENT_TIME, Operator, instant

from celc.options import Options

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
    found: list[bytes] = []
    time = 1
    for _ in range(12):
        operator.advance(_table(query, rng, time, 6), max(0, time - 4))
        time += 6
        found += operator.states.values()
    assert len(operator.states) == 1
    return found


def _formats(name: str) -> StreamFormats:
    return StreamFormats(_query(name).program, _OPTIONS)


def _with_checksum(data: bytes) -> bytes:
    """The bytes with the checksum that they should have."""
    return data[:8] + struct.pack("<I", zlib.crc32(data[:8] + data[12:])) + data[12:]


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

_NUMBERS = (
    0,
    1,
    2,
    255,
    2**15,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62 - 1,
    2**62,
    2**63 - 1,
    2**64 - 1,
)

_HEADER_FIELDS = (
    (6, 2),
    (30, 2),
    (32, 4),
    (36, 4),
    (40, 8),
    (48, 8),
    (56, 8),
    (64, 8),
    (72, 8),
    (80, 8),
)


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
        if len(changed) < 88:
            changed += bytes(88 - len(changed))
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
    (block,) = pa.Table.from_batches(
        packed(query.program, _OPTIONS, fresh.to_batches())
    ).to_pylist()
    task = PartitionTask(query.program, _OPTIONS)
    refused: list[str] = []
    went_on = 0
    for _ in range(count):
        data = _mutated(rng.choice(states), states, rng)
        try:
            step, _ = task.step(block["key"], data, [block["events"]], 1002)
            if step.state is not None:
                task.step(block["key"], step.state, [], AFTER_ALL)
        except (StateError, EventError) as error:
            refused.append(str(error))
        else:
            went_on += 1
    assert all("query 'query': " in told for told in refused), refused
    return len(refused), went_on


@pytest.mark.parametrize("name", _QUERIES)
def test_no_flipped_bit_goes_unnoticed(name: str) -> None:
    """Each bit of a state: of its mark, version, flags, header, events, and of the checksum."""
    states = _formats(name).states
    for data in (min(_states(name), key=len), _states(name)[-1]):
        changed = bytearray(data)
        for place in range(len(data)):
            for bit in range(8):
                changed[place] ^= 1 << bit
                with pytest.raises(StateError):
                    states.read(bytes(changed))
                changed[place] ^= 1 << bit
        assert changed == data


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


# --- of another query, or another version ---------------------------------------------------------


def _compiled(text: str, *, order_by: tuple[str, ...] = (EVENT_TIME,)) -> CompiledQuery:
    with interpreted():
        compiled = engines(text, Options(order_by))
    return only_query(compiled["general"])


_BODY = (
    "SELECT x WHERE A AS x ; B AS y FILTER x.v > 1 PARTITION BY k WITHIN 9 MILLISECONDS "
    "CONSUME BY PARTITION LIMIT 3"
)
_TEXT = _EVENTS + _BODY


def _state_of(query: CompiledQuery, options: StreamOptions) -> bytes:
    operator = Operator(query, options)
    operator.advance(_table(query, random.Random(1), 1, 6), 0)
    operator.advance(None, 4)
    (data,) = operator.states.values()
    return data


def _told(text: str, *, order_by: tuple[str, ...] = (EVENT_TIME,)) -> str:
    """What is said of the state of `_TEXT` where the query is this one."""
    options = StreamOptions({"row": "LONG"})
    written = _state_of(_compiled(_TEXT).with_options(tiebreak="row"), options)
    query = _compiled(text, order_by=order_by).with_options(tiebreak="row")
    try:
        StreamFormats(query.program, options).states.read(written)
    except StateError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("x.v > 1", "x.v > 2", "the query's text"),
        ("WITHIN 9 MILL", "WITHIN 8 MILL", "the query's text, WITHIN"),
        ("WITHIN 9 MILLISECONDS", "WITHIN 9 EVENTS", "the query's text, WITHIN"),
        ("BY k", "BY k, ok", "the query's text, PARTITION BY"),
        ("LIMIT 3", "LIMIT 4", "the query's text, the output"),
        ("CONSUME BY PARTITION", "", "the query's text, the output"),
        ("SELECT x", "SELECT x, y", "the query's text, the output"),
        ("name: STRING", "name: DATE", "the query's text, the output"),
        ("v: DOUBLE", "v: FLOAT", "the columns that are read, or their types"),
        ("FILTER x.v > 1", "FILTER y.v > 1", "the query's text"),
    ],
)
def test_the_state_of_another_query_is_refused(old: str, new: str, differs: str) -> None:
    told = _told(_TEXT.replace(old, new))
    assert "another query" in told
    assert differs in told
    assert "begin a new checkpoint" in told


def test_each_part_of_the_identity_is_told_by_itself() -> None:
    """Whichever of the hashes differs: what it is of is said, and nothing else."""
    states, data = _formats("time").states, _states("time")[-1]
    places = [range(12, 18), *(range(at, at + 2) for at in range(18, 30, 2))]
    for what, (first, *_) in zip(IDENTITY, places, strict=True):
        changed = bytearray(data)
        changed[first] ^= 1
        with pytest.raises(StateError) as raised:
            states.read(_with_checksum(bytes(changed)))
        assert f"what differs: {what}. Run" in str(raised.value)


def test_options_are_part_of_what_a_query_is() -> None:
    query, options = _compiled(_TEXT), StreamOptions({"row": "LONG"})
    written = _state_of(query.with_options(tiebreak="row"), options)
    for changed, types, differs in (
        (query, {}, "the tiebreak columns or their types"),
        (query.with_options(tiebreak="row"), {"row": "INT"}, "the tiebreak columns or their types"),
        (query.with_options(tiebreak="name"), {}, "the tiebreak columns or their types"),
        (query.with_options(tiebreak="row", positions=False), {"row": "LONG"}, "the output"),
        (query.with_options(tiebreak="row", order_by=(EVENT_TIME, "ts")), {"row": "LONG"}, "order"),
        (query.with_options(tiebreak="row", type_column="kind"), {"row": "LONG"}, ""),
    ):
        states = StreamFormats(changed.program, StreamOptions(types)).states
        if differs:
            with pytest.raises(StateError, match=rf"what differs: .*{differs}"):
                states.read(written)
        else:
            # What the column of types is called is no matter: types are numbers in a state.
            assert states.read(written).position


@pytest.mark.parametrize(
    "text",
    [
        _TEXT.replace("FILTER", "-- hot enough\n  FILTER"),
        _TEXT.replace("WHERE", "/* pairs: 'it''s' */ WHERE\n\t"),
        _TEXT.replace("; B", ";B").replace(", ", ",\n"),
        _TEXT + "\n-- the end",
    ],
)
def test_comments_and_spaces_make_no_other_query(text: str) -> None:
    assert text != _TEXT
    assert not _told(text)


def test_spaces_in_a_text_do() -> None:
    one, other = (
        normalised(f"SELECT * WHERE A FILTER A.k = '{text}'", "query")
        for text in ("a -- b", "a  -- b")
    )
    assert one != other


def test_of_a_file_with_several_queries_only_its_own_counts() -> None:
    first, second, changed = (
        f"QUERY {name}: SELECT * WHERE {formula}\n"
        for name, formula in (("one", "A ; B"), ("two", "B ; A"), ("two", "B : A"))
    )
    assert normalised(first + second, "one") == normalised(changed + first, "one")
    assert normalised(first + second, "two") != normalised(changed + first, "two")


@pytest.mark.parametrize("version", [0, 1, 3, 2**16 - 1])
def test_another_version_of_the_format_is_refused(version: int) -> None:
    """Before the checksum is looked at, which another format may make otherwise."""
    data = bytearray(_states("time")[0])
    struct.pack_into("<H", data, 4, version)
    with pytest.raises(StateError, match=f"of format {version}, and this version of celc reads"):
        _formats("time").states.read(bytes(data))


@pytest.mark.parametrize("data", [b"", b"celc", bytes(64), b"clec" + bytes(100), b"\x80\x04" * 50])
def test_bytes_of_something_else_are_no_state(data: bytes) -> None:
    with pytest.raises(StateError, match="not one of celc, or has been cut off"):
        _formats("time").states.read(data)


def test_positions_far_apart_fill_no_memory() -> None:
    """Rows that stand for what was left out are no more than the window holds."""
    for name in ("events", "by definition", "no window"):
        formats, data = _formats(name), _states(name)[-1]
        state = formats.states.read(data)
        state.positions = state.positions.copy()
        state.positions[-1] = 2**61
        state.position = 2**61 + 1
        changed = formats.states.written(state)
        task = PartitionTask(_query(name).program, _OPTIONS)
        with _little_memory():
            if name == "events":
                with pytest.raises(StateError, match="too old for the window"):
                    task.step(_key(), changed, [], AFTER_ALL)
            else:
                step, _ = task.step(_key(), changed, [], AFTER_ALL)
                assert step.events


def _key() -> bytes:
    """The bytes of the partition `k` of all queries here."""
    query, rng = _query("time"), random.Random(0)
    (block,) = packed(query.program, _OPTIONS, _table(query, rng, 1, 1).to_batches())
    key = block["key"][0].as_py()
    assert isinstance(key, bytes)
    return key
