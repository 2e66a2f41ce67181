"""Random queries about DECIMALs: both engines against the reference."""

from __future__ import annotations

import random
from typing import Any

import pytest
from celc_runtime.plan.errors import TotalError
from engines import answers, engines, interpreted, only_query
from reference import WorkLimitError, check_answer, evaluate
from reference.totals import RunError, evaluate_totals, totals_difference
from shares import share
from strategies_decimals import query, stream, totals_query
from test_random import WORK_LIMIT, cramped
from test_random_totals import answered

from celc.options import Options


@pytest.mark.parametrize("first", share(range(0, 80, 10), 8))
def test_random_decimals(first: int) -> None:
    compared = matched = 0
    for seed in range(first, first + 10):
        rng = random.Random(seed)
        text = query(rng)
        with interpreted():
            matchers = engines(text, Options())
        for _ in range(4):
            read = {"type", *only_query(matchers["general"]).input_schema.names}
            events = [
                {name: value for name, value in event.items() if name in read}
                for event in stream(rng, rng.randint(0, 8))
            ]
            try:
                wanted = evaluate(text, events, work_limit=WORK_LIMIT)
            except WorkLimitError:
                continue
            compared += 1
            matched += bool(wanted)
            for engine, matcher in matchers.items():
                with cramped(rng):
                    for route, answer in answers(only_query(matcher), events, rng).items():
                        try:
                            check_answer(text, wanted, answer)
                        except AssertionError as problem:
                            raise AssertionError(
                                f"{seed}, {engine}, {route}: {problem}\n{text}\n{events}"
                            ) from None
    assert compared >= 30, compared
    assert matched >= 2, matched


@pytest.mark.parametrize("first", share(range(0, 60, 10), 6))
def test_random_totals_of_decimals(first: int) -> None:
    failed = 0
    for seed in range(first, first + 10):
        rng = random.Random(seed)
        text = totals_query(rng)
        with interpreted():
            matchers = engines(text, Options())
        for _ in range(3):
            read = {"type", *only_query(matchers["general"]).input_schema.names}
            events = [
                {name: value for name, value in event.items() if name in read}
                for event in stream(rng, rng.randint(0, 10))
            ]
            try:
                wanted: Any = evaluate_totals(text, events)
            except RunError as error:
                wanted, failed = error, failed + 1
            for engine, matcher in matchers.items():
                with cramped(rng):
                    for route, rows in answered(only_query(matcher), events, rng).items():
                        both = isinstance(wanted, RunError) + isinstance(rows, TotalError)
                        told = str(rows) if both == 1 else ""
                        told = told if both else totals_difference(rows, wanted)
                        assert not told, f"{seed}, {engine}, {route}: {told}\n{text}\n{events}"
    assert failed < 40, failed
