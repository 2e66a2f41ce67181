"""The invariants of every representation, checked between passes (LLVM's verifier is the model).

In: a representation, with its context. Out: its *violations*; none where it is right. A violation
is a mistake of celc, never of a query, so it is not a `CelError`.

Verification is off by default, and then not imported. CELC_VERIFY=1 in the environment turns it on;
all tests do. `lowered` and `rows` are imported where a module is written, because only they read
data of the runtime. May import all passes and representations, but not `pipeline`, which calls it.
"""

from celc.verify.automata import (
    alphabet,
    automaton,
    deterministic,
    minimal,
    selection,
)
from celc.verify.forms import division, flat_form, letter_form, normal_form
from celc.verify.plans import (
    checks,
    earliest,
    joins,
    program,
    selection_tables,
    straight_line,
    tables,
)
from celc.verify.texts import core_query, safe_query, syntax_tree
from celc.verify.violations import VerificationError, Violation, verify

__all__ = [
    "VerificationError",
    "Violation",
    "alphabet",
    "automaton",
    "checks",
    "core_query",
    "deterministic",
    "division",
    "earliest",
    "flat_form",
    "joins",
    "letter_form",
    "minimal",
    "normal_form",
    "program",
    "safe_query",
    "selection",
    "selection_tables",
    "straight_line",
    "syntax_tree",
    "tables",
    "verify",
]
