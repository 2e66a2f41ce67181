"""Sums and averages of durations, against Python's whole numbers."""

from __future__ import annotations

import random
from itertools import accumulate

import numpy as np
import pytest
from celc_runtime.engine.values.time_arithmetic import (
    average_interval,
    can_sum_interval,
    sum_interval,
)
from celc_runtime.row_pattern.measures import aggregate_durations
from celc_runtime.row_pattern.passes import FIRST_LABEL, LENGTH, MATCH_COLUMNS

_ENDS = (2**63 - 1, -(2**63), 2**32, -(2**32), 2**32 - 1, -1, 0, 1)


def _drawn(rng: random.Random) -> tuple[np.ndarray, np.ndarray]:
    """Durations, and which of them are known."""
    bits = rng.choice((3, 33, 63))
    count = rng.randint(1, 9)
    drawn = [rng.randrange(-(2**bits), 2**bits) for _ in range(count)]
    values = [rng.choice((one, rng.choice(_ENDS))) for one in drawn]
    return np.array(values, np.int64), np.array([rng.random() < 0.8 for _ in values])


def _fitting(total: int) -> int | None:
    return total if -(2**63) <= total < 2**63 else None


def _mean(total: int, count: int) -> int | None:
    return None if not count else abs(total) // count * (1 if total > 0 else -1)


@pytest.mark.parametrize("seed", range(40))
def test_durations_of_events(seed: int) -> None:
    values, valid = _drawn(random.Random(seed))
    events = np.arange(len(values))
    known = values[valid].tolist()
    total = _fitting(sum(known))
    assert can_sum_interval(values, valid, events) == (total is not None)
    assert total is None or sum_interval(values, valid, events) == total
    assert average_interval(values, valid, events) == (_mean(sum(known), len(known)) or 0)


def _running(values: np.ndarray, valid: np.ndarray, *, averages: bool) -> list[int | None]:
    """What each row of one match sees, whose rows are all of one variable."""
    rows = len(values)
    matches = np.zeros((1, MATCH_COLUMNS), np.int64)
    matches[0, LENGTH], matches[0, FIRST_LABEL] = rows, 0
    shown = np.stack([np.zeros(rows, np.int64), np.arange(rows)], axis=1)
    found, known = np.empty(rows, np.int64), np.empty(rows, np.bool_)
    of = matches, np.zeros(rows, np.int32), shown, np.ones(1, np.bool_), False
    aggregate_durations(*of, values, valid, averages, found, known)
    return [one if there else None for one, there in zip(found.tolist(), known, strict=True)]


def _check_running(seed: int) -> None:
    values, valid = _drawn(random.Random(seed))
    kept = [one if there else 0 for one, there in zip(values.tolist(), valid, strict=True)]
    totals, counts = [*accumulate(kept)], [*accumulate(map(int, valid))]
    sums = [_fitting(total) if n else None for total, n in zip(totals, counts, strict=True)]
    assert _running(values, valid, averages=False) == sums
    assert _running(values, valid, averages=True) == [*map(_mean, totals, counts)]


@pytest.mark.parametrize("seed", range(40))
def test_running_durations(seed: int) -> None:
    _check_running(seed)


def test_running_durations_by_machine_code() -> None:
    for seed in range(40, 400):
        _check_running(seed)
