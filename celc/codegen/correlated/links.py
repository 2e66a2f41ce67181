"""Conditions between neighbours → the function that says which steps two events allow."""

from collections.abc import Iterator

from celc.codegen.correlated.checks import EventCode
from celc.codegen.text.escape import comment_text
from celc.core.show import show_predicate
from celc.plan.adjoining.spots import BEFORE, HERE, AdjoiningRuns


def link_lines(runs: AdjoiningRuns, choices: EventCode) -> Iterator[str]:
    """The body of `links`: each condition that does not hold takes its steps, which are bits, out
    of `held`."""
    steps_of: dict[tuple[str, str], int] = {}
    for number, condition in enumerate(runs.conditions):
        text = " OR ".join(map(show_predicate, condition.written.written.predicates))
        code = choices.of_clause(condition.clause, {BEFORE: "before", HERE: "here"})
        steps = sum(1 << n for n, step in enumerate(runs.steps) if number in step.conditions)
        steps_of[text, code] = steps_of.get((text, code), 0) | steps
    for (text, code), steps in steps_of.items():
        yield f"# {comment_text(text)}"
        yield f"if not ({code}):"
        yield f"    held &= ~{steps}"
