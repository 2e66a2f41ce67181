"""The absent parts of one run whose events share a key."""

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.nodes import ALWAYS, NEVER
from celc_runtime.engine.past.latest_starts import NONE, positions_of
from celc_runtime.engine.past.starts_of_keys import follow_keys
from celc_runtime.plan.strategy import KeyTable, WatchedPart
from celc_runtime.run.past.key_memory import KeyMemory


class StartsOfKeys:
    """Follows one absent part through the events of a run, key by key."""

    def __init__(self, part: WatchedPart) -> None:
        texts = tuple(term.is_text for term in part.key)
        # A pile for each position of the part, and one for the whole part.
        self._keys = KeyMemory(part.key, (KeyTable(texts, piles=len(part.symbols) + 1),))
        self._terms = np.arange(len(part.key))
        self._tables = positions_of(part)
        self._of_key = part.of_key
        self._latest = np.full(1, NONE, np.int64)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes

    def of(
        self,
        events: pa.RecordBatch,
        entry: int,
        symbols: np.ndarray,
        window: tuple[np.ndarray, np.ndarray] | None,
        begins: np.ndarray,
        first: int,
    ) -> np.ndarray:
        """int64[events]: the latest start (an entry) of a match so far, `NONE` where there is none.

        If it is the start for a key, events outside of the part have `NONE`. entry: the number of
        the first event. window: (key, floor) of each event. begins: int64[events], the first entry
        of each event's partition. first: the oldest remembered entry.
        """
        # A start that has been dropped is before all later matches.
        self._keys.enter(events, NEVER, first)
        rows = len(symbols)
        positions = self._tables[0]
        is_of_part = np.append(positions.any(axis=1), False)
        brings = is_of_part[np.minimum(symbols, len(positions))]
        brings &= self._keys.memory.known.all(axis=0)
        window = window or (np.zeros(rows, np.int64), np.full(rows, ALWAYS))
        found = np.empty(rows, np.int64)
        done = 0
        while done < rows:
            memory = self._keys.memory
            table = memory.tables[0]
            # As for nearest events: each event brings at most one key.
            room = len(table) // 2 - int(memory.filled[0])
            if 8 * room < len(table):
                self._keys.make_room(NEVER, max(first, int(begins[done])))
                continue
            part = (done, min(rows, done + room))
            memory.filled[0] += follow_keys(
                (memory.values, table, self._terms),
                self._tables,
                window,
                brings,
                entry,
                symbols,
                begins,
                self._of_key,
                self._latest,
                part,
                found,
            )
            done = part[1]
        return found
