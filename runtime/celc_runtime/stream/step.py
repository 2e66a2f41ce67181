"""The outcome of a micro-batch for a bucket."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from celc_runtime.stream.rows import Rows


@dataclass(slots=True)
class Step:
    """The outcome of a micro-batch for a bucket.

    late: the events that came too late. header: of the new state; is_changed: it is not the header
    before. written: bytes to store under numbers; removed: numbers under which nothing is stored
    any more. set_timers, unset_timers: in milliseconds. events, keys: how many events were run, of
    how many partitions. waiting, kept, pending, known: how many events wait for the watermark, how
    many are kept, how many of these have a deadline to come, and how many records of partitions
    there are. size: the bytes of the state. sort_time, kernel_time, state_time: nanoseconds.
    """

    late: Rows
    header: bytes = b""
    is_changed: bool = True
    written: dict[int, bytes] = field(default_factory=dict)
    removed: list[int] = field(default_factory=list)
    set_timers: list[int] = field(default_factory=list)
    unset_timers: list[int] = field(default_factory=list)
    matches: list[pa.RecordBatch] = field(default_factory=list)
    events: int = 0
    keys: int = 0
    waiting: int = 0
    kept: int = 0
    pending: int = 0
    known: int = 0
    size: int = 0
    sort_time: int = 0
    kernel_time: int = 0
    state_time: int = 0

    @property
    def match_count(self) -> int:
        """How many matches were found."""
        return sum(len(batch) for batch in self.matches)
