"""One thread beside the loop of the language server, for compilations.

A compilation takes up to its deadline, and the server must answer other questions meanwhile. One
thread is enough: the interpreter runs one at a time, and most waiting work is out of date when it
begins, and is dropped. It is a daemon, so an endless compilation keeps no process alive. Rejected:
a pool of threads, because Python waits for their work when the process ends.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

from celc_runtime.plan.frozen import frozen

T = TypeVar("T")
Work = Callable[[], T]


@frozen
class Ended:
    """A command that has ended. `out` is what it printed, `told` what it told on standard error,
    and None where it did what it was asked for."""

    out: str
    told: str | None = None


class Beside(Generic[T]):
    """Does pieces of work one after another."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Work[T], asyncio.Future[T]]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def done(self, work: Work[T]) -> T:
        """The result of a piece of work, or its exception."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="celc-beside", daemon=True)
            self._thread.start()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.put((work, future))
        return await future

    def _run(self) -> None:
        while True:
            work, future = self._waiting.get()
            try:
                result = work()
            except Exception as problem:
                self._hand_on(future, problem, failed=True)
            else:
                self._hand_on(future, result, failed=False)

    def _hand_on(self, future: asyncio.Future[T], value: object, *, failed: bool) -> None:
        def set_value() -> None:
            if not future.done():  # the editor may have cancelled its question
                (future.set_exception if failed else future.set_result)(value)  # type: ignore[arg-type]

        try:
            future.get_loop().call_soon_threadsafe(set_value)
        except RuntimeError:
            if not future.get_loop().is_closed():
                raise
