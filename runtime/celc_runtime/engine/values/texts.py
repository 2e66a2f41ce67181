"""Texts that are joined of texts of several events, compared without joining them."""

from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def order_of_texts(letters, stops, left, right):  # type: ignore[no-untyped-def]
    """-1, 0 or 1: the order of a text of pieces with another one, by their UTF-8 bytes.

    letters, stops: uint8 and int64, the texts by number (`SpelledTexts.letters`). left, right: the
    numbers of the pieces, as tuples of int64.
    """
    piece, other = 0, 0
    at, end = stops[left[0]], stops[left[0] + 1]
    beside, until = stops[right[0]], stops[right[0] + 1]
    while True:
        while at == end and piece + 1 < len(left):
            piece += 1
            at, end = stops[left[piece]], stops[left[piece] + 1]
        while beside == until and other + 1 < len(right):
            other += 1
            beside, until = stops[right[other]], stops[right[other] + 1]
        if at == end or beside == until:
            return int(at < end) - int(beside < until)
        for step in range(min(end - at, until - beside)):
            one, two = letters[at + step], letters[beside + step]
            if one != two:
                return -1 if one < two else 1
        step = min(end - at, until - beside)
        at, beside = at + step, beside + step
