"""Scripts that are bundled of packages of npm, with the licences of these."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

_PACKAGE = re.compile(r"node_modules/((?:@[^/]+/)?[^/]+)/")


def install(folder: Path) -> None:
    """Install what the package.json of a folder names, by exact versions. Raises CalledProcessError
    where npm fails, and FileNotFoundError where there is none."""
    run(folder, "npm", "install", "--silent", "--ignore-scripts", "--no-package-lock")


def run(folder: Path, *command: str) -> None:
    """Run a command in a folder. Raises CalledProcessError where it fails."""
    subprocess.run(command, cwd=folder, check=True)


def bundle(folder: Path, script: str, head: str, *options: str) -> str:
    """A script and all that it imports as one, in ASCII. `head` is the first line of its comment,
    which has the licences of its packages."""
    run(
        folder,
        *("node_modules/.bin/esbuild", script, "--bundle", "--minify", "--charset=ascii"),
        *("--legal-comments=none", "--log-level=warning", "--metafile=made.json"),
        *(f"--outfile=made/{script}", *options),
    )
    inputs = json.loads((folder / "made.json").read_text("utf-8"))["inputs"]
    licences: dict[str, list[str]] = {}
    for package in sorted({found[1] for one in inputs if (found := _PACKAGE.match(one))}):
        text = _licence(folder / "node_modules" / package).strip().replace("\r\n", "\n")
        licences.setdefault(text, []).append(package)
    told = "\n\n".join(f"{', '.join(names)}:\n\n{text}" for text, names in licences.items())
    assert "*/" not in told
    text = (folder / "made" / script).read_text("utf-8")
    return f"/* {head} It has parts of these packages.\n\n{told}\n*/\n{text}"


def _licence(package: Path) -> str:
    (path,) = (one for one in package.iterdir() if re.match("licen[cs]e", one.name, re.IGNORECASE))
    return path.read_text("utf-8")
