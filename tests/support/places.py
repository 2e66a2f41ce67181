"""Where the project and its tests are, for tests that read files."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CASES = TESTS / "cases"
ROOT = TESTS.parent
