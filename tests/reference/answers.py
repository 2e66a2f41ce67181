"""Answers as the cases write them, and checks of answers that leave a choice."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from .clauses import Match, pick_query
from .parser import parse


def as_expected(match: Match) -> dict[str, Any]:
    """The match as an object of a case's `expected`; with `values` only where there are any."""
    written: dict[str, Any] = {
        "partition": dict(match.partition),
        "start": match.start,
        "end": match.end,
        "labels": {label: list(places) for label, places in match.labels},
    }
    if match.values:
        written["values"] = dict(match.values)
    if match.decided_time is not None:
        written["decided_time"] = match.decided_time
    if match.matches is not None:
        written["matches"] = str(match.matches)
    if match.parameters:
        written["parameters"] = {name: dict(values) for name, values in match.parameters}
    if match.times is not None:
        written["start_time"], written["end_time"] = match.times
    if match.confidence is not None:
        written["confidence"] = match.confidence
    return written


def from_expected(written: Mapping[str, Any]) -> Match:
    """The match that such an object writes."""
    return Match(
        tuple(written.get("partition", {}).items()),
        written["start"],
        written["end"],
        tuple((label, tuple(places)) for label, places in written["labels"].items()),
        tuple(written.get("values", {}).items()),
        written.get("decided_time"),
        int(written["matches"]) if "matches" in written else None,
        tuple((name, tuple(row.items())) for name, row in written.get("parameters", {}).items()),
        (written["start_time"], written["end_time"]) if "start_time" in written else None,
        written.get("confidence"),
    )


def _comparable(value: Any) -> Any:
    """A value that equal ones share: arrays as tuples, one NaN, times in UTC without their zone,
    INTERVALs as microseconds, DECIMALs as texts with all decimals of their type."""
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, Decimal):
        return f"{value if value else abs(value):f}"  # there is no −0
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return value


def _matches(matches: Iterable[Match | Mapping[str, Any]]) -> list[Match]:
    return [one if isinstance(one, Match) else from_expected(one) for one in matches]


def _counted(matches: Iterable[Match], *, timed: bool = False) -> Counter[Match]:
    """The matches, each with how often it occurs; the order of labels and attributes is dropped,
    and their times unless `timed`."""
    counted: Counter[Match] = Counter()
    for match in matches:
        counted[
            Match(
                tuple(
                    (name, _comparable(value))
                    for name, value in sorted(match.partition, key=lambda pair: pair[0])
                ),
                match.start,
                match.end,
                tuple(sorted(match.labels)),
                tuple(
                    (name, _comparable(value))
                    for name, value in sorted(match.values, key=lambda pair: pair[0])
                ),
                _comparable(match.decided_time),
                match.matches,
                tuple(
                    (name, tuple(sorted((key, _comparable(value)) for key, value in row)))
                    for name, row in match.parameters
                ),
                _comparable(match.times) if timed else None,
            )
        ] += 1
    return counted


def difference(
    answer: Iterable[Match | Mapping[str, Any]], expected: Iterable[Match | Mapping[str, Any]]
) -> str:
    """What tells two answers apart, whatever their order; the empty text where they are equal.

    Both sides take matches or objects of the cases' form. When a match starts and ends counts where
    both sides say it.
    """
    one_side, other_side = _matches(answer), _matches(expected)
    timed = all(match.times is not None for match in (*one_side, *other_side))
    found, wanted = _counted(one_side, timed=timed), _counted(other_side, timed=timed)
    lines = [f"missing: {as_expected(match)}" for match in (wanted - found).elements()]
    lines += [f"too many: {as_expected(match)}" for match in (found - wanted).elements()]
    return "\n".join(lines or _confidences_that_differ(one_side, other_side))


def _confidences_that_differ(one_side: Sequence[Match], other_side: Sequence[Match]) -> list[str]:
    """Of two answers with the same rows, those whose confidences are not the same up to 10⁻⁹."""

    def by_row(matches: Sequence[Match]) -> dict[Match, float]:
        found = {}
        for match in matches:
            if match.confidence is not None:
                (row,) = _counted([match])
                found[row] = match.confidence
        return found

    one, other = by_row(one_side), by_row(other_side)
    return [
        f"confidence {one.get(row)} in place of {other.get(row)}: {as_expected(row)}"
        for row in {**one, **other}
        if abs(one.get(row, -1) - other.get(row, -1)) > 1e-9
    ]


def same_answer(
    answer: Iterable[Match | Mapping[str, Any]], expected: Iterable[Match | Mapping[str, Any]]
) -> bool:
    """Whether two answers hold the same rows, whatever their order."""
    return not difference(answer, expected)


def choice_per_end(text: str, query: str | None = None) -> int | None:
    """How many matches LIMIT and ANY leave for each end position; None where all are reported."""
    asked = pick_query(parse(text), query)
    limits = [1] if asked.selector == "ANY" else []
    limits += [asked.limit] if asked.limit is not None else []
    return min(limits) if limits else None


def check_choice(
    all_matches: Sequence[Match], answer: Sequence[Match | Mapping[str, Any]], per_end: int
) -> None:
    """Assert that `answer` is a right choice of `per_end` matches for each end position.

    It must hold nothing but matches, none more often than they occur, and for each end position of
    each part `per_end` of them, or all where there are fewer.
    """
    possible, chosen = _counted(all_matches), _counted(_matches(answer))
    wrong = [as_expected(match) for match in (chosen - possible).elements()]
    assert not wrong, f"not a match, or reported too often: {wrong}"
    available, reported = _per_end(possible), _per_end(chosen)
    for place, count in available.items():
        wanted = min(per_end, count)
        assert reported[place] == wanted, f"{place}: {reported[place]} matches instead of {wanted}"


def _per_end(matches: Counter[Match]) -> Counter[tuple[tuple[tuple[str, Any], ...], int]]:
    counts: Counter[tuple[tuple[tuple[str, Any], ...], int]] = Counter()
    for match, times in matches.items():
        counts[match.partition, match.end] += times
    return counts


def check_answer(
    text: str,
    all_matches: Sequence[Match],
    answer: Sequence[Match | Mapping[str, Any]],
    *,
    query: str | None = None,
) -> None:
    """Assert that `answer` answers the query, given every match that `evaluate` finds.

    Where the query has LIMIT or ANY, any right choice will do; otherwise all rows must be there.
    """
    per_end = choice_per_end(text, query)
    if per_end is not None:
        check_choice(all_matches, answer, per_end)
        return
    told = difference(answer, all_matches)
    assert not told, told
