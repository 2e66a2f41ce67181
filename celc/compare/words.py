"""Values of a search as texts for people."""

from __future__ import annotations

from typing import Any

from celc.compare.events import Domain
from celc.compare.values import DAY, SECOND, as_python
from celc.core.formula import DataType


def shown_values(domain: Domain) -> dict[str, tuple[str, ...]]:
    """The values of each attribute, as texts."""
    return {
        name: tuple(shown_value(value, domain.types.get(name)) for value in values)
        for name, values in domain.values.items()
    }


def shown_value(value: Any, type: DataType | None) -> str:
    """A value as CEL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if type is None:
        return str(value)
    if type is DataType.INTERVAL:
        return shown_length(value, DataType.TIMESTAMP)
    return str(as_python(value, type))


def shown_length(length: int | float, type: DataType) -> str:
    """A step of a clock."""
    if type is DataType.DATE:
        return f"{length} days"
    if not type.is_checked:
        return str(length)
    for unit, name in ((DAY, "d"), (3600 * SECOND, "h"), (60 * SECOND, "min"), (SECOND, "s")):
        if length and length % unit == 0:
            return f"{int(length // unit)} {name}"
    return f"{length / SECOND:g} s"
