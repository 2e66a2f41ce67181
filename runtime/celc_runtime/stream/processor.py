"""The processor of `transformWithState`: Spark's calls → `PartitionTask`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STATE = "state"
"""The name of the state variable."""


def partition_processor(make_task: Callable[[], Any], api: str) -> Any:
    """The operator's processor; `make_task` makes the `PartitionTask` of a worker.

    Its class is made here, so that Spark's pickler sends the class itself. Its methods mention no
    name of this module: they close over what they need, and the pickler sends that as well.
    """
    from pyspark.sql.streaming import StatefulProcessor

    state_name, schema = STATE, "state BINARY"
    rows_of = _rows_of if api == "row" else _frames_of
    blocks_of, row_of = rows_of()

    class Partitions(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self._handle = handle
            self._state = handle.getValueState(state_name, schema)
            self._task: Any = None

        # Spark calls these by their names, and looks for the names of their arguments.
        def handleInputRows(self, key, rows, timerValues):  # type: ignore[no-untyped-def]  # noqa: N802, N803
            blocks = [bytes(block) for block in blocks_of(rows)]
            yield self._step(key, blocks, timerValues, None)

        def handleExpiredTimer(  # type: ignore[no-untyped-def]  # noqa: N802
            self,
            key,
            timerValues,  # noqa: N803
            expiredTimerInfo,  # noqa: N803
        ):
            yield self._step(key, [], timerValues, expiredTimerInfo.getExpiryTimeInMs())

        def close(self) -> None:
            self._task = None

        def _step(self, key: Any, blocks: Any, times: Any, expired: Any) -> Any:
            # Made here and not in `init`, which the driver calls too.
            if self._task is None:
                self._task = make_task()
            before = self._state.get()
            data = None if before is None else bytes(before[0])
            step, row = self._task.step(
                bytes(key[0]), data, blocks, times.getCurrentWatermarkInMs()
            )
            if step.state is not None:
                self._state.update((step.state,))
            elif before is not None:
                self._state.clear()
            for timer in step.unset_timers:
                if timer != expired:  # which Spark unsets itself
                    self._handle.deleteTimer(timer)
            for timer in step.set_timers:
                self._handle.registerTimer(timer)
            return row_of(row)

    return Partitions()


def _rows_of() -> tuple[Any, Any]:
    """The blocks in rows of the row API, and a row of a step. Functions that are made in a function
    are sent by value."""

    def blocks(rows: Any) -> Any:
        return [row["events"] for row in rows]

    def row_of(row: Any) -> Any:
        from pyspark.sql import Row

        return Row(**row)

    return blocks, row_of


def _frames_of() -> tuple[Any, Any]:
    """The same for frames of pandas."""

    def blocks(frames: Any) -> Any:
        return [block for frame in frames for block in frame["events"]]

    def row_of(row: Any) -> Any:
        import pandas

        return pandas.DataFrame({name: [value] for name, value in row.items()})

    return blocks, row_of
