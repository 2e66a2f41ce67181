"""Names of columns that the runtime makes itself."""

from collections.abc import Iterable


def unused_name(name: str, names: Iterable[str]) -> str:
    """A name different from all these, also in Spark, which ignores case; always the same one."""
    lower = {other.lower() for other in names}
    while name.lower() in lower:
        name += "_"
    return name
