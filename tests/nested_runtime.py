"""The runtime in another arrangement: its modules in sub-packages of sub-packages.

Whatever ships the runtime has to find them there, however the runtime itself is arranged.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from celc_runtime.jit import shipping

_FILES = shipping.runtime_sources()
_MOVED = {
    file.removesuffix(".py"): f"rooms.{file[0]}"
    for file in _FILES
    if "/" not in file and file != "__init__.py"
}
"""The package of each module that is moved, by its name: of `plan` it is `rooms.p`."""

_FROM_MODULE = re.compile(r"\bfrom celc_runtime\.(\w+) import\b")
_FROM_PACKAGE = re.compile(r"\bfrom celc_runtime import (\w+)$", re.MULTILINE)


def moved(text: str) -> str:
    """The text of a module that imports from where the moved modules are."""

    def from_module(found: re.Match[str]) -> str:
        place = _MOVED.get(found[1])
        return found[0] if place is None else f"from celc_runtime.{place}.{found[1]} import"

    def from_package(found: re.Match[str]) -> str:
        place = _MOVED.get(found[1])
        return found[0] if place is None else f"from celc_runtime.{place} import {found[1]}"

    return _FROM_PACKAGE.sub(from_package, _FROM_MODULE.sub(from_module, text))


def nested_sources() -> dict[str, str]:
    """The texts of that runtime, by their paths in its package."""
    packages = {"rooms", *_MOVED.values()}
    inits = {f"{name.replace('.', '/')}/__init__.py": f'"""{name}"""\n' for name in packages}
    return inits | {_place(file): moved(text) for file, text in _FILES.items()}


def _place(file: str) -> str:
    place = _MOVED.get(file.removesuffix(".py"))
    return file if place is None else f"{place.replace('.', '/')}/{file}"


def write_package(folder: Path, sources: dict[str, str], name: str = "celc_runtime") -> None:
    """Write a package below a folder, from its texts by their paths."""
    for path, text in sources.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def write_archive(path: Path, sources: dict[str, str], name: str = "celc_runtime") -> None:
    """Write an archive with such a package."""
    with zipfile.ZipFile(path, "a") as archive:
        for file, text in sources.items():
            archive.writestr(f"{name}/{file}", text)
