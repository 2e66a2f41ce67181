"""Texts that an aggregate of the file makes: a text is its UTF-8 bytes (uint8).

Texts of events have numbers, by which they are compared. A text that is made has none, so an
aggregate that makes texts computes with bytes: a text of an event is a part of the bytes of all
(`SpelledTexts.letters`), and what is made has an array of its own. Both live as long as one call,
so nothing is kept between batches.

Rejected: numbers for made texts, which must be looked up for each text on the way, of which most
are never shown; and ropes, which join in one step, but must be walked by each other function. A
text of n pieces is copied n times here. Pieces are short, and copies are fast.
"""

from typing import Any

import numpy as np

from celc_runtime.jit.kernels import njit

MOST_BYTES = 1 << 24  # of a text; one that is joined with itself doubles with each event
TOO_LONG = "celc: a text is too long"
"""What an error of such a text says."""

# Kernels that check conditions make no arrays, and what is not said here is taken from them.
_KERNEL: dict[str, Any] = {"nogil": True, "cache": True, "_nrt": True}

_SPACE, _PERCENT, _BACKSLASH, _UNDERSCORE = 32, 37, 92, 95
_MINUS, _ZERO = 45, 48


@njit(**_KERNEL)
def no_text():  # type: ignore[no-untyped-def]
    """In place of NULL."""
    return np.empty(0, np.uint8)


@njit(**_KERNEL)
def spelled_text(letters, stops, number):  # type: ignore[no-untyped-def]
    """The text of a number."""
    return letters[stops[number] : stops[number + 1]]


@njit(**_KERNEL)
def _room(size):  # type: ignore[no-untyped-def]
    if size > MOST_BYTES:
        raise MemoryError(TOO_LONG)
    return np.empty(size, np.uint8)


@njit(**_KERNEL)
def joined_text(one, other):  # type: ignore[no-untyped-def]
    """`one || other`."""
    size = one.shape[0]
    found = _room(size + other.shape[0])
    for at in range(size):
        found[at] = one[at]
    for at in range(other.shape[0]):
        found[size + at] = other[at]
    return found


@njit(**_KERNEL)
def order_of_made(one, other):  # type: ignore[no-untyped-def]
    """-1, 0 or 1: the order of two texts, by their bytes, which is that of characters."""
    for at in range(min(one.shape[0], other.shape[0])):
        if one[at] != other[at]:
            return -1 if one[at] < other[at] else 1
    return int(one.shape[0] > other.shape[0]) - int(one.shape[0] < other.shape[0])


@njit(**_KERNEL)
def _begins_character(byte):  # type: ignore[no-untyped-def]
    return (byte & 0xC0) != 0x80


@njit(**_KERNEL)
def _characters(text, stop):  # type: ignore[no-untyped-def]
    """How many characters begin before a byte."""
    found = 0
    for at in range(stop):
        found += _begins_character(text[at])
    return found


@njit(**_KERNEL)
def length_of_text(text):  # type: ignore[no-untyped-def]
    """LENGTH: the number of characters."""
    return np.int64(_characters(text, text.shape[0]))


@njit(**_KERNEL)
def part_of_text(text, place, length):  # type: ignore[no-untyped-def]
    """SUBSTR(text, place, length): as Spark counts, also from before the text on."""
    characters = _characters(text, text.shape[0])
    start = np.int64(place)
    if place > 0:
        start -= 1
    elif place < 0:
        start += characters
    until = min(start + np.int64(length), characters)
    begin, end, character = text.shape[0], text.shape[0], np.int64(-1)
    for at in range(text.shape[0]):
        if _begins_character(text[at]):
            character += 1
            if character == max(start, 0):
                begin = at
            if character == until:
                end = at
                break
    return text[begin:end] if start < until else text[:0]


@njit(**_KERNEL)
def _is_at(text, at, part):  # type: ignore[no-untyped-def]
    if at < 0 or at + part.shape[0] > text.shape[0]:
        return False
    same = 0
    while same < part.shape[0] and text[at + same] == part[same]:
        same += 1
    return same == part.shape[0]


@njit(**_KERNEL)
def begins_with(text, part):  # type: ignore[no-untyped-def]
    """STARTSWITH."""
    return _is_at(text, 0, part)


@njit(**_KERNEL)
def ends_with(text, part):  # type: ignore[no-untyped-def]
    """ENDSWITH."""
    return _is_at(text, text.shape[0] - part.shape[0], part)


@njit(**_KERNEL)
def place_of_text(part, text):  # type: ignore[no-untyped-def]
    """POSITION: the first character of the first place of a part, from 1; 0: nowhere."""
    for at in range(text.shape[0] - part.shape[0] + 1):
        if _is_at(text, at, part):
            return np.int64(_characters(text, at) + 1)
    return np.int64(0)


@njit(**_KERNEL)
def replaced_text(text, old, new):  # type: ignore[no-untyped-def]
    """REPLACE: another text for each occurrence of one, from the left."""
    if old.shape[0] == 0:
        return text
    times, at = 0, 0
    while at < text.shape[0]:
        is_old = _is_at(text, at, old)
        times += is_old
        at += old.shape[0] if is_old else 1
    found = _room(text.shape[0] + times * (new.shape[0] - old.shape[0]))
    at, used = 0, 0
    while at < text.shape[0]:
        if _is_at(text, at, old):
            for place in range(new.shape[0]):
                found[used + place] = new[place]
            at, used = at + old.shape[0], used + new.shape[0]
        else:
            found[used] = text[at]
            at, used = at + 1, used + 1
    return found


@njit(**_KERNEL)
def trimmed_text(text, left, right):  # type: ignore[no-untyped-def]
    """TRIM, LTRIM and RTRIM: without spaces at these ends."""
    begin, end = 0, text.shape[0]
    while left and begin < end and text[begin] == _SPACE:
        begin += 1
    while right and begin < end and text[end - 1] == _SPACE:
        end -= 1
    return text[begin:end]


@njit(**_KERNEL)
def text_of_whole(number):  # type: ignore[no-untyped-def]
    """CAST of a whole number to STRING."""
    digits, size = np.empty(20, np.uint8), 0
    rest, is_negative = np.int64(number), number < 0
    while size == 0 or rest != 0:
        # Towards zero; the smallest number has no opposite.
        following = (rest + 9) // 10 if is_negative else rest // 10
        digits[size] = _ZERO + abs(rest - following * 10)
        rest = following
        size += 1
    found = np.empty(size + is_negative, np.uint8)
    found[0] = _MINUS
    for at in range(size):
        found[is_negative + at] = digits[size - 1 - at]
    return found


@njit(**_KERNEL)
def _behind_character(text, at):  # type: ignore[no-untyped-def]
    at += 1
    while at < text.shape[0] and not _begins_character(text[at]):
        at += 1
    return at


@njit(**_KERNEL)
def is_like(text, pattern):  # type: ignore[no-untyped-def]
    """LIKE: `%` is any text, `_` a character, and `\\` takes the next sign as it is."""
    at, place = 0, 0
    tried, behind = 0, -1  # where the last `%` ends so far, and the sign behind it
    while at < text.shape[0]:
        if place < pattern.shape[0]:
            sign = pattern[place]
            if sign == _PERCENT:
                place += 1
                tried, behind = at, place
                continue
            if sign == _UNDERSCORE:
                at, place = _behind_character(text, at), place + 1
                continue
            step = 1
            if sign == _BACKSLASH and place + 1 < pattern.shape[0]:
                sign, step = pattern[place + 1], 2
            if text[at] == sign:
                at, place = at + 1, place + step
                continue
        if behind < 0:
            return False
        tried = _behind_character(text, tried)
        at, place = tried, behind
    while place < pattern.shape[0] and pattern[place] == _PERCENT:
        place += 1
    return place == pattern.shape[0]


@njit(**_KERNEL)
def with_text(letters, used, text):  # type: ignore[no-untyped-def]
    """Letters with those of a text behind the first `used`; they may be longer then."""
    if used + text.shape[0] > letters.shape[0]:
        larger = np.empty(2 * (used + text.shape[0]), np.uint8)
        for at in range(used):
            larger[at] = letters[at]
        letters = larger
    for at in range(text.shape[0]):
        letters[used + at] = text[at]
    return letters
