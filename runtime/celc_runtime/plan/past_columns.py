"""The order of the columns of past events, for conditions and for a run that remembers them.

The fields of `PastColumns` define that order, and nothing else does. The compiler names its
variables by them, and a run stores and finds its arrays by them.
"""

from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import Generic, NamedTuple, TypeVar

from celc_runtime.plan.strategy import Remembers

_T = TypeVar("_T")


class PastColumns(NamedTuple, Generic[_T]):
    """Something for each column, in groups of one kind (`plan.strategy.Remembers`)."""

    windows: Sequence[_T]  # a key and a floor for each window inside the formula
    parts: Sequence[_T]
    begins: Sequence[_T]  # one column, or none
    nearest: Sequence[_T]
    values: Sequence[_T]  # for each attribute a value, and whether it is not NULL
    texts: Sequence[_T]
    codes: Sequence[_T]
    ranks: Sequence[_T]
    spelled: Sequence[_T]  # the numbers of texts in `letters`, negative for NULL
    symbols: Sequence[_T]  # one column, or none
    letters: Sequence[_T]
    """No columns of events, but the UTF-8 bytes of all texts of `spelled`, and where each ends;
    or none."""

    def in_order(self) -> list[_T]:
        return list(chain.from_iterable(self))


def places_of(remembers: Remembers, windows: int) -> PastColumns[int]:
    """The indices of the columns, for a query with `windows` windows inside the formula."""
    sizes = PastColumns(
        windows=range(2 * windows),
        parts=remembers.parts,
        begins=range(remembers.begins),
        nearest=remembers.nearest,
        values=range(2 * len(remembers.columns)),
        texts=remembers.texts,
        codes=remembers.codes,
        ranks=remembers.ranks,
        spelled=remembers.spelled,
        symbols=range(remembers.symbols),
        letters=range(2 if remembers.spelled or remembers.spellings else 0),
    )
    bounds = accumulate(map(len, sizes), initial=0)
    return PastColumns(*(range(begin, end) for begin, end in pairwise(bounds)))


def of_window(columns: Sequence[_T], window: int) -> Sequence[_T]:
    """Key and floor for a window inside the formula."""
    return columns[2 * window : 2 * window + 2]
