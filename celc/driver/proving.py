"""A compilation and the text of its module → what is proved of each query."""

from __future__ import annotations

from collections.abc import Iterator

from celc_runtime.query import CompiledQuery

from celc.driver.matcher import Matcher
from celc.driver.pipeline import Compilation
from celc.driver.proof_runs import listed_by, symbols_by
from celc.driver.proved_answers import rows_of_module
from celc.verify.prove.code.classes_step import classes_step
from celc.verify.prove.code.steps import listing_step
from celc.verify.prove.representations import Representations
from celc.verify.prove.steps import ASSUMED, STEPS
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
    """The name of each query of a module, with its verdicts in the order of the passes."""
    queries = Matcher(module).queries
    for given in representations(compilation, module):
        name = given.query.name
        query = queries[name]
        assert isinstance(query, CompiledQuery)
        found = [timed(step, given) for step in STEPS]
        found.append(timed(classes_step, given, symbols_by(query)))
        found.append(timed(listing_step, given, listed_by(query)))
        found.append(timed(rows_of_module, given, query))
        yield name, (*found, *ASSUMED)
