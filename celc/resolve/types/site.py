"""The place of an expression: what it can name, and where its mistakes go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, Protocol

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.extents import Binding
from celc.resolve.labels import Hidden
from celc.resolve.schema import Schema
from celc.resolve.scopes import Frame


class Names(Protocol):
    """The names that can be used in the declaration of an aggregate (`own_aggregates`), in an item
    of TOTAL and in HAVING (`celc.resolve.totals`)."""

    def value(
        self,
        node: syntax.OfSite,
        site: Site,
    ) -> core.Expression | None:
        """The meaning of a name or a call."""

    def no_label(self, label: str, span: Span, site: Site) -> None:
        """Report a label."""

    def pattern(self, asked: core.PatternMatch) -> core.Truth:
        """LIKE and RLIKE as kernels can ask it."""


class Judge(Protocol):
    """Resolves conditions in expressions (`celc.resolve.types.conditions`, which imports these)."""

    def __call__(self, node: syntax.Condition, site: Site) -> core.Truth | None:
        """The condition as AND and OR over predicates; None after an error."""


@frozen
class Site:
    """The place of an expression: the names that it can use, and the diagnostics of its
    mistakes."""

    schema: Schema
    frame: Frame
    hidden: Mapping[str, Hidden]
    found: Diagnostics
    use: Literal["filter", "select", "event"]
    """`event`: the expression is of one event, whose attributes have no label."""
    judge: Judge
    inside: str | None = None  # the label of the `x[…]` around it
    known: dict[tuple[str, str | None], core.DataType | Binding | None] = field(
        default_factory=dict
    )
    """The answer for each label and attribute, so that a mistake is reported once in a filter."""
    declared: Names | None = None
    """The names where no label can be used, as in the declaration of an aggregate."""
