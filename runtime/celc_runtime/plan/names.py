"""Names of columns that the runtime makes itself."""

from __future__ import annotations

from collections.abc import Iterable


def unused_name(name: str, names: Iterable[str]) -> str:
    """A name for one more column, different from all these names also in Spark, which does not tell
    upper from lower case. The same for the same names."""
    lower = {other.lower() for other in names}
    while name.lower() in lower:
        name += "_"
    return name
