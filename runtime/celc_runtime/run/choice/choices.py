"""Which matches of a run stay, and when that is known: the protocol, and the choice of all."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.source.stretches import Stretches
from celc_runtime.run.walk.listed import Listed


class ChoiceOfRun:
    """What a run asks of its choice; here all matches stay, and each is known at its end."""

    undecided = 0  # the number of matches left undecided

    @property
    def given_before(self) -> int:
        """For matches that are chosen by their starts: the rows of all starts before this entry
        have been returned."""
        raise AssertionError("matches are chosen by their ends")

    @property
    def nbytes(self) -> int:
        """The bytes of the waiting batches and matches."""
        return 0

    # --- batches ----------------------------------------------------------------------------------

    def arrived(self, reading: Reading, *, lists: bool) -> Iterable[tuple[Reading, bool]]:
        """The batches to read after one has arrived, and whether to return the matches of each.

        lists: that flag of the batch that arrived.
        """
        return ((reading, lists),)

    def over(self) -> Iterable[tuple[Reading, bool]]:
        """The batches that still wait at the end of the input."""
        return ()

    # --- matches ----------------------------------------------------------------------------------

    def narrow(self, listed: Listed) -> None:
        """Drop matches from the buffers that cannot be chosen."""

    def take(self, rows: pa.RecordBatch, listed: Listed) -> Iterator[pa.RecordBatch]:
        """Add the rows of the matches in the buffers; yields rows that are known."""
        if len(rows):
            yield rows

    def known(self, oldest: Callable[[], int]) -> Iterator[pa.RecordBatch]:
        """The rows that are known if no later match starts before the entry `oldest`, a function
        because it is computed only where it is used."""
        yield from ()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows that are known at the end of the input."""
        yield from ()

    # --- stretches --------------------------------------------------------------------------------

    def silent(self, stretches: Stretches, events: pa.RecordBatch) -> np.ndarray | None:
        """bool[rows]: at which rows of stretches no match is listed; None: all rows list matches.

        events: the columns that were prepared of them.
        """
        return stretches.silent

    def undecided_ends(self, stretches: Stretches, events: pa.RecordBatch) -> np.ndarray | None:
        """bool[rows]: where a match can end that is not decided yet; None: nowhere."""
        return None

    def of_stretches(self, stretches: Stretches, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        """The rows that are known of stretches that have been read."""
        yield from ()
