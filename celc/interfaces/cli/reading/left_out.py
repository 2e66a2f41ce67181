"""The rows of files that a run leaves out because they are damaged: which, how many, and why."""

from __future__ import annotations

import json
import warnings
from typing import IO

from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.frozen import frozen


@frozen
class Damage:
    """What a run does with damaged rows."""

    skips_bad_rows: bool = False
    """Whether rows that cannot be read are left out; else they are errors."""
    bad_rows: IO[bytes] | None = None
    """Where these rows are written, if anywhere."""
    skips_null_types: bool = False
    """Whether rows whose event type is NULL are left out; else they are errors."""


ERRORS = Damage()
"""All damage is an error."""


class LeftOut:
    """What one query left out. Events may be read more than once; what is told is of one
    reading."""

    def __init__(self, damage: Damage) -> None:
        self.damage = damage
        self._written = 0
        self.begin()

    def begin(self) -> None:
        """The events are read from the beginning."""
        self._bad = self._rows = self._without_type = 0
        self._first = ""

    def bad(self, file: str, line: int, row: bytes, why: str) -> None:
        """A row that cannot be read. It is written once, in however many readings."""
        self._bad += 1
        self._first = self._first or f"{file}, line {line:,}: {why}"
        out = self.damage.bad_rows
        if out is not None and self._bad > self._written:
            self._written = self._bad
            text = row.decode("utf-8", "backslashreplace").rstrip("\r\n")
            told = {"file": file, "line": line, "problem": why, "row": text}
            out.write(json.dumps(told, ensure_ascii=False).encode() + b"\n")

    def read(self, rows: int, without_type: int = 0) -> None:
        """Rows that were read; `without_type` of them are left out."""
        self._rows += rows
        self._without_type += without_type

    def tell(self, query: str, type_name: str) -> None:
        """Warn of what was left out for a query, once for each kind of damage."""
        if self._bad:
            warnings.warn(
                f"query {query!r}: {self._bad:,} of {self._bad + self._rows:,} rows cannot be read "
                f"and were left out (--on-bad-row). The first: {self._first}",
                EventWarning,
                stacklevel=2,
            )
        if self._without_type:
            warnings.warn(
                f"query {query!r}: {self._without_type:,} of {self._rows:,} rows have no event "
                f"type ({type_name!r} is NULL) and were left out (--on-null-type skip)",
                EventWarning,
                stacklevel=2,
            )
