"""Times in files without a type for them: CSV and JSON.

Times are first parsed as texts, because Arrow takes either times with a zone or times without one,
and a file may have both. Parts of a second beyond microseconds are an error in texts and are cut
off in numbers.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.plan.frozen import frozen

from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.reading.text_rows import RawColumns, refuse_misread

EPOCH_UNITS = {
    "s": Decimal(1_000_000),
    "ms": Decimal(1_000),
    "us": Decimal(1),
    "ns": Decimal("0.001"),
}
"""Microseconds in each unit of times since 1970."""

_NUMBER = pa.decimal128(28, 9)
_TIME = pa.timestamp("us", "UTC")
_LOCAL = pa.timestamp("us")
_PLAIN = re.compile(r"(%[YmdHMS]|[^%])*")
"""Formats that Arrow writes and reads exactly as Python does."""

_OF_DAYS = re.compile(r"(%[YymdbBaAjUWuGV%]|[^%])*")
_NO_INSTANT = re.compile(r"timezone '([^']*)': (\S+ [^ .]+)\S* is (ambiguous|in a gap)")
_LAST = 253_402_300_800_000_000
_FIRST = -62_135_596_800_000_000


@frozen
class TimeForm:
    """The form of times in files."""

    format: str | None = None
    """A format of strptime, a unit of time since 1970, or None for ISO 8601."""
    zone: str = "UTC"  # the zone of times without one

    def check(self) -> None:
        """Raises CommandProblem for an unknown zone and for a wrong format."""
        try:
            self._in_zone(pa.array([0], pa.timestamp("us")))
        except pa.ArrowInvalid:
            raise CommandProblem(
                f"--time-zone {self.zone}: there is no such time zone; write it as in Europe/Berlin"
            ) from None
        if self.format is None or self.of_numbers:
            return
        now = datetime(2026, 7, 1, 12, 30, 45, tzinfo=UTC)
        try:
            datetime.strptime(now.strftime(self.format), self.format)
            fine = "%" in self.format
        except ValueError:
            fine = False
        if not fine:
            raise CommandProblem(
                f"--time-format {self.format}: this is no format of times; write it as in "
                f"'%d/%m/%Y %H:%M:%S', or one of {', '.join(EPOCH_UNITS)} for numbers"
            )

    @property
    def of_numbers(self) -> bool:
        """Whether times are numbers of a unit since 1970."""
        return self.format in EPOCH_UNITS

    def readable(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        """The types for the parser: texts or numbers for times, none for columns of any type."""
        return {
            field.name: self._raw_type(field.type)
            for field in schema
            if not pa.types.is_null(field.type)
        }

    def raw_columns(self, schema: pa.Schema) -> RawColumns:
        """The columns that `readable` gives other types than they are declared in."""
        durations = (field.name for field in schema if pa.types.is_duration(field.type))
        times = (field.name for field in schema if pa.types.is_timestamp(field.type))
        return RawColumns(tuple(durations), tuple(times))

    def _raw_type(self, type: pa.DataType) -> pa.DataType:
        if pa.types.is_timestamp(type) and self.of_numbers:
            return _NUMBER
        if pa.types.is_duration(type):
            return pa.int64()
        if pa.types.is_list(type):
            return pa.list_(self._raw_type(type.value_type))
        if pa.types.is_struct(type):
            return pa.struct([field.with_type(self._raw_type(field.type)) for field in type])
        return pa.string() if pa.types.is_temporal(type) else type

    def zoned(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """The batch with times of columns without a zone taken as those of this one."""
        if self.zone == "UTC":
            return batch
        for index, field in enumerate(batch.schema):
            if not pa.types.is_timestamp(field.type) or field.type.tz is not None:
                continue
            known = schema.get_field_index(field.name)
            if known >= 0 and schema.field(known).type == _TIME:
                try:
                    column = self._in_zone(batch.column(index))
                except pa.ArrowInvalid as problem:
                    raise _of_column(field.name, problem) from None
                batch = batch.set_column(index, field.name, column)
        return batch

    def _in_zone(self, local: pa.Array) -> pa.Array:
        instants = pc.assume_timezone(local, self.zone)
        return instants.cast(pa.timestamp(local.type.unit, "UTC"))

    def read(self, column: pa.Array, type: pa.DataType) -> pa.Array:
        """A column of `readable` with times or durations, also inside others, in its type."""
        if column.type == type:
            return column
        is_null = column.is_null() if column.null_count else None
        if pa.types.is_list(type):
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
            offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
            values = self.read(column.flatten(), type.value_type)
            return pa.ListArray.from_arrays(offsets, values, type, mask=is_null)
        if pa.types.is_struct(type):
            parts = [self.read(pc.struct_field(column, [one.name]), one.type) for one in type]
            return pa.StructArray.from_arrays(parts, fields=list(type), mask=is_null)
        if pa.types.is_duration(type):
            return column.cast(type)
        if not pa.types.is_timestamp(type):
            return self.days(column)
        return self.local_times(column) if type.tz is None else self.times(column)

    def times(self, column: pa.Array) -> pa.Array:
        """Texts or numbers as instants."""
        if self.of_numbers:
            return self._counted(column)
        if self.format is not None:
            return self._in_format(column)
        zoned = pc.match_substring_regex(column, r"(Z|[+-]\d\d(:?\d\d)?)$")
        dated = pc.match_substring_regex(column, r"^\d{4}-\d\d-\d\d$")
        plain = pc.or_(pc.invert(zoned), dated)
        try:
            local = pc.if_else(plain, column, None).cast(pa.timestamp("us"))
            instants = pc.if_else(plain, None, column).cast(_TIME)
        except pa.ArrowInvalid as problem:
            raise _not_of_form(problem, "TIMESTAMP", "2026-07-01 12:00:00") from None
        return pc.coalesce(instants, self._in_zone(local))

    def local_times(self, column: pa.Array) -> pa.Array:
        """Texts or numbers as times without a zone, which `zone` does not move."""
        if self.of_numbers:
            return self._counted(column).cast(_LOCAL)
        if self.format is None:
            try:
                return column.cast(_LOCAL)
            except pa.ArrowInvalid as problem:
                raise _not_of_form(problem, "TIMESTAMP_NTZ", "2026-07-01 12:00:00") from None
        form = self.format
        read = [None if text is None else _parsed(text, form) for text in column.to_pylist()]
        zoned = next((one for one in read if one is not None and one.tzinfo is not None), None)
        if zoned is not None:
            raise pa.ArrowInvalid(
                f"{zoned.strftime(form)!r} names a zone, and a TIMESTAMP_NTZ has none: declare "
                "the attribute as TIMESTAMP"
            )
        return pa.array(read, _LOCAL)

    def days(self, texts: pa.Array) -> pa.Array:
        """Texts as days."""
        format = self.format
        if format is None or self.of_numbers or not _OF_DAYS.fullmatch(format):
            try:
                return texts.cast(pa.date32())
            except pa.ArrowInvalid as problem:
                raise _not_of_form(problem, "DATE", "2026-07-01") from None
        read = [None if text is None else _parsed(text, format) for text in texts.to_pylist()]
        return pa.array([None if one is None else one.date() for one in read], pa.date32())

    def _counted(self, numbers: pa.Array) -> pa.Array:
        assert self.format is not None
        factor = EPOCH_UNITS[self.format]
        digits = 7 if factor >= 1 else 4
        scale = 0 if factor >= 1 else 3
        micros = pc.multiply(numbers, pa.scalar(factor, pa.decimal128(digits, scale)))
        inside = pc.and_(
            pc.greater_equal(micros, pa.scalar(Decimal(_FIRST))),
            pc.less(micros, pa.scalar(Decimal(_LAST))),
        )
        if not pc.all(inside, min_count=0).as_py():
            place = pc.index(inside, False).as_py()
            value = numbers[place].as_py().normalize()
            raise pa.ArrowInvalid(
                f"{value:f} {self.format} since 1970 is no time of the years 1 to 9999; is the "
                "unit of --time-format right?"
            )
        return pc.floor(micros).cast(pa.int64()).cast(_TIME)

    def _in_format(self, texts: pa.Array) -> pa.Array:
        assert self.format is not None
        if _PLAIN.fullmatch(self.format):
            times = pc.strptime(texts, format=self.format, unit="s", error_is_null=True)
            exact = pc.equal(pc.strftime(times, format=self.format), texts)
            if pc.all(exact.filter(texts.is_valid()).fill_null(False), min_count=0).as_py():
                return self._in_zone(times.cast(pa.timestamp("us")))
        read = [None if one is None else _parsed(one, self.format) for one in texts.to_pylist()]
        aware = [None if one is None or one.tzinfo is None else one for one in read]
        naive = [None if one is None or one.tzinfo is not None else one for one in read]
        return pc.coalesce(
            pa.array(aware, _TIME), self._in_zone(pa.array(naive, pa.timestamp("us")))
        )


def with_times(batch: pa.RecordBatch, schema: pa.Schema, form: TimeForm) -> pa.RecordBatch:
    """The batch with times and durations in the columns that `schema` declares so. Texts are read
    as times, and numbers as the microseconds of durations. DECIMALs are as they should be."""
    for field in schema:
        if pa.types.is_decimal(field.type) and field.name in batch.schema.names:
            refuse_misread(field.name, batch.column(field.name))
        if _has_times(field.type) and field.name in batch.schema.names:
            index = batch.schema.get_field_index(field.name)
            try:
                column = form.read(batch.column(index), field.type)
            except pa.ArrowInvalid as problem:
                raise _of_column(field.name, problem) from None
            batch = batch.set_column(index, field, column)
    return batch


def _has_times(type: pa.DataType) -> bool:
    inside = [type.field(place).type for place in range(type.num_fields)]
    return pa.types.is_temporal(type) or any(map(_has_times, inside))


def with_durations(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch, with whole numbers as microseconds in the columns that `schema` declares as
    durations. Parquet has no type for durations, and Spark writes such numbers."""
    for index, name in enumerate(batch.schema.names):
        known = schema.get_field_index(name)
        if known >= 0 and pa.types.is_duration(schema.field(known).type):
            column = batch.column(index)
            if pa.types.is_int64(column.type):
                batch = batch.set_column(index, name, column.cast(schema.field(known).type))
    return batch


def _parsed(text: str, format: str) -> datetime:
    try:
        return datetime.strptime(text, format)
    except ValueError:
        raise pa.ArrowInvalid(f"{text!r} is no time of the form {format}") from None


def _not_of_form(problem: pa.ArrowInvalid, type: str, example: str) -> pa.ArrowInvalid:
    """The problem of a text that is not a time of ISO 8601, with a hint how to name another
    form."""
    value = re.search(r"'(.*)' as a scalar", str(problem), re.DOTALL)
    text = f"{value[1]!r} is no" if value else "a text is no"
    return pa.ArrowInvalid(
        f"{text} {type} of ISO 8601, as {example}; name another form with --time-format"
    )


def _of_column(name: str, problem: pa.ArrowInvalid) -> pa.ArrowInvalid:
    first = str(problem).splitlines()[0]
    if found := _NO_INSTANT.search(first):
        zone, time, why = found.groups()
        many = "twice" if why == "ambiguous" else "never"
        first = (
            f"{time} was {many} shown by clocks in {zone}: write times with their zones, as in "
            "2026-10-25T02:30:00+01:00"
        )
    return pa.ArrowInvalid(f"column {name!r}: {first}")
