"""What the arguments of `celc run` name: files, folders, patterns of names and standard input.

What can be read once only (standard input, a named pipe) is copied into a file without a name while
it is read, because a query may need its events twice. The system removes such a file with the
process, however that ends.
"""

from __future__ import annotations

import glob
import io
import os
import select
import signal
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from celc_runtime import EventWarning

from celc.cli.problems import CommandProblem, words

FORMATS = ("csv", "json", "parquet")

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_PIPE_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Origin:
    """One thing that events are read from, again and again.

    `name` is what messages call it. `size` is the number of its bytes, if that is known before.
    """

    name: str
    path: Path | None
    format: str
    compression: str | None
    tabbed: bool
    size: int | None
    spool: Spool | None = None

    @contextmanager
    def opened(self) -> Iterator[Feed]:
        """Its bytes, decompressed. What went wrong with them is raised at the end."""
        compression = self._seen() if self.spool is not None else self.compression
        with self._raw() as raw:
            if compression is None and self.spool is None:
                # The name need not tell: what is compressed is no text, whatever it is called.
                compression = _compression_of(raw.read(4))
                raw.seek(0)
            if compression is None:
                with Feed(raw, raw) as feed:
                    yield feed
                    feed.check()
                return
            # Closed before the stream below it: a thread of Arrow must never be left to do that.
            with pa.CompressedInputStream(raw, compression) as stream, Feed(stream, raw) as feed:
                feed.kind = compression
                yield feed
                feed.check()

    @contextmanager
    def seekable(self) -> Iterator[BinaryIO]:
        """Its bytes, to be read at any place."""
        if self.spool is not None:
            self._seen()
        with self._raw() as raw:
            yield raw

    def _seen(self) -> str | None:
        """The compression of what is spooled, as its first bytes show it."""
        assert self.spool is not None
        first = self.spool.starts_with(4)
        if not first:
            raise CommandProblem(f"{self.name} is empty")
        return _compression_of(first)

    def close(self) -> None:
        """Let go of what was kept of a stream that can be read once."""
        if self.spool is not None:
            self.spool.close()

    def _raw(self) -> BinaryIO:
        if self.spool is not None:
            return self.spool.reader()
        assert self.path is not None
        return self.path.open("rb")


def _compression_of(first: bytes) -> str | None:
    kinds = [kind for magic, kind in _MAGIC.items() if first.startswith(magic)]
    return kinds[0] if kinds else None


class Feed(io.RawIOBase):
    """Bytes as Arrow reads them, in threads of its own.

    An error that is raised in such a thread can end the process without a word, so it is kept for
    `check`, and to the thread it looks like the end.
    """

    def __init__(self, stream: Any, raw: BinaryIO) -> None:
        self._stream = stream
        self._raw = raw
        self._failure: OSError | None = None
        self.kind: str | None = None
        """How the bytes are compressed."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if self._failure is not None:
            return b""
        try:
            return bytes(self._stream.read(None if size is None or size < 0 else size))
        except OSError as problem:
            self._failure = problem
            return b""

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    @property
    def taken(self) -> int:
        """The bytes that were read of the file, as it is on the disk."""
        return self._raw.tell()

    def check(self) -> None:
        """Raises the error that reading has met."""
        if self._failure is None:
            return
        if self.kind is not None and self._failure.errno is None:
            raise OSError(f"it is no {self.kind} file, or a damaged one: {self._failure}")
        raise self._failure


# --- what can be read once ------------------------------------------------------------------------


class Spool:
    """A stream that can be read once, for readers who begin anew as often as they like."""

    def __init__(self, descriptor: int) -> None:
        self._source = descriptor
        self._kept = tempfile.TemporaryFile(prefix="celc-")  # noqa: SIM115
        self._length = 0
        self._ended = False
        self._lock = threading.Lock()
        self._stop = _SignalPipe.of_this_thread()

    def close(self) -> None:
        """Remove what is kept."""
        self._kept.close()
        if self._stop is not None:
            self._stop.close()

    def reader(self) -> BinaryIO:
        """A reader that begins at the beginning."""
        return _SpoolReader(self)  # type: ignore[return-value]

    def fill_all(self) -> int:
        """Keep all there is to come; returns how many bytes there are."""
        while not self._ended:
            self._fill(self._length + _PIPE_BLOCK)
        return self._length

    def starts_with(self, size: int) -> bytes:
        """The first bytes."""
        while self._length < size and not self._ended:
            self._fill(size)
        return os.pread(self._kept.fileno(), size, 0)

    def read_at(self, place: int, size: int) -> bytes:
        """Bytes from a place on: as many as are asked for, or whole lines where no more are there
        yet. No bytes: the end."""
        with self._lock:
            self._fill(place + size, place)
            return os.pread(self._kept.fileno(), min(size, self._length - place), place)

    def _fill(self, end: int, place: int | None = None) -> None:
        """Keep bytes up to an end; whole lines behind a place do where no more have come yet."""
        last = b""
        if place is not None and place < self._length:
            last = os.pread(self._kept.fileno(), 1, self._length - 1)
        while not self._ended and self._length < end:
            if last.endswith(b"\n") and not select.select([self._source], [], [], 0)[0]:
                return
            self._wait()
            last = os.read(self._source, _PIPE_BLOCK)
            self._ended = not last
            written = 0
            while written < len(last):
                written += os.pwrite(self._kept.fileno(), last[written:], self._length + written)
            self._length += len(last)

    def _wait(self) -> None:
        """Until there are bytes. A signal ends the wait, in whatever thread that is."""
        if self._stop is not None:
            ready, _, _ = select.select([self._source, self._stop.end], [], [])
            if self._stop.end in ready:
                raise InterruptedError


class _SpoolReader(io.RawIOBase):
    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place}.get(whence)
        self._place = offset + (self._spool.fill_all() if start is None else start)
        return self._place

    def readinto(self, buffer: Any) -> int:
        data = self._spool.read_at(self._place, len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


class _SignalPipe:
    """A pipe that has bytes from the moment when a signal asks the process to end.

    The main thread cannot see the signal while it waits for a thread of Arrow, and that thread
    waits for what is spooled.
    """

    def __init__(self) -> None:
        self.end, self._other = os.pipe()
        os.set_blocking(self._other, False)
        self._before = signal.set_wakeup_fd(self._other, warn_on_full_buffer=False)

    @classmethod
    def of_this_thread(cls) -> _SignalPipe | None:
        """A pipe; none where signals do not come to the thread that asks."""
        main = threading.current_thread() is threading.main_thread()
        return cls() if main else None

    def close(self) -> None:
        signal.set_wakeup_fd(self._before)
        os.close(self.end)
        os.close(self._other)


# --- what the arguments name ----------------------------------------------------------------------


def origins_of(arguments: Sequence[str], format: str | None) -> list[Origin]:
    """The origins that arguments name, in their order; those in a folder or of a pattern by name.

    `format` counts instead of the endings of names. Raises CommandProblem.
    """
    if arguments.count("-") > 1:
        raise CommandProblem("standard input (-) can be named once")
    found: list[tuple[str, Path | None]] = []
    for argument in arguments:
        if argument == "-":
            found.append(("standard input", None))
        else:
            found += [(str(path), path) for path in _paths(argument, format)]
    if len(found) == 1 and (only := found[0][1]) is not None:
        found = [(only.name, only)]
    return [_origin(name, path, format) for name, path in found]


def _paths(argument: str, format: str | None) -> list[Path]:
    path = Path(argument)
    mode = _mode(path)
    if mode is not None:
        return _in_folder(path, format) if stat.S_ISDIR(mode) else [path]
    if not glob.has_magic(argument):
        raise CommandProblem(f"{argument}: there is no such file")
    found: dict[Path, None] = {}
    for name in sorted(glob.glob(argument, recursive=True)):
        path = Path(name)
        found.update(dict.fromkeys(_in_folder(path, format, "") if path.is_dir() else [path]))
    if not found:
        raise CommandProblem(f"{argument}: no file has a name of this pattern")
    return sorted(found)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None


def _in_folder(folder: Path, format: str | None, empty: str | None = None) -> list[Path]:
    """The event files in a folder and in those inside of it, without those that are hidden.

    Other files are told of in a warning.
    """
    found: list[Path] = []
    others: list[Path] = []

    def refuse(problem: OSError) -> None:
        raise CommandProblem(f"{problem.filename}: {words(problem)}") from None

    for at, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if not name.startswith((".", "_")):
                path = Path(at, name)
                (found if format or _form(path.name)[0] else others).append(path)
    if others:
        first = min(others)
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        warnings.warn(
            f"{folder}: not read, because of the ending of the name: {first}{more}",
            EventWarning,
            stacklevel=2,
        )
    if not found and empty is None:
        raise CommandProblem(f"{folder}: there are no event files in this folder; {_ENDINGS_READ}")
    return sorted(found)


_ENDINGS_READ = (
    f"events are read from files that end in {', '.join(_ENDINGS)}, those of text also with "
    f"{' or '.join(_COMPRESSIONS)} after it"
)


def _form(name: str) -> tuple[str | None, str | None, bool]:
    """The format, the compression, and whether tabs are between fields, by a name's ending."""
    stem, ending = os.path.splitext(name.lower())
    compression = _COMPRESSIONS.get(ending)
    if compression is not None:
        ending = os.path.splitext(stem)[1]
    format = _ENDINGS.get(ending)
    if format == "parquet" and compression is not None:
        format = None
    return format, compression, ending == ".tsv"


def _origin(name: str, path: Path | None, format: str | None) -> Origin:
    by_name, compression, tabbed = _form("" if path is None else path.name)
    format = format or by_name
    if path is None:
        if format is None:
            raise CommandProblem(
                f"standard input has no ending that says its format: add --input-format "
                f"{'|'.join(FORMATS)}"
            )
        return Origin(name, None, format, None, False, None, Spool(_standard_input()))
    try:
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            pipe = not stat.S_ISREG(found.st_mode)
            descriptor = os.dup(stream.fileno()) if pipe else -1
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
    if format is None:
        raise CommandProblem(
            f"{name}: {_ENDINGS_READ}. Where the name says something else, add --input-format "
            f"{'|'.join(FORMATS)}"
        )
    if pipe:
        return Origin(name, path, format, None, tabbed, None, Spool(descriptor))
    return Origin(name, path, format, compression, tabbed, found.st_size)


def _standard_input() -> int:
    stream = sys.stdin
    try:
        if stream is None:
            raise ValueError
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        raise CommandProblem("standard input is closed") from None
