"""The origins of events that `celc run` names: files, folders, patterns of names, standard input.

An origin is opened more than once: to find its format, its columns, and then its rows. A pipe and
standard input can be read only once, so their bytes are copied to a file while they are read
(`Spool`).
"""

from __future__ import annotations

import glob
import io
import itertools
import os
import stat
import sys
import warnings
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa
from celc_runtime.arrow.tables.logged_tables import why_not_plain
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.frozen import frozen

from celc.interfaces.cli.problems import CommandProblem, words
from celc.interfaces.cli.reading.delta_tables import LOG, delta_files
from celc.interfaces.cli.reading.iceberg_tables import IcebergFile, iceberg_files, metadata_of
from celc.interfaces.cli.reading.spool import Spool

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
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


@frozen
class Origin:
    """A source of events that can be read again."""

    name: str  # in messages
    path: Path | None  # None: standard input, or `data`
    format: str  # one of FORMATS
    compression: str | None  # by the ending of the name: "gzip" or "zstd"
    tabbed: bool  # whether fields of text are separated by tabs
    size: int | None  # in bytes; None: unknown before it is read
    spool: Spool | None = None  # the copy of a stream that can be read only once
    folders: tuple[tuple[str, str | None], ...] = ()
    """Columns whose value all rows share, by folders such as `day=1`: (name, value as a text)."""
    columns: frozenset[str] = frozenset()
    """Columns of the table that the file may lack; they are NULL then."""
    rows: IcebergFile | None = None
    """Reads the rows of a file of an Iceberg table: the file alone may have deleted rows, and other
    names and types."""
    data: bytes | None = None
    """The bytes themselves, if they are in no file."""

    @property
    def file(self) -> Path:
        """A path under which the operating system opens it."""
        if self.path is not None:
            return self.path
        assert self.spool is not None
        return Path(f"/dev/fd/{self.spool.descriptor}")

    @contextmanager
    def opened(self) -> Iterator[Feed]:
        """Its bytes, decompressed. An error of reading is raised when the block is left."""
        compression = self._seen() if self.spool is not None else self.compression
        with self._raw() as raw:
            if compression is None and self.spool is None:
                # The name need not tell it: compressed bytes are not text, whatever the name is.
                compression = self._compression_of(raw.read(4))
                raw.seek(0)
            if compression is None:
                with Feed(raw, raw, self.name) as feed:
                    yield feed
                    feed.check()
                return
            # Closed before the stream below it, so that a thread of Arrow never has to.
            with (
                pa.CompressedInputStream(raw, compression) as stream,
                Feed(stream, raw, self.name, compression) as feed,
            ):
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
        """The compression of a stream that can be read only once, by its first bytes."""
        assert self.spool is not None
        first = self.spool.starts_with(4)
        if not first:
            raise CommandProblem(f"{self.name} is empty")
        return self._compression_of(first)

    def _compression_of(self, first: bytes) -> str | None:
        if self.format != "parquet" and first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise CommandProblem(
                f"{self.name}: the text is UTF-16, and files are read in UTF-8: convert the file, "
                "as iconv -f UTF-16 -t UTF-8 does"
            )
        kinds = [kind for magic, kind in _MAGIC.items() if first.startswith(magic)]
        return kinds[0] if kinds else None

    def close(self) -> None:
        """Remove the copy of a stream that can be read only once."""
        if self.spool is not None:
            self.spool.close()

    def _raw(self) -> BinaryIO:
        if self.data is not None:
            return io.BytesIO(self.data)
        if self.spool is not None:
            return self.spool.reader()
        assert self.path is not None
        return self.path.open("rb")


class Feed(io.RawIOBase):
    """Bytes as Arrow reads them, in its own threads.

    An error in such a thread can end the process silently. So it is kept for `check`, and the
    thread sees the end of the bytes instead.
    """

    def __init__(self, stream: Any, raw: BinaryIO, name: str, kind: str | None = None) -> None:
        self._stream = stream
        self._raw = raw
        self._name = name
        self._kind = kind  # the compression of the file
        self._failure: OSError | None = None
        self.handed = 0
        """The number of bytes that were read so far, decompressed."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if self._failure is not None:
            return b""
        try:
            data = bytes(self._stream.read(None if size is None or size < 0 else size))
        except OSError as problem:
            self._failure = problem
            return b""
        self.handed += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    @property
    def taken(self) -> int:
        """The number of bytes that were read from the disk, compressed."""
        return self._raw.tell()

    def check(self) -> None:
        """Raises CommandProblem for the error that reading has met."""
        if self._failure is None:
            return
        told = words(self._failure)
        if self._kind is not None and self._failure.errno is None:
            told = f"it is no {self._kind} file, or a damaged one: {told}"
        raise CommandProblem(f"{self._name}: {told}")


# --- what the arguments name ----------------------------------------------------------------------


@contextmanager
def opened_origins(arguments: Sequence[str], format: str | None) -> Iterator[list[Origin]]:
    """The origins that arguments name, in order; files of a folder or a pattern are sorted by name.
    `format` overrides the endings of names. Raises CommandProblem."""
    # Closed in reverse order, because each spool restores the signal pipe of the spool before it.
    with ExitStack() as opened:
        origins = []
        for origin in _origins(arguments, format):
            opened.callback(origin.close)
            origins.append(origin)
        yield origins


_Named = tuple[Path, tuple[tuple[str, str | None], ...], frozenset[str], IcebergFile | None]
"""(a file, then `folders`, `columns` and `rows` of the origin that it becomes)."""


def _origins(arguments: Sequence[str], format: str | None) -> Iterator[Origin]:
    if arguments.count("-") > 1:
        raise CommandProblem("standard input (-) can be named once")
    found: list[tuple[str, _Named | None]] = []
    for argument in arguments:
        if argument == "-":
            found.append(("standard input", None))
        else:
            found += [(str(file[0]), file) for file in _files(argument, format)]
    if len(found) == 1 and (only := found[0][1]) is not None:
        found = [(only[0].name, only)]
    for name, file in found:
        yield _origin(name, file, format)


def _files(argument: str, format: str | None) -> list[_Named]:
    """The files that one argument names: those of a table of Delta Lake or Iceberg, a file, the
    files of a folder, or those of a pattern."""
    folder = Path(argument)
    if (folder / LOG).is_dir():
        if format not in (None, "parquet"):
            raise CommandProblem(f"{folder} is a table of Delta Lake: leave out --input-format")
        return [(one.path, one.values, one.columns, None) for one in delta_files(folder)]
    if (metadata := metadata_of(folder)) is not None:
        if format not in (None, "parquet"):
            raise CommandProblem(f"{folder} is a table of Apache Iceberg: leave out --input-format")
        return [(one.path, (), frozenset(), one) for one in iceberg_files(metadata)]
    paths = _paths(argument, format)
    if why := why_not_plain(dict.fromkeys(path.parent for path in paths)):
        raise CommandProblem(why)
    # Only what lies below the named folder, or where a pattern is open: Spark does the same.
    fixed = list(itertools.takewhile(lambda part: not glob.has_magic(part), folder.parts))
    above = len(folder.parts if folder.is_dir() else fixed)
    return [(path, _values(path.parts[above:-1]), frozenset(), None) for path in paths]


def _values(folders: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """The columns that folders give, as Hive and Spark write them."""
    pairs = [folder.partition("=") for folder in folders if "=" in folder[1:]]
    return tuple(
        (unquote(name), None if value == _NULL_FOLDER else unquote(value))
        for name, _, value in pairs
    )


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
        if _is_hidden_from(path, Path(argument)):
            continue
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
    """The event files in a folder and its subfolders, without hidden ones.

    A warning names the files that are not read. empty: None: a folder without event files is an
    error; any text: it is not, as for a folder that a pattern finds.
    """
    if why := why_not_plain([folder]):
        raise CommandProblem(why)
    found: list[Path] = []
    others: list[Path] = []

    def refuse(problem: OSError) -> None:
        raise CommandProblem(f"{problem.filename}: {words(problem)}") from None

    for at, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            if not _is_hidden(name):
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


def _is_hidden(name: str) -> bool:
    """Whether a name in a folder is skipped, as Spark skips it. `_day=1` is the folder of a
    column."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _is_hidden_from(path: Path, pattern: Path) -> bool:
    """Whether `pattern` finds `path` only because a wildcard stands for a hidden name. A pattern
    that names a hidden file itself does find it."""
    open_parts = pattern.parts
    while open_parts and not glob.has_magic(open_parts[0]):
        open_parts = open_parts[1:]
    below = path.parts[len(pattern.parts) - len(open_parts) :]
    return any(map(_is_hidden, below)) and not any(map(_is_hidden, open_parts))


_ENDINGS_READ = (
    f"events are read from files that end in {', '.join(_ENDINGS)}, those of text also with "
    f"{' or '.join(_COMPRESSIONS)} after it"
)


def _form(name: str) -> tuple[str | None, str | None, bool]:
    """(the format, the compression, whether tabs separate fields), by the ending of a name."""
    stem, ending = os.path.splitext(name.lower())
    compression = _COMPRESSIONS.get(ending)
    if compression is not None:
        ending = os.path.splitext(stem)[1]
    format = _ENDINGS.get(ending)
    if format == "parquet" and compression is not None:
        format = None
    return format, compression, ending == ".tsv"


def _origin(name: str, file: _Named | None, format: str | None) -> Origin:
    path, folders, columns, rows = file or (None, (), frozenset(), None)
    if rows is not None:
        assert path is not None
        return Origin(name, path, "parquet", None, False, rows.size, rows=rows)
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
        return Origin(name, path, format, None, tabbed, None, Spool(descriptor), folders)
    return Origin(name, path, format, compression, tabbed, found.st_size, None, folders, columns)


def _standard_input() -> int:
    stream = sys.stdin
    try:
        if stream is None:
            raise ValueError
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        raise CommandProblem("standard input is closed") from None
