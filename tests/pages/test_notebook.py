"""The notebook of the documents, run from its first cell to its last."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from test_report import _Parts, data_of

NOTEBOOK = ROOT / "docs" / "notebooks" / "first-matches.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each cell of code shows, by media type; cells that fail raise an error."""
    for package in ("nbclient", "ipykernel", "pandas"):
        pytest.importorskip(package, reason="the extra `dev` has it")
    import nbformat
    from nbclient import NotebookClient

    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "runtime")])
    home = {"IPYTHONDIR": str(folder), "JUPYTER_RUNTIME_DIR": str(folder), "PYTHONPATH": paths}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in home.items():
            patch.setenv(name, value)
        NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(folder)}}
        ).execute()
    shown = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert [one.output_type for one in cell.outputs] == ["execute_result"], cell.source
            shown.append(dict(cell.outputs[0].data))
    return shown


def test_it_shows_matcher_matches_and_report(outputs: list[dict[str, Any]]) -> None:
    _, matcher, matches, frame, report = outputs
    assert "10 MINUTES [ts]" in matcher["text/html"]
    assert "<p>3 matches</p>" in matches["text/html"]
    assert "41.5" in frame["text/plain"]
    (attributes,) = (one for tag, one in _Parts(report["text/html"]).elements if tag == "iframe")
    page = attributes["srcdoc"]
    assert page is not None
    assert data_of(page)["matches"]["count"] == 3


def test_it_is_kept_without_outputs() -> None:
    text = Path(NOTEBOOK).read_text("utf-8")
    assert '"outputs": []' in text
    assert '"execution_count": null' in text
    assert "iframe" not in text
