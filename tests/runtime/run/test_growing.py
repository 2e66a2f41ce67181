"""Conditions that further events keep TRUE need no search among subsets; steps are counted."""

from __future__ import annotations

import pyarrow as pa
import pytest
from celc_runtime.plan.strategy import Checked, LongestRuns
from engines import interpreted, only_query

import celc
from celc import Matcher

_EVENTS = ", ".join(f"EVENT {name} {{ a: INT, k: INT, v: DOUBLE, s: STRING }}" for name in "XAB")
_DECLARATION = f"CREATE STREAM S {{ {_EVENTS} }}\n"
_ALARM = "SELECT {} WHERE (X AS x)+ FILTER {} WITHIN 5000 EVENTS"

_CONDITIONS = (
    "COUNT(DISTINCT x.a) >= 3",
    "COUNT(DISTINCT x.s) > 2",
    "COUNT(DISTINCT x.a) >= 3 AND COUNT(DISTINCT x.s) >= 2 AND MAX(x.v) >= 2",
    "x.v >= 0 AND SUM(x.v) >= 5 AND COUNT(DISTINCT x.v) >= 3",
)


def _findings(values: list[int], types: str = "") -> pa.Table:
    """Events of X, or of these types, with some values."""
    return pa.table(
        {
            "type": list(types or "X" * len(values)),
            "a": pa.array(values, pa.int32()),
            "k": pa.array([0] * len(values), pa.int32()),
            "v": [float(value) for value in values],
            "s": [str(value) for value in values],
        }
    )


def _compiled(text: str) -> Matcher:
    with interpreted():
        return celc.compile(_DECLARATION + text)


@pytest.mark.parametrize("condition", _CONDITIONS)
@pytest.mark.parametrize("selector", ["ANY *", "NXT *", "LAST *", "MAX *"])
@pytest.mark.parametrize("count", [28, 40, 300])
def test_an_alarm_after_equal_findings(selector: str, condition: str, count: int) -> None:
    """Of equal findings and two others, one subset with the last is asked for, or any."""
    query = only_query(_compiled(_ALARM.format(selector, condition)))
    events = _findings([*([0] * count), 2, 3])
    (match,) = query.with_options(max_work=3 * count).match_table(events).to_pylist()
    assert match["end_pos"] == count + 1
    assert {event["a"] for event in match["x"]} == {0, 2, 3}
    assert len(match["x"]) == count + 2


@pytest.mark.parametrize("selector", ["ANY *", "*", "NXT *", "LAST *", "MAX *", "FIRST *"])
def test_no_alarm_without_a_step(selector: str) -> None:
    """What all events between cannot reach is not searched."""
    limit = " LIMIT 1" if selector == "*" else ""
    text = _ALARM.format(selector, "COUNT(DISTINCT x.a) >= 3") + limit
    query = only_query(_compiled(text))
    events = _findings([0, 1] * 300)
    assert query.with_options(max_work=1).match_table(events).num_rows == 0


def test_each_step_leads_to_a_match() -> None:
    """All matches are listed; between two of them lie no more steps than events."""
    query = only_query(_compiled(_ALARM.format("*", "COUNT(DISTINCT x.a) >= 3")))
    events = _findings([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3])
    answer = query.with_options(max_work=13).match_table(events)
    assert answer.num_rows == 2**10 - 1
    few = only_query(_compiled(_ALARM.format("*", "COUNT(DISTINCT x.a) <= 1 AND COUNT(x) > 1")))
    answer = few.with_options(max_work=70).match_table(_findings([*range(30), 29]))
    assert answer.num_rows == 1


def test_too_many_values_are_given_up_at_once() -> None:
    """Of 2²⁵ subsets, those of one value and the last event are tried."""
    text = "SELECT * WHERE ((X AS x)+ ; B) FILTER COUNT(DISTINCT x.a) = 1"
    events = _findings(list(range(26)), "X" * 25 + "B")
    answer = only_query(_compiled(text)).with_options(max_work=60).match_table(events)
    assert [len(match["x"]) for match in answer.to_pylist()] == [1] * 25


@pytest.mark.parametrize("selector", ["NXT *", "LAST *", "MAX *", "ANY *"])
def test_the_greatest_match_of_each_beginning(selector: str) -> None:
    """One for each A; matches of other keys, and events outside, do not count."""
    text = (
        f"SELECT {selector} WHERE (A AS a ; (X AS x)+ ; B AS b) "
        "FILTER a.k = x.k AND x.k = b.k AND COUNT(DISTINCT x.a) >= 3 WITHIN 100 EVENTS"
    )
    values = [9, *([0] * 20), 9, 1, *([0] * 20), 2, 9]
    types = "A" + "X" * 20 + "A" + "X" * 22 + "B"
    query = only_query(_compiled(text)).with_options(max_work=3_000)
    found = query.match_table(_findings(values, types)).to_pylist()
    sizes = {match["a"][0]["pos"]: len(match["x"]) for match in found}
    wanted = {"NXT *": {0: 42}, "LAST *": {21: 22}, "MAX *": {0: 42, 21: 22}}
    if selector in wanted:
        assert sizes == wanted[selector]
    assert len(sizes) == len(found) >= 1


def test_the_first_alarm_of_each_finding() -> None:
    """A start that has been answered costs nothing at later ends but a step."""
    query = only_query(_compiled(_ALARM.format("FIRST *", "COUNT(DISTINCT x.a) >= 3")))
    count = 100
    events = _findings([*([0] * count), 1, 2, *([3] * count)])
    answer = query.with_options(max_work=3 * count).match_table(events).to_pylist()
    ends = {match["start_pos"]: match["end_pos"] for match in answer}
    assert ends == {**dict.fromkeys(range(count), count + 1), count: count + 2}
    assert all(len(m["x"]) == m["end_pos"] - m["start_pos"] + 1 for m in answer)


def test_the_longest_alarms_are_runs() -> None:
    query = only_query(_compiled(_ALARM.format("LONGEST DISJOINT *", "COUNT(DISTINCT x.a) >= 3")))
    assert isinstance(query.program.listing, LongestRuns)
    events = _findings([*([0] * 100), 1, 2, 2, 2])
    (match,) = query.match_table(events).to_pylist()
    assert (match["start_pos"], match["end_pos"], len(match["x"])) == (0, 103, 104)


def test_what_does_not_grow_is_searched_as_before() -> None:
    """Only conditions that no further event makes fail let smaller matches out."""
    for condition in ("COUNT(DISTINCT x.a) <= 3", "SUM(x.v) > 3", "MIN(x.v) > 1 OR MAX(x.v) < x.a"):
        listing = only_query(_compiled(_ALARM.format("MAX *", condition))).program.listing
        assert not (isinstance(listing, Checked) and listing.greatest), condition
