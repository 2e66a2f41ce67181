"""The rows of a state: kept events, and what is known of partitions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import ALWAYS, NEVER
from celc_runtime.stream.stored.rows import RowLayout, Rows

KEY_VALUES = np.dtype(
    [
        ("position", "<i8"),  # of the next event
        ("frontier", "<i8"),  # the time up to which the partition has been run
        ("first", "<i8"),  # the first position that later matches can use
        ("context", "<u2"),  # after the last event, for nested selectors
        ("value", "<i8"),  # the window's attribute at the last event, as a key (`NEVER`: unknown)
        ("last", "<i8"),  # the time of the last event
        ("since", "<i8"),  # the time of the first event since the partition last expired
        ("after", "<i8"),  # the position at which the last match ends that DISJOINT has kept
    ]
)
"""What is known of a partition. A segment has only the values that its query needs. The others are
as in `unknown_keys`."""

KEPT_ROWS = "kept"
"""One more column, for a query with LIMIT … PER or with totals of partitions: what `Stretches.kept`
says. All segments of such a query have it."""


def key_values(layout: RowLayout) -> np.dtype:
    """`KEY_VALUES`, with `KEPT_ROWS` where a query needs it."""
    if not layout.most_kept:
        return KEY_VALUES
    others = [(name, KEY_VALUES[name]) for name in KEY_VALUES.names or ()]
    return np.dtype([*others, (KEPT_ROWS, "<i8", (layout.most_kept,))])


def unknown_keys(count: int, layout: RowLayout) -> np.ndarray:
    """`key_values`[count], for partitions of which nothing is known."""
    values = np.zeros(count, key_values(layout))
    values["frontier"] = NEVER
    values["value"] = NEVER
    values["since"] = ALWAYS
    values["after"] = -1
    if layout.most_kept:
        values[KEPT_ROWS] = NEVER
    return values


class KeyRecords(NamedTuple):
    """Partitions and the values known of them."""

    rows: Rows  # of `RowLayout.of_keys`
    values: np.ndarray


class KeptEvents(NamedTuple):
    """Kept events."""

    rows: Rows
    positions: np.ndarray  # int64
    contexts: np.ndarray  # uint16, the context before each; empty: no nested selector needs it


def taken_events(layout: RowLayout, kept: KeptEvents, index: np.ndarray) -> KeptEvents:
    contexts = kept.contexts[index] if len(kept.contexts) else kept.contexts
    return KeptEvents(layout.taken(kept.rows, index), kept.positions[index], contexts)


def joined_events(layout: RowLayout, parts: Sequence[KeptEvents]) -> KeptEvents:
    if len(parts) == 1:
        return parts[0]
    return KeptEvents(
        layout.joined([part.rows for part in parts]),
        np.concatenate([np.zeros(0, np.int64), *(part.positions for part in parts)]),
        np.concatenate([np.zeros(0, np.uint16), *(part.contexts for part in parts)]),
    )


def taken_records(layout: RowLayout, records: KeyRecords, index: np.ndarray) -> KeyRecords:
    return KeyRecords(layout.of_keys.taken(records.rows, index), records.values.take(index))


def joined_records(layout: RowLayout, parts: Sequence[KeyRecords]) -> KeyRecords:
    if len(parts) == 1:
        return parts[0]
    rows = layout.of_keys.joined([part.rows for part in parts])
    return KeyRecords(
        rows, np.concatenate([unknown_keys(0, layout), *(part.values for part in parts)])
    )
