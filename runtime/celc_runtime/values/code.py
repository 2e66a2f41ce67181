"""The code of functions on one machine: columns and constants of Arrow in, a column out.

The table of functions (`functions`) says what they mean. The compiler calculates with constants by
the same code.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa

from celc_runtime.values import numbers, texts, times
from celc_runtime.values.operands import Operand

_CODE: dict[str, Callable[..., pa.Array]] = {**numbers.CODE, **texts.CODE, **times.CODE}
"""The code of each function. It takes an argument for each operand, the number of `rows`, and if
`AT TIME ZONE` can stand in it, `zone`."""


def called(name: str, operands: Sequence[Operand], rows: int, zone: str | None = None) -> pa.Array:
    """The value of a function for each row. A constant operand is one value and no column."""
    named = {} if zone is None else {"zone": zone}
    columns = [one for one in operands if isinstance(one, pa.Array)]
    if len(columns) == 1 and pa.types.is_dictionary(columns[0].type):
        # Once for each distinct text.
        (coded,) = columns
        distinct = [coded.dictionary if one is coded else one for one in operands]
        values = _CODE[name](*distinct, rows=len(coded.dictionary), **named)
        if pa.types.is_string(values.type):
            return pa.DictionaryArray.from_arrays(coded.indices, values)
        return values.take(coded.indices)
    plain = [
        one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in operands
    ]
    return _CODE[name](*plain, rows=rows, **named)
