"""FOR EACH in words: how the rows of the table are found that an event concerns."""

from collections.abc import Iterator, Sequence

from celc_runtime.plan.parameters import Concern, OfBoth, Test
from celc_runtime.plan.row_search import bounds_of, choices_of

from celc.core import formula as core
from celc.plan.concerns import Concerns, concerns_of
from celc.plan.courses import course_of
from celc.plan.program import Program
from celc.plan.strategy import EarliestInWindow, InWindow


def parameter_lines(program: Program) -> list[str]:
    """The lines about the table of a query; empty where it has none."""
    parameters = program.query.parameters
    if parameters is None:
        return []
    match program.listing:
        case InWindow(all_events=sees_all) | EarliestInWindow(all_events=sees_all):
            pass
        case _:
            sees_all = False
    concerns, name = concerns_of(program, sees_all_events=sees_all), parameters.name
    course = course_of(program)
    if course is not None:
        lines = [
            f"rows of {name}: an index finds those for which an event can begin a match, and they "
            f"are followed from there{_on_streams(concerns)}"
        ]
        lines += [
            f"  {concern.type}: {way}" for concern in course.begins for way in _ways(concern, name)
        ]
        if not all(course.waits(state) for state in range(1, len(course.passes) + 1)):
            lines.append("  where ':' or STRICT asks for it, the next event is read")
        if course.jumps:
            lines.append(
                "  else the next event in the window is read that has the values of the row"
            )
        return lines + _patterns(parameters)
    if concerns.of_types is None:
        return [f"rows of {name}: every event is read for every row, because {concerns.why}"]
    lines = [f"rows of {name}: an index finds those that an event concerns"]
    for concern in concerns.of_types:
        lines += [f"  {concern.type}: {way}" for way in _ways(concern, name)]
    return lines + _patterns(parameters)


def _on_streams(concerns: Concerns) -> str:
    return "" if concerns.of_types is not None else " (on a stream, every row reads every event)"


def _patterns(parameters: core.Parameters) -> list[str]:
    return [
        f"  {one.attribute} {one.operator} {parameters.name}.{one.parameter}: a scan, which tests "
        "each different text with each different pattern"
        for one in parameters.patterns
    ]


def _ways(concern: Concern, name: str) -> Iterator[str]:
    for way in concern.ways or ((),):
        choices = list(choices_of(way))
        searches = [_bounds_of(choice) for choice in choices]
        # These conditions are searched by whichever side of an OR is chosen.
        shared = [test for test in choices[0] if all(test in choice for choice in choices)]
        parts = [f"{_shown(test, name)} looked up" for test in shared if _is_equality(test)]
        parts += [
            f"{_shown(test, name)} by sorted bounds"
            for test in shared
            if all(test in search for search in searches)
        ]
        if len(choices) > 1:
            parts.append("each side of an OR by itself")
        if not parts:
            parts.append("every row, because no condition compares it with an attribute of the row")
        if any(_asks_more(choice, way) for choice in choices):
            parts.append("all other conditions are tested for each pair of an event and a row")
        yield "; ".join(parts)


def _bounds_of(tests: Sequence[Test]) -> list[OfBoth]:
    compared = [one for one in tests if isinstance(one, OfBoth) and not _is_equality(one)]
    return [compared[place] for place in bounds_of([one.operator for one in compared])]


def _is_equality(test: Test) -> bool:
    return isinstance(test, OfBoth) and test.operator == "="


def _asks_more(choice: Sequence[Test], way: Sequence[Sequence[Test]]) -> bool:
    """Whether the search ignores some condition on an attribute of the row."""
    searched = sum(isinstance(test, OfBoth) and not _is_equality(test) for test in choice)
    return searched > len(_bounds_of(choice)) or len(choice) < len(way)


def _shown(test: Test, name: str) -> str:
    assert isinstance(test, OfBoth)
    return f"{test.attribute} {test.operator} {name}.{test.parameter}"
