"""Faults in passes, templates and the runtime: whether the proof of a fixed set of queries finds
them. Each is one edit in a copy of the compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT
from prove.faults import FAULTS, Fault

FEWEST = 0.85  # the share of the faults that must be found


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the compiler, the runtime and the templates."""
    folder = tmp_path_factory.mktemp("copied")
    for name in ("celc", "runtime", "templates", "generated", "tests/prove"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    return folder


def _told(copied: Path, fault: Fault | None) -> str:
    """What the proof says of the compiler with a fault; empty: nothing is wrong."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (copied, copied / "runtime"))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CELC_CACHE_DIR": str(copied / "cache"),
        "CELC_VERIFY": "",
    }
    path = copied / ("README" if fault is None else fault.file)
    text = "" if fault is None else path.read_text("utf-8")
    if fault is not None:
        assert text.count(fault.old) >= 1, fault.name
        path.write_text(text.replace(fault.old, fault.new, 1), "utf-8")
    try:
        done = subprocess.run(
            [sys.executable, str(copied / "tests" / "prove" / "faults.py")],
            cwd=copied,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    finally:
        if fault is not None:
            path.write_text(text, "utf-8")
    if done.returncode:
        return f"does not run: {done.stderr.splitlines()[-1]}"
    return done.stdout.strip().strip("'\"")


@pytest.mark.long
def test_nothing_is_wrong_without_a_fault(copied: Path) -> None:
    assert _told(copied, None) == ""


@pytest.mark.long
def test_most_faults_are_found(copied: Path) -> None:
    missed = []
    for fault in FAULTS:
        told = _told(copied, fault)
        print(f"{fault.name}: {told or 'NOT FOUND'}", flush=True)
        assert not told.startswith("does not run"), f"{fault.name}: {told}"
        if not told:
            missed.append(fault.name)
    print(f"{len(FAULTS) - len(missed)} of {len(FAULTS)} found")
    assert len(missed) <= (1 - FEWEST) * len(FAULTS), missed
