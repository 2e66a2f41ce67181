"""The tests of on_spark, over a classic session and over Spark Connect.

Each kind in a process of its own, because no process can have both. The workers run a Python that
cannot import celc; those of a classic session can import its runtime, and over Connect the runtime
travels as text. Nothing there is compiled by Numba. For one of them alone:

    CELC_TEST_SPARK=connect pytest tests/on_spark -k sql
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import TESTS

_FOLDER = TESTS / "on_spark"


def _run(kind: str, marked: str, tests: Path = _FOLDER) -> str:
    """What pytest says of the tests there that have a mark."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", marked, "-p", "no:cacheprovider", tests],
        capture_output=True,
        text=True,
        check=False,
        cwd=_FOLDER.parents[1],
        env=os.environ | {"CELC_TEST_SPARK": kind, "PY_COLORS": "0"},
    )
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_on_spark(kind: str) -> None:
    """One session of each kind: to start a second one takes as much CPU as a seventh of the
    tests."""
    said = _run(kind, "not long")
    passed = re.search(r"(\d+) passed", said)
    assert passed, said
    # Whatever is there is run over both kinds: what one cannot do is tested as an error.
    assert "skipped" not in said, said


@pytest.mark.long
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_long_on_spark(kind: str) -> None:
    assert "passed" in _run(kind, "long")


@pytest.mark.long
@pytest.mark.parametrize("marked", ["long", "not long"])
@pytest.mark.parametrize("name", ["test_spark_plans.py", "test_numbering.py"])
def test_plans_over_connect(name: str, marked: str) -> None:
    """Those of a classic session are in the suite."""
    assert "passed" in _run("connect", marked, TESTS / "runtime" / "spark" / name)
