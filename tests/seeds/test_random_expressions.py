"""Random SELECT lists on random streams of difficult values: both engines against the reference.

The formulas and conditions are those of `strategies`, with types of attributes that differ from
query to query. Numbers are such that sums overflow, lose digits and depend on their order.
"""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest
from engines import answers, engines, interpreted, only_query
from reference import WorkLimitError, check_answer, evaluate
from shares import share
from strategies import DECLARATION, REGULAR, Feature, random_query, random_stream
from test_random import WORK_LIMIT, cramped

from celc import CelError
from celc.options import Options

FEATURES = (REGULAR - {Feature.SELECT_NONE, Feature.SELECT_LABELS}) | {
    Feature.SELECT_EXPRESSIONS,
    Feature.TOP_SELECTOR,
    Feature.UNLESS,
    Feature.ALL,
}
_WHOLE = {"INT": (-(2**31), 2**31 - 1, 7, -7), "LONG": (-(2**63), 2**63 - 1, 2**53 + 1, -7)}
_REAL = (math.nan, math.inf, -math.inf, 1e16, -1e16, -0.0, 0.1, 1e308, 5e-324)
_FLOATS = (math.nan, math.inf, 16777216.0, 1.0, -0.5)


def _drawn(rng: random.Random) -> tuple[str, str, str]:
    """A query that computes something, and the types of `id` and `value`."""
    id_type, value_type = rng.choice(("INT", "LONG")), rng.choice(("DOUBLE", "FLOAT"))
    while True:
        text = random_query(rng, FEATURES, depth=rng.randint(1, 3))
        if " AS value_0" in text:
            break
    declaration = DECLARATION.replace("id: INT", f"id: {id_type}")
    declaration = declaration.replace("value: DOUBLE", f"value: {value_type}")
    return declaration + text.removeprefix(DECLARATION), id_type, value_type


def _stream(rng: random.Random, id_type: str, value_type: str) -> list[dict[str, Any]]:
    events = random_stream(rng, rng.randint(0, 9), nulls=rng.choice((0, 0.2, 0.5)))
    for event in events:
        if rng.random() < 0.4 and event["id"] is not None:
            event["id"] = rng.choice(_WHOLE[id_type])
        if rng.random() < 0.4 and event["value"] is not None:
            event["value"] = rng.choice(_REAL if value_type == "DOUBLE" else _FLOATS)
    return events


def _with_bare_attributes(text: str) -> str:
    """Some functions of a label replaced by the attribute alone."""
    return re.sub(r"\b(?:FIRST|LAST|MAX)\(([A-Za-z]\w*\.\w+)\)(?=.* AS value_)", r"\1", text)


def _with_places(text: str, rng: random.Random) -> str:
    """Some first and last values replaced by those at any place."""

    def changed(found: re.Match[str]) -> str:
        place = rng.choice((1, 2, 2, 3, -1, -2, -2))
        return rng.choice((found[0], f"NTH({found[1]}, {place})"))

    return re.sub(r"\b(?:FIRST|LAST)\(([A-Za-z]\w*\.\w+)\)(?=.* AS value_)", changed, text)


def _compiled(text: str) -> dict[str, Any] | None:
    """The engines; None where a bare attribute is not allowed."""
    try:
        with interpreted():
            return engines(text, Options())
    except CelError as problem:
        codes = {found.code for found in problem.diagnostics if found.severity == "error"}
        assert codes == {"many-positions"}, f"{codes}: {text}"
        return None


@pytest.mark.parametrize("first", share(range(0, 80, 20), 4))
def test_random_expressions(first: int) -> None:
    compared = with_values = bare = places = 0
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        text, id_type, value_type = _drawn(rng)
        matchers = None
        if _with_bare_attributes(text) != text:
            matchers = _compiled(_with_bare_attributes(text))
        if matchers is not None:
            bare += 1
            text = _with_bare_attributes(text)
        else:
            text = _with_places(text, rng)
        matchers = matchers or _compiled(text)
        assert matchers is not None
        places += "NTH(" in text
        for _ in range(5):
            read = {"type", *only_query(matchers["general"]).input_schema.names}
            events = [
                {name: value for name, value in event.items() if name in read}
                for event in _stream(rng, id_type, value_type)
            ]
            try:
                wanted = evaluate(text, events, work_limit=WORK_LIMIT)
            except WorkLimitError:
                continue
            compared += 1
            with_values += any(match.values for match in wanted)
            for engine, matcher in matchers.items():
                with cramped(rng):
                    for route, answer in answers(only_query(matcher), events, rng).items():
                        try:
                            check_answer(text, wanted, answer)
                        except AssertionError as problem:
                            raise AssertionError(
                                f"{seed}, {engine}, {route}: {problem}\n{text}\n{events}"
                            ) from None
    assert compared >= 60, compared
    assert with_values >= 15, with_values
    assert bare >= 1, bare
    assert places >= 1, places
