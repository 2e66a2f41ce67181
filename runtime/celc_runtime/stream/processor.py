"""The processor of `transformWithState`: Spark's calls → `BucketTask`."""

from collections.abc import Callable
from typing import Any

STATE = "segments"
"""The name of the state variable: a map from numbers to texts (`texts`). An earlier version had a
map of bytes under this name, so Spark refuses its checkpoints; under another name it would start
with nothing. There is only one variable, because each costs every task of every micro-batch some
milliseconds, when Spark makes its encoders."""

HEADER = -1  # the number of a bucket's header; other numbers are the pieces of its segments


# Long: a class that Spark's pickler must find inside.
def bucket_processor(make_task: Callable[[], Any], api: str, state: str = STATE) -> Any:
    """The operator's processor; `make_task` makes the `BucketTask` of a worker, `state` is the name
    of its state variable.

    Its class is made here, so that Spark's pickler sends the class itself. Its methods use no name
    of this module. They close over what they need, and the pickler sends that too.
    """
    from pyspark.sql.streaming import StatefulProcessor

    variable, of_header = state, HEADER
    rows_of = _rows_of if api == "row" else _frames_of
    blocks_of, rows_out = rows_of()

    class Buckets(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self._handle = handle
            self._state = handle.getMapState(variable, "place BIGINT", "data STRING")
            self._task: Any = None

        # Spark calls these by name, and looks at the names of their arguments.
        def handleInputRows(self, key, rows, timerValues):  # type: ignore[no-untyped-def]  # noqa: N802, N803
            blocks = [bytes(block) for block in blocks_of(rows)]
            yield from self._step(key, blocks, timerValues, None)

        def handleExpiredTimer(  # type: ignore[no-untyped-def]  # noqa: N802
            self,
            key,
            timerValues,  # noqa: N803
            expiredTimerInfo,  # noqa: N803
        ):
            yield from self._step(key, [], timerValues, expiredTimerInfo.getExpiryTimeInMs())

        def close(self) -> None:
            self._task = None

        def _load(self, place: int) -> Any:
            found = self._state.getValue((place,))
            return None if found is None else self._task.bytes_of(found[0])

        def _store(self, place: int, data: bytes) -> None:
            self._state.updateValue((place,), (self._task.text_of(data),))

        def _step(self, key: Any, blocks: Any, times: Any, expired: Any) -> Any:
            # Made here and not in `init`, which the driver calls too.
            if self._task is None:
                self._task = make_task()
            step, rows = self._task.step(
                int(key[0]),
                self._load(of_header),
                self._load,
                blocks,
                times.getCurrentWatermarkInMs(),
            )
            if step.is_changed:
                self._store(of_header, step.header)
            for place, data in step.written.items():
                self._store(place, data)
            for place in step.removed:
                self._state.removeKey((place,))
            for timer in step.unset_timers:
                if timer != expired:  # which Spark unsets itself
                    self._handle.deleteTimer(timer)
            for timer in step.set_timers:
                self._handle.registerTimer(timer)
            return rows_out(rows)

    return Buckets()


def _rows_of() -> tuple[Any, Any]:
    """The blocks in rows of the row API, and the rows of a step.

    Functions that are made in a function are pickled by value.
    """

    def blocks(rows: Any) -> Any:
        return [row["events"] for row in rows]

    def rows_out(rows: Any) -> Any:
        from pyspark.sql import Row

        return [Row(**row) for row in rows]

    return blocks, rows_out


def _frames_of() -> tuple[Any, Any]:
    """The blocks in frames of pandas, and the frame of a step; as `_rows_of`."""

    def blocks(frames: Any) -> Any:
        return [block for frame in frames for block in frame["events"]]

    def rows_out(rows: Any) -> Any:
        import pandas

        return [pandas.DataFrame({name: [row[name] for row in rows] for name in rows[0]})]

    return blocks, rows_out
