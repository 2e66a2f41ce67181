"""What a packager gets: archives with all that belongs in them, the same bytes each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from places import ROOT

import celc

pytest.importorskip("hatchling")

_NAME = f"celc-{celc.__version__}"
_FOLDERS = ["benchmarks", "celc", "docs", "examples", "generated", "runtime", "templates"]
_FOLDERS += ["tests", "tools"]
_FILES = [".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"]
_FILES += ["Makefile", "PKG-INFO", "README.md", "SECURITY.md", "pyproject.toml"]


def _built(source: Path, kind: str, folder: Path, **env: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=source, env=os.environ | env)
    (file,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return file


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this checkout."""
    return _built(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path) -> Path:
    """The folder that it unpacks to."""
    with tarfile.open(sdist) as archive:
        # Python 3.11.4 is the first that knows filters.
        filters: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(sdist.parent / "unpacked", **filters)
    return sdist.parent / "unpacked" / _NAME


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel made of the source distribution, as pip makes it."""
    return _built(unpacked, "wheel", tmp_path_factory.mktemp("wheel"))


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(f"{_NAME}.dist-info/METADATA").decode())


def test_the_version_is_that_of_the_code(sdist: Path, wheel: Path) -> None:
    assert sdist.name == f"{_NAME}.tar.gz"
    assert wheel.name == f"{_NAME}-py3-none-any.whl"
    assert _metadata(wheel)["Version"] == celc.__version__
    assert f'"{celc.__version__}"' not in (ROOT / "pyproject.toml").read_text("utf-8")


def test_a_source_distribution_has_what_builds_and_tests_celc(unpacked: Path) -> None:
    assert sorted(path.name for path in unpacked.iterdir()) == sorted([*_FOLDERS, *_FILES])
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*.*")}
    junk = (".pyc", ".log", ".pickle", ".so", ".whl")
    assert not [name for name in files if name.endswith(junk) or "/." in name]
    if which("git") is None or not (ROOT / ".git").exists():
        return  # these are the tests of a source distribution
    listed = subprocess.run(
        ["git", "ls-files", "-z", *_FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    assert len(tracked) > 500
    missing = {name for name in tracked if not (unpacked / name).is_file()}
    assert not missing


def test_a_wheel_has_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names} == {
        "celc",
        "celc_runtime",
        f"{_NAME}.dist-info",
    }
    code = {name for name in names if not name.startswith(_NAME)}
    # Style sheets and scripts are of pages, the grammars of editors are JSON.
    kinds = {".py", ".lark", ".jinja", ".typed", ".json", ".css", ".js"}
    assert {Path(name).suffix for name in code} == kinds
    assert {"celc/py.typed", "celc_runtime/py.typed", "celc/parse/tables.json"} <= code
    assert "celc/editor/grammars/cel.tmLanguage.json" in code
    assert f"{_NAME}.dist-info/licenses/LICENSE" in names
    for folder, place in [("celc", ""), ("runtime/celc_runtime", ""), ("templates", "celc")]:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".jinja"):
                inside = path.relative_to((ROOT / folder).parent)
                assert (Path(place) / inside).as_posix() in code


def test_users_get_ranges_and_developers_pins(wheel: Path) -> None:
    required = _metadata(wheel).get_all("Requires-Dist") or []
    users = [line for line in required if "extra" not in line or "'spark'" in line]
    assert {"black", "jinja2", "numba", "numpy", "pyarrow", "rich", "sqlglot"} <= {
        line.split(">")[0].split("<")[0] for line in users
    }
    assert not [line for line in users if "==" in line.split(";")[0]]
    for name in ("black", "jinja2", "sqlglot"):
        assert any(f"{name}==" in line and "'dev'" in line for line in required)


def test_a_wheel_built_twice_is_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """From the source distribution and from the checkout; and with a time of the packager's own."""
    assert _built(ROOT, "wheel", tmp_path / "a").read_bytes() == wheel.read_bytes()
    dated = [
        _built(ROOT, "wheel", tmp_path / name, SOURCE_DATE_EPOCH="1700000000").read_bytes()
        for name in ("b", "c")
    ]
    assert dated[0] == dated[1] != wheel.read_bytes()


# --- installed ------------------------------------------------------------------------------------

_QUERY = """CREATE STREAM S {
  EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG }
}
SELECT * FROM S WHERE A AS x ; B AS y PARTITION BY id WITHIN 5 [ts]
"""


@pytest.mark.long
def test_a_source_distribution_is_installed_by_pip(sdist: Path, tmp_path: Path) -> None:
    """The compiler, the grammar, the templates and the runtime; what is compiled runs."""
    pytest.importorskip("pip")
    site = tmp_path / "site"
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(site)]
    command = [sys.executable, "-m", "pip", "install", "--quiet", *options, str(sdist)]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    (tmp_path / "q.cel").write_text(_QUERY)
    events = [{"type": "AB"[k % 3 % 2], "id": k % 2, "ts": k} for k in range(30)]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))

    def run(*arguments: str) -> str:
        # The command as pip wrote it, in a Python that does not see an editable install.
        packages = sysconfig.get_paths()["purelib"]
        done = subprocess.run(
            [sys.executable, "-S", str(site / "bin" / "celc"), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{packages}"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("--version").split() == ["celc", celc.__version__]
    run("compile", "q.cel", "-o", "q_udf.py", "--order-by", "ts")
    run("compile", "q.cel", "-o", "alone.py", "--standalone")
    matcher = celc.compile(_QUERY, name="q.cel", order_by="ts")
    assert (tmp_path / "q_udf.py").read_text().count("\n") == matcher.source.count("\n")
    assert len((tmp_path / "alone.py").read_text()) > 10 * len(matcher.source)
    lines = run("run", "q.cel", "e.jsonl", "--format", "json").splitlines()
    assert len(lines) == len(matcher.match_table(_table(events)))


def _table(events: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    types = {"type": pa.string(), "id": pa.int32(), "ts": pa.int64()}
    return pa.Table.from_pylist(events, pa.schema(list(types.items())))
