"""Syntax trees of either dialect as plain trees."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from celc.diagnostics.source import Span


def nodes_of(tree: Any) -> Iterator[Any]:
    """Every node of a tree, including the tree itself. The order has no meaning."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple | list):
            waiting += node
        elif is_dataclass(node) and not isinstance(node, Span):
            yield node
            waiting += [getattr(node, field.name) for field in fields(node)]
