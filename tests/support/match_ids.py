"""`match_id` in tests: whether ids tell apart what the reference does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from celc_runtime import CompiledQuery
from engines import Event, Row, as_key, parts_of
from reference.identities import identity


def ids_of(rows: Sequence[Row]) -> list[str]:
    """The ids of rows, sorted."""
    return sorted(row["match_id"].hex() for row in rows)


def wrong_ids(query: CompiledQuery, rows: Sequence[Row], events: Sequence[Event]) -> str:
    """What is wrong with the ids of rows, which show positions; empty where two rows have one id if
    they are of one match, and only then."""
    plan, parameters = query.plan, query.plan.source.parameters
    assert all(len(row["match_id"]) == 16 for row in rows)
    if plan.source.uncertain is not None:
        events = sorted(events, key=lambda event: event[plan.source.order_by[0]])
    parts = parts_of(plan, events)
    read = dict.fromkeys((*(one.name for one in plan.source.attributes), *plan.source.tiebreak))
    by_id: defaultdict[str, set[Any]] = defaultdict(set)
    by_match: defaultdict[Any, set[str]] = defaultdict(set)
    for row in rows:
        keys = {name: row[name] for name in plan.source.partition_by}
        match = {
            "partition": keys,
            "start": row["start_pos"],
            "end": row["end_pos"],
            "labels": {one.name: [e["pos"] for e in row[one.name]] for one in plan.answer.labels},
            "parameters": None if parameters is None else row[parameters.name],
        }
        part = parts[tuple(map(as_key, keys.values()))]
        key = identity(
            match, part, list(read), plan.source.order_by, has_ties=plan.source.takes_ties
        )
        by_id[row["match_id"].hex()].add(key)
        by_match[key].add(row["match_id"].hex())
    told = [f"one id {id} of {found}" for id, found in by_id.items() if len(found) > 1]
    # Rows do not show what labels hold that only expressions name, or all of a parameter row.
    shows_all = parameters is None or len(parameters.shown) == len(parameters.attributes)
    if shows_all and not plan.answer.hidden:
        told += [f"ids {found} of {key}" for key, found in by_match.items() if len(found) > 1]
    return "\n".join(told)
