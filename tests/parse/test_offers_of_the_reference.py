"""What a message offers to write means what stood there, where the reference has an answer to both.

The reference knows the names and the meaning, and not all that celc refuses: a query with a message
often has an answer. So the query and what it is after an offered change are asked of the same
random events.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from reference import (
    CelError,
    RunError,
    WorkLimitError,
    difference,
    evaluate,
    evaluate_totals,
    totals_difference,
)
from reference.nodes import File
from reference.parser import parse
from reference.values import Kind
from test_offered_texts import ALL, Query, mutated

from celc.diagnostics.errors import Diagnostic

OTHERWISE = {
    "joined-boolean": "the text compares joined texts, where most likely OR was meant",
    "missing-unit": "each unit that is offered is another meaning, and the text says none",
    "never-matches": "what stood there has no match, as the message says",
}
"""Messages that say why what they offer means something else."""

_BEGIN = dt.datetime(2026, 1, 1)


def compared(query: Query, text: str, rng: random.Random) -> Iterator[tuple[Diagnostic, str]]:
    """The messages about a text whose offered changes the reference can answer, as it can the text,
    and what tells the answers apart."""
    for caused in query.found(text):
        for fix in caused.fixes:
            changed = text[: fix.span.start] + fix.text + text[fix.span.end :]
            try:
                file = parse(text)
                names = zip(file.queries, parse(changed).queries, strict=False)
                for before, after in names if file.types else ():
                    for _ in range(3):
                        events = _events(file, text, rng)
                        wanted = _answer(query, file, text, before.name, events)
                        found = _answer(query, file, changed, after.name, events)
                        told = _told(wanted, found)
                        yield caused, told and f"{caused}\n{text}\n→ {fix.text!r}: {told}"
            except (CelError, WorkLimitError):
                continue


def _answer(
    query: Query, file: File, text: str, name: str | None, events: list[dict[str, Any]]
) -> list[Any] | None:
    """The rows of a query; None where it ends in an error."""
    asked = next(one for one in file.queries if one.name == name)
    options: dict[str, Any] = {
        "query": name,
        "order_by": _order(file, text),
        "ties": query.ties,
        "work_limit": 20_000,
    }
    if asked.for_each is not None:
        kinds = file.parameters.get(asked.for_each)
        if kinds is None:
            raise CelError(f"no parameter set is called {asked.for_each}")
        rng = random.Random(text)
        row = {attribute: _value(kind, (1, 2), rng) for attribute, kind in kinds.items()}
        options["parameters"] = {asked.for_each: [row]}
    try:
        if asked.per is not None:
            return list(evaluate_totals(text, events, **options))
        return list(evaluate(text, events, **options))
    except RunError:
        return None


def _told(wanted: list[Any] | None, found: list[Any] | None) -> str:
    if wanted is None or found is None:
        return "" if wanted is found else f"{wanted} and not {found}"
    if any(isinstance(row, dict) for row in (*wanted, *found)):
        return totals_difference(wanted, found)
    return difference(found, wanted)


def _order(file: File, text: str) -> tuple[str, ...] | None:
    named = re.match(r"-- order-by: (.*)\n", text)
    if named:
        return tuple(named[1].split(","))
    return ("ts",) if all("ts" in one.attributes for one in file.types) else None


def _events(file: File, text: str, rng: random.Random) -> list[dict[str, Any]]:
    """Events of the declared types, with the numbers of the text among their values."""
    numbers = [*map(int, re.findall(r"\b\d{1,3}\b", text)), 0, 1, 2, -1]
    order = _order(file, text) or ()
    events = []
    for row in range(7):
        one = rng.choice(file.types)
        event: dict[str, Any] = {"type": one.name, "stream": one.stream}
        for name, kind in one.attributes.items():
            rises = name in order
            number = 10 * row if rises else rng.choice(numbers)
            value = _value(kind, (number,), rng)
            event[name] = None if not rises and rng.random() < 0.1 else value
        events.append(event)
    return events


def _value(kind: Kind, numbers: tuple[int, ...], rng: random.Random) -> Any:
    number = rng.choice(numbers)
    match kind:
        case Kind.BOOLEAN:
            return number % 2 == 0
        case Kind.FLOAT | Kind.DOUBLE:
            return math.nan if number == 2 and rng.random() < 0.2 else float(number)
        case Kind.STRING:
            return rng.choice(("p", "q", "foo", f"{number:05}"))
        case Kind.TIMESTAMP:
            return _BEGIN + dt.timedelta(seconds=number)
        case Kind.DATE:
            return _BEGIN.date() + dt.timedelta(days=number)
        case Kind.INTERVAL:
            return dt.timedelta(seconds=number)
        case _:
            return number


def _wrong(query: Query, text: str, rng: random.Random, codes: Counter[str]) -> list[str]:
    wrong = []
    for caused, told in compared(query, text, rng):
        codes[caused.code] += 1
        if told and caused.code not in OTHERWISE:
            wrong.append(told)
    return wrong


def test_offers_for_every_message() -> None:
    rng, codes = random.Random(1), Counter[str]()
    wrong = [told for query in ALL for told in _wrong(query, query.text, rng, codes)]
    assert not wrong, "\n".join(wrong[:3])
    assert {*OTHERWISE, "stream-not-read", "unmeasured-window", "many-positions"} <= {*codes}, codes


@pytest.fixture(scope="module")
def answerable() -> list[Query]:
    """The queries with messages that the reference answers."""
    return [query for query in ALL if any(compared(query, query.text, random.Random(1)))]


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_offers_for_queries_with_a_change(answerable: list[Query], seed: int) -> None:
    rng, codes = random.Random(seed), Counter[str]()
    wrong = []
    for _ in range(350):
        query = rng.choice(answerable)
        wrong += _wrong(query, mutated(query.text, rng), rng, codes)
    assert not wrong, "\n".join(wrong[:3])
    assert codes.total() >= 5, codes
