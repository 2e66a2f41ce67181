"""The runtime beside the compiler: whether it is there, and of the same version.

Both are distributions of their own, and pip keeps their versions equal. They can differ all the
same: where one is installed with `--no-deps`, or lies on PYTHONPATH; and pip, which removes the
files of an old `celc` after it has written those of `celc-runtime`, may remove the latter.
"""

from importlib.util import find_spec

from celc.version import VERSION


class AnotherRuntime(ImportError):
    """There is no runtime, or none of this version. It says what to install."""


def refuse_none() -> None:
    """Raises AnotherRuntime where there is no runtime, or only what an upgrade left of it."""
    if not _is_there():
        raise AnotherRuntime(
            f"celc {VERSION} needs the distribution celc-runtime {VERSION}, whose package "
            f"celc_runtime is not there, or has lost files: {repair()}",
            name="celc_runtime",
        )


def _is_there() -> bool:
    found = find_spec("celc_runtime")
    # A folder without __init__.py is a package of Python, too, without a file.
    return found is not None and found.origin is not None


def refuse_another() -> None:
    """Raises AnotherRuntime where the runtime is of another version than the compiler."""
    problem = another()
    if problem is not None:
        raise AnotherRuntime(f"{problem}: {repair()}", name="celc_runtime")


def another() -> str | None:
    """How the runtime differs from this version, in words; None: it is of this version."""
    from celc_runtime import version

    if version.VERSION == VERSION:
        return None
    return (
        f"celc {VERSION} needs celc-runtime {VERSION}, and the one in {version.__file__} is "
        f"{version.VERSION}"
    )


def repair() -> str:
    """The command that installs the runtime of this version."""
    return f"pip install --force-reinstall --no-deps 'celc-runtime=={VERSION}'"
