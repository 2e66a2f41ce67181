"""A generated module together with the runtime in one file, for clusters that take only one file.

The file contains the source texts of the runtime, each as a string with its lines unchanged. On
import the texts become a package in memory, by the same code that loads a pickled query in a Spark
worker. So the runtime is a package like any other, with sub-packages.

The texts come before the query, because Python needs them first. Rejected: compressed texts, which
take a quarter of the size, but which nobody could read, search or review; comments at the end,
which are lost in a process that has only the bytecode; modules joined into one, which may not
define the same name twice.
"""

import ast
from collections.abc import Iterator, Mapping

from celc_runtime.jit.bootstrap import package_name
from celc_runtime.jit.shipping import BROUGHT, bootstrap_file, bootstrap_name, runtime_sources

from celc.codegen.text.escape import literal_lines

_PACKAGE = "celc_runtime"
_LINE_LENGTH = 100
_RULE = "# " + "-" * (_LINE_LENGTH - 2)

_RUNTIME = '''\
{rule}
# The runtime of celc. This file brings it along, so it needs numpy, numba and pyarrow only.
#
# Here are the source texts of the runtime's modules. They become a package in memory, with a digest
# of them in its name: it is never taken for another version, nor another version for it. Others
# find it as `celc_runtime` in this module. The query follows at the end of the file.
{rule}

{variable} = {{
{texts}
}}


def _imported_runtime():
    """The package; made by the code that makes it in a Spark worker."""
    import sys
    import types

    name, text = "{bootstrap}", {variable}["{bootstrap_file}"]
    bootstrap = sys.modules.setdefault(name, types.ModuleType(name))
    if not hasattr(bootstrap, "restore"):
        exec(compile(text, f"<{{name}}>", "exec", dont_inherit=True), bootstrap.__dict__)
    package = bootstrap.provide({variable})
    if package.__name__ != "{package}":
        raise ImportError("the runtime's texts in this file are not those that celc wrote there")
    return package


celc_runtime = _imported_runtime()

{rule}
# The query.
{rule}
'''


def standalone(module: str, runtime: Mapping[str, str] | None = None) -> str:
    """The text of a generated module with the runtime in it.

    runtime: source texts by their paths in the package; default: those of this process.
    Raises RuntimeError where this process has no texts of its runtime.
    """
    texts = dict(runtime_sources() if runtime is None else runtime)
    package = package_name(texts)
    lines = module.split("\n")
    imports = [
        node for node in ast.parse(module).body if isinstance(node, ast.ImportFrom | ast.Import)
    ]
    done = imports[0].lineno - 1
    written = [*lines[:done], _runtime_part(texts, package)]
    for statement in imports:
        assert statement.end_lineno is not None
        written += lines[done : statement.lineno - 1]
        done = statement.end_lineno
        if isinstance(statement, ast.ImportFrom) and _is_own(statement):
            written += _imports(statement, package)
        else:
            written += lines[statement.lineno - 1 : done]
    return "\n".join([*written, *lines[done:]])


def _is_own(statement: ast.ImportFrom) -> bool:
    return statement.level == 0 and str(statement.module).split(".")[0] == _PACKAGE


def _imports(statement: ast.ImportFrom, package: str) -> Iterator[str]:
    """An import of the runtime as imports of `package`, in lines that black does not change."""
    start = f"from {package}{str(statement.module).removeprefix(_PACKAGE)} import "
    line = ""
    for name in map(ast.unparse, statement.names):
        if line and len(start) + len(line) + len(name) + 2 > _LINE_LENGTH:
            yield start + line
            line = ""
        line += f", {name}" if line else name
    yield start + line


def _runtime_part(texts: dict[str, str], package: str) -> str:
    """The part of the file that holds the runtime."""
    file = bootstrap_file(texts)
    return _RUNTIME.format(
        rule=_RULE,
        variable=BROUGHT,
        texts="\n".join(f'    "{name}": {_literal(texts[name])},' for name in sorted(texts)),
        bootstrap_file=file,
        bootstrap=bootstrap_name(texts[file]),
        package=package,
    )


def _literal(text: str) -> str:
    """A string literal of a source text, with its lines unchanged where that is possible."""
    for quotes in ('"""', "'''"):
        if quotes not in text and not text.endswith((quotes[0], "\\")):
            return f"r{quotes}{text}{quotes}"
    lines = "\n".join(f"            {line}," for line in literal_lines(text))
    return f'"\\n".join(\n        [\n{lines}\n        ]\n    )'
