"""What is said of cases that fail: the picture, the near misses, and the clause to mend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from celc.diagnostics.messages.wording import counted
from celc.diagnostics.source import Source, visible
from celc.interfaces.cli.testing.causes import (
    NearMiss,
    Repair,
    finder_of,
    let_in,
    near_misses_of_rows,
    repairs_of,
)
from celc.interfaces.cli.testing.pictures import picture
from celc.interfaces.cli.testing.running import Outcome, Runner
from celc.mutate.mutants import Mutant

_MOST_NEAR = 5
"""Missing rows whose near misses are told."""

_MOST_REPAIRS = 3


def told_of_case(outcome: Outcome, runner: Runner) -> str:
    """A case that fails, with what would let in the rows that are missing."""
    misses = near_misses_of_rows(outcome, finder_of(outcome, runner))
    lines = [told_of(outcome, misses, runner.source.name)]
    for number, near in enumerate(misses[:_MOST_NEAR]):
        mutant = let_in(outcome, runner, number) if near is None else None
        if mutant is not None:
            change = told_change(mutant, runner.source)
            lines.append(f"missing {number + 1} is there with {change}")
    return "\n".join(lines)


def told_of(outcome: Outcome, misses: Sequence[NearMiss | None], name: str) -> str:
    """The picture of a case that fails, and the near misses of the rows that are missing; `name` is
    the file of the query."""
    lines = [picture(outcome)]
    for number, near in enumerate(misses[:_MOST_NEAR], start=1):
        if near is not None:
            there = "" if near.found is None else f", and {visible(near.found)} was there"
            lines.append(
                f"near miss of missing {number}: {visible(near.part)} ({visible(name)}:{near.line}:"
                f"{near.column}) asks {visible(near.asked)}{there}"
            )
    return "\n".join(lines)


def told_repairs(runner: Runner, outcomes: Sequence[Outcome]) -> str:
    """The clauses with one change of which failing cases pass; empty: none was found."""
    repairs = repairs_of(runner, outcomes)
    if not repairs:
        return ""
    failing = sum(not one.passed for one in outcomes)
    mended = repairs[0].mended
    what = "all cases pass" if mended == failing else f"{counted(mended, 'more case')} would pass"
    lines = [f"what to mend (with one of these changes {what}):"]
    lines += _lines(runner.source, repairs)
    return "\n".join(lines)


def _lines(source: Source, repairs: Sequence[Repair]) -> Iterator[str]:
    for one in repairs[:_MOST_REPAIRS]:
        yield f"  {told_change(one.mutant, source)}"
    if len(repairs) > _MOST_REPAIRS:
        yield f"  and {len(repairs) - _MOST_REPAIRS} more"


def told_change(mutant: Mutant, source: Source) -> str:
    """A change with its place."""
    line, column = source.line_and_column(mutant.place.start)
    before, after = visible(mutant.before(source)), visible(mutant.after(source))
    change = f"{before}  →  {after}" if after else f"{before}  →  (dropped)"
    return f"{visible(source.name)}:{line}:{column}: {' '.join(change.split(' '))}"
