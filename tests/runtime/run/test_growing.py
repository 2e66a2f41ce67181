"""Conditions that further events keep TRUE need no search among subsets; steps are counted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.engine.totals.wide_columns import column_of, leaves_38_digits
from celc_runtime.engine.walk.counted_sets import write_sets
from celc_runtime.plan.errors import TotalError
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


@pytest.mark.each(4)
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


@pytest.mark.parametrize("count", [28, 40, 100])
def test_a_union_is_counted_and_not_listed(count: int) -> None:
    """2⁴⁰ matches: each set of the equal findings but the empty one, with the two others."""
    text = _ALARM.format("COLLAPSED *", "COUNT(DISTINCT x.a) >= 3")
    matcher = _compiled(text)
    assert not matcher.warnings
    query = only_query(matcher).with_options(max_work=10 * count)
    first, second = query.match_table(_findings([*([0] * count), 2, 3, 2])).to_pylist()
    for row, events in ((first, count + 2), (second, count + 3)):
        assert (row["start_pos"], row["end_pos"]) == (0, events - 1)
        assert [event["pos"] for event in row["x"]] == [*range(events)]
    assert first["matches"] == 2**count - 1
    # The other 2 can be there, too.
    assert second["matches"] == 2 * (2**count - 1)


def test_a_count_leaves_38_digits_as_totals_do() -> None:
    query = only_query(_compiled(_ALARM.format("COLLAPSED *", "COUNT(DISTINCT x.a) >= 2")))
    (row,) = query.match_table(_findings([*([0] * 126), 1])).to_pylist()
    assert row["matches"] == 2**126 - 1
    with pytest.raises(TotalError, match="more than 38 digits") as told:
        query.match_table(_findings([*([0] * 127), 1]))
    assert "SELECT MAX and SELECT ANY" in str(told.value)
    assert "TOTAL" not in str(told.value), "it would list the matches"


@pytest.mark.each(3)
@pytest.mark.parametrize("last", [-1, 0, 2])
@pytest.mark.parametrize(
    "sizes", [[1, 2, 3, 1], [1] * 200, [63, 64, 65], [126, 1, 1], [127, 1, 2], [128, 1, 3], [5]]
)
def test_sets_are_counted_exactly(sizes: list[int], last: int) -> None:
    """By the numbers of sets with each number of values, in Python's numbers."""
    if last >= len(sizes):
        return
    for free, least in ((0, 1), (0, len(sizes)), (2, max(1, len(sizes) - 1)), (70, 2)):
        numbers = [2**free]
        for place, size in enumerate(sizes):
            without, having = (0, 2 ** (size - 1)) if place == last else (1, 2**size - 1)
            longer = [*numbers, 0]
            numbers = [
                without * longer[number] + (having * longer[number - 1] if number else 0)
                for number in range(len(longer))
            ]
        wanted, found = sum(numbers[least:]), np.ones(2, np.uint64)
        write_sets(np.array(sizes), free, last, least, found)
        if wanted < 10**38:
            assert (int(found[0]) << 64) + int(found[1]) == wanted
        else:
            assert leaves_38_digits(column_of(found[None])).all()


def test_a_union_of_matches_with_events_around() -> None:
    """Those of each A are counted by themselves."""
    text = (
        "SELECT COLLAPSED * WHERE (A AS a ; (X AS x)+ ; B AS b) "
        "FILTER a.k = x.k AND x.k = b.k AND COUNT(DISTINCT x.a) >= 2 WITHIN 100 EVENTS"
    )
    values = [9, *([0] * 20), 1, 9, *([0] * 20), 2, 9]
    events = _findings(values, "A" + "X" * 21 + "A" + "X" * 21 + "B")
    query = only_query(_compiled(text)).with_options(max_work=5_000)
    listing = query.program.listing
    assert isinstance(listing, Checked)
    assert any(listing.rounds)
    (row,) = query.match_table(events).to_pylist()
    assert [event["pos"] for event in row["a"]] == [0, 22]
    # Of 40 zeros, a 1 and a 2: all sets but the empty one and those of one value.
    assert row["matches"] == 2**42 - 1 - (2**40 - 1) - 1 - 1 + (2**20 - 1)


@pytest.mark.parametrize(
    "body",
    [
        "(X AS x)+ FILTER COUNT(DISTINCT x.a) >= 3 AND COUNT(DISTINCT x.s) >= 2",
        "(X AS x)+ FILTER SUM(x.v) >= 3 AND x.v >= 0",
        "(X AS x)+ FILTER COUNT(DISTINCT x.a) <= 3",
        "((A AS x ; B)+) FILTER COUNT(DISTINCT x.a) >= 3",
        "(X AS y ; (X AS x)+) FILTER COUNT(DISTINCT x.a) >= 3",
        "(A : (X AS x)+) FILTER COUNT(DISTINCT x.a) >= 3",
        "((X AS x)+ ; (A AS y)+) FILTER COUNT(DISTINCT x.a) >= 3",
        "((X AS x){2,}) FILTER COUNT(DISTINCT x.a) >= 3",
        "(((X AS x)+ ; A) OR B) FILTER COUNT(DISTINCT x.a) >= 3",
    ],
)
def test_other_unions_are_listed(body: str) -> None:
    """Where sets of events under one `+` are not all that there is to count; celc warns."""
    matcher = _compiled(f"SELECT COLLAPSED * WHERE {body} WITHIN 9 EVENTS")
    assert not getattr(only_query(matcher).program.listing, "rounds", ())
    assert [warning.code for warning in matcher.warnings] == ["totals-by-listing"]


def test_what_does_not_grow_is_searched_as_before() -> None:
    """Only conditions that no further event makes fail let smaller matches out."""
    for condition in ("COUNT(DISTINCT x.a) <= 3", "SUM(x.v) > 3", "MIN(x.v) > 1 OR MAX(x.v) < x.a"):
        listing = only_query(_compiled(_ALARM.format("MAX *", condition))).program.listing
        assert not (isinstance(listing, Checked) and listing.greatest), condition
