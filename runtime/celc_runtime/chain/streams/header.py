"""The header of a bucket that holds several units.

It has the headers of all units, each with the name of its query, and the one timer of the bucket.

====== ===== ================================================================================
offset type
====== ===== ================================================================================
0      4s    ``celm``
4      u2    version of this format
6      u2    flags: 1, a timer is set
8      u4    CRC-32 of all other bytes, before it and after it
12     i8    the timer (milliseconds since 1970)
20     u4    the number of units, in the order in which they run
24           for each unit: u4 bytes of its name, the name (UTF-8), u4 bytes of its header, the
             header (`stream.stored.state`)
====== ===== ================================================================================

The pieces of a unit's segments are stored under their own numbers, plus the number of the unit
times 2 ** 52.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from celc_runtime.plan.errors import StateError

_HEAD = struct.Struct("<4sHHIqI")
_LENGTH = struct.Struct("<I")
_MAGIC, _VERSION, _HAS_TIMER = b"celm", 1, 1
_CHECKSUM = slice(8, 12)

_BITS = 52  # of the number of a piece within its unit
MOST_UNITS = 1 << (63 - _BITS)


def place_of(unit: int, place: int) -> int:
    """The number under which a piece of a unit is stored."""
    if place >> _BITS:
        raise StateError("a unit of a bucket has more segments than can be told apart")
    return unit << _BITS | place


@dataclass(slots=True)
class ModuleState:
    """The header of a bucket between micro-batches."""

    timer: int | None = None
    headers: list[bytes] = field(default_factory=list)  # of the units; empty: it is a new bucket


def written(names: Sequence[str], state: ModuleState) -> bytes:
    """The bytes of a header."""
    flags = _HAS_TIMER * (state.timer is not None)
    parts = [_HEAD.pack(_MAGIC, _VERSION, flags, 0, state.timer or 0, len(names))]
    for name, header in zip(names, state.headers, strict=True):
        text = name.encode()
        parts += [_LENGTH.pack(len(text)), text, _LENGTH.pack(len(header)), header]
    data = bytearray(b"".join(parts))
    data[_CHECKSUM] = struct.pack("<I", _checksum(data))
    return bytes(data)


def read(names: Sequence[str], data: bytes) -> ModuleState:
    """The header with these bytes; raises StateError if they are none, or of other queries."""
    if len(data) < _HEAD.size or data[:4] != _MAGIC:
        kind = "the state is not one of celc, or has been cut off"
        if data[:4] == b"celc":
            kind = "the checkpoint was begun by match_stream of one query that reads no other"
        raise StateError(f"{_of(names)}: {kind}: begin a new checkpoint")
    _, version, flags, checksum, timer, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise StateError(
            f"{_of(names)}: the state is of format {version}, and this version of celc reads "
            f"format {_VERSION}: go on with the version that wrote it, or begin a new checkpoint"
        )
    if checksum != _checksum(data):
        raise _damaged(names)
    found, headers, place = [], [], _HEAD.size
    for _ in range(count):
        name, place = _piece(names, data, place)
        header, place = _piece(names, data, place)
        found.append(name.decode("utf-8", "replace"))
        headers.append(header)
    if place != len(data):
        raise _damaged(names)
    if found != list(names):
        raise _other_queries(names, found)
    return ModuleState(timer if flags & _HAS_TIMER else None, headers)


def first_unit(data: bytes) -> bytes:
    """The header of the first unit in a header; empty: it is none."""
    place = _HEAD.size
    if data[:4] != _MAGIC or len(data) < place + _LENGTH.size:
        return b""
    (length,) = _LENGTH.unpack_from(data, place)
    return data[place + length + 2 * _LENGTH.size :]


def _other_queries(names: Sequence[str], found: Sequence[str]) -> StateError:
    told = [
        f"{what}: {', '.join(some)}"
        for what, some in (
            ("new are", [name for name in names if name not in found]),
            ("no more there are", [name for name in found if name not in names]),
        )
        if some
    ]
    return StateError(
        f"{_of(names)}: the checkpoint was begun with the queries {', '.join(found)}; "
        f"{'; '.join(told) or 'their order is another'}. The events before are not there for a new "
        "query, so the queries of a checkpoint are fixed: run new queries as a stream of their "
        "own, or end this one with celc_runtime.finish and begin a new checkpoint"
    )


def _piece(names: Sequence[str], data: bytes, place: int) -> tuple[bytes, int]:
    if len(data) < place + _LENGTH.size:
        raise _damaged(names)
    (length,) = _LENGTH.unpack_from(data, place)
    place += _LENGTH.size
    if len(data) < place + length:
        raise _damaged(names)
    return bytes(data[place : place + length]), place + length


def _checksum(data: bytes | bytearray) -> int:
    return zlib.crc32(data[_CHECKSUM.stop :], zlib.crc32(data[: _CHECKSUM.start]))


def _damaged(names: Sequence[str]) -> StateError:
    return StateError(f"{_of(names)}: the state is damaged: its header does not fit")


def _of(names: Sequence[str]) -> str:
    return f"queries {', '.join(names)}" if len(names) > 1 else f"query {names[0]!r}"
