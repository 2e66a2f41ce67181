"""Plain texts of a type column → codes, if the event types are declared.

Coding a column by its distinct values takes 10 to 20 ns for each row. Here a text is read as one or
two numbers, and a hash of them finds the only name that it can be. The hash is chosen so that no
two declared names share a slot (a perfect hash: Fredman, Komlós and Szemerédi, Storing a sparse
table with O(1) worst case access time, 1984, with one level). So a row takes one look-up and one
comparison for any number of names: 1 to 2 ns if names have up to seven bytes, 3 ns if some are
longer. Comparing each row with each name took 3 to 6 ns for four names, and grew with their number.

Texts of one byte are compared with one name after another, 32 texts with one instruction. That
takes a tenth of a nanosecond for each name.

These loops are compiled only when they save more time than compiling takes. Until then, Arrow looks
the texts up.
"""

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import whole_values
from celc_runtime.engine.arena.nodes import BLOCK
from celc_runtime.jit.kernels import is_due, njit

_MOST_NAMES = 512  # with more, slots without collisions do not fit into the processor's caches

_MOST_SHORT = 7  # bytes of a short name: they and its length fit into one 64-bit number

_MOST_LETTERS = 16  # names of one byte, if they are compared one after another

_FEW_ROWS = 1 << 8  # a batch of up to this many rows is coded in Python, which is faster there

_FEW_BYTES = 1 << 12  # texts of up to this many bytes are copied, so that one call reads them all

_SAVED = 15e-9  # seconds that the kernels save for each row, beside Arrow

_BEHIND = np.zeros(8, np.uint8)  # stands behind copied texts, because eight bytes are read at once

_MOST_SLOTS = 1 << 16  # of the hash table; names that need more have no table
_TRIES = 64  # multipliers that are tried before the number of slots is doubled
_WORD = (1 << 64) - 1  # the greatest 64-bit number


class DeclaredTypes:
    """The names of the event types that a query's streams declare, and their codes.

    known: the declared names, each once.
    names: the same, then a text that is no declared name; it stands for all undeclared texts.
    can_tell: whether there are slots for the names, without which `codes` cannot be called.
    dtype: of codes.
    """

    def __init__(self, declared: Sequence[str]) -> None:
        distinct = tuple(dict.fromkeys(declared))
        other = "?"
        while other in distinct:
            other += "?"
        self.names = [*distinct, other]
        self.known = [*distinct]
        self._texts = pa.array(distinct, pa.string())
        self._code_of = {name: code for code, name in enumerate(distinct)}
        self._slots = _slots_of(distinct)
        self.can_tell = self._slots is not None
        self.dtype = _dtype(len(distinct))

    def codes(self, column: pa.StringArray) -> tuple[np.ndarray, list[str]]:
        """(uint8 or uint16[rows], the index in `names` of each text; `names`). No NULLs.

        If every text is declared, `known` is returned in place of `names`. The greatest number of
        the dtype is never a code. The next call in this thread can overwrite the codes.
        """
        assert self._slots is not None
        rows, others = len(column), len(self.names) - 1
        if rows <= _FEW_ROWS and others < 255:
            # For few rows it takes longer to fetch buffers and to call machine code.
            try:
                few = bytearray(map(self._code_of.__getitem__, column.to_pylist()))
                return np.frombuffer(few, np.uint8), self.known
            except (KeyError, UnicodeDecodeError):
                pass  # a text is undeclared
        kernel = _short_codes if len(self._slots.keys) else _long_codes
        if not is_due(kernel, rows * _SAVED):
            found = pc.index_in(column, value_set=self._texts).fill_null(others)
            codes = whole_values(found).astype(self.dtype)
            return codes, self.names if rows and codes.max() == others else self.known
        codes = _room(rows, self.dtype)
        _, of_offsets, of_data = column.buffers()
        offsets = _numbers(of_offsets, np.uint32)[column.offset : column.offset + rows + 1]
        data = _numbers(of_data, np.uint8)
        first, last = (int(offsets[0]), int(offsets[-1])) if rows else (0, 0)
        # The kernels read eight bytes at once. Behind the beginning of the last texts there are
        # fewer: these texts are copied to a longer array. If there are few bytes, all are copied.
        cut, inside = max(0, len(data) - 8), 0
        if last - first <= _FEW_BYTES:
            cut = first
        elif len(data) > 7:
            inside = min(rows, int(np.searchsorted(offsets, np.uint32(cut), side="right")))
        if inside:
            kernel(self._slots, offsets[: inside + 1], data, codes[:inside])
        if inside < rows:
            end = np.concatenate([data[cut:last], _BEHIND])
            behind = offsets[inside:] - np.uint32(cut)
            end.flags.writeable = behind.flags.writeable = False
            kernel(self._slots, behind, end, codes[inside:])
        undeclared = rows > 0 and codes.max() == others
        return codes, self.names if undeclared else self.known

    def codes_again(self, column: pa.DictionaryArray) -> tuple[np.ndarray, list[str]]:
        """`codes` of texts that have codes of their own."""
        others = len(self.names) - 1
        found = pc.index_in(column.dictionary, value_set=self._texts).fill_null(others)
        of_codes = pa.array(whole_values(found).astype(self.dtype))
        codes = whole_values(pc.take(of_codes, column.indices))
        undeclared = len(codes) > 0 and codes.max() == others
        return codes, self.names if undeclared else self.known


class _Slots(NamedTuple):
    """A hash table of the names. The code of a name is its number; other texts have the number of
    names (`others`)."""

    multiplier: np.ndarray  # uint64[1], of the hash
    shift: np.ndarray  # uint64[1], of the hash
    numbers: np.ndarray  # uint8 or uint16: the code of the name in each slot; empty ones: `others`
    keys: np.ndarray  # uint64[names + 1], for `_short_codes`; empty: some name is longer
    names: np.ndarray
    """uint64[names + 1, 3], for `_long_codes`: first eight bytes, last eight bytes, length; the
    last row matches no text."""
    longest: np.ndarray  # int64[1], the length of the longest name
    letters: np.ndarray  # uint8, the names of one byte, in groups of four
    steps: np.ndarray  # their codes minus that of undeclared texts; 0 fills the last group
    offsets: np.ndarray  # int64[names + 1], where each name begins in `texts`
    texts: np.ndarray  # uint8


@lru_cache(maxsize=16)
def _slots_of(declared: tuple[str, ...]) -> _Slots | None:
    """Slots without collisions; None: none were found. Cached, because each run needs them."""
    if not 0 < len(declared) <= _MOST_NAMES:
        return None
    spelled = [name.encode() for name in declared]
    lengths = [len(name) for name in spelled]
    of_names = [[_word(name[:8]), _word(name[-8:]), len(name)] for name in spelled]
    names = np.array([*of_names, [0, 0, _WORD]], np.uint64)
    keys = np.zeros(0, np.uint64)
    if max(lengths) <= _MOST_SHORT:
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
    if len(of_letters) > _MOST_LETTERS or not len(keys):
        of_letters = []
    letters = np.zeros((len(of_letters) + 3) // 4 * 4, np.uint8)
    letters[: len(of_letters)] = [spelled[number][0] for number in of_letters]
    steps = np.zeros(len(letters), numbers.dtype)
    # These differences are negative. Kernels add them modulo 2⁸ or 2¹⁶.
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
    """Up to eight bytes as a number: little-endian, filled with zeros."""
    return int.from_bytes(text.rjust(8, b"\0"), "little")


def _without_collisions(keys: np.ndarray) -> tuple[int, int, np.ndarray] | None:
    """(multiplier, shift, the slots of all names as int64) without two names in one slot.

    None if there are none, for example if two names have the same key. keys: uint64[names].
    """
    # With fewer slots than this, nearly all multipliers have collisions.
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
    """Random 64-bit numbers, the same in every process (SplitMix64)."""
    state = 0
    while True:
        state = state + 0x9E3779B97F4A7C15 & _WORD
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
        yield mixed ^ mixed >> 31


def _dtype(names: int) -> type[np.uint8] | type[np.uint16]:
    """The type that holds the codes of names, the code of undeclared texts, and a number that is no
    code."""
    return np.uint8 if names < 255 else np.uint16


_kept = threading.local()
_MOST_KEPT = 1 << 24  # bytes that a thread keeps for the codes of its next batch


def _room(rows: int, dtype: type[np.uint8] | type[np.uint16]) -> np.ndarray:
    """Room for the codes of a batch. All batches of this thread share it, of any run.

    New memory costs more to touch for the first time than finding the codes does.
    """
    wanted = rows * np.dtype(dtype).itemsize
    room: np.ndarray = getattr(_kept, "room", np.zeros(0, np.uint8))
    if len(room) < wanted:
        room = np.empty(wanted, np.uint8)
        if wanted <= _MOST_KEPT:
            _kept.room = room
    return room[:wanted].view(dtype)


def _numbers(buffer: pa.Buffer | None, dtype: type[np.generic]) -> np.ndarray:
    """The numbers in a buffer, read-only: kernels are compiled for one type of array."""
    values = np.frombuffer(buffer if buffer is not None and buffer.size else bytes(8), dtype)
    if values.flags.writeable:
        values.flags.writeable = False
    return values


# --- kernels --------------------------------------------------------------------------------------


# The caller makes sure that eight bytes can be read from the beginning of each text.


@njit(nogil=True, cache=True)
def _short_codes(slots, all_offsets, data, all_codes):  # type: ignore[no-untyped-def]
    """The codes of texts if no name has more than seven bytes.

    The key of a text has its bytes at the top, and its length in the lowest byte, which is free; 8
    stands for all longer texts.
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
            # In two steps, because a shift by 64 bits would do nothing.
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
    """The codes of texts if names have any length.

    A text is found by its first and its last eight bytes and its length; up to 16 bytes, this is
    all of it. For longer ones, a second pass compares the rest. With that comparison in the first
    loop, each row took twice the time.
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
            # In two steps, because a shift by 64 bits would do nothing.
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
    """The eight bytes from `start` on as a little-endian number; LLVM makes one load of this."""
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(data[start + np.uint64(place)]) << np.uint64(8 * place)
    return word


@njit(nogil=True, cache=True)
def _same_middle(slots, code, data, start, length):  # type: ignore[no-untyped-def]
    """Whether a text equals a name between its first and its last eight bytes."""
    texts, name = slots.texts, np.uint64(slots.offsets[code])
    place, end = np.uint64(8), length - np.uint64(8)
    # Eight bytes at a time. After the middle there are eight more.
    while place < end and _eight_bytes(data, start + place) == _eight_bytes(texts, name + place):
        place += np.uint64(8)
    return place >= end
