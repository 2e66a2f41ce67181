"""All streams up to a length, each compared once, within a number of steps.

A stream grows at its end and shrinks again, so that streams with one beginning share what is known
of it. Streams go by length, and where the steps run out all shorter ones have been compared. The
beginnings are then looked at once for each length. So when a few short lengths say that the steps
suffice, all lengths are done together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from celc.verify.prove.matches import OutOfStepsError, Steps

_T = TypeVar("_T")

_SHORT = 3  # a length by whose steps those of longer ones are told
_MARGIN = 1.25


def compare_all(
    length: int,
    steps: Steps,
    following: Callable[[], Sequence[_T]],
    push: Callable[[_T, bool], str | None],
    cut: Callable[[int], None],
) -> tuple[int, str | None]:
    """The length up to which all streams were compared, and a difference on a shortest stream.

    `following()` are the events that may come next, `push` adds one, and says what differs if it is
    told to compare; `cut` takes the events behind a length away.
    """
    done = spent = before = 0
    goes_far = True

    def grow(size: int, more: int) -> str | None:
        """The first difference on a stream with up to `more` events beyond `size`."""
        for one in following():
            problem = push(one, size >= done)
            if problem is None and more > 1:
                problem = grow(size + 1, more - 1)
            if problem is not None:
                return problem
            cut(size)
        return None

    while done < length:
        far = goes_far and done >= _SHORT and done + 1 < length
        if far:
            by = spent / before if before else float("inf")  # how the steps grow by an event
            far = _MARGIN * spent * by ** (length - done) <= steps.left
        size = length if far else done + 1
        left = steps.left
        try:
            problem = grow(0, size)
        except OutOfStepsError:
            problem = None
            if not far:
                break
            goes_far = False
        if problem is not None and not far:
            return size, problem
        if far and (problem is not None or not goes_far):
            goes_far, steps.left = False, left  # length by length, to a shortest stream
            cut(0)
            continue
        before, spent, done = spent, left - steps.left, size
    return done, None
