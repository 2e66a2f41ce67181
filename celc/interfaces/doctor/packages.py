"""The packages that celc needs or can use, and whether their versions fit."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING

from celc.diagnostics.own_runtime import another, repair
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


_OWN = ("celc", "celc-runtime")


def packages() -> Iterator[Finding]:
    """A finding for celc, one for all packages that fit, and one for each other."""
    yield ok(f"celc {VERSION} on Python {platform.python_version()}")
    problem = another()
    if problem is not None:
        yield wrong(problem, repair())
    fitting: list[str] = []
    others: list[Finding] = []
    for name in _OWN:
        if _version_of(name) is None:
            why = f"{name} is no installed distribution, so nothing says what it needs"
            others.append(wrong(why, f"pip install '{name}=={VERSION}'"))
    for requirement, extra in _requirements():
        version = _version_of(requirement.name)
        needs = f"{requirement.name}{requirement.specifier}"
        use = "celc" if extra is None else f"celc[{extra}] ({_USES[extra]})"
        line = f"pip install '{needs}'"
        if requirement.name == "pyspark" and _version_of(_DATABRICKS) is not None:
            others += _beside_databricks(version)
            fitting.append(f"{_DATABRICKS} {_version_of(_DATABRICKS)}")
        elif version is None and requirement.name in _OWN:
            pass  # told above
        elif version is None and extra is None:
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


_DATABRICKS = "databricks-connect"


def _beside_databricks(pyspark: str | None) -> Iterator[Finding]:
    """What is wrong where databricks-connect stands for PySpark."""
    if pyspark is not None:
        yield wrong(
            f"pyspark {pyspark} and {_DATABRICKS} have the same package, `pyspark`, and one has "
            "written over files of the other",
            f"pip uninstall pyspark {_DATABRICKS}  # then install the one that you use",
        )


def _requirements() -> Iterator[tuple[Requirement, str | None]]:
    """What both distributions need and what their extras need, with the extra."""
    from packaging.requirements import Requirement

    for name in _OWN:
        for text in (metadata.requires(name) or []) if _version_of(name) else []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                yield requirement, None
                continue
            for extra in _USES:
                # An extra of celc that is one of the runtime says nothing more.
                if requirement.marker.evaluate({"extra": extra}) and requirement.name not in _OWN:
                    yield requirement, extra
                    break


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
