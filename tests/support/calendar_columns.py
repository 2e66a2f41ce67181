"""Durations as DuckDB writes them: months, days and nanoseconds."""

from __future__ import annotations

import random

import pyarrow as pa


def with_calendar_intervals(table: pa.Table, rng: random.Random) -> pa.Table:
    """The table, perhaps with durations as DuckDB writes them, in days and what is shorter."""
    for number, field in enumerate(table.schema):
        if not pa.types.is_duration(field.type) or rng.random() < 0.5:
            continue
        values = []
        for one in table.column(number).cast(pa.int64()).to_pylist():
            # Days may go beyond the length, and the rest back.
            days = 0 if one is None else one // 86_400_000_000 + rng.randint(-2, 2)
            parts = None if one is None else (0, days, 1000 * (one - 86_400_000_000 * days))
            values.append(None if parts is None else pa.MonthDayNano(parts))
        column = pa.array(values, pa.month_day_nano_interval())
        table = table.set_column(number, field.name, column)
    return table
