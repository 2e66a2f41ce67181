"""Event types that no stream of a query declares: their rows are left out, with a warning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.plan.plan import Plan

_MOST_KEPT = 1000  # names that are counted one by one: a wrong column of types may hold many

_MOST_SHOWN = 8


class Undeclared:
    """The rows of undeclared types in a run, by the names of the types."""

    rows = 0
    """The number of rows left out."""

    counts = True
    """Whether the rows of the next batches count for the warning."""

    total = 0
    """The number of rows in the warning."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, types: pa.Array, streams: pa.Array | None, known: np.ndarray) -> None:
        """Count the rows of a batch that are not `known`; `streams`, if they matter as well."""
        others = pa.array(~known)
        self.rows += int(np.count_nonzero(~known))
        if not self.counts:
            return
        names = types.filter(others)
        if streams is not None:
            texts = [column.cast(pa.string()) for column in (streams.filter(others), names)]
            names = pc.binary_join_element_wise(*texts, ">")
        self.total += len(names)
        counted = names.value_counts()
        self._add(
            zip(
                counted.field("values").to_pylist(),
                counted.field("counts").to_pylist(),
                strict=True,
            )
        )

    def add_part(self, later: Undeclared) -> None:
        """Count the rows of the run over the next part of a table."""
        self.rows += later.rows
        self.total += later.total
        self._add(later._counts.items())

    def _add(self, counted: Iterable[tuple[str, int]]) -> None:
        for name, count in counted:
            if name in self._counts or len(self._counts) < _MOST_KEPT:
                self._counts[name] = self._counts.get(name, 0) + count

    def words(self, declared: Sequence[str]) -> str:
        """The names with their numbers of rows, the most frequent first, each with a similar
        declared name."""
        import difflib

        by_folded = {name.casefold(): name for name in reversed(declared)}
        often = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_SHOWN]
        parts = []
        for name, count in often:
            text = f"{name!r} ({count:,}"
            if close := difflib.get_close_matches(name.casefold(), by_folded, n=1):
                text += f"; did you mean {by_folded[close[0]]!r}?"
            parts.append(f"{text})")
        others = self.total - sum(count for _, count in often)
        return ", ".join(parts) + (f" and {others:,} of other types" if others else "")

    def told(self, plan: Plan) -> str:
        declared = [
            f"{s}>{name}" if plan.source.stream_column else name
            for s, name in plan.source.declared_types
        ]
        return (
            f"query {plan.name!r}: {self.total:,} of the rows have a type that none of its streams "
            f"declares: {self.words(declared)}; they are not part of the stream"
        )
