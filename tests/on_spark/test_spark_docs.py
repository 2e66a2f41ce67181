"""What the documents show in a Spark session is what comes out."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
from conftest import long_over_connect
from engines import interpreted
from stream_routes import SETTINGS, settings
from test_docs import DOCUMENTS, blocks_in

_BLOCKS = {path.name: list(blocks_in(path.read_text("utf-8"))) for path in DOCUMENTS}
_SHOWN = {
    page: blocks
    for page, blocks in _BLOCKS.items()
    if any(block.comment == "spark" for block in blocks)
}


def _marked(page: str) -> Any:
    """What this page shows, `test_slices_on_spark` runs as well."""
    return pytest.param(page, marks=[pytest.mark.long] if page == "slices.md" else [])


@long_over_connect
@pytest.mark.parametrize("page", [_marked(page) for page in _SHOWN])
def test_sessions(page: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sessions of a page are one; the files that it shows are there."""
    monkeypatch.chdir(tmp_path)
    parser, told = doctest.DocTestParser(), list[str]()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names: dict[str, Any] = {"spark": spark}
    for block in _SHOWN[page]:
        if block.comment.startswith("file: "):
            Path(block.comment.removeprefix("file: ")).write_text(block.text, "utf-8")
        elif block.comment == "spark":
            session = parser.get_doctest(block.text, {}, page, None, block.line)
            session.globs = names
            with interpreted(), settings(spark, SETTINGS):
                runner.run(session, out=told.append, clear_globs=False)
    assert not told, "".join(told)


def test_there_are_pages() -> None:
    assert {"sql.md", "input.md", "streaming.md"} <= _SHOWN.keys()
