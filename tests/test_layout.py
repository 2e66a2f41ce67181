"""The check of layout (`tools/layout.py`): what it lets pass, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

_OF_RUFF = 'x = f"{told[end() :]}"\n'
_OF_BLACK = 'x = f"{told[end():]}"\n'
_OF_NEITHER = 'x = f"{told[end():]}"\ny = {  }\n'
_OF_A_DOCUMENT = "```python\nx = {  }\n```\n"


@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("a.py", _OF_RUFF, 0, ""),
        ("a.py", _OF_BLACK, 0, ""),
        ("a.py", _OF_NEITHER, 1, "would reformat"),
        ("a.py", "x = (\n", 2, "syntax"),
        ("a.md", _OF_A_DOCUMENT, 0, ""),
    ],
)
def test_either_style_passes_and_none_else(
    name: str, text: str, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "layout.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stderr
