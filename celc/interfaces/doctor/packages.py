"""The packages that celc needs or can use, and whether their versions fit."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING

from celc.interfaces.doctor.findings import Finding, missing, ok, wrong
from celc.version import VERSION

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_USES = {
    "spark": "jobs of Spark",
    "editor": "celc lsp",
    "tables": "celc run over tables of Delta Lake and Iceberg",
}
"""What the extras of the distribution are for. The others are for those who develop celc."""

_MORE = {
    "duckdb": "celc.sql over tables, and celc run with a statement of SQL",
    "polars": "tables of polars",
    "ipykernel": "notebooks",
}
"""What celc uses where it is there. No extra names a version."""


def packages() -> Iterator[Finding]:
    """A finding for celc, one for all packages that fit, and one for each other."""
    yield ok(f"celc {VERSION} on Python {platform.python_version()}")
    try:
        required = metadata.requires("celc") or []
    except metadata.PackageNotFoundError:
        yield wrong("celc is no installed distribution, so nothing says what it needs", _PIP)
        return
    fitting: list[str] = []
    others: list[Finding] = []
    for requirement, extra in _requirements(required):
        version = _version_of(requirement.name)
        needs = f"{requirement.name}{requirement.specifier}"
        use = "celc" if extra is None else f"celc[{extra}] ({_USES[extra]})"
        line = f"pip install '{needs}'"
        if version is None and extra is None:
            others.append(wrong(f"{requirement.name} is not there, and celc needs it", line))
        elif version is None:
            text = f"{requirement.name} is not there: {_USES[str(extra)]} need it"
            others.append(missing(text, f"pip install 'celc[{extra}]'"))
        elif requirement.specifier.contains(version, prereleases=True):
            fitting.append(f"{requirement.name} {version}")
        else:
            others.append(wrong(f"{requirement.name} is {version}, and {use} needs {needs}", line))
    for name, use in _MORE.items():
        version = _version_of(name)
        if version is None:
            others.append(missing(f"{name} is not there: {use} need it", f"pip install {name}"))
        else:
            fitting.append(f"{name} {version}")
    yield ok(", ".join(fitting))
    yield from others


_PIP = "pip install celc"


def _requirements(required: list[str]) -> Iterator[tuple[Requirement, str | None]]:
    """What celc needs and what its extras need, with the extra."""
    from packaging.requirements import Requirement

    for text in required:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement, None
            continue
        for extra in _USES:
            if requirement.marker.evaluate({"extra": extra}):
                yield requirement, extra
                break


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
