"""One query of MATCH_RECOGNIZE as its generated module holds it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from celc_runtime.plan.row_pattern import RowPlan


@dataclass(frozen=True, eq=False)
class RowProgram:
    """A query ready to be run: its plan, and the functions of its module; `module` are the globals
    of that. A function is None where there is nothing for it to do. `possible` is for streams: what
    conditions can be whose rows have not all come."""

    plan: RowPlan
    conditions: Callable[..., None] | None
    advance: Callable[..., None] | None
    holds: Callable[..., bool] | None
    module: dict[str, Any] = field(repr=False)
    possible: Callable[..., None] | None = None

    @property
    def name(self) -> str:
        """The query's name."""
        return self.plan.name
