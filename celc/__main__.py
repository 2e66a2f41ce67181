"""`python -m celc`, and the command `celc`: a process around the command line. The process also
handles signals while it still imports, and ends while threads of Arrow may be reading ahead."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn


class _WithoutPandas:
    """Finds no pandas, as where it is not installed.

    Pyarrow imports it with its first value, so as to know frames. No command has one, but those
    that use Spark, and pandas takes longer to import than all of celc.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("the command line has no frames", name=fullname)


def _stopped_early(number: int, frame: FrameType | None) -> None:
    word = b"interrupted" if number == signal.SIGINT else b"terminated"
    try:
        os.write(2, b"celc: " + word + b"\n")
    finally:
        os._exit(128 + number)


def process() -> NoReturn:
    """Run the command line with the arguments of the process, and end it with the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stopped_early)
    if "--spark" not in sys.argv:
        sys.meta_path.insert(0, _WithoutPandas())
    # NumPy's library of linear algebra starts threads when it is imported, which turn in circles
    # for a time (0.07 s of CPU on two cores). No command multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from celc.interfaces.cli import main
    from celc.interfaces.cli.output import flush_standard_streams

    try:
        code = main()
    except SystemExit as end:  # a wrong command line, --help and --version
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 70
    code = flush_standard_streams(code)
    # Not sys.exit: a thread that reads ahead may call Python while it shuts down, and that aborts
    # the process.
    os._exit(code)


if __name__ == "__main__":
    process()
