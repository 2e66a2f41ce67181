"""The look-ups of nearest events of one run, and the keys that they know."""

import numpy as np
import pyarrow as pa

from celc_runtime.engine.past.nearest_events import ALIVE, nearest_after, nearest_before
from celc_runtime.plan.strategy import KeyTable, NearestEvent
from celc_runtime.run.past.key_memory import KeyMemory


class NearestEvents:
    """Follows the events of a run, and finds for each the nearest event with the key it asks
    for."""

    def __init__(self, wanted: NearestEvent) -> None:
        terms = tuple(dict.fromkeys((*wanted.key, *wanted.asking)))
        texts = tuple(term.is_text for term in wanted.key)
        self._keys = KeyMemory(terms, (KeyTable(texts, piles=1),))
        self._key = np.array([terms.index(term) for term in wanted.key])
        self._asking = np.array([terms.index(term) for term in wanted.asking])
        self._are_same = wanted.key == wanted.asking
        self._after = wanted.after
        self._ever = wanted.ever
        self._symbols = wanted.symbols

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes

    def write(
        self,
        events: pa.RecordBatch,
        symbols: np.ndarray,
        begins: np.ndarray,
        first: int,
        found: np.ndarray,
    ) -> None:
        """Write the answers of events, and those of earlier events that these settle.

        begins: int64[events], the first entry of each event's partition. found: int64, the answers
        of all remembered events, those of `events` last. first: the entry at its index 0. An answer
        is an entry, or negative if no event is known.
        """
        entry = first + len(found) - len(symbols)
        self._keys.enter(events, ALIVE, self._lowest(first, begins, 0))
        memory = self._keys.memory
        # An event whose conditions contradict each other has no symbol.
        is_wanted = np.zeros(max((int(symbols.max(initial=0)), *self._symbols)) + 1, np.bool_)
        is_wanted[list(self._symbols)] = True
        brings = is_wanted[symbols] & memory.known[self._key].all(axis=0)
        asks = memory.known[self._asking].all(axis=0)
        done = 0
        while done < len(symbols):
            memory = self._keys.memory
            table = memory.tables[0]
            # Each event brings at most one key. Tables are not filled to the last row. Otherwise
            # fewer and fewer events could be read at once.
            room = len(table) // 2 - int(memory.filled[0])
            if 8 * room < len(table):
                self._keys.make_room(ALIVE, self._lowest(first, begins, done))
                continue
            rows = (done, min(len(symbols), done + room))
            terms = self._key, self._asking, self._are_same
            told = (memory.values, table, brings, asks, begins, *terms, entry, rows)
            if self._after:
                new = nearest_after(*told, first, found)
            else:
                new = nearest_before(*told, found[len(found) - len(symbols) :])
            memory.filled[0] += new
            done = rows[1]

    def _lowest(self, first: int, begins: np.ndarray, row: int) -> int:
        """The entry of the first event whose key is still needed when `row` is read."""
        begin = int(begins[row]) if row < len(begins) else first
        if self._ever:
            # Keys are kept as long as the partition lasts. Events are not.
            return min(first, begin)
        return max(first, begin)
