"""How large the house is, and how its rooms hang together: counts of a tree, as a small table.

    python tools/house.py [ROOT]

ROOT is any tree of the project, also an old one (default: the one that this file is in), so that
two trees can be compared. Only the text of files is read; nothing of the tree is imported. The
layers of imports are those that the tree itself has in `tests/test_layers.py`.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

MOST_LINES = 450  # of a file
MOST_LINES_OF_A_FUNCTION = 60
_SHOWN_FOLDERS = 10  # of the table: those with most files
_PACKAGES = {"celc": "celc", "celc_runtime": "runtime/celc_runtime"}
_AXES = ("Source", "Update", "Listing", "Walk", "Choice", "Answer")
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_REASON = "Long: "
_ARENA = {"CHILD", "NEXT"}
"""The columns of a node that lead to other nodes."""


@dataclass(frozen=True)
class Module:
    """A file of Python: its name as it is imported, and its text."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.text.count("\n")


@dataclass(frozen=True)
class House:
    """A tree of the project."""

    root: Path

    @cached_property
    def modules(self) -> dict[str, Module]:
        """The modules of both packages by their names."""
        return {
            one.name: one
            for package, folder in _PACKAGES.items()
            for one in modules_of(package, self.root / folder)
        }

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """What each module of both packages imports of them."""
        return {name: set(self._imported(one)) - {name} for name, one in self.modules.items()}

    def _imported(self, module: Module) -> Iterator[str]:
        for node in module.nodes:
            if isinstance(node, ast.Import):
                yield from (one.name for one in node.names if one.name in self.modules)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    yield from [inner] if inner in self.modules else []
                    yield from [node.module] if inner not in self.modules else []

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """The modules in and below each folder of the packages that has any."""
        found: dict[str, list[str]] = {}
        for name, module in self.modules.items():
            parts = name.split(".") if module.path.name == "__init__.py" else name.split(".")[:-1]
            for length in range(2, len(parts) + 1):
                found.setdefault(".".join(parts[:length]), []).append(name)
        return found


def modules_of(package: str, folder: Path) -> Iterator[Module]:
    """The modules in and below a folder."""
    for path in sorted(folder.rglob("*.py")):
        names = [package, *path.relative_to(folder).with_suffix("").parts]
        name = ".".join(names).removesuffix(".__init__")
        yield Module(name, path, path.read_text("utf-8"))


# --- what is counted ------------------------------------------------------------------------------


def rooms_of(house: House, folder: str) -> set[str]:
    """The folders in a folder."""
    below = [one.rpartition(".") for one in house.folders]
    return {name for above, _, name in below if above == folder}


def arrows_between(house: House, folder: str) -> tuple[int, int]:
    """How many pairs of rooms of a folder, and of its files, import one another."""
    rooms, inside = rooms_of(house, folder), set(house.folders[folder]) - {folder}
    files = {(one, other) for one in inside for other in house.imports[one] & inside}

    pairs = {(_room(house, folder, one), _room(house, folder, other)) for one, other in files}
    arrows = [one for one, other in pairs if one in rooms and other in rooms and one != other]
    return len(arrows), len(files)


def imports_up(house: House) -> list[str]:
    """The imports that point up or sideways in the layers that the tree has for itself."""
    found = []
    for folder, layers in _layers(house.root).items():
        level = {room: number for number, layer in enumerate(layers) for room in layer}
        for module, others in house.imports.items():
            for other in others:
                room, below = _room(house, folder, module), _room(house, folder, other)
                if room is None or below is None or room == below:
                    continue
                if level.get(below, -1) <= level.get(room, -1):
                    found.append(f"{module} imports {other}")
    return sorted(found)


def _room(house: House, folder: str, module: str) -> str | None:
    """The room of a folder in which a module is, "" for those beside the rooms, None elsewhere. At
    the top of a package a file is a room as well."""
    if module != folder and not module.startswith(f"{folder}."):
        return None
    first = module.removeprefix(folder)[1:].partition(".")[0]
    return first if folder in _PACKAGES or first in rooms_of(house, folder) else ""


def _layers(root: Path) -> dict[str, Sequence[Sequence[str]]]:
    path = root / "tests" / "test_layers.py"
    found: dict[str, Sequence[Sequence[str]]] = {}
    for node in ast.parse(path.read_text("utf-8")).body if path.exists() else ():
        match node:
            case ast.Assign(targets=[ast.Name(id="LAYERS" | "ROOMS")], value=ast.Dict() as table):
                found |= ast.literal_eval(table)
    return found


def classes_that_run(modules: Iterable[Module]) -> list[str]:
    """The public classes that take events and give answers: with `push` and `rest`, be they of a
    class above."""
    able: set[str] = set()
    classes = [one for one in classes_of(modules) if "Protocol" not in bases_of(one)]
    while True:
        found = {
            one.name
            for one in classes
            if {"push", "rest"} <= methods_of(one) or able.intersection(bases_of(one))
        }
        if found == able:
            return sorted(one for one in able if not one.startswith("_"))
        able = found


def families(modules: Iterable[Module]) -> dict[str, int]:
    """How many classes there are of each kind that has subclasses, the topmost one included."""
    above = {one.name: bases_of(one) for one in classes_of(modules)}

    def top(name: str) -> str:
        known = [base for base in above[name] if base in above and base != name]
        return top(known[0]) if known else name

    found = Counter(map(top, above))
    return {name: count for name, count in found.items() if count > 1}


def classes_of(modules: Iterable[Module]) -> Iterator[ast.ClassDef]:
    """The classes of modules."""
    for module in modules:
        yield from (node for node in module.nodes if isinstance(node, ast.ClassDef))


def bases_of(of_class: ast.ClassDef) -> list[str]:
    """The names of the classes right above a class."""
    names = (ast.unparse(base).partition("[")[0] for base in of_class.bases)
    return [name.rpartition(".")[2] for name in names]


def methods_of(of_class: ast.ClassDef) -> set[str]:
    """The names of the methods that a class defines itself."""
    return {node.name for node in of_class.body if isinstance(node, _FUNCTIONS)}


def fields_of(modules: Iterable[Module], name: str) -> dict[str, int]:
    """How many fields the dataclass of a name has, and those of its module that are its parts."""
    found: dict[str, int] = {}
    for module in modules:
        fields = {
            one.name: [node for node in one.body if isinstance(node, ast.AnnAssign)]
            for one in module.tree.body
            if isinstance(one, ast.ClassDef)
        }
        if name in fields:
            parts = [ast.unparse(node.annotation) for node in fields[name]]
            found |= {one: len(fields[one]) for one in (name, *parts) if one in fields}
    return found


def variants(modules: Iterable[Module]) -> dict[str, list[str]]:
    """The variants of each axis on which the ways to run a query differ."""
    found = {}
    for module in modules:
        for node in module.tree.body:
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.BinOp() as union):
                    if name in _AXES:
                        found[name] = ast.unparse(union).split(" | ")
    return found


def walks(modules: Iterable[Module]) -> list[str]:
    """The functions with a loop that follows nodes of the arena by both of their links. Functions
    inside count as the one around them."""
    return [
        f"{module.name}.{node.name}"
        for module in modules
        for node in module.tree.body
        if isinstance(node, _FUNCTIONS) and _follows_nodes(node)
    ]


def _follows_nodes(function: ast.AST) -> bool:
    loops = [node for node in ast.walk(function) if isinstance(node, ast.While | ast.For)]
    read = {
        column.id
        for loop in loops
        for node in ast.walk(loop)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        if isinstance(node.slice, ast.Tuple)
        if isinstance(column := node.slice.elts[-1], ast.Name)
    }
    return read >= _ARENA


def long_files(modules: Iterable[Module]) -> dict[str, int]:
    """The modules with more lines than a file should have."""
    return {one.name: one.lines for one in modules if one.lines > MOST_LINES}


def long_functions(modules: Iterable[Module]) -> dict[str, int]:
    """The functions with more lines than they should have, without their docstrings. Kernels may be
    longer, and those that are written inside a function do not count as lines of it."""
    return {
        f"{module.name}.{node.name}": lines
        for module in modules
        for node, lines in _long_functions(module)
    }


def long_without_reason(modules: Iterable[Module]) -> Iterator[str]:
    """The long files and functions where no line says why: `Long: …`, in a file's docstring, or in
    the comment above a function."""
    for module in modules:
        if _REASON not in (ast.get_docstring(module.tree) or ""):
            yield from long_files([module])
        lines = module.text.splitlines()
        for node, _ in _long_functions(module):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if _REASON not in lines[first - 2]:
                yield f"{module.name}.{node.name}"


def _long_functions(module: Module) -> Iterator[tuple[_Function, int]]:
    kernels = list(_kernels(module)) if "njit" in module.text else []
    for node in module.nodes:
        if isinstance(node, _FUNCTIONS) and node not in kernels:
            inner = [one for one in kernels if node.lineno < one.lineno <= _last(node)]
            lines = _length(node) - sum(map(_length, inner))
            if lines > MOST_LINES_OF_A_FUNCTION:
                yield node, lines


def _last(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno


def _length(node: _Function) -> int:
    lines = _last(node) - node.lineno + 1
    if ast.get_docstring(node) is not None:
        lines -= _last(node.body[0]) - node.body[0].lineno + 1
    return lines


def _kernels(module: Module) -> Iterator[_Function]:
    """The functions that Numba compiles: with a decorator, or given to one by name."""
    given = {
        argument.id
        for node in module.nodes
        if isinstance(node, ast.Call) and "njit" in ast.unparse(node.func)
        for argument in node.args
        if isinstance(argument, ast.Name)
    }
    for node in module.nodes:
        if isinstance(node, _FUNCTIONS):
            decorated = any("njit" in ast.unparse(one) for one in node.decorator_list)
            if decorated or node.name in given:
                yield node


# --- the table ------------------------------------------------------------------------------------


def table(house: House) -> Iterator[str]:
    """The lines of the table of a tree."""
    root, modules = house.root, list(house.modules.values())
    runtime = [one for one in modules if one.name.startswith("celc_runtime")]
    runs = [one for one in modules if one.name.startswith("celc_runtime.run")]
    engine = [one for one in modules if one.name.startswith("celc_runtime.engine")]
    sizes = {package: _lines(root / folder, "*.py") for package, folder in _PACKAGES.items()}
    sizes["templates"] = _lines(root / "templates", "*")
    yield _row("lines of the packages and the templates", sum(sizes.values()), _told(sizes))
    yield _row("lines of tests", _lines(root / "tests", "*.py"))
    stems = Counter(one.path.stem for one in modules if one.path.stem != "__init__")
    shared = {f"{name}.py": count for name, count in stems.most_common() if count > 1}
    yield _row("names that several files have", len(shared), _told(dict(list(shared.items())[:6])))
    up = imports_up(house)
    yield _row("imports pointing up", len(up), ", ".join(up))
    found = classes_that_run(runtime)
    yield _row("classes that run", len(found), ", ".join(found))
    for axis, names in variants(runtime).items():
        yield _row(f"variants of {axis}", len(names), ", ".join(names))
    for top, count in sorted(families(runs).items()):
        yield _row(f"classes of {top} in run/", count)
    fields = fields_of(runtime, "Plan")
    yield _row("fields of Plan and its parts", sum(fields.values()), _told(fields))
    yield _row("walks over the arena", len(walks(engine)), ", ".join(map(_short, walks(engine))))
    for what, long in (("functions", long_functions(modules)), ("files", long_files(modules))):
        most = MOST_LINES if what == "files" else MOST_LINES_OF_A_FUNCTION
        longest = sorted(long, key=lambda name: -long[name])[:4]
        yield _row(
            f"{what} over {most} lines", len(long), _told({_short(n): long[n] for n in longest})
        )
    yield ""
    yield from _folder_rows(house)


def _folder_rows(house: House) -> Iterator[str]:
    largest = sorted(house.folders, key=lambda one: -len(house.folders[one]))[:_SHOWN_FOLDERS]
    yield f"{'folder':<32}{'files':>6}{'rooms':>7}{'arrows between rooms':>22}{'between files':>15}"
    for folder in largest:
        rooms = rooms_of(house, folder)
        between_rooms, between_files = arrows_between(house, folder)
        shown = str(between_rooms) if rooms else "-"
        count = len(house.folders[folder])
        yield f"{folder:<32}{count:>6}{len(rooms):>7}{shown:>22}{between_files:>15}"


def _row(what: str, count: int, told: str = "") -> str:
    return f"{what:<42}{count:>7,}  {told}".rstrip()


def _told(counts: dict[str, int]) -> str:
    """Counts by name, as a text."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _short(name: str) -> str:
    return ".".join(name.split(".")[-2:])


def _lines(folder: Path, pattern: str) -> int:
    return sum(
        path.read_text("utf-8").count("\n") for path in folder.rglob(pattern) if path.is_file()
    )


def main(arguments: Sequence[str]) -> int:
    """Print the table of the tree that the command line names."""
    if len(arguments) > 1 or (arguments and not Path(arguments[0]).is_dir()):
        print(__doc__, file=sys.stderr)
        return 2
    here = Path(__file__).resolve().parent.parent
    print("\n".join(table(House(Path(arguments[0]) if arguments else here))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
