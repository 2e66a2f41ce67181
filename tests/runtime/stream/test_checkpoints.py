"""Streams that go on from states of earlier versions: those of `tests/checkpoints`."""

from __future__ import annotations

import pytest
from celc_runtime.stream.formats import StreamFormats
from celc_runtime.stream.processor import HEADER
from celc_runtime.stream.rules import stream_program
from celc_runtime.stream.stored.known_starts import END_OF_TIME
from celc_runtime.stream.stored.state import KEPT, KEYS, WAITING
from celc_runtime.stream.stored.state_rows import KEY_VALUES
from celc_runtime.stream.stored.texts import bytes_of
from engines import plain_totals
from stored_streams import names, stored

NAMES = names()


@pytest.mark.each(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_goes_on_from_its_state(name: str) -> None:
    """With the rows that come, micro-batch by micro-batch, and none is late."""
    stream = stored(name)
    query = stream.compiled()
    with plain_totals():
        operator = stream.restarted(query)
        *rows, rest = stream.told(query, operator, stream.then)
    assert rows == [step.rows for step in stream.then]
    assert rest == stream.rest
    assert not operator.counts["late"]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "keys-forgotten"])
def test_the_rows_are_those_of_a_table(name: str) -> None:
    """What came before the state was taken, and what comes behind it. No table forgets keys."""
    stream = stored(name)
    told = [row for step in (*stream.before, *stream.then) for row in step.rows]
    with plain_totals():
        assert sorted(told + stream.rest) == stream.whole_answer(stream.compiled())


def test_the_states_have_all_that_states_can_have() -> None:
    """Together: each kind of segment, each value of partitions, sections, deadlines and timers."""
    found: set[object] = set()
    for name in NAMES:
        stream = stored(name)
        query = stream.compiled()
        operator = stream.operator(query)
        formats = StreamFormats(stream_program(query.program), operator.options)
        values = KEY_VALUES.names or ()
        for number, bucket in enumerate(stream.state.values()):
            header = bytes_of(bucket.pieces[str(HEADER)])
            state = formats.states.read(header, number)
            found |= {("kind", segment.kind) for segment in state.segments}
            found |= {"sections" for segment in state.segments if segment.bits}
            found |= {
                name
                for segment in state.of_kind(KEYS)
                for bit, name in enumerate(values)
                if segment.values >> bit & 1
            }
            found |= {"timer"} if state.timer is not None else set()
            found |= {"deadline"} if state.next_deadline < END_OF_TIME else set()
            found |= {"pending"} if state.pending else set()
            found |= {"next event"} if state.next_event else set()
    kinds = {("kind", kind) for kind in (WAITING, KEPT, KEYS)}
    wanted = {*(KEY_VALUES.names or ()), "sections", "timer", "deadline", "pending", "next event"}
    assert found == wanted | kinds
