"""Events that a run of one machine reads as they come, and of which it warns at its end.

Two events of a part that are equal in all order columns keep the order of the input, which may mean
nothing. NULL in PARTITION BY is a value like others, and may mean that the value is not known. Only
events of types and conditions that can matter are counted, with the symbols that are there anyway.
Tasks of Spark refuse such ties, and the parts of their ranges overlap, so ties are not counted
there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import differs
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.plan import Plan, Source
from celc_runtime.run.source.run_options import RunOptions


class OddEvents:
    """What one run has seen of such events."""

    counts = True
    """Whether the rows of the next batches count: parts of a table overlap."""

    _ties = 0
    _first = ""
    _open = False

    def __init__(self, plan: Plan, options: RunOptions) -> None:
        source = plan.source
        whole = not options.continues or options.rows_before is not None
        whole = whole and not source.reads
        self._source = source
        self.counts_ties = (
            whole
            and bool(source.order_by)
            and not source.takes_ties
            and not options.ties_are_errors
            and not plan.matching.one_event
        )
        """Whether ties matter: matches have several events, and the order chooses among these."""
        self._keys = (
            source.key_columns
            if whole and options.arranged is None and not options.is_small
            else ()
        )
        self._nulls = dict.fromkeys(self._keys, 0)

    def begin_again(self) -> None:
        """Forget what has been seen."""
        self._ties, self._first, self._open = 0, "", False
        self._nulls = dict.fromkeys(self._keys, 0)

    def has_none(self, events: pa.RecordBatch, tied: np.ndarray | None) -> bool:
        """Whether no event of a batch is odd, whichever of them matter."""
        nulls = any(events.column(name).null_count for name in self._keys)
        return not nulls and not (self.counts_ties and tied is not None and tied.any())

    def look(self, events: pa.RecordBatch, matters: np.ndarray, tied: np.ndarray | None) -> int:
        """Count the odd events of a batch. Returns the row of the first tie of all, else −1.

        matters: [rows], not 0 for events that can matter. tied: bool[rows], the rows that are equal
        to the row before in part and order; None: no row is. The first row follows the last batch.
        """
        for name in self._keys if self.counts else ():
            column = events.column(name)
            if column.null_count:
                nulls = np.asarray(column.is_null())
                self._nulls[name] += int(np.count_nonzero(nulls & (matters != 0)))
        if not self.counts_ties or not len(events):
            return -1
        if tied is None or not tied.any():
            self._open = bool(matters[-1])
            return -1
        before = self._open
        found, self._open = ties_of(matters, tied, before)
        if not self.counts:
            return -1
        is_first = found > 0 and not self._ties
        self._ties += int(found)
        return first_tie(matters, tied, before) if is_first else -1

    def name(self, row: str) -> None:
        """Take the name of the first row that is tied."""
        self._first = f" (the first is {row})"

    def add(self, later: OddEvents) -> None:
        """Count what the run over the next part of the table has seen."""
        self._first = self._first or later._first
        self._ties += later._ties
        for name, count in later._nulls.items():
            self._nulls[name] = self._nulls.get(name, 0) + count

    def told(self, query: str) -> Iterator[str]:
        """The warnings."""
        source = self._source
        if self._ties:
            names = ", ".join((*source.order_by, *source.tiebreak))
            events = _events(self._ties, "is", "are")
            yield (
                f"query {query!r}: {events} equal in {names} to an earlier one of the same part"
                f"{self._first}, and both can matter: their order is that of the input. Where that "
                "order means nothing, name a column that tells them apart "
                "(with_options(tiebreak=['event_id']), --tiebreak event_id), or compile the query "
                "with ties='simultaneous' (--ties simultaneous)"
            )
        for name, count in self._nulls.items():
            if count:
                yield (
                    f"query {query!r}: {_events(count, 'has', 'have')} NULL in {name!r} of "
                    "PARTITION BY, and NULL equals NULL there: these events are one part. Leave "
                    "them out of the input where NULL means that the value is not known"
                )


@njit(nogil=True, cache=True)
def ties_of(matters, tied, goes_on):  # type: ignore[no-untyped-def]
    """The number of rows that matter and are equal to an earlier one that does, and whether the
    next row can be one; without a branch. `goes_on`: whether the first row can be one."""
    found = 0
    for row in range(len(matters)):
        matter = matters[row] != 0
        goes_on = goes_on & tied[row]
        found += goes_on & matter
        goes_on = goes_on | matter
    return found, goes_on


def first_tie(matters: np.ndarray, tied: np.ndarray, goes_on: bool) -> int:
    """The first of these rows; there is one. It is sought in few rows first."""
    end = 1
    while not ties_of(matters[:end], tied[:end], goes_on)[0]:
        end *= 4
    begin = end // 4  # no row before it is one
    while end - begin > 1:
        middle = (begin + end) // 2
        has = ties_of(matters[:middle], tied[:middle], goes_on)[0] > 0
        begin, end = (begin, middle) if has else (middle, end)
    return begin


def tied_rows(source: Source, events: pa.RecordBatch, parts: np.ndarray) -> np.ndarray:
    """bool[rows]: which rows are equal to the row before in all order columns, in the same part.

    parts: [rows], a number for each part.
    """
    found = np.zeros(len(events), np.bool_)
    found[1:] = parts[1:] == parts[:-1]
    for name in (*source.order_by, *source.tiebreak):
        found[1:] &= ~differs(events.column(name))
    return found


def _events(count: int, one: str, many: str) -> str:
    return f"{count:,} event{f' {one}' if count == 1 else f's {many}'}"
