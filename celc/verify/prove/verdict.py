"""What a step of a proof says: a verdict, which people sign and a report keeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

Kind: TypeAlias = Literal["exact", "bounded", "tested", "assumed", "not decided", "wrong"]
"""How far a verdict goes.

- exact: both representations mean the same, whatever the events are
- bounded: the same for all inputs up to the bound that `what` names
- tested: no argument; the tests of celc alone speak for it. `what` names the feature that the step
  does not understand
- assumed: it is outside of celc
- not decided: a solver had not enough time, or is not installed
- wrong: `counterexample` shows a difference
"""


class NotUnderstoodError(Exception):
    """A step has no argument for a feature of the query, which the error names in words."""


@frozen
class Verdict:
    """What is known of one step of a compilation."""

    step: str  # the representations that are compared, as `normal form → automaton`
    kind: Kind
    what: str  # what was compared, up to which bound, or why there is no argument
    counterexample: str | None = None  # of `wrong`: an input, and both answers
    seconds: float = 0.0  # of CPU

    def __post_init__(self) -> None:
        assert (self.kind == "wrong") == (self.counterexample is not None)


def timed(step: Callable[..., Verdict], *given: object) -> Verdict:
    """The verdict of a step, with the CPU seconds that it took."""
    start = time.process_time()
    found = step(*given)
    return Verdict(
        found.step, found.kind, found.what, found.counterexample, time.process_time() - start
    )
