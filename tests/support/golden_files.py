"""Files that say what something makes, compared with what it makes now."""

from __future__ import annotations

from pathlib import Path


def compare(path: Path, text: str, update: bool) -> None:
    """Compare a text with its file, or write it anew (the fixture `update` says which)."""
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    assert path.exists(), f"{path.name} is missing; pytest --update-golden writes it"
    assert path.read_bytes().decode() == text, f"{path} is not what is made now"
