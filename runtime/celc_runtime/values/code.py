"""The code of functions on one machine: columns and constants of Arrow in, a column out.

The table of functions (`functions`) says what they mean. The compiler calculates with constants by
the same code.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.values import casts, hashes, json_texts, numbers, parts, texts, times
from celc_runtime.values.operands import Operand, column_of, each

_CASTS = {"CAST": casts.cast, "TRY_CAST": casts.try_cast}


def _hexadecimal(operand: Operand, rows: int) -> pa.Array:
    """The bytes of a BINARY as a text. It is no function of the language, but what equalities of
    BINARY compare."""
    return each(lambda value: value.hex().upper(), pa.string(), column_of(operand, rows), rows=rows)


_CODE: dict[str, Callable[..., pa.Array]] = {
    **_CASTS,
    **numbers.CODE,
    **texts.CODE,
    **times.CODE,
    **hashes.CODE,
    "HEX": _hexadecimal,
    **parts.CODE,
    **json_texts.CODE,
}
"""The code of each function. It takes an argument for each operand, the number of `rows`, and if
`AT TIME ZONE` can stand in it, `zone`. Those of CAST take the `type` too."""


SLOW = frozenset({"CAST", "TRY_CAST", "HASH", "DATE_TRUNC", "SHA2"})
"""Functions that can take 100 ns a row and more. To leave rows out takes about 25 ns each."""


def called(
    name: str, operands: Sequence[Operand], rows: int, zone: str | None, type: str
) -> pa.Array:
    """The value of a function for each row, of a type. A constant operand is one value and no
    column."""
    named = {} if zone is None else {"zone": zone}
    if name in _CASTS:
        named["type"] = type
    with np.errstate(all="ignore"):
        return _called(_CODE[name], operands, rows, named, type)


def _called(
    code: Callable[..., pa.Array],
    operands: Sequence[Operand],
    rows: int,
    named: dict[str, str],
    type: str,
) -> pa.Array:
    columns = [one for one in operands if isinstance(one, pa.Array)]
    if len(columns) == 1 and pa.types.is_dictionary(columns[0].type):
        # Once for each distinct text.
        (coded,) = columns
        texts, of_null = coded.dictionary, int(type != "STRING")
        if of_null:
            # And once for NULL, of which HASH is a number.
            texts = pa.concat_arrays([texts, pa.nulls(1, texts.type)])
        if not len(texts):
            return pa.nulls(rows, pa.string())
        distinct = [texts if one is coded else one for one in operands]
        values = code(*distinct, rows=len(texts), **named)
        if of_null:
            return values.take(pc.fill_null(coded.indices.cast(pa.int64()), len(texts) - 1))
        if values.null_count:
            return values.take(coded.indices)
        return pa.DictionaryArray.from_arrays(coded.indices, values)
    plain = [
        one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in operands
    ]
    return code(*plain, rows=rows, **named)
