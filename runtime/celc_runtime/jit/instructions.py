"""Instructions of the processor that Python has no words for, as Python has them.

Machine code has the instructions themselves (`machine_instructions`).
"""

from typing import Any


def prefetch(table: Any, place: Any) -> None:
    """Begin to load the cache line of a flat place in a table of int64."""
