"""Threads of one process: how many there are to use, and calls side by side.

Kernels hold no lock of Python, and neither do Arrow's functions on columns, so threads run side by
side. Processes would have to be sent the columns, and to send the matches back.
"""

import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple, TypeAlias, TypeVar

from celc_runtime.arrow.events.digits import ALONE, Workers
from celc_runtime.plan.errors import EventWarning
from celc_runtime.values.warned import told_to, warn

_Answer = TypeVar("_Answer")

_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def threads_for(given: int | None) -> int:
    """The number of threads of a call; None: the cores that this process may use, and one inside a
    task of Spark, which has other tasks beside it. Raises ValueError for what is no number of
    threads."""
    check_threads(given)
    if given is None:
        return 1 if _is_task_of_spark() else cores()
    return given


def check_threads(given: object) -> None:
    """Raises ValueError for what is neither None nor a number of threads."""
    if given is not None and (type(given) is not int or given < 1):
        raise ValueError(f"threads must be a whole number from 1, not {given!r}")


def cores() -> int:
    """How many cores this process may use: those that it may run on, and no more than its container
    has time of."""
    has = getattr(os, "sched_getaffinity", None)
    found = (os.cpu_count() or 1) if has is None else len(has(0))
    try:
        quota, period = _LIMIT.read_text().split()
        limit = math.ceil(int(quota) / int(period))
    except (OSError, ValueError):  # there is no such limit, or it is "max"
        return found
    return max(1, min(found, limit))


def _is_task_of_spark() -> bool:
    spark = sys.modules.get("pyspark")
    return spark is not None and spark.TaskContext.get() is not None


def workers_of(threads: int) -> Workers:
    """This number of threads, which share the steps of one call."""
    return ALONE if threads == 1 else Workers(threads, lambda calls: side_by_side(calls, threads))


def side_by_side(calls: Sequence[Callable[[], _Answer]], threads: int) -> list[_Answer]:
    """The answers of calls, in their order. The first error of a call, in this order, is raised.

    This thread takes calls as well. Warnings of calls are given here, where the user's code is on
    the stack: those of the first call that has some, since one run would warn once.
    """
    found: list[tuple[_Answer, list[str]] | None] = [None] * len(calls)
    errors: dict[int, BaseException] = {}
    waiting = iter(range(len(calls)))  # one step of it is never taken twice

    def work() -> None:
        for place in waiting:
            if errors:
                return  # all calls before the one with the error have begun
            try:
                found[place] = _called(calls[place])
            except BaseException as problem:
                errors[place] = problem

    others: list[tuple[_Works, _Work]] = []
    try:
        for _ in range(1, min(threads, len(calls))):
            works, one = _waiting_thread(), _Work([work], Lock())
            one.ends.acquire()
            works.put(one)
            others.append((works, one))  # behind: nobody waits for work that was not put
        work()
        _wait(others)
    except BaseException as problem:  # the user stops it
        errors[-1] = problem
        _wait(others)
    if errors:
        raise errors[min(errors)]
    answers = [one for one in found if one is not None]
    for text in next((texts for _, texts in answers if texts), ()):
        warn(text, EventWarning)
    return [answer for answer, _ in answers]


def _called(call: Callable[[], _Answer]) -> tuple[_Answer, list[str]]:
    texts: list[str] = []
    with told_to(texts):
        return call(), texts


# --- threads that wait ----------------------------------------------------------------------------
#
# A call on a million rows has some ten steps that threads share, many of half a millisecond. A new
# thread begins after a tenth of a millisecond on an idle machine, and after one or more where other
# work is beside it: it begins on the core of the thread that makes it. It has no memory yet either,
# neither that of Arrow nor the rooms of kernels. So threads wait for the next step.

_SECONDS = 1.0  # for which a thread waits; then it ends


class _Work(NamedTuple):
    """What one thread is to do for a call. calls: has one element until somebody takes it: the
    thread, or the call that takes it back. ends: held until the thread is done with it."""

    calls: list[Callable[[], None]]
    ends: Lock


_Works: TypeAlias = "SimpleQueue[_Work]"

_waiting: list[_Works] = []  # what threads wait at, the last one that has worked at the end


def _waiting_thread() -> _Works:
    """Where a thread waits for work. Other calls can put work there before this one has ended."""
    try:
        return _waiting.pop()
    except IndexError:
        works: _Works = SimpleQueue()
        Thread(target=_serve, args=(works,), name="celc", daemon=True).start()
        return works


def _wait(others: list[tuple[_Works, _Work]]) -> None:
    """Wait until the work of threads has ended. It is taken back from those that have not begun,
    which on a busy machine can take longer than the work. If it is stopped, it can be called again.
    """
    for works, one in reversed(others):
        try:
            one.calls.pop()
        except IndexError:
            with one.ends:
                pass
        else:
            _waiting.append(works)


def _serve(works: _Works) -> None:
    while True:
        try:
            one = works.get(timeout=_SECONDS)
        except Empty:
            try:
                _waiting.remove(works)
            except ValueError:
                continue  # a call has just taken it
            return
        try:
            work = one.calls.pop()
        except IndexError:
            pass  # taken back
        else:
            work()
            del work  # with the table that it has read
            _waiting.append(works)
        one.ends.release()
        del one


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_waiting.clear)  # a child has no threads but its own
