"""What a query cannot do on a route: the table of the runtime, and the page that shows it.

`docs/routes.md` is printed from the table and from the compiler, between two lines that mark each
part; `pytest --update-golden tests/test_routes_of_plans.py` writes it anew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from celc_runtime.routes.rules import RULES, Reason, Route
from celc_runtime.routes.why_not import Asked, check, why_not
from engines import interpreted
from golden_files import compare
from places import ROOT
from smallest_queries import BY_NAME, PARTS, TOGETHER, smallest

import celc

_PAGE = ROOT / "docs" / "routes.md"

_ROW_PATTERN = """CREATE TABLE t (k INT, ts TIMESTAMP, v INT);
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts MEASURES LAST(B.v) AS v PATTERN (A B) DEFINE B AS B.v > A.v
)"""

_ROW_PATTERNS = {
    "`MATCH_RECOGNIZE`": _ROW_PATTERN,
    "`MATCH_RECOGNIZE` with a loop and without `WITHIN`": _ROW_PATTERN.replace("A B)", "A+ B)"),
    "`MATCH_RECOGNIZE` whose `ORDER BY` begins with no time": _ROW_PATTERN.replace("BY ts", "BY v"),
}


@cache
def _programs() -> dict[str, Asked]:
    """Smallest queries, by the parts that they have."""
    found: dict[str, Asked] = {}
    for names in ((), *((one.name,) for one in PARTS), *TOGETHER):
        query = smallest(*(BY_NAME[name] for name in names))
        assert query is not None
        found[" and ".join(names) or "none of these"] = query.compiled().program
    for name, text in _ROW_PATTERNS.items():
        with interpreted():
            rows = celc.compile(text, dialect="match_recognize")
        found[name] = next(iter(rows.queries.values())).program
    return found


@cache
def _reasons() -> dict[str, dict[Route, Reason | None]]:
    return {
        name: {route: why_not(program, route) for route in Route}
        for name, program in _programs().items()
    }


def test_each_rule_is_told_of_some_query() -> None:
    told = {one.code for row in _reasons().values() for one in row.values() if one is not None}
    assert told == {rule.reason.code for rule in RULES}


def test_a_rule_is_of_some_routes_and_features() -> None:
    for rule in RULES:
        assert rule.routes
        assert rule.features


@pytest.mark.parametrize("route", Route)
def test_a_refusal_says_the_route_the_reason_and_what_to_write(route: Route) -> None:
    for program in _programs().values():
        reason = why_not(program, route)
        if reason is None:
            check(program, route)
            continue
        with pytest.raises(reason.error) as raised:
            check(program, route)
        said = f"query {program.name!r} cannot be run by {route.value}: {reason.why}: "
        assert str(raised.value) == said + reason.instead
        assert not re.search(r"{\w", reason.instead), "a place of a template"


def test_the_page_is_what_the_table_says(update: bool) -> None:
    text = _PAGE.read_text("utf-8")
    text = _replaced(text, "routes", _table_of_routes())
    text = _replaced(text, "language", _table_of_pairs())
    compare(_PAGE, text, update)


# --- the page -------------------------------------------------------------------------------------


def _replaced(text: str, name: str, lines: Iterable[str]) -> str:
    """The text with other lines between the marks of a part."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    head, rest = text.split(begin)
    return head + begin + "\n".join(["", *lines, ""]) + rest[rest.index(end) :]


def _table_of_routes() -> list[str]:
    numbers: dict[str, int] = {}
    reasons: list[str] = []

    def cell(reason: Reason | None) -> str:
        if reason is None:
            return "yes"
        if reason.code not in numbers:
            numbers[reason.code] = len(numbers) + 1
            reasons.append(f"{len(numbers)}. {reason.why}: *{reason.instead}*")
        return str(numbers[reason.code])

    rows = [
        _row([name, *(cell(row[route]) for route in Route)]) for name, row in _reasons().items()
    ]
    head = ["a query with", *(f"`{route.value}`" for route in Route)]
    return [_row(head), _row(["---"] * len(head)), *rows, "", *reasons]


def _table_of_pairs() -> list[str]:
    refused: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one, other in combinations(PARTS, 2):
        query = smallest(one, other)
        if query is not None and (code := query.refused()):
            refused[code][one.name].append(other.name)
    lines = [_row(["code", "one part", "others"]), _row(["---"] * 3)]
    for code, pairs in refused.items():
        lines += [
            _row([f"`{code}`" if not place else "", one, ", ".join(others)])
            for place, (one, others) in enumerate(_gathered(pairs).items())
        ]
    return lines


def _gathered(pairs: dict[str, list[str]]) -> dict[str, list[str]]:
    """The same pairs in fewer rows: those with the same others are one row."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for one, others in pairs.items():
        alike[tuple(others)].append(one)
    return {", ".join(names): list(others) for others, names in alike.items()}


def _row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
