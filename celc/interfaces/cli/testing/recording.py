"""`celc test --write`: the answers of cases in their file, for review."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

from celc.diagnostics.source import Span
from celc.interfaces.cli.output import written
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.testing.files import QueryTests
from celc.interfaces.cli.testing.running import Outcome
from celc.interfaces.cli.toml.places import Place
from celc.near.edits import Edit, spliced


def record(tests: QueryTests, outcomes: Sequence[Outcome]) -> int:
    """Write what the cases that do not pass have answered in the place of what they expect; what
    passes stays as it is. Returns how many cases were written. Raises CommandProblem where the file
    cannot be written."""
    changed = [one for one in outcomes if one.case.expected is None or not one.passed]
    if not changed:
        return 0
    text = tests.source.text
    edits = [_edit(tests, one) for one in changed]
    new = spliced(text, Span(0, len(text)), edits)
    try:
        tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        raise CommandProblem(
            f"{tests.path}: 'expected' cannot be written here: write the cases as [[case]]"
        ) from None
    with written(tests.path) as out:
        out.write(new.encode())
    return len(changed)


def _edit(tests: QueryTests, outcome: Outcome) -> Edit:
    keys = outcome.case.keys
    place = tests.places.get((*keys, "expected"))
    if place is not None and place.key != place.value:
        return Edit(place.value, _expected(outcome))
    end = max((one.value.end for one in _pairs(tests, outcome)), default=tests.places[keys].key.end)
    return Edit(Span(end, end), f"\nexpected = {_expected(outcome)}")


def _pairs(tests: QueryTests, outcome: Outcome) -> list[Place]:
    """The keys that stand directly below the header of a case."""
    depth = len(outcome.case.keys) + 1
    return [
        place
        for keys, place in tests.places.items()
        if len(keys) == depth and keys[:-1] == outcome.case.keys
        if not tests.source.text.startswith("[", place.key.start)
    ]


def _expected(outcome: Outcome) -> str:
    if isinstance(outcome.case.expected, int):
        return str(len(outcome.rows))
    if not outcome.rows:
        return "[]"
    rows = "".join(f"  {outcome.asked.columns.described(row)},\n" for row in outcome.rows)
    return f"[\n{rows}]"
