"""Simultaneous events where they come in: options, and batches that are cut anywhere."""

from __future__ import annotations

import pickle
import random
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.events.instants import WholeInstants, begins_instant
from engines import batches_of, interpreted

import celc
from celc import CelError

_TEXT = (
    "CREATE STREAM S { EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG } }\n"
    "SELECT * FROM S WHERE A ; B PARTITION BY id WITHIN 5 [ts]"
)
_EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "A", "A", "B"],
        "id": pa.array([1, 1, 1, 2, 2, 2], pa.int32()),
        "ts": [1, 1, 2, 2, 2, 3],
    }
)


def _matcher(ties: str | None = "simultaneous", text: str = _TEXT) -> Any:
    with interpreted():
        return celc.compile(text, ties=ties)


def test_a_partition_ends_an_instant() -> None:
    plan = _matcher().QUERIES["query"].plan
    (batch,) = _EVENTS.to_batches()
    assert begins_instant(plan, batch).tolist() == [True, False, True, True, False, True]


def test_batches_are_cut_at_the_ends_of_instants() -> None:
    plan = _matcher().QUERIES["query"].plan
    rng = random.Random(1)
    instants = [[1, 1], [2], [2, 2], [3]]
    for _ in range(50):
        whole = WholeInstants(plan)
        parts = [conforming(plan, part) for part in batches_of(_EVENTS, rng)]
        found = [batch for part in parts for batch, _ in whole.of(part, None)]
        found += [batch for batch, _ in whole.rest()]
        assert not whole.rows
        times = [batch.column("ts").to_pylist() for batch in found]
        assert [*chain(*times)] == [*chain(*instants)]
        ends = {sum(map(len, instants[:number])) for number in range(len(instants) + 1)}
        assert {sum(map(len, times[:number])) for number in range(len(times) + 1)} <= ends


def test_matches_start_and_end_with_their_instants() -> None:
    for text in (_TEXT, _TEXT.replace("A ; B", "A ALL B")):
        rows = _matcher(text=text).match_table(_EVENTS).to_pylist()
        spans = {(row["id"], row["start_pos"], row["end_pos"]) for row in rows}
        assert spans >= {(1, 0, 2), (2, 0, 2)}


def test_options_of_what_is_compiled() -> None:
    """What celc.compile returns is compiled anew; a generated module says how to compile it."""
    plain = _matcher(None)
    changed = plain.with_options(ties="simultaneous", positions=False)
    assert (changed.plan.source.ties, changed.plan.answer.positions) == ("simultaneous", False)
    assert pickle.loads(pickle.dumps(changed)).plan.source.ties == "simultaneous"
    assert changed.with_options(ties="simultaneous").plan == changed.plan
    with pytest.raises(ValueError, match=r"--ties simultaneous.*celc\.compile"):
        plain.QUERIES["query"].with_options(ties="simultaneous")
    with pytest.raises(ValueError, match="ties must be 'simultaneous' or None, not 'later'"):
        plain.with_options(ties="later")
    with pytest.raises(ValueError, match=r"measured on 'ts'.*\['id', 'ts'\]"):
        changed.with_options(order_by="id")
    with pytest.raises(CelError, match="simultaneous-order"):
        _matcher(text=f"{_TEXT} LIMIT 1")


def test_code_in_one_order_is_kept_where_each_end_is_shown() -> None:
    updates = {
        formula: type(
            _matcher(text=_TEXT.replace("*", items).replace("A ; B", formula))
            .QUERIES["query"]
            .program.update
        ).__name__
        for items, formula in (("*", "A ; B"), ("*", "A : B"), ("A", "A ; B+"), ("*", "A ALL B"))
    }
    assert updates == {
        "A ; B": "BranchFree",
        "A : B": "StraightLine",
        "A ; B+": "UnionLists",
        "A ALL B": "UnionLists",
    }
