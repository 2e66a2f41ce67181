"""Whether two syntax trees of either dialect are equal."""

from dataclasses import fields, is_dataclass
from typing import Any

from celc.diagnostics.source import Span


def same_tree(left: Any, right: Any) -> bool:
    """Whether two trees are equal, apart from the places of their nodes."""
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, Span):
            continue
        if isinstance(one, tuple | list):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        elif is_dataclass(one):
            names = [field.name for field in fields(one)]
            waiting += [(getattr(one, name), getattr(other, name)) for name in names]
        elif one != other:
            return False
    return True
