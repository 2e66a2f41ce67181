"""Where the order column of Parquet files lies, by the statistics of their row groups.

The footer of a Parquet file lists its row groups: how many rows each has, and the least and the
greatest value of each column. That is enough to cut a stream into time ranges. If there are many
files, only some footers are read. Then the cuts are guesses, which do no harm, because the rows
between the cuts are counted afterwards. A sample of the rows would do as well, but reads the whole
order column: a tenth to a fifth of the time of a `match` of ten million rows that was cut in two.

If there are few files, all footers are read. Then the stream is cut where row groups begin, and
nothing is counted (`group_cuts`). But positions count only rows of declared types, so this needs a
proof that there are no other rows. Each row group has a dictionary of its types, and by it
Parquet's own filter finds the row groups that may have a row with `type NOT IN (...)`. If it finds
one, rows are counted.

Spark has no function that returns these statistics. So footers are read by the class with which
Spark reads them, through its filesystems and with its access rights. Spark Connect has no way to
such a class, and takes a sample. Rejected: pyarrow on the driver, which knows neither Hadoop's
filesystems nor the credentials of the session; and to read the dictionaries one by one, which is as
slow as the count if files are nearby.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from celc_runtime.run.ranges import GRID, Number, Sample
from celc_runtime.spark.group_cuts import GroupCuts, RowGroup, group_cuts
from celc_runtime.spark.input.order_column import OrderColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEWEST = 32
"""Row groups. Where not all are read, at least this number is, evenly chosen. Each takes some calls
of Java, of a tenth of a millisecond."""
_FOR_A_RANGE = 8
"""Row groups for each range that is wanted, if that is more than `_FEWEST`."""

_MOST_FILES = 32
"""Files. With more, only some are read. A file takes several milliseconds; one on another machine
takes as long as some answers from there."""
_MOST_GROUPS = 256
"""Row groups. With more, only some are read. Each takes a millisecond."""

_MOST_TYPES = 200
"""Declared types. With more, rows are counted, and no dictionary is searched for other types: each
type takes some calls of Java."""

_FIRST_TIME = {"DATE": -25_567, "TIMESTAMP": -2_208_988_800_000_000}
"""The year 1900. Spark reads earlier values as days of another calendar, if the file was written so
(Spark 4.1, RebaseDateTime); the statistics are those of the file."""

_POINTS = 8 * GRID
"""A row group stands for some places between its ends, together with all others for this number."""

_ANNOTATIONS = {
    "tinyint": ("INTEGER(8,true)",),
    "smallint": ("INTEGER(16,true)",),
    "int": ("", "INTEGER(32,true)"),
    "bigint": ("", "INTEGER(64,true)"),
    "date": ("DATE",),
    "timestamp": ("TIMESTAMP(MICROS,true)",),
    "timestamp_ntz": ("TIMESTAMP(MICROS,false)",),
}
"""Parquet's names of the types whose values are the numbers of an order column."""

_SQL = "org.apache.spark.sql"
_PROJECT = f"{_SQL}.catalyst.plans.logical.Project"
_ATTRIBUTE = f"{_SQL}.catalyst.expressions.AttributeReference"
_OF_A_RELATION = f"{_SQL}.execution.datasources.LogicalRelation"
_OF_FILES = f"{_SQL}.execution.datasources.HadoopFsRelation"
_PARQUET = f"{_SQL}.execution.datasources.parquet.ParquetFileFormat"
"""Spark's classes. Formats over Parquet, which can leave out deleted rows, have others."""


class DeclaredTypes(NamedTuple):
    """The column of types, and the names of the types whose rows have positions."""

    column: str
    names: tuple[str, ...]
    """Empty: the name alone does not tell whether a row is of a declared type."""


class FilesTell(NamedTuple):
    """The answer of the files."""

    sample: Sample
    """The quantiles of the order column; empty if there is a reason in `unknown`."""
    unknown: str = ""
    cuts: GroupCuts | None = None
    """The cuts at row groups; None if there is a reason in `uncounted`."""
    uncounted: str = ""


def told_by_files(
    rows: DataFrame, order: OrderColumn, ranges: int, types: DeclaredTypes | None
) -> FilesTell:
    """Read the statistics of files, as many as a cut into `ranges` ranges needs.

    types: the types whose rows have positions; None: all rows have one.
    """
    nothing = Sample(0, ())
    if order.found not in _ANNOTATIONS:
        return FilesTell(nothing, f"{order.name!r} is of type {order.found}")
    jvm = getattr(rows.sparkSession, "_jvm", None)
    if jvm is None:
        return FilesTell(nothing, "over Spark Connect no statistics of files can be read")
    files, why = _files_of(rows)
    if why:
        return FilesTell(nothing, why)
    most = max(_FEWEST, _FOR_A_RANGE * ranges)
    reads_all = len(files) <= _MOST_FILES
    chosen = files if reads_all else [files[place] for place in spread(len(files), most)]
    # If only some files are read, rows are counted anyway, so nobody asks for their types.
    footers = _Footers(rows.sparkSession, jvm, order, types if reads_all else None)
    seen, why = _seen(footers, chosen, most, _MOST_GROUPS if reads_all else 0)
    if why:
        return FilesTell(nothing, why)
    groups = [group for file in seen for group in file.groups]
    found = quantiles_of(groups, order)
    sample = Sample(round(found.rows * len(files) / max(1, len(chosen))), found.grid)
    uncounted = _why_uncounted(order, seen) if reads_all else f"there are {len(files):,} files"
    if uncounted:
        return FilesTell(sample, uncounted=uncounted)
    return FilesTell(sample, cuts=group_cuts(groups, order))


def spread(count: int, most: int) -> list[int]:
    """At most `most` places of a list of this length, each in the middle of its share."""
    few = min(count, most)
    return [(2 * number + 1) * count // (2 * few) for number in range(few)]


def quantiles_of(groups: list[RowGroup], order: OrderColumn) -> Sample:
    """The quantiles of row groups, as if the values of each were spread evenly."""
    places: list[tuple[Number, float]] = []
    each = -(-_POINTS // max(1, len(groups)))
    for rows, least, greatest in groups:
        wide = greatest - least
        places += [(least + wide * place // each, rows / each) for place in range(each)]
    places.sort()
    total = sum(group.rows for group in groups)
    grid: list[Number] = []
    before = 0.0
    for value, weight in places:
        # A quantile stands for all that follow it until the next one.
        while len(grid) < GRID - 1 and (len(grid) + 1) * total <= (before + weight) * GRID:
            grid.append(value)
        before += weight
    return Sample(total, tuple(value for value in grid if order.can_cut(value)))


def _files_of(rows: DataFrame) -> tuple[list[str], str]:
    """The files (URIs), if the DataFrame has exactly their rows; else the reason why not.

    `DataFrame.inputFiles` would not do: it names a file once however often it is read.
    """
    from py4j.protocol import Py4JError

    try:
        plan: Any = rows._jdf.queryExecution().optimizedPlan()
        while _passes(plan):
            plan = plan.child()
        if not _is_of_parquet(plan):
            return [], "the DataFrame is not all rows of Parquet files, as they are"
        files = sorted(plan.relation().inputFiles())
    except Py4JError as problem:
        return [], f"Spark does not tell its files ({str(problem).splitlines()[0]})"
    return files, "" if len(set(files)) == len(files) else "a file is read more than once"


def _passes(plan: Any) -> bool:
    """Whether a part of a plan changes no row: it projects, and makes none of the columns."""
    if _class_of(plan) != _PROJECT:
        return False
    columns = plan.projectList()
    return all(_class_of(columns.apply(n)) == _ATTRIBUTE for n in range(columns.size()))


def _is_of_parquet(plan: Any) -> bool:
    return (
        _class_of(plan) == _OF_A_RELATION
        and _class_of(plan.relation()) == _OF_FILES
        and _class_of(plan.relation().fileFormat()) == _PARQUET
    )


def _class_of(value: Any) -> str:
    return str(value.getClass().getName())


class _SeenFile(NamedTuple):
    """Row groups of a file. is_whole: these are all. has_nulls: the order column may have some.
    has_others: there may be rows that have no position."""

    groups: list[RowGroup]
    is_whole: bool
    has_nulls: bool
    has_others: bool


def _why_uncounted(order: OrderColumn, seen: Sequence[_SeenFile]) -> str:
    """Why the rows before a value are not known, although all files were looked at."""
    if not all(file.is_whole for file in seen):
        return f"a file has more than {_MOST_GROUPS // len(seen)} row groups"
    if any(file.has_nulls for file in seen):
        return f"{order.name!r} may be NULL"
    if any(file.has_others for file in seen):
        return "a row group may have rows of undeclared types"
    first = _FIRST_TIME.get(order.declared)
    if first is not None and any(group.least < first for file in seen for group in file.groups):
        return f"{order.name!r} has values before the year 1900"
    return ""


def _seen(footers: _Footers, files: list[str], few: int, most: int) -> tuple[list[_SeenFile], str]:
    """Some files with all their row groups, where each has its share of `most` or fewer, else about
    `few` row groups of all files; and the reason if these do not tell where they lie."""
    from py4j.protocol import Py4JError

    seen: list[_SeenFile] = []
    name = "files"
    try:
        if not footers.can_be_read:
            return [], "this Spark has no class of Parquet's by which statistics are read"
        for name in files:
            file, why = footers.seen(name, -(-few // len(files)), most // len(files))
            if file is None:
                return [], why
            seen.append(file)
    except Py4JError as problem:  # the cluster forbids it, or the file is not there or is damaged
        return [], f"the statistics of {name} cannot be read ({str(problem).splitlines()[0]})"
    return seen, ""


class _Footers:
    """Reads the ends of Parquet files. Each name and each element of Java's is a call.

    Its methods raise Py4JError where Java does.
    """

    def __init__(
        self, spark: Any, jvm: Any, order: OrderColumn, types: DeclaredTypes | None
    ) -> None:
        self._order = order
        self._types = types
        self._jvm = jvm
        self._uri = jvm.java.net.URI
        self._path = jvm.org.apache.hadoop.fs.Path
        self._file_of = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath
        self._opened = jvm.org.apache.parquet.hadoop.ParquetFileReader.open
        self._filtered = jvm.org.apache.parquet.filter2.compat.RowGroupFilter.filterRowGroups
        self._settings = spark._jsparkSession.sessionState().newHadoopConf()
        self._options_of = jvm.org.apache.parquet.HadoopReadOptions.builder
        self._place = 0

    @property
    def can_be_read(self) -> bool:
        """Whether the classes are there; some clusters have them under other names."""
        from py4j.java_gateway import JavaPackage

        names = (self._file_of, self._opened, self._filtered, self._options_of)
        return not any(isinstance(name, JavaPackage) for name in names)

    def seen(self, name: str, few: int, most: int) -> tuple[_SeenFile | None, str]:
        """All row groups of a file, or only `few` of them if it has more than `most`, each with its
        share of all rows; None, and the reason, if they do not tell where these lie."""
        path = self._path(self._uri(name))
        file = self._file_of(path, self._settings)
        with closing(self._opened(file, self._options)) as reader:
            return self._of_reader(reader, few, most)

    @cached_property
    def _options(self) -> Any:
        """How files are opened. Without them, Parquet reads Hadoop's settings anew for each file,
        which took twice as long as the end of the file."""
        return self._options_of(self._settings).build()

    def _of_reader(self, reader: Any, few: int, most: int) -> tuple[_SeenFile | None, str]:
        blocks = reader.getRowGroups()
        count = len(blocks)
        places = spread(count, count if count <= most else few)
        is_whole = len(places) == count
        share = 0 if is_whole else reader.getRecordCount() // len(places)
        groups: list[RowGroup] = []
        has_nulls = False
        for place in places:
            block = blocks.get(place)
            rows = int(block.getRowCount()) if is_whole else share
            if not rows:
                continue
            columns = block.getColumns()
            if not groups and (why := self._why_not_of(columns)):
                return None, why
            statistics = columns.get(self._place).getStatistics()
            if not statistics.hasNonNullValue():
                return None, f"a file has no statistics of {self._order.name!r}"
            groups.append(RowGroup(rows, statistics.genericGetMin(), statistics.genericGetMax()))
            has_nulls = has_nulls or statistics.getNumNulls() != 0  # −1: it is not known
        has_others = not is_whole or self._has_others(reader, blocks)
        return _SeenFile(groups, is_whole, has_nulls, has_others), ""

    def _has_others(self, reader: Any, blocks: Any) -> bool:
        """Whether a file may have a row of an undeclared type, or one without a type."""
        if self._types is None:
            return False
        if not 0 < len(self._types.names) <= _MOST_TYPES:
            return True
        levels, others = self._filter
        return int(self._filtered(levels, others, blocks, reader).size()) > 0

    @cached_property
    def _filter(self) -> tuple[Any, Any]:
        """The filter that finds, by dictionaries, row groups with rows of undeclared types.

        Parquet also keeps a row group whose types may be NULL or are not all in its dictionary.
        """
        assert self._types is not None
        parquet, sets = self._jvm.org.apache.parquet, self._jvm.java.util
        names = sets.HashSet()
        for name in self._types.names:
            names.add(parquet.io.api.Binary.fromString(name))
        api = parquet.filter2.predicate.FilterApi
        others = api.notIn(api.binaryColumn(self._types.column), names)
        levels = sets.ArrayList()
        levels.add(parquet.filter2.compat.RowGroupFilter.FilterLevel.DICTIONARY)
        return levels, parquet.filter2.compat.FilterCompat.get(others)

    def _why_not_of(self, columns: Any) -> str:
        """Find the order column among those of a row group; the reason if it is not to be read."""
        name = self._order.name
        if not self._is_at(columns, self._place):
            # Not by the list's own iterator, which takes a hundred times as long.
            found = [place for place in range(len(columns)) if self._is_at(columns, place)]
            if not found:
                return f"a file has no column {name!r}"
            self._place = found[0]
        annotation = columns.get(self._place).getPrimitiveType().getLogicalTypeAnnotation()
        written = "" if annotation is None else str(annotation.toString())
        if written not in _ANNOTATIONS[self._order.found]:
            return f"a file has {name!r} as {written or 'a number of no type'}"
        return ""

    def _is_at(self, columns: Any, place: int) -> bool:
        if place >= len(columns):
            return False
        return bool(columns.get(place).getPath().toDotString() == self._order.name)
