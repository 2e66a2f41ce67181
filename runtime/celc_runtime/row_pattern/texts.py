"""Texts as numbers in the order of the texts, so that generated code compares them as numbers.

All texts that a query looks at share one dictionary: those of its columns, its own, and the names
of its variables. It is sorted as Spark sorts texts, by their bytes.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Texts:
    """The dictionary of a table: `columns` are its text columns that are read, by their numbers."""

    def __init__(
        self,
        columns: Mapping[int, pa.Array],
        texts: Sequence[str],
        names: Sequence[str],
        regexes: Sequence[str],
    ) -> None:
        coded = {number: column.dictionary_encode() for number, column in columns.items()}
        own = pa.array([*texts, *names], pa.string())
        every = pa.concat_arrays(
            [own, *(one.dictionary.cast(pa.string()) for one in coded.values())]
        )
        distinct = pc.unique(every)
        self.dictionary = pc.take(distinct, pc.sort_indices(distinct))
        self.codes = {number: self._of(one) for number, one in coded.items()}
        self.constants = self._numbers(pa.array(texts, pa.string()))
        self.names = self._numbers(pa.array(names, pa.string()))
        self.truths = np.zeros((len(regexes), len(self.dictionary)), np.bool_)
        for number, regex in enumerate(regexes):
            found = pc.match_substring_regex(self.dictionary, pattern=regex)
            self.truths[number] = found.to_numpy(zero_copy_only=False)

    @property
    def letters(self) -> tuple[np.ndarray, np.ndarray]:
        """uint8: the bytes of all texts, one after another; int64: text n begins at place n there,
        and ends at place n + 1."""
        _, stops, letters = self.dictionary.buffers()
        ends = np.frombuffer(stops, np.int32)[: len(self.dictionary) + 1].astype(np.int64)
        bytes_of = np.zeros(1, np.uint8) if letters is None else np.frombuffer(letters, np.uint8)
        return bytes_of, np.append(ends, ends[-1:])

    def _numbers(self, texts: pa.Array) -> np.ndarray:
        if not len(texts):
            return np.zeros(0, np.int32)
        found: np.ndarray = pc.index_in(texts, self.dictionary).to_numpy(zero_copy_only=False)
        return found.astype(np.int32)

    def _of(self, column: pa.DictionaryArray) -> np.ndarray:
        """int32[rows]; 0 where NULL."""
        numbers = self._numbers(column.dictionary.cast(pa.string()))
        codes = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
        if not len(numbers):
            return np.zeros(len(codes), np.int32)
        found: np.ndarray = numbers[codes]
        return found
