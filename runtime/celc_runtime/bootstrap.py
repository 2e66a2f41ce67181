"""Brings a query to life in a process that has nothing of celc installed.

The text of this file travels with every pickled query and is executed there, so it imports the
standard library only. What it gets are source files; it writes them, once per content, to a folder
of the user's own and imports them from there: compiled code can be cached only beside real files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType

_PACKAGE = "celc_runtime"
_ENTRY = "celc_query.py"


def restore(files: dict[str, str], options: dict[str, object], query: str) -> object:
    """The query named `query` out of its module's text, with its options.

    `files` are source texts by name: the generated module under `celc_query.py`, and unless that
    holds the runtime itself, the runtime's modules. Processes that already have that very runtime
    use it; all others use a copy under a name of its own, which no other version can clash with.
    """
    if len(files) > 1 and files == {_ENTRY: files[_ENTRY], **installed_sources()}:
        files, package = {_ENTRY: files[_ENTRY]}, _PACKAGE
    else:
        package = f"{_PACKAGE}_{digest_of(files)[:16]}"
    name = f"celc_query_{digest_of(files)[:16]}_{package}"
    if name not in sys.modules:
        texts = {
            path: text.replace(f"from {_PACKAGE}", f"from {package}")
            for path, text in files.items()
        }
        folder = written(texts, cache_root())
        if len(files) > 1 and package not in sys.modules:
            _load(package, folder / "__init__.py", [str(folder)])
        _load(name, folder / _ENTRY, None)
    compiled = sys.modules[name].__dict__["QUERIES"][query]
    return compiled.with_options(**options)


def installed_sources() -> dict[str, str]:
    """The source texts of the runtime that this process would import, by file name; may be none."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return {}
    folder = Path(next(iter(spec.submodule_search_locations)))
    return {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.py"))}


def digest_of(files: dict[str, str]) -> str:
    """A digest of names and contents."""
    state = hashlib.sha256()
    for name in sorted(files):
        for part in (name, files[name]):
            data = part.encode("utf-8")
            state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()


def cache_root() -> Path:
    """A folder that belongs to this user alone: CELC_CACHE_DIR, the user's cache folder, or where
    neither can be used a new temporary one for this process."""
    chosen = os.environ.get("CELC_CACHE_DIR")
    candidates = [Path(chosen)] if chosen else []
    for variable, below in (("XDG_CACHE_HOME", "celc"), ("HOME", ".cache/celc")):
        if os.environ.get(variable):
            candidates.append(Path(os.environ[variable]) / below)
    for root in candidates:
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_private(root) and os.access(root, os.W_OK | os.X_OK):
                return root
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="celc-"))


def _is_private(folder: Path) -> bool:
    """Whether nobody else can have put a file there: importing it would run it."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def written(files: dict[str, str], root: Path) -> Path:
    """A folder that holds exactly these files, named after their content.

    Written under another name and then moved, so that no process sees half of it; what is there
    already is compared byte for byte before anyone imports it.
    """
    folder = root / digest_of(files)
    if not folder.is_dir():
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        for name, text in files.items():
            (fresh / name).write_bytes(text.encode("utf-8"))
        try:
            fresh.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(fresh, ignore_errors=True)
    for name, text in files.items():
        if (folder / name).read_bytes() != text.encode("utf-8"):
            raise RuntimeError(
                f"{folder / name} is not what was written there; remove the folder and try again"
            )
    return folder


def _load(name: str, path: Path, locations: list[str] | None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=locations)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as problem:
        del sys.modules[name]
        raise _not_installed(problem) from problem
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _not_installed(problem: ModuleNotFoundError) -> ModuleNotFoundError:
    """The same error for a package that is not installed, with the machine and what to do."""
    package = str(problem.name).partition(".")[0]
    return ModuleNotFoundError(
        f"a query of celc needs the package {package!r} wherever it runs, and the Python of this "
        f"worker cannot import it: {sys.executable} on {platform.node()}. Install it there "
        f"({sys.executable} -m pip install {package}), or set PYSPARK_PYTHON to a Python that has "
        "numba, numpy and pyarrow",
        name=problem.name,
        path=problem.path,
    )
