"""Parts of a plan that stand for code of the generated module."""

from typing import Any

from celc_runtime.plan.frozen import frozen


@frozen
class Code:
    """An expression of the module: a function, a table, or what a call into the runtime's engine
    returns.

    `value` is the value that the expression has, where it is data as well; None: it is code only.
    """

    text: str
    value: object = None


def code(text: str, value: object = None) -> Any:
    """An expression of the module, typed as the value that it stands for."""
    return Code(text, value)
