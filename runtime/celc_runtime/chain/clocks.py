"""The time up to which the rows of each query of a chain are known.

The clock of a run is the greatest time in its input. It decides the matches that end with an
absence. In a query that reads others, a row of these may come later: one with an absence at its end
is known when this absence is certain. So its clock is that of the input less the lengths of these
absences.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from celc_runtime.chain.columns import Types, types_of_chain
from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.plan import Window
from celc_runtime.program import Program

Number: TypeAlias = int | float

Latest: TypeAlias = Callable[[Types], Number | None]
"""The greatest time of the first order column in the events of some types, as a plan holds it;
None: there is no event."""


def with_clock_of_rows(program: Program, latest: Latest) -> Program:
    """A query that reads others, with the clock that decides its own matches, if it asks for
    one."""
    if not program.plan.asks_for_clock:
        return program
    clock = _clock(program, latest)
    if clock is None:
        return program
    plan = program.plan
    return replace(program, plan=replace(plan, choice=replace(plan.choice, clock=clock)))


def _clock(program: Program, latest: Latest) -> Number | None:
    given = program.plan.choice.clock
    own = latest(types_of_chain(program)) if given is None else given
    waiting = [_known(level, latest) for level in program.levels if _waits(level)]
    return min((one for one in (own, *waiting) if one is not None), default=None)


def _waits(program: Program) -> bool:
    """Whether rows of a query are known later than its input."""
    return bool(program.plan.choice.deadlines) or any(map(_waits, program.levels))


def _known(program: Program, latest: Latest) -> Number | None:
    """The time up to which all rows of a query are known."""
    clock, plan = _clock(program, latest), program.plan
    if clock is None:
        return None
    type = plan.source.type_of(plan.source.order_by[0])
    windows = [plan.matching.local_windows[one.window] for one in plan.choice.deadlines]
    known = clock - max((_length(one, type) for one in windows), default=0)
    return known if type in ("FLOAT", "DOUBLE") else math.floor(known)


def _length(window: Window, type: str) -> Number:
    if type == "DATE":
        return int(window.size // MICROSECONDS_PER_DAY if window.unit != "VALUE" else window.size)
    return window.size
