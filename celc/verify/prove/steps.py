"""The steps of a proof, in the order of the passes, and what no step looks at."""

from __future__ import annotations

from collections.abc import Callable

from celc.verify.prove.code.steps import CODE_STEPS
from celc.verify.prove.representations import Representations
from celc.verify.prove.to_automaton import to_automaton, to_deterministic, to_minimal
from celc.verify.prove.to_normal import to_normal
from celc.verify.prove.to_parts import to_parts
from celc.verify.prove.to_symbols import to_symbols
from celc.verify.prove.verdict import Verdict

STEPS: tuple[Callable[[Representations], Verdict], ...] = (
    to_normal,
    to_parts,
    to_symbols,
    to_automaton,
    to_deterministic,
    to_minimal,
    *CODE_STEPS,
)

ASSUMED = (
    Verdict("text → core formula", "tested", "the parser, names and types: the tests of celc"),
    Verdict("Python → machine code", "assumed", "Numba and LLVM run the code as it is written"),
    Verdict(
        "columns", "assumed", "Arrow gives the values of the columns, and its kernels are right"
    ),
    Verdict(
        "distribution", "assumed", "Spark hands the rows of a part over, all of them, in order"
    ),
)
