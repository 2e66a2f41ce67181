"""HASH: Spark's Murmur3 of 32 bits, with the seed 42.

Numbers up to 32 bits are hashed as one word, those of 64 bits as two, a text by its bytes. A
DECIMAL of up to 18 digits is the number of its smallest units, a longer one their bytes, as few as
hold them. The hash of a value is the seed of the next one. NULL leaves the seed as it is.
"""

from decimal import Decimal

import numpy as np
import pyarrow as pa

from celc_runtime.values.operands import Operand, column_of, values_of
from celc_runtime.values.types import MOST_NARROW

_SEED = 42
_MASK = 0xFFFFFFFF


def _mixed(word: np.ndarray) -> np.ndarray:
    word = word * np.uint32(0xCC9E2D51)
    word = (word << np.uint32(15)) | (word >> np.uint32(17))
    return word * np.uint32(0x1B873593)


def _joined(hashed: np.ndarray, word: np.ndarray) -> np.ndarray:
    hashed = hashed ^ _mixed(word)
    hashed = (hashed << np.uint32(13)) | (hashed >> np.uint32(19))
    return hashed * np.uint32(5) + np.uint32(0xE6546B64)


def _finished(hashed: np.ndarray, length: np.ndarray) -> np.ndarray:
    hashed = hashed ^ length
    hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    found: np.ndarray = hashed ^ (hashed >> np.uint32(16))
    return found


def _of_numbers(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        # All NaNs are one, and so are −0.0 and 0.0.
        plain = np.where(np.isnan(values), np.nan, values + 0.0).astype(values.dtype)
        values = plain.view(f"i{values.itemsize}")
    words = 2 if values.itemsize == 8 else 1
    bits = values.astype(np.int64).view(np.uint64)
    hashed = seeds
    for place in range(words):
        part = (bits >> np.uint64(32 * place)) & np.uint64(_MASK)
        hashed = _joined(hashed, part.astype(np.uint32))
    return _finished(hashed, np.full(len(seeds), 4 * words, np.uint32))


def _of_texts(texts: list[bytes], seeds: np.ndarray) -> np.ndarray:
    """uint32[texts]: the hash of each text, given one seed each. The nth words of all texts are
    hashed at once, and each byte behind the last word is a word of its own."""
    sizes = np.array([len(one) for one in texts], np.int64)
    starts = np.cumsum(sizes) - sizes
    data = np.frombuffer(b"".join(texts) + b"\0\0\0\0", np.uint8).astype(np.uint32)
    whole = sizes // 4
    hashed = seeds.copy()
    for place in range(int((whole + sizes % 4).max(initial=0))):
        rows = np.flatnonzero(place < whole + sizes % 4)
        in_word = place < whole[rows]
        first = starts[rows] + np.where(in_word, 4 * place, 3 * whole[rows] + place)
        of_four = data[first] | data[first + 1] << 8 | data[first + 2] << 16 | data[first + 3] << 24
        alone = data[first].astype(np.uint8).view(np.int8).astype(np.int32).view(np.uint32)
        hashed[rows] = _joined(hashed[rows], np.where(in_word, of_four, alone))
    return _finished(hashed, sizes.astype(np.uint32))


def _bytes_of(column: pa.Array) -> list[bytes] | None:
    """The bytes that are hashed of each value; None: it is hashed as a number."""
    if pa.types.is_string(column.type):
        return [b"" if one is None else one.encode() for one in column.to_pylist()]
    if not pa.types.is_decimal(column.type) or column.type.precision <= MOST_NARROW:
        return None
    units = [_units(one) or 0 for one in column.to_pylist()]
    return [
        one.to_bytes((one if one >= 0 else ~one).bit_length() // 8 + 1, "big", signed=True)
        for one in units
    ]


def _units(value: Decimal | None) -> int | None:
    """The smallest units of a DECIMAL."""
    if value is None:
        return None
    sign, digits, _ = value.as_tuple()
    units = int("".join(map(str, digits)))
    return -units if sign else units


def _hash(*operands: Operand, rows: int) -> pa.Array:
    seeds = np.full(rows, _SEED, np.uint32)
    for operand in operands:
        column = column_of(operand, rows)
        texts = _bytes_of(column)
        if texts is not None:
            found, known = _of_texts(texts, seeds), np.asarray(column.is_valid())
        else:
            if pa.types.is_decimal(column.type):
                column = pa.array([_units(one) for one in column.to_pylist()], pa.int64())
            if pa.types.is_temporal(column.type):
                is_day = pa.types.is_date(column.type)
                column = column.cast(pa.int32() if is_day else pa.int64())
            values, known = values_of(column, rows)
            found = _of_numbers(values, seeds)
        seeds = np.where(known, found, seeds)
    return pa.array(seeds.view(np.int32))


CODE = {"HASH": _hash}
