"""The cache where users and processes meet: right answers, and one warning where nothing is kept.

A process that is another user's begins as root's, so that it can import, and changes its user
before it looks for the cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to be root"
)
SOMEBODY, ELSE = 54321, 54322  # users without a home, whom the system does not know

_SCRIPT = """
import json, os, sys, warnings
import numpy as np
from celc_runtime.jit import contents, kernels
user, count = map(int, sys.argv[1:3])
ones = np.ones(1, np.int64)
assert kernels.njit(cache=False)(lambda values: values[0] + 1)(ones) == 2  # imports everything
contents._runtime_digest()
os.setgid(user), os.setuid(user)
hits = misses = 0
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for number in range(count):
        text = f"def answer(values):\\n    return values[0] + {number}\\n"
        module = {"__name__": f"module{number}", "__celc_text__": text}
        exec(text, module)
        kernel = kernels.njit(module["answer"])
        assert kernel(ones) == 1 + number
        hits += sum(kernel.compiled.stats.cache_hits.values())
        misses += sum(kernel.compiled.stats.cache_misses.values())
print(json.dumps([hits, misses, [str(one.message) for one in told]]))
"""


def _started(user: int, count: int, **env: str | None) -> subprocess.Popen[str]:
    known = {**os.environ, "CELC_INTERPRETED_ROWS": "0", "NUMBA_DISABLE_JIT": "0"}
    changed = {"CELC_CACHE_DIR": None, "NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None} | env
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, str(user), str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in (known | changed).items() if value is not None},
    )


def _found(process: subprocess.Popen[str]) -> tuple[int, int, list[str]]:
    """What a process loaded, what it compiled, and its warnings."""
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    hits, misses, told = json.loads(out)
    return hits, misses, told


def _ran(user: int, count: int = 2, **env: str | None) -> tuple[int, int, list[str]]:
    return _found(_started(user, count, **env))


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder to which every user can go; those of pytest are closed."""
    folder = Path(tempfile.mkdtemp(prefix="celc-users-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.long
def test_users_without_a_home_have_folders_of_their_own(place: Path) -> None:
    env: dict[str, Any] = {"HOME": None, "TMPDIR": str(place)}
    for user in (SOMEBODY, ELSE):
        assert _ran(user, **env) == (0, 2, [])
        assert _ran(user, **env) == (2, 0, [])
        assert (place / f"celc-{user}").stat().st_uid == user


@pytest.mark.long
def test_a_folder_that_cannot_be_made_is_one_warning(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o755)
    hits, misses, told = _ran(SOMEBODY, CELC_CACHE_DIR=str(closed / "cache"))
    assert (hits, misses, len(told)) == (0, 2, 1)
    assert "celc cannot keep compiled code" in told[0]


def test_a_folder_that_cannot_be_written_to_is_one_warning(place: Path) -> None:
    folder = place / "cache"
    folder.mkdir(mode=0o500)
    os.chown(folder, SOMEBODY, SOMEBODY)
    hits, misses, told = _ran(SOMEBODY, CELC_CACHE_DIR=str(folder))
    assert (hits, misses, len(told)) == (0, 2, 1)
    assert "Permission denied" in told[0]


def test_what_root_put_into_an_image_is_loaded_by_its_user(place: Path) -> None:
    """Root could change everything else as well. What is missing in its folder is not kept."""
    folder = place / "cache"
    assert _ran(0, CELC_CACHE_DIR=str(folder)) == (0, 2, [])
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755 if path == folder else 0o644)
    assert _ran(SOMEBODY, CELC_CACHE_DIR=str(folder)) == (2, 0, [])
    hits, misses, told = _ran(SOMEBODY, 4, CELC_CACHE_DIR=str(folder))
    assert (hits, misses, len(told)) == (2, 2, 1)
    assert "Permission denied" in told[0]


@pytest.mark.long
def test_a_folder_of_root_that_is_closed_is_one_warning(place: Path) -> None:
    folder = place / "cache"
    assert _ran(0, CELC_CACHE_DIR=str(folder)) == (0, 2, [])
    hits, misses, told = _ran(SOMEBODY, CELC_CACHE_DIR=str(folder))
    assert (hits, misses, len(told)) == (0, 2, 1)
    assert f"{folder} cannot be read" in told[0]


@pytest.mark.long
def test_a_folder_of_another_user_is_one_warning(place: Path) -> None:
    folder = place / "cache"
    assert _ran(ELSE, CELC_CACHE_DIR=str(folder)) == (0, 2, [])
    folder.chmod(0o755)
    hits, misses, told = _ran(SOMEBODY, CELC_CACHE_DIR=str(folder))
    assert (hits, misses, len(told)) == (0, 2, 1)
    assert "belongs to another user" in told[0]


@pytest.mark.long
def test_processes_that_begin_at_once_do_not_disturb_each_other(place: Path) -> None:
    env: dict[str, Any] = {"CELC_CACHE_DIR": str(place / "cache")}
    together = [_started(SOMEBODY, 6, **env) for _ in range(3)]
    compiled = 0
    for process in together:
        hits, misses, told = _found(process)
        assert (hits + misses, told) == (6, [])
        compiled += misses
    assert compiled == 6
    assert _ran(SOMEBODY, 6, **env) == (6, 0, [])
    assert {path.suffix for path in (place / "cache").iterdir()} == {".kernel", ".lock"}
