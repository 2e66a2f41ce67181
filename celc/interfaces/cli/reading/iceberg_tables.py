"""Tables of Apache Iceberg: the files that count, by the metadata of the table, and their rows.

The package `pyiceberg` reads the metadata, and the rows of each file as the table has them now:
without deleted rows, with the names and types of its columns today. Only files of this machine are
read: metadata may name any place.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from celc_runtime.plan.errors import EventWarning

from celc.interfaces.cli.problems import CommandProblem, words

_ENDING = ".metadata.json"
_HINT = "version-hint.text"


class IcebergFile:
    """The rows of one file of a table, as the table has them. `size` is the file's bytes."""

    def __init__(self, table: Any, task: Any, path: Path) -> None:
        self._table = table
        self._task = task
        self.path = path
        self.size = int(task.file.file_size_in_bytes)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return schema_to_pyarrow(self._table.schema(), include_field_ids=False)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, with these columns of the table. They are all in memory at once. Raises
        CommandProblem where they cannot be read."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        table = self._table
        with _told(self.path):
            wanted = table.schema().select(*columns)
            scan = ArrowScan(table.metadata, table.io, wanted, AlwaysTrue())
            yield from scan.to_record_batches([self._task])


def metadata_of(argument: Path) -> Path | None:
    """The metadata that a folder of a table, or the path of metadata, names; None: it names no
    table. Raises CommandProblem where a folder does not say which of its metadata counts."""
    if argument.name.endswith(_ENDING) and argument.is_file():
        return argument
    folder = argument / "metadata"
    if not folder.is_dir():
        return None
    hint = folder / _HINT
    if hint.is_file():
        try:
            version = hint.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as problem:
            raise CommandProblem(f"{hint}: {problem}") from None
        version = f"v{version}" if version.isdigit() else version
        return folder / f"{version.removesuffix(_ENDING)}{_ENDING}"
    found: dict[int, list[Path]] = {}
    for path in folder.glob(f"*{_ENDING}"):
        if number := re.match(r"v?(\d+)", path.name):
            found.setdefault(int(number[1]), []).append(path)
    if not found:
        return None
    newest = sorted(found[max(found)])
    if len(newest) > 1:
        raise CommandProblem(
            f"{argument} is a table of Apache Iceberg whose newest metadata is not known: there is "
            f"{newest[0].name} and {newest[1].name}. Name the one that the catalog has in place of "
            "the folder"
        )
    warnings.warn(
        f"{argument} is a table of Apache Iceberg without {_HINT}, so its newest metadata is read: "
        f"{newest[0].name}. If the catalog has another, name that file in place of the folder",
        EventWarning,
        stacklevel=2,
    )
    return newest[0]


def iceberg_files(metadata: Path) -> list[IcebergFile]:
    """The files of a table that count, by its metadata. Raises CommandProblem where celc cannot
    read them."""
    try:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io.pyarrow import PyArrowFileIO
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable
    except ImportError:
        raise CommandProblem(
            f"{metadata} is the metadata of a table of Apache Iceberg, which says which of its "
            "files count: to read it, install the package pyiceberg (pip install 'celc[tables]')"
        ) from None
    # A table's own properties could name any code for reading.
    io = PyArrowFileIO()
    location = str(metadata.absolute())
    with _told(metadata):
        read = FromInputFile.table_metadata(io.new_input(location))
        table = StaticTable(("table", location), read, location, io, NoopCatalog("none"))
        snapshot = table.current_snapshot()
        if snapshot is None:
            return []
        _local(snapshot.manifest_list, metadata)
        for manifest in snapshot.manifests(io):
            _local(manifest.manifest_path, metadata)
        tasks = [
            (_local(task.file.file_path, metadata), task) for task in table.scan().plan_files()
        ]
        for _, task in tasks:
            for deleted in task.delete_files:
                _local(deleted.file_path, metadata)
        files = [IcebergFile(table, task, path) for path, task in tasks]
    return sorted(files, key=lambda one: one.path)


def _local(address: str, metadata: Path) -> Path:
    """The path of a file of this machine. Raises CommandProblem for another address."""
    parts = urlsplit(address)
    path = Path(unquote(parts.path) if parts.scheme else address)
    if parts.scheme not in ("", "file") or parts.netloc or not path.is_file():
        raise CommandProblem(
            f"{metadata}: the table names {address}, which is no file of this machine: read the "
            "table with Spark and match the DataFrame, as in "
            f"match(spark.read.format('iceberg').load('{metadata.parent.parent}'))"
        )
    return path


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Whatever pyiceberg raises about a table, in words."""
    from pyiceberg.exceptions import ResolveError, ValidationError

    try:
        yield
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
    except (ValueError, NotImplementedError, ImportError, ResolveError, ValidationError) as problem:
        first = (str(problem) or type(problem).__name__).splitlines()[0]
        raise CommandProblem(
            f"{path}: pyiceberg cannot read this table: {first}. Read it with Spark and match the "
            "DataFrame"
        ) from None
