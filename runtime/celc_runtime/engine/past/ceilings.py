"""The end of the first absent part after each event.

`φ ; !ψ FOR d` forbids each match of ψ that begins after the last event of φ and ends within d of
it. Among the matches of ψ after an event, only the first one to end matters: if any is within d, it
is. When a match of ψ ends, the latest start of all matches so far (`latest_starts`) tells the
events for which it is the first: those before that start that had none yet. So each event is
settled once. Its *ceiling* is the floor of d at the end of that match. The event cannot end φ if
its key is not below its ceiling. If d counts from the start of φ, the key of the start is compared.
"""

import numpy as np

from celc_runtime.engine.past.latest_starts import LatestStarts
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import WatchedPart

OPEN = 2**63 - 1  # the ceiling of an event with no such part after it so far: above every key


class Ceilings:
    """Follows one absent part through the batches of a run, and writes ceilings of earlier
    events."""

    def __init__(self, part: WatchedPart) -> None:
        self._starts = LatestStarts(part)
        self._head = 0

    def write(
        self,
        entry: int,
        symbols: np.ndarray,
        window: tuple[np.ndarray, np.ndarray] | None,
        floors: np.ndarray,
        anew: np.ndarray,
        ceilings: np.ndarray,
    ) -> None:
        """Write the ceilings that a batch settles.

        entry: the number of its first event. floors: int64[events], for the length d. anew:
        bool[events], where a partition begins. ceilings: int64, for all remembered events; those of
        the batch come last.
        """
        latest = self._starts.of(entry, symbols, window, None, anew)
        first = entry + len(symbols) - len(ceilings)
        self._head = int(_settle(latest, floors, anew, entry, first, self._head, ceilings))


@njit(nogil=True, cache=True)
def _settle(latest, floors, anew, entry, first, head, ceilings):  # type: ignore[no-untyped-def]
    for row in range(latest.shape[0]):
        if anew[row]:
            head = entry + row
        head = max(head, first)
        while head < latest[row]:
            ceilings[head - first] = floors[row]
            head += 1
    return head
