"""`tools/house.py` counts what is there: of a small tree every number is known.

`test_layers` counts those of ours.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

from house import House, long_without_reason
from places import ROOT

_FILES = {
    "celc/__init__.py": '"""The compiler."""\n',
    "celc/parse/__init__.py": '"""Text to tree."""\n',
    "celc/parse/tables.py": '"""Tables."""\n\nimport celc.plan.tables\n',
    "celc/plan/__init__.py": '"""Tree to plan."""\n',
    "celc/plan/tables.py": '"""Long."""\n\n\ndef make() -> int:\n'
    + "    x = 1\n" * 450
    + "    return x\n",
    "runtime/celc_runtime/__init__.py": '"""The runtime."""\n',
    "runtime/celc_runtime/plan/__init__.py": '"""The plan."""\n',
    "runtime/celc_runtime/plan/plan.py": """
        class Rows: ...
        class Chain: ...
        Source: TypeAlias = Rows | Chain
        class Plan:
            source: Source
            limit: Limit
        class Limit:
            matches: int | None = None
    """,
    "runtime/celc_runtime/run/__init__.py": '"""The run."""\n',
    "runtime/celc_runtime/run/run.py": """
        class Able(Protocol):
            def push(self): ...
            def rest(self): ...
        class Run:
            def push(self): ...
            def rest(self): ...
        class Grouped(Run): ...
        class _Inner(Grouped): ...
        class Half:
            def push(self): ...
    """,
    "runtime/celc_runtime/engine/__init__.py": '"""Kernels."""\n',
    "runtime/celc_runtime/engine/arena/__init__.py": '"""The arena."""\n',
    "runtime/celc_runtime/engine/arena/nodes.py": "CHILD, NEXT = 0, 1\n",
    "runtime/celc_runtime/engine/walk/__init__.py": '"""Walks."""\n',
    "runtime/celc_runtime/engine/walk/one.py": """
        from celc_runtime.engine.arena.nodes import CHILD, NEXT
        def walk(nodes, node):
            while node:
                child, node = nodes[node, CHILD], nodes[node, NEXT]
        def write(nodes, node):
            while node:
                nodes[node, CHILD] = nodes[node, NEXT] = 0
        def factory():
            @njit
            def kernel():
                LONG
            return kernel
    """,
    "templates/update.py.jinja": "x = 1\n",
    "tests/test_layers.py": """
        LAYERS = {"celc": (("",), ("plan",), ("parse",))}
        ROOMS = {"celc_runtime.engine": (("walk",), ("arena",))}
    """,
}


def test_a_small_tree(tmp_path: Path) -> None:
    _write(tmp_path)
    shown = _shown(str(tmp_path))
    for row in (
        "names that several files have 1 tables.py 2",
        "imports pointing up 1 celc.parse.tables imports celc.plan.tables",
        "classes that run 2 Grouped, Run",
        "variants of Source 2 Rows, Chain",
        "classes of Run in run/ 3",
        "fields of Plan and its parts 3 Plan 2, Limit 1",
        "walks over the arena 1 one.walk",
        "functions over 60 lines 1 tables.make 452",
        "files over 450 lines 1 plan.tables 455",
        "celc_runtime.engine 5 2 1 1",
        "celc.parse 2 0 - 0",
    ):
        assert row in shown
    assert shown[0].endswith(f"celc 461, celc_runtime {_lines('runtime')}, templates 1")
    assert "lines of tests 2" in shown


def test_what_is_long_says_why(tmp_path: Path) -> None:
    _write(tmp_path)
    long = "celc.plan.tables"
    assert list(long_without_reason(House(tmp_path).modules.values())) == [long, f"{long}.make"]
    path = tmp_path / "celc" / "plan" / "tables.py"
    text = path.read_text().replace("Long.", "Long: a table.")
    path.write_text(text)
    assert list(long_without_reason(House(tmp_path).modules.values())) == [f"{long}.make"]
    path.write_text(text.replace("def make", "# Long: a table.\ndef make"))
    assert list(long_without_reason(House(tmp_path).modules.values())) == []


def test_a_folder_that_is_not_there() -> None:
    ended = _run("/nowhere/at/all")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "tools/house.py [ROOT]" in ended.stderr


def _write(root: Path) -> None:
    for name, text in _FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(text))


def _lines(folder: str) -> int:
    texts = [_text(text) for name, text in _FILES.items() if name.startswith(folder)]
    return sum(text.count("\n") for text in texts)


def _text(shown: str) -> str:
    return dedent(shown).lstrip("\n").replace("        LONG\n", "        x = 1\n" * 70)


def _shown(*arguments: str) -> list[str]:
    ended = _run(*arguments)
    assert (ended.returncode, ended.stderr) == (0, "")
    return [" ".join(row.split()) for row in ended.stdout.splitlines()]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "tools" / "house.py")
    return subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, check=False
    )


def test_what_tests_import_by_a_bare_name_has_a_name_of_its_own() -> None:
    """Which of two modules of one name is imported would hang on the order of the tests."""
    packages = {path.parent for path in (ROOT / "tests").rglob("__init__.py")}
    paths = [path for path in (ROOT / "tests").rglob("*.py") if path.parent not in packages]
    paths += [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "tools").glob("*.py")]
    times = Counter(path.stem for path in paths if "golden" not in path.parts)
    assert [name for name, number in times.items() if number > 1 and name != "conftest"] == []
