"""Seeded mistakes in the fifty rules of `benchmarks/log_rules`: what `celc diff` tells of them."""

from __future__ import annotations

from collections import Counter

import pytest
from mistakes import mistakes
from places import ROOT

from celc.compare import Difference, Equal, shortest_difference
from celc.compare.sides import Side
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.options import Options

RULES = sorted((ROOT / "benchmarks" / "log_rules").glob("*.cel"))
OPTIONS = Options(order_by=("ts",))


_OF_200_EVENTS = (13, 63)
"""`HAVING fails > 200` and `>= 200`: all shorter streams are too many to be tried."""


def _mistake(number: int) -> tuple[str, str, Side, Side]:
    """The rule, what the mistake is, and both queries."""
    path = RULES[number % len(RULES)]
    text = path.read_text("utf-8")
    old = Side(Source(path.name, text), OPTIONS)
    for what, made in mistakes(text, number):
        try:
            return path.stem, what, old, Side(Source(path.name, made), OPTIONS)
        except CelError:
            continue  # no query any more
    raise AssertionError("there are endless mistakes")


def _told(number: int, seconds: float) -> tuple[str, str]:
    rule, what, old, new = _mistake(number)
    found = shortest_difference(old, new, deadline=seconds)
    where = f"{number}: {rule}: {what}"
    if isinstance(found, Equal):
        return where, "proved equal"
    if isinstance(found, Difference):
        shortest = "shortest" if found.bound is None else "shortest of those tried"
        return where, shortest if found.shortest else "not known to be shortest"
    return where, f"not proved: {found.why}"


@pytest.mark.parametrize("number", [5, 27, 53, 75])
def test_mistakes_are_found(number: int) -> None:
    where, told = _told(number, 60)
    assert told.startswith("shortest"), where


@pytest.mark.long
def test_a_hundred_mistakes_are_found() -> None:
    counts: Counter[str] = Counter()
    left = []
    for number in range(100):
        where, told = _told(number, 60)
        if told == "not known to be shortest" and number not in _OF_200_EVENTS:
            where, told = _told(number, 600)
        kind = told.partition(":")[0]
        counts[kind] += 1
        print(where, told, sep=": ", flush=True)
        if kind == "not proved":
            left.append(where)
    print(counts)
    assert left == []
    assert counts["not known to be shortest"] == len(_OF_200_EVENTS)
