"""Functions of one's own in tests, from texts of Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from celc.core.given_functions import GivenFunction
from celc.driver.given_functions import functions_of_file


@cache
def copied(text: str) -> tuple[GivenFunction, ...]:
    """The functions of a file with this text, as options have them."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "functions.py"
        path.write_text(text, encoding="utf-8")
        return functions_of_file(path)


@cache
def callables(text: str) -> dict[str, Callable[..., Any]]:
    """The functions of a text as Python runs them."""
    names: dict[str, Any] = {}
    exec(text, names)
    return {name: one for name, one in names.items() if callable(one) and name != "__builtins__"}
