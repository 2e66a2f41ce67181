"""Runs of queries over a few events, which are told apart from those that are worth machine code.

A comparison of two queries runs both over thousands of small streams, and then forgets them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from celc_runtime.jit.kernels import taking_what_is_made

from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

    from celc.driver.pipeline import Compilation


class BriefQuery:
    """A compiled query that is run over a few events at a time, on this machine."""

    def __init__(self, compilation: Compilation, name: str) -> None:
        self.query: Any = Matcher(compilation.module_parts("celc diff")).queries[name]
        """The compiled query."""

    def rows(self, events: pa.Table, parameters: Mapping[str, pa.Table]) -> pa.Table:
        """Its rows, without warnings about the events. Raises what `match_table` raises."""
        with warnings.catch_warnings(), taking_what_is_made():
            # Streams of a search have ties and events of other types on purpose.
            warnings.simplefilter("ignore")
            found: pa.Table = self.query.match_table(events, **parameters)
            return found


class BriefNear:
    """The near misses of a query, with all parts, over a few events at a time."""

    def __init__(self, source: Source, options: Options, name: str) -> None:
        """Raises CelError where the query has no near misses by its meaning."""
        from celc.driver.near import near_query

        self._near, _ = near_query([source], options, name=name, all_parts=True)

    def rows(self, events: pa.Table, parameters: Mapping[str, pa.Table]) -> pa.Table:
        """The near misses. Raises what `match_table` raises."""
        with warnings.catch_warnings(), taking_what_is_made():
            warnings.simplefilter("ignore")
            found: pa.Table = self._near.near_misses(events, **parameters)
            return found
