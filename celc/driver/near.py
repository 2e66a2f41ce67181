"""The near misses of a query, compiled: its bent forms are queries of one module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from celc_runtime.chain.streams.near.query import NearQuery
from celc_runtime.plan.near.queries import SHARE
from celc_runtime.values.warned import warn

from celc.codegen.module import near_part
from celc.diagnostics.errors import CelError, CelWarning
from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.driver.pipeline import compile_files
from celc.near import messages
from celc.near.needs import needs_of, tied_by
from celc.near.texts import near_texts, place_of
from celc.options import Options


def near_module(
    sources: Sequence[Source],
    options: Options,
    command: str,
    *,
    name: str | None = None,
    near: float | Mapping[str, float] = SHARE,
    all_parts: bool = False,
    schema: Any = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts of a module with the query `name` of the texts and its bent forms (None: they have
    one query), and warnings.

    near: how far the value of a comparison may move, over its absolute value; or amounts by
    attribute. all_parts: comparisons that cannot bend are taken away. Raises CelError where the
    query has no near misses by its meaning; ValueError for a wrong `near`; KeyError where the texts
    have no such query.
    """
    near = _checked(near)
    compiled = compile_files(sources, options, schema=schema)
    found = {
        stages.query.name: (file, tree, stages.query)
        for file in compiled.files
        for tree, stages in zip(file.tree.queries, file.queries, strict=True)
    }
    file, tree, query = found[next(iter(found)) if name is None else name]
    source = file.source
    if not file.tree.streams:
        raise CelError(source, (messages.undeclared(tree.span),))
    if options.match_id:
        raise CelError(source, (messages.with_match_id(place_of(tree)),))
    texts = near_texts(
        file.tree,
        tree,
        query,
        source,
        near,
        all_parts=all_parts,
        at_end=options.at_end,
        positions=options.positions,
    )
    bent = replace(
        options,
        order_by=tuple(one.name for one in query.order_by) or None,
        positions=True,
        match_id=False,
        joins=False,
    )
    written = Source(f"near misses of {query.name}", texts.text)
    made = compile_files([written], bent)
    formulas = [(one.query.name, one.query.formula) for one in made.files[0].queries]
    needs = tuple((name, groups) for name, one in formulas if (groups := needs_of(one)))
    tied = tuple((name, attribute) for name, one in formulas if (attribute := tied_by(one)))
    plan = replace(texts.plan, needs=needs, tied=tied)
    module = made.module_parts(command)
    warned = tuple(one.render(source) for one in texts.warnings)
    return (*module, near_part(plan)), warned


def near_query(
    sources: Sequence[Source], options: Options, **asked: Any
) -> tuple[NearQuery, tuple[str, ...]]:
    """The module of near misses, loaded, and the warnings of its texts. asked: the other arguments
    of `near_module`."""
    module, warned = near_module(sources, options, "celc.compile(…).near_misses(…)", **asked)
    near: NearQuery = Matcher(module).NEAR_MISSES
    return near, warned


def told_near_query(
    sources: Sequence[Source],
    options: Options,
    schema: Any,
    name: str | None,
    near: float | Mapping[str, float],
    all_parts: bool,
) -> NearQuery:
    """The module of near misses, loaded; its warnings are given as Python's."""
    asked = {"name": name, "near": near, "all_parts": all_parts, "schema": schema}
    found, warned = near_query(sources, options, **asked)
    for text in warned:
        warn(text, CelWarning)
    return found


def _checked(near: float | Mapping[str, float]) -> float | Mapping[str, float]:
    given = list(near.values()) if isinstance(near, Mapping) else [near]
    for one in given:
        is_number = isinstance(one, int | float) and not isinstance(one, bool)
        if not is_number or not 0 < one < float("inf"):
            raise ValueError(
                "near must be a positive number (a share of each value), or positive numbers by "
                f"attribute, not {near!r}"
            )
    if isinstance(near, Mapping):
        return {name: float(one) for name, one in near.items()}
    return float(near)
