"""Theorem 3 of the CEL paper: the automaton of a formula has linearly many states.

For formulas in LP-normal form, whose conditions stand on single events; each of their atoms has a
label of its own, so they are safe. Sizes count events.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NoReturn

import pytest

import celc.automata.construct
from celc.automata.automaton import Automaton
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.normal.normal_form import NormalForm
from celc.normal.traversal import count_events
from celc.options import Options

DECLARATION = """CREATE STREAM S {
  EVENT A { v: INT }, EVENT B { v: INT }, EVENT C { v: INT }
}
SELECT * FROM S WHERE """

STATES_PER_EVENT, MORE_STATES = 2, 2
SIZES = (5, 10, 20, 40, 80, 160, 320)


class _BuiltError(Exception):
    """Ends a compilation that has its automaton: to make that deterministic can take long."""

    def __init__(self, form: NormalForm, automaton: Automaton) -> None:
        super().__init__()
        self.form, self.automaton = form, automaton


def built(formula: str) -> tuple[NormalForm, Automaton]:
    """The normal form of a formula and the automaton that is built from it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("celc.driver.pipeline.construct", _construct_and_stop)
        with pytest.raises(_BuiltError) as stopped:
            compile_source(Source("size.cel", DECLARATION + formula), Options())
    return stopped.value.form, stopped.value.automaton


def _construct_and_stop(form: NormalForm, *rest: Any, **options: Any) -> NoReturn:
    construct: Callable[..., Automaton] = celc.automata.construct.construct
    raise _BuiltError(form, construct(form, *rest, **options))


# --- families -------------------------------------------------------------------------------------


def _atom(number: int) -> str:
    """An event with its own label, every third with a condition."""
    atom = f"{'ABC'[number % 3]} AS x{number}"
    if number % 9 % 2:
        return atom
    return f"({atom} FILTER x{number}.v {'<>'[number % 2]} {number % 4})"


def sequence(size: int) -> str:
    """`a ; b : c ; …`."""
    first, *rest = map(_atom, range(size))
    return first + "".join(f" {';:'[k % 5 == 4]} {atom}" for k, atom in enumerate(rest))


def disjunction(size: int) -> str:
    """`a OR b OR c OR …`, between two events."""
    return f"{_atom(0)} ; ({' OR '.join(map(_atom, range(1, size - 1)))}) ; {_atom(size - 1)}"


def iterations_in_a_row(size: int) -> str:
    """`a+ ; b:+ ; c+ ; …`."""
    return " ; ".join(f"({_atom(k)}){('+', ':+')[k % 4 == 3]}" for k in range(size))


def nested_iterations(size: int) -> str:
    """`(… ((a ; b)+ ; c ; d)+ ; …)+`, at most 80 deep."""
    step = -(-size // 80)
    formula = ""
    for first in range(0, size, step):
        row = " ; ".join(_atom(k) for k in range(first, min(size, first + step)))
        formula = f"({formula + ' ; ' if formula else ''}{row})+"
    return formula


def nested_disjunctions(size: int) -> str:
    """`((a OR b)+ ; c OR d)+ …`: ways in and out meet in every level; at most 60 deep."""
    step = -(-size // 60)
    formula = _atom(0)
    for first in range(1, size, step):
        row = " ; ".join(_atom(k) for k in range(first, min(size, first + step)))
        operator = (";", "OR")[first // step % 2]
        formula = f"({formula} {operator} {row}){('+', ':+')[first % 3 == 0]}"
    return formula


def mixed(seed: int) -> Callable[[int], str]:
    """Random formulas; the one of twice the size holds two others."""

    def formula(size: int) -> str:
        return _random(random.Random(seed), 0, size)

    return formula


def _random(rng: random.Random, first: int, size: int) -> str:
    if size == 1:
        formula = _atom(first)
    else:
        half = rng.randint(max(1, size // 3), max(1, 2 * size // 3))
        left = _random(rng, first, half)
        right = _random(rng, first + half, size - half)
        formula = f"{left} {rng.choice((';', ';', ':', 'OR'))} {right}"
    suffix = rng.choice(("", "", "", "+", ":+"))
    return f"({formula}){suffix}"


FAMILIES: dict[str, Callable[[int], str]] = {
    "sequence": sequence,
    "disjunction": disjunction,
    "iterations in a row": iterations_in_a_row,
    "nested iterations": nested_iterations,
    "nested disjunctions": nested_disjunctions,
    **{f"mixed {seed}": mixed(seed) for seed in range(3)},
}

# --- the claim ------------------------------------------------------------------------------------


@pytest.mark.each(4)
@pytest.mark.parametrize("name", FAMILIES)
def test_states_are_linear_in_the_size(name: str) -> None:
    """Each event adds at most STATES_PER_EVENT; twice the size has at most twice as many states."""
    states = []
    for size in SIZES:
        form, automaton = built(FAMILIES[name](size))
        assert count_events(form) == size
        assert automaton.states <= STATES_PER_EVENT * size + MORE_STATES, size
        states.append(automaton.states)
    if name.startswith("mixed"):
        return  # the random formula of twice the size need not hold this one twice
    for before, after in pairwise(states):
        assert after <= 2 * before + MORE_STATES


@pytest.mark.each(8)
@pytest.mark.parametrize("seed", range(20))
def test_two_formulas_together_have_no_more_states(seed: int) -> None:
    rng = random.Random(seed)
    left, right = _random(rng, 0, 25), _random(rng, 25, 25)
    apart = sum(built(formula)[1].states for formula in (left, right))
    for operator in (";", ":", "OR"):
        assert built(f"({left} {operator} {right})+")[1].states <= apart, operator
