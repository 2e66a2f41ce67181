"""Docstrings of celc as mkdocstrings shows them: a parameter explained becomes an item of a list.

The docstrings say `max_work: the most steps …` in lines of their own, `order_by, tiebreak: …` for
two. Without this the lines of several parameters run together to one paragraph.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe


class Fields(griffe.Extension):
    """Rewrites the docstring of each function."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """A function with its docstring."""
        if func.docstring is not None:
            names = {parameter.name.lstrip("*") for parameter in func.parameters}
            func.docstring.value = as_list(func.docstring.value, names)


def as_list(docstring: str, names: set[str]) -> str:
    """The docstring with an item for each parameter that a line begins with.

    An item ends at the next one, at an empty line, or where a line begins with Returns or Raises.
    """
    lines: list[str] = []
    inside = False
    for line in inspect.cleandoc(docstring).splitlines():
        told = re.match(r"((?:\w+, )*\w+): ", line)
        if told and names.issuperset(told[1].split(", ")):
            lines += [] if inside or lines[-1:] == [""] else [""]
            shown = ", ".join(f"`{name}`" for name in told[1].split(", "))
            line, inside = f"- {shown}: {line[told.end():]}", True
        elif inside and (not line or line.startswith(("Returns ", "Raises "))):
            lines += [""] if line else []
            inside = False
        elif inside:
            line = f"    {line.strip()}"
        lines.append(line)
    return "\n".join(lines)
