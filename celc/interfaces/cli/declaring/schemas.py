"""The columns of files for queries that declare none: looked up only where a query needs them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celc.diagnostics.errors import CelError
from celc.diagnostics.messages.wording import quote
from celc.interfaces.cli.output import tell
from celc.interfaces.cli.problems import CommandProblem, RowProblem

if TYPE_CHECKING:
    from celc.driver.pipeline import Compilation
    from celc.interfaces.cli.reading.events import Form
    from celc.interfaces.cli.reading.origins import Origin


class SchemaOfFiles:
    """The columns of files, which are found when they are asked for: those of the first one, if it
    has types, else those that the first rows show. `types` is the column of the event types, by
    default `type`. `guess`: see `sample_of`."""

    def __init__(
        self,
        origins: Callable[[], Sequence[Origin]],
        form: Form,
        types: str | None,
        *,
        guess: bool = False,
    ) -> None:
        self._origins = origins
        self._form = form
        self._types = types or "type"
        self._guess = guess
        self.of_sample: str | None = None
        """The rows that show the columns, in words, where these are not all rows and where the
        columns were asked for."""
        self.of_objects = False  # whether later rows may have other columns

    @cached_property
    def schema(self) -> Any:
        """A schema that a compilation takes."""
        from celc.interfaces.cli.declaring.samples import sample_of, typed_columns

        origins = self._origins()
        if not origins:
            raise CommandProblem("there are no files to read, so nothing gives the columns")
        if origins[0].format == "parquet":
            return typed_columns(origins, self._form, self._types)
        sample = sample_of(origins, self._form, guess=self._guess)
        if not sample.is_whole:
            self.of_sample, self.of_objects = sample.rows, origins[0].format == "json"
        return sample.with_texts(self._types).table.schema

    def init(self, files: Sequence[str], table: str | None = None) -> str:
        """The command that writes the declaration of files."""
        words = ["celc", "init", *files]
        words += [] if self._types == "type" else ["--type-column", self._types]
        return shlex.join(words if table is None else [*words, "--name", table])


@contextmanager
def told_of_sample(
    schema: SchemaOfFiles, compilation: Compilation | None, files: Sequence[str]
) -> Iterator[None]:
    """Errors inside tell that the columns of `files` are those of their first rows, where a query
    has been compiled with these; without `compilation`, it is being compiled."""
    try:
        yield
    except CelError:
        if schema.of_sample is not None and schema.of_objects:
            tell(
                f"celc: without a declaration the attributes are those of {schema.of_sample}. If "
                f"only later rows have others, declare them: {schema.init(files)} writes a "
                "declaration"
            )
        raise
    except RowProblem as problem:
        tables = () if compilation is None else _undeclared(compilation)
        if schema.of_sample is None or not tables:
            raise
        raise CommandProblem(
            f"{problem}. No declaration gives the types of {quote(tables[0])}, so they are those "
            f"that {schema.of_sample} show. Declare it with another type: "
            f"{schema.init(files, tables[0])} writes CREATE STREAM"
        ) from None


def _undeclared(compilation: Compilation) -> tuple[str, ...]:
    """The tables that queries read and no file declares."""
    found = {
        stream.name: None
        for file in compilation.files
        for one in file.queries
        for stream in one.query.streams
        if stream.name not in one.query.reads
        and stream.name not in {declared.name.text for declared in file.tree.streams}
    }
    return tuple(found)


def schema_of(arguments: argparse.Namespace) -> SchemaOfFiles | None:
    """The columns of the file that `--schema` names; None without it."""
    path: Path | None = getattr(arguments, "schema", None)
    if path is None:
        return None

    def origins() -> Sequence[Origin]:
        from celc.interfaces.cli.reading.origins import opened_origins

        with opened_origins([str(path)], None) as found:
            return found

    from celc.interfaces.cli.reading.events import Form

    return SchemaOfFiles(origins, Form(), arguments.type_column, guess=True)
