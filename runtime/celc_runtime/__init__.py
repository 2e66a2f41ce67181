"""The runtime of generated modules: kernels, Arrow columns, and the ways to run a query.

What users call stands in `public`, and is imported when it is first asked for: the compiler takes
the classes of `plan` alone, and Numba and pyarrow take longer to import than most queries to
compile.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celc_runtime.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # Not `import celc_runtime.public`: sent to a worker, the package has another name.
    return getattr(import_module(f"{__name__}.public"), name)
