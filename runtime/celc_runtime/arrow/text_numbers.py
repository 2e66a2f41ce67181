"""Numbers in place of texts: two numbers are equal exactly if the texts are equal.

The dictionary codes of Arrow differ from batch to batch. These numbers hold for all batches of a
run, so kernels compare and store them as they do any int64. A number is never used for a second
text: data that is kept under a number stays right when unused texts are dropped.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class TextNumbers:
    """The numbers of all texts so far, except dropped ones."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, column: pa.Array) -> np.ndarray:
        """int64[len(column)]: the number of each text, −1 for NULL.

        A batch costs one look-up for each of its distinct texts, because columns are coded by a
        dictionary.
        """
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        # A slice of a larger table shares its dictionary, whose texts are mostly of other rows.
        if len(coded.dictionary) > len(coded):
            coded = coded.cast(coded.type.value_type).dictionary_encode()
        table = np.empty(len(coded.dictionary) + 1, np.int64)
        for place, text in enumerate(coded.dictionary.to_pylist()):
            number = self._numbers.get(text)
            if number is None:
                number = self._numbers[text] = self._next
                self._next += 1
            table[place] = number
        table[-1] = -1
        indices = coded.indices
        if pa.types.is_unsigned_integer(indices.type):
            indices = indices.cast(pa.int64())
        if indices.null_count:
            indices = indices.fill_null(-1)
        numbers: np.ndarray = table[indices.to_numpy(zero_copy_only=False)]
        return numbers

    def keep(self, numbers: Iterable[int]) -> None:
        """Drop all texts but those with these numbers."""
        kept = set(numbers)
        self._numbers = {text: n for text, n in self._numbers.items() if n in kept}

    def texts(self) -> list[str]:
        """The texts in the order of their numbers."""
        return [*self._numbers]

    def latest(self, count: int) -> list[str]:
        """The `count` texts with the greatest numbers, in the order of the numbers."""
        return [*islice(reversed(self._numbers), count)][::-1]

    def in_order(self) -> np.ndarray:
        """int64[texts]: the numbers in the order of their texts, by Unicode code points."""
        return np.array([self._numbers[text] for text in sorted(self._numbers)], np.int64)


def texts_between(letters: np.ndarray, ends: np.ndarray, known: np.ndarray) -> pa.Array:
    """A column of texts, cut out of the bytes of all of them.

    letters: uint8, the UTF-8 bytes, text after text. ends: int64[texts], the place behind each
    text. known: bool[texts], where the result is not NULL.
    """
    offsets = pa.py_buffer(np.append(np.int64(0), ends))
    texts = pa.Array.from_buffers(
        pa.large_string(), len(ends), [None, offsets, pa.py_buffer(letters)]
    )
    return pc.if_else(pa.array(known), texts, None).cast(pa.string())


_FIRST_ROOM = 1024  # bytes for texts at the beginning of a run; it grows


class SpelledTexts:
    """Numbers in place of texts, with the bytes of each text: for kernels that join texts.

    own: the literals of the query. They have the first numbers, in this order, and are never
    dropped.
    """

    def __init__(self, own: Sequence[str]) -> None:
        self._own = own
        self._begin(own)

    def _begin(self, texts: Sequence[str]) -> None:
        self._texts = TextNumbers()
        self._letters, self._stops = np.empty(_FIRST_ROOM, np.uint8), np.zeros(1, np.int64)
        if texts:
            self._add(pa.array(texts, pa.string()))

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def letters(self) -> tuple[np.ndarray, np.ndarray]:
        """(uint8: the UTF-8 bytes of all texts, one after another; int64[texts + 1]: text n is from
        the nth of these places to before the next one)."""
        return self._letters[: self._stops[-1]], self._stops

    @property
    def nbytes(self) -> int:
        """The size of both arrays in bytes."""
        return self._letters.nbytes + self._stops.nbytes

    def of(self, column: pa.Array) -> np.ndarray:
        """int64[len(column)]: the number of each text, −1 for NULL."""
        return self._add(column)

    def texts_of(self, numbers: np.ndarray, known: np.ndarray) -> pa.Array:
        """The texts with these numbers (int64); NULL where `known` (bool) is not true."""
        texts = pa.array(self._texts.texts(), pa.string())
        return texts.take(pa.array(numbers, mask=~known))

    def forget(self, columns: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Drop all texts that no column has, and number the others anew.

        columns: int64 each, numbers of texts, −1 for NULL. Yields them with the new numbers.
        """
        used = np.unique(np.concatenate([np.arange(len(self._own)), *columns]))
        used = used[used >= 0]
        letters, stops = (one.copy() for one in self.letters)
        texts = [bytes(letters[stops[n] : stops[n + 1]]).decode() for n in used.tolist()]
        self._begin(texts)
        for column in columns:
            yield np.where(column < 0, -1, np.searchsorted(used, column))

    def _add(self, column: pa.Array) -> np.ndarray:
        known = len(self._texts)
        numbers = self._texts.of(column)
        new = [text.encode() for text in self._texts.latest(len(self._texts) - known)]
        if new:
            begin = int(self._stops[-1])
            stops = begin + np.cumsum([len(one) for one in new])
            if stops[-1] > len(self._letters):
                longer = np.empty(2 * stops[-1], np.uint8)
                longer[:begin] = self._letters[:begin]
                self._letters = longer
            self._letters[begin : stops[-1]] = np.frombuffer(b"".join(new), np.uint8)
            self._stops = np.append(self._stops, stops)
        return numbers
