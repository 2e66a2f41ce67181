"""Prints the lowest versions that celc claims to work with, one requirement in each line.

For `make lowest`, which tests with them: `pip install $(python tools/lowest.py)`. They are read
from the pyproject.toml of both distributions, so what is claimed is what is tested. The tools that
tests need come in the versions of the extra `dev`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_REQUIREMENT = re.compile(r"(?P<name>[\w-]+)(?P<extras>\[[\w,-]+\])?(?P<versions>[^;]*)")
_NOT_TESTING = {"mypy", "ruff"}


def lowest(requirement: str) -> str:
    """A requirement of exactly the lowest version that one allows.

    Raises ValueError for a requirement without one.
    """
    found = _REQUIREMENT.fullmatch(requirement)
    bounds = [] if found is None else found["versions"].split(",")
    (bound,) = [bound for bound in bounds if bound.startswith((">=", "=="))] or [""]
    if found is None or not bound:
        raise ValueError(f"{requirement!r} in pyproject.toml has no lowest version: add >=")
    return f"{found['name']}{found['extras'] or ''}=={bound[2:]}"


def claimed() -> list[str]:
    """What users get: the requirements of both distributions, and those of Spark."""
    celc, runtime = _read(_ROOT), _read(_ROOT / "runtime")["project"]
    own = celc["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
    return [*own, *runtime["dependencies"], *runtime["optional-dependencies"]["spark"]]


def requirements() -> list[str]:
    """All that is installed."""
    users = claimed()
    known = _names(users) | _NOT_TESTING
    tools = _read(_ROOT)["project"]["optional-dependencies"]["dev"]
    return [*map(lowest, users), *(one for one in tools if not _names([one]) & known)]


def _read(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


def _names(requirements: Sequence[str]) -> set[str]:
    return {found["name"] for found in map(_REQUIREMENT.match, requirements) if found}


if __name__ == "__main__":
    print("\n".join(requirements()))
