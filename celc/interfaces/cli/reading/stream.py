"""Several event files as one stream: one after another, each checked by itself."""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from celc_runtime.arrow.arrays import plain_batch
from celc_runtime.arrow.events.row_names import row_named_in

from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.reading.events import EventFile, Form
from celc.interfaces.cli.reading.left_out import ERRORS, Damage, LeftOut
from celc.interfaces.cli.reading.origins import Origin
from celc.interfaces.cli.reading.wanted import Wanted

Progress = Callable[[int, int], None]
"""A function that takes the bytes and the rows read so far."""


class EventStream:
    """The events of origins, in their order. They can be read again. The other methods answer for
    all events that were read so far."""

    def __init__(
        self,
        origins: Sequence[Origin],
        wanted: Wanted,
        form: Form,
        damage: Damage = ERRORS,
    ) -> None:
        self._left_out = LeftOut(damage)
        self._files = [EventFile(origin, wanted, form, self._left_out) for origin in origins]
        self._wanted = wanted
        self._starts: list[int] = []
        """The number of rows before each file that was begun."""

    @property
    def size(self) -> int | None:
        """The bytes of all files; None: some are unknown before they are read."""
        sizes = [file.origin.size for file in self._files]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def batches(self, progress: Progress | None = None) -> Iterator[pa.RecordBatch]:
        """The events; raises CommandProblem, which names the file."""
        types: dict[str, tuple[pa.DataType, str]] = {}
        typed: tuple[bool, str] | None = None
        rows = bytes_before = done = 0
        self._left_out.begin()

        def told(count: int) -> None:
            nonlocal done
            done = bytes_before + count

        for number, file in enumerate(self._files):
            self._starts[number:] = [rows]
            for batch in file.batches(told):
                self._check_types(batch, file.name, types)
                has = self._wanted.type_name in batch.schema.names
                typed = typed or (has, file.name)
                if has != typed[0]:
                    names = (file.name, typed[1]) if has else (typed[1], file.name)
                    raise self._typed_in_part(*names)
                rows += len(batch)
                if progress is not None:
                    progress(done, rows)
                yield batch
            bytes_before += file.origin.size or 0

    def _typed_in_part(self, file: str, other: str) -> CommandProblem:
        return CommandProblem(
            f"{other} does not say the event type of its rows in {self._wanted.type_name!r}, and "
            f"{file} does: say it in all files or in none"
        )

    def _check_types(
        self, batch: pa.RecordBatch, file: str, types: dict[str, tuple[pa.DataType, str]]
    ) -> None:
        """Columns whose type the query leaves open must have one type in all files."""
        for field in self._wanted.schema:
            if not pa.types.is_null(field.type) or field.name not in batch.schema.names:
                continue
            type = plain_batch(batch.slice(0, 0).select([field.name])).schema.field(0).type
            if pa.types.is_null(type):
                continue
            first, where = types.setdefault(field.name, (type, file))
            if first != type:
                raise CommandProblem(
                    f"{file}: column {field.name!r} is {type}, and in {where} it is {first}: give "
                    "it one type in all files"
                )

    def tell_left_out(self) -> None:
        """Warn of damaged rows that were left out."""
        self._left_out.tell(self._wanted.query, self._wanted.type_name)

    def refuse_misspelt(self) -> None:
        """Raises CommandProblem where no row of a file has an attribute, but a key of that file is
        like it."""
        for file in self._files:
            file.refuse_misspelt()

    def lacking(self) -> list[str]:
        """The wanted names that no row of any file had, although events declare them."""
        lacking = dict.fromkeys(name for file in self._files for name in file.lacking())
        return [name for name in lacking if not any(file.has(name) for file in self._files)]

    def words_on(self, lacking: list[str]) -> str:
        """The message on names that no row had."""
        first, more = self._files[0].name, len(self._files) - 1
        name = f"{first} and {more:,} more file{'s' if more > 1 else ''}" if more else first
        return self._wanted.words_on(name, lacking)

    def placed(self, problem: str) -> str:
        """A problem with events, after its file and the place in it if the problem names a row, or
        after the file that has a column of a wrong type."""
        row = row_named_in(problem)
        if row is None:
            found = next((file.name for file in self._files if file.misfits), None)
            return problem if found is None else f"{found}: {problem}"
        starts = [start for start in self._starts if start <= row]
        if not starts:
            return problem
        file = self._files[len(starts) - 1]
        return f"{file.place_of(row - starts[-1])}: {problem}"
