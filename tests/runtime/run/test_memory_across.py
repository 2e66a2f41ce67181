"""What conditions across events remember leaves with the window, however many keys there have been.

Nothing here is timed: sizes are read off. Numbers and texts never repeat, so nothing matches, and
whatever is kept for one of them is kept in vain.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.run.run import Run
from celc_runtime.run.run_of import run_of
from engines import interpreted, only_query

import celc

_DECLARATION = """CREATE STREAM S {
  EVENT A { id: LONG, name: STRING, ts: LONG },
  EVENT B { id: LONG, name: STRING, ts: LONG },
  EVENT C { id: LONG, name: STRING, ts: LONG }
}
SELECT * WHERE """
_ROWS = 10_000
_THREE = "(A AS a ; B AS b ; C AS c) FILTER "


def _batch(first: int, rows: int = _ROWS) -> pa.RecordBatch:
    """A, B and C in turns, each with an id and a name of its own."""
    numbers = np.arange(first, first + rows)
    types = pa.DictionaryArray.from_arrays(
        pa.array((numbers % 3).astype(np.int8)), pa.array(["A", "B", "C"])
    )
    names = pa.array([f"name {number}" for number in numbers])
    return pa.RecordBatch.from_arrays(
        [types, pa.array(numbers), names, pa.array(numbers // 10)], ["type", "id", "name", "ts"]
    )


def _held(run: Run) -> int:
    return run.arena_bytes + run.buffer_bytes


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("condition", "window"),
    [
        ("a.id = b.id AND b.id = c.id", "WITHIN 1000 EVENTS"),
        pytest.param(
            "a.name = b.name AND b.name = c.name", "WITHIN 100 [ts]", marks=pytest.mark.long
        ),
        pytest.param(
            "a.id = b.id AND a.name = b.name AND b.id = c.id AND b.name = c.name",
            "WITHIN 1000 EVENTS",
            marks=pytest.mark.long,
        ),
        ("b.id = a.id AND c.name = b.name", "WITHIN 100 [ts]"),
    ],
)
def test_keys_leave_with_the_window(condition: str, window: str) -> None:
    """Texts are forgotten now and then, all those at once that no key needs, so peaks count."""
    run = run_of(only_query(celc.compile(f"{_DECLARATION}{_THREE}{condition} {window}")).program)
    sizes = []
    for number in range(60):
        assert not list(run.push(_batch(number * _ROWS)))
        sizes.append(_held(run))
    assert max(sizes[20:]) <= 1.1 * max(sizes[:20])
    # Tables of some thousand rows, for the 333 A's of a window.
    assert sizes[-1] < 16 << 20


@pytest.mark.each(2)
@pytest.mark.parametrize(
    "formula",
    [
        "(A AS a ; B AS b) FILTER a.id > b.id",
        pytest.param(
            "(A AS a ; B AS b) FILTER a.name > b.name OR a.id > b.id", marks=pytest.mark.long
        ),
        pytest.param(
            "(A AS a ; C AS c) UNLESS (B AS b FILTER b.ts >= a.ts)", marks=pytest.mark.long
        ),
        "A AS a ; !(B AS x ; B FILTER x.ts >= a.ts) ; A AS c",
        pytest.param("!B FOR 3 [ts] ; A ; C", marks=pytest.mark.long),
        "!(B AS b FILTER b.ts <= a.ts) FOR 3 [ts] ; A AS a ; C",
        pytest.param("!(B : A) FOR 30 EVENTS ; A ; C", marks=pytest.mark.long),
    ],
)
def test_what_is_remembered_leaves_with_the_window(formula: str) -> None:
    with interpreted():
        query = only_query(celc.compile(f"{_DECLARATION}{formula} WITHIN 20 EVENTS"))
    run = run_of(query.program)
    sizes = []
    for number in range(20):
        for _ in run.push(_batch(number * 1000, 1000)):
            pass
        sizes.append(_held(run))
    assert sizes[-1] <= 1.1 * max(sizes[:4])


@pytest.mark.long
def test_without_a_window_only_keys_are_kept() -> None:
    """A table grows with the keys that there are, not with the events of each."""
    query = only_query(celc.compile(f"{_DECLARATION}{_THREE}a.id = b.id AND b.id = c.id"))
    run = run_of(query.program)
    table = run._update.nbytes
    assert table > 0
    few = _batch(0, 300)
    for _ in range(50):
        events = few.set_column(2, "name", pa.array(["same"] * len(few)))
        only_a = events.filter(pa.array(np.arange(300) % 3 == 0))
        assert not list(run.push(only_a))
    assert run._update.nbytes == table
    for number in range(10):
        assert not list(run.push(_batch(10_000 + number * _ROWS)))
    assert run._update.nbytes > 4 * table


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELECT LONGEST * WHERE A AS a ; B AS b WITHIN 100 [ts]", "_choice"),
        ("SELECT * WHERE A AS a ; B AS b ; !C WITHIN 100 [ts]", "_choice"),
        ("SELECT COLLAPSED * WHERE A AS a ; B AS b ; !(C : C) WITHIN 2 [ts]", "_answer"),
        ("SELECT NXT * WHERE A AS a ; B AS b ; C AS c", "_update"),
    ],
)
def test_what_waits_for_later_events_counts_as_memory(text: str, part: str) -> None:
    with interpreted():
        query = only_query(celc.compile(_DECLARATION.replace("SELECT * WHERE ", text)))
    run = run_of(query.program)
    for first in (0, 60):
        for _ in run.push(_batch(first, 60)):
            pass
    assert run.buffer_bytes >= getattr(run, part).nbytes >= 60
