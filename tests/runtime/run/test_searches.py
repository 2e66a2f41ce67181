"""Searches with conditions take few steps where few can lead to a match; steps are counted."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from celc_runtime import WorkLimitError
from engines import interpreted, only_query

import celc

_EVENTS = ", ".join(f"EVENT {name} {{ head: LONG, tail: LONG, v: DOUBLE }}" for name in "ZAB")
_DECLARATION = f"CREATE STREAM S {{ {_EVENTS} }}\n"
_PATHS = "SELECT {}* WHERE ((Z AS x ; (A AS x)+) FILTER x.tail = PREV(x.head)) ; B"


def _edges(layers: int, *, leads: bool) -> pa.Table:
    """Two edges from each layer to the next; `leads`: Z leads to the first layer."""
    rows = [("Z", 0 if leads else -1, -2, 0.0)]
    rows += [("A", layer + 1, layer, 0.0) for layer in range(layers) for _ in range(2)]
    return _table([*rows, ("B", 0, 0, 0.0)])


def _values(values: list[float]) -> pa.Table:
    return _table([*(("A", 0, 0, value) for value in values), ("B", 0, 0, 0.0)])


def _table(rows: list[tuple[str, int, int, float]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("type", "head", "tail", "v"), map(list, columns), strict=True)))


@pytest.mark.parametrize(
    "layers",
    [100, pytest.param(400, marks=[pytest.mark.long, pytest.mark.machine_code])],
)
def test_a_graph_of_many_layers(layers: int) -> None:
    """It has 2¹⁰⁰ or 2⁴⁰⁰ paths; each edge is tried behind each later one about once."""
    query = only_query(celc.compile(_DECLARATION + _PATHS.format("")))
    edges = _edges(layers, leads=False)
    assert query.with_options(max_work=(2 * layers) ** 2).match_table(edges).num_rows == 0


@pytest.mark.parametrize("selector", ["", "LAST "])
def test_what_failed_is_not_tried_again(selector: str) -> None:
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + _PATHS.format(selector)))
    for layers in (10, 20, 40):
        count = 2 * layers
        bounded = query.with_options(max_work=count**2 + 100)
        assert bounded.match_table(_edges(layers, leads=False)).num_rows == 0
        with pytest.raises(WorkLimitError):
            query.with_options(max_work=count).match_table(_edges(layers, leads=False))


def test_last_goes_straight_to_its_choice() -> None:
    """Of 2⁴⁰ paths the first one that is tried."""
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + _PATHS.format("LAST ")))
    edges = _edges(40, leads=True)
    (match,) = query.with_options(max_work=2 * 80 + 2).match_table(edges).to_pylist()
    assert [edge["pos"] for edge in match["x"]] == [0, *range(2, 82, 2)]


_OVER = "SELECT {}* WHERE ((A AS a)+ ; B) FILTER {}"


@pytest.mark.parametrize("selector", ["", "LAST ", "NXT ", "MAX "])
@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("AVG(a.v) > 59.5", 60, 60),
        ("AVG(a.v) < 1.5", 1, 1),
        ("SUM(a.v) >= 1830", 1, 60),
        ("SUM(a.v) = 1830 AND COUNT(a) > 3", 1, 60),
        ("2 * SUM(a.v) - 3 >= 3657", 1, 60),
        ("60 - SUM(a.v) / 30.5 <= 0", 1, 60),
        ("COUNT(a) * 1000 - SUM(a.v) > 58169", 1, 60),
    ],
)
def test_one_match_among_60_events(selector: str, condition: str, first: int, last: int) -> None:
    """Of 2⁶⁰ choices of the values 1 to 60, one satisfies the condition."""
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + _OVER.format(selector, condition)))
    events = _values([float(value) for value in range(1, 61)])
    (match,) = query.with_options(max_work=4_000).match_table(events).to_pylist()
    assert [event["v"] for event in match["a"]] == [*range(first, last + 1)]


@pytest.mark.each(3)
@pytest.mark.parametrize("selector", ["", "LAST ", "NXT "])
@pytest.mark.parametrize(
    ("condition", "sums"),
    [
        ("SUM(a.head) = 171", 171),
        ("SUM(a.head) * 2 - 342 = 0", 171),
        ("SUM(a.head) > 170 AND SUM(a.head) < 172", 171),
        ("SUM(a.head) = 170 + MIN(a.tail) AND COUNT(a) > 2", 171),
        ("SUM(a.head) = 7", 0),
        ("SUM(a.head) = 7 OR SUM(a.tail) = 30", 0),
        ("COUNT(a) = 19", 171),
        ("SUM(a.head) > 100 AND SUM(a.head) < COUNT(a) * 9", 0),
    ],
)
def test_sums_of_whole_numbers_are_tried_once(selector: str, condition: str, sums: int) -> None:
    """Of 2¹⁹ choices the one of all events reaches the sum, or none: each sum that events can have
    is tried once behind each event, not in each way to reach it."""
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + _OVER.format(selector, condition)))
    events = _table([*(("A", 9, 1, 0.0) for _ in range(19)), ("B", 0, 0, 0.0)])
    matches = query.with_options(max_work=4 * 20**3).match_table(events).to_pylist()
    assert [sum(event["head"] for event in match["a"]) for match in matches] == [sums] * (sums > 0)


@pytest.mark.parametrize(
    "condition",
    [
        "FIRST(a.v) > LAST(a.v)",
        "MAX(a.v) - MIN(a.v) > 29",
        "MIN(a.head) < 0 AND FIRST(a.v) < 9",
        "COUNT(a) > 5 AND MIN(a.v) > 25",
    ],
)
def test_events_that_decide_functions_are_tried_once(condition: str) -> None:
    """None of the 2³⁰ choices of rising values satisfies these."""
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + _OVER.format("", condition)))
    events = _values([float(value) for value in range(1, 31)])
    assert query.with_options(max_work=30**3).match_table(events).num_rows == 0


_HUGE = 2**63 - 1


@pytest.mark.parametrize(
    ("condition", "numbers", "values"),
    [
        ("SUM(a.head) < 0", [_HUGE, 1], [0.0, 0.0]),  # it wraps around
        ("SUM(a.head) = -2", [_HUGE, _HUGE], [0.0, 0.0]),
        ("SUM(a.head) < 0", [2**60] * 9, [0.0] * 9),
        ("SUM(a.head) * 4 < -1", [2**61, 2**61 - 1], [0.0, 0.0]),
        ("SUM(a.v) >= 0.6000000000000001", [0] * 3, [0.1, 0.2, 0.3]),  # from left to right
        ("SUM(a.v) > 1e300", [0, 0], [1.0, math.nan]),
        ("AVG(a.v) < -1e300", [0, 0], [1.0, -math.inf]),
        ("SUM(a.v) - SUM(a.v) > 1e300", [0, 0], [math.inf, math.inf]),  # NaN is the greatest
    ],
)
@pytest.mark.parametrize("selector", ["", "LAST "])
def test_no_match_is_cut_that_its_condition_admits(
    selector: str, condition: str, numbers: list[int], values: list[float]
) -> None:
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + _OVER.format(selector, condition)))
    rows = [("A", number, 0, value) for number, value in zip(numbers, values, strict=True)]
    matches = query.match_table(_table([*rows, ("B", 0, 0, 0.0)])).to_pylist()
    assert len(values) in [len(match["a"]) for match in matches]
