"""Python workers of Spark, from inside."""

import gc
from collections.abc import Iterator
from typing import TypeVar

_Batch = TypeVar("_Batch")

_settled = False


def settled_after(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """The batches of a task; after the first task of a process, its objects are frozen.

    Spark's worker collects all garbage after each task, and looks at all objects of the modules
    that a query needs each time anew. They live as long as the process, so they are frozen once
    (`gc.freeze`).
    """
    try:
        yield from batches
    finally:
        settle()


def settle() -> None:
    """Freeze all objects of this process, once. For processes of Spark, not of users."""
    global _settled
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
