"""Random queries about DECIMALs: both engines against the reference."""

from __future__ import annotations

import random

import pytest
from celc_runtime.plan.errors import TotalError
from engines import answers, engines, interpreted, only_query, table_of
from reference import WorkLimitError, check_answer, evaluate
from reference.totals import RunError, evaluate_totals, totals_difference
from strategies_decimals import query, stream, totals_query
from test_random import WORK_LIMIT, cramped

import celc
from celc.options import Options


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_random_decimals(first: int) -> None:
    compared = matched = 0
    for seed in range(first, first + 20):
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
    assert compared >= 60, compared
    assert matched >= 8, matched


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_totals_of_decimals(first: int) -> None:
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        text = totals_query(rng)
        with interpreted():
            asked = only_query(celc.compile(text))
        for _ in range(3):
            read = {"type", *asked.input_schema.names}
            events = [
                {name: value for name, value in event.items() if name in read}
                for event in stream(rng, rng.randint(0, 7))
            ]
            table = table_of(asked.plan, events)
            try:
                wanted = evaluate_totals(text, events)
            except RunError:
                with pytest.raises(TotalError):
                    asked.match_table(table)
                continue
            told = totals_difference(asked.match_table(table).to_pylist(), wanted)
            assert not told, f"{seed}: {told}\n{text}\n{events}"
