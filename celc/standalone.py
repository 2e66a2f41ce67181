"""A generated module together with the runtime in one file, for clusters that take only that.

The runtime's modules are written one after another into the file, as they are, without their
imports of each other. For that no two of them may define the same name at their top level; this is
checked here, and by a test.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from celc.escape import string_literal

_PACKAGE = "celc_runtime"

ORDER = (
    "errors",
    "bootstrap",
    "shipping",
    "kernels",
    "paths",
    "numbers",
    "expressions",
    "relevant",
    "plan",
    "conditions",
    "transitions",
    "strategy",
    "program",
    "keys",
    "arena",
    "batch",
    "enumerate",
    "runs",
    "lists",
    "codes",
    "undeclared",
    "columns",
    "payload",
    "values",
    "output",
    "label_sets",
    "texts",
    "remembered",
    "joins",
    "definition",
    "positions",
    "listings",
    "selection",
    "latest",
    "checked",
    "by_definition",
    "updates",
    "many",
    "run",
    "table",
    "frames",
    "forms",
    "matching",
    "display",
    "spark_input",
    "pushdown",
    "order_column",
    "spark_probe",
    "time_ranges",
    "hot_keys",
    "range_reader",
    "spark",
    "stream_rows",
    "stream_state",
    "stream_partition",
    "stream_tasks",
    "stream_finish",
    "stream_monitor",
    "stream",
    "progress",
    "sql",
    "query",
)
"""The runtime's modules, each after those it uses. `bootstrap` is carried as text as well."""

_REGISTER = """
# Dataclasses look their module up by its name, which a job that loads this file by its path has not
# registered. Any module will do for that.
sys.modules.setdefault(__name__, sys)
"""

_UNREGISTER = """
if sys.modules[__name__] is sys:
    del sys.modules[__name__]
"""

_REPLACED = ("_bootstrap_text", "runtime_sources")


@dataclass(frozen=True, slots=True)
class _Parts:
    docstring: str
    imports: tuple[str, ...]
    body: str
    names: frozenset[str]


def standalone(module: str) -> str:
    """The module's text with the runtime in it; it imports numpy, numba and pyarrow only."""
    folder = _runtime_folder()
    runtime = [(name, _parts((folder / f"{name}.py").read_text("utf-8"))) for name in ORDER]
    own = _parts(module)
    names: set[str] = set()
    for name, parts in runtime:
        clashing = names & parts.names
        assert not clashing, f"{_PACKAGE}.{name} defines {sorted(clashing)} again"
        names |= parts.names
    imports = _merged(
        {line for _, parts in runtime for line in parts.imports} | {"import sys", *own.imports}
    )
    sections = [
        _quoted_docstring(own.docstring),
        "from __future__ import annotations",
        "\n".join(imports),
        _REGISTER,
    ]
    for name, parts in runtime:
        sections.append(_heading(f"{_PACKAGE}.{name}", parts.docstring))
        sections.append(parts.body)
        if name == "shipping":
            sections.append(_carried((folder / "bootstrap.py").read_text("utf-8")))
    sections.append(_heading("The query", ""))
    sections.append(own.body)
    sections.append(_UNREGISTER)
    return "\n\n\n".join(section.strip("\n") for section in sections) + "\n"


def _merged(imports: set[str]) -> list[str]:
    """One line for each module that is imported, or imported from; standard library first."""
    plain: set[str] = set()
    named: dict[str, set[str]] = {}
    for node in (ast.parse(line).body[0] for line in imports):
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None
            named.setdefault(node.module, set()).update(map(ast.unparse, node.names))
        else:
            plain.add(ast.unparse(node))
    lines = [*plain, *(f"from {m} import {', '.join(sorted(n))}" for m, n in named.items())]
    return sorted(lines, key=lambda line: (line.split()[1].split(".")[0] in _LIBRARIES, line))


_LIBRARIES = ("numba", "numpy", "pyarrow")


def _runtime_folder() -> Path:
    # Found, not imported: the compiler does not need the runtime to run.
    spec = importlib.util.find_spec(_PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def _parts(text: str) -> _Parts:
    """What a module consists of, its text otherwise untouched, comments included."""
    tree = ast.parse(text)
    lines = text.split("\n")
    kept = [True] * len(lines)
    imports: list[str] = []
    names: set[str] = set()
    for position, node in enumerate(tree.body):
        assert node.end_lineno is not None
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        dropped = True
        if isinstance(node, ast.ImportFrom | ast.Import):
            source = ast.get_source_segment(text, node)
            assert source is not None
            if not _is_own(node):
                imports.append(source)
        elif (
            (position == 0 and ast.get_docstring(tree) is not None)
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
            or (isinstance(node, ast.FunctionDef) and node.name in _REPLACED)
        ):
            pass
        else:
            dropped = False
            names |= _defined(node)
        if dropped:
            for line in range(first - 1, node.end_lineno):
                kept[line] = False
    body = "\n".join(line for line, keep in zip(lines, kept, strict=True) if keep)
    return _Parts(ast.get_docstring(tree) or "", tuple(imports), body.strip("\n"), frozenset(names))


def _is_own(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and (
        node.module == "__future__" or (node.module or "").split(".")[0] == _PACKAGE
    )


def _defined(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign():
            return {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        case ast.AnnAssign() if isinstance(node.target, ast.Name):
            return {node.target.id}
        case _:
            return set()


def _heading(title: str, docstring: str) -> str:
    rule = "# " + "-" * 98
    lines = [
        f"# {line}".rstrip()
        for line in [title, *(["", *docstring.split("\n")] if docstring else [])]
    ]
    return "\n".join(["", rule, *lines, rule])


def _carried(bootstrap: str) -> str:
    lines = "\n".join(f"        {string_literal(line)}," for line in bootstrap.split("\n"))
    return f'''

_BOOTSTRAP = "\\n".join(
    [
{lines}
    ]
)


def _bootstrap_text() -> str:
    """The lines that load this file in a process that has never seen it."""
    return _BOOTSTRAP


def runtime_sources() -> dict[str, str]:
    """The runtime is in this file already."""
    return {{}}
'''


def _quoted_docstring(docstring: str) -> str:
    return f'"""{docstring}\n"""'
