"""The extension for VS Code: what is in its package, and that its client speaks with the server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
import vscode
from places import ROOT

from celc.diagnostics.source import Source
from celc.editor.languages import CEL
from celc.parse.parser import parse


def test_the_manifest_names_what_the_tool_packs() -> None:
    own = vscode.package()
    assert own["version"] == vscode.VERSION
    (language,) = own["contributes"]["languages"]
    (grammar,) = own["contributes"]["grammars"]
    assert grammar["scopeName"] == json.loads(vscode.grammar_path("cel").read_text())["scopeName"]
    assert (language["id"], language["extensions"]) == ("celc", [CEL.suffix])
    started = own["contributes"]["configuration"]["properties"]["celc.command"]["default"]
    assert started == ["celc", "lsp"]


def test_each_snippet_is_a_query() -> None:
    found = vscode.snippets()
    assert len(found) >= 15
    for title, snippet in found.items():
        text = re.sub(r"\\([$}\\])", r"\1", "\n".join(snippet["body"]))
        assert parse(Source("q.cel", text)).queries, title


_PATHS = ("main", "path", "configuration")
_WRONG = "CREATE STREAM S { EVENT A { v: INT } }\nSELECT x[w] FROM S WHERE A AS x\n"


@pytest.mark.long
def test_the_package_starts_the_server(tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    if shutil.which("npm") is None:
        pytest.skip("needs node and npm")
    path = tmp_path / "celc.vsix"
    vscode.write(path)
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        packed.extractall(tmp_path)
    manifest = ET.parse(tmp_path / "extension.vsixmanifest")
    assets = {one.attrib["Path"] for one in manifest.iter() if one.tag.endswith("Asset")}
    own = json.loads((tmp_path / "extension" / "package.json").read_text("utf-8"))
    listed = [one for of in own["contributes"].values() if isinstance(of, list) for one in of]
    named = {one[name] for one in (own, *listed) for name in _PATHS if name in one}
    assert assets | {f"extension/{one.removeprefix('./')}" for one in named} <= {*names}
    types = ET.parse(tmp_path / "[Content_Types].xml").getroot()
    assert {Path(name).suffix[1:] for name in names[1:]} <= {
        one.attrib["Extension"] for one in types
    }
    query = tmp_path / "q.cel"
    query.write_text(_WRONG)
    done = subprocess.run(
        [
            *("node", str(ROOT / "tests" / "editor" / "vscode.js")),
            str(tmp_path / "extension" / "extension.js"),
            json.dumps([sys.executable, "-m", "celc", "lsp"]),
            str(query),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["registered"] == ["celc.run"]
    assert told["shown"][0].startswith("events of type 'A' have no attribute 'w'")
