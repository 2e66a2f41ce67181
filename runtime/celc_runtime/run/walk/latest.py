"""The walk of SELECT LAST under WITHIN: the match of the latest events (see `latest_walk`)."""

import numpy as np

from celc_runtime.engine.arena.nodes import WINDOW_FULL, Memory, new_memory
from celc_runtime.engine.walk.latest_walk import choose_latest
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.run.walk.walks import WalkOfRun, with_more_scratch

_CELLS_ROOM = 256  # cells of one match for which there is room at first


class LatestWalk(WalkOfRun):
    def __init__(self) -> None:
        self._scratch = new_memory(0)
        self._cells = np.zeros((_CELLS_ROOM, 3), np.int64)

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in (*self._scratch, self._cells)))

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        return int(choose_latest(memory, output, kinds, self._scratch, self._cells))

    def with_room(self, status: int, memory: Memory) -> Memory:
        if status == WINDOW_FULL:
            self._cells = np.zeros((2 * len(self._cells), 3), np.int64)
        self._scratch = with_more_scratch(self._scratch, status)
        return memory
