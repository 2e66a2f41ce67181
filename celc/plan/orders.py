"""Whether the events of a match can occur in one order only.

Where time is uncertain, one set of labelled events can be a match in several orders. Its confidence
is the sum over them. `A ; B ; C` has one order: an event is known by its symbol and its marks, and
these have one order in every word of the automaton. `A+` and `(A ; B) OR (B ; A)` have several.
"""

from typing import TypeAlias

from celc.automata.determinize import START, DetState
from celc.automata.graphs import reached
from celc.normal.normal_form import shown
from celc.plan.tables import Tables

_Letter: TypeAlias = tuple[int, tuple[str, ...]]


def labels_tell_roles(tables: Tables) -> bool:
    """Whether events with the same labels have the same roles. Then matches that look alike are
    one, and the orders of one match can be added up by its labels."""
    roles: dict[frozenset[str], frozenset[str]] = {}
    for kind in tables.kinds:
        marks = frozenset(kind.marks)
        if roles.setdefault(shown(marks), marks) != marks:
            return False
    return True


def has_one_order(tables: Tables) -> bool:
    """Whether no two events of a match could change places. Events are known by their symbols and
    marks.

    An event is before another if a path of the automaton leads from the one to the other. There is
    one order if this is a strict order of pairs (symbol, marks). This is sufficient but not
    necessary, because conditions of states are not considered.
    """
    sources: dict[DetState, set[_Letter]] = {}
    targets: dict[_Letter, set[DetState]] = {}
    following: dict[DetState, set[DetState]] = {}
    for symbol, steps in enumerate(tables.steps):
        for step in steps:
            letter = (symbol, tables.kinds[step.kind].marks)
            for source in step.sources:
                sources.setdefault(source, set()).add(letter)
                if step.target is not None:
                    following.setdefault(source, set()).add(step.target)
            if step.target is not None:
                targets.setdefault(letter, set()).add(step.target)
    behind_of = {state: reached(state, following) for state in {START, *following, *sources}}
    before = {
        (letter, later)
        for letter, states in targets.items()
        for state in states
        for behind in behind_of.get(state, {state})
        for later in sources.get(behind, ())
    }
    return not any((later, letter) in before for letter, later in before)
