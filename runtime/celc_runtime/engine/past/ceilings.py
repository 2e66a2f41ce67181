"""The end of the first part after each event that must be absent there.

`φ ; !ψ FOR d` forbids matches of ψ that begin after the last event of φ and end within d of it. Of
all matches of ψ that begin after an event, the first one to end is within d if any is. Once a match
of ψ has ended, the latest start of all such matches so far says for which events it was the first
one (`latest_starts`): for those before that start that had none yet. So each event is passed over
once. Its *ceiling* is the floor of d at the end of that match: an event is forbidden to end φ if
its key is not below its ceiling. Where d counts from the start of φ, the key is that of the start.
"""

import numpy as np

from celc_runtime.engine.past.latest_starts import LatestStarts
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import WatchedPart

OPEN = 2**63 - 1
"""The ceiling of an event with no such part after it so far: above every key."""


class Ceilings:
    """Follows one part through the batches of a run, and writes ceilings of earlier events."""

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

        entry: that of its first event. floors: int64[events], of the length. anew: bool[events],
        where a partition begins. ceilings: int64, of all remembered events, the batch's ones last.
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
