"""What a packager gets: archives with all that belongs in them, the same bytes each time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from distributions import PACKAGES, build, problems_of_wheel, unpacked
from places import ROOT

import celc

pytest.importorskip("hatchling")

_FOLDERS = ["benchmarks", "celc", "docs", "examples", "generated", "runtime", "sigma", "templates"]
_FOLDERS += ["tests", "tools"]
_FILES = [".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"]
_FILES += ["Makefile", "PKG-INFO", "README.md", "SECURITY.md", "pyproject.toml"]


@pytest.fixture(scope="module")
def sdists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The source distributions of this checkout."""
    return {
        package: build(ROOT / folder, "sdist", tmp_path_factory.mktemp("sdist"))
        for package, folder in PACKAGES.items()
    }


@pytest.fixture(scope="module")
def trees(sdists: dict[str, Path]) -> dict[str, Path]:
    """The folders that they unpack to."""
    return {package: unpacked(sdist, sdist.parent / "tree") for package, sdist in sdists.items()}


@pytest.fixture(scope="module")
def wheels(trees: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels made of the source distributions, as pip makes them."""
    return {
        package: build(tree, "wheel", tmp_path_factory.mktemp("wheel"))
        for package, tree in trees.items()
    }


def _metadata(wheel: Path) -> Message:
    info = "-".join(wheel.name.split("-")[:2])
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(f"{info}.dist-info/METADATA").decode())


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _required(wheel: Path) -> list[str]:
    return list(_metadata(wheel).get_all("Requires-Dist") or [])


def test_the_version_is_that_of_the_code(sdists: dict[str, Path], wheels: dict[str, Path]) -> None:
    for package in PACKAGES:
        assert sdists[package].name == f"{package}-{celc.__version__}.tar.gz"
        assert wheels[package].name == f"{package}-{celc.__version__}-py3-none-any.whl"
        assert _metadata(wheels[package])["Version"] == celc.__version__
    for file in (
        ROOT / "pyproject.toml",
        ROOT / "runtime/pyproject.toml",
        ROOT / "celc/version.py",
    ):
        assert celc.__version__ not in file.read_text("utf-8")
    assert f"celc-runtime=={celc.__version__}" in _required(wheels["celc"])
    # Installed, the compiler has a number of its own, to be compared with that of the runtime.
    with zipfile.ZipFile(wheels["celc"]) as archive:
        assert f'VERSION = "{celc.__version__}"' in archive.read("celc/version.py").decode()


def test_a_source_distribution_has_what_builds_and_tests_celc(trees: dict[str, Path]) -> None:
    tree = trees["celc"]
    assert sorted(path.name for path in tree.iterdir()) == sorted([*_FOLDERS, *_FILES])
    assert sorted(path.name for path in trees["celc_runtime"].iterdir()) == sorted(
        [".gitignore", "LICENSE", "PKG-INFO", "README.md", "celc_runtime", "pyproject.toml"]
    )
    assert (ROOT / "runtime/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    files = {path.relative_to(tree).as_posix() for path in tree.rglob("*.*")}
    junk = (".pyc", ".log", ".pickle", ".so", ".whl")
    assert not [name for name in files if name.endswith(junk) or "/." in name]
    if which("git") is None or not (ROOT / ".git").exists():
        return  # these are the tests of a source distribution
    listed = subprocess.run(
        ["git", "ls-files", "-z", *_FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    assert len(tracked) > 500
    missing = {name for name in tracked if not (tree / name).is_file()}
    assert not missing


def test_a_wheel_has_its_package_and_nothing_else(wheels: dict[str, Path]) -> None:
    for package, wheel in wheels.items():
        assert list(problems_of_wheel(package, wheel)) == []
    names = _names(wheels["celc"]) | _names(wheels["celc_runtime"])
    code = {name for name in names if ".dist-info/" not in name}
    # Style sheets and scripts are of pages, the grammars of editors are JSON.
    kinds = {".py", ".lark", ".jinja", ".typed", ".json", ".css", ".js"}
    assert {Path(name).suffix for name in code} == kinds
    assert "celc/editor/grammars/cel.tmLanguage.json" in code
    for folder, place in [("celc", ""), ("runtime/celc_runtime", ""), ("templates", "celc")]:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".jinja"):
                inside = path.relative_to((ROOT / folder).parent)
                assert (Path(place) / inside).as_posix() in code


def test_a_wheel_that_is_wrong_is_told(wheels: dict[str, Path], tmp_path: Path) -> None:
    wheel = tmp_path / wheels["celc"].name
    with zipfile.ZipFile(wheels["celc"]) as old, zipfile.ZipFile(wheel, "w") as new:
        for name in old.namelist():
            if name == "celc/py.typed" or name.endswith("/entry_points.txt"):
                continue
            text = old.read(name)
            if name.endswith("/METADATA"):
                text = text.replace(b"License-Expression: ", b"License-Expression: x")
            new.writestr(name, text)
        new.writestr("tests/test_it.py", "")
        new.writestr("celc/README.md", "")
    told = "\n".join(problems_of_wheel("celc", wheel))
    for problem in ("xApache", "has tests", "has no celc/py.typed", "has no entry 'celc = celc."):
        assert problem in told
    assert "has celc/README.md" in told


def test_users_get_ranges_and_developers_pins(wheels: dict[str, Path]) -> None:
    required = _required(wheels["celc"])
    users = [line for line in required if "extra" not in line]
    # What runs a module is named by the runtime alone.
    of_runtime = _required(wheels["celc_runtime"])
    plain = [line for line in of_runtime if "extra" not in line]
    assert _packages(plain) == {"numba", "numpy", "pyarrow"}
    assert _packages(users) == {"black", "celc-runtime", "jinja2", "rich", "shtab", "sqlglot"}
    for line in [*users, *of_runtime]:
        assert "==" not in line.split(";")[0] or line == f"celc-runtime=={celc.__version__}"
    for name in ("black", "jinja2", "sqlglot"):
        assert any(f"{name}==" in line and "'dev'" in line for line in required)


def test_only_the_extra_for_it_brings_pyspark(wheels: dict[str, Path]) -> None:
    """Beside databricks-connect, which has a package `pyspark` of its own, it must not be there."""
    for package, wheel in wheels.items():
        for line in _required(wheel):
            assert "databricks" not in line
            if "pyspark" in line or "[spark]" in line:
                assert "'spark'" in line or (package == "celc" and "'dev'" in line)


def _packages(lines: list[str]) -> set[str]:
    return {re.split(r"[<>=!~\[; ]", line)[0] for line in lines}


def test_archives_built_twice_are_the_same_bytes(
    sdists: dict[str, Path], wheels: dict[str, Path], tmp_path: Path
) -> None:
    """From the source distribution and from the checkout; and with a time of the packager's own.
    The larger one is built twice by `make dist` only."""
    source, wheel = ROOT / "runtime", wheels["celc_runtime"]
    again = build(source, "sdist", tmp_path / "s")
    assert again.read_bytes() == sdists["celc_runtime"].read_bytes()
    assert build(source, "wheel", tmp_path / "a").read_bytes() == wheel.read_bytes()
    dated = [
        build(source, "wheel", tmp_path / name, SOURCE_DATE_EPOCH="1700000000").read_bytes()
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
def test_source_distributions_are_installed_by_pip(sdists: dict[str, Path], tmp_path: Path) -> None:
    """The compiler, the grammar, the templates and the runtime; what is compiled runs."""
    pytest.importorskip("pip")
    site = tmp_path / "site"
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(site)]
    command = [sys.executable, "-m", "pip", "install", "--quiet", *options]
    command += map(str, sdists.values())
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
