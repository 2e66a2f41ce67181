"""Options and fixtures of the test suite."""

from __future__ import annotations

import os

from places import ROOT, TESTS

# Before celc is imported: every compilation of every test, those in child processes too, is checked
# between its passes.
os.environ["CELC_VERIFY"] = "1"
# Hundreds of processes are started here. Each would make the bytecode of both packages anew, which
# takes longer than most of what they are started for.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Else Hypothesis imports the plugins that other packages have for it, as Trio's, in each process.
os.environ.setdefault("HYPOTHESIS_NO_PLUGINS", "1")
if os.environ.get("CELC_TEST_SPARK"):
    # Neither here nor in the workers: what the tests of on_spark run on some rows takes longer to
    # compile.
    os.environ["NUMBA_DISABLE_JIT"] = "1"

import fcntl
import gc
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import black
import hypothesis
import pytest
from shares import leave_to_the_long_run
from spark_routes import INTERPRETED_PLANS, fewer_processes, worker_python

_Test = TypeVar("_Test", bound=Callable[..., Any])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files anew instead of comparing with them",
    )


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written anew."""
    chosen = bool(request.config.getoption("--update-golden"))
    assert not (chosen and os.environ.get("CI")), "goldens are never written in CI"
    return chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Small inputs are read by Python, whatever that takes; by machine code in tests that ask.

    Both kinds do the same (`tests/test_conformance.py`), and to compile takes most of the time of
    most tests.
    """
    from celc_runtime.jit import kernels, shipping
    from celc_runtime.run.walk import checked, in_worlds

    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("spark") is not None and ON_SPARK != "connect":
            # Workers of a classic session import the runtime. Over Connect they have none: there
            # its text, 0.7 MB, travels with each query, which a JVM hashes and writes out.
            patch.setattr(shipping, "_packed_runtime", bytes)
        if item.get_closest_marker("machine_code") is not None:
            patch.setattr(kernels, "MOST_ROWS", 0)
            patch.setenv("CELC_INTERPRETED_ROWS", "0")
        else:
            patch.setattr(kernels, "PATIENCE", _PATIENCE)
            for kernel in _of_all_queries():
                patch.setattr(kernel, "_seconds", float("inf"))
            # What another test has kept of a kernel is of other types, mostly.
            patch.setattr(kernels, "PATIENCE_TO_LOAD", float("inf"))
            # Searches that are compiled at once, as few events may mean many steps.
            patch.setattr(checked, "collected_listing", _collected_by_python)
            patch.setattr(in_worlds, "compiling", nullcontext)
        return (yield)


_PATIENCE = sys.float_info.max
"""Seconds of CPU: no kernel is run by Python for so long."""


def _of_all_queries() -> list[Any]:
    """Kernels whose machine code is made once, because the types of their inputs do not depend on
    the query: those that look up keys of streams, and those that list matches. Python took a
    fifteenth of the time of all tests to hash keys, and would take minutes for a million matches.
    """
    from celc_runtime.engine.walk import listing, runs
    from celc_runtime.jit.kernels import Kernel
    from celc_runtime.stream.stored import key_table

    of_keys = key_table._hashes, key_table._number, key_table._find
    of_matches = listing.list_fired, runs.list_runs
    # They are functions where Numba is off.
    return [one for one in (*of_keys, *of_matches) if isinstance(one, Kernel)]


def _collected_by_python(checks: Any) -> Any:
    from celc_runtime.engine.walk.collected_listing import collected_listing

    kernel = collected_listing(checks)
    return getattr(kernel, "interpreted", kernel)  # without Numba it is a function


def _formatted_once(format_str: Callable[..., str]) -> Callable[..., str]:
    """Black, which formats a text once in a process: tests compile many queries that others compile
    too, and black takes most of that."""
    modes: dict[str, black.Mode] = {}

    @lru_cache(maxsize=2000)
    def formatted(text: str, key: str) -> str:
        return format_str(text, mode=modes[key])

    def once(text: str, *, mode: black.Mode) -> str:
        key = mode.get_cache_key()
        modes[key] = mode
        return formatted(text, key)

    return once


black.format_str = _formatted_once(black.format_str)

# How long an example takes, or is drawn, says more of what else the machine does than of celc.
hypothesis.settings.register_profile(
    "celc", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("celc")


_BY_MACHINE_CODE = ("test_kernel_forms", "test_standalone", "test_python_api")
"""Files and tests that run small inputs by machine code too, besides those of `tests/runtime/jit`,
and those whose names say so."""


def _wants_machine_code(item: pytest.Item) -> bool:
    says = any(word in item.name for word in ("numba", "machine_code", "are_compiled"))
    listed = item.path.stem in _BY_MACHINE_CODE or item.name.partition("[")[0] in _BY_MACHINE_CODE
    return says or listed or (item.path.parent.name == "jit" and item.path.stem != "test_kernels")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """What is made meanwhile stays, so that nobody looks for garbage in it.

    In a fresh checkout the first process makes the bytecode of the packages and of the tests, whose
    asserts pytest rewrites, and Hypothesis looks through both for constants. The others wait for
    that: to make it takes longer than all else that a process does here.
    """
    gc.disable()
    try:
        with Path(__file__).open() as here:
            if hasattr(session.config, "workerinput") and _is_fresh():
                fcntl.flock(here, fcntl.LOCK_EX)
                if not _is_fresh():
                    fcntl.flock(here, fcntl.LOCK_UN)
            return (yield)
    finally:
        gc.enable()


def _is_fresh() -> bool:
    """Whether fewer than half of the files of tests have bytecode with rewritten asserts."""
    files = sum(1 for _ in TESTS.rglob("test_*.py"))
    written = sum(1 for _ in TESTS.rglob(f"test_*-pytest-{pytest.__version__}.pyc"))
    return 2 * written < files


def pytest_collection_finish() -> None:
    """What is there now stays: thousands of tests and the packages. To look at it over and over for
    garbage took a seventh of the time of all tests. What tests keep took a tenth, so objects that
    are older than a million others are looked at seldom, and young ones by fifty thousand: by ten
    thousand it still took a fortieth."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


_LONGEST = ("test_on_spark", "spark", "test_random_across")
"""Files of tests, and groups of them, that take minutes."""

_MANY, _HANDED_OUT = 40, 10
"""From how many tests of a file on so many are one piece of work: to hand out each alone took xdist
a quarter of what it takes to run tests that do nothing."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say which tests need Spark, which belong to one process, and which come first.

    One process has the Spark session, and what a module makes for its tests is made once. In the
    end no process shall wait long for another one: tests that take minutes come first, and last
    those of files with many tests, which are short. (xdist's own order, by the size of groups, is
    switched off in the Makefile.) Of files with many tests some are handed out at once.
    """
    if ON_SPARK == "connect":
        for item in items:
            if item.path.parent.name == "on_spark" and item.path.stem not in _OVER_CONNECT:
                item.add_marker(pytest.mark.long)
    leave_to_the_long_run(items)
    shared = config.pluginmanager.hasplugin("xdist")
    tests = Counter(item.path for item in items)
    places: Counter[Path] = Counter()
    for item in items:
        assert isinstance(item, pytest.Function)
        if _wants_machine_code(item):
            item.add_marker(pytest.mark.machine_code)
        known = item._fixtureinfo.name2fixturedefs
        if "spark" in known:
            item.add_marker(pytest.mark.spark)
            group = "spark"
        elif any(
            fixture.scope == "module" and fixture.baseid
            for fixtures in known.values()
            for fixture in fixtures
        ):
            group = item.path.stem
        elif tests[item.path] >= _MANY and item.path.stem not in _LONGEST:
            group = f"{item.path.stem}-{places[item.path] // _HANDED_OUT}"
            places[item.path] += item.get_closest_marker("long") is None
        else:
            continue
        if shared:
            item.add_marker(pytest.mark.xdist_group(group))
    if shared:
        items.sort(key=lambda item: (_rank(item), tests[item.path]))


def _rank(item: pytest.Item) -> int:
    """The place in `_LONGEST`, or a greater number."""
    group = item.get_closest_marker("xdist_group")
    for rank, name in enumerate(_LONGEST):
        if name == (group.args[0] if group else item.path.stem):
            return rank
    return len(_LONGEST)


ON_SPARK = os.environ.get("CELC_TEST_SPARK", "")
"""`classic` or `connect`: the session that the tests in on_spark run with; see test_on_spark."""


_OVER_CONNECT = (
    "test_conformance_on_spark",
    "test_spark_sql",
    "test_streams",
    "test_parameters_on_spark",
    "test_many_on_spark",
    "test_spark_progress",
    "test_statements_on_spark",
    "test_functions_of_statements_on_spark",
)
"""The files of on_spark that the suite runs over Connect as well: each way to run a query. Whatever
has an API of its own there is among them; the others send plans of the same kind, and are left to
the long run."""


def long_over_connect(test: _Test) -> _Test:
    """Leave a test of the files in `_OVER_CONNECT` to the suite's classic session.

    Its plan is the same over both kinds, and other tests send such a plan over Connect.
    """
    return pytest.mark.long(test) if ON_SPARK == "connect" else test


collect_ignore = [] if ON_SPARK else ["on_spark"]

# Sessions in tests live for seconds: a JVM that compiles less, and with one thread, takes half. One
# that has its memory from the start collects less garbage. To verify the bytecode of Spark's
# classes takes three tenths of what a session needs to start. To look for compiled code that is
# used no more, in the small room for it that one compiler has, took a sixth of all that a JVM did.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -Xms1g -Xmn500m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-XX:-UseCodeCacheFlushing -XX:ReservedCodeCacheSize=240m",
)


_NO_NUMBA = "NUMBA_DISABLE_JIT"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session on this machine: UTC, ANSI mode off, two cores.

    Its workers compile nothing, which takes longer than most tests; see `compiling_workers`.
    """
    _find_java()
    if ON_SPARK:
        # Over Connect no file of ours may be what makes a job work.
        folder = tmp_path_factory.mktemp("worker")
        os.environ["PYSPARK_PYTHON"] = str(worker_python(folder, runtime=ON_SPARK == "classic"))
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["CELC_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.appName("celc-tests")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.ansi.enabled", "false")
        # Else each function of a column tells the JVM first from which line it is called: four of
        # ten calls of the JVM, and a tenth of its CPU.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.log.level", "FATAL" if ON_SPARK else "ERROR")
    )
    if ON_SPARK == "connect":
        os.environ["SPARK_TESTING"] = "1"  # the server takes a free port, not always the same one
        session = builder.remote("local[2]").getOrCreate()
    else:
        # Spark needs longer to compile a plan than to run it on some rows. Over Connect it compiles
        # plans and keeps files, as it does for users.
        for name, value in (INTERPRETED_PLANS | fewer_processes()).items():
            builder = builder.config(name, value)
        if not ON_SPARK:
            builder = builder.config(f"spark.executorEnv.{_NO_NUMBA}", "1")
        session = (
            builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
    yield session
    session.stop()


@pytest.fixture
def compiling_workers(spark: Any) -> Iterator[None]:
    """Let Spark's workers compile what is generated, as they do for users; not in on_spark."""
    if ON_SPARK:
        yield
        return
    # What PySpark starts the workers of a plan with, read where the plan is made.
    environment = spark.sparkContext.environment
    del environment[_NO_NUMBA]
    yield
    environment[_NO_NUMBA] = "1"


def _find_java() -> None:
    """Set JAVA_HOME where the machine has no Java of its own."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        tool = ROOT / "tools" / "java.py"
        found = subprocess.run(
            [sys.executable, str(tool)], capture_output=True, text=True, check=True
        )
        os.environ["JAVA_HOME"] = found.stdout.strip()
