"""A command of celc in a process of its own, which has an end.

What a text costs is not known before it has run, and a thread cannot be stopped. So the process is
killed when its time is over. It also limits itself, where the system can: a parent that is killed
cannot, and nothing else bounds memory and what is written.
"""

import runpy
import subprocess
import sys
from collections.abc import Sequence
from tempfile import TemporaryFile
from typing import Any

from celc.editor.beside import Ended

SECONDS = 10.0
_MOST_WRITTEN = 4 << 20  # bytes, of each file and of the answer
_MOST_MEMORY = 4 << 30  # bytes that can be written, of which libraries reserve a gigabyte


def run(words: Sequence[str], seconds: float = SECONDS) -> Ended:
    """Run `celc` with these words of its command line, and stop it after this many seconds."""
    command = [sys.executable, "-m", __name__, str(seconds), *words]
    with TemporaryFile() as out, TemporaryFile() as told:
        try:
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=told,
                timeout=seconds,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return Ended("", f"stopped after {seconds:.3g} seconds: too much for a try")
        printed = _text(out)
        if len(printed) >= _MOST_WRITTEN:
            return Ended("", f"stopped: the answer has more than {_MOST_WRITTEN >> 20} MiB")
        if code == 0:
            return Ended(printed)
        return Ended(printed, _text(told).strip() or f"celc has ended with code {code}")


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read(_MOST_WRITTEN).decode(errors="replace"))


def limit(seconds: float) -> None:
    """Limit this process, where the system has limits."""
    if sys.platform == "win32":
        return
    import resource

    for what, most in (
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_FSIZE, _MOST_WRITTEN),
        (resource.RLIMIT_DATA, _MOST_MEMORY),
    ):
        _, highest = resource.getrlimit(what)
        if highest == resource.RLIM_INFINITY or most < highest:
            resource.setrlimit(what, (most, highest))


if __name__ == "__main__":
    limit(float(sys.argv[1]))
    sys.argv = ["celc", *sys.argv[2:]]
    runpy.run_module("celc", run_name="__main__")
