"""The README's scripts for Spark, run as a reader runs them: as printed, each in a new process.

The other tests of documents run in a session that has the settings which the tests need, the
README's job among them (`on_spark/test_spark_scripts.py`). A reader has none of them, so what a
script does not set itself is missing here too. To start a session takes Spark as long as a seventh
of all its tests, so this is left to the long run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT
from test_docs import Block, blocks_in

from celc.interfaces.cli import main

BLOCKS = list(blocks_in((ROOT / "README.md").read_text("utf-8")))


def _shown() -> dict[str, Block]:
    """What the page says that each script prints, by the name of the script."""
    printed = "python: "
    return {b.comment.removeprefix(printed): b for b in BLOCKS if b.comment.startswith(printed)}


def test_the_readme_shows_both_scripts() -> None:
    assert list(_shown()) == ["job.py", "stream.py"]


@pytest.mark.long
@pytest.mark.parametrize("script", _shown())
def test_script(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in BLOCKS:
        if block.comment.startswith("file: "):
            Path(block.comment.removeprefix("file: ")).write_text(block.text, "utf-8")
    assert main(["compile", "fire.cel"]) == 0
    Path("in").mkdir()
    shutil.copy("farm.csv", "in")
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        # Machine code is not the question, and takes longer than Spark.
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == _shown()[script].text.strip()
