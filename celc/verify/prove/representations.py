"""The representations of one compiled query, which the steps of its proof compare."""

from __future__ import annotations

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Plan

from celc.automata.automaton import Automaton
from celc.automata.determinize import DeterministicAutomaton
from celc.automata.predicates import Alphabet
from celc.core.formula import Query
from celc.normal.divide import Division
from celc.normal.normal_form import NormalForm
from celc.plan.program import Program


@frozen
class Representations:
    """All results of the passes for one query, from the core formula to the text of the module."""

    query: Query
    normal_form: NormalForm
    division: Division
    alphabet: Alphabet
    automaton: Automaton
    full: DeterministicAutomaton
    minimal: DeterministicAutomaton
    program: Program
    plan: Plan
    module: str  # the text of the whole module, in which `query.name` has its code
