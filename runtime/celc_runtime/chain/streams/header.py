"""The header of a bucket that holds several units, as bytes.

A unit is a query, or several queries that share their events; all units of an operator run one
after another. The header has the headers of all units, each with a record by which the unit is
found again after the module has changed (`checkpoint`), and the one timer of the bucket.

====== ===== ================================================================================
offset type
====== ===== ================================================================================
0      4s    ``celm``
4      u2    version of this format
6      u2    flags: 1, a timer is set
8      u4    CRC-32 of all other bytes, before it and after it
12     i8    the timer (milliseconds since 1970)
20     u4    the least number that no unit of the checkpoint has had so far
24     u4    the number of units, in the order in which they run
28           for each unit: u4 its number, u4 bytes of its record, the record, u4 bytes of its
             header, the header (`stream.stored.state`)
====== ===== ================================================================================

The pieces of a unit's segments are stored under their own numbers, plus the number of the unit
times 2 ** 52.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from celc_runtime.plan.errors import StateError

_HEAD = struct.Struct("<4sHHIqII")
_LENGTH = struct.Struct("<I")
_MAGIC, _VERSION, _HAS_TIMER = b"celm", 2, 1
_CHECKSUM = slice(8, 12)

_BITS = 52  # of the number of a piece within its unit
MOST_UNITS = 1 << (63 - _BITS)


def place_of(unit: int, place: int) -> int:
    """The number under which a piece of a unit is stored."""
    if place >> _BITS:
        raise StateError("a unit of a bucket has more segments than can be told apart")
    return unit << _BITS | place


class UnitState(NamedTuple):
    """What the header of a bucket has of a unit."""

    record: bytes  # of its queries and its events, see `checkpoint`
    header: bytes


@dataclass(slots=True)
class ModuleState:
    """The header of a bucket between micro-batches."""

    timer: int | None = None
    next_unit: int = 0
    units: dict[int, UnitState] = field(default_factory=dict)  # by number; empty: a new bucket


def written(state: ModuleState) -> bytes:
    """The bytes of a header."""
    flags = _HAS_TIMER * (state.timer is not None)
    head = (_MAGIC, _VERSION, flags, 0, state.timer or 0, state.next_unit, len(state.units))
    parts = [_HEAD.pack(*head)]
    for number, unit in state.units.items():
        parts.append(_LENGTH.pack(number))
        for piece in unit:
            parts += [_LENGTH.pack(len(piece)), piece]
    data = bytearray(b"".join(parts))
    data[_CHECKSUM] = struct.pack("<I", _checksum(data))
    return bytes(data)


def read(named: str, data: bytes) -> ModuleState:
    """The header that these bytes are. named: the queries, for messages.

    Raises StateError if the bytes are no header, are damaged, or have another version.
    """
    if len(data) < _LENGTH.size + 2 or data[:4] != _MAGIC:
        kind = "the state is not one of celc, or has been cut off"
        if data[:4] == b"celc":
            kind = "the checkpoint was begun by match_stream of one query that reads no other"
        raise StateError(f"{named}: {kind}: begin a new checkpoint")
    (version,) = struct.unpack_from("<H", data, 4)
    if version != _VERSION:
        raise StateError(
            f"{named}: the state is of format {version}, and this version of celc reads "
            f"format {_VERSION}: go on with the version that wrote it, or begin a new checkpoint"
        )
    if len(data) < _HEAD.size or data[_CHECKSUM] != struct.pack("<I", _checksum(data)):
        raise _damaged(named)
    _, _, flags, _, timer, next_unit, count = _HEAD.unpack_from(data)
    units, place = {}, _HEAD.size
    for _ in range(count):
        number, place = _number(named, data, place)
        record, place = _piece(named, data, place)
        header, place = _piece(named, data, place)
        units[number] = UnitState(record, header)
    if place != len(data) or max(units, default=-1) >= next_unit:
        raise _damaged(named)
    return ModuleState(timer if flags & _HAS_TIMER else None, next_unit, units)


def is_of_module(data: bytes) -> bool:
    """Whether the header of a bucket is one of several units."""
    return data[:4] == _MAGIC


def first_unit(data: bytes) -> bytes:
    """The header of the first unit; empty if `data` is no header of several units."""
    if data[:4] != _MAGIC or data[4:6] != struct.pack("<H", _VERSION):
        return b""
    return next((unit.header for unit in read("a stream", data).units.values()), b"")


def _number(named: str, data: bytes, place: int) -> tuple[int, int]:
    if len(data) < place + _LENGTH.size:
        raise _damaged(named)
    (number,) = _LENGTH.unpack_from(data, place)
    return number, place + _LENGTH.size


def _piece(named: str, data: bytes, place: int) -> tuple[bytes, int]:
    length, place = _number(named, data, place)
    if len(data) < place + length:
        raise _damaged(named)
    return bytes(data[place : place + length]), place + length


def _checksum(data: bytes | bytearray) -> int:
    return zlib.crc32(data[_CHECKSUM.stop :], zlib.crc32(data[: _CHECKSUM.start]))


def _damaged(named: str) -> StateError:
    return StateError(f"{named}: the state is damaged: its header does not fit")


def named(names: Iterable[str]) -> str:
    """Some queries, for messages."""
    names = [*names]
    return f"queries {', '.join(names)}" if len(names) > 1 else f"query {names[0]!r}"
