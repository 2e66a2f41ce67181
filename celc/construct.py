"""LP-normal form → complex event automaton (Theorem 3 of the CEL paper, appendix C.2).

The construction is compositional and free of ε-transitions. An automaton under construction is
given by what can be read first, what can be read last, and what lies between, so that each
operator adds at most one state: the one in which any event may be skipped. Parts share structure
instead of being copied, which keeps the number of states linear in the formula.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from celc.automaton import Automaton, EventPredicate, State, Transition
from celc.normal_form import Disjunction, Event, Iteration, NormalForm, Sequence


@dataclass(slots=True)
class _Builder:
    """States and transitions so far. State 0 is initial, state 1 final."""

    states: int = 2
    transitions: dict[Transition, None] = field(default_factory=dict)

    def new_state(self) -> State:
        state = State(self.states)
        self.states += 1
        return state

    def skip_anything(self, state: State) -> None:
        self.transitions[Transition(state, None, (), state, None)] = None

    def build(self, form: NormalForm, entries: tuple[State, ...], exits: tuple[State, ...]) -> None:
        """Add paths for the matches of `form`: from each of `entries`, into each of `exits`.

        The states between are shared by all entries, so that the number of states does not depend
        on how many there are.
        """
        match form:
            case Event():
                predicate = EventPredicate(form.type, form.clauses)
                for source in entries:
                    for target in exits:
                        self.transitions[
                            Transition(source, predicate, form.labels, target, form)
                        ] = None
            case Disjunction():
                for operand in form.operands:
                    self.build(operand, entries, exits)
            case Sequence():
                for index, operand in enumerate(form.operands[:-1]):
                    between = self.new_state()
                    if not form.contiguous[index]:
                        self.skip_anything(between)
                    self.build(operand, entries, (between,))
                    entries = (between,)
                self.build(form.operands[-1], entries, exits)
            case Iteration():
                again = self.new_state()
                if not form.contiguous:
                    self.skip_anything(again)
                self.build(form.operand, (*entries, again), (*exits, again))


def construct(form: NormalForm) -> Automaton:
    """The automaton whose accepting runs are the complex events of the form."""
    builder = _Builder()
    initial, final = State(0), State(1)
    builder.build(form, (initial,), (final,))
    return Automaton(builder.states, initial, final, tuple(builder.transitions))
