"""Tables of Delta Lake: the files that count, by the table's log, and the values of their folders.

The package `deltalake` reads the log. Rows that were deleted or replaced by a rewrite are in files
that no longer count. A table whose files have to be read in another way than as plain Parquet
(deletion vectors, renamed columns) is refused: its rows would be wrong.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from celc_runtime.plan.frozen import frozen

from celc.interfaces.cli.problems import CommandProblem

LOG = "_delta_log"

_FEATURES = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""What a reader must know, and changes nothing in the files."""


@frozen
class DeltaFile:
    """A file of the table."""

    path: Path
    values: tuple[tuple[str, str | None], ...]
    """The columns that its folder gives it, as texts."""
    columns: frozenset[str]
    """The columns of the table; where the file has none of a name, it is NULL."""


def delta_files(folder: Path) -> list[DeltaFile]:
    """The files of the newest version of a table. Raises CommandProblem where celc cannot read
    them."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise CommandProblem(
            f"{folder} is a table of Delta Lake, whose log ({LOG}) says which of its files count: "
            "to read it, install the package deltalake (pip install 'celc[tables]')"
        ) from None
    try:
        table = DeltaTable(folder)
        protocol, configuration = table.protocol(), table.metadata().configuration
        features = set(protocol.reader_features or ()) - _FEATURES
        if configuration.get("delta.columnMapping.mode", "none") != "none":
            features.add("columnMapping")
        if features:
            raise CommandProblem(
                f"{folder} is a table of Delta Lake whose files are not read as they are "
                f"({', '.join(sorted(features))}), which celc cannot do: read it with Spark and "
                f"match the DataFrame, as in match(spark.read.format('delta').load('{folder}'))"
            )
        actions = pa.table(table.get_add_actions(flatten=True))
        columns = frozenset(field.name for field in table.schema().fields)
    except (DeltaError, OSError) as problem:
        raise CommandProblem(f"{folder}: {str(problem).splitlines()[0]}") from None
    prefix = "partition."
    names = [name for name in actions.column_names if name.startswith(prefix)]
    texts = {name.removeprefix(prefix): actions.column(name).cast(pa.string()) for name in names}
    found = [
        DeltaFile(
            folder / unquote(path.as_py()),
            tuple((name, column[row].as_py()) for name, column in texts.items()),
            columns,
        )
        for row, path in enumerate(actions.column("path"))
    ]
    return sorted(found, key=lambda file: file.path)
