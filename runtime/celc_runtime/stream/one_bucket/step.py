"""The outcome of a micro-batch for a bucket."""

from dataclasses import dataclass, field

import pyarrow as pa

from celc_runtime.stream.stored.rows import Rows


@dataclass(slots=True)
class Step:
    """The outcome of a micro-batch for a bucket."""

    late: Rows  # the events that came too late
    header: bytes = b""  # of the new state
    is_changed: bool = True  # whether it differs from the header before
    written: dict[int, bytes] = field(default_factory=dict)  # bytes to store under numbers
    removed: list[int] = field(default_factory=list)
    """Numbers under which nothing is stored any more."""
    set_timers: list[int] = field(default_factory=list)  # milliseconds
    unset_timers: list[int] = field(default_factory=list)  # milliseconds
    matches: list[pa.RecordBatch] = field(default_factory=list)
    of_members: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    """The matches of queries that share the events, by their numbers."""
    events: int = 0  # events that were run
    keys: int = 0  # partitions of these
    waiting: int = 0  # events that wait for the watermark
    kept: int = 0  # events that are kept
    pending: int = 0  # kept events with a deadline to come
    known: int = 0  # records of partitions
    size: int = 0  # bytes of the state
    sort_time: int = 0  # nanoseconds, as the next two
    kernel_time: int = 0
    state_time: int = 0

    @property
    def match_count(self) -> int:
        found = [self.matches, *self.of_members.values()]
        return sum(len(batch) for batches in found for batch in batches)
