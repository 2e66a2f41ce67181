"""The rows of a state: kept events, and what is known of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import ALWAYS, NEVER
from celc_runtime.stream.rows import RowLayout, Rows

KEY_VALUES = np.dtype(
    [
        ("position", "<i8"),
        ("frontier", "<i8"),
        ("first", "<i8"),
        ("context", "<u2"),
        ("value", "<i8"),
        ("last", "<i8"),
        ("since", "<i8"),
        ("after", "<i8"),
    ]
)
"""What is known of a partition: the position of its next event; the time up to which it has been
run; the first position that later matches can use; the context behind its last event, as nested
selectors see it; the window's attribute at its last event, order-preserving (`NEVER`: unknown);
the time of its last event; the time of its first one since it was last forgotten; and the position
at which the last match ends that SELECT … DISJOINT has kept. A segment has only those that its
query needs, and the others are as in `unknown_keys`."""


def unknown_keys(count: int) -> np.ndarray:
    """KEY_VALUES[count]: of partitions of which nothing is known."""
    values = np.zeros(count, KEY_VALUES)
    values["frontier"] = NEVER
    values["value"] = NEVER
    values["since"] = ALWAYS
    values["after"] = -1
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
    """Some kept events (int64)."""
    contexts = kept.contexts[index] if len(kept.contexts) else kept.contexts
    return KeptEvents(layout.taken(kept.rows, index), kept.positions[index], contexts)


def joined_events(layout: RowLayout, parts: Sequence[KeptEvents]) -> KeptEvents:
    """Kept events, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    return KeptEvents(
        layout.joined([part.rows for part in parts]),
        np.concatenate([np.zeros(0, np.int64), *(part.positions for part in parts)]),
        np.concatenate([np.zeros(0, np.uint16), *(part.contexts for part in parts)]),
    )


def taken_records(layout: RowLayout, records: KeyRecords, index: np.ndarray) -> KeyRecords:
    """Some partitions (int64); `layout`: of events."""
    return KeyRecords(layout.of_keys.taken(records.rows, index), records.values.take(index))


def joined_records(layout: RowLayout, parts: Sequence[KeyRecords]) -> KeyRecords:
    """Partitions, one behind the other; `layout`: of events."""
    if len(parts) == 1:
        return parts[0]
    rows = layout.of_keys.joined([part.rows for part in parts])
    return KeyRecords(rows, np.concatenate([unknown_keys(0), *(part.values for part in parts)]))
