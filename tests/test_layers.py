"""The folders of both packages are layers: imports point down, and never form a circle.

All imports count, those inside functions and those for types alone as well. A folder or a module
that the table does not know is an error: a new one needs a place first.
"""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections import Counter
from types import FunctionType

import pytest
from house import House, long_without_reason, table
from places import ROOT

LAYERS = {
    "celc": (
        ("__main__", "testing"),
        ("",),  # celc itself: `compile`, `check`, `format_text` and `report`
        ("interfaces",),
        ("editor",),
        ("statements",),
        ("compare", "mutate"),
        ("driver", "row_pattern"),
        ("near", "verify", "codegen", "options"),
        ("plan", "relational"),
        ("automata",),
        ("normal",),
        ("resolve",),
        ("core",),
        ("parse",),
        ("diagnostics",),
        ("version",),
    ),
    "celc_runtime": (
        ("",),
        ("public",),
        ("query",),
        ("chain", "row_pattern"),
        ("expanding", "many", "stream"),
        ("spark",),
        ("rules",),
        ("display", "run"),
        ("arrow",),
        ("engine",),
        ("routes",),
        ("program",),
        ("plan",),
        ("values",),
        ("jit",),
        ("module_format",),
        ("version",),
    ),
}
"""The layers of each package from the top down; rooms of one layer do not import each other."""

ROOMS = {
    "celc.interfaces": (("notebook",), ("", "cli"), ("pages",), ("doctor", "explain", "importing")),
    "celc.codegen": (
        ("",),
        ("updates",),
        ("correlated",),
        ("expressions",),
        ("text",),
    ),
    "celc_runtime.engine": (
        ("totals", "update"),
        ("graph",),
        ("past", "walk", "worlds"),
        ("arena", "definition", "values"),
    ),
    "celc_runtime.run": (
        ("",),
        ("answer", "choice", "update"),
        ("walk",),
        ("past",),
        ("source",),
    ),
    "celc_runtime.chain": (("streams",), ("",)),
    "celc_runtime.stream": (("",), ("one_bucket",), ("stored",)),
    "celc_runtime.arrow": (("matches",), ("tables",), ("events",), ("",)),
    "celc_runtime.spark": (("",), ("worker",), ("answers",), ("input",)),
}
"""The layers of the rooms of a folder, likewise; "" are the modules beside the rooms."""

_MOST_ARROWS = 15
"""Between the rooms of one folder: so few that a reader keeps them in mind."""

_MOST_ROOMS = 21
_MOST_FILES = 20

HOUSE = House(ROOT)
"""Its files are read once, and parsed once in the process that has all tests of this file."""

MODULES = {
    package: [one for one in HOUSE.modules if one.partition(".")[0] == package]
    for package in LAYERS
}
_ALL = {name: module.path for name, module in HOUSE.modules.items()}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """What each module of both packages imports of them."""
    for name, module in HOUSE.modules.items():
        whole = all(not node.level for node in module.nodes if isinstance(node, ast.ImportFrom))
        assert whole, f"{name}: imports are written in full"
    return HOUSE.imports


def _room(module: str) -> tuple[str, str]:
    package, _, rest = module.partition(".")
    return package, rest.partition(".")[0]


def _room_in(folder: str, module: str) -> str | None:
    """The room of a module of this package or folder, "" at its top; None elsewhere."""
    if module != folder and not module.startswith(f"{folder}."):
        return None
    if folder in ROOMS and _ALL[module].parent == _ALL[folder].parent:
        return ""
    return module.removeprefix(folder)[1:].partition(".")[0]


_HOUSES = LAYERS | ROOMS


@pytest.mark.parametrize("folder", _HOUSES)
def test_every_room_has_a_layer(folder: str) -> None:
    known = {room for layer in _HOUSES[folder] for room in layer}
    top = {""} if folder in ROOMS else set()
    assert {_room_in(folder, module) for module in _ALL} - {None} == known | top


@pytest.mark.parametrize("folder", _HOUSES)
def test_imports_point_down(folder: str, imports: dict[str, set[str]]) -> None:
    level = {room: number for number, layer in enumerate(_HOUSES[folder]) for room in layer}
    arrows = [
        (module, _room_in(folder, module), other, _room_in(folder, other))
        for module in _ALL
        for other in imports[module]
    ]
    wrong = [
        f"{module} imports {other}"
        for module, room, other, below in arrows
        if room is not None and below is not None
        if room != below and level[below] <= level[room]
    ]
    assert wrong == []
    if folder in ROOMS:
        seen = {(room, below) for _, room, _, below in arrows if room and below and room != below}
        assert len(seen) <= _MOST_ARROWS


def test_no_module_imports_itself_by_way_of_others(imports: dict[str, set[str]]) -> None:
    left = {module: set(others) for module, others in imports.items()}
    while free := [module for module, others in left.items() if not others & left.keys()]:
        for module in free:
            del left[module]
    assert left == {}, "these import each other in a circle"


def test_the_runtime_does_not_know_the_compiler(imports: dict[str, set[str]]) -> None:
    wrong = [
        f"{module} imports {other}"
        for module in MODULES["celc_runtime"]
        for other in imports[module]
        if _room(other)[0] == "celc"
    ]
    assert wrong == []


_REPRESENTATIONS = (
    *("celc.automata.automaton", "celc.automata.determinize", "celc.automata.letters"),
    "celc.automata.predicates",
    *("celc.core.formula", "celc.normal.divide", "celc.normal.flat_form"),
    *("celc.normal.normal_form", "celc.plan", "celc.version"),
)
"""The modules of the compiler whose classes a proof reads."""


def test_a_proof_reads_representations_and_calls_no_pass() -> None:
    """It imports only classes and constants of the compiler, so it repeats no mistake of a pass."""
    wrong = []
    for name, module in HOUSE.modules.items():
        if not name.startswith("celc.verify.prove"):
            continue
        aliases: dict[str, str] = {}
        for node in module.nodes:
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            origin = node.module
            if not origin.startswith("celc.") or origin.startswith("celc.verify.prove"):
                continue
            for one in node.names:
                whole = f"{origin}.{one.name}"
                if whole in HOUSE.modules:
                    aliases[one.asname or one.name] = whole
                elif isinstance(getattr(importlib.import_module(origin), one.name), FunctionType):
                    wrong.append(f"{name} imports the function {whole}")
                known = whole if whole in HOUSE.modules else origin
                if not known.startswith(_REPRESENTATIONS):
                    wrong.append(f"{name} imports {known}")
        for node in module.nodes:
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                continue
            origin = aliases.get(node.value.id, "")
            if origin and isinstance(
                getattr(importlib.import_module(origin), node.attr), FunctionType
            ):
                wrong.append(f"{name} calls {origin}.{node.attr}")
    assert wrong == []


_FOR_ALL = ("module_format", "plan", "values", "version")
"""The modules of the runtime that hold data and numbers, and run nothing."""


def test_of_the_compiler_only_the_outermost_layers_know_the_runtime(
    imports: dict[str, set[str]],
) -> None:
    rooms = {
        _room(module)[1]
        for module in MODULES["celc"]
        for other in imports[module]
        if _room(other)[0] == "celc_runtime" and _room(other)[1] not in _FOR_ALL
    }
    assert rooms <= {"driver", "interfaces"}


def test_the_data_of_a_plan_need_neither_arrow_nor_numba() -> None:
    """The compiler makes them, and such libraries take longer to import than it takes."""
    plan = "import sys, celc_runtime.plan.plan, celc_runtime.plan.strategy, celc_runtime.plan.joins"
    large = '{"numba", "numpy", "pandas", "pyarrow", "pyspark"}'
    subprocess.run(
        [sys.executable, "-c", f"{plan}\nassert not {large} & {{*sys.modules}}"], check=True
    )


@pytest.mark.parametrize("package", LAYERS)
def test_the_top_of_a_package_is_seen_at_a_glance(package: str) -> None:
    rooms = {_room(module)[1] for module in MODULES[package]} - {"", "__main__"}
    assert len(rooms) <= _MOST_ROOMS


@pytest.mark.usefixtures("imports")
def test_a_folder_says_what_it_is_for() -> None:
    wrong = []
    for module, path in _ALL.items():
        doc = ast.get_docstring(HOUSE.modules[module].tree) or ""
        if not doc:
            wrong.append(f"{module} has no docstring")
        if path.name == "__init__.py" and module not in LAYERS and len(doc.splitlines()) > 10:
            wrong.append(f"{module} needs more than ten lines to say what it is for")
    assert wrong == []


def test_a_folder_is_seen_at_a_glance() -> None:
    folders = Counter(path.parent for path in _ALL.values())
    crowded = {str(folder): files for folder, files in folders.items() if files > _MOST_FILES}
    assert crowded == {}


@pytest.mark.usefixtures("imports")
def test_what_is_long_says_why() -> None:
    """Files have up to 450 lines and functions up to 60, or a line with `Long: ` has the reason."""
    assert list(long_without_reason(HOUSE.modules.values())) == []


@pytest.mark.usefixtures("imports")
def test_what_is_counted_is_there() -> None:
    """`tools/house.py` looks for some names, which may have changed."""
    shown = [" ".join(row.split()) for row in table(HOUSE)]
    assert "imports pointing up 0" in shown
    walks = next(row for row in shown if row.startswith("walks over the arena "))
    assert int(walks.split()[4]) > 0
    runs = next(row for row in shown if row.startswith("classes that run "))
    assert int(runs.split()[3]) > 0
