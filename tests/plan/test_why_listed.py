"""Why totals are listed: each reason, as its warning says it, and what it says to write instead."""

from __future__ import annotations

import pytest

from celc.core.limits import SIMULTANEOUS
from celc.diagnostics.errors import Diagnostic
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options

EVENTS = ", ".join(
    f"EVENT {name} {{ id: INT, k: INT, value: DOUBLE, ts: TIMESTAMP }}" for name in "ABC"
)
STREAM = f"CREATE STREAM S {{ {EVENTS} }}\n"
WINDOW = "WITHIN 9 MINUTES [ts]"
ABSENT = "!(C AS c FILTER c.id = x.id)"
SEARCHED = "each match is searched for events that must not be in it"

REASONS = {
    # conditions
    f"((A AS x)+ ; B) FILTER SUM(x.value) > 2 {WINDOW}": (
        "'SUM(x.value) > 2.0' is decided by all events of a match together"
    ),
    f"((A AS x)+ ; B) FILTER SUM(x.id) > 2 {WINDOW}": (
        "'SUM(x.id) > 2' adds up the events of each match"
    ),
    f"((A AS x)+ ; (B AS y)+) FILTER x.value + y.value < 2 {WINDOW}": (
        "'(x.value + y.value) < 2.0' compares events with several others"
    ),
    f"((A AS x)+ ; B) FILTER x.id <> COUNT(PRIOR x) {WINDOW}": (
        "'x.id != COUNT(PRIOR x)' is decided by all events of a match together"
    ),
    f"(B AS y ; (A AS x)+) FILTER y.value > COUNT(PRIOR x) {WINDOW}": (
        "'y.value > COUNT(PRIOR x)' compares events with several others"
    ),
    # absences, windows, selectors
    f"A AS x ; {ABSENT} ; B {WINDOW}": SEARCHED,
    f"(A AS x ; B) UNLESS (C AS c FILTER c.id = x.id) {WINDOW}": SEARCHED,
    f"NXT(A AS x ; B AS y FILTER x.id = y.id) ; C {WINDOW}": SEARCHED,
    f"{ABSENT} FOR 5 MINUTES [ts] ; A AS x ; B": "events before a match can rule it out",
    f"A AS x ; B ; {ABSENT} FOR 5 MINUTES [ts]": "events after a match can rule it out",
    f"A AS x ; ((B AS y)+ ; !(C AS c FILTER c.id = y.id) ; C) {WINDOW}": (
        f"{SEARCHED}; matches that differ only in events without a shown label count once"
    ),
    # the definition
    f"MAX((A AS x)+ ; B AS y FILTER x.value < y.value) ; C {WINDOW}": (
        "a selector inside compares matches of more than a chain"
    ),
    f"NXT(A AS x ; B AS y FILTER x.value < y.value) ; C {WINDOW}": (
        "NXT inside chooses by all events before the match"
    ),
    "LAST(A AS x ; B AS y FILTER x.id = y.id) ; C CONSUME BY PARTITION": (
        "a selector inside sees the stream as if it began anew after CONSUME BY"
    ),
    f"(A AS x ; {ABSENT} ; B)+ {WINDOW}": (
        "each round of a repetition has an absence or a choice of its own"
    ),
    f"{ABSENT} FOR 5 MINUTES [ts] ; A AS x ; B CONSUME BY PARTITION": (
        "CONSUME BY forgets the events before a match, which an absence asks for"
    ),
    f"A AS x ; {ABSENT} ; B PARTITION BY k CONSUME BY ANY": (
        "with CONSUME BY ANY, events of other partitions lie between those of a match"
    ),
    f"{ABSENT} FOR 5 MINUTES [ts] ; A AS x ; B PARTITION BY k CONSUME BY ANY": (
        "with CONSUME BY ANY, events of other partitions lie between those of a match"
    ),
    f"A AS x ; B ; {ABSENT} {WINDOW}": (
        "matches with one end are decided one after another, as an absence behind them ends"
    ),
    f"(A AS x ; {ABSENT} FOR 5 MINUTES [ts]) OR (B AS x ; {ABSENT} FOR 5 MINUTES [ts])": (
        "branches of an OR have absences of their own at the end"
    ),
    f"(((A AS x)+ ; B AS b) FILTER SUM(x.value) > b.value)+ {WINDOW}": (
        "the events of a repetition inside of another are taken together in a condition"
    ),
    f"A AS x ; !(B ; C AS c FILTER c.id = x.id) ; C {WINDOW}": (
        "the events of an absent pattern have not one key"
    ),
    f"A AS x ; !((B AS b)+ : C AS c FILTER c.id = b.id AND c.id = x.id) ; C {WINDOW}": (
        "an absent pattern cannot be followed event by event"
    ),
    f"(A AS x)+ ; !(C AS c FILTER c.value > SUM(x.value)) ; C {WINDOW}": (
        "an absence compares several of its events with others, or more than single values"
    ),
    f"A AS x ; {ABSENT} ; (B ALL C) {WINDOW}": (
        "no one part holds the event at which an absence begins or ends"
    ),
    "A AS x ; B ; !((C AS d ; B AS c) FILTER c.id = x.id) FOR 5 MINUTES [ts]": (
        "an absence at one end is of a pattern with conditions or neighbours"
    ),
    f"((A AS x ; B AS y) FILTER x.value < y.value)+ UNLESS (C AS c FILTER c.id = x.id) {WINDOW}": (
        "an absence has bounds in a repetition whose rounds are compared"
    ),
}


def warned(
    query: str, *, select: str = "TOTAL COUNT(*) AS n", ties: str | None = None
) -> Diagnostic:
    """The warning of a query."""
    (found,) = warnings(query, select=select, ties=ties)
    return found


def warnings(
    query: str, *, select: str = "TOTAL COUNT(*) AS n", ties: str | None = None
) -> list[Diagnostic]:
    source = Source("q.cel", f"{STREAM}SELECT {select} FROM S WHERE {query}\n")
    found = compile_source(source, Options(order_by=("ts",), ties=ties)).warnings
    return [one for one in found if one.code == "totals-by-listing"]


def reasons_of(found: Diagnostic) -> str:
    return found.message.split("with SELECT *: ", 1)[1]


@pytest.mark.parametrize("select", ["TOTAL COUNT(*) AS n", "COLLAPSED *"])
@pytest.mark.parametrize("query", REASONS)
def test_reasons(query: str, select: str) -> None:
    found = warned(query, select=select)
    assert reasons_of(found) == REASONS[query]
    purpose = "counted" if "TOTAL" in select else "united"
    assert found.message.startswith(f"the matches are listed to be {purpose}, and that takes")


ROWS = f"""SELECT x FROM S WHERE A AS x ; B {WINDOW}
QUERY totals:
SELECT TOTAL COUNT(*) AS n FROM rows WHERE rows AS p ; rows AS q {WINDOW}
"""


def test_events_that_last() -> None:
    source = Source("q.cel", f"{STREAM}QUERY rows:\n{ROWS}")
    assert not compile_source(source, Options(order_by=("ts",))).warnings


def test_what_to_write_instead() -> None:
    query = f"A AS x ; ((B AS y)+ ; {ABSENT} ; C) {WINDOW}".replace("c.id = x.id", "c.id = y.id")
    instead = "a label for each event tells such matches apart, and then each of them counts"
    assert instead in warned(query).help


def test_no_list_of_simultaneous_events() -> None:
    query = f"((A AS x ; B AS y) UNLESS C) FILTER x.id = y.id {WINDOW}"
    assert not warnings(query, ties=SIMULTANEOUS)


@pytest.mark.parametrize(
    "query",
    [
        f"A ; B {WINDOW}",
        f"(A AS x ; B AS y) FILTER x.id = y.id {WINDOW}",
        f"((A AS x)+ ; B) FILTER COUNT(x) > 2 {WINDOW}",
        f"((A AS x ; B AS y) FILTER x.id = y.id) AND (A AS z ; B) {WINDOW}",
        # a graph of the matches carries their conditions
        f"(A AS x ; B AS y) FILTER x.value < y.value {WINDOW}",
        f"((A AS x)+ ; B) FILTER x.value > PREV(x.value) {WINDOW}",
        f"((A AS x)+ ; B AS y) FILTER x.value < y.value {WINDOW}",
        f"((A AS x)+ ; (B AS y)+) FILTER x.value = y.value {WINDOW}",
        f"((A AS x)+ ; B) FILTER x.value > COUNT(PRIOR x) {WINDOW}",
        f"((A AS x)+ ; B AS y) FILTER COUNT(PRIOR x) = y.value OR x.id = 1 {WINDOW}",
        f"((A AS x)+ ; B AS y) FILTER MAX(x.value) < y.value {WINDOW}",
        "(A AS x ; B AS y) FILTER x.id = y.id PARTITION BY k CONSUME BY ANY",
        f"NXT(A ; B AS y) ; C AS z FILTER y.id = z.id {WINDOW}",
        f"(A AS x : B AS y) FILTER x.id = y.id {WINDOW}",
        f"(A AS x ; !C ; B AS y) FILTER x.id = y.id {WINDOW}",
        f"(A AS x ; B ; C AS z) FILTER x.id = z.id {WINDOW}",
        f"(A AS x OR A AS y) ; C AS z FILTER x.id = z.id {WINDOW}",
        f"(WITHIN[3 EVENTS] (A AS x ; B AS y) FILTER x.id = y.id) ; C {WINDOW}",
    ],
)
def test_no_list_no_word(query: str) -> None:
    assert not warnings(query)
