"""Processes that need one kernel at once: one compiles it. Nothing that goes wrong stops them."""

from __future__ import annotations

import errno
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from celc_runtime.jit import turns
from other_processes import run, started

_HOLDER = """
import sys
from celc_runtime.jit.turns import turn
with turn(sys.argv[1]):
    print("has it", flush=True)
    sys.stdin.read()
"""
_COMPILES = """
import json, sys
import numpy as np
import celc_runtime.engine.walk.walk as walk  # imports everything
from celc_runtime.jit import kernels
text = '''
from celc_runtime.jit.kernels import njit
@njit(nogil=True)
def lower(values):
    return values[0] + 1
@njit(nogil=True)
def upper(values):
    return lower(values) * 2
'''
module = {"__name__": "module", "__celc_text__": text}
exec(text, module)
kernel = kernels.njit(cache=False)(lambda values: values[0] + 1)
kernel(np.ones(1, np.int64))
print("ready", flush=True)
sys.stdin.readline()
assert module[sys.argv[1]](np.ones(1, np.int64)) == int(sys.argv[2])
found = [module[name].compiled.stats for name in ("lower", "upper")]
print(json.dumps([sum(sum(one.cache_misses.values()) for one in found)]))
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(turns, "_waits", True)
    turns._file.cache_clear()


@contextmanager
def _held(name: str, cache: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process has the turn for a name."""
    holder = started(_HOLDER, name, flags=[], env={"CELC_CACHE_DIR": str(cache)})
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "has it\n"
        yield holder
    finally:
        holder.kill()
        holder.communicate()


def test_processes_compile_a_kernel_once(tmp_path: Path) -> None:
    """Also where one needs it alone, and another one for a kernel that calls it."""
    env = {"CELC_CACHE_DIR": str(tmp_path / "cache")}
    wanted = [("lower", 2), ("upper", 4), ("lower", 2), ("upper", 4)]
    together = [started(_COMPILES, *one, flags=[], env=env) for one in wanted]
    for process in together:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in together:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    misses = 0
    for process in together:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        misses += json.loads(out)[0]
    assert misses == 2


def test_what_is_kept_is_loaded_without_a_turn(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"")
    with turns.turn("kept"):
        assert not (tmp_path / "turns.lock").exists()


def test_a_turn_ends_with_its_process(tmp_path: Path) -> None:
    with _held("kernel", tmp_path) as holder:
        holder.kill()
        holder.wait()
        begun = time.monotonic()
        with turns.turn("kernel"):
            assert time.monotonic() - begun < turns.MOST_SECONDS / 2


def test_nobody_waits_for_another_kernel(tmp_path: Path) -> None:
    with _held("kernel", tmp_path), turns.turn("another"):
        assert turns._waits


def test_a_process_waits_for_a_stopped_one_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "MOST_SECONDS", 0.3)
    with _held("kernel", tmp_path):
        begun = time.monotonic()
        with turns.turn("kernel"):
            assert time.monotonic() - begun >= 0.3
        monkeypatch.setattr(turns, "MOST_SECONDS", 600.0)
        with turns.turn("kernel"):
            assert not turns._waits


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_where_there_are_no_locks_each_process_compiles(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lockf(*_: Any) -> None:
        raise OSError(number, "no locks here")

    monkeypatch.setattr(turns.fcntl, "lockf", lockf)
    with turns.turn("kernel"):
        pass


@pytest.mark.parametrize("root", ["missing", None])
def test_where_no_file_can_be_made_each_process_compiles(
    root: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "cache_root", lambda: root and tmp_path / root)
    with turns.turn("kernel"):
        pass
    assert not list(tmp_path.iterdir())


def test_an_error_within_a_turn_ends_it(tmp_path: Path) -> None:
    with pytest.raises(KeyError), turns.turn("kernel"):
        raise KeyError("a kernel that Numba cannot compile")
    script = "from celc_runtime.jit import turns\nturns.MOST_SECONDS = 0.0\n"
    script += 'with turns.turn("kernel"):\n    print("true" if turns._waits else "false")'
    assert run(script, CELC_CACHE_DIR=str(tmp_path)) is True
