"""A compilation and the text of its module → what is proved of each query."""

from __future__ import annotations

from collections.abc import Iterator

from celc.driver.pipeline import Compilation
from celc.driver.proof_runs import listed_by
from celc.verify.prove.code.steps import listing_step
from celc.verify.prove.representations import Representations
from celc.verify.prove.steps import verdicts
from celc.verify.prove.verdict import Verdict, timed


def representations(compilation: Compilation, module: str) -> Iterator[Representations]:
    """The representations of each query of a compilation; `module` is the text that it wrote."""
    lowered = compilation.lowered().queries
    for stages, last in zip(compilation.queries, lowered, strict=True):
        yield Representations(
            stages.query,
            stages.normal_form,
            stages.division,
            stages.alphabet,
            stages.automaton,
            stages.full,
            stages.minimal,
            stages.program,
            last.plan,
            module,
        )


def proofs(compilation: Compilation, module: str) -> Iterator[tuple[str, tuple[Verdict, ...]]]:
    """The name of each query of a module, with its verdicts."""
    for given in representations(compilation, module):
        name = given.query.name
        listed = timed(lambda: listing_step(given, listed_by(module, name)))  # noqa: B023
        yield name, (listed, *verdicts(given))
