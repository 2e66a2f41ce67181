"""Packs the extension for VS Code: `dist/celc-VERSION.vsix`.

    python tools/vscode.py     needs node and npm, for the library that speaks with the server

The package is a zip. It has what lies in tools/vscode/, celc's grammar for TextMate, and a snippet
of each recipe of the documents. `code --install-extension` takes it.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import quoteattr

import npm

from celc.editor.textmate import grammar_path
from celc.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "tools" / "vscode"
_STABLE = (2026, 1, 1, 0, 0, 0)  # the time of all files in the zip, so that bytes are the same

_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="js" ContentType="application/javascript"/>
<Default Extension="json" ContentType="application/json"/>
<Default Extension="md" ContentType="text/markdown"/>
<Default Extension="txt" ContentType="text/plain"/>
<Default Extension="vsixmanifest" ContentType="text/xml"/>
</Types>
"""
_MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
<DisplayName>{title}</DisplayName>
<Description xml:space="preserve">{description}</Description>
<Categories>{categories}</Categories>
<Properties>
<Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/>
<Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
</Properties>
<License>extension/LICENSE.txt</License>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>
{assets}
</Assets>
</PackageManifest>
"""

_ASSET = '<Asset Type="Microsoft.VisualStudio.{}" Path="extension/{}" Addressable="true"/>'
_ASSETS = {"Code.Manifest": "package.json", "Services.Content.Details": "README.md"}


def package() -> dict[str, Any]:
    """The manifest of the extension, as VS Code reads it."""
    found: dict[str, Any] = json.loads((PARTS / "package.json").read_text("utf-8"))
    del found["devDependencies"]
    return found | {"version": ".".join(re.findall(r"\d+", VERSION)[:3])}


def snippets() -> dict[str, Any]:
    """The first query of each recipe, by its title."""
    found = {}
    for path in sorted((ROOT / "docs" / "recipes").glob("*.md")):
        text = path.read_text("utf-8")
        title = re.match(r"# (.+)", text)
        query = re.search(r"^```cel\n(.*?)^```", text, re.M | re.S)
        if title and query:
            body = re.sub(r"([$}\\])", r"\\\1", query[1].rstrip("\n"))
            found[title[1]] = {
                "prefix": path.stem,
                "body": body.split("\n"),
                "description": title[1],
            }
    return found


def files(folder: Path) -> dict[str, str]:
    """The files of the package by their paths; the client's script is made in an empty folder.

    Raises CalledProcessError where npm fails.
    """
    own = package()
    categories = ",".join(own["categories"])
    manifest = _MANIFEST.format(
        **{name: quoteattr(own[name]) for name in ("name", "version", "publisher")},
        title=own["displayName"],
        description=own["description"],
        categories=categories,
        assets="\n".join(_ASSET.format(*one) for one in _ASSETS.items()),
        engine=quoteattr(own["engines"]["vscode"]),
    )
    found = {
        "package.json": json.dumps(own, indent=2),
        "extension.js": _script(folder),
        "language-configuration.json": (PARTS / "language-configuration.json").read_text("utf-8"),
        "cel.tmLanguage.json": grammar_path("cel").read_text("utf-8"),
        "snippets.json": json.dumps(snippets(), indent=1, ensure_ascii=False),
        "README.md": (PARTS / "README.md").read_text("utf-8"),
        "LICENSE.txt": (ROOT / "LICENSE").read_text("utf-8"),
    }
    return {
        "[Content_Types].xml": _TYPES,
        "extension.vsixmanifest": manifest,
        **{f"extension/{name}": text for name, text in found.items()},
    }


def _script(folder: Path) -> str:
    for path in PARTS.iterdir():
        shutil.copy(path, folder)
    npm.install(folder)
    options = ("--platform=node", "--format=cjs", "--external:vscode")
    return npm.bundle(folder, "extension.js", "Made by tools/vscode.py.", *options)


def write(path: Path) -> None:
    """Write the package to a file."""
    with TemporaryDirectory() as folder:
        found = files(Path(folder))
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in found.items():
            packed.writestr(zipfile.ZipInfo(name, _STABLE), text, zipfile.ZIP_DEFLATED)


def main() -> int:
    """Write the package into dist/."""
    path = ROOT / "dist" / f"celc-{VERSION}.vsix"
    write(path)
    print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
