"""Complex event automata: the nondeterministic model of the CEL paper, section 6.

A transition reads one event that satisfies its predicate and marks it with a set of labels. The
paper's automata mark with •; ours mark with the label set itself, like those of the second-order
paper. Reading without a mark (○) is the empty set.
"""

from typing import NewType

from celc_runtime.plan.frozen import frozen

from celc.automata.letters import Letters, Mask
from celc.core.formula import EventType
from celc.normal.normal_form import EventClause

State = NewType("State", int)


@frozen
class EventPredicate:
    """Events of one type that satisfy every clause."""

    type: EventType
    clauses: tuple[EventClause, ...]


@frozen
class LetterSet:
    """Events with one of some letters, as transitions of products read them. `version` is the
    version of the letters in which the mask was made."""

    version: int
    mask: Mask


@frozen
class Transition:
    """Read an event that satisfies `predicate` (None: any event), mark it, go to `target`.

    `names` are the atoms, as written, that the event stands for. Most transitions have one name. A
    transition that skips events between the parts of a sequence has none. A product has several,
    one for each atom.
    """

    source: State
    predicate: EventPredicate | LetterSet | None
    marks: tuple[str, ...]
    target: State
    names: tuple[str, ...]


@frozen
class Automaton:
    """A complex event automaton.

    A run from `initial` to `final` over positions i to j stands for the complex event (i, j, μ).
    No transition enters `initial` and none leaves `final`, so i is the first event that a run reads
    and j the last. The letter sets of the automaton are over the contexts of `letters`.
    """

    states: int
    initial: State
    final: State
    transitions: tuple[Transition, ...]
    letters: Letters

    def mask(self, transition: Transition) -> Mask:
        """The letters that a transition reads."""
        return mask_of(transition.predicate, self.letters)


def mask_of(predicate: EventPredicate | LetterSet | None, letters: Letters) -> Mask:
    """The letters of the newest version that satisfy a predicate."""
    match predicate:
        case None:
            return letters.all
        case LetterSet():
            return letters.lift(predicate.mask, predicate.version)
        case EventPredicate():
            return letters.matching(predicate.type, predicate.clauses)
