"""The types of Arrow that are numbers of fixed size, and how NumPy reads them."""

import numpy as np
import pyarrow as pa

WHOLE = {
    type.id: np.dtype(f"int{type.bit_width}")
    for type in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.date64()),
        *(pa.timestamp("us"), pa.duration("us"), pa.time32("s"), pa.time64("us")),
    )
} | {
    type.id: np.dtype(f"uint{type.bit_width}")
    for type in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
}
"""The types of whole numbers and times, by their number in Arrow, and how NumPy reads them."""

DTYPES = WHOLE | {
    type.id: np.dtype(f"float{type.bit_width}")
    for type in (pa.float16(), pa.float32(), pa.float64())
}
