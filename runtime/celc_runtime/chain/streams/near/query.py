"""A query with its near misses, as a module has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from celc_runtime.many.near.query import NearRuns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class NearQuery(NearRuns):
    """A query with its bent forms: `queries` are those of their module, by name."""

    def match_stream(
        self,
        events: DataFrame,
        *,
        tiebreak: str | Sequence[str] | None = None,
        watermark: str = "10 seconds",
        late: str = "drop",
        api: str | None = None,
        max_event_time_skew: str | None = None,
        buckets: int | None = None,
        checkpoint: str | None = None,
        **parameters: Any,
    ) -> DataFrame:
        """The matches of a streaming DataFrame and its near misses, each row once, as soon as it is
        certain.

        `kind` is `match` or `near`; the other columns are those of a near miss, and a match has
        NULL where a near miss tells what was bent. With late='side' the same column tells late
        events. A near miss is certain when three times the window of the query and the longest FOR
        have passed. The options are those of `match_stream`.

        Raises EventError where the query has no window of time, where it depends on events long
        before the window, and what `match_stream` raises.
        """
        from celc_runtime.chain.streams.match import Call, near_stream
        from celc_runtime.spark.answers.compact import check_frame

        check_frame(events, "match_stream")
        given = self.given(parameters)
        names = (tiebreak,) if isinstance(tiebreak, str) else tiebreak
        call = Call(watermark, late, api, False, max_event_time_skew, buckets, checkpoint)
        return near_stream(self, given, events, None if names is None else tuple(names), call)
