"""Texts as numbers that are equal exactly if the texts are, over all batches of a run.

A number is never used for a second text. So data kept under a number stays right when unused texts
are dropped.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa


class TextNumbers:
    """The numbers of all texts so far, except dropped ones."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, column: pa.Array) -> np.ndarray:
        """int64[len(column)]: the number of each text, −1 for NULL.

        Dictionary codes are used, so a batch costs one look-up for each of its distinct texts.
        """
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
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
        kept = set(numbers)
        self._numbers = {text: n for text, n in self._numbers.items() if n in kept}

    def in_order(self) -> np.ndarray:
        """int64: the numbers in the order of their texts' UTF-8 bytes, which is that of
        characters."""
        return np.array([self._numbers[text] for text in sorted(self._numbers)], np.int64)
