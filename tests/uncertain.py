"""Uncertain time in tests: answers in the form of the cases, held against the events."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from celc_runtime import CompiledQuery
from engines import Event, Row, batches_of, in_parts, parts_of, table_of


def possible_answer(
    query: CompiledQuery, matches: Iterable[Row], events: Sequence[Event]
) -> list[Row]:
    """The rows of an answer in the form of the cases, held against the events."""
    plan = query.plan
    assert plan.uncertain is not None
    parts = parts_of(plan, sorted(events, key=lambda event: event[plan.order_by[0]]))
    answer: list[Row] = []
    last_end: dict[tuple[object, ...], int] = {}
    for row in matches:
        assert list(row) == query.output_schema.names
        key = tuple(row[name] for name in plan.partition_by)
        part, start, end = parts[key], row["start_pos"], row["end_pos"]
        assert last_end.get(key, end) <= end, f"{row} ends before the match that came before it"
        last_end[key] = end
        labels = {label.name: [event["pos"] for event in row[label.name]] for label in plan.labels}
        for label in plan.labels:
            for event in row[label.name]:
                assert all(event[name] == part[event["pos"]].get(name) for name in label.attributes)
        answer.append(
            {
                "partition": dict(zip(plan.partition_by, key, strict=True)),
                "start": start,
                "end": end,
                "labels": labels,
                "start_time": row["start_time"],
                "end_time": row["end_time"],
                "confidence": row["confidence"],
            }
        )
    return answer


def possible_answers(
    query: CompiledQuery, events: Sequence[Event], rng: random.Random
) -> dict[str, list[Row]]:
    """What a query answers by each way to run it on one machine, in the form of the cases."""
    plan = query.plan
    table = table_of(plan, events)
    in_order = sorted(events, key=lambda event: event[plan.order_by[0]])
    ordered = table_of(plan, in_parts(plan, in_order))
    batches = query.match_arrow(batches_of(ordered, rng))
    return {
        "match_table": possible_answer(query, query.match_table(table).to_pylist(), events),
        "match_arrow": possible_answer(
            query, (row for batch in batches for row in batch.to_pylist()), events
        ),
    }
