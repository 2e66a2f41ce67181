"""`celc doctor` and `celc.doctor`: what is found, and what is to be written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celc_runtime.jit.bootstrap import cache_root

import celc
from celc.interfaces.cli.command import main
from celc.interfaces.doctor import findings, packages

pytest.importorskip("pyspark")


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a program that says a text."""

    def made(name: str, text: str) -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\n", encoding="utf-8")
        path.chmod(0o700)
        return path

    return made


def test_a_machine_that_is_well_ends_with_0(
    program: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import sys

    program("java", 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "celc.toml").write_text('ties = "simultaneous"\n', encoding="utf-8")
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert f"ok  Java 21 of JAVA_HOME={tmp_path}\n" in told
    assert "ok  settings of celc.toml: ties = 'simultaneous'\n" in told
    assert f"ok  machine code is kept in {cache_root()} (" in told
    assert "!!" not in told


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21"])
def test_what_is_wrong_has_the_line_to_write(
    program: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    version: str,
) -> None:
    program("java", f'java version "{version}"')
    python = program("python", "ModuleNotFoundError: No module named 'numba'")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "# ours\nspark.python.worker.reuse   false\nspark.sql.session.timeZone=Europe/Berlin\n"
        "spark.sql.execution.arrow.maxRecordsPerBatch 10000\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "celc.toml").write_text("max_wrk = 1\n", encoding="utf-8")
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    java = 8 if version.startswith("1.") else 11
    for line in (
        f"!!  JAVA_HOME={tmp_path} has Java {java}, and Spark 4 needs 17\n      export JAVA_HOME=",
        f"!!  Spark's workers run PYSPARK_PYTHON={python}, which has no numba\n      export PY",
        f"!!  SPARK_HOME={tmp_path} has no Spark with Python\n      unset SPARK_HOME\n",
        "!!  spark.python.worker.reuse is false: each task starts a Python of its own",
        "      spark.python.worker.reuse true\n",
        "!!  spark.sql.session.timeZone is Europe/Berlin: ",
        "!!  celc.toml:1:1: there is no setting 'max_wrk'\n      did you mean 'max_work'?\n",
    ):
        assert line in told
    assert "maxRecordsPerBatch" not in told


def test_packages_that_are_missing_or_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"numba": "0.50", "numpy": None, "duckdb": None, "pygls": None}
    version_of = packages._version_of
    monkeypatch.setattr(
        packages,
        "_version_of",
        lambda name: versions[name] if name in versions else version_of(name),
    )
    told = celc.doctor()
    assert (
        "!!  numba is 0.50, and celc needs numba>=0.61\n      pip install 'numba>=0.61'\n" in told
    )
    assert "!!  numpy is not there, and celc needs it\n" in told
    assert "--  pygls is not there: celc lsp need it\n      pip install 'celc[editor]'\n" in told
    assert "--  duckdb is not there: celc.sql over tables, and celc run with a statement" in told


def _with_versions(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> str:
    """What is told where these packages have these versions."""
    known = {name.replace("_", "-"): version for name, version in versions.items()}
    version_of = packages._version_of
    monkeypatch.setattr(
        packages, "_version_of", lambda name: known[name] if name in known else version_of(name)
    )
    return _told()


def _told() -> str:
    return findings.told(packages.packages())


def test_a_runtime_of_another_version_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celc_runtime.version.VERSION", "7.1.0")
    said = _told()
    version = celc.__version__
    assert f"!!  celc {version} needs celc-runtime {version}, and the one in " in said
    assert "celc_runtime/version.py is 7.1.0\n" in said
    assert f"      pip install --force-reinstall --no-deps 'celc-runtime=={version}'\n" in said


def test_a_distribution_of_another_version_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    version = celc.__version__
    needed = f"celc-runtime=={version}"
    requires = {"celc": [needed, "numpy>=1.26"], "celc-runtime": ["numba>=0.61"]}
    monkeypatch.setattr("importlib.metadata.requires", requires.get)
    said = _with_versions(monkeypatch, celc=version, celc_runtime="7.1.0", numba="0.60")
    assert (
        f"!!  celc-runtime is 7.1.0, and celc needs {needed}\n      pip install '{needed}'\n"
        in said
    )
    assert "!!  numba is 0.60, and celc needs numba>=0.61\n" in said


def test_a_distribution_that_is_not_there_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said = _with_versions(monkeypatch, celc_runtime=None)
    assert said.count("!!  celc-runtime is no installed distribution, so nothing says what") == 1
    assert f"      pip install 'celc-runtime=={celc.__version__}'\n" in said


def test_databricks_connect_stands_for_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    requires = {"celc": ["celc-runtime[spark]; extra == 'spark'"]}
    requires["celc-runtime"] = ["pyspark[connect]<5,>=4.0; extra == 'spark'"]
    monkeypatch.setattr("importlib.metadata.requires", requires.get)
    names = {"celc": "1", "celc_runtime": "1", "databricks_connect": "19.3.0"}
    said = _with_versions(monkeypatch, **names, pyspark=None)
    assert "databricks-connect 19.3.0" in said
    assert "pyspark" not in said
    said = _with_versions(monkeypatch, **names, pyspark="4.3.0")
    assert "!!  pyspark 4.3.0 and databricks-connect have the same package, `pyspark`, and" in said
    assert "      pip uninstall pyspark databricks-connect  # then install the one that" in said


class _Conf:
    """The settings of a session: those that were made, and for others the question's answer."""

    def __init__(self, **made: str) -> None:
        self._made = {name.replace("_", "."): value for name, value in made.items()}

    def get(self, name: str, default: Any = None) -> Any:
        return self._made.get(name, default)


def test_the_settings_of_a_session() -> None:
    conf = _Conf(spark_sql_session_timeZone="America/New_York")
    conf._made["spark.sql.streaming.stateStore.providerClass"] = "x.HDFSBackedStateStoreProvider"
    told = celc.doctor(SimpleNamespace(version="4.3.0", conf=conf))
    assert "ok  Spark 4.3.0\n" in told
    assert "Java" not in told
    assert "      spark.conf.set('spark.sql.session.timeZone', 'UTC')\n" in told
    assert "!!  spark.sql.streaming.stateStore.providerClass is x.HDFSBackedStateStore" in told
    told = celc.doctor(SimpleNamespace(version="4.3.0", conf=_Conf()))
    assert "!!" not in told
