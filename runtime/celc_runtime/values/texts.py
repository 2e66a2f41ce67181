"""Functions of texts.

Capitals and small letters are Unicode's, with its special cases ('ß' is 'SS', a final 'Σ' is 'ς'),
which Arrow's own functions leave out. So texts that are not ASCII go through Python, each different
text once.
"""

import hashlib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.values.operands import Operand, column_of, each
from celc_runtime.values.regexes import read_regex


def _cased(
    ascii_only: Callable[[pa.Array], pa.Array], code: Callable[[str], str]
) -> Callable[..., pa.Array]:
    def found(operand: Operand, rows: int) -> pa.Array:
        column = column_of(operand, rows)
        if pc.all(pc.string_is_ascii(column), min_count=0).as_py():
            return ascii_only(column)
        return each(code, pa.string(), column, rows=rows)

    return found


def _trimmed(
    code: Callable[..., pa.Array],
) -> Callable[..., pa.Array]:
    """Without spaces (and nothing else, as in Spark)."""

    def found(operand: Operand, rows: int) -> pa.Array:
        return code(column_of(operand, rows), characters=" ")

    return found


def _part(text: str, start: int, length: int) -> str:
    """As Spark cuts: places before the beginning count for the length."""
    first = start - 1 if start > 0 else (len(text) + start if start < 0 else 0)
    return text[max(first, 0) : max(first + length, 0)]


_MOST = 2**31 - 1  # characters: more than any text has


def _substring(
    operand: Operand, start: Operand, length: Operand | None = None, *, rows: int
) -> pa.Array:
    taken = pa.scalar(_MOST, pa.int32()) if length is None else length
    column = column_of(operand, rows)
    first = start.as_py() if isinstance(start, pa.Scalar) else None
    last = taken.as_py() if isinstance(taken, pa.Scalar) else None
    if first is not None and first > 0 and last is not None and last >= 0:
        stop = None if last == _MOST else first - 1 + last
        return pc.utf8_slice_codeunits(column, first - 1, stop)
    return each(_part, pa.string(), operand, start, taken, rows=rows)


def _replaced(operand: Operand, old: Operand, new: Operand | None = None, *, rows: int) -> pa.Array:
    by = pa.scalar("", pa.string()) if new is None else new

    def code(text: str, one: str, other: str) -> str:
        return text.replace(one, other) if one else text

    return each(code, pa.string(), operand, old, by, rows=rows)


def _starts(operand: Operand, beginning: Operand, rows: int) -> pa.Array:
    if isinstance(beginning, pa.Scalar) and beginning.is_valid:
        return pc.starts_with(column_of(operand, rows), pattern=beginning.as_py())
    return each(str.startswith, pa.bool_(), operand, beginning, rows=rows)


def _ends(operand: Operand, end: Operand, rows: int) -> pa.Array:
    if isinstance(end, pa.Scalar) and end.is_valid:
        return pc.ends_with(column_of(operand, rows), pattern=end.as_py())
    return each(str.endswith, pa.bool_(), operand, end, rows=rows)


def _position(part: Operand, operand: Operand, rows: int) -> pa.Array:
    return each(lambda one, text: text.find(one) + 1, pa.int32(), part, operand, rows=rows)


def _split(operand: Operand, separator: Operand, number: Operand, rows: int) -> pa.Array:
    def code(text: str, sign: str, place: int) -> str | None:
        if place == 0:
            return None
        parts = text.split(sign) if sign else [text]
        inside = -len(parts) <= place <= len(parts)
        return parts[place - 1 if place > 0 else place] if inside else ""

    return each(code, pa.string(), operand, separator, number, rows=rows)


def _extracted(
    operand: Operand, regex: pa.Scalar, group: Operand | None = None, *, rows: int
) -> pa.Array:
    number = 1 if group is None else group.as_py()
    if not regex.is_valid or number is None:
        return pa.nulls(rows, pa.string())
    texts = column_of(operand, rows)
    found = pc.extract_regex(texts, pattern=read_regex(regex.as_py()).named)
    part = pc.fill_null(pc.struct_field(found, f"g{number}"), "")
    return pc.if_else(pc.is_valid(texts), part, pa.scalar(None, pa.string()))


def _md5(operand: Operand, rows: int) -> pa.Array:
    def code(text: str) -> str:
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

    return each(code, pa.string(), column_of(operand, rows), rows=rows)


_SHA2 = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def _sha2(operand: Operand, bits: Operand, rows: int) -> pa.Array:
    checksum = _SHA2.get(bits.as_py())
    if checksum is None:
        return pa.nulls(rows, pa.string())

    def code(text: str) -> str:
        return checksum(text.encode()).hexdigest()

    return each(code, pa.string(), column_of(operand, rows), rows=rows)


def _concatenated(*operands: Operand, rows: int) -> pa.Array:
    columns = [column_of(one, rows) for one in operands]
    return pc.binary_join_element_wise(*columns, pa.scalar("", pa.string()))


def _length(operand: Operand, rows: int) -> pa.Array:
    return pc.utf8_length(column_of(operand, rows))


CODE: dict[str, Callable[..., pa.Array]] = {
    "LENGTH": _length,
    "LOWER": _cased(pc.ascii_lower, str.lower),
    "UPPER": _cased(pc.ascii_upper, str.upper),
    "TRIM": _trimmed(pc.utf8_trim),
    "LTRIM": _trimmed(pc.utf8_ltrim),
    "RTRIM": _trimmed(pc.utf8_rtrim),
    "SUBSTR": _substring,
    "REPLACE": _replaced,
    "STARTSWITH": _starts,
    "ENDSWITH": _ends,
    "POSITION": _position,
    "CONCAT": _concatenated,
    "SPLIT_PART": _split,
    "REGEXP_EXTRACT": _extracted,
    "MD5": _md5,
    "SHA2": _sha2,
}
