"""Each invariant of the last representation fails where it is broken, and holds on the original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from celc_runtime.plan.expressions import Aggregate
from celc_runtime.plan.plan import Attribute, ChosenKey, Deadline, Kind, PerStart, Plan
from celc_runtime.plan.relevance import Relevant
from celc_runtime.plan.strategy import BranchFree
from celc_runtime.plan.totals import Totals
from verified import invariants_of, source_of

from celc.codegen.module import lowered
from celc.codegen.query import Lowered, ModuleOptions
from celc.options import Options
from celc.pipeline import compile_source
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
    (stages,) = compile_source(source_of(body), options).queries
    (query,) = lowered([stages.program], ModuleOptions("", (), "open")).queries
    return query


def _plan(**changes: Any) -> Callable[[Lowered], Lowered]:
    return lambda query: replace(query, plan=replace(query.plan, **changes))


def _of_plan(change: Callable[[Plan], Plan]) -> Callable[[Lowered], Lowered]:
    return lambda query: replace(query, plan=change(query.plan))


def _listing(**changes: Any) -> Callable[[Lowered], Lowered]:
    """Changes of the value of a listing, which may have a name in the module."""

    def change(query: Lowered) -> Lowered:
        listing: Any = query.listing
        if hasattr(listing, "text"):
            return replace(query, listing=code(listing.text, replace(listing.value, **changes)))
        return replace(query, listing=replace(listing, **changes))

    return change


def _first_expression(tree: Any) -> Callable[[Lowered], Lowered]:
    return _of_plan(
        lambda plan: replace(plan, expressions=(replace(plan.expressions[0], value=tree),))
    )


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
    (_SUMMED, _plan(attributes=()), invariants.COLUMNS),
    (_SUMMED, _plan(columns=("nobody",)), invariants.COLUMNS),
    (_SUMMED, _plan(partition_by=("nobody",)), invariants.COLUMNS),
    (_SUMMED, _plan(order_by=("nobody",)), invariants.COLUMNS),
    (_SUMMED, _first_expression(Aggregate("FIRST", "a", "nobody")), invariants.COLUMNS),
    (_COMPARED, _remembers(columns=("nobody",)), invariants.COLUMNS),
    (_COMPARED, _remembers(ranks=("value",)), invariants.COLUMNS),
    (_DEFINED, _remembers(columns=("nobody",)), invariants.COLUMNS),
    (_SUMMED, _plan(attributes=(Attribute("id", "INT"),) * 2), invariants.ONCE),
    (_SUMMED, _of_plan(lambda p: replace(p, other_types=p.types)), invariants.ONCE),
    (_SUMMED, _of_plan(lambda p: replace(p, labels=p.labels * 2)), invariants.ONCE),
    (_ABSENT, _plan(local_windows=()), invariants.NUMBERS),
    (_ABSENT, _plan(ruled_out=(Deadline(1, from_start=False),)), invariants.NUMBERS),
    (_ABSENT, _plan(reaches=((7,),)), invariants.NUMBERS),
    (_SUMMED, _plan(kinds=(Kind((7,), starts=True),)), invariants.NUMBERS),
    (_SUMMED, _plan(kind_bits=0), invariants.NUMBERS),
    (_SUMMED, _plan(chosen_keys=(ChosenKey(1, "INT", ()),)), invariants.NUMBERS),
    (_SUMMED, _first_expression(Aggregate("FIRST", "nobody", "id")), invariants.NUMBERS),
    (_SUMMED, _plan(labels=()), invariants.NUMBERS),
    (_RUNS, _listing(kinds=(-1, 7)), invariants.NUMBERS),
    (_SUMMED, _plan(relevant=(Relevant("S", "Nobody"),)), invariants.TYPES),
    (_SUMMED, _plan(totals=Totals(())), invariants.ONE_ANSWER),
    (_RUNS, _plan(per_start=PerStart("LONGEST", disjoint=False), limit=1), invariants.ONE_CHOICE),
    (_COMPARED, _listing(supports=(True,)), invariants.EACH_KIND),
    (_SUMMED, lambda q: replace(q, update=BranchFree(code("f"), piles=-1)), invariants.NO_PILES),
]


@pytest.mark.parametrize(("body", "broken", "invariant"), _BROKEN)
def test_what_is_broken_is_found(
    body: str, broken: Callable[[Lowered], Lowered], invariant: str
) -> None:
    wrong = broken(_lowered(body))
    assert invariant in invariants_of(invariants.plan(wrong.plan, wrong.update, wrong.listing))
