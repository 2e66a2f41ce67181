"""Which modules each command imports: imports are most of the time of a short command.

Each test starts a process and looks at the modules that it has loaded. A new import at the top of a
file that a command reads shows here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import celc

_LIBRARIES = frozenset(
    {"black", "jinja2", "lark", "llvmlite", "numba", "numpy", "pandas", "sqlglot"}
)
_MORE = frozenset({"pyarrow", "pyspark", "rich"})
_NUMBERS = frozenset({"celc_runtime.module_format", "celc_runtime.version"})
_FROZEN = _NUMBERS | {f"celc_runtime.plan{one}" for one in ("", ".errors", ".frozen")}
"""The modules of the runtime that every import of celc loads: versions, `@frozen`, and errors."""

_ROWS = (
    "CREATE TABLE t (id INT, v INT); SELECT * FROM t MATCH_RECOGNIZE (ORDER BY id "
    "MEASURES COUNT(*) AS n PATTERN (S D U) DEFINE D AS v < PREV(v), U AS v > PREV(v))"
)

_LOADED = """
import sys
{body}
print(*sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
own = ("celc.", "celc_runtime.")
print(*sorted(name for name in sys.modules if name.startswith(own)), file=sys.stderr)
"""


def _modules(body: str) -> tuple[set[str], set[str]]:
    """(the packages, the modules of celc) that a process has imported when `body` is done."""
    found = subprocess.run(
        [sys.executable, "-c", _LOADED.format(body=body)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    packages, modules = found.stderr.splitlines()[-2:]
    return set(packages.split()), set(modules.split())


def _modules_of_process(*arguments: str) -> tuple[set[str], set[str]]:
    """(the packages, the modules of celc and pyarrow) that `celc` with these arguments imports.

    The command leaves Python without the usual end, so nothing can be printed there: this reads
    the log of imports.
    """
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "celc", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0, done.stderr
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    names = {line.rpartition("|")[2].strip() for line in lines}
    names.discard("pandas")  # the log also names what is only looked for
    own = {name for name in names if name.startswith(("celc.", "celc_runtime.", "pyarrow."))}
    return {name.partition(".")[0] for name in names}, own


def _of_runtime(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("celc_runtime.")}


_ON_SPARK = ("chain.on_spark", "chain.all_on_spark", "spark.match", "stream")


def _of_rooms(modules: set[str], *rooms: str) -> set[str]:
    rooms = tuple(f"celc_runtime.{room}" for room in rooms)
    return {name for name in modules if name.startswith(rooms)}


def _command(*arguments: str) -> str:
    """Runs a command, which may end the process."""
    return (
        f"from celc.interfaces.cli import main\ntry:\n    main({list(arguments)!r})\n"
        "except SystemExit:\n    pass"
    )


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_help_and_version_import_neither_compiler_nor_libraries(option: str) -> None:
    packages, modules = _modules(_command(option))
    assert "celc" in packages
    assert packages.isdisjoint(_LIBRARIES | _MORE), packages
    assert _of_runtime(modules) <= _FROZEN
    assert modules.isdisjoint(
        {"celc.driver.pipeline", "celc.parse.syntax", "celc.core.formula"}
    ), modules


def test_check_imports_the_compiler_but_nothing_that_writes_or_runs_modules() -> None:
    packages, modules = _modules(_command("check", "examples/flights.cel"))
    assert "celc.driver.pipeline" in modules
    assert packages.isdisjoint(_LIBRARIES | _MORE), packages
    assert "celc.codegen.module" not in modules
    # It takes classes of plans from the runtime, and nothing that runs a plan.
    of_runtime = _of_runtime(modules)
    plain = ("celc_runtime.plan", "celc_runtime.values")
    assert all(name.startswith(plain) for name in of_runtime - _NUMBERS), of_runtime
    assert "celc_runtime.plan.strategy" in of_runtime


def test_a_run_imports_nothing_that_only_readers_spark_and_frames_need(tmp_path: Path) -> None:
    events = tmp_path / "weather.csv"
    events.write_text("type,airport,value,ts\nT,JFK,95.5,2026-07-01 12:00:00\n")
    query = str(ROOT / "examples" / "weather.cel")
    packages, modules = _modules_of_process("run", query, str(events))
    assert {"jinja2", "pyarrow"} <= packages
    assert packages.isdisjoint({"black", "lark", "pandas", "pyspark", "sqlglot"}), packages
    assert not [name for name in modules if name.startswith("celc.relational")]
    assert not _of_rooms(modules, *_ON_SPARK, "row_pattern.query")
    assert "pyarrow.csv" in modules
    assert "pyarrow.parquet" not in modules


def test_init_imports_nothing_that_compiles_or_formats_python(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("type,v\nA,1\n")
    packages, modules = _modules_of_process("init", str(tmp_path / "e.csv"))
    others = {"black", "jinja2", "lark", "pandas", "pyspark", "sqlglot"}
    assert packages.isdisjoint(others), packages
    assert "celc.driver.pipeline" not in modules


def test_a_run_of_match_recognize_imports_as_little(tmp_path: Path) -> None:
    rows, query = tmp_path / "rows.csv", tmp_path / "v.sql"
    rows.write_text("id,v\n1,3\n2,1\n3,2\n")
    query.write_text(_ROWS)
    packages, modules = _modules_of_process("run", str(query), str(rows))
    assert {"jinja2", "pyarrow"} <= packages
    assert packages.isdisjoint({"black", "lark", "pandas", "pyspark", "sqlglot"}), packages
    assert not _of_rooms(modules, "stream", "spark.match")


def test_an_import_of_a_module_imports_no_route_but_that_of_tables(tmp_path: Path) -> None:
    query = (ROOT / "examples" / "weather.cel").read_text("utf-8")
    (tmp_path / "weather_udf.py").write_text(celc.compile(query, name="weather.cel").source)
    _, modules = _modules(f"sys.path.insert(0, {str(tmp_path)!r})\nimport weather_udf")
    assert "celc_runtime.rules.any_query" in modules
    assert not _of_rooms(modules, *_ON_SPARK, "chain.run", "rules.run", "rules.rows", "spark")


def test_a_compilation_imports_nothing_that_reads_events(tmp_path: Path) -> None:
    query = str(ROOT / "examples" / "flights.cel")
    packages, _ = _modules_of_process("compile", query, "-o", str(tmp_path / "flights_udf.py"))
    assert {"black", "jinja2", "sqlglot"} <= packages
    assert packages.isdisjoint({"lark", "numba", "numpy", "pandas", "pyarrow", "rich"}), packages


_COMPILES = """
import celc
text = "CREATE STREAM S {{ EVENT A {{ id: INT }}, EVENT B {{ id: INT }} }} "
celc.compile(text + "QUERY q: SELECT * FROM S WHERE A ; B")
celc.compile({rows!r}, dialect="match_recognize")
"""


def test_a_call_of_compile_imports_nothing_that_formats_compiles_or_shows() -> None:
    """The generated module is loaded here, and it needs NumPy and Arrow. It also holds the query as
    SQL for Spark, which sqlglot writes."""
    packages, modules = _modules(_COMPILES.format(rows=_ROWS))
    assert {"jinja2", "numpy", "pyarrow", "sqlglot"} <= packages
    unwanted = _LIBRARIES | _MORE
    assert packages.isdisjoint(unwanted - {"jinja2", "numpy", "pyarrow", "sqlglot"}), packages
    assert not _of_rooms(modules, *_ON_SPARK)
    assert not [name for name in modules if name.startswith("celc.interfaces")]


def test_an_import_of_celc_is_no_import_of_the_compiler() -> None:
    packages, modules = _modules("import celc\nassert celc.__version__ and 'compile' in dir(celc)")
    assert packages.isdisjoint(_LIBRARIES | _MORE), packages
    assert _of_runtime(modules) <= _FROZEN


def test_the_plugin_of_pytest_imports_nothing_before_there_is_a_test_file() -> None:
    packages, modules = _modules("import celc.testing.plugin")
    assert packages.isdisjoint(_LIBRARIES | {"pyarrow", "pyspark"}), packages
    assert not [name for name in modules if name.startswith("celc.interfaces")]
    assert _of_runtime(modules) <= _FROZEN


def test_names_that_are_imported_late_are_there() -> None:
    _, modules = _modules(
        "import celc\nassert celc.CelError.__module__ == 'celc.diagnostics.errors'\n"
        "assert celc.Diagnostic.__name__ == 'Diagnostic'\n"
        "assert celc.Matcher.__name__ == 'Matcher' and set(celc.__all__) <= set(dir(celc))"
    )
    assert "celc.driver.matcher" in modules


def test_a_name_that_celc_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'celc' has no attribute 'nothing'"):
        _ = celc.nothing
