"""Random queries whose states are made as they are met, against the definitions of the language.

The compiler leaves an automaton nondeterministic where its sets of states are too many. Here it
does so with every automaton that may be left so. Few sets are kept, so that runs forget states too.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any, NoReturn

import pytest
from celc_runtime.engine.update import states_as_met
from celc_runtime.run.update import updates
from shares import share
from test_random import Tally, check

from celc.diagnostics.errors import CelError, error
from celc.driver import pipeline


def _too_many(automaton: Any, source: Any, span: Any, *, max_states: int) -> NoReturn:
    raise CelError(source, (error("too-many-states", span, "too many", "fewer"),))


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Automata are left nondeterministic where they can be; how many were."""
    count: list[int] = []
    eager = pipeline.determinize

    def chosen(query: Any, automaton: Any, rest: Any, source: Any, options: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pipeline, "determinize", _too_many)
            try:
                found = made(query, automaton, rest, source, options)
            except CelError:
                return eager(automaton, source, query.formula.span, max_states=options.max_states)
        count.append(found.states)
        return found

    made = pipeline._deterministic
    monkeypatch.setattr(pipeline, "_deterministic", chosen)
    return count


@pytest.mark.parametrize("first", share((500, 525, 550, 575, 1000, 1025, 1050, 1075), 8))
def test_random_queries(first: int, left: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    tally, rng = Tally(), random.Random(first)
    for seed in range(first, first + 25):
        bytes_ = rng.choice((1 << 28, 5_000, 20_000))
        few = partial(states_as_met.StatesAsMet, most_bytes=bytes_)
        monkeypatch.setattr(updates, "StatesAsMet", few)
        check(random.Random(seed), tally, depth=3, streams=3)
    assert len(left) > 7
    assert tally.pairs_with_matches > 12, tally
