"""What all runs of a query find alike, so that only the first one looks for it.

A call on a hundred rows takes a fifth of a millisecond, and to look at names and types of columns
again would be half of that. Runs of several threads share a layout: each fact is one value that is
exchanged whole.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.arrow.events.declared_types import DeclaredTypes
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program

EventType: TypeAlias = str | tuple[str, str]
"""An event type in rows: its name, or (stream, name) if a query reads both columns."""


class AsTheyAre(NamedTuple):
    """Batches of a schema that conform once some columns are taken, without a look at values."""

    schema: pa.Schema
    numbered: str | None  # the column with the rows' numbers
    places: list[int]
    served: pa.Schema  # of these columns


def as_they_are(
    events: pa.RecordBatch, found: pa.RecordBatch, numbered: str | None
) -> AsTheyAre | None:
    """What is known of batches like `events`, of which `conforming` made `found`; None: values have
    to be looked at."""
    names = events.schema.names
    # A column may also be a field of a struct, or missing (`*`).
    if not set(found.schema.names) <= set(names):
        return None
    places = [names.index(name) for name in found.schema.names]
    served = events.select(places).schema
    # Each dictionary must be looked at, because it may hold NULL.
    coded = any(pa.types.is_dictionary(type) for type in served.types)
    if coded or not served.equals(found.schema):
        return None
    return AsTheyAre(events.schema, numbered, places, served)


class TypesOfBatch(NamedTuple):
    """What was looked up for the types of a batch (`EventTypes.codes`)."""

    types: list[EventType]
    dtype: np.dtype
    of_types: np.ndarray
    known: np.ndarray


_REAL = ("FLOAT", "DOUBLE")


class Layout:
    """The columns that a plan reads, and what batches have shown of them so far."""

    def __init__(self, plan: Plan) -> None:
        source = plan.source
        self.number_column = unused_name("row", names_read(plan))
        """The column that numbers rows before some are left out."""
        self.window_attribute = plan.window_attribute
        name = plan.window_attribute
        self.window_is_real = name is not None and source.type_of(name) in _REAL
        self.local_attributes = plan.local_attributes
        real = [name for name in source.key_attributes if source.type_of(name) in _REAL]
        self.makes_keys = bool(source.chosen_keys or real)
        """Whether `with_keys` changes events."""
        self.declared_types = DeclaredTypes([type for _, type in source.declared_types])
        self.as_they_are: AsTheyAre | None = None
        self.types_of_batch: TypesOfBatch | None = None

    @classmethod
    def of(cls, program: Program) -> Layout:
        """That of a program, which keeps it."""
        found = program.kept.get("layout")
        if found is None:
            found = program.kept["layout"] = cls(program.plan)
        assert isinstance(found, Layout)
        return found
