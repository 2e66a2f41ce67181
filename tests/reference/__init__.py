"""A reference evaluator of CEL: the definitions of the language, carried out by brute force.

It shares no code with the compiler, so that the two can be compared. `evaluate` answers a query;
`check_answer` compares somebody else's answer with it.
"""

from __future__ import annotations

from .answers import (
    as_expected,
    check_answer,
    check_choice,
    choice_per_end,
    difference,
    from_expected,
    same_answer,
)
from .clauses import Match, evaluate
from .parser import parse
from .semantics import WorkLimitError
from .slices import known_time
from .totals import RunError, evaluate_totals, totals_difference
from .values import CelError

__all__ = [
    "CelError",
    "Match",
    "RunError",
    "WorkLimitError",
    "as_expected",
    "check_answer",
    "check_choice",
    "choice_per_end",
    "difference",
    "evaluate",
    "evaluate_totals",
    "from_expected",
    "known_time",
    "parse",
    "same_answer",
    "totals_difference",
]
