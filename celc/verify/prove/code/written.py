"""The plan, the update and the listing that the text of a module says, as values of the runtime."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from celc_runtime.plan import (
    conditions,
    expressions,
    parameters,
    plan,
    relevance,
    strategy,
    totals,
    uncertain,
)
from celc_runtime.plan.frozen import frozen

from celc.verify.prove.code.module_text import ModuleText
from celc.verify.prove.verdict import NotUnderstoodError

_MODULES: tuple[ModuleType, ...] = (
    conditions,
    expressions,
    parameters,
    plan,
    relevance,
    strategy,
    totals,
    uncertain,
)


@frozen
class Named:
    """A name of the module that stands for a function or for a value of its own."""

    name: str

    def __call__(self, *_: Any, **__: Any) -> Named:
        return self

    @property
    def program(self) -> Named:
        """The program of another query of the module."""
        return self


@frozen(eq=False)
class Written:
    """What the text says of a query."""

    plan: Any
    classify: Any
    update: Any
    listing: Any


class _Names(dict[str, Any]):
    """Classes of the runtime by their names; every other name stands for itself."""

    def __missing__(self, name: str) -> Any:
        return Named(name)


def written(module: ModuleText, query: str) -> Written:
    """What the text says of a query. Raises NotUnderstoodError where it has another form."""
    names = _Names()
    for of_plan in _MODULES:
        names |= {name: one for name, one in vars(of_plan).items() if isinstance(one, type)}
    found: list[Written] = []

    def program(plan: Any, classify: Any, update: Any, listing: Any, *_: Any, **__: Any) -> None:
        found.append(Written(plan, classify, update, listing))

    def nothing(*_: Any, **__: Any) -> None:
        return None

    names |= {"Program": program, "CompiledQuery": nothing, "globals": nothing}
    name = f"query_{module.number_of(query)}"
    try:
        _evaluate(module, name, names)
    except (TypeError, AttributeError, ValueError) as problem:
        raise NotUnderstoodError(f"{name} has another form: {problem}") from None
    if len(found) != 1:
        raise NotUnderstoodError(f"{name} has another form")
    return found[0]


def _evaluate(module: ModuleText, name: str, names: Mapping[str, Any]) -> None:
    tree = ast.fix_missing_locations(ast.Expression(module.values[name]))
    eval(compile(tree, f"<{name}>", "eval"), {"__builtins__": {}}, names)
