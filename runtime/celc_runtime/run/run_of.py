"""The run of a program: of matches, or of rows about many matches."""

from __future__ import annotations

from typing import Any

from celc_runtime.program import Program
from celc_runtime.run.collapsed_run import CollapsedRun
from celc_runtime.run.run import Run
from celc_runtime.run.totals_run import TotalsRun
from celc_runtime.run.uncertain_run import UncertainRun


def run_of(program: Program, **options: Any) -> Run:
    """A fresh run, to be fed batch by batch; the options are those of `Run`."""
    if program.plan.totals is not None:
        return TotalsRun(program, **options)
    if program.plan.uncertain is not None:
        return UncertainRun(program, **options)
    if program.plan.collapsed:
        return CollapsedRun(program, **options)
    return Run(program, **options)
