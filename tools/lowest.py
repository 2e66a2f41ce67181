"""Prints the lowest versions that celc claims to work with, one requirement in each line.

For `make lowest`, which tests with them: `pip install $(python tools/lowest.py)`. They are read
from pyproject.toml, so what is claimed is what is tested. The tools that tests need come in the
versions of the extra `dev`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

_PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
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
        raise ValueError(f"{requirement!r} in {_PROJECT.name} has no lowest version: add >=")
    return f"{found['name']}{found['extras'] or ''}=={bound[2:]}"


def requirements(project: dict[str, object]) -> list[str]:
    """All that is installed, given what pyproject.toml says of the project."""
    extras = project["optional-dependencies"]
    own = project["dependencies"]
    assert isinstance(extras, dict)
    assert isinstance(own, list)
    claimed = [*own, *extras["spark"]]
    known = _names(claimed) | _NOT_TESTING
    tools = [one for one in extras["dev"] if not _names([one]) & known]
    return [*map(lowest, claimed), *tools]


def _names(requirements: Sequence[str]) -> set[str]:
    return {found["name"] for found in map(_REQUIREMENT.match, requirements) if found}


if __name__ == "__main__":
    print("\n".join(requirements(tomllib.loads(_PROJECT.read_text("utf-8"))["project"])))
