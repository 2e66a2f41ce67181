"""Work that is counted instead of timed: the same number on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called to do the work, built-in ones included.

    Each step of a generator is a call too.
    """
    calls = 0

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def steps_of(work: Callable[[], object]) -> int:
    """How many lines are run to do the work, each turn of a loop or a comprehension included."""
    steps = 0

    def step(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return step

    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(None)
    return steps


def lines_of(work: Callable[[], object], function: str) -> int:
    """How many lines of the functions of a name are run to do the work, each time they are run."""
    lines = 0

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return line

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        return line if frame.f_code.co_name == function else None

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return lines
