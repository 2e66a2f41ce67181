"""Values of Arrow as people read them in messages."""

from datetime import timedelta

import numpy as np
import pyarrow as pa


def shown(value: pa.Scalar) -> str:
    """A value for a message."""
    if not value.is_valid:
        return "NULL"
    if pa.types.is_binary(value.type):
        return str(value.as_py().hex())
    if pa.types.is_float32(value.type):
        return str(np.float32(value.as_py()))
    if not pa.types.is_temporal(value.type):
        return repr(value.as_py())
    try:
        if pa.types.is_duration(value.type):
            return duration_text(value.as_py())
        return str(value.as_py())
    except (ValueError, OverflowError):
        number = value.cast(pa.int64() if value.type.bit_width == 64 else pa.int32())
        return f"{number} ({value.type})"


def duration_text(duration: timedelta) -> str:
    """A duration for people, as `-1:30:00`; Python would count back from whole days."""
    return f"-{-duration}" if duration < timedelta() else str(duration)
