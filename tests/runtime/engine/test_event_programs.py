"""Programs of events against the matrices that they stand for."""

from __future__ import annotations

import random

import numpy as np
import pytest
from celc_runtime.engine.totals.event_programs import (
    ADD,
    CLEAR,
    COPY,
    MOVE,
    Ways,
    backward_steps,
    forward_steps,
)

STATES = 4
PLACES = 2 * STATES


def _random_ways(random_of: random.Random) -> Ways:
    """What a symbol does to some states; targets are any states, so that there are circles."""
    ways: Ways = {}
    for state in random_of.sample(range(STATES), random_of.randint(0, STATES)):
        skip = random_of.choice([-1, state, random_of.randrange(STATES)])
        targets = random_of.sample(range(STATES), random_of.randint(0, 3))
        ways[state] = skip, [(0, target) for target in targets]
    return ways


def _matrix(ways: Ways) -> np.ndarray:
    """The number of ways from each state to each state."""
    found = np.eye(STATES, dtype=object)
    for state, (skip, some) in ways.items():
        found[state] = 0
        for target in [*([skip] if skip >= 0 else []), *(target for _, target in some)]:
            found[state, target] += 1
    return found


def _run(steps: list[tuple[int, int, int, int]], rows: np.ndarray) -> None:
    for step, source, target, _ in steps:
        if step in (MOVE, ADD):
            rows[target] = rows[target] + rows[source]
        elif step == COPY:
            rows[target] = rows[source]
        else:
            assert step == CLEAR
            rows[target] = 0


@pytest.mark.parametrize("seed", range(300))
def test_programs_are_matrices(seed: int) -> None:
    random_of = random.Random(seed)
    ways = _random_ways(random_of)
    matrix = _matrix(ways)

    vector = np.array([random_of.randrange(1, 1000) for _ in range(STATES)], object)
    places = np.zeros(PLACES, object)
    places[:STATES] = vector
    _run(forward_steps(ways, STATES), places)
    assert places[:STATES].tolist() == (vector @ matrix).tolist(), ways

    after = np.array(
        [[random_of.randrange(1, 1000) for _ in range(STATES)] for _ in range(STATES)], object
    )
    rows = np.zeros((PLACES, STATES), object)
    rows[:STATES] = after
    _run(backward_steps(ways, STATES), rows)
    assert rows[:STATES].tolist() == (matrix @ after).tolist(), ways


def test_a_chain_copies_nothing() -> None:
    """`A ; B ; C` and `A+ ; B`: each event only adds."""
    for ways in ({0: (0, [(0, 1)]), 1: (1, [(0, STATES)])}, {0: (0, [(0, 0)])}):
        assert {step for step, *_ in forward_steps(ways, STATES)} == {MOVE}
        assert {step for step, *_ in backward_steps(ways, STATES)} <= {MOVE}
