"""Uncertain time in tests: answers in the form of the cases, held against the events."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Iterable, Sequence

from celc_runtime import CompiledQuery
from celc_runtime.plan.strategy import InWorlds
from celc_runtime.stream.formats import StreamOptions
from engines import (
    Event,
    Row,
    batches_of,
    in_parts,
    interpreted,
    only_query,
    parts_of,
    table_of,
    values_of,
)
from streams_by_hand import instant, microseconds, streamed

import celc


def possible_answer(
    query: CompiledQuery, matches: Iterable[Row], events: Sequence[Event]
) -> list[Row]:
    """The rows of an answer in the form of the cases, held against the events."""
    plan = query.plan
    assert plan.source.uncertain is not None
    parts = parts_of(plan, sorted(events, key=lambda event: event[plan.source.order_by[0]]))
    answer: list[Row] = []
    last_end: dict[tuple[object, ...], int] = {}
    for row in matches:
        assert list(row) == query.output_schema.names
        key = tuple(row[name] for name in plan.source.partition_by)
        part, start, end = parts[key], row["start_pos"], row["end_pos"]
        assert last_end.get(key, end) <= end, f"{row} ends before the match that came before it"
        last_end[key] = end
        labels = {
            label.name: [event["pos"] for event in row[label.name]] for label in plan.answer.labels
        }
        for label in plan.answer.labels:
            for event in row[label.name]:
                assert all(event[name] == part[event["pos"]].get(name) for name in label.attributes)
        answer.append(
            {
                "partition": dict(zip(plan.source.partition_by, key, strict=True)),
                "start": start,
                "end": end,
                "labels": labels,
                "start_time": row["start_time"],
                "end_time": row["end_time"],
                "confidence": row["confidence"],
                **values_of(query, row),
            }
        )
    return answer


def possible_answers(
    query: CompiledQuery, events: Sequence[Event], rng: random.Random
) -> dict[str, list[Row]]:
    """What a query answers by each way to run it on one machine, in the form of the cases."""
    plan = query.plan
    table = table_of(plan, events)
    in_order = sorted(events, key=lambda event: event[plan.source.order_by[0]])
    ordered = table_of(plan, in_parts(plan, in_order))
    batches = query.match_arrow(batches_of(ordered, rng))
    return {
        "match_table": possible_answer(query, query.match_table(table).to_pylist(), events),
        "match_arrow": possible_answer(
            query, (row for batch in batches for row in batch.to_pylist()), events
        ),
    }


# --- streams --------------------------------------------------------------------------------------

FIRST, UNTIL = "first_time", "last_time"
"""The columns of times."""


def on_a_clock(text: str, name: str = "query") -> CompiledQuery:
    """A query over whole numbers as one over instants, so many milliseconds after 1970. The numbers
    stay, for conditions that read them."""
    text = text.replace("SELECT", f"QUERY {name}: SELECT", 1)
    clause = re.compile(r"UNCERTAIN \[\w+, \w+\] BY (\d+)(?= *({|WEIGHTED))")
    assert clause.search(text)
    text = clause.sub(rf"UNCERTAIN [{FIRST}, {UNTIL}] BY \1 MILLISECONDS", text)
    text = re.sub(
        r"(EVENT\s+\w+\s*{[^}]*?)\s*}", rf"\1, {FIRST}: TIMESTAMP, {UNTIL}: TIMESTAMP }}", text
    )
    text = re.sub(r"WITHIN (\d+) \[\w+\]", rf"WITHIN \1 MILLISECONDS [{FIRST}]", text)
    text = re.sub(r"WITHIN\[(\d+) \[\w+\]\]", rf"WITHIN[\1 MILLISECONDS [{FIRST}]]", text)
    with interpreted():
        return only_query(celc.compile(text, tiebreak="row"))


def has_absence(text: str) -> bool:
    """Whether an event can rule out a match that is not in it; then a stream does not run it."""
    with interpreted():
        listing = only_query(celc.compile(text)).program.listing
    assert isinstance(listing, InWorlds)
    return listing.outside


def rows_on_a_clock(events: Sequence[Event], times: tuple[str, str]) -> list[Event]:
    """Events for `on_a_clock`, by their least times; `times`: the names of the numbers."""
    low, high = times
    return [
        {**event, FIRST: instant(event[low]), UNTIL: instant(event[high]), "row": row}
        for row, event in enumerate(sorted(events, key=lambda event: event[low]))
    ]


def streamed_answer(
    query: CompiledQuery,
    events: Sequence[Event],
    times: tuple[str, str],
    rng: random.Random,
    *,
    key_ttl: int | None = None,
) -> list[Row]:
    """The answer of a query `on_a_clock` to events whose least and greatest times are whole
    numbers, as a stream in micro-batches; in the form of the cases."""
    given = rows_on_a_clock(events, times)
    buckets = rng.choice((1, 3)) if query.plan.source.key_columns else 1
    options = StreamOptions({"row": "LONG"}, buckets=buckets, key_ttl=key_ttl)
    rows = streamed(query, given, rng, options=options, time=FIRST)
    answer = possible_answer(query, rows, given)
    return [in_numbers(row) for row in answer]


def in_numbers(row: Row) -> Row:
    """A row of an answer with instants as whole numbers."""
    return {name: _number(value) for name, value in row.items()}


def _number(value: object) -> object:
    return microseconds(value) // 1000 if isinstance(value, dt.datetime) else value
