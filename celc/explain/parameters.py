"""FOR EACH in words: how the rows of the table are found that an event concerns."""

from __future__ import annotations

from collections.abc import Iterator

from celc.plan.concerns import Concern, OfBoth, Test, concerns_of
from celc.plan.program import Program
from celc.plan.strategy import EarliestInWindow, InWindow

_BOUNDS = 2
"""So many comparisons that are no equalities take part in a search."""


def parameter_lines(program: Program) -> list[str]:
    """The lines about the table of a query; none where it has none."""
    parameters = program.query.parameters
    if parameters is None:
        return []
    match program.listing:
        case InWindow(all_events=sees_all) | EarliestInWindow(all_events=sees_all):
            pass
        case _:
            sees_all = False
    concerns, name = concerns_of(program, sees_all_events=sees_all), parameters.name
    if concerns.of_types is None:
        return [f"rows of {name}: every event is read for every row, because {concerns.why}"]
    lines = [f"rows of {name}: an index finds those that an event concerns"]
    for concern in concerns.of_types:
        lines += [f"  {concern.type.name}: {way}" for way in _ways(concern, name)]
    for pattern in parameters.patterns:
        lines.append(
            f"  {pattern.attribute} {pattern.operator} {name}.{pattern.parameter}: a scan, which "
            "tests each different text with each different pattern"
        )
    return lines


def _ways(concern: Concern, name: str) -> Iterator[str]:
    for way in concern.ways or ((),):
        tests = [test for clause in way if len(clause) == 1 for test in clause]
        equal = [test for test in tests if isinstance(test, OfBoth) and test.operator == "="]
        others = [test for test in tests if isinstance(test, OfBoth) and test.operator != "="]
        parts = [f"{_shown(test, name)} looked up" for test in equal]
        parts += [f"{_shown(test, name)} by sorted bounds" for test in others[:_BOUNDS]]
        if any(len(clause) > 1 for clause in way):
            parts.append("each side of an OR by itself")
        if not parts:
            parts.append("every row, because no condition compares it with an attribute of the row")
        if len(others) > _BOUNDS:
            parts.append("all other conditions are tested for each pair of an event and a row")
        yield "; ".join(parts)


def _shown(test: Test, name: str) -> str:
    assert isinstance(test, OfBoth)
    return f"{test.attribute} {test.operator} {name}.{test.parameter}"
