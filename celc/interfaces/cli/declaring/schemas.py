"""The columns of files for queries that declare none: looked up only where a query needs them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

    @cached_property
    def schema(self) -> Any:
        """A schema that a compilation takes."""
        from celc.interfaces.cli.declaring.samples import parquet_schema, sample_of

        origins = self._origins()
        if origins[0].format == "parquet":
            return parquet_schema(origins[0])
        sample = sample_of(origins, self._form, guess=self._guess)
        return sample.with_texts(self._types).table.schema


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
