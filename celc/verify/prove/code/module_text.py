"""The text of a generated module, read as a tree: its functions, its constants, and its values.

Nothing of it is run by importing it. Functions are made of their trees, with other functions for
the names that they call.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.verify.prove.verdict import NotUnderstoodError


class WrongError(Exception):
    """Code that does something else than it must; in words."""


@frozen(eq=False)
class ModuleText:
    """A module's text; `functions` and `values` are what its top level defines, by name."""

    text: str
    functions: Mapping[str, ast.FunctionDef]
    values: Mapping[str, ast.expr]
    imported: frozenset[str]

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
        """A function of the module without decorators, made with `names` as its globals.

        It raises WrongError where one of its loops has no end.
        """
        tree = self.functions[name]
        bare = copy(tree)
        bare.decorator_list = []
        module = ast.Module([_Ending().visit(deepcopy(bare))], [])
        names["ticks"] = _ticks(names)
        exec(compile(ast.fix_missing_locations(module), f"<{name}>", "exec"), names)
        made: Callable[..., Any] = names[name]

        def ending(*arguments: Any) -> Any:
            names["turns"] = 0
            return made(*arguments)

        return ending

    def value(self, name: str, names: dict[str, Any]) -> Any:
        """A value of the top level, computed with `names` as its globals."""
        tree = ast.fix_missing_locations(ast.Expression(self.values[name]))
        return eval(compile(tree, f"<{name}>", "eval"), names)

    def unknown_in(self, function: str) -> frozenset[str]:
        """The names that a function reads and nothing in the module sets or imports."""
        tree = self.functions[function]
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        known = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        known |= {one.arg for one in tree.args.args} | {*vars(builtins)} | self.imported
        known |= {*self.functions} | {*self.values}
        return frozenset(node.id for node in names) - known

    def names_in(self, function: str) -> frozenset[str]:
        """All names that stand in a function."""
        tree = self.functions[function]
        return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


_MOST_TURNS = 2000  # of all loops of a call: an update turns a few times for an event


def _ticks(names: dict[str, Any]) -> Callable[[], bool]:
    def ticks() -> bool:
        names["turns"] += 1
        if names["turns"] > _MOST_TURNS:
            raise WrongError("a loop has no end")
        return True

    return ticks


class _Ending(ast.NodeTransformer):
    """Counts the turns of loops."""

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        counted = ast.Call(ast.Name("ticks", ast.Load()), [], [])
        node.test = ast.BoolOp(ast.And(), [counted, node.test])
        return node


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
    imported = {
        one.asname or one.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for one in node.names
    }
    return ModuleText(text, functions, values, frozenset(imported))
