"""Where the order column of Parquet files lies, by the statistics of their row groups.

The end of a Parquet file says for each of its row groups how many rows it has, and the least and
the greatest value of each column. To cut a stream into time ranges takes no more: only where it is
cut may be guessed, for the rows between the cuts are counted. A sample in its place reads the whole
column, which was a tenth to a fifth of a `match` of ten million rows that was cut in two.

Spark has no function that tells these statistics, so the ends are read by the class that Spark
reads them with, by its filesystems and its access to them. Spark Connect has no such way, and takes
a sample. Rejected: pyarrow on the driver (knows neither Hadoop's filesystems nor the credentials of
the session); to count the rows by statistics as well (positions count rows of declared types alone,
and no statistics tell how many rows of a type there are).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from celc_runtime.spark.order_column import Number, OrderColumn
from celc_runtime.spark.probe import explained
from celc_runtime.spark.time_ranges import GRID, Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEWEST = 32
_FOR_A_RANGE = 8
"""So many row groups are looked at, and for each range that is wanted so many, evenly chosen: each
takes some calls of Java, a tenth of a millisecond each."""

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

_SCAN = re.compile(
    r"FileScan parquet .*DataFilters: \[\], Format: Parquet, .*PartitionFilters: \[\], "
)
_PASSING = re.compile(r"ColumnarToRow$|Project \[[^()]*\]$")
"""Operators that change no row; a projection without calls and without new names."""


class RowGroup(NamedTuple):
    """How many rows there are, and the least and the greatest value of the order column."""

    rows: int
    least: Number
    greatest: Number


def sampled_by_files(rows: DataFrame, order: OrderColumn, ranges: int) -> tuple[Sample, str]:
    """The quantiles of an order column by the statistics of files, fine enough for so many ranges,
    and the reason if there are none: the sample is then empty."""
    nothing = Sample(0, ())
    if order.found not in _ANNOTATIONS:
        return nothing, f"{order.name!r} is of type {order.found}"
    jvm = getattr(rows.sparkSession, "_jvm", None)
    if jvm is None:
        return nothing, "over Spark Connect no statistics of files can be read"
    if not _is_all_of_files(rows):
        return nothing, "the DataFrame is not all rows of Parquet files, as they are"
    files = sorted(rows.inputFiles())
    most = max(_FEWEST, _FOR_A_RANGE * ranges)
    chosen = [files[place] for place in spread(len(files), most)]
    groups, why = _row_groups(rows.sparkSession, jvm, order, chosen, most)
    if why:
        return nothing, why
    found = quantiles_of(groups, order)
    return Sample(round(found.rows * len(files) / max(1, len(chosen))), found.grid), ""


def spread(count: int, most: int) -> list[int]:
    """At most so many places of a list, each in the middle of its share."""
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


def _is_all_of_files(rows: DataFrame) -> bool:
    """Whether Spark reads each row of Parquet files, and makes none of the columns itself."""
    lines = explained(rows).partition("== Physical Plan ==")[2].splitlines()
    operators = [re.sub(r"^[\s:+|-]*(\*\(\d+\) )?", "", line).strip() for line in lines]
    *above, scan = [operator for operator in operators if operator] or [""]
    return (
        _SCAN.match(scan) is not None
        and all(map(_PASSING.match, above))
        and not any(" AS " in operator for operator in above)
    )


def _row_groups(
    spark: Any, jvm: Any, order: OrderColumn, files: list[str], most: int
) -> tuple[list[RowGroup], str]:
    """About so many row groups of some files, and the reason if these do not tell where they
    lie."""
    from py4j.protocol import Py4JError

    groups: list[RowGroup] = []
    name = "files"
    try:
        footers = _Footers(spark, jvm, order)
        if not footers.can_be_read:
            return [], "this Spark has no class of Parquet's by which statistics are read"
        for name in files:
            of_file, why = footers.row_groups(name, -(-most // len(files)))
            if why:
                return [], why
            groups += of_file
    except Py4JError as problem:  # the cluster forbids it, or the file is not there or is damaged
        return [], f"the statistics of {name} cannot be read ({str(problem).splitlines()[0]})"
    return groups, ""


class _Footers:
    """Reads the ends of Parquet files. Each name and each element of Java's is a call.

    Its methods raise Py4JError where Java does.
    """

    def __init__(self, spark: Any, jvm: Any, order: OrderColumn) -> None:
        self._order = order
        self._path = jvm.org.apache.hadoop.fs.Path
        self._file_of = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath
        self._opened = jvm.org.apache.parquet.hadoop.ParquetFileReader.open
        self._settings = spark._jsparkSession.sessionState().newHadoopConf()
        self._place = 0

    @property
    def can_be_read(self) -> bool:
        """Whether the classes are there; some clusters have them under other names."""
        from py4j.java_gateway import JavaPackage

        return not any(isinstance(name, JavaPackage) for name in (self._file_of, self._opened))

    def row_groups(self, name: str, most: int) -> tuple[list[RowGroup], str]:
        """At most so many row groups of a file, each with its share of all rows, and the reason if
        they do not tell where these lie."""
        reader = self._opened(self._file_of(self._path(name), self._settings))
        try:
            return self._of_reader(reader, most)
        finally:
            reader.close()

    def _of_reader(self, reader: Any, most: int) -> tuple[list[RowGroup], str]:
        order, rows = self._order, reader.getRecordCount()
        blocks = reader.getFooter().getBlocks()
        places = spread(len(blocks), most)
        groups = []
        for number, place in enumerate(places):
            columns = blocks[place].getColumns()
            if number == 0 and (why := self._why_not_of(columns)):
                return [], why
            statistics = columns[self._place].getStatistics()
            if not statistics.hasNonNullValue():
                return [], f"a file has no statistics of {order.name!r}"
            share = rows // len(places)
            groups.append(RowGroup(share, statistics.genericGetMin(), statistics.genericGetMax()))
        return groups, ""

    def _why_not_of(self, columns: Any) -> str:
        """Find the order column among those of a row group; the reason if it is not to be read."""
        name = self._order.name
        if not self._is_at(columns, self._place):
            # Not by the list's own iterator, which takes a hundred times as long.
            found = [place for place in range(len(columns)) if self._is_at(columns, place)]
            if not found:
                return f"a file has no column {name!r}"
            self._place = found[0]
        annotation = columns[self._place].getPrimitiveType().getLogicalTypeAnnotation()
        written = "" if annotation is None else str(annotation.toString())
        if written not in _ANNOTATIONS[self._order.found]:
            return f"a file has {name!r} as {written or 'a number of no type'}"
        return ""

    def _is_at(self, columns: Any, place: int) -> bool:
        if place >= len(columns):
            return False
        return bool(columns[place].getPath().toDotString() == self._order.name)
