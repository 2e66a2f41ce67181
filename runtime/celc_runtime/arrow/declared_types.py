"""Plain texts of a type column → codes, where the event types are declared.

Coding a column by its distinct values takes 10 to 20 ns a row. Here a text is read as one or two
numbers, and a hash of them finds the only name that it can be. The hash is chosen so that no two
declared names share a slot (a perfect hash: Fredman, Komlós and Szemerédi, Storing a sparse table
with O(1) worst case access time, 1984, with one level). So a row is one look-up and one comparison,
however many names there are: 1 to 2 ns where names have up to seven bytes, 3 ns where some have
more. Comparing each row with each name took 3 to 6 ns for four names, and grew with their number.

Texts of one byte are compared with one name after another, 32 texts by one instruction: a tenth of
a nanosecond for each name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.nodes import BLOCK
from celc_runtime.jit.kernels import njit

_MOST = 512
"""With more names than this, slots without collisions would not fit into the processor's caches."""

_SHORT = 7
"""Texts with so many bytes are one number together with their length."""

_FEW = 16
"""So many names of one byte are compared one after another."""

_MOST_SLOTS = 1 << 16
_TRIES = 64
_WORD = (1 << 64) - 1


class DeclaredTypes:
    """The names of the event types that a query's streams declare, and their codes.

    `names`: the declared names, and last a text that is none of them and stands for all others.
    `can_tell`: whether `codes` can tell all names apart.
    """

    def __init__(self, declared: Sequence[str]) -> None:
        distinct = tuple(dict.fromkeys(declared))
        other = "?"
        while other in distinct:
            other += "?"
        self.names = [*distinct, other]
        self._slots = _slots_of(distinct)
        self.can_tell = self._slots is not None

    def codes(self, column: pa.StringArray) -> tuple[np.ndarray, list[str]]:
        """uint8 or uint16[rows]: the place in `names` of each text of a column without NULLs; and
        `names`, without the last one if no text is undeclared.

        The highest number of the type is never a code. The next call in this thread overwrites
        the codes.
        """
        assert self._slots is not None
        rows, others = len(column), len(self.names) - 1
        codes = _room(rows, _dtype(others))
        offsets = _numbers(column.buffers()[1], np.uint32)
        offsets = offsets[column.offset : column.offset + rows + 1]
        data = _numbers(column.buffers()[2], np.uint8)
        # Eight bytes are read at once. Behind the last texts there are not as many.
        cut = max(0, len(data) - 8)
        inside = (
            min(rows, int(np.searchsorted(offsets, np.uint32(cut), side="right")))
            if len(data) > 7
            else 0
        )
        _write_codes(self._slots, offsets[: inside + 1], data, codes[:inside])
        if inside < rows:
            end = np.concatenate([data[cut:], np.zeros(8, np.uint8)])
            behind = offsets[inside:] - np.uint32(cut)
            for values in (end, behind):
                values.flags.writeable = False
            _write_codes(self._slots, behind, end, codes[inside:])
        undeclared = rows > 0 and codes.max() == others
        return codes, self.names if undeclared else self.names[:-1]


class _Slots(NamedTuple):
    """Where names are found. The code of a name is its number.

    multiplier, shift: uint64[1], what the hash is made of. numbers: uint8 or uint16, the number of
    the name in each slot, or that of no name. keys: uint64[names + 1], as `_short_codes` compares
    names; empty where one is longer than that. names: uint64[names + 1, 3], as `_long_codes`
    compares them: the first eight bytes, the last eight bytes and the length; the last row is no
    text's. longest: int64[1], the length of the longest name. letters: uint8, the names of one
    byte, four by four, and steps: what is to be added to the code of no name to get theirs, 0 where
    there is no fourth name. offsets: int64[names + 1], where each name begins in texts: uint8.
    """

    multiplier: np.ndarray
    shift: np.ndarray
    numbers: np.ndarray
    keys: np.ndarray
    names: np.ndarray
    longest: np.ndarray
    letters: np.ndarray
    steps: np.ndarray
    offsets: np.ndarray
    texts: np.ndarray


@lru_cache(maxsize=16)
def _slots_of(declared: tuple[str, ...]) -> _Slots | None:
    """Slots without collisions; None where none are found. Kept, because each run needs them."""
    if not 0 < len(declared) <= _MOST:
        return None
    spelled = [name.encode() for name in declared]
    lengths = [len(name) for name in spelled]
    of_names = [[_word(name[:8]), _word(name[-8:]), len(name)] for name in spelled]
    names = np.array([*of_names, [0, 0, _WORD]], np.uint64)
    keys = np.zeros(0, np.uint64)
    if max(lengths) <= _SHORT:
        keys = names[:, 0] + names[:, 2]
        found = _without_collisions(keys[:-1])
    else:
        found = _without_collisions((names[:, 0] + np.uint64(2) * names[:, 1] + names[:, 2])[:-1])
    if found is None:
        return None
    multiplier, shift, slots = found
    numbers = np.full(1 << (64 - shift), len(spelled), _dtype(len(spelled)))
    numbers[slots] = np.arange(len(spelled))
    of_letters = [number for number, length in enumerate(lengths) if length == 1]
    if len(of_letters) > _FEW or not len(keys):
        of_letters = []
    letters = np.zeros((len(of_letters) + 3) // 4 * 4, np.uint8)
    letters[: len(of_letters)] = [spelled[number][0] for number in of_letters]
    steps = np.zeros(len(letters), numbers.dtype)
    # Below 0, so modulo 2⁸ or 2¹⁶.
    steps[: len(of_letters)] = (np.array(of_letters, np.int64) - len(spelled)).astype(steps.dtype)
    return _Slots(
        np.array([multiplier], np.uint64),
        np.array([shift], np.uint64),
        numbers,
        keys,
        names,
        np.array([max(lengths)], np.int64),
        letters,
        steps,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.frombuffer(b"".join(spelled) + b"\0", np.uint8),
    )


def _word(text: bytes) -> int:
    """Up to eight bytes as a number: the first byte the lowest, zeros below fewer bytes."""
    return int.from_bytes(text.rjust(8, b"\0"), "little")


def _without_collisions(keys: np.ndarray) -> tuple[int, int, np.ndarray] | None:
    """A multiplier and a shift that take no two names to one slot, and the slots of all names
    (int64); None where there are none, as where two names have one key (`keys`: uint64[names])."""
    # Fewer slots than this have collisions with nearly all multipliers.
    bits = max(4, (len(keys) ** 2 // 8 - 1).bit_length())
    multipliers = _random_numbers()
    while 1 << bits <= _MOST_SLOTS:
        for _ in range(_TRIES):
            multiplier = next(multipliers) | 1
            slots = keys * np.uint64(multiplier) >> np.uint64(64 - bits)
            if len(np.unique(slots)) == len(slots):
                return multiplier, 64 - bits, slots.astype(np.int64)
        bits += 1
    return None


def _random_numbers() -> Iterator[int]:
    """Numbers of 64 bits, the same in every process (SplitMix64)."""
    state = 0
    while True:
        state = state + 0x9E3779B97F4A7C15 & _WORD
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
        yield mixed ^ mixed >> 31


def _dtype(names: int) -> type[np.uint8] | type[np.uint16]:
    """The numbers that hold the codes of so many names, one more, and one that is no code."""
    return np.uint8 if names < 255 else np.uint16


_kept = threading.local()
_MOST_KEPT = 1 << 24


def _room(rows: int, dtype: type[np.uint8] | type[np.uint16]) -> np.ndarray:
    """Room for the codes of a batch, which the next batch of this thread uses again, whatever run
    it belongs to: memory that has just been asked for costs more to touch than codes to find."""
    wanted = rows * np.dtype(dtype).itemsize
    room: np.ndarray = getattr(_kept, "room", np.zeros(0, np.uint8))
    if len(room) < wanted:
        room = np.empty(wanted, np.uint8)
        if wanted <= _MOST_KEPT:
            _kept.room = room
    return room[:wanted].view(dtype)


def _numbers(buffer: pa.Buffer | None, dtype: type[np.generic]) -> np.ndarray:
    """The numbers in a buffer, read-only: kernels are compiled for one kind of array."""
    values = np.frombuffer(buffer if buffer is not None and buffer.size else bytes(8), dtype)
    values.flags.writeable = False
    return values


# --- kernels --------------------------------------------------------------------------------------


def _write_codes(slots: _Slots, offsets: np.ndarray, data: np.ndarray, codes: np.ndarray) -> None:
    """Write the code of each text; eight bytes can be read wherever one begins."""
    kernel = _short_codes if len(slots.keys) else _long_codes
    with np.errstate(over="ignore"):  # codes and hashes wrap around; plain Python would warn
        kernel(slots, offsets, data, codes)


@njit(nogil=True, cache=True)
def _short_codes(slots, all_offsets, data, all_codes):  # type: ignore[no-untyped-def]
    """The codes of texts where no name has more than seven bytes.

    The key of a text has its bytes at the top, and its length in the lowest byte, which they leave
    free: 8 stands for all that are longer.
    """
    multiplier, shift = slots.multiplier[0], slots.shift[0]
    numbers, keys = slots.numbers, slots.keys
    other = numbers.dtype.type(keys.shape[0] - 1)
    for first in range(0, all_codes.shape[0], BLOCK):
        codes = all_codes[first : first + BLOCK]
        offsets = all_offsets[first : first + BLOCK + 1]
        if slots.letters.shape[0] > 0 and _are_letters(offsets):
            _letter_codes(slots, data[np.int64(offsets[0]) :], codes, other)
            continue
        end = np.uint64(offsets[0])
        for row in range(codes.shape[0]):
            start, end = end, np.uint64(offsets[row + 1])
            length = min(end - start, np.uint64(8))
            # In two steps, because a shift by 64 bits would be none.
            key = _eight_bytes(data, start) << np.uint64(8)
            key = (key << ((np.uint64(56) - (length << np.uint64(3))) & np.uint64(63))) + length
            number = numbers[(key * multiplier) >> shift]
            codes[row] = number if keys[number] == key else other


@njit(nogil=True, cache=True)
def _are_letters(offsets):  # type: ignore[no-untyped-def]
    """Whether all texts of a block have one byte."""
    rows = offsets.shape[0] - 1
    if offsets[rows] - offsets[0] != rows:
        return False
    wrong = np.uint32(0)
    for row in range(rows):
        wrong = np.uint32(wrong | (np.uint32(offsets[row + 1] - offsets[row]) ^ np.uint32(1)))
    return wrong == 0


@njit(nogil=True, cache=True)
def _letter_codes(slots, texts, codes, other):  # type: ignore[no-untyped-def]
    """The codes of texts that have one byte each; four names at a time, without a branch."""
    letters, steps = slots.letters, slots.steps
    for first in range(0, letters.shape[0], 4):
        letter_0, letter_1 = letters[first], letters[first + 1]
        letter_2, letter_3 = letters[first + 2], letters[first + 3]
        step_0, step_1 = steps[first], steps[first + 1]
        step_2, step_3 = steps[first + 2], steps[first + 3]
        for row in range(codes.shape[0]):
            text = texts[row]
            code = other if first == 0 else codes[row]
            code += (text == letter_0) * step_0 + (text == letter_1) * step_1
            codes[row] = code + (text == letter_2) * step_2 + (text == letter_3) * step_3


@njit(nogil=True, cache=True)
def _long_codes(slots, all_offsets, data, all_codes):  # type: ignore[no-untyped-def]
    """The codes of texts where names have any length.

    A text is found by its first and its last eight bytes and its length, which are all of it up to
    16 bytes. Of longer ones the rest is compared, in a pass of its own: with that comparison in
    the first loop, each row took twice the time.
    """
    multiplier, shift = slots.multiplier[0], slots.shift[0]
    numbers, names = slots.numbers, slots.names
    other = np.uint64(names.shape[0] - 1)
    for first in range(0, all_codes.shape[0], BLOCK):
        codes = all_codes[first : first + BLOCK]
        offsets = all_offsets[first : first + BLOCK + 1]
        behind = np.uint64(offsets[0])
        for row in range(codes.shape[0]):
            start, behind = behind, np.uint64(offsets[row + 1])
            length = behind - start
            known = min(length, np.uint64(8))
            # In two steps, because a shift by 64 bits would be none.
            half = np.uint64(32) - (known << np.uint64(2))
            begin = _eight_bytes(data, start) << half << half
            end = _eight_bytes(data, behind - known) << half << half
            key = begin + (end << np.uint64(1)) + length
            number = np.uint64(numbers[(key * multiplier) >> shift])
            code = number if begin == names[number, 0] else other
            code = code if end == names[number, 1] else other
            codes[row] = code if length == names[number, 2] else other
        if slots.longest[0] > 16:
            for row in range(codes.shape[0]):
                length = np.uint64(offsets[row + 1] - offsets[row])
                if length > 16 and codes[row] != other:
                    start = np.uint64(offsets[row])
                    if not _same_middle(slots, codes[row], data, start, length):
                        codes[row] = other


@njit(nogil=True, cache=True)
def _eight_bytes(data, start):  # type: ignore[no-untyped-def]
    """The eight bytes from `start` on as a number, the first byte the lowest: one load, LLVM
    sees."""
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(data[start + np.uint64(place)]) << np.uint64(8 * place)
    return word


@njit(nogil=True, cache=True)
def _same_middle(slots, code, data, start, length):  # type: ignore[no-untyped-def]
    """Whether a text equals a name between its first and its last eight bytes."""
    texts, name = slots.texts, np.uint64(slots.offsets[code])
    place, end = np.uint64(8), length - np.uint64(8)
    # Eight bytes at a time: behind the middle there are eight more.
    while place < end and _eight_bytes(data, start + place) == _eight_bytes(texts, name + place):
        place += np.uint64(8)
    return place >= end
