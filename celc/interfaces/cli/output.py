"""The output of the command line: standard output, standard error, and files that appear whole.

A file is written beside its place under a temporary name, and gets its own name at the end. So a
command that fails or is stopped leaves the old file, and nobody reads half a file. Devices and
pipes have nothing to replace and are written directly, like standard output.

Bytes go to the system without Python's standard streams. Those would keep bytes that could not be
written, try again when the process ends, and fail once more without a good message.
"""

import codecs
import errno
import io
import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TextIO

from celc.diagnostics.source import visible_lines
from celc.interfaces.cli import signals
from celc.interfaces.cli.problems import FILE_WRONG, CommandProblem, ReadEnough, words

BUFFER = 1 << 18  # bytes that are gathered before the system writes them

_OPENED = re.compile(r"/dev/(stdin|stdout|stderr|fd/\d+)|/proc/(self|\d+)/fd/\d+")
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


class _Sink(io.RawIOBase):
    """Takes bytes until one write fails, and drops all later bytes.

    Streams above may still hold bytes for a file that cannot be written. They must get rid of them
    without another error. `failure` is the first error.
    """

    def __init__(self, put: Callable[[memoryview], int], *, terminal: bool = False) -> None:
        self._put = put
        self._terminal = terminal
        self._dead = False
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._terminal

    def give_up(self) -> None:
        self._dead = True

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view) and not self._dead:
            try:
                done += self._put(view[done : done + BUFFER])
            except OSError as problem:
                self._dead = True
                self.failure = problem
                raise
        return len(view)


@contextmanager
def _buffered(sink: _Sink, name: str, *, counts: bool = True) -> Iterator[IO[bytes]]:
    """A stream over a sink. All errors after a failed write are reported as that failure. `counts`:
    bytes that were written before another error are of use to a reader."""
    out = io.BufferedWriter(sink, BUFFER)
    try:
        try:
            yield out
        except Exception:
            if counts and sink.failure is None:
                out.flush()
            raise
        out.flush()
    except Exception:
        if sink.failure is None:
            raise
    finally:
        sink.give_up()
    if sink.failure is not None:
        raise CommandProblem(f"{name}: {words(sink.failure)}") from None


# --- standard streams -----------------------------------------------------------------------------


@contextmanager
def standard_output() -> Iterator[IO[bytes]]:
    """Standard output, for bytes. Raises CommandProblem where it is closed or cannot be written,
    ReadEnough where its reader is gone."""
    stream: TextIO | None = sys.stdout
    if stream is None:
        raise CommandProblem("standard output is closed")
    sink = _Sink(_put_to(stream), terminal=stream.isatty())
    try:
        with _buffered(sink, "standard output") as out:
            yield out
    except CommandProblem:
        if isinstance(sink.failure, BrokenPipeError):
            raise ReadEnough from None
        raise


def say(text: str) -> None:
    """Write text to standard output. Signs that its encoding lacks are escaped, and on a terminal
    also signs that change how it shows others."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    with standard_output() as out:
        text = visible_lines(text) if out.isatty() else text
        out.write(text.encode(encoding, "backslashreplace"))


def tell(text: str) -> None:
    """Write a line to standard error. Where that is closed or full, only the exit code can tell the
    problem."""
    stream: TextIO | None = sys.stderr
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    sink = _Sink(_put_to(stream))
    try:
        sink.write(f"{visible_lines(text)}\n".encode(encoding, "backslashreplace"))
    except OSError:
        return


def flush_standard_streams(code: int) -> int:
    """Write the bytes that Python's own streams still hold when a process ends; returns the exit
    code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = code or FILE_WRONG
    return code


def _put_to(stream: TextIO) -> Callable[[memoryview], int]:
    """A function that writes bytes to one of Python's streams, past the buffers where it can."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        # The program in which `main` runs has replaced the stream.
        return _put_to_object(stream)
    started = False

    def put(data: memoryview) -> int:
        nonlocal started
        if not started:
            stream.flush()
            started = True
        return _put_to_system(descriptor, data)

    return put


def _put_to_object(stream: TextIO) -> Callable[[memoryview], int]:
    buffer = getattr(stream, "buffer", None)
    if buffer is not None:

        def put_bytes(data: memoryview) -> int:
            stream.flush()
            return int(buffer.write(data))

        return put_bytes
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def put_text(data: memoryview) -> int:
        stream.write(decode(bytes(data)))
        return len(data)

    return put_text


def _put_to_system(descriptor: int, data: memoryview) -> int:
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            # The other end has made the pipe non-blocking.
            select.select([], [descriptor], [])


# --- files ----------------------------------------------------------------------------------------


def check_name(path: Path | None) -> None:
    """Refuse an output without a name; a path would take it for the folder of the process."""
    if path == Path():
        raise CommandProblem("-o names no file; name one in a folder, or leave it out")


def check_output(
    path: Path | None,
    *,
    force: bool,
    inputs: Sequence[Path],
    whose: str = "",
    ours: Callable[[Path], bool] = lambda path: False,
) -> None:
    """Refuse an output file that would destroy something, before any work is done.

    It refuses inputs, by whatever name. Without `force` it refuses any existing file that is not
    `ours`; `whose` is the writer of our files. `path` None is standard output, which the shell may
    have opened for one of the inputs. Raises CommandProblem.
    """
    if path is None:
        _check_apart("standard output", _status_of_standard_output(), inputs)
        return
    check_name(path)
    found = _status(path)
    if found is None:
        return
    if stat.S_ISDIR(found.st_mode):
        raise CommandProblem(f"{path} is a directory; name a file in it")
    _check_apart(str(path), found, inputs)
    if is_written_directly(path):
        return
    if not force and not ours(path):
        what = f"exists and was not written by {whose}" if whose else "exists"
        raise CommandProblem(f"{path} {what}; use --force to overwrite it")
    if not os.access(path, os.W_OK):
        raise CommandProblem(f"{path} must not be written: its permissions say so")


def _check_apart(name: str, found: os.stat_result | None, inputs: Sequence[Path]) -> None:
    """Refuse an output that is one of the inputs. Devices and pipes hold nothing to destroy."""
    if found is None or not stat.S_ISREG(found.st_mode):
        return
    for other in inputs:
        read = _status(other)
        if read is not None and os.path.samestat(found, read):
            raise CommandProblem(
                f"{name} is the file {other} that is read; write to another one (--force does not "
                "change this)"
            )


def _status_of_standard_output() -> os.stat_result | None:
    """None: it is closed, or the program in which `main` runs has replaced it."""
    try:
        return None if sys.stdout is None else os.fstat(sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return None


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which appears under its name once the block has ended well.

    It is then on the disk. A file that replaces another has its owner and permissions; before,
    nobody else can read it, nor what a killed process leaves. A symbolic link stays, and leads to
    the new file. Raises CommandProblem where the file cannot be written.
    """
    found = _status(path)
    if is_written_directly(path):
        with _directly(path) as out:
            yield out
        return
    target = os.path.realpath(path)
    beside = _beside(target)
    signals.unfinished[beside] = lambda: _remove(beside)
    try:
        descriptor = _created(path, beside, 0o666 if found is None else 0o600)
        try:
            sink = _Sink(lambda data: _put_to_system(descriptor, data))
            with _buffered(sink, str(path), counts=False) as out:
                yield out
            with _naming(path):
                if found is not None:
                    _pass_on(found, descriptor)
                _synced(descriptor)
        except BaseException:
            _close_after_failure(descriptor)
            raise
        with _naming(path):
            os.close(descriptor)
            with signals.uninterrupted():
                os.replace(beside, target)
    except BaseException:
        _remove(beside)
        raise
    finally:
        del signals.unfinished[beside]


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None


def is_written_directly(path: Path) -> bool:
    """Whether a path leads to a device or a pipe, or to a file that the shell has opened for us."""
    found = _status(path)
    if found is None or stat.S_ISDIR(found.st_mode):
        return False
    opened = _OPENED.fullmatch(os.path.abspath(path)) is not None
    return opened or not stat.S_ISREG(found.st_mode)


@contextmanager
def _directly(path: Path) -> Iterator[IO[bytes]]:
    with _naming(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        with _buffered(_Sink(lambda data: _put_to_system(descriptor, data)), str(path)) as out:
            yield out
    except BaseException:
        _close_after_failure(descriptor)
        raise
    with _naming(path):
        os.close(descriptor)


def _beside(target: str) -> str:
    """An unused name in the folder of the target, so that the file can be renamed."""
    folder, name = os.path.split(target)
    # A name can have 255 bytes, and a letter up to four bytes in UTF-8.
    return os.path.join(folder, f".{name[:40]}.{os.urandom(8).hex()}.part")


def _created(path: Path, beside: str, mode: int) -> int:
    try:
        return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as problem:
        reason = words(problem)
        if isinstance(problem, PermissionError):
            reason += " in its folder, where files are written before they get their names"
        raise CommandProblem(f"{path}: {reason}") from None


def _pass_on(found: os.stat_result, descriptor: int) -> None:
    """Give a file the owner, the group and the permissions of the one that it replaces. Where the
    group cannot be kept, the new group gets only the permissions of everybody."""
    mode = stat.S_IMODE(found.st_mode)
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (found.st_uid, found.st_gid):
        try:
            os.fchown(descriptor, found.st_uid, found.st_gid)
        except PermissionError:
            try:
                os.fchown(descriptor, -1, found.st_gid)
            except PermissionError:
                mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    os.fchmod(descriptor, mode)


def _synced(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in _CANNOT_SYNC:
            raise


def _close_after_failure(descriptor: int) -> None:
    """Close a file that will not be kept. Errors of closing do not matter."""
    with suppress(OSError):
        os.close(descriptor)


def _remove(beside: str) -> None:
    try:
        os.unlink(beside)
    except OSError as problem:
        if os.path.lexists(beside):
            tell(f"celc: {beside} is left over and could not be removed: {words(problem)}")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
