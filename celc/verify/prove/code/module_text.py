"""The text of a generated module, read as a tree: its functions, its constants, and its values.

Nothing of it is run by importing it. Functions are made of their trees, with other functions for
the names that they call.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.verify.prove.verdict import NotUnderstoodError


@frozen(eq=False)
class ModuleText:
    """A module's text; `functions` and `values` are what its top level defines, by name."""

    text: str
    functions: Mapping[str, ast.FunctionDef]
    values: Mapping[str, ast.expr]

    @property
    def digest(self) -> str:
        """SHA-256 of the text, which binds a report to it."""
        return digest_of(self.text)

    def number_of(self, query: str) -> int:
        """The number of a query in the names of the module. Raises NotUnderstoodError."""
        queries = self.values.get("QUERIES")
        if isinstance(queries, ast.Dict):
            for key, value in zip(queries.keys, queries.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == query:
                    assert isinstance(value, ast.Name)
                    return int(value.id.removeprefix("query_"))
        raise NotUnderstoodError(f"the module has no query {query!r}")

    def compiled(self, name: str, names: dict[str, Any]) -> Callable[..., Any]:
        """A function of the module without decorators, made with `names` as its globals."""
        tree = self.functions[name]
        bare = copy(tree)
        bare.decorator_list = []
        module = ast.Module([bare], [])
        exec(compile(ast.fix_missing_locations(module), f"<{name}>", "exec"), names)
        made: Callable[..., Any] = names[name]
        return made

    def value(self, name: str, names: dict[str, Any]) -> Any:
        """A value of the top level, computed with `names` as its globals."""
        tree = ast.fix_missing_locations(ast.Expression(self.values[name]))
        return eval(compile(tree, f"<{name}>", "eval"), names)

    def names_in(self, function: str) -> frozenset[str]:
        """All names that stand in a function."""
        tree = self.functions[function]
        return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def digest_of(text: str) -> str:
    """SHA-256 of a module's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def module_text(text: str) -> ModuleText:
    """The tree of a module. Raises SyntaxError where it is not Python."""
    tree = ast.parse(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    values: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    return ModuleText(text, functions, values)
