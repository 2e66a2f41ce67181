"""Figure 3, the running example of postponing: an A, three B's and a C."""

from __future__ import annotations

import numpy as np
from baselines.postponed import found_by_postponing
from baselines.runs import Events, Part, Pattern, found_by_runs

from papers.figures import Made, Sentence


def make(small: bool) -> Made:
    """The numbers of the example, which is as long in a small run."""
    del small
    events = Events(np.array(list("ABBBC")), np.zeros(5), np.arange(5), np.zeros(5, np.int64))
    pattern = Pattern((Part("A"), Part("B", several=True), Part("C")), 10)
    runs = found_by_runs(pattern, events, by_numba=False).counts
    shared, _ = found_by_postponing(pattern, events, early=False, by_numba=False)
    seen = {
        "runs of the original plan": runs.runs,
        "runs when conditions are postponed": shared.runs,
        "matches": shared.matches,
    }
    sentence = Sentence(
        "15 runs by the original plan, 1 when conditions are postponed, 7 matches by both",
        (runs.runs, shared.runs, shared.matches, runs.matches) == (15, 1, 7, 7),
        ", ".join(map(str, seen.values())),
    )
    return Made((), (sentence,), {what: str(number) for what, number in seen.items()})
