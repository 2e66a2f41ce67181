"""A runtime that is not there, or of another version, is told before anything fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import celc

_QUERY = "CREATE STREAM S { EVENT A { v: INT } } SELECT * FROM S WHERE A\n"
_REPAIR = f"pip install --force-reinstall --no-deps 'celc-runtime=={celc.__version__}'"


def _said(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a process says that has the compiler as it is installed, and the runtime in a folder."""
    start = f"import sys; sys.path[:0] = [{str(folder)!r}]; "
    return subprocess.run(
        [sys.executable, "-S", "-c", start + arguments[0], *arguments[1:]],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the compiler, which says its own version as in a wheel."""
    (tmp_path / "celc").mkdir()
    for one in (ROOT / "celc").iterdir():
        if one.name != "version.py":
            (tmp_path / "celc" / one.name).symlink_to(one)
    version = (ROOT / "runtime/celc_runtime/version.py").read_text("utf-8")
    (tmp_path / "celc" / "version.py").write_text(version, "utf-8")
    (tmp_path / "q.cel").write_text(_QUERY, "utf-8")
    return tmp_path


@pytest.mark.parametrize("left", [(), ("version.py", "module_format.py")])
def test_no_runtime(site: Path, left: tuple[str, ...]) -> None:
    """`left`: the files that are new since the only distribution had them all, and so are not
    removed with it."""
    (site / "celc_runtime").mkdir()
    for name in left:
        (site / "celc_runtime" / name).symlink_to(ROOT / "runtime/celc_runtime" / name)
    done = _said(site, "import celc")
    assert done.returncode == 1
    version = celc.__version__
    assert done.stderr.splitlines()[-1] == (
        f"celc.diagnostics.own_runtime.AnotherRuntime: celc {version} needs the distribution "
        f"celc-runtime {version}, whose package celc_runtime is not there, or has lost files: "
        f"{_REPAIR}"
    )


def test_a_runtime_of_another_version(site: Path) -> None:
    (site / "celc_runtime").mkdir()
    for one in (ROOT / "runtime/celc_runtime").iterdir():
        if one.name != "version.py":
            (site / "celc_runtime" / one.name).symlink_to(one)
    (site / "celc_runtime" / "version.py").write_text('VERSION = "7.1.0"\n', "utf-8")
    command = "from celc.interfaces.cli import main; sys.exit(main())"
    done = _said(site, command, "compile", "q.cel")
    version = celc.__version__
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"celc: celc {version} needs celc-runtime {version}, and the one in "
        f"{site}/celc_runtime/version.py is 7.1.0: {_REPAIR}\n"
    )
    # What needs no runtime goes on.
    assert _said(site, command, "fmt", "q.cel").returncode == 0
