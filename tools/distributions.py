"""`make dist`: both distributions in dist/, each built twice to the same bytes and looked through.

A wheel is built from the checkout, and again from the source distribution, as pip builds it. The
metadata are read by the rules of the package index. SOURCE_DATE_EPOCH is the time in the archives;
without it the time of the last commit, or in a source distribution hatchling's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = {"celc_runtime": "runtime", "celc": "."}
"""The packages, each with the folder of the project that builds it. The distributions are called
like them, with `-`."""

_NEEDED = {
    "celc": (
        "celc/py.typed",
        "celc/parse/tables.json",
        "celc/templates/module_start.py.jinja",
        # pySigma looks for backends in this namespace of its own.
        "sigma/backends/celc/__init__.py",
    ),
    "celc_runtime": ("celc_runtime/py.typed",),
}
_ENTRY_POINTS = {
    "celc": ("celc = celc.__main__:process", "celc = celc.testing.plugin"),
    "celc_runtime": (),
}


def build(source: Path, kind: str, folder: Path, **env: str) -> Path:
    """The archive that hatchling builds: `kind` is "sdist" or "wheel"."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | env  # of the hook, beside it
    subprocess.run(command, check=True, capture_output=True, cwd=source, env=env)
    (file,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return file


def unpacked(sdist: Path, folder: Path) -> Path:
    """The folder that a source distribution unpacks to."""
    with tarfile.open(sdist) as archive:
        # Python 3.11.4 is the first that knows filters.
        filters: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **filters)
    return folder / sdist.name.removesuffix(".tar.gz")


def problems_of_wheel(package: str, wheel: Path) -> Iterator[str]:
    """What is wrong with the contents or the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        stem = "-".join(wheel.name.split("-")[:2])
        info = f"{stem}.dist-info"
        yield from problems_of_metadata(archive.read(f"{info}/METADATA"))
        said = ""
        if f"{info}/entry_points.txt" in names:
            said = archive.read(f"{info}/entry_points.txt").decode()
    tops = {name.split("/")[0] for name in names}
    known = {package, info, *(name.split("/")[0] for name in _NEEDED[package])}
    yield from (f"has {top}" for top in sorted(tops - known))
    needed = (*_NEEDED[package], f"{info}/licenses/LICENSE")
    yield from (f"has no {name}" for name in needed if name not in names)
    yield from (f"has no entry {one!r}" for one in _ENTRY_POINTS[package] if one not in said)
    junk = (".pyc", ".log", ".pickle", ".so", ".md", ".toml")
    yield from (f"has {name}" for name in sorted(names) if name.endswith(junk))


def problems_of_metadata(text: bytes) -> Iterator[str]:
    """What an index of packages would refuse, and addresses, of which celc has none."""
    try:
        metadata = Metadata.from_email(text)
    except ExceptionGroup as problems:
        yield from map(str, problems.exceptions)
        return
    if not metadata.description or metadata.description_content_type != "text/markdown":
        yield "the description is not that of a README"
    if metadata.project_urls or metadata.home_page or metadata.author_email:
        yield "there is an address"


def distribute(package: str, folder: Path, env: dict[str, str]) -> Iterator[str]:
    """Build one distribution into `folder`; what is wrong with it."""
    source = ROOT / PACKAGES[package]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        sdist = build(source, "sdist", scratch / "1", **env)
        again = build(source, "sdist", scratch / "2", **env)
        if sdist.read_bytes() != again.read_bytes():
            yield "the source distribution has other bytes when it is built again"
        tree = unpacked(sdist, scratch / "3")
        yield from problems_of_metadata((tree / "PKG-INFO").read_bytes())
        wheel = build(source, "wheel", scratch / "4", **env)
        if wheel.read_bytes() != build(tree, "wheel", scratch / "5", **env).read_bytes():
            yield "the wheel has other bytes when it is built from the source distribution"
        yield from problems_of_wheel(package, wheel)
        for file in (sdist, wheel):
            shutil.move(file, folder / file.name)
            print(f"{folder.name}/{file.name}  {(folder / file.name).stat().st_size:,} bytes")


def _time_of_archives() -> dict[str, str]:
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return {}
    command = ["git", "log", "-1", "--format=%ct"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or not its checkout
        return {}
    return {"SOURCE_DATE_EPOCH": found.stdout.strip()}


def main() -> int:
    """Fill dist/ anew; 1 where something is wrong."""
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    env = _time_of_archives()
    wrong = [
        f"{package}: {problem}"
        for package in PACKAGES
        for problem in distribute(package, folder, env)
    ]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
