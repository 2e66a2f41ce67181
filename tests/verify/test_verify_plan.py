"""Each invariant of the last representation fails where it is broken, and holds on the original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from celc_runtime.plan.expressions import Aggregate
from celc_runtime.plan.plan import Answer, Attribute, ChosenKey, Deadline, Kind, PerStart
from celc_runtime.plan.relevance import Relevant
from celc_runtime.plan.strategy import BranchFree
from celc_runtime.plan.totals import Totals
from verified import invariants_of, source_of

from celc.codegen.module import lowered
from celc.codegen.query import Lowered, ModuleOptions
from celc.driver.pipeline import compile_source
from celc.options import Options
from celc.plan.code import code
from celc.verify import lowered as invariants

_SUMMED = "a.id + 1 AS n, b FROM S WHERE A AS a ; B AS b PARTITION BY id WITHIN 9 EVENTS"
_ABSENT = "* FROM S WHERE A ; B ; !C FOR 3 [id]"
_COMPARED = "* FROM S WHERE A AS x ; B AS y FILTER x.value > y.value AND x.name = 'a'"
_RUNS = "LONGEST * FROM S WHERE A:+"
_DEFINED = "* FROM S WHERE (A AS x ; B AS y FILTER x.value > y.value) UNLESS C"


@cache
def _lowered(body: str) -> Lowered:
    options = Options(order_by=("id",))
    source = source_of(body)
    (stages,) = compile_source(source, options).queries
    asked = ModuleOptions("", "", (), "open", False, False, joins=True, type_column=None)
    made = lowered([(source, stages.program)], asked)
    (query,) = made.queries
    return query


def _part(part: str, **changes: Any) -> Callable[[Lowered], Lowered]:
    """Changes of the fields of a part of the plan."""
    return _of_part(part, lambda of_query: replace(of_query, **changes))


def _of_part(part: str, change: Callable[[Any], Any]) -> Callable[[Lowered], Lowered]:
    def changed(query: Lowered) -> Lowered:
        parts: dict[str, Any] = {part: change(getattr(query.plan, part))}
        return replace(query, plan=replace(query.plan, **parts))

    return changed


def _listing(**changes: Any) -> Callable[[Lowered], Lowered]:
    """Changes of the value of a listing, which may have a name in the module."""

    def change(query: Lowered) -> Lowered:
        listing: Any = query.listing
        if hasattr(listing, "text"):
            return replace(query, listing=code(listing.text, replace(listing.value, **changes)))
        return replace(query, listing=replace(listing, **changes))

    return change


def _first_expression(tree: Any) -> Callable[[Lowered], Lowered]:

    def change(answer: Answer) -> Answer:
        first = replace(answer.expressions[0], value=tree)
        return replace(answer, expressions=(first, *answer.expressions[1:]))

    return _of_part("answer", change)


def _remembers(**changes: Any) -> Callable[[Lowered], Lowered]:
    def change(query: Lowered) -> Lowered:
        listing: Any = query.listing
        return _listing(remembers=replace(listing.value.remembers, **changes))(query)

    return change


@pytest.mark.parametrize("body", [_SUMMED, _ABSENT, _COMPARED, _RUNS, _DEFINED])
def test_what_the_compiler_makes_breaks_none(body: str) -> None:
    query = _lowered(body)
    assert not invariants_of(invariants.plan(query.plan, query.update, query.listing))


_BROKEN: list[tuple[str, Callable[[Lowered], Lowered], str]] = [
    (_SUMMED, _part("source", attributes=()), invariants.COLUMNS),
    (_SUMMED, _part("matching", columns=("nobody",)), invariants.COLUMNS),
    (_SUMMED, _part("source", partition_by=("nobody",)), invariants.COLUMNS),
    (_SUMMED, _part("source", order_by=("nobody",)), invariants.COLUMNS),
    (_SUMMED, _first_expression(Aggregate("FIRST", "a", "nobody")), invariants.COLUMNS),
    (_COMPARED, _remembers(columns=("nobody",)), invariants.COLUMNS),
    (_COMPARED, _remembers(ranks=("value",)), invariants.COLUMNS),
    (_DEFINED, _remembers(columns=("nobody",)), invariants.COLUMNS),
    (_SUMMED, _part("source", attributes=(Attribute("id", "INT"),) * 2), invariants.ONCE),
    (_SUMMED, _of_part("source", lambda s: replace(s, other_types=s.types)), invariants.ONCE),
    (_SUMMED, _of_part("answer", lambda a: replace(a, labels=a.labels * 2)), invariants.ONCE),
    (_ABSENT, _part("matching", local_windows=()), invariants.NUMBERS),
    (_ABSENT, _part("choice", ruled_out=(Deadline(1, from_start=False),)), invariants.NUMBERS),
    (_ABSENT, _part("matching", reaches=((7,),)), invariants.NUMBERS),
    (_SUMMED, _part("matching", kinds=(Kind((7,), starts=True),)), invariants.NUMBERS),
    (_SUMMED, _part("matching", kind_bits=0), invariants.NUMBERS),
    (_SUMMED, _part("source", chosen_keys=(ChosenKey(1, "INT", ()),)), invariants.NUMBERS),
    (_SUMMED, _first_expression(Aggregate("FIRST", "nobody", "id")), invariants.NUMBERS),
    (_SUMMED, _part("answer", labels=()), invariants.NUMBERS),
    (_RUNS, _listing(kinds=(-1, 7)), invariants.NUMBERS),
    (_SUMMED, _part("source", relevant=(Relevant("S", "Nobody"),)), invariants.TYPES),
    (_SUMMED, _part("answer", totals=Totals(())), invariants.ONE_ANSWER),
    (
        _RUNS,
        _part("choice", per_start=PerStart("LONGEST", disjoint=False), limit=1),
        invariants.ONE_CHOICE,
    ),
    (_COMPARED, _listing(supports=(True,)), invariants.EACH_KIND),
    (_SUMMED, lambda q: replace(q, update=BranchFree(code("f"), piles=-1)), invariants.NO_PILES),
]


@pytest.mark.parametrize(("body", "broken", "invariant"), _BROKEN)
def test_what_is_broken_is_found(
    body: str, broken: Callable[[Lowered], Lowered], invariant: str
) -> None:
    wrong = broken(_lowered(body))
    assert invariant in invariants_of(invariants.plan(wrong.plan, wrong.update, wrong.listing))
