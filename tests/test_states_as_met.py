"""Automata with too many states to make them beforehand: runs make those that they meet.

Random queries are in `tests/seeds/test_random_states_as_met.py`, cases for all routes in
`tests/cases/language/51-states-as-met.jsonl`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import WorkLimitError
from celc_runtime.engine.update import states_as_met
from celc_runtime.engine.update.states_as_met import StatesAsMet
from celc_runtime.plan.strategy import UnionLists
from celc_runtime.run.update import updates

import celc
from celc.interfaces.cli import main

_DECLARED = "CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }\n"


def _query(last: int, select: str = "ANY A") -> str:
    return (
        f"{_DECLARED}SELECT {select} FROM S WHERE (A OR B):+ : A : (A OR B):{{{last}}} "
        f"WITHIN {last + 3} EVENTS"
    )


def _events(rows: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    types = np.where(rng.random(rows) < 0.5, "A", "B")
    return pa.table({"type": types, "id": pa.array(range(rows), pa.int32())})


def _update(query: celc.Matcher) -> Any:
    return query.query.program.update


def test_few_states_are_made_beforehand() -> None:
    few, many = celc.compile(_query(5)), celc.compile(_query(11))
    assert not isinstance(_update(few), UnionLists) or _update(few).as_met is None
    assert _update(many).as_met is not None


@pytest.mark.parametrize("most_bytes", [1 << 28, 20_000])
def test_both_ways_find_the_same(most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "StatesAsMet", partial(StatesAsMet, most_bytes=most_bytes))
    text, events = _query(9, "*"), _events(400)
    met, made = celc.compile(text, max_states=500), celc.compile(text, max_states=5_000)
    assert _update(met).as_met is not None
    assert not isinstance(_update(made), UnionLists) or _update(made).as_met is None
    found = met.match_table(events)
    assert found.num_rows > 500
    assert sorted(map(str, found.to_pylist())) == sorted(
        map(str, made.match_table(events).to_pylist())
    )


@pytest.mark.each(2)
@pytest.mark.parametrize("last", [11, 20])
def test_states_are_forgotten(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many states a stream meets, a bound of them is kept."""
    kept: list[StatesAsMet] = []

    class Watched(StatesAsMet):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, most_bytes=100_000)
            kept.append(self)

    monkeypatch.setattr(updates, "StatesAsMet", Watched)
    found = celc.compile(_query(last)).match_table(_events(3_000))
    assert found.num_rows > 1_000
    (states,) = kept
    assert sum(array.nbytes for array in states.tables) < 100_000


def test_more_states_in_use_than_memory_is_kept_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states_as_met, "_FIRST_ROOM", 2)
    monkeypatch.setattr(updates, "StatesAsMet", partial(StatesAsMet, most_bytes=1))
    query = celc.compile(_query(11))
    with pytest.raises(WorkLimitError, match="states of its automaton are in use at one event"):
        query.match_table(_events(400))


def test_what_says_so(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "many.cel"
    path.write_text(_query(11))
    assert main(["explain", str(path)]) == 0
    assert "sets of which are made as the events lead to them" in capsys.readouterr().out
    assert main(["explain", str(path), "--stage", "det"]) == 0
    assert "of which a run makes sets as it meets them" in capsys.readouterr().out
    assert main(["explain", str(path), "--format", "html"]) == 2
    assert "too many states to draw" in capsys.readouterr().err
