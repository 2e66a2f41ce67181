"""Many parts with one sign between them, as one expression."""

from collections.abc import Sequence

_MOST = 200  # parts of one row: Python's compiler goes a level deeper for each sign


def chained(parts: Sequence[str], sign: str) -> str:
    """The parts in parentheses with a sign between them, many of them in groups. The sign is
    associative."""
    while len(parts) > _MOST:
        parts = [chained(parts[n : n + _MOST], sign) for n in range(0, len(parts), _MOST)]
    return f"({f' {sign} '.join(parts)})"
