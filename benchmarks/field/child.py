"""An engine in a process of its own, which is asked by lines of text.

The process writes one line when it is ready, and answers each line by one line. It ends when its
input ends.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress


class Child:
    """The process of an engine, in a process group of its own.

    Raises RuntimeError for an answer that begins with "error", and if the process has ended.
    """

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.greeting = self._line(command[0], None)

    def ask(self, line: str, most: float | None = None) -> str:
        """The answer to a line.

        Raises TimeoutError if there is none after `most` seconds, and ends the process and those
        that it has started.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # `_line` says that the process has ended
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        return self._line(line, most)

    def _line(self, asked: str, most: float | None) -> str:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], most)[0]:
            self.kill()
            raise TimeoutError(f"{asked}: no answer in {most:g} seconds")
        answer = self._process.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"{asked}: the process ended with code {self._process.wait()}")
        if answer.startswith("error"):
            raise RuntimeError(f"{asked}: {answer}")
        return answer

    def kill(self) -> None:
        """End the process at once, with those that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the process; one that does not end by itself in twenty seconds is stopped."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process.stdout.close()
