"""Query files: which of them paths name, and their texts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from celc.diagnostics.source import Source

SUFFIX = ".cel"

SQL_SUFFIX = ".sql"
"""The ending of a file with MATCH_RECOGNIZE."""

SUFFIXES = (SUFFIX, SQL_SUFFIX)

MAX_BYTES = 4 << 20


def query_files(
    paths: Iterable[Path], suffixes: Sequence[str] = (SUFFIX,)
) -> tuple[list[Path], list[str]]:
    """The query files that paths of files and folders name, each once, and the problems of
    folders, of which files with these endings count."""
    files: dict[Path, Path] = {}
    wrong = []
    for path in paths:
        if not path.is_dir():
            files.setdefault(path.resolve(), path)
            continue
        below = sorted(
            one for suffix in suffixes for one in path.rglob(f"*{suffix}") if one.is_file()
        )
        if not below:
            ending = " or ".join(suffixes)
            wrong.append(f"{path}: there is no {ending} file in this folder")
        for one in below:
            files.setdefault(one.resolve(), one)
    return list(files.values()), wrong


def read_file(path: Path, name: str) -> Source:
    """A query file, which messages call `name`.

    Raises OSError where it cannot be read, and ValueError where it is no text or too long a one.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} is larger than {MAX_BYTES >> 20} MiB; is it a query?")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"{path} is not UTF-8 text: byte {problem.start} is 0x{data[problem.start]:02x}"
        ) from None
    return Source(name, text.removeprefix("\ufeff"))


def names_of(paths: Sequence[Path]) -> list[str]:
    """What messages call files: one alone has no folder, and several may be called alike."""
    return [path.name if len(paths) == 1 else path.as_posix() for path in paths]
