"""The versions that celc says it works with are versions that it is tested with."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from typing import Any

import pytest
from places import ROOT

_PROJECTS = [
    tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    for folder in (ROOT, ROOT / "runtime")
]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("lowest", ROOT / "tools" / "lowest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_claimed_is_pinned_at_its_lowest(tool: Any) -> None:
    pins = tool.requirements()
    for requirement in tool.claimed():
        name, bound = re.match(r"([^<>=]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
        assert f"{name}=={bound}" in pins
    assert {"pytest", "hypothesis"} <= {re.split("[=>]", pin)[0] for pin in pins}
    # A package is named once, or pip would have two versions to choose.
    names = [re.split(r"[\[=>]", pin)[0] for pin in pins]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy!=2.1"])
def test_a_package_without_a_lowest_version_is_refused(tool: Any, requirement: str) -> None:
    with pytest.raises(ValueError, match="has no lowest version: add >="):
        tool.lowest(requirement)


def test_a_python_is_claimed_where_a_test_ran() -> None:
    """The versions in the classifiers are those of the record of what was tested."""
    celc, runtime = (
        {
            line.rpartition(" ")[2]
            for line in project["classifiers"]
            if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
        }
        for project in _PROJECTS
    )
    shown = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    tested = set(re.findall(r"^\| (3\.\d+)(?:\.\d+)? \|", shown, re.MULTILINE))
    assert celc == runtime == tested
