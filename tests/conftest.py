"""Options and fixtures of the test suite."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files anew instead of comparing with them",
    )


# How long an example takes says more of what else the machine does than of celc.
hypothesis.settings.register_profile("celc", deadline=None)
hypothesis.settings.load_profile("celc")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say which tests belong to one process, where several share them.

    One of them has the Spark session, and what a module makes for its tests is made once.
    """
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        assert isinstance(item, pytest.Function)
        known = item._fixtureinfo.name2fixturedefs
        if "spark" in known:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif any(
            fixture.scope == "module" and fixture.baseid
            for fixtures in known.values()
            for fixture in fixtures
        ):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark session on this machine: UTC, ANSI mode off, two cores."""
    _find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("celc-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _find_java() -> None:
    """Set JAVA_HOME where the machine has no Java of its own."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        tool = Path(__file__).parents[1] / "tools" / "java.py"
        found = subprocess.run(
            [sys.executable, str(tool)], capture_output=True, text=True, check=True
        )
        os.environ["JAVA_HOME"] = found.stdout.strip()
